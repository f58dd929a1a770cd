//! Preview level of a mesh: the values at the corners of its coarsest blocks only.
//!
//! Each block is treated as one cell with eight values, those of its outermost samples, so a mesh of N blocks needs 8 N values,
//! whatever the size of the blocks. Samples lie on a lattice across the domain, whose spacing is the usual length of a block. If
//! blocks have one size and tile the domain, as those of FLASH do, each sample is the corner of a block and has its value; if
//! several blocks meet there, that of the first one. Elsewhere the sample lies in a block and is interpolated linearly between
//! its corners.
//!
//! The level is made only if the coarsest level of a mesh is large; otherwise the coarsest level is the preview. Blocks of finer
//! levels are not used: their corners would cost more than the coarsest level, and show no more.

use array::{AxisRange, DType, Level, LevelOrigin, Region, Result, Selection, Target};

use super::composite::{AxisInterpolation, CompositeReader, hole, resample};
use super::grids::{Centering, LatticeGrid, MAX_GRIDS, MeshGrids, Tier};
use crate::formats::common::describe;
use crate::pyramid::COARSEST_SIDE;

/// Fewest corner samples of a level of corners.
const LEAST_SAMPLES: u64 = 64;
/// Most corner samples of a level of corners: all eight of every block.
const MAX_CORNER_SAMPLES: u64 = 8 * MAX_GRIDS as u64;
/// Least ratio of all samples to the corner samples for which a level of corners is made.
const LEAST_SAVING: u64 = 4;
/// Largest ratio of the samples of all blocks to those of the domain: ghost zones overlap, and the ratio bounds the cost of reads.
const MOST_OVERLAP: u128 = 4;
/// Distance by which a block extends beyond its outermost samples, in samples.
const BEYOND: f64 = 0.5;

/// Sample positions along one axis, in units of samples of the coarsest level.
#[derive(Clone, Copy, Debug, PartialEq)]
struct AxisLattice {
    count: u64,
    first: f64,
    step: f64,
}

/// The lattice of a level of corners, z, y, x.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CornerLattice([AxisLattice; 3]);

impl CornerLattice {
    /// Returns the lattice of a mesh; `None` if its coarsest level is small enough for a preview.
    pub(super) fn of(grids: &MeshGrids) -> Option<Self> {
        let tier = grids.tiers.last()?;
        let all = tier.shape.iter().fold(1, |n: u64, &side| n.saturating_mul(side));
        let is_large = tier.shape.iter().any(|&side| side > COARSEST_SIDE);
        let lattices = [0, 1, 2].map(|axis| AxisLattice::of(tier, axis, grids.centering));
        let samples = lattices.iter().fold(1, |n: u64, lattice| n.saturating_mul(lattice.count));
        let is_useful =
            (LEAST_SAMPLES..=MAX_CORNER_SAMPLES).contains(&samples) && samples <= all / LEAST_SAVING;
        let volume = |grid: &LatticeGrid| sides(grid).iter().map(|&side| u128::from(side)).product::<u128>();
        let is_tiled = tier.grids.iter().map(volume).sum::<u128>() <= MOST_OVERLAP * u128::from(all);
        (is_large && is_useful && is_tiled).then_some(Self(lattices))
    }

    /// Samples along each axis.
    fn shape(&self) -> [u64; 3] {
        self.0.map(|lattice| lattice.count)
    }

    /// Describes the level, without an axis of time.
    pub(super) fn level(&self, grids: &MeshGrids, dtype: DType, axes: &[array::Axis]) -> Level {
        let coarsest = grids.tiers.len() - 1;
        let factor = grids.factor(coarsest);
        let factor = [0, 1, 2].map(|axis| factor[axis] * self.0[axis].step);
        let (scale, shift) =
            ([2, 1, 0].map(|axis| self.0[axis].step), [2, 1, 0].map(|axis| self.0[axis].first));
        let world = grids.world_from_voxel(coarsest).coarsened(scale, shift);
        Level {
            origin: LevelOrigin::Corners,
            factor: factor.to_vec(),
            ..describe::level_zero(dtype, axes, &self.shape(), None, world)
        }
    }

    /// Reads samples: of each block that has one of them its corners, once.
    ///
    /// # Errors
    /// Errors of the files; `Cancelled`.
    pub(super) fn read(
        &self,
        reader: &CompositeReader<'_>,
        selection: &Selection,
        mut into: Region,
    ) -> Result<()> {
        let (Some(tier), &[z, y, x]) = (reader.grids.tiers.last(), selection.ranges()) else {
            return Err(array::Error::internal("expected corners of a mesh in space"));
        };
        let item = reader.dtype.size_bytes();
        let hole = hole(reader.dtype);
        let mut values = hole.repeat(into.size_bytes() / item);
        let mut is_known = vec![false; into.size_bytes() / item];
        let overlaps: Vec<GridOverlap<'_>> = tier
            .grids
            .iter()
            .filter_map(|grid| GridOverlap::of(grid, self, [z, y, x]))
            .filter(|overlap| overlap.claim([z, y, x], &mut is_known))
            .collect();
        is_known.fill(false);
        let mut rest = overlaps.as_slice();
        while !rest.is_empty() {
            let (together, after) = rest.split_at(run(reader, rest));
            rest = after;
            reader.cancel.check()?;
            let corners = read_corners(reader, together)?;
            let size = corners.len() / together.len();
            for (overlap, corners) in together.iter().zip(corners.chunks_exact(size.max(1))) {
                let own = resample(corners, &overlap.between(self, [z, y, x]), reader.dtype);
                overlap.copy_new(&own, item, [z, y, x], &mut is_known, &mut values);
            }
        }
        into.write_all(&values)
    }
}

impl AxisLattice {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most as many as samples of the coarsest level"
    )]
    fn of(tier: &Tier, axis: usize, centering: Centering) -> Self {
        let mut sides: Vec<u64> = tier.grids.iter().map(|grid| grid.high[axis] - grid.low[axis]).collect();
        let middle = sides.len() / 2;
        let usual = if sides.is_empty() { 1 } else { *sides.select_nth_unstable(middle).1 };
        // Cells end half a cell beyond their middles; vertices are the ends.
        let (length, side, first) = match centering {
            Centering::Cells => (tier.shape[axis], usual, -BEYOND),
            Centering::Vertices => (tier.shape[axis] - 1, usual.saturating_sub(1), 0.0),
        };
        if tier.shape[axis] == 1 {
            return Self { count: 1, first: 0.0, step: 1.0 };
        }
        let blocks = (length as f64 / side.max(1) as f64).round().max(1.0);
        Self { count: blocks as u64 + 1, first, step: length as f64 / blocks }
    }

    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    fn at(&self, index: u64) -> f64 {
        self.first + index as f64 * self.step
    }

    /// Which of the indices of `range` lie in a block from `low` to before `high`: the first one and how many.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    fn within(&self, range: AxisRange, low: u64, high: u64) -> (u64, u64) {
        let place = |index: u64| self.at(range.index(index));
        let (low, high) = (low as f64 - BEYOND, high as f64 - BEYOND);
        let first = partition(range.count, |index| place(index) < low - ROUNDING);
        let end = partition(range.count, |index| place(index) <= high + ROUNDING);
        (first, end.saturating_sub(first))
    }
}

/// Tolerance for the rounding of sample positions, in samples of the coarsest level.
const ROUNDING: f64 = 1e-6;

/// Counts the leading indices below `count` for which the condition holds.
fn partition(count: u64, is_so: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_so(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// A block, and which of the samples that are read lie in it.
struct GridOverlap<'a> {
    grid: &'a LatticeGrid,
    /// Position of the first sample in the read box, and number of samples, per axis.
    samples: [(u64, u64); 3],
}

impl<'a> GridOverlap<'a> {
    /// `None` where the block has none of them.
    fn of(grid: &'a LatticeGrid, corners: &CornerLattice, ranges: [AxisRange; 3]) -> Option<Self> {
        let samples =
            [0, 1, 2].map(|axis| corners.0[axis].within(ranges[axis], grid.low[axis], grid.high[axis]));
        samples.iter().all(|(_, count)| *count > 0).then_some(Self { grid, samples })
    }

    /// Returns the positions of the samples among the block's corners, per axis.
    fn between(&self, corners: &CornerLattice, ranges: [AxisRange; 3]) -> [AxisInterpolation; 3] {
        [0, 1, 2].map(|axis| {
            let (first, count) = self.samples[axis];
            #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
            let (low, reach) = (self.grid.low[axis] as f64, (sides(self.grid)[axis] - 1).max(1) as f64);
            let place = |index: u64| (corners.0[axis].at(ranges[axis].index(index)) - low) / reach;
            AxisInterpolation::of_all((first..first + count).map(place), corners_along(self.grid, axis))
        })
    }

    /// Positions in the read box, C order.
    fn locations(&self, ranges: [AxisRange; 3]) -> impl Iterator<Item = usize> {
        let [z, y, x] = self.samples;
        let along = |(first, count): (u64, u64)| first..first + count;
        let flat = move |z: u64, y: u64, x: u64| (z * ranges[1].count + y) * ranges[2].count + x;
        let rows = along(z).flat_map(move |z| along(y).map(move |y| (z, y)));
        rows.flat_map(move |(z, y)| {
            along(x).map(move |x| usize::try_from(flat(z, y, x)).unwrap_or(usize::MAX))
        })
    }

    /// Takes the samples that no block before has; false where all are taken.
    fn claim(&self, ranges: [AxisRange; 3], is_known: &mut [bool]) -> bool {
        let mut has_new = false;
        for place in self.locations(ranges) {
            has_new |= is_known.get_mut(place).is_some_and(|known| !std::mem::replace(known, true));
        }
        has_new
    }

    /// Writes the samples that no block before has; `own` are the block's, C order.
    fn copy_new(
        &self,
        own: &[u8],
        item: usize,
        ranges: [AxisRange; 3],
        is_known: &mut [bool],
        values: &mut [u8],
    ) {
        for (place, value) in self.locations(ranges).zip(own.chunks_exact(item)) {
            if is_known.get_mut(place).is_some_and(|known| !std::mem::replace(known, true)) {
                values[place * item..][..item].copy_from_slice(value);
            }
        }
    }
}

fn sides(grid: &LatticeGrid) -> [u64; 3] {
    [0, 1, 2].map(|axis| grid.high[axis] - grid.low[axis])
}

/// Number of corners of a block along an axis: 1 for a thin one.
fn corners_along(grid: &LatticeGrid, axis: usize) -> u64 {
    sides(grid)[axis].min(2)
}

/// How many of the first blocks are alike and follow one another in one array, so that one read gives all their corners.
fn run(reader: &CompositeReader<'_>, overlaps: &[GridOverlap<'_>]) -> usize {
    let place = |overlap: &GridOverlap<'_>| reader.locations.get(overlap.grid.number).copied();
    let follows = |pair: &[GridOverlap<'_>]| {
        let (Some(a), Some(b)) = (place(&pair[0]), place(&pair[1])) else { return false };
        let (Some(before), Some(entry)) = (a.entry, b.entry) else { return false };
        (a.file, a.array, before + 1) == (b.file, b.array, entry)
            && sides(pair[0].grid) == sides(pair[1].grid)
    };
    1 + overlaps.windows(2).take_while(|pair| follows(pair)).count()
}

/// The corners of blocks that make a [`run`], block by block, C order.
fn read_corners(reader: &CompositeReader<'_>, overlaps: &[GridOverlap<'_>]) -> Result<Vec<u8>> {
    let Some(first) = overlaps.first() else { return Ok(Vec::new()) };
    let own = [0, 1, 2].map(|axis| {
        let side = sides(first.grid)[axis];
        AxisRange { start: 0, count: corners_along(first.grid, axis), step: (side - 1).max(1) }
    });
    let shape = [overlaps.len() as u64, own[0].count, own[1].count, own[2].count];
    let (target, region) = Target::new(&shape, reader.dtype.size_bytes())?;
    reader.read_stored(first.grid, overlaps.len() as u64, &own, region)?;
    target.into_vec()
}
