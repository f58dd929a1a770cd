//! Wakes tasks at times that matter to a tenth of a millisecond. One thread for the whole process: the runtime's own
//! timers tick once a millisecond, and a paced connection needs the moments between.

use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Instant;

/// One task to be woken.
struct Entry {
    at: Instant,
    waker: Waker,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// The heap's largest is the earliest.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.at.cmp(&self.at)
    }
}

#[derive(Default)]
struct Alarm {
    entries: Mutex<BinaryHeap<Entry>>,
    changed: Condvar,
}

/// Wakes `waker` at `at`. A connection has at most one entry that is not due yet, so the heap stays as small as there
/// are connections.
pub(super) fn wake_at(at: Instant, waker: Waker) {
    static ALARM: OnceLock<Alarm> = OnceLock::new();
    static THREAD: OnceLock<bool> = OnceLock::new();
    let alarm = ALARM.get_or_init(Alarm::default);
    let has_thread = THREAD.get_or_init(|| {
        let thread = std::thread::Builder::new().name("corridor-pace".into());
        thread.spawn(|| ALARM.get_or_init(Alarm::default).run()).is_ok()
    });
    if !has_thread {
        // Without a thread the task spins until its time: slow, but it sends.
        return waker.wake();
    }
    let mut entries = alarm.entries.lock().unwrap_or_else(PoisonError::into_inner);
    let is_first = entries.peek().is_none_or(|first| at < first.at);
    entries.push(Entry { at, waker });
    drop(entries);
    if is_first {
        alarm.changed.notify_one();
    }
}

impl Alarm {
    fn run(&self) {
        // The default lets the system be 50 us late, half of what ten packets take at 1 Gb/s.
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).unwrap_or_default();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            #[expect(clippy::disallowed_methods, reason = "this thread is the clock")]
            let now = Instant::now();
            while entries.peek().is_some_and(|first| first.at <= now)
                && let Some(entry) = entries.pop()
            {
                entry.waker.wake();
            }
            entries = match entries.peek().map(|first| first.at) {
                None => self.changed.wait(entries).unwrap_or_else(PoisonError::into_inner),
                Some(at) => {
                    let waited = self.changed.wait_timeout(entries, at.saturating_duration_since(now));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}
