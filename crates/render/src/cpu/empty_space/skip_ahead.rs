//! Skipping ahead over hidden cells: the number of samples that sixteen rays may skip in the cells of a
//! block.

#![expect(unsafe_code, reason = "cells are read at places that were clamped before")]

use crate::blocks::resident::{CELL, Resident};
use crate::cpu::empty_space::sampling_rate::{QUADRUPLE, RATES, SINGLE};
use crate::cpu::samples::shading::BlockRays;
use crate::simd::{PairOffsets, READ_AHEAD, Simd, each_axis};

/// Samples between two tests for skipping: fewer if they are more than a voxel apart, so that a run ends at
/// most one cell beside the one in which it began.
pub(crate) const RUN: u32 = 8;
const _: () = assert!(RUN as usize <= CELL, "a run ends in a neighboring cell");

/// Result of a test for skipping.
pub(crate) enum LookAhead {
    /// Nothing is visible for this number of samples.
    Skip(u32),
    /// Something is visible, to be sampled at one of the rates of [`crate::cpu::empty_space::sampling_rate`].
    Draw { rate: u8 },
}

/// Steps of sixteen rays through the cells of a block.
pub(crate) struct CellLookup<S: Simd> {
    /// Per axis x, y, z.
    cells: [f32; 3],
    strides: [u32; 2],
    count: usize,
    forward: [S::M; 3],
    samples_per_voxel: [S::F; 3],
    /// Samples between two tests.
    pub(crate) run: u32,
}

impl<S: Simd> CellLookup<S> {
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "1 to 8; a block has fewer than 2^31 voxels"
    )]
    pub(crate) fn new<T>(simd: S, block: &Resident<T>, block_rays: &BlockRays<S>) -> Self {
        // A ray that does not move along an axis never leaves through it: a large number, not infinity, which
        // would turn 0 * infinity into NaN.
        const NEVER: f32 = 1e30;
        const STILL: f32 = 1e-20;
        let [nz, ny, nx] = block.layout.cells;
        let samples_per_voxel = each_axis!(a => {
            let step = block_rays.step[a];
            let moves = simd.or(simd.ge(step, simd.splat(STILL)), simd.ge(simd.splat(-STILL), step));
            simd.select(moves, simd.div(simd.splat(1.0), step), simd.splat(NEVER))
        });
        let mut fewest = simd.splat(RUN as f32);
        for samples in &samples_per_voxel {
            let apart = simd.max(*samples, simd.sub(simd.splat(0.0), *samples));
            fewest = simd.min(simd.mul(apart, simd.splat(CELL as f32)), fewest);
        }
        Self {
            run: (simd.least(fewest) as u32).max(1),
            cells: [nx as f32, ny as f32, nz as f32],
            strides: [(ny * nx) as u32, nx as u32],
            count: nz * ny * nx,
            forward: each_axis!(a => simd.ge(samples_per_voxel[a], simd.splat(0.0))),
            samples_per_voxel,
        }
    }

    /// Tests the cells that the `live` rays are in, by
    /// [`SamplingRates::Cells`](crate::cpu::empty_space::sampling_rate::SamplingRates).
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 3")]
    pub(crate) fn look(&self, simd: S, cells: &[u8], at: &[S::F; 3], live: S::M) -> LookAhead {
        let cell = self.cells_at(simd, at);
        let index = self.indices(simd, &cell);
        assert!(cells.len() >= self.count + READ_AHEAD, "a byte for each cell, and what is read beyond");
        // SAFETY: numbers of cells are below their count.
        let [here, _] = unsafe { simd.pairs_u8(cells.as_ptr(), &index) };
        let rates = simd.splat(f32::from(RATES));
        let distance = simd.to_float(simd.truncate(simd.mul(here, simd.splat(1.0 / f32::from(RATES)))));
        if simd.bits(simd.and(live, simd.lt(here, rates))) == 0 {
            return LookAhead::Skip(self.samples_to_exit(simd, at, cell, distance, live));
        }
        let rate = simd.sub(here, simd.mul(distance, rates));
        let slowest = simd.least(simd.select(live, rate, simd.splat(f32::from(QUADRUPLE))));
        LookAhead::Draw { rate: slowest as u8 }
    }

    /// Tests whether one of the cells that the `live` rays are in is higher than the ray's best height.
    #[inline(always)]
    pub(crate) fn look_above(
        &self,
        simd: S,
        cells: &[f32],
        at: &[S::F; 3],
        known: S::F,
        live: S::M,
    ) -> LookAhead {
        let cell = self.cells_at(simd, at);
        let (index, known) = (self.indices(simd, &cell), simd.store(known));
        let mut rays = simd.bits(live);
        while rays != 0 {
            let lane = rays.trailing_zeros() as usize;
            rays &= rays - 1;
            if cells[index[lane] as usize] > known[lane] {
                return LookAhead::Draw { rate: SINGLE };
            }
        }
        LookAhead::Skip(self.samples_to_exit(simd, at, cell, simd.splat(1.0), live))
    }

    /// Returns the cells that contain positions.
    #[inline(always)]
    fn cells_at(&self, simd: S, at: &[S::F; 3]) -> [S::U; 3] {
        const PER_VOXEL: f32 = 1.0 / CELL as f32;
        let zero = simd.splat(0.0);
        each_axis!(a => {
            let place = simd.mul(at[a], simd.splat(PER_VOXEL));
            simd.truncate(simd.min(simd.max(place, zero), simd.splat(self.cells[a] - 1.0)))
        })
    }

    /// Their numbers in C order.
    #[inline(always)]
    fn indices(&self, simd: S, cell: &[S::U; 3]) -> PairOffsets {
        let plane = simd.mul_u(cell[2], simd.splat_u(self.strides[0]));
        let row = simd.mul_u(cell[1], simd.splat_u(self.strides[1]));
        simd.store_u(simd.add_u(simd.add_u(plane, row), cell[0]))
    }

    /// Returns the number of samples that all `live` rays have in the boxes of cells nearer than `reach`
    /// around theirs. At least one.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, which is meant")]
    fn samples_to_exit(&self, simd: S, at: &[S::F; 3], cell: [S::U; 3], reach: S::F, live: S::M) -> u32 {
        const FAR: f32 = 1e9;
        let (side, one) = (simd.splat(CELL as f32), simd.splat(1.0));
        let mut samples = simd.splat(FAR);
        for axis in 0..3 {
            let cell = simd.to_float(cell[axis]);
            let low = simd.sub(cell, simd.sub(reach, one));
            let high = simd.add(cell, reach);
            // Beyond the outermost cells only the end of the block limits a ray.
            let low = simd.select(simd.ge(simd.splat(0.0), low), simd.splat(-FAR), simd.mul(low, side));
            let is_last = simd.ge(high, simd.splat(self.cells[axis]));
            let high = simd.select(is_last, simd.splat(FAR), simd.mul(high, side));
            let wall = simd.select(self.forward[axis], high, low);
            let ahead = simd.mul(simd.sub(wall, at[axis]), self.samples_per_voxel[axis]);
            samples = simd.min(ahead, samples);
        }
        let least = simd.least(simd.select(live, samples, simd.splat(FAR)));
        (least as u32).saturating_add(1).min(1 << 30)
    }
}
