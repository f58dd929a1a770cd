//! Modules that several formats share.

pub(crate) mod cf;
pub(crate) mod chunked;
pub(crate) mod describe;
pub(crate) mod flat;
pub(crate) mod flat_file;
pub(crate) mod labels;
pub(crate) mod shuffle;
pub(crate) mod text;
pub(crate) mod units;
