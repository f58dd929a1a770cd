//! Packets of 4 x 4 neighboring rays: their traversal from block to block.
//!
//! Sixteen rays step through the volume together. The nearest of them determines the next region: a box in
//! which every position has the same finest resident block. All rays that have come to that region draw it at
//! once; the others wait for theirs. So each ray meets its blocks in its own order, whatever their levels and
//! shapes, and blocks are looked up once per packet instead of once per ray.

mod block_spans;
mod march;
pub(crate) mod rays;
pub(crate) mod size;
pub(crate) mod solids;
pub(crate) mod spacing;

use glam::Vec4;

use crate::blocks::voxel::Voxel;
use crate::cpu::caster::Caster;
use crate::cpu::empty_space::visible_cells::{SamplingPlan, VisibleCells};
use crate::cpu::fragments::PacketFragments;
use crate::cpu::packet::rays::{PacketRays, Spans};
use crate::cpu::packet::solids::{DrawSolids, SolidHits};
use crate::cpu::packet::spacing::lengthened;
use crate::cpu::samples::accumulated::Accumulated;
use crate::cpu::samples::shading::Shading;
use crate::cpu::slab_layers::SlabLayers;
use crate::cpu::slices::{IntersectSlices, SliceHits};
use crate::scene::fidelity::ShownSamples;
use crate::simd::{LANES, Simd, SimdStep};

impl<T: Voxel> Caster<'_, T> {
    /// Casts sixteen rays, front to back; into `layers`, if given, and then without colors.
    #[inline(always)]
    pub(crate) fn trace<S: Simd>(
        &self,
        simd: S,
        rays: &mut PacketRays,
        shadings: &[Shading<'_, T>],
        shown: &mut ShownSamples,
        mut layers: Option<&mut SlabLayers<'_>>,
        mut lines: Option<PacketFragments<'_>>,
    ) -> [Vec4; LANES] {
        let context = &self.context;
        let mut accumulated = Accumulated::new(simd);
        // Fragments of a thin volume that lie before and behind it leave the samples as they are without them.
        let mut around = None;
        if let Some(mut own) = lines.take() {
            let before = own.before();
            if context.is_thin && !self.has_solids() && !own.are_inside() {
                around = Some((before, own));
            } else {
                accumulated.begin(simd, &before);
                lines = Some(own);
            }
        }
        // The last region of each ray.
        let mut gaps = [None; LANES];
        let mut solids = None;
        if self.has_solids() || lines.is_some() {
            solids = Some(self.solids(rays, self.slice_hits(simd, rays, &shadings[0], shown), lines));
        }
        loop {
            if let Some(solids) = &mut solids {
                let opaque = simd.splat(shadings[0].opaque);
                let goes_on = simd.lt(accumulated.rgba[3], opaque);
                solids.send(simd, context, rays, simd.bits(goes_on));
            }
            loop {
                let opacity = simd.store(accumulated.rgba[3]);
                let Some(leader) = rays.nearest(&opacity, shadings[0].opaque) else { break };
                rays.end_where(&opacity, shadings[0].opaque);
                let region = context.region(rays.at(leader, rays.next[leader]));
                let spans = rays.pass(&region, leader);
                let plan = |slot: u32| context.plans[slot as usize].as_deref().map(|plan| (slot, plan));
                let seen = region.slot.filter(|_| context.shows_volume).and_then(plan);
                let drawn = match seen {
                    Some(seen) if self.is_unseen(simd, &spans, seen, &gaps, &accumulated) => 0,
                    Some(seen) => {
                        let into = (&mut accumulated, layers.as_deref_mut());
                        context.draw_block(simd, rays, &spans, seen, shadings, into)
                    }
                    None => {
                        accumulated.forget(simd, spans.are_any());
                        0
                    }
                };
                context.count(&region, &spans, drawn, shown);
                let gap = seen.and_then(|(_, plan)| plan.field.gap());
                for (lane, last) in gaps.iter_mut().enumerate() {
                    *last = if spans.from[lane] < spans.to[lane] { gap } else { *last };
                }
            }
            let Some(solids) = &mut solids else { break };
            let (shading, accumulated) = (&shadings[0], &mut accumulated);
            if !simd.call(DrawSolids { solids, context, rays, shading, accumulated }) {
                break;
            }
        }
        let mut colors = [Vec4::ZERO; LANES];
        let rgba = accumulated.store(simd);
        for (lane, color) in colors.iter_mut().enumerate() {
            *color = Vec4::new(rgba[0][lane], rgba[1][lane], rgba[2][lane], rgba[3][lane]);
        }
        if context.is_thin && solids.is_none() {
            for (color, &times) in colors.iter_mut().zip(&rays.stretch) {
                *color = lengthened(*color, times);
            }
        }
        if let Some(mut lines) = solids.and_then(|solids| solids.lines) {
            lines.rest(&mut colors);
        }
        if let Some((before, mut lines)) = around {
            for (color, before) in colors.iter_mut().zip(before) {
                *color = before + *color * (1.0 - before.w);
            }
            lines.rest(&mut colors);
        }
        colors
    }

    /// Starts the search for surfaces, slices and edges along sixteen rays.
    fn solids<'s>(
        &'s self,
        rays: &PacketRays,
        slice_hits: SliceHits,
        lines: Option<PacketFragments<'s>>,
    ) -> SolidHits<'s> {
        SolidHits::new(&self.context, &self.surfaces, rays, slice_hits, lines)
    }

    /// Returns the nearest slice of each ray.
    #[inline(always)]
    fn slice_hits<S: Simd>(
        &self,
        simd: S,
        rays: &PacketRays,
        shading: &Shading<'_, T>,
        shown: &mut ShownSamples,
    ) -> SliceHits {
        match &self.slices {
            Some(slices) => {
                simd.call(IntersectSlices { context: &self.context, slices, rays, shading, shown })
            }
            None => [None; LANES],
        }
    }

    /// True if nothing of a block is visible, nor in the intervals that lead to it from skipped regions.
    #[inline(always)]
    fn is_unseen<S: Simd>(
        &self,
        simd: S,
        spans: &Spans,
        (slot, plan): (u32, &SamplingPlan),
        gaps: &[Option<u32>; LANES],
        accumulated: &Accumulated<S>,
    ) -> bool {
        let VisibleCells::Hidden { gap } = *plan.field else { return false };
        if self.context.fades[slot as usize].any() || spans.bits() & accumulated.known(simd) != 0 {
            return false;
        }
        let mut differ = false;
        for (lane, last) in gaps.iter().enumerate() {
            differ |= spans.from[lane] < spans.to[lane] && *last != gap;
        }
        gap.is_none() || !differ
    }
}

/// Job that draws the content of sixteen rays except the volume: surfaces, slices and fragments.
pub(crate) struct SolidsAlone<'a, 'b, T> {
    pub(crate) caster: &'a Caster<'b, T>,
    pub(crate) rays: &'a PacketRays,
    pub(crate) shading: &'a Shading<'a, T>,
    pub(crate) shown: &'a mut ShownSamples,
    pub(crate) lines: Option<PacketFragments<'a>>,
}

impl<S: Simd, T: Voxel> SimdStep<S> for SolidsAlone<'_, '_, T> {
    type Output = [Vec4; LANES];

    #[inline(always)]
    fn run(self, simd: S) -> Self::Output {
        let Self { caster, rays, shading, shown, lines } = self;
        let slice_hits = caster.slice_hits(simd, rays, shading, shown);
        caster.solids(rays, slice_hits, lines).alone(simd, &caster.context, rays, shading.opaque)
    }
}
