//! Reading of virtual data sets: each part is copied from the source that holds it.

use array::{AxisRange, Error, Region, Result, Selection, Target, c_strides};

use super::super::storage::tile;
use super::super::{Hdf5, Hdf5Array};
use super::{VirtualPart, VirtualPartAxis};
use crate::CancelFlag;
use crate::formats::common::chunked::{ChunkPart, for_each_chunk};

/// Reads a selection of a virtual data set of `shape`.
///
/// # Errors
/// Errors of reading the sources; `Cancelled`.
pub(in super::super) fn read_parts(
    hdf5: &Hdf5,
    stored: &Hdf5Array,
    parts: &[VirtualPart],
    selection: &Selection,
    into: Region,
    cancel: &CancelFlag,
) -> Result<()> {
    let tile = tile(&stored.shape, into.item_bytes());
    for_each_chunk(selection, &tile, into, &mut |part, mut into| {
        cancel.check()?;
        into.write_all(&read_tile(hdf5, stored, parts, part, &tile, &into, cancel)?)
    })
}

fn read_tile(
    hdf5: &Hdf5,
    stored: &Hdf5Array,
    parts: &[VirtualPart],
    part: &ChunkPart<'_>,
    tile: &[u64],
    into: &Region,
    cancel: &CancelFlag,
) -> Result<Vec<u8>> {
    let item = into.item_bytes();
    let mut bytes = stored.facts.fill.repeat(into.size_bytes() / item.max(1));
    if bytes.len() != into.size_bytes() {
        return Err(Error::internal("expected a fill value of one element"));
    }
    let strides = c_strides(into.shape(), item);
    let wanted = part.ranges(tile);
    for virtual_part in parts {
        let runs: Option<Vec<Vec<CopyRun>>> =
            virtual_part.axes.iter().zip(&wanted).map(|(axis, range)| runs(*axis, range)).collect();
        let Some(runs) = runs else { continue };
        let source = hdf5
            .sources
            .get(virtual_part.source)
            .ok_or_else(|| Error::internal("expected a source that was found"))?;
        copy(hdf5, source, virtual_part, &runs, &strides, item, &mut bytes, cancel)?;
    }
    Ok(bytes)
}

/// Elements next to one another in both: `count` of them, from `first` of the wanted ones on, which lie from `source` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CopyRun {
    first: usize,
    /// Distances from one element to the next: among the selected ones, and in the source.
    first_step: usize,
    source: u64,
    source_step: u64,
    count: u64,
}

/// The wanted elements of an axis that a part holds, in runs; `None` where it has none.
fn runs(axis: VirtualPartAxis, wanted: &AxisRange) -> Option<Vec<CopyRun>> {
    let mut runs: Vec<CopyRun> = Vec::new();
    let end = axis.target.end()?;
    for number in 0..wanted.count {
        let place = wanted.index(number);
        if place < axis.target.start || place >= end {
            continue;
        }
        let Some(index) = axis.target.index_of(place) else { continue };
        let source = axis.source.map_or(0, |(_, steps)| steps.at(index));
        let first = usize::try_from(number).ok()?;
        match runs.last_mut() {
            Some(run) if run.count == 1 && source > run.source => {
                run.first_step = first - run.first;
                run.source_step = source - run.source;
                run.count = 2;
            }
            Some(run)
                if run.count > 1
                    && source == run.source + run.count * run.source_step
                    && first as u64 == run.first as u64 + run.count * run.first_step as u64 =>
            {
                run.count += 1;
            }
            _ => runs.push(CopyRun { first, first_step: 1, source, source_step: 1, count: 1 }),
        }
    }
    (!runs.is_empty()).then_some(runs)
}

/// Copies all combinations of runs of a part.
#[expect(clippy::too_many_arguments, reason = "the source and target of the copy")]
fn copy(
    hdf5: &Hdf5,
    source: &Hdf5Array,
    part: &VirtualPart,
    runs: &[Vec<CopyRun>],
    strides: &[usize],
    item: usize,
    bytes: &mut [u8],
    cancel: &CancelFlag,
) -> Result<()> {
    let mut chosen = vec![0; runs.len()];
    loop {
        let picked: Vec<CopyRun> =
            chosen.iter().zip(runs).filter_map(|(&n, runs)| runs.get(n).copied()).collect();
        copy_box(hdf5, source, part, &picked, strides, item, bytes, cancel)?;
        // The next combination, the last axis first.
        let mut axis = runs.len();
        loop {
            let Some(next) = axis.checked_sub(1) else { return Ok(()) };
            axis = next;
            chosen[axis] += 1;
            if chosen[axis] < runs[axis].len() {
                break;
            }
            chosen[axis] = 0;
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "as above")]
fn copy_box(
    hdf5: &Hdf5,
    source: &Hdf5Array,
    part: &VirtualPart,
    runs: &[CopyRun],
    strides: &[usize],
    item: usize,
    bytes: &mut [u8],
    cancel: &CancelFlag,
) -> Result<()> {
    let mut ranges: Vec<AxisRange> =
        part.start.iter().map(|&start| AxisRange { start, count: 1, step: 1 }).collect();
    for (axis, run) in part.axes.iter().zip(runs) {
        if let Some(range) = axis.source.and_then(|(number, _)| ranges.get_mut(number)) {
            *range = AxisRange { start: run.source, count: run.count, step: run.source_step };
        }
    }
    let selection = Selection::new(ranges)?;
    let (target, region) = Target::new(&selection.shape(), item)?;
    hdf5.read_stored(source, &selection, region, cancel)?;
    let values = target.into_vec()?;
    // Axes run in the same order in both.
    let mut from = 0;
    let start = runs.iter().zip(strides).map(|(run, stride)| run.first * stride).sum();
    place(&values, &mut from, runs, strides, start, item, bytes)
}

fn place(
    values: &[u8],
    from: &mut usize,
    runs: &[CopyRun],
    strides: &[usize],
    at: usize,
    item: usize,
    bytes: &mut [u8],
) -> Result<()> {
    let short = || Error::internal("expected a part within its tile");
    let (Some((run, runs)), Some((stride, strides))) = (runs.split_first(), strides.split_first()) else {
        let into = bytes.get_mut(at..at + item).ok_or_else(short)?;
        into.copy_from_slice(values.get(*from..*from + item).ok_or_else(short)?);
        *from += item;
        return Ok(());
    };
    let step = run.first_step * stride;
    let count = usize::try_from(run.count).map_err(|_| short())?;
    if runs.is_empty() && step == item {
        let size = count * item;
        let into = bytes.get_mut(at..at + size).ok_or_else(short)?;
        into.copy_from_slice(values.get(*from..*from + size).ok_or_else(short)?);
        *from += size;
        return Ok(());
    }
    for number in 0..count {
        place(values, from, runs, strides, at + number * step, item, bytes)?;
    }
    Ok(())
}
