//! Portions: a read cut into parts that fit a bounded buffer, in C order. Each portion fills its own part of the target.

use array::{AxisRange, Region, Result, Selection};

/// Bytes of working memory that one portion of a read may need, unless a single element is larger.
pub(crate) const PORTION_BYTES: usize = 1 << 20;

/// Cuts `selection` and its region into portions of at most `max_bytes`, slow axes first.
pub(crate) struct Portions {
    /// Parts that are left to be returned or cut, the next one last.
    rest: Vec<(Selection, Region)>,
    max_bytes: usize,
    /// The last axis is the slow one.
    is_last_first: bool,
}

impl Portions {
    pub(crate) fn new(selection: &Selection, into: Region, max_bytes: usize) -> Self {
        Self { rest: vec![(selection.clone(), into)], max_bytes, is_last_first: false }
    }

    /// As [`new`](Self::new), for arrays whose last axis is the slowest in the file.
    pub(crate) fn last_first(selection: &Selection, into: Region, max_bytes: usize) -> Self {
        Self { is_last_first: true, ..Self::new(selection, into, max_bytes) }
    }
}

impl Iterator for Portions {
    type Item = Result<(Selection, Region)>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut selection, mut region) = self.rest.pop()?;
        while region.size_bytes() > self.max_bytes {
            let mut axes = region.shape().iter();
            let axis =
                if self.is_last_first { axes.rposition(|&n| n > 1) } else { axes.position(|&n| n > 1) };
            let Some(axis) = axis else { break };
            let at = region.shape()[axis] / 2;
            let (first, second) = match halves(&selection, axis, at as u64) {
                Ok(halves) => halves,
                Err(error) => return Some(Err(error)),
            };
            let (left, right) = region.split(axis, at);
            self.rest.push((second, right));
            (selection, region) = (first, left);
        }
        Some(Ok((selection, region)))
    }
}

/// The selection before and from element `at` of `axis`.
fn halves(selection: &Selection, axis: usize, at: u64) -> Result<(Selection, Selection)> {
    let part = |first: u64, count: u64| {
        let mut ranges = selection.ranges().to_vec();
        let range = ranges[axis];
        ranges[axis] = AxisRange { start: range.index(first), count, step: range.step };
        Selection::new(ranges)
    };
    let count = selection.ranges()[axis].count;
    Ok((part(0, at)?, part(at, count - at)?))
}

#[cfg(test)]
mod tests {
    use array::Target;

    use super::*;

    #[test]
    fn portions_are_small_and_in_order() {
        let selection = Selection::parse("1:6:2, 3, ::3", &[10, 10, 10]).unwrap();
        let (_target, region) = Target::new(&selection.shape(), 2).unwrap();
        let portions: Vec<String> =
            Portions::new(&selection, region, 4).map(|s| s.unwrap().0.to_string()).collect();
        assert_eq!(portions.len(), 6);
        assert_eq!(portions[0], "1:2:2, 3:4, 0:4:3");
        assert_eq!(portions[5], "5:6:2, 3:4, 6:10:3");
    }
}
