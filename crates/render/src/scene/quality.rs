//! Quality of a picture: exactness against speed.

/// Settings that trade exactness for speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// A ray ends when less than this share of what lies behind would still be seen.
    pub termination: f32,
    /// Distance of samples, as a multiple of the smallest voxel spacing of the finest level drawn; see
    /// [`VolumeView::step_world`](crate::VolumeView::step_world).
    pub step: f64,
    /// Leap over what the transfer function hides, and take several steps at once where values and opacity run evenly. Off only
    /// to check that it changes nothing.
    pub skip_empty: bool,
}

impl Quality {
    /// Quality of pictures that stay.
    pub const STILL: Self = Self { termination: 1.0 / 512.0, step: 1.0, skip_empty: true };
    /// Quality of pictures that are replaced at once.
    pub const MOVING: Self = Self { termination: 0.01, step: 1.5, skip_empty: true };
    /// How long it is beside the width of pixels.
    const STEP_OF_PIXELS: f64 = 4.0 / 3.0;
    /// The longest step of those: a picture with it is still 45 dB from the full one (docs/benchmarks.md, at VTK's dB).
    const LONGEST_MOVING_STEP: f64 = 4.0;

    /// Quality of pictures that are replaced at once and whose pixels are as wide as so many samples are apart with a step of 1: along
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
