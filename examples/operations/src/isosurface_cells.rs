//! `isosurface_cells`: number of grid cells that an isosurface intersects, a measure of its size.
//!
//! A cell lies between neighboring samples along the spatial axes (or the last three axes of an array without spatial
//! ones); indices along other axes are independent. An isosurface intersects a cell if at least one corner is below the
//! isovalue and at least one is not, as in marching cubes. Cells with a missing corner are not counted.

use array::{ArrayInfo, Error, Result};
use bytes::Bytes;
use client::remote_call::{CallRequest, Operand, OperationParameters};
use export::bounded_scan::{MAX_PART_BYTES, PARTS_IN_MEMORY, Scan, ScanPart};
use serde::{Deserialize, Serialize};
use server::ops::{BeginOutcome, Handler, OperationCall};

use crate::OneOrMany;

/// Maximum number of isovalues in one call.
const MOST_ISOVALUES: usize = 20;
/// Largest useful amount of memory, in bytes.
const MAX_MEMORY_BYTES: u64 = 8 * MAX_PART_BYTES;

/// Parameters: isovalues whose intersected cells are counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IsosurfaceCells {
    isovalues: OneOrMany,
}

/// Result: numbers of cells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellCounts {
    /// Number of cells all of whose corners have a value.
    pub cells: u64,
    /// Number of cells that each isosurface intersects.
    pub crossed: Vec<u64>,
}

impl IsosurfaceCells {
    /// Creates a call that counts the intersected cells of the elements `of` for each of `isovalues`.
    #[must_use]
    pub fn asked(of: Operand, isovalues: Vec<f64>) -> CallRequest<Self> {
        CallRequest { of, with: Self { isovalues: OneOrMany::Many(isovalues) } }
    }
}

impl OperationParameters for IsosurfaceCells {
    const NAME: &'static str = "isosurface_cells";
    type Result = CellCounts;
}

/// Server side of the operation.
pub(crate) struct IsosurfaceCellsHandler;

impl Handler for IsosurfaceCellsHandler {
    type Work = CallRequest<IsosurfaceCells>;

    fn name(&self) -> &'static str {
        IsosurfaceCells::NAME
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<Self::Work>> {
        let asked = Self::Work::parse(&parameters)?;
        asked.with.isovalues.check("isovalues", MOST_ISOVALUES, f64::MIN, f64::MAX)?;
        Ok(BeginOutcome::Work(asked))
    }

    async fn run(&self, asked: Self::Work, call: &OperationCall) -> Result<()> {
        let scan = call.scan(&asked.of).await?;
        let mut memory = call.enter(MAX_MEMORY_BYTES).await;
        let part_bytes = part_bytes(&scan, memory.admitted().await)?;
        let axes = cell_axes(scan.array()?);
        let isovalues = asked.with.isovalues.numbers().to_vec();
        let whole = scan.selection().shape();
        let total = CellCounts { cells: 0, crossed: vec![0; isovalues.len()] };
        let add = {
            let axes = axes.clone();
            move |total: &mut CellCounts, part: &ScanPart, array: &ArrayInfo| {
                let corners = Corners::of(part, array, &whole, &axes)?;
                corners.count(&isovalues, total);
                Ok(())
            }
        };
        let elements = scan.elements();
        let on_progress = |done: u64| call.progress(done.min(elements), elements);
        call.result(&scan.fold(part_bytes, &axes, total, add, on_progress).await?).await
    }
}

/// Returns for each axis whether cells extend along it.
fn cell_axes(array: &ArrayInfo) -> Vec<bool> {
    let spatial: Vec<bool> = array.axes.iter().map(|axis| axis.kind.is_spatial()).collect();
    if spatial.contains(&true) {
        return spatial;
    }
    let axes = array.axes.len();
    (0..axes).map(|axis| axis + 3 >= axes).collect()
}

/// Returns the size of a part, in bytes, such that its stored and decoded elements and the extremes of its cells fit
/// into memory; twice, because parts overlap.
fn part_bytes(scan: &Scan, memory_bytes: u64) -> Result<u64> {
    let stored = scan.array()?.dtype.size_bytes() as u64;
    Ok(memory_bytes / 2 / (PARTS_IN_MEMORY * stored + 3 * size_of::<f64>() as u64) * stored)
}

/// Lowest and highest value among the corners of each cell, stored at its first corner; NaN if a corner has no value.
struct Corners {
    shape: Vec<usize>,
    /// Number of cells along each axis; one less than samples where cells extend along the axis.
    cells: Vec<usize>,
    low: Vec<f64>,
    high: Vec<f64>,
}

impl Corners {
    fn of(part: &ScanPart, array: &ArrayInfo, whole: &[u64], axes: &[bool]) -> Result<Self> {
        let shape: Vec<usize> =
            part.selection.shape().iter().map(|&n| usize::try_from(n).unwrap_or(0)).collect();
        let mut low = part.values(array)?;
        if low.len() != shape.iter().product::<usize>() {
            return Err(Error::internal("expected the elements of the part"));
        }
        let mut high = low.clone();
        let mut cells = shape.clone();
        let mut stride = 1;
        for axis in (0..shape.len()).rev() {
            // Cells do not extend along an axis with a single sample.
            if axes[axis] && whole[axis] > 1 {
                // In C order, so that the later neighbor is not changed yet.
                for at in 0..low.len().saturating_sub(stride) {
                    low[at] = lower(low[at], low[at + stride]);
                    high[at] = higher(high[at], high[at + stride]);
                }
                cells[axis] -= 1;
            }
            stride *= shape[axis];
        }
        Ok(Self { shape, cells, low, high })
    }

    fn count(&self, isovalues: &[f64], total: &mut CellCounts) {
        let (row, row_cells) =
            (self.shape.last().copied().unwrap_or(1), self.cells.last().copied().unwrap_or(1));
        let rows = self.low.len().checked_div(row).unwrap_or(0);
        for number in (0..rows).filter(|&number| self.row_has_cells(number)) {
            let cells = number * row..number * row + row_cells;
            for (&low, &high) in self.low[cells.clone()].iter().zip(&self.high[cells]) {
                total.cells += u64::from(!low.is_nan());
                for (crossed, &isovalue) in total.crossed.iter_mut().zip(isovalues) {
                    *crossed += u64::from(low < isovalue && isovalue <= high);
                }
            }
        }
    }

    /// Returns false for rows of samples at which no cell begins.
    fn row_has_cells(&self, mut number: usize) -> bool {
        let axes = self.shape.len().saturating_sub(1);
        (0..axes).rev().all(|axis| {
            let at = number % self.shape[axis];
            number /= self.shape[axis];
            at < self.cells[axis]
        })
    }
}

/// Returns the smaller number; NaN if one of them is NaN.
fn lower(a: f64, b: f64) -> f64 {
    if a < b || a.is_nan() { a } else { b }
}

/// Returns the larger number; NaN if one of them is NaN.
fn higher(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}
