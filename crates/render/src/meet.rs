//! Surfaces and slices in their order along sixteen rays, mixed with what the transfer function shows.
//!
//! Rays march to the sample before their next surface, meet it, and go on from the sample behind it. The step in
//! which the surface lies is drawn in stretches, before it and behind it, between the values at their ends; so
//! what lies before a surface is never drawn behind it. Few steps hold a surface: this is written lane by lane.

use glam::Vec4;

use crate::Share;
use crate::cast::Caster;
use crate::cut::Sheets;
use crate::hunt::{Hit, Hunt, Line};
use crate::light::lit;
use crate::rays::{Lanes, Rays, Region};
use crate::simd::LANES;
use crate::table::{ERROR_PER_BEND, PARTS, TOLERANCE, Table};
use crate::voxel::Voxel;
use crate::wires::Strands;

/// The hunts along the rays of one packet, each up to its slice.
pub(crate) struct Hunts<'s> {
    hunts: [Hunt; LANES],
    /// The slices behind what they hunt.
    sheets: Sheets,
    /// Edges of boxes among them.
    pub(crate) strands: Option<Strands<'s>>,
    /// Where each ray really ends.
    end: Lanes,
    near: Vec<Region>,
}

/// What a ray has gathered, as in `kernel::Gathered`.
pub(crate) struct Lane {
    pub(crate) colour: Vec4,
    /// Place in the table of the sample before the next one; NaN where it is not known.
    pub(crate) before: f32,
}

impl<'s> Hunts<'s> {
    pub(crate) fn new<T: Voxel>(
        caster: &Caster<'_, T>,
        rays: &Rays,
        sheets: Sheets,
        strands: Option<Strands<'s>>,
    ) -> Self {
        // Voxels of the finest level drawn per voxel of level 0.
        let voxels_per_volume = caster.scene.view.levels[caster.finest_rank].scale;
        let line = |lane| Line {
            origin: rays.origin_of(lane),
            step: rays.step_of(lane),
            direction: caster.direction_of(rays, lane),
        };
        let hunt = |lane: usize| {
            let [from, to] = [0, 1].map(|end| rays.reach[end][lane]);
            let [first, last] = [0, 1].map(|end| rays.whole[end][lane]);
            // Rays without samples have no surfaces.
            if !rays.has_samples(lane) {
                return Hunt::new(line(lane), from, from);
            }
            let line = line(lane);
            let beyond = Share::beyond(line.step, voxels_per_volume);
            let end = sheets[lane].map_or((to + beyond).min(last), |sheet| sheet.at);
            if (from, to) == (first, last) {
                return Hunt::new(line, from, end);
            }
            let until = if to < last { to } else { f64::INFINITY };
            Hunt::of_share(line, [(from - beyond).max(first), end], [from, until])
        };
        Self { hunts: std::array::from_fn(hunt), sheets, strands, end: rays.end, near: Vec::new() }
    }

    /// What a ray meets next, without taking it.
    fn peek<T: Voxel>(&mut self, caster: &Caster<'_, T>, lane: usize) -> Option<Hit> {
        let Self { hunts, sheets, strands, near, .. } = self;
        let hit = if caster.surfaces.is_empty() { None } else { hunts[lane].peek(caster, near) };
        let hit = hit.or(sheets[lane]);
        match strands.as_ref().and_then(|strands| strands.peek(lane)) {
            Some((at, colour)) if hit.is_none_or(|hit| at <= hit.at) => Some(Hit::of_edge(at, colour)),
            _ => hit,
        }
    }

    /// Takes what [`Hunts::peek`] found.
    fn take(&mut self, lane: usize, hit: &Hit) {
        match &mut self.strands {
            Some(strands) if hit.is_edge() => strands.take(lane),
            _ if self.hunts[lane].take().is_none() => self.sheets[lane] = None,
            _ => {}
        }
    }

    /// The colours of surfaces, slices and edges alone, up to where a ray is `opaque`.
    #[inline(never)]
    pub(crate) fn alone<T: Voxel>(mut self, caster: &Caster<'_, T>, opaque: f32) -> [Vec4; LANES] {
        let mut colours = self.strands.as_mut().map_or([Vec4::ZERO; LANES], Strands::before);
        for (lane, colour) in colours.iter_mut().enumerate() {
            while colour.w < opaque {
                let Some(hit) = self.peek(caster, lane) else { break };
                if !hit.is_foreign {
                    *colour += hit.colour * (1.0 - colour.w);
                }
                self.take(lane, &hit);
            }
        }
        if let Some(strands) = &mut self.strands {
            strands.rest(&mut colours);
        }
        colours
    }

    /// Lets each ray that is not `opaque` go on to what it meets next, or to its end.
    #[inline(never)]
    pub(crate) fn send<T: Voxel>(
        &mut self,
        caster: &Caster<'_, T>,
        rays: &mut Rays,
        is_opaque: impl Fn(usize) -> bool,
    ) {
        for lane in (0..LANES).filter(|&lane| !is_opaque(lane)) {
            let hit = self.peek(caster, lane);
            let stop = hit.map_or(f64::INFINITY, |hit| hit.at.floor() + 1.0);
            rays.end[lane] = stop.min(self.end[lane]);
        }
    }

    /// Draws what a ray meets that has come to the sample before it, and the rest of the step it lies in; false
    /// where there is none.
    #[inline(never)]
    pub(crate) fn meet<T: Voxel>(
        &mut self,
        caster: &Caster<'_, T>,
        rays: &mut Rays,
        lane: usize,
        table: &Table,
        opaque: f32,
        gathered: &mut Lane,
    ) -> bool {
        let Some(hit) = self.peek(caster, lane) else { return false };
        let (draws, whole) = (caster.draws_volume(), hit.at.floor());
        let (origin, step) = (rays.origin_of(lane), rays.step_of(lane));
        let place_at = |sample: f64| caster.place_at(origin + step * sample, table);
        // The light of the whole step is that at the surface.
        let shade = |colour: Vec4, cosine| if caster.metric.is_some() { lit(colour, cosine) } else { colour };
        let (mut at, mut place, mut cosine) = (whole, gathered.before, hit.cosine);
        if draws && place.is_nan() {
            place = place_at(whole);
        }
        while let Some(hit) = self.peek(caster, lane).filter(|hit| hit.at < whole + 1.0) {
            let next = match hit.is_edge() {
                false => table.scale.place(hit.stored),
                true if draws => place_at(hit.at),
                true => f32::NAN,
            };
            cosine = hit.cosine;
            if draws && !hit.is_foreign {
                let before = shade(stretch(table, [place, next], hit.at - at), cosine);
                gathered.colour += before * (1.0 - gathered.colour.w);
            }
            if !hit.is_foreign {
                gathered.colour += hit.colour * (1.0 - gathered.colour.w);
            }
            (at, place) = (hit.at, next);
            self.take(lane, &hit);
            if gathered.colour.w >= opaque {
                return true;
            }
        }
        gathered.before = f32::NAN;
        rays.next[lane] = whole + 1.0;
        if draws && whole + 1.0 < self.end[lane] {
            gathered.before = place_at(whole + 1.0);
            let behind = shade(stretch(table, [place, gathered.before], whole + 1.0 - at), cosine);
            gathered.colour += behind * (1.0 - gathered.colour.w);
            rays.next[lane] = whole + 2.0;
        }
        true
    }
}

/// The premultiplied colour of a way along which the place in the table runs evenly, `length` steps long; nothing
/// where it ends at what is missing.
#[expect(clippy::cast_possible_truncation, reason = "a part of one step")]
fn stretch(table: &Table, [from, to]: [f32; 2], length: f64) -> Vec4 {
    if to.is_nan() || length <= 0.0 {
        return Vec4::ZERO;
    }
    let from = if from.is_nan() { to } else { from };
    let (low, high) = (from.min(to), from.max(to));
    let error = (table.bend(high + 1.0) - table.bend(low)) * (high - low) * ERROR_PER_BEND;
    let is_enough = |parts: &&u32| error < TOLERANCE * (*parts * *parts) as f32;
    let parts = *PARTS.iter().find(is_enough).unwrap_or(&PARTS[PARTS.len() - 1]);
    let thickness = length as f32 / parts as f32;
    let mut colour = Vec4::ZERO;
    for part in 0..parts {
        let entry = table.entry(from + (to - from) * (part as f32 + 0.5) / parts as f32);
        if entry.w > 0.0 {
            let opacity = 1.0 - (1.0 - entry.w).powf(thickness);
            colour += entry * (opacity / entry.w) * (1.0 - colour.w);
        }
    }
    colour
}
