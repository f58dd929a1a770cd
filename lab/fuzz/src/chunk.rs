//! Stored chunks from bytes: what undoes their filters gives what it should or an error, and a client that is given a chunk
//! as it rests restores the same.

use array::Packing;
use serde_json::{Value, json};
use wire::compression::Compressed;

// The decoders stand on `array` alone; taken from where they are, because nobody else needs them.
#[path = "../../../crates/store/src/formats/hdf5/filters/mod.rs"]
#[expect(dead_code, reason = "budgets and names are not asked for here")]
pub(crate) mod filters;
#[path = "../../../crates/store/src/formats/zarr/packing.rs"]
#[expect(dead_code, reason = "as above")]
mod packing;

/// Stand-ins for the names that the filters use from the rest of the store.
mod library {
    #[expect(dead_code, reason = "whether the library has a filter does not matter here")]
    pub(crate) struct Filter {
        pub(crate) id: i32,
        pub(crate) parameters: Vec<u32>,
        pub(crate) available: bool,
    }
}

/// Deflate, shuffle, Fletcher 32, LZF.
const FILTERS: [i32; 4] = [1, 2, 3, 32_000];
/// Szip, bzip2, Blosc, LZ4, bitshuffle, zstd, Blosc2.
const MORE_FILTERS: [i32; 7] = [4, 307, 32_001, 32_004, 32_008, 32_015, 32_026];
/// Smallest step that means one of [`MORE_FILTERS`].
const MORE: u8 = 0x80;
const CODECS: [&str; 6] = ["gzip", "zlib", "bz2", "zstd", "crc32c", "blosc"];
/// Most steps of one chunk.
const MAX_STEPS: usize = 4;
/// Bytes of an element, where a filter does not say it.
const ITEM_BYTES: usize = 4;

/// Undoes a chunk: of HDF5 or Zarr, the number of steps, two bytes for the size of the chunk (little-endian), which steps
/// were left out, the steps, what is stored.
pub fn decode(bytes: &[u8]) {
    let [which, count, low, high, skipped, rest @ ..] = bytes else { return };
    let (steps, stored) = rest.split_at(usize::from(*count).min(MAX_STEPS).min(rest.len()));
    let chunk_bytes = usize::from(u16::from_le_bytes([*low, *high]));
    match which % 2 {
        0 => of_hdf5(steps, u32::from(*skipped), chunk_bytes, stored),
        _ => of_zarr(steps, chunk_bytes, stored),
    }
}

fn of_hdf5(steps: &[u8], skipped: u32, chunk_bytes: usize, stored: &[u8]) {
    let filters: Vec<_> = steps.iter().map(|&step| filter(step)).collect();
    let Some(pipeline) = filters::Pipeline::of(&filters, ITEM_BYTES) else { return };
    let Ok(plain) = pipeline.decode(stored.to_vec(), skipped, chunk_bytes) else { return };
    assert_eq!(plain.len(), chunk_bytes);
    if let (0, Some((packing, width))) = (skipped, pipeline.packing()) {
        check_restored(packing, width, stored, &plain);
    }
}

fn filter(step: u8) -> library::Filter {
    let (id, parameters) = match step.checked_sub(MORE) {
        None => (FILTERS[usize::from(step % 4)], vec![u32::from(step >> 2)]),
        Some(more) => {
            let (id, width) = (MORE_FILTERS[usize::from(more % 7)], 1 << (more >> 3 & 3));
            let parameters = match id {
                4 => vec![u32::from(more & 0x20), 8, 8 * width, 20],
                32_008 => vec![0, 2, width, 8 * u32::from(more >> 6), [0, 2, 3, 9][usize::from(more >> 5)]],
                _ => Vec::new(),
            };
            (id, parameters)
        }
    };
    library::Filter { id, parameters, available: true }
}

fn of_zarr(steps: &[u8], chunk_bytes: usize, stored: &[u8]) {
    let codec = |step: &u8| json!({"name": CODECS[usize::from(*step) % CODECS.len()]});
    let plain = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let mut codecs: Vec<Value> = [plain].into_iter().chain(steps.iter().map(codec)).collect();
    let packing = packing::Packing::take_from(&mut codecs);
    let Ok(plain) = packing.undo(stored.to_vec(), chunk_bytes) else { return };
    if let Some(packing) = packing.portable().filter(|_| plain.len() == chunk_bytes) {
        check_restored(packing, 1, stored, &plain);
    }
}

/// Whoever is given the chunk as it is stored gets the same elements, or an error.
fn check_restored(packing: Packing, width: u8, stored: &[u8], plain: &[u8]) {
    let plain_bytes = u32::try_from(plain.len()).expect("two bytes said its size");
    let how = Compressed { algorithm: packing.into(), width, plain_bytes };
    if let Ok(restored) = how.restore(stored) {
        assert_eq!(restored, plain, "{how:?}");
    }
}
