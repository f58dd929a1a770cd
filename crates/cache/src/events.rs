//! Events that a cache sends to its subscribers: user interfaces, metrics, tests.

use array::BlockKey;

use crate::Action;

/// Events that are queued for a slow subscriber; beyond this number it loses the oldest ones.
pub const EVENTS_KEPT: usize = 4096;

/// Event of a block in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheEvent {
    /// The block was requested from the inner source.
    Requested(BlockKey),
    /// A waiter received the block, from the cache or when it arrived.
    Answered(BlockKey),
    /// A waiter received an error.
    Failed(BlockKey),
    /// The block was evicted.
    Evicted(BlockKey),
}

impl CacheEvent {
    /// Returns the event of an action; `None` if subscribers do not learn of it.
    #[must_use]
    pub fn of<V>(action: &Action<V>) -> Option<Self> {
        match action {
            Action::Request { key, .. } => Some(Self::Requested(*key)),
            Action::Answer { key, .. } => Some(Self::Answered(*key)),
            Action::Fail { key, .. } => Some(Self::Failed(*key)),
            Action::Evict { key, .. } => Some(Self::Evicted(*key)),
            Action::Adjust { .. } | Action::Cancel { .. } => None,
        }
    }
}
