//! Locations of the chunks of one data set: a checked list of all of them, or look-ups one by one.
//!
//! A list is made quickly and is read without a lock, but the library's own reads use its look-up. So some entries of the list are
//! compared with the look-up, and a list that differs is not used.

use array::{Error, Result};

use super::library::{ChunkLocation, Object};
use crate::CancelFlag;
use crate::formats::common::chunked::grid_position;

/// Most chunks of one HDF5 data set whose locations are kept in memory (40 bytes each); with more, each chunk is looked up.
const MAX_LISTED_CHUNKS: usize = 2 << 20;
/// Number of chunks of a list that are compared with the library's look-up: evenly spread, including the first and the last.
const COMPARED_CHUNKS: usize = 16;
/// Number of positions without a stored chunk that are compared.
const COMPARED_GAPS: usize = 4;

/// Locations of the chunks of a data set.
#[derive(Debug)]
pub(super) struct ChunkIndex {
    chunk: Vec<u64>,
    /// Chunks per axis.
    grid: Vec<u64>,
    known: ChunkLookup,
}

#[derive(Debug)]
enum ChunkLookup {
    /// Locations of all chunks, sorted by number.
    Listed(Vec<(u64, ChunkLocation)>),
    /// Looked up one by one in the library.
    LookedUp(Object),
}

impl ChunkIndex {
    /// Lists the chunks of `chunk` elements of a data set of `shape`.
    ///
    /// # Errors
    /// `Corrupt` when the library cannot list them, `Cancelled`.
    pub(super) fn find(object: Object, shape: &[u64], chunk: &[u64], cancel: &CancelFlag) -> Result<Self> {
        let grid: Vec<u64> = shape.iter().zip(chunk).map(|(n, c)| n.div_ceil(*c)).collect();
        let mut places = Self { chunk: chunk.to_vec(), grid, known: ChunkLookup::Listed(Vec::new()) };
        let Some(mut listed) = places.list(&object, cancel)? else {
            places.known = ChunkLookup::LookedUp(object);
            return Ok(places);
        };
        listed.sort_unstable_by_key(|(number, _)| *number);
        let is_twice = listed.windows(2).any(|two| matches!(two, [(a, _), (b, _)] if a == b));
        places.known = if !is_twice && places.agrees(&listed, &object)? {
            ChunkLookup::Listed(listed)
        } else {
            tracing::warn!(
                ?chunk,
                ?shape,
                "HDF5 lists chunks elsewhere than it finds them; each is looked up instead"
            );
            ChunkLookup::LookedUp(object)
        };
        Ok(places)
    }

    /// Lists the chunks; `None` if there are more than [`MAX_LISTED_CHUNKS`].
    fn list(&self, object: &Object, cancel: &CancelFlag) -> Result<Option<Vec<(u64, ChunkLocation)>>> {
        let mut listed = Vec::new();
        let done = object.chunks(&self.chunk, &mut |position, place| {
            // Chunks outside belong to a former shape of the array.
            if position.iter().zip(&self.grid).all(|(p, n)| p < n) {
                listed.push((self.number(position), place));
            }
            listed.len() <= MAX_LISTED_CHUNKS && cancel.check().is_ok()
        });
        cancel.check()?;
        match done {
            Ok(()) if listed.len() <= MAX_LISTED_CHUNKS => Ok(Some(listed)),
            Ok(()) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Compares entries of a sorted list with the look-up of the library.
    fn agrees(&self, listed: &[(u64, ChunkLocation)], object: &Object) -> Result<bool> {
        let same = |number: u64, expected: Option<ChunkLocation>| -> Result<bool> {
            match object.chunk_place(&grid_position(number, &self.grid), &self.chunk) {
                Ok(found) => Ok(found == expected),
                // Damage of one chunk is reported when it is read.
                Err(e) if e.kind() == array::ErrorKind::Corrupt => Ok(true),
                Err(e) => Err(e),
            }
        };
        let compared = COMPARED_CHUNKS.min(listed.len());
        for n in 0..compared {
            let at = n * (listed.len() - 1) / compared.saturating_sub(1).max(1);
            let Some(&(number, place)) = listed.get(at) else { continue };
            if !same(number, Some(place))? {
                return Ok(false);
            }
        }
        for number in gaps(listed, self.grid.iter().product()).take(COMPARED_GAPS) {
            if !same(number, None)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Number of the chunk at `position`, C order over the grid.
    pub(super) fn number(&self, position: &[u64]) -> u64 {
        position.iter().zip(&self.grid).fold(0, |n, (&p, &count)| n.saturating_mul(count).saturating_add(p))
    }

    /// Returns the location of the chunk at `position`; `None` if it was never written.
    ///
    /// # Errors
    /// Errors of the look-up.
    pub(super) fn get(&self, position: &[u64]) -> Result<Option<ChunkLocation>> {
        // Axes within an element have one chunk.
        let position = position.get(..self.grid.len());
        let position = position.ok_or_else(|| Error::internal("expected a position for every axis"))?;
        match &self.known {
            ChunkLookup::Listed(listed) => {
                let found = listed.binary_search_by_key(&self.number(position), |(n, _)| *n);
                Ok(found.ok().and_then(|index| listed.get(index)).map(|(_, place)| *place))
            }
            ChunkLookup::LookedUp(object) => object.chunk_place(position, &self.chunk),
        }
    }

    /// Whether one list holds all of them.
    #[cfg(test)]
    pub(super) fn is_listed(&self) -> bool {
        matches!(self.known, ChunkLookup::Listed(_))
    }
}

/// Numbers below `end` that a sorted list lacks: those before its first, after its last and between neighbors.
fn gaps(listed: &[(u64, ChunkLocation)], end: u64) -> impl Iterator<Item = u64> + '_ {
    let last = listed.last().map_or(0, |(n, _)| n + 1);
    let first = listed.first().map_or(end, |(n, _)| *n);
    let outside = [first.checked_sub(1), (last < end && !listed.is_empty()).then_some(last)];
    let between = listed.windows(2).filter_map(|two| match two {
        [(a, _), (b, _)] if a + 1 < *b => Some(a + 1),
        _ => None,
    });
    outside.into_iter().flatten().chain(between).filter(move |n| *n < end)
}
