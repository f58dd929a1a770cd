//! Traversal of the voxels of a block by sixteen rays, up to cells in which they may meet a surface.
//!
//! Rays go from cell to cell of eight voxels, all at once; in `f32`, so that a ray that comes nearer than a
//! ten thousandth of a voxel to an edge may miss the sliver that it cuts off there. The search in cells keeps
//! the side of the isovalues of each ray, so that no crossing is lost by that. Cells of voxels
//! (`resident.rs`) that lie on one side are skipped by their
//! [`CellSides`](crate::isosurface::cell_sides::CellSides); in the others a bit marks each active cell of
//! eight voxels (`active_cells.rs`). Where a ray enters a block, the voxels of its first cell are tested: the
//! previous block may end on another side.

#![expect(unsafe_code, reason = "cells are read at places that were clamped before")]

use crate::blocks::resident::{CELL, Resident};
use crate::blocks::voxel::{MissingValues, PlaceScale, Voxel};
use crate::cpu::samples::corners::VoxelGrid;
use crate::isosurface::active_cells::ActiveCells;
use crate::isosurface::cell_sides::{SIDES, UNKNOWN};
use crate::simd::{LANES, PairOffsets, READ_AHEAD, Simd, each_axis};

/// Cells of eight voxels that are tested between two tests for skipping.
const RUN: u32 = 8;

/// A ray that does not move along an axis never leaves through it: a large number, not infinity, which would
/// turn 0 * infinity into NaN.
const NEVER: f32 = 1e30;
const STILL: f32 = 1e-20;
const FAR: f32 = 1e30;
/// Larger than any block, voxels.
const FARTHEST: f32 = 2e9;

/// Block that rays traverse, and the isovalues.
pub(crate) struct TraversedBlock<'a, T> {
    grid: VoxelGrid<'a, T>,
    missing: &'a MissingValues<T>,
    /// Active cells as in [`SidesByCell`](crate::isosurface::cell_sides::SidesByCell); without them the
    /// voxels of each cell of eight are tested.
    maps: Option<CellMaps<'a>>,
    /// Isovalues as voxels are [loaded](Voxel::pairs), ascending.
    marks: &'a [f32],
    scale: &'a PlaceScale,
    /// Cells of voxels along x, y, z, and their distance in memory along z and y.
    cells: [f32; 3],
    strides: [u32; 2],
    count: usize,
    /// Larger than the number of cells of eight voxels that sixteen rays cross, one after the other.
    most: u32,
}

/// Tables of the cells of a block that can be skipped.
#[derive(Clone, Copy)]
struct CellMaps<'a> {
    around: &'a [u8],
    active: &'a ActiveCells,
}

impl<'a, T: Voxel> TraversedBlock<'a, T> {
    #[expect(clippy::cast_possible_truncation, reason = "a block has fewer than 2^31 voxels")]
    pub(crate) fn new(
        block: &'a Resident<T>,
        missing: &'a MissingValues<T>,
        cells: Option<(&'a [u8], &'a ActiveCells)>,
        marks: &'a [f32],
        scale: &'a PlaceScale,
    ) -> Self {
        let [nz, ny, nx] = block.layout.cells;
        let count = nz * ny * nx;
        assert!(
            cells.is_none_or(|(around, _)| around.len() >= count + READ_AHEAD),
            "a byte for each cell, and what is read beyond"
        );
        Self {
            grid: VoxelGrid::new(block),
            missing,
            maps: cells.map(|(around, active)| CellMaps { around, active }),
            marks,
            scale,
            cells: [nx as f32, ny as f32, nz as f32],
            strides: [(ny * nx) as u32, nx as u32],
            count,
            most: (block.layout.shape.iter().sum::<usize>() as u32 + RUN).saturating_mul(2 * LANES as u32),
        }
    }
}

/// Sixteen rays in the voxels of a block.
pub(crate) struct CellTraversal<S: Simd> {
    /// Positions of rays at step 0, voxels of the block along x, y, z.
    start: [S::F; 3],
    step: [S::F; 3],
    inverse: [S::F; 3],
    /// 1 if positions grow along the ray, else 0.
    forward: [S::F; 3],
    /// Lowest of the eight voxels around each ray.
    pub(crate) cell: [S::F; 3],
    /// Positions where each ray enters its cell, and, in `until`, where it leaves the traversed range; steps.
    now: S::F,
    until: S::F,
    /// Side on which each ray is; NaN if unknown.
    pub(crate) side: S::F,
    /// Number of cells that may still be tested.
    left: u32,
    /// True if rays are in the first cell of eight voxels of the block.
    is_new: bool,
}

impl<S: Simd> CellTraversal<S> {
    /// Creates the state of rays at `start`, in `cell`, that go on for `until` steps from there.
    #[inline(always)]
    pub(crate) fn new<T: Voxel>(
        simd: S,
        traversed: &TraversedBlock<'_, T>,
        [start, step, cell]: [&[[f32; LANES]; 3]; 3],
        until: &[f32; LANES],
        side: &[f32; LANES],
    ) -> Self {
        let step = each_axis!(a => simd.load(&step[a]));
        let moves = each_axis!(a => {
            simd.or(simd.ge(step[a], simd.splat(STILL)), simd.ge(simd.splat(-STILL), step[a]))
        });
        let inverse = each_axis!(a => {
            simd.select(moves[a], simd.div(simd.splat(1.0), step[a]), simd.splat(NEVER))
        });
        Self {
            start: each_axis!(a => simd.load(&start[a])),
            step,
            inverse,
            forward: each_axis!(a => {
                simd.select(simd.ge(inverse[a], simd.splat(0.0)), simd.splat(1.0), simd.splat(0.0))
            }),
            cell: each_axis!(a => simd.load(&cell[a])),
            now: simd.splat(0.0),
            until: simd.load(until),
            side: simd.load(side),
            left: traversed.most,
            is_new: true,
        }
    }

    /// Moves the `going` rays until each has left, or has come to an active cell; returns one bit for each of
    /// the latter.
    #[inline(always)]
    pub(crate) fn go<T: Voxel>(&mut self, simd: S, traversed: &TraversedBlock<'_, T>, mut going: u32) -> u32 {
        let mut arrived = 0;
        // Skipping is impossible beside an active cell.
        let mut has_room = self.is_new;
        loop {
            going &= simd.bits(simd.lt(self.now, self.until));
            if going == 0 || self.left == 0 {
                return arrived;
            }
            if let Some(CellMaps { around, .. }) = traversed.maps
                && has_room
            {
                let (leaps, differs) = self.leap(simd, traversed, around, mask(simd, going));
                arrived |= differs;
                going &= !differs;
                if leaps {
                    self.left -= 1;
                    continue;
                }
            }
            has_room = true;
            let (mut live, mut run) = (going, 0);
            while run < RUN && self.left > 0 && live != 0 {
                let stops = live & self.look(simd, traversed, live);
                arrived |= stops;
                going &= !stops;
                live &= !stops;
                self.pass(simd, mask(simd, live));
                live &= simd.bits(simd.lt(self.now, self.until));
                self.left -= 1;
                run += 1;
            }
        }
    }

    /// Returns one bit for each ray whose cell is active; arbitrary for those that are not `live`.
    #[inline(always)]
    fn look<T: Voxel>(&mut self, simd: S, traversed: &TraversedBlock<'_, T>, live: u32) -> u32 {
        match traversed.maps {
            Some(CellMaps { active, .. }) if !self.is_new => simd.bits(active.at(simd, &self.cell)),
            _ => {
                self.is_new = false;
                simd.bits(self.is_mixed(simd, traversed, mask(simd, live)))
            }
        }
    }

    /// Moves rays to their next cell.
    #[inline(always)]
    pub(crate) fn pass(&mut self, simd: S, live: S::M) {
        let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
        let exits = each_axis!(a => {
            simd.mul(simd.sub(simd.add(self.cell[a], self.forward[a]), self.start[a]), self.inverse[a])
        });
        let exit = simd.min(simd.min(exits[0], exits[1]), exits[2]);
        self.now = simd.select(live, exit, self.now);
        self.cell = each_axis!(a => {
            let ahead = simd.sub(simd.add(self.forward[a], self.forward[a]), one);
            let leaves = simd.and(live, simd.ge(exit, exits[a]));
            simd.add(self.cell[a], simd.select(leaves, ahead, zero))
        });
    }

    /// Returns true if the eight voxels around a ray lie on several sides, or on another side than the ray,
    /// or if some are missing. Afterwards the sides of the other rays are known.
    #[inline(always)]
    fn is_mixed<T: Voxel>(&mut self, simd: S, traversed: &TraversedBlock<'_, T>, live: S::M) -> S::M {
        let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
        let TraversedBlock { grid, missing, scale, .. } = traversed;
        let corners = grid.around(simd, &self.cell);
        let [low, high] = grid.range(simd, &corners, scale, missing);
        let (mut below, mut above) = (zero, zero);
        for &mark in traversed.marks {
            let mark = simd.splat(mark);
            // Values rounded to the isovalue may lie on either side of it.
            let is_above = if T::WIDE { simd.lt(mark, low) } else { simd.ge(low, mark) };
            below = simd.add(below, simd.select(is_above, one, zero));
            above = simd.add(above, simd.select(simd.ge(high, mark), one, zero));
        }
        // False if the ray's side is unknown.
        let differs = simd.or(simd.lt(self.side, below), simd.lt(below, self.side));
        let mut is_even = simd.select(simd.or(simd.lt(below, above), differs), zero, one);
        if grid.has_missing {
            // The range of missing values is unknown.
            is_even = simd.select(simd.ge(high, low), is_even, zero);
        }
        let is_told = simd.and(live, simd.ge(is_even, one));
        self.side = simd.select(is_told, below, self.side);
        simd.lt(is_even, one)
    }

    /// Moves rays to the end of the region around them that lies on one side. Returns whether some can be
    /// moved; and one bit for each that cannot because it comes from another side.
    #[inline(always)]
    fn leap<T: Voxel>(
        &mut self,
        simd: S,
        traversed: &TraversedBlock<'_, T>,
        around: &[u8],
        live: S::M,
    ) -> (bool, u32) {
        const PER_VOXEL: f32 = 1.0 / CELL as f32;
        let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
        let place = each_axis!(a => {
            let place = simd.max(simd.mul(self.cell[a], simd.splat(PER_VOXEL)), zero);
            simd.truncate(simd.min(place, simd.splat(traversed.cells[a] - 1.0)))
        });
        let plane = simd.mul_u(place[2], simd.splat_u(traversed.strides[0]));
        let row = simd.mul_u(place[1], simd.splat_u(traversed.strides[1]));
        let index: PairOffsets = simd.store_u(simd.add_u(simd.add_u(plane, row), place[0]));
        debug_assert!(index.iter().all(|&index| (index as usize) < traversed.count), "a cell of the block");
        // SAFETY: numbers of cells are below their count, so many bytes and READ_AHEAD more are there.
        let [here, _] = unsafe { simd.pairs_u8(around.as_ptr(), &index) };
        let reach = simd.to_float(simd.truncate(simd.mul(here, simd.splat(1.0 / f32::from(SIDES)))));
        let side = simd.sub(here, simd.mul(reach, simd.splat(f32::from(SIDES))));
        let side = simd.select(simd.ge(side, simd.splat(f32::from(UNKNOWN))), simd.splat(f32::NAN), side);
        let differs = simd.or(simd.lt(self.side, side), simd.lt(side, self.side));
        let reaches = simd.and(live, simd.ge(reach, one));
        let leaps = simd.and(reaches, simd.ge(simd.select(differs, zero, reach), one));
        let differs = simd.bits(simd.and(reaches, differs));
        if simd.bits(leaps) == 0 {
            return (false, differs);
        }
        let exits = each_axis!(a => {
            let at = simd.to_float(place[a]);
            let (low, high) = (simd.sub(at, simd.sub(reach, one)), simd.add(at, reach));
            let is_forward = simd.ge(self.forward[a], one);
            let wall = simd.mul(simd.select(is_forward, high, low), simd.splat(CELL as f32));
            // Beyond the outermost cells only the end of the block limits a ray.
            let is_outermost = simd.select(
                is_forward,
                simd.select(simd.ge(high, simd.splat(traversed.cells[a])), one, zero),
                simd.select(simd.ge(zero, low), one, zero),
            );
            let ahead = simd.mul(simd.sub(wall, self.start[a]), self.inverse[a]);
            [simd.select(simd.ge(is_outermost, one), simd.splat(FAR), ahead), wall]
        });
        let exit = simd.min(simd.min(exits[0][0], exits[1][0]), exits[2][0]);
        self.cell = each_axis!(a => {
            let [ahead, wall] = exits[a];
            // Positions of walls are exact. Elsewhere rounding may give the neighboring cell, which the next
            // step corrects.
            let beyond = simd.sub(wall, simd.sub(one, self.forward[a]));
            let at = simd.mul_add(self.step[a], exit, self.start[a]);
            let at = simd.min(simd.max(simd.add(at, one), zero), simd.splat(FARTHEST));
            let inside = simd.sub(simd.to_float(simd.truncate(at)), one);
            let cell = simd.select(simd.ge(exit, ahead), beyond, inside);
            simd.select(leaps, cell, self.cell[a])
        });
        self.now = simd.select(leaps, exit, self.now);
        self.side = simd.select(leaps, side, self.side);
        (true, differs)
    }
}

/// Returns which of sixteen rays have their bit set.
#[inline(always)]
pub(crate) fn mask<S: Simd>(simd: S, rays: u32) -> S::M {
    let mut flags = [0.0; LANES];
    for (lane, flag) in flags.iter_mut().enumerate() {
        *flag = if rays >> lane & 1 != 0 { 1.0 } else { 0.0 };
    }
    simd.ge(simd.load(&flags), simd.splat(1.0))
}
