//! Slices: planes across one axis of the volume; and the part of a volume that a picture shows.
//!
//! Values set by the user; `cpu/slices.rs` intersects rays with slices.

use array::{Error, Result};
use view::{MAX_SLICES, Mode, SpaceAxis};

use crate::{Bounds, Isosurface, VolumeView};

/// Plane across one axis of the volume, opaque in the colors of the transfer function: values between voxels
/// are interpolated, those of labels are the nearest ones. Nothing is drawn where a value is missing, nor
/// outside of the clipping box; light and the transfer function's opacity have no effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// Axis perpendicular to the plane.
    pub axis: SpaceAxis,
    /// Position on the axis, voxels of level 0: -0.5 to n - 0.5, centers at whole numbers.
    pub at: f64,
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
        for &Self { axis, at } in slices {
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
