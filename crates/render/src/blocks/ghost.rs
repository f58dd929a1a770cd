//! Values of ghost voxels: voxels of the neighbors at the same level if these are resident, else interpolated
//! from the finest coarser level that is resident, else the block's own outermost voxels.
//!
//! Parts of the ghost voxels are numbered by the axes along which they lie beyond the block: bit 1 x, 2 y, 4
//! z. An arriving block fills its own ghost voxels; the ghost voxels of other blocks that it can improve are
//! refreshed afterwards. If all neighbors are resident, a picture of many blocks equals that of one block. At
//! the upper end of a finer block beside a coarser one, the finer block's last samples are interpolated
//! toward the coarser values; `level_fade.rs` does the same at the block's beginning.

use std::sync::Arc;

use glam::DVec3;

use crate::blocks::BlockTable;
use crate::blocks::resident::{BlockLayout, GhostFill, Resident};
use crate::blocks::voxel::Voxel;

/// Every part of the ghost voxels.
const PARTS: std::ops::Range<usize> = 1..8;

/// A set of levels: one bit for each of at most [`array::MAX_LEVELS`] levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LevelSet(u64);

const _: () = assert!(array::MAX_LEVELS <= u64::BITS as usize);

impl LevelSet {
    pub(crate) fn add(&mut self, level_index: usize) {
        self.0 |= 1 << level_index;
    }

    fn has(self, level_index: usize) -> bool {
        self.0 >> level_index & 1 == 1
    }

    fn coarser_than(self, level_index: usize) -> impl Iterator<Item = usize> {
        (level_index + 1..array::MAX_LEVELS).filter(move |&level_index| self.has(level_index))
    }
}

impl<T: Voxel> BlockTable<T> {
    /// Fills all ghost voxels of a block that is about to be placed.
    pub(crate) fn fill_ghosts(&self, block: &mut Resident<T>) {
        for part in PARTS {
            if block.fills[part] != GhostFill::Exact && !self.complete(block, part) {
                self.approximate(block, part);
            }
        }
    }

    /// Refreshes the ghost voxels of the block in a slot in place; the block is copied only if a picture
    /// holds it.
    pub(crate) fn refresh(&mut self, slot: u32, arrived: LevelSet) {
        // Take the block out of its slot so that its neighbors can be read while it changes.
        let Some(mut shared) = self.take(slot) else { return };
        self.refresh_block(Arc::make_mut(&mut shared), arrived);
        self.put(slot, shared);
    }

    /// Refreshes a block's ghost voxels after blocks of these levels were placed that [improve](Self::improvable) it.
    pub(crate) fn refresh_block(&self, block: &mut Resident<T>, arrived: LevelSet) {
        let improved: Vec<usize> = PARTS.filter(|&part| self.improve(block, part, arrived)).collect();
        // The cells that a part touches include those that a part along fewer axes touches.
        let is_within = |part: usize, other: usize| part != other && part & other == other;
        for &part in improved.iter().filter(|&&part| !improved.iter().any(|&other| is_within(part, other))) {
            block.update_cells(part, &self.missing);
        }
    }

    /// Returns the bytes that are copied when these blocks are refreshed, because pictures hold them.
    pub(crate) fn copies_bytes(&self, slots: &[u32]) -> usize {
        let blocks = slots.iter().filter_map(|&slot| self.all_slots()[slot as usize].as_ref());
        blocks.filter(|block| Arc::strong_count(block) > 1).map(|block| block.size_bytes()).sum()
    }

    /// Returns the blocks whose ghost voxels a block at this position improves: its lower neighbors, and
    /// finer blocks beside it.
    pub(crate) fn improvable(&self, level_index: usize, at: [u64; 3]) -> Vec<u32> {
        let mut slots = self.lower_waiting(level_index, at);
        slots.extend(self.finer_waiting(level_index, at));
        slots
    }

    /// Fills one part with better values if blocks of these levels provide them; returns false otherwise.
    fn improve(&self, block: &mut Resident<T>, part: usize, arrived: LevelSet) -> bool {
        if block.fills[part] == GhostFill::Exact {
            return false;
        }
        if arrived.has(block.level_index) && self.complete(block, part) {
            return true;
        }
        let is_better = arrived
            .coarser_than(block.level_index)
            .any(|level_index| block.fills[part].is_better_from(level_index));
        if is_better {
            self.approximate(block, part);
        }
        is_better
    }

    /// Fills one part from coarser levels, or with the block's own voxels.
    fn approximate(&self, block: &mut Resident<T>, part: usize) {
        let (fill, values) = self.coarser_values(block, part);
        block.patch(part, fill, &values, &self.missing);
    }

    /// Fills one part from the same level, which is final, if all of its voxels are resident.
    fn complete(&self, block: &mut Resident<T>, part: usize) -> bool {
        let Some(values) = self.exact_values(block, part) else { return false };
        block.patch(part, GhostFill::Exact, &values, &self.missing);
        true
    }

    /// Values of a part from the same level: from the neighbor that holds it, or from the block itself at
    /// the volume's end, where the outermost voxel is repeated.
    fn exact_values(&self, block: &Resident<T>, part: usize) -> Option<Vec<T>> {
        let level = &self.view.levels[block.level_index];
        let mut at = block.at;
        let mut beyond = [false; 3];
        for (axis, bit) in [(0, 4), (1, 2), (2, 1)] {
            if part & bit != 0 && at[axis] + 1 < level.grid[axis] {
                at[axis] += 1;
                beyond[axis] = true;
            }
        }
        let holder = if at == block.at { block } else { self.find(block.level_index, at)? };
        let ranges = block.layout.part(part);
        // Maps an index of this block to an index of the holder.
        let index = |axis: usize, i: usize| {
            if beyond[axis] { i - block.layout.shape[axis] } else { i.min(block.layout.shape[axis] - 1) }
        };
        let mut values = Vec::with_capacity(ranges.iter().map(ExactSizeIterator::len).product());
        for z in ranges[0].clone() {
            for y in ranges[1].clone() {
                let row = holder.layout.index(index(0, z), index(1, y), 0);
                values.extend(ranges[2].clone().map(|x| holder.data[row + index(2, x)]));
            }
        }
        Some(values)
    }

    /// Returns values of a part from coarser levels, voxel by voxel; the block's own voxels where no coarser
    /// level is resident.
    fn coarser_values(&self, block: &Resident<T>, part: usize) -> (GhostFill, Vec<T>) {
        let level = &self.view.levels[block.level_index];
        let start = DVec3::from_array(block_start(level.block, block.at));
        let ranges = block.layout.part(part);
        let mut values = Vec::with_capacity(ranges.iter().map(ExactSizeIterator::len).product());
        let mut coarsest = Some(0);
        for z in ranges[0].clone() {
            for y in ranges[1].clone() {
                for x in ranges[2].clone() {
                    let voxel = start + DVec3::new(x as f64, y as f64, z as f64);
                    let volume = (voxel - level.shift) / level.scale;
                    let found = self.sample_coarser(block.level_index + 1, volume);
                    coarsest = coarsest.zip(found).map(|(a, (b, _))| a.max(b));
                    values.push(found.map_or_else(|| own_voxel(block, z, y, x), |(_, value)| value));
                }
            }
        }
        (coarsest.map_or(GhostFill::Own, GhostFill::Coarser), values)
    }

    /// The value at a volume position in the finest resident level from `level_index` on, and the index of that level.
    fn sample_coarser(&self, level_index: usize, volume: DVec3) -> Option<(usize, T)> {
        let (level_index, block, local) = self.finest_from(level_index, volume)?;
        let is_labels = !self.view.meaning.is_continuous();
        Some((level_index, block.interpolate(local, is_labels, &self.missing)))
    }

    /// Returns the blocks whose ghost voxels begin in this one and have other values there so far.
    fn lower_waiting(&self, level_index: usize, at: [u64; 3]) -> Vec<u32> {
        let waiting = |part: usize| {
            let back = |axis: usize, bit: usize| at[axis].checked_sub(u64::from(part & bit != 0));
            let lower = [back(0, 4)?, back(1, 2)?, back(2, 1)?];
            let slot = self.slot_of(level_index, lower)?;
            (self.resident(slot).fills[part] != GhostFill::Exact).then_some(slot)
        };
        PARTS.filter_map(waiting).collect()
    }

    /// Returns the finer blocks that touch this one and whose ghost voxels it could improve.
    fn finer_waiting(&self, level_index: usize, at: [u64; 3]) -> Vec<u32> {
        let (low, high) = self.volume_span(level_index, at);
        let touches = |other: &Resident<T>| {
            let (a, b) = self.volume_span(other.level_index, other.at);
            a.cmple(high).all() && b.cmpge(low).all()
        };
        let waiting = |r: &Resident<T>| {
            r.level_index < level_index
                && r.fills.iter().any(|fill| fill.is_better_from(level_index))
                && touches(r)
        };
        self.occupied().filter(|(_, r)| waiting(r)).map(|(slot, _)| slot).collect()
    }

    /// Box in volume space from a block's first voxel to its ghost voxels.
    fn volume_span(&self, level_index: usize, at: [u64; 3]) -> (DVec3, DVec3) {
        let level = &self.view.levels[level_index];
        let start = DVec3::from_array(block_start(level.block, at));
        let [z, y, x] = level.block_shape(at);
        let end = start + DVec3::new(x as f64, y as f64, z as f64);
        ((start - level.shift) / level.scale, (end - level.shift) / level.scale)
    }
}

/// First voxel `(x, y, z)` of a block.
#[expect(clippy::cast_precision_loss, reason = "voxel indices stay below 2^53")]
fn block_start(block: [u64; 3], at: [u64; 3]) -> [f64; 3] {
    [2, 1, 0].map(|a| (block[a] * at[a]) as f64)
}

fn own_voxel<T: Voxel>(block: &Resident<T>, z: usize, y: usize, x: usize) -> T {
    let BlockLayout { shape, .. } = block.layout;
    block.data[block.layout.index(z.min(shape[0] - 1), y.min(shape[1] - 1), x.min(shape[2] - 1))]
}
