//! Stored chunk in its compressed form, for receivers that decompress it themselves.

use bytes::Bytes;

/// Compression format of a chunk. Every decoder of a format returns the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// A zlib stream (RFC 1950).
    Zlib,
    /// A gzip member (RFC 1952).
    Gzip,
    /// Zstandard frames (RFC 8878).
    Zstd,
}

/// Compressed bytes of one whole chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedChunk {
    /// Compressed bytes, fewer than the bytes of the elements.
    pub bytes: Bytes,
    /// Compression format.
    pub packing: Packing,
    /// Bytes of an element that were sorted by their place in it before packing: all first ones, then all second ones, and
    /// so on. 1: not sorted.
    pub width: u8,
}
