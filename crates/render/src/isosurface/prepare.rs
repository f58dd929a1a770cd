//! Isosurfaces of one picture, and their positions in its blocks.

use std::sync::Arc;

use rayon::prelude::*;

use crate::blocks::resident::Resident;
use crate::blocks::voxel::Voxel;
use crate::cpu::context::CastContext;
use crate::isosurface::cell_sides::CellSides;
use crate::isosurface::hits::Surfaces;

/// Isosurfaces of one picture: the values, and the sides of them on which its blocks lie.
#[derive(Debug)]
pub(crate) struct Isosurfaces {
    pub(crate) values: Surfaces,
    /// Sides of each block, by slot, `None` for empty slots; empty without isovalues.
    pub(crate) sides: Vec<Option<Arc<CellSides>>>,
}

impl Isosurfaces {
    /// Finds the cells that rays have to search for the surfaces of a scene.
    pub(crate) fn prepare<T: Voxel>(context: &CastContext<'_, T>) -> Self {
        let values = Surfaces::new(&context.scene.surfaces, &context.scene.view);
        let mut sides = Vec::new();
        if !values.is_empty() {
            let isovalues = values.isovalues();
            let sides_of =
                |block: &Arc<Resident<T>>| block.sides.of(&isovalues, || CellSides::new(block, &values));
            let sides_of = |slot: &Option<_>| slot.as_ref().map(sides_of);
            sides = context.blocks.all_slots().par_iter().map(sides_of).collect();
        }
        Self { values, sides }
    }

    /// True if the scene has none.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}
