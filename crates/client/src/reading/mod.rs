//! Receiving the responses of other processes: blocks, and results of reads.

pub(crate) mod block_fetches;
pub mod decompression;
pub mod read_batches;
pub(crate) mod read_sink;
