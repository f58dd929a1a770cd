//! Boxes drawn as lines in the picture: intersections of rays with their edges.
//!
//! Edges are projected and cut into [fragments](Fragment). Edges shared by several boxes are drawn once. The
//! list of boxes has an order, and if there are too many fragments the last boxes are left out.

use std::collections::HashSet;

use glam::DVec3;

use crate::cpu::fragments::Fragment;
use crate::image::raster::line;
use crate::scene::camera::Lens;
use crate::{Bounds, ImageSize, Scene};

/// Most fragments of box edges in a picture: 48 MiB.
const MAX_FRAGMENTS: usize = 4 << 20;
/// Opacity of lines.
const OPACITY: f32 = 0.85;
/// Share of the distance to the target; edges nearer to the eye than this are not drawn.
const NEAR_SHARE: f64 = 1e-3;

/// Returns the fragments of the boxes of a scene.
pub(crate) fn fragments_of_boxes(scene: &Scene, lens: &Lens) -> Vec<Fragment> {
    let near = NEAR_SHARE * DVec3::from(scene.camera.eye).distance(scene.camera.target.into());
    let mut known = HashSet::new();
    let mut fragments = Vec::new();
    for wire in scene.wires.iter() {
        for [low, high] in edges(&wire.bounds) {
            let is_new = known.insert([low, high].map(|end| end.to_array().map(f64::to_bits)));
            let part = scene.clip.map_or(Some([low, high]), |clip| inside([low, high], &clip));
            if let Some(part) = part.filter(|_| is_new) {
                cross(lens, near, part, wire.color, &mut fragments, scene.size);
            }
        }
        if fragments.len() > MAX_FRAGMENTS {
            break;
        }
    }
    fragments
}

/// Returns the twelve edges of a box, fewer if it is flat.
fn edges(bounds: &Bounds) -> impl Iterator<Item = [DVec3; 2]> {
    let corner = |number: usize| {
        DVec3::from_array(std::array::from_fn(|axis| {
            if number >> axis & 1 == 0 { bounds.min[axis] } else { bounds.max[axis] }
        }))
    };
    let edges = (0..3usize).flat_map(|axis| (0..8usize).map(move |number| (axis, number)));
    let edges = edges.filter(|(axis, number)| number >> axis & 1 == 0);
    edges.map(move |(axis, number)| [corner(number), corner(number | 1 << axis)]).filter(|[a, b]| a != b)
}

/// Returns the part of an edge, which lies along an axis, inside a box.
fn inside([low, high]: [DVec3; 2], clip: &Bounds) -> Option<[DVec3; 2]> {
    let [min, max] = [clip.min, clip.max].map(DVec3::from);
    let is_met = high.cmpge(min).all() && low.cmple(max).all();
    is_met.then(|| [low.max(min), high.min(max)])
}

/// Adds the fragments of an edge.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels of an image; a byte")]
fn cross(
    lens: &Lens,
    near: f64,
    [low, high]: [DVec3; 2],
    color: [u8; 3],
    into: &mut Vec<Fragment>,
    size: ImageSize,
) {
    let depth = |point: DVec3| (point - lens.eye).dot(lens.forward);
    let (mut ends, mut depths) = ([low, high], [depth(low), depth(high)]);
    if lens.perspective {
        if depths[0].max(depths[1]) <= near {
            return;
        }
        for end in 0..2 {
            if depths[end] < near {
                let other = 1 - end;
                ends[end] =
                    ends[other].lerp(ends[end], (depths[other] - near) / (depths[other] - depths[end]));
                depths[end] = near;
            }
        }
    }
    let (Some(a), Some(b)) = (lens.pixel_of(ends[0]), lens.pixel_of(ends[1])) else { return };
    // Pixel centers are at whole numbers there.
    let [a, b] = [a, b].map(|at| glam::DVec2::from(at) - 0.5);
    line(a, b, size, |column, row, covered, share| {
        let alpha = (OPACITY * covered * 255.0 + 0.5) as u8;
        let is_inside =
            (0..i64::from(size.width)).contains(&column) && (0..i64::from(size.height)).contains(&row);
        if !is_inside || alpha == 0 || into.len() > MAX_FRAGMENTS {
            return;
        }
        // Along a projected line the inverse of the depth is linear.
        let depth = if lens.perspective {
            1.0 / ((1.0 - share) / depths[0] + share / depths[1])
        } else {
            depths[0] + (depths[1] - depths[0]) * share
        };
        let pixel = (row * i64::from(size.width) + column) as u32;
        into.push(Fragment { pixel, depth: depth as f32, color, alpha });
    });
}
