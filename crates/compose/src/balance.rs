//! As much work for each rank: before every picture the volume is cut anew, by what the picture is guessed to take and by what
//! the one before really took.
//!
//! The guess ([`render::work()`]) knows the camera and what is seen of the values, the measurement also what lies behind
//! something opaque. What a block took more or less than guessed holds for the next view too, and for the block in its place at
//! another time.

use std::collections::BTreeMap;

use array::{BlockKey, Error, Result};
use render::{Demand, Scene, Snapshot, VolumeView, work};

use crate::{Communicator, KdTree, broadcast, collect};

/// How far a measurement may correct a guess, as a factor either way.
const MAX_CORRECTION: f64 = 64.0;
/// Bytes of what a block took, as a message: number of the level, index, work.
const ENTRY_BYTES: usize = 17;

/// A block at whatever time: the rank of its level, and its place `[z, y, x]` in the level's grid.
type BlockPosition = (usize, [u64; 3]);

/// Work that blocks make: as guessed for the last picture, and how measurements correct the guess. Only rank
/// 0's is used.
#[derive(Clone, Debug, Default)]
pub struct Balance {
    /// The work that was guessed of each block of the last picture.
    guessed: BTreeMap<BlockPosition, f64>,
    /// Factor by which the guess has to be multiplied.
    correction: BTreeMap<BlockPosition, f64>,
}

impl Balance {
    /// Nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cuts the volume for the next picture. All ranks make the same call; `block_work` is what the last picture's blocks took
    /// this one ([`Composed::work`](crate::Composed::work)), `available` what rank 0 guesses by, `demand` what the picture wants.
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

    /// Hears what the last picture's blocks took all ranks, which make the same call, or [`send_work`]; only rank 0's learns. `view` is
    /// what the picture showed.
    ///
    /// # Errors
    /// Those of the communicator, and `Corrupt` for a message that says something else.
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

    /// Cuts the volume for a picture by what is known.
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

    /// Hears what blocks took, each perhaps several times.
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
        // A picture in motion has fewer pixels and longer steps than one that was guessed: only shares of the whole compare.
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

/// Tells rank 0 what blocks took, as [`Balance::gather_work`] expects it, for a rank that has no balance of its own.
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

/// `any` is a block of the view.
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
