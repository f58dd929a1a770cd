//! Uncompressed arrays whose elements are found by their offsets in a file.
//!
//! Reads of any selection become few requests: neighboring elements are read as one run, small gaps are read and discarded,
//! large gaps are skipped. Working memory is bounded for any selection. Shared by every format with uncompressed contiguous
//! arrays; this module knows nothing of headers or types.

use std::ops::Range;

use array::{Error, Region, Result, Selection};

use crate::io::portions::{PORTION_BYTES, Portions};
use crate::io::read_ahead::ReadAhead;
use crate::{ByteStore, CancelFlag};

/// Largest gap that is read and discarded rather than skipped, bytes: one page, the unit of disks and caches. A request, with its
/// check of the file for changes, was measured to cost as much as copying 8 KiB.
pub(crate) const MAX_GAP_BYTES: u64 = 4 << 10;
/// Most bytes of one request that reads over gaps between elements.
const MAX_SPAN_BYTES: u64 = 1 << 20;

/// Layout of the elements of one array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlatArray {
    /// Offset of the first element, bytes.
    offset: u64,
    item_bytes: usize,
    shape: Vec<u64>,
    /// Bytes from one element to the next, per axis; slow axes have larger ones.
    strides: Vec<u64>,
}

impl FlatArray {
    /// Elements in C order without gaps.
    ///
    /// # Errors
    /// `Corrupt` when it would end beyond 2^63 bytes.
    pub(crate) fn c_order(offset: u64, item_bytes: usize, shape: &[u64]) -> Result<Self> {
        let mut strides = vec![item_bytes as u64; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis].saturating_mul(shape[axis].max(1));
        }
        Self { offset, item_bytes, shape: shape.to_vec(), strides }.checked()
    }

    /// Elements in Fortran order without gaps: the first axis is the fastest.
    ///
    /// # Errors
    /// Errors of [`c_order`](Self::c_order).
    pub(crate) fn fortran_order(offset: u64, item_bytes: usize, shape: &[u64]) -> Result<Self> {
        let turned: Vec<u64> = shape.iter().rev().copied().collect();
        Ok(Self::c_order(offset, item_bytes, &turned)?.turned())
    }

    /// Reverses the order of the axes; the elements stay where they are.
    fn turned(mut self) -> Self {
        self.shape.reverse();
        self.strides.reverse();
        self
    }

    /// As [`c_order`](Self::c_order), but the steps of the first axis lie `stride_bytes` apart: records of
    /// which this array is one part.
    ///
    /// # Errors
    /// `Corrupt` when it would end beyond 2^63 bytes, or when records overlap.
    pub(crate) fn records(offset: u64, item_bytes: usize, shape: &[u64], stride_bytes: u64) -> Result<Self> {
        let mut array = Self::c_order(offset, item_bytes, shape)?;
        if let Some(first) = array.strides.first_mut() {
            if stride_bytes < *first {
                return Err(Error::corrupt(format!(
                    "expected records of at least {first} bytes, found {stride_bytes}"
                )));
            }
            *first = stride_bytes;
        }
        array.checked()
    }

    /// Arrays of which each has one of the `count` numbers that lie together as one element: real and imaginary parts.
    #[must_use]
    pub(crate) fn members(&self, count: usize) -> Vec<Self> {
        let item_bytes = self.item_bytes / count;
        let member =
            |i: usize| Self { offset: self.offset + (i * item_bytes) as u64, item_bytes, ..self.clone() };
        (0..count).map(member).collect()
    }

    fn checked(self) -> Result<Self> {
        let spans = self.shape.iter().zip(&self.strides);
        let reach = spans.into_iter().try_fold(self.item_bytes as u64, |n, (&count, &stride)| {
            count.saturating_sub(1).checked_mul(stride)?.checked_add(n)
        });
        let end = reach.and_then(|n| n.checked_add(self.offset)).filter(|&n| i64::try_from(n).is_ok());
        if end.is_none() {
            return Err(Error::corrupt(format!(
                "expected an array that ends below 2^63 bytes, found shape {:?} from byte {}",
                self.shape, self.offset
            )));
        }
        Ok(self)
    }

    /// The byte after the last element; `offset` when there is none.
    pub(crate) fn end(&self) -> u64 {
        if self.shape.contains(&0) {
            return self.offset;
        }
        let spans = self.shape.iter().zip(&self.strides).map(|(&n, &stride)| (n - 1) * stride);
        self.offset + spans.sum::<u64>() + self.item_bytes as u64
    }

    /// Checks that the array ends within a store of `size_bytes`.
    ///
    /// # Errors
    /// `Corrupt`, with both sizes.
    pub(crate) fn check_within(&self, size_bytes: u64) -> Result<()> {
        // An array without elements may lie anywhere: libraries that write it before any record put it behind the end.
        if self.shape.contains(&0) || self.end() <= size_bytes {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "expected {} bytes for shape {:?} from byte {}, found {size_bytes}: the file is cut short or its header is wrong",
            self.end(),
            self.shape,
            self.offset
        )))
    }

    /// Reads `selection`, which fits the shape, into `into`, which has the selection's shape.
    ///
    /// # Errors
    /// Errors of the store; `Cancelled`.
    pub(crate) fn read(
        &self,
        store: &dyn ByteStore,
        selection: &Selection,
        into: Region,
        cancel: &CancelFlag,
    ) -> Result<()> {
        if selection.is_empty() {
            return Ok(());
        }
        let is_turned = self.strides.len() > 1 && self.strides.first() < self.strides.last();
        if is_turned {
            return self.read_turned(store, selection, into, cancel);
        }
        let mut out = Vec::new();
        let mut scratch = Vec::new();
        for portion in Portions::new(selection, into, PORTION_BYTES) {
            let (selection, mut region) = portion?;
            let plan = self.plan(&selection);
            if let Some(out) = region.together_mut() {
                plan.run(store, out, &mut scratch, cancel)?;
                continue;
            }
            out.resize(region.size_bytes(), 0);
            plan.run(store, &mut out, &mut scratch, cancel)?;
            region.write_all(&out)?;
        }
        Ok(())
    }

    /// Reads an array whose first axis is the fastest: portions in the order of the file, each turned in memory.
    fn read_turned(
        &self,
        store: &dyn ByteStore,
        selection: &Selection,
        into: Region,
        cancel: &CancelFlag,
    ) -> Result<()> {
        let file_order = self.clone().turned();
        let (mut raw, mut out, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
        for portion in Portions::last_first(selection, into, PORTION_BYTES) {
            let (selection, mut region) = portion?;
            let mut ranges = selection.ranges().to_vec();
            ranges.reverse();
            raw.resize(region.size_bytes(), 0);
            out.resize(region.size_bytes(), 0);
            file_order.plan(&Selection::new(ranges)?).run(store, &mut raw, &mut scratch, cancel)?;
            turn(&raw, region.shape(), self.item_bytes, &mut out);
            region.write_all(&out)?;
        }
        Ok(())
    }

    /// Number of bytes from the first to the last byte of a selection that has elements, and the number of those that belong to it.
    pub(crate) fn stretch(&self, selection: &Selection) -> (Range<u64>, u64) {
        let ranges = selection.ranges().iter().zip(&self.strides);
        let start = self.offset + ranges.clone().map(|(r, &stride)| r.start * stride).sum::<u64>();
        let reach: u64 = ranges.map(|(r, &stride)| r.count.saturating_sub(1) * r.step * stride).sum();
        let data_bytes = selection.len().unwrap_or(u64::MAX).saturating_mul(self.item_bytes as u64);
        (start..start + reach + self.item_bytes as u64, data_bytes)
    }

    /// Returns the bytes that a read of a small selection needs.
    fn plan(&self, selection: &Selection) -> RequestPlan {
        let ranges = selection.ranges().iter().zip(&self.strides);
        let start = self.offset + ranges.clone().map(|(r, &stride)| r.start * stride).sum::<u64>();
        let axes =
            ranges.map(|(r, &stride)| ByteSteps { count: r.count, distance: r.step.saturating_mul(stride) });
        RequestPlan::new(start, self.item_bytes as u64, axes.filter(|a| a.count > 1).collect())
    }
}

/// Copies elements whose first axis is the fastest to C order.
fn turn(raw: &[u8], shape: &[usize], item_bytes: usize, out: &mut [u8]) {
    // Bytes from one element to the next along each axis.
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = item_bytes;
    for &n in shape {
        strides.push(stride);
        stride *= n;
    }
    let mut at = vec![0usize; shape.len()];
    let mut from = 0;
    for element in out.chunks_exact_mut(item_bytes) {
        element.copy_from_slice(&raw[from..from + item_bytes]);
        for axis in (0..shape.len()).rev() {
            at[axis] += 1;
            from += strides[axis];
            if at[axis] < shape[axis] {
                break;
            }
            from -= at[axis] * strides[axis];
            at[axis] = 0;
        }
    }
}

/// Number of elements or rows (`count`), and the distance in bytes from one to the next.
#[derive(Clone, Copy, Debug)]
struct ByteSteps {
    count: u64,
    distance: u64,
}

/// Requests that together read a selection: one for each position on the outer axes, which covers the inner ones.
#[derive(Debug)]
struct RequestPlan {
    start: u64,
    /// Bytes that lie together in the file and in memory.
    unit: u64,
    outer: Vec<ByteSteps>,
    /// Number of steps of the last outer axis that one request covers.
    group: u64,
    inner: Vec<ByteSteps>,
    /// Bytes that one step of the last outer axis covers.
    span: u64,
}

impl RequestPlan {
    fn new(start: u64, item_bytes: u64, mut outer: Vec<ByteSteps>) -> Self {
        let mut unit = item_bytes;
        while let Some(axis) = outer.pop_if(|axis| axis.distance == unit) {
            unit *= axis.count;
        }
        let mut inner = Vec::new();
        let mut span = unit;
        let small_gap = |axis: &ByteSteps, span: u64| axis.distance.saturating_sub(span) <= MAX_GAP_BYTES;
        let reach =
            |axis: &ByteSteps, span: u64| (axis.count - 1).saturating_mul(axis.distance).saturating_add(span);
        while let Some(axis) = outer.pop_if(|a| small_gap(a, span) && reach(a, span) <= MAX_SPAN_BYTES) {
            span = reach(&axis, span);
            inner.insert(0, axis);
        }
        let group = match outer.last() {
            Some(axis) if small_gap(axis, span) => MAX_SPAN_BYTES.saturating_sub(span) / axis.distance + 1,
            _ => 1,
        };
        Self { start, unit, outer, group, inner, span }
    }

    /// Fills `out`, which is as large as the selection, in C order.
    fn run(
        &self,
        store: &dyn ByteStore,
        out: &mut [u8],
        scratch: &mut Vec<u8>,
        cancel: &CancelFlag,
    ) -> Result<()> {
        let from = FlatInput { store, cancel };
        let mut out = out;
        let has_several = !self.outer.is_empty();
        let mut ahead =
            has_several.then(|| ReadAhead::of(ByteRequests::of(self).map(|request| self.range(&request))));
        for request in ByteRequests::of(self) {
            cancel.check()?;
            if let Some(ahead) = &mut ahead {
                ahead.next(store);
            }
            out = self.request(&from, &request, out, scratch)?;
        }
        Ok(())
    }

    /// The bytes of a request, with those of its gaps.
    fn range(&self, request: &ByteRequest) -> Range<u64> {
        let reach = self.outer.last().map_or(0, |axis| (request.step_count - 1) * axis.distance);
        request.offset..request.offset + reach + self.span
    }

    /// Makes one request; returns the rest of `out`.
    fn request<'a>(
        &self,
        from: &FlatInput<'_>,
        request: &ByteRequest,
        out: &'a mut [u8],
        scratch: &mut Vec<u8>,
    ) -> Result<&'a mut [u8]> {
        let grouped =
            self.outer.last().map(|axis| ByteSteps { count: request.step_count, distance: axis.distance });
        let axes: Vec<ByteSteps> =
            grouped.into_iter().filter(|a| a.count > 1).chain(self.inner.iter().copied()).collect();
        let elements = axes.iter().map(|a| a.count).product::<u64>() * self.unit;
        let (here, rest) = out.split_at_mut(in_memory(elements)?);
        if axes.is_empty() {
            from.store.read_at(request.offset, here, from.cancel)?;
            return Ok(rest);
        }
        let range = self.range(request);
        scratch.resize(in_memory(range.end - range.start)?, 0);
        from.store.read_at(range.start, scratch, from.cancel)?;
        collect(scratch, &axes, in_memory(self.unit)?, here);
        Ok(rest)
    }
}

/// One request: `step_count` steps of the last outer axis.
struct ByteRequest {
    offset: u64,
    step_count: u64,
}

/// The requests of a plan, in C order.
struct ByteRequests<'a> {
    plan: &'a RequestPlan,
    /// Position of the next request on the outer axes; `None` at the end.
    at: Option<Vec<u64>>,
}

impl<'a> ByteRequests<'a> {
    fn of(plan: &'a RequestPlan) -> Self {
        Self { plan, at: Some(vec![0; plan.outer.len()]) }
    }
}

impl Iterator for ByteRequests<'_> {
    type Item = ByteRequest;

    fn next(&mut self) -> Option<ByteRequest> {
        let RequestPlan { start, outer, group, .. } = self.plan;
        let at = self.at.as_mut()?;
        let left = outer.last().zip(at.last()).map_or(1, |(axis, at)| axis.count - at);
        let step_count = left.min(*group);
        let offset = start + outer.iter().zip(&*at).map(|(a, &i)| a.distance * i).sum::<u64>();
        if !advance(at, outer, step_count) {
            self.at = None;
        }
        Some(ByteRequest { offset, step_count })
    }
}

/// Store to read from, and the flag that cancels the read.
struct FlatInput<'a> {
    store: &'a dyn ByteStore,
    cancel: &'a CancelFlag,
}

/// Moves to the next request; false at the end.
fn advance(at: &mut [u64], axes: &[ByteSteps], step_count: u64) -> bool {
    let mut step = step_count;
    for (at, axis) in at.iter_mut().zip(axes).rev() {
        *at += step;
        if *at < axis.count {
            return true;
        }
        *at = 0;
        step = 1;
    }
    false
}

/// Copies units out of `span`, C order over `axes`.
fn collect(span: &[u8], axes: &[ByteSteps], unit: usize, out: &mut [u8]) {
    let Some((first, inner)) = axes.split_first() else {
        out.copy_from_slice(&span[..unit]);
        return;
    };
    let parts = span.chunks(usize::try_from(first.distance).unwrap_or(usize::MAX));
    if inner.is_empty() {
        // The common sizes as constants: a copy of known length is one instruction.
        match unit {
            1 => parts.zip(out.iter_mut()).for_each(|(from, to)| *to = from[0]),
            2 => parts.zip(out.as_chunks_mut::<2>().0).for_each(|(from, to)| to.copy_from_slice(&from[..2])),
            4 => parts.zip(out.as_chunks_mut::<4>().0).for_each(|(from, to)| to.copy_from_slice(&from[..4])),
            8 => parts.zip(out.as_chunks_mut::<8>().0).for_each(|(from, to)| to.copy_from_slice(&from[..8])),
            _ => {
                parts.zip(out.chunks_exact_mut(unit)).for_each(|(from, to)| to.copy_from_slice(&from[..unit]))
            }
        }
        return;
    }
    let size = out.len() / usize::try_from(first.count).unwrap_or(usize::MAX).max(1);
    for (part, out) in parts.zip(out.chunks_exact_mut(size.max(1))) {
        collect(part, inner, unit, out);
    }
}

fn in_memory(bytes: u64) -> Result<usize> {
    usize::try_from(bytes)
        .map_err(|_| Error::too_large(format!("expected bytes that fit memory, found {bytes}")))
}

#[cfg(test)]
mod tests {
    use array::{AxisRange, Target};
    use parking_lot::Mutex;
    use proptest::prelude::*;

    use super::*;
    use crate::IoCounts;

    /// Bytes in memory that remember what was asked for.
    struct Memory(Vec<u8>, Mutex<IoCounts>);

    impl Memory {
        fn new(size: usize) -> Self {
            Self((0..size).map(|i| (i * 31 % 251).to_le_bytes()[0]).collect(), Mutex::default())
        }
    }

    impl ByteStore for Memory {
        fn size_bytes(&self) -> u64 {
            self.0.len() as u64
        }
        fn read_at(&self, offset: u64, into: &mut [u8], _: &CancelFlag) -> Result<()> {
            let mut counts = self.1.lock();
            counts.requests += 1;
            counts.bytes += into.len() as u64;
            let start = usize::try_from(offset).unwrap();
            into.copy_from_slice(&self.0[start..start + into.len()]);
            Ok(())
        }
        fn counts(&self) -> IoCounts {
            *self.1.lock()
        }
    }

    /// Any number of zeros.
    struct Endless(Mutex<IoCounts>);

    impl ByteStore for Endless {
        fn size_bytes(&self) -> u64 {
            u64::MAX
        }
        fn read_at(&self, _: u64, into: &mut [u8], _: &CancelFlag) -> Result<()> {
            let mut counts = self.0.lock();
            counts.requests += 1;
            counts.bytes += into.len() as u64;
            into.fill(1);
            Ok(())
        }
        fn counts(&self) -> IoCounts {
            *self.0.lock()
        }
    }

    fn counts(array: &FlatArray, text: &str) -> (u64, u64) {
        let store = Endless(Mutex::default());
        let selection = Selection::parse(text, &array.shape).unwrap();
        let (target, region) = Target::new(&selection.shape(), array.item_bytes).unwrap();
        array.read(&store, &selection, region, &CancelFlag::default()).unwrap();
        assert!(target.into_vec().unwrap().iter().all(|&b| b == 1));
        (store.counts().requests, store.counts().bytes)
    }

    /// Remembers what it is told of and what it is asked for.
    #[derive(Default)]
    struct Told {
        announced: Mutex<Vec<Range<u64>>>,
        asked: Mutex<Vec<Range<u64>>>,
    }

    impl ByteStore for Told {
        fn size_bytes(&self) -> u64 {
            u64::MAX
        }
        fn expect(&self, ranges: &[Range<u64>]) {
            self.announced.lock().extend_from_slice(ranges);
        }
        fn read_at(&self, offset: u64, into: &mut [u8], _: &CancelFlag) -> Result<()> {
            let (announced, range) = (self.announced.lock(), offset..offset + into.len() as u64);
            assert!(
                announced.is_empty() || announced.contains(&range),
                "{range:?} is told before it is asked"
            );
            self.asked.lock().push(range);
            Ok(())
        }
        fn counts(&self) -> IoCounts {
            IoCounts::default()
        }
    }

    /// Returns the ranges that a read announced to its store, and those that it requested.
    fn announced(array: &FlatArray, text: &str) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
        let store = Told::default();
        let selection = Selection::parse(text, &array.shape).unwrap();
        let (_target, region) = Target::new(&selection.shape(), array.item_bytes).unwrap();
        array.read(&store, &selection, region, &CancelFlag::default()).unwrap();
        (store.announced.into_inner(), store.asked.into_inner())
    }

    #[test]
    fn of_rows_far_apart_a_disk_is_told_before_they_are_read_each_once() {
        let array = FlatArray::c_order(100, 4, &[50, 100, 20_000]).unwrap();
        for text in ["5:45, 10:90, 7:70", ":, ::7, ::10000", "::3, :, 5:500:9"] {
            let (announced, asked) = announced(&array, text);
            assert!(
                asked.len() > 100 && announced == asked,
                "{text}: {} told, {} asked",
                announced.len(),
                asked.len()
            );
        }
        for text in ["5, 10, 7:70", "5:7, 10:40"] {
            let (announced, asked) = announced(&array, text);
            assert!(!asked.is_empty() && announced.is_empty(), "{text}: one request, or large ones");
        }
    }

    #[test]
    fn a_first_picture_of_64_gigabytes_is_cheap() {
        let array = FlatArray::c_order(352, 1, &[4096; 3]).unwrap();
        let (requests, bytes) = counts(&array, "32::64, 32::64, 32::64");
        assert_eq!(requests, 4096);
        assert_eq!(bytes, 4096 * (63 * 64 + 1));
    }

    #[test]
    fn neighbors_are_one_request() {
        let array = FlatArray::c_order(0, 2, &[100, 100, 100]).unwrap();
        assert_eq!(counts(&array, "10:20"), (1, 200_000));
        assert_eq!(counts(&array, "10:20, 50:60"), (10, 20_000), "gaps of 18 kB are skipped");
        assert_eq!(counts(&array, "10:20, 25:100"), (10, 150_000), "and gaps of 5 kB");
        assert_eq!(counts(&array, "10:20, 18:100"), (1, 196_400), "gaps of 3.6 kB are read");
        assert_eq!(counts(&array, "5, 7, 3"), (1, 2));
        let wide = FlatArray::c_order(0, 4, &[10, 1000, 1000]).unwrap();
        assert_eq!(counts(&wide, ":, 5, 7:9"), (10, 80));
        assert_eq!(counts(&wide, "3, :, ::2").0, 4, "a plane of 4 MB in spans of 1 MiB");
        let records = FlatArray::records(10, 4, &[50, 8, 8], 100_000).unwrap();
        assert_eq!(counts(&records, ""), (50, 50 * 256));
    }

    #[test]
    fn boxes_cost_their_rows_and_short_gaps_only() {
        let small = FlatArray::c_order(0, 1, &[200; 3]).unwrap();
        assert_eq!(counts(&small, "50:150, 50:150, 50:150"), (100, 100 * (99 * 200 + 100)), "rows of 100 B");
        let wide = FlatArray::c_order(0, 1, &[64, 64, 8192]).unwrap();
        assert_eq!(counts(&wide, "8:16, :, 128:256"), (8 * 64, 8 * 64 * 128), "nothing but the box");
    }

    #[test]
    fn impossible_arrays_are_refused() {
        assert!(FlatArray::c_order(0, 8, &[1 << 40, 1 << 40]).is_err());
        assert!(FlatArray::c_order(u64::MAX, 1, &[2]).is_err());
        assert!(FlatArray::records(0, 4, &[10, 10], 39).is_err());
        let array = FlatArray::c_order(100, 2, &[10]).unwrap();
        assert!(array.check_within(120).is_ok());
        assert!(array.check_within(119).is_err());
        assert_eq!(FlatArray::c_order(100, 2, &[10, 0]).unwrap().end(), 100);
    }

    fn naive(array: &FlatArray, store: &Memory, selection: &Selection) -> Vec<u8> {
        let mut offsets = vec![array.offset];
        for (range, stride) in selection.ranges().iter().zip(&array.strides) {
            offsets = offsets
                .iter()
                .flat_map(|&o| (0..range.count).map(move |i| o + range.index(i) * stride))
                .collect();
        }
        let element = |&o: &u64| {
            let start = usize::try_from(o).unwrap();
            store.0[start..start + array.item_bytes].to_vec()
        };
        offsets.iter().flat_map(element).collect()
    }

    proptest! {
        #[test]
        fn reads_what_lies_there(
            axes in prop::collection::vec((1u64..40, 0u64..40, 0u64..40, 1u64..9), 0..4),
            item in prop::sample::select(vec![1usize, 2, 4, 8, 3]), padding in 0u64..40_000, offset in 0u64..50,
        ) {
            let shape: Vec<u64> = axes.iter().map(|a| a.0).collect();
            let row = shape.iter().skip(1).product::<u64>() * item as u64;
            let array = FlatArray::records(offset, item, &shape, row + padding).unwrap();
            let ranges = axes.iter().map(|&(n, start, count, step)| {
                let start = start % n;
                AxisRange { start, count: count.min((n - start).div_ceil(step)), step }
            });
            let selection = Selection::new(ranges).unwrap();
            selection.check(&shape).unwrap();
            let store = Memory::new(usize::try_from(array.end()).unwrap());
            let (target, region) = Target::new(&selection.shape(), item).unwrap();
            array.read(&store, &selection, region, &CancelFlag::default()).unwrap();
            prop_assert_eq!(target.into_vec().unwrap(), naive(&array, &store, &selection));
        }
    }
}
