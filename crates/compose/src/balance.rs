//! As much work for each rank: before every picture the volume is cut anew, by what the picture is guessed to take and by what
//! the one before really took.
//!
//! The guess ([`render::work()`]) knows the camera and what is seen of the values, the measurement also what lies behind
//! something opaque. What a block took more or less than guessed holds for the next view too, and for the block in its place at
//! another time.

use std::collections::BTreeMap;

use array::{BlockKey, Error, Result};
use render::{Demand, Scene, Snapshot, VolumeView, work};

use crate::{Communicator, Tree, broadcast, collect};

/// How far a measurement may correct a guess, as a factor either way.
const MOST: f64 = 64.0;
/// Bytes of what a block took, as a message: number of the level, index, work.
const ENTRY_BYTES: usize = 17;

/// A block at whatever time: the rank of its level, and its place `[z, y, x]` in the level's grid.
type Place = (usize, [u64; 3]);

/// Work that blocks make: as guessed for the last picture, and how measurements correct the guess. Only rank
/// 0's is used.
#[derive(Clone, Debug, Default)]
pub struct Balance {
    /// The work that was guessed of each block of the last picture.
    guessed: BTreeMap<Place, f64>,
    /// Factor by which the guess has to be multiplied.
    correction: BTreeMap<Place, f64>,
}

impl Balance {
    /// Nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cuts the volume for the next picture. All ranks make the same call; `took` is what the last picture's blocks took
    /// this one ([`Composed::work`](crate::Composed::work)), `at_hand` what rank 0 guesses by, `demand` what the picture wants.
    ///
    /// # Errors
    /// Those of [`work()`], [`Tree::new`] and the communicator.
    pub fn plan(
        &mut self,
        ranks: &dyn Communicator,
        scene: &Scene,
        at_hand: &Snapshot,
        demand: &Demand,
        took: &[(BlockKey, f64)],
    ) -> Result<Tree> {
        self.hear(ranks, &scene.view, took)?;
        let mut message = Vec::new();
        if ranks.rank() == 0 {
            message = self.cut(scene, at_hand, demand, ranks.size())?.to_bytes();
        }
        Tree::from_bytes(&broadcast(ranks, message)?, ranks.size())
    }

    /// Hears what the last picture's blocks took all ranks, which make the same call, or [`tell_work`]; only rank 0's learns. `view` is
    /// what the picture showed.
    ///
    /// # Errors
    /// Those of the communicator, and `Corrupt` for a message that says something else.
    pub fn hear(
        &mut self,
        ranks: &dyn Communicator,
        view: &VolumeView,
        took: &[(BlockKey, f64)],
    ) -> Result<()> {
        let took = collect(ranks, to_message(took))?;
        if ranks.rank() == 0 {
            self.learn(view, &from_message(&took, view.key(0, [0; 3]))?);
        }
        Ok(())
    }

    /// Cuts the volume for a picture by what is known.
    ///
    /// # Errors
    /// Those of [`work()`] and [`Tree::new`].
    pub fn cut(&mut self, scene: &Scene, at_hand: &Snapshot, demand: &Demand, ranks: usize) -> Result<Tree> {
        let is_wanted = |key: &BlockKey| key.level == demand.wanted;
        let blocks: Vec<BlockKey> = demand.blocks.iter().map(|block| block.key).filter(is_wanted).collect();
        let mut points = work(scene, at_hand, &blocks)?;
        let places: Vec<Option<Place>> = blocks.iter().map(|key| scene.view.locate(key)).collect();
        self.guessed.clear();
        for point in &mut points {
            let Some(place) = places[point.block as usize] else { continue };
            *self.guessed.entry(place).or_default() += point.work;
            point.work *= self.correction.get(&place).copied().unwrap_or(1.0);
        }
        self.correction.retain(|place, _| self.guessed.contains_key(place));
        Tree::new(scene, &points, ranks)
    }

    /// Hears what blocks took, each perhaps several times.
    fn learn(&mut self, view: &VolumeView, took: &[(BlockKey, f64)]) {
        if took.is_empty() {
            return;
        }
        let mut sums: BTreeMap<Place, f64> = BTreeMap::new();
        for (key, work) in took {
            if let Some(place) = view.locate(key) {
                *sums.entry(place).or_default() += work;
            }
        }
        let total = |of: &BTreeMap<Place, f64>| of.values().sum::<f64>();
        // A picture in motion has fewer pixels and longer steps than one that was guessed: only shares of the whole compare.
        let scale = total(&self.guessed) / total(&sums);
        if !scale.is_finite() {
            return;
        }
        for (place, guess) in self.guessed.iter().filter(|(_, guess)| **guess > 0.0) {
            let sum = sums.get(place).copied().unwrap_or(0.0);
            self.correction.insert(*place, (scale * sum / guess).clamp(MOST.recip(), MOST));
        }
    }
}

/// Tells rank 0 what blocks took, as [`Balance::hear`] expects it, for a rank that has no balance of its own.
///
/// # Errors
/// Those of the communicator.
pub fn tell_work(ranks: &dyn Communicator, took: &[(BlockKey, f64)]) -> Result<()> {
    collect(ranks, to_message(took)).map(drop)
}

fn to_message(took: &[(BlockKey, f64)]) -> Vec<u8> {
    let entry = |(key, work): &(BlockKey, f64)| {
        let mut bytes = vec![key.level];
        bytes.extend(key.index.to_le_bytes());
        bytes.extend(work.to_le_bytes());
        bytes
    };
    took.iter().flat_map(entry).collect()
}

/// `any` is a block of the view.
fn from_message(bytes: &[u8], any: BlockKey) -> Result<Vec<(BlockKey, f64)>> {
    let (entries, rest) = bytes.as_chunks::<ENTRY_BYTES>();
    let entry = |bytes: &[u8; ENTRY_BYTES]| {
        let (index, work) = bytes[1..].split_at(8);
        let number = |half: &[u8]| u64::from_le_bytes(half.try_into().unwrap_or_default());
        (BlockKey { level: bytes[0], index: number(index), ..any }, f64::from_bits(number(work)))
    };
    let took: Vec<(BlockKey, f64)> = entries.iter().map(entry).collect();
    let is_legal = rest.is_empty() && took.iter().all(|(_, work)| work.is_finite() && *work >= 0.0);
    if is_legal {
        return Ok(took);
    }
    Err(Error::corrupt(format!("expected what blocks took, found {} bytes that are not", bytes.len())))
}
