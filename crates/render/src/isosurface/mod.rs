//! Isosurfaces along rays: active cells, crossings in them, and what is seen there.

pub(crate) mod active_cells;
pub(crate) mod cubic;
pub(crate) mod hunt;
pub(crate) mod prepare;
pub(crate) mod sides;
