//! What a key of the Zarr hierarchy stands for. Names only: nothing is read.

use array::{ArrayInfo, Dataset, Level, LevelOrigin, Result};

/// The document that describes a group or an array.
pub(super) const METADATA: &str = "zarr.json";

/// What a key stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A text.
    Document(Document),
    /// Elements.
    Chunk(Chunk),
}

/// What a text describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Document {
    /// The whole, all arrays in it.
    Root,
    /// A group between root and array.
    Group,
    /// An array at a level.
    Array { number: u32, level: u8 },
    /// An array's levels together.
    Image { number: u32 },
}

/// One chunk of an array at a level, by its place in the grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) number: u32,
    pub(super) level: u8,
    pub(super) at: Vec<u64>,
}

/// Below `/zarr/DATASET`: arrays by their names, at full resolution.
pub(super) fn in_arrays(dataset: &Dataset, key: &str) -> Option<Place> {
    if let Some(path) = metadata_of(key) {
        let inside = |a: &ArrayInfo| path_of(a).strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        return match find(dataset, path) {
            Some(number) => Some(Place::Document(Document::Array { number, level: 0 })),
            None if path.is_empty() => Some(Place::Document(Document::Root)),
            None => dataset.arrays.iter().any(inside).then_some(Place::Document(Document::Group)),
        };
    }
    let (path, at) = chunk_of(key)?;
    let number = find(dataset, path)?;
    checked(dataset, number, 0, at)
}

/// Below `/ome/DATASET`: each array is a group, its levels are `0`, `1`, ... inside.
pub(super) fn in_images(dataset: &Dataset, key: &str) -> Option<Place> {
    if let Some(path) = metadata_of(key) {
        if let Some(number) = find(dataset, path) {
            return Some(Place::Document(Document::Image { number }));
        }
        let (number, level) = level_of(dataset, path)?;
        return Some(Place::Document(Document::Array { number, level }));
    }
    let (path, at) = chunk_of(key)?;
    let (number, level) = level_of(dataset, path)?;
    checked(dataset, number, level, at)
}

/// The levels that make a pyramid, with their numbers, finest first; of a mean and a sample of one size the mean. Corners of blocks
/// are no step of one.
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

/// Bytes of any chunk; those at the edges of the array are padded to it.
///
/// # Errors
/// `NotFound`, `Invalid` when there is no such array or level.
pub(super) fn chunk_bytes(dataset: &Dataset, number: u32, level: u8) -> Result<u64> {
    let array = dataset.array(number)?;
    let item_bytes = array.dtype.size_bytes() as u64;
    Ok(array.level(level)?.block.iter().fold(item_bytes, |n, &b| n.saturating_mul(b)))
}

/// The array and the places that a key such as `rho/c/0` begins with, below `/zarr/DATASET`; they need not be there.
pub(super) fn first_places(dataset: &Dataset, key: &str) -> Option<(u32, Vec<u64>)> {
    let (path, at) = chunk_of(key)?;
    Some((find(dataset, path)?, at))
}

/// Whether arrays lie below this key, or chunks of one.
pub(super) fn is_folder(dataset: &Dataset, key: &str) -> bool {
    let key = key.trim_matches('/');
    let below =
        |path: &str| path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    key.is_empty() || dataset.arrays.iter().any(|array| below(path_of(array)))
}

/// An array's name as a path: without slashes at its ends.
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

/// `path/c/0/1` is chunk 0, 1 of the array at `path`; `path/c` the only one of an array without axes. An array that is the
/// whole store has the empty path: `c/0/1`.
fn chunk_of(key: &str) -> Option<(&str, Vec<u64>)> {
    if let Some(path) = key.strip_suffix("/c").or((key == "c").then_some("")) {
        return Some((path, Vec::new()));
    }
    let root = || key.strip_prefix("c/").map(|places| ("", places));
    let (path, places) = key.rsplit_once("/c/").or_else(root)?;
    Some((path, places.split('/').map(place_of).collect::<Option<_>>()?))
}

/// A place in a chunk grid, or in a pyramid, written in the one way that keys are.
fn place_of(text: &str) -> Option<u64> {
    text.parse().ok().filter(|place: &u64| place.to_string() == text)
}

fn level_of(dataset: &Dataset, path: &str) -> Option<(u32, u8)> {
    let (name, place) = path.rsplit_once('/').unwrap_or(("", path));
    let number = find(dataset, name)?;
    let place = usize::try_from(place_of(place)?).ok()?;
    let (level, _) = *pyramid(dataset.arrays.get(number as usize)?).get(place)?;
    Some((number, level))
}

fn checked(dataset: &Dataset, number: u32, level: u8, at: Vec<u64>) -> Option<Place> {
    let grid = dataset.array(number).ok()?.level(level).ok()?.grid();
    let is_inside = grid.len() == at.len() && at.iter().zip(&grid).all(|(p, g)| p < g);
    is_inside.then_some(Place::Chunk(Chunk { number, level, at }))
}
