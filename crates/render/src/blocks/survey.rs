//! Survey of a block's cells: value ranges, and first and second differences.
//!
//! Voxels are read row by row, column by column, independently of their values, with the vector instructions
//! of the machine.

use crate::blocks::cell_stats::ValueVariation;
use crate::blocks::resident::{CELL, Resident};
use crate::blocks::voxel::{MissingValues, Voxel};
use crate::simd::{Simd, SimdJob};

/// Finds value ranges and variations of the cells that a part of the ghost voxels touches; part 0 is the whole block.
pub(crate) struct Survey<'a, T> {
    pub(crate) block: &'a mut Resident<T>,
    pub(crate) part: usize,
    pub(crate) missing: &'a MissingValues<T>,
}

impl<T: Voxel> SimdJob for Survey<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { block, part, missing } = self;
        let missing = block.has_missing.then_some(missing);
        let (layout, all) = (block.layout, block.layout.cells);
        let first =
            [(0, 4), (1, 2), (2, 1)].map(|(axis, bit)| if part & bit == 0 { 0 } else { all[axis] - 1 });
        let columns = first[2] * CELL..layout.extent[2];
        let mut ranges =
            RangeRows { low: vec![T::HIGHEST; columns.len()], high: vec![T::LOWEST; columns.len()] };
        let mut runs = DifferenceRows {
            rises: vec![0; columns.len()],
            bows: vec![0; columns.len()],
            first: columns.start,
        };
        for cz in first[0]..all[0] {
            for cy in first[1]..all[1] {
                ranges.forget();
                runs.forget();
                for z in cz * CELL..layout.extent[0].min(cz * CELL + CELL + 1) {
                    for y in cy * CELL..layout.extent[1].min(cy * CELL + CELL + 1) {
                        let row = layout.index(z, y, columns.start)..layout.index(z, y, columns.end);
                        ranges.add(&block.data[row], missing);
                        // Every step is taken where voxels are missing.
                        if missing.is_none() {
                            runs.add(block, z, y);
                        }
                    }
                }
                for cx in first[2]..all[2] {
                    let from = (cx - first[2]) * CELL;
                    let span = from..columns.len().min(from + CELL + 1);
                    let cell = (cz * all[1] + cy) * all[2] + cx;
                    block.cells[cell] = ranges.of(span.clone());
                    block.variations[cell] = runs.of(span);
                }
            }
        }
    }
}

/// Smallest and largest values of some rows, column by column.
struct RangeRows<T> {
    low: Vec<T>,
    high: Vec<T>,
}

impl<T: Voxel> RangeRows<T> {
    #[inline(always)]
    fn forget(&mut self) {
        self.low.fill(T::HIGHEST);
        self.high.fill(T::LOWEST);
    }

    /// Extends the ranges by a row; comparisons with NaN are false, so NaN never counts.
    #[inline(always)]
    fn add(&mut self, row: &[T], missing: Option<&MissingValues<T>>) {
        for ((low, high), &value) in self.low.iter_mut().zip(&mut self.high).zip(row) {
            if let Some(missing) = missing
                && missing.is_missing(value)
            {
                continue;
            }
            *low = if value < *low { value } else { *low };
            *high = if value > *high { value } else { *high };
        }
    }

    /// Returns the value range of some columns, rounded outward.
    #[expect(clippy::cast_possible_truncation, reason = "rounded outward right after")]
    fn of(&self, columns: std::ops::Range<usize>) -> [f32; 2] {
        let low = self.low[columns.clone()].iter().fold(T::HIGHEST, |a, &b| if b < a { b } else { a });
        let high = self.high[columns].iter().fold(T::LOWEST, |a, &b| if b > a { b } else { a });
        if low > high {
            return [f32::INFINITY, f32::NEG_INFINITY];
        }
        let (low, high) = (low.to_f64(), high.to_f64());
        let (a, b) = (low as f32, high as f32);
        [
            if f64::from(a) > low { a.next_down() } else { a },
            if f64::from(b) < high { b.next_up() } else { b },
        ]
    }
}

/// Differences of values at the voxels of some rows, column by column from `first` on, as the bits of
/// unsigned numbers, of which NaN is the greatest.
struct DifferenceRows {
    rises: Vec<u32>,
    bows: Vec<u32>,
    first: usize,
}

impl DifferenceRows {
    #[inline(always)]
    fn forget(&mut self) {
        self.rises.fill(0);
        self.bows.fill(0);
    }

    /// Adds the voxels of a row: the differences to the next voxels, and their change from the previous
    /// differences.
    #[inline(always)]
    fn add<T: Voxel>(&mut self, block: &Resident<T>, z: usize, y: usize) {
        let ([nz, ny, nx], first) = (block.layout.extent, self.first);
        let row = |z: usize, y: usize| &block.data[block.layout.index(z, y, 0)..][..nx];
        let here = row(z, y);
        rise(&mut self.rises, &here[first..nx - 1], &here[first + 1..]);
        let (skipped, before) = if first == 0 { (1, 0) } else { (0, first - 1) };
        bend(
            &mut self.bows[skipped..],
            &here[before..nx - 2],
            &here[before + 1..nx - 1],
            &here[before + 2..],
        );
        let here = &here[first..];
        for (at, count, up) in [(y, ny, [0, 1]), (z, nz, [1, 0])] {
            if at + 1 < count {
                let next = &row(z + up[0], y + up[1])[first..];
                rise(&mut self.rises, here, next);
                if at > 0 {
                    bend(&mut self.bows, &row(z - up[0], y - up[1])[first..], here, next);
                }
            }
        }
    }

    /// Returns the variation of some columns.
    fn of(&self, columns: std::ops::Range<usize>) -> ValueVariation {
        let greatest = |bits: &[u32]| f32::from_bits(bits.iter().copied().max().unwrap_or(0));
        ValueVariation {
            first_difference: greatest(&self.rises[columns.clone()]),
            second_difference: greatest(&self.bows[columns]),
        }
    }
}

/// Differences of voxels to the next ones.
#[inline(always)]
fn rise<T: Voxel>(most: &mut [u32], here: &[T], next: &[T]) {
    for ((most, here), next) in most.iter_mut().zip(here).zip(next) {
        *most = (*most).max((next.to_f32() - here.to_f32()).abs().to_bits());
    }
}

/// Differences of differences, of three voxels in a line.
#[inline(always)]
fn bend<T: Voxel>(most: &mut [u32], before: &[T], here: &[T], next: &[T]) {
    for (((most, before), here), next) in most.iter_mut().zip(before).zip(here).zip(next) {
        let here = here.to_f32();
        let bow = (next.to_f32() - here) - (here - before.to_f32());
        *most = (*most).max(bow.abs().to_bits());
    }
}
