//! Scheduling of reads: storage threads, the order of their jobs, and their working memory.

pub(crate) mod jobs;
pub(crate) mod once;
pub(crate) mod pool;
pub(crate) mod read_pieces;
pub(crate) mod scratch;
pub(crate) mod source;
pub(crate) mod workers;
