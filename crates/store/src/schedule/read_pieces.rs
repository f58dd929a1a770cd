//! Cuts a large read into pieces that run in parallel.
//!
//! Pieces follow stored chunks if there are any, and slow axes first, so that each piece reads contiguous ranges of the file and no
//! chunk is decoded twice.

use array::{ArrayInfo, AxisRange, Region, Result, Selection, cut_by_grid};

use crate::Access;

/// Target cost of a piece, bytes: enough to be worth a thread, small enough to be cancelled soon.
pub(crate) const PIECE_COST: u64 = 4 << 20;
/// Cost of one request to a file, as the number of bytes that could be copied in the same time.
const REQUEST_COST: u64 = 16 << 10;
/// Most pieces of one read.
const MAX_READ_PIECES: u64 = 256;

/// The pieces of `selection` with their parts of `into`.
///
/// # Errors
/// `Internal` when the region's shape is not the selection's.
pub(crate) fn cut(
    array: &ArrayInfo,
    level: u8,
    access: Access,
    selection: &Selection,
    into: Region,
) -> Result<Vec<(Selection, Region)>> {
    let units = units(array, level, access, selection);
    let pieces =
        (cost(access, selection, array.dtype.size_bytes() as u64, &units) / PIECE_COST).min(MAX_READ_PIECES);
    let parts = cut_by_grid(selection, &grid(selection, &units, pieces));
    let sizes = |axis: &Vec<(u64, u64, u64)>| {
        // A region's sizes are `usize`, and these are parts of them.
        axis.iter().map(|&(_, _, count)| usize::try_from(count).unwrap_or(usize::MAX)).collect::<Vec<_>>()
    };
    let regions = into.grid(&parts.iter().map(sizes).collect::<Vec<_>>())?;
    let mut selections: Vec<Vec<AxisRange>> = vec![Vec::new()];
    for (range, axis) in selection.ranges().iter().zip(&parts) {
        let extended = |head: &Vec<AxisRange>| {
            let head = head.clone();
            axis.iter()
                .map(move |&(_, first, count)| {
                    let mut ranges = head.clone();
                    ranges.push(AxisRange { start: range.index(first), count, step: range.step });
                    ranges
                })
                .collect::<Vec<_>>()
        };
        selections = selections.iter().flat_map(extended).collect();
    }
    let selections = selections.into_iter().map(Selection::new).collect::<Result<Vec<_>>>()?;
    Ok(selections.into_iter().zip(regions).collect())
}

/// Returns the cost of a read, as the number of bytes that could be copied in the same time.
pub(crate) fn read_cost(array: &ArrayInfo, level: u8, access: Access, selection: &Selection) -> u64 {
    let units = units(array, level, access, selection);
    cost(access, selection, array.dtype.size_bytes() as u64, &units)
}

/// The smallest sensible piece per axis, in indices: a stored chunk, or one selected element.
fn units(array: &ArrayInfo, level: u8, access: Access, selection: &Selection) -> Vec<u64> {
    let chunk = match access {
        Access::Chunked => array.level(level).ok().and_then(|l| l.chunk.clone()),
        Access::Flat | Access::Computed => None,
    };
    let chunk = chunk.filter(|c| c.len() == selection.ranges().len());
    chunk.unwrap_or_else(|| selection.ranges().iter().map(|r| r.step).collect())
}

/// Number of units that a range touches.
fn touched(range: &AxisRange, unit: u64) -> u64 {
    let unit = unit.max(1);
    if range.count == 0 { 0 } else { (range.end() - 1) / unit - range.start / unit + 1 }
}

/// Cost in bytes: the decoded bytes, and a fixed cost per request.
fn cost(access: Access, selection: &Selection, item: u64, units: &[u64]) -> u64 {
    let product = |values: &mut dyn Iterator<Item = u64>| values.fold(1, u64::saturating_mul);
    let ranges = selection.ranges();
    let elements = product(&mut ranges.iter().map(|r| r.count));
    match access {
        Access::Chunked => {
            let chunks = product(&mut ranges.iter().zip(units).map(|(r, &u)| touched(r, u)));
            product(&mut units.iter().copied()).saturating_mul(item).saturating_mul(chunks)
        }
        Access::Flat => {
            let rows = product(&mut ranges.iter().rev().skip(1).map(|r| r.count));
            elements.saturating_mul(item).saturating_add(rows.saturating_mul(REQUEST_COST))
        }
        Access::Computed => elements.saturating_mul(item),
    }
}

/// The grid that cuts `selection` into about `pieces`, slow axes first.
fn grid(selection: &Selection, units: &[u64], pieces: u64) -> Vec<u64> {
    let mut left = pieces.max(1);
    let axes = selection.ranges().iter().zip(units);
    axes.map(|(range, &unit)| {
        let touched = touched(range, unit).max(1);
        let cuts = left.min(touched);
        left = left.div_ceil(cuts);
        // One unit more than the whole when it is not cut: the grid starts at 0, the range need not.
        if cuts == 1 { range.end().max(1) } else { touched.div_ceil(cuts).saturating_mul(unit.max(1)) }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use array::{Axis, AxisKind, DType, Target};

    use super::*;
    use crate::formats::common::describe;

    fn array(shape: &[u64], chunk: Option<Vec<u64>>) -> ArrayInfo {
        let kinds = [AxisKind::Z, AxisKind::Y, AxisKind::X];
        let axes = kinds.iter().map(|&k| Axis::new("a", k)).collect();
        let dtype: DType = "u1".parse().unwrap();
        describe::array("a", dtype, axes, shape, chunk)
    }

    fn shapes(array: &ArrayInfo, access: Access, text: &str) -> Vec<Vec<u64>> {
        let selection = Selection::parse(text, array.shape()).unwrap();
        let (_, region) = Target::new(&selection.shape(), 1).unwrap();
        let pieces = cut(array, 0, access, &selection, region).unwrap();
        for (selection, region) in &pieces {
            let shape: Vec<u64> = region.shape().iter().map(|&n| n as u64).collect();
            assert_eq!(selection.shape(), shape);
        }
        pieces.iter().map(|(s, _)| s.shape()).collect()
    }

    #[test]
    fn small_reads_stay_whole() {
        assert_eq!(shapes(&array(&[64, 64, 64], None), Access::Flat, "5:9, ::2, 3"), [[4, 32, 1]]);
        assert!(shapes(&array(&[64, 64, 64], None), Access::Flat, "5:5").is_empty());
    }

    #[test]
    fn many_requests_are_spread() {
        let pieces = shapes(&array(&[4096, 4096, 4096], None), Access::Flat, "32::64, 32::64, 32::64");
        assert_eq!(pieces.len(), 16);
        assert!(pieces.iter().all(|p| p == &[4, 64, 64]));
    }

    #[test]
    fn chunks_are_not_cut() {
        let chunked = array(&[512, 512, 512], Some(vec![128, 128, 128]));
        let pieces = shapes(&chunked, Access::Chunked, "100:300");
        assert!(pieces.len() >= 3, "{pieces:?}");
        assert_eq!(pieces.iter().map(|p| p[0]).take(3).collect::<Vec<_>>()[0], 28);
        assert_eq!(pieces.iter().map(|p| p.iter().product::<u64>()).sum::<u64>(), 200 * 512 * 512);
    }
}
