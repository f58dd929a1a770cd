//! Interface of file formats: blocking reads of exact selections of stored levels.
//!
//! `FormatSource` turns any [`Format`] into an [`array::Source`]: it cuts requests into blocks, runs them by priority on a
//! bounded number of threads, checks the cancel flag between pieces and computes the value range of each block. So a format is
//! synchronous and only turns bytes into elements.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use array::{Dataset, Error, PackedChunk, Priority, Region, Result, Selection};
use futures::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};

use crate::io::window::FlatSource;

/// Interval at which a waiting thread checks whether its work has been cancelled.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Flag that is set when no caller waits for the result any more; long work checks it between pieces.
#[derive(Clone, Debug, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Cancels the work.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Checks whether the work is still wanted.
    ///
    /// # Errors
    /// `Cancelled` once [`cancel`](Self::cancel) was called.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Waits for a lock until the work is cancelled.
    ///
    /// # Errors
    /// `Cancelled` once [`cancel`](Self::cancel) was called.
    pub(crate) fn lock<'a, T>(&self, mutex: &'a Mutex<T>) -> Result<MutexGuard<'a, T>> {
        loop {
            self.check()?;
            if let Some(guard) = mutex.try_lock_for(LOOK_EVERY) {
                return Ok(guard);
            }
        }
    }
}

/// Cost of a read that skips elements; decides whether sampled levels are worth offering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Any element is found by its offset: a strided read touches few bytes.
    Flat,
    /// Elements lie in chunks that are read and decoded whole.
    Chunked,
    /// Elements are computed; a coarse read costs only the elements that it returns.
    Computed,
}

/// An opened file or data set. Opening reads headers only.
pub trait Format: Send + Sync + 'static {
    /// Returns the description, with the levels that are stored (or computed) and no others.
    fn dataset(&self) -> Arc<Dataset>;

    /// Returns the cost of reads of this array that skip elements.
    fn access(&self, array: u32) -> Access;

    /// Whether a box of a stored level has values of its own. If not, as in sparse levels, those of the ancestors are used, and
    /// [`read`](Self::read) returns values made of them.
    fn covers(&self, _array: u32, _level: u8, _box: &Selection) -> bool {
        true
    }

    /// Whether reads may wait for reads of other sources of this process, as those of objects in Python do: they get storage threads
    /// of their own, so that both kinds cannot wait for each other.
    fn waits_for_others(&self) -> bool {
        false
    }

    /// Returns long work that must be done once before elements of this array can be read; see
    /// [`ByteStore::prepare`](crate::ByteStore::prepare).
    fn prepare(&self, _array: u32, _priority: Priority) -> Option<BoxFuture<'static, Result<()>>> {
        None
    }

    /// Returns the layout of the elements of a stored level, if each of them is found by its offset: small
    /// reads that lie next to each other are then made together.
    fn flat(&self, _array: u32, _level: u8) -> Option<FlatSource> {
        None
    }

    /// Returns the stored bytes of a selection that is one whole compressed chunk of a stored level, if clients can decompress it; see
    /// [`array::Source::packed`]. Blocking. The selection has been checked.
    ///
    /// # Errors
    /// Errors of [`read`](Self::read).
    fn packed(
        &self,
        _array: u32,
        _level: u8,
        _selection: &Selection,
        _cancel: &CancelFlag,
    ) -> Result<Option<PackedChunk>> {
        Ok(None)
    }

    /// Reads exactly `selection` (any step) of a stored level into `into`, whose shape is the selection's; elements as
    /// stored. Blocking; may use the CPU pool. The selection has been checked against the level's shape.
    ///
    /// # Errors
    /// `Io`, `Corrupt` (with the expected and the found value), `Cancelled`.
    fn read(
        &self,
        array: u32,
        level: u8,
        selection: &Selection,
        into: Region,
        cancel: &CancelFlag,
    ) -> Result<()>;
}
