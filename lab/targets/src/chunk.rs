//! Stored chunks: decoding gives as many bytes as the chunk has or an error, and a client that receives the chunk as it is
//! stored restores the same elements.

use serde_json::{Value, json};
use store::fuzzing::{FuzzedChunk, decode_hdf5_chunk, decode_zarr_chunk};
use wire::compression::Compressed;

/// Deflate, shuffle, Fletcher 32, LZF.
const FILTERS: [i32; 4] = [1, 2, 3, 32_000];
/// Szip, bzip2, Blosc, LZ4, bitshuffle, zstd, Blosc2.
const MORE_FILTERS: [i32; 7] = [4, 307, 32_001, 32_004, 32_008, 32_015, 32_026];
/// Smallest step that means one of [`MORE_FILTERS`].
const MORE: u8 = 0x80;
/// Codecs of Zarr.
const CODECS: [&str; 6] = ["gzip", "zlib", "bz2", "zstd", "crc32c", "blosc"];
/// Most steps of one chunk.
const MAX_STEPS: usize = 4;
/// Bytes of an element, where a filter does not say it.
const ITEM_BYTES: usize = 4;

/// Decodes a chunk. The input is: 0 for HDF5 or 1 for Zarr, the number of steps, the size of the chunk in two bytes
/// (little-endian), a mask of the steps that were not applied, the steps, the stored bytes.
pub fn decode(bytes: &[u8]) {
    let [which, count, low, high, skipped, rest @ ..] = bytes else { return };
    let (steps, stored) = rest.split_at(usize::from(*count).min(MAX_STEPS).min(rest.len()));
    let chunk_bytes = usize::from(u16::from_le_bytes([*low, *high]));
    match which % 2 {
        0 => decode_hdf5(steps, u32::from(*skipped), chunk_bytes, stored),
        _ => decode_zarr(steps, chunk_bytes, stored),
    }
}

fn decode_hdf5(steps: &[u8], skipped: u32, chunk_bytes: usize, stored: &[u8]) {
    let filters = steps.iter().map(|&step| filter(step)).collect();
    let Some(chunk) = decode_hdf5_chunk(filters, ITEM_BYTES, skipped, stored, chunk_bytes) else { return };
    assert_eq!(chunk.bytes.len(), chunk_bytes);
    check_restored(&chunk, stored);
}

/// Number and parameters of a filter.
fn filter(step: u8) -> (i32, Vec<u32>) {
    let Some(more) = step.checked_sub(MORE) else {
        return (FILTERS[usize::from(step % 4)], vec![u32::from(step >> 2)]);
    };
    let (id, width) = (MORE_FILTERS[usize::from(more % 7)], 1 << ((more >> 3) & 3));
    let parameters = match id {
        4 => vec![u32::from(more & 0x20), 8, 8 * width, 20],
        32_008 => vec![0, 2, width, 8 * u32::from(more >> 6), [0, 2, 3, 9][usize::from(more >> 5)]],
        _ => Vec::new(),
    };
    (id, parameters)
}

fn decode_zarr(steps: &[u8], chunk_bytes: usize, stored: &[u8]) {
    let codec = |step: &u8| json!({"name": CODECS[usize::from(*step) % CODECS.len()]});
    let elements = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let codecs: Vec<Value> = [elements].into_iter().chain(steps.iter().map(codec)).collect();
    let Some(chunk) = decode_zarr_chunk(codecs, stored, chunk_bytes) else { return };
    if chunk.bytes.len() == chunk_bytes {
        check_restored(&chunk, stored);
    }
}

/// Checks that a client restores the same elements from the stored bytes, or fails.
fn check_restored(chunk: &FuzzedChunk, stored: &[u8]) {
    let Some((packing, width)) = chunk.packing else { return };
    let plain_bytes = u32::try_from(chunk.bytes.len()).expect("its size was given in two bytes");
    let compressed = Compressed { algorithm: packing.into(), width, plain_bytes };
    if let Ok(restored) = compressed.restore(stored) {
        assert_eq!(restored, chunk.bytes, "{compressed:?}");
    }
}
