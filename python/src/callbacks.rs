//! Threads that call Python callbacks. Their number is small, however many reads complete together: each waits for
//! Python's lock, and the thread that holds it calls all queued callbacks. Threads that transfer data never wait for
//! that lock.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;

use pyo3::prelude::*;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of callback threads. More than one, so that a callback that waits for another read does not block all
/// others.
const MAX_THREADS: usize = 4;
/// Maximum number of queued callbacks; further ones wait as tasks, which occupy no thread.
const MAX_WAITING: usize = 1024;

static CALLBACK_THREADS: LazyLock<CallbackThreads> = LazyLock::new(CallbackThreads::default);

type Callback = Box<dyn FnOnce(Python<'_>) + Send>;
/// Callback, and its place in the queue.
type QueuedCallback = (Callback, OwnedSemaphorePermit);

/// Queues `callback`, to be called with Python's lock on another thread; waits for a place in the queue.
///
/// # Cancel safety
/// A callback that is dropped before it is queued is never called.
pub(crate) async fn run(callback: impl FnOnce(Python<'_>) + Send + 'static) {
    // The semaphore is never closed.
    let Ok(place) = Arc::clone(&CALLBACK_THREADS.places).acquire_owned().await else { return };
    CALLBACK_THREADS.put(Box::new(callback), place);
}

struct CallbackThreads {
    state: Mutex<CallbackQueue>,
    queued: Condvar,
    places: Arc<Semaphore>,
}

#[derive(Default)]
struct CallbackQueue {
    waiting: VecDeque<QueuedCallback>,
    threads: usize,
    /// Number of these threads that are idle.
    idle: usize,
}

impl Default for CallbackThreads {
    fn default() -> Self {
        let places = Arc::new(Semaphore::new(MAX_WAITING));
        Self { state: Mutex::default(), queued: Condvar::new(), places }
    }
}

impl CallbackThreads {
    fn put(&'static self, callback: Callback, place: OwnedSemaphorePermit) {
        let mut state = self.state();
        state.waiting.push_back((callback, place));
        if state.waiting.len() > state.idle && state.threads < MAX_THREADS {
            let started = thread::Builder::new().name("corridor-callback".into()).spawn(|| self.work());
            state.threads += usize::from(started.is_ok());
        }
        if state.threads > 0 {
            drop(state);
            self.queued.notify_one();
        } else if let Some(first) = state.waiting.pop_front() {
            // The system creates no thread: the first queued callback is called by this one.
            drop(state);
            self.run_from(first);
        }
    }

    fn work(&self) {
        // Until Python ends, when callbacks cannot be called any more.
        while self.run_from(self.wait()).is_some() {}
    }

    /// Calls `first` and all callbacks queued meanwhile; `None` if Python is shutting down.
    fn run_from(&self, first: QueuedCallback) -> Option<()> {
        let mut next = Some(first);
        Python::try_attach(|py| {
            while let Some((callback, _place)) = next.take() {
                // A panic is a defect; it costs one callback, not the thread.
                drop(catch_unwind(AssertUnwindSafe(|| callback(py))));
                next = self.state().waiting.pop_front();
            }
        })
    }

    fn wait(&self) -> QueuedCallback {
        let mut state = self.state();
        state.idle += 1;
        loop {
            if let Some(next) = state.waiting.pop_front() {
                state.idle -= 1;
                return next;
            }
            state = self.queued.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, CallbackQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
