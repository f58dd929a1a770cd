//! Choice of the axis across which a volume is cut, and the transition from one set of slabs to another.

use array::{Error, Result};
use glam::DVec3;
use view::SpaceAxis;

use super::Slabs;
use crate::{Camera, Image, ImageSize, VolumeView};

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

impl Slabs {
    /// Draws a blend of an older set and this one, as [`draw`](Self::draw) does for one set: `share` of the
    /// picture comes from this one. A new set so replaces an old one without a jump, whatever axes they were
    /// cut along.
    ///
    /// # Errors
    /// The errors of [`draw`](Self::draw); `Invalid` for a share that is not from 0 to 1.
    pub fn draw_instead_of(
        &self,
        older: &Self,
        share: f32,
        camera: &Camera,
        size: ImageSize,
    ) -> Result<Image> {
        if !(0.0..=1.0).contains(&share) {
            return Err(Error::invalid(format!("expected a share from 0 to 1, found {share}")));
        }
        let (mut image, old) = (self.draw(camera, size)?, older.draw(camera, size)?);
        for (new, old) in image.rgba.as_flattened_mut().iter_mut().zip(old.rgba.as_flattened()) {
            *new = old + (*new - old) * share;
        }
        Ok(image)
    }
}
