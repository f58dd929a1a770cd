//! Progress of long work behind a source, for display.
//!
//! A value that the opener of a source makes and keeps a clone of: the worker writes into it, and a viewer polls it. It is not an event
//! stream: no task is woken, and polling costs a lock and a few words, so a viewer polls about twice a second while a picture is
//! incomplete.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// One kind of long work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LongTask {
    /// Blocks of the coarser levels of an array, means or modes, that the data lack.
    Levels {
        /// Number of the array in the description.
        array: u32,
    },
    /// Indexing of a compressed file, in bytes: one pass, after which it can be read at any position.
    Indexing,
}

/// Progress of a task: the part that is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkProgress {
    /// Never more than `total`.
    pub done: u64,
    /// Total amount of work.
    pub total: u64,
}

/// Long work behind one source; clones share their state.
#[derive(Clone, Debug, Default)]
pub struct LongWork(Arc<Mutex<BTreeMap<LongTask, WorkProgress>>>);

impl LongWork {
    /// Returns the progress of a task; `None` while it is not running.
    #[must_use]
    pub fn progress(&self, task: LongTask) -> Option<WorkProgress> {
        self.with(|tasks| tasks.get(&task).copied())
    }

    /// Sets the progress of a running task.
    pub fn set(&self, task: LongTask, done: u64, total: u64) {
        self.with(|tasks| tasks.insert(task, WorkProgress { done: done.min(total), total }));
    }

    /// Marks a task as no longer running, done or not.
    pub fn end(&self, task: LongTask) {
        self.with(|tasks| tasks.remove(&task));
    }

    fn with<T>(&self, f: impl FnOnce(&mut BTreeMap<LongTask, WorkProgress>) -> T) -> T {
        // Plain numbers: a panic elsewhere leaves no half-made state.
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_are_the_same_and_tasks_are_apart() {
        let work = LongWork::default();
        let seen = work.clone();
        work.set(LongTask::Levels { array: 1 }, 3, 8);
        work.set(LongTask::Indexing, 9, 5);
        assert_eq!(seen.progress(LongTask::Levels { array: 1 }), Some(WorkProgress { done: 3, total: 8 }));
        assert_eq!(seen.progress(LongTask::Levels { array: 0 }), None);
        assert_eq!(
            seen.progress(LongTask::Indexing),
            Some(WorkProgress { done: 5, total: 5 }),
            "never more than all"
        );
        work.end(LongTask::Indexing);
        assert_eq!(seen.progress(LongTask::Indexing), None);
    }
}
