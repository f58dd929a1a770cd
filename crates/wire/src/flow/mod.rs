//! Flow control: credit in bytes, deadlines, and notice of a peer that is gone.

pub(crate) mod deadline;
pub(crate) mod liveness;
pub(crate) mod window;
