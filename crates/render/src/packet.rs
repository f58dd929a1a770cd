//! Packets of 4 x 4 neighbouring rays: their way from block to block.
//!
//! Sixteen rays step through the volume together. The nearest of them says which region comes next: a box in which
//! every place has the same finest resident block. All rays that have come to that region draw it at once; the
//! others wait for theirs. So each ray meets its blocks in its own order, whatever their levels and shapes, and
//! blocks are looked up once per packet instead of once per ray.

use glam::{DVec3, Vec4};

use crate::Bounds;
use crate::camera::Ray;
use crate::cast::Caster;
use crate::fade;
use crate::kernel::{Gathered, Shading, Way, march, sample_block};
use crate::simd::{LANES, Simd, each_axis};
use crate::skip::Field;
use crate::table::Table;
use crate::truth::Shown;
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
type Lanes = [f64; LANES];

/// Sixteen rays in volume space: sample `i` at `origin + i * step`. Sample numbers are whole.
pub(crate) struct Rays {
    /// Per axis x, y, z.
    origin: [Lanes; 3],
    step: [Lanes; 3],
    inverse: [Lanes; 3],
    /// The next sample to be drawn.
    next: Lanes,
    /// The first sample behind the volume; not above `next` when a ray has ended.
    end: Lanes,
}

/// Samples of rays: from the first to before the second; none where they are equal.
#[derive(Clone, Copy)]
struct Spans {
    from: Lanes,
    to: Lanes,
}

/// A box in volume space of which every place has the same answer.
struct Region {
    low: DVec3,
    high: DVec3,
    /// The finest resident block.
    slot: Option<u32>,
    rank: Option<usize>,
    /// The block of the wanted level is still to come.
    is_lacking: bool,
}

impl Rays {
    #[inline(always)]
    fn at(&self, lane: usize, sample: f64) -> DVec3 {
        let axis = |a: usize| self.origin[a][lane] + self.step[a][lane] * sample;
        DVec3::new(axis(0), axis(1), axis(2))
    }

    /// The ray whose next sample is nearest, of those that go on.
    #[inline(always)]
    fn nearest(&self, opacity: &[f32; LANES], opaque: f32) -> Option<usize> {
        let mut nearest = None;
        let mut least = f64::INFINITY;
        for (lane, &opacity) in opacity.iter().enumerate() {
            let goes_on = self.next[lane] < self.end[lane] && opacity < opaque;
            if goes_on && self.next[lane] < least {
                (nearest, least) = (Some(lane), self.next[lane]);
            }
        }
        nearest
    }

    /// Moves all rays that have come to a region to its end, the `leader` among them; tells what they passed.
    #[inline(always)]
    fn pass(&mut self, region: &Region, leader: usize) -> Spans {
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
    fn count(&self) -> u64 {
        let counts = self.from.iter().zip(&self.to).map(|(from, to)| to - from);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and not negative")]
        counts.map(|count| count as u64).sum()
    }

    /// One bit per ray that has samples.
    #[inline(always)]
    fn bits(&self) -> u32 {
        let mut bits = 0;
        for lane in 0..LANES {
            bits |= u32::from(self.from[lane] < self.to[lane]) << lane;
        }
        bits
    }

    /// 1 where a ray has samples, else 0.
    #[inline(always)]
    fn are_any(&self) -> [f32; LANES] {
        let mut any = [0.0; LANES];
        for (lane, any) in any.iter_mut().enumerate() {
            *any = if self.from[lane] < self.to[lane] { 1.0 } else { 0.0 };
        }
        any
    }

    /// Before, in and behind the whole multiples of a stride.
    #[inline(always)]
    fn split(&self, stride: f64) -> [Self; 3] {
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
        let mut rays =
            Rays { origin: none, step: none, inverse: none, next: [0.0; LANES], end: [0.0; LANES] };
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
            if let Some((first, end)) = self.samples(&ray, origin, step) {
                (rays.next[lane], rays.end[lane]) = (first, end);
            }
        }
        rays
    }

    /// First and end of the samples of a ray that lie in the volume and in the clipping box.
    #[inline(always)]
    fn samples(&self, ray: &Ray, origin: DVec3, step: DVec3) -> Option<(f64, f64)> {
        let (low, high) = self.scene.view.volume_box();
        let mut span = slab(origin, step, low, high)?;
        if let Some(Bounds { min, max }) = self.scene.clip {
            let clip = slab(ray.origin, ray.direction * self.step_world, min.into(), max.into())?;
            span = (span.0.max(clip.0), span.1.min(clip.1));
        }
        let first = if self.lens.perspective { span.0.max(0.0) } else { span.0 };
        // From farther away than this, numbers of samples would not be whole any more.
        const FARTHEST: f64 = (1u64 << 52) as f64;
        let (first, end) = (first.ceil().max(-FARTHEST), span.1.ceil().min(FARTHEST));
        (first < end).then_some((first, end))
    }

    /// The region that holds a place.
    #[inline]
    fn region(&self, at: DVec3) -> Region {
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

    /// Sixteen rays, front to back.
    #[inline(always)]
    pub(crate) fn trace<S: Simd>(
        &self,
        simd: S,
        rays: &mut Rays,
        shadings: &[Shading<'_, T>],
        shown: &mut Shown,
    ) -> [Vec4; LANES] {
        let mut gathered = Gathered::new(simd);
        // What each ray has come through last.
        let mut gaps = [None; LANES];
        loop {
            let opacity = simd.store(gathered.rgba[3]);
            let Some(leader) = rays.nearest(&opacity, shadings[0].opaque) else { break };
            for (lane, &opacity) in opacity.iter().enumerate() {
                // An opaque ray has ended.
                let is_opaque = opacity >= shadings[0].opaque;
                rays.end[lane] = if is_opaque { rays.next[lane] } else { rays.end[lane] };
            }
            let region = self.region(rays.at(leader, rays.next[leader]));
            let spans = rays.pass(&region, leader);
            shown.count(region.rank, region.is_lacking, spans.count());
            let field = |slot: u32| self.fields[slot as usize].as_deref().map(|field| (slot, field));
            let seen = region.slot.and_then(field);
            match seen {
                Some(seen) if self.is_unseen(simd, &spans, seen, &gaps, &gathered) => {}
                Some(seen) => self.draw_block(simd, rays, &spans, seen, shadings, &mut gathered),
                None => gathered.forget(simd, spans.are_any()),
            }
            let gap = seen.and_then(|(_, field)| field.gap());
            for (lane, last) in gaps.iter_mut().enumerate() {
                *last = if spans.from[lane] < spans.to[lane] { gap } else { *last };
            }
        }
        let mut colours = [Vec4::ZERO; LANES];
        let rgba = gathered.store(simd);
        for (lane, colour) in colours.iter_mut().enumerate() {
            *colour = Vec4::new(rgba[0][lane], rgba[1][lane], rgba[2][lane], rgba[3][lane]);
        }
        colours
    }

    /// True where nothing of a block is to be seen, and nothing on the ways that lead to it from what was skipped
    /// before.
    #[inline(always)]
    fn is_unseen<S: Simd>(
        &self,
        simd: S,
        spans: &Spans,
        (slot, field): (u32, &Field),
        gaps: &[Option<u32>; LANES],
        gathered: &Gathered<S>,
    ) -> bool {
        let Field::Hidden { gap } = *field else { return false };
        if self.fades[slot as usize].any() || spans.bits() & known(simd, gathered) != 0 {
            return false;
        }
        let mut differ = false;
        for (lane, last) in gaps.iter().enumerate() {
            differ |= spans.from[lane] < spans.to[lane] && *last != gap;
        }
        gap.is_none() || !differ
    }

    /// Draws spans from one block, with what leads over to coarser ones.
    #[inline(always)]
    fn draw_block<S: Simd>(
        &self,
        simd: S,
        rays: &Rays,
        spans: &Spans,
        (slot, field): (u32, &Field),
        shadings: &[Shading<'_, T>],
        gathered: &mut Gathered<S>,
    ) {
        let log2 = self.strides_log2[self.blocks.resident(slot).rank];
        let (whole, pieces);
        let pieces: &[(Spans, How)] = if log2 == 0 && !self.fades[slot as usize].any() {
            whole = [(*spans, How::Strided(0))];
            &whole
        } else {
            pieces = self.pieces(rays, spans, slot, log2);
            &pieces
        };
        for (spans, how) in pieces {
            let unknown = spans.bits() & !known(simd, gathered);
            self.find_before(simd, rays, &spans.from, unknown, &shadings[0], gathered);
            match *how {
                How::Faded => self.draw_faded(simd, rays, spans, slot, &shadings[0], gathered),
                How::Strided(log2) => {
                    let Some(way) = self.way(simd, rays, spans, slot, log2) else { continue };
                    let block = self.blocks.resident(slot);
                    march(simd, block, field, &way, &shadings[log2], gathered);
                    if log2 > 0 {
                        // The sample before the next one is one step away, not half a stride.
                        let known = spans.bits() & known(simd, gathered);
                        self.find_before(simd, rays, &spans.to, known, &shadings[0], gathered);
                    }
                }
            }
        }
    }

    /// Finds the places one step before samples of the `wanted` rays, whichever block they lie in: from there a ray
    /// enters the volume, or leaves what was skipped.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "positions are f32")]
    fn find_before<S: Simd>(
        &self,
        simd: S,
        rays: &Rays,
        samples: &Lanes,
        mut wanted: u32,
        shading: &Shading<'_, T>,
        gathered: &mut Gathered<S>,
    ) {
        if wanted == 0 || shading.nearest {
            return;
        }
        let (low, high) = self.scene.view.volume_box();
        let mut at = [DVec3::ZERO; LANES];
        for (lane, at) in at.iter_mut().enumerate() {
            // Outside the volume its outermost voxels go on.
            *at = rays.at(lane, samples[lane] - 1.0).max(low).min(high);
        }
        let mut before = simd.store(gathered.before);
        while wanted != 0 {
            let leader = wanted.trailing_zeros() as usize;
            let region = self.region(at[leader]);
            let mut found = [f32::NAN; LANES];
            if let Some(slot) = region.slot {
                let block = self.blocks.resident(slot);
                let (scale, origin) = self.scene.view.levels[block.rank].local_map(block.at);
                let mut local = [[0.0; LANES]; 3];
                for axis in 0..3 {
                    for lane in 0..LANES {
                        local[axis][lane] = (at[lane][axis] * scale[axis] + origin[axis]) as f32;
                    }
                }
                let local = each_axis!(a => simd.load(&local[a]));
                found = simd.store(sample_block(simd, block, &local, shading));
            }
            for lane in 0..LANES {
                let is_inside = at[lane].cmpge(region.low).all() && at[lane].cmplt(region.high).all();
                if wanted >> lane & 1 == 0 || !is_inside && lane != leader {
                    continue;
                }
                wanted &= !(1 << lane);
                before[lane] = match region.slot {
                    Some(slot) if self.is_fading(slot, at[lane]) => self.faded(at[lane], slot, shading.table),
                    _ => found[lane],
                };
            }
        }
        gathered.before = simd.load(&before);
    }

    /// True where a block's values lead over to those of a coarser one.
    #[inline(always)]
    fn is_fading(&self, slot: u32, volume: DVec3) -> bool {
        let fade = self.fades[slot as usize];
        fade.any() && {
            let block = self.blocks.resident(slot);
            fade::holds(fade, self.scene.view.levels[block.rank].local(block.at, volume))
        }
    }

    /// Spans in a block that begins beside a coarser one, or whose samples stand for several steps. Such a sample
    /// lies in their middle, and single steps lead up to whole multiples at both ends, so that no step is left
    /// out or counted twice.
    #[inline(never)]
    fn pieces(&self, rays: &Rays, spans: &Spans, slot: u32, log2: usize) -> Vec<(Spans, How)> {
        let [before, within, behind] = self.split_fade(rays, spans, slot);
        let mut pieces = vec![(before, How::Faded)];
        if log2 == 0 {
            pieces.push((within, How::Strided(0)));
        } else {
            let [head, body, tail] = within.split(f64::from(1u32 << log2));
            pieces.extend([(head, How::Strided(0)), (body, How::Strided(log2)), (tail, How::Strided(0))]);
        }
        pieces.push((behind, How::Faded));
        pieces
    }

    /// What lies in the transition to coarser blocks before, what outside it, what in it behind.
    fn split_fade(&self, rays: &Rays, spans: &Spans, slot: u32) -> [Spans; 3] {
        let fade = self.fades[slot as usize];
        let block = self.blocks.resident(slot);
        let level = &self.scene.view.levels[block.rank];
        let (mut first, mut end) = (spans.from, spans.to);
        for lane in 0..LANES {
            let (from, to) = (spans.from[lane], spans.to[lane]);
            let step = DVec3::from_array([0, 1, 2].map(|a| rays.step[a][lane])) * level.scale;
            #[expect(clippy::cast_possible_truncation, reason = "numbers of samples are whole")]
            let outside =
                fade::outside(fade, level.local(block.at, rays.at(lane, from)), step, (to - from) as i64);
            (first[lane], end[lane]) = (from + outside.start as f64, from + outside.end as f64);
        }
        [
            Spans { from: spans.from, to: first },
            Spans { from: first, to: end },
            Spans { from: end, to: spans.to },
        ]
    }

    /// The way of spans through a block whose samples stand for 2^`log2` steps each; `None` where there is none.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positions are f32; saturates"
    )]
    fn way<S: Simd>(&self, simd: S, rays: &Rays, spans: &Spans, slot: u32, log2: usize) -> Option<Way<S>> {
        let block = self.blocks.resident(slot);
        let level = &self.scene.view.levels[block.rank];
        let (scale, origin) = level.local_map(block.at);
        let stride = f64::from(1u32 << log2);
        let mut base = f64::INFINITY;
        for lane in 0..LANES {
            let from = if spans.from[lane] < spans.to[lane] { spans.from[lane] } else { f64::INFINITY };
            base = base.min(from);
        }
        if base == f64::INFINITY {
            return None;
        }
        let middle = base + (stride - 1.0) / 2.0;
        let (mut start, mut step) = ([[0.0; LANES]; 3], [[0.0; LANES]; 3]);
        for axis in 0..3 {
            for lane in 0..LANES {
                let volume = rays.origin[axis][lane] + rays.step[axis][lane] * middle;
                start[axis][lane] = (volume * scale[axis] + origin[axis]) as f32;
                step[axis][lane] = (rays.step[axis][lane] * scale[axis] * stride) as f32;
            }
        }
        let (mut first, mut end, mut count) = ([0.0; LANES], [0.0; LANES], 0.0f32);
        for lane in 0..LANES {
            first[lane] = ((spans.from[lane] - base) / stride) as f32;
            end[lane] = ((spans.to[lane] - base) / stride) as f32;
            let is_own = spans.from[lane] < spans.to[lane];
            count = if is_own { count.max(end[lane]) } else { count };
        }
        Some(Way {
            start: each_axis!(a => simd.load(&start[a])),
            step: each_axis!(a => simd.load(&step[a])),
            first: simd.load(&first),
            end: simd.load(&end),
            count: count as u32,
        })
    }

    /// Draws samples one by one, each between its block's value and that of a coarser one.
    #[inline(always)]
    fn draw_faded<S: Simd>(
        &self,
        simd: S,
        rays: &Rays,
        spans: &Spans,
        slot: u32,
        shading: &Shading<'_, T>,
        gathered: &mut Gathered<S>,
    ) {
        let mut rgba = gathered.store(simd);
        let mut before = simd.store(gathered.before);
        for lane in 0..LANES {
            let mut colour = Vec4::new(rgba[0][lane], rgba[1][lane], rgba[2][lane], rgba[3][lane]);
            let mut sample = spans.from[lane];
            while sample < spans.to[lane] && colour.w < shading.opaque {
                let place = self.faded(rays.at(lane, sample), slot, shading.table);
                let middle = if before[lane].is_nan() { place } else { f32::midpoint(before[lane], place) };
                colour += shading.table.entry(middle) * (1.0 - colour.w);
                before[lane] = place;
                sample += 1.0;
            }
            (0..4).for_each(|part| rgba[part][lane] = colour[part]);
        }
        gathered.rgba = [simd.load(&rgba[0]), simd.load(&rgba[1]), simd.load(&rgba[2]), simd.load(&rgba[3])];
        gathered.before = simd.load(&before);
    }

    /// The place in the table at a volume position in the transition of a block; NaN where something is missing.
    #[inline(never)]
    fn faded(&self, volume: DVec3, slot: u32, table: &Table) -> f32 {
        let block = self.blocks.resident(slot);
        let local = self.scene.view.levels[block.rank].local(block.at, volume);
        let value = self.blocks.faded(block, self.fades[slot as usize], local, volume);
        value.map_or(f32::NAN, |value| table.scale.place(value))
    }
}

/// How spans of a block are drawn.
#[derive(Clone, Copy)]
enum How {
    /// In the transition to a coarser block.
    Faded,
    /// Each sample stands for so many steps (logarithm to the base of 2).
    Strided(usize),
}

/// One bit per ray whose sample before the next one is known.
#[inline(always)]
fn known<S: Simd>(simd: S, gathered: &Gathered<S>) -> u32 {
    simd.bits(simd.eq(gathered.before, gathered.before))
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
