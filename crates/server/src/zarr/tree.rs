//! Keys of the Zarr hierarchy, and the documents and chunks that they name. Names only: nothing is read.

use array::{ArrayInfo, Dataset, Level, LevelOrigin, Meaning, Result};

use super::files;

/// Name of the document that describes a group or an array.
pub(super) const METADATA: &str = "zarr.json";

/// Document or chunk that a key names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ZarrObject {
    /// Metadata document.
    Document(ZarrDocument),
    /// Chunk of an array.
    Chunk(ZarrChunk),
}

/// Metadata document, by the object that it describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZarrDocument {
    /// The root group, with all arrays.
    Root,
    /// A group between root and array: an array that lies in it, and the length of the group's path as a part of the
    /// array's path, in bytes.
    Group { number: u32, length: usize },
    /// An array at a level.
    Array { number: u32, level: u8 },
    /// All levels of an array.
    Image { number: u32 },
    /// Names of an image's labels.
    Labels { number: u32 },
}

/// One chunk of an array at a level, by its position in the grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ZarrChunk {
    pub(super) number: u32,
    pub(super) level: u8,
    pub(super) at: Vec<u64>,
}

/// Looks up a key below `/zarr/DATASET`: arrays by their names, at full resolution.
pub(super) fn in_arrays(dataset: &Dataset, key: &str) -> Option<ZarrObject> {
    if let Some(path) = metadata_of(key) {
        return match (first_below(dataset, path), find(dataset, path)) {
            // An image whose levels lie in the group of its name is represented by that group.
            (Some(number), _) if !path.is_empty() => {
                Some(ZarrObject::Document(ZarrDocument::Group { number, length: path.len() }))
            }
            (_, Some(number)) => Some(ZarrObject::Document(ZarrDocument::Array { number, level: 0 })),
            (_, None) => path.is_empty().then_some(ZarrObject::Document(ZarrDocument::Root)),
        };
    }
    let (path, at) = chunk_of(key)?;
    let number = find(dataset, path).filter(|_| path.is_empty() || first_below(dataset, path).is_none())?;
    checked(dataset, number, 0, at)
}

/// Looks up a key below `/ome/DATASET`: each array is a group, with its levels `0`, `1`, ... inside.
pub(super) fn in_images(dataset: &Dataset, key: &str) -> Option<ZarrObject> {
    if let Some(path) = metadata_of(key) {
        // Levels of an image come before the stored arrays at the same path.
        if let Some((number, level)) = level_of(dataset, path) {
            return Some(ZarrObject::Document(ZarrDocument::Array { number, level }));
        }
        if let Some(number) = image(dataset, path) {
            return Some(ZarrObject::Document(ZarrDocument::Image { number }));
        }
        let of_labels = path.strip_suffix(LABELS).and_then(|rest| find(dataset, rest.strip_suffix('/')?));
        if let Some(number) = of_labels.filter(|&number| !labels_of(dataset, number).is_empty()) {
            return Some(ZarrObject::Document(ZarrDocument::Labels { number }));
        }
        return None;
    }
    let (path, at) = chunk_of(key)?;
    let (number, level) = level_of(dataset, path)?;
    checked(dataset, number, level, at)
}

/// Returns the first array that lies below a path.
pub(super) fn first_below(dataset: &Dataset, path: &str) -> Option<u32> {
    let is_below = |a: &ArrayInfo| {
        path.is_empty() || path_of(a).strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
    };
    u32::try_from(dataset.arrays.iter().position(is_below)?).ok()
}

/// Name of the group of an image's labels.
const LABELS: &str = "labels";

/// Returns the labels of an image, by their names below it: those in its group, or beside it if it is the image of the
/// whole store.
pub(super) fn labels_of(dataset: &Dataset, number: u32) -> Vec<(&str, u32)> {
    let Some(image) = dataset.arrays.get(number as usize) else { return Vec::new() };
    if image.meaning == Meaning::Labels {
        return Vec::new();
    }
    let (inside, beside) = (format!("{}/{LABELS}/", path_of(image)), format!("{LABELS}/"));
    let name = |array| {
        let path = path_of(array);
        path.strip_prefix(&inside).or_else(|| path.strip_prefix(&beside))
    };
    let labels = (0u32..).zip(&dataset.arrays).filter(|(_, array)| array.meaning == Meaning::Labels);
    let named = labels.filter_map(|(number, array)| Some((name(array)?, number)));
    // The stored levels lie in the group of the labels' name.
    let has_levels = |number: u32| first_below(dataset, path_of(&dataset.arrays[number as usize])).is_some();
    named.filter(|&(_, number)| has_levels(number)).collect()
}

/// Returns the array whose levels lie at a path: by its name, or as labels of another.
fn image(dataset: &Dataset, path: &str) -> Option<u32> {
    find(dataset, path).or_else(|| {
        let (owner, name) = path.split_once(&format!("/{LABELS}/"))?;
        let labels = labels_of(dataset, find(dataset, owner)?);
        labels.into_iter().find(|(label, _)| *label == name).map(|(_, number)| number)
    })
}

/// Returns the levels that make a pyramid, with their numbers, finest first; of a mean and a sample of the same size
/// the mean. Corners of blocks are not part of a pyramid.
pub(super) fn pyramid(array: &ArrayInfo) -> Vec<(u8, &Level)> {
    let has_better =
        |sample: &Level| array.levels.iter().any(|l| !l.origin.is_quick_look() && l.shape == sample.shape);
    let fits = |(_, level): &(u8, &Level)| match level.origin {
        LevelOrigin::Corners => false,
        LevelOrigin::Sampled => !has_better(level),
        LevelOrigin::Stored | LevelOrigin::Mean | LevelOrigin::Mode => true,
    };
    let mut levels: Vec<_> = (0u8..=u8::MAX).zip(&array.levels).filter(fits).collect();
    let size = |level: &Level| level.shape.iter().fold(1u64, |n, &s| n.saturating_mul(s));
    levels.sort_by_key(|(_, level)| std::cmp::Reverse(size(level)));
    levels
}

/// Returns the size of every chunk in bytes; chunks at the edges of the array are padded to it.
///
/// # Errors
/// `NotFound`, `Invalid` if there is no such array or level.
pub(super) fn chunk_bytes(dataset: &Dataset, number: u32, level: u8) -> Result<u64> {
    let array = dataset.array(number)?;
    Ok(files::chunk_bytes(array, array.level(level)?))
}

/// Returns the array and the first indices of a key such as `rho/c/0`, below `/zarr/DATASET`; they need not exist.
pub(super) fn first_places(dataset: &Dataset, key: &str) -> Option<(u32, Vec<u64>)> {
    let (path, at) = chunk_of(key)?;
    Some((find(dataset, path)?, at))
}

/// Returns whether a key has the form of a chunk's key: `rho/c/0/1`, or `rho/c` unless an array `rho` with axes exists.
pub(super) fn is_of_chunk(dataset: Option<&Dataset>, key: &str) -> bool {
    let has_axes = |path: &str| dataset.is_some_and(|dataset| find(dataset, path).is_some());
    chunk_of(key).is_some_and(|(path, at)| !at.is_empty() || !has_axes(path))
}

/// Returns whether a key is the beginning of an array's name, or of a chunk's key, from which a client removed a query
/// or fragment.
pub(super) fn is_cut_name(dataset: &Dataset, key: &str) -> bool {
    let is_left =
        |array: &ArrayInfo| path_of(array).strip_prefix(key).is_some_and(|rest| rest.starts_with(['#', '?']));
    !key.is_empty() && dataset.arrays.iter().any(is_left)
}

/// Returns an array's name as a path: without slashes at its ends.
pub(super) fn path_of(array: &ArrayInfo) -> &str {
    array.name.trim_matches('/')
}

fn find(dataset: &Dataset, path: &str) -> Option<u32> {
    let place = dataset.arrays.iter().position(|a| path_of(a) == path)?;
    u32::try_from(place).ok()
}

fn metadata_of(key: &str) -> Option<&str> {
    key.strip_suffix(METADATA)
        .filter(|rest| rest.is_empty() || rest.ends_with('/'))
        .map(|r| r.trim_matches('/'))
}

/// Splits the key of a chunk: `path/c/0/1` is chunk 0, 1 of the array at `path`; `path/c` the only one of an array
/// without axes. An array that is the whole store has the empty path: `c/0/1`.
fn chunk_of(key: &str) -> Option<(&str, Vec<u64>)> {
    if let Some(path) = key.strip_suffix("/c").or((key == "c").then_some("")) {
        return Some((path, Vec::new()));
    }
    let root = || key.strip_prefix("c/").map(|places| ("", places));
    let (path, places) = key.rsplit_once("/c/").or_else(root)?;
    Some((path, places.split('/').map(place_of).collect::<Option<_>>()?))
}

/// Parses an index in a chunk grid, or in a pyramid, in its canonical form.
fn place_of(text: &str) -> Option<u64> {
    text.parse().ok().filter(|place: &u64| place.to_string() == text)
}

fn level_of(dataset: &Dataset, path: &str) -> Option<(u32, u8)> {
    let (name, place) = path.rsplit_once('/').unwrap_or(("", path));
    let number = image(dataset, name)?;
    let place = usize::try_from(place_of(place)?).ok()?;
    let (level, _) = *pyramid(dataset.arrays.get(number as usize)?).get(place)?;
    Some((number, level))
}

fn checked(dataset: &Dataset, number: u32, level: u8, at: Vec<u64>) -> Option<ZarrObject> {
    let array = dataset.array(number).ok()?;
    let grid = files::grid(array, array.level(level).ok()?);
    let is_inside = grid.len() == at.len() && at.iter().zip(&grid).all(|(p, g)| p < g);
    is_inside.then_some(ZarrObject::Chunk(ZarrChunk { number, level, at }))
}
