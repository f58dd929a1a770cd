//! Foreign bytes as a file: open it, describe it, read from it.

use std::path::Path;

use array::{Selection, Target};
use store::{CancelFlag, Format, OpenOptions};

/// Most elements read from one array per input.
const MAX_ELEMENTS: u64 = 1 << 16;
/// Most arrays read per input.
const MAX_ARRAYS: usize = 8;

/// Opens `bytes` as a file called `name` and reads from its first arrays.
pub fn open_and_read(name: &str, bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder for the file");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("the file is written");
    read_some(&path);
}

/// Opens a path and reads from its first arrays.
pub(crate) fn read_some(path: &Path) {
    read_location(&path.to_string_lossy());
}

/// Opens a location and reads from its first arrays.
pub(crate) fn read_location(location: &str) {
    let Ok(format) = store::open_format(location, &OpenOptions::default()) else { return };
    let dataset = format.dataset();
    for (number, array) in (0..).zip(dataset.arrays.iter().take(MAX_ARRAYS)) {
        for (level_number, level) in (0..).zip(&array.levels) {
            read_corner(&*format, number, level_number, &level.shape, array.dtype.size_bytes());
        }
    }
}

/// Reads a box at the far corner, where wrong sizes show.
fn read_corner(format: &dyn Format, array: u32, level: u8, shape: &[u64], item_bytes: usize) {
    let side = 1 << (MAX_ELEMENTS.ilog2() as usize / shape.len().max(1));
    let count: Vec<u64> = shape.iter().map(|&n| n.min(side)).collect();
    let start: Vec<u64> = shape.iter().zip(&count).map(|(n, c)| n - c).collect();
    let (target, region) = Target::new(&count, item_bytes).expect("bounded above");
    let selection = Selection::of_box(&start, &count);
    if format.read(array, level, &selection, region, &CancelFlag::default()).is_ok() {
        target.into_vec().expect("a read that succeeded released its target");
    }
}
