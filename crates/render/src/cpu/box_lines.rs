//! Boxes drawn as lines in the picture: intersections of rays with their edges.
//!
//! Edges are projected and cut into *fragments*: a pixel, the depth of the edge there, and its coverage of
//! the pixel. The caster blends fragments with the colors of each ray in depth order, so that what is in
//! front of an edge dims it, and opaque surfaces hide it. Edges shared by several boxes are drawn once. The
//! list of boxes has an order, and if there are too many fragments the last boxes are left out.

use std::collections::HashSet;
use std::ops::Range;

use glam::{DVec3, Vec4};

use crate::cpu::packet::rays::PacketRays;
use crate::cpu::packet::size::{LaneValues, PACKET_PIXELS, PACKET_SIDE};
use crate::cpu::slices::SliceHits;
use crate::image::raster::line;
use crate::scene::camera::Lens;
use crate::simd::LANES;
use crate::{Bounds, ImageSize, Rect, Scene};

/// Most fragments of box edges in a picture of at most [`ImageSize::MAX_PIXELS`]: 48 MiB. Larger pictures have as many
/// more of them as they have more rows and columns, of which those of the rows drawn at once are kept.
const MAX_FRAGMENTS: usize = 4 << 20;
/// Opacity of lines.
const OPACITY: f32 = 0.85;
/// Share of the distance to the target; edges nearer to the eye than this are not drawn.
const NEAR_SHARE: f64 = 1e-3;

/// Fragment of an edge in a pixel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineFragment {
    pixel: u32,
    /// Depth along the line of sight, world units.
    depth: f32,
    color: [u8; 3],
    /// Coverage, 255ths.
    covered: u8,
}

impl LineFragment {
    /// Premultiplied.
    fn color(&self) -> Vec4 {
        let [r, g, b] = self.color.map(|c| f32::from(c) / 255.0);
        Vec4::new(r, g, b, 1.0) * (OPACITY * f32::from(self.covered) / 255.0)
    }
}

/// Fragments of all pixels with the edges of boxes.
#[derive(Debug)]
pub(crate) struct BoxLines {
    size: ImageSize,
    /// Rows of the image that are drawn.
    rows: Range<u32>,
    /// Fragments by pixel, the nearest first.
    fragments: Vec<LineFragment>,
    /// Index of the first fragment of each pixel of the rows, followed by the number of fragments.
    starts: Vec<u32>,
}

impl BoxLines {
    /// `None` if no edge is in the rows of `rect`.
    pub(crate) fn new(scene: &Scene, lens: &Lens, rect: &Rect) -> Option<Self> {
        let rows = rect.top..rect.top + rect.height;
        let first_pixel = u64::from(rows.start) * u64::from(scene.size.width);
        let end_pixel = u64::from(rows.end) * u64::from(scene.size.width);
        let is_drawn =
            |fragment: &LineFragment| (first_pixel..end_pixel).contains(&u64::from(fragment.pixel));
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
        if fragments.is_empty() {
            return None;
        }
        fragments.sort_unstable_by(|a, b| a.pixel.cmp(&b.pixel).then(a.depth.total_cmp(&b.depth)));
        let (mut starts, mut next) = (Vec::new(), 0);
        let [first_pixel, end_pixel] = [first_pixel, end_pixel].map(u32::try_from);
        for pixel in first_pixel.ok()?..=end_pixel.ok()? {
            while fragments.get(next).is_some_and(|fragment| fragment.pixel < pixel) {
                next += 1;
            }
            starts.push(u32::try_from(next).ok()?);
        }
        Some(Self { size: scene.size, rows, fragments, starts })
    }

    /// Returns the fragments of a pixel, the nearest first; none outside the image.
    fn of(&self, [column, row]: [u32; 2]) -> &[LineFragment] {
        let width = self.size.width;
        if column >= width || !self.rows.contains(&row) {
            return &[];
        }
        let pixel = self.index(column, row);
        let [from, to] = [pixel, pixel + 1].map(|at| self.starts.get(at).map_or(0, |&start| start as usize));
        self.fragments.get(from..to).unwrap_or_default()
    }

    /// True if a ray of a packet meets an edge.
    pub(crate) fn touch(&self, [left, top]: [u32; 2]) -> bool {
        let right = (left + PACKET_SIDE).min(self.size.width);
        (top..(top + PACKET_SIDE).min(self.rows.end)).any(|row| {
            let start = |column: u32| self.starts[self.index(column, row)];
            left < right && start(left) < start(right)
        })
    }

    /// Returns the index of a pixel among those of the rows.
    fn index(&self, column: u32, row: u32) -> usize {
        (row - self.rows.start) as usize * self.size.width as usize + column as usize
    }

    /// Returns the fragments of the rays of a packet.
    pub(crate) fn packet_lines(&self, [left, top]: [u32; 2], rays: &PacketRays) -> PacketLines<'_> {
        let mut reach = rays.reach;
        // Rays that miss the volume have all fragments in front of it.
        for lane in (0..LANES).filter(|&lane| !rays.has_samples(lane)) {
            reach[0][lane] = f64::INFINITY;
        }
        let left = PACKET_PIXELS.map(|[column, row]| self.of([left + column, top + row]));
        PacketLines { left, length: rays.length, depth: rays.depth, reach }
    }
}

/// Remaining fragments of sixteen rays.
pub(crate) struct PacketLines<'a> {
    left: [&'a [LineFragment]; LANES],
    /// Length of a step along the camera's line of sight, and the depth of sample 0 on it.
    length: LaneValues,
    depth: LaneValues,
    /// Positions where the drawn part of the volume begins and ends, in steps.
    reach: [LaneValues; 2],
}

impl PacketLines<'_> {
    /// Returns the next fragment of a ray before `end`: its position, in steps, and its color.
    fn next(&self, lane: usize, end: f64) -> Option<(f64, Vec4)> {
        let fragment = self.left[lane].first()?;
        let at = (f64::from(fragment.depth) - self.depth[lane]) / self.length[lane];
        (at < end).then(|| (at, fragment.color()))
    }

    /// Returns the next fragment of a ray before it leaves the volume: its position, in steps, and its color.
    pub(crate) fn peek(&self, lane: usize) -> Option<(f64, Vec4)> {
        self.next(lane, self.reach[1][lane])
    }

    /// Removes the next fragment.
    pub(crate) fn take(&mut self, lane: usize) {
        self.left[lane] = self.left[lane].get(1..).unwrap_or_default();
    }

    /// Draws the fragments of a ray before `end`, behind what it has accumulated.
    fn draw_until(&mut self, lane: usize, end: f64, color: &mut Vec4) {
        while let Some((_, own)) = self.next(lane, end) {
            *color += own * (1.0 - color.w);
            self.take(lane);
        }
    }

    /// Draws the fragments of the rays before they enter the volume.
    pub(crate) fn before(&mut self) -> [Vec4; LANES] {
        let mut colors = [Vec4::ZERO; LANES];
        for (lane, color) in colors.iter_mut().enumerate() {
            self.draw_until(lane, self.reach[0][lane], color);
        }
        colors
    }

    /// Draws the remaining fragments behind what rays have accumulated.
    pub(crate) fn rest(&mut self, colors: &mut [Vec4; LANES]) {
        for (lane, color) in colors.iter_mut().enumerate() {
            self.draw_until(lane, f64::INFINITY, color);
        }
    }

    /// Draws fragments in front of and behind slices, which are opaque.
    pub(crate) fn around(mut self, slice_hits: &SliceHits) -> [Vec4; LANES] {
        let mut colors = [Vec4::ZERO; LANES];
        for (lane, color) in colors.iter_mut().enumerate() {
            self.draw_until(lane, slice_hits[lane].map_or(f64::INFINITY, |slice_hit| slice_hit.at), color);
            *color += slice_hits[lane].map_or(Vec4::ZERO, |slice_hit| slice_hit.color) * (1.0 - color.w);
        }
        colors
    }
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
    mut add: impl FnMut(LineFragment),
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
        let covered = (covered * 255.0 + 0.5) as u8;
        let is_inside =
            (0..i64::from(size.width)).contains(&column) && (0..i64::from(size.height)).contains(&row);
        if !is_inside || covered == 0 {
            return;
        }
        // Along a projected line the inverse of the depth is linear.
        let depth = if lens.perspective {
            1.0 / ((1.0 - share) / depths[0] + share / depths[1])
        } else {
            depths[0] + (depths[1] - depths[0]) * share
        };
        let pixel = (row * i64::from(size.width) + column) as u32;
        add(LineFragment { pixel, depth: depth as f32, color, covered });
    });
}
