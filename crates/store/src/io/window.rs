//! Small reads that lie next to each other in a file: one request fetches the bytes of all of them.
//!
//! A window is a range of a file in memory. It grows over the next reads as long as they follow in the order of the file with small
//! gaps between them, which are read too: at most [`MAX_GAP_BYTES`] for each read.

use std::ops::Range;
use std::sync::Arc;

use array::{Region, Result, Selection};

use crate::formats::common::flat::{FlatArray, MAX_GAP_BYTES};
use crate::{ByteStore, CancelFlag, IoCounts};

/// Most bytes of a window, which one storage thread holds besides results.
const MAX_WINDOW_BYTES: u64 = 1 << 20;

/// Array whose elements are found by their offsets in a store.
#[derive(Clone)]
pub struct FlatSource {
    pub(crate) layout: FlatArray,
    pub(crate) store: Arc<dyn ByteStore>,
}

impl FlatSource {
    /// Returns the range that holds the bytes of a selection, if it holds at most `MAX_GAP_BYTES` of others
    /// and is no longer than `MAX_WINDOW_BYTES`.
    pub(crate) fn stretch(&self, selection: &Selection) -> Option<Range<u64>> {
        let (stretch, data_bytes) = self.layout.stretch(selection);
        let read_bytes = stretch.end - stretch.start;
        (read_bytes <= data_bytes.saturating_add(MAX_GAP_BYTES) && read_bytes <= MAX_WINDOW_BYTES)
            .then_some(stretch)
    }
}

/// Range of bytes of a store in memory.
pub(crate) struct FileWindow {
    start: u64,
    bytes: Vec<u8>,
    store: Arc<dyn ByteStore>,
}

impl FileWindow {
    /// Over a first stretch and those that follow it closely; `None` where none does: a request of its own costs less
    /// than another copy.
    ///
    /// # Errors
    /// Errors of the store.
    pub(crate) fn over(
        flat: &FlatSource,
        first: &Range<u64>,
        next: impl Iterator<Item = Range<u64>>,
        cancel: &CancelFlag,
    ) -> Result<Option<Self>> {
        let mut end = first.end;
        let mut joined = 0;
        for stretch in next {
            let most = first.start.saturating_add(MAX_WINDOW_BYTES);
            let follows = first.start <= stretch.start && stretch.start <= end.saturating_add(MAX_GAP_BYTES);
            if !follows || stretch.end > most {
                break;
            }
            end = end.max(stretch.end);
            joined += 1;
        }
        if joined == 0 {
            return Ok(None);
        }
        // At most the largest window.
        let mut bytes = vec![0; usize::try_from(end - first.start).unwrap_or(usize::MAX)];
        flat.store.read_at(first.start, &mut bytes, cancel)?;
        Ok(Some(Self { start: first.start, bytes, store: Arc::clone(&flat.store) }))
    }

    /// Whether a stretch of `flat` lies in it.
    pub(crate) fn covers(&self, flat: &FlatSource, stretch: &Range<u64>) -> bool {
        Arc::ptr_eq(&self.store, &flat.store)
            && self.buffer_range(stretch.start, stretch.end - stretch.start).is_some()
    }

    /// Reads a selection whose stretch it covers.
    ///
    /// # Errors
    /// `Cancelled`.
    pub(crate) fn read(
        &self,
        flat: &FlatSource,
        selection: &Selection,
        into: Region,
        cancel: &CancelFlag,
    ) -> Result<()> {
        flat.layout.read(self, selection, into, cancel)
    }

    fn buffer_range(&self, offset: u64, size_bytes: u64) -> Option<Range<usize>> {
        let start = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        let end = start.checked_add(usize::try_from(size_bytes).ok()?)?;
        (end <= self.bytes.len()).then_some(start..end)
    }
}

impl ByteStore for FileWindow {
    fn size_bytes(&self) -> u64 {
        self.store.size_bytes()
    }

    fn read_at(&self, offset: u64, into: &mut [u8], cancel: &CancelFlag) -> Result<()> {
        match self.buffer_range(offset, into.len() as u64) {
            Some(buffer_range) => {
                into.copy_from_slice(&self.bytes[buffer_range]);
                Ok(())
            }
            None => self.store.read_at(offset, into, cancel),
        }
    }

    /// Whether the bytes are in memory.
    fn expect(&self, _ranges: &[Range<u64>]) {}

    fn counts(&self) -> IoCounts {
        self.store.counts()
    }
}
