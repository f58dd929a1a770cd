//! The largest, or the smallest, value along each ray, drawn in its colour: maximum and minimum intensity projection.
//!
//! Samples lie half as far apart as otherwise. Of each ray only the best *height* so far is kept: the place in the table, counted
//! so that the better one is the higher. Blocks, and cells of blocks, that reach no higher than that are leapt over,
//! which changes no height by more than [`ALIKE`]; a ray whose height is the table's end has ended. Such a picture
//! has no depth, so whatever else is drawn stands before it; opacity decides nothing, and nothing is lit.

use glam::Vec4;
use rayon::prelude::*;

use crate::blocks::Blocks;
use crate::blocks::resident::Resident;
use crate::blocks::voxel::Voxel;
use crate::cpu::caster::Caster;
use crate::cpu::empty_space::leap::{CellWalk, Look};
use crate::cpu::palette::Palette;
use crate::cpu::rays::{Rays, Spans};
use crate::cpu::samples::corners::Grid;
use crate::cpu::samples::sample::Find;
use crate::cpu::samples::shading::{Shading, Way};
use crate::cpu::table::{ENTRIES, Table};
use crate::device;
use crate::scene::truth::Shown;
use crate::scene::wires::Strands;
use crate::simd::{LANES, Simd, Step};
use crate::{Mode, Scene};

/// Height along rays that have met no value.
pub const NOTHING: f32 = -1.0;
/// The greatest height.
pub const TOP: f32 = (ENTRIES - 1) as f32;
/// Height that one more in [`Peaks::cells`](device::Peaks::cells) stands for.
pub const PEAK_STEP: f32 = TOP / 254.0;
/// Heights that differ by less count as one: a 32,000th of the transfer function's domain.
pub const ALIKE: f32 = 1.0 / 16.0;

/// Data of a picture of extreme values: how places become heights, and how high each block reaches.
#[derive(Debug)]
pub(crate) struct Extreme {
    sense: Sense,
    /// How high the cells of each block reach, by slot; `None` for empty slots.
    peaks: Vec<Option<Peaks>>,
}

/// Height = `sign * place + origin`.
#[derive(Clone, Copy, Debug)]
struct Sense {
    sign: f32,
    origin: f32,
}

/// How high a block reaches.
#[derive(Debug)]
struct Peaks {
    /// By cell; [`NOTHING`] where nothing is present.
    cells: Vec<f32>,
    highest: f32,
}

impl Sense {
    /// `None` for pictures of other things.
    fn of(mode: Mode) -> Option<Self> {
        match mode {
            Mode::Maximum => Some(Self { sign: 1.0, origin: 0.0 }),
            Mode::Minimum => Some(Self { sign: -1.0, origin: TOP }),
            Mode::Composite | Mode::Surfaces => None,
        }
    }

    fn height(self, place: f32) -> f32 {
        (self.sign * place + self.origin).clamp(0.0, TOP)
    }

    /// The best of heights and of those of places, for rays that have a sample; NaN is no place.
    #[inline(always)]
    fn best<S: Simd>(self, simd: S, best: S::F, place: S::F, own: S::M) -> S::F {
        let height = simd.mul_add(place, simd.splat(self.sign), simd.splat(self.origin));
        let height = simd.min(simd.max(height, simd.splat(0.0)), simd.splat(TOP));
        let is_there = simd.and(own, simd.eq(place, place));
        simd.select(is_there, simd.max(height, best), best)
    }
}

impl Peaks {
    /// `leaps`: false where every cell is to be looked into.
    fn new<T: Voxel>(block: &Resident<T>, table: &Table, sense: Sense, leaps: bool) -> Self {
        let height = |&[low, high]: &[f32; 2]| {
            if !leaps {
                return f32::INFINITY;
            }
            if low > high {
                return NOTHING;
            }
            let [low, high] = [low, high].map(|v| sense.height(table.scale.place(f64::from(v))));
            low.max(high)
        };
        let cells: Vec<f32> = block.cells.iter().map(height).collect();
        let highest = cells.iter().copied().fold(NOTHING, f32::max);
        Self { cells, highest }
    }
}

impl Extreme {
    /// `None` for pictures of other things.
    pub(crate) fn new<T: Voxel>(scene: &Scene, blocks: &Blocks<T>, table: &Table) -> Option<Self> {
        let sense = Sense::of(scene.mode)?;
        let peaks = |block: &Resident<T>| Peaks::new(block, table, sense, scene.quality.skip_empty);
        Some(Self {
            sense,
            peaks: blocks.all_slots().par_iter().map(|slot| slot.as_deref().map(peaks)).collect(),
        })
    }

    /// As [`device::Prepared::sense`] says.
    pub(crate) fn sense(&self) -> [f32; 2] {
        [self.sense.sign, self.sense.origin]
    }

    /// The peaks of a block as a caster on another device takes them.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255, else saturates")]
    pub(crate) fn peaks_of(&self, slot: u32) -> Option<device::Peaks> {
        let Peaks { cells, highest } = self.peaks[slot as usize].as_ref()?;
        let rounded_up = |&peak: &f32| {
            if peak < 0.0 { 0 } else { ((peak / PEAK_STEP).ceil() + 1.0) as u8 }
        };
        Some(device::Peaks { highest: *highest, cells: cells.iter().map(rounded_up).collect() })
    }
}

/// Puts the colours of heights, if a scene has any, behind what else was drawn.
pub(crate) fn show(scene: &Scene, pixels: &mut [[f32; 4]], heights: &[f32]) {
    let Some(sense) = Sense::of(scene.mode) else { return };
    let palette = Palette::new(&scene.transfer);
    for (pixel, &height) in pixels.iter_mut().zip(heights) {
        // Nothing where there was no value.
        if height >= 0.0 {
            let before = Vec4::from(*pixel);
            let own = palette.of_place((height - sense.origin) * sense.sign);
            *pixel = (before + own * (1.0 - before.w)).to_array();
        }
    }
}

/// Job that draws sixteen rays: the colors of what they meet in front, and the best heights along them.
pub(crate) struct Project<'a, 'b, T> {
    pub(crate) caster: &'a Caster<'b, T>,
    pub(crate) extreme: &'a Extreme,
    pub(crate) rays: Rays,
    pub(crate) shading: &'a Shading<'a, T>,
    pub(crate) shown: &'a mut Shown,
    pub(crate) strands: Option<Strands<'a>>,
}

impl<S: Simd, T: Voxel> Step<S> for Project<'_, '_, T> {
    type Output = ([Vec4; LANES], [f32; LANES]);

    #[inline(always)]
    fn run(self, simd: S) -> Self::Output {
        let Self { caster, extreme, mut rays, shading, shown, strands } = self;
        let mut colours = [Vec4::ZERO; LANES];
        if caster.has_solids() || strands.is_some() {
            let sheets = caster.sheets(simd, &rays, shading, shown);
            colours = caster.hunts(&rays, sheets, strands).alone(simd, caster, &rays, shading.opaque);
            rays.end_where(&colours.map(|colour| colour.w), shading.opaque);
        }
        let mut best = simd.splat(NOTHING);
        loop {
            let heights = simd.store(best);
            let Some(leader) = rays.nearest(&heights, TOP - ALIKE) else {
                return (colours, heights);
            };
            rays.end_where(&heights, TOP - ALIKE);
            let region = caster.region(rays.at(leader, rays.next[leader]));
            let spans = rays.pass(&region, leader);
            caster.count(&region, &spans, spans.count(), shown);
            let Some(slot) = region.slot else { continue };
            let pass = Pass { caster, extreme, rays: &rays, shading, slot };
            best = pass.climb(simd, &spans, best);
        }
    }
}

/// Rays on their way through one block.
struct Pass<'a, 'b, T> {
    caster: &'a Caster<'b, T>,
    extreme: &'a Extreme,
    rays: &'a Rays,
    shading: &'a Shading<'a, T>,
    slot: u32,
}

impl<T: Voxel> Pass<'_, '_, T> {
    /// The best heights after spans of the block.
    #[inline(always)]
    fn climb<S: Simd>(&self, simd: S, spans: &Spans, best: S::F) -> S::F {
        let Self { caster, rays, slot, .. } = *self;
        if !caster.fades[slot as usize].any() {
            return self.climb_within(simd, spans, best);
        }
        let [before, within, behind] = caster.split_fade(rays, spans, slot);
        let best = self.climb_within(simd, &within, best);
        let mut heights = simd.store(best);
        for spans in [before, behind] {
            for (lane, height) in heights.iter_mut().enumerate() {
                let mut sample = spans.from[lane];
                while sample < spans.to[lane] {
                    let place = caster.faded(rays.at(lane, sample), slot, self.shading.table);
                    // NaN is no place.
                    *height = if place.is_nan() { *height } else { height.max(self.height(place)) };
                    sample += 1.0;
                }
            }
        }
        simd.load(&heights)
    }

    fn height(&self, place: f32) -> f32 {
        self.extreme.sense.height(place)
    }

    /// Returns the best heights after spans of the block that lie outside the transition to coarser blocks.
    #[inline(always)]
    fn climb_within<S: Simd>(&self, simd: S, spans: &Spans, best: S::F) -> S::F {
        let Self { caster, extreme, rays, shading, slot } = *self;
        let Some(peaks) = &extreme.peaks[slot as usize] else { return best };
        let may_rise = simd.lt(best, simd.splat(peaks.highest - ALIKE));
        if simd.bits(may_rise) & spans.bits() == 0 {
            return best;
        }
        // Coarser blocks, too, are sampled at every step: few do not leap, and no sample stands for others.
        let Some(way) = caster.way(simd, rays, spans, slot, 0) else { return best };
        let block = caster.blocks.resident(slot);
        simd.call(Climb { block, peaks, way: &way, shading, sense: extreme.sense, best })
    }
}

/// Sixteen rays through one block.
struct Climb<'a, S: Simd, T> {
    block: &'a Resident<T>,
    peaks: &'a Peaks,
    way: &'a Way<S>,
    shading: &'a Shading<'a, T>,
    sense: Sense,
    best: S::F,
}

impl<S: Simd, T: Voxel> Step<S> for Climb<'_, S, T> {
    type Output = S::F;

    #[inline(always)]
    fn run(self, simd: S) -> S::F {
        let Self { block, peaks, way, shading, sense, mut best } = self;
        let grid = Grid::new(block);
        let walk = CellWalk::new(simd, block, way);
        let enough = simd.splat(peaks.highest - ALIKE);
        let mut i = 0;
        while i < way.count {
            let number = simd.splat(i as f32);
            let live = simd.and(simd.lt(number, way.end), simd.lt(best, enough));
            if simd.bits(live) == 0 {
                break;
            }
            let known = simd.add(best, simd.splat(ALIKE));
            if let Look::Skip(count) = walk.look_above(simd, &peaks.cells, &way.at(simd, number), known, live)
            {
                i = i.saturating_add(count);
                continue;
            }
            let end = way.count.min(i + walk.run);
            for number in i..end {
                let number = simd.splat(number as f32);
                let at = way.at(simd, number);
                let place = if grid.has_missing {
                    simd.call(Find { grid, at, scale: way.scale, shading }).place
                } else {
                    grid.linear(simd, &grid.around(simd, &at), &shading.table.scale)
                };
                best = sense.best(simd, best, place, way.has(simd, number));
            }
            i = end;
        }
        best
    }
}
