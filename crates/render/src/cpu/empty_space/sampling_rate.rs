//! Sampling rates of the cells of a block, together with the distance to the nearest visible cell: the input
//! of a march.
//!
//! Two or four steps are taken at once if values and opacity vary nearly evenly: the contribution of the
//! samples in between is derived from the curvature of the surrounding values. The error is bounded by the
//! first and second differences of values in a cell
//! ([`ValueVariation`](crate::blocks::cell_stats::ValueVariation)) and by the slope of opacity and color over
//! the cell's range ([`TransferTable::sampling_rate_of`]).

use crate::blocks::cell_stats::CellStats;
use crate::cpu::empty_space::visible_cells::VisibleCells;
use crate::cpu::table::TransferTable;
use crate::simd::READ_AHEAD;

/// Opacity is nonlinear: intervals between samples are cut into parts.
pub(crate) const BENT: u8 = 0;
/// One sample a step.
pub(crate) const SINGLE: u8 = 1;
/// One for two steps.
pub(crate) const DOUBLE: u8 = 2;
/// One for four.
pub(crate) const QUADRUPLE: u8 = 3;

/// Factor of the distance in a byte of [`SamplingRates::Cells`]. The byte is the distance to the nearest visible
/// cell, as in [`VisibleCells::Cells`], times this factor, plus the rate.
pub(crate) const RATES: u8 = 4;

/// Farthest distance that is stored.
const FARTHEST: u8 = u8::MAX / RATES;

/// Sampling rates of the cells of a block, and the distance to the nearest visible cell.
#[derive(Debug)]
pub(crate) enum SamplingRates {
    /// All cells are visible and alike.
    Even(u8),
    /// Distance times [`RATES`] and rate by cell, the slowest of those around it, because a run of samples
    /// may end in a neighboring cell. C order; [`READ_AHEAD`] bytes follow.
    Cells(Vec<u8>),
}

impl SamplingRates {
    /// Creates the rates for `field`, from the value ranges and variations of the block's cells; `leaps`
    /// allows several steps at once.
    pub(crate) fn new(
        stats: CellStats<'_>,
        table: &TransferTable,
        field: &VisibleCells,
        leaps: bool,
    ) -> Self {
        if matches!(field, VisibleCells::Hidden { .. }) {
            return Self::Even(QUADRUPLE);
        }
        let fastest = if leaps { QUADRUPLE } else { SINGLE };
        let own = stats.ranges.iter().zip(stats.variations);
        let own = own.map(|(&range, variation)| table.sampling_rate_of(range, variation).min(fastest));
        let mut cells = slowest_around(own.collect(), stats.shape);
        let is_even = cells.iter().all(|&rate| rate == cells[0]);
        match field {
            VisibleCells::Cells(distances) => {
                for (cell, distance) in cells.iter_mut().zip(distances) {
                    *cell += RATES * (distance & !crate::cpu::empty_space::visible_cells::BENT).min(FARTHEST);
                }
            }
            _ if is_even => return Self::Even(cells[0]),
            _ => {}
        }
        cells.resize(cells.len() + READ_AHEAD, 0);
        Self::Cells(cells)
    }
}

/// Returns the least of each cell and its neighbors, axis by axis.
fn slowest_around(mut cells: Vec<u8>, [nz, ny, nx]: [usize; 3]) -> Vec<u8> {
    for (count, stride) in [(nx, 1), (ny, nx), (nz, ny * nx)] {
        let all = cells.clone();
        for (i, cell) in cells.iter_mut().enumerate() {
            let at = i / stride % count;
            if at > 0 {
                *cell = (*cell).min(all[i - stride]);
            }
            if at + 1 < count {
                *cell = (*cell).min(all[i + stride]);
            }
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_as_slow_as_the_slowest_beside_it() {
        let shape = [3, 4, 5];
        let mut cells = vec![QUADRUPLE; 60];
        cells[(4 + 2) * 5 + 1] = BENT;
        let found = slowest_around(cells, shape);
        for (i, &rate) in found.iter().enumerate() {
            let at = [i / 20, i / 5 % 4, i % 5];
            let is_beside = [1, 2, 1].iter().zip(at).all(|(&a, b)| b.abs_diff(a) <= 1);
            assert_eq!(rate, if is_beside { BENT } else { QUADRUPLE }, "{at:?}");
        }
    }
}
