//! Decoder of one chunk for the fuzz targets: a pipeline from the numbers of its filters.

use super::FilterPipeline;
use crate::formats::hdf5::library::PipelineFilter;
use crate::fuzzing::FuzzedChunk;

/// Undoes filters, given as registered numbers with parameters. Bit i of `skipped` set: filter i was not applied.
/// Returns `None` for filters without a decoder here and for corrupt chunks.
pub fn decode_hdf5_chunk(
    filters: Vec<(i32, Vec<u32>)>,
    item_bytes: usize,
    skipped: u32,
    stored: &[u8],
    chunk_bytes: usize,
) -> Option<FuzzedChunk> {
    let filter = |(id, parameters)| PipelineFilter { id, parameters, available: true };
    let filters: Vec<PipelineFilter> = filters.into_iter().map(filter).collect();
    let pipeline = FilterPipeline::of(&filters, item_bytes)?;
    let bytes = pipeline.decode(stored.to_vec(), skipped, chunk_bytes).ok()?;
    Some(FuzzedChunk { bytes, packing: pipeline.packing().filter(|_| skipped == 0) })
}
