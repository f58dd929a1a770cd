//! Decoder of one chunk for the fuzz targets: the last codecs of a chain, from their metadata.

use serde_json::Value;

use super::packing::BytesCodecs;
use crate::fuzzing::FuzzedChunk;

/// Undoes the compressors and checksums at the end of a chain of codecs. Returns `None` for corrupt chunks.
pub fn decode_zarr_chunk(mut codecs: Vec<Value>, stored: &[u8], chunk_bytes: usize) -> Option<FuzzedChunk> {
    let packing = BytesCodecs::take_from(&mut codecs);
    let bytes = packing.undo(stored.to_vec(), chunk_bytes).ok()?;
    Some(FuzzedChunk { bytes, packing: packing.portable().map(|packing| (packing, 1)) })
}
