//! Desk at which work waits for a server: the policy ([`Scheduler`]), with a clock and channels that wake those who
//! wait.

use std::collections::HashMap;
use std::sync::Arc;

use array::{Error, Priority};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Duration, Instant};

use super::scheduler::{Assignment, HedgeDecision, QueueRank, Scheduler, ServerSet, WorkRequest};

/// Nobody is there who could do it.
#[derive(Debug)]
pub(super) struct NoServer;

struct WorkQueueState {
    scheduler: Scheduler,
    /// Channels to those who wait, by ticket; each is answered once.
    waiting: HashMap<u64, oneshot::Sender<Option<Assignment>>>,
}

/// Hands out work.
pub(super) struct WorkQueue {
    state: Mutex<WorkQueueState>,
    opened_at: Instant,
    /// Some answers may be late now that were not: their server fell silent, or another one is idle.
    look_again: Notify,
}

impl WorkQueue {
    pub(super) fn new(servers: usize) -> Self {
        let state = WorkQueueState { scheduler: Scheduler::new(servers), waiting: HashMap::new() };
        Self { state: Mutex::new(state), opened_at: Instant::now(), look_again: Notify::new() }
    }

    fn now(&self) -> Duration {
        self.opened_at.elapsed()
    }

    /// Looks at, or changes, what is known of the servers; then whoever can be served is.
    pub(super) fn with<T>(&self, f: impl FnOnce(&mut Scheduler) -> T) -> T {
        let mut state = self.state.lock();
        let out = f(&mut state.scheduler);
        self.serve(&mut state);
        out
    }

    fn serve(&self, state: &mut WorkQueueState) {
        // Whoever gave up meanwhile gives its piece back, which may let another one go.
        loop {
            let decided = state.scheduler.assign(self.now());
            if decided.is_empty() {
                return;
            }
            for (ticket, assigned) in decided {
                let Some(waiter) = state.waiting.remove(&ticket) else { continue };
                if let Err(Some(unwanted)) = waiter.send(assigned) {
                    state.scheduler.given_back(&unwanted);
                }
            }
        }
    }

    /// Waits in line.
    pub(super) fn ask(self: &Arc<Self>, need: WorkRequest) -> WorkTicket {
        let mut state = self.state.lock();
        let (sender, decided) = oneshot::channel();
        let rank = if state.scheduler.is_hope_for(&need) {
            let rank = state.scheduler.ask(need);
            state.waiting.insert(rank.1, sender);
            Some(rank)
        } else {
            // The channel is closed: nobody.
            None
        };
        self.serve(&mut state);
        WorkTicket { queue: Arc::clone(self), rank, decided }
    }
}

/// A place in line.
pub(super) struct WorkTicket {
    queue: Arc<WorkQueue>,
    /// None where there is nobody to wait for.
    rank: Option<QueueRank>,
    decided: oneshot::Receiver<Option<Assignment>>,
}

impl WorkTicket {
    /// Waits for a server.
    ///
    /// # Errors
    /// When none is left that could do it.
    ///
    /// # Cancel safety
    /// Safe until it has answered.
    pub(super) async fn granted(&mut self) -> Result<WorkPermit, NoServer> {
        match (&mut self.decided).await {
            Ok(Some(assigned)) => {
                self.rank = None;
                Ok(WorkPermit { queue: Arc::clone(&self.queue), assigned, is_settled: false })
            }
            Ok(None) | Err(_) => Err(NoServer),
        }
    }

    /// It matters more or less now.
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
            state.scheduler.given_back(&assigned);
        }
        self.queue.serve(&mut state);
    }
}

/// A piece of work at a server, until it is settled or dropped.
pub(super) struct WorkPermit {
    queue: Arc<WorkQueue>,
    assigned: Assignment,
    is_settled: bool,
}

impl WorkPermit {
    /// Number of the server that does it.
    pub(super) fn member(&self) -> usize {
        self.assigned.member
    }

    /// How much of it.
    pub(super) fn bytes(&self) -> u64 {
        self.assigned.bytes
    }

    /// It has so many bytes.
    pub(super) fn resize(&mut self, bytes: u64) {
        self.queue.with(|scheduler| scheduler.resize(&mut self.assigned, bytes));
    }

    /// It was answered.
    pub(super) fn finished(mut self) {
        self.is_settled = true;
        let now = self.queue.now();
        let is_anybody_idle = self.queue.with(|scheduler| {
            scheduler.finished(&self.assigned, now);
            scheduler.is_anybody_idle()
        });
        if is_anybody_idle {
            self.queue.look_again.notify_waiters();
        }
    }

    /// It was answered by an error. True when the server is to be looked after from now on.
    pub(super) fn failed(mut self, error: &Error) -> bool {
        self.is_settled = true;
        self.queue.with(|scheduler| scheduler.failed(&self.assigned, error))
    }

    /// A clock to ask about it while it is under way.
    pub(super) fn watch(&self) -> LateTimer {
        LateTimer { queue: Arc::clone(&self.queue), assigned: self.assigned }
    }
}

impl Drop for WorkPermit {
    fn drop(&mut self) {
        if !self.is_settled {
            self.queue.with(|scheduler| scheduler.given_back(&self.assigned));
        }
    }
}

/// Tells when an answer is late.
pub(super) struct LateTimer {
    queue: Arc<WorkQueue>,
    assigned: Assignment,
}

/// Action to take on a late answer.
pub(super) enum LateAction {
    /// Ask another server too.
    AskAnother,
    /// Ask another server too, and look after this one, which has fallen silent.
    Silent(usize),
}

impl LateTimer {
    /// Waits until the answer is late; `may`: who else could be asked; `idle`: who of them just because they are idle.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn late(&self, may: ServerSet, idle: ServerSet) -> LateAction {
        loop {
            let look_again = self.queue.look_again.notified();
            let now = self.queue.now();
            match self.queue.with(|scheduler| scheduler.late(&self.assigned, may, idle, now)) {
                HedgeDecision::NotYet(again) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(self.queue.opened_at + again) => {}
                        () = look_again => {}
                    }
                }
                HedgeDecision::AskAnother => return LateAction::AskAnother,
                HedgeDecision::Silent => {
                    self.queue.look_again.notify_waiters();
                    return LateAction::Silent(self.assigned.member);
                }
            }
        }
    }
}
