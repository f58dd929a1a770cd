//! Handlers of operations that need more than a data server has: those of sessions, and the list of servers.

pub(crate) mod interpret;
pub(crate) mod join;
pub(crate) mod measure;
pub(crate) mod saving;
pub(crate) mod servers;
