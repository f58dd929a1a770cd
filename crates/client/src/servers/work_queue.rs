//! Queue in which work waits for a server: the policy ([`Scheduler`]), with a clock, and channels that wake waiting
//! tasks.

use std::collections::HashMap;
use std::sync::Arc;

use array::{Error, Priority};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Duration, Instant};

use super::scheduler::{Assignment, HedgeDecision, QueueRank, Scheduler, ServerSet, WorkRequest};

/// Error: no available server can do the work.
#[derive(Debug)]
pub(super) struct NoServer;

struct WorkQueueState {
    scheduler: Scheduler,
    /// Channels to the waiting tasks, by ticket; each is used once.
    waiting: HashMap<u64, oneshot::Sender<Option<Assignment>>>,
}

/// Assigns work to servers.
pub(super) struct WorkQueue {
    state: Mutex<WorkQueueState>,
    opened_at: Instant,
    /// Notified when responses may have become late: their server fell silent, or another one is idle.
    recheck: Notify,
}

impl WorkQueue {
    pub(super) fn new(servers: usize) -> Self {
        let state = WorkQueueState { scheduler: Scheduler::new(servers), waiting: HashMap::new() };
        Self { state: Mutex::new(state), opened_at: Instant::now(), recheck: Notify::new() }
    }

    fn now(&self) -> Duration {
        self.opened_at.elapsed()
    }

    /// Reads or changes the state of the servers, and then assigns waiting work.
    pub(super) fn with<T>(&self, f: impl FnOnce(&mut Scheduler) -> T) -> T {
        let mut state = self.state.lock();
        let out = f(&mut state.scheduler);
        self.serve(&mut state);
        out
    }

    fn serve(&self, state: &mut WorkQueueState) {
        // A task that was dropped returns its assignment, which may allow another one.
        loop {
            let decided = state.scheduler.assign(self.now());
            if decided.is_empty() {
                return;
            }
            for (ticket, assigned) in decided {
                let Some(waiter) = state.waiting.remove(&ticket) else { continue };
                if let Err(Some(unwanted)) = waiter.send(assigned) {
                    state.scheduler.release(&unwanted);
                }
            }
        }
    }

    /// Queues a work item.
    pub(super) fn ask(self: &Arc<Self>, need: WorkRequest) -> WorkTicket {
        let mut state = self.state.lock();
        let (sender, decided) = oneshot::channel();
        let rank = if state.scheduler.can_be_done(&need) {
            let rank = state.scheduler.ask(need);
            state.waiting.insert(rank.1, sender);
            Some(rank)
        } else {
            // The channel is closed: no server.
            None
        };
        self.serve(&mut state);
        WorkTicket { queue: Arc::clone(self), rank, decided }
    }
}

/// A place in the queue.
pub(super) struct WorkTicket {
    queue: Arc<WorkQueue>,
    /// Rank in the queue; `None` if there is no server to wait for.
    rank: Option<QueueRank>,
    decided: oneshot::Receiver<Option<Assignment>>,
}

impl WorkTicket {
    /// Waits for a server.
    ///
    /// # Errors
    /// [`NoServer`] if no server is left that could do the work.
    ///
    /// # Cancel safety
    /// Safe until it has returned.
    pub(super) async fn granted(&mut self) -> Result<WorkPermit, NoServer> {
        match (&mut self.decided).await {
            Ok(Some(assigned)) => {
                self.rank = None;
                Ok(WorkPermit { queue: Arc::clone(&self.queue), assigned, is_settled: false })
            }
            Ok(None) | Err(_) => Err(NoServer),
        }
    }

    /// Changes the priority.
    pub(super) fn adjust(&mut self, priority: Priority) {
        self.rank = self.rank.map(|rank| self.queue.with(|scheduler| scheduler.adjust(rank, priority)));
    }
}

impl Drop for WorkTicket {
    fn drop(&mut self) {
        let Some(rank) = self.rank else { return };
        let mut state = self.queue.state.lock();
        state.scheduler.withdraw(rank);
        state.waiting.remove(&rank.1);
        if let Ok(Some(assigned)) = self.decided.try_recv() {
            state.scheduler.release(&assigned);
        }
        self.queue.serve(&mut state);
    }
}

/// Permission for one work item at a server, until it is settled or dropped.
pub(super) struct WorkPermit {
    queue: Arc<WorkQueue>,
    assigned: Assignment,
    is_settled: bool,
}

impl WorkPermit {
    /// Number of the server.
    pub(super) fn member(&self) -> usize {
        self.assigned.member
    }

    /// Number of bytes assigned.
    pub(super) fn bytes(&self) -> u64 {
        self.assigned.bytes
    }

    /// Corrects the number of bytes.
    pub(super) fn resize(&mut self, bytes: u64) {
        self.queue.with(|scheduler| scheduler.resize(&mut self.assigned, bytes));
    }

    /// Records that the item was answered.
    pub(super) fn finished(mut self) {
        self.is_settled = true;
        let now = self.queue.now();
        let has_idle_server = self.queue.with(|scheduler| {
            scheduler.finished(&self.assigned, now);
            scheduler.has_idle_server()
        });
        if has_idle_server {
            self.queue.recheck.notify_waiters();
        }
    }

    /// Records that the item failed. Returns true if the server has to be checked from now on.
    pub(super) fn failed(mut self, error: &Error) -> bool {
        self.is_settled = true;
        self.queue.with(|scheduler| scheduler.failed(&self.assigned, error))
    }

    /// Returns a timer of this item while it is in flight.
    pub(super) fn watch(&self) -> LateTimer {
        LateTimer { queue: Arc::clone(&self.queue), assigned: self.assigned }
    }
}

impl Drop for WorkPermit {
    fn drop(&mut self) {
        if !self.is_settled {
            self.queue.with(|scheduler| scheduler.release(&self.assigned));
        }
    }
}

/// Timer of late responses.
pub(super) struct LateTimer {
    queue: Arc<WorkQueue>,
    assigned: Assignment,
}

/// Action on a late response.
pub(super) enum LateAction {
    /// Send a second request to another server.
    AskAnother,
    /// Send a second request to another server, and check this one, which has fallen silent.
    Silent(usize),
}

impl LateTimer {
    /// Waits until the response is late. `may`: servers for a second request; `idle`: those of them that may be used
    /// only because they are idle.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn late(&self, may: ServerSet, idle: ServerSet) -> LateAction {
        loop {
            let recheck = self.queue.recheck.notified();
            let now = self.queue.now();
            match self.queue.with(|scheduler| scheduler.late(&self.assigned, may, idle, now)) {
                HedgeDecision::NotYet(again) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(self.queue.opened_at + again) => {}
                        () = recheck => {}
                    }
                }
                HedgeDecision::AskAnother => return LateAction::AskAnother,
                HedgeDecision::Silent => {
                    self.queue.recheck.notify_waiters();
                    return LateAction::Silent(self.assigned.member);
                }
            }
        }
    }
}
