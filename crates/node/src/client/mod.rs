//! Reaching data elsewhere: connections that are made, kept and made again, and sources over them.

pub(crate) mod block_fetches;
pub mod call_by_name;
pub mod catalogue;
pub(crate) mod decompression;
pub mod dial;
pub mod paths;
pub mod peers;
pub mod places;
pub mod random;
pub(crate) mod read_batches;
pub(crate) mod read_sink;
pub mod receive_limit;
pub mod remote;
pub mod requests;
pub(crate) mod retry;
pub mod reverse;
pub mod runtime;
pub mod servers;
pub(crate) mod shared_failure;
pub mod ssh;
pub mod text;
pub mod upstream;
pub mod url;
