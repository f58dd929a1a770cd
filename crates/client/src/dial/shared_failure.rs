//! Attempts in vain: whoever waits while another one's attempt fails shares its error, so that during an outage everybody
//! hears of it after one attempt, not one after the other.

use std::sync::atomic::{AtomicU64, Ordering};

use array::Error;
use parking_lot::Mutex;

/// The attempts in vain at one thing so far, to be read without waiting for the one under way.
#[derive(Default)]
pub(crate) struct SharedFailure {
    count: AtomicU64,
    last: Mutex<Option<Error>>,
}

impl SharedFailure {
    /// How many there were: to be remembered before waiting for the one under way.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Why the last one was, if there was one since there were `before`.
    pub(crate) fn since(&self, before: u64) -> Option<Error> {
        if self.count() > before { self.last.lock().clone() } else { None }
    }

    /// One more.
    pub(crate) fn note(&self, error: &Error) {
        *self.last.lock() = Some(error.clone());
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}
