//! Ambient occlusion: the share of the light from all sides that the surroundings of a place keep off.
//!
//! Local ambient occlusion as of Hernell, Ljung and Ynnerman ("Local ambient occlusion in direct volume
//! rendering", 2010), with the surroundings summed up in advance instead of sampled by rays: a coarse grid of
//! opacities, averaged over a near and a wide neighborhood. On a flat opaque surface half of the neighborhood
//! is opaque, which counts as no occlusion; in a pit more of it is.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use array::LevelOrigin;
use glam::{DVec3, Vec3};
use rayon::prelude::*;

use crate::blocks::BlockTable;
use crate::blocks::resident::Resident;
use crate::blocks::voxel::Voxel;
use crate::cpu::table::{ENTRIES, TransferTable, TransferTables};
use crate::scene::volume::{VolumeView, xyz};
use crate::simd::{READ_AHEAD, Simd, each_axis};

/// Cells along the longest edge of the volume, in world units.
const CELLS: f64 = 64.0;
/// Half widths of the near and the wide neighborhood, cells of the longest edge.
const NEAR: f64 = 1.0;
const WIDE: f64 = 4.0;
/// Neighborhood that a cell depends on, as a share of the volume's longest edge: boxes are averaged twice.
const REACH: f64 = (2.0 * WIDE + 2.0) / CELLS;
/// Fewest voxels along the longest axis of a level that is a good source.
const FEWEST_VOXELS: u64 = 24;
/// Most voxels along the longest axis of a level that is the source although a coarser one is drawn.
const MOST_VOXELS: u64 = 4 * FEWEST_VOXELS;
/// Voxels along an axis of a cell that are looked at.
const LOOKED_AT: f64 = 2.0;
/// Largest opacity of a sample, so that its extinction is finite.
const MOST_OPAQUE: f32 = 1.0 - 1.0 / 65536.0;
/// Number of grids that are remembered, each of at most [`CELLS`]^3 numbers.
const MEMO_SIZE: usize = 3;

/// Occlusion by position.
#[derive(Debug, PartialEq)]
pub struct OcclusionGrid {
    /// Cells along x, y, z.
    pub cells: [usize; 3],
    /// Position between the centers of cells = `scale * volume position + shift`.
    pub scale: DVec3,
    /// See `scale`.
    pub shift: DVec3,
    /// Occlusion of each cell, 0 to 1, x fastest; a few more numbers at the end.
    pub occlusion: Vec<f32>,
    /// Edge of a cell along the longest edge of the volume, world units.
    pub(crate) cell_world: f64,
}

/// The last grids of a table of blocks, by the tables of the transfer function and the blocks that they were made from.
#[derive(Debug)]
pub(crate) struct OcclusionMemo<T>(Arc<Mutex<Vec<Remembered<T>>>>);

type Remembered<T> = (GridSource<T>, Arc<OcclusionGrid>);

/// Data that a grid is made from: number of the tables, and blocks. Weak references keep addresses unique.
#[derive(Debug)]
struct GridSource<T>(u64, Vec<Weak<Resident<T>>>);

impl<T> Default for OcclusionMemo<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for OcclusionMemo<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> PartialEq for GridSource<T> {
    fn eq(&self, other: &Self) -> bool {
        let (Self(number, blocks), Self(others_number, others)) = (self, other);
        number == others_number
            && blocks.len() == others.len()
            && blocks.iter().zip(others).all(|(a, b)| Weak::ptr_eq(a, b))
    }
}

impl OcclusionGrid {
    /// Returns the grid for the blocks of a table; `None` if no level that is drawn serves. `level_indices` are
    /// the levels that are drawn, finest first.
    pub(crate) fn of<T: Voxel>(
        blocks: &BlockTable<T>,
        tables: &TransferTables,
        level_indices: &[usize],
        step_world: f64,
    ) -> Option<Arc<Self>> {
        let level_index = source_level(&blocks.view, level_indices, |r| blocks.count_at(r) > 0)?;
        let sources: Vec<&Arc<Resident<T>>> = blocks
            .occupied()
            .map(|(_, block)| block)
            .filter(|block| block.level_index == level_index)
            .collect();
        let source = GridSource(tables.number, sources.iter().map(|block| Arc::downgrade(block)).collect());
        let mut remembered = blocks.occlusion.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, grid)) = remembered.iter().find(|(other, _)| *other == source) {
            return Some(Arc::clone(grid));
        }
        let made = Arc::new(Self::new(blocks, &tables.by_stride[0], (level_index, &sources), step_world));
        remembered.truncate(MEMO_SIZE - 1);
        remembered.insert(0, (source, Arc::clone(&made)));
        Some(made)
    }

    fn new<T: Voxel>(
        blocks: &BlockTable<T>,
        table: &TransferTable,
        (level_index, sources): (usize, &[&Arc<Resident<T>>]),
        step_world: f64,
    ) -> Self {
        let layout = GridLayout::new(&blocks.view, level_index);
        let extinctions = extinctions(table, step_world);
        let sum = |mut sums: Sums, block: &&Arc<Resident<T>>| {
            layout.add(blocks, block, &mut sums, |stored| extinctions[entry_number(table.entry_of(stored))]);
            sums
        };
        let sums = sources
            .par_iter()
            .fold(|| Sums::new(layout.count()), sum)
            .reduce(|| Sums::new(layout.count()), Sums::and);
        let opacities = sums.means().map(|mean| 1.0 - (-mean * layout.cell_world as f32).exp()).collect();
        let [near, wide] = [NEAR, WIDE].map(|width| layout.averaged(&opacities, width));
        let passes = |mean: f32| 1.0 - beyond_half(mean);
        let mut occlusion: Vec<f32> =
            near.iter().zip(&wide).map(|(&near, &wide)| 1.0 - passes(near) * passes(wide)).collect();
        occlusion.resize(layout.count() + READ_AHEAD, 0.0);
        let scale = layout.cell.recip();
        Self {
            cells: layout.cells,
            scale,
            shift: -layout.low * scale - 0.5,
            occlusion,
            cell_world: layout.cell_world,
        }
    }

    /// Returns the occlusion at a position in volume space.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the cells")]
    pub(crate) fn at(&self, volume: DVec3) -> f32 {
        let last = DVec3::from_array(self.cells.map(|n| n as f64 - 1.0));
        let place = (volume * self.scale + self.shift).clamp(DVec3::ZERO, last);
        let first = place.floor().min((last - 1.0).max(DVec3::ZERO));
        let share = (place - first).as_vec3();
        let [nx, ny, _] = self.cells;
        let start = (first.z as usize * ny + first.y as usize) * nx + first.x as usize;
        let [up, back] = [if ny > 1 { nx } else { 0 }, if self.cells[2] > 1 { nx * ny } else { 0 }];
        let lerp = |a: f32, b: f32, share: f32| (b - a).mul_add(share, a);
        let row = |at: usize| lerp(self.occlusion[at], self.occlusion[at + 1], share.x);
        let plane = |at: usize| lerp(row(at), row(at + up), share.y);
        lerp(plane(start), plane(start + back), share.z)
    }

    /// Returns the occlusion of sixteen places, at positions between the centers of cells.
    #[inline(always)]
    #[expect(unsafe_code, reason = "cells are read at places that were clamped before")]
    #[expect(clippy::cast_possible_truncation, reason = "at most 64 cells along an axis")]
    pub(crate) fn around<S: Simd>(&self, simd: S, places: &[S::F; 3]) -> S::F {
        let zero = simd.splat(0.0);
        let bounded = each_axis!(a => {
            simd.min(simd.max(places[a], zero), simd.splat((self.cells[a] - 1) as f32))
        });
        let first = each_axis!(a => {
            simd.truncate(simd.min(bounded[a], simd.splat(self.cells[a].saturating_sub(2) as f32)))
        });
        let share = each_axis!(a => simd.sub(bounded[a], simd.to_float(first[a])));
        let [nx, ny, nz] = self.cells.map(|n| n as u32);
        let rows = simd.add_u(simd.mul_u(first[2], simd.splat_u(ny)), first[1]);
        let start = simd.add_u(simd.mul_u(rows, simd.splat_u(nx)), first[0]);
        let [up, back] = [if ny > 1 { nx } else { 0 }, if nz > 1 { nx * ny } else { 0 }];
        let row = |at: S::U| {
            // SAFETY: the first cell is at most the last but one along each axis, and the one after the end is there.
            let [a, b] = unsafe { simd.pairs_f32(self.occlusion.as_ptr(), &simd.store_u(at)) };
            simd.mul_add(simd.sub(b, a), share[0], a)
        };
        let (a, b) = (row(start), row(simd.add_u(start, simd.splat_u(up))));
        let front = simd.mul_add(simd.sub(b, a), share[1], a);
        let start = simd.add_u(start, simd.splat_u(back));
        let (a, b) = (row(start), row(simd.add_u(start, simd.splat_u(up))));
        let rear = simd.mul_add(simd.sub(b, a), share[1], a);
        simd.mul_add(simd.sub(rear, front), share[2], front)
    }
}

/// Returns the level to take voxels from: the coarsest that is drawn and not too coarse, else the finest.
fn source_level(
    view: &VolumeView,
    level_indices: &[usize],
    has_blocks: impl Fn(usize) -> bool,
) -> Option<usize> {
    let candidates = || {
        level_indices
            .iter()
            .copied()
            .filter(|&r| has_blocks(r) && view.levels[r].origin != LevelOrigin::Corners)
    };
    let is_fine = |&r: &usize| view.levels[r].shape.iter().max() >= Some(&FEWEST_VOXELS);
    candidates().rev().find(is_fine).or_else(|| candidates().next())
}

/// Returns the distance from a place, in volume space, up to which voxels of a level may matter for its occlusion.
pub(crate) fn reach(view: &VolumeView, level_index: usize) -> DVec3 {
    let is_source = level_index + 1 == view.levels.len()
        || view.levels[level_index].shape.iter().max() <= Some(&MOST_VOXELS);
    if !is_source {
        return DVec3::ZERO;
    }
    let (low, high) = view.volume_box();
    let spacing = view.axis_spacing_world(0);
    DVec3::splat(REACH * ((high - low) * spacing).max_element()) / spacing
}

/// Returns the extinction of each entry of a table for samples that are `step_world` apart, per world unit.
#[expect(clippy::cast_possible_truncation, reason = "opacities are f32 of 16 bits")]
fn extinctions(table: &TransferTable, step_world: f64) -> Vec<f32> {
    let [entries, ..] = &table.parts;
    let opacity = |entry: &u64| f32::from((entry >> 48) as u16) * entries.unit;
    let per_sample = |entry| -(-opacity(entry).min(MOST_OPAQUE)).ln_1p();
    entries.packed.iter().map(|entry| per_sample(entry) / step_world as f32).collect()
}

/// Returns the number of the entry nearest to an entry number that is not rounded.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped; NaN is 0")]
fn entry_number(entry: f32) -> usize {
    entry.round().clamp(0.0, (ENTRIES - 1) as f32) as usize
}

/// Returns the excess of a mean opacity over one half, from 0 to 1.
fn beyond_half(mean: f32) -> f32 {
    (2.0 * mean - 1.0).clamp(0.0, 1.0)
}

/// Sums of extinctions and numbers of voxels, by cell.
struct Sums(Vec<[f32; 2]>);

impl Sums {
    fn new(count: usize) -> Self {
        Self(vec![[0.0; 2]; count])
    }

    fn and(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(own, [sum, count])| *own = [own[0] + sum, own[1] + count]);
        self
    }

    fn means(&self) -> impl Iterator<Item = f32> + '_ {
        self.0.iter().map(|&[sum, count]| if count > 0.0 { sum / count } else { 0.0 })
    }
}

/// Cells of a grid over a volume, each at least as large as a voxel of the source level.
struct GridLayout<'a> {
    view: &'a VolumeView,
    level_index: usize,
    cells: [usize; 3],
    /// Edges of a cell, volume space.
    cell: DVec3,
    /// Lower corner of the volume.
    low: DVec3,
    cell_world: f64,
    /// Edges of the volume, in cells of the longest edge.
    edges: DVec3,
}

impl<'a> GridLayout<'a> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 64")]
    fn new(view: &'a VolumeView, level_index: usize) -> Self {
        let (low, high) = view.volume_box();
        let voxels = xyz(view.levels[level_index].shape);
        let edges_world = (high - low) * view.axis_spacing_world(0);
        let cell_world = edges_world.max_element() / CELLS;
        let edges = edges_world / cell_world;
        let cells = edges.min(voxels).floor().max(DVec3::ONE).to_array().map(|n| n as usize);
        let cell = (high - low) / DVec3::from_array(cells.map(|n| n as f64));
        Self { view, level_index, cells, cell, low, cell_world, edges }
    }

    fn count(&self) -> usize {
        self.cells.iter().product()
    }

    /// Adds the extinctions of a block's voxels; of large cells not all are looked at.
    fn add<T: Voxel>(
        &self,
        blocks: &BlockTable<T>,
        block: &Resident<T>,
        sums: &mut Sums,
        extinction: impl Fn(f64) -> f32,
    ) {
        let [xs, ys, zs] = [0, 1, 2].map(|axis| self.voxels_and_cells(block, axis));
        for &(z, cell_z) in &zs {
            for &(y, cell_y) in &ys {
                let row = &block.data[block.layout.index(z, y, 0)..];
                let cells = &mut sums.0[(cell_z * self.cells[1] + cell_y) * self.cells[0]..];
                for &(x, cell_x) in &xs {
                    let [sum, count] = &mut cells[cell_x];
                    *count += 1.0;
                    if !block.has_missing || !blocks.missing.is_missing(row[x]) {
                        *sum += extinction(row[x].to_f64());
                    }
                }
            }
        }
    }

    /// Returns the voxels of a block along an axis (0 x, 1 y, 2 z) that are looked at, with their cells.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the cells")]
    fn voxels_and_cells<T>(&self, block: &Resident<T>, axis: usize) -> Vec<(usize, usize)> {
        let level = &self.view.levels[self.level_index];
        let (count, first) = (block.layout.shape[2 - axis], block.at[2 - axis] * level.block[2 - axis]);
        let every = (self.cell[axis] * level.scale[axis] / LOOKED_AT).floor().max(1.0) as u64;
        let looked_at = (0..count).filter(|&i| (first + i as u64) % every == 0);
        let cell_of = |i: usize| {
            let volume = ((first + i as u64) as f64 - level.shift[axis]) / level.scale[axis];
            let cell = (volume - self.low[axis]) / self.cell[axis];
            cell.clamp(0.0, self.cells[axis] as f64 - 1.0) as usize
        };
        looked_at.map(|i| (i, cell_of(i))).collect()
    }

    /// Averages cells over boxes of this half width, in cells of the longest edge, twice along each axis. Outside of the
    /// volume there is nothing.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few cells")]
    fn averaged(&self, cells: &Vec<f32>, width: f64) -> Vec<f32> {
        let mut averaged = cells.clone();
        let mut line = Vec::new();
        let [nx, ny, nz] = self.cells;
        let strides = [1, nx, nx * ny];
        for axis in (0..3).flat_map(|axis| [axis, axis]) {
            let (count, stride) = (self.cells[axis], strides[axis]);
            let half = (width * count as f64 / self.edges[axis]).round() as usize;
            if half == 0 {
                continue;
            }
            for start in (0..nx * ny * nz).filter(|at| at / stride % count == 0) {
                line.clear();
                line.extend((0..count).map(|i| averaged[start + i * stride]));
                average(&line, half, |i, mean| averaged[start + i * stride] = mean);
            }
        }
        averaged
    }
}

/// Returns the mean of a line's numbers around each of them, `half` to either side.
fn average(line: &[f32], half: usize, mut put: impl FnMut(usize, f32)) {
    let full = (2 * half + 1) as f32;
    let mut sum: f32 = line.iter().take(half).sum();
    for i in 0..line.len() {
        sum += line.get(i + half).copied().unwrap_or(0.0);
        if i > half {
            sum -= line[i - half - 1];
        }
        put(i, sum / full);
    }
}

/// Returns a position between the centers of cells, from a local position in a block, as the factor and the addition per axis.
#[expect(clippy::cast_possible_truncation, reason = "positions of samples are f32")]
pub(crate) fn cells_from_local(grid: &OcclusionGrid, (scale, origin): (DVec3, DVec3)) -> [Vec3; 2] {
    let factor = grid.scale / scale;
    [factor.as_vec3(), (grid.shift - origin * factor).as_vec3()]
}
