//! What the format targets share: put foreign bytes where a file would be, open it, describe it, read from it.
//! A clear error is a fine answer; a panic, a hang, or memory beyond the limit is not.

use std::path::Path;

use array::{Selection, Target};
use store::{Cancel, Format, OpenOptions};

/// Most elements read from one array per input.
const MAX_ELEMENTS: u64 = 1 << 16;
/// Most arrays read per input.
const MAX_ARRAYS: usize = 8;

/// Opens `bytes` as a file called `name` and reads from what it claims to hold.
pub fn open_and_read(name: &str, bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder for the file");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("the file is written");
    read_some(&path);
}

/// Opens what lies at `path` and reads the first elements of its first arrays.
pub fn read_some(path: &Path) {
    let Ok(format) = store::open_format(&path.to_string_lossy(), &OpenOptions::default()) else { return };
    let dataset = format.dataset();
    for (number, array) in dataset.arrays.iter().enumerate().take(MAX_ARRAYS) {
        for level in 0..array.levels.len() {
            read_corner(&*format, number as u32, level as u8, &array.levels[level].shape, array.dtype.size_bytes());
        }
    }
}

/// Reads a box at the far corner, where lies about sizes show.
fn read_corner(format: &dyn Format, array: u32, level: u8, shape: &[u64], item_bytes: usize) {
    let side = (MAX_ELEMENTS as f64).powf(1.0 / shape.len().max(1) as f64) as u64;
    let count: Vec<u64> = shape.iter().map(|&n| n.min(side.max(1))).collect();
    let start: Vec<u64> = shape.iter().zip(&count).map(|(n, c)| n - c).collect();
    let (target, region) = Target::new(&count, item_bytes).expect("bounded above");
    let selection = Selection::of_box(&start, &count);
    if format.read(array, level, &selection, region, &Cancel::default()).is_ok() {
        target.into_vec().expect("a read that succeeded released its target");
    }
}
