//! Maximum and minimum intensity projection: the largest or smallest value along each ray, in its color.
//!
//! Samples lie half as far apart as in other modes. Only the best *height* so far is kept for each ray: the
//! place in the table, with a sign such that the more extreme place is higher. Blocks, and cells of blocks,
//! whose heights do not exceed it are skipped, which changes no height by more than [`ALIKE`]; a ray whose
//! height is the table's end has ended. Such a picture has no depth, so everything else is drawn in front of
//! it; opacity is ignored, and nothing is lit.

pub(crate) mod height;

use rayon::prelude::*;

use crate::Scene;
use crate::blocks::BlockTable;
use crate::blocks::resident::Resident;
use crate::blocks::voxel::Voxel;
use crate::cpu::context::CastContext;
use crate::cpu::empty_space::skip_ahead::{CellLookup, LookAhead};
use crate::cpu::packet::rays::{PacketRays, Spans};
use crate::cpu::samples::corners::VoxelGrid;
use crate::cpu::samples::sample::TakeSamples;
use crate::cpu::samples::shading::{BlockRays, Shading};
use crate::cpu::table::TransferTable;
use crate::scene::fidelity::ShownSamples;
use crate::simd::{LANES, Simd, SimdStep};
use height::{ALIKE, HeightScale, NOTHING, TOP};

/// Data of a picture of extreme values: the map from places to heights, and the heights of each block.
#[derive(Debug)]
pub(crate) struct Extreme {
    height_scale: HeightScale,
    /// Heights of each block, by slot; `None` for empty slots.
    peaks: Vec<Option<BlockPeaks>>,
}

/// Heights of a block.
#[derive(Debug)]
pub(crate) struct BlockPeaks {
    /// Heights by cell; [`NOTHING`] if no value is present.
    pub(crate) cells: Vec<f32>,
    pub(crate) highest: f32,
}

impl BlockPeaks {
    /// `leaps`: false if every cell is sampled.
    fn new<T: Voxel>(
        block: &Resident<T>,
        table: &TransferTable,
        height_scale: HeightScale,
        leaps: bool,
    ) -> Self {
        let height = |&[low, high]: &[f32; 2]| {
            if !leaps {
                return f32::INFINITY;
            }
            if low > high {
                return NOTHING;
            }
            let [low, high] = [low, high].map(|v| height_scale.height(table.entry_of(f64::from(v))));
            low.max(high)
        };
        let cells: Vec<f32> = block.cells.iter().map(height).collect();
        let highest = cells.iter().copied().fold(NOTHING, f32::max);
        Self { cells, highest }
    }
}

impl Extreme {
    /// `None` for pictures of other modes.
    pub(crate) fn new<T: Voxel>(
        scene: &Scene,
        blocks: &BlockTable<T>,
        table: &TransferTable,
    ) -> Option<Self> {
        let height_scale = HeightScale::of(scene.mode)?;
        let peaks =
            |block: &Resident<T>| BlockPeaks::new(block, table, height_scale, scene.quality.skip_empty);
        Some(Self {
            height_scale,
            peaks: blocks.all_slots().par_iter().map(|slot| slot.as_deref().map(peaks)).collect(),
        })
    }

    /// Coefficients as in [`Prepared::height_scale`](crate::device::Prepared::height_scale).
    pub(crate) fn height_scale(&self) -> [f32; 2] {
        [self.height_scale.sign, self.height_scale.origin]
    }

    /// Returns the heights of a block; `None` for an empty slot.
    pub(crate) fn peaks(&self, slot: u32) -> Option<&BlockPeaks> {
        self.peaks[slot as usize].as_ref()
    }
}

/// Job that follows sixteen rays; returns the best heights along them.
pub(crate) struct ProjectExtremes<'a, 'b, T> {
    pub(crate) context: &'a CastContext<'b, T>,
    pub(crate) extreme: &'a Extreme,
    pub(crate) rays: PacketRays,
    pub(crate) shading: &'a Shading<'a, T>,
    pub(crate) shown: &'a mut ShownSamples,
}

impl<S: Simd, T: Voxel> SimdStep<S> for ProjectExtremes<'_, '_, T> {
    type Output = [f32; LANES];

    #[inline(always)]
    fn run(self, simd: S) -> Self::Output {
        let Self { context, extreme, mut rays, shading, shown } = self;
        let mut best = simd.splat(NOTHING);
        loop {
            let heights = simd.store(best);
            let Some(leader) = rays.nearest(&heights, TOP - ALIKE) else {
                return heights;
            };
            rays.end_where(&heights, TOP - ALIKE);
            let region = context.region(rays.at(leader, rays.next[leader]));
            let spans = rays.pass(&region, leader);
            context.count(&region, &spans, spans.count(), shown);
            let Some(slot) = region.slot else { continue };
            let pass = BlockPass { context, extreme, rays: &rays, shading, slot };
            best = pass.climb(simd, &spans, best);
        }
    }
}

/// Rays in one block.
struct BlockPass<'a, 'b, T> {
    context: &'a CastContext<'b, T>,
    extreme: &'a Extreme,
    rays: &'a PacketRays,
    shading: &'a Shading<'a, T>,
    slot: u32,
}

impl<T: Voxel> BlockPass<'_, '_, T> {
    /// Returns the best heights after spans of the block.
    #[inline(always)]
    fn climb<S: Simd>(&self, simd: S, spans: &Spans, best: S::F) -> S::F {
        let Self { context, rays, slot, .. } = *self;
        if !context.fades[slot as usize].any() {
            return self.climb_within(simd, spans, best);
        }
        let [before, within, behind] = context.split_fade(rays, spans, slot);
        let best = self.climb_within(simd, &within, best);
        let mut heights = simd.store(best);
        for spans in [before, behind] {
            for (lane, height) in heights.iter_mut().enumerate() {
                let mut sample = spans.from[lane];
                while sample < spans.to[lane] {
                    let place = context.faded(rays.at(lane, sample), slot, self.shading.table);
                    // NaN is no place.
                    let entry = self.shading.table.entry_scale.entry(place);
                    *height = if place.is_nan() { *height } else { height.max(self.height(entry)) };
                    sample += 1.0;
                }
            }
        }
        simd.load(&heights)
    }

    fn height(&self, entry: f32) -> f32 {
        self.extreme.height_scale.height(entry)
    }

    /// Returns the best heights after spans of the block that lie outside the transition to coarser blocks.
    #[inline(always)]
    fn climb_within<S: Simd>(&self, simd: S, spans: &Spans, best: S::F) -> S::F {
        let Self { context, extreme, rays, shading, slot } = *self;
        let Some(peaks) = &extreme.peaks[slot as usize] else { return best };
        let may_rise = simd.lt(best, simd.splat(peaks.highest - ALIKE));
        if simd.bits(may_rise) & spans.bits() == 0 {
            return best;
        }
        // Coarser blocks are also sampled at every step: few do not skip, and no sample represents others.
        let Some(block_rays) = context.block_rays(simd, rays, spans, slot, 0) else { return best };
        let block = context.blocks.resident(slot);
        simd.call(ClimbBlock {
            block,
            peaks,
            block_rays: &block_rays,
            shading,
            height_scale: extreme.height_scale,
            best,
        })
    }
}

/// Sixteen rays through one block.
struct ClimbBlock<'a, S: Simd, T> {
    block: &'a Resident<T>,
    peaks: &'a BlockPeaks,
    block_rays: &'a BlockRays<S>,
    shading: &'a Shading<'a, T>,
    height_scale: HeightScale,
    best: S::F,
}

impl<S: Simd, T: Voxel> SimdStep<S> for ClimbBlock<'_, S, T> {
    type Output = S::F;

    #[inline(always)]
    fn run(self, simd: S) -> S::F {
        let Self { block, peaks, block_rays, shading, height_scale, mut best } = self;
        let grid = VoxelGrid::new(block);
        let lookup = CellLookup::new(simd, block, block_rays);
        let enough = simd.splat(peaks.highest - ALIKE);
        let mut i = 0;
        while i < block_rays.count {
            let number = simd.splat(i as f32);
            let live = simd.and(simd.lt(number, block_rays.end), simd.lt(best, enough));
            if simd.bits(live) == 0 {
                break;
            }
            let known = simd.add(best, simd.splat(ALIKE));
            if let LookAhead::Skip(count) =
                lookup.look_above(simd, &peaks.cells, &block_rays.at(simd, number), known, live)
            {
                i = i.saturating_add(count);
                continue;
            }
            let end = block_rays.count.min(i + lookup.run);
            for number in i..end {
                let number = simd.splat(number as f32);
                let at = block_rays.at(simd, number);
                let place = if grid.has_missing {
                    simd.call(TakeSamples { grid, at, scale: block_rays.scale, shading }).place
                } else {
                    grid.linear(simd, &grid.around(simd, &at), &shading.table.scale)
                };
                best = height_scale.best(simd, shading.table, best, place, block_rays.has(simd, number));
            }
            i = end;
        }
        best
    }
}
