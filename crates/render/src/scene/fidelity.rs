//! Fidelity of a picture: the levels that it shows, counted while it is drawn.

use crate::VolumeView;

/// Levels that a picture shows, and their shares of the length of rays up to their ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fidelity {
    /// Number of the level that was wanted.
    pub wanted_level: u8,
    /// Number of the finest level that was drawn; `None` if nothing was.
    pub finest_shown: Option<u8>,
    /// Number of the coarsest level that was drawn.
    pub coarsest_shown: Option<u8>,
    /// Share at the wanted level.
    pub share_at_wanted: f64,
    /// Share without a block of any level.
    pub share_uncovered: f64,
    /// Share in which a block of the wanted level is not yet loaded, whatever level replaced it. Where the
    /// source has no block at that level, nothing is missing.
    pub share_lacking: f64,
}

impl Fidelity {
    /// True if all of the picture shows the wanted level, or the best available where the source has no block
    /// at that level.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.share_lacking <= 0.0
    }
}

/// Numbers of samples by level, and of samples for which a better level is not yet loaded.
#[derive(Clone, Debug)]
pub(crate) struct ShownSamples {
    by_level: [u64; array::MAX_LEVELS],
    uncovered: u64,
    lacking: u64,
}

impl Default for ShownSamples {
    fn default() -> Self {
        Self { by_level: [0; array::MAX_LEVELS], uncovered: 0, lacking: 0 }
    }
}

impl ShownSamples {
    /// Counts samples from a block of a level, or from none; `is_lacking` if the block of the wanted level is
    /// not yet loaded.
    pub(crate) fn count(&mut self, level_index: Option<usize>, is_lacking: bool, samples: u64) {
        *level_index.map_or(&mut self.uncovered, |level_index| &mut self.by_level[level_index]) += samples;
        self.lacking += if is_lacking { samples } else { 0 };
    }

    /// Counts samples for which the block of the wanted level is not yet loaded.
    pub(crate) fn lack(&mut self, samples: u64) {
        self.lacking += samples;
    }

    /// Number of words in [`ShownSamples::words`].
    pub(crate) const WORDS: usize = array::MAX_LEVELS + 2;

    /// Returns all counts.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        self.by_level.into_iter().chain([self.uncovered, self.lacking])
    }

    /// Restores counts from [`ShownSamples::words`]; `None` if there are more or fewer.
    pub(crate) fn from_words(words: &[u64]) -> Option<Self> {
        let (by_level, rest) = words.split_first_chunk()?;
        let &[uncovered, lacking] = rest else { return None };
        Some(Self { by_level: *by_level, uncovered, lacking })
    }

    /// True if no sample was counted.
    pub(crate) fn is_nothing(&self) -> bool {
        self.uncovered == 0 && self.by_level.iter().all(|&n| n == 0)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, count) in self.by_level.iter_mut().zip(&other.by_level) {
            *sum += count;
        }
        self.uncovered += other.uncovered;
        self.lacking += other.lacking;
    }

    #[expect(clippy::cast_precision_loss, reason = "shares")]
    pub(crate) fn fidelity(&self, view: &VolumeView, wanted_level_index: usize) -> Fidelity {
        let total = self.by_level.iter().sum::<u64>() + self.uncovered;
        // A picture without the volume in it is complete.
        let share =
            |count: u64, of_nothing: f64| if total == 0 { of_nothing } else { count as f64 / total as f64 };
        let number = |level_index: usize| view.levels[level_index].number;
        Fidelity {
            wanted_level: number(wanted_level_index),
            finest_shown: self.by_level.iter().position(|&n| n > 0).map(number),
            coarsest_shown: self.by_level.iter().rposition(|&n| n > 0).map(number),
            share_at_wanted: share(self.by_level[wanted_level_index], 1.0),
            share_uncovered: share(self.uncovered, 0.0),
            share_lacking: share(self.lacking, 0.0),
        }
    }
}
