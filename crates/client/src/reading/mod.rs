//! Reading from other processes: what comes in answer to one call, and where it goes.

pub(crate) mod block_fetches;
pub mod decompression;
pub mod read_batches;
pub(crate) mod read_sink;
