//! Arrays stored in chunks: which chunks a selection touches, and decoded chunks kept for the next block.
//!
//! Shared by the formats that store chunks. It knows neither files nor codecs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use array::{AxisRange, Region, Result, Selection, c_strides};
use parking_lot::Mutex;

/// The part of a selection that lies in one chunk.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    /// Place of the chunk in the grid of chunks.
    pub(crate) position: &'a [u64],
    /// The elements, counted from the chunk's first one.
    pub(crate) inside: &'a [AxisRange],
}

impl Part<'_> {
    /// True when every element of a chunk of `shape` is meant.
    pub(crate) fn is_whole(&self, shape: &[u64]) -> bool {
        self.inside.iter().zip(shape).all(|(r, &n)| r.count == n)
    }

    /// Copies the part out of the decoded chunk.
    ///
    /// # Errors
    /// `Corrupt` when the chunk is shorter than its shape says.
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

/// Calls `each` with every chunk that `selection` touches, in C order, and the part of `into` that is its.
/// Takes no memory that grows with the number of chunks.
///
/// # Errors
/// The first error of `each`.
pub(crate) fn for_each_chunk(
    selection: &Selection,
    chunk: &[u64],
    into: Region,
    each: &mut dyn FnMut(&Part<'_>, Region) -> Result<()>,
) -> Result<()> {
    if selection.is_empty() {
        return Ok(());
    }
    let axes = chunk.len();
    let mut cut = Cut { selection, chunk, position: vec![0; axes], inside: Vec::with_capacity(axes), each };
    cut.axis(0, into)
}

struct Cut<'a> {
    selection: &'a Selection,
    chunk: &'a [u64],
    position: Vec<u64>,
    inside: Vec<AxisRange>,
    each: &'a mut dyn FnMut(&Part<'_>, Region) -> Result<()>,
}

impl Cut<'_> {
    fn axis(&mut self, axis: usize, into: Region) -> Result<()> {
        let (Some(range), Some(&size)) = (self.selection.ranges().get(axis), self.chunk.get(axis)) else {
            return (self.each)(&Part { position: &self.position, inside: &self.inside }, into);
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

/// Memory that decoded chunks may hold, all files of the process together, bytes. Blocks smaller than a
/// chunk come in a row; this many bytes are a few dozen chunks of the usual sizes.
const KEPT_BYTES: usize = 128 << 20;
/// Smaller chunks are decoded again: that is quick, and keeping them would make the list long.
const LEAST_KEPT_BYTES: usize = 32 << 10;

/// Numbers whatever has chunks, so that all share one bounded store.
static NEXT_OWNER: AtomicU64 = AtomicU64::new(0);
static KEPT: Mutex<Kept> = Mutex::new(Kept { entries: BTreeMap::new(), clock: 0, bytes: 0 });

/// Owner, array, chunk.
type Key = (u64, u32, u64);
/// A place for one decoded chunk; its lock is held while somebody decodes.
type Slot = Arc<Mutex<Option<Arc<[u8]>>>>;

struct Entry {
    slot: Slot,
    used: u64,
    /// 0 while it is being decoded.
    bytes: usize,
}

struct Kept {
    entries: BTreeMap<Key, Entry>,
    clock: u64,
    bytes: usize,
}

impl Kept {
    fn slot(&mut self, key: Key) -> Slot {
        self.clock += 1;
        let new = || Entry { slot: Slot::default(), used: 0, bytes: 0 };
        let entry = self.entries.entry(key).or_insert_with(new);
        entry.used = self.clock;
        Arc::clone(&entry.slot)
    }

    fn forget(&mut self, key: Key) {
        if let Some(entry) = self.entries.remove(&key) {
            self.bytes -= entry.bytes;
        }
    }

    /// Counts a chunk that was just decoded, and lets the ones longest unused go.
    fn account(&mut self, key: Key, bytes: usize) {
        if let Some(entry) = self.entries.get_mut(&key).filter(|e| e.bytes == 0) {
            entry.bytes = bytes;
            self.bytes += bytes;
        }
        while self.bytes > KEPT_BYTES {
            let decoded = self.entries.iter().filter(|(_, e)| e.bytes > 0);
            let Some(oldest) = decoded.min_by_key(|(_, e)| e.used).map(|(key, _)| *key) else { return };
            self.forget(oldest);
        }
    }
}

/// Decoded chunks of one opened file, kept for the blocks beside the one that was asked for.
#[derive(Debug)]
pub(crate) struct ChunkStore {
    owner: u64,
}

impl ChunkStore {
    /// Room in the process's store.
    pub(crate) fn new() -> Self {
        Self { owner: NEXT_OWNER.fetch_add(1, Ordering::Relaxed) }
    }

    /// The chunk of `size_bytes`, decoded now unless it is kept; whoever asks meanwhile waits for the same.
    ///
    /// # Errors
    /// Those of `decode`; nothing is kept then.
    pub(crate) fn get(
        &self,
        array: u32,
        chunk: u64,
        size_bytes: usize,
        decode: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Arc<[u8]>> {
        if !(LEAST_KEPT_BYTES..=KEPT_BYTES).contains(&size_bytes) {
            return decode().map(Into::into);
        }
        let key = (self.owner, array, chunk);
        let slot = KEPT.lock().slot(key);
        let mut held = slot.lock();
        if let Some(bytes) = held.as_ref() {
            return Ok(Arc::clone(bytes));
        }
        let bytes: Arc<[u8]> = match decode() {
            // Nothing to keep: whatever was never written.
            Ok(bytes) if bytes.is_empty() => {
                KEPT.lock().forget(key);
                return Ok(bytes.into());
            }
            Ok(bytes) => bytes.into(),
            Err(e) => {
                KEPT.lock().forget(key);
                return Err(e);
            }
        };
        *held = Some(Arc::clone(&bytes));
        KEPT.lock().account(key, bytes.len());
        Ok(bytes)
    }
}

impl Drop for ChunkStore {
    fn drop(&mut self) {
        let mut kept = KEPT.lock();
        let range = (self.owner, 0, 0)..=(self.owner, u32::MAX, u64::MAX);
        let keys: Vec<Key> = kept.entries.range(range).map(|(key, _)| *key).collect();
        keys.into_iter().for_each(|key| kept.forget(key));
    }
}
