//! What the values of an array look like, from its coarsest blocks as they pass by: enough to choose a first
//! transfer function without reading anything more.

use std::collections::BTreeSet;

use array::stats::{Accumulator, Histogram};
use array::{Block, Content, Result};
use render::VolumeView;
use session::Transfer;

/// Bins of the histogram.
const BINS: usize = 512;

/// The values seen so far of one volume.
pub(crate) struct Overview {
    values: Accumulator,
    /// Rank of the coarsest level that was seen; only its blocks count.
    rank: usize,
    /// Those that were counted.
    seen: BTreeSet<u64>,
}

impl Overview {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { values: Accumulator::new(BINS)?, rank: 0, seen: BTreeSet::new() })
    }

    /// Counts a block once, if no block of a coarser level was seen.
    ///
    /// # Errors
    /// `Corrupt` when it holds no whole number of elements.
    pub(crate) fn add(&mut self, block: &Block, volume: &VolumeView) -> Result<()> {
        let Ok(rank) = volume.rank_of(block.key.level) else { return Ok(()) };
        if rank > self.rank {
            *self = Self { rank, ..Self::new()? };
        }
        if rank < self.rank || !self.seen.insert(block.key.index) {
            return Ok(());
        }
        match &block.content {
            Content::Data { bytes, .. } => self.values.add(bytes, volume.dtype, &volume.decoding),
            Content::NotCovered => Ok(()),
        }
    }

    /// A transfer function for what was seen; `None` while nothing was.
    pub(crate) fn transfer(&self, volume: &VolumeView) -> Option<Transfer> {
        if self.seen.is_empty() {
            return None;
        }
        let stats = self.values.stats();
        // Blocks without a single value: any function will do, nothing is there to be seen.
        let nothing = Histogram { low: 0.0, high: 1.0, counts: Vec::new() };
        let longest_side = volume.levels.first().and_then(|l| l.shape.iter().max().copied());
        let histogram = stats.histogram.unwrap_or(nothing);
        Some(Transfer::sensible(&histogram, volume.meaning, longest_side.unwrap_or(1)))
    }

    /// How many blocks were counted: what the answer rests on.
    pub(crate) fn blocks_seen(&self) -> usize {
        self.seen.len()
    }
}
