//! Reading: which elements are wanted, by whom, and where they go.

pub(crate) mod block;
pub(crate) mod gather;
pub(crate) mod long_work;
pub(crate) mod packed;
pub(crate) mod selection;
pub(crate) mod source;
pub(crate) mod target;
pub(crate) mod want;
