//! Sixteen rays that step together: where their samples lie, and how they pass from region to region.
//!
//! Geometry in volume space, in `f64`: no voxels. Samples lie at whole multiples of one step, so that it does not
//! matter where a ray's drawing begins or is interrupted.

use glam::DVec3;

use crate::Bounds;
use crate::camera::Ray;
use crate::cast::Caster;
use crate::simd::LANES;
use crate::voxel::Voxel;

/// Rays along a side of a packet.
pub(crate) const SIDE: u32 = 4;

/// Column and row of each ray in a packet.
pub(crate) const PLACES: [[u32; 2]; LANES] = places();

const fn places() -> [[u32; 2]; LANES] {
    let mut places = [[0; 2]; LANES];
    let (mut lane, mut number) = (0, 0);
    while lane < LANES {
        places[lane] = [number % SIDE, number / SIDE];
        (lane, number) = (lane + 1, number + 1);
    }
    places
}

/// A number per ray.
pub(crate) type Lanes = [f64; LANES];

/// Sixteen rays in volume space: sample `i` at `origin + i * step`. Sample numbers are whole.
pub(crate) struct Rays {
    /// Per axis x, y, z.
    pub(crate) origin: [Lanes; 3],
    pub(crate) step: [Lanes; 3],
    pub(crate) inverse: [Lanes; 3],
    /// The next sample to be drawn.
    pub(crate) next: Lanes,
    /// The first sample behind the volume; not above `next` when a ray has ended.
    pub(crate) end: Lanes,
    /// Where the ray enters and leaves what is drawn, between samples.
    pub(crate) reach: [Lanes; 2],
    /// The same of all that any caster draws of the picture.
    pub(crate) whole: [Lanes; 2],
    /// Any caster has a sample on the ray.
    pub(crate) has_samples: [bool; LANES],
    /// In world space, of unit length.
    pub(crate) direction: [DVec3; LANES],
}

/// Samples of rays: from the first to before the second; none where they are equal.
#[derive(Clone, Copy)]
pub(crate) struct Spans {
    pub(crate) from: Lanes,
    pub(crate) to: Lanes,
}

/// A box in volume space of which every place has the same answer.
pub(crate) struct Region {
    pub(crate) low: DVec3,
    pub(crate) high: DVec3,
    /// The finest resident block.
    pub(crate) slot: Option<u32>,
    pub(crate) rank: Option<usize>,
    /// The block of the wanted level is still to come.
    pub(crate) is_lacking: bool,
}

impl Rays {
    #[inline(always)]
    pub(crate) fn at(&self, lane: usize, sample: f64) -> DVec3 {
        let axis = |a: usize| self.origin[a][lane] + self.step[a][lane] * sample;
        DVec3::new(axis(0), axis(1), axis(2))
    }

    /// True for places, in steps, that belong to what is drawn here. Where another caster's part begins behind it, the
    /// border is that one's.
    #[inline(always)]
    pub(crate) fn owns(&self, lane: usize, at: f64) -> bool {
        let [from, to] = [self.reach[0][lane], self.reach[1][lane]];
        from <= at && (at < to || at == to && to >= self.whole[1][lane])
    }

    pub(crate) fn origin_of(&self, lane: usize) -> DVec3 {
        DVec3::from_array([0, 1, 2].map(|axis| self.origin[axis][lane]))
    }

    pub(crate) fn step_of(&self, lane: usize) -> DVec3 {
        DVec3::from_array([0, 1, 2].map(|axis| self.step[axis][lane]))
    }

    /// The ray whose next sample is nearest, of those that go on: that have not gathered `enough` yet.
    #[inline(always)]
    pub(crate) fn nearest(&self, gathered: &[f32; LANES], enough: f32) -> Option<usize> {
        let mut nearest = None;
        let mut least = f64::INFINITY;
        for (lane, &gathered) in gathered.iter().enumerate() {
            let goes_on = self.next[lane] < self.end[lane] && gathered < enough;
            if goes_on && self.next[lane] < least {
                (nearest, least) = (Some(lane), self.next[lane]);
            }
        }
        nearest
    }

    /// Ends the rays that have gathered `enough`.
    #[inline(always)]
    pub(crate) fn end_where(&mut self, gathered: &[f32; LANES], enough: f32) {
        for (lane, &gathered) in gathered.iter().enumerate() {
            self.end[lane] = if gathered >= enough { self.next[lane] } else { self.end[lane] };
        }
    }

    /// Moves all rays that have come to a region to its end, the `leader` among them; tells what they passed.
    #[inline(always)]
    pub(crate) fn pass(&mut self, region: &Region, leader: usize) -> Spans {
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
        let counts = self.from.iter().zip(&self.to).map(|(from, to)| to - from);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and not negative")]
        counts.map(|count| count as u64).sum()
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

    /// 1 where a ray has samples, else 0.
    #[inline(always)]
    pub(crate) fn are_any(&self) -> [f32; LANES] {
        let mut any = [0.0; LANES];
        for (lane, any) in any.iter_mut().enumerate() {
            *any = if self.from[lane] < self.to[lane] { 1.0 } else { 0.0 };
        }
        any
    }

    /// Before, in and behind the whole multiples of a stride.
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

impl<T: Voxel> Caster<'_, T> {
    /// The rays of `size` pixels, columns and rows from `corner` on.
    #[inline(always)]
    pub(crate) fn rays(&self, corner: [u32; 2], size: [u32; 2]) -> Rays {
        let none = [[0.0; LANES]; 3];
        let mut rays = Rays {
            origin: none,
            step: none,
            inverse: none,
            next: [0.0; LANES],
            end: [0.0; LANES],
            reach: [[0.0; LANES]; 2],
            whole: [[0.0; LANES]; 2],
            has_samples: [false; LANES],
            direction: [DVec3::ZERO; LANES],
        };
        for (lane, [column, row]) in PLACES.into_iter().enumerate() {
            if column >= size[0] || row >= size[1] {
                continue;
            }
            let ray = self.lens.ray(corner[0] + column, corner[1] + row);
            let origin = self.volume_from_world.transform_point3(ray.origin);
            let step = self.volume_from_world.transform_vector3(ray.direction * self.step_world);
            for axis in 0..3 {
                rays.origin[axis][lane] = origin[axis];
                rays.step[axis][lane] = step[axis];
                rays.inverse[axis][lane] = step[axis].recip();
            }
            rays.direction[lane] = ray.direction;
            let Some((enters, leaves)) = self.reach(&ray, origin, step) else { continue };
            let own = [enters, leaves];
            let own = if self.is_shared { self.part.share.cut(origin, step, own) } else { Some(own) };
            let Some([from, to]) = own else { continue };
            (rays.whole[0][lane], rays.whole[1][lane]) = (enters, leaves);
            (rays.reach[0][lane], rays.reach[1][lane]) = (from, to);
            rays.has_samples[lane] = enters.ceil() < leaves.ceil();
            // A share may have a surface on a ray between two samples, and none of the samples.
            (rays.next[lane], rays.end[lane]) = (from.ceil(), to.ceil());
        }
        rays
    }

    /// Where a ray enters and leaves the volume and the clipping box, in steps.
    #[inline(always)]
    fn reach(&self, ray: &Ray, origin: DVec3, step: DVec3) -> Option<(f64, f64)> {
        let (low, high) = self.scene.view.volume_box();
        let mut span = slab(origin, step, low, high)?;
        if let Some(Bounds { min, max }) = self.scene.clip {
            let clip = slab(ray.origin, ray.direction * self.step_world, min.into(), max.into())?;
            span = (span.0.max(clip.0), span.1.min(clip.1));
        }
        let enters = if self.lens.perspective { span.0.max(0.0) } else { span.0 };
        // From farther away than this, numbers of samples would not be whole any more.
        const FARTHEST: f64 = (1u64 << 52) as f64;
        Some((enters.max(-FARTHEST), span.1.min(FARTHEST)))
    }

    /// The region that holds a place.
    #[inline]
    pub(crate) fn region(&self, at: DVec3) -> Region {
        let mut is_lacking = !self.ranks.contains(&self.wanted_rank);
        let (mut low, mut high) = (DVec3::NEG_INFINITY, DVec3::INFINITY);
        for &rank in &self.ranks {
            let level = &self.scene.view.levels[rank];
            let (place, _) = level.place_of(at);
            let (block_low, block_high) = level.block_box(place);
            (low, high) = (low.max(block_low), high.min(block_high));
            if let Some(slot) = self.blocks.slot_of(rank, place) {
                return Region { low, high, slot: Some(slot), rank: Some(rank), is_lacking };
            }
            let is_gap = || self.blocks.is_not_covered(self.blocks.id(rank, place));
            is_lacking |= rank == self.wanted_rank && !is_gap();
        }
        Region { low, high, slot: None, rank: None, is_lacking }
    }
}

/// Where a line is inside a box, in steps.
#[inline(always)]
fn slab(origin: DVec3, step: DVec3, low: DVec3, high: DVec3) -> Option<(f64, f64)> {
    let mut span = (f64::NEG_INFINITY, f64::INFINITY);
    for axis in 0..3 {
        if step[axis] == 0.0 {
            if origin[axis] < low[axis] || origin[axis] >= high[axis] {
                return None;
            }
            continue;
        }
        let (a, b) = ((low[axis] - origin[axis]) / step[axis], (high[axis] - origin[axis]) / step[axis]);
        span = (span.0.max(a.min(b)), span.1.min(a.max(b)));
    }
    (span.0 < span.1).then_some(span)
}
