//! The threads that wait for disks, shared by every source of the process.
//!
//! One queue; a free thread takes the most urgent job *at that moment* (urgencies are read again at each
//! pick, so a want that was adjusted moves), skips jobs whose asker has no room for the result, and drops
//! those that were withdrawn. Nothing here knows what a job reads.

use std::cmp::Reverse;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread;

use array::{Error, Urgency};
use parking_lot::{Condvar, Mutex};

/// Most jobs that may wait; a pick looks at each, which takes about a quarter of a millisecond then.
pub const MAX_QUEUED_JOBS: usize = 16_384;
/// Fewest threads: reads of a cold disk wait, they do not compute.
const MIN_THREADS: usize = 8;
/// Most threads.
const MAX_THREADS: usize = 64;

/// One piece of blocking work.
pub(crate) trait Job: Send {
    /// How urgent it is now.
    fn urgency(&self) -> Urgency;
    /// True once nobody waits for it.
    fn is_withdrawn(&self) -> bool;
    /// True when its result would find room.
    fn has_room(&self) -> bool;
    /// Takes the room; called once, before `run`, while no other job is being picked.
    fn claim(&mut self);
    /// Does the work and delivers the result.
    fn run(self: Box<Self>);
    /// Delivers an error instead.
    fn refuse(self: Box<Self>, error: Error);
}

struct Waiting {
    /// Order of arrival.
    number: u64,
    job: Box<dyn Job>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    arrivals: u64,
}

impl Queue {
    /// The most urgent job that can start: highest priority, then earliest deadline, then first come.
    fn pick(&mut self) -> Option<Box<dyn Job>> {
        self.waiting.retain(|w| !w.job.is_withdrawn());
        let ready = self.waiting.iter().enumerate().filter(|(_, w)| w.job.has_room());
        let (index, _) = ready.max_by_key(|(_, w)| {
            let urgency = w.job.urgency();
            let deadline = urgency.deadline;
            // `None` sorts before every deadline; it must come last, so a present one wins first.
            (urgency.priority, deadline.is_some(), Reverse(deadline), Reverse(w.number))
        })?;
        let mut job = self.waiting.swap_remove(index).job;
        job.claim();
        Some(job)
    }
}

/// The pool.
#[derive(Clone)]
pub(crate) struct Workers(Arc<Inner>);

struct Inner {
    queue: Mutex<Queue>,
    changed: Condvar,
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

    fn start(threads: usize) -> Self {
        let workers = Self(Arc::new(Inner { queue: Mutex::default(), changed: Condvar::new() }));
        for number in 0..threads {
            let own = workers.clone();
            let name = format!("corridor-store-{number}");
            if let Err(error) = thread::Builder::new().name(name).spawn(move || own.work()) {
                tracing::warn!(%error, started = number, "expected {threads} storage threads, found fewer");
                break;
            }
        }
        workers
    }

    /// Queues jobs; gives back those beyond [`MAX_QUEUED_JOBS`].
    pub(crate) fn submit(&self, mut jobs: Vec<Box<dyn Job>>) -> Vec<Box<dyn Job>> {
        let mut queue = self.0.queue.lock();
        let room = MAX_QUEUED_JOBS.saturating_sub(queue.waiting.len());
        let refused = jobs.split_off(jobs.len().min(room));
        for job in jobs {
            queue.arrivals += 1;
            let number = queue.arrivals;
            queue.waiting.push(Waiting { number, job });
        }
        drop(queue);
        self.0.changed.notify_all();
        refused
    }

    /// Tells the threads that room was made.
    pub(crate) fn look_again(&self) {
        // Taking the lock orders this after a thread's decision to sleep.
        drop(self.0.queue.lock());
        self.0.changed.notify_one();
    }

    fn work(&self) {
        let mut queue = self.0.queue.lock();
        loop {
            let Some(job) = queue.pick() else {
                self.0.changed.wait(&mut queue);
                continue;
            };
            drop(queue);
            // A panic is a bug in a format; it must cost one answer, not the thread. The job's
            // channel closes as it unwinds, which its asker sees.
            if catch_unwind(AssertUnwindSafe(|| job.run())).is_err() {
                tracing::error!("a storage job panicked; its asker gets no answer from it");
            }
            queue = self.0.queue.lock();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use array::Priority;

    use super::*;

    struct Note {
        name: &'static str,
        weight: f32,
        withdrawn: bool,
        done: mpsc::Sender<&'static str>,
    }

    impl Job for Note {
        fn urgency(&self) -> Urgency {
            Urgency::of(Priority::NORMAL.weighted(self.weight))
        }
        fn is_withdrawn(&self) -> bool {
            self.withdrawn
        }
        fn has_room(&self) -> bool {
            true
        }
        fn claim(&mut self) {}
        fn run(self: Box<Self>) {
            assert!(self.name != "panic", "on purpose");
            self.done.send(self.name).unwrap();
        }
        fn refuse(self: Box<Self>, _error: Error) {}
    }

    fn notes(done: &mpsc::Sender<&'static str>, jobs: &[(&'static str, f32)]) -> Vec<Box<dyn Job>> {
        let note = |&(name, weight): &(&'static str, f32)| {
            Box::new(Note { name, weight, withdrawn: name == "withdrawn", done: done.clone() })
                as Box<dyn Job>
        };
        jobs.iter().map(note).collect()
    }

    #[test]
    fn takes_the_most_urgent_first_and_drops_the_withdrawn() {
        let (done, order) = mpsc::channel();
        let mut queue = Queue::default();
        let jobs = notes(&done, &[("b", 1.0), ("withdrawn", 9.0), ("a", 2.0), ("c", 1.0)]);
        for (number, job) in (0..).zip(jobs) {
            queue.waiting.push(Waiting { number, job });
        }
        while let Some(job) = queue.pick() {
            job.run();
        }
        drop(done);
        assert_eq!(order.into_iter().collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn outlives_a_panicking_job() {
        let workers = Workers::start(1);
        let (done, order) = mpsc::channel();
        assert!(workers.submit(notes(&done, &[("panic", 2.0), ("after", 1.0)])).is_empty());
        assert_eq!(order.recv().unwrap(), "after");
    }

    #[test]
    fn refuses_what_does_not_fit() {
        let workers = Workers::start(0);
        let (done, _order) = mpsc::channel();
        let refused = workers.submit(notes(&done, &vec![("x", 0.0); MAX_QUEUED_JOBS + 3]));
        assert_eq!(refused.len(), 3);
    }
}
