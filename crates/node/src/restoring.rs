//! Compressed pieces are restored on the storage threads, beside the connection's loop, a few at a time; beyond, whoever
//! brings a piece restores it himself, and nothing more is received meanwhile. So what waits to be restored is bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use array::{Error, Priority, Result};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Pieces of one read on the storage threads.
const MAX_UNDER_WAY: usize = 8;
/// Smaller ones are restored at once, bytes of data.
const LEAST_BYTES: u32 = 64 << 10;

/// Pieces of one read that are being restored.
pub(crate) struct Restoring {
    priority: Priority,
    state: Mutex<State>,
    ended: Notify,
}

struct State {
    under_way: usize,
    /// Of all so far.
    result: Result<()>,
}

impl Restoring {
    pub(crate) fn new(priority: Priority) -> Arc<Self> {
        let state = Mutex::new(State { under_way: 0, result: Ok(()) });
        Arc::new(Self { priority, state, ended: Notify::new() })
    }

    /// Does `work` for a piece of so many bytes. It is dropped before its end is told.
    ///
    /// # Errors
    /// The work's, where it was done at once.
    pub(crate) fn restore(
        self: &Arc<Self>,
        plain_bytes: u32,
        work: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let mut state = self.state.lock();
        if plain_bytes < LEAST_BYTES || state.under_way >= MAX_UNDER_WAY {
            drop(state);
            return work();
        }
        state.under_way += 1;
        drop(state);
        let panicked = Err(Error::internal("expected a piece to be restored, found a panic"));
        let ending = Ending { restoring: Arc::clone(self), result: panicked };
        store::soon(self.priority, move || {
            let mut ending = ending;
            ending.result = work();
        });
        Ok(())
    }

    /// Waits until none is under way.
    ///
    /// # Errors
    /// Of the first one that failed.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn ended(&self) -> Result<()> {
        loop {
            let ended = self.ended.notified();
            {
                let state = self.state.lock();
                if state.under_way == 0 {
                    return state.result.clone();
                }
            }
            ended.await;
        }
    }
}

/// Tells of the end of a piece, also after a panic.
struct Ending {
    restoring: Arc<Restoring>,
    result: Result<()>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let mut state = self.restoring.state.lock();
        state.under_way -= 1;
        if state.result.is_ok() {
            state.result = std::mem::replace(&mut self.result, Ok(()));
        }
        drop(state);
        self.restoring.ended.notify_waiters();
    }
}

/// Bytes of answers that came through one dialer, compressed or not.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    data_bytes: AtomicU64,
    carried_bytes: AtomicU64,
}

/// Bytes of data, and bytes that carried them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Of reads and blocks, as they are used.
    pub data_bytes: u64,
    /// The same, as they came.
    pub carried_bytes: u64,
}

impl Tally {
    pub(crate) fn add(&self, data_bytes: u64, carried_bytes: u64) {
        self.data_bytes.fetch_add(data_bytes, Ordering::Relaxed);
        self.carried_bytes.fetch_add(carried_bytes, Ordering::Relaxed);
    }

    pub(crate) fn carried(&self) -> Carried {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Carried { data_bytes: load(&self.data_bytes), carried_bytes: load(&self.carried_bytes) }
    }
}
