//! Targets: the memory that the elements of a read are written to.
//!
//! A target is owned and reference-counted, with strides and disjoint write [`Region`]s. Dropping the request therefore only detaches
//! it: a decoder that still writes keeps the buffer alive, and the last writer releases it. (A borrowed buffer would be unsound under
//! threads and asynchronous I/O.)
//!
//! This is the only file of the crate with `unsafe`: regions of one buffer are written from several threads. It is sound because a
//! region is never cloned, regions are only made by cutting one region along its axes (so they are disjoint by construction), and the
//! bytes are read only when no region is left. A region that was lent ([`Region::lend`]) comes back only after everything cut from it is
//! dropped, which its lease counts. If many results share memory ([`Target::many`]), the bytes of each are read when its own regions
//! are dropped.
#![expect(unsafe_code, reason = "disjoint regions of one buffer are written in parallel")]

use std::alloc::{Layout, alloc_zeroed};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::{Error, PerAxis, Result, Selection};

/// Memory of a target.
#[derive(Debug)]
struct TargetBuffer {
    start: NonNull<u8>,
    size_bytes: usize,
}

// SAFETY: the pointer is to memory that this value owns; all access goes through `Region` (disjoint, `&mut`)
// or through `into_vec` (sole owner).
unsafe impl Send for TargetBuffer {}
// SAFETY: as above; a shared `TargetBuffer` offers no access by itself.
unsafe impl Sync for TargetBuffer {}

impl TargetBuffer {
    /// Zeroed memory, of which the system makes no page before it is written.
    fn new(size_bytes: usize) -> Result<Self> {
        let too_large = || Error::too_large(format!("expected {size_bytes} bytes of memory, found less"));
        let layout = Layout::array::<u8>(size_bytes).map_err(|_| too_large())?;
        let start = if size_bytes == 0 {
            NonNull::dangling()
        } else {
            // SAFETY: the layout's size is not zero.
            NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(too_large)?
        };
        Ok(Self { start, size_bytes })
    }

    fn into_vec(self) -> Vec<u8> {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: allocated as a vector of bytes of this capacity would be, all of it initialized; not freed yet.
        unsafe { Vec::from_raw_parts(this.start.as_ptr(), this.size_bytes, this.size_bytes) }
    }
}

impl Drop for TargetBuffer {
    fn drop(&mut self) {
        // SAFETY: as in `into_vec`, which forgets `self` and so never reaches this.
        drop(unsafe { Vec::from_raw_parts(self.start.as_ptr(), self.size_bytes, self.size_bytes) });
    }
}

/// Reader's side of a buffer: returns the bytes once every writer is done.
#[derive(Debug)]
pub struct Target(Arc<TargetBuffer>);

impl Target {
    /// A zeroed C-order target for `shape` elements of `item_bytes`, and the region that covers it.
    ///
    /// # Errors
    /// `TooLarge` when the memory cannot be had.
    pub fn new(shape: &[u64], item_bytes: usize) -> Result<(Self, Region)> {
        let too_large = || Error::too_large(format!("shape {shape:?} is more than this machine can hold"));
        let shape: PerAxis<usize> =
            shape.iter().map(|&n| usize::try_from(n).map_err(|_| too_large())).collect::<Result<_>>()?;
        let size = shape.iter().try_fold(item_bytes, |n, &s| n.checked_mul(s));
        let size = size.filter(|&n| isize::try_from(n).is_ok()).ok_or_else(too_large)?;
        let buffer = Arc::new(TargetBuffer::new(size)?);
        let strides = c_strides(&shape, item_bytes);
        let region =
            Region { buffer: Arc::clone(&buffer), offset: 0, shape, strides, item_bytes, lease: None };
        Ok((Self(buffer), region))
    }

    /// The bytes, when no region is left.
    ///
    /// # Errors
    /// Gives the target back while writers remain.
    pub fn try_into_vec(self) -> std::result::Result<Vec<u8>, Self> {
        Arc::try_unwrap(self.0).map(TargetBuffer::into_vec).map_err(Self)
    }

    /// The bytes after a finished read.
    ///
    /// # Errors
    /// `Internal` when a writer kept its region beyond the end of the read.
    pub fn into_vec(self) -> Result<Vec<u8>> {
        self.try_into_vec().map_err(|_| still_written())
    }
}

/// One of many results that are contiguous in common memory: returns its bytes when its own writers are done, independent of the
/// others.
#[derive(Debug)]
pub struct ReadPart {
    bytes: ReadPartBytes,
    lease: Arc<Lease>,
}

impl ReadPart {
    /// The bytes after a finished read.
    ///
    /// # Errors
    /// `Internal` when a writer kept its region beyond the end of the read.
    pub fn into_bytes(self) -> Result<ReadPartBytes> {
        let Self { bytes, lease } = self;
        Arc::try_unwrap(lease).map_or_else(|_| Err(still_written()), |_| Ok(bytes))
    }
}

/// Bytes of a finished [`ReadPart`]; they keep the common memory.
#[derive(Debug)]
pub struct ReadPartBytes {
    buffer: Arc<TargetBuffer>,
    offset: usize,
    size_bytes: usize,
}

impl AsRef<[u8]> for ReadPartBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: within the buffer, which was zeroed when it was made and lives as long as `self`. These bytes were one
        // region's; it and all that was cut from it held the lease that `ReadPart::into_bytes` found unshared, so nobody
        // writes here any more. Other parts are other bytes.
        unsafe { std::slice::from_raw_parts(self.buffer.start.as_ptr().add(self.offset), self.size_bytes) }
    }
}

impl Target {
    /// Zeroed C-order results for many selections, one after another in common memory, each with the region that covers
    /// it.
    ///
    /// # Errors
    /// `TooLarge` when the memory cannot be had.
    pub fn many<'a>(
        selections: impl Iterator<Item = &'a Selection> + Clone,
        item_bytes: usize,
    ) -> Result<Vec<(ReadPart, Region)>> {
        let too_large = || Error::too_large("expected results that fit memory together, found more");
        let in_memory = |n: u64| usize::try_from(n).map_err(|_| too_large());
        let size_of = |selection: &Selection| {
            let elements = in_memory(selection.len().ok_or_else(too_large)?)?;
            elements.checked_mul(item_bytes).ok_or_else(too_large)
        };
        let whole = selections.clone().try_fold(0_usize, |sum, selection| {
            let sum = sum.checked_add(size_of(selection)?).filter(|&n| isize::try_from(n).is_ok());
            sum.ok_or_else(too_large)
        })?;
        let buffer = Arc::new(TargetBuffer::new(whole)?);
        let mut offset = 0;
        let part = |selection: &Selection| {
            let size_bytes = size_of(selection)?;
            let ranges = selection.ranges().iter();
            let shape = ranges.map(|range| in_memory(range.count)).collect::<Result<PerAxis<usize>>>()?;
            let strides = c_strides(&shape, item_bytes);
            let lease = Arc::new(Lease { _outer: None });
            let region = Region {
                buffer: Arc::clone(&buffer),
                offset,
                shape,
                strides,
                item_bytes,
                lease: Some(Arc::clone(&lease)),
            };
            let bytes = ReadPartBytes { buffer: Arc::clone(&buffer), offset, size_bytes };
            offset += size_bytes;
            Ok((ReadPart { bytes, lease }, region))
        };
        selections.map(part).collect()
    }
}

fn still_written() -> Error {
    Error::internal("a read ended while its target was still being written")
}

/// Byte strides of a C-order array of `shape`.
#[must_use]
pub fn c_strides(shape: &[usize], item_bytes: usize) -> PerAxis<usize> {
    let mut strides = PerAxis::from_elem(item_bytes, shape.len());
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis].max(1));
    }
    strides
}

/// Box of a target that one writer owns.
#[derive(Debug)]
pub struct Region {
    buffer: Arc<TargetBuffer>,
    offset: usize,
    shape: PerAxis<usize>,
    strides: PerAxis<usize>,
    item_bytes: usize,
    /// Held while this region, or one that was cut from it, may be written by a borrower.
    lease: Option<Arc<Lease>>,
}

/// Lives as long as any region that was cut from a lent one. A borrower may lend on: the outer lease then lives
/// as long as the inner one.
#[derive(Debug)]
struct Lease {
    _outer: Option<Arc<Self>>,
}

/// Lender's side of a region that is lent to a writer: a caller that tries several writers in turn gets the region back if one of
/// them failed.
#[derive(Debug)]
pub struct Loan {
    /// The region as it was; gives no access before the loan has ended.
    region: Region,
    lease: Arc<Lease>,
}

impl Loan {
    /// The region, when neither the borrower's region nor anything cut from it is left.
    ///
    /// # Errors
    /// Gives the loan back while there is a writer that could still write.
    pub fn try_end(self) -> std::result::Result<Region, Self> {
        let Self { region, lease } = self;
        match Arc::try_unwrap(lease) {
            Ok(_) => Ok(region),
            Err(lease) => Err(Self { region, lease }),
        }
    }
}

impl Region {
    /// Lends the region: the borrower's writes land in the same place, and [`Loan::try_end`] gives it back.
    #[must_use]
    pub fn lend(self) -> (Loan, Self) {
        let lease = Arc::new(Lease { _outer: self.lease.clone() });
        let lent = Self { lease: Some(Arc::clone(&lease)), ..self.twin() };
        (Loan { region: self, lease }, lent)
    }

    /// A second value for the same bytes: only for `split`, which makes both smaller at once, and for `lend`, where
    /// the first one rests until the second is gone.
    fn twin(&self) -> Self {
        Self {
            buffer: Arc::clone(&self.buffer),
            shape: PerAxis::from_slice(&self.shape),
            strides: PerAxis::from_slice(&self.strides),
            lease: self.lease.clone(),
            ..*self
        }
    }

    /// Elements per axis.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Size of one element, bytes.
    #[must_use]
    pub fn item_bytes(&self) -> usize {
        self.item_bytes
    }

    /// Elements times their size, bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.item_bytes
    }

    /// Adds an axis of one element in front; the elements stay the same.
    #[must_use]
    pub fn with_outer_axis(mut self) -> Self {
        self.shape.insert(0, 1);
        self.strides.insert(0, 0);
        self
    }

    /// Removes the slowest axis; the elements stay the same.
    ///
    /// # Panics
    /// Panics if that axis does not have exactly one element.
    #[must_use]
    pub fn without_outer_axis(mut self) -> Self {
        assert_eq!(self.shape.first(), Some(&1), "only an axis of one element can be left out");
        self.shape.remove(0);
        self.strides.remove(0);
        self
    }

    /// Cuts along `axis` before element `at`: `[0, at)` and `[at, n)`.
    ///
    /// # Panics
    /// Panics if `axis` or `at` lies outside; a broken invariant of the caller.
    #[must_use]
    pub fn split(self, axis: usize, at: usize) -> (Self, Self) {
        assert!(at <= self.shape[axis], "split at {at} beyond {}", self.shape[axis]);
        let mut left = self.twin();
        let mut right = self;
        left.shape[axis] = at;
        right.shape[axis] -= at;
        if right.shape[axis] > 0 {
            right.offset += at * right.strides[axis];
        }
        (left, right)
    }

    /// Cuts into a grid: `cuts[axis]` are the sizes of the pieces along that axis, summing to its size.
    /// Pieces come in C order of the grid.
    ///
    /// # Errors
    /// `Internal` when the sizes do not sum up.
    pub fn grid(self, cuts: &[Vec<usize>]) -> Result<Vec<Self>> {
        let fits = cuts.len() == self.shape.len()
            && cuts.iter().zip(&self.shape).all(|(c, &n)| c.iter().sum::<usize>() == n);
        if !fits {
            return Err(Error::internal(format!("cuts {cuts:?} do not tile {:?}", self.shape)));
        }
        let mut pieces = vec![self];
        for (axis, sizes) in cuts.iter().enumerate() {
            let mut next = Vec::with_capacity(pieces.len() * sizes.len());
            for piece in pieces {
                let mut rest = piece;
                for &size in sizes {
                    let (taken, left) = rest.split(axis, size);
                    next.push(taken);
                    rest = left;
                }
            }
            pieces = next;
        }
        Ok(pieces)
    }

    /// Copies a whole box into the region. `source` holds elements of the same size with the given byte
    /// strides, first element at its start.
    ///
    /// # Errors
    /// `Corrupt` when `source` is too short for this shape and these strides.
    pub fn write_strided(&mut self, source: &[u8], source_strides: &[usize]) -> Result<()> {
        if self.shape.contains(&0) {
            return Ok(());
        }
        let reach = self.shape.iter().zip(source_strides).try_fold(self.item_bytes, |n, (&s, &stride)| {
            (s - 1).checked_mul(stride).and_then(|d| n.checked_add(d))
        });
        if source_strides.len() != self.shape.len() || reach.is_none_or(|n| n > source.len()) {
            return Err(Error::corrupt(format!(
                "expected at least {reach:?} bytes for shape {:?}, found {}",
                self.shape,
                source.len()
            )));
        }
        let run = contiguous_axes(&self.shape, &self.strides, source_strides, self.item_bytes);
        let run_bytes = self.shape[self.shape.len() - run..].iter().product::<usize>() * self.item_bytes;
        let outer = self.shape.len() - run;
        let mut at = vec![0usize; outer];
        let (mut to, mut from) = (self.offset, 0usize);
        loop {
            self.copy_in(to, &source[from..from + run_bytes]);
            // Odometer over the outer axes.
            let mut axis = outer;
            loop {
                if axis == 0 {
                    return Ok(());
                }
                axis -= 1;
                at[axis] += 1;
                to += self.strides[axis];
                from += source_strides[axis];
                if at[axis] < self.shape[axis] {
                    break;
                }
                to -= self.strides[axis] * self.shape[axis];
                from -= source_strides[axis] * self.shape[axis];
                at[axis] = 0;
            }
        }
    }

    /// The bytes of its elements, where they lie together in C order: to be filled without a copy between.
    pub fn together_mut(&mut self) -> Option<&mut [u8]> {
        let mut expected = self.item_bytes;
        for (&count, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if count != 1 && stride != expected {
                return None;
            }
            expected *= count;
        }
        let size_bytes = self.size_bytes();
        assert!(self.offset + size_bytes <= self.buffer.size_bytes, "region outside its buffer");
        // SAFETY: in bounds (asserted), and zeroed when the buffer was made; no other region covers these bytes (regions
        // are disjoint by construction and this is `&mut`), and nobody reads while a region lives.
        Some(unsafe {
            std::slice::from_raw_parts_mut(self.buffer.start.as_ptr().add(self.offset), size_bytes)
        })
    }

    /// Copies contiguous C-order elements that fill the region.
    ///
    /// # Errors
    /// `Corrupt` when their number of bytes differs.
    pub fn write_all(&mut self, source: &[u8]) -> Result<()> {
        if source.len() != self.size_bytes() {
            return Err(Error::corrupt(format!(
                "expected {} bytes for shape {:?}, found {}",
                self.size_bytes(),
                self.shape,
                source.len()
            )));
        }
        let strides = c_strides(&self.shape, self.item_bytes);
        self.write_strided(source, &strides)
    }

    /// Copies bytes of the region's elements in C order, from byte `at` of them on: how pieces of a message land as they
    /// arrive.
    ///
    /// # Errors
    /// `Corrupt` when the piece does not fit.
    pub fn write_at(&mut self, at: usize, piece: &[u8]) -> Result<()> {
        if at.checked_add(piece.len()).is_none_or(|end| end > self.size_bytes()) {
            return Err(Error::corrupt(format!(
                "expected at most {} bytes, found a piece of {} at {at}",
                self.size_bytes(),
                piece.len()
            )));
        }
        let strides = c_strides(&self.shape, self.item_bytes);
        let outer = self.shape.len() - contiguous_axes(&self.shape, &self.strides, &strides, self.item_bytes);
        let run_bytes = self.shape[outer..].iter().product::<usize>() * self.item_bytes;
        let (mut at, mut rest) = (at, piece);
        while !rest.is_empty() {
            let within = at % run_bytes;
            let (now, later) = rest.split_at(rest.len().min(run_bytes - within));
            self.copy_in(self.run_start(at / run_bytes, outer) + within, now);
            (at, rest) = (at + now.len(), later);
        }
        Ok(())
    }

    /// Returns the byte offset in the buffer at which run number `run` begins; runs are counted in C order
    /// over the `outer` axes.
    fn run_start(&self, mut run: usize, outer: usize) -> usize {
        let mut start = self.offset;
        for axis in (0..outer).rev() {
            start += run % self.shape[axis] * self.strides[axis];
            run /= self.shape[axis];
        }
        start
    }

    /// `to` counts from the buffer's start.
    fn copy_in(&mut self, to: usize, piece: &[u8]) {
        assert!(to + piece.len() <= self.buffer.size_bytes, "region outside its buffer");
        // SAFETY: in bounds (asserted); no other region covers these bytes (regions are disjoint by
        // construction and this is `&mut`), and nobody reads while a region lives.
        unsafe {
            self.buffer.start.as_ptr().add(to).copy_from_nonoverlapping(piece.as_ptr(), piece.len());
        }
    }
}

/// Number of trailing axes that are copied as one run: contiguous on both sides.
fn contiguous_axes(shape: &[usize], to: &[usize], from: &[usize], item_bytes: usize) -> usize {
    let mut expected = item_bytes;
    let mut run = 0;
    for axis in (0..shape.len()).rev() {
        if shape[axis] != 1 && (to[axis] != expected || from[axis] != expected) {
            break;
        }
        expected *= shape[axis];
        run += 1;
    }
    run
}

/// Cuts a selection by a block grid: which blocks it touches and how the target falls apart.
///
/// Per axis: the list of (block position, first element of the selection in it, count).
#[must_use]
pub fn cut_by_grid(selection: &Selection, block: &[u64]) -> Vec<Vec<(u64, u64, u64)>> {
    let axes = selection.ranges().iter().zip(block);
    axes.map(|(range, &size)| {
        let mut pieces = Vec::new();
        let mut element = 0;
        while element < range.count {
            let position = range.index(element) / size;
            let (first, count) = range.within(position * size, (position + 1).saturating_mul(size));
            pieces.push((position, first, count));
            element = first + count;
        }
        pieces
    })
    .collect()
}
