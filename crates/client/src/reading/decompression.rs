//! Decompresses (restores) received pieces on the storage threads, concurrently with the task that receives them: a few
//! pieces of each read at a time, while the others wait in a bounded queue. If the queue is full, the receiving task
//! decompresses the piece itself, and receives nothing meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use array::{Error, Priority, Result};
use parking_lot::Mutex;
use tokio::sync::Notify;
use wire::{Limiter, Permit};

/// Maximum number of pieces of one read that are decompressed concurrently.
const MAX_UNDER_WAY: usize = 8;
/// Maximum size of the compressed pieces in memory, in bytes, over all reads of one source.
const MAX_BACKLOG_BYTES: u64 = 64 << 20;
/// Minimum size that is counted for a piece, in bytes.
const LEAST_PIECE_BYTES: u64 = 1 << 10;

/// Limit of the compressed pieces in memory, for all reads of one source. Clones share it.
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

/// Compressed pieces of one read; the receiving task adds pieces.
pub(crate) struct DecompressionQueue {
    priority: Priority,
    limit: DecompressionLimit,
    state: Mutex<State>,
    ended: Notify,
}

struct State {
    /// Pieces that wait; empty unless [`MAX_UNDER_WAY`] pieces are being decompressed.
    waiting: VecDeque<Piece>,
    /// Number of pieces that are being decompressed.
    under_way: usize,
    /// First error of all pieces so far; `Ok` if none has failed.
    result: Result<()>,
}

impl DecompressionQueue {
    pub(crate) fn new(priority: Priority, limit: &DecompressionLimit) -> (Arc<Self>, PendingDecompression) {
        let state = Mutex::new(State { waiting: VecDeque::new(), under_way: 0, result: Ok(()) });
        let this = Arc::new(Self { priority, limit: limit.clone(), state, ended: Notify::new() });
        (Arc::clone(&this), PendingDecompression(this))
    }

    /// Runs `work`, which decompresses a piece of `carried_bytes`, on a storage thread. `work` is dropped before the
    /// read can end.
    ///
    /// # Errors
    /// The error of `work`, if the queue was full and it ran in the calling task.
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
        let panicked = Err(Error::internal("the decompression of a piece panicked"));
        let ending = PieceGuard { restoring: Arc::clone(self), result: panicked };
        store::soon(self.priority, move || {
            let mut ending = ending;
            ending.result = work();
            drop(permit);
        });
    }
}

/// Waits until all pieces of one read are decompressed. Dropping it discards the pieces that wait.
pub(crate) struct PendingDecompression(Arc<DecompressionQueue>);

impl PendingDecompression {
    /// Waits until all pieces that were added are decompressed.
    ///
    /// # Errors
    /// The error of the first piece that failed.
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

impl Drop for PendingDecompression {
    fn drop(&mut self) {
        let unwanted = std::mem::take(&mut self.0.state.lock().waiting);
        drop(unwanted);
    }
}

/// Records the end of a piece when it is dropped, also after a panic, and begins the next one.
struct PieceGuard {
    restoring: Arc<DecompressionQueue>,
    result: Result<()>,
}

impl Drop for PieceGuard {
    fn drop(&mut self) {
        let mut state = self.restoring.state.lock();
        if state.result.is_ok() {
            state.result = std::mem::replace(&mut self.result, Ok(()));
        }
        // After a failure the waiting pieces are not needed.
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

/// Counters of the bytes that a source has received, before and after decompression.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    data_bytes: AtomicU64,
    carried_bytes: AtomicU64,
}

/// Number of bytes of received data, and of the bytes transferred for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Bytes of reads and blocks after decompression.
    pub data_bytes: u64,
    /// Bytes of the same reads and blocks as transferred over the network.
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

    /// Work that waits until the sender is dropped, and fails in the thread that added it.
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
            let (closed, done, receiver) =
                (Arc::clone(&self.closed), Arc::clone(&self.done), thread::current().id());
            move || {
                if thread::current().id() == receiver {
                    return Err(Error::internal("decompressed in the receiving thread"));
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
    async fn the_receiving_task_does_not_wait_for_pieces() {
        let limit = DecompressionLimit::default();
        let (restoring, restored) = DecompressionQueue::new(Priority::NORMAL, &limit);
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
    async fn waiting_pieces_are_bounded_over_all_reads() {
        let limit = DecompressionLimit::default();
        let (first, first_restored) = DecompressionQueue::new(Priority::NORMAL, &limit);
        let (second, second_restored) = DecompressionQueue::new(Priority::NORMAL, &limit);
        let (open, works) = Works::new();
        let most = usize::try_from(MAX_BACKLOG_BYTES).unwrap();
        first.restore(most - 10, works.one()).unwrap();
        assert!(second.restore(11, works.one()).is_err(), "without room it runs in the calling thread");
        drop(open);
        first_restored.ended().await.unwrap();
        second_restored.ended().await.unwrap();
        assert_eq!((works.done(), limit.0.used()), (1, 0));
    }

    #[tokio::test]
    async fn waiting_pieces_are_discarded_after_a_failure_and_if_the_waiter_is_dropped() {
        let limit = DecompressionLimit::default();
        let (restoring, restored) = DecompressionQueue::new(Priority::NORMAL, &limit);
        let (open, works) = Works::new();
        let (fail, failing) = channel::<()>();
        let broken = move || {
            failing.recv().unwrap_err();
            Err(Error::corrupt("malformed"))
        };
        restoring.restore(1, broken).unwrap();
        (0..5 * MAX_UNDER_WAY).for_each(|_| restoring.restore(1, works.one()).unwrap());
        drop(fail);
        while restoring.state.lock().result.is_ok() {
            tokio::task::yield_now().await;
        }
        drop(open);
        assert!(restored.ended().await.is_err());
        assert_eq!(works.done(), MAX_UNDER_WAY - 1, "the pieces that had begun with it");
        assert_eq!(limit.0.used(), 0);

        let (restoring, restored) = DecompressionQueue::new(Priority::NORMAL, &limit);
        let (open, works) = Works::new();
        (0..5 * MAX_UNDER_WAY).for_each(|_| restoring.restore(1, works.one()).unwrap());
        drop(restored);
        drop(open);
        PendingDecompression(restoring).ended().await.unwrap();
        assert_eq!(works.done(), MAX_UNDER_WAY);
    }
}
