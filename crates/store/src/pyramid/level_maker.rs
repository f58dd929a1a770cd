//! Maker of the blocks of levels: reads finer data piece by piece, depth first, and halves them.
//!
//! A block is cut into pieces whose finer box is small; a piece reads that box (from the format, or from made blocks of the finer
//! level, one after the other), halves it into its part of the block, and releases it. So the memory in use is bounded: blocks made at
//! a time, times their pieces at a time, times the number of levels. A block that several callers want is made once, with the highest
//! of their priorities.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use array::{
    ArrayInfo, Block, BlockInfo, BlockKey, BlockParts, Content, Error, Meaning, Priority, ReadRequest,
    Region, Result, Selection, Source, Target, Want, values::stats,
};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, Shared, WeakShared};
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;

use super::halve::halve;
use super::plan::{BlockOrigin, PyramidPlan};
use super::tally::BlockTally;
use crate::schedule::pool::on_pool;
use crate::{OpenOptions, SideCache};

/// Wanted blocks that are made at a time; blocks that they depend on come in addition, one chain per piece.
pub const BLOCKS_AT_ONCE: usize = 4;
/// Pieces of a wanted block that are made at a time; one piece of each block that it depends on.
pub const PIECES_AT_ONCE: usize = 2;
/// Most bytes of the finer box from which one piece of a block is made, unless the smallest piece (one voxel, or what one finer block
/// covers) needs more.
pub const PIECE_BYTES: usize = 1 << 20;

/// Version of the way in which blocks are made: entries of the side cache of another version are not found.
const VERSION: u32 = 3;
/// Length of the table of blocks under way at which dead entries are cleared.
const FLIGHTS_BEFORE_CLEARING: usize = 256;

type BlockFuture = Shared<BoxFuture<'static, Result<Arc<Block>>>>;

/// Waiter for a block that is being made.
pub(super) enum BlockWaiter {
    Want(Arc<Want>),
    /// A coarser block that needs it.
    Block(Weak<WaiterList>),
}

/// Waiters for one block that is being made.
#[derive(Default)]
pub(super) struct WaiterList(Mutex<Vec<BlockWaiter>>);

impl WaiterList {
    /// Returns the priority of the most urgent waiter.
    fn priority(&self) -> Priority {
        let of = |waiter: &BlockWaiter| match waiter {
            BlockWaiter::Want(want) => (!want.is_cancelled()).then(|| want.urgency().priority),
            BlockWaiter::Block(interest) => interest.upgrade().map(|i| i.priority()),
        };
        self.0.lock().iter().filter_map(of).max().unwrap_or(Priority::BACKGROUND)
    }
}

struct BlockFlight {
    making: WeakShared<BoxFuture<'static, Result<Arc<Block>>>>,
    interest: Weak<WaiterList>,
}

pub(super) struct LevelMaker {
    inner: Arc<dyn Source>,
    side: Option<Arc<SideCache>>,
    flights: Mutex<HashMap<BlockKey, BlockFlight>>,
    tally: BlockTally,
    in_hand: MemoryGauge,
}

impl LevelMaker {
    pub(super) fn new(inner: Arc<dyn Source>, options: &OpenOptions) -> Arc<Self> {
        Arc::new(Self {
            inner,
            side: options.side_cache().map(Arc::new),
            flights: Mutex::default(),
            tally: BlockTally::new(options.work.clone()),
            in_hand: MemoryGauge::default(),
        })
    }

    /// Returns the peak of the bytes in use.
    pub(super) fn peak_bytes(&self) -> u64 {
        self.in_hand.0.peak.load(Ordering::Relaxed)
    }

    /// A block from the side cache, if it is there.
    pub(super) async fn kept(
        self: &Arc<Self>,
        plan: &Arc<PyramidPlan>,
        key: BlockKey,
        priority: Priority,
    ) -> Result<Option<Arc<Block>>> {
        let Some(side) = self.side_for(plan, key) else { return Ok(None) };
        let BlockInfo { array, size_bytes, .. } = plan.dataset.block(key)?;
        let array = array.clone();
        let block = on_pool(priority, move |_| {
            let bytes =
                side.get(key.dataset, &entry_name(key, &array)).filter(|b| b.len() as u64 == size_bytes);
            Ok(bytes.map(|bytes| finish(key, bytes, &array)))
        })
        .await?;
        if block.is_some() && matches!(plan.origin(key.array, key.level), BlockOrigin::Made { .. }) {
            self.tally.count(key);
        }
        Ok(block)
    }

    /// The side cache, where blocks of this level are kept in it.
    fn side_for(&self, plan: &PyramidPlan, key: BlockKey) -> Option<Arc<SideCache>> {
        let is_kept = match plan.origin(key.array, key.level) {
            BlockOrigin::Made { is_kept, .. } => is_kept,
            BlockOrigin::Sampled(samples) => samples.is_kept,
            BlockOrigin::Stored => false,
        };
        self.side.clone().filter(|_| is_kept)
    }

    /// The block of these elements, which is kept if it is worth it.
    pub(super) async fn finish(
        &self,
        plan: &PyramidPlan,
        key: BlockKey,
        bytes: Vec<u8>,
        priority: Priority,
    ) -> Result<Arc<Block>> {
        let (side, array) = (self.side_for(plan, key), plan.dataset.array(key.array)?.clone());
        on_pool(priority, move |_| {
            if let Some(side) = side
                && let Err(error) = side.put(key.dataset, &entry_name(key, &array), &bytes)
            {
                tracing::debug!(%error, "a made block was not kept");
            }
            Ok(finish(key, bytes, &array))
        })
        .await
    }

    /// Makes a block of a made level, or joins a making under way. `key` is one of the plan.
    pub(super) fn made(
        self: &Arc<Self>,
        plan: &Arc<PyramidPlan>,
        key: BlockKey,
        waiter: BlockWaiter,
    ) -> BlockFuture {
        let mut flights = self.flights.lock();
        if let Some(flight) = flights.get(&key)
            && let (Some(making), Some(interest)) = (flight.making.upgrade(), flight.interest.upgrade())
        {
            interest.0.lock().push(waiter);
            return making;
        }
        if flights.len() >= FLIGHTS_BEFORE_CLEARING {
            flights.retain(|_, flight| flight.interest.strong_count() > 0);
        }
        let pieces_at_once = if matches!(waiter, BlockWaiter::Want(_)) { PIECES_AT_ONCE } else { 1 };
        let interest = Arc::new(WaiterList(Mutex::new(vec![waiter])));
        let watched = Arc::downgrade(&interest);
        let (maker, plan) = (Arc::clone(self), Arc::clone(plan));
        let making = async move { maker.make(&plan, key, &interest, pieces_at_once).await }.boxed().shared();
        if let Some(weak) = making.downgrade() {
            flights.insert(key, BlockFlight { making: weak, interest: watched });
        }
        making
    }

    async fn make(
        self: &Arc<Self>,
        plan: &Arc<PyramidPlan>,
        key: BlockKey,
        interest: &Arc<WaiterList>,
        pieces_at_once: usize,
    ) -> Result<Arc<Block>> {
        // Checked again for a waiting want: the block may have been made in the meantime.
        if let Some(block) = self.kept(plan, key, interest.priority()).await? {
            return Ok(block);
        }
        let BlockInfo { array, selection, .. } = plan.dataset.block(key)?;
        let BlockOrigin::Made { halved, .. } = plan.origin(key.array, key.level) else {
            return Err(Error::internal("expected a level that is made"));
        };
        let finer = array.level(key.level - 1)?;
        let item_bytes = array.dtype.size_bytes();
        let (target, region) = Target::new(&selection.shape(), item_bytes)?;
        let _held = self.in_hand.hold(region.size_bytes());
        let _begun = self.tally.begin(key, plan.made_blocks(key.array));
        let grain = grain(plan, key.array, key.level - 1)?;
        let pieces = cut(&selection, region, halved, &finer.shape, &grain, item_bytes);
        futures::stream::iter(pieces.map(|piece| self.piece(plan, key, interest, piece)))
            .buffer_unordered(pieces_at_once)
            .try_for_each(|()| std::future::ready(Ok(())))
            .await?;
        let block = self.finish(plan, key, target.into_vec()?, interest.priority()).await?;
        self.tally.count(key);
        Ok(block)
    }

    /// Reads the finer box of a piece and halves it into the piece's region.
    async fn piece(
        self: &Arc<Self>,
        plan: &Arc<PyramidPlan>,
        key: BlockKey,
        interest: &Arc<WaiterList>,
        piece: HalvingPiece,
    ) -> Result<()> {
        let HalvingPiece { finer, mut region, halved } = piece;
        let array = plan.dataset.array(key.array)?;
        let (target, finer_region) = Target::new(&finer.shape(), array.dtype.size_bytes())?;
        let held = self.in_hand.hold(finer_region.size_bytes());
        let shape = finer_region.shape().to_vec();
        let below = BlockKey { level: key.level - 1, ..key };
        match plan.origin(below.array, below.level) {
            BlockOrigin::Made { .. } => self.gather(plan, below, interest, &finer, finer_region).await?,
            BlockOrigin::Stored | BlockOrigin::Sampled(_) => {
                let request = ReadRequest {
                    array: below.array,
                    level: below.level,
                    selection: finer,
                    priority: interest.priority(),
                };
                self.inner.read(request, finer_region).await?;
            }
        }
        let bytes = target.into_vec()?;
        let (dtype, decoding, meaning) = (array.dtype, array.decoding.clone(), array.meaning);
        on_pool(interest.priority(), move |_| {
            let _held = held;
            region.write_all(&halve(&bytes, &shape, &halved, dtype, &decoding, meaning))
        })
        .await
    }

    /// Fills `into` from made blocks, one after the other: depth first.
    async fn gather(
        self: &Arc<Self>,
        plan: &Arc<PyramidPlan>,
        level: BlockKey,
        interest: &Arc<WaiterList>,
        selection: &Selection,
        into: Region,
    ) -> Result<()> {
        let array = plan.dataset.array(level.array)?;
        let (info, item_bytes) = (array.level(level.level)?, array.dtype.size_bytes());
        for piece in BlockParts::new(selection, info, item_bytes, into)? {
            let key = BlockKey { index: piece.index, ..level };
            let block = self.made(plan, key, BlockWaiter::Block(Arc::downgrade(interest))).await?;
            let _held = self.in_hand.hold(block.size_bytes());
            piece.copy_from(&block, info, item_bytes)?;
        }
        Ok(())
    }
}

/// Most memory that making a wanted block takes, with the blocks that it needs from the levels below.
pub(super) fn needed_bytes(plan: &PyramidPlan, key: BlockKey) -> Result<u64> {
    let array = plan.dataset.array(key.array)?;
    let item_bytes = array.dtype.size_bytes() as u64;
    let bytes = |sizes: &[u64]| sizes.iter().fold(item_bytes, |n, &size| n.saturating_mul(size));
    let mut below = 0u64;
    for level in 1..=key.level {
        let BlockOrigin::Made { halved, .. } = plan.origin(key.array, level) else { continue };
        let (grain, block) = (grain(plan, key.array, level - 1)?, &array.level(level)?.block);
        // The box that one grain covers is not cut; see `place_to_cut`.
        let uncut = grain.iter().zip(halved).map(|(&n, &h)| if h && n % 2 == 1 { 2 * n } else { n });
        let piece = bytes(&uncut.collect::<Vec<_>>()).max(PIECE_BYTES as u64);
        let at_once = if level == key.level { PIECES_AT_ONCE as u64 } else { 1 };
        // A piece holds its finer box, at most half as much halved, and a finer block with its own needs.
        let pieces = (piece + piece / 2).saturating_add(below).saturating_mul(at_once);
        below = bytes(block).saturating_add(pieces);
    }
    Ok(below)
}

/// A part of a block: its region, and the finer box that it is made of.
struct HalvingPiece {
    finer: Selection,
    region: Region,
    halved: Vec<bool>,
}

/// Cuts a block into pieces whose finer boxes are at most [`PIECE_BYTES`], slow axes first, and only where
/// grains of the finer level end: none is made for two pieces.
fn cut<'a>(
    selection: &Selection,
    region: Region,
    halved: &'a [bool],
    finer_shape: &'a [u64],
    grain: &'a [u64],
    item_bytes: usize,
) -> impl Iterator<Item = HalvingPiece> + 'a {
    let start: Vec<u64> = selection.ranges().iter().map(|r| r.start).collect();
    let mut rest = vec![(start, region)];
    std::iter::from_fn(move || {
        let (start, mut region) = rest.pop()?;
        loop {
            let finer_box = finer_box(&start, region.shape(), halved, finer_shape);
            let size = finer_box.len().unwrap_or(u64::MAX).saturating_mul(item_bytes as u64);
            let place = place_to_cut(region.shape(), halved, grain);
            let Some((axis, at)) = place.filter(|_| size > PIECE_BYTES as u64) else {
                return Some(HalvingPiece { finer: finer_box, region, halved: halved.to_vec() });
            };
            let (left, right) = region.split(axis, at);
            let mut behind = start.clone();
            behind[axis] += at as u64;
            rest.push((behind, right));
            region = left;
        }
    })
}

/// The boxes of a level that are made or decoded whole: its blocks; single voxels where the format finds each by its place,
/// so that pieces are made of whole stretches of the file.
fn grain(plan: &PyramidPlan, array: u32, level: u8) -> Result<Vec<u64>> {
    let info = plan.dataset.array(array)?;
    let finer = info.level(level)?;
    let is_flat = finer.chunk.is_none() && matches!(plan.origin(array, level), BlockOrigin::Stored);
    Ok(if is_flat { vec![1; finer.shape.len()] } else { finer.block.clone() })
}

/// Returns the cut near the middle of the slowest axis that is longer than one grain.
fn place_to_cut(shape: &[usize], halved: &[bool], grain: &[u64]) -> Option<(usize, usize)> {
    (0..shape.len()).find_map(|axis| {
        let is_whole = halved[axis] && grain[axis].is_multiple_of(2);
        let covered = if is_whole { grain[axis] / 2 } else { grain[axis] };
        let covered = usize::try_from(covered).ok()?;
        let at = shape[axis].div_ceil(2).checked_next_multiple_of(covered)?;
        let at = if at < shape[axis] { at } else { shape[axis] / 2 / covered * covered };
        (at > 0).then_some((axis, at))
    })
}

/// The voxels of the finer level that a box of the coarser one is made of.
fn finer_box(start: &[u64], count: &[usize], halved: &[bool], finer_shape: &[u64]) -> Selection {
    let mut low = Vec::with_capacity(start.len());
    let mut size = Vec::with_capacity(start.len());
    for axis in 0..start.len() {
        let scale = if halved[axis] { 2 } else { 1 };
        low.push(start[axis] * scale);
        size.push((count[axis] as u64 * scale).min(finer_shape[axis] - start[axis] * scale));
    }
    Selection::of_box(&low, &size)
}

/// Modes have separate names: the meaning of an array may change.
fn entry_name(key: BlockKey, array: &ArrayInfo) -> String {
    let modes = if array.meaning == Meaning::Labels { "-modes" } else { "" };
    format!("levels-{VERSION}{modes}/g{}/a{}/l{}/{}", key.generation.0, key.array, key.level, key.index)
}

fn finish(key: BlockKey, bytes: Vec<u8>, array: &ArrayInfo) -> Arc<Block> {
    let range = stats::value_range(&bytes, array.dtype, &array.decoding);
    Arc::new(Block { key, content: Content::Data { bytes: Bytes::from(bytes), range } })
}

/// Counter of the bytes in use, with their peak.
#[derive(Clone, Default)]
struct MemoryGauge(Arc<GaugeBytes>);

#[derive(Default)]
struct GaugeBytes {
    now: AtomicU64,
    peak: AtomicU64,
}

struct GaugeHold(MemoryGauge, u64);

impl MemoryGauge {
    fn hold(&self, bytes: usize) -> GaugeHold {
        let now = self.0.now.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        self.0.peak.fetch_max(now, Ordering::Relaxed);
        GaugeHold(self.clone(), bytes as u64)
    }
}

impl Drop for GaugeHold {
    fn drop(&mut self) {
        self.0.0.now.fetch_sub(self.1, Ordering::Relaxed);
    }
}
