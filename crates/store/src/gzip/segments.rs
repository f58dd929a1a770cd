//! Decoded stretches kept for the next read: bounded, each decoded by one thread at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use array::Result;
use parking_lot::Mutex;

/// Most bytes kept per file.
const KEPT_BYTES: u64 = 64 << 20;

type Slot = Arc<Mutex<Option<Arc<Vec<u8>>>>>;

/// The stretches used last, the latest at the back.
#[derive(Default)]
pub(super) struct Segments(Mutex<VecDeque<(usize, u64, Slot)>>);

impl Segments {
    /// Segment `number`, decoded now unless it is there.
    pub(super) fn get(
        &self,
        number: usize,
        size_bytes: u64,
        decode: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Arc<Vec<u8>>> {
        let slot = self.slot(number, size_bytes);
        let mut content = slot.lock();
        if let Some(segment) = &*content {
            return Ok(Arc::clone(segment));
        }
        let segment = Arc::new(decode()?);
        *content = Some(Arc::clone(&segment));
        Ok(segment)
    }

    /// Keeps a segment that was decoded anyway.
    pub(super) fn put(&self, number: usize, segment: Vec<u8>) {
        let slot = self.slot(number, segment.len() as u64);
        *slot.lock() = Some(Arc::new(segment));
    }

    fn slot(&self, number: usize, size_bytes: u64) -> Slot {
        let mut kept = self.0.lock();
        let there = kept.iter().position(|(n, ..)| *n == number);
        if let Some(entry) = there.and_then(|place| kept.remove(place)) {
            let slot = Arc::clone(&entry.2);
            kept.push_back(entry);
            return slot;
        }
        let slot = Slot::default();
        kept.push_back((number, size_bytes, Arc::clone(&slot)));
        while kept.len() > 1 && kept.iter().map(|(_, size, _)| size).sum::<u64>() > KEPT_BYTES {
            kept.pop_front();
        }
        slot
    }

    /// Forgets everything: numbers have changed.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }
}
