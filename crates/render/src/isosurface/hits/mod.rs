//! Search for surfaces along sixteen rays: region by region, cell by cell, front to back.
//!
//! Between the centers of eight voxels the surface is that of their trilinear interpolant, exactly
//! (`cubic.rs`); beyond the volume's outermost centers values are constant. Each ray keeps the side of the
//! isovalues on which it is: if the next cell begins on another side, the surface is right there. So rounding
//! between cells or blocks loses no surface, and where a fine block ends beside a coarse one the step between
//! their values is part of the surface: no cracks. Cells with a missing voxel contain no surface, and no side
//! is carried over them.
//!
//! All rays that have come to a region traverse it together (`traversal.rs`) until each has come to a cell in
//! which it may meet a surface; then these cells are searched, all at once and in `f64`. A ray that has found
//! a hit waits until that is taken.

mod search;
mod surfaces;
mod traversal;

use crate::SubVolume;
use crate::blocks::voxel::Voxel;
use crate::cpu::context::CastContext;
use crate::cpu::packet::rays::{PacketRays, UniformRegion};
use crate::cpu::packet::size::LaneValues;
use crate::isosurface::cell_sides::{CellSides, UNKNOWN};
use crate::isosurface::prepare::Isosurfaces;
use crate::simd::{LANES, Simd, SimdStep};
use search::{BlockSearch, LocalRays};
pub(crate) use surfaces::{Hit, StoredSurface, Surfaces};
use traversal::TraversedBlock;

/// State of the searches along sixteen rays.
pub(crate) struct HitSearch {
    /// Position up to which each ray was searched, in steps.
    pub(crate) at: LaneValues,
    end: LaneValues,
    /// Side of the isovalues on which each ray is there, counted as by [`CellSides`]; NaN at its beginning
    /// and behind missing values.
    pub(crate) side: [f32; LANES],
    found: FoundHits,
    /// Share of light that passes all hits found on a ray; a ray ends when this falls to `enough`.
    through: [f32; LANES],
    enough: f32,
    /// Range of each ray that belongs to this caster, in steps: hits before the first position, and hits from
    /// the second position on, belong to other casters.
    own: [LaneValues; 2],
}

/// Hits that were found on each ray and not taken yet: one linked list for each ray, the nearest hit first,
/// all in one vector.
struct FoundHits {
    /// Hits, each with the index of the next one of its ray.
    hits: Vec<(Hit, usize)>,
    /// Indices of the first hits.
    first: [usize; LANES],
    /// One bit for each ray that has any hit.
    rays: u32,
    count: [u32; LANES],
}

impl FoundHits {
    const END: usize = usize::MAX;

    fn new() -> Self {
        Self { hits: Vec::new(), first: [Self::END; LANES], rays: 0, count: [0; LANES] }
    }

    /// Inserts a hit by its distance. Of equally near hits the one inserted last comes first.
    fn add(&mut self, lane: usize, hit: Hit) {
        let (mut before, mut next) = (Self::END, self.first[lane]);
        while next != Self::END && self.hits[next].0.at < hit.at {
            (before, next) = (next, self.hits[next].1);
        }
        let own = self.hits.len();
        self.hits.push((hit, next));
        *(if before == Self::END { &mut self.first[lane] } else { &mut self.hits[before].1 }) = own;
        self.rays |= 1 << lane;
        self.count[lane] += 1;
    }

    fn take(&mut self, lane: usize) -> Option<Hit> {
        let &(hit, next) = self.hits.get(self.first[lane])?;
        self.first[lane] = next;
        self.rays &= !(u32::from(next == Self::END) << lane);
        self.count[lane] -= 1;
        Some(hit)
    }

    fn next(&self, lane: usize) -> Option<Hit> {
        self.hits.get(self.first[lane]).map(|(hit, _)| *hit)
    }
}

/// Number of hits up to which rays go on searching together with others: sixteen rays cost no more than one.
const MOST_AHEAD: u32 = 4;

/// Distance ahead at which regions are looked up, so that a ray on a wall is in the region it enters; steps.
const AHEAD: f64 = 1e-7;

/// Returns a position a little behind another one on a ray.
#[inline(always)]
pub(crate) fn ahead(at: f64) -> f64 {
    let rounding = at.abs() * f64::EPSILON * 4.0;
    at + if rounding > AHEAD { rounding } else { AHEAD }
}

impl HitSearch {
    /// Starts searches from where rays enter what is drawn to where they leave it, or to `ends`. In a
    /// sub-volume the searches begin before it and end behind it by a margin, so that they find the same as
    /// without borders.
    pub(crate) fn new<T: Voxel>(
        context: &CastContext<'_, T>,
        rays: &PacketRays,
        ends: &[Option<Hit>; LANES],
    ) -> Self {
        // Voxels of the finest level drawn per voxel of level 0.
        let voxels_per_volume = context.scene.view.levels[context.finest_level_index].scale;
        let mut search = Self {
            at: rays.reach[0],
            end: rays.reach[1],
            side: [f32::NAN; LANES],
            found: FoundHits::new(),
            through: [1.0; LANES],
            // Half of the limit, for rounding.
            enough: context.scene.quality.termination / 2.0,
            own: [[f64::NEG_INFINITY; LANES], [f64::INFINITY; LANES]],
        };
        for (lane, slice_hit) in ends.iter().enumerate() {
            let [from, to] = [0, 1].map(|end| rays.reach[end][lane]);
            let [first, last] = [0, 1].map(|end| rays.whole[end][lane]);
            // Rays without samples have no surfaces.
            if !rays.has_samples(lane) {
                search.end[lane] = from;
                continue;
            }
            if (from, to) != (first, last) {
                let beyond = SubVolume::beyond(rays.step_of(lane), voxels_per_volume);
                (search.at[lane], search.end[lane]) = ((from - beyond).max(first), (to + beyond).min(last));
                search.own[0][lane] = from;
                search.own[1][lane] = if to < last { to } else { f64::INFINITY };
            }
            search.end[lane] = slice_hit.map_or(search.end[lane], |slice_hit| slice_hit.at);
        }
        search
    }

    /// Returns the next hit that was found on a ray, without taking it.
    pub(crate) fn next(&self, lane: usize) -> Option<Hit> {
        self.found.next(lane)
    }

    /// Removes the next hit.
    pub(crate) fn take(&mut self, lane: usize) -> Option<Hit> {
        self.found.take(lane)
    }

    /// Inserts a hit of a ray: its own, or another caster's in the step that ends at the first sample here.
    #[inline(always)]
    pub(crate) fn note(&mut self, lane: usize, hit: Hit) {
        let [from, until] = [self.own[0][lane], self.own[1][lane]];
        let is_foreign = hit.at < from;
        if hit.at < until && (!is_foreign || hit.at >= from.ceil() - 1.0) {
            self.found.add(lane, Hit { is_foreign, ..hit });
            self.through[lane] *= if is_foreign { 1.0 } else { 1.0 - hit.color.w };
        }
    }

    /// Returns the rays on which more visible hits may be found, and that do not have too many.
    #[inline(always)]
    pub(crate) fn open(&self) -> u32 {
        let mut open = 0;
        for lane in 0..LANES {
            let has_room = self.found.count[lane] < MOST_AHEAD && self.through[lane] > self.enough;
            open |= u32::from(self.at[lane] < self.end[lane] && has_room) << lane;
        }
        open
    }
}

/// Continues the searches along the `wanted` rays until each has found a hit or is at its end.
pub(crate) struct FindHits<'a, 'b, T> {
    pub(crate) search: &'a mut HitSearch,
    pub(crate) context: &'a CastContext<'b, T>,
    pub(crate) surfaces: &'a Isosurfaces,
    pub(crate) rays: &'a PacketRays,
    pub(crate) wanted: u32,
}

impl<S: Simd, T: Voxel> SimdStep<S> for FindHits<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self, simd: S) {
        let Self { search, context, surfaces, rays, wanted } = self;
        let (marks, count) = surfaces.values.marks::<T>();
        loop {
            let open = search.open();
            if open & wanted & !search.found.rays == 0 {
                return;
            }
            let mut leader = open.trailing_zeros() as usize;
            for lane in 0..LANES {
                let is_nearer = open >> lane & 1 != 0 && search.at[lane] < search.at[leader];
                leader = if is_nearer { lane } else { leader };
            }
            let region = context.region(rays.at(leader, ahead(search.at[leader])));
            let (exit, inside) = exits(search, rays, &region);
            let mut members = open & (inside | 1 << leader);
            let sides = |slot: u32| surfaces.sides[slot as usize].as_deref().map(|sides| (slot, sides));
            let Some((slot, sides)) = region.slot.and_then(sides) else {
                search.leave(members, &exit, f32::NAN);
                continue;
            };
            let block = context.blocks.resident(slot);
            let missing = &context.blocks.missing;
            let mut cells = None;
            match sides {
                CellSides::Cells(sides) => {
                    cells = Some((&sides.around[..], sides.active(block, missing, &surfaces.values)));
                }
                CellSides::Even(side) => {
                    let side = if *side == UNKNOWN { f32::NAN } else { f32::from(*side) };
                    // Not where a side is unknown.
                    let mut differs = 0;
                    for lane in 0..LANES {
                        differs |= u32::from((search.side[lane] - side).abs() > 0.0) << lane;
                    }
                    search.leave(members & !differs, &exit, side);
                    members &= differs;
                }
            }
            if members == 0 {
                continue;
            }
            let traversed =
                TraversedBlock::new(block, missing, cells, &marks[..count], &surfaces.values.scale);
            let local = LocalRays::new(context, rays, block);
            BlockSearch { search: &mut *search, context, surfaces, rays, block, local, members, exit }
                .run(simd, &traversed);
        }
    }
}

/// Returns the positions where rays leave a region, at least a little ahead of the rays; and one bit for each
/// ray that is inside the region a little ahead.
#[inline(always)]
fn exits(search: &HitSearch, rays: &PacketRays, region: &UniformRegion) -> (LaneValues, u32) {
    let (low, high) = (region.low.to_array(), region.high.to_array());
    let (mut exit, mut is_inside) = (search.end, [true; LANES]);
    for axis in 0..3 {
        for (lane, exit) in exit.iter_mut().enumerate() {
            let (origin, step) = (rays.origin[axis][lane], rays.step[axis][lane]);
            let at = origin + step * ahead(search.at[lane]);
            is_inside[lane] &= at >= low[axis] && at < high[axis];
            let wall = if step >= 0.0 { high[axis] } else { low[axis] };
            let leaves = (wall - origin) * rays.inverse[axis][lane];
            *exit = if step != 0.0 && leaves < *exit { leaves } else { *exit };
        }
    }
    let mut inside = 0;
    for (lane, exit) in exit.iter_mut().enumerate() {
        let least = ahead(search.at[lane]);
        let least = if least < search.end[lane] { least } else { search.end[lane] };
        *exit = if *exit > least { *exit } else { least };
        inside |= u32::from(is_inside[lane]) << lane;
    }
    (exit, inside)
}

impl HitSearch {
    /// Moves rays past a region that lies on one side.
    #[inline(always)]
    fn leave(&mut self, rays: u32, exit: &LaneValues, side: f32) {
        for (lane, exit) in exit.iter().enumerate() {
            let is_own = rays >> lane & 1 != 0;
            self.at[lane] = if is_own { *exit } else { self.at[lane] };
            self.side[lane] = if is_own { side } else { self.side[lane] };
        }
    }
}
