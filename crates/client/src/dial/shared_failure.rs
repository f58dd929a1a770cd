//! Failures of attempts that several callers wait for: all of them share the error of one attempt, so that during an
//! outage each caller fails after one attempt instead of making one after the other.

use std::sync::atomic::{AtomicU64, Ordering};

use array::Error;
use parking_lot::Mutex;

/// Failed attempts so far; can be read without waiting for the attempt in progress.
#[derive(Default)]
pub(crate) struct SharedFailure {
    count: AtomicU64,
    last: Mutex<Option<Error>>,
}

impl SharedFailure {
    /// Returns the number of failed attempts; to be called before waiting for the attempt in progress.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the last error, if there was one after the first `before` failures.
    pub(crate) fn since(&self, before: u64) -> Option<Error> {
        if self.count() > before { self.last.lock().clone() } else { None }
    }

    /// Records a failure.
    pub(crate) fn record(&self, error: &Error) {
        *self.last.lock() = Some(error.clone());
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}
