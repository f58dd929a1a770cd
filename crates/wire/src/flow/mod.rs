//! Flow control: credit in bytes, shared limits, deadlines, and detection of a peer that has gone.

pub(crate) mod admission;
pub(crate) mod deadline;
pub(crate) mod holder_limiter;
pub(crate) mod liveness;
pub(crate) mod window;
