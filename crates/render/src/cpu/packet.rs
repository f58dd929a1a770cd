//! Packets of 4 x 4 neighbouring rays: their way from block to block.
//!
//! Sixteen rays step through the volume together. The nearest of them says which region comes next: a box in which
//! every place has the same finest resident block. All rays that have come to that region draw it at once; the
//! others wait for theirs. So each ray meets its blocks in its own order, whatever their levels and shapes, and
//! blocks are looked up once per packet instead of once per ray.

use std::sync::atomic::Ordering;

use glam::{DVec3, Vec4};

use crate::blocks::voxel::Voxel;
use crate::cpu::anchor::lengthened;
use crate::cpu::caster::Caster;
use crate::cpu::cut::{Cut, Finds, Sheets};
use crate::cpu::empty_space::skip::{Field, Plan};
use crate::cpu::meet::{Hunts, Meet};
use crate::cpu::packet_size::Lanes;
use crate::cpu::rays::{Rays, Region, Spans};
use crate::cpu::samples::corners::Grid;
use crate::cpu::samples::gathered::Gathered;
use crate::cpu::samples::sample::Find;
use crate::cpu::samples::shading::Shading;
use crate::cpu::work::LEAPT;
use crate::scene::truth::Shown;
use crate::scene::wires::Strands;
use crate::simd::{LANES, Simd, each_axis};
use crate::slabs::Layers;

impl<T: Voxel> Caster<'_, T> {
    /// Sixteen rays, front to back; into `layers`, where there are any, and then without colours.
    #[inline(always)]
    pub(crate) fn trace<S: Simd>(
        &self,
        simd: S,
        rays: &mut Rays,
        shadings: &[Shading<'_, T>],
        shown: &mut Shown,
        mut layers: Option<&mut Layers<'_>>,
        mut strands: Option<Strands<'_>>,
    ) -> [Vec4; LANES] {
        let mut gathered = Gathered::new(simd);
        if let Some(strands) = &mut strands {
            gathered.begin(simd, &strands.before());
        }
        // What each ray has come through last.
        let mut gaps = [None; LANES];
        let mut hunts = None;
        if self.has_solids() || strands.is_some() {
            hunts = Some(self.hunts(rays, self.sheets(simd, rays, &shadings[0], shown), strands));
        }
        loop {
            if let Some(hunts) = &mut hunts {
                let opaque = simd.splat(shadings[0].opaque);
                let goes_on = simd.lt(gathered.rgba[3], opaque);
                hunts.send(simd, self, rays, simd.bits(goes_on));
            }
            loop {
                let opacity = simd.store(gathered.rgba[3]);
                let Some(leader) = rays.nearest(&opacity, shadings[0].opaque) else { break };
                rays.end_where(&opacity, shadings[0].opaque);
                let region = self.region(rays.at(leader, rays.next[leader]));
                let spans = rays.pass(&region, leader);
                let plan = |slot: u32| self.plans[slot as usize].as_deref().map(|plan| (slot, plan));
                let seen = region.slot.filter(|_| self.draws_volume()).and_then(plan);
                let drawn = match seen {
                    Some(seen) if self.is_unseen(simd, &spans, seen, &gaps, &gathered) => 0,
                    Some(seen) => {
                        let into = (&mut gathered, layers.as_deref_mut());
                        self.draw_block(simd, rays, &spans, seen, shadings, into)
                    }
                    None => {
                        gathered.forget(simd, spans.are_any());
                        0
                    }
                };
                self.count(&region, &spans, drawn, shown);
                let gap = seen.and_then(|(_, plan)| plan.field.gap());
                for (lane, last) in gaps.iter_mut().enumerate() {
                    *last = if spans.from[lane] < spans.to[lane] { gap } else { *last };
                }
            }
            let Some(hunts) = &mut hunts else { break };
            let (shading, gathered) = (&shadings[0], &mut gathered);
            if !simd.call(Meet { hunts, caster: self, rays, shading, gathered }) {
                break;
            }
        }
        let mut colours = [Vec4::ZERO; LANES];
        let rgba = gathered.store(simd);
        for (lane, colour) in colours.iter_mut().enumerate() {
            *colour = Vec4::new(rgba[0][lane], rgba[1][lane], rgba[2][lane], rgba[3][lane]);
        }
        if self.is_thin && hunts.is_none() {
            for (colour, &times) in colours.iter_mut().zip(&rays.stretch) {
                *colour = lengthened(*colour, times);
            }
        }
        if let Some(mut strands) = hunts.and_then(|hunts| hunts.strands) {
            strands.rest(&mut colours);
        }
        colours
    }

    /// Starts the hunts along sixteen rays.
    pub(crate) fn hunts<'s>(&self, rays: &Rays, sheets: Sheets, strands: Option<Strands<'s>>) -> Hunts<'s> {
        Hunts::new(self, rays, sheets, strands)
    }

    /// Counts what rays passed, and how many samples of that were drawn.
    #[inline(always)]
    pub(crate) fn count(&self, region: &Region, spans: &Spans, drawn: u64, shown: &mut Shown) {
        let passed = spans.count();
        shown.count(region.rank, region.is_lacking, passed);
        if let Some(slot) = region.slot.filter(|_| !self.worked.is_empty()) {
            self.worked[slot as usize].fetch_add(passed + LEAPT * drawn, Ordering::Relaxed);
        }
    }

    /// True where something has a place on the ray.
    pub(crate) fn has_solids(&self) -> bool {
        self.slices.is_some() || !self.surfaces.is_empty()
    }

    /// The nearest slice of each ray.
    #[inline(always)]
    pub(crate) fn sheets<S: Simd>(
        &self,
        simd: S,
        rays: &Rays,
        shading: &Shading<'_, T>,
        shown: &mut Shown,
    ) -> Sheets {
        match &self.slices {
            Some(slices) => simd.call(Cut { caster: self, slices, rays, shading, shown }),
            None => [None; LANES],
        }
    }

    /// True where rays gather what the transfer function shows.
    #[inline(always)]
    pub(crate) fn draws_volume(&self) -> bool {
        self.shows_volume
    }

    /// True where nothing of a block is to be seen, and nothing on the ways that lead to it from what was skipped
    /// before.
    #[inline(always)]
    fn is_unseen<S: Simd>(
        &self,
        simd: S,
        spans: &Spans,
        (slot, plan): (u32, &Plan),
        gaps: &[Option<u32>; LANES],
        gathered: &Gathered<S>,
    ) -> bool {
        let Field::Hidden { gap } = *plan.field else { return false };
        if self.fades[slot as usize].any() || spans.bits() & known(simd, gathered) != 0 {
            return false;
        }
        let mut differ = false;
        for (lane, last) in gaps.iter().enumerate() {
            differ |= spans.from[lane] < spans.to[lane] && *last != gap;
        }
        gap.is_none() || !differ
    }

    /// Finds the places one step before samples of the `wanted` rays, whichever block they lie in: from there a ray
    /// enters the volume, or leaves what was skipped.
    #[inline(always)]
    pub(crate) fn find_before<S: Simd>(
        &self,
        simd: S,
        rays: &Rays,
        samples: &Lanes,
        wanted: u32,
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
        let mut finds = Finds {
            places: simd.store(gathered.before),
            slopes: each_axis!(a => simd.store(gathered.slope[a])),
            ..Finds::NONE
        };
        self.find_at(simd, &at, wanted, shading, &mut finds, |_, _| {});
        gathered.before = simd.load(&finds.places);
        gathered.slope = each_axis!(a => simd.load(&finds.slopes[a]));
    }

    /// Finds the places in the table at volume positions of the `wanted` rays, whichever block they lie in; `found` hears
    /// of the regions and which rays lie there.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "positions are f32")]
    pub(crate) fn find_at<S: Simd>(
        &self,
        simd: S,
        at: &[DVec3; LANES],
        mut wanted: u32,
        shading: &Shading<'_, T>,
        finds: &mut Finds,
        mut found_in: impl FnMut(&Region, u32),
    ) {
        while wanted != 0 {
            let leader = wanted.trailing_zeros() as usize;
            let region = self.region(at[leader]);
            let (mut found, mut slopes) = ([f32::NAN; LANES], [[0.0; LANES]; 3]);
            if let Some(slot) = region.slot {
                let block = self.blocks.resident(slot);
                let (scale, origin) = self.scene.view.levels[block.rank].local_map(block.at);
                let mut local = [[0.0; LANES]; 3];
                for axis in 0..3 {
                    for lane in 0..LANES {
                        local[axis][lane] = (at[lane][axis] * scale[axis] + origin[axis]) as f32;
                    }
                }
                let at = each_axis!(a => simd.load(&local[a]));
                let scale = scale.as_vec3().to_array();
                let sample = simd.call(Find { grid: Grid::new(block), at, scale, shading });
                found = simd.store(sample.place);
                if shading.metric.is_some() {
                    slopes = each_axis!(a => simd.store(sample.slope[a]));
                }
            }
            let before = wanted;
            for lane in 0..LANES {
                let is_inside = at[lane].cmpge(region.low).all() && at[lane].cmplt(region.high).all();
                if wanted >> lane & 1 == 0 || !is_inside && lane != leader {
                    continue;
                }
                wanted &= !(1 << lane);
                finds.places[lane] = match region.slot {
                    Some(slot) if self.is_fading(slot, at[lane]) => self.faded(at[lane], slot, shading.table),
                    _ => found[lane],
                };
                (0..3).for_each(|axis| finds.slopes[axis][lane] = slopes[axis][lane]);
            }
            found_in(&region, before & !wanted);
        }
    }
}

/// One bit per ray whose sample before the next one is known.
#[inline(always)]
pub(crate) fn known<S: Simd>(simd: S, gathered: &Gathered<S>) -> u32 {
    simd.bits(simd.eq(gathered.before, gathered.before))
}
