//! Block pool: blocks prepared for drawing, under a hard limit of bytes.
//!
//! One pool belongs to one view. Blocks come in any order at any level; each is copied once into its own
//! element type and the host's byte order, with ghost voxels (`ghost.rs`). When memory is short, the least
//! recently wanted blocks are evicted first, finer before coarser, and a block that is less important than
//! every resident one is refused. Pictures are cast from a [`Snapshot`], so inserting never waits for a
//! picture. The pool is locked for one block at a time, and voxels are copied and surveyed outside of the
//! lock, so beginning a picture hardly waits either.
//!
//! A block that arrives makes ghost voxels of its neighbors *stale*: these are refreshed once, when all
//! blocks that came together have been placed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use array::{Block, BlockKey, Content, ElementType, Result};
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};

use crate::blocks::charge::Charge;
use crate::blocks::ghost::LevelSet;
use crate::blocks::resident::{BlockLayout, Resident};
use crate::blocks::snapshot::{AnyBlockTable, Snapshot};
use crate::blocks::voxel::Voxel;
use crate::blocks::{BlockTable, IdHash};
use crate::scene::demand::{Demand, Demanded};
use crate::scene::volume::VolumeView;

/// Outcome of inserting a block into the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// Inserted; it will be drawn.
    Placed,
    /// Already resident.
    Present,
    /// Refused: the limit is reached, and every resident block is more important or is being drawn.
    NoRoom,
    /// Refused: it belongs to another array, time or generation.
    Foreign,
    /// The source has no such block; its ancestor is drawn instead.
    NotCovered,
}

/// Pool of blocks prepared for drawing; see the module.
#[derive(Debug)]
pub struct BlockPool {
    view: Arc<VolumeView>,
    typed: Typed,
}

#[derive(Debug)]
enum Typed {
    U8(SharedPool<u8>),
    U16(SharedPool<u16>),
    I16(SharedPool<i16>),
    F32(SharedPool<f32>),
    F64(SharedPool<f64>),
}

/// Evaluates `$body` with `$shared` bound to the pool, for any element type.
macro_rules! each_type {
    ($typed:expr, $shared:ident => $body:expr) => {
        match $typed {
            Typed::U8($shared) => $body,
            Typed::U16($shared) => $body,
            Typed::I16($shared) => $body,
            Typed::F32($shared) => $body,
            Typed::F64($shared) => $body,
        }
    };
}

impl BlockPool {
    /// Creates an empty pool for a view that will never hold more than `limit_bytes`.
    #[must_use]
    pub fn new(view: Arc<VolumeView>, limit_bytes: usize) -> Self {
        let typed = match view.dtype.element() {
            ElementType::Bool | ElementType::U8 => Typed::U8(SharedPool::new(&view, limit_bytes)),
            ElementType::U16 => Typed::U16(SharedPool::new(&view, limit_bytes)),
            ElementType::I8 | ElementType::I16 => Typed::I16(SharedPool::new(&view, limit_bytes)),
            ElementType::F16 | ElementType::F32 => Typed::F32(SharedPool::new(&view, limit_bytes)),
            ElementType::I32 | ElementType::U32 | ElementType::I64 | ElementType::U64 | ElementType::F64 => {
                Typed::F64(SharedPool::new(&view, limit_bytes))
            }
        };
        Self { view, typed }
    }

    /// Returns the view that the pool belongs to.
    #[must_use]
    pub fn view(&self) -> &Arc<VolumeView> {
        &self.view
    }

    /// Inserts a block. Its bytes are copied; the caller's need not stay. Concurrent inserts wait for each
    /// other.
    ///
    /// # Errors
    /// `Corrupt` if the block does not have the size that the view states.
    pub fn insert(&self, block: &Block) -> Result<Inserted> {
        self.insert_all(&[block]).pop().unwrap_or(Ok(Inserted::Foreign))
    }

    /// Inserts several blocks, each as [`insert`](Self::insert) does; outcomes in the order of the blocks.
    /// Cheaper than inserting one after the other: ghost voxels around them are refreshed once.
    pub fn insert_all(&self, blocks: &[&Block]) -> Vec<Result<Inserted>> {
        each_type!(&self.typed, shared => shared.insert_all(blocks))
    }

    /// Refreshes ghost voxels that blocks inserted earlier made stale, where the limit left no memory for
    /// copies of blocks that pictures hold; true if none is stale any more.
    pub fn refresh(&self) -> bool {
        each_type!(&self.typed, shared => shared.refresh())
    }

    /// True if the block need not be loaded: it is resident, or the source does not have it.
    #[must_use]
    pub fn contains(&self, key: &BlockKey) -> bool {
        each_type!(&self.typed, shared => shared.pool.read().contains(key))
    }

    /// Returns those of the given blocks that need to be loaded.
    fn missing<'a>(&self, blocks: &'a [Demanded]) -> Vec<&'a Demanded> {
        each_type!(&self.typed, shared => {
            let pool = shared.pool.read();
            blocks.iter().filter(|block| !pool.contains(&block.key)).collect()
        })
    }

    /// Sets the blocks that all cameras on this pool want now; the others may be evicted when memory is
    /// short.
    pub fn mark<'a>(&self, demands: impl IntoIterator<Item = &'a Demand>) {
        let keys = demands.into_iter().flat_map(|d| d.blocks.iter().map(|b| b.key));
        each_type!(&self.typed, shared => shared.pool.write().mark(keys));
    }

    /// Changes the limit. If it is lowered, blocks are evicted at once, including those of a [`Snapshot`].
    /// Waits for a block that is being inserted.
    pub fn set_limit(&self, limit_bytes: usize) {
        each_type!(&self.typed, shared => shared.set_limit(limit_bytes));
    }

    /// Returns the limit of the pool, bytes.
    #[must_use]
    pub fn limit_bytes(&self) -> usize {
        each_type!(&self.typed, shared => shared.pool.read().limit_bytes)
    }

    /// Returns the memory of the pool and of the pictures that are cast from it, in bytes.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        each_type!(&self.typed, shared => shared.pool.read().used_bytes())
    }

    /// Returns a snapshot of the resident blocks, to cast a picture from.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(match &self.typed {
            Typed::U8(shared) => AnyBlockTable::U8(shared.blocks()),
            Typed::U16(shared) => AnyBlockTable::U16(shared.blocks()),
            Typed::I16(shared) => AnyBlockTable::I16(shared.blocks()),
            Typed::F32(shared) => AnyBlockTable::F32(shared.blocks()),
            Typed::F64(shared) => AnyBlockTable::F64(shared.blocks()),
        })
    }

    /// Returns the number of resident blocks.
    #[must_use]
    pub fn block_count(&self) -> usize {
        each_type!(&self.typed, shared => shared.pool.read().blocks.len())
    }
}

impl Demand {
    /// Returns the wanted blocks that a pool lacks, most important first.
    #[must_use]
    pub fn missing(&self, pool: &BlockPool) -> Vec<&Demanded> {
        pool.missing(&self.blocks)
    }
}

/// Pool of one element type, shared by several threads.
#[derive(Debug)]
struct SharedPool<T> {
    /// Lock held while the set of resident blocks is changed, including the preparation of the change, so
    /// that what was read stays valid.
    changing: Mutex<()>,
    pool: RwLock<TypedPool<T>>,
}

impl<T: Voxel> SharedPool<T> {
    fn new(view: &Arc<VolumeView>, limit_bytes: usize) -> Self {
        Self { changing: Mutex::new(()), pool: RwLock::new(TypedPool::new(Arc::clone(view), limit_bytes)) }
    }

    /// Returns a snapshot of the resident blocks.
    fn blocks(&self) -> Arc<BlockTable<T>> {
        Arc::clone(&self.pool.read().blocks)
    }

    fn insert_all(&self, blocks: &[&Block]) -> Vec<Result<Inserted>> {
        let view = Arc::clone(&self.pool.read().blocks.view);
        // Finer ghost voxels are filled from coarser blocks, and each block's from its upper neighbors:
        // insert these first.
        let order = |&i: &usize| Reverse(view.locate(&blocks[i].key));
        let mut places: Vec<usize> = (0..blocks.len()).collect();
        places.sort_by_cached_key(order);
        let mut outcomes: Vec<Result<Inserted>> = blocks.iter().map(|_| Ok(Inserted::Foreign)).collect();
        let level_index = |&i: &usize| view.locate(&blocks[i].key).map(|(level_index, _)| level_index);
        for alike in places.chunk_by(|a, b| level_index(a) == level_index(b)) {
            for &i in alike {
                outcomes[i] = self.insert(blocks[i]);
            }
            self.refresh();
        }
        outcomes
    }

    /// Inserts a block; ghost voxels around it are stale afterwards.
    fn insert(&self, block: &Block) -> Result<Inserted> {
        let _alone = self.changing.lock();
        let admitted = self.pool.write().admit(block);
        match admitted {
            Admitted::Not(why) => Ok(why),
            Admitted::At(vacancy, bytes) => {
                let (resident, neighbors) = vacancy.fill(bytes)?;
                self.change(|pool| pool.place(resident, &neighbors));
                Ok(Inserted::Placed)
            }
        }
    }

    /// Refreshes stale ghost voxels; false if some stay stale for lack of memory.
    fn refresh(&self) -> bool {
        let _alone = self.changing.lock();
        let mut from = 0;
        loop {
            from = match self.change(|pool| pool.refresh_next(from)) {
                Refreshed::None => return self.pool.read().stale.is_empty(),
                Refreshed::One(slot) => slot + 1,
                Refreshed::HeldBlock(copy) => {
                    let (slot, resident) = copy.refresh();
                    self.change(|pool| pool.put(slot, resident));
                    slot + 1
                }
            };
        }
    }

    /// Changes one block of the pool; threads that wait for the lock get it before the next change.
    fn change<R>(&self, change: impl FnOnce(&mut TypedPool<T>) -> R) -> R {
        let mut pool = self.pool.write();
        let result = change(&mut pool);
        RwLockWriteGuard::unlock_fair(pool);
        result
    }

    fn set_limit(&self, limit_bytes: usize) {
        let _alone = self.changing.lock();
        self.pool.write().set_limit(limit_bytes);
    }
}

/// Decision whether a pool takes a block.
enum Admitted<'a, T> {
    Not(Inserted),
    /// The block's elements are needed as well.
    At(Vacancy<T>, &'a [u8]),
}

/// Reserved memory for a block.
struct Vacancy<T> {
    /// Table of blocks, with the neighbors of the new one.
    blocks: Arc<BlockTable<T>>,
    level_index: usize,
    at: [u64; 3],
    /// Slots of the blocks that the new block improves.
    neighbors: Vec<u32>,
    charge: Charge,
}

impl<T: Voxel> Vacancy<T> {
    /// Copies a block's elements and computes their statistics; returns its neighbors too.
    ///
    /// # Errors
    /// The errors of [`Resident::load`].
    fn fill(self, bytes: &[u8]) -> Result<(Resident<T>, Vec<u32>)> {
        let Self { blocks, level_index, at, neighbors, charge } = self;
        let mut resident = Resident::load(&blocks.view, level_index, at, bytes, &blocks.missing, charge)?;
        blocks.fill_ghosts(&mut resident);
        resident.update_cells(0, &blocks.missing);
        Ok((resident, neighbors))
    }
}

/// Outcome of refreshing the ghost voxels of the next stale block.
enum Refreshed<T> {
    /// No block was stale.
    None,
    /// The block in this slot was refreshed, or has to stay stale for lack of memory.
    One(u32),
    /// A picture holds the block: a copy of it has to be refreshed.
    HeldBlock(HeldBlock<T>),
}

/// Block with stale ghost voxels that a picture holds.
struct HeldBlock<T> {
    slot: u32,
    block: Arc<Resident<T>>,
    arrived: LevelSet,
    blocks: Arc<BlockTable<T>>,
}

impl<T: Voxel> HeldBlock<T> {
    /// Refreshed copy of a block, and its slot.
    fn refresh(self) -> (u32, Resident<T>) {
        let mut copy = (*self.block).clone();
        self.blocks.refresh_block(&mut copy, self.arrived);
        (self.slot, copy)
    }
}

/// Blocks, their importance, and the limit.
#[derive(Debug)]
pub(crate) struct TypedPool<T> {
    blocks: Arc<BlockTable<T>>,
    /// Time at which the block of each slot was last wanted.
    last_used: Vec<u64>,
    wanted: HashSet<u64, IdHash>,
    /// Slots of blocks whose ghost voxels blocks of these levels may improve.
    stale: BTreeMap<u32, LevelSet>,
    epoch: u64,
    /// Bytes of all blocks that are alive: in the table, or in the table of a picture.
    meter: Arc<AtomicUsize>,
    limit_bytes: usize,
}

/// Order of eviction when memory is short, the first to go least: least recently wanted, then finest.
type Merit = (u64, usize);

/// Memory of one entry of the blocks that the source does not have, bytes.
const NOT_COVERED_BYTES: usize = 64;

impl<T: Voxel> TypedPool<T> {
    fn new(view: Arc<VolumeView>, limit_bytes: usize) -> Self {
        Self {
            blocks: Arc::new(BlockTable::new(view)),
            last_used: Vec::new(),
            wanted: HashSet::default(),
            stale: BTreeMap::new(),
            epoch: 0,
            meter: Arc::default(),
            limit_bytes,
        }
    }

    /// Makes room for a block, and for the copies that refreshing its neighbors will take.
    fn admit<'a>(&mut self, block: &'a Block) -> Admitted<'a, T> {
        let Some((level_index, at)) = self.blocks.view.locate(&block.key) else {
            return Admitted::Not(Inserted::Foreign);
        };
        let id = self.blocks.id(level_index, at);
        if self.blocks.slot_of_id(id).is_some() {
            return Admitted::Not(Inserted::Present);
        }
        let Content::Data { bytes, .. } = &block.content else {
            return Admitted::Not(self.insert_not_covered(id));
        };
        // From here on, blocks held by a picture can be told from blocks held only by the pool.
        let blocks = Arc::make_mut(&mut self.blocks);
        let own = BlockLayout::new(&blocks.view.levels[level_index], at).size_bytes(T::BYTES);
        let neighbors = blocks.improvable(level_index, at);
        let needed = own.saturating_add(blocks.copies_bytes(&neighbors));
        if !self.make_room(needed, (self.last_used_of(id), level_index)) {
            return Admitted::Not(Inserted::NoRoom);
        }
        let charge = Charge::new(&self.meter, own);
        Admitted::At(Vacancy { blocks: Arc::clone(&self.blocks), level_index, at, neighbors, charge }, bytes)
    }

    /// Adds an [admitted](Self::admit) block to the table.
    fn place(&mut self, resident: Resident<T>, neighbors: &[u32]) {
        let level_index = resident.level_index;
        let id = self.blocks.id(level_index, resident.at);
        let last_used = self.last_used_of(id);
        let blocks = Arc::make_mut(&mut self.blocks);
        let slot = blocks.place(id, resident);
        self.last_used.resize(blocks.all_slots().len(), 0);
        self.last_used[slot as usize] = last_used;
        for &neighbor in neighbors {
            self.stale.entry(neighbor).or_default().add(level_index);
        }
    }

    /// Refreshes the stale ghost voxels of the first block from slot `from` on, or returns the block that has
    /// to be copied for it. Pictures that began after its neighbor was admitted may have taken the memory for
    /// that copy: the block then stays stale.
    fn refresh_next(&mut self, from: u32) -> Refreshed<T> {
        let Some((&slot, &arrived)) = self.stale.range(from..).next() else { return Refreshed::None };
        let blocks = Arc::make_mut(&mut self.blocks);
        let needed = blocks.copies_bytes(&[slot]);
        if needed == 0 {
            blocks.refresh(slot, arrived);
            self.stale.remove(&slot);
            return Refreshed::One(slot);
        }
        let merit = (self.last_used[slot as usize], blocks.resident(slot).level_index);
        if !self.make_room(needed, merit) {
            return Refreshed::One(slot);
        }
        let Some(block) = self.blocks.all_slots()[slot as usize].clone() else { return Refreshed::One(slot) };
        Refreshed::HeldBlock(HeldBlock { slot, block, arrived, blocks: Arc::clone(&self.blocks) })
    }

    /// Puts a refreshed copy into its block's slot.
    fn put(&mut self, slot: u32, resident: Resident<T>) {
        Arc::make_mut(&mut self.blocks).put(slot, Arc::new(resident));
        self.stale.remove(&slot);
    }

    /// Returns the time at which a block that arrives now was last wanted.
    fn last_used_of(&self, id: u64) -> u64 {
        self.epoch.saturating_sub(u64::from(self.epoch > 0 && !self.wanted.contains(&id)))
    }

    fn insert_not_covered(&mut self, id: u64) -> Inserted {
        if self.used_bytes() + NOT_COVERED_BYTES > self.limit_bytes {
            return Inserted::NoRoom;
        }
        Arc::make_mut(&mut self.blocks).note_not_covered(id);
        Inserted::NotCovered
    }

    fn used_bytes(&self) -> usize {
        self.meter.load(Ordering::Relaxed) + self.blocks.not_covered_count() * NOT_COVERED_BYTES
    }

    /// Evicts blocks less important than `merit` until `needed` bytes fit; returns false and evicts nothing
    /// if that is impossible. A block that a picture holds frees no memory before the picture is finished.
    fn make_room(&mut self, needed: usize, merit: Merit) -> bool {
        let excess = self.used_bytes().saturating_add(needed).saturating_sub(self.limit_bytes);
        excess == 0 || self.evict(excess, merit, |block| Arc::strong_count(block) == 1)
    }

    /// Evicts blocks less important than `merit` for which `may_go` is true until they free `excess` bytes;
    /// returns false and evicts nothing if there are too few.
    fn evict(&mut self, excess: usize, merit: Merit, may_go: impl Fn(&Arc<Resident<T>>) -> bool) -> bool {
        let mut victims: Vec<(Merit, u32, usize)> = self
            .blocks
            .occupied()
            .map(|(slot, r)| ((self.last_used[slot as usize], r.level_index), slot, r, r.size_bytes()))
            .filter(|(own, _, block, _)| *own < merit && may_go(block))
            .map(|(own, slot, _, size)| (own, slot, size))
            .collect();
        victims.sort_unstable();
        let mut freed = self.blocks.not_covered_count() * NOT_COVERED_BYTES;
        let enough = victims.iter().position(|(_, _, size)| {
            let before = freed;
            freed += size;
            before >= excess
        });
        if freed < excess {
            return false;
        }
        victims.truncate(enough.unwrap_or(victims.len()));
        let blocks = Arc::make_mut(&mut self.blocks);
        blocks.forget_not_covered();
        for (_, slot, _) in victims {
            blocks.remove(slot);
            self.stale.remove(&slot);
        }
        true
    }

    fn contains(&self, key: &BlockKey) -> bool {
        self.blocks.view.locate(key).is_some_and(|(level_index, at)| {
            let id = self.blocks.id(level_index, at);
            self.blocks.slot_of_id(id).is_some() || self.blocks.is_not_covered(id)
        })
    }

    fn mark(&mut self, keys: impl Iterator<Item = BlockKey>) {
        self.epoch += 1;
        self.wanted.clear();
        for key in keys {
            let Some((level_index, at)) = self.blocks.view.locate(&key) else { continue };
            let id = self.blocks.id(level_index, at);
            self.wanted.insert(id);
            if let Some(slot) = self.blocks.slot_of_id(id) {
                self.last_used[slot as usize] = self.epoch;
            }
        }
    }

    /// Changes the limit. Blocks that pictures hold are evicted too.
    fn set_limit(&mut self, limit_bytes: usize) {
        self.limit_bytes = limit_bytes;
        let held: usize = self.blocks.occupied().map(|(_, r)| r.size_bytes()).sum();
        let excess = (held + self.blocks.not_covered_count() * NOT_COVERED_BYTES).saturating_sub(limit_bytes);
        if excess > 0 {
            self.evict(excess, (u64::MAX, usize::MAX), |_| true);
        }
    }
}

#[cfg(test)]
mod tests {
    use array::{Affine, Level, LevelOrigin};

    use super::*;
    use crate::scene::volume::tests::{ZYX, dataset};

    /// Eight blocks of 8^3 bytes, from the first to the last.
    fn eight() -> (SharedPool<u8>, Vec<Block>) {
        let level = Level {
            shape: vec![16; 3],
            block: vec![8; 3],
            chunk: None,
            origin: LevelOrigin::Stored,
            factor: vec![1.0; 3],
            world_from_voxel: Affine::IDENTITY,
        };
        let dataset = dataset(&ZYX, "|u1".parse().unwrap(), vec![level]);
        let view = Arc::new(VolumeView::new(&dataset, 0, &[]).unwrap());
        let block = |index: u64| Block {
            key: BlockKey { index, ..view.key(0, [0; 3]) },
            content: Content::Data { bytes: vec![7; 8 * 8 * 8].into(), range: None },
        };
        (SharedPool::new(&view, 1 << 20), (0..8).map(block).collect())
    }

    /// Blocks of one table that are not those of another.
    fn differing(a: &BlockTable<u8>, b: &BlockTable<u8>) -> usize {
        let is_same = |slot: usize| match (a.all_slots().get(slot), b.all_slots().get(slot)) {
            (Some(Some(a)), Some(Some(b))) => Arc::ptr_eq(a, b),
            (a, b) => a.is_some_and(Option::is_some) == b.is_some_and(Option::is_some),
        };
        (0..a.all_slots().len().max(b.all_slots().len())).filter(|&slot| !is_same(slot)).count()
    }

    /// A picture that begins waits for one block at the most: each time the pool is locked, one block changes.
    #[test]
    fn the_pool_is_locked_for_one_block_at_a_time() {
        let (shared, blocks) = eight();
        let mut before = shared.blocks();
        let mut is_one_step = |shared: &SharedPool<u8>| {
            let now = shared.blocks();
            let changed = differing(&before, &now);
            before = now;
            changed <= 1
        };
        for block in &blocks {
            assert_eq!(shared.insert(block).unwrap(), Inserted::Placed);
            assert!(is_one_step(&shared));
        }
        assert_eq!(
            shared.pool.read().stale.len(),
            7,
            "all but the last have an upper neighbor that came later"
        );
        let (mut from, mut copied) = (0, 0);
        loop {
            from = match shared.change(|pool| pool.refresh_next(from)) {
                Refreshed::None => break,
                Refreshed::One(slot) => slot + 1,
                Refreshed::HeldBlock(held) => {
                    assert!(is_one_step(&shared), "voxels are copied outside of the lock");
                    let (slot, resident) = held.refresh();
                    shared.change(|pool| pool.put(slot, resident));
                    copied += 1;
                    slot + 1
                }
            };
            assert!(is_one_step(&shared));
        }
        assert_eq!(copied, 7, "each once, though most have several neighbors");
        assert!(shared.pool.read().stale.is_empty());
    }

    /// Blocks that come together are placed so that none has to be refreshed for another one of them.
    #[test]
    fn blocks_that_come_together_are_not_copied() {
        let (shared, blocks) = eight();
        let held = shared.blocks();
        for block in blocks.iter().rev() {
            shared.insert(block).unwrap();
        }
        assert!(shared.pool.read().stale.is_empty());
        drop(held);
        let (shared, blocks) = eight();
        let outcomes = shared.insert_all(&blocks.iter().collect::<Vec<_>>());
        assert!(outcomes.into_iter().all(|outcome| outcome.unwrap() == Inserted::Placed));
        let pool = shared.pool.read();
        assert!(
            pool.stale.is_empty() && pool.blocks.slot_of(0, [1; 3]) == Some(0),
            "the last one came first"
        );
    }
}
