//! Reading of bytes: files by position, with fewer and larger requests, also inside gzip files.

pub(crate) mod batch_reads;
pub(crate) mod byte_store;
pub(crate) mod gzip;
pub(crate) mod portions;
pub(crate) mod read_ahead;
pub(crate) mod window;
