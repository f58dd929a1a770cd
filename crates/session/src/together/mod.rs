//! Content that the participants of a session share besides the data: chat, notes pinned to places, bookmarks and
//! pointers, and the history of each participant's view.
//!
//! Data types and their rules; [`Room`](crate::Room) orders the edits.

pub(crate) mod content;
pub(crate) mod edit;
pub(crate) mod history;
pub(crate) mod log;
pub(crate) mod pointer;
pub(crate) mod receiver;
