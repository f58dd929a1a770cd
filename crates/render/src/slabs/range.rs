//! Range between two planes that contains everything visible: slabs need not extend beyond it.

use glam::DVec3;

use crate::blocks::resident::{CELL, Resident};
use crate::blocks::voxel::Voxel;
use crate::cpu::context::CastContext;
use crate::cpu::empty_space::visible_cells::{BENT, VisibleCells};
use crate::scene::frustum::Frustum;

impl<T: Voxel> CastContext<'_, T> {
    /// Returns the least and largest of `slope * position` over the volume positions in the image where
    /// something may be visible, at the resolution of cells and blocks; `None` if nothing is.
    pub(super) fn range_seen(&self, slope: DVec3) -> Option<[f64; 2]> {
        let scene = self.scene;
        let frustum = Frustum::new(&scene.view, &self.lens, &scene.portion());
        let mut range = [f64::INFINITY, f64::NEG_INFINITY];
        let mut add = |low: DVec3, high: DVec3| {
            let (middle, reach) = (slope.dot((low + high) / 2.0), slope.abs().dot((high - low) / 2.0));
            range = [range[0].min(middle - reach), range[1].max(middle + reach)];
        };
        for (slot, block) in
            self.blocks.occupied().filter(|(_, block)| self.level_indices.contains(&block.level_index))
        {
            let Some(plan) = self.plans[slot as usize].as_deref() else { continue };
            let level = &scene.view.levels[block.level_index];
            let part = frustum.part_seen(level, block.at, block.at.map(|n| n + 1));
            let Some((low, high)) = part else { continue };
            match &*plan.field {
                VisibleCells::Hidden { .. } => {}
                VisibleCells::Full { .. } => add(low, high),
                VisibleCells::Cells(cells) => {
                    for number in (0..cells.len()).filter(|&i| cells[i] & !BENT == 0) {
                        let (from, to) = self.cell_box(block, number);
                        let (from, to) = (from.max(low), to.min(high));
                        if from.cmple(to).all() {
                            add(from, to);
                        }
                    }
                }
            }
        }
        (range[0] <= range[1]).then_some(range)
    }

    /// Returns the box in volume space of a cell, and half a voxel around it: the volume begins and ends half
    /// a voxel beyond the outermost voxels.
    fn cell_box(&self, block: &Resident<T>, number: usize) -> (DVec3, DVec3) {
        let [_, ny, nx] = block.layout.cells;
        let at = [number % nx, number / nx % ny, number / (nx * ny)];
        let first = DVec3::from_array(at.map(|i| (i * CELL) as f64));
        let (scale, shift) = self.scene.view.levels[block.level_index].local_map(block.at);
        let (a, b) = ((first - 0.5 - shift) / scale, (first + CELL as f64 + 0.5 - shift) / scale);
        (a.min(b), a.max(b))
    }
}
