//! Order of reading: storage threads, what they do next, and the memory in which they do it.

pub(crate) mod jobs;
pub(crate) mod once;
pub(crate) mod pool;
pub(crate) mod read_pieces;
pub(crate) mod scratch;
pub(crate) mod source;
pub(crate) mod workers;
