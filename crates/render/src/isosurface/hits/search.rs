//! Search of sixteen rays through one block: traversal to cells in which they may meet a surface, and hits in
//! these cells.
//!
//! The cells are found sixteen at once in `f32` (`traversal.rs`); the hits in them, in `f64`, lane by lane in
//! loops that are vectorized.

use glam::DVec3;

use super::traversal::{CellTraversal, TraversedBlock, mask};
use super::{Hit, HitSearch, StoredSurface, ahead};
use crate::blocks::resident::Resident;
use crate::blocks::voxel::Voxel;
use crate::cpu::color_by::recolored;
use crate::cpu::context::CastContext;
use crate::cpu::packet::rays::PacketRays;
use crate::cpu::packet::size::LaneValues;
use crate::isosurface::cubic::{CellCorners, Cubics, RayCubic, gradient};
use crate::isosurface::prepare::Isosurfaces;
use crate::simd::{LANES, Simd};

/// Sixteen rays in a block's voxels, per axis x, y, z: `origin + t * step`.
pub(crate) struct LocalRays {
    origin: [LaneValues; 3],
    step: [LaneValues; 3],
    inverse: [LaneValues; 3],
    /// Voxels of the block per voxel of level 0.
    scale: DVec3,
}

impl LocalRays {
    #[inline(always)]
    pub(crate) fn new<T: Voxel>(
        context: &CastContext<'_, T>,
        rays: &PacketRays,
        block: &Resident<T>,
    ) -> Self {
        let (scale, shift) = context.scene.view.levels[block.level_index].local_map(block.at);
        let mut local = Self { origin: rays.origin, step: rays.step, inverse: rays.inverse, scale };
        for axis in 0..3 {
            for lane in 0..LANES {
                local.origin[axis][lane] = rays.origin[axis][lane] * scale[axis] + shift[axis];
                local.step[axis][lane] = rays.step[axis][lane] * scale[axis];
                local.inverse[axis][lane] = 1.0 / local.step[axis][lane];
            }
        }
        local
    }

    /// Returns the position of a ray in fractions of a cell.
    #[inline(always)]
    fn share(&self, cells: &[[f32; LANES]; 3], lane: usize, at: f64) -> DVec3 {
        let [x, y, z] = &self.origin;
        let [cx, cy, cz] = cells;
        let cell = DVec3::new(f64::from(cx[lane]), f64::from(cy[lane]), f64::from(cz[lane]));
        DVec3::new(x[lane], y[lane], z[lane]) + self.step_of(lane) * at - cell
    }

    #[inline(always)]
    fn step_of(&self, lane: usize) -> DVec3 {
        let [x, y, z] = &self.step;
        DVec3::new(x[lane], y[lane], z[lane])
    }
}

/// Rays in one block.
pub(crate) struct BlockSearch<'a, 'b, T> {
    pub(crate) search: &'a mut HitSearch,
    pub(crate) context: &'a CastContext<'b, T>,
    pub(crate) surfaces: &'a Isosurfaces,
    pub(crate) rays: &'a PacketRays,
    pub(crate) block: &'a Resident<T>,
    pub(crate) local: LocalRays,
    pub(crate) members: u32,
    /// Positions where the rays leave the block, in steps.
    pub(crate) exit: LaneValues,
}

impl<T: Voxel> BlockSearch<'_, '_, T> {
    /// Moves each of the members to the end of the block, or until it has found a hit.
    #[inline(always)]
    pub(crate) fn run<S: Simd>(&mut self, simd: S, traversed: &TraversedBlock<'_, T>) {
        let mut traversal = self.traversal(simd, traversed);
        let mut going = self.members;
        loop {
            let arrived = traversal.go(simd, traversed, going);
            if arrived == 0 {
                break;
            }
            self.search.side = simd.store(traversal.side);
            let cells =
                [simd.store(traversal.cell[0]), simd.store(traversal.cell[1]), simd.store(traversal.cell[2])];
            self.look_into(&cells, arrived);
            going &= self.search.open();
            traversal.side = simd.load(&self.search.side);
            traversal.pass(simd, mask(simd, arrived));
        }
        let side = simd.store(traversal.side);
        for (lane, side) in side.into_iter().enumerate() {
            let is_out = going >> lane & 1 != 0;
            self.search.at[lane] = if is_out { self.exit[lane] } else { self.search.at[lane] };
            let is_own = self.members >> lane & 1 != 0;
            self.search.side[lane] = if is_own { side } else { self.search.side[lane] };
        }
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "positions are f32")]
    fn traversal<S: Simd>(&self, simd: S, traversed: &TraversedBlock<'_, T>) -> CellTraversal<S> {
        let (local, at) = (&self.local, &self.search.at);
        let [mut start, mut step, mut cell] = [[[0.0; LANES]; 3]; 3];
        let mut until = [0.0; LANES];
        for axis in 0..3 {
            for lane in 0..LANES {
                let (origin, along) = (local.origin[axis][lane], local.step[axis][lane]);
                start[axis][lane] = (origin + along * at[lane]) as f32;
                step[axis][lane] = along as f32;
                cell[axis][lane] = (origin + along * ahead(at[lane])).floor() as f32;
            }
        }
        for lane in 0..LANES {
            until[lane] = (self.exit[lane] - at[lane]) as f32;
        }
        CellTraversal::new(simd, traversed, [&start, &step, &cell], &until, &self.search.side)
    }

    /// Records all hits of the `arrived` rays in their cells.
    #[inline(always)]
    fn look_into(&mut self, cells: &[[f32; LANES]; 3], arrived: u32) {
        let [from, to] = self.way(cells);
        let mut corners = [[0.0; LANES]; 8];
        let mut whole = 0;
        let mut left = arrived;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            self.search.at[lane] = to[lane];
            // Beyond the block's last cell values are constant, without a slope: that region belongs to the
            // next block.
            if ahead(from[lane]) >= self.exit[lane] {
                continue;
            }
            let found = self.block.corners([0, 1, 2].map(|axis| whole_number(cells[axis][lane])));
            if self.block.has_missing && self.context.blocks.missing.any(&found) {
                self.search.side[lane] = f32::NAN;
                continue;
            }
            whole |= 1 << lane;
            for (all, own) in corners.iter_mut().zip(found) {
                all[lane] = own.to_f64();
            }
        }
        let mut cubics = Cubics::ZERO;
        let mut ends = [[0.0; LANES]; 4];
        let mut values = [[0.0; LANES]; 4];
        for lane in 0..LANES {
            let (share, step) = (self.local.share(cells, lane, from[lane]), self.local.step_of(lane));
            let cubic = RayCubic::new(&of_lane(&corners, lane), share, step);
            let [a, b, c, d] = cubic.pieces(to[lane] - from[lane]);
            (ends[0][lane], ends[1][lane], ends[2][lane], ends[3][lane]) = (a, b, c, d);
            (values[0][lane], values[1][lane]) = (cubic.at(a), cubic.at(b));
            (values[2][lane], values[3][lane]) = (cubic.at(c), cubic.at(d));
            cubics.set(lane, cubic);
        }
        let hairs = hairs(&corners);
        let mut side = [0.0; LANES];
        let place = EnteredCells { cells, corners: &corners, from: &from };
        for number in 0..self.surfaces.values.sorted.len() {
            let surface = self.surfaces.values.sorted[number];
            let mut isovalue = [surface.stored; LANES];
            for (isovalue, hair) in isovalue.iter_mut().zip(&hairs) {
                *isovalue -= hair;
            }
            let mut before = self.sides_before(number, &values[0], &isovalue);
            for piece in 0..4 {
                let here = bits_above(&values[piece], &isovalue);
                let crossed = (before ^ here) & whole;
                before = here;
                if crossed == 0 {
                    continue;
                }
                let at = if piece == 0 {
                    ends[0]
                } else {
                    let (mut low, mut high) = (ends[piece - 1], ends[piece]);
                    for lane in 0..LANES {
                        let is_crossed = crossed >> lane & 1 != 0;
                        low[lane] = if is_crossed { low[lane] } else { 0.0 };
                        high[lane] = if is_crossed { high[lane] } else { 0.0 };
                    }
                    cubics.crossing(&isovalue, low, high)
                };
                self.note(&place, &surface, &at, crossed);
            }
            for lane in 0..LANES {
                side[lane] += if values[3][lane] >= isovalue[lane] { 1.0 } else { 0.0 };
            }
        }
        for (lane, side) in side.into_iter().enumerate() {
            let is_own = whole >> lane & 1 != 0;
            self.search.side[lane] = if is_own { side } else { self.search.side[lane] };
        }
    }

    /// Returns the positions where rays enter and leave cells, in steps; not behind the block's end.
    #[inline(always)]
    fn way(&self, cells: &[[f32; LANES]; 3]) -> [LaneValues; 2] {
        let local = &self.local;
        let [mut from, mut to] = [self.search.at, self.exit];
        for (axis, cells) in cells.iter().enumerate() {
            for lane in 0..LANES {
                let (step, inverse) = (local.step[axis][lane], local.inverse[axis][lane]);
                let low = (f64::from(cells[lane]) - local.origin[axis][lane]) * inverse;
                let high = (f64::from(cells[lane]) + 1.0 - local.origin[axis][lane]) * inverse;
                let (near, far) = if step > 0.0 { (low, high) } else { (high, low) };
                let moves = step != 0.0;
                from[lane] = if moves && near > from[lane] { near } else { from[lane] };
                to[lane] = if moves && far < to[lane] { far } else { to[lane] };
            }
        }
        for lane in 0..LANES {
            to[lane] = if to[lane] > from[lane] { to[lane] } else { from[lane] };
        }
        [from, to]
    }

    /// Returns one bit for each ray that comes from at or above an isovalue, or begins there.
    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "at most MAX_COUNT")]
    fn sides_before(&self, number: usize, values: &LaneValues, isovalue: &LaneValues) -> u32 {
        let mut bits = 0;
        for lane in 0..LANES {
            let side = self.search.side[lane];
            let is_above = if side.is_nan() { values[lane] >= isovalue[lane] } else { side > number as f32 };
            bits |= u32::from(is_above) << lane;
        }
        bits
    }

    /// Records hits of rays, at this number of steps behind the entry into their cells.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "colors are f32")]
    fn note(&mut self, place: &EnteredCells<'_>, surface: &StoredSurface, at: &LaneValues, crossed: u32) {
        let (context, local) = (self.context, &self.local);
        let mut cosines = [0.0; LANES];
        for lane in 0..LANES {
            let share = local.share(place.cells, lane, place.from[lane] + at[lane]);
            let share = share.max(DVec3::ZERO).min(DVec3::ONE);
            let gradient = gradient(&of_lane(place.corners, lane), share) * local.scale;
            cosines[lane] = context.lamp.cosine(gradient, context.direction_of(self.rays, lane)) as f32;
        }
        let mut left = crossed;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            let (cosine, stored) = (cosines[lane], surface.stored);
            let at = place.from[lane] + at[lane];
            let color = recolored(context.color_by, surface.color, self.rays.at(lane, at));
            let cue = context.dimming.as_ref().map_or(1.0, |dimming| dimming.cue_at(at));
            let color = context.scene.light.dimmed(cue).lit(color, cosine);
            self.search.note(lane, Hit { at, stored, color, cosine, is_foreign: false });
        }
    }
}

/// Cells that sixteen rays are in, and where they entered them.
struct EnteredCells<'a> {
    cells: &'a [[f32; LANES]; 3],
    corners: &'a [LaneValues; 8],
    from: &'a LaneValues,
}

#[inline(always)]
fn of_lane(corners: &[LaneValues; 8], lane: usize) -> CellCorners {
    let [a, b, c, d, e, f, g, h] = corners;
    [a[lane], b[lane], c[lane], d[lane], e[lane], f[lane], g[lane], h[lane]]
}

/// Returns one bit for each value that is at or above the other.
#[inline(always)]
fn bits_above(values: &LaneValues, others: &LaneValues) -> u32 {
    let mut bits = 0;
    for lane in 0..LANES {
        bits |= u32::from(values[lane] >= others[lane]) << lane;
    }
    bits
}

/// Returns the distance below an isovalue at which its surface is drawn in cells with these corners: too
/// little to be visible, and more than the rounding error of interpolation. So voxels of a plateau at the
/// isovalue itself are behind the surface, independent of rounding, and it lies in the surrounding cells,
/// which have a slope for the lighting.
#[inline(always)]
fn hairs(corners: &[LaneValues; 8]) -> LaneValues {
    /// Share of the range of a cell's values.
    const HAIR: f64 = 1e-9;
    let (mut low, mut high) = (corners[0], corners[0]);
    for corner in &corners[1..] {
        for lane in 0..LANES {
            low[lane] = if corner[lane] < low[lane] { corner[lane] } else { low[lane] };
            high[lane] = if corner[lane] > high[lane] { corner[lane] } else { high[lane] };
        }
    }
    let mut hairs = [0.0; LANES];
    for lane in 0..LANES {
        // Computed separately, so that no range exceeds `f64`.
        hairs[lane] = high[lane] * HAIR - low[lane] * HAIR;
    }
    hairs
}

/// Converts a coordinate of the lowest voxel of a cell to an integer.
#[expect(clippy::cast_possible_truncation, reason = "whole, and clamped where voxels are read")]
fn whole_number(at: f32) -> isize {
    at as isize
}
