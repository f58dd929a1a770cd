//! Sixteen rays that step together: positions of their samples, and their steps from region to region.
//!
//! Geometry in volume space, in `f64`: no voxels. Loops over lanes are plain, so that they are vectorized
//! with the instructions of the job that they are inlined in; closures called by `map` may not be. Samples
//! lie at whole multiples of one step, so the result does not depend on where a ray's drawing begins or is
//! interrupted; in thin volumes each ray has a step of its own (`spacing.rs`).

use std::sync::atomic::Ordering;

use glam::{DAffine3, DVec3};

use crate::blocks::voxel::Voxel;
use crate::cpu::context::{CastContext, LEAPT};
use crate::cpu::packet::size::{LaneValues, PACKET_PIXELS};
use crate::scene::fidelity::ShownSamples;
use crate::simd::LANES;
use crate::{Bounds, SubVolume};

/// Offset of a ray's own samples in its steps: the middle. On a face of a voxel, where a clipping box often
/// ends, rounding would decide which of two very different values is visible.
const MIDDLE: f64 = 0.5;

/// Sixteen rays in volume space: sample `i` at `origin + i * step`. Sample numbers are whole.
pub(crate) struct PacketRays {
    /// Per axis x, y, z.
    pub(crate) origin: [LaneValues; 3],
    pub(crate) step: [LaneValues; 3],
    pub(crate) inverse: [LaneValues; 3],
    /// Next sample to be drawn.
    pub(crate) next: LaneValues,
    /// First sample behind the volume; not above `next` if a ray has ended.
    pub(crate) end: LaneValues,
    /// Positions where the ray enters and leaves what is drawn, in steps; they lie between samples.
    pub(crate) reach: [LaneValues; 2],
    /// Positions where the ray enters and leaves all that any caster draws of the picture, in steps.
    pub(crate) whole: [LaneValues; 2],
    /// Offset from the image's middle: see [`Lens::aside`](crate::scene::camera::Lens::aside).
    aside: [LaneValues; 2],
    /// Length of a step along the camera's line of sight, world units.
    pub(crate) length: LaneValues,
    /// Depth of sample 0 along the camera's line of sight, world units.
    pub(crate) depth: LaneValues,
    /// Length of its step, as a multiple of the picture's.
    pub(crate) stretch: LaneValues,
}

/// Samples of rays: from the first to before the second; none if they are equal.
#[derive(Clone, Copy)]
pub(crate) struct Spans {
    pub(crate) from: LaneValues,
    pub(crate) to: LaneValues,
}

/// Box in volume space in which every position has the same result.
pub(crate) struct UniformRegion {
    pub(crate) low: DVec3,
    pub(crate) high: DVec3,
    /// Finest resident block.
    pub(crate) slot: Option<u32>,
    pub(crate) level_index: Option<usize>,
    /// True if the block of the wanted level is not yet loaded.
    pub(crate) is_lacking: bool,
}

impl PacketRays {
    #[inline(always)]
    pub(crate) fn at(&self, lane: usize, sample: f64) -> DVec3 {
        let axis = |a: usize| self.origin[a][lane] + self.step[a][lane] * sample;
        DVec3::new(axis(0), axis(1), axis(2))
    }

    /// Gives each ray samples of its own, from its entry to its exit: see `spacing.rs`.
    #[inline(never)]
    fn space_own_samples(&mut self) {
        for lane in 0..LANES {
            let [enters, leaves] = [self.reach[0][lane], self.reach[1][lane]];
            let is_met = enters < leaves;
            if !is_met {
                continue;
            }
            let count = (leaves - enters).round().max(1.0);
            let stretch = (leaves - enters) / count;
            for axis in 0..3 {
                let step = self.step[axis][lane];
                self.origin[axis][lane] += step * (enters - MIDDLE * stretch);
                self.step[axis][lane] = step * stretch;
                self.inverse[axis][lane] = 1.0 / self.step[axis][lane];
            }
            self.depth[lane] = (enters - MIDDLE * stretch) * self.length[lane];
            self.length[lane] *= stretch;
            self.stretch[lane] = stretch;
            (self.next[lane], self.end[lane]) = (1.0, count + 1.0);
            (self.reach[0][lane], self.reach[1][lane]) = (MIDDLE, count + MIDDLE);
        }
        self.whole = self.reach;
    }

    /// Clips each ray to a sub-volume. A surface may lie between two samples of which none is inside. The
    /// position where a ray crosses a plane is the same number for the sub-volumes on both its sides.
    #[inline(always)]
    fn cut(&mut self, sub_volume: &SubVolume) {
        let box_of = (sub_volume.low.into(), sub_volume.high.into());
        self.reach = self.whole;
        narrow(&mut self.reach, &self.origin, &self.step, &self.inverse, box_of);
        for lane in 0..LANES {
            let own = [self.reach[0][lane], self.reach[1][lane]];
            let whole = [self.whole[0][lane], self.whole[1][lane]];
            let is_met = own[0] < own[1] && whole[0] < whole[1];
            [self.reach[0][lane], self.reach[1][lane]] = if is_met { own } else { [0.0; 2] };
            [self.whole[0][lane], self.whole[1][lane]] = if is_met { whole } else { [0.0; 2] };
            (self.next[lane], self.end[lane]) = (self.reach[0][lane].ceil(), self.reach[1][lane].ceil());
        }
    }

    /// True if any caster has a sample on the ray.
    pub(crate) fn has_samples(&self, lane: usize) -> bool {
        self.whole[0][lane].ceil() < self.whole[1][lane].ceil()
    }

    /// True for positions, in steps, that are drawn here. If another caster's part begins behind it, the
    /// border is that one's.
    #[inline(always)]
    pub(crate) fn owns(&self, lane: usize, at: f64) -> bool {
        let [from, to] = [self.reach[0][lane], self.reach[1][lane]];
        from <= at && (at < to || at == to && to >= self.whole[1][lane])
    }

    pub(crate) fn step_of(&self, lane: usize) -> DVec3 {
        DVec3::from_array([0, 1, 2].map(|axis| self.step[axis][lane]))
    }

    /// Returns the ray whose next sample is nearest, of those that have not accumulated `enough` yet.
    #[inline(always)]
    pub(crate) fn nearest(&self, accumulated: &[f32; LANES], enough: f32) -> Option<usize> {
        let mut nearest = None;
        let mut least = f64::INFINITY;
        for (lane, &accumulated) in accumulated.iter().enumerate() {
            let goes_on = self.next[lane] < self.end[lane] && accumulated < enough;
            if goes_on && self.next[lane] < least {
                (nearest, least) = (Some(lane), self.next[lane]);
            }
        }
        nearest
    }

    /// Ends the rays that have accumulated `enough`.
    #[inline(always)]
    pub(crate) fn end_where(&mut self, accumulated: &[f32; LANES], enough: f32) {
        for (lane, &accumulated) in accumulated.iter().enumerate() {
            self.end[lane] = if accumulated >= enough { self.next[lane] } else { self.end[lane] };
        }
    }

    /// Moves all rays that have come to a region to its end, the `leader` among them; returns the samples
    /// that they passed.
    #[inline(always)]
    pub(crate) fn pass(&mut self, region: &UniformRegion, leader: usize) -> Spans {
        let (low, high) = (region.low.to_array(), region.high.to_array());
        let mut exit = [f64::INFINITY; LANES];
        let mut is_inside = [true; LANES];
        for axis in 0..3 {
            for lane in 0..LANES {
                let (origin, step) = (self.origin[axis][lane], self.step[axis][lane]);
                let at = origin + step * self.next[lane];
                is_inside[lane] &= at >= low[axis] && at < high[axis];
                let wall = if step >= 0.0 { high[axis] } else { low[axis] };
                let samples = (wall - origin) * self.inverse[axis][lane];
                exit[lane] = if step != 0.0 && samples < exit[lane] { samples } else { exit[lane] };
            }
        }
        is_inside[leader] = true;
        let mut spans = Spans { from: self.next, to: self.next };
        for lane in 0..LANES {
            if is_inside[lane] && self.next[lane] < self.end[lane] {
                spans.to[lane] = exit[lane].ceil().max(self.next[lane] + 1.0).min(self.end[lane]);
            }
        }
        self.next = spans.to;
        spans
    }
}

impl Spans {
    #[inline(always)]
    pub(crate) fn count(&self) -> u64 {
        let mut count = 0.0;
        for lane in 0..LANES {
            count += self.to[lane] - self.from[lane];
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and not negative")]
        let count = count as u64;
        count
    }

    /// One bit per ray that has samples.
    #[inline(always)]
    pub(crate) fn bits(&self) -> u32 {
        let mut bits = 0;
        for lane in 0..LANES {
            bits |= u32::from(self.from[lane] < self.to[lane]) << lane;
        }
        bits
    }

    /// Returns 1 for rays that have samples, else 0.
    #[inline(always)]
    pub(crate) fn are_any(&self) -> [f32; LANES] {
        let mut any = [0.0; LANES];
        for (lane, any) in any.iter_mut().enumerate() {
            *any = if self.from[lane] < self.to[lane] { 1.0 } else { 0.0 };
        }
        any
    }

    /// Splits samples into those before, in and behind the whole multiples of a stride.
    #[inline(always)]
    pub(crate) fn split(&self, stride: f64) -> [Self; 3] {
        let (mut body, mut tail) = (self.to, self.to);
        for lane in 0..LANES {
            let first = (self.from[lane] / stride).ceil() * stride;
            let end = (self.to[lane] / stride).floor() * stride;
            if first < end {
                (body[lane], tail[lane]) = (first, end);
            }
        }
        [Self { from: self.from, to: body }, Self { from: body, to: tail }, Self { from: tail, to: self.to }]
    }
}

impl<T: Voxel> CastContext<'_, T> {
    /// Returns the rays of `size` pixels, columns and rows from `corner` on.
    #[inline(always)]
    pub(crate) fn rays(&self, corner: [u32; 2], size: [u32; 2]) -> PacketRays {
        let (mut aside, mut length) = ([[0.0; LANES]; 2], [self.step_world; LANES]);
        for (lane, [column, row]) in PACKET_PIXELS.into_iter().enumerate() {
            [aside[0][lane], aside[1][lane]] = self.lens.aside([corner[0] + column, corner[1] + row]);
        }
        if self.lens.perspective {
            for lane in 0..LANES {
                let (x, y) = (aside[0][lane], aside[1][lane]);
                length[lane] = self.step_world / (1.0 + x * x + y * y).sqrt();
            }
        }
        let Fan { origin, step } = self.fan(&self.volume_from_world, &aside, &length);
        let inverse = inverses(&step);
        let (low, high) = self.scene.view.volume_box();
        let mut reach = [[f64::NEG_INFINITY; LANES], [f64::INFINITY; LANES]];
        narrow(&mut reach, &origin, &step, &inverse, (low, high));
        if let Some(Bounds { min, max }) = self.scene.clip {
            let world = self.fan(&DAffine3::IDENTITY, &aside, &length);
            let inverse = inverses(&world.step);
            narrow(&mut reach, &world.origin, &world.step, &inverse, (min.into(), max.into()));
        }
        // Beyond this distance, numbers of samples would not be whole any more.
        const FARTHEST: f64 = (1u64 << 52) as f64;
        let nearest = if self.lens.perspective { 0.0 } else { -FARTHEST };
        let (mut next, mut end) = ([0.0; LANES], [0.0; LANES]);
        for (lane, [column, row]) in PACKET_PIXELS.into_iter().enumerate() {
            // Compared directly: `max` and `min` would let NaN pass.
            let is_met = reach[0][lane] < reach[1][lane] && column < size[0] && row < size[1];
            let enters = if reach[0][lane] > nearest { reach[0][lane] } else { nearest };
            let leaves = if reach[1][lane] < FARTHEST { reach[1][lane] } else { FARTHEST };
            let (first, last) = (enters.ceil(), leaves.ceil());
            let has_samples = is_met && first < last;
            (next[lane], end[lane]) = if has_samples { (first, last) } else { (0.0, 0.0) };
            (reach[0][lane], reach[1][lane]) = if is_met { (enters, leaves) } else { (0.0, 0.0) };
        }
        let (depth, stretch) = ([0.0; LANES], [1.0; LANES]);
        let mut rays = PacketRays {
            origin,
            step,
            inverse,
            next,
            end,
            reach,
            whole: reach,
            aside,
            length,
            depth,
            stretch,
        };
        if self.is_thin {
            rays.space_own_samples();
        }
        if self.is_shared {
            rays.cut(&self.part.sub_volume);
        }
        rays
    }

    /// Returns the lines of rays in the space of a map, with an offset of `aside` from the image's middle and
    /// steps of this length along the line of sight.
    #[inline(always)]
    fn fan(&self, map: &DAffine3, aside: &[LaneValues; 2], length: &LaneValues) -> Fan {
        let lens = &self.lens;
        let [right, up] = [lens.right, lens.up].map(|v| map.transform_vector3(v).to_array());
        let (eye, forward) =
            (map.transform_point3(lens.eye).to_array(), map.transform_vector3(lens.forward).to_array());
        let mut fan = Fan { origin: [[0.0; LANES]; 3], step: [[0.0; LANES]; 3] };
        for axis in 0..3 {
            for lane in 0..LANES {
                let aside = right[axis] * aside[0][lane] + up[axis] * aside[1][lane];
                let (moved, turned) = if lens.perspective { (0.0, aside) } else { (aside, 0.0) };
                fan.origin[axis][lane] = eye[axis] + moved;
                fan.step[axis][lane] = (forward[axis] + turned) * length[lane];
            }
        }
        fan
    }

    /// Returns the direction of a ray in world space, of unit length.
    pub(crate) fn direction_of(&self, rays: &PacketRays, lane: usize) -> DVec3 {
        let lens = &self.lens;
        if !lens.perspective {
            return lens.forward;
        }
        let aside = lens.right * rays.aside[0][lane] + lens.up * rays.aside[1][lane];
        (lens.forward + aside) * (rays.length[lane] / (self.step_world * rays.stretch[lane]))
    }

    /// Returns the region that contains a position.
    #[inline]
    pub(crate) fn region(&self, at: DVec3) -> UniformRegion {
        let mut is_lacking = !self.level_indices.contains(&self.wanted_level_index);
        let (mut low, mut high) = (DVec3::NEG_INFINITY, DVec3::INFINITY);
        for &level_index in &self.level_indices {
            let level = &self.scene.view.levels[level_index];
            let (place, _) = level.place_of(at);
            let (block_low, block_high) = level.block_box(place);
            (low, high) = (low.max(block_low), high.min(block_high));
            if let Some(slot) = self.blocks.slot_of(level_index, place) {
                return UniformRegion {
                    low,
                    high,
                    slot: Some(slot),
                    level_index: Some(level_index),
                    is_lacking,
                };
            }
            let is_gap = || self.blocks.is_not_covered(self.blocks.id(level_index, place));
            is_lacking |= level_index == self.wanted_level_index && !is_gap();
        }
        UniformRegion { low, high, slot: None, level_index: None, is_lacking }
    }

    /// Counts the samples that rays passed, and the drawn ones of them.
    #[inline(always)]
    pub(crate) fn count(&self, region: &UniformRegion, spans: &Spans, drawn: u64, shown: &mut ShownSamples) {
        let passed = spans.count();
        shown.count(region.level_index, region.is_lacking, passed);
        if let Some(slot) = region.slot.filter(|_| !self.worked.is_empty()) {
            self.worked[slot as usize].fetch_add(passed + LEAPT * drawn, Ordering::Relaxed);
        }
    }
}

/// Sixteen lines: sample `i` at `origin + i * step`; per axis x, y, z.
struct Fan {
    origin: [LaneValues; 3],
    step: [LaneValues; 3],
}

#[inline(always)]
fn inverses(vectors: &[LaneValues; 3]) -> [LaneValues; 3] {
    let mut inverses = *vectors;
    inverses.as_flattened_mut().iter_mut().for_each(|part| *part = 1.0 / *part);
    inverses
}

/// Narrows the range of lines, in steps, to a box; the range is reversed if they miss it.
#[inline(always)]
fn narrow(
    reach: &mut [LaneValues; 2],
    origin: &[LaneValues; 3],
    step: &[LaneValues; 3],
    inverse: &[LaneValues; 3],
    (low, high): (DVec3, DVec3),
) {
    let (low, high) = (low.to_array(), high.to_array());
    for axis in 0..3 {
        for lane in 0..LANES {
            let at = origin[axis][lane];
            let (a, b) = ((low[axis] - at) * inverse[axis][lane], (high[axis] - at) * inverse[axis][lane]);
            let (mut near, mut far) = if a < b { (a, b) } else { (b, a) };
            // A ray that does not move along an axis is inside all the way, or never.
            let is_inside = at >= low[axis] && at < high[axis];
            let stands = step[axis][lane] == 0.0;
            near = if stands { f64::NEG_INFINITY } else { near };
            far = if stands { f64::INFINITY } else { far };
            far = if stands && !is_inside { f64::NEG_INFINITY } else { far };
            reach[0][lane] = if near > reach[0][lane] { near } else { reach[0][lane] };
            reach[1][lane] = if far < reach[1][lane] { far } else { reach[1][lane] };
        }
    }
}
