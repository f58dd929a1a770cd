//! Arrays stored in chunks: the chunks that a selection touches, and the selected part of each.
//!
//! Shared by the formats that store chunks. This module knows neither files nor codecs.

use array::{AxisRange, Region, Result, Selection, c_strides};

/// The part of a selection that lies in one chunk.
#[derive(Debug)]
pub(crate) struct ChunkPart<'a> {
    /// Position of the chunk in the grid of chunks.
    pub(crate) position: &'a [u64],
    /// The elements, counted from the chunk's first one.
    pub(crate) inside: &'a [AxisRange],
}

impl ChunkPart<'_> {
    /// Whether every element of a chunk of `shape` is selected.
    pub(crate) fn is_whole(&self, shape: &[u64]) -> bool {
        self.inside.iter().zip(shape).all(|(r, &n)| r.count == n)
    }

    /// The elements of the part, counted from the first one of the array, whose chunks are of shape `chunk`.
    pub(crate) fn ranges(&self, chunk: &[u64]) -> Vec<AxisRange> {
        let axes = self.inside.iter().zip(self.position).zip(chunk);
        axes.map(|((range, position), size)| AxisRange { start: position * size + range.start, ..*range })
            .collect()
    }

    /// Copies the part from the decoded chunk.
    ///
    /// # Errors
    /// `Corrupt` if the chunk is shorter than its shape.
    pub(crate) fn copy(&self, chunk: &[u8], shape: &[u64], mut into: Region) -> Result<()> {
        let shape: Vec<usize> = shape.iter().map(|&n| usize::try_from(n).unwrap_or(usize::MAX)).collect();
        let mut first = 0usize;
        let strides =
            c_strides(&shape, into.item_bytes()).into_iter().zip(self.inside).map(|(stride, range)| {
                // Of a part that fits a chunk in memory; a saturated value fails the check of `write_strided`.
                let of = |v: u64| usize::try_from(v).unwrap_or(usize::MAX).saturating_mul(stride);
                first = first.saturating_add(of(range.start));
                of(range.step)
            });
        let strides: Vec<usize> = strides.collect();
        into.write_strided(chunk.get(first..).unwrap_or_default(), &strides)
    }
}

/// Returns the position in a grid with this number, C order.
pub(crate) fn grid_position(number: u64, grid: &[u64]) -> Vec<u64> {
    let mut rest = number;
    let mut position = vec![0; grid.len()];
    for (index, &size) in position.iter_mut().zip(grid).rev() {
        *index = rest % size.max(1);
        rest /= size.max(1);
    }
    position
}

/// Returns the position in the grid of the chunk of `chunk` elements that a selection covers exactly.
pub(crate) fn whole_chunk(selection: &Selection, chunk: &[u64]) -> Option<Vec<u64>> {
    let axes = selection.ranges().iter().zip(chunk);
    let is_whole =
        |r: &AxisRange, n: u64| n > 0 && r.count == n && r.start.is_multiple_of(n) && (r.step == 1 || n == 1);
    let same_axes = selection.ranges().len() == chunk.len();
    axes.map(|(range, &size)| is_whole(range, size).then(|| range.start / size))
        .collect::<Option<Vec<u64>>>()
        .filter(|_| same_axes)
}

/// Calls `each` with every chunk that `selection` touches, in C order, and the part of `into` that is its.
/// Takes no memory that grows with the number of chunks.
///
/// # Errors
/// The first error of `each`.
pub(crate) fn for_each_chunk(
    selection: &Selection,
    chunk: &[u64],
    into: Region,
    each: &mut dyn FnMut(&ChunkPart<'_>, Region) -> Result<()>,
) -> Result<()> {
    if selection.is_empty() {
        return Ok(());
    }
    let axes = chunk.len();
    let mut cut =
        ChunkVisitor { selection, chunk, position: vec![0; axes], inside: Vec::with_capacity(axes), each };
    cut.axis(0, into)
}

struct ChunkVisitor<'a> {
    selection: &'a Selection,
    chunk: &'a [u64],
    position: Vec<u64>,
    inside: Vec<AxisRange>,
    each: &'a mut dyn FnMut(&ChunkPart<'_>, Region) -> Result<()>,
}

impl ChunkVisitor<'_> {
    fn axis(&mut self, axis: usize, into: Region) -> Result<()> {
        let (Some(range), Some(&size)) = (self.selection.ranges().get(axis), self.chunk.get(axis)) else {
            return (self.each)(&ChunkPart { position: &self.position, inside: &self.inside }, into);
        };
        let size = size.max(1);
        let mut rest = into;
        let mut element = 0;
        while element < range.count {
            let start = range.index(element);
            let position = start / size;
            let (first, count) = range.within(position * size, (position + 1).saturating_mul(size));
            let (taken, left) = rest.split(axis, usize::try_from(count).unwrap_or(usize::MAX));
            rest = left;
            self.position[axis] = position;
            self.inside.push(AxisRange { start: start - position * size, count, step: range.step });
            let done = self.axis(axis + 1, taken);
            self.inside.pop();
            done?;
            element = first + count;
        }
        Ok(())
    }
}

/// Fills a region with one element again and again.
///
/// # Errors
/// None in practice: the row made here always fits.
pub(crate) fn fill(mut into: Region, element: &[u8]) -> Result<()> {
    let row = into.shape().last().copied().unwrap_or(1);
    let mut strides = vec![0; into.shape().len()];
    if let Some(last) = strides.last_mut() {
        *last = element.len();
    }
    into.write_strided(&element.repeat(row), &strides)
}
