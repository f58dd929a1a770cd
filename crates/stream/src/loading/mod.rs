//! Loading of blocks from a source into the volumes that participants view.

pub(crate) mod beside;
pub(crate) mod drawable;
pub(crate) mod feed;
pub(crate) mod loader;
pub(crate) mod overview;
pub(crate) mod regrid;
pub(crate) mod vectors;
pub(crate) mod volume;
