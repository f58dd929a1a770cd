//! Joins the descriptions of many data sets into one, and records where each segment of an array lies. Pure: does no
//! input or output.
//!
//! Data sets that differ only in time form a *series*: they have the same arrays, and the arrays whose first axis is
//! time continue one another. They are joined in the order of their first times, which must have the same units and
//! must not overlap. Reference dates may differ where calendars agree; times are then converted to the reference date
//! of the first data set. Each array with a time axis becomes one array; of every other array (such as the latitudes of
//! a grid) the copy of the first data set is used. A data set that continues no other one is a series of its own.
//!
//! If there is only one series, arrays keep their own names; otherwise they are called `SERIES/ARRAY`, where a series
//! of several data sets is called `FIRST..LAST`.

use std::sync::Arc;

use array::{
    ArrayInfo, Attributes, AxisKind, AxisRange, BlockKey, Coordinates, Dataset, DatasetId, Error, ErrorKind,
    Generation, Group, LeftOut, Level, Region, Result, Selection, choose_blocks,
};
use wire::ops::BlockPlace;

use super::series::{self, SeriesMember, TimeShift};

/// Maximum deviation between steps of regular times, as a fraction of the step.
const STEP_TOLERANCE: f64 = 1e-6;

/// A segment of an array along its first axis, and its location.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ArraySegment {
    /// Number of the data set in the catalogue.
    pub(super) entry: usize,
    /// Number of the array in that data set.
    pub(super) array: u32,
    id: DatasetId,
    generation: Generation,
    /// First index of the segment.
    from: u64,
    /// Index after the last one of the segment.
    to: u64,
    /// Number of blocks of the segment on each level.
    blocks: Vec<Vec<u64>>,
    /// Shift that converts its values to the time reference of the series.
    pub(super) shift: Option<TimeShift>,
}

impl ArraySegment {
    /// Checks that a data set is still in the state that was joined.
    ///
    /// # Errors
    /// `Stale`.
    pub(super) fn check_same(&self, found: &Dataset) -> Result<()> {
        if (self.id, self.generation) == (found.id, found.generation) {
            return Ok(());
        }
        let what = format!("expected data set {} generation {}", self.id, self.generation.0);
        let found = format!("found {} generation {}", found.id, found.generation.0);
        Err(Error::new(ErrorKind::Stale, format!("{what}, {found}; describe it again")))
    }
}

/// Description of a catalogue, with the segments of its arrays.
#[derive(Debug)]
pub(super) struct JoinedCatalogue {
    pub(super) dataset: Arc<Dataset>,
    /// Segments of each array, in order along its first axis; at least one for each array.
    parts: Vec<Vec<ArraySegment>>,
}

impl JoinedCatalogue {
    /// Returns the data set that contains all of an array, and the place of the array in it.
    pub(super) fn place_there(&self, place: &BlockPlace) -> Option<(usize, BlockPlace)> {
        let [only] = &self.parts.get(place.array as usize)?[..] else { return None };
        let &ArraySegment { entry, array, id, generation, .. } = only;
        Some((entry, BlockPlace { dataset: id, generation, array, level: place.level }))
    }

    /// Returns the block of one data set that is identical to this block, if there is one.
    pub(super) fn block_there(
        &self,
        key: BlockKey,
        selection: &Selection,
    ) -> Option<(&ArraySegment, BlockKey)> {
        let parts = self.parts.get(key.array as usize)?;
        let level = self.dataset.array(key.array).ok()?.level(key.level).ok()?;
        let there = |part: &ArraySegment, index| BlockKey {
            dataset: part.id,
            generation: part.generation,
            array: part.array,
            level: key.level,
            index,
        };
        if let [only] = &parts[..] {
            return Some((only, there(only, key.index)));
        }
        let range = selection.ranges().first()?;
        let part = parts.iter().find(|p| p.from <= range.start && range.start < p.to)?;
        let block = part.blocks.get(usize::from(key.level))?;
        if part.shift.is_some() || *block != level.block || part.from % block[0] != 0 || range.end() > part.to
        {
            return None;
        }
        let mut at = level.grid_position(key.index).ok()?;
        at[0] -= part.from / block[0];
        let mut own = level.clone();
        own.shape[0] = part.to - part.from;
        Some((part, there(part, own.block_index(&at))))
    }

    /// Splits a selection of an array, and its target, into segments of one data set each, as selections in that data
    /// set.
    pub(super) fn segments_of(
        &self,
        array: u32,
        selection: &Selection,
        into: Region,
    ) -> Vec<(&ArraySegment, Selection, Region)> {
        let parts = self.parts.get(array as usize).map_or(&[][..], Vec::as_slice);
        if let [only] = parts {
            return vec![(only, selection.clone(), into)];
        }
        let mut rest = into;
        let mut found = Vec::new();
        for part in parts {
            let Some((range, others)) = selection.ranges().split_first() else { break };
            let (first, count) = range.within(part.from, part.to);
            if count == 0 {
                continue;
            }
            let own = AxisRange { start: range.index(first) - part.from, count, step: range.step };
            let ranges = [&[own], others].concat();
            // Element counts of a target fit in memory, and in `usize`.
            let (region, left) = rest.split(0, usize::try_from(count).unwrap_or(usize::MAX));
            rest = left;
            // A part of a valid selection is valid.
            found.extend(Selection::new(ranges).ok().map(|selection| (part, selection, region)));
        }
        found
    }
}

/// Joins data sets, given with their names.
///
/// # Errors
/// `Corrupt` or `TooLarge` if the joined description is not valid.
pub(super) fn join(described: &[(String, Arc<Dataset>)]) -> Result<JoinedCatalogue> {
    let mut warnings = Vec::new();
    let all_series = series::series(described, &mut warnings);
    let is_one = all_series.len() == 1;
    let (mut arrays, mut parts, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    let (mut attributes, mut groups) = (Attributes::new(), Vec::new());
    if !is_one {
        groups.push(Group::default());
    }
    for members in &all_series {
        let name = series_name(described, members);
        let named =
            |own: &str| if is_one { own.to_owned() } else { format!("{name}/{}", own.trim_matches('/')) };
        let first = &described[members[0].number].1;
        for (number, array) in (0u32..).zip(&first.arrays) {
            let (joined, segments) = joined_array(described, members, number, array)?;
            arrays.push(ArrayInfo { name: named(&array.name), ..joined });
            parts.push(segments);
        }
        attributes.extend(first.attributes.iter().map(|(own, value)| (named(own), value.clone())));
        groups.extend(named_groups(first, if is_one { "" } else { &name }));
        left_out.extend(first.left_out.iter().map(|l| LeftOut { name: named(&l.name), ..l.clone() }));
    }
    for (name, dataset) in described {
        warnings.extend(dataset.warnings.iter().map(|warning| format!("`{name}`: {warning}")));
    }
    let dataset = Dataset {
        id: identity(described),
        generation: Generation(0),
        name: if is_one { series_name(described, &all_series[0]) } else { "catalogue".into() },
        format: format!("catalogue of {} data sets", described.len()),
        arrays,
        attributes,
        left_out,
        warnings,
        groups,
    };
    dataset.check()?;
    Ok(JoinedCatalogue { dataset: Arc::new(dataset), parts })
}

/// Returns the groups of a data set below its name in the catalogue; the first group is the data set itself.
fn named_groups(dataset: &Dataset, name: &str) -> Vec<Group> {
    let root = Group { path: name.into(), format: dataset.format.clone(), ..Group::default() };
    let mut groups = vec![root];
    for own in &dataset.groups {
        match own.path.as_str() {
            "" => groups[0].unlimited.clone_from(&own.unlimited),
            path if name.is_empty() => groups.push(Group { path: path.into(), ..own.clone() }),
            path => groups.push(Group { path: format!("{name}/{path}"), ..own.clone() }),
        }
    }
    groups
}

/// Computes the identity of a catalogue from the names, identities and generations of all its data sets.
fn identity(described: &[(String, Arc<Dataset>)]) -> DatasetId {
    let part = |(name, d): &(String, Arc<Dataset>)| format!("{name}\n{}\n{}", d.id, d.generation.0);
    DatasetId::of(std::iter::once("catalogue".to_owned()).chain(described.iter().map(part)))
}

fn series_name(described: &[(String, Arc<Dataset>)], members: &[SeriesMember]) -> String {
    let name = |member: &SeriesMember| described[member.number].0.as_str();
    match members {
        [first, .., last] => format!("{}..{}", name(first), name(last)),
        [only] => name(only).to_owned(),
        [] => String::new(),
    }
}

/// Joins one array of a series; returns it with its segments.
fn joined_array(
    described: &[(String, Arc<Dataset>)],
    members: &[SeriesMember],
    number: u32,
    first: &ArrayInfo,
) -> Result<(ArrayInfo, Vec<ArraySegment>)> {
    let members = if series::is_timed(first) { members } else { &members[..1] };
    let of_member =
        |m: &SeriesMember| described[m.number].1.arrays.get(number as usize).map(|array| (m.clone(), array));
    let arrays: Vec<(SeriesMember, &ArrayInfo)> = members.iter().filter_map(of_member).collect();
    let mut parts = Vec::with_capacity(arrays.len());
    let mut from = 0;
    for (member, array) in &arrays {
        let entry = member.number;
        let dataset = &described[entry].1;
        let too_many =
            || Error::too_large(format!("expected fewer than 2^64 time steps in `{}`", array.name));
        let to = array.shape().first().copied().unwrap_or(1).checked_add(from).ok_or_else(too_many)?;
        let blocks = array.levels.iter().map(|level| level.block.clone()).collect();
        parts.push(ArraySegment {
            entry,
            array: number,
            id: dataset.id,
            generation: dataset.generation,
            from,
            to,
            blocks,
            shift: member.shift_of(number, array),
        });
        from = to;
    }
    let mut joined = first.clone();
    if let [_, _, ..] = &arrays[..] {
        joined.axes[0].coordinates = coordinates(&arrays, from);
        let kinds: Vec<AxisKind> = first.axes.iter().map(|axis| axis.kind).collect();
        for (number, level) in joined.levels.iter_mut().enumerate() {
            level.shape[0] = from;
            let of_level = || arrays.iter().map(|(_, array)| &array.levels[number]);
            level.chunk = same(of_level().map(|l| &l.chunk)).flatten();
            level.block = shared_blocks(&parts, of_level())
                .unwrap_or_else(|| choose_blocks(&level.shape, &kinds, first.dtype, level.chunk.as_deref()));
        }
    }
    Ok((joined, parts))
}

/// Returns the block shape per level that all segments share, if they continue one another without a gap.
fn shared_blocks<'a>(parts: &[ArraySegment], levels: impl Iterator<Item = &'a Level>) -> Option<Vec<u64>> {
    let block = same(levels.map(|level| &level.block))?;
    parts.iter().all(|part| part.from % block[0] == 0).then_some(block)
}

/// Returns the value that all items have in common; `None` if they differ or there are none.
fn same<'a, T: PartialEq + Clone + 'a>(mut all: impl Iterator<Item = &'a T>) -> Option<T> {
    let first = all.next()?;
    all.all(|other| other == first).then(|| first.clone())
}

/// Returns the coordinates along time of the samples of a series of `count` samples.
fn coordinates(arrays: &[(SeriesMember, &ArrayInfo)], count: u64) -> Coordinates {
    let of_time =
        || arrays.iter().map(|(m, array)| (&array.axes[0].coordinates, array.shape()[0], m.times_later));
    if let Some((&Coordinates::Regular { origin, step }, ..)) = of_time().next() {
        let mut at = 0;
        let is_regular = of_time().all(|(c, n, later)| {
            let expected = Coordinates::Regular { origin, step };
            let near = |i: u64| (c.at(i) + later - expected.at(at + i)).abs() <= step.abs() * STEP_TOLERANCE;
            let fits = n == 0 || (near(0) && near(n - 1));
            at += n;
            matches!(c, Coordinates::Regular { .. }) && fits
        });
        if is_regular {
            return Coordinates::Regular { origin, step };
        }
    }
    if count > Coordinates::MAX_EXPLICIT as u64 {
        return Coordinates::Index;
    }
    Coordinates::Explicit(of_time().flat_map(|(c, n, later)| (0..n).map(move |i| c.at(i) + later)).collect())
}
