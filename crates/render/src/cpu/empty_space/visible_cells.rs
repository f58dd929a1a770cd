//! Visible cells of a block: the distance of each cell to the nearest visible one.

use std::sync::Arc;

use crate::blocks::cell_stats::CellStats;
use crate::blocks::memo::{MEMO_SIZE, Memo};
use crate::cpu::empty_space::sampling_rate::SamplingRates;
use crate::cpu::table::{RangeVisibility, TransferTable};

/// Visibility of the cells of a block.
#[derive(Debug, PartialEq, Eq)]
pub enum VisibleCells {
    /// Nothing is visible: all values lie in one gap between visible ones; `None` if there is no value.
    Hidden {
        /// Number of the gap, in the order of values.
        gap: Option<u32>,
    },
    /// Everything may be visible, and all cells are alike. `bent` if opacity is nonlinear.
    Full {
        /// See [`VisibleCells::All`].
        bent: bool,
    },
    /// Per cell the distance to the nearest visible one: the larger of the steps along z, y, x; 0 for visible
    /// cells. With [`BENT`](crate::device::BENT). C order.
    Cells(Vec<u8>),
}

/// Bit of cells in which opacity is nonlinear, and of those around them, because a run of samples may end in
/// a neighboring cell.
pub(crate) const BENT: u8 = 0x80;

/// Farthest distance that is stored.
const FARTHEST: u8 = 0x7F;

impl VisibleCells {
    /// `skip_empty`: skip what is hidden.
    pub(crate) fn new(stats: CellStats<'_>, table: &TransferTable, skip_empty: bool) -> Self {
        let shape = stats.shape;
        let mut visibilities: Vec<RangeVisibility> =
            stats.ranges.iter().map(|&range| table.visibility_of(range)).collect();
        show_between_gaps(&mut visibilities, shape);
        let has = |visibility: RangeVisibility| visibilities.contains(&visibility);
        if skip_empty && !has(RangeVisibility::Even) && !has(RangeVisibility::Bent) {
            return Self::Hidden { gap: visibilities.iter().find_map(|visibility| visibility.gap()) };
        }
        let is_mixed = visibilities.iter().any(|visibility| visibility.is_hidden())
            || has(RangeVisibility::Bent) && has(RangeVisibility::Even);
        if !skip_empty || !is_mixed {
            return Self::Full { bent: has(RangeVisibility::Bent) };
        }
        let mut cells = distances(&visibilities.iter().map(|s| !s.is_hidden()).collect::<Vec<_>>(), shape);
        cells.iter_mut().for_each(|cell| *cell = (*cell).min(FARTHEST));
        if has(RangeVisibility::Bent) {
            let bent = distances(
                &visibilities.iter().map(|&s| s == RangeVisibility::Bent).collect::<Vec<_>>(),
                shape,
            );
            for (cell, bent) in cells.iter_mut().zip(bent) {
                *cell |= if bent <= 1 { BENT } else { 0 };
            }
        }
        Self::Cells(cells)
    }

    /// Returns the gap between visible values that contains all of the block.
    pub(crate) fn gap(&self) -> Option<u32> {
        if let Self::Hidden { gap } = self { *gap } else { None }
    }
}

/// Neighbors share the voxels between them, so that values stay in one gap from one hidden cell to the next.
/// This does not hold if those voxels are missing: such cells count as visible.
fn show_between_gaps(visibilities: &mut [RangeVisibility], [nz, ny, nx]: [usize; 3]) {
    let Some(gap) = visibilities.iter().find_map(|visibility| visibility.gap()) else { return };
    if visibilities.iter().all(|visibility| visibility.gap().is_none_or(|other| other == gap)) {
        return;
    }
    let around = |i: usize, n: usize| i.saturating_sub(1)..(i + 2).min(n);
    let place = |i: usize| [i / (ny * nx), i / nx % ny, i % nx];
    let differs = |i: usize, gap: u32| {
        let [z, y, x] = place(i);
        let near = around(z, nz).flat_map(|z| around(y, ny).map(move |y| (z * ny + y) * nx));
        let mut near = near.flat_map(|row| around(x, nx).map(move |x| row + x));
        near.any(|j| visibilities[j].gap().is_some_and(|other| other != gap))
    };
    let shown: Vec<usize> = (0..visibilities.len())
        .filter(|&i| visibilities[i].gap().is_some_and(|gap| differs(i, gap)))
        .collect();
    shown.into_iter().for_each(|i| visibilities[i] = RangeVisibility::Bent);
}

/// The plans of a block for the last few transfer functions.
pub(crate) type SamplingPlans = Memo<u64, SamplingPlan, MEMO_SIZE>;

/// Visible cells of a block for a transfer function, and their sampling rates.
#[derive(Debug)]
pub(crate) struct SamplingPlan {
    pub(crate) field: Arc<VisibleCells>,
    pub(crate) rates: SamplingRates,
}

impl SamplingPlan {
    pub(crate) fn new(stats: CellStats<'_>, table: &TransferTable, skip_empty: bool) -> Self {
        let field = Arc::new(VisibleCells::new(stats, table, skip_empty));
        Self { rates: SamplingRates::new(stats, table, &field, skip_empty), field }
    }
}

/// Chessboard distances by one sweep forward and one backward over half of the neighbors each.
pub(crate) fn distances(visible: &[bool], [nz, ny, nx]: [usize; 3]) -> Vec<u8> {
    // A border of far cells makes tests at the edges unnecessary.
    let (py, px) = (ny + 2, nx + 2);
    let index = |z: usize, y: usize, x: usize| ((z + 1) * py + y + 1) * px + x + 1;
    let mut padded = vec![u8::MAX; (nz + 2) * py * px];
    for z in 0..nz {
        for y in 0..ny {
            for x in 0..nx {
                if visible[(z * ny + y) * nx + x] {
                    padded[index(z, y, x)] = 0;
                }
            }
        }
    }
    let plane = py * px;
    let before: Vec<usize> = (0..13).map(|i| (i / 9) * plane + (i / 3 % 3) * px + i % 3).collect();
    let center = plane + px + 1;
    let mut relax = |at: usize, backward: bool| {
        for offset in &before {
            let other = if backward { at + center - offset } else { at - center + offset };
            padded[at] = padded[at].min(padded[other].saturating_add(1));
        }
    };
    let cells = || (0..nz).flat_map(move |z| (0..ny).flat_map(move |y| (0..nx).map(move |x| (z, y, x))));
    for (z, y, x) in cells() {
        relax(index(z, y, x), false);
    }
    for (z, y, x) in cells() {
        relax(index(nz - 1 - z, ny - 1 - y, nx - 1 - x), true);
    }
    cells().map(|(z, y, x)| padded[index(z, y, x)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_equal_a_search_over_all_cells() {
        let shape = [5, 7, 6];
        let [nz, ny, nx] = shape;
        let mut visible = vec![false; nz * ny * nx];
        for i in [3, 77, 200] {
            visible[i] = true;
        }
        let place = |i: usize| [i / (ny * nx), i / nx % ny, i % nx];
        let found = distances(&visible, shape);
        for (i, &distance) in found.iter().enumerate() {
            let apart = |j: usize| (0..3).map(|a| place(i)[a].abs_diff(place(j)[a])).max().unwrap();
            let expected = [3, 77, 200].map(apart).into_iter().min().unwrap();
            assert_eq!(usize::from(distance), expected, "cell {:?}", place(i));
        }
    }
}
