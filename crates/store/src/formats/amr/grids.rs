//! Geometry of the grids of a block-structured mesh: levels of cells that each cover a part of the domain.
//!
//! This module knows neither files nor values. The coarsest grids span the domain. Cells of a finer level are
//! a whole number of times smaller, so that every grid lies on the lattice of its level (Berger & Colella, J.
//! Comput. Phys. 82, 1989). Axes are in the order z, y, x.

use std::ops::Range;

use array::{Affine, AxisRange, Error, Result};

/// Most grids of one adaptive mesh at one time.
pub(super) const MAX_GRIDS: usize = 65_536;
/// Most grids of one adaptive mesh at all its times.
pub(super) const MAX_GRIDS_OF_ALL_TIMES: usize = 1 << 20;
/// Most levels of one adaptive mesh.
pub(super) const MAX_TIERS: usize = 24;
/// Tolerance, in cells, of the position of a corner of a grid: rounding of single-precision corners.
const OFF_LATTICE: f64 = 0.25;
/// Most cells of a mesh level along one axis.
const MAX_CELLS: f64 = (1u64 << 40) as f64;
/// Most bytes of the finest level of an adaptive mesh, as if it covered the whole domain.
const MAX_LEVEL_BYTES: u128 = 1 << 62;

/// Location of samples in the mesh: cell centers or vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Centering {
    /// The middle of a cell: coarse cells hold whole finer ones.
    Cells,
    /// A corner of cells: every coarse sample is also one of the finer lattice.
    Vertices,
}

/// Grid as it is described in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct GridDescription {
    /// The lower corner of its first cell, or its first vertex, in world units.
    pub(super) lower: [f64; 3],
    /// Size of a cell, or distance between vertices.
    pub(super) spacing: [f64; 3],
    /// Samples.
    pub(super) count: [u64; 3],
}

/// Grid placed on the lattice of its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LatticeGrid {
    /// Number in the order of the file.
    pub(super) number: usize,
    /// First sample of the grid.
    pub(super) low: [u64; 3],
    /// One past its last.
    pub(super) high: [u64; 3],
    /// First sample of its stored array; before `low` where samples at its edges belong to other grids.
    pub(super) first: [u64; 3],
}

impl LatticeGrid {
    /// Whether any of these elements is in it.
    pub(super) fn meets(&self, selection: &[AxisRange]) -> bool {
        let axes = selection.iter().zip(self.low.iter().zip(&self.high));
        axes.into_iter().all(|(range, (&low, &high))| range.within(low, high).1 > 0)
    }
}

/// The grids of one level.
#[derive(Clone, Debug)]
pub(super) struct Tier {
    /// Samples of the whole domain at this level.
    pub(super) shape: [u64; 3],
    /// Number of samples of this level in one of the coarsest level.
    ratio: [u64; 3],
    pub(super) grids: Vec<LatticeGrid>,
    /// Boxes of the samples that belong to each grid itself, without its ghost zones; empty where no ghost
    /// zones are known.
    own: Vec<LatticeGrid>,
}

impl Tier {
    /// Boxes in the order in which values are searched: the parts that a grid owns first.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &LatticeGrid> {
        self.own.iter().chain(&self.grids)
    }
}

/// Grids of a mesh by level, the finest level first.
#[derive(Clone, Debug)]
pub(super) struct MeshGrids {
    pub(super) tiers: Vec<Tier>,
    pub(super) centering: Centering,
    /// Finer levels that had to be left out, as the whole domain in their cells is too large to be described.
    pub(super) left_out: usize,
    lower: [f64; 3],
    /// Distance between samples of the coarsest level, world units.
    spacing: [f64; 3],
}

impl MeshGrids {
    /// Builds the lattices of the levels and the positions of the grids on them.
    ///
    /// # Errors
    /// `Corrupt` if there are no grids, or if one is empty or lies on no lattice; `TooLarge` beyond the limits.
    pub(super) fn new(
        descriptions: &[GridDescription],
        centering: Centering,
        item_bytes: usize,
    ) -> Result<Self> {
        Self::at_times(&[descriptions], centering, item_bytes)?
            .pop()
            .ok_or_else(|| Error::internal("a mesh at no time"))
    }

    /// The grids of a mesh at several times, on the same levels of the same domain.
    ///
    /// # Errors
    /// Errors of [`new`](Self::new).
    pub(super) fn at_times(
        descriptions: &[&[GridDescription]],
        centering: Centering,
        item_bytes: usize,
    ) -> Result<Vec<Self>> {
        let most = descriptions.iter().map(|grids| grids.len()).max().unwrap_or(0);
        let all: usize = descriptions.iter().map(|grids| grids.len()).sum();
        if most > MAX_GRIDS || all > MAX_GRIDS_OF_ALL_TIMES {
            return Err(Error::too_large(format!(
                "expected at most {MAX_GRIDS} grids, and {MAX_GRIDS_OF_ALL_TIMES} at all times, found {most} and {all}"
            )));
        }
        let whole = Self::of_all(&descriptions.concat(), centering, item_bytes)?;
        let mut before = 0;
        let at_time = |grids: &&[GridDescription]| {
            let numbers = before..before + grids.len();
            before = numbers.end;
            whole.only(&numbers)
        };
        Ok(descriptions.iter().map(at_time).collect())
    }

    /// Returns the same levels with these grids only; renumbers the grids from 0.
    fn only(&self, numbers: &Range<usize>) -> Self {
        let counted = |grid: &LatticeGrid| LatticeGrid { number: grid.number - numbers.start, ..*grid };
        let tier = |tier: &Tier| {
            // They were placed in the order of their numbers.
            let [from, to] = [numbers.start, numbers.end]
                .map(|number| tier.grids.partition_point(|grid| grid.number < number));
            let grids = tier.grids[from..to].iter().map(counted).collect();
            Tier { grids, own: Vec::new(), ..*tier }
        };
        Self { tiers: self.tiers.iter().map(tier).collect(), ..*self }
    }

    /// Excludes ghost samples from the parts that grids own: `ghosts` has their numbers at the lower and the upper end of each axis, by
    /// the number of the grid. If grids overlap, values are those of the owner.
    pub(super) fn exclude_ghosts(&mut self, ghosts: &[[[u64; 2]; 3]]) {
        for tier in &mut self.tiers {
            let own = |grid: &LatticeGrid| {
                let [lower, upper] = [0, 1].map(|end| {
                    [0, 1, 2].map(|axis| ghosts.get(grid.number).map_or(0, |ghosts| ghosts[axis][end]))
                });
                let low = [0, 1, 2].map(|axis| grid.low[axis].saturating_add(lower[axis]));
                let high = [0, 1, 2].map(|axis| grid.high[axis].saturating_sub(upper[axis]));
                (0..3).all(|axis| low[axis] < high[axis]).then_some(LatticeGrid { low, high, ..*grid })
            };
            let owned: Vec<LatticeGrid> = tier.grids.iter().filter_map(own).collect();
            if owned != tier.grids {
                tier.own = owned;
            }
        }
    }

    fn of_all(descriptions: &[GridDescription], centering: Centering, item_bytes: usize) -> Result<Self> {
        if let Some(odd) = descriptions.iter().find(|grid| !grid.is_legal()) {
            return Err(Error::corrupt(format!(
                "expected grids with samples at finite places, found {odd:?}"
            )));
        }
        let spacing =
            [0, 1, 2].map(|axis| descriptions.iter().fold(0.0, |most, g| g.spacing[axis].max(most)));
        let mut ratios = descriptions.iter().map(|grid| grid.ratio(spacing)).collect::<Result<Vec<_>>>()?;
        let by_tier = ratios.clone();
        ratios.sort_unstable_by(|a, b| b.cmp(a));
        ratios.dedup();
        let coarsest = *ratios.last().ok_or_else(|| Error::corrupt("expected grids, found none"))?;
        if coarsest != [1; 3] || ratios.len() > MAX_TIERS {
            let found = ratios.len();
            return Err(Error::corrupt(format!(
                "expected up to {MAX_TIERS} levels over a coarsest one, found {found}"
            )));
        }
        nested(&ratios)?;
        let base = || {
            descriptions.iter().zip(&by_tier).filter(|(_, ratio)| **ratio == coarsest).map(|(grid, _)| grid)
        };
        let lower = [0, 1, 2].map(|a| base().fold(f64::INFINITY, |least, g| g.lower[a].min(least)));
        let upper = [0, 1, 2].map(|a| base().fold(f64::NEG_INFINITY, |most, g| g.upper(a).max(most)));
        let mut grids = Self { tiers: Vec::new(), centering, left_out: 0, lower, spacing };
        let cells = grids.on_lattice(upper, [1; 3])?;
        for ratio in ratios {
            let Some(shape) = grids.shape(cells, ratio) else {
                return Err(Error::too_large(format!(
                    "expected at most {MAX_CELLS} cells along an axis of a level"
                )));
            };
            let mut tier = Tier { shape, ratio, grids: Vec::new(), own: Vec::new() };
            for (number, grid) in
                descriptions.iter().enumerate().filter(|(number, _)| by_tier[*number] == ratio)
            {
                tier.grids.push(grids.place(number, grid, &tier)?);
            }
            grids.tiers.push(tier);
        }
        let bytes =
            |tier: &Tier| tier.shape.iter().map(|&n| u128::from(n)).product::<u128>() * item_bytes as u128;
        grids.left_out = grids.tiers.iter().take_while(|tier| bytes(tier) > MAX_LEVEL_BYTES).count();
        grids.tiers.drain(..grids.left_out);
        if grids.tiers.is_empty() {
            return Err(Error::too_large("expected a coarsest level below 2^62 bytes"));
        }
        Ok(grids)
    }

    /// Whether grids lie where those of another time do.
    pub(super) fn lie_as(&self, other: &Self) -> bool {
        self.tiers.iter().zip(&other.tiers).all(|(one, other)| {
            let bounds = |grid: &LatticeGrid| (grid.low, grid.high);
            one.grids.iter().map(bounds).eq(other.grids.iter().map(bounds))
        })
    }

    /// Samples along each axis at a level, of a domain of `cells` coarsest steps.
    fn shape(&self, cells: [u64; 3], ratio: [u64; 3]) -> Option<[u64; 3]> {
        let mut shape = [0; 3];
        for axis in 0..3 {
            let fine = match self.centering {
                Centering::Cells => cells[axis].checked_mul(ratio[axis])?,
                // `upper` is one step beyond the last vertex.
                Centering::Vertices => {
                    cells[axis].checked_sub(1)?.checked_mul(ratio[axis])?.checked_add(1)?
                }
            };
            #[expect(clippy::cast_precision_loss, reason = "compared with a bound")]
            let fits = fine as f64 <= MAX_CELLS;
            shape[axis] = Some(fine).filter(|_| fits)?;
        }
        Some(shape)
    }

    /// Returns the index of a position on a lattice, counted from the lower corner of the domain.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked"
    )]
    fn on_lattice(&self, place: [f64; 3], ratio: [u64; 3]) -> Result<[u64; 3]> {
        let mut at = [0; 3];
        for axis in 0..3 {
            let exact = (place[axis] - self.lower[axis]) / self.spacing[axis] * ratio[axis] as f64;
            let whole = exact.round();
            if !(0.0..=MAX_CELLS).contains(&whole) || (exact - whole).abs() > OFF_LATTICE {
                return Err(Error::corrupt(format!(
                    "expected a grid's corner on the lattice of its level, found it {exact} cells from the domain's"
                )));
            }
            at[axis] = whole as u64;
        }
        Ok(at)
    }

    fn place(&self, number: usize, description: &GridDescription, tier: &Tier) -> Result<LatticeGrid> {
        let low = self.on_lattice(description.lower, tier.ratio)?;
        let high = [0, 1, 2].map(|axis| low[axis] + description.count[axis]);
        if (0..3).any(|axis| high[axis] > tier.shape[axis]) {
            let shape = tier.shape;
            return Err(Error::corrupt(format!(
                "expected grids within {shape:?} cells, found one at {low:?} to {high:?}"
            )));
        }
        Ok(LatticeGrid { number, low, high, first: low })
    }

    /// Number of samples of one level in one of the next coarser level, `[z, y, x]`.
    pub(super) fn step(&self, tier: usize) -> [u64; 3] {
        match (self.tiers.get(tier), self.tiers.get(tier + 1)) {
            (Some(fine), Some(coarse)) => [0, 1, 2].map(|axis| fine.ratio[axis] / coarse.ratio[axis]),
            _ => [1; 3],
        }
    }

    /// Number of samples of the finest level in one of this level, `[z, y, x]`.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    pub(super) fn factor(&self, tier: usize) -> [f64; 3] {
        let (finest, this) = (self.tiers[0].ratio, self.tiers[tier].ratio);
        [0, 1, 2].map(|axis| (finest[axis] / this[axis]) as f64)
    }

    /// Size of a sample and position of the first one, along one axis.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    pub(super) fn along(&self, tier: usize, axis: usize) -> (f64, f64) {
        let step = self.spacing[axis] / self.tiers[tier].ratio[axis] as f64;
        let first = match self.centering {
            Centering::Cells => self.lower[axis] + step / 2.0,
            Centering::Vertices => self.lower[axis],
        };
        (step, first)
    }

    /// Returns the affine map from the samples of a level to world positions.
    pub(super) fn world_from_voxel(&self, tier: usize) -> Affine {
        let xyz = [2, 1, 0].map(|axis| self.along(tier, axis));
        Affine::from_spacing(xyz.map(|(step, _)| step), xyz.map(|(_, first)| first))
    }

    /// Lower and upper corner, x, y, z, of samples of a level from `low` to before `high`: those of their cells, or the outermost
    /// vertices themselves.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    pub(super) fn corners(&self, tier: usize, low: [u64; 3], high: [u64; 3]) -> [[f64; 3]; 2] {
        let beyond = u64::from(self.centering == Centering::Vertices);
        let step = |axis: usize| self.spacing[axis] / self.tiers[tier].ratio[axis] as f64;
        [low, high.map(|end| end - beyond)]
            .map(|corner| [2, 1, 0].map(|axis| self.lower[axis] + step(axis) * corner[axis] as f64))
    }

    /// Returns the position of a sample of a level among the samples of the next coarser level, along one
    /// axis. `step` is the refinement ratio of the two levels.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    pub(super) fn in_coarser(&self, step: u64, index: u64) -> f64 {
        match self.centering {
            Centering::Cells => (index as f64 + 0.5) / step as f64 - 0.5,
            Centering::Vertices => index as f64 / step as f64,
        }
    }
}

impl GridDescription {
    fn is_legal(&self) -> bool {
        let is_finite = self.lower.iter().chain(&self.spacing).all(|v| v.is_finite());
        is_finite && self.spacing.iter().all(|&s| s > 0.0) && self.count.iter().all(|&n| 0 < n && n < 1 << 40)
    }

    /// One step beyond its last sample.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    fn upper(&self, axis: usize) -> f64 {
        self.lower[axis] + self.spacing[axis] * self.count[axis] as f64
    }

    /// Number of cells of this level in one of the coarsest level.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    fn ratio(&self, coarsest: [f64; 3]) -> Result<[u64; 3]> {
        let mut ratio = [0; 3];
        for axis in 0..3 {
            let exact = coarsest[axis] / self.spacing[axis];
            let whole = exact.round();
            if !(1.0..=MAX_CELLS).contains(&whole) || (exact / whole - 1.0).abs() > 0.01 {
                return Err(Error::corrupt(format!(
                    "expected cells a whole number of times smaller than the coarsest, found {exact} times"
                )));
            }
            ratio[axis] = whole as u64;
        }
        Ok(ratio)
    }
}

/// Checks that each level divides the next coarser one evenly; the finest comes first.
fn nested(ratios: &[[u64; 3]]) -> Result<()> {
    let divides = |pair: &[[u64; 3]]| (0..3).all(|axis| pair[0][axis].is_multiple_of(pair[1][axis]));
    match ratios.windows(2).find(|pair| !divides(pair)) {
        None => Ok(()),
        Some(pair) => Err(Error::corrupt(format!(
            "expected cells of each level to divide those of the next coarser one, found {:?} and {:?} to the coarsest",
            pair[0], pair[1]
        ))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever a file tells is placed within its level, or refused.
        #[test]
        fn any_grids_are_placed_or_refused(
            described in prop::collection::vec(any::<([f64; 3], [f64; 3], [u64; 3])>(), 0..4),
            sane in prop::collection::vec((0u32..9, -2i32..9, 0u64..9), 0..6),
            is_cells: bool,
        ) {
            let centering = if is_cells { Centering::Cells } else { Centering::Vertices };
            let odd = described.into_iter().map(|(lower, spacing, count)| GridDescription { lower, spacing, count });
            let near = sane.into_iter().map(|(halved, lower, count)| GridDescription {
                lower: [f64::from(lower) / 2.0; 3],
                spacing: [0.5f64.powi(halved.cast_signed()); 3],
                count: [count; 3],
            });
            for described in [odd.clone().chain(near.clone()).collect::<Vec<_>>(), near.collect()] {
                let Ok(grids) = MeshGrids::new(&described, centering, 8) else { continue };
                for tier in &grids.tiers {
                    let fits = |g: &LatticeGrid| (0..3).all(|a| g.low[a] < g.high[a] && g.high[a] <= tier.shape[a]);
                    prop_assert!(tier.grids.iter().all(fits));
                }
            }
        }
    }

    fn described(lower: [f64; 3], spacing: f64, count: [u64; 3]) -> GridDescription {
        GridDescription { lower, spacing: [spacing; 3], count }
    }

    #[test]
    fn grids_lie_on_the_lattices_of_their_levels_the_finest_first() {
        let base = described([-1.0; 3], 0.25, [8; 3]);
        let fine = described([-0.5, 0.0, 0.0], 0.125, [4, 6, 8]);
        let grids = MeshGrids::new(&[base, fine], Centering::Cells, 4).unwrap();
        assert_eq!(grids.tiers.iter().map(|t| t.shape).collect::<Vec<_>>(), [[16; 3], [8; 3]]);
        assert_eq!(
            grids.tiers[0].grids,
            [LatticeGrid { number: 1, low: [4, 8, 8], high: [8, 14, 16], first: [4, 8, 8] }]
        );
        assert_eq!((grids.step(0), grids.factor(1)), ([2; 3], [2.0; 3]));
        assert_eq!(grids.world_from_voxel(0).apply([0.0; 3]), [-0.9375; 3]);
        assert_eq!(grids.world_from_voxel(1).apply([0.0; 3]), [-0.875; 3]);
        assert_eq!([0, 1, 2].map(|i| grids.in_coarser(2, i)), [-0.25, 0.25, 0.75]);
    }

    #[test]
    fn vertices_of_a_coarse_level_are_also_vertices_of_the_finer() {
        let base = described([0.0; 3], 8.0, [5; 3]);
        let fine = described([8.0; 3], 4.0, [5; 3]);
        let grids = MeshGrids::new(&[base, fine], Centering::Vertices, 8).unwrap();
        assert_eq!(grids.tiers.iter().map(|t| t.shape).collect::<Vec<_>>(), [[9; 3], [5; 3]]);
        assert_eq!(grids.tiers[0].grids[0].low, [2; 3]);
        assert_eq!(grids.world_from_voxel(0).apply([2.0; 3]), [8.0; 3]);
    }

    #[test]
    fn what_is_no_mesh_is_told() {
        let new = |described: &[GridDescription]| {
            MeshGrids::new(described, Centering::Cells, 4).map(|_| ()).unwrap_err().to_string()
        };
        let base = described([0.0; 3], 1.0, [8; 3]);
        assert!(new(&[]).contains("found none"));
        assert!(new(&[base, described([0.3; 3], 0.5, [2; 3])]).contains("lattice"));
        assert!(new(&[base, described([0.0; 3], 0.7, [2; 3])]).contains("whole number"));
        assert!(new(&[base, described([7.0; 3], 0.5, [8; 3])]).contains("within"));
        assert!(new(&[base, described([f64::NAN; 3], 0.5, [8; 3])]).contains("finite"));
        assert!(
            new(&[base, described([0.0; 3], 0.5, [2; 3]), described([0.0; 3], 1.0 / 3.0, [2; 3])])
                .contains("divide")
        );
    }

    #[test]
    fn levels_too_large_to_be_described_are_left_out() {
        let base = described([0.0; 3], 1.0, [256; 3]);
        let deep = described([0.0; 3], 1.0 / f64::from(1 << 20), [16; 3]);
        let grids =
            MeshGrids::new(&[base, described([0.0; 3], 0.5, [16; 3]), deep], Centering::Cells, 8).unwrap();
        assert_eq!((grids.left_out, grids.tiers[0].shape), (1, [512; 3]));
    }
}
