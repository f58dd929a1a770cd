//! Drawing mode of a volume.

use array::{Error, Result};

use crate::VolumeView;

/// Drawing mode of a volume, besides its isosurfaces and slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All that the transfer function shows.
    #[default]
    Composite,
    /// Nothing.
    Surfaces,
    /// The largest value along each ray in its color, opaque, behind all surfaces and slices; nothing where no value is.
    Maximum,
    /// The smallest value along each ray, drawn as [`Mode::Maximum`] draws the largest.
    Minimum,
}

impl Mode {
    /// True for [`Mode::Maximum`] and [`Mode::Minimum`].
    #[must_use]
    pub fn is_extreme(self) -> bool {
        matches!(self, Self::Maximum | Self::Minimum)
    }

    /// Factor by which steps are shorter than those of other pictures. A ray's extreme value is a peak, which samples meet or
    /// miss: with one for each voxel rings show, with two hardly.
    pub(crate) fn step(self) -> f64 {
        match self {
            Self::Maximum | Self::Minimum => 0.5,
            Self::Composite | Self::Surfaces => 1.0,
        }
    }

    /// Checks what is drawn of a volume.
    ///
    /// # Errors
    /// `Invalid` for extreme values of labels and packed colors, whose order means nothing.
    pub fn check_of(self, view: &VolumeView) -> Result<()> {
        if !view.meaning.is_continuous() && self.is_extreme() {
            return Err(Error::invalid(
                "expected an array of intensities to draw extreme values of, found labels or colors: choose another mode",
            ));
        }
        Ok(())
    }
}
