//! Cache of decoded chunks: a chunk that several blocks touch is decoded once.
//!
//! Each chunk is decoded by one thread while others wait for it. Decoded chunks are charged to the [`Scratch`] budget; the least
//! recently used ones are evicted when their memory is needed. This module knows neither files nor codecs.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use array::Result;
use parking_lot::Mutex;

use crate::CancelFlag;
use crate::schedule::scratch::{Scratch, ScratchReservation};

/// Smaller chunks are decoded again: that is quick, and keeping them would make the list long.
const LEAST_KEPT_BYTES: usize = 32 << 10;

/// Decoded bytes with their memory reservation.
#[derive(Debug, Default)]
pub(crate) struct DecodedChunk {
    bytes: Vec<u8>,
    /// Released after the bytes: fields are dropped in order.
    _reservation: Option<ScratchReservation>,
}

impl DecodedChunk {
    /// Combines decoded `bytes` with their reservation, which shrinks to their length.
    pub(crate) fn new(bytes: Vec<u8>, mut reservation: ScratchReservation) -> Self {
        reservation.shrink_to(bytes.len() as u64);
        Self { bytes, _reservation: Some(reservation) }
    }
}

impl Deref for DecodedChunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Owner, array, chunk.
type ChunkKey = (u64, u32, u64);
/// Slot of one decoded chunk; its lock is held while a thread decodes.
pub(crate) type ChunkSlot = Arc<Mutex<Option<Arc<DecodedChunk>>>>;

#[derive(Debug)]
struct ChunkEntry {
    slot: ChunkSlot,
    used: u64,
}

/// Decoded chunks in memory, of all files that share a budget.
#[derive(Debug, Default)]
pub(crate) struct ChunkCache {
    entries: BTreeMap<ChunkKey, ChunkEntry>,
    clock: u64,
}

impl ChunkCache {
    fn slot(&mut self, key: ChunkKey) -> ChunkSlot {
        self.clock += 1;
        let entry =
            self.entries.entry(key).or_insert_with(|| ChunkEntry { slot: ChunkSlot::default(), used: 0 });
        entry.used = self.clock;
        Arc::clone(&entry.slot)
    }

    /// Removes unused chunks, the least recently used first, until they have `bytes` or none is left. The caller drops them, without the
    /// lock.
    pub(crate) fn take_idle(&mut self, bytes: u64) -> Vec<ChunkSlot> {
        let idle = |(key, entry): (&ChunkKey, &ChunkEntry)| {
            // Every user of the content holds the slot or the content itself.
            let content = entry.slot.try_lock().filter(|_| Arc::strong_count(&entry.slot) == 1)?;
            let size = match content.as_ref() {
                Some(decoded) if Arc::strong_count(decoded) == 1 => decoded.len() as u64,
                Some(_) => return None,
                None => 0,
            };
            Some((entry.used, *key, size))
        };
        let mut idle: Vec<(u64, ChunkKey, u64)> = self.entries.iter().filter_map(idle).collect();
        idle.sort_unstable();
        let mut freed = 0;
        let enough = idle.into_iter().take_while(|(_, _, size)| {
            let is_needed = freed < bytes;
            freed += size;
            is_needed
        });
        enough.filter_map(|(_, key, _)| self.entries.remove(&key)).map(|entry| entry.slot).collect()
    }

    fn take_owned_by(&mut self, owner: u64) -> Vec<ChunkEntry> {
        let keys: Vec<ChunkKey> =
            self.entries.range((owner, 0, 0)..=(owner, u32::MAX, u64::MAX)).map(|(key, _)| *key).collect();
        keys.into_iter().filter_map(|key| self.entries.remove(&key)).collect()
    }
}

/// Counter of the owners of chunks, so that all can share one table.
static NEXT_OWNER: AtomicU64 = AtomicU64::new(0);

/// The decoded chunks of one opened file.
#[derive(Debug)]
pub(crate) struct ChunkStore {
    scratch: Scratch,
    owner: u64,
}

impl ChunkStore {
    /// Creates an empty cache.
    pub(crate) fn new(scratch: Scratch) -> Self {
        Self { scratch, owner: NEXT_OWNER.fetch_add(1, Ordering::Relaxed) }
    }

    /// The budget that chunks are decoded in.
    pub(crate) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Returns the chunk of `size_bytes`, decoded now unless it is cached; concurrent callers wait for the same decoding.
    ///
    /// # Errors
    /// Errors of `decode`; nothing is kept then. `Cancelled` while another thread decodes it.
    pub(crate) fn get(
        &self,
        array: u32,
        chunk: u64,
        size_bytes: usize,
        cancel: &CancelFlag,
        decode: impl FnOnce() -> Result<DecodedChunk>,
    ) -> Result<Arc<DecodedChunk>> {
        if size_bytes < LEAST_KEPT_BYTES {
            return decode().map(Arc::new);
        }
        let key = (self.owner, array, chunk);
        let slot = self.scratch.with_kept(|kept| kept.slot(key));
        let mut content = cancel.lock(&slot)?;
        if let Some(decoded) = content.as_ref() {
            return Ok(Arc::clone(decoded));
        }
        let decoded = decode().map(Arc::new);
        match &decoded {
            Ok(decoded) if !decoded.is_empty() => *content = Some(Arc::clone(decoded)),
            // Nothing to keep: an error, or a chunk that was never written.
            _ => drop(self.scratch.with_kept(|kept| kept.entries.remove(&key))),
        }
        decoded
    }

    /// Keeps a chunk that was decoded for another reason, unless it is there or its memory is needed.
    pub(crate) fn put(&self, array: u32, chunk: u64, bytes: Vec<u8>) {
        if bytes.len() < LEAST_KEPT_BYTES {
            return;
        }
        let Some(room) = self.scratch.try_reserve(bytes.len() as u64) else { return };
        let slot = self.scratch.with_kept(|kept| kept.slot((self.owner, array, chunk)));
        // The holder of the lock decodes the same chunk, and may wait for the memory reserved here.
        let Some(mut content) = slot.try_lock() else { return };
        if content.is_none() {
            *content = Some(Arc::new(DecodedChunk::new(bytes, room)));
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        drop(self.scratch.with_kept(|kept| kept.take_owned_by(self.owner)));
    }
}

impl Drop for ChunkStore {
    fn drop(&mut self) {
        self.clear();
    }
}
