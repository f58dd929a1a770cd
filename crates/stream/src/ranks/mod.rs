//! Ranks that draw the pictures of a session, or of a film, together, view after view.

pub(crate) mod launcher;
pub(crate) mod strips;
pub(crate) mod worker;
