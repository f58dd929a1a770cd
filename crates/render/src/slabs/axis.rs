//! Choice of the axis across which a volume is cut into slabs.

use glam::DVec3;
use view::SpaceAxis;

use crate::{Camera, VolumeView};

/// Margin by which another axis must be nearer to the line of sight to replace the current one: otherwise a
/// camera that trembles at the border between two axes would alternate between them.
const KEPT_RAD: f64 = 5.0 * std::f64::consts::PI / 180.0;

const AXES: [SpaceAxis; 3] = [SpaceAxis::X, SpaceAxis::Y, SpaceAxis::Z];

/// Returns the axis whose slabs a camera sees most nearly from the front, or the axis that they were cut
/// across before if another one is hardly better.
#[must_use]
pub fn best_axis(view: &VolumeView, camera: &Camera, before: Option<SpaceAxis>) -> SpaceAxis {
    let forward = (DVec3::from(camera.target) - DVec3::from(camera.eye)).normalize_or_zero();
    let away_rad = |axis: SpaceAxis| normal_of(view, axis).dot(forward).abs().min(1.0).acos();
    let nearest = AXES.into_iter().min_by(|&a, &b| away_rad(a).total_cmp(&away_rad(b)));
    match (before, nearest) {
        (Some(before), Some(nearest)) if away_rad(before) <= away_rad(nearest) + KEPT_RAD => before,
        (_, nearest) => nearest.unwrap_or(SpaceAxis::Z),
    }
}

/// Returns the normal of the planes of one index of an axis: unit length, world space.
pub(super) fn normal_of(view: &VolumeView, axis: SpaceAxis) -> DVec3 {
    let inverse = view.world_from_volume.matrix3.inverse();
    inverse.transpose().col(axis.index()).normalize_or_zero()
}
