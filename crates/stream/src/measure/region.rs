//! The stored elements in a box or a polygon, for statistics.

use std::ops::RangeInclusive;
use std::sync::Arc;

use array::{AxisRange, Dataset, Error, Result, Selection, Source};
use render::{Bounds, VolumeView, volume_of_world, voxel_of_world, world_of_voxel};
use view::SpaceAxis;

use super::element::channel_name;
use super::line::{MeasuredArray, channels_of};
use super::request::ViewMeasurement;
use super::subject::Subject;
use crate::loading::regrid::StoredPlace;
use crate::viewer::scene::portion_of;

/// Most cells of a polygon or a part of a curvilinear grid: a bit each.
const MAX_CELLS: u64 = 1 << 24;
/// Most rows of cells that are listed, so that a program can read the same elements.
pub const MAX_SPANS: usize = 4096;

/// Elements of a region of a stored array.
#[derive(Clone)]
pub struct StoredRegion {
    /// Array that they are of.
    pub of: MeasuredArray,
    /// Source of the stored elements.
    pub source: Arc<dyn Source>,
    /// Its description.
    pub dataset: Arc<Dataset>,
    /// Number of the stored array.
    pub array: u32,
    /// Boxes around the elements: one, or one for each channel that is drawn as a color.
    pub boxes: Vec<RegionBox>,
    /// Elements of the boxes that belong to the region.
    pub mask: RegionMask,
}

/// Box around the elements of a region.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionBox {
    /// Index on the axis of channels.
    pub channel: Option<u64>,
    /// Name of the channel.
    pub name: Option<String>,
    /// Elements of the box.
    pub selection: Selection,
}

/// Elements of a box that belong to a region.
#[derive(Clone, Debug)]
pub enum RegionMask {
    /// All.
    All,
    /// Those in some cells of two axes.
    Cells(Arc<CellMask>),
    /// Those whose centers lie in a box of world space, on axes that are not those of the world.
    Inside(Arc<WorldBoxMask>),
}

/// Cells of two axes of a stored array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellMask {
    axes: [usize; 2],
    start: [u64; 2],
    shape: [u64; 2],
    bits: Vec<u64>,
}

/// Box in world space around voxels of a volume.
#[derive(Clone, Debug)]
pub struct WorldBoxMask {
    volume: Arc<VolumeView>,
    /// Stored axes that are z, y and x.
    axes: [Option<usize>; 3],
    bounds: Bounds,
}

impl RegionMask {
    /// Returns true if an element with this index per axis belongs to the region.
    #[must_use]
    pub fn contains(&self, index: &[u64]) -> bool {
        match self {
            Self::All => true,
            Self::Cells(cells) => cells.contains(cells.axes.map(|axis| index[axis])),
            Self::Inside(inside) => {
                let voxel = inside.axes.map(|axis| axis.map_or(0, |axis| index[axis]));
                is_inside(&inside.bounds, world_of_voxel(&inside.volume, voxel))
            }
        }
    }

    /// Returns the axes of a mask of cells, and its rows: index on the first axis, first index on the second, and the
    /// index after the last. `None` if there are more than [`MAX_SPANS`] or it is no such mask.
    #[must_use]
    pub fn spans(&self) -> Option<([usize; 2], Vec<[u64; 3]>)> {
        let Self::Cells(cells) = self else { return None };
        let mut spans = Vec::new();
        for row in cells.start[0]..cells.start[0] + cells.shape[0] {
            let mut at = cells.start[1];
            let end = cells.start[1] + cells.shape[1];
            while at < end {
                let first = (at..end).find(|&at| cells.contains([row, at]));
                let Some(first) = first else { break };
                let after = (first..end).find(|&at| !cells.contains([row, at])).unwrap_or(end);
                spans.push([row, first, after]);
                if spans.len() > MAX_SPANS {
                    return None;
                }
                at = after;
            }
        }
        Some((cells.axes, spans))
    }
}

impl CellMask {
    /// Creates the mask of some cells, which are listed twice.
    ///
    /// # Errors
    /// `Invalid` for no cell, `TooLarge` for cells that span too much.
    fn of<I: Iterator<Item = [u64; 2]>>(axes: [usize; 2], cells: impl Fn() -> I) -> Result<Self> {
        let mut bounds: Option<[[u64; 2]; 2]> = None;
        for cell in cells() {
            let [low, high] = bounds.get_or_insert([cell; 2]);
            for place in 0..2 {
                low[place] = low[place].min(cell[place]);
                high[place] = high[place].max(cell[place]);
            }
        }
        let [start, end] = bounds.ok_or_else(too_empty)?;
        let shape = [end[0] - start[0] + 1, end[1] - start[1] + 1];
        let count = shape[0].saturating_mul(shape[1]);
        let words = usize::try_from(count.div_ceil(64)).ok().filter(|_| count <= MAX_CELLS);
        let words = words.ok_or_else(too_many_cells)?;
        let mut mask = Self { axes, start, shape, bits: vec![0; words] };
        for cell in cells() {
            if let Some((word, bit)) = mask.bit(cell) {
                mask.bits[word] |= bit;
            }
        }
        Ok(mask)
    }

    fn bit(&self, cell: [u64; 2]) -> Option<(usize, u64)> {
        let row = cell[0].checked_sub(self.start[0]).filter(|row| *row < self.shape[0])?;
        let column = cell[1].checked_sub(self.start[1]).filter(|column| *column < self.shape[1])?;
        let number = row * self.shape[1] + column;
        Some((usize::try_from(number / 64).ok()?, 1 << (number % 64)))
    }

    fn contains(&self, cell: [u64; 2]) -> bool {
        self.bit(cell).is_some_and(|(word, bit)| self.bits.get(word).is_some_and(|bits| bits & bit != 0))
    }
}

fn too_many_cells() -> Error {
    Error::too_large(format!("the region has more than {MAX_CELLS} cells; choose a smaller one"))
}

fn is_inside(bounds: &Bounds, world: [f64; 3]) -> bool {
    (0..3).all(|axis| world[axis] >= bounds.min[axis] && world[axis] < bounds.max[axis])
}

/// Voxels of level 0 per axis z, y, x; `None` if there are none.
type VoxelRanges = Option<[RangeInclusive<u64>; 3]>;

impl StoredRegion {
    /// Finds the elements of a measurement of a region. Blocks the thread for large polygons and curvilinear grids.
    ///
    /// # Errors
    /// `Invalid` for a region without elements and a polygon of fewer than three corners; `TooLarge` for too many cells;
    /// `Unsupported` for a polygon across a curvilinear grid.
    pub(crate) fn of(subject: &Subject, measurement: &ViewMeasurement) -> Result<Self> {
        let volume = &subject.volume;
        let (ranges, mask) = match measurement {
            ViewMeasurement::Clip => clip_region(subject)?,
            ViewMeasurement::Box { corners } => {
                let [a, b] = corners.map(|corner| voxel_of_world(volume, corner));
                (Some([0, 1, 2].map(|axis| a[axis].min(b[axis])..=a[axis].max(b[axis]))), RegionMask::All)
            }
            ViewMeasurement::Polygon { axis, corners } => polygon_region(subject, *axis, corners)?,
            ViewMeasurement::Profile { .. }
            | ViewMeasurement::Points { .. }
            | ViewMeasurement::Series { .. }
            | ViewMeasurement::Plot { .. } => {
                return Err(Error::internal("expected a region to measure"));
            }
        };
        Self::in_ranges(subject, &ranges.ok_or_else(too_empty)?, mask)
    }

    /// Makes the region of the voxels in these ranges.
    fn in_ranges(subject: &Subject, ranges: &[RangeInclusive<u64>; 3], mask: RegionMask) -> Result<Self> {
        let (drawn, volume) = (&subject.drawn, &subject.volume);
        let info = drawn.info()?;
        let axes = drawn.stored_axes(volume);
        let joint = drawn.joint_axes();
        let mask = match (mask, joint) {
            (RegionMask::All, Some(joint)) => {
                RegionMask::Cells(Arc::new(joint_cells(subject, ranges, joint)?))
            }
            (mask, _) => mask,
        };
        let [low, high] = end_places(subject, ranges).ok_or_else(too_empty)?.map(|place| place.index);
        let mut bounds: Vec<(u64, u64)> =
            low.iter().zip(&high).map(|(&a, &b)| (a.min(b), a.max(b))).collect();
        if let RegionMask::Cells(cells) = &mask {
            for place in 0..2 {
                let start = cells.start[place];
                bounds[cells.axes[place]] = (start, start + cells.shape[place] - 1);
            }
        }
        debug_assert!(axes.iter().flatten().all(|&axis| axis < bounds.len()), "axes of the stored array");
        let channel_axis = drawn.channels().map(|channels| channels.axis);
        let boxes = channels_of(drawn).into_iter().map(|channel| {
            let range = |(axis, &(low, high)): (usize, &(u64, u64))| match channel {
                Some(channel) if channel_axis == Some(axis) => {
                    AxisRange { start: channel, count: 1, step: 1 }
                }
                _ => AxisRange { start: low, count: high - low + 1, step: 1 },
            };
            let selection = Selection::new(bounds.iter().enumerate().map(range))?;
            selection.check(info.shape())?;
            Ok(RegionBox {
                channel,
                name: channel.and_then(|channel| channel_name(info, channel)),
                selection,
            })
        });
        Ok(Self {
            of: MeasuredArray::of(subject)?,
            source: Arc::clone(&drawn.places.source),
            dataset: Arc::clone(&drawn.places.dataset),
            array: drawn.stored_array(),
            boxes: boxes.collect::<Result<_>>()?,
            mask,
        })
    }
}

fn too_empty() -> Error {
    Error::invalid("no voxel's center lies in this region; enlarge it")
}

/// Returns the stored places of the first and the last voxel of a region. On a curvilinear grid, where these may lie outside of
/// all cells, returns both ends of a column of layers that has cells: the mask bounds the other two axes.
fn end_places(subject: &Subject, ranges: &[RangeInclusive<u64>; 3]) -> Option<[StoredPlace; 2]> {
    let [z, y, x] = ranges;
    let ends = |low: [u64; 2], high: [u64; 2]| {
        let low = subject.stored([*z.start(), low[0], low[1]])?;
        Some([low, subject.stored([*z.end(), high[0], high[1]])?])
    };
    if subject.drawn.joint_axes().is_none() {
        return ends([*y.start(), *x.start()], [*y.end(), *x.end()]);
    }
    let columns = y.clone().flat_map(|y| x.clone().map(move |x| [y, x]));
    columns.into_iter().find_map(|column| ends(column, column))
}

/// Returns the cells of a curvilinear grid that are drawn in these ranges.
fn joint_cells(subject: &Subject, ranges: &[RangeInclusive<u64>; 3], joint: [usize; 2]) -> Result<CellMask> {
    let [z, y, x] = ranges;
    let count = |range: &RangeInclusive<u64>| range.end() - range.start() + 1;
    if count(y).saturating_mul(count(x)) > MAX_CELLS {
        return Err(too_many_cells());
    }
    let z = *z.start();
    CellMask::of(joint, || {
        let x = x.clone();
        let voxels = y.clone().flat_map(move |y| x.clone().map(move |x| [z, y, x]));
        let places = voxels.filter_map(move |voxel| subject.stored(voxel));
        places.map(move |place| joint.map(|axis| place.index[axis]))
    })
}

/// Returns the voxels in the clipping box of a view, or all of them.
fn clip_region(subject: &Subject) -> Result<(VoxelRanges, RegionMask)> {
    let volume = &subject.volume;
    let all = volume.levels[0].shape.map(|count| 0..=count.saturating_sub(1));
    let Some(bounds) = portion_of(&subject.view, volume).clip else {
        return Ok((Some(all), RegionMask::All));
    };
    let origin = world_of_voxel(volume, [0; 3]);
    // Change in world space along z, y and x.
    let changes = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map(|voxel| {
        let there = world_of_voxel(volume, voxel);
        [0, 1, 2].map(|row| there[row] - origin[row])
    });
    let rows = changes.map(|change| {
        let mut along = (0..3).filter(|&row| change[row] != 0.0);
        along.next().filter(|_| along.next().is_none())
    });
    if let [Some(z), Some(y), Some(x)] = rows
        && z != y
        && y != x
        && x != z
    {
        let ranges = [z, y, x].into_iter().enumerate().map(|(axis, row)| {
            let count = volume.levels[0].shape[axis];
            centers_between(count, [bounds.min[row], bounds.max[row]], |at| {
                let mut voxel = [0; 3];
                voxel[axis] = at;
                world_of_voxel(volume, voxel)[row]
            })
        });
        let ranges: Option<Vec<RangeInclusive<u64>>> = ranges.collect();
        let ranges = ranges.and_then(|ranges| <[RangeInclusive<u64>; 3]>::try_from(ranges).ok());
        return Ok((ranges, RegionMask::All));
    }
    let corners = (0..8u32).map(|corner| {
        let side = |axis: usize| if corner >> axis & 1 == 0 { bounds.min[axis] } else { bounds.max[axis] };
        voxel_of_world(volume, [side(0), side(1), side(2)])
    });
    let corners: Vec<[u64; 3]> = corners.collect();
    let ranges = [0, 1, 2].map(|axis| {
        let along = corners.iter().map(|corner| corner[axis]);
        along.clone().min().unwrap_or(0)..=along.max().unwrap_or(0)
    });
    let axes = subject.drawn.stored_axes(volume);
    let mask = WorldBoxMask { volume: Arc::clone(volume), axes, bounds };
    Ok((Some(ranges), RegionMask::Inside(Arc::new(mask))))
}

/// Returns the indices below `count` at which a rising or falling function lies between two values, the upper one
/// excluded.
fn centers_between(
    count: u64,
    [low, high]: [f64; 2],
    world: impl Fn(u64) -> f64,
) -> Option<RangeInclusive<u64>> {
    let is_rising = world(1) > world(0);
    // The first index at which a condition that stays true becomes true.
    let first = |holds: &dyn Fn(f64) -> bool| {
        let (mut from, mut to) = (0, count);
        while from < to {
            let middle = from + (to - from) / 2;
            if holds(world(middle)) { to = middle } else { from = middle + 1 }
        }
        from
    };
    let (start, end) = if is_rising {
        (first(&|at| at >= low), first(&|at| at >= high))
    } else {
        (first(&|at| at < high), first(&|at| at < low))
    };
    (start < end).then(|| start..=end - 1)
}

/// Returns the voxels of one layer whose centers lie in a polygon.
fn polygon_region(
    subject: &Subject,
    axis: Option<SpaceAxis>,
    corners: &[[f64; 3]],
) -> Result<(VoxelRanges, RegionMask)> {
    let volume = &subject.volume;
    let shape = volume.levels[0].shape;
    let across = axis.map(SpaceAxis::index).or_else(|| (0..3).find(|&axis| shape[2 - axis] == 1));
    let across = across.ok_or_else(|| {
        Error::invalid(
            "a polygon needs the `axis` across its layer: `x`, `y` or `z`; the array has several layers",
        )
    })?;
    let [first, _, _, ..] = corners else {
        return Err(Error::invalid(format!(
            "expected at least 3 corners of a polygon, found {}",
            corners.len()
        )));
    };
    let plane: Vec<usize> = (0..3).rev().filter(|&axis| axis != across).collect();
    let (a, b) = (plane[0], plane[1]);
    let stored_axes = subject.drawn.stored_axes(volume);
    let axes = [stored_axes[2 - a], stored_axes[2 - b]];
    let [Some(row_axis), Some(column_axis)] = axes else {
        return Err(Error::invalid("the array has only one axis in this layer; choose another `axis`"));
    };
    if subject.drawn.joint_axes().is_some_and(|joint| joint != [row_axis, column_axis]) {
        return Err(Error::unsupported(
            "polygons on curvilinear grids lie in layers of latitude and longitude; choose the axis `z`",
        ));
    }
    let points: Vec<[f64; 2]> = corners
        .iter()
        .map(|&corner| {
            let at = volume_of_world(volume, corner);
            [at[a], at[b]]
        })
        .collect();
    let layer = voxel_of_world(volume, *first)[2 - across];
    let rows = whole_between(&points, 0, shape[2 - a]);
    let columns = whole_between(&points, 1, shape[2 - b]);
    let (Some(rows), Some(columns)) = (rows, columns) else { return Ok((None, RegionMask::All)) };
    let count = |range: &RangeInclusive<u64>| range.end() - range.start() + 1;
    if count(&rows).saturating_mul(count(&columns)) > MAX_CELLS {
        return Err(too_many_cells());
    }
    let points = &points;
    let mask = CellMask::of([row_axis, column_axis], || {
        let columns = columns.clone();
        let inside = rows.clone().flat_map(move |row| {
            let crossings = crossings(points, row);
            let inside = columns.clone().filter(move |&column| is_between(&crossings, column));
            inside.map(move |column| [row, column])
        });
        inside.filter_map(move |[row, column]| {
            let mut voxel = [0; 3];
            (voxel[2 - across], voxel[2 - a], voxel[2 - b]) = (layer, row, column);
            let place = subject.stored(voxel)?;
            Some([place.index[row_axis], place.index[column_axis]])
        })
    })?;
    let mut ranges = [0..=0, 0..=0, 0..=0];
    (ranges[2 - across], ranges[2 - a], ranges[2 - b]) = (layer..=layer, rows, columns);
    Ok((Some(ranges), RegionMask::Cells(Arc::new(mask))))
}

/// Returns the whole numbers below `count` between the least and the greatest of the points' coordinates.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the count")]
#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
fn whole_between(points: &[[f64; 2]], place: usize, count: u64) -> Option<RangeInclusive<u64>> {
    let values = points.iter().map(|point| point[place]);
    let low = values.clone().fold(f64::INFINITY, f64::min).ceil().max(0.0);
    let high = values.fold(f64::NEG_INFINITY, f64::max).floor().min(count as f64 - 1.0);
    (low <= high).then_some(low as u64..=high as u64)
}

/// Returns where the edges of a polygon cross a row.
#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
fn crossings(points: &[[f64; 2]], row: u64) -> Vec<f64> {
    let y = row as f64;
    let edges = points.iter().zip(points.iter().cycle().skip(1));
    let crossed = edges.filter(|(a, b)| (a[0] > y) != (b[0] > y));
    crossed.map(|(a, b)| a[1] + (y - a[0]) / (b[0] - a[0]) * (b[1] - a[1])).collect()
}

/// Returns true if a ray from a voxel's center along its row crosses an odd number of edges.
#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
fn is_between(crossings: &[f64], column: u64) -> bool {
    crossings.iter().filter(|&&at| (column as f64) < at).count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centers_are_found_on_rising_and_falling_axes() {
        for (step, low, high) in [(0.5, -0.3, 2.0), (-0.5, -2.0, 0.3), (2.0, 100.0, 101.0), (1.0, -5.0, 50.0)]
        {
            let world = |at: u64| at as f64 * step;
            let expected: Vec<u64> = (0..9).filter(|&at| world(at) >= low && world(at) < high).collect();
            let found = centers_between(9, [low, high], world);
            assert_eq!(found.map_or(Vec::new(), Iterator::collect), expected, "{step}");
        }
    }

    #[test]
    fn cells_of_a_polygon_are_listed_row_by_row() {
        // A square with a notch.
        let points = [[0.5, 0.5], [4.5, 0.5], [4.5, 4.5], [2.4, 2.6], [0.5, 4.5]];
        let cells = (0..6).flat_map(|row| (0..6).map(move |column| [row, column]));
        let inside = |&[row, column]: &[u64; 2]| is_between(&crossings(&points, row), column);
        let cells: Vec<[u64; 2]> = cells.filter(inside).collect();
        let mask = CellMask::of([1, 2], || cells.iter().copied()).unwrap();
        let mask = RegionMask::Cells(Arc::new(mask));
        for [row, column] in (0..6).flat_map(|row| (0..6).map(move |column| [row, column])) {
            assert_eq!(mask.contains(&[7, row, column]), cells.contains(&[row, column]));
        }
        let (axes, spans) = mask.spans().unwrap();
        assert_eq!((axes, spans), ([1, 2], vec![[1, 1, 4], [2, 1, 3], [3, 1, 4], [4, 1, 5]]));
        assert!(CellMask::of([1, 2], std::iter::empty).is_err());
        assert!(CellMask::of([1, 2], || [[0, 0], [1 << 40, 1 << 40]].into_iter()).is_err());
    }
}
