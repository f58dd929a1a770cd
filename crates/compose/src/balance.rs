//! Load balancing: before every picture the volume is divided anew, by the estimated work of the picture and
//! the measured work of the one before.
//!
//! The estimate ([`render::work()`]) knows the camera and the visible values, the measurement also what is
//! hidden behind opaque parts. The ratio of both for a block is applied to the next view too, and to the
//! block at its position at another time.

use std::collections::BTreeMap;

use array::{BlockKey, Error, Result};
use render::{Demand, Scene, Snapshot, VolumeView, work};

use crate::{Communicator, KdTree, broadcast, collect};

/// Largest factor by which a measurement may correct an estimate, up or down.
const MAX_CORRECTION: f64 = 64.0;
/// Bytes of the work of a block in a message: level number, index, work.
const ENTRY_BYTES: usize = 17;

/// Block at any time: the index of its level, and its position `[z, y, x]` in the level's grid.
type BlockPosition = (usize, [u64; 3]);

/// Work of blocks: estimates for the last picture, and their corrections by measurements. Only rank 0's is
/// used.
#[derive(Clone, Debug, Default)]
pub struct Balance {
    /// Estimated work of each block of the last picture.
    guessed: BTreeMap<BlockPosition, f64>,
    /// Factor by which the estimate is multiplied.
    correction: BTreeMap<BlockPosition, f64>,
}

impl Balance {
    /// Creates a balance without measurements.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Divides the volume for the next picture. All ranks make the same call; `block_work` is the work of the
    /// last picture's blocks at this rank ([`Composed::work`](crate::Composed::work)), `available` the blocks
    /// that rank 0 bases its estimate on, `demand` the demand of the picture.
    ///
    /// # Errors
    /// Those of [`work()`], [`KdTree::new`] and the communicator.
    pub fn plan(
        &mut self,
        ranks: &dyn Communicator,
        scene: &Scene,
        available: &Snapshot,
        demand: &Demand,
        block_work: &[(BlockKey, f64)],
    ) -> Result<KdTree> {
        self.gather_work(ranks, &scene.view, block_work)?;
        let mut message = Vec::new();
        if ranks.rank() == 0 {
            message = self.cut(scene, available, demand, ranks.size())?.to_bytes();
        }
        KdTree::from_bytes(&broadcast(ranks, message)?, ranks.size())
    }

    /// Gathers the work of the last picture's blocks at rank 0. All ranks call this or [`send_work`]. `view`
    /// is the volume that the picture showed.
    ///
    /// # Errors
    /// Those of the communicator, and `Corrupt` for an invalid message.
    pub fn gather_work(
        &mut self,
        ranks: &dyn Communicator,
        view: &VolumeView,
        block_work: &[(BlockKey, f64)],
    ) -> Result<()> {
        let block_work = collect(ranks, to_message(block_work))?;
        if ranks.rank() == 0 {
            self.update(view, &from_message(&block_work, view.key(0, [0; 3]))?);
        }
        Ok(())
    }

    /// Divides the volume for a picture by the current estimates and corrections.
    ///
    /// # Errors
    /// Those of [`work()`] and [`KdTree::new`].
    pub fn cut(
        &mut self,
        scene: &Scene,
        available: &Snapshot,
        demand: &Demand,
        ranks: usize,
    ) -> Result<KdTree> {
        let is_wanted = |key: &BlockKey| key.level == demand.wanted;
        let blocks: Vec<BlockKey> = demand.blocks.iter().map(|block| block.key).filter(is_wanted).collect();
        let mut points = work(scene, available, &blocks)?;
        let positions: Vec<Option<BlockPosition>> = blocks.iter().map(|key| scene.view.locate(key)).collect();
        self.guessed.clear();
        for point in &mut points {
            let Some(position) = positions[point.block as usize] else { continue };
            *self.guessed.entry(position).or_default() += point.work;
            point.work *= self.correction.get(&position).copied().unwrap_or(1.0);
        }
        self.correction.retain(|position, _| self.guessed.contains_key(position));
        KdTree::new(scene, &points, ranks)
    }

    /// Updates the corrections by the work of blocks, each of which may occur several times.
    fn update(&mut self, view: &VolumeView, block_work: &[(BlockKey, f64)]) {
        if block_work.is_empty() {
            return;
        }
        let mut sums: BTreeMap<BlockPosition, f64> = BTreeMap::new();
        for (key, work) in block_work {
            if let Some(position) = view.locate(key) {
                *sums.entry(position).or_default() += work;
            }
        }
        let total = |of: &BTreeMap<BlockPosition, f64>| of.values().sum::<f64>();
        // Pictures of moving views have fewer pixels and longer steps than estimated: only shares of the
        // total are comparable.
        let scale = total(&self.guessed) / total(&sums);
        if !scale.is_finite() {
            return;
        }
        for (position, guess) in self.guessed.iter().filter(|(_, guess)| **guess > 0.0) {
            let sum = sums.get(position).copied().unwrap_or(0.0);
            self.correction
                .insert(*position, (scale * sum / guess).clamp(MAX_CORRECTION.recip(), MAX_CORRECTION));
        }
    }
}

/// Sends the work of blocks to rank 0, which calls [`Balance::gather_work`].
///
/// # Errors
/// Those of the communicator.
pub fn send_work(ranks: &dyn Communicator, block_work: &[(BlockKey, f64)]) -> Result<()> {
    collect(ranks, to_message(block_work)).map(drop)
}

fn to_message(block_work: &[(BlockKey, f64)]) -> Vec<u8> {
    let entry = |(key, work): &(BlockKey, f64)| {
        let mut bytes = vec![key.level];
        bytes.extend(key.index.to_le_bytes());
        bytes.extend(work.to_le_bytes());
        bytes
    };
    block_work.iter().flat_map(entry).collect()
}

/// Parses the message; `any` is a block of the view.
fn from_message(bytes: &[u8], any: BlockKey) -> Result<Vec<(BlockKey, f64)>> {
    let (entries, rest) = bytes.as_chunks::<ENTRY_BYTES>();
    let entry = |bytes: &[u8; ENTRY_BYTES]| {
        let (index, work) = bytes[1..].split_at(8);
        let number = |half: &[u8]| u64::from_le_bytes(half.try_into().unwrap_or_default());
        (BlockKey { level: bytes[0], index: number(index), ..any }, f64::from_bits(number(work)))
    };
    let block_work: Vec<(BlockKey, f64)> = entries.iter().map(entry).collect();
    let is_legal = rest.is_empty() && block_work.iter().all(|(_, work)| work.is_finite() && *work >= 0.0);
    if is_legal {
        return Ok(block_work);
    }
    Err(Error::corrupt(format!("invalid work of blocks in {} bytes", bytes.len())))
}
