//! White noise: every voxel a hash of its indices, the worst case for compression and caching.

use super::{ScalarField, VoxelRow};

/// Uniform from 0 to 1. A coarse voxel takes the value of the level-0 voxel at its center.
pub(super) struct NoiseField;

/// Mixes bits so that neighbors differ (two rounds of multiply and shift).
fn mix(mut h: u32) -> u32 {
    h = (h ^ (h >> 16)).wrapping_mul(0x7feb_352d);
    h = (h ^ (h >> 15)).wrapping_mul(0x846c_a68b);
    h ^ (h >> 16)
}

impl ScalarField for NoiseField {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "indices are below 2^20 and not negative; 24 bits are exact in single precision"
    )]
    fn fill(&self, row: &VoxelRow, values: &mut [f32]) {
        let outer = [row.t, row.z, row.y].iter().fold(0x9e37_79b9, |h, &v| mix(h ^ v as u32));
        let (start, step) = (row.x as u32, row.step as u32);
        for (i, value) in values.iter_mut().enumerate() {
            let x = start.wrapping_add((i as u32).wrapping_mul(step));
            *value = (mix(outer ^ x) >> 8) as f32 * (1.0 / 16_777_215.0);
        }
    }
}
