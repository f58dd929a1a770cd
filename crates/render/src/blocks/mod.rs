//! Resident blocks by position: the input from which a picture is cast.
//!
//! A [`TypedPool`](crate::blocks::pool::TypedPool) changes its table; a picture holds the table as it was
//! when the picture began. The table and each block in it are shared between the two, and copied only when
//! one of them changes while the other still holds it. Copies are counted: see
//! [`Charge`](crate::blocks::charge::Charge).

pub(crate) mod cell_stats;
pub(crate) mod charge;
pub(crate) mod ghost;
pub(crate) mod memo;
pub(crate) mod pool;
pub(crate) mod resident;
pub(crate) mod snapshot;
pub(crate) mod survey;
pub(crate) mod voxel;

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use glam::DVec3;

use crate::blocks::resident::Resident;
use crate::blocks::voxel::{MissingValues, Voxel};
use crate::cpu::samples::dimming::occlusion::OcclusionMemo;
use crate::cpu::table::TableMemo;
use crate::scene::volume::VolumeView;

/// Hashes ids of blocks.
pub(crate) type IdHash = BuildHasherDefault<IdHasher>;

/// Table of the resident blocks, with the view that they belong to.
#[derive(Clone, Debug)]
pub(crate) struct BlockTable<T> {
    pub(crate) view: Arc<VolumeView>,
    pub(crate) missing: MissingValues<T>,
    pub(crate) tables: TableMemo,
    pub(crate) occlusion: OcclusionMemo<T>,
    residents: Vec<Option<Arc<Resident<T>>>>,
    free: Vec<u32>,
    slots: HashMap<u64, u32, IdHash>,
    /// Blocks that the source does not have (gaps).
    not_covered: BTreeSet<u64>,
    count_by_level: Vec<usize>,
}

/// Bits of an id below the level.
const LEVEL_SHIFT: u32 = 56;

impl<T: Voxel> BlockTable<T> {
    pub(crate) fn new(view: Arc<VolumeView>) -> Self {
        Self {
            missing: MissingValues::new(&view.decoding, view.meaning),
            tables: TableMemo::default(),
            occlusion: OcclusionMemo::default(),
            residents: Vec::new(),
            free: Vec::new(),
            slots: HashMap::default(),
            not_covered: BTreeSet::new(),
            count_by_level: vec![0; view.levels.len()],
            view,
        }
    }

    /// Packs a level index and a position into one number.
    pub(crate) fn id(&self, level_index: usize, at: [u64; 3]) -> u64 {
        (level_index as u64) << LEVEL_SHIFT | self.view.levels[level_index].linear(at)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn slot_of_id(&self, id: u64) -> Option<u32> {
        self.slots.get(&id).copied()
    }

    #[inline]
    pub(crate) fn slot_of(&self, level_index: usize, at: [u64; 3]) -> Option<u32> {
        self.slot_of_id(self.id(level_index, at))
    }

    pub(crate) fn find(&self, level_index: usize, at: [u64; 3]) -> Option<&Resident<T>> {
        self.slot_of(level_index, at).and_then(|slot| self.residents[slot as usize].as_deref())
    }

    /// Finds the finest block from `level_index` on that holds a volume position; returns it with its level
    /// and the position in its voxels.
    pub(crate) fn finest_from(
        &self,
        level_index: usize,
        volume: DVec3,
    ) -> Option<(usize, &Resident<T>, DVec3)> {
        (level_index..self.view.levels.len()).filter(|&r| self.count_at(r) > 0).find_map(|r| {
            let (at, local) = self.view.levels[r].place_of(volume);
            self.find(r, at).map(|block| (r, block, local))
        })
    }

    /// # Panics
    /// If the slot is empty; slots come from [`BlockTable::slot_of`] and [`BlockTable::place`].
    pub(crate) fn resident(&self, slot: u32) -> &Resident<T> {
        self.residents[slot as usize].as_ref().expect("a slot in use")
    }

    /// Every slot, used or not, in order.
    pub(crate) fn all_slots(&self) -> &[Option<Arc<Resident<T>>>] {
        &self.residents
    }

    pub(crate) fn occupied(&self) -> impl Iterator<Item = (u32, &Arc<Resident<T>>)> {
        (0u32..).zip(&self.residents).filter_map(|(slot, r)| r.as_ref().map(|r| (slot, r)))
    }

    pub(crate) fn count_at(&self, level_index: usize) -> usize {
        self.count_by_level[level_index]
    }

    /// Puts a block that is not in the table into a slot.
    pub(crate) fn place(&mut self, id: u64, resident: Resident<T>) -> u32 {
        self.count_by_level[resident.level_index] += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.residents.push(None);
            u32::try_from(self.residents.len() - 1).expect("blocks cost more than 512 bytes each")
        });
        self.residents[slot as usize] = Some(Arc::new(resident));
        self.slots.insert(id, slot);
        slot
    }

    /// Empties a slot permanently.
    pub(crate) fn remove(&mut self, slot: u32) {
        let Some(resident) = self.take(slot) else { return };
        self.count_by_level[resident.level_index] -= 1;
        self.slots.remove(&self.id(resident.level_index, resident.at));
        self.free.push(slot);
    }

    /// Takes a block out of its slot temporarily, to be [`put`](Self::put) back.
    pub(crate) fn take(&mut self, slot: u32) -> Option<Arc<Resident<T>>> {
        self.residents[slot as usize].take()
    }

    pub(crate) fn put(&mut self, slot: u32, resident: Arc<Resident<T>>) {
        self.residents[slot as usize] = Some(resident);
    }

    /// Records that the source has no block here; false if that was known.
    pub(crate) fn note_not_covered(&mut self, id: u64) -> bool {
        self.not_covered.insert(id)
    }

    pub(crate) fn forget_not_covered(&mut self) {
        self.not_covered.clear();
    }

    pub(crate) fn not_covered_count(&self) -> usize {
        self.not_covered.len()
    }

    pub(crate) fn is_not_covered(&self, id: u64) -> bool {
        self.not_covered.contains(&id)
    }

    /// Returns the positions `[z, y, x]` of a level for which the source has no block.
    pub(crate) fn gaps_at(&self, level_index: usize) -> Vec<[u64; 3]> {
        let first = (level_index as u64) << LEVEL_SHIFT;
        let [_, ny, nx] = self.view.levels[level_index].grid;
        let gaps = self.not_covered.range(first..first + (1 << LEVEL_SHIFT)).map(|id| id - first);
        gaps.map(|at| [at / (ny * nx), at / nx % ny, at % nx]).collect()
    }

    /// True if the source lacks some block of a level.
    pub(crate) fn has_gaps(&self, level_index: usize) -> bool {
        let first = (level_index as u64) << LEVEL_SHIFT;
        self.not_covered.range(first..first + (1 << LEVEL_SHIFT)).next().is_some()
    }
}

/// Spreads a 64-bit id over the table. Ids come from this crate, so collisions cannot be provoked from
/// outside.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, id: u64) {
        // Multiply by the golden ratio and fold the good high bits down.
        let mixed = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
