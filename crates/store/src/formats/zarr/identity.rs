//! Identity of the chunks of a store: sizes and modification times of their files, without reading them.
//!
//! *When a store is opened*, its identity includes the state of every file of chunks, if there are at most [`MAX_LOOKS`]. For larger
//! stores it includes the folders in which these files lie, at most as many, evenly chosen: a folder changes when a file in it is
//! created, deleted or replaced, which is how careful programs write. *While it is open*, the state of each file that is read is
//! recorded: see [`file_states`](super::file_states).
//!
//! Not detected: a file overwritten in place in a store of more than [`MAX_LOOKS`] files while it is closed, or before it was read;
//! a file that keeps its size and time; a file whose block is in a cache and is not read again. Such a store must be touched: any
//! change of its metadata documents changes its identity.

use array::Result;

use super::directory::Directory;
use super::stored::ZarrArray;
use crate::formats::common::chunked::grid_position;
use crate::io::byte_store::FileStamp;

/// Most files or folders of a Zarr store whose state is checked when it is opened: a few milliseconds on a local disk.
const MAX_LOOKS: u64 = 1024;

/// Returns the state of all chunks, as far as it is checked.
///
/// # Errors
/// `Stale` if a file changes meanwhile.
pub(super) fn identity(directory: &Directory, arrays: &[ZarrArray]) -> Result<Vec<u8>> {
    let count = |sizes: &[u64]| sizes.iter().fold(1u64, |n, &size| n.saturating_mul(size));
    let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::saturating_add);
    let mut identity = Vec::new();
    let mut look = |key: &str| -> Result<()> {
        let stamp = directory.stamp_of(key)?.map(FileStamp::to_bytes);
        identity.extend(stamp.unwrap_or_default());
        Ok(())
    };
    if sum(&mut arrays.iter().map(|array| count(array.files()))) <= MAX_LOOKS {
        for array in arrays {
            (0..count(array.files()))
                .try_for_each(|number| look(&array.key(&grid_position(number, array.files()))))?;
        }
        return Ok(identity);
    }
    let grids: Vec<Vec<u64>> = arrays.iter().map(folders).collect();
    let step = sum(&mut grids.iter().map(|grid| count(grid))).div_ceil(MAX_LOOKS).max(1);
    // Every `step`th of all files, of any array.
    let mut skip = 0;
    for (array, grid) in arrays.iter().zip(&grids) {
        let mut number = skip;
        while number < count(grid) {
            look(folder(&array.key(&grid_position(number, grid))))?;
            number = number.saturating_add(step);
        }
        skip = number - count(grid);
    }
    Ok(identity)
}

/// The grid of files with one file for each folder that there is.
fn folders(array: &ZarrArray) -> Vec<u64> {
    let mut files = array.files().to_vec();
    let mut other = vec![0; files.len()];
    let first = array.key(&other);
    if let [.., before_last, _] = &mut other[..] {
        *before_last = 1;
    }
    // Whether the last axis alone makes the name of a file, or all axes do.
    let is_nested = folder(&first) != folder(&array.key(&other));
    let one = if is_nested { files.len().saturating_sub(1) } else { 0 };
    files[one..].iter_mut().for_each(|n| *n = (*n).min(1));
    files
}

fn folder(key: &str) -> &str {
    key.rsplit_once('/').map_or("", |(folder, _)| folder)
}
