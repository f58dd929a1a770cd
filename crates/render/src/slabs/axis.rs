//! Across which axis a volume is best cut, and how one set of slabs gives way to another.

use array::{Error, Result};
use glam::DVec3;
use view::SpaceAxis;

use super::Slabs;
use crate::{Camera, Image, ImageSize, VolumeView};

/// An axis is kept until another one is nearer to the line of sight by so much: a camera that trembles at the border
/// between two would have both in turn.
const KEPT_RAD: f64 = 5.0 * std::f64::consts::PI / 180.0;

const AXES: [SpaceAxis; 3] = [SpaceAxis::X, SpaceAxis::Y, SpaceAxis::Z];

/// The axis whose slabs a camera sees most nearly from the front, or the one that they were cut across before where another
/// one is hardly better.
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

/// Across planes of one index of an axis: unit length, world space.
pub(super) fn normal_of(view: &VolumeView, axis: SpaceAxis) -> DVec3 {
    let inverse = view.world_from_volume.matrix3.inverse();
    inverse.transpose().col(axis.index()).normalize_or_zero()
}

impl Slabs {
    /// [`draw`](Self::draw) on the way from an older set to this one: `share` of it is this one's. So one set takes the
    /// place of another without a jump, whatever they were cut along.
    ///
    /// # Errors
    /// As [`draw`](Self::draw); `Invalid` for a share that is not from 0 to 1.
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
