//! Quality of a picture: exactness against speed.

/// Settings that trade exactness for speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// A ray ends when its remaining transparency is below this share.
    pub termination: f32,
    /// Distance of samples, as a multiple of the smallest voxel spacing of the finest level drawn; see
    /// [`VolumeView::step_world`](crate::VolumeView::step_world).
    pub step: f64,
    /// Skip what the transfer function hides, and take several steps at once where values and opacity vary
    /// evenly. Off only to check that it does not change the picture.
    pub skip_empty: bool,
}

impl Quality {
    /// Quality of final pictures.
    pub const STILL: Self = Self { termination: 1.0 / 512.0, step: 1.0, skip_empty: true };
    /// Quality of pictures that are replaced soon (interactive).
    pub const MOVING: Self = Self { termination: 0.01, step: 1.5, skip_empty: true };
    /// Step length relative to the width of pixels.
    const STEP_OF_PIXELS: f64 = 4.0 / 3.0;
    /// Longest step of interactive pictures: a picture with it is still 45 dB from the full one
    /// (docs/benchmarks.md, at VTK's dB).
    const LONGEST_MOVING_STEP: f64 = 4.0;

    /// Returns the quality of interactive pictures with pixels as wide as this number of samples at a step of
    /// 1: along rays, whose opacity is known for a whole step, samples may be a little farther apart than
    /// pixels.
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
