//! Fragments from the samples of pixels.
//!
//! Samples at nearly one depth become one fragment. Each sample covers a quarter of its pixel that no other sample
//! covers, but fragments are blended as if they covered independent parts: so the opacity of a fragment is the share
//! of what those of the same samples before it have left.

use crate::ImageSize;
use crate::cpu::fragments::Fragment;
use crate::geometry::samples::{BandSamples, SAMPLES};
use crate::scene::camera::Lens;

/// Most fragments of geometry in a pixel; the nearest are kept.
const MAX_FRAGMENTS_PER_PIXEL: usize = 16;
/// Sizes of a pixel, in world units at its depth, within which samples are one fragment.
const SAME_DEPTH_PIXELS: f32 = 4.0;

/// Returns the fragments of a band, in order. `all` are the samples with their opacities.
pub(crate) fn resolve(all: &[(BandSamples, f32)], lens: &Lens, size: ImageSize) -> Vec<Fragment> {
    let Some((first, _)) = all.first() else { return Vec::new() };
    let mut fragments = Vec::new();
    let mut of_pixel = Vec::new();
    for number in 0..first.pixels() {
        of_pixel.clear();
        let pixel = u32::try_from(first.top as usize * size.width as usize + number).unwrap_or(u32::MAX);
        for (samples, opacity) in all {
            of_samples(samples.of_pixel(number), *opacity, pixel, lens, size, &mut of_pixel);
        }
        of_pixel.sort_by(|a, b| a.depth.total_cmp(&b.depth));
        // Nothing is seen behind an opaque fragment.
        let end = of_pixel
            .iter()
            .position(|fragment| fragment.alpha == u8::MAX)
            .map_or(of_pixel.len(), |at| at + 1);
        fragments.extend_from_slice(&of_pixel[..end.min(MAX_FRAGMENTS_PER_PIXEL)]);
    }
    fragments
}

/// Adds the fragments of samples of one pixel.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of colors")]
fn of_samples(
    samples: impl Iterator<Item = (f32, [u8; 3])>,
    opacity: f32,
    pixel: u32,
    lens: &Lens,
    size: ImageSize,
    into: &mut Vec<Fragment>,
) {
    let mut sorted = [(f32::INFINITY, [0; 3]); SAMPLES];
    let mut count = 0;
    for sample in samples {
        sorted[count] = sample;
        count += 1;
    }
    sorted[..count].sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut from, mut covered) = (0, 0.0);
    while from < count {
        let reach =
            sorted[from].0 + SAME_DEPTH_PIXELS * pixel_world(lens, size, sorted[from].0.into()) as f32;
        let to = from + sorted[from..count].iter().take_while(|(depth, _)| *depth <= reach).count().max(1);
        let own = &sorted[from..to];
        let part = own.len() as f32;
        let color = [0, 1, 2]
            .map(|c| (own.iter().map(|(_, color)| f32::from(color[c])).sum::<f32>() / part).round() as u8);
        let share = opacity * part / SAMPLES as f32;
        let alpha = (share / (1.0 - covered) * 255.0).round().clamp(0.0, 255.0) as u8;
        covered += share;
        into.push(Fragment { pixel, depth: own[0].0, color, alpha });
        from = to;
    }
}

/// Returns the size of a pixel at a depth, world units.
pub(crate) fn pixel_world(lens: &Lens, size: ImageSize, depth: f64) -> f64 {
    let spread = if lens.perspective { depth.max(0.0) } else { 1.0 };
    2.0 * lens.half[1] / f64::from(size.height) * spread
}
