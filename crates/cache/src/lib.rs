//! Cache of blocks in memory: the block table, and a source that keeps blocks of another source.
//!
//! This crate keeps blocks in memory within a hard limit. It never reads a file, never talks to a network and
//! never decides what to fetch. Read the folder's README for the states, then [`CacheTable`] and [`Cached`].

mod cached;
mod events;
mod inbox;
mod table;
mod task;

pub use cached::{Cached, MAX_WAITING};
pub use events::{CacheEvent, EVENTS_KEPT};
pub use table::{
    Action, BlockEvent, CacheCounters, CacheTable, ENTRY_BYTES, FetchTicket, HeldMemory, MAX_QUEUED,
    SharedValue, WaiterId,
};
