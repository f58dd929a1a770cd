//! Slabs: a selection split into boxes that are read one after another, so that a large result needs little memory.
//!
//! Slabs follow the grid of stored chunks of the level that is read: each chunk belongs to one slab, and so is decoded
//! once. A chunk that exceeds the maximum size of a slab is split into consecutive slabs. Without chunks, slabs are the
//! longest runs of the C-order result that fit. Slabs are computed lazily, so a selection of 2^60 elements takes no
//! memory.

use array::{AxisRange, Selection};
use wire::ops::Rows;

/// One part of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadSlab {
    /// First element, per axis, relative to the result.
    pub start: Vec<u64>,
    /// Selected elements of the array.
    pub selection: Selection,
}

/// Returns the slabs of a selection, of at most `max_bytes` each (but at least one element), in C order of the grid.
///
/// `grain` is the box that is decoded as a whole, in elements per axis, of the level that is read; see
/// [`array::Level::grain`].
pub fn slabs(
    selection: &Selection,
    item_bytes: usize,
    grain: Option<&[u64]>,
    max_bytes: u64,
) -> impl Iterator<Item = ReadSlab> + Send + use<> {
    let elements = vec![1; selection.ranges().len()];
    let grain = grain.filter(|g| g.len() == elements.len()).unwrap_or(&elements);
    let boxes = SlabGrid::new(selection.ranges(), item_bytes, grain, max_bytes);
    // A box that fits is not split.
    boxes.flat_map(move |whole| {
        let parts = SlabGrid::new(whole.selection.ranges(), item_bytes, &elements, max_bytes);
        parts.map(move |part| part.within(&whole.start))
    })
}

impl ReadSlab {
    /// Splits the slab into smaller ones, with positions in the same result.
    pub fn parts(
        &self,
        item_bytes: usize,
        grain: Option<&[u64]>,
        max_bytes: u64,
    ) -> impl Iterator<Item = Self> + Send + use<> {
        let start = self.start.clone();
        slabs(&self.selection, item_bytes, grain, max_bytes).map(move |part| part.within(&start))
    }

    /// Returns a part of a slab that begins at `start`, with its position in that slab's result.
    fn within(mut self, start: &[u64]) -> Self {
        self.start.iter_mut().zip(start).for_each(|(at, before)| *at += before);
        self
    }

    /// Returns the byte ranges of the slab in the C-order result of `shape`: the length of each, and their offsets.
    /// They split the elements of the slab, in order, into equal runs.
    pub fn stretches(&self, shape: &[u64], item_bytes: usize) -> (u64, Rows) {
        Rows::of_box(&self.start, &self.selection.shape(), shape, item_bytes)
    }
}

/// One axis of a grid.
#[derive(Clone, Copy, Debug)]
struct GridAxis {
    range: AxisRange,
    /// Borders lie on multiples of this, in indices of the array.
    grain: u64,
    /// Number of grains in one box.
    grains: u64,
}

impl GridAxis {
    /// Returns the maximum number of elements in `grains` of them.
    fn most(&self) -> u64 {
        self.grains.saturating_mul(self.grain).div_ceil(self.range.step).min(self.range.count)
    }

    /// Returns the number of elements of the box that begins at element `at`.
    fn count(&self, at: u64) -> u64 {
        let index = self.range.index(at);
        let border = (index / self.grain).saturating_add(self.grains).saturating_mul(self.grain);
        self.range.within(index, border).1
    }
}

/// A selection split into boxes at the borders of grains, in C order.
#[derive(Debug)]
struct SlabGrid {
    axes: Vec<GridAxis>,
    /// Start of the next box, in elements; `None` at the end.
    next: Option<Vec<u64>>,
}

impl SlabGrid {
    /// Creates boxes of one grain, extended along the fastest axes while they fit.
    fn new(ranges: &[AxisRange], item_bytes: usize, grain: &[u64], max_bytes: u64) -> Self {
        let axis = |(&range, &grain): (&AxisRange, &u64)| GridAxis { range, grain: grain.max(1), grains: 1 };
        let mut axes: Vec<GridAxis> = ranges.iter().zip(grain).map(axis).collect();
        for fastest in (0..axes.len()).rev() {
            let others = axes.iter().enumerate().filter(|(a, _)| *a != fastest);
            let row_bytes =
                others.fold(item_bytes.max(1) as u64, |n, (_, axis)| n.saturating_mul(axis.most()));
            let fitting = max_bytes / row_bytes.max(1);
            let GridAxis { range, grain, grains } = &mut axes[fastest];
            if fitting < range.count {
                *grains = (fitting.saturating_mul(range.step) / *grain).max(1);
                break;
            }
            *grains = u64::MAX;
        }
        let is_empty = ranges.iter().any(|r| r.count == 0);
        Self { next: (!is_empty).then(|| vec![0; axes.len()]), axes }
    }
}

impl Iterator for SlabGrid {
    type Item = ReadSlab;

    fn next(&mut self) -> Option<ReadSlab> {
        let start = self.next.take()?;
        let counts: Vec<u64> = self.axes.iter().zip(&start).map(|(axis, &at)| axis.count(at)).collect();
        let part = |((axis, &at), &count): ((&GridAxis, &u64), &u64)| AxisRange {
            start: axis.range.index(at),
            count,
            step: axis.range.step,
        };
        let ranges = self.axes.iter().zip(&start).zip(&counts).map(part);
        // Parts of a valid selection are valid.
        let selection = Selection::new(ranges).ok()?;
        let mut after = start.clone();
        for axis in (0..after.len()).rev() {
            after[axis] += counts[axis];
            if after[axis] < self.axes[axis].range.count {
                self.next = Some(after);
                break;
            }
            after[axis] = 0;
        }
        Some(ReadSlab { start, selection })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn texts(text: &str, shape: &[u64], grain: Option<&[u64]>, max_bytes: u64) -> Vec<String> {
        let selection = Selection::parse(text, shape).unwrap();
        let slabs: Vec<ReadSlab> = slabs(&selection, 2, grain, max_bytes).collect();
        let mut filled = vec![0u8; usize::try_from(selection.len().unwrap()).unwrap() * 2];
        for slab in &slabs {
            let (bytes, offsets) = slab.stretches(&selection.shape(), 2);
            let mut total = 0;
            for at in offsets {
                filled[usize::try_from(at).unwrap()..][..usize::try_from(bytes).unwrap()].fill(1);
                total += bytes;
            }
            assert_eq!(total, slab.selection.len().unwrap() * 2, "{text} of {shape:?}");
            assert!(total <= max_bytes.max(2), "{text} of {shape:?}: a slab of {total} bytes");
        }
        let total: u64 = slabs.iter().map(|s| s.selection.len().unwrap() * 2).sum();
        assert_eq!(usize::try_from(total).unwrap(), filled.len(), "{text} of {shape:?}: once each");
        assert!(filled.iter().all(|&b| b == 1), "{text} of {shape:?}: all of it");
        slabs.iter().map(|s| s.selection.to_string()).collect()
    }

    #[test]
    fn slabs_without_chunks_are_consecutive_runs() {
        assert_eq!(texts("", &[4, 3], None, 100), ["0:4, 0:3"]);
        assert_eq!(texts("", &[4, 3], None, 12), ["0:2, 0:3", "2:4, 0:3"]);
        assert_eq!(texts("", &[2, 3], None, 4), ["0:1, 0:2", "0:1, 2:3", "1:2, 0:2", "1:2, 2:3"]);
        assert_eq!(texts("::2, 1", &[4, 3], None, 2), ["0:1:2, 1:2", "2:3:2, 1:2"]);
        assert_eq!(texts("", &[], None, 1), [""]);
        assert!(texts("0:0", &[5], None, 1).is_empty());
        for slab in slabs(&Selection::all(&[9, 8, 7]), 2, None, 40) {
            assert_eq!(slab.stretches(&[9, 8, 7], 2).1.count(), 1, "{slab:?} is one run");
        }
    }

    #[test]
    fn slabs_end_at_borders_of_chunks() {
        assert_eq!(texts("1:", &[10, 1], Some(&[4, 1]), 10), ["1:4, 0:1", "4:8, 0:1", "8:10, 0:1"]);
        assert_eq!(texts("::3", &[12], Some(&[4]), 4), ["0:4:3", "6:7:3", "9:10:3"]);
        assert_eq!(texts("", &[4, 8], Some(&[2, 2]), 16), ["0:2, 0:4", "0:2, 4:8", "2:4, 0:4", "2:4, 4:8"]);
    }

    #[test]
    fn the_slabs_of_a_large_chunk_are_consecutive() {
        assert_eq!(texts("", &[10], Some(&[100]), 8), ["0:4", "4:8", "8:10"]);
        let parts = ["0:1, 0:2", "1:2, 0:2", "0:1, 2:4", "1:2, 2:4"];
        assert_eq!(texts("", &[2, 4], Some(&[2, 2]), 4), parts);
    }

    #[test]
    fn parts_of_a_slab_have_positions_in_its_result() {
        let shape = [6, 6];
        let slab = slabs(&Selection::all(&shape), 1, Some(&[3, 3]), 9).nth(3).unwrap();
        let places = slab.parts(1, Some(&[3, 3]), 3).flat_map(|part| part.stretches(&shape, 1).1);
        assert_eq!(places.collect::<Vec<_>>(), [21, 27, 33]);
    }

    /// Returns the number of slabs that touch each chunk.
    fn touched(text: &str, shape: &[u64], grain: &[u64], max_bytes: u64) -> BTreeMap<Vec<u64>, usize> {
        let selection = Selection::parse(text, shape).unwrap();
        let mut chunks = BTreeMap::new();
        for slab in slabs(&selection, 2, Some(grain), max_bytes) {
            let per_axis = array::cut_by_grid(&slab.selection, grain);
            let places = per_axis.iter().fold(vec![Vec::new()], |found: Vec<Vec<u64>>, axis| {
                found.iter().flat_map(|at| axis.iter().map(|c| [&at[..], &[c.0]].concat())).collect()
            });
            for place in places {
                *chunks.entry(place).or_default() += 1;
            }
        }
        chunks
    }

    #[test]
    fn each_chunk_lies_in_one_slab_however_wide_its_row() {
        // A row of chunks has 16 * 999 * 500 * 2 bytes; a slab has 64 KiB.
        for text in ["", "5:", "::3, 7:900, ::2", "3, ::17, ::40"] {
            let chunks = touched(text, &[50, 999, 500], &[16, 20, 30], 64 << 10);
            assert!(chunks.values().all(|&n| n == 1), "{text}: {:?}", chunks.values().max());
        }
    }

    #[test]
    fn slabs_of_a_very_large_selection_are_computed_lazily() {
        let selection = Selection::all(&[1 << 20, 1 << 20, 1 << 20]);
        let mut all = slabs(&selection, 1, None, 1 << 22);
        assert_eq!(all.next().unwrap().selection.to_string(), "0:1, 0:4, 0:1048576");
        assert_eq!(all.nth(1 << 16).unwrap().start[0], 0);
    }
}
