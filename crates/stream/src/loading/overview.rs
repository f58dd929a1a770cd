//! Statistics of an array's values from its blocks as they arrive: enough to choose a default transfer
//! function, and to report the values outside of it, without further reads.

use std::collections::BTreeSet;

use array::values::stats::Accumulator;
use array::{Block, Content, LevelOrigin, Result, ValueSample, ValueSampler};
use render::VolumeView;
use session::{DrawnRange, ValueSummary};
use view::{Transfer, TransferChoice};

/// Bins of the histogram.
const BINS: usize = 512;
/// Fewest layers of a level that still counts as unmixed although level 0 has more.
const LEAST_LAYERS: u64 = 4;

/// Values seen so far of one volume, that is of one array at one time and in one channel.
pub(crate) struct Overview {
    values: Accumulator,
    sample: ValueSampler,
    /// Index of the level whose blocks count: the coarsest one seen among those that keep the layers of the
    /// volume. A level of block corners has few values: any other level is preferred.
    rank: Option<usize>,
    /// Indices of the blocks counted.
    seen: BTreeSet<u64>,
    /// Voxels of level 0 that the counted blocks represent.
    covered: f64,
    /// Number of blocks counted for the cached transfer function, and that function.
    made: Option<(usize, Transfer)>,
}

impl Overview {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            values: Accumulator::new(BINS)?,
            sample: ValueSampler::default(),
            rank: None,
            seen: BTreeSet::new(),
            covered: 0.0,
            made: None,
        })
    }

    /// Counts a block once, unless a block of a better level was seen.
    ///
    /// # Errors
    /// `Corrupt` for a block without a whole number of elements.
    pub(crate) fn add(&mut self, block: &Block, volume: &VolumeView) -> Result<()> {
        let Ok(rank) = volume.level_index_of(block.key.level) else { return Ok(()) };
        let has_corners = |rank: usize| volume.levels[rank].origin == LevelOrigin::Corners;
        let standing = |rank: usize| (!has_corners(rank), keeps_layers(volume, rank), rank);
        if self.rank.is_none_or(|known| standing(known) < standing(rank)) {
            *self = Self { rank: Some(rank), ..Self::new()? };
        }
        if self.rank != Some(rank) || !self.seen.insert(block.key.index) {
            return Ok(());
        }
        let Content::Data { bytes, .. } = &block.content else { return Ok(()) };
        let counted = self.sample.count();
        self.values.add(bytes, volume.dtype, &volume.decoding)?;
        self.sample.add(bytes, volume.dtype, &volume.decoding, block.key.index)?;
        // Blocks without values do not add to the reliability of the result.
        if self.sample.count() > counted {
            let voxels = (bytes.len() / volume.dtype.size_bytes()) as f64;
            let factor = volume.levels[rank].factor.element_product();
            // A sample at a corner represents only its own voxel.
            self.covered += if has_corners(rank) { voxels } else { voxels * factor };
        }
        Ok(())
    }

    /// Returns a transfer function for the values seen; `None` before the first block.
    pub(crate) fn transfer(&mut self, volume: &VolumeView) -> Option<Transfer> {
        if self.seen.is_empty() {
            return None;
        }
        if self.made.as_ref().is_none_or(|(blocks, _)| *blocks != self.seen.len()) {
            let sides = volume.levels.first().map_or([1; 3], |level| level.shape);
            // With no values at all any function will do.
            self.made = Some((self.seen.len(), Transfer::first(&self.spread(), &volume.hints, sides)));
        }
        self.made.as_ref().map(|(_, transfer)| transfer.clone())
    }

    /// Returns a transfer function over all values seen; `None` before the first block.
    pub(crate) fn transfer_over_all(&self, volume: &VolumeView) -> Option<Transfer> {
        let sides = volume.levels.first().map_or([1; 3], |level| level.shape);
        (!self.seen.is_empty()).then(|| Transfer::over_all(&self.spread(), &volume.hints, sides))
    }

    /// Completes a choice of a transfer function for the values seen.
    ///
    /// # Errors
    /// Those of [`TransferChoice::complete`].
    pub(crate) fn chosen(
        &self,
        choice: &TransferChoice,
        base: Transfer,
        volume: &VolumeView,
    ) -> Result<Transfer> {
        let sides = volume.levels.first().map_or([1; 3], |level| level.shape);
        choice.complete(base, &self.spread(), sides)
    }

    fn spread(&self) -> ValueSample {
        self.sample.spread()
    }

    /// Returns statistics of the values seen, with their shares outside a color range; `None` before the
    /// first block.
    pub(crate) fn values(&self, volume: &VolumeView, drawn: DrawnRange) -> Option<ValueSummary> {
        let level = volume.levels.get(self.rank?)?.number;
        let of = || ValueSummary::of(&self.spread(), &self.values.stats(), &volume.hints, level, drawn);
        (!self.seen.is_empty()).then(of)
    }

    /// Returns the voxels of level 0 that the counted blocks represent, a measure of reliability. A single
    /// block of a coarse level outweighs many fine ones, which may show nothing but empty surroundings.
    pub(crate) fn voxels_seen(&self) -> f64 {
        self.covered
    }
}

/// Returns true if a level has as many layers as level 0, or so many that mixing some of them changes little.
fn keeps_layers(volume: &VolumeView, rank: usize) -> bool {
    let (own, finest) = (volume.levels[rank].shape, volume.levels[0].shape);
    own.into_iter().zip(finest).all(|(own, finest)| own >= finest.min(LEAST_LAYERS))
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
    fn corners_count_until_a_block_of_another_level_arrives() {
        let mut volume = volume();
        volume.levels[1].origin = LevelOrigin::Corners;
        let mut overview = Overview::new().unwrap();
        overview.add(&block(&volume, 1, 200), &volume).unwrap();
        let few = overview.voxels_seen();
        assert!(few > 0.0 && overview.transfer(&volume).is_some());
        overview.add(&block(&volume, 0, 3), &volume).unwrap();
        assert!(overview.voxels_seen() >= few, "a block of another level replaces the corners");
        assert!(overview.transfer(&volume).unwrap().range[1] < 100.0);
        overview.add(&block(&volume, 1, 200), &volume).unwrap();
        assert!(overview.transfer(&volume).unwrap().range[1] < 100.0, "corners no longer count");
    }

    #[test]
    fn a_level_that_has_mixed_the_layers_is_not_used() {
        let mut volume = volume();
        volume.levels[0].shape[0] = 3;
        volume.levels[1].shape[0] = 2;
        let mut overview = Overview::new().unwrap();
        overview.add(&block(&volume, 1, 200), &volume).unwrap();
        overview.add(&block(&volume, 0, 3), &volume).unwrap();
        overview.add(&block(&volume, 1, 200), &volume).unwrap();
        assert!(overview.transfer(&volume).unwrap().range[1] < 100.0);
    }

    #[test]
    fn values_outside_the_color_range_are_reported() {
        let volume = volume();
        let mut overview = Overview::new().unwrap();
        assert!(overview.values(&volume, DrawnRange::default()).is_none());
        overview.add(&block(&volume, 1, 200), &volume).unwrap();
        let drawn = DrawnRange { range: Some([0.0, 100.0]), ..DrawnRange::default() };
        let values = overview.values(&volume, drawn).unwrap();
        assert_eq!((values.low, values.high, values.above), (Some(200.0), Some(200.0), 1.0));
        assert!(values.note.unwrap().contains("100 % of the values lie above"));
    }

    #[test]
    fn a_fine_block_of_empty_surroundings_does_not_outlive_a_coarse_one() {
        let volume = volume();
        let mut overview = Overview::new().unwrap();
        overview.add(&block(&volume, 0, 3), &volume).unwrap();
        let early = overview.voxels_seen();
        overview.add(&block(&volume, 1, 200), &volume).unwrap();
        assert!(overview.voxels_seen() >= 2.0 * early, "a voxel of the coarse block represents eight voxels");
        let range = overview.transfer(&volume).unwrap().range;
        assert!(range[0] > 3.0, "the fine block no longer counts: {range:?}");
    }
}
