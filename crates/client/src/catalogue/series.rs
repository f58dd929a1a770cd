//! Decides which data sets follow one another in time, and how times of one are converted to times of another. Pure:
//! does no input or output.
//!
//! Times are numbers since a reference date, in a calendar. Two data sets are comparable if calendar and unit agree. If
//! only the dates differ, a constant is added to the times of one data set: to the coordinate, its bounds, and all
//! other arrays along time in such units. Data sets are not joined where the addition is not exact (a type that is too
//! narrow, a packed value, a fill value near the times).

use std::sync::Arc;

use array::time::Reference;
use array::{
    ArrayInfo, Attribute, Attributes, AxisKind, Coordinates, DType, Dataset, ElementType, Scalar, Storage,
};

/// Minimum magnitude of a fill value that is not mistaken for a time.
const FAR: f64 = 1e9;

/// A data set of a series.
#[derive(Clone, Debug)]
pub(super) struct SeriesMember {
    /// Number of the data set in the catalogue.
    pub(super) number: usize,
    /// Number to add to its times to convert them to times of the series.
    pub(super) times_later: f64,
    /// Number to add to the values of each array, by number of the array; 0 for arrays that do not hold times.
    values_later: Vec<f64>,
}

impl SeriesMember {
    fn alone(number: usize) -> Self {
        Self { number, times_later: 0.0, values_later: Vec::new() }
    }

    /// Returns the shift that converts values of an array to those of the series; `None` where none is needed.
    pub(super) fn shift_of(&self, number: u32, array: &ArrayInfo) -> Option<TimeShift> {
        let later = self.values_later.get(number as usize).copied().filter(|&later| later != 0.0)?;
        Some(TimeShift { later, dtype: array.dtype, missing: array.decoding.missing.clone() })
    }
}

/// A number that is added to stored times.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TimeShift {
    later: f64,
    dtype: DType,
    missing: Vec<Scalar>,
}

impl TimeShift {
    /// Adds the number to every element that is not missing.
    ///
    /// # Errors
    /// `Unsupported` if a sum exceeds the range of the element type.
    pub(super) fn apply(&self, bytes: &mut [u8]) -> array::Result<()> {
        let element = self.dtype.element();
        for raw in bytes.chunks_exact_mut(self.dtype.size_bytes()) {
            let Some(value) = self.dtype.scalar_at(raw, 0).filter(|value| !self.missing.contains(value))
            else {
                continue;
            };
            let sum = match value.integer() {
                Some(whole) => self.sum(whole)?,
                None => Scalar::Float(value.as_f64() + self.later),
            };
            raw.copy_from_slice(&sum.to_little_endian(element));
            if self.dtype.order() == array::ByteOrder::Big {
                raw.reverse();
            }
        }
        Ok(())
    }

    /// Returns the sum of the number and one element; the number is whole for elements of integer type.
    fn sum(&self, whole: i128) -> array::Result<Scalar> {
        let (low, high) = self.dtype.element().limits();
        #[expect(clippy::cast_possible_truncation, reason = "whole days or seconds")]
        let sum = whole + self.later as i128;
        let scalar = match (i64::try_from(sum), u64::try_from(sum)) {
            (Ok(signed), _) => Some(Scalar::Signed(signed)),
            (_, Ok(unsigned)) => Some(Scalar::Unsigned(unsigned)),
            _ => None,
        };
        scalar.filter(|_| (low..=high).contains(&sum)).ok_or_else(|| {
            array::Error::unsupported(format!(
                "expected a time that fits its type after the conversion to another reference date, found {whole}"
            ))
        })
    }
}

/// Groups the data sets by series, each in the order of time.
pub(super) fn series(
    described: &[(String, Arc<Dataset>)],
    warnings: &mut Vec<String>,
) -> Vec<Vec<SeriesMember>> {
    let mut groups: Vec<(Vec<ArrayInfo>, Vec<TimedDataset>)> = Vec::new();
    let mut found = Vec::new();
    for (number, (_, dataset)) in described.iter().enumerate() {
        let Some(timed) = TimedDataset::of(number, dataset) else {
            found.push(vec![SeriesMember::alone(number)]);
            continue;
        };
        let timeless = timed.timeless(dataset);
        match groups.iter_mut().find(|(known, _)| *known == timeless) {
            Some((_, members)) => members.push(timed),
            None => groups.push((timeless, vec![timed])),
        }
    }
    for (_, members) in groups {
        let numbers: Vec<usize> = members.iter().map(|member| member.number).collect();
        match in_order(members, described) {
            Ok(members) => found.push(members),
            Err(warning) => {
                warnings.push(warning);
                found.extend(numbers.into_iter().map(|number| vec![SeriesMember::alone(number)]));
            }
        }
    }
    found.sort_by_key(|members| members.iter().map(|member| member.number).collect::<Vec<_>>());
    found
}

/// Sorts the members of a series by time; the error is the reason that they are not joined.
fn in_order(
    members: Vec<TimedDataset>,
    described: &[(String, Arc<Dataset>)],
) -> Result<Vec<SeriesMember>, String> {
    let name = |number: usize| described[number].0.as_str();
    let (base, base_number) = (members[0].times, members[0].number);
    let differently = || {
        format!(
            "`{}` and other data sets have times in different units or calendars: they are not joined",
            name(base_number)
        )
    };
    let mut keyed = Vec::with_capacity(members.len());
    for member in members {
        let key = member.first + later(member.times, base).ok_or_else(differently)?;
        keyed.push((key, member));
    }
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let members: Vec<TimedDataset> = keyed.into_iter().map(|(_, member)| member).collect();
    let first = &members[0];
    let mut joined = Vec::with_capacity(members.len());
    let mut last: Option<(f64, &TimedDataset)> = None;
    for member in &members {
        let times_later = later(member.times, first.times).ok_or_else(differently)?;
        if let Some((_, before)) = last.filter(|(end, _)| *end >= member.first + times_later) {
            let (before, after) = (name(before.number), name(member.number));
            return Err(format!("`{before}` and `{after}` overlap in time: they are not joined"));
        }
        last = Some((member.last + times_later, member));
        let arrays = &described[member.number].1.arrays;
        let mut values_later = Vec::with_capacity(arrays.len());
        for ((array, own), base) in arrays.iter().zip(&member.values).zip(&first.values) {
            let value = later(*own, *base).filter(|&value| can_be_added(array, value, member));
            values_later.push(value.ok_or_else(|| {
                format!(
                    "`{}` and `{}` have different reference dates, and `{}` cannot be converted to the first one's: \
                     they are not joined",
                    name(first.number),
                    name(member.number),
                    array.name
                )
            })?);
        }
        joined.push(SeriesMember { number: member.number, times_later, values_later });
    }
    Ok(joined)
}

/// Returns the number to add to times relative to `own` to get times relative to `base`; `None` if it cannot be
/// expressed.
fn later(own: Option<Reference>, base: Option<Reference>) -> Option<f64> {
    match (own, base) {
        (Some(own), Some(base)) => own.in_terms_of(&base),
        // Units that cannot be parsed are compared as text by `timeless`.
        _ => Some(0.0),
    }
}

/// Returns whether a number can be added exactly to the stored values of an array of times.
#[expect(clippy::cast_precision_loss, reason = "limits of types, compared with times")]
fn can_be_added(array: &ArrayInfo, later: f64, member: &TimedDataset) -> bool {
    if later == 0.0 {
        return true;
    }
    let decoding = &array.decoding;
    let is_plain = decoding.scale.to_bits() == 1f64.to_bits()
        && decoding.offset == 0.0
        && decoding.unsigned.is_none()
        && decoding.obstacle.is_none();
    let is_far = |m: &Scalar| m.as_f64().is_nan() || m.as_f64().abs() >= FAR;
    if !is_plain || !decoding.missing.iter().all(is_far) {
        return false;
    }
    match array.dtype.element() {
        ElementType::F64 => true,
        element if element.is_integer() && later.fract() == 0.0 => {
            let (low, high) = element.limits();
            // Bounds extend beyond times by one step.
            let (first, last) = (member.first + later, member.last + later);
            let margin = (last - first).abs() + 1.0;
            first - margin >= low as f64 && last + margin <= high as f64 && last.abs() < FAR * FAR
        }
        _ => false,
    }
}

/// A data set with times.
#[derive(Clone)]
struct TimedDataset {
    number: usize,
    first: f64,
    last: f64,
    /// Reference of the times along its axis.
    times: Option<Reference>,
    /// Reference of the values of each array, for arrays that hold times.
    values: Vec<Option<Reference>>,
}

impl TimedDataset {
    /// Returns `None` if the times of any array with a time axis are not known.
    fn of(number: usize, dataset: &Dataset) -> Option<Self> {
        let mut timed = dataset.arrays.iter().filter(|a| is_timed(a));
        let array = timed.next()?;
        let (axis, count) = (array.axes.first()?, *array.shape().first()?);
        let end = count.checked_sub(1)?;
        let (first, last) = (axis.coordinates.at(0), axis.coordinates.at(end));
        let is_known = axis.coordinates != Coordinates::Index && first.is_finite() && first <= last;
        let same = |other: &ArrayInfo| other.axes.first().is_some_and(|a| a.coordinates == axis.coordinates);
        let full = |a: &ArrayInfo| a.levels.iter().all(|level| level.shape.first() == Some(&count));
        if !(is_known && last.is_finite() && full(array) && timed.all(|a| same(a) && full(a))) {
            return None;
        }
        let values = dataset.arrays.iter().map(|a| values_of(dataset, a)).collect();
        Some(Self { number, first, last, times: times_of(dataset, array), values })
    }

    /// Returns the properties that are equal for data sets that continue one another.
    fn timeless(&self, dataset: &Dataset) -> Vec<ArrayInfo> {
        dataset
            .arrays
            .iter()
            .zip(&self.values)
            .map(|(array, values)| timeless(dataset, array, values))
            .collect()
    }
}

pub(super) fn is_timed(array: &ArrayInfo) -> bool {
    array.axes.first().is_some_and(|axis| axis.kind == AxisKind::Time)
}

/// Returns the array that holds the coordinates of an array's first axis: in its group or an enclosing one.
fn coordinate_of<'a>(dataset: &'a Dataset, array: &ArrayInfo) -> Option<&'a ArrayInfo> {
    let name = &array.axes.first()?.name;
    let mut group = array.name.trim_matches('/');
    loop {
        group = group.rsplit_once('/').map_or("", |(outer, _)| outer);
        let path = if group.is_empty() { name.clone() } else { format!("{group}/{name}") };
        match dataset.arrays.iter().find(|other| other.name.trim_matches('/') == path) {
            None if !group.is_empty() => {}
            found => return found,
        }
    }
}

fn text<'a>(array: &'a ArrayInfo, name: &str) -> Option<&'a str> {
    match array.attributes.get(name) {
        Some(Attribute::Text(text)) => Some(text.trim()),
        _ => None,
    }
}

/// Returns the calendar of the times of an array.
fn calendar<'a>(dataset: &'a Dataset, array: &'a ArrayInfo) -> &'a str {
    let of_axis = coordinate_of(dataset, array).and_then(|axis| text(axis, "calendar"));
    of_axis.or_else(|| text(array, "calendar")).unwrap_or("standard")
}

fn times_of(dataset: &Dataset, array: &ArrayInfo) -> Option<Reference> {
    Reference::of(&array.axes.first()?.units, calendar(dataset, array))
}

/// Returns the reference of the values of an array, if they are times along the time axis.
fn values_of(dataset: &Dataset, array: &ArrayInfo) -> Option<Reference> {
    if !is_timed(array) {
        return None;
    }
    if array.units.contains(" since ") {
        return Reference::of(
            &array.units,
            text(array, "calendar").unwrap_or_else(|| calendar(dataset, array)),
        );
    }
    // Bounds have the units of their coordinate, with or without a `units` attribute.
    let own = array.name.trim_matches('/');
    let own = own.rsplit_once('/').map_or(own, |(_, name)| name);
    let axis = coordinate_of(dataset, array)?;
    let names = [text(axis, "bounds"), text(axis, "climatology")];
    let is_bounds = array.units.is_empty() && names.contains(&Some(own));
    if is_bounds { times_of(dataset, array) } else { None }
}

/// Returns the properties that are equal for arrays that continue one another.
fn timeless(dataset: &Dataset, array: &ArrayInfo, values: &Option<Reference>) -> ArrayInfo {
    let calendar = calendar(dataset, array);
    let reference = times_of(dataset, array);
    let mut array = ArrayInfo {
        attributes: Attributes::new(),
        notes: Vec::new(),
        storage: Storage::default(),
        ..array.clone()
    };
    if !is_timed(&array) {
        return array;
    }
    let axis = &mut array.axes[0];
    axis.coordinates = Coordinates::Index;
    axis.units = reference.map_or_else(|| format!("{} by {calendar}", axis.units), |r| r.clock());
    if let Some(values) = values {
        array.units = values.clock();
    }
    for level in &mut array.levels {
        level.shape[0] = 0;
        level.block = Vec::new();
        level.chunk = None;
    }
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_beyond_the_type_is_an_error() {
        let missing = vec![Scalar::Signed(-1)];
        let shift = TimeShift { later: 100.0, dtype: "|i1".parse().unwrap(), missing };
        let mut bytes = [1, 255];
        shift.apply(&mut bytes).unwrap();
        assert_eq!(bytes, [101, 255], "missing values are not changed");
        assert!(shift.apply(&mut [100]).is_err());
    }
}
