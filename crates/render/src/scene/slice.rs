//! Slices: planes across one axis of the volume, and which part of a volume a picture shows.
//!
//! Values a person sets; how a ray meets a slice is told in `cpu/slices.rs`.

use array::{Error, Result};
use view::{MAX_SLICES, Mode, SpaceAxis};

use crate::{Bounds, Isosurface, VolumeView};

/// A plane across one axis of the volume, opaque in the colors of the transfer function: between voxels values are
/// interpolated, those of labels are the nearest ones. There is nothing where no value is, nor outside of the clipping
/// box; light and the transfer function's opacity change nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// The axis that it lies across.
    pub axis: SpaceAxis,
    /// Position on the axis, voxels of level 0: -0.5 to n - 0.5, centers at whole numbers.
    pub at: f64,
}

/// Which part of a volume a picture shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Portion {
    /// Only what lies inside (world space).
    pub clip: Option<Bounds>,
    /// Only what lies on these, where they are all that is drawn.
    pub slices: Option<Vec<Slice>>,
}

impl Portion {
    /// The part that a picture of these shows: slices are all that is drawn where nothing else is.
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
    /// `Invalid`, naming what is wrong.
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
