//! A plane ramp: trilinear interpolation reproduces it exactly, so seams show at once.

use super::{ScalarField, VoxelRow};

/// Grows along x, twice as fast along y, three times along z; 0 and 1 in opposite corners.
pub(super) struct LinearField {
    per_voxel: [f64; 3],
}

impl LinearField {
    /// Over `[nz, ny, nx]` voxels.
    #[expect(clippy::cast_precision_loss, reason = "axes are at most 2^20 long")]
    pub(super) fn new(shape: [u64; 3]) -> Self {
        let last = shape.map(|n| n.saturating_sub(1).max(1) as f64);
        Self { per_voxel: [3.0 / last[0], 2.0 / last[1], 1.0 / last[2]].map(|slope| slope / 6.0) }
    }
}

impl ScalarField for LinearField {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "values of single precision"
    )]
    fn fill(&self, row: &VoxelRow, values: &mut [f32]) {
        let [per_z, per_y, per_x] = self.per_voxel;
        let outer = row.z * per_z + row.y * per_y;
        for (i, value) in values.iter_mut().enumerate() {
            *value = (outer + (row.x + i as f64 * row.step) * per_x) as f32;
        }
    }
}
