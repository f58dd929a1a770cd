//! Wants: requests for a block or a read, with a handle that can change or cancel them.
//!
//! [`want`] makes a pair: the [`Want`] goes to the source that fetches, the [`WantHandle`] stays with the caller. Priority and deadline
//! can be changed while the want is queued or under way; dropping the handle cancels it. A wrapper that merges several callers makes its
//! own pair for the inner source and sets the highest priority of its callers.

use std::cmp::Ordering;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::BlockKey;

/// Priority of a want or read: first the tier, then the weight within it; larger comes first.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Priority {
    /// 0 background, 1 prefetch, 2 visible, 3 waited for by a person, 4 urgent.
    pub tier: u8,
    /// Order within the tier; NaN counts as zero.
    pub weight: f32,
}

impl Priority {
    /// Work that may wait for ever.
    pub const BACKGROUND: Self = Self { tier: 0, weight: 0.0 };
    /// Likely to be wanted soon.
    pub const PREFETCH: Self = Self { tier: 1, weight: 0.0 };
    /// Visible on screen, or an ordinary read.
    pub const NORMAL: Self = Self { tier: 2, weight: 0.0 };
    /// A person waits for it.
    pub const INTERACTIVE: Self = Self { tier: 3, weight: 0.0 };
    /// Urgent: before everything else.
    pub const URGENT: Self = Self { tier: 4, weight: 0.0 };

    /// Returns a priority of the same tier with another weight.
    #[must_use]
    pub const fn weighted(self, weight: f32) -> Self {
        Self { tier: self.tier, weight }
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::NORMAL
    }
}

impl Ord for Priority {
    fn cmp(&self, other: &Self) -> Ordering {
        let weight = |p: &Self| if p.weight.is_nan() { 0.0 } else { p.weight };
        self.tier.cmp(&other.tier).then(weight(self).total_cmp(&weight(other)))
    }
}

impl PartialOrd for Priority {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Priority {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Priority {}

/// Priority and deadline of a want; both can change while it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Urgency {
    /// Current priority.
    pub priority: Priority,
    /// Time after which the block is useless; the source may then answer `TimedOut`.
    pub deadline: Option<Instant>,
}

impl Urgency {
    /// A priority without a deadline.
    #[must_use]
    pub const fn of(priority: Priority) -> Self {
        Self { priority, deadline: None }
    }
}

#[derive(Debug)]
struct WantState {
    urgency: Urgency,
    version: u64,
    cancelled: bool,
    watchers: Vec<Waker>,
}

#[derive(Clone, Debug)]
struct SharedWant(Arc<Mutex<WantState>>);

impl SharedWant {
    fn with<T>(&self, f: impl FnOnce(&mut WantState) -> T) -> T {
        // A panic elsewhere leaves plain values behind, never a half-made state.
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, f: impl FnOnce(&mut WantState)) {
        let watchers = self.with(|s| {
            f(s);
            s.version += 1;
            std::mem::take(&mut s.watchers)
        });
        watchers.into_iter().for_each(Waker::wake);
    }
}

/// Source's side of a want.
#[derive(Debug)]
pub struct Want {
    key: BlockKey,
    shared: SharedWant,
}

/// Requester's side of a want; dropping it cancels the want.
#[derive(Debug)]
pub struct WantHandle {
    key: BlockKey,
    shared: SharedWant,
}

/// A want for `key` and the handle that steers it.
#[must_use]
pub fn want(key: BlockKey, urgency: Urgency) -> (Want, WantHandle) {
    let state = WantState { urgency, version: 0, cancelled: false, watchers: Vec::new() };
    let shared = SharedWant(Arc::new(Mutex::new(state)));
    (Want { key, shared: shared.clone() }, WantHandle { key, shared })
}

impl Want {
    /// Which block.
    #[must_use]
    pub fn key(&self) -> BlockKey {
        self.key
    }

    /// Returns the current urgency.
    #[must_use]
    pub fn urgency(&self) -> Urgency {
        self.shared.with(|s| s.urgency)
    }

    /// Whether the want is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shared.with(|s| s.cancelled)
    }

    /// Ready with the new version when urgency or cancellation changed since version `seen` (0 at first).
    pub fn poll_changed(&self, cx: &mut Context<'_>, seen: u64) -> Poll<u64> {
        self.shared.with(|s| {
            if s.version != seen {
                return Poll::Ready(s.version);
            }
            if !s.watchers.iter().any(|w| w.will_wake(cx.waker())) {
                s.watchers.push(cx.waker().clone());
            }
            Poll::Pending
        })
    }

    /// Waits for a change after version `seen`.
    ///
    /// # Cancel safety
    /// Safe: no state is lost.
    pub async fn changed(&self, seen: u64) -> u64 {
        std::future::poll_fn(|cx| self.poll_changed(cx, seen)).await
    }

    /// Waits until the want is cancelled.
    ///
    /// # Cancel safety
    /// Safe: no state is lost.
    pub async fn cancelled(&self) {
        let mut seen = 0;
        while !self.is_cancelled() {
            seen = self.changed(seen).await;
        }
    }

    /// Runs `work` for this want, and calls `adjust` at each change of its urgency. Returns `None` once the want is cancelled: the work is
    /// dropped then, or not started.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work.
    pub async fn drive<T>(
        &self,
        work: impl Future<Output = T>,
        mut adjust: impl FnMut(Urgency),
    ) -> Option<T> {
        let mut work = pin!(work);
        let mut seen = 0;
        std::future::poll_fn(|cx| {
            while let Poll::Ready(version) = self.poll_changed(cx, seen) {
                seen = version;
                if self.is_cancelled() {
                    return Poll::Ready(None);
                }
                adjust(self.urgency());
            }
            work.as_mut().poll(cx).map(Some)
        })
        .await
    }
}

impl WantHandle {
    /// Which block.
    #[must_use]
    pub fn key(&self) -> BlockKey {
        self.key
    }

    /// Returns the current urgency.
    #[must_use]
    pub fn urgency(&self) -> Urgency {
        self.shared.with(|s| s.urgency)
    }

    /// Changes the urgency, and notifies all holders of the want.
    pub fn adjust(&self, urgency: Urgency) {
        if self.urgency() != urgency {
            self.shared.change(|s| s.urgency = urgency);
        }
    }

    /// Cancels the want, as dropping the handle does.
    pub fn cancel(self) {}
}

impl Drop for WantHandle {
    fn drop(&mut self) {
        self.shared.change(|s| s.cancelled = true);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use futures::FutureExt;

    use super::*;
    use crate::conformance::one_array;

    fn wanted() -> (Want, WantHandle) {
        let dataset = one_array("|u1".parse().unwrap(), &[4], &[4]);
        let (dataset, generation) = (dataset.id, dataset.generation);
        let key = BlockKey { dataset, generation, array: 0, level: 0, index: 0 };
        want(key, Urgency::of(Priority::PREFETCH))
    }

    #[test]
    fn work_hears_of_each_change_until_it_ends() {
        let (want, handle) = wanted();
        let (told, is_done) = (RefCell::new(Vec::new()), Cell::new(false));
        let work = std::future::poll_fn(|_| if is_done.get() { Poll::Ready(7) } else { Poll::Pending });
        let mut driven = pin!(want.drive(work, |urgency| told.borrow_mut().push(urgency.priority)));
        assert_eq!(driven.as_mut().now_or_never(), None);
        assert!(told.borrow().is_empty());
        handle.adjust(Urgency::of(Priority::URGENT));
        assert_eq!(driven.as_mut().now_or_never(), None);
        assert_eq!(*told.borrow(), [Priority::URGENT]);
        is_done.set(true);
        assert_eq!(driven.now_or_never(), Some(Some(7)));
    }

    #[test]
    fn work_that_nobody_wants_is_dropped_or_not_begun() {
        let (want, handle) = wanted();
        let mut driven = pin!(want.drive(std::future::pending::<()>(), |_| ()));
        assert_eq!(driven.as_mut().now_or_never(), None);
        handle.cancel();
        assert_eq!(driven.now_or_never(), Some(None));
        let has_begun = Cell::new(false);
        assert_eq!(want.drive(async { has_begun.set(true) }, |_| ()).now_or_never(), Some(None));
        assert!(!has_begun.get());
    }
}
