//! Deadlines of operations, and their encoding as remaining time.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::OpId;

/// Deadlines of all operations in flight.
#[derive(Debug, Default)]
pub(crate) struct Deadlines(BTreeSet<(Instant, OpId)>);

impl Deadlines {
    pub(crate) fn replace(&mut self, op: OpId, old: Option<Instant>, new: Option<Instant>) {
        if let Some(old) = old {
            self.0.remove(&(old, op));
        }
        if let Some(new) = new {
            self.0.insert((new, op));
        }
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Removes and returns an operation whose deadline has passed.
    pub(crate) fn pop_passed(&mut self, now: Instant) -> Option<OpId> {
        let (at, op) = *self.0.first()?;
        if at > now {
            return None;
        }
        self.0.pop_first();
        Some(op)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Remaining time for the protocol, milliseconds: 0 for none, at least 1 otherwise.
pub(crate) fn to_wire(now: Instant, deadline: Option<Instant>) -> u32 {
    deadline.map_or(0, |at| {
        let left = at.saturating_duration_since(now).as_micros().div_ceil(1000);
        u32::try_from(left).unwrap_or(u32::MAX).max(1)
    })
}

/// Deadline from the remaining time.
pub(crate) fn from_wire(now: Instant, deadline_ms: u32) -> Option<Instant> {
    (deadline_ms > 0).then(|| now + Duration::from_millis(u64::from(deadline_ms)))
}
