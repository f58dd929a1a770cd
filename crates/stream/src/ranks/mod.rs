//! Drawing of sessions and films by several ranks.

pub(crate) mod launcher;
pub(crate) mod strips;
pub(crate) mod worker;
