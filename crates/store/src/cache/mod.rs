//! Caches: decoded chunks in memory between reads, and made data on disk between runs.

pub(crate) mod chunk_cache;
pub(crate) mod side_cache;
