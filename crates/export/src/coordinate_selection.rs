//! Selections of elements by coordinates, as text: `tas(time=2001-03-01:2001-03-31, lat=40:60, lev=500)`.
//!
//! As in xarray's `sel`, ranges include both ends, and a date selects all samples of the year, month, day or time that
//! it names. A date drops its axis if it is as precise as the times of the axis and selects one sample. A single number
//! selects the nearest sample, and drops its axis. A number outside of the samples, and a date without a sample, are
//! errors that name the range of the samples. A range that extends beyond the samples selects the existing ones, with a
//! warning. Coordinates are numbers in the axis's units, or dates if these are a time in one of CF's calendars.

use std::sync::Arc;

use array::time::calendar::{Date, TimeUnits};
use array::{
    ArrayInfo, Attribute, AxisRange, Coordinates, Dataset, Error, IndexEntry, Indexing, Meaning, Priority,
    ReadRequest, Result, Selection, Source, Target,
};

/// Maximum number of coordinates of an axis that are read for a search.
const MAX_READ: u64 = 1 << 24;
/// Maximum number of axes named in one selection.
const MAX_NAMED: usize = array::MAX_AXES;

/// Selections along some axes, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoordinateSelection(Vec<(String, CoordinateIndexer)>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum CoordinateIndexer {
    /// All samples from one end to the other, including both; `None` is the end of the axis.
    Range(Option<String>, Option<String>),
    /// A date, or a number that selects the nearest sample.
    Single(String),
}

fn is_value(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(|value| !value.is_nan()) || Date::parse(text).is_some()
}

impl CoordinateIndexer {
    /// Parses a value or a range. Times of day contain colons too: the separator is the colon with valid values on both
    /// sides.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if is_value(text) {
            return Some(Self::Single(text.to_owned()));
        }
        let side = |text: &str| {
            let text = text.trim();
            (text.is_empty() || is_value(text)).then(|| Some(text.to_owned()).filter(|text| !text.is_empty()))
        };
        let halves =
            text.match_indices(':').filter_map(|(at, _)| Some((side(&text[..at])?, side(&text[at + 1..])?)));
        let halves: Vec<_> = halves.collect();
        let [(from, to)] = &halves[..] else { return None };
        Some(Self::Range(from.clone(), to.clone()))
    }
}

impl CoordinateSelection {
    /// Parses the text between the parentheses.
    ///
    /// # Errors
    /// `Invalid`, quoting the malformed part.
    pub fn parse(text: &str) -> Result<Self> {
        let mut wanted: Vec<(String, CoordinateIndexer)> = Vec::new();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let bad = || {
                Error::invalid(format!(
                    "expected an axis and its values, such as `lat=40:60`, `lev=500` or `time=2001-03-01:2001-03-31`, found `{}`",
                    part.trim()
                ))
            };
            let (axis, value) = part.split_once('=').ok_or_else(bad)?;
            let axis = axis.trim().trim_matches(['"', '\'']).to_owned();
            if axis.is_empty() || wanted.iter().any(|(known, _)| *known == axis) || wanted.len() >= MAX_NAMED
            {
                return Err(bad());
            }
            wanted.push((axis, CoordinateIndexer::parse(value).ok_or_else(bad)?));
        }
        Ok(Self(wanted))
    }

    /// Converts the selection to one by index, for an array at full resolution; returns warnings for ranges that extend
    /// beyond the samples, too. Reads coordinates that the description lacks.
    ///
    /// # Errors
    /// `NotFound` for axes that do not exist, `Invalid` for values outside of them; the errors of the source.
    pub async fn to_indexing(
        &self,
        source: &Arc<dyn Source>,
        dataset: &Dataset,
        array: &ArrayInfo,
    ) -> Result<(Indexing, Vec<String>)> {
        let mut warnings = Vec::new();
        let mut entries = vec![IndexEntry::Slice { start: None, stop: None, step: 1 }; array.axes.len()];
        for (name, wanted) in &self.0 {
            let found = array.axes.iter().position(|axis| axis.name == *name || last(&axis.name) == name);
            let number = found.ok_or_else(|| {
                let names: Vec<&str> = array.axes.iter().map(|axis| axis.name.as_str()).collect();
                Error::not_found(format!(
                    "expected one of the axes {names:?} of `{}`, found `{name}`",
                    array.name
                ))
            })?;
            if text_array(dataset, array, number).is_some() {
                return Err(Error::invalid(format!(
                    "expected numbers as coordinates of axis `{name}` of array `{}`, found texts; select by index",
                    array.name
                )));
            }
            let scale = AxisCoordinates::of(source, dataset, array, number).await?;
            let about = || format!("axis `{name}` of array `{}`", array.name);
            entries[number] = scale.find(wanted).map_err(|e| e.context(about()))?;
            warnings.extend(scale.beyond(wanted).map(|what| format!("{}: {what}", about())));
        }
        Ok((Indexing::new(entries)?, warnings))
    }
}

/// Returns whether units are those of longitudes in the CF conventions, section 4.2.
fn is_longitude(units: &str) -> bool {
    matches!(units, "degrees_east" | "degree_east" | "degree_E" | "degrees_E" | "degreeE" | "degreesE")
}

fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Returns the array of a data set with an axis's coordinates: with its name and length, in the same group or above.
/// Arrays of texts are excluded.
pub(crate) fn coordinate_array<'a>(
    dataset: &'a Dataset,
    array: &ArrayInfo,
    axis: usize,
) -> Option<(u32, &'a ArrayInfo)> {
    let size = *array.shape().get(axis)?;
    array_named_as(dataset, array, axis, |other| other.meaning != Meaning::Text && other.shape() == [size])
}

/// Returns the array with texts instead of an axis's coordinates, one text or one character for each sample.
pub(crate) fn text_array<'a>(
    dataset: &'a Dataset,
    array: &ArrayInfo,
    axis: usize,
) -> Option<(u32, &'a ArrayInfo)> {
    let size = [*array.shape().get(axis)?];
    let has_numbers = array.axes.get(axis)?.coordinates != Coordinates::Index;
    if has_numbers || coordinate_array(dataset, array, axis).is_some() {
        return None;
    }
    array_named_as(dataset, array, axis, |other| {
        other.meaning == Meaning::Text && (other.shape() == size || other.text_shape() == Some(&size[..]))
    })
}

/// Returns the innermost array with the name of an axis that satisfies `fits`, in the group of `array` or above.
fn array_named_as<'a>(
    dataset: &'a Dataset,
    array: &ArrayInfo,
    axis: usize,
    fits: impl Fn(&ArrayInfo) -> bool,
) -> Option<(u32, &'a ArrayInfo)> {
    let own = &array.axes.get(axis)?.name;
    let group = array.name.rsplit_once('/').map_or("", |(group, _)| group);
    let is_match = |other: &ArrayInfo| last(&other.name) == last(own) && fits(other);
    let depth = |other: &ArrayInfo| other.name.rsplit_once('/').map_or("", |(group, _)| group).len();
    let is_above = |other: &ArrayInfo| {
        let above = other.name.rsplit_once('/').map_or("", |(group, _)| group);
        above.is_empty() || group == above || group.starts_with(&format!("{above}/"))
    };
    let all = (0u32..).zip(&dataset.arrays).filter(|(_, other)| is_match(other) && is_above(other));
    all.max_by_key(|(_, other)| depth(other))
}

/// Coordinates of the samples of an axis.
pub(crate) struct AxisCoordinates {
    pub(crate) values: Vec<f64>,
    /// Units and calendar, for a time axis.
    pub(crate) time: Option<TimeUnits>,
    /// Reason that it is not a time axis.
    obstacle: String,
    units: String,
}

impl AxisCoordinates {
    fn new(values: Vec<f64>, units: String, calendar: &str) -> Self {
        let (time, obstacle) = match TimeUnits::parse(&units, calendar) {
            Ok(time) => (Some(time), String::new()),
            Err(error) => (None, error.message().to_owned()),
        };
        Self { values, time, obstacle, units }
    }

    /// Returns the coordinates of an axis; reads them if the description lacks them.
    ///
    /// # Errors
    /// The errors of reading; `TooLarge` for too many coordinates.
    pub(crate) async fn of(
        source: &Arc<dyn Source>,
        dataset: &Dataset,
        array: &ArrayInfo,
        axis: usize,
    ) -> Result<Self> {
        let size = array.shape().get(axis).copied().unwrap_or(0);
        let about = &array.axes[axis];
        let stored = coordinate_array(dataset, array, axis);
        let text = |array: &ArrayInfo, name: &str| match array.attributes.get(name) {
            Some(Attribute::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let units = stored.and_then(|(_, array)| text(array, "units")).unwrap_or_else(|| about.units.clone());
        let calendar =
            stored.and_then(|(_, array)| text(array, "calendar")).or_else(|| text(array, "calendar"));
        if size > MAX_READ {
            return Err(Error::too_large(format!(
                "expected at most {MAX_READ} coordinates along `{}`, found {size}; select by index",
                about.name
            )));
        }
        let values = match (&about.coordinates, stored) {
            (Coordinates::Index, Some((number, stored))) => read(source, number, stored, size).await?,
            (coordinates, _) => (0..size).map(|index| coordinates.at(index)).collect(),
        };
        Ok(Self::new(values, units, calendar.as_deref().unwrap_or_default()))
    }

    /// Returns the coordinate of a sample; NaN if there is none.
    pub(crate) fn value(&self, index: u64) -> f64 {
        usize::try_from(index).ok().and_then(|index| self.values.get(index).copied()).unwrap_or(f64::NAN)
    }

    /// Formats a coordinate for display.
    pub(crate) fn text(&self, value: f64) -> String {
        let date = self.time.and_then(|time| time.text(value));
        date.unwrap_or_else(|| format!("{value}"))
    }

    fn find(&self, wanted: &CoordinateIndexer) -> Result<IndexEntry> {
        if self.values.is_empty() {
            return Err(Error::invalid("expected samples, found none along this axis"));
        }
        match wanted {
            CoordinateIndexer::Range(from, to) => self.range(from.as_deref(), to.as_deref()),
            CoordinateIndexer::Single(text) => match self.time.zip(Date::parse(text)) {
                Some((time, date)) => self.within(time, &date, text),
                None => self.nearest(text),
            },
        }
    }

    /// Converts a coordinate to a moment, a number by which times can be compared; other coordinates are unchanged.
    fn moment(&self, value: f64) -> f64 {
        self.time.map_or(value, |time| time.moment(value))
    }

    fn extent(&self) -> (f64, f64) {
        let finite = self.values.iter().copied().filter(|value| value.is_finite());
        finite
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
    }

    /// Formats the range of the coordinates, for error messages.
    fn span(&self) -> String {
        let (low, high) = self.extent();
        let units = if self.time.is_some() || self.units.is_empty() {
            String::new()
        } else {
            format!(" {}", self.units)
        };
        format!("they go from {} to {}{units}", self.text(low), self.text(high))
    }

    /// Returns the first and the last moment of a date or number.
    fn ends_of(&self, text: &str) -> Result<(f64, f64)> {
        if let Some(time) = self.time {
            if let Some(date) = Date::parse(text) {
                return time.span(&date).ok_or_else(|| {
                    Error::invalid(format!("`{text}` is no date of the calendar of this axis"))
                });
            }
            return Err(Error::invalid(format!(
                "expected a date such as `2001-03-01`, found `{text}`; {}",
                self.span()
            )));
        }
        let value: f64 = text.parse().map_err(|_| {
            Error::invalid(format!("expected a number, found `{text}`: {}; {}", self.obstacle, self.span()))
        })?;
        Ok((value, value))
    }

    fn range(&self, from: Option<&str>, to: Option<&str>) -> Result<IndexEntry> {
        let moments: Vec<f64> = self.values.iter().map(|&value| self.moment(value)).collect();
        let rises = moments.windows(2).all(|pair| pair[0] <= pair[1]);
        let falls = moments.windows(2).all(|pair| pair[0] >= pair[1]);
        if !rises && !falls && moments.len() > 1 {
            return Err(Error::invalid(
                "expected coordinates that rise or fall along the axis, found others; select by index",
            ));
        }
        let from = from.map(|text| self.ends_of(text)).transpose()?;
        let to = to.map(|text| self.ends_of(text)).transpose()?;
        if let (Some(from), Some(to)) = (from, to)
            && from.0 > to.0
            && is_longitude(&self.units)
        {
            return Err(Error::invalid(format!(
                "expected a range of longitudes from west to east, found one that crosses the end of the axis; select its two \
                 parts separately; {}",
                self.span()
            )));
        }
        // Either order is allowed: along a decreasing axis users write both.
        let (low, high) = match (from, to) {
            (Some(a), Some(b)) => (a.0.min(b.0), a.1.max(b.1)),
            (Some(a), None) if rises || moments.len() < 2 => (a.0, f64::INFINITY),
            (Some(a), None) => (f64::NEG_INFINITY, a.1),
            (None, Some(b)) if rises || moments.len() < 2 => (f64::NEG_INFINITY, b.1),
            (None, Some(b)) => (b.0, f64::INFINITY),
            (None, None) => (f64::NEG_INFINITY, f64::INFINITY),
        };
        let is_in = |moment: &f64| (low..=high).contains(moment);
        let start = moments.iter().position(is_in);
        let stop = moments.iter().rposition(is_in).map(|last| last + 1);
        let (Some(start), Some(stop)) = (start, stop) else {
            return Err(Error::invalid(format!("no sample lies in that range; {}", self.span())));
        };
        let index = |at: usize| i64::try_from(at).ok();
        Ok(IndexEntry::Slice { start: index(start), stop: index(stop), step: 1 })
    }

    /// Returns the lowest and the highest moment that the samples represent. An outermost sample represents the
    /// interval that extends outwards by half of its distance to the next sample.
    fn reach(&self) -> Option<(f64, f64)> {
        let moments = self.values.iter().map(|&value| self.moment(value));
        let mut sorted: Vec<f64> = moments.filter(|moment| moment.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let below = sorted.get(1).map_or(0.0, |next| (next - low) / 2.0);
        let above = sorted.iter().rev().nth(1).map_or(0.0, |next| (high - next) / 2.0);
        Some((low - below, high + above))
    }

    /// Returns a warning with the ends of a range that lie beyond the samples; `None` for a single sample, whose extent
    /// is unknown.
    fn beyond(&self, wanted: &CoordinateIndexer) -> Option<String> {
        let CoordinateIndexer::Range(from, to) = wanted else { return None };
        let (low, high) = self.reach().filter(|_| self.values.len() > 1)?;
        let is_beyond =
            |text: &&str| self.ends_of(text).is_ok_and(|(begins, ends)| ends < low || begins > high);
        let ends = [from, to].into_iter().flatten().map(String::as_str);
        let outside: Vec<&str> = ends.filter(is_beyond).collect();
        let (verb, ends) = (if outside.len() == 1 { "lies" } else { "lie" }, outside.join("` and `"));
        (!outside.is_empty()).then(|| format!("`{ends}` {verb} outside of the samples; {}", self.span()))
    }

    /// Selects all samples of a date; drops the axis if it is one sample, and the date is as precise as the axis.
    fn within(&self, time: TimeUnits, date: &Date, text: &str) -> Result<IndexEntry> {
        let (low, high) = self.ends_of(text)?;
        let is_in = |&(_, &value): &(usize, &f64)| (low..=high).contains(&time.moment(value));
        let found: Vec<usize> = self.values.iter().enumerate().filter(is_in).map(|(at, _)| at).collect();
        let index = |at: usize| i64::try_from(at).map_err(|_| Error::internal("an index of 2^63 or more"));
        match found[..] {
            [] => Err(self.none_in(text, (low, high))),
            [one] if date.precision >= time.precision(&self.values) => Ok(IndexEntry::At(index(one)?)),
            [first, ..] => {
                let last = found[found.len() - 1];
                let step = found.get(1).map_or(1, |next| next - first);
                if found.windows(2).any(|pair| pair[1] - pair[0] != step) {
                    return Err(Error::invalid(format!(
                        "expected the samples of `{text}` at regular distances, found them scattered along the axis; select by index"
                    )));
                }
                let (start, stop) = (Some(index(first)?), Some(index(last + 1)?));
                Ok(IndexEntry::Slice { start, stop, step: index(step)? })
            }
        }
    }

    /// Returns the error for a date without a sample, with its neighbors.
    fn none_in(&self, text: &str, (low, high): (f64, f64)) -> Error {
        let finite = || self.values.iter().copied().filter(|value| value.is_finite());
        let before = finite().filter(|&value| self.moment(value) < low).reduce(f64::max);
        let after = finite().filter(|&value| self.moment(value) > high).reduce(f64::min);
        let nearest = match (before, after) {
            (Some(before), Some(after)) => {
                format!(", the nearest are {} and {}", self.text(before), self.text(after))
            }
            (Some(one), None) | (None, Some(one)) => format!(", the nearest is {}", self.text(one)),
            (None, None) => String::new(),
        };
        Error::invalid(format!("no sample lies in `{text}`{nearest}; {}", self.span()))
    }

    fn nearest(&self, text: &str) -> Result<IndexEntry> {
        let (wanted, _) = self.ends_of(text)?;
        let distance = |&(_, &value): &(usize, &f64)| (self.moment(value) - wanted).abs();
        let finite = self.values.iter().enumerate().filter(|(_, value)| value.is_finite());
        let found = finite.min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let (at, _) =
            found.ok_or_else(|| Error::invalid("expected coordinates, found none along this axis"))?;
        if self.reach().is_none_or(|(low, high)| !(low..=high).contains(&wanted)) {
            return Err(Error::invalid(format!("`{text}` lies outside of the samples; {}", self.span())));
        }
        i64::try_from(at).map(IndexEntry::At).map_err(|_| Error::internal("an index of 2^63 or more"))
    }
}

/// Reads and decodes coordinates that the description does not contain.
async fn read(source: &Arc<dyn Source>, number: u32, array: &ArrayInfo, size: u64) -> Result<Vec<f64>> {
    let selection = Selection::new([AxisRange { start: 0, count: size, step: 1 }])?;
    let (target, region) = Target::new(&[size], array.dtype.size_bytes())?;
    let request = ReadRequest { array: number, level: 0, selection, priority: Priority::INTERACTIVE };
    source.read(request, region).await?;
    let bytes = target.into_vec()?;
    let stored =
        (0..bytes.len() / array.dtype.size_bytes()).filter_map(|at| array.dtype.scalar_at(&bytes, at));
    Ok(stored.map(|value| array.decoding.decode(value)).collect())
}

#[cfg(test)]
mod tests {
    use array::conformance::one_array;

    use super::*;

    fn scale(values: &[f64], units: &str, calendar: &str) -> AxisCoordinates {
        AxisCoordinates::new(values.to_vec(), units.to_owned(), calendar)
    }

    fn picked(scale: &AxisCoordinates, text: &str) -> String {
        let wanted = CoordinateIndexer::parse(text).unwrap_or_else(|| panic!("`{text}` is not parsed"));
        match scale.find(&wanted) {
            Ok(IndexEntry::At(at)) => format!("{at}"),
            Ok(IndexEntry::Slice { start, stop, .. }) => format!("{}:{}", start.unwrap(), stop.unwrap()),
            Ok(other) => panic!("{other:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn outermost_samples_extend_by_half_of_their_own_step() {
        let levels = scale(&[100_000.0, 85_000.0, 1_000.0, 500.0], "Pa", "");
        assert_eq!(picked(&levels, "260"), "3");
        assert_eq!(picked(&levels, "107000"), "0");
        for outside in ["240", "-100", "1", "108000"] {
            assert!(picked(&levels, outside).contains("outside of the samples"), "{outside}");
        }
        let alone = scale(&[5.0], "m", "");
        assert_eq!(picked(&alone, "5"), "0");
        assert!(picked(&alone, "6").contains("outside of the samples"));
    }

    #[test]
    fn ranges_that_extend_beyond_the_samples_cause_warnings() {
        let beyond =
            |scale: &AxisCoordinates, text: &str| scale.beyond(&CoordinateIndexer::parse(text).unwrap());
        let around: Vec<f64> = (0..72).map(|n| 5.0 * f64::from(n)).collect();
        let lon = scale(&around, "degrees_east", "");
        let warning = beyond(&lon, "-20:20").unwrap();
        assert_eq!(warning, "`-20` lies outside of the samples; they go from 0 to 355 degrees_east");
        assert!(beyond(&lon, "-180:400").unwrap().starts_with("`-180` and `400` lie outside"));
        for inside in ["0:355", "-2.5:357.5", ":20", "10:", "-20"] {
            assert_eq!(beyond(&lon, inside), None, "{inside}");
        }
        assert_eq!(beyond(&scale(&[5.0], "m", ""), "0:10"), None, "one sample");
        let daily = scale(&[0.0, 1.0, 2.0], "days since 2001-01-30", "");
        assert_eq!(beyond(&daily, "2001-01:2001-02"), None, "months with samples in a part of them");
        assert!(beyond(&daily, "2001-01-30:2001-03").unwrap().starts_with("`2001-03` lies outside"));
    }

    #[test]
    fn ranges_of_longitudes_are_from_west_to_east() {
        let around: Vec<f64> = (0..72).map(|n| 5.0 * f64::from(n)).collect();
        assert!(picked(&scale(&around, "degrees_east", ""), "350:10").contains("two parts"));
        assert_eq!(picked(&scale(&around, "degrees_east", ""), "10:20"), "2:5");
        assert_eq!(picked(&scale(&around, "m", ""), "20:10"), "2:5");
    }

    #[test]
    fn numbers_select_the_same_samples_as_in_xarray() {
        let lat = scale(&[-60.0, -30.0, 0.0, 30.0, 60.0], "degrees_north", "");
        for (text, expected) in [
            ("-30:30", "1:4"),
            ("-29.9:30", "2:4"),
            ("0", "2"),
            ("16", "3"),
            (":0", "0:3"),
            ("31:", "4:5"),
            ("30:-30", "1:4"),
            ("74", "4"),
        ] {
            assert_eq!(picked(&lat, text), expected, "{text}");
        }
        assert!(picked(&lat, "76").contains("outside of the samples; they go from -60 to 60 degrees_north"));
        assert!(picked(&lat, "1:2").contains("no sample lies in that range"));
        assert!(picked(&lat, "2001-03-01").contains("expected a number"));
        let months = scale(&[0.0, 1.0], "months since 2001-01-01", "standard");
        assert!(
            picked(&months, "2001-02-01").contains("`months` has no fixed length in the calendar `standard`")
        );
        assert_eq!(picked(&scale(&[0.0, 1.0], "months since 2001-01-01", "360_day"), "2001-02"), "1:2");
        let east = scale(&[0.0, 24.0], "hours since 2000-01-02 00:00:00 +02:00", "");
        assert_eq!(picked(&east, "2000-01-01T22"), "0");
        assert_eq!(picked(&east, "2000-01-02"), "1:2");
        let down = scale(&[60.0, 30.0, 0.0, -30.0], "", "");
        for (text, expected) in
            [("0:30", "1:3"), ("30:0", "1:3"), ("30:", "1:4"), (":30", "0:2"), ("-30", "3")]
        {
            assert_eq!(picked(&down, text), expected, "{text}");
        }
        assert!(picked(&scale(&[1.0, 3.0, 2.0], "", ""), "1:2").contains("rise or fall"));
    }

    #[test]
    fn dates_select_all_samples_in_their_interval() {
        let days: Vec<f64> = (0..730).map(f64::from).collect();
        let daily = scale(&days, "days since 2001-01-01", "noleap");
        for (text, expected) in [
            ("2001-03-01:2001-03-31", "59:90"),
            ("2001-03", "59:90"),
            ("2002", "365:730"),
            ("2001-03-01", "59"),
            ("2001-12:2002-01", "334:396"),
            (":2001-01-02", "0:2"),
            ("2001-03-01T12:2001-03-03T12", "60:62"),
            ("2001-03-01T12:30:2001-03-03", "60:62"),
        ] {
            assert_eq!(picked(&daily, text), expected, "{text}");
        }
        assert!(picked(&daily, "2001-02-29").contains("no date of the calendar"));
        assert!(picked(&daily, "2005-01-01").contains("they go from 2001-01-01 to 2002-12-31"));
        assert!(
            picked(&daily, "17").contains("no sample lies in `17`, the nearest is 2001-01-01"),
            "the year 17"
        );
        let noon = "no sample lies in `2001-03-01T13:00`, the nearest are 2001-03-01 and 2001-03-02";
        assert!(picked(&daily, "2001-03-01T13:00").contains(noon));
        let hourly = scale(&[0.0, 6.0, 12.0, 18.0, 24.0], "hours since 1900-01-01", "");
        assert_eq!(picked(&hourly, "1900-01-01"), "0:4", "all of the day");
        assert_eq!(picked(&hourly, "1900-01-01T06:00"), "1");
        assert_eq!(picked(&hourly, "1900-01-01T06"), "1");
    }

    #[test]
    fn a_date_without_a_sample_selects_no_other_date() {
        let gap = scale(&[0.0, 1.0, 2.0, 12.0], "days since 2020-01-01", "");
        assert_eq!(picked(&gap, "2020-01-03"), "2");
        let none = "no sample lies in `2020-01-04`, the nearest are 2020-01-03 and 2020-01-13";
        assert!(picked(&gap, "2020-01-04").contains(none));
        assert!(picked(&gap, "2020-02").contains("no sample lies in `2020-02`, the nearest is 2020-01-13"));
        let monthly = scale(&[0.0, 31.0, 60.0, 91.0], "days since 2020-01-01", "");
        assert!(picked(&monthly, "2020-03-17").contains("no sample lies in"));
        assert_eq!(picked(&monthly, "2020-03"), "2:3", "a month is less precise than days");
        assert_eq!(picked(&monthly, "2020-03-01"), "2");
        let noon = scale(&[0.0, 1.0, 2.0], "days since 2020-01-01 12:00", "");
        assert_eq!(picked(&noon, "2020-01-02"), "1:2");
        assert_eq!(picked(&noon, "2020-01-02T12"), "1");
        let twice = scale(&[0.0, 1.0, 1.0, 2.0], "days since 2020-01-01", "");
        assert_eq!(picked(&twice, "2020-01-02"), "1:3");
        assert_eq!(picked(&twice, "2020-01-02:2020-01-03"), "1:4");
        let apart = scale(&[0.0, 1.0, 0.0, 5.0, 0.0, 0.0], "days since 2020-01-01", "");
        assert!(picked(&apart, "2020-01-01").contains("scattered"));
        let fine = scale(&[0.0, 1.0, 999.0, 1_000.0], "milliseconds since 2020-01-01", "");
        assert_eq!(picked(&fine, "2020-01-01T00:00:00"), "0:3");
        assert_eq!(picked(&fine, "2020-01-01T00:00:00:2020-01-01T00:00:00"), "0:3");
        assert_eq!(picked(&fine, "2020-01-01T00:00:00.001"), "1");
        let today = [1.6e15, 1.6e15 + 1.0, 1.6e15 + 2.0];
        let fine = scale(&today, "microseconds since 1970-01-01", "");
        assert_eq!(picked(&fine, "2020-09-13T12:26:40.000001"), "1");
    }

    #[test]
    fn arrays_of_texts_are_not_numeric_coordinates() {
        for shape in [&[3][..], &[3, 5][..]] {
            let mut data = one_array("<f4".parse().unwrap(), &[3], &[3]);
            let mut names = one_array("|u1".parse().unwrap(), shape, shape).arrays.remove(0);
            names.name = "x".into();
            names.meaning = Meaning::Text;
            data.arrays.push(names);
            let array = &data.arrays[0];
            assert!(coordinate_array(&data, array, 0).is_none());
            assert_eq!(text_array(&data, array, 0).map(|(number, _)| number), Some(1));
        }
    }

    #[test]
    fn malformed_selections_are_refused() {
        assert!(CoordinateSelection::parse("time=2001-03-01:2001-03-31, lat=40:60, lev=500").is_ok());
        assert_eq!(CoordinateSelection::parse("").unwrap(), CoordinateSelection(Vec::new()));
        for text in ["lat", "lat=", "=4", "lat=a:b", "lat=1,lat=2", "lat=1:2:3"] {
            assert!(CoordinateSelection::parse(text).is_err(), "{text}");
        }
    }
}
