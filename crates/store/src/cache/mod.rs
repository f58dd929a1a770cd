//! Chunks and made data that are kept: in memory between reads, on disk between runs.

pub(crate) mod chunk_cache;
pub(crate) mod side_cache;
