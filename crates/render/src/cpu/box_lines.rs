//! Boxes drawn as lines in the picture: intersections of rays with their edges.
//!
//! Edges are projected and cut into [fragments](Fragment). Edges shared by several boxes are drawn once. The
//! list of boxes has an order, and if there are too many fragments the last boxes are left out.

use std::collections::HashSet;
use std::ops::Range;

use glam::DVec3;

use crate::cpu::fragments::Fragment;
use crate::image::raster::line;
use crate::scene::camera::Lens;
use crate::{Bounds, ImageSize, Scene};

/// Most fragments of box edges in a picture of at most [`ImageSize::MAX_PIXELS`]: 48 MiB. Larger pictures have as many
/// more of them as they have more rows and columns, of which those of the rows drawn at once are kept.
const MAX_FRAGMENTS: usize = 4 << 20;
/// Opacity of lines.
const OPACITY: f32 = 0.85;
/// Share of the distance to the target; edges nearer to the eye than this are not drawn.
const NEAR_SHARE: f64 = 1e-3;

/// Returns the fragments of the boxes of a scene in some rows of the picture.
pub(crate) fn fragments_of_boxes(scene: &Scene, lens: &Lens, rows: &Range<u32>) -> Vec<Fragment> {
    let [first_pixel, end_pixel] =
        [rows.start, rows.end].map(|row| u64::from(row) * u64::from(scene.size.width));
    let is_drawn = |fragment: &Fragment| (first_pixel..end_pixel).contains(&u64::from(fragment.pixel));
    let most = most_fragments(scene.size);
    let mut count = 0;
    let near = NEAR_SHARE * DVec3::from(scene.camera.eye).distance(scene.camera.target.into());
    let mut known = HashSet::new();
    let mut fragments = Vec::new();
    for wire in scene.wires.iter() {
        for [low, high] in edges(&wire.bounds) {
            let is_new = known.insert([low, high].map(|end| end.to_array().map(f64::to_bits)));
            let part = scene.clip.map_or(Some([low, high]), |clip| inside([low, high], &clip));
            if let Some(part) = part.filter(|_| is_new && count <= most) {
                cross(lens, near, part, wire.color, scene.size, |fragment| {
                    count += 1;
                    if is_drawn(&fragment) {
                        fragments.push(fragment);
                    }
                });
            }
        }
        if count > most {
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

/// Returns the most fragments of a picture of a size.
fn most_fragments(size: ImageSize) -> usize {
    let times = size.pixels().div_ceil(ImageSize::MAX_PIXELS).max(1);
    MAX_FRAGMENTS.saturating_mul(usize::try_from(times).unwrap_or(usize::MAX))
}

/// Adds the fragments of an edge.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels of an image; a byte")]
fn cross(
    lens: &Lens,
    near: f64,
    [low, high]: [DVec3; 2],
    color: [u8; 3],
    size: ImageSize,
    mut add: impl FnMut(Fragment),
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
        if !is_inside || alpha == 0 {
            return;
        }
        // Along a projected line the inverse of the depth is linear.
        let depth = if lens.perspective {
            1.0 / ((1.0 - share) / depths[0] + share / depths[1])
        } else {
            depths[0] + (depths[1] - depths[0]) * share
        };
        let pixel = (row * i64::from(size.width) + column) as u32;
        add(Fragment { pixel, depth: depth as f32, color, alpha });
    });
}
