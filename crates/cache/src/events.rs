//! Events that a cache sends to its subscribers: user interfaces, metrics, tests.

use array::BlockKey;

use crate::Action;

/// Events that are queued for a slow subscriber; beyond, it loses the oldest and receives their number.
pub const EVENTS_KEPT: usize = 4096;

/// Event of a block in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheEvent {
    /// The inner source was asked.
    Requested(BlockKey),
    /// A waiter got it, at once or when it arrived.
    Answered(BlockKey),
    /// A waiter got an error.
    Failed(BlockKey),
    /// The block was evicted.
    Evicted(BlockKey),
}

impl CacheEvent {
    /// The event that an action is, if it concerns a watcher.
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
