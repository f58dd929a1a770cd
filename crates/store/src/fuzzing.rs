//! Decoders of stored chunks for the fuzz targets (feature `fuzzing`); no part of the crate's interface.

use array::Packing;

pub use crate::formats::hdf5::filters::fuzzing::decode_hdf5_chunk;
pub use crate::formats::zarr::fuzzing::decode_zarr_chunk;

/// Chunk whose filters are undone.
#[derive(Debug)]
pub struct FuzzedChunk {
    /// Elements, as many bytes as came out.
    pub bytes: Vec<u8>,
    /// Packing that a client can undo by itself, and the width of what was shuffled before it.
    pub packing: Option<(Packing, u8)>,
}
