//! Thread that places blocks, at a lower scheduling priority than threads that draw.
//!
//! Runs one job at a time; each caller waits for its job, so nothing queues here. The jobs come from
//! `feed/mod.rs`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

use crate::tasks::lower_priority;

/// Increase of the thread's nice value: a drawing thread gets about nine times as much of a contended core.
/// It is smaller than that of the reading threads, which are several and depend on this one.
const NICE_STEPS: i32 = 10;

type PlacerJob = Box<dyn FnOnce() + Send>;

/// Thread that places blocks, one job at a time. It ends when this is dropped.
pub(crate) struct Placer {
    /// Channel to the thread; `None` if the system could not start one: the caller then runs its job.
    jobs: Option<SyncSender<PlacerJob>>,
    worked: Mutex<JobTime>,
}

/// Wall time of jobs.
#[derive(Default)]
struct JobTime {
    /// Total wall time of finished jobs.
    done: Duration,
    /// Start of the current job.
    since: Option<Instant>,
}

impl Placer {
    /// Starts the thread.
    pub(crate) fn new() -> Self {
        let (jobs, waiting) = sync_channel::<PlacerJob>(0);
        let run = move || {
            lower_priority(NICE_STEPS);
            for job in waiting {
                // The caller notices the missing answer.
                if catch_unwind(AssertUnwindSafe(job)).is_err() {
                    tracing::error!("placing blocks panicked");
                }
            }
        };
        let started = thread::Builder::new().name("corridor-place".into()).spawn(run);
        if let Err(error) = &started {
            tracing::warn!(%error, "cannot start a thread to place blocks; callers place them");
        }
        Self { jobs: started.is_ok().then_some(jobs), worked: Mutex::default() }
    }

    /// Runs `work` on the thread and waits for it. Returns `None` if it panicked.
    pub(crate) fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        self.with(|worked| worked.since = Some(Instant::now()));
        let (answer, answered) = sync_channel(1);
        let job: PlacerJob = Box::new(move || {
            // The caller may have stopped waiting.
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

    /// Returns the total time of jobs, including the current one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_run_on_one_thread_and_a_panic_loses_one_answer() {
        let placer = Placer::new();
        let name = || thread::current().name().map(str::to_owned);
        assert_eq!(placer.run(name), Some(Some("corridor-place".to_owned())));
        assert_eq!(placer.run(move || assert!(name().is_none(), "on purpose")), None);
        assert_eq!(placer.run(|| 7), Some(7));
    }
}
