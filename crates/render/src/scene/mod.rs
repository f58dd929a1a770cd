//! A scene: everything that one picture needs besides the blocks.

pub(crate) mod camera;
pub(crate) mod colour;
pub(crate) mod demand;
pub(crate) mod first_camera;
pub(crate) mod frustum;
pub(crate) mod journey;
pub(crate) mod light;
pub(crate) mod share;
pub(crate) mod slice;
pub(crate) mod surface;
pub(crate) mod tint;
pub(crate) mod transfer;
pub(crate) mod truth;
pub(crate) mod volume;
pub(crate) mod wires;

use std::sync::Arc;

use array::{Error, Result};

use crate::{
    Bounds, Camera, ImageSize, Isosurface, MAX_BOXES, Portion, Slice, Tint, TransferFunction, VolumeView,
    WireBoxes,
};

/// Settings that trade exactness for speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// A ray ends when less than this share of what lies behind would still be seen.
    pub termination: f32,
    /// Distance of samples, as a multiple of the smallest voxel spacing of the finest level drawn; see
    /// [`VolumeView::step_world`].
    pub step: f64,
    /// Leap over what the transfer function hides, and take several steps at once where values and opacity run evenly. Off only
    /// to check that it changes nothing.
    pub skip_empty: bool,
}

impl Quality {
    /// For pictures that stay.
    pub const STILL: Self = Self { termination: 1.0 / 512.0, step: 1.0, skip_empty: true };
    /// For pictures that are replaced at once.
    pub const MOVING: Self = Self { termination: 0.01, step: 1.5, skip_empty: true };
    /// How long it is beside the width of pixels.
    const STEP_OF_PIXELS: f64 = 4.0 / 3.0;
    /// The longest step of those: a picture with it is still 45 dB from the full one (docs/benchmarks.md, at VTK's dB).
    const LONGEST_MOVING_STEP: f64 = 4.0;

    /// For pictures that are replaced at once and whose pixels are as wide as so many samples are apart with a step of 1: along
    /// rays, where opacity is known for all of a step, samples may lie a little farther apart than pixels.
    #[must_use]
    pub fn moving(pixel_steps: f64) -> Self {
        let step = pixel_steps * Self::STEP_OF_PIXELS;
        let step = step.clamp(Self::MOVING.step, Self::LONGEST_MOVING_STEP);
        Self { step, ..Self::MOVING }
    }
}

impl Default for Quality {
    fn default() -> Self {
        Self::STILL
    }
}

/// Drawing mode of a volume, besides its isosurfaces and slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All that the transfer function shows.
    #[default]
    Composite,
    /// Nothing.
    Surfaces,
    /// The largest value along each ray in its colour, opaque, behind all surfaces and slices; nothing where no value is.
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

    /// By how much steps are shorter than those of other pictures. A ray's extreme value is a peak, which samples meet or
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

/// Everything that one picture needs besides the blocks.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Which volume.
    pub view: Arc<VolumeView>,
    /// Seen from where.
    pub camera: Camera,
    /// How values become colour and opacity.
    pub transfer: TransferFunction,
    /// Another array that gives the colours of all that is drawn but lines; opacity stays as `transfer` says.
    pub tint: Option<Tint>,
    /// Surfaces in the volume, at most [`Isosurface::MAX_COUNT`]; labels have none.
    pub surfaces: Vec<Isosurface>,
    /// Planes in the volume, at most [`Slice::MAX_COUNT`].
    pub slices: Vec<Slice>,
    /// Boxes drawn as lines where they lie, at most [`MAX_BOXES`]: dimmed by what is before them. In pictures of extreme values, which
    /// have no depth, before these.
    pub wires: WireBoxes,
    /// Drawing mode of everything besides surfaces and slices.
    pub mode: Mode,
    /// Light what the transfer function shows, by the gradient of the values; surfaces always are, labels and extreme
    /// values never.
    pub is_lit: bool,
    /// Pixels.
    pub size: ImageSize,
    /// Only what lies inside is drawn (world space).
    pub clip: Option<Bounds>,
    /// Speed against exactness.
    pub quality: Quality,
    /// Number of the finest level to draw, as [`crate::Demand::wanted`] says; finer blocks that are still
    /// resident are left out, so that a picture does not depend on what was seen before.
    pub finest_level: u8,
}

impl Scene {
    /// # Errors
    /// `Invalid`, naming what is wrong.
    pub fn check(&self) -> Result<()> {
        self.size.check()?;
        self.camera.check()?;
        self.transfer.check()?;
        Isosurface::check_of(&self.surfaces, &self.view)?;
        Slice::check_of(&self.slices, &self.view)?;
        self.mode.check_of(&self.view)?;
        if let Some(tint) = &self.tint {
            tint.check_of(&self.view, self.mode)?;
        }
        if self.wires.len() > MAX_BOXES {
            let found = self.wires.len();
            return Err(Error::too_large(format!(
                "expected at most {MAX_BOXES} boxes as lines, found {found}"
            )));
        }
        if !(self.quality.step >= Self::MIN_STEP && self.quality.step <= Self::MAX_STEP) {
            return Err(Error::invalid(format!(
                "expected a step between {} and {} voxels, found {}",
                Self::MIN_STEP,
                Self::MAX_STEP,
                self.quality.step
            )));
        }
        if let Some(clip) = &self.clip
            && !clip.min.iter().chain(&clip.max).all(|v| v.is_finite())
        {
            return Err(Error::invalid(format!("expected a finite clipping box, found {clip:?}")));
        }
        self.view.rank_of(self.finest_level).map(|_| ())
    }

    /// The part of the volume that it shows.
    #[must_use]
    pub fn portion(&self) -> Portion {
        Portion::of(self.clip, self.mode, &self.surfaces, self.slices.clone())
    }

    const MIN_STEP: f64 = 1.0 / 16.0;
    const MAX_STEP: f64 = 16.0;
}
