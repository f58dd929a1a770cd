//! Depth bounds: depths between which the rays of each packet can meet something visible, so that they
//! neither begin before nor go on behind. In sparse pictures most rays then have no work at all.
//!
//! Visible regions are splatted: the sphere around each visible cell that lies beside a hidden one, or around
//! a whole visible block, covers packets of the image between two depths. Depths are along the camera's line
//! of sight. Only used for pictures, or sub-volumes of them, in which every block is present, complete and at
//! the wanted level: otherwise the samples that rays pass have to be counted.

use std::sync::Arc;

use glam::DVec3;
use rayon::prelude::*;
use view::Mode;

use crate::blocks::resident::{CELL, Resident};
use crate::blocks::voxel::Voxel;
use crate::cpu::context::CastContext;
use crate::cpu::empty_space::visible_cells::{BENT, VisibleCells};
use crate::cpu::packet::rays::PacketRays;
use crate::cpu::packet::size::PACKET_SIDE;
use crate::scene::frustum::Frustum;
use crate::scene::volume::xyz;
use crate::simd::LANES;
use crate::{ImageSize, Rect, SubVolume};

/// Number of cells per packet of the image that are splatted one by one; with more, whole blocks are.
const CELLS_PER_PACKET: usize = 2;

/// Largest number of blocks of a level that is searched.
const MOST_BLOCKS: u64 = 1 << 16;

/// Factor by which spheres are larger than their content, for rounding of positions in `f32`.
const ROUNDING: f64 = 1.001;

/// Depths between which the rays of each packet can meet something visible.
#[derive(Clone, Debug)]
pub(crate) struct DepthBounds {
    /// Part of the image that is drawn.
    rect: Rect,
    /// Packets in a row of it.
    columns: usize,
    /// Nearest and farthest visible depth of each packet, world units; nearest beyond farthest if it sees
    /// nothing.
    depths: Vec<[f32; 2]>,
}

/// Bounding sphere in world space.
#[derive(Clone, Copy, Debug)]
struct Sphere {
    center: DVec3,
    radius: f64,
}

impl DepthBounds {
    /// `None` if rays must be followed from end to end, as they are to surfaces and slices.
    pub(crate) fn new<T: Voxel>(context: &CastContext<'_, T>, has_solids: bool) -> Option<Self> {
        // Use what the rays of a sub-volume may read: other ranks have the other blocks.
        let margin = SubVolume::margin(context.scene, context.wanted_level_index);
        let frustum = Frustum::new(&context.scene.view, &context.lens, &context.scene.portion());
        let frustum = &context.part.sub_volume.restrict(frustum, margin);
        if has_solids || !is_uniform(context, frustum) {
            return None;
        }
        let rect = context.part.rect;
        let [columns, rows] = [rect.width, rect.height].map(|side| side.div_ceil(PACKET_SIDE) as usize);
        let empty = Self { rect, columns, depths: vec![[f32::INFINITY, f32::NEG_INFINITY]; columns * rows] };
        let is_drawn = |block: &Resident<T>| {
            block.level_index == context.wanted_level_index && is_seen(context, frustum, block.at)
        };
        let of = |(slot, block)| Some((block, &*context.plans[slot as usize].as_deref()?.field));
        let blocks: Vec<(&Arc<Resident<T>>, &VisibleCells)> =
            context.blocks.occupied().filter(|(_, block)| is_drawn(block)).filter_map(of).collect();
        let cells = blocks.iter().filter(|(_, field)| matches!(field, VisibleCells::Cells(_)));
        let count: usize = cells.map(|(block, _)| block.layout.cell_count()).sum();
        let is_fine = count <= CELLS_PER_PACKET * columns * rows;
        let splatted = |some: &[(&Arc<Resident<T>>, &VisibleCells)]| {
            let mut bounds = empty.clone();
            for (block, field) in some {
                let spheres = match field {
                    VisibleCells::Hidden { .. } => continue,
                    VisibleCells::Cells(cells) if is_fine => edge_cells(cells, block.layout.cells),
                    VisibleCells::Cells(_) | VisibleCells::Full { .. } => vec![([0; 3], block.layout.shape)],
                };
                for (first, size) in spheres {
                    bounds.splat(context, &sphere(context, block, first, size))?;
                }
            }
            Some(bounds)
        };
        // Each thread has its own; they are merged.
        let each = blocks.len().div_ceil(rayon::current_num_threads()).max(1);
        let all = blocks.par_chunks(each).map(splatted);
        all.try_reduce(|| empty.clone(), |bounds, other| Some(bounds.joined(&other)))
    }

    /// Extends the bounds to the union with others.
    fn joined(mut self, other: &Self) -> Self {
        for ([nearest, farthest], [near, far]) in self.depths.iter_mut().zip(&other.depths) {
            *nearest = nearest.min(*near);
            *farthest = farthest.max(*far);
        }
        self
    }

    /// Returns the packets that a sphere covers; `None` if it contains the eye or lies beside it.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped; depths are rounded outward"
    )]
    fn splat<T>(&mut self, context: &CastContext<'_, T>, sphere: &Sphere) -> Option<()> {
        let (lens, Sphere { center, radius }) = (&context.lens, *sphere);
        let to = center - lens.eye;
        let depth = to.dot(lens.forward);
        let near = depth - radius;
        if lens.perspective && near <= 0.0 {
            return (depth + radius <= 0.0).then_some(());
        }
        let rows = self.depths.len() / self.columns.max(1);
        // Offsets from the line of sight to the right, and down. Only `pixels` of the image from the first
        // pixel `from` on are drawn, in `count` packets.
        let range = |at: f64, [half, middle]: [f64; 2], pixels: u32, from: u32, count: usize| {
            let shrunk = |v: f64, grows: bool| {
                let apart = if grows == (v > 0.0) { near } else { depth + radius };
                if lens.perspective { v / apart } else { v }
            };
            let pixel = |v: f64| ((v - middle) / half + 1.0) / 2.0 * f64::from(pixels) - 0.5;
            let packet = |v: f64| (pixel(v) - f64::from(from)) / f64::from(PACKET_SIDE);
            let first = packet(shrunk(at - radius, false)).max(0.0) as usize;
            let end = (packet(shrunk(at + radius, true)) + 1.0).max(0.0) as usize;
            first.min(count)..end.min(count)
        };
        let ImageSize { width, height } = context.scene.size;
        let Rect { left, top, .. } = self.rect;
        let across = range(to.dot(lens.right), [lens.half[0], lens.middle], width, left, self.columns);
        let low = near.next_down() as f32;
        let high = (depth + radius).next_up() as f32;
        let (low, high) = (low.next_down(), high.next_up());
        for row in range(-to.dot(lens.up), [lens.half[1], 0.0], height, top, rows) {
            for [nearest, farthest] in &mut self.depths[row * self.columns..][across.clone()] {
                *nearest = nearest.min(low);
                *farthest = farthest.max(high);
            }
        }
        Some(())
    }

    /// Returns the nearest and farthest visible depth of the packet whose first pixel is `corner`; `None` if
    /// nothing is visible.
    #[inline(always)]
    pub(crate) fn depths(&self, corner: [u32; 2]) -> Option<[f64; 2]> {
        let [column, row] =
            [(corner[0] - self.rect.left) / PACKET_SIDE, (corner[1] - self.rect.top) / PACKET_SIDE];
        let [near, far] = self.depths[row as usize * self.columns + column as usize];
        (near <= far).then_some([f64::from(near), f64::from(far)])
    }
}

impl PacketRays {
    /// Clips rays to two depths; returns the number of samples that need not be taken before them.
    #[inline(always)]
    pub(crate) fn trim(&mut self, [near, far]: [f64; 2]) -> u64 {
        let mut left_out = 0.0;
        for lane in 0..LANES {
            let (next, end, length) = (self.next[lane], self.end[lane], self.length[lane]);
            let depth = self.depth[lane];
            let from = ((near - depth) / length).floor();
            // The interval from the last visible sample leads to one behind it.
            let to = ((far - depth) / length).floor() + 2.0;
            let first = if from > next { from } else { next };
            let first = if first < end { first } else { end };
            let last = if to < end { to } else { end };
            left_out += first - next;
            self.next[lane] = first;
            self.end[lane] = if last > first { last } else { first };
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and not negative")]
        let count = left_out as u64;
        count
    }
}

/// True if all samples lie in whole blocks of the wanted level, and steps do not skip cells.
fn is_uniform<T: Voxel>(context: &CastContext<'_, T>, frustum: &Frustum) -> bool {
    let CastContext { scene, blocks, wanted_level_index: level_index, .. } = *context;
    if scene.mode != Mode::Composite {
        return false;
    }
    let level = &scene.view.levels[level_index];
    let thinnest = level.block.map(|side| match side % CELL as u64 {
        0 => CELL as u64,
        rest => rest,
    });
    let step = DVec3::splat(context.step_world) / scene.view.axis_spacing_world(level_index);
    let [nz, ny, nx] = level.grid;
    if !step.cmple(xyz(thinnest)).all() || nz * ny * nx > MOST_BLOCKS {
        return false;
    }
    let is_whole = |at: [u64; 3]| blocks.find(level_index, at).is_some_and(|block| !block.has_missing);
    let mut all = (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [z, y, x])));
    all.all(|at| is_whole(at) || !is_seen(context, frustum, at))
}

/// True if something of a block of the wanted level may be in the picture.
fn is_seen<T>(context: &CastContext<'_, T>, frustum: &Frustum, at: [u64; 3]) -> bool {
    let level = &context.scene.view.levels[context.wanted_level_index];
    frustum.part_seen(level, at, at.map(|n| n + 1)).is_some()
}

/// Returns the visible cells of a block that lie at its surface or beside a hidden one: first voxel and size,
/// `[z, y, x]`.
fn edge_cells(cells: &[u8], [nz, ny, nx]: [usize; 3]) -> Vec<([usize; 3], [usize; 3])> {
    let strides = [ny * nx, nx, 1];
    let is_visible = |i: usize| cells[i] & !BENT == 0;
    let is_inner = |i: usize, at: [usize; 3]| {
        let inside = |axis: usize| at[axis] > 0 && at[axis] + 1 < [nz, ny, nx][axis];
        (0..3).all(|axis| inside(axis) && is_visible(i - strides[axis]) && is_visible(i + strides[axis]))
    };
    let all = (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [z, y, x])));
    let edges = all.enumerate().filter(|&(i, at)| is_visible(i) && !is_inner(i, at));
    edges.map(|(_, at)| (at.map(|i| i * CELL), [CELL; 3])).collect()
}

/// Returns the sphere around voxels of a block, from `first` on and up to those behind the last.
fn sphere<T: Voxel>(
    context: &CastContext<'_, T>,
    block: &Resident<T>,
    first: [usize; 3],
    size: [usize; 3],
) -> Sphere {
    let view = &context.scene.view;
    let (scale, shift) = view.levels[block.level_index].local_map(block.at);
    let xyz = |zyx: [usize; 3]| xyz(zyx.map(|n| n as u64));
    // Half a voxel more: the volume begins and ends half a voxel beyond its outermost voxels.
    let half = xyz(size) / 2.0 + 0.5;
    let center = view.world_from_volume.transform_point3((xyz(first) + xyz(size) / 2.0 - shift) / scale);
    let corner = |y: f64, z: f64| {
        let corner = half * DVec3::new(1.0, y, z) / scale;
        view.world_from_volume.transform_vector3(corner).length()
    };
    let radius = corner(1.0, 1.0).max(corner(1.0, -1.0)).max(corner(-1.0, 1.0)).max(corner(-1.0, -1.0));
    Sphere { center, radius: radius * ROUNDING }
}
