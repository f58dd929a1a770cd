//! Heights of values in pictures of extreme values: the more extreme a value, the higher it is. They are entries of
//! the transfer function's table.

use glam::Vec4;
use view::Mode;

use crate::Scene;
use crate::cpu::palette::Palette;
use crate::cpu::table::{ENTRIES, TransferTable};
use crate::simd::Simd;

/// Height of rays that have met no value.
pub const NOTHING: f32 = -1.0;
/// Largest height.
pub const TOP: f32 = (ENTRIES - 1) as f32;
/// Height of one unit of [`Peaks::cells`](crate::device::Peaks::cells).
pub const PEAK_STEP: f32 = TOP / 254.0;
/// Difference below which heights count as equal: a 32,000th of the transfer function's domain.
pub const ALIKE: f32 = 1.0 / 16.0;

/// Height = `sign * entry + origin`.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeightScale {
    pub(super) sign: f32,
    pub(super) origin: f32,
}

impl HeightScale {
    /// `None` for pictures of other modes.
    pub(super) fn of(mode: Mode) -> Option<Self> {
        match mode {
            Mode::Maximum => Some(Self { sign: 1.0, origin: 0.0 }),
            Mode::Minimum => Some(Self { sign: -1.0, origin: TOP }),
            Mode::Composite | Mode::Surfaces => None,
        }
    }

    pub(super) fn height(self, entry: f32) -> f32 {
        (self.sign * entry + self.origin).clamp(0.0, TOP)
    }

    /// Returns the maximum of heights and of those of places, for rays that have a sample; NaN is no place.
    #[inline(always)]
    pub(super) fn best<S: Simd>(
        self,
        simd: S,
        table: &TransferTable,
        best: S::F,
        place: S::F,
        own: S::M,
    ) -> S::F {
        let entry = table.entry_scale.entries(simd, place);
        let height = simd.mul_add(entry, simd.splat(self.sign), simd.splat(self.origin));
        let height = simd.min(simd.max(height, simd.splat(0.0)), simd.splat(TOP));
        let is_there = simd.and(own, simd.eq(place, place));
        simd.select(is_there, simd.max(height, best), best)
    }
}

/// Composites the colors of heights, if a scene has any, behind everything else.
pub(crate) fn show(scene: &Scene, pixels: &mut [[f32; 4]], heights: &[f32]) {
    let Some(scale) = HeightScale::of(scene.mode) else { return };
    let palette = Palette::new(&scene.transfer);
    for (pixel, &height) in pixels.iter_mut().zip(heights) {
        // Transparent where there was no value.
        if height >= 0.0 {
            let before = Vec4::from(*pixel);
            let own = palette.of_entry((height - scale.origin) * scale.sign);
            *pixel = (before + own * (1.0 - before.w)).to_array();
        }
    }
}
