//! The thread that places blocks: it steps back behind those that draw where cores are scarce.
//!
//! One job at a time; whoever brings one waits for it, so nothing queues here. What the jobs do is said in `feed/mod.rs`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

/// How far the thread steps back, as `nice(2)` counts: one that draws gets about nine times as much of a core that both want. Less
/// than threads that read (`store::lower_priority`), of which there are several: what they bring is to take its place.
#[cfg(target_os = "linux")]
const NICE_STEPS: i32 = 10;

type PlacerJob = Box<dyn FnOnce() + Send>;

/// Thread that places blocks, one job at a time. It ends when this is dropped.
pub(crate) struct Placer {
    /// `None` where the system gives no thread: whoever brings a job does it then.
    jobs: Option<SyncSender<PlacerJob>>,
    worked: Mutex<JobTime>,
}

/// Wall time of jobs.
#[derive(Default)]
struct JobTime {
    /// Wall time of the jobs that are done.
    done: Duration,
    /// When the one under way began.
    since: Option<Instant>,
}

impl Placer {
    /// Starts the thread.
    pub(crate) fn new() -> Self {
        let (jobs, waiting) = sync_channel::<PlacerJob>(0);
        let run = move || {
            lower_priority();
            for job in waiting {
                // Its asker sees that no answer comes.
                if catch_unwind(AssertUnwindSafe(job)).is_err() {
                    tracing::error!("placing blocks panicked");
                }
            }
        };
        let started = thread::Builder::new().name("corridor-place".into()).spawn(run);
        if let Err(error) = &started {
            tracing::warn!(%error, "expected a thread that places blocks, found none: others do it");
        }
        Self { jobs: started.is_ok().then_some(jobs), worked: Mutex::default() }
    }

    /// Does `work` on the thread; blocks the caller's meanwhile. `None` when it panicked.
    pub(crate) fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        self.with(|worked| worked.since = Some(Instant::now()));
        let (answer, answered) = sync_channel(1);
        let job: PlacerJob = Box::new(move || {
            // Whoever does not wait any more needs no answer.
            answer.send(work()).unwrap_or_default();
        });
        match &self.jobs {
            None => job(),
            Some(jobs) => jobs.send(job).unwrap_or_default(),
        }
        let outcome = answered.recv().ok();
        self.with(|worked| {
            worked.done = worked.total(Instant::now());
            worked.since = None;
        });
        outcome
    }

    /// Time that jobs have taken so far, with that of the one under way.
    pub(crate) fn time_worked(&self) -> Duration {
        self.with(|worked| worked.total(Instant::now()))
    }

    fn with<T>(&self, f: impl FnOnce(&mut JobTime) -> T) -> T {
        f(&mut self.worked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl JobTime {
    fn total(&self, now: Instant) -> Duration {
        self.done + self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

/// Lowers the weight of this thread.
#[cfg(target_os = "linux")]
fn lower_priority() {
    // Linux takes "this process" for the thread that asks, unlike POSIX.
    let lowered = rustix::process::getpriority_process(None)
        .and_then(|own| rustix::process::setpriority_process(None, own + NICE_STEPS));
    if let Err(error) = lowered {
        tracing::debug!(%error, "the thread that places blocks keeps its weight");
    }
}

#[cfg(not(target_os = "linux"))]
fn lower_priority() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_done_on_one_thread_and_a_panic_costs_one_answer() {
        let placer = Placer::new();
        let name = || thread::current().name().map(str::to_owned);
        assert_eq!(placer.run(name), Some(Some("corridor-place".to_owned())));
        assert_eq!(placer.run(move || assert!(name().is_none(), "on purpose")), None);
        assert_eq!(placer.run(|| 7), Some(7));
    }
}
