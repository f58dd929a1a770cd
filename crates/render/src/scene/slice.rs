//! Slices: planes across one axis of the volume or in any direction; and the part of a volume that a picture shows.
//!
//! Values set by the user; `cpu/slices.rs` intersects rays with slices.

use array::{Error, Result};
use glam::DVec3;
use view::{MAX_SLICES, Mode, SpaceAxis};

use crate::{Bounds, Isosurface, VolumeView};

/// Plane through the volume, opaque in the colors of the transfer function: values between voxels
/// are interpolated, those of labels are the nearest ones. Nothing is drawn where a value is missing, nor
/// outside of the clipping box; light and the transfer function's opacity have no effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// Axis perpendicular to the plane.
    pub axis: SpaceAxis,
    /// Position on the axis, voxels of level 0: -0.5 to n - 0.5, centers at whole numbers.
    pub at: f64,
    /// Plane in any direction, drawn instead of the one across the axis.
    pub oblique: Option<ObliquePlane>,
    /// True if each voxel of level 0 is an area of one color, without interpolation.
    pub nearest: bool,
}

/// Plane in any direction: all points `p` in volume space (voxels of level 0, `(x, y, z)`) with `normal . p = offset`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObliquePlane {
    /// Direction perpendicular to the plane in volume space, of length 1.
    pub normal: [f64; 3],
    /// Product of the normal with any point of the plane.
    pub offset: f64,
}

impl ObliquePlane {
    /// Returns the plane through a point with a normal, both in world space, in the space of a volume; `None`
    /// if the normal is zero there, or numbers are not finite.
    #[must_use]
    pub fn in_volume(view: &VolumeView, normal: [f64; 3], point: [f64; 3]) -> Option<Self> {
        let map = &view.world_from_volume;
        let (normal, point) = (DVec3::from(normal).try_normalize()?, DVec3::from(point));
        let across = map.matrix3.transpose() * normal;
        let length = across.length();
        let offset = normal.dot(point - map.translation) / length;
        let plane = Self { normal: (across / length).into(), offset };
        plane.is_legal().then_some(plane)
    }

    fn is_legal(&self) -> bool {
        let length = DVec3::from(self.normal).length();
        self.offset.is_finite() && (length - 1.0).abs() < 1e-6
    }
}

/// Part of a volume that a picture shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Portion {
    /// Clipping box (world space).
    pub clip: Option<Bounds>,
    /// Slices, if nothing else is drawn.
    pub slices: Option<Vec<Slice>>,
}

impl Portion {
    /// Returns the part that a picture of these shows: only slices if nothing else is drawn.
    #[must_use]
    pub fn of(clip: Option<Bounds>, mode: Mode, surfaces: &[Isosurface], slices: Vec<Slice>) -> Self {
        let are_alone = mode == Mode::Surfaces && surfaces.is_empty() && !slices.is_empty();
        Self { clip, slices: are_alone.then_some(slices) }
    }
}

impl Slice {
    /// Most slices in one picture.
    pub const MAX_COUNT: usize = MAX_SLICES;

    /// Creates a slice across an axis, with interpolated values.
    #[must_use]
    pub fn across(axis: SpaceAxis, at: f64) -> Self {
        Self { axis, at, oblique: None, nearest: false }
    }

    /// Returns normal and offset of the plane in volume space.
    pub(crate) fn plane(&self) -> (DVec3, f64) {
        match self.oblique {
            Some(ObliquePlane { normal, offset }) => (normal.into(), offset),
            None => (DVec3::AXES[self.axis.index()], self.at),
        }
    }

    /// Returns true if the plane meets a box in volume space.
    pub(crate) fn cuts(&self, low: DVec3, high: DVec3) -> bool {
        let (normal, offset) = self.plane();
        let farthest = DVec3::select(normal.cmpge(DVec3::ZERO), high, low);
        let nearest = DVec3::select(normal.cmpge(DVec3::ZERO), low, high);
        normal.dot(nearest) <= offset && offset <= normal.dot(farthest)
    }

    /// Returns the position at which the value of a point of the plane is looked up: the point itself, or the
    /// center of its voxel. `last` is the last voxel along x, y, z.
    #[inline(always)]
    pub(crate) fn looked_up_at(&self, point: DVec3, last: DVec3) -> DVec3 {
        if self.nearest { (point + 0.5).floor().clamp(DVec3::ZERO, last) } else { point }
    }

    /// Checks the slices of one picture of a volume.
    ///
    /// # Errors
    /// `Invalid`, with a message that names the cause.
    pub fn check_of(slices: &[Self], view: &VolumeView) -> Result<()> {
        if slices.len() > Self::MAX_COUNT {
            let (most, found) = (Self::MAX_COUNT, slices.len());
            return Err(Error::invalid(format!("expected at most {most} slices, found {found}")));
        }
        let (low, high) = view.volume_box();
        for &Self { axis, at, oblique, .. } in slices {
            if let Some(plane) = oblique {
                if plane.is_legal() {
                    continue;
                }
                return Err(Error::invalid(format!(
                    "expected an oblique slice with a finite offset and a normal of length 1, found {plane:?}"
                )));
            }
            let (low, high) = (low[axis.index()], high[axis.index()]);
            if !(low..=high).contains(&at) {
                return Err(Error::invalid(format!(
                    "expected a slice across {axis:?} from {low} to {high}, found {at}"
                )));
            }
        }
        Ok(())
    }
}
