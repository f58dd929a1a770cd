//! Samples at sixteen positions in a block: places in the table, and their slopes.

use crate::blocks::voxel::Voxel;
use crate::cpu::samples::corners::VoxelGrid;
use crate::cpu::samples::shading::Shading;
use crate::simd::{Simd, SimdStep, each_axis};

/// Result of a sample: its place in the table, NaN if the value is missing, and the slopes of places around
/// it, in volume space; slopes are 0 if the value is missing.
#[derive(Clone, Copy)]
pub(crate) struct PacketSamples<S: Simd> {
    pub(crate) place: S::F,
    pub(crate) slope: [S::F; 3],
}

impl<S: Simd> PacketSamples<S> {
    /// Creates samples from places alone, with slopes of 0.
    #[inline(always)]
    pub(crate) fn unsloped(simd: S, place: S::F) -> Self {
        Self { place, slope: [simd.splat(0.0); 3] }
    }

    /// Takes samples among present voxels, with `scale` of them per voxel of level 0.
    #[inline(always)]
    pub(crate) fn sloped<T: Voxel>(
        simd: S,
        grid: &VoxelGrid<'_, T>,
        at: &[S::F; 3],
        scale: &[f32; 3],
        shading: &Shading<'_, T>,
    ) -> Self {
        let table = &shading.table.scale;
        let (place, slope) = grid.linear_sloped(simd, &grid.around(simd, at), table);
        let gain = table.gain_of_loaded::<T>();
        Self { place, slope: each_axis!(a => simd.mul(slope[a], simd.splat(gain * scale[a]))) }
    }

    /// Takes samples among voxels of which some are missing.
    #[inline(always)]
    fn among_present<T: Voxel>(
        simd: S,
        grid: &VoxelGrid<'_, T>,
        at: &[S::F; 3],
        scale: &[f32; 3],
        shading: &Shading<'_, T>,
    ) -> Self {
        let (table, corners) = (&shading.table.scale, grid.around(simd, at));
        let (place, present) = grid.linear_present(simd, &corners, table, shading.missing);
        let mut found = Self::unsloped(simd, simd.select(present, place, simd.splat(f32::NAN)));
        if shading.metric.is_some() {
            let slope = grid.slopes_present(simd, &corners, table, shading.missing, place);
            let gain = table.gain_of_loaded::<T>();
            found.slope = each_axis!(a => {
                let slope = simd.mul(slope[a], simd.splat(gain * scale[a]));
                simd.select(present, slope, simd.splat(0.0))
            });
        }
        found
    }
}

/// Samples at positions in any block of a volume whose values are interpolated.
pub(crate) struct TakeSamples<'a, S: Simd, T> {
    pub(crate) grid: VoxelGrid<'a, T>,
    pub(crate) at: [S::F; 3],
    /// Voxels of the block per voxel of level 0.
    pub(crate) scale: [f32; 3],
    pub(crate) shading: &'a Shading<'a, T>,
}

impl<S: Simd, T: Voxel> SimdStep<S> for TakeSamples<'_, S, T> {
    type Output = PacketSamples<S>;

    #[inline(always)]
    fn run(self, simd: S) -> PacketSamples<S> {
        let Self { grid, at, scale, shading } = self;
        if grid.has_missing {
            return PacketSamples::among_present(simd, &grid, &at, &scale, shading);
        }
        if shading.metric.is_some() {
            return PacketSamples::sloped(simd, &grid, &at, &scale, shading);
        }
        PacketSamples::unsloped(simd, grid.linear(simd, &grid.around(simd, &at), &shading.table.scale))
    }
}
