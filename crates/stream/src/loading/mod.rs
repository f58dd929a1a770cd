//! Loading of blocks: from a source to the volumes that somebody looks at.

pub(crate) mod drawable;
pub(crate) mod feed;
pub(crate) mod loader;
pub(crate) mod overview;
pub(crate) mod regrid;
pub(crate) mod volume;
