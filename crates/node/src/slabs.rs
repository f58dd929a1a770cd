//! Slabs: a selection cut into parts that are each contiguous in the C-order result.
//!
//! How large results are read and sent with bounded memory: lazily, so that a selection of 2^60 elements costs
//! nothing until its slabs are read. Slabs end at the borders of stored chunks where they can, so that no
//! chunk is decoded twice.

use array::{AxisRange, Selection};

/// One part of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slab {
    /// Where it begins, per axis, counted in elements of the result.
    pub(crate) start: Vec<u64>,
    /// Which elements of the array.
    pub(crate) selection: Selection,
}

impl Slab {
    /// Its first byte in the C-order result of `shape`, saturating.
    pub(crate) fn offset_bytes(&self, shape: &[u64], item_bytes: usize) -> u64 {
        let index =
            self.start.iter().zip(shape).fold(0u64, |at, (&s, &n)| at.saturating_mul(n).saturating_add(s));
        index.saturating_mul(item_bytes as u64)
    }
}

/// The slabs of a selection, in C order.
#[derive(Clone, Debug)]
pub(crate) struct Slabs {
    ranges: Vec<AxisRange>,
    /// Stored chunk per axis, where there is one.
    chunk: Option<Vec<u64>>,
    /// Axes before it are walked one by one, axes after it taken whole.
    split_axis: usize,
    /// Most elements of the split axis in one slab.
    most_rows: u64,
    /// Start of the next slab, in elements of the result; `None` at the end.
    next: Option<Vec<u64>>,
}

impl Slabs {
    /// Of at most `max_bytes` each (but at least one element).
    pub(crate) fn new(
        selection: &Selection,
        item_bytes: usize,
        chunk: Option<&[u64]>,
        max_bytes: u64,
    ) -> Self {
        let ranges = selection.ranges().to_vec();
        let (mut split_axis, mut row_bytes) = (ranges.len(), item_bytes.max(1) as u64);
        while split_axis > 0 {
            let whole = row_bytes.saturating_mul(ranges[split_axis - 1].count);
            split_axis -= 1;
            if whole > max_bytes {
                break;
            }
            if split_axis > 0 {
                row_bytes = whole;
            }
        }
        let chunk = chunk.filter(|c| c.len() == ranges.len()).map(<[u64]>::to_vec);
        let next = (!selection.is_empty()).then(|| vec![0; ranges.len()]);
        Self { ranges, chunk, split_axis, most_rows: (max_bytes / row_bytes.max(1)).max(1), next }
    }

    /// How many rows the slab that starts at `row` of the split axis has.
    fn rows(&self, row: u64) -> u64 {
        let range = self.ranges[self.split_axis];
        let count = self.most_rows.min(range.count - row);
        let chunk = self.chunk.as_ref().map_or(1, |c| c[self.split_axis].max(1));
        if row + count == range.count {
            return count;
        }
        let border = range.index(row + count) / chunk * chunk;
        let (first, to_border) = range.within(range.index(row), border.max(range.index(row)));
        if first == row && to_border > 0 { to_border } else { count }
    }
}

impl Iterator for Slabs {
    type Item = Slab;

    fn next(&mut self) -> Option<Slab> {
        let start = self.next.take()?;
        if self.ranges.is_empty() {
            return Some(Slab { start, selection: Selection::all(&[]) });
        }
        let rows = self.rows(start[self.split_axis]);
        let part = |(axis, range): (usize, &AxisRange)| {
            let count = match axis.cmp(&self.split_axis) {
                std::cmp::Ordering::Less => 1,
                std::cmp::Ordering::Equal => rows,
                std::cmp::Ordering::Greater => range.count,
            };
            AxisRange { start: range.index(start[axis]), count, step: range.step }
        };
        let ranges = self.ranges.iter().enumerate().map(part).collect();
        // Parts of a legal selection are legal.
        let selection = Selection::new(ranges).ok()?;
        let mut after = start.clone();
        after[self.split_axis] += rows;
        for axis in (0..=self.split_axis).rev() {
            if after[axis] < self.ranges[axis].count {
                self.next = Some(after);
                break;
            }
            after[axis] = 0;
            if axis > 0 {
                after[axis - 1] += 1;
            }
        }
        Some(Slab { start, selection })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, shape: &[u64], chunk: Option<&[u64]>, max: u64, expect: &[&str]) {
        let selection = Selection::parse(text, shape).unwrap();
        let slabs: Vec<Slab> = Slabs::new(&selection, 2, chunk, max).collect();
        let got: Vec<String> = slabs.iter().map(|s| s.selection.to_string()).collect();
        assert_eq!(got, expect, "{text} of {shape:?}");
        let mut at = 0;
        for slab in &slabs {
            assert_eq!(slab.offset_bytes(&selection.shape(), 2), at, "{text}: contiguous, in order");
            at += slab.selection.len().unwrap() * 2;
        }
        assert_eq!(at, selection.len().unwrap() * 2);
    }

    #[test]
    fn cuts_along_the_first_axis_that_must_be_cut() {
        check("", &[4, 3], None, 100, &["0:4, 0:3"]);
        check("", &[4, 3], None, 12, &["0:2, 0:3", "2:4, 0:3"]);
        check("", &[2, 3], None, 4, &["0:1, 0:2", "0:1, 2:3", "1:2, 0:2", "1:2, 2:3"]);
        check("::2, 1", &[4, 3], None, 2, &["0:1:2, 1:2", "2:3:2, 1:2"]);
        check("", &[], None, 1, &[""]);
        check("0:0", &[5], None, 1, &[]);
    }

    #[test]
    fn ends_at_chunk_borders() {
        check("1:", &[10, 1], Some(&[4, 1]), 10, &["1:4, 0:1", "4:8, 0:1", "8:10, 0:1"]);
        check("::3", &[12], Some(&[4]), 4, &["0:4:3", "6:10:3"]);
        check("", &[10], Some(&[100]), 8, &["0:4", "4:8", "8:10"]);
    }

    #[test]
    fn an_enormous_selection_costs_nothing() {
        let selection = Selection::all(&[1 << 20, 1 << 20, 1 << 20]);
        let mut slabs = Slabs::new(&selection, 1, None, 1 << 22);
        assert_eq!(slabs.next().unwrap().selection.to_string(), "0:1, 0:4, 0:1048576");
        assert_eq!(slabs.nth(1 << 16).unwrap().start[0], 0);
    }
}
