//! What the values of an array look like, from its coarsest blocks as they pass by: enough to choose a first
//! transfer function without reading anything more.

use std::collections::BTreeSet;

use array::stats::{Accumulator, Histogram};
use array::{Block, Content, LevelOrigin, Result};
use render::VolumeView;
use session::Transfer;

/// Bins of the histogram.
const BINS: usize = 512;

/// The values seen so far of one volume.
pub(crate) struct Overview {
    values: Accumulator,
    /// Rank of the coarsest level that was seen; only its blocks count. Corners of blocks are few: any other level goes before.
    rank: Option<usize>,
    /// Those that were counted.
    seen: BTreeSet<u64>,
    /// Voxels of level 0 that they stand for.
    covered: f64,
}

impl Overview {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { values: Accumulator::new(BINS)?, rank: None, seen: BTreeSet::new(), covered: 0.0 })
    }

    /// Counts a block once, if no block of a coarser level was seen.
    ///
    /// # Errors
    /// `Corrupt` when it holds no whole number of elements.
    pub(crate) fn add(&mut self, block: &Block, volume: &VolumeView) -> Result<()> {
        let Ok(rank) = volume.rank_of(block.key.level) else { return Ok(()) };
        let has_corners = |rank: usize| volume.levels[rank].origin == LevelOrigin::Corners;
        let standing = |rank: usize| (!has_corners(rank), rank);
        if self.rank.is_none_or(|known| standing(known) < standing(rank)) {
            *self = Self { rank: Some(rank), ..Self::new()? };
        }
        if self.rank != Some(rank) || !self.seen.insert(block.key.index) {
            return Ok(());
        }
        match &block.content {
            Content::Data { bytes, .. } => {
                let voxels = (bytes.len() / volume.dtype.size_bytes()) as f64;
                let factor = volume.levels[rank].factor.element_product();
                // A corner stands for little but itself.
                self.covered += if has_corners(rank) { voxels } else { voxels * factor };
                self.values.add(bytes, volume.dtype, &volume.decoding)
            }
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
        let sides = volume.levels.first().map_or([1; 3], |level| level.shape);
        let histogram = stats.histogram.unwrap_or(nothing);
        Some(Transfer::sensible(&histogram, volume.meaning, sides))
    }

    /// How much of the array was counted, in voxels of level 0: what the answer rests on. A single block of a
    /// coarse level outweighs many fine ones, which may show nothing but the empty surroundings.
    pub(crate) fn voxels_seen(&self) -> f64 {
        self.covered
    }
}

#[cfg(test)]
mod tests {
    use array::{
        Affine, ArrayInfo, Axis, AxisKind, DType, Dataset, DatasetId, Decoding, ElementType, Generation,
        Level, Meaning,
    };

    use super::*;

    /// 8^3 voxels in blocks of 4^3, and a level of 4^3 in one block.
    fn volume() -> VolumeView {
        let level = |side: u64, origin, factor: f64| Level {
            shape: vec![side; 3],
            block: vec![4; 3],
            chunk: None,
            origin,
            factor: vec![factor; 3],
            world_from_voxel: Affine::IDENTITY.coarsened([factor; 3], [(factor - 1.0) / 2.0; 3]),
        };
        let dtype = DType::native(ElementType::U8);
        let array = ArrayInfo {
            name: "u".into(),
            dtype,
            axes: [AxisKind::Z, AxisKind::Y, AxisKind::X].map(|k| Axis::new(format!("{k:?}"), k)).into(),
            units: String::new(),
            attributes: array::Attributes::new(),
            decoding: Decoding::identity(dtype),
            meaning: Meaning::Intensity,
            levels: vec![level(8, LevelOrigin::Stored, 1.0), level(4, LevelOrigin::Mean, 2.0)],
            world_units: String::new(),
            notes: Vec::new(),
            storage: array::Storage::default(),
        };
        let dataset = Dataset {
            id: DatasetId(1),
            generation: Generation(0),
            name: "test".into(),
            format: "test".into(),
            arrays: vec![array],
            attributes: array::Attributes::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
            groups: Vec::new(),
        };
        VolumeView::new(&dataset, 0, &[]).unwrap()
    }

    fn block(volume: &VolumeView, rank: usize, value: u8) -> Block {
        let content = Content::Data { bytes: vec![value; 64].into(), range: None };
        Block { key: volume.key(rank, [0; 3]), content }
    }

    #[test]
    fn corners_count_until_anything_else_is_there() {
        let mut volume = volume();
        volume.levels[1].origin = LevelOrigin::Corners;
        let mut overview = Overview::new().unwrap();
        overview.add(&block(&volume, 1, 200), &volume).unwrap();
        let few = overview.voxels_seen();
        assert!(few > 0.0 && overview.transfer(&volume).is_some());
        overview.add(&block(&volume, 0, 3), &volume).unwrap();
        assert!(overview.voxels_seen() >= few, "a block of values replaces them");
        assert!(overview.transfer(&volume).unwrap().range[1] < 100.0);
        overview.add(&block(&volume, 1, 200), &volume).unwrap();
        assert!(overview.transfer(&volume).unwrap().range[1] < 100.0, "and they do not come back");
    }

    #[test]
    fn a_fine_block_of_empty_surroundings_does_not_outlive_a_coarse_one() {
        let volume = volume();
        let mut overview = Overview::new().unwrap();
        overview.add(&block(&volume, 0, 3), &volume).unwrap();
        let early = overview.voxels_seen();
        overview.add(&block(&volume, 1, 200), &volume).unwrap();
        assert!(overview.voxels_seen() >= 2.0 * early, "the coarse block stands for eight times as much");
        let range = overview.transfer(&volume).unwrap().range;
        assert!(range[0] > 3.0, "the fine block no longer counts: {range:?}");
    }
}
