//! The pool: blocks made ready for drawing, under a hard limit of bytes.
//!
//! One pool belongs to one view. Blocks come in any order at any level; each is copied once into its own type
//! and the host's byte order, with an apron (`apron.rs`). When room is short, what was not wanted longest
//! goes first, finer before coarser, and a block that matters less than everything here is turned away.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use array::{Block, BlockKey, Content, ElementType, Result};

use crate::demand::Demand;
use crate::resident::{Layout, Resident};
use crate::volume::VolumeView;
use crate::voxel::{Missing, Voxel};

/// What became of a block that was brought to the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It will be drawn.
    Placed,
    /// It was there already.
    Present,
    /// Everything here matters more and the limit is reached.
    NoRoom,
    /// It belongs to another array, time or generation.
    Foreign,
    /// The source has nothing here; its ancestor stands in.
    NotCovered,
}

/// Blocks made ready for drawing; see the module.
#[derive(Debug)]
pub struct BlockPool {
    pub(crate) typed: Typed,
}

#[derive(Debug)]
pub(crate) enum Typed {
    U8(Pool<u8>),
    U16(Pool<u16>),
    U32(Pool<u32>),
    U64(Pool<u64>),
    I8(Pool<i8>),
    I16(Pool<i16>),
    I32(Pool<i32>),
    I64(Pool<i64>),
    F16(Pool<half::f16>),
    F32(Pool<f32>),
    F64(Pool<f64>),
}

/// Evaluates `$body` with `$pool` bound to the pool of whatever type.
macro_rules! each_type {
    ($typed:expr, $pool:ident => $body:expr) => {
        match $typed {
            $crate::pool::Typed::U8($pool) => $body,
            $crate::pool::Typed::U16($pool) => $body,
            $crate::pool::Typed::U32($pool) => $body,
            $crate::pool::Typed::U64($pool) => $body,
            $crate::pool::Typed::I8($pool) => $body,
            $crate::pool::Typed::I16($pool) => $body,
            $crate::pool::Typed::I32($pool) => $body,
            $crate::pool::Typed::I64($pool) => $body,
            $crate::pool::Typed::F16($pool) => $body,
            $crate::pool::Typed::F32($pool) => $body,
            $crate::pool::Typed::F64($pool) => $body,
        }
    };
}
pub(crate) use each_type;

impl BlockPool {
    /// An empty pool for a view that will never hold more than `limit_bytes`.
    #[must_use]
    pub fn new(view: Arc<VolumeView>, limit_bytes: usize) -> Self {
        let typed = match view.dtype.element() {
            ElementType::Bool | ElementType::U8 => Typed::U8(Pool::new(view, limit_bytes)),
            ElementType::U16 => Typed::U16(Pool::new(view, limit_bytes)),
            ElementType::U32 => Typed::U32(Pool::new(view, limit_bytes)),
            ElementType::U64 => Typed::U64(Pool::new(view, limit_bytes)),
            ElementType::I8 => Typed::I8(Pool::new(view, limit_bytes)),
            ElementType::I16 => Typed::I16(Pool::new(view, limit_bytes)),
            ElementType::I32 => Typed::I32(Pool::new(view, limit_bytes)),
            ElementType::I64 => Typed::I64(Pool::new(view, limit_bytes)),
            ElementType::F16 => Typed::F16(Pool::new(view, limit_bytes)),
            ElementType::F32 => Typed::F32(Pool::new(view, limit_bytes)),
            ElementType::F64 => Typed::F64(Pool::new(view, limit_bytes)),
        };
        Self { typed }
    }

    /// The view it belongs to.
    #[must_use]
    pub fn view(&self) -> &Arc<VolumeView> {
        each_type!(&self.typed, pool => &pool.view)
    }

    /// Takes a block over. Its bytes are copied; the caller's need not stay.
    ///
    /// # Errors
    /// `Corrupt` when the block has not the size that the view says.
    pub fn insert(&mut self, block: &Block) -> Result<Inserted> {
        each_type!(&mut self.typed, pool => pool.insert(block))
    }

    /// True when the block need not be brought: it is here, or the source has nothing there.
    #[must_use]
    pub fn contains(&self, key: &BlockKey) -> bool {
        each_type!(&self.typed, pool => pool.contains(key))
    }

    /// Tells what is wanted now, by every camera on this pool; the rest may go when room is short.
    pub fn mark<'a>(&mut self, demands: impl IntoIterator<Item = &'a Demand>) {
        let keys = demands.into_iter().flat_map(|d| d.blocks.iter().map(|b| b.key));
        each_type!(&mut self.typed, pool => pool.mark(keys));
    }

    /// Changes the limit; blocks go at once where it is lower now.
    pub fn set_limit(&mut self, limit_bytes: usize) {
        each_type!(&mut self.typed, pool => pool.set_limit(limit_bytes));
    }

    /// What it may hold, bytes.
    #[must_use]
    pub fn limit_bytes(&self) -> usize {
        each_type!(&self.typed, pool => pool.limit_bytes)
    }

    /// What it holds, bytes.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        each_type!(&self.typed, pool => pool.used_bytes)
    }

    /// Blocks that can be drawn.
    #[must_use]
    pub fn block_count(&self) -> usize {
        each_type!(&self.typed, pool => pool.slots.len())
    }
}

/// A [`BlockPool`] of one element type.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    pub(crate) view: Arc<VolumeView>,
    pub(crate) missing: Missing<T>,
    residents: Vec<Option<Resident<T>>>,
    free: Vec<u32>,
    slots: HashMap<u64, u32, BuildHasherDefault<IdHasher>>,
    /// Blocks that the source has nothing for.
    not_covered: BTreeSet<u64>,
    count_by_rank: Vec<usize>,
    wanted: HashSet<u64, BuildHasherDefault<IdHasher>>,
    epoch: u64,
    used_bytes: usize,
    limit_bytes: usize,
}

/// Memory of one entry of `not_covered`, bytes.
const NOT_COVERED_BYTES: usize = 64;

impl<T: Voxel> Pool<T> {
    fn new(view: Arc<VolumeView>, limit_bytes: usize) -> Self {
        Self {
            missing: Missing::new(&view.decoding),
            residents: Vec::new(),
            free: Vec::new(),
            slots: HashMap::default(),
            not_covered: BTreeSet::new(),
            count_by_rank: vec![0; view.levels.len()],
            wanted: HashSet::default(),
            epoch: 0,
            used_bytes: 0,
            limit_bytes,
            view,
        }
    }

    fn insert(&mut self, block: &Block) -> Result<Inserted> {
        let Some((rank, at)) = self.view.locate(&block.key) else { return Ok(Inserted::Foreign) };
        let id = self.id(rank, at);
        if self.slots.contains_key(&id) {
            return Ok(Inserted::Present);
        }
        let Content::Data { bytes, .. } = &block.content else {
            return Ok(self.insert_not_covered(id));
        };
        let needed = Layout::new(&self.view.levels[rank], at).size_bytes(T::BYTES);
        let last_used = self.epoch.saturating_sub(u64::from(self.epoch > 0 && !self.wanted.contains(&id)));
        if !self.make_room(needed, (last_used, rank)) {
            return Ok(Inserted::NoRoom);
        }
        let mut resident = Resident::load(&self.view, rank, at, bytes, &self.missing)?;
        resident.last_used = last_used;
        self.fill_apron(&mut resident);
        resident.update_cells(0, &self.missing);
        let slot = self.place(id, resident);
        self.spread(slot);
        Ok(Inserted::Placed)
    }

    fn insert_not_covered(&mut self, id: u64) -> Inserted {
        if self.used_bytes + NOT_COVERED_BYTES > self.limit_bytes {
            return Inserted::NoRoom;
        }
        if self.not_covered.insert(id) {
            self.used_bytes += NOT_COVERED_BYTES;
        }
        Inserted::NotCovered
    }

    fn place(&mut self, id: u64, resident: Resident<T>) -> u32 {
        self.used_bytes += resident.size_bytes();
        self.count_by_rank[resident.rank] += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.residents.push(None);
            u32::try_from(self.residents.len() - 1).expect("blocks cost more than 512 bytes each")
        });
        self.residents[slot as usize] = Some(resident);
        self.slots.insert(id, slot);
        slot
    }

    /// Drops what matters less than `(last_used, rank)` until `needed` bytes fit; false, and nothing dropped,
    /// when that cannot be.
    fn make_room(&mut self, needed: usize, rank_of_new: (u64, usize)) -> bool {
        let Some(excess) = (self.used_bytes + needed).checked_sub(self.limit_bytes).filter(|&e| e > 0) else {
            return true;
        };
        let mut victims: Vec<_> = self
            .occupied()
            .map(|(slot, r)| ((r.last_used, r.rank), slot, r.size_bytes()))
            .filter(|(merit, ..)| *merit < rank_of_new)
            .collect();
        victims.sort_unstable();
        let mut freed = self.not_covered.len() * NOT_COVERED_BYTES;
        let enough = victims.iter().position(|(_, _, size)| {
            let before = freed;
            freed += size;
            before >= excess
        });
        if freed < excess {
            return false;
        }
        self.used_bytes -= self.not_covered.len() * NOT_COVERED_BYTES;
        self.not_covered.clear();
        victims.truncate(enough.unwrap_or(victims.len()));
        for (_, slot, _) in victims {
            self.evict(slot);
        }
        true
    }

    fn evict(&mut self, slot: u32) {
        let Some(resident) = self.take(slot) else { return };
        self.used_bytes -= resident.size_bytes();
        self.count_by_rank[resident.rank] -= 1;
        self.slots.remove(&self.id(resident.rank, resident.at));
        self.free.push(slot);
    }

    fn contains(&self, key: &BlockKey) -> bool {
        self.view.locate(key).is_some_and(|(rank, at)| {
            let id = self.id(rank, at);
            self.slots.contains_key(&id) || self.not_covered.contains(&id)
        })
    }

    fn mark(&mut self, keys: impl Iterator<Item = BlockKey>) {
        self.epoch += 1;
        self.wanted.clear();
        for key in keys {
            let Some((rank, at)) = self.view.locate(&key) else { continue };
            let id = self.id(rank, at);
            self.wanted.insert(id);
            let resident = self.slots.get(&id).and_then(|&s| self.residents[s as usize].as_mut());
            if let Some(resident) = resident {
                resident.last_used = self.epoch;
            }
        }
    }

    fn set_limit(&mut self, limit_bytes: usize) {
        self.limit_bytes = limit_bytes;
        self.make_room(0, (u64::MAX, usize::MAX));
    }

    /// Rank and place in one number.
    fn id(&self, rank: usize, at: [u64; 3]) -> u64 {
        (rank as u64) << 56 | self.view.levels[rank].linear(at)
    }

    #[inline]
    pub(crate) fn slot_of(&self, rank: usize, at: [u64; 3]) -> Option<u32> {
        self.slots.get(&self.id(rank, at)).copied()
    }

    pub(crate) fn find(&self, rank: usize, at: [u64; 3]) -> Option<&Resident<T>> {
        self.slot_of(rank, at).and_then(|slot| self.residents[slot as usize].as_ref())
    }

    /// # Panics
    /// When nothing is there; slots come from [`Pool::slot_of`] and [`Pool::place`].
    pub(crate) fn resident(&self, slot: u32) -> &Resident<T> {
        self.residents[slot as usize].as_ref().expect("a slot in use")
    }

    pub(crate) fn take(&mut self, slot: u32) -> Option<Resident<T>> {
        self.residents[slot as usize].take()
    }

    pub(crate) fn put(&mut self, slot: u32, resident: Resident<T>) {
        self.residents[slot as usize] = Some(resident);
    }

    /// Every slot, used or not, in order.
    pub(crate) fn all_slots(&self) -> &[Option<Resident<T>>] {
        &self.residents
    }

    pub(crate) fn occupied(&self) -> impl Iterator<Item = (u32, &Resident<T>)> {
        (0u32..).zip(&self.residents).filter_map(|(slot, r)| r.as_ref().map(|r| (slot, r)))
    }

    pub(crate) fn count_at(&self, rank: usize) -> usize {
        self.count_by_rank[rank]
    }
}

/// Spreads a 64-bit id over the table; ids come from this crate, so nobody can choose them to collide.
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
