//! Selections of elements of an array.
//!
//! [`Selection`] is the exact form, which is sent: start, count and positive step per axis. [`Indexing`] is the form that people write
//! (`u[0:10, ::2, 3, ::-1]`, numpy's rules); resolved against a shape it gives a selection plus the axes to reverse and to drop.

use std::fmt;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::{Error, Result};

/// Most axes of an array.
pub const MAX_AXES: usize = 16;

/// A value for each axis; those of the usual four axes need no memory of their own.
pub type PerAxis<T> = SmallVec<[T; 4]>;

/// Elements `start`, `start + step`, ..., `count` of them, along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AxisRange {
    /// First index.
    pub start: u64,
    /// Number of elements; may be zero.
    pub count: u64,
    /// Distance between them, at least 1.
    pub step: u64,
}

impl AxisRange {
    /// `count` neighboring elements from `start`.
    #[must_use]
    pub const fn contiguous(start: u64, count: u64) -> Self {
        Self { start, count, step: 1 }
    }

    /// The index of element `i` of the range.
    #[must_use]
    pub const fn index(self, i: u64) -> u64 {
        self.start + i * self.step
    }

    /// One past the last selected index; `start` when nothing is selected.
    #[must_use]
    pub const fn end(self) -> u64 {
        if self.count == 0 { self.start } else { self.start + (self.count - 1) * self.step + 1 }
    }

    /// The elements of this range that lie in `[low, high)`: `(first, count)` counted in
    /// elements of the range, not in indices.
    #[must_use]
    pub fn within(self, low: u64, high: u64) -> (u64, u64) {
        let at_or_after = |bound: u64| bound.saturating_sub(self.start).div_ceil(self.step).min(self.count);
        let (first, end) = (at_or_after(low), at_or_after(high));
        (first, end.saturating_sub(first))
    }
}

/// Selection of elements of an n-D array: one [`AxisRange`] per axis, in the order of the array's axes.
///
/// ```
/// use corridor_array::Selection;
/// let s = Selection::parse("0:10, ::2, 3", &[20, 5, 7]).unwrap();
/// assert_eq!(s.shape(), [10, 3, 1]);
/// assert_eq!(s.to_string(), "0:10, 0:5:2, 3:4");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Selection(PerAxis<AxisRange>);

impl Selection {
    /// Creates a selection from ranges; only [`Selection::check`] checks it against an array.
    ///
    /// # Errors
    /// More than [`MAX_AXES`] axes, a zero step, or an end beyond 2^64.
    pub fn new(ranges: impl IntoIterator<Item = AxisRange>) -> Result<Self> {
        let ranges: PerAxis<AxisRange> = ranges.into_iter().collect();
        if ranges.len() > MAX_AXES {
            return Err(Error::invalid(format!(
                "expected at most {MAX_AXES} axes in a selection, found {}",
                ranges.len()
            )));
        }
        for r in &ranges {
            let end = (r.count.max(1) - 1)
                .checked_mul(r.step)
                .and_then(|reach| reach.checked_add(r.start))
                .and_then(|last| last.checked_add(1));
            if r.step == 0 || end.is_none() {
                return Err(Error::invalid(format!(
                    "expected a step of at least 1 and an end below 2^64, found start {}, count {}, step {}",
                    r.start, r.count, r.step
                )));
            }
        }
        Ok(Self(ranges))
    }

    /// Selects all elements of an array of `shape`.
    #[must_use]
    pub fn all(shape: &[u64]) -> Self {
        Self(shape.iter().map(|&n| AxisRange::contiguous(0, n)).collect())
    }

    /// The box `[start, start + count)` per axis.
    #[must_use]
    pub fn of_box(start: &[u64], count: &[u64]) -> Self {
        Self(start.iter().zip(count).map(|(&s, &c)| AxisRange::contiguous(s, c)).collect())
    }

    /// Reads `0:10, ::2, 3` against `shape`; see [`Indexing`]. Axes are kept (an integer selects one).
    ///
    /// # Errors
    /// Errors of [`Indexing::parse`] and [`Indexing::resolve`]; negative steps are refused here.
    pub fn parse(text: &str, shape: &[u64]) -> Result<Self> {
        let resolved = Indexing::parse(text)?.resolve(shape)?;
        if resolved.reversed.contains(&true) {
            return Err(Error::invalid(format!("expected positive steps, found `{text}`")));
        }
        Ok(resolved.selection)
    }

    /// The ranges, in the array's axis order.
    #[must_use]
    pub fn ranges(&self) -> &[AxisRange] {
        &self.0
    }

    /// Elements per axis.
    #[must_use]
    pub fn shape(&self) -> Vec<u64> {
        self.0.iter().map(|r| r.count).collect()
    }

    /// Number of elements; `None` beyond 2^64.
    #[must_use]
    pub fn len(&self) -> Option<u64> {
        if self.0.iter().any(|r| r.count == 0) {
            return Some(0);
        }
        self.0.iter().try_fold(1u64, |n, r| n.checked_mul(r.count))
    }

    /// True when nothing is selected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().any(|r| r.count == 0)
    }

    /// Checks that the selection fits an array of `shape`.
    ///
    /// # Errors
    /// `Invalid`, naming the axis, when the number of axes differs or an index lies outside.
    pub fn check(&self, shape: &[u64]) -> Result<()> {
        if self.0.len() != shape.len() {
            return Err(Error::invalid(format!(
                "expected a selection of {} axes for shape {shape:?}, found {}",
                shape.len(),
                self.0.len()
            )));
        }
        for (axis, (r, &n)) in self.0.iter().zip(shape).enumerate() {
            if r.end() > n {
                return Err(Error::invalid(format!(
                    "expected indices below {n} on axis {axis}, found up to {}",
                    r.end().saturating_sub(1)
                )));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, r) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{}:{}", r.start, r.end())?;
            if r.step != 1 {
                write!(f, ":{}", r.step)?;
            }
        }
        Ok(())
    }
}

/// Entry of an index expression, with numpy's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexEntry {
    /// One element; the axis is dropped. Negative counts from the end.
    At(i64),
    /// `start:stop:step`, each optional, negative as numpy has it.
    Slice {
        /// First index.
        start: Option<i64>,
        /// End, exclusive.
        stop: Option<i64>,
        /// Step; negative walks backwards; never zero.
        step: i64,
    },
    /// Full ranges of the axes that have no entry of their own.
    Ellipsis,
}

/// Index expression in numpy's notation, without the brackets: `0:10, ::2, 3, ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexing(Vec<IndexEntry>);

/// An [`Indexing`] applied to a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedIndex {
    /// The elements, with positive steps and every axis kept.
    pub selection: Selection,
    /// Per axis: the caller wants it in reverse order.
    pub reversed: Vec<bool>,
    /// Per axis: an integer was given, so the axis disappears from the result's shape.
    pub dropped: Vec<bool>,
}

impl ResolvedIndex {
    /// The result's shape after dropping axes.
    #[must_use]
    pub fn shape(&self) -> Vec<u64> {
        let kept = self.selection.ranges().iter().zip(&self.dropped);
        kept.filter(|(_, dropped)| !**dropped).map(|(r, _)| r.count).collect()
    }
}

impl Indexing {
    /// Creates an index expression from entries, as the bindings of other languages pass them.
    ///
    /// # Errors
    /// A zero step, or more than one ellipsis.
    pub fn new(entries: Vec<IndexEntry>) -> Result<Self> {
        if entries.iter().filter(|e| **e == IndexEntry::Ellipsis).count() > 1 {
            return Err(Error::invalid("expected at most one `...` in a selection"));
        }
        if entries.iter().any(|e| matches!(e, IndexEntry::Slice { step: 0, .. })) {
            return Err(Error::invalid("expected a step other than 0"));
        }
        Ok(Self(entries))
    }

    /// Reads `0:10, ::2, 3, ...`; empty text means everything.
    ///
    /// # Errors
    /// `Invalid`, quoting the entry that could not be read.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if text.is_empty() {
            return Self::new(vec![IndexEntry::Ellipsis]);
        }
        let text = text.strip_suffix(',').unwrap_or(text);
        Self::new(text.split(',').map(parse_index).collect::<Result<_>>()?)
    }

    /// Applies numpy's rules for an array of `shape`; missing axes are taken whole.
    ///
    /// # Errors
    /// Too many entries, or an integer outside its axis.
    pub fn resolve(&self, shape: &[u64]) -> Result<ResolvedIndex> {
        let given = self.0.iter().filter(|e| **e != IndexEntry::Ellipsis).count();
        if given > shape.len() {
            return Err(Error::invalid(format!(
                "expected at most {} entries for shape {shape:?}, found {given}",
                shape.len()
            )));
        }
        let fill = shape.len() - given;
        const FULL: IndexEntry = IndexEntry::Slice { start: None, stop: None, step: 1 };
        let mut entries = Vec::with_capacity(shape.len());
        for &entry in &self.0 {
            match entry {
                IndexEntry::Ellipsis => entries.extend(std::iter::repeat_n(FULL, fill)),
                other => entries.push(other),
            }
        }
        entries.resize(shape.len(), FULL);
        let mut out = (Vec::new(), Vec::new(), Vec::new());
        for (axis, (entry, &n)) in entries.into_iter().zip(shape).enumerate() {
            let (range, reversed) = resolve_axis(entry, n, axis)?;
            out.0.push(range);
            out.1.push(reversed);
            out.2.push(matches!(entry, IndexEntry::At(_)));
        }
        Ok(ResolvedIndex { selection: Selection::new(out.0)?, reversed: out.1, dropped: out.2 })
    }
}

fn parse_index(entry: &str) -> Result<IndexEntry> {
    let entry = entry.trim();
    let bad =
        || Error::invalid(format!("expected an index like `3`, `0:10`, `::2` or `...`, found `{entry}`"));
    let number = |text: &str| -> Result<Option<i64>> {
        match text.trim() {
            "" => Ok(None),
            t => t.parse().map(Some).map_err(|_| bad()),
        }
    };
    if entry == "..." {
        return Ok(IndexEntry::Ellipsis);
    }
    let parts: Vec<&str> = entry.split(':').collect();
    match parts[..] {
        [at] => number(at)?.map(IndexEntry::At).ok_or_else(bad),
        [start, stop] => Ok(IndexEntry::Slice { start: number(start)?, stop: number(stop)?, step: 1 }),
        [start, stop, step] => Ok(IndexEntry::Slice {
            start: number(start)?,
            stop: number(stop)?,
            step: number(step)?.unwrap_or(1),
        }),
        _ => Err(bad()),
    }
}

/// numpy's `slice.indices`, then turned into a positive step.
fn resolve_axis(entry: IndexEntry, n: u64, axis: usize) -> Result<(AxisRange, bool)> {
    let size = i128::from(n);
    let from_end = |v: i64| if v < 0 { i128::from(v) + size } else { i128::from(v) };
    let (start, stop, step) = match entry {
        IndexEntry::At(at) => {
            let index = from_end(at);
            if index < 0 || index >= size {
                let expected = match size {
                    0 => "no index".to_owned(),
                    _ => format!("an index from -{n} to {}", size - 1),
                };
                return Err(Error::invalid(format!("expected {expected} on axis {axis}, found {at}")));
            }
            (index, index + 1, 1)
        }
        IndexEntry::Slice { start, stop, step } if step > 0 => (
            start.map_or(0, |v| from_end(v).clamp(0, size)),
            stop.map_or(size, |v| from_end(v).clamp(0, size)),
            i128::from(step),
        ),
        IndexEntry::Slice { start, stop, step } => (
            start.map_or(size - 1, |v| from_end(v).clamp(-1, size - 1)),
            stop.map_or(-1, |v| from_end(v).clamp(-1, size - 1)),
            i128::from(step),
        ),
        IndexEntry::Ellipsis => (0, size, 1),
    };
    let span = if step > 0 { stop - start } else { start - stop };
    let stride = step.abs();
    let count = if span <= 0 { 0 } else { (span + stride - 1) / stride };
    let first = match (count, step > 0) {
        (0, _) => 0,
        (_, true) => start,
        (_, false) => start - (count - 1) * stride,
    };
    // A step beyond the axis selects one element; keep it representable.
    let stride = if count <= 1 { 1 } else { stride };
    let to_u64 = |v: i128| u64::try_from(v).map_err(|_| Error::internal("index out of range"));
    let range = AxisRange { start: to_u64(first)?, count: to_u64(count)?, step: to_u64(stride)? };
    Ok((range, step < 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, shape: &[u64], expect: &str) {
        let got = match Indexing::parse(text).and_then(|i| i.resolve(shape)) {
            Ok(r) => format!("{} -> {:?}", r.selection, r.shape()),
            Err(e) => format!("error: {e}"),
        };
        assert_eq!(got, expect, "for `{text}` of {shape:?}");
    }

    #[test]
    fn reads_what_numpy_reads() {
        check("", &[3, 4], "0:3, 0:4 -> [3, 4]");
        check("..., 1", &[3, 4], "0:3, 1:2 -> [3]");
        check("-1, ::-1", &[3, 4], "2:3, 0:4 -> [4]");
        check("::-2", &[5], "0:5:2 -> [3]");
        check("::-2", &[6], "1:6:2 -> [3]");
        check("10:2", &[5], "0:0 -> [0]");
        check("1:100:1000", &[5], "1:2 -> [1]");
    }

    #[test]
    fn says_what_is_wrong() {
        check("7", &[5], "error: expected an index from -5 to 4 on axis 0, found 7");
        check("-6", &[5], "error: expected an index from -5 to 4 on axis 0, found -6");
        check("0", &[0], "error: expected no index on axis 0, found 0");
        check("a", &[5], "error: expected an index like `3`, `0:10`, `::2` or `...`, found `a`");
        check("1,2", &[5], "error: expected at most 1 entries for shape [5], found 2");
        check("::0", &[5], "error: expected a step other than 0");
    }
}
