//! The Zarr hierarchy as files in folders, for programs that list before they read. Names and sizes only: nothing is
//! read.

use array::{Dataset, Error, Result};

use super::tree::{METADATA, ZarrChunk, ZarrObject, chunk_bytes, first_places, in_arrays, path_of};
use super::{document, files};

/// Maximum number of chunks in the listing of one folder; chunks of larger arrays are reached by their keys.
pub const MAX_LISTED: u64 = 1 << 18;
/// Name below an array: the folder of its chunks, or the only chunk of an array without axes.
const CHUNKS: &str = "c";

/// Folder or file that a key names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZarrEntry {
    /// A group, an array, or chunks whose keys have a common prefix.
    Folder,
    /// A document or a chunk.
    File {
        /// Size in bytes.
        size_bytes: u64,
    },
}

/// Looks up `key` below `/zarr/DATASET`; `None` if it names nothing.
///
/// # Errors
/// The errors of describing an array.
pub fn look_up(dataset: &Dataset, key: &str) -> Result<Option<ZarrEntry>> {
    let size_bytes = match in_arrays(dataset, key) {
        Some(ZarrObject::Chunk(ZarrChunk { number, level, .. })) => chunk_bytes(dataset, number, level)?,
        Some(ZarrObject::Document(which)) => document(dataset, which)?.len() as u64,
        None => return Ok(folder(dataset, key).map(|_| ZarrEntry::Folder)),
    };
    Ok(Some(ZarrEntry::File { size_bytes }))
}

/// Lists the names directly below `key`; empty if it is not a folder.
///
/// # Errors
/// `TooLarge` for more than [`MAX_LISTED`] chunks; the errors of describing an array.
pub fn list(dataset: &Dataset, key: &str) -> Result<Vec<(String, ZarrEntry)>> {
    match folder(dataset, key) {
        None => Ok(Vec::new()),
        Some(FolderKind::Chunks { number, places }) => chunks(dataset, number, places),
        Some(FolderKind::Arrays) => {
            let path = if key.is_empty() { String::new() } else { format!("{key}/") };
            let inside = dataset.arrays.iter().filter_map(|a| path_of(a).strip_prefix(path.as_str()));
            let mut names: Vec<&str> = inside.filter_map(|rest| rest.split('/').next()).collect();
            names.retain(|name| !name.is_empty());
            names.sort_unstable();
            names.dedup();
            let own = [METADATA, CHUNKS].into_iter().chain(names);
            let found =
                own.map(|name| Ok(look_up(dataset, &format!("{path}{name}"))?.map(|e| (name.to_owned(), e))));
            found.filter_map(Result::transpose).collect()
        }
    }
}

enum FolderKind {
    /// Documents and arrays, or an array's document and chunks.
    Arrays,
    /// Chunks of an array with these first indices; at least one more index follows.
    Chunks { number: u32, places: usize },
}

fn folder(dataset: &Dataset, key: &str) -> Option<FolderKind> {
    if key.is_empty() || dataset.arrays.iter().any(|a| is_at_or_below(path_of(a), key)) {
        return Some(FolderKind::Arrays);
    }
    let (number, at) = first_places(dataset, key)?;
    let array = dataset.array(number).ok()?;
    let grid = files::grid(array, array.level(0).ok()?);
    let is_inside = at.len() < grid.len() && at.iter().zip(&grid).all(|(place, n)| place < n);
    is_inside.then_some(FolderKind::Chunks { number, places: at.len() })
}

fn is_at_or_below(path: &str, key: &str) -> bool {
    path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn chunks(dataset: &Dataset, number: u32, places: usize) -> Result<Vec<(String, ZarrEntry)>> {
    let array = dataset.array(number)?;
    let grid = files::grid(array, array.level(0)?);
    let count = grid.get(places).copied().unwrap_or(0);
    if count > MAX_LISTED {
        let what = format!(
            "expected at most {MAX_LISTED} chunks to list, found {count}; ask for them by their keys"
        );
        return Err(Error::too_large(what));
    }
    let entry = match places + 1 == grid.len() {
        true => ZarrEntry::File { size_bytes: chunk_bytes(dataset, number, 0)? },
        false => ZarrEntry::Folder,
    };
    Ok((0..count).map(|place| (place.to_string(), entry)).collect())
}

#[cfg(test)]
mod tests {
    use array::conformance::one_array;

    use super::super::tree::ZarrDocument;
    use super::*;

    /// Arrays of two-byte elements: name, shape, block.
    fn dataset(arrays: &[(&str, &[u64], &[u64])]) -> Dataset {
        let of = |&(name, shape, block): &(&str, &[u64], &[u64])| {
            let mut dataset = one_array("<u2".parse().unwrap(), shape, block);
            dataset.arrays[0].name = name.into();
            dataset
        };
        let mut all: Vec<Dataset> = arrays.iter().map(of).collect();
        let more: Vec<_> = all.drain(1..).flat_map(|dataset| dataset.arrays).collect();
        let mut first = all.remove(0);
        first.arrays.extend(more);
        first
    }

    fn names(dataset: &Dataset, key: &str) -> Vec<String> {
        list(dataset, key).unwrap().into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn groups_arrays_and_chunks_are_folders() {
        let dataset =
            dataset(&[("/grid/rho", &[90, 70], &[30, 64]), ("grid/u", &[4], &[4]), ("one", &[], &[])]);
        assert_eq!(names(&dataset, ""), ["zarr.json", "grid", "one"]);
        assert_eq!(names(&dataset, "grid"), ["zarr.json", "rho", "u"]);
        assert_eq!(names(&dataset, "grid/rho"), ["zarr.json", "c"]);
        assert_eq!(names(&dataset, "grid/rho/c"), ["0", "1", "2"]);
        assert_eq!(names(&dataset, "grid/rho/c/2"), ["0", "1"]);
        for nothing in ["grid/rho/c/3", "grid/rho/c/2/1", "gri", "grid/rho/d", "one/c", "grid/"] {
            assert_eq!(names(&dataset, nothing), [""; 0], "{nothing}");
        }
        let chunk = ZarrEntry::File { size_bytes: 30 * 64 * 2 };
        assert_eq!(list(&dataset, "grid/rho/c/2").unwrap(), [("0".into(), chunk), ("1".into(), chunk)]);
        assert_eq!(look_up(&dataset, "grid/rho/c/2/1").unwrap(), Some(chunk));
        assert_eq!(look_up(&dataset, "one/c").unwrap(), Some(ZarrEntry::File { size_bytes: 2 }));
        assert_eq!(look_up(&dataset, "grid/rho/c/2").unwrap(), Some(ZarrEntry::Folder));
        assert_eq!(look_up(&dataset, "grid/rho/c/3").unwrap(), None);
        let size_bytes = document(&dataset, ZarrDocument::Root).unwrap().len() as u64;
        assert_eq!(look_up(&dataset, METADATA).unwrap(), Some(ZarrEntry::File { size_bytes }));
    }

    #[test]
    fn a_store_that_is_one_array_has_its_chunks_at_the_root() {
        let dataset = dataset(&[("", &[9], &[4])]);
        assert_eq!(names(&dataset, ""), ["zarr.json", "c"]);
        assert_eq!(names(&dataset, "c"), ["0", "1", "2"]);
    }

    #[test]
    fn too_many_chunks_are_not_listed() {
        let dataset = dataset(&[("long", &[1 << 40], &[1 << 18])]);
        let error = list(&dataset, "long/c").unwrap_err();
        assert!(error.to_string().contains("found 4194304"), "{error}");
    }
}
