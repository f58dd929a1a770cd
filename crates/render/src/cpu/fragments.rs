//! Fragments: pixels of lines, surfaces, points and texts that lie at a depth along the ray of the pixel.
//!
//! The caster blends fragments with the colors of each ray in depth order, so that content in front of a fragment dims
//! it, and opaque fragments hide what is behind them.

use std::ops::Range;

use glam::Vec4;

use crate::ImageSize;
use crate::cpu::packet::rays::PacketRays;
use crate::cpu::packet::size::{LaneValues, PACKET_PIXELS, PACKET_SIDE};
use crate::cpu::slices::SliceHits;
use crate::simd::LANES;

/// Fragment of something drawn in a pixel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    /// Number of the pixel, row by row.
    pub(crate) pixel: u32,
    /// Depth along the line of sight, world units.
    pub(crate) depth: f32,
    /// sRGB.
    pub(crate) color: [u8; 3],
    /// Opacity, 255ths.
    pub(crate) alpha: u8,
}

impl Fragment {
    /// Returns the premultiplied color.
    fn color(&self) -> Vec4 {
        let [r, g, b] = self.color.map(|c| f32::from(c) / 255.0);
        Vec4::new(r, g, b, 1.0) * (f32::from(self.alpha) / 255.0)
    }
}

/// Fragments of some rows of a picture.
#[derive(Debug)]
pub(crate) struct Fragments {
    /// Width of the picture, pixels.
    width: u32,
    rows: Range<u32>,
    /// Fragments by pixel, the nearest first.
    fragments: Vec<Fragment>,
    /// Index of the first fragment of each pixel of the rows, followed by the number of fragments.
    starts: Vec<u32>,
}

impl Fragments {
    /// Sorts the fragments of some rows of an image of a size; `None` if there are none.
    pub(crate) fn new(mut fragments: Vec<Fragment>, size: ImageSize, rows: Range<u32>) -> Option<Self> {
        let first_pixel = |row: u32| u32::try_from(u64::from(row) * u64::from(size.width)).ok();
        let (first, end) = (first_pixel(rows.start)?, first_pixel(rows.end)?);
        fragments.retain(|fragment| (first..end).contains(&fragment.pixel));
        if fragments.is_empty() {
            return None;
        }
        let order = |a: &Fragment, b: &Fragment| a.pixel.cmp(&b.pixel).then(a.depth.total_cmp(&b.depth));
        if !fragments.is_sorted_by(|a, b| order(a, b).is_le()) {
            fragments.sort_by(order);
        }
        let (mut starts, mut next) = (Vec::new(), 0);
        for pixel in first..=end {
            while fragments.get(next).is_some_and(|fragment| fragment.pixel < pixel) {
                next += 1;
            }
            starts.push(u32::try_from(next).ok()?);
        }
        Some(Self { width: size.width, rows, fragments, starts })
    }

    /// Returns the index of a pixel among those of the rows.
    fn index(&self, column: u32, row: u32) -> usize {
        (row - self.rows.start) as usize * self.width as usize + column as usize
    }

    /// Returns the fragments of a pixel, the nearest first; none outside the rows.
    fn of(&self, [column, row]: [u32; 2]) -> &[Fragment] {
        if column >= self.width || !self.rows.contains(&row) {
            return &[];
        }
        let pixel = self.index(column, row);
        let [from, to] = [pixel, pixel + 1].map(|at| self.starts.get(at).map_or(0, |&start| start as usize));
        self.fragments.get(from..to).unwrap_or_default()
    }

    /// True if a ray of a packet meets a fragment.
    pub(crate) fn touch(&self, [left, top]: [u32; 2]) -> bool {
        let right = (left + PACKET_SIDE).min(self.width);
        (top..(top + PACKET_SIDE).min(self.rows.end)).any(|row| {
            let start = |column: u32| self.starts[self.index(column, row)];
            left < right && start(left) < start(right)
        })
    }

    /// Returns the fragments of the rays of a packet.
    pub(crate) fn of_packet(&self, [left, top]: [u32; 2], rays: &PacketRays) -> PacketFragments<'_> {
        let mut reach = rays.reach;
        // Rays that miss the volume have all fragments in front of it.
        for lane in (0..LANES).filter(|&lane| !rays.has_samples(lane)) {
            reach[0][lane] = f64::INFINITY;
        }
        let left = PACKET_PIXELS.map(|[column, row]| self.of([left + column, top + row]));
        PacketFragments { left, length: rays.length, depth: rays.depth, reach }
    }
}

/// Remaining fragments of sixteen rays.
pub(crate) struct PacketFragments<'a> {
    left: [&'a [Fragment]; LANES],
    /// Length of a step along the camera's line of sight, and the depth of sample 0 on it.
    length: LaneValues,
    depth: LaneValues,
    /// Positions where the drawn part of the volume begins and ends, in steps.
    reach: [LaneValues; 2],
}

impl PacketFragments<'_> {
    /// Returns the next fragment of a ray before `end`: its position, in steps, and its color.
    fn next(&self, lane: usize, end: f64) -> Option<(f64, Vec4)> {
        let fragment = self.left[lane].first()?;
        let at = (f64::from(fragment.depth) - self.depth[lane]) / self.length[lane];
        (at < end).then(|| (at, fragment.color()))
    }

    /// True if a fragment lies on a ray between its entry into the volume and its exit; call it after
    /// [`PacketFragments::before`].
    pub(crate) fn are_inside(&self) -> bool {
        (0..LANES).any(|lane| self.peek(lane).is_some())
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
