//! Isosurfaces along rays: active cells, crossings in them, and their shading.

pub(crate) mod active_cells;
pub(crate) mod cell_sides;
pub(crate) mod cubic;
pub(crate) mod hits;
pub(crate) mod prepare;
