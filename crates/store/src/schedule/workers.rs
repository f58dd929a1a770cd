//! Storage threads, which wait for disks; shared by every source of the process.
//!
//! There is one queue; a free thread takes the most urgent job *at that moment* (urgencies are read again at each pick, so an adjusted
//! want moves) and drops cancelled ones. A caller with a job waits for a permit of the queue, in order of arrival, so that one with
//! many jobs does not starve the others. Every queued job can run: no job holds a permit while it waits for something else. This module
//! does not know what a job reads.

use std::cmp::Reverse;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

use array::{Priority, Urgency};
use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Format;

/// Most jobs in the queue of storage threads; a pick scans all of them, about 0.25 ms at this length.
pub const MAX_QUEUED_JOBS: usize = 16_384;
/// Fewest storage threads: reads of a cold disk wait and do not compute.
const MIN_THREADS: usize = 8;
/// Most storage threads.
const MAX_THREADS: usize = 64;
/// Storage threads of formats that wait for other sources: few, since most of these formats hold one lock while they read.
const WAITING_THREADS: usize = 4;
/// Nice value (`nice(2)`) of storage threads that step back: if cores are scarce, one gets a thirtieth of the time of a drawing thread.
const STEPS_BACK: i32 = 15;

static STEP_BACK: AtomicBool = AtomicBool::new(false);

/// Lowers the priority of storage threads below the other threads of this process if cores are scarce: for processes that draw, since
/// the current picture matters more than the next one. Running threads are not changed: call it before data are opened. It has no
/// effect on systems without priorities of threads.
pub fn step_back() {
    STEP_BACK.store(true, Ordering::Relaxed);
}

/// Lowers this thread's weight.
#[cfg(target_os = "linux")]
fn lower_own_weight() {
    // Linux takes "this process" for the thread that asks, unlike POSIX.
    let lowered = rustix::process::getpriority_process(None)
        .and_then(|own| rustix::process::setpriority_process(None, own + STEPS_BACK));
    if let Err(error) = lowered {
        tracing::debug!(%error, "a storage thread keeps its weight");
    }
}

#[cfg(not(target_os = "linux"))]
fn lower_own_weight() {}

/// Blocking work of the storage threads.
pub(crate) trait WorkerJob: Send {
    /// Current urgency.
    fn urgency(&self) -> Urgency;
    /// Whether no caller waits for it any more.
    fn is_withdrawn(&self) -> bool;
    /// Does the work and delivers the result. Drops the permit of the queue at once, unless the rest of the work needs it again.
    fn run(self: Box<Self>, permit: QueuePermit);
}

/// Permit of a job in the queue; `None` for work that is bounded elsewhere.
pub(crate) type QueuePermit = Option<OwnedSemaphorePermit>;

struct QueuedJob {
    /// Order of arrival.
    number: u64,
    job: Box<dyn WorkerJob>,
    permit: QueuePermit,
}

/// Orders by urgency, the most urgent last: highest priority, then earliest deadline.
pub(crate) fn rank(urgency: Urgency) -> (Priority, bool, Reverse<Option<Instant>>) {
    // `None` sorts before every deadline; it must come last, so a present one wins first.
    (urgency.priority, urgency.deadline.is_some(), Reverse(urgency.deadline))
}

#[derive(Default)]
struct JobQueue {
    waiting: Vec<QueuedJob>,
    arrivals: u64,
}

impl JobQueue {
    /// The most urgent job; of several, the first that came.
    fn pick(&mut self) -> Option<(Box<dyn WorkerJob>, QueuePermit)> {
        self.waiting.retain(|w| !w.job.is_withdrawn());
        let waiting = self.waiting.iter().enumerate();
        let (index, _) = waiting.max_by_key(|(_, w)| (rank(w.job.urgency()), Reverse(w.number)))?;
        let QueuedJob { job, permit, .. } = self.waiting.swap_remove(index);
        Some((job, permit))
    }
}

/// Pool of storage threads.
#[derive(Clone)]
pub(crate) struct Workers(Arc<WorkersInner>);

struct WorkersInner {
    queue: Mutex<JobQueue>,
    changed: Condvar,
    permits: Arc<Semaphore>,
}

impl Workers {
    /// The pool of this process; its threads start at the first call.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Workers> = OnceLock::new();
        SHARED.get_or_init(|| {
            let cores = thread::available_parallelism().map_or(1, NonZero::get);
            Self::start((cores * 2).clamp(MIN_THREADS, MAX_THREADS))
        })
    }

    /// The pool for reads of a format: that of the process, or the one for formats that wait for other sources.
    pub(crate) fn of(format: &dyn Format) -> &'static Self {
        static WAITING: OnceLock<Workers> = OnceLock::new();
        if format.waits_for_others() {
            WAITING.get_or_init(|| Self::start(WAITING_THREADS))
        } else {
            Self::shared()
        }
    }

    pub(crate) fn start(threads: usize) -> Self {
        let workers = Self(Arc::new(WorkersInner {
            queue: Mutex::default(),
            changed: Condvar::new(),
            permits: Arc::new(Semaphore::new(MAX_QUEUED_JOBS)),
        }));
        for number in 0..threads {
            let own = workers.clone();
            let name = format!("corridor-store-{number}");
            let run = move || {
                if STEP_BACK.load(Ordering::Relaxed) {
                    lower_own_weight();
                }
                own.work();
            };
            if let Err(error) = thread::Builder::new().name(name).spawn(run) {
                tracing::warn!(%error, started = number, "expected {threads} storage threads, found fewer");
                break;
            }
        }
        workers
    }

    /// Waits for a permit of the queue.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the line of waiters.
    pub(crate) async fn permit(&self) -> QueuePermit {
        take(&self.0.permits, 1).await
    }

    /// Queues a job.
    pub(crate) fn submit(&self, job: Box<dyn WorkerJob>, permit: QueuePermit) {
        let mut queue = self.0.queue.lock();
        queue.arrivals += 1;
        let number = queue.arrivals;
        queue.waiting.push(QueuedJob { number, job, permit });
        drop(queue);
        self.0.changed.notify_one();
    }

    fn work(&self) {
        let mut queue = self.0.queue.lock();
        loop {
            let Some((job, permit)) = queue.pick() else {
                self.0.changed.wait(&mut queue);
                continue;
            };
            drop(queue);
            // A panic is a bug in a format; it must cost one answer, not the thread. The job's
            // channel closes as it unwinds, which its caller sees.
            if catch_unwind(AssertUnwindSafe(|| job.run(permit))).is_err() {
                tracing::error!("a storage job panicked; its caller gets no answer from it");
            }
            queue = self.0.queue.lock();
        }
    }
}

/// Waits for `units`, at once if they are free. `None` does not occur: no semaphore is closed.
pub(crate) async fn take(from: &Arc<Semaphore>, units: u32) -> Option<OwnedSemaphorePermit> {
    // Without the task budget of tokio, which would delay the first of many jobs.
    match Arc::clone(from).try_acquire_many_owned(units) {
        Ok(taken) => Some(taken),
        Err(_) => Arc::clone(from).acquire_many_owned(units).await.ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures::executor::block_on;
    use futures::{FutureExt, poll};

    use super::*;

    struct Note {
        name: &'static str,
        weight: f32,
        withdrawn: bool,
        done: mpsc::Sender<&'static str>,
    }

    impl WorkerJob for Note {
        fn urgency(&self) -> Urgency {
            Urgency::of(Priority::NORMAL.weighted(self.weight))
        }
        fn is_withdrawn(&self) -> bool {
            self.withdrawn
        }
        fn run(self: Box<Self>, _place: QueuePermit) {
            assert!(self.name != "panic", "on purpose");
            self.done.send(self.name).unwrap();
        }
    }

    fn notes(done: &mpsc::Sender<&'static str>, jobs: &[(&'static str, f32)]) -> Vec<Box<dyn WorkerJob>> {
        let note = |&(name, weight): &(&'static str, f32)| {
            Box::new(Note { name, weight, withdrawn: name == "withdrawn", done: done.clone() })
                as Box<dyn WorkerJob>
        };
        jobs.iter().map(note).collect()
    }

    #[test]
    fn takes_the_most_urgent_first_and_drops_the_withdrawn() {
        let (done, order) = mpsc::channel();
        let mut queue = JobQueue::default();
        let jobs = notes(&done, &[("b", 1.0), ("withdrawn", 9.0), ("a", 2.0), ("c", 1.0)]);
        for (number, job) in (0..).zip(jobs) {
            queue.waiting.push(QueuedJob { number, job, permit: None });
        }
        while let Some((job, permit)) = queue.pick() {
            job.run(permit);
        }
        drop(done);
        assert_eq!(order.into_iter().collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_steps_back_leaves_others_as_they_were() {
        let own = || rustix::process::getpriority_process(None).unwrap();
        let before = own();
        let lower = move || {
            lower_own_weight();
            own()
        };
        let lowered = thread::Builder::new().name("lowered".into()).spawn(lower).unwrap();
        assert_eq!(lowered.join().unwrap(), (before + STEPS_BACK).min(19));
        assert_eq!(own(), before);
    }

    #[test]
    fn outlives_a_panicking_job() {
        let workers = Workers::start(1);
        let (done, order) = mpsc::channel();
        for job in notes(&done, &[("panic", 2.0), ("after", 1.0)]) {
            workers.submit(job, block_on(workers.permit()));
        }
        assert_eq!(order.recv().unwrap(), "after");
    }

    #[test]
    fn whoever_comes_to_a_full_queue_waits_for_a_place() {
        let workers = Workers::start(0);
        let (done, _order) = mpsc::channel();
        for job in notes(&done, &[("x", 0.0); MAX_QUEUED_JOBS]) {
            workers.submit(job, workers.permit().now_or_never().expect("there is a place"));
        }
        let mut first = Box::pin(workers.permit());
        let mut second = Box::pin(workers.permit());
        assert!(block_on(async { poll!(&mut first).is_pending() && poll!(&mut second).is_pending() }));
        drop(workers.0.queue.lock().pick());
        assert!(block_on(async { poll!(&mut second).is_pending() && poll!(&mut first).is_ready() }));
    }
}
