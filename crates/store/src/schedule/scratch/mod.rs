//! Working memory of reads, one budget for all files of a process: chunks being decoded, decoded chunks kept for the next block,
//! decompressed segments of gzip files, blocks of levels being made.
//!
//! It has two parts, so that no reservation can wait for another one that waits for it. Work on *levels* reserves its memory first,
//! all that it needs, and then waits for reads. A read reserves memory for *decoding*, all that one chunk needs, and then waits for
//! no other reservation. Decoded chunks that are kept count in the second part too, and are evicted when their memory is needed.
//! Finished blocks are not counted here: their callers have reserved memory for them before.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::CancelFlag;
use crate::cache::chunk_cache::ChunkCache;
use crate::format::LOOK_EVERY;

/// Default size of the scratch memory, bytes.
pub const DEFAULT_SCRATCH_BYTES: u64 = 256 << 20;
/// Share of the budget for levels being made; the rest is for decoding.
const LEVELS_QUARTERS: u64 = 1;
/// Unit in which the memory for levels is counted, bytes.
const LEVELS_UNIT_BYTES: u64 = 1 << 10;
/// Longest wait of a read for scratch memory while no memory is freed or taken.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Largest chunk that is decoded, bytes, however large the budget.
pub(crate) const MAX_CHUNK_BYTES: u64 = 1 << 30;

/// A budget of scratch memory; clones share it.
#[derive(Clone, Debug)]
pub struct Scratch(Arc<ScratchInner>);

#[derive(Debug)]
struct ScratchInner {
    limit_bytes: u64,
    state: Mutex<ScratchState>,
    changed: Condvar,
    levels: Arc<Semaphore>,
    levels_units: u32,
}

#[derive(Debug, Default)]
struct ScratchState {
    used_bytes: u64,
    peak_bytes: u64,
    /// Numbers of the waiters, in order of arrival: small chunks do not overtake a large one for ever.
    waiting: VecDeque<u64>,
    arrivals: u64,
    kept: ChunkCache,
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new(DEFAULT_SCRATCH_BYTES)
    }
}

impl Scratch {
    /// Creates a budget of `limit_bytes`.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        let levels_bytes = limit_bytes / 4 * LEVELS_QUARTERS;
        let levels_units = u32::try_from(levels_bytes / LEVELS_UNIT_BYTES).unwrap_or(u32::MAX).max(1);
        Self(Arc::new(ScratchInner {
            limit_bytes: limit_bytes - levels_bytes,
            state: Mutex::default(),
            changed: Condvar::new(),
            levels: Arc::new(Semaphore::new(levels_units as usize)),
            levels_units,
        }))
    }

    /// Returns the bytes for decoding and for chunks that are kept decoded.
    #[must_use]
    pub fn decoding_bytes(&self) -> u64 {
        self.0.limit_bytes
    }

    /// Returns the peak of the bytes for decoding, including kept chunks.
    #[cfg(test)]
    pub(crate) fn peak_decoding_bytes(&self) -> u64 {
        self.0.state.lock().peak_bytes
    }

    /// Waits for memory to decode one chunk of `chunk_bytes`, which needs `needed_bytes` in all. Blocking; a holder of a reservation must not
    /// make another before releasing it.
    ///
    /// # Errors
    /// `TooLarge` if the whole budget is smaller, `Cancelled`, `Busy` if nothing changes for a minute.
    pub(crate) fn reserve(
        &self,
        chunk_bytes: u64,
        needed_bytes: u64,
        cancel: &CancelFlag,
    ) -> Result<ScratchReservation> {
        if needed_bytes > self.0.limit_bytes {
            return Err(Error::too_large(format!(
                "expected chunks that can be decoded within {} bytes, found one of {chunk_bytes} bytes, which takes \
                 {needed_bytes}: give the process more memory with `--memory`",
                self.0.limit_bytes
            )));
        }
        let turn = ScratchTurn::new(self);
        let mut waited = Duration::ZERO;
        loop {
            cancel.check()?;
            let mut state = self.0.state.lock();
            if state.waiting.front() == Some(&turn.number) {
                if let Some(room) = self.take(&mut state, needed_bytes) {
                    return Ok(room);
                }
                let missing = state.used_bytes + needed_bytes - self.0.limit_bytes;
                let idle = state.kept.take_idle(missing);
                if !idle.is_empty() {
                    // Their memory is released as they are dropped, which takes the lock.
                    drop(state);
                    drop(idle);
                    continue;
                }
            }
            if self.0.changed.wait_for(&mut state, LOOK_EVERY).timed_out() {
                waited += LOOK_EVERY;
            }
            if waited >= MAX_WAIT {
                return Err(Error::new(
                    ErrorKind::Busy,
                    format!(
                        "expected room for {needed_bytes} bytes of scratch, found none within {MAX_WAIT:?}"
                    ),
                ));
            }
        }
    }

    /// Reserves memory that is free now, or that kept chunks release; for optional data.
    pub(crate) fn try_reserve(&self, bytes: u64) -> Option<ScratchReservation> {
        let mut state = self.0.state.lock();
        if !state.waiting.is_empty() {
            return None;
        }
        let missing = state.used_bytes.saturating_add(bytes).saturating_sub(self.0.limit_bytes);
        let idle = if missing > 0 { state.kept.take_idle(missing) } else { Vec::new() };
        drop(state);
        drop(idle);
        self.take(&mut self.0.state.lock(), bytes)
    }

    fn take(&self, state: &mut ScratchState, bytes: u64) -> Option<ScratchReservation> {
        let used = state.used_bytes.checked_add(bytes).filter(|&used| used <= self.0.limit_bytes)?;
        state.used_bytes = used;
        state.peak_bytes = state.peak_bytes.max(used);
        Some(ScratchReservation { scratch: self.clone(), bytes })
    }

    /// Waits for room to make a block of a level. One that needs more than there is gets all of it, and so is
    /// made alone.
    ///
    /// # Errors
    /// None in practice: the semaphore is never closed.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the queue.
    pub(crate) async fn reserve_for_level(&self, bytes: u64) -> Result<OwnedSemaphorePermit> {
        let units = u32::try_from(bytes.div_ceil(LEVELS_UNIT_BYTES)).unwrap_or(u32::MAX);
        let units = units.min(self.0.levels_units);
        let room = Arc::clone(&self.0.levels).acquire_many_owned(units).await;
        room.map_err(|_| Error::internal("the room for levels was closed"))
    }

    /// Calls `f` with the decoded chunks that are kept. `f` must not drop anything that holds a reservation.
    pub(crate) fn with_kept<T>(&self, f: impl FnOnce(&mut ChunkCache) -> T) -> T {
        f(&mut self.0.state.lock().kept)
    }
}

/// Position in the queue, which is left on drop.
struct ScratchTurn<'a> {
    scratch: &'a Scratch,
    number: u64,
}

impl<'a> ScratchTurn<'a> {
    fn new(scratch: &'a Scratch) -> Self {
        let mut state = scratch.0.state.lock();
        state.arrivals += 1;
        let number = state.arrivals;
        state.waiting.push_back(number);
        Self { scratch, number }
    }
}

impl Drop for ScratchTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.scratch.0.state.lock();
        state.waiting.retain(|&number| number != self.number);
        drop(state);
        self.scratch.0.changed.notify_all();
    }
}

/// Reserved scratch memory, released on drop.
#[derive(Debug)]
pub(crate) struct ScratchReservation {
    scratch: Scratch,
    bytes: u64,
}

impl ScratchReservation {
    /// Releases the memory beyond `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        let freed = self.bytes.saturating_sub(bytes);
        self.bytes -= freed;
        self.scratch.0.state.lock().used_bytes -= freed;
        self.scratch.0.changed.notify_all();
    }
}

impl Drop for ScratchReservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests;
