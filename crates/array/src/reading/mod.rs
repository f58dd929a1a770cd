//! Reading: wanted elements, their priorities, and the targets that they are written to.

pub(crate) mod block;
pub(crate) mod gather;
pub(crate) mod long_work;
pub(crate) mod packed;
pub(crate) mod selection;
pub(crate) mod source;
pub(crate) mod target;
pub(crate) mod want;
