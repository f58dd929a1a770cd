//! A curved ramp: the mean of one cubic per axis, which linear interpolation cannot reproduce.

use super::{ScalarField, VoxelRow};

/// `4p^3 - 3p` along each axis, `p` from -1 to 1 across the volume.
pub(super) struct CubicField {
    shape: [f64; 3],
}

impl CubicField {
    /// Over `[nz, ny, nx]` voxels.
    #[expect(clippy::cast_precision_loss, reason = "axes are at most 2^20 long")]
    pub(super) fn new(shape: [u64; 3]) -> Self {
        Self { shape: shape.map(|n| n as f64) }
    }
}

/// One axis: between -1 and 1.
fn curve(index: f64, count: f64) -> f64 {
    let p = (2.0 * index + 1.0 - count) / count;
    (4.0 * p * p - 3.0) * p
}

impl ScalarField for CubicField {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "values of single precision"
    )]
    fn fill(&self, row: &VoxelRow, values: &mut [f32]) {
        let [nz, ny, nx] = self.shape;
        let outer = curve(row.z, nz) + curve(row.y, ny);
        for (i, value) in values.iter_mut().enumerate() {
            let x = curve(row.x + i as f64 * row.step, nx);
            *value = (0.5 + (outer + x) / 6.0).clamp(0.0, 1.0) as f32;
        }
    }
}
