//! Isosurfaces along rays: cells that are crossed, crossings in them, and what is seen there.

pub(crate) mod cell;
pub(crate) mod crossed;
pub(crate) mod hunt;
pub(crate) mod prepare;
pub(crate) mod sides;
