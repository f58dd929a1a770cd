//! Surfaces and slices in their order along sixteen rays, blended with what the transfer function shows.
//!
//! Rays march to the sample before their next surface, draw it, and go on from the sample behind it. The step
//! in which the surface lies is drawn in segments, before it and behind it, between the values at their ends;
//! so content before a surface is never drawn behind it. All rays that have come to a surface are drawn at
//! once.

use std::cell::Cell;

use glam::{DVec3, Vec4};

use crate::blocks::voxel::Voxel;
use crate::cpu::color_by::{ColorBlock, ColorLookup, StepColors};
use crate::cpu::context::CastContext;
use crate::cpu::fragments::PacketFragments;
use crate::cpu::packet::rays::PacketRays;
use crate::cpu::packet::size::LaneValues;
use crate::cpu::samples::accumulated::{Accumulated, size_of_parts, size_of_recolored_parts};
use crate::cpu::samples::lookup::PlaceValues;
use crate::cpu::samples::opacity_correction::corrected_ratios;
use crate::cpu::samples::shading::Shading;
use crate::cpu::slices::SliceHits;
use crate::cpu::table::{PARTS, TransferTable};
use crate::isosurface::hits::{FindHits, Hit, HitSearch};
use crate::isosurface::prepare::Isosurfaces;
use crate::simd::{LANES, Simd, SimdStep, each_axis};

/// Surfaces, slices and fragments along the rays of one packet.
pub(crate) struct SolidHits<'s> {
    surfaces: &'s Isosurfaces,
    search: HitSearch,
    /// Slices, up to which surfaces are searched for.
    slice_hits: SliceHits,
    /// Fragments, drawn in the same order.
    pub(crate) lines: Option<PacketFragments<'s>>,
    /// Real end of each ray; [`PacketRays::end`] is the end of the segment to the next hit.
    end: LaneValues,
}

impl<'s> SolidHits<'s> {
    pub(crate) fn new<T: Voxel>(
        context: &CastContext<'_, T>,
        surfaces: &'s Isosurfaces,
        rays: &PacketRays,
        slice_hits: SliceHits,
        lines: Option<PacketFragments<'s>>,
    ) -> Self {
        Self {
            surfaces,
            search: HitSearch::new(context, rays, &slice_hits),
            slice_hits,
            lines,
            end: rays.end,
        }
    }

    /// Finds the next hits of the `wanted` rays.
    #[inline(always)]
    fn find_hits<S: Simd, T: Voxel>(
        &mut self,
        simd: S,
        context: &CastContext<'_, T>,
        rays: &PacketRays,
        wanted: u32,
    ) {
        if !self.surfaces.is_empty() {
            simd.call(FindHits { search: &mut self.search, context, surfaces: self.surfaces, rays, wanted });
        }
    }

    /// Returns the next hit of a ray, as far as the search has [got](SolidHits::find_hits).
    fn next(&self, lane: usize) -> Option<Hit> {
        let hit = self.search.next(lane).or(self.slice_hits[lane]);
        match self.lines.as_ref().and_then(|lines| lines.peek(lane)) {
            Some((at, color)) if hit.is_none_or(|hit| at <= hit.at) => Some(Hit::of_edge(at, color)),
            _ => hit,
        }
    }

    /// Removes the hit that [`SolidHits::next`] returned.
    fn take(&mut self, lane: usize, hit: &Hit) {
        match &mut self.lines {
            Some(lines) if hit.is_edge() => lines.take(lane),
            _ if self.search.take(lane).is_none() => self.slice_hits[lane] = None,
            _ => {}
        }
    }

    /// Lets each of the `wanted` rays go on to its next hit, or to its end.
    #[inline(always)]
    pub(crate) fn send<S: Simd, T: Voxel>(
        &mut self,
        simd: S,
        context: &CastContext<'_, T>,
        rays: &mut PacketRays,
        wanted: u32,
    ) {
        self.find_hits(simd, context, rays, wanted);
        for lane in (0..LANES).filter(|lane| wanted >> lane & 1 != 0) {
            let stop = self.next(lane).map_or(f64::INFINITY, |hit| hit.at.floor() + 1.0);
            rays.end[lane] = stop.min(self.end[lane]);
        }
    }

    /// Returns the colors of surfaces, slices and edges alone, up to where a ray is `opaque`.
    #[inline(always)]
    pub(crate) fn alone<S: Simd, T: Voxel>(
        mut self,
        simd: S,
        context: &CastContext<'_, T>,
        rays: &PacketRays,
        opaque: f32,
    ) -> [Vec4; LANES] {
        let mut colors = self.lines.as_mut().map_or([Vec4::ZERO; LANES], PacketFragments::before);
        let mut going = ALL;
        while going != 0 {
            self.find_hits(simd, context, rays, going);
            let mut still = 0;
            for (lane, color) in colors.iter_mut().enumerate() {
                let is_going = going >> lane & 1 != 0 && color.w < opaque;
                if let Some(hit) = self.next(lane).filter(|_| is_going) {
                    *color += if hit.is_foreign { Vec4::ZERO } else { hit.color * (1.0 - color.w) };
                    self.take(lane, &hit);
                    still |= 1 << lane;
                }
            }
            going = still;
        }
        if let Some(lines) = &mut self.lines {
            lines.rest(&mut colors);
        }
        colors
    }
}

/// One bit for each ray.
const ALL: u32 = (1 << LANES) - 1;

/// Draws the hits of rays that have come to the sample before them, and the rest of their steps; false if
/// there is none.
pub(crate) struct DrawSolids<'a, 'b, 's, S: Simd, T> {
    pub(crate) solids: &'a mut SolidHits<'s>,
    pub(crate) context: &'a CastContext<'b, T>,
    pub(crate) rays: &'a mut PacketRays,
    pub(crate) shading: &'a Shading<'a, T>,
    pub(crate) accumulated: &'a mut Accumulated<S>,
}

/// Progress of rays in the steps that contain their hits.
struct StepProgress {
    /// Previous sample.
    whole: LaneValues,
    at: LaneValues,
    /// Place in the table there.
    place: [f32; LANES],
    /// Cosine at the last surface.
    cosine: [f32; LANES],
}

impl<S: Simd, T: Voxel> SimdStep<S> for DrawSolids<'_, '_, '_, S, T> {
    type Output = bool;

    #[inline(always)]
    fn run(mut self, simd: S) -> bool {
        let opaque = simd.splat(self.shading.opaque);
        let mut met = 0;
        let transparent = simd.bits(simd.lt(self.accumulated.rgba[3], opaque));
        let mut progress = StepProgress {
            whole: [0.0; LANES],
            at: [0.0; LANES],
            place: simd.store(self.accumulated.before),
            cosine: [1.0; LANES],
        };
        for lane in (0..LANES).filter(|lane| transparent >> lane & 1 != 0) {
            if let Some(hit) = self.solids.next(lane) {
                met |= 1 << lane;
                progress.whole[lane] = hit.at.floor();
                progress.cosine[lane] = hit.cosine;
            }
        }
        if met == 0 {
            return false;
        }
        progress.at = progress.whole;
        if self.context.shows_volume {
            let mut unknown = 0;
            for lane in 0..LANES {
                unknown |= u32::from(progress.place[lane].is_nan()) << lane;
            }
            self.find(simd, &progress.whole, met & unknown, &mut progress.place);
        }
        let mut going = met;
        while going != 0 {
            let (hits, meeting) = self.hits(going, &progress);
            self.draw_to(simd, &mut progress, &hits, meeting);
            let still = meeting & simd.bits(simd.lt(self.accumulated.rgba[3], opaque));
            // The other rays have no more hits in this step.
            self.go_on(simd, &mut progress, going & !meeting, met);
            self.solids.find_hits(simd, self.context, self.rays, still);
            going = still;
        }
        true
    }
}

impl<S: Simd, T: Voxel> DrawSolids<'_, '_, '_, S, T> {
    /// Takes the next hit of each `going` ray within its current step. Returns the hits, and one bit for each
    /// ray that has one.
    #[inline(always)]
    fn hits(&mut self, going: u32, progress: &StepProgress) -> ([Hit; LANES], u32) {
        let (mut hits, mut meeting) = ([Hit::NONE; LANES], 0);
        let mut left = going;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            if let Some(hit) = self.solids.next(lane)
                && hit.at < progress.whole[lane] + 1.0
            {
                self.solids.take(lane, &hit);
                meeting |= 1 << lane;
                hits[lane] = hit;
            }
        }
        (hits, meeting)
    }

    /// Draws the intervals to the hits, and the hits.
    #[inline(always)]
    fn draw_to(&mut self, simd: S, progress: &mut StepProgress, hits: &[Hit; LANES], meeting: u32) {
        let draws = self.context.shows_volume;
        let mut next = StepProgress {
            whole: progress.whole,
            at: progress.at,
            place: progress.place,
            cosine: progress.cosine,
        };
        let (mut edges, mut own) = (0, 0);
        let mut colors = [[0.0; LANES]; 4];
        for lane in (0..LANES).filter(|lane| meeting >> lane & 1 != 0) {
            let hit = &hits[lane];
            next.at[lane] = hit.at;
            next.place[lane] = self.shading.table.scale.place(hit.stored);
            next.cosine[lane] = hit.cosine;
            edges |= u32::from(hit.is_edge()) << lane;
            if !hit.is_foreign {
                own |= 1 << lane;
                (0..4).for_each(|part| colors[part][lane] = hit.color[part]);
            }
        }
        if draws && edges != 0 {
            self.find(simd, &next.at, edges, &mut next.place);
        }
        if draws {
            self.stretch_layers(simd, [&progress.at, &next.at], own);
            self.stretch(simd, [&progress.place, &next.place], [&progress.at, &next.at], own, &next.cosine);
        }
        let colors =
            [simd.load(&colors[0]), simd.load(&colors[1]), simd.load(&colors[2]), simd.load(&colors[3])];
        let through = simd.sub(simd.splat(1.0), self.accumulated.rgba[3]);
        self.accumulated.blend(simd, &colors, through);
        *progress = next;
    }

    /// Lets rays go on behind their hits, at the next sample or, if that is drawn, behind it.
    #[inline(always)]
    fn go_on(&mut self, simd: S, progress: &mut StepProgress, rays: u32, met: u32) {
        if rays == 0 {
            return;
        }
        debug_assert!(rays & !met == 0, "whoever goes on has met something");
        let mut behind = [0.0; LANES];
        let (mut drawn, mut before) = (0, [f32::NAN; LANES]);
        for lane in (0..LANES).filter(|lane| rays >> lane & 1 != 0) {
            behind[lane] = progress.whole[lane] + 1.0;
            self.rays.next[lane] = behind[lane];
            if self.context.shows_volume && behind[lane] < self.solids.end[lane] {
                drawn |= 1 << lane;
                self.rays.next[lane] = behind[lane] + 1.0;
            }
        }
        if drawn != 0 {
            self.find(simd, &behind, drawn, &mut before);
            self.stretch_layers(simd, [&progress.at, &behind], drawn);
            self.stretch(simd, [&progress.place, &before], [&progress.at, &behind], drawn, &progress.cosine);
        }
        let mut passed = [0.0; LANES];
        for (lane, passed) in passed.iter_mut().enumerate() {
            *passed = if rays >> lane & 1 != 0 { 1.0 } else { 0.0 };
        }
        self.accumulated.forget(simd, passed);
        let is_passed = simd.ge(simd.load(&passed), simd.splat(1.0));
        self.accumulated.before = simd.select(is_passed, simd.load(&before), self.accumulated.before);
    }

    /// Finds the places in the table at samples of the `wanted` rays, in any blocks.
    #[inline(always)]
    fn find(&self, simd: S, samples: &LaneValues, wanted: u32, places: &mut [f32; LANES]) {
        if wanted == 0 {
            return;
        }
        let (low, high) = self.context.scene.view.volume_box();
        let mut at = [DVec3::ZERO; LANES];
        for (lane, at) in at.iter_mut().enumerate() {
            // Outside the volume its outermost voxels are repeated.
            *at = self.rays.at(lane, samples[lane]).max(low).min(high);
        }
        let mut values = PlaceValues { places: *places, ..PlaceValues::NONE };
        self.context.find_at(simd, &at, wanted, self.shading, &mut values, |_, _| {});
        *places = values.places;
    }

    /// Draws the layers in intervals of the `wanted` rays between positions in steps, before what the
    /// intervals show themselves.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a part of one step")]
    fn stretch_layers(&mut self, simd: S, [begin, end]: [&LaneValues; 2], wanted: u32) {
        if self.context.layered.is_empty() {
            return;
        }
        let (mut at, mut lengths, mut seen) = ([DVec3::ZERO; LANES], [0.0f32; LANES], 0);
        for lane in (0..LANES).filter(|lane| wanted >> lane & 1 != 0 && end[*lane] > begin[*lane]) {
            at[lane] = self.rays.at(lane, f64::midpoint(begin[lane], end[lane]));
            lengths[lane] = (end[lane] - begin[lane]) as f32;
            seen |= 1 << lane;
        }
        if seen == 0 {
            return;
        }
        for layer in self.context.layers.iter().rev() {
            let [r, g, b, a] = layer.step_colors(&at, seen, 0);
            let colors = [simd.load(&r), simd.load(&g), simd.load(&b), simd.load(&a)];
            let ratio = simd.load(&corrected_ratios(&a, &lengths));
            let through = simd.sub(simd.splat(1.0), self.accumulated.rgba[3]);
            self.accumulated.blend(simd, &colors, simd.mul(through, ratio));
        }
    }

    /// Draws intervals of the `wanted` rays along which the place in the table is linear, between positions
    /// in steps; nothing if an end is missing. Their light is that at the surface.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a part of one step")]
    fn stretch(
        &mut self,
        simd: S,
        [from, to]: [&[f32; LANES]; 2],
        [begin, end]: [&LaneValues; 2],
        wanted: u32,
        cosines: &[f32; LANES],
    ) {
        if self.context.layers_are_alone {
            return;
        }
        let table: &TransferTable = self.shading.table;
        let (mut start, mut seen, mut lengths) = (*to, [0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            start[lane] = if from[lane].is_nan() { to[lane] } else { from[lane] };
            let is_seen = wanted >> lane & 1 != 0 && !to[lane].is_nan() && end[lane] > begin[lane];
            (seen[lane], lengths[lane]) =
                if is_seen { (1.0, (end[lane] - begin[lane]) as f32) } else { (0.0, 0.0) };
        }
        let seen = simd.ge(simd.load(&seen), simd.splat(1.0));
        if simd.bits(seen) == 0 {
            return;
        }
        let (from, to) = (simd.load(&start), simd.load(to));
        let mut size = size_of_parts(simd, table, from, to, seen);
        if self.context.color_by.is_some() {
            size = size.max(size_of_recolored_parts(simd, table, from, to, seen));
        }
        let parts = PARTS[size] as f32;
        let mut thickness = lengths;
        for length in &mut thickness {
            *length /= parts;
        }
        let near = Cell::new(None);
        #[expect(clippy::manual_map, reason = "a closure around vectors may not be inlined")]
        let step_colors = match self.context.color_by {
            Some(color_by) => Some(self.step_colors(simd, (color_by, &near), begin, &lengths)),
            None => None,
        };
        let light = self.context.scene.light;
        let dimmed = self.dimmed(simd, [begin, end], &lengths);
        let light = if self.context.metric.is_some() {
            Some(light.at(simd, cosines).dimmed(simd, dimmed))
        } else {
            None
        };
        let entries = &table.parts[0];
        let unit = simd.splat(entries.unit);
        let mut part = 0.5;
        while part < parts {
            let place = simd.mul_add(simd.sub(to, from), simd.splat(part / parts), from);
            let mut entry = entries.at(simd, place);
            let opacity = simd.mul(entry[3], unit);
            if simd.bits(simd.and(seen, simd.lt(simd.splat(0.0), opacity))) != 0 {
                if let Some(step_colors) = &step_colors {
                    entry = step_colors.colors(simd, &entry, seen, part / parts);
                }
                if let Some(light) = &light {
                    let opacity = entry[3];
                    let white = simd.mul(light.mirrored, opacity);
                    let lit =
                        each_axis!(c => simd.min(simd.mul_add(entry[c], light.scattered, white), opacity));
                    entry = [lit[0], lit[1], lit[2], opacity];
                }
                let ratio = simd.load(&corrected_ratios(&simd.store(opacity), &thickness));
                let through = simd.mul(simd.sub(simd.splat(1.0), self.accumulated.rgba[3]), unit);
                let weight = simd.select(seen, simd.mul(through, ratio), simd.splat(0.0));
                self.accumulated.blend(simd, &entry, weight);
            }
            part += 1.0;
        }
    }

    /// Returns the factors of the light in the middle of intervals of some length; `None` if they are 1.
    #[inline(always)]
    fn dimmed(&self, simd: S, [begin, end]: [&LaneValues; 2], lengths: &[f32; LANES]) -> Option<S::F> {
        let dimming = self.shading.dimming?;
        let mut factors = [1.0; LANES];
        for lane in (0..LANES).filter(|&lane| lengths[lane] > 0.0) {
            let middle = f64::midpoint(begin[lane], end[lane]);
            factors[lane] = dimming.at(middle, |sample| self.rays.at(lane, sample));
        }
        Some(simd.load(&factors))
    }

    /// Returns the intervals for color lookups: each ray goes on from its position `from` by `lengths`, both
    /// in steps. Positions are relative to that of the first ray that moves, so that `f32` can represent
    /// them.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a part of one step, near its origin")]
    fn step_colors<'d>(
        &self,
        simd: S,
        (color_by, near): (&'d dyn ColorLookup, &'d Cell<Option<ColorBlock>>),
        from: &LaneValues,
        lengths: &[f32; LANES],
    ) -> StepColors<'d, S> {
        let (mut begin, mut step_of_lanes) = ([[0.0; LANES]; 3], [[0.0; LANES]; 3]);
        let mut origin = DVec3::ZERO;
        for lane in (0..LANES).rev().filter(|&lane| lengths[lane] > 0.0) {
            origin = self.rays.at(lane, from[lane]);
        }
        for lane in (0..LANES).filter(|&lane| lengths[lane] > 0.0) {
            let (at, step) = (self.rays.at(lane, from[lane]) - origin, self.rays.step_of(lane));
            for axis in 0..3 {
                begin[axis][lane] = at[axis] as f32;
                step_of_lanes[axis][lane] = step[axis] as f32 * lengths[lane];
            }
        }
        let from = each_axis!(a => simd.load(&begin[a]));
        StepColors {
            color_by,
            near,
            map: (DVec3::ONE, -origin),
            from,
            step: each_axis!(a => simd.load(&step_of_lanes[a])),
        }
    }
}
