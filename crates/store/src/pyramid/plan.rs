//! Plan of the levels that are added to a data set, and of their origin; computed from the description alone.

use std::ops::Range;
use std::sync::Arc;

use array::{
    ArrayInfo, AxisKind, AxisRange, Dataset, Level, LevelOrigin, MAX_LEVELS, Meaning, Result, Selection,
    choose_blocks,
};

use crate::Access;

/// Longest spatial axis of the coarsest added level, voxels.
pub const COARSEST_SIDE: u64 = 64;

/// Percentage of the size of an array up to which its made levels are kept in the side cache; beyond it, the finest are not kept.
pub const KEPT_PERCENT: u64 = 15;

/// Description with added levels, and their origins.
#[derive(Debug)]
pub(super) struct PyramidPlan {
    /// Description that the format gives.
    pub(super) stored: Arc<Dataset>,
    /// Description with the added levels.
    pub(super) dataset: Arc<Dataset>,
    pub(super) arrays: Vec<ArrayPlan>,
}

/// The added levels of one array, as numbers in its list of levels.
#[derive(Debug)]
pub(super) struct ArrayPlan {
    /// Which axes are halved from each made level's finer one to it.
    halved: Vec<Vec<bool>>,
    /// Levels that are means or modes of the level before.
    pub(super) made: Range<usize>,
    /// First made level that goes into the side cache; all coarser made levels go there, too.
    pub(super) kept_from: usize,
    /// Sampled levels for quick previews, after the made levels.
    sampled: Vec<SampledLevel>,
}

/// Elements of a level of the format that are a level of their own.
#[derive(Debug)]
pub(super) struct SampledLevel {
    /// The format's number of the level.
    of: u8,
    /// Which elements, per axis.
    ranges: Vec<AxisRange>,
    /// Whether caching them is worthwhile: samples of level 0 cost as little as cached ones.
    pub(super) is_kept: bool,
}

/// Origin of the blocks of a level.
pub(super) enum BlockOrigin<'a> {
    /// The format has them.
    Stored,
    /// Made from the level before; these axes are halved.
    Made {
        /// Per axis.
        halved: &'a [bool],
        /// Whether they are worth keeping.
        is_kept: bool,
    },
    /// Sampled: these elements of a stored level.
    Sampled(&'a SampledLevel),
}

impl PyramidPlan {
    pub(super) fn new(stored: &Arc<Dataset>, access: impl Fn(u32) -> Access) -> Self {
        let mut dataset = Dataset::clone(stored);
        let arrays =
            (0u32..).zip(&mut dataset.arrays).map(|(number, array)| add_levels(array, access(number)));
        let arrays = arrays.collect();
        Self { stored: Arc::clone(stored), dataset: Arc::new(dataset), arrays }
    }

    /// Returns the origin of a level. The array and the level must exist.
    pub(super) fn origin(&self, array: u32, level: u8) -> BlockOrigin<'_> {
        let (plan, level) = (&self.arrays[array as usize], usize::from(level));
        if plan.made.contains(&level) {
            let halved = &plan.halved[level - plan.made.start];
            return BlockOrigin::Made { halved, is_kept: level >= plan.kept_from };
        }
        match level.checked_sub(plan.made.end).and_then(|i| plan.sampled.get(i)) {
            Some(samples) => BlockOrigin::Sampled(samples),
            None => BlockOrigin::Stored,
        }
    }

    /// Number of blocks of all made levels of an array, saturating. The array must exist.
    pub(super) fn made_blocks(&self, array: u32) -> u64 {
        let (array, plan) = (&self.dataset.arrays[array as usize], &self.arrays[array as usize]);
        array.levels[plan.made.clone()].iter().fold(0, |n, level| n.saturating_add(level.block_count()))
    }
}

impl SampledLevel {
    /// The level of the format, and the elements of it, that a selection of these means.
    pub(super) fn stored(&self, selection: &Selection) -> Result<(u8, Selection)> {
        let axes = self.ranges.iter().zip(selection.ranges());
        let range = |(all, chosen): (&AxisRange, &AxisRange)| AxisRange {
            start: all.index(chosen.start),
            count: chosen.count,
            step: all.step * chosen.step,
        };
        Ok((self.of, Selection::new(axes.map(range))?))
    }
}

fn add_levels(array: &mut ArrayInfo, access: Access) -> ArrayPlan {
    // A level of corners, which is the format's last, is none that means are made of: it comes after them.
    let corners = array.levels.pop_if(|level| level.origin == LevelOrigin::Corners);
    let mut plan = add_made(array, access);
    if let Some(corners) = corners {
        let of = u8::try_from(plan.made.start).unwrap_or(u8::MAX);
        let ranges = corners.shape.iter().map(|&n| AxisRange::contiguous(0, n)).collect();
        plan.sampled.push(SampledLevel { of, ranges, is_kept: true });
        array.levels.push(corners);
    }
    plan
}

/// Adds means or modes, and samples of the same sizes where they cost little.
fn add_made(array: &mut ArrayInfo, access: Access) -> ArrayPlan {
    let stored = array.levels.len();
    let mut plan = ArrayPlan { halved: vec![], made: stored..stored, kept_from: stored, sampled: vec![] };
    let is_empty = array.levels.last().is_none_or(|l| l.shape.contains(&0));
    if is_empty || access == Access::Computed || array.meaning == Meaning::Text {
        return plan;
    }
    while array.levels.len() < MAX_LEVELS / 2 {
        let Some((level, halved)) = array.levels.last().and_then(|finer| coarser(array, finer)) else {
            break;
        };
        array.levels.push(level);
        plan.halved.push(halved);
    }
    plan.made = stored..array.levels.len();
    plan.kept_from = kept_from(array, &plan.made);
    if access == Access::Flat && stored == 1 {
        add_sampled(array, &mut plan);
    }
    plan
}

/// The level above `finer`, and which axes are halved; nothing when that is coarse enough.
fn coarser(array: &ArrayInfo, finer: &Level) -> Option<(Level, Vec<bool>)> {
    let spatial: Vec<bool> = array.axes.iter().map(|a| a.kind.is_spatial()).collect();
    let is_long = |(&n, &spatial): (&u64, &bool)| spatial && n > COARSEST_SIDE;
    if !finer.shape.iter().zip(&spatial).any(is_long) {
        return None;
    }
    let halved: Vec<bool> = finer.shape.iter().zip(&spatial).map(|(&n, &spatial)| spatial && n > 1).collect();
    let halve = |n: &u64, halved: &bool| if *halved { n.div_ceil(2) } else { *n };
    let shape: Vec<u64> = finer.shape.iter().zip(&halved).map(|(n, h)| halve(n, h)).collect();
    // Blocks that cover whole blocks of a chunked finer level: no chunk is decoded for two of them.
    let chunk: Vec<u64> = finer.block.iter().zip(&halved).map(|(n, h)| halve(n, h)).collect();
    let is_chunked = array.levels.first().is_some_and(|l| l.chunk.is_some());
    let chunk = is_chunked.then_some(&chunk[..]);
    let factor = finer.factor.iter().zip(&halved).map(|(f, &h)| if h { f * 2.0 } else { *f }).collect();
    let by_axis = |yes: f64, no: f64| in_space(array, |axis| if halved[axis] { yes } else { no }, no);
    let level = Level {
        block: choose_blocks(&shape, &kinds(array), array.dtype, chunk),
        shape,
        chunk: None,
        origin: if array.meaning == Meaning::Labels { LevelOrigin::Mode } else { LevelOrigin::Mean },
        factor,
        world_from_voxel: finer.world_from_voxel.coarsened(by_axis(2.0, 1.0), by_axis(0.5, 0.0)),
    };
    Some((level, halved))
}

fn kinds(array: &ArrayInfo) -> Vec<AxisKind> {
    array.axes.iter().map(|a| a.kind).collect()
}

/// A value per spatial axis in the order x, y, z.
fn in_space(array: &ArrayInfo, of_axis: impl Fn(usize) -> f64, absent: f64) -> [f64; 3] {
    let [z, y, x] = array.spatial_axes();
    [x, y, z].map(|axis| axis.map_or(absent, &of_axis))
}

/// The finest made level such that it and all coarser ones stay within [`KEPT_PERCENT`] of the array.
fn kept_from(array: &ArrayInfo, made: &Range<usize>) -> usize {
    let elements = |level: &Level| level.shape.iter().map(|&n| u128::from(n)).product::<u128>();
    let limit = elements(&array.levels[0]) * u128::from(KEPT_PERCENT) / 100;
    let mut total = 0;
    made.clone()
        .rev()
        .take_while(|&l| {
            total += elements(&array.levels[l]);
            total <= limit
        })
        .last()
        .unwrap_or(made.end)
}

/// One sampled level beside each made one: every `factor`-th voxel, from the middle of the first group.
#[expect(clippy::cast_precision_loss, reason = "voxel counts below 2^53")]
fn add_sampled(array: &mut ArrayInfo, plan: &mut ArrayPlan) {
    let mut step = vec![1u64; array.axes.len()];
    for (halved, made) in plan.halved.iter().zip(plan.made.clone()) {
        for (step, &halved) in step.iter_mut().zip(halved) {
            *step *= if halved { 2 } else { 1 };
        }
        let samples: Vec<AxisRange> = step
            .iter()
            .zip(array.shape())
            .map(|(&step, &n)| {
                let start = ((step - 1) / 2).min(n - 1);
                AxisRange { start, count: (n - start).div_ceil(step), step }
            })
            .collect();
        let shape: Vec<u64> = samples.iter().map(|r| r.count).collect();
        let scale = in_space(array, |axis| samples[axis].step as f64, 1.0);
        let shift = in_space(array, |axis| samples[axis].start as f64, 0.0);
        let level = Level {
            block: choose_blocks(&shape, &kinds(array), array.dtype, None),
            shape,
            chunk: None,
            origin: LevelOrigin::Sampled,
            factor: array.levels[made].factor.clone(),
            world_from_voxel: array.levels[0].world_from_voxel.coarsened(scale, shift),
        };
        array.levels.push(level);
        plan.sampled.push(SampledLevel { of: 0, ranges: samples, is_kept: false });
    }
}
