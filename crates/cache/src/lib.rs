//! Where the data is near: the block table and a caching source.
