//! Wants: a block or a read that somebody waits for, with a handle that can still change its mind.
//!
//! [`want`] makes a pair: the [`Want`] goes down the path to whoever fetches, the [`WantHandle`] stays
//! with whoever asked. Priority and deadline can be changed while it is queued or under way; dropping
//! the handle cancels. A wrapper that joins several askers keeps its own pair downwards and sets the
//! highest priority of those that wait.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::BlockKey;

/// How much something matters: first the tier, then the weight within it; larger is sooner.
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
    /// Something on screen, or an ordinary read.
    pub const NORMAL: Self = Self { tier: 2, weight: 0.0 };
    /// A person waits for it.
    pub const INTERACTIVE: Self = Self { tier: 3, weight: 0.0 };
    /// Before everything else.
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
    /// How much it matters.
    pub priority: Priority,
    /// After this it is useless; the source may then answer `TimedOut`.
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
struct State {
    urgency: Urgency,
    version: u64,
    cancelled: bool,
    watchers: Vec<Waker>,
}

#[derive(Clone, Debug)]
struct Shared(Arc<Mutex<State>>);

impl Shared {
    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        // A panic elsewhere leaves plain values behind, never a half-made state.
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, f: impl FnOnce(&mut State)) {
        let watchers = self.with(|s| {
            f(s);
            s.version += 1;
            std::mem::take(&mut s.watchers)
        });
        watchers.into_iter().for_each(Waker::wake);
    }
}

/// The fetcher's side of a want.
#[derive(Debug)]
pub struct Want {
    key: BlockKey,
    shared: Shared,
}

/// The asker's side of a want; dropping it cancels.
#[derive(Debug)]
pub struct WantHandle {
    key: BlockKey,
    shared: Shared,
}

/// A want for `key` and the handle that steers it.
#[must_use]
pub fn want(key: BlockKey, urgency: Urgency) -> (Want, WantHandle) {
    let state = State { urgency, version: 0, cancelled: false, watchers: Vec::new() };
    let shared = Shared(Arc::new(Mutex::new(state)));
    (Want { key, shared: shared.clone() }, WantHandle { key, shared })
}

impl Want {
    /// Which block.
    #[must_use]
    pub fn key(&self) -> BlockKey {
        self.key
    }

    /// Its urgency now.
    #[must_use]
    pub fn urgency(&self) -> Urgency {
        self.shared.with(|s| s.urgency)
    }

    /// True once nobody waits any more.
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
    /// Safe: nothing is consumed.
    pub async fn changed(&self, seen: u64) -> u64 {
        std::future::poll_fn(|cx| self.poll_changed(cx, seen)).await
    }

    /// Waits until nobody wants it any more.
    ///
    /// # Cancel safety
    /// Safe: nothing is consumed.
    pub async fn cancelled(&self) {
        let mut seen = 0;
        while !self.is_cancelled() {
            seen = self.changed(seen).await;
        }
    }
}

impl WantHandle {
    /// Which block.
    #[must_use]
    pub fn key(&self) -> BlockKey {
        self.key
    }

    /// Its urgency now.
    #[must_use]
    pub fn urgency(&self) -> Urgency {
        self.shared.with(|s| s.urgency)
    }

    /// Changes it; everyone down the path is told.
    pub fn adjust(&self, urgency: Urgency) {
        if self.urgency() != urgency {
            self.shared.change(|s| s.urgency = urgency);
        }
    }

    /// Withdraws the want; the same as dropping the handle.
    pub fn cancel(self) {}
}

impl Drop for WantHandle {
    fn drop(&mut self) {
        self.shared.change(|s| s.cancelled = true);
    }
}
