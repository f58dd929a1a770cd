//! Where samples lie in what is thin: a picture of one to a few layers, a needle, what a clipping box leaves.
//!
//! Samples at multiples of one step from the eye fall into a thin slab once, or twice, or not at all, from ray to ray: rings. So where
//! a picture is less than [`FEW_ACROSS`] steps thick each ray has samples of its own: from where it enters to where it leaves in so
//! many equal steps, at least one, as come nearest to the usual length. They are longer or shorter than that by
//! [`Rays::stretch`](crate::rays::Rays), and so is the way that the ray has come: what it gathered is that of its true way once
//! [`lengthened`]. Steps are at most a [`FEWEST_ACROSS`]th of the thickness, so that what is left of the order of colours on a
//! stretched way cannot be seen. Where surfaces, slices or lines are in the picture too, which have no length, ways stay as they are.

use glam::{DVec3, Vec4};

use crate::volume::xyz;
use crate::{Scene, VolumeView};

/// Fewest steps across what is thin.
const FEWEST_ACROSS: f64 = 16.0;
/// What has so many of the usual ones across it, or more, is not thin.
const FEW_ACROSS: f64 = 12.0;
/// Most steps along the diagonal of what is thin.
const MOST_ALONG: f64 = (1u64 << 20) as f64;
/// By so much of a step a ray's samples lie before whole steps from where it enters, so that the last one lies within.
pub(crate) const EARLIER: f64 = 1e-9;

/// How far samples of a picture are apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spacing {
    /// World units.
    pub(crate) step_world: f64,
    /// Each ray has samples of its own.
    pub(crate) is_thin: bool,
}

impl Spacing {
    /// For a picture whose finest blocks are of this rank, of steps so many times as long as usual.
    pub(crate) fn of(scene: &Scene, rank: usize, multiple: f64) -> Self {
        let usual = scene.view.step_world(rank, multiple);
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

/// Least distance of two faces of the volume, and an upper bound of its diagonal; world units.
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

/// What a ray has gathered, had all its ways been so many times as long.
pub(crate) fn lengthened(colour: Vec4, times: f64) -> Vec4 {
    let opacity = f64::from(colour.w);
    if opacity <= 0.0 || opacity >= 1.0 {
        return colour;
    }
    let own = -(times * (-opacity).ln_1p()).exp_m1();
    #[expect(clippy::cast_possible_truncation, reason = "opacities are drawn in f32")]
    let share = (own / opacity) as f32;
    colour * share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_add_up() {
        let colour = Vec4::new(0.1, 0.2, 0.3, 0.4);
        let both = lengthened(colour, 2.0);
        assert!((both.w - (1.0 - 0.6 * 0.6)).abs() < 1e-6, "{both}");
        assert!((both.x / both.w - colour.x / colour.w).abs() < 1e-6, "{both}");
        assert_eq!(lengthened(Vec4::ONE, 0.25), Vec4::ONE);
        assert_eq!(lengthened(Vec4::ZERO, 3.0), Vec4::ZERO);
    }
}
