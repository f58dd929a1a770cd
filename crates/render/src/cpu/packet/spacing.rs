//! Positions of samples in thin volumes: one to a few layers, a needle, or the part that a clipping box leaves.
//!
//! Samples at multiples of one step from the eye hit a thin slab once, twice or not at all, depending on the ray, which shows as
//! rings. So where the volume is less than [`FEW_ACROSS`] steps thick each ray has samples of its own: equal steps from its entry to
//! its exit, at least one, as near to the usual length as that allows. The ratio of the two lengths is
//! [`PacketRays::stretch`](crate::cpu::packet::rays::PacketRays). Each sample counts for a step of the usual length, so the color of the ray is corrected to
//! its true path length at the end ([`lengthened`]). Steps are at most a [`FEWEST_ACROSS`]th of the thickness, so that the error of
//! correcting the sum instead of each color cannot be seen. Where surfaces, slices or lines, which have no thickness, are in the
//! picture too, path lengths are not corrected.

use glam::{DVec3, Vec4};

use crate::scene::volume::xyz;
use crate::{Scene, VolumeView};

/// Fewest steps across a thin volume.
const FEWEST_ACROSS: f64 = 16.0;
/// A volume is thin if fewer steps of the usual length fit across it.
const FEW_ACROSS: f64 = 12.0;
/// Most steps along the diagonal of a thin volume.
const MOST_ALONG: f64 = (1u64 << 20) as f64;

/// Distance of the samples of a picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleSpacing {
    /// World units.
    pub(crate) step_world: f64,
    /// True if each ray has samples of its own.
    pub(crate) is_thin: bool,
}

impl SampleSpacing {
    /// Returns the spacing for a picture whose finest blocks are of this level; `multiple` lengthens the
    /// steps.
    pub(crate) fn of(scene: &Scene, level_index: usize, multiple: f64) -> Self {
        let usual = scene.view.step_world(level_index, multiple);
        let (thickness, diagonal) = thickness_world(&scene.view);
        let clipped = scene.clip.map_or(f64::INFINITY, |clip| {
            (DVec3::from(clip.max) - DVec3::from(clip.min)).max(DVec3::ZERO).min_element()
        });
        let thickness = thickness.min(clipped);
        if !(thickness < usual * FEW_ACROSS && thickness > 0.0) {
            return Self { step_world: usual, is_thin: false };
        }
        let step_world = usual.min((thickness / FEWEST_ACROSS).max(diagonal / MOST_ALONG));
        Self { step_world, is_thin: true }
    }
}

/// Returns the smallest distance between two opposite faces of the volume, and an upper bound of its
/// diagonal; world units.
fn thickness_world(view: &VolumeView) -> (f64, f64) {
    let map = view.world_from_volume.matrix3;
    let edges = xyz(view.levels[0].shape);
    let across = |axis: usize| {
        let (b, c) = (map.col((axis + 1) % 3), map.col((axis + 2) % 3));
        let normal = b.cross(c).try_normalize().unwrap_or(DVec3::ZERO);
        (map.col(axis).dot(normal) * edges[axis]).abs()
    };
    let diagonal: f64 = (0..3).map(|axis| map.col(axis).length() * edges[axis]).sum();
    (across(0).min(across(1)).min(across(2)), diagonal)
}

/// Corrects the color of a ray whose path is `times` as long as the one it was accumulated along.
pub(crate) fn lengthened(color: Vec4, times: f64) -> Vec4 {
    let opacity = f64::from(color.w);
    if opacity <= 0.0 || opacity >= 1.0 {
        return color;
    }
    let own = -(times * (-opacity).ln_1p()).exp_m1();
    #[expect(clippy::cast_possible_truncation, reason = "opacities are drawn in f32")]
    let share = (own / opacity) as f32;
    color * share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_add_up() {
        let color = Vec4::new(0.1, 0.2, 0.3, 0.4);
        let both = lengthened(color, 2.0);
        assert!((both.w - (1.0 - 0.6 * 0.6)).abs() < 1e-6, "{both}");
        assert!((both.x / both.w - color.x / color.w).abs() < 1e-6, "{both}");
        assert_eq!(lengthened(Vec4::ONE, 0.25), Vec4::ONE);
        assert_eq!(lengthened(Vec4::ZERO, 3.0), Vec4::ZERO);
    }
}
