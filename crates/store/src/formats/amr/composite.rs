//! Field of a mesh as an array with levels: reads from grids, and interpolation between them.
//!
//! If a level has no grid at a position, its values are those of the next coarser level, interpolated linearly, so that there is
//! no step at the end of a grid; integers, which may be labels or flags, take the value of the nearest coarser sample. Each
//! element is read once, also if grids overlap: the requested box is cut along the grids that intersect it, one after another.

use array::{
    AxisRange, DType, Element, ElementType, Error, PerAxis, Region, Result, Selection, Target, elements,
    with_element,
};

use super::grids::{LatticeGrid, MeshGrids};
use crate::{CancelFlag, Format, formats::common::chunked};

/// Most bytes of a mesh level, and of the next coarser one, that are interpolated at a time.
const MAX_INTERPOLATED_BYTES: u64 = 1 << 20;
/// Most parts of grids that one read of an adaptive mesh may touch.
const MAX_GRID_PARTS: usize = 1 << 20;

/// Storage location of the values of one grid.
#[derive(Clone, Copy, Debug)]
pub(super) struct GridLocation {
    /// Which file of the data set.
    pub(super) file: usize,
    /// Which array of it.
    pub(super) array: u32,
    /// Which entry of its first axis, where one array holds all grids.
    pub(super) entry: Option<u64>,
}

/// Source of a read (files, grids, element type), and the flag that cancels it.
pub(super) struct CompositeReader<'a> {
    pub(super) files: &'a [std::sync::Arc<dyn Format>],
    pub(super) grids: &'a MeshGrids,
    /// Locations by the number of the grid.
    pub(super) locations: &'a [GridLocation],
    pub(super) dtype: DType,
    pub(super) cancel: &'a CancelFlag,
}

impl CompositeReader<'_> {
    /// Reads elements of a level, 0 the finest.
    ///
    /// # Errors
    /// Errors of the files; `TooLarge` where grids overlap beyond reason; `Cancelled`.
    pub(super) fn read(&self, tier: usize, selection: &Selection, into: Region) -> Result<()> {
        let grids = &self.grids.tiers[tier];
        // Remaining boxes, and the first grid that may hold each.
        let mut rest = vec![(selection.clone(), into, 0)];
        let mut pieces = 0;
        while let Some((selection, into, from)) = rest.pop() {
            self.cancel.check()?;
            pieces += 1;
            if pieces > MAX_GRID_PARTS {
                return Err(Error::too_large(format!(
                    "expected a read that meets up to {MAX_GRID_PARTS} parts of grids"
                )));
            }
            let met =
                grids.in_order().enumerate().skip(from).find(|(_, grid)| grid.meets(selection.ranges()));
            let Some((number, grid)) = met else {
                self.interpolate(tier, &selection, into)?;
                continue;
            };
            let next = number + 1;
            let inside =
                cut(selection, into, grid, &mut |selection, into| rest.push((selection, into, next)))?;
            self.read_grid(grid, &inside.0, inside.1)?;
        }
        Ok(())
    }

    /// Elements that all lie in one grid.
    fn read_grid(&self, grid: &LatticeGrid, selection: &Selection, into: Region) -> Result<()> {
        let own = selection.ranges().iter().zip(&grid.first);
        let own: PerAxis<_> =
            own.map(|(range, first)| AxisRange { start: range.start - first, ..*range }).collect();
        self.read_stored(grid, 1, &own, into.with_outer_axis())
    }

    /// Elements of a grid as it is stored, and of the `grids - 1` alike that follow it in its array: `into` has an axis of grids
    /// before those of space.
    ///
    /// # Errors
    /// Errors of the file.
    pub(super) fn read_stored(
        &self,
        grid: &LatticeGrid,
        grids: u64,
        own: &[AxisRange],
        into: Region,
    ) -> Result<()> {
        let place =
            self.locations.get(grid.number).ok_or_else(|| Error::internal("a grid without a place"))?;
        let file = self.files.get(place.file).ok_or_else(|| Error::internal("a grid without a file"))?;
        let own = own.iter().copied();
        match place.entry {
            None => file.read(place.array, 0, &Selection::new(own)?, into.without_outer_axis(), self.cancel),
            Some(entry) => {
                let entries = AxisRange::contiguous(entry, grids);
                let selection = Selection::new(std::iter::once(entries).chain(own))?;
                file.read(place.array, 0, &selection, into, self.cancel)
            }
        }
    }

    /// Elements that no grid of this level has.
    fn interpolate(&self, tier: usize, selection: &Selection, mut into: Region) -> Result<()> {
        let Some(coarser) = self.grids.tiers.get(tier + 1) else {
            return chunked::fill(into, &hole(self.dtype));
        };
        if selection.is_empty() {
            return Ok(());
        }
        let step = self.grids.step(tier);
        let between = |axis: usize| {
            let range = selection.ranges()[axis];
            let locations = (0..range.count).map(|i| self.grids.in_coarser(step[axis], range.index(i)));
            AxisInterpolation::new(locations, coarser.shape[axis])
        };
        let item = self.dtype.size_bytes() as u64;
        let is_small =
            |shape: &[u64]| shape.iter().fold(item, |n, &c| n.saturating_mul(c)) <= MAX_INTERPOLATED_BYTES;
        let reach = [0, 1, 2].map(|axis| {
            let range = selection.ranges()[axis];
            (range.end() - range.start).div_ceil(step[axis]) + 2
        });
        let shape = selection.shape();
        if (!is_small(&shape) || !is_small(&reach)) && shape.iter().any(|&n| n > 1) {
            let longest = (0..3).max_by_key(|&axis| (shape[axis] > 1, reach[axis])).unwrap_or(0);
            let (left, right) = halves(selection, into, longest)?;
            self.interpolate(tier, &left.0, left.1)?;
            return self.interpolate(tier, &right.0, right.1);
        }
        let axes = [between(0), between(1), between(2)];
        let coarse = Selection::of_box(&axes.each_ref().map(|a| a.first), &axes.each_ref().map(|a| a.count));
        let (target, region) = Target::new(&coarse.shape(), self.dtype.size_bytes())?;
        self.read(tier + 1, &coarse, region)?;
        into.write_all(&resample(&target.into_vec()?, &axes, self.dtype))
    }
}

/// The part of a selection that lies in a grid; those before and after it along each axis go to `outside`.
fn cut(
    selection: Selection,
    into: Region,
    grid: &LatticeGrid,
    outside: &mut dyn FnMut(Selection, Region),
) -> Result<(Selection, Region)> {
    let mut ranges: PerAxis<_> = PerAxis::from_slice(selection.ranges());
    let mut inside = into;
    for axis in 0..3 {
        let range = ranges[axis];
        let (first, count) = range.within(grid.low[axis], grid.high[axis]);
        let (before, rest) = inside.split(axis, in_memory(first)?);
        let (within, after) = rest.split(axis, in_memory(count)?);
        for (region, first, count) in
            [(before, 0, first), (after, first + count, range.count - first - count)]
        {
            if count > 0 {
                ranges[axis] = AxisRange { start: range.index(first), count, step: range.step };
                outside(Selection::new(ranges.iter().copied())?, region);
            }
        }
        ranges[axis] = AxisRange { start: range.index(first), count, step: range.step };
        inside = within;
    }
    Ok((Selection::new(ranges)?, inside))
}

type GridPart = (Selection, Region);

/// Splits a selection in halves along an axis on which it has several elements.
fn halves(selection: &Selection, into: Region, axis: usize) -> Result<(GridPart, GridPart)> {
    let range = selection.ranges()[axis];
    let first = range.count / 2;
    let part = |from: u64, count: u64| {
        let mut ranges: PerAxis<_> = PerAxis::from_slice(selection.ranges());
        ranges[axis] = AxisRange { start: range.index(from), count, step: range.step };
        Selection::new(ranges)
    };
    let (left, right) = into.split(axis, in_memory(first)?);
    Ok(((part(0, first)?, left), (part(first, range.count - first)?, right)))
}

fn in_memory(count: u64) -> Result<usize> {
    usize::try_from(count).map_err(|_| Error::too_large("expected a region that fits memory"))
}

/// Interpolation along one axis: the coarse samples between which each fine one lies.
pub(super) struct AxisInterpolation {
    /// The first coarse sample that is needed, and how many.
    first: u64,
    count: u64,
    /// Coarse sample below each fine one, counted from `first`, and the distance from it, 0 to 1.
    locations: Vec<(usize, f64)>,
}

impl AxisInterpolation {
    /// Finds the neighbors of `locations`, which are positions among coarse samples in ascending order. Beyond
    /// the outermost of `coarse` samples values stay constant.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "indices of a lattice, clamped"
    )]
    pub(super) fn new(locations: impl Iterator<Item = f64>, coarse: u64) -> Self {
        let last = coarse.saturating_sub(1);
        let all: Vec<(u64, f64)> = locations
            .map(|place| {
                let place = place.clamp(0.0, last as f64);
                (place.floor() as u64, place.fract())
            })
            .collect();
        let first = all.first().map_or(0, |(low, _)| *low);
        let end = all.last().map_or(0, |(low, part)| low + u64::from(*part > 0.0) + 1);
        let locations = all.iter().map(|(low, part)| ((low - first) as usize, *part)).collect();
        Self { first, count: end - first, locations }
    }

    /// Does the same as [`new`](Self::new) where all coarse samples are in memory, not only those that are
    /// needed.
    pub(super) fn of_all(locations: impl Iterator<Item = f64>, coarse: u64) -> Self {
        let Self { first, locations, .. } = Self::new(locations, coarse);
        let before = usize::try_from(first).unwrap_or(usize::MAX);
        Self {
            first: 0,
            count: coarse,
            locations: locations.into_iter().map(|(low, part)| (low + before, part)).collect(),
        }
    }

    fn size(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX)
    }
}

/// Elements between coarse ones, C order; `coarse` has the counts of `axes`. Integers are those of the nearest one.
pub(super) fn resample(coarse: &[u8], axes: &[AxisInterpolation; 3], dtype: DType) -> Vec<u8> {
    if !is_interpolated(dtype) {
        return nearest(coarse, axes, dtype.size_bytes());
    }
    let values = trilinear(coarse, axes, dtype);
    let mut bytes = vec![0; values.len() * dtype.size_bytes()];
    for (value, raw) in values.iter().zip(bytes.chunks_exact_mut(dtype.size_bytes())) {
        encode(*value, raw, dtype);
    }
    bytes
}

/// Copies the nearest coarse element; half way between two, the upper one.
fn nearest(coarse: &[u8], axes: &[AxisInterpolation; 3], item: usize) -> Vec<u8> {
    let [z, y, x] = axes;
    let row = x.size();
    let plane = row * y.size();
    let index = |&(low, part): &(usize, f64)| low + usize::from(part >= 0.5);
    let mut out = Vec::with_capacity(z.locations.len() * y.locations.len() * x.locations.len() * item);
    for z in z.locations.iter().map(index) {
        for y in y.locations.iter().map(index) {
            for x in x.locations.iter().map(index) {
                out.extend_from_slice(&coarse[(z * plane + y * row + x) * item..][..item]);
            }
        }
    }
    out
}

/// Values between coarse ones, C order; `coarse` has the counts of `axes`.
fn trilinear(coarse: &[u8], axes: &[AxisInterpolation; 3], dtype: DType) -> Vec<f64> {
    let coarse: Vec<f64> = with_element!(dtype.element(), T => {
        elements::<T>(coarse, dtype.order()).map(Element::to_f64).collect()
    });
    let [z, y, x] = axes;
    let row = x.size();
    let plane = row * y.size();
    let along_x = |start: usize, (low, part): (usize, f64)| mix(part, |high| coarse[start + low + high]);
    let mut out = Vec::with_capacity(z.locations.len() * y.locations.len() * x.locations.len());
    for &(below, up) in &z.locations {
        for &(before, on) in &y.locations {
            let start = below * plane + before * row;
            out.extend(x.locations.iter().map(|&at| {
                mix(up, |above| mix(on, |behind| along_x(start + above * plane + behind * row, at)))
            }));
        }
    }
    out
}

/// Interpolates between two values; the second is ignored if its weight is 0.
fn mix(part: f64, value: impl Fn(usize) -> f64) -> f64 {
    let first = value(0);
    if part == 0.0 { first } else { first + (value(1) - first) * part }
}

#[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
fn encode(value: f64, raw: &mut [u8], dtype: DType) {
    match dtype.element() {
        ElementType::F32 => (value as f32).write(raw, dtype.order()),
        _ => value.write(raw, dtype.order()),
    }
}

/// Returns the element for places where no level has a value: NaN for 32- and 64-bit floats, 0 for all other
/// types.
pub(super) fn hole(dtype: DType) -> Vec<u8> {
    let mut raw = vec![0; dtype.size_bytes()];
    if is_interpolated(dtype) {
        encode(f64::NAN, &mut raw, dtype);
    }
    raw
}

/// Whether values between others mean something: those of integers may be labels or flags.
pub(super) fn is_interpolated(dtype: DType) -> bool {
    matches!(dtype.element(), ElementType::F32 | ElementType::F64)
}
