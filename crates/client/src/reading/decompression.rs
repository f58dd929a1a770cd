//! Restores compressed pieces on the storage threads, beside the connection's loop: a few of each read at a time,
//! while the others wait in a queue. The queue is bounded. When it is full, the task that brings a piece restores it
//! itself, and receives nothing more meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use array::{Error, Priority, Result};
use parking_lot::Mutex;
use tokio::sync::Notify;
use wire::{Limiter, Permit};

/// Pieces of one read on the storage threads.
const MAX_UNDER_WAY: usize = 8;
/// Bytes of pieces that are being restored or wait for it, as they came; all reads of one source together.
const MAX_BACKLOG_BYTES: u64 = 64 << 20;
/// The least that a piece counts there.
const LEAST_PIECE_BYTES: u64 = 1 << 10;

/// Limit of the compressed pieces that wait or are being restored, for all reads of one source. Clones are the same limit.
#[derive(Clone, Debug)]
pub(crate) struct DecompressionLimit(Limiter);

impl Default for DecompressionLimit {
    fn default() -> Self {
        Self(Limiter::new(MAX_BACKLOG_BYTES))
    }
}

struct Piece {
    work: Box<dyn FnOnce() -> Result<()> + Send>,
    permit: Permit,
}

/// Pieces of one read that are being restored, for whoever brings them.
pub(crate) struct Restoring {
    priority: Priority,
    limit: DecompressionLimit,
    state: Mutex<State>,
    ended: Notify,
}

struct State {
    /// Only while as many as may be are under way.
    waiting: VecDeque<Piece>,
    under_way: usize,
    /// First error of all pieces so far; `Ok` if none has failed.
    result: Result<()>,
}

impl Restoring {
    pub(crate) fn new(priority: Priority, limit: &DecompressionLimit) -> (Arc<Self>, Restored) {
        let state = Mutex::new(State { waiting: VecDeque::new(), under_way: 0, result: Ok(()) });
        let this = Arc::new(Self { priority, limit: limit.clone(), state, ended: Notify::new() });
        (Arc::clone(&this), Restored(this))
    }

    /// Does `work` for a piece that came as so many bytes. It is dropped before its end is told.
    ///
    /// # Errors
    /// The work's, where it was done at once.
    pub(crate) fn restore(
        self: &Arc<Self>,
        carried_bytes: usize,
        work: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let Some(permit) = self.limit.0.try_acquire((carried_bytes as u64).max(LEAST_PIECE_BYTES)) else {
            return work();
        };
        let piece = Piece { work: Box::new(work), permit };
        let mut state = self.state.lock();
        if state.under_way >= MAX_UNDER_WAY {
            state.waiting.push_back(piece);
            return Ok(());
        }
        state.under_way += 1;
        drop(state);
        self.begin(piece);
        Ok(())
    }

    fn begin(self: &Arc<Self>, Piece { work, permit }: Piece) {
        let panicked = Err(Error::internal("expected a piece to be restored, found a panic"));
        let ending = Ending { restoring: Arc::clone(self), result: panicked };
        store::soon(self.priority, move || {
            let mut ending = ending;
            ending.result = work();
            drop(permit);
        });
    }
}

/// For whoever waits until all pieces are restored. Dropping it leaves those in line as they are.
pub(crate) struct Restored(Arc<Restoring>);

impl Restored {
    /// Waits until none is under way.
    ///
    /// # Errors
    /// The error of the first one that failed.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn ended(&self) -> Result<()> {
        loop {
            let ended = self.0.ended.notified();
            {
                let state = self.0.state.lock();
                if state.under_way == 0 {
                    return state.result.clone();
                }
            }
            ended.await;
        }
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        let unwanted = std::mem::take(&mut self.0.state.lock().waiting);
        drop(unwanted);
    }
}

/// Tells of the end of a piece, also after a panic, and lets the next one begin.
struct Ending {
    restoring: Arc<Restoring>,
    result: Result<()>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let mut state = self.restoring.state.lock();
        if state.result.is_ok() {
            state.result = std::mem::replace(&mut self.result, Ok(()));
        }
        // After one that cannot be restored the others are of no use.
        let unwanted =
            if state.result.is_err() { std::mem::take(&mut state.waiting) } else { VecDeque::new() };
        let next = state.waiting.pop_front();
        if next.is_none() {
            state.under_way -= 1;
        }
        drop(state);
        drop(unwanted);
        match next {
            Some(piece) => self.restoring.begin(piece),
            None => self.restoring.ended.notify_waiters(),
        }
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
    /// Bytes of reads and blocks, as they are used (restored).
    pub data_bytes: u64,
    /// Bytes of the same reads and blocks, as they came over the network.
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::{Sender, channel};
    use std::thread;

    use super::*;

    /// Work that waits until the sender is gone, and never on the thread that brings it.
    struct Works {
        closed: Arc<Mutex<std::sync::mpsc::Receiver<()>>>,
        done: Arc<AtomicUsize>,
    }

    impl Works {
        fn new() -> (Sender<()>, Self) {
            let (open, closed) = channel();
            (open, Self { closed: Arc::new(Mutex::new(closed)), done: Arc::default() })
        }

        fn one(&self) -> impl FnOnce() -> Result<()> + Send + 'static {
            let (closed, done, brings) =
                (Arc::clone(&self.closed), Arc::clone(&self.done), thread::current().id());
            move || {
                if thread::current().id() == brings {
                    return Err(Error::internal("restored by whoever brought it"));
                }
                closed.lock().recv().unwrap_err();
                done.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
        }

        fn done(&self) -> usize {
            self.done.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn whoever_brings_pieces_waits_for_none_of_them_however_many_or_small() {
        let limit = DecompressionLimit::default();
        let (restoring, restored) = Restoring::new(Priority::NORMAL, &limit);
        let (open, works) = Works::new();
        for carried_bytes in [10, 1 << 20].into_iter().cycle().take(5 * MAX_UNDER_WAY) {
            restoring.restore(carried_bytes, works.one()).unwrap();
        }
        assert_eq!(works.done(), 0);
        drop(open);
        restored.ended().await.unwrap();
        assert_eq!((works.done(), limit.0.used()), (5 * MAX_UNDER_WAY, 0));
    }

    #[tokio::test]
    async fn what_is_in_line_is_bounded_for_all_reads_together() {
        let limit = DecompressionLimit::default();
        let (first, first_restored) = Restoring::new(Priority::NORMAL, &limit);
        let (second, second_restored) = Restoring::new(Priority::NORMAL, &limit);
        let (open, works) = Works::new();
        let most = usize::try_from(MAX_BACKLOG_BYTES).unwrap();
        first.restore(most - 10, works.one()).unwrap();
        assert!(second.restore(11, works.one()).is_err(), "there is no room: it is done here");
        drop(open);
        first_restored.ended().await.unwrap();
        second_restored.ended().await.unwrap();
        assert_eq!((works.done(), limit.0.used()), (1, 0));
    }

    #[tokio::test]
    async fn pieces_behind_one_that_fails_and_those_nobody_waits_for_are_left() {
        let limit = DecompressionLimit::default();
        let (restoring, restored) = Restoring::new(Priority::NORMAL, &limit);
        let (open, works) = Works::new();
        let (fail, failing) = channel::<()>();
        let broken = move || {
            failing.recv().unwrap_err();
            Err(Error::corrupt("not what it is said to be"))
        };
        restoring.restore(1, broken).unwrap();
        (0..5 * MAX_UNDER_WAY).for_each(|_| restoring.restore(1, works.one()).unwrap());
        drop(fail);
        while restoring.state.lock().result.is_ok() {
            tokio::task::yield_now().await;
        }
        drop(open);
        assert!(restored.ended().await.is_err());
        assert_eq!(works.done(), MAX_UNDER_WAY - 1, "those that were under way with it");
        assert_eq!(limit.0.used(), 0);

        let (restoring, restored) = Restoring::new(Priority::NORMAL, &limit);
        let (open, works) = Works::new();
        (0..5 * MAX_UNDER_WAY).for_each(|_| restoring.restore(1, works.one()).unwrap());
        drop(restored);
        drop(open);
        Restored(restoring).ended().await.unwrap();
        assert_eq!(works.done(), MAX_UNDER_WAY);
    }
}
