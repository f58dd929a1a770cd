//! Dates of CF's calendars (conventions, section 4.4.1) as numbers of seconds, for selecting samples by date.
//!
//! A moment is seconds since the epoch of its axis, and so as exact as the axis's own values: as seconds since the year 0, microseconds
//! could not be distinguished.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

const SECONDS_A_DAY: f64 = 86_400.0;
const NANOSECONDS: i64 = 1_000_000_000;
const NANOSECONDS_A_DAY: i64 = 86_400 * NANOSECONDS;
/// Nanoseconds of the parts to which times are rounded.
const GRAINS: [i64; 5] = [1, 1_000, 1_000_000, NANOSECONDS, 60 * NANOSECONDS];
/// Days before each month of a year without a leap day.
const BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
/// The first day of the Gregorian calendar, and the last one of the Julian one before it, in the standard calendar.
const GREGORIAN_FROM: [i64; 3] = [1582, 10, 15];
const JULIAN_UNTIL: [i64; 3] = [1582, 10, 4];
/// Years that are accepted.
const YEARS: std::ops::RangeInclusive<i64> = -99_999..=99_999;

/// Calendar of CF conventions: the lengths of its months and years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calendar {
    /// Julian before 15 October 1582, Gregorian from then on: `standard`, `gregorian`.
    Standard,
    /// Gregorian at all times.
    ProlepticGregorian,
    /// Julian at all times.
    Julian,
    /// No leap days: `noleap`, `365_day`.
    NoLeap,
    /// A leap day in each year: `all_leap`, `366_day`.
    AllLeap,
    /// Months of 30 days.
    Days360,
}

impl FromStr for Calendar {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "" | "standard" | "gregorian" => Self::Standard,
            "proleptic_gregorian" => Self::ProlepticGregorian,
            "julian" => Self::Julian,
            "noleap" | "365_day" => Self::NoLeap,
            "all_leap" | "366_day" => Self::AllLeap,
            "360_day" => Self::Days360,
            _ => return Err(Error::unsupported(format!("dates of the calendar `{name}` are not known"))),
        })
    }
}

impl Calendar {
    /// Converts a year as it is written to one on a scale without a gap ("counted"), on which the year before 1 is 0; `None` for a year
    /// that the calendar lacks. In the standard and the Julian calendar 1 follows -1; the others have a year 0 (cftime's
    /// `has_year_zero`).
    fn counted(self, year: i64) -> Option<i64> {
        match self {
            Self::Standard | Self::Julian if year == 0 => None,
            Self::Standard | Self::Julian if year < 0 => Some(year + 1),
            _ => Some(year),
        }
    }

    /// Converts a counted year to the year as it is written; the inverse of [`counted`](Self::counted).
    fn written(self, counted: i64) -> i64 {
        match self {
            Self::Standard | Self::Julian if counted <= 0 => counted - 1,
            _ => counted,
        }
    }

    /// The year after a written one.
    fn year_after(self, year: i64) -> Option<i64> {
        Some(self.written(self.counted(year)? + 1))
    }

    /// Whether a counted year has a leap day.
    fn is_leap(self, year: i64) -> bool {
        let is_julian = year.rem_euclid(4) == 0;
        let is_gregorian = is_julian && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
        match self {
            Self::Standard if year <= 1582 => is_julian,
            Self::Standard | Self::ProlepticGregorian => is_gregorian,
            Self::Julian => is_julian,
            Self::NoLeap | Self::Days360 => false,
            Self::AllLeap => true,
        }
    }

    fn days_of_month(self, year: i64, month: i64) -> i64 {
        match (self, month) {
            (Self::Days360, _) => 30,
            (_, 2) => 28 + i64::from(self.is_leap(year)),
            (_, 4 | 6 | 9 | 11) => 30,
            _ => 31,
        }
    }

    /// Days since the beginning of the counted year 0; `None` for a day that the calendar does not have.
    fn days(self, [year, month, day]: [i64; 3]) -> Option<i64> {
        self.days_counted([self.counted(year)?, month, day])
    }

    /// Days since the beginning of the counted year 0 until a date whose year is counted; `None` as for [`Calendar::days`].
    fn days_counted(self, [year, month, day]: [i64; 3]) -> Option<i64> {
        if !YEARS.contains(&year)
            || !(1..=12).contains(&month)
            || !(1..=self.days_of_month(year, month)).contains(&day)
        {
            return None;
        }
        let leap_days = |every: i64| (year + every - 1).div_euclid(every);
        let julian = || 365 * year + leap_days(4);
        let gregorian = || julian() - leap_days(100) + leap_days(400);
        let before_year = match self {
            Self::Days360 => return Some(360 * year + 30 * (month - 1) + day - 1),
            Self::NoLeap => 365 * year,
            Self::AllLeap => 366 * year,
            Self::Julian => julian(),
            Self::ProlepticGregorian => gregorian(),
            Self::Standard if [year, month, day] >= GREGORIAN_FROM => {
                // The last Julian day is followed by the first Gregorian one.
                let gap =
                    Self::ProlepticGregorian.days(GREGORIAN_FROM)? - Self::Julian.days(JULIAN_UNTIL)? - 1;
                return Some(Self::ProlepticGregorian.days_counted([year, month, day])? - gap);
            }
            Self::Standard if [year, month, day] > JULIAN_UNTIL => return None,
            Self::Standard => return Self::Julian.days_counted([year, month, day]),
        };
        let month_index = usize::try_from(month - 1).ok()?;
        let leap = i64::from(month > 2 && self.is_leap(year));
        Some(before_year + BEFORE_MONTH[month_index] + leap + day - 1)
    }

    /// The date of a day; the inverse of [`days`](Self::days).
    fn date_of(self, days: i64) -> Option<[i64; 3]> {
        // A year that is not later than the day's, and then forward.
        let mut year = days.div_euclid(367).min(days.div_euclid(360)) - 1;
        if !YEARS.contains(&year) {
            return None;
        }
        let begins = |year: i64| self.days_counted([year, 1, 1]);
        let (mut low, mut high) = (year, days.div_euclid(360).max(days.div_euclid(367)) + 2);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if begins(middle).is_some_and(|first| first <= days) { low = middle } else { high = middle }
        }
        year = low;
        let month = (1..=12)
            .rev()
            .find(|&month| self.days_counted([year, month, 1]).is_some_and(|first| first <= days))?;
        // In October 1582 ten days are missing.
        let day = (1..=31).rev().find(|&day| self.days_counted([year, month, day]) == Some(days))?;
        Some([self.written(year), month, day])
    }
}

/// Units of a time axis, by which its values become moments: `days since 1850-01-01`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeUnits {
    /// Calendar of the dates.
    pub calendar: Calendar,
    unit: CalendarUnit,
    /// Day of the epoch.
    epoch_day: i64,
    /// Seconds from that day's midnight to the epoch.
    epoch_of_day: f64,
}

/// Length of a unit of time: `seconds / parts`. Milliseconds have one second and 1,000 parts: values are exact when divided by 1,000,
/// not when multiplied by 0.001.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CalendarUnit {
    seconds: f64,
    parts: f64,
}

impl CalendarUnit {
    /// Months and years have a length where all are equally long, as cftime has it.
    fn parse(unit: &str, calendar: Calendar) -> Option<Self> {
        let seconds = |seconds| Some(Self { seconds, parts: 1.0 });
        let part = |parts| Some(Self { seconds: 1.0, parts });
        let unit = unit.trim().to_ascii_lowercase();
        match unit.strip_suffix('s').filter(|one| !one.is_empty()).unwrap_or(&unit) {
            "nanosecond" | "nanosec" | "n" if unit != "n" => part(1e9),
            "microsecond" | "microsec" | "u" if unit != "u" => part(1e6),
            "millisecond" | "millisec" | "msec" | "m" if unit != "m" => part(1e3),
            "second" | "sec" | "s" => seconds(1.0),
            "minute" | "min" => seconds(60.0),
            "hour" | "hr" | "h" => seconds(3_600.0),
            "day" | "d" => seconds(SECONDS_A_DAY),
            "week" => seconds(7.0 * SECONDS_A_DAY),
            "month" if calendar == Calendar::Days360 => seconds(30.0 * SECONDS_A_DAY),
            "common_year" if calendar == Calendar::NoLeap => seconds(365.0 * SECONDS_A_DAY),
            _ => None,
        }
    }
}

impl TimeUnits {
    /// Parses CF units and a calendar's name.
    ///
    /// # Errors
    /// `Unsupported`, saying why, for units that are not `UNIT since DATE`, for those without a fixed length, and for dates and
    /// calendars that are not known.
    pub fn parse(units: &str, calendar: &str) -> Result<Self> {
        let since = units.to_ascii_lowercase().find(" since ");
        let (unit, epoch) = since
            .map(|at| (units[..at].trim(), units[at + 7..].trim()))
            .ok_or_else(|| Error::unsupported("the units of this axis are no time since a date"))?;
        let name = if calendar.is_empty() { "standard" } else { calendar };
        let calendar: Calendar = name.parse()?;
        let unit = CalendarUnit::parse(unit, calendar).ok_or_else(|| {
            Error::unsupported(format!(
                "the unit `{unit}` has no fixed length in the calendar `{name}`, or is not known"
            ))
        })?;
        let read = without_zone(epoch).and_then(|(date, ahead)| Some((Date::parse(date)?, ahead)));
        let (date, ahead) = read.ok_or_else(|| {
            Error::unsupported(format!("the date `{epoch}`, since which this axis counts, cannot be read"))
        })?;
        let epoch_day = calendar.days(date.date).ok_or_else(|| {
            Error::unsupported(format!(
                "the calendar `{name}` has no date `{epoch}`, since which this axis counts"
            ))
        })?;
        Ok(Self { calendar, unit, epoch_day, epoch_of_day: date.of_day - ahead })
    }

    /// The moment of a value.
    #[must_use]
    pub fn moment(&self, value: f64) -> f64 {
        value * self.unit.seconds / self.unit.parts
    }

    /// First moment of a date's year, month, day or time; `None` for a day that the calendar does not have.
    #[must_use]
    pub fn begins(&self, date: &Date) -> Option<f64> {
        Some(self.moment_of(self.calendar.days(date.date)?, date.of_day))
    }

    /// First moment after a date's year, month, day or time.
    #[must_use]
    pub fn ends(&self, date: &Date) -> Option<f64> {
        let [year, month, _] = date.date;
        let next = match date.precision {
            Precision::Month if month < 12 => [year, month + 1, 1],
            Precision::Year | Precision::Month => [self.calendar.year_after(year)?, 1, 1],
            precision => {
                let (_, length) = LENGTHS.into_iter().find(|(of, _)| *of == precision)?;
                return Some(self.begins(date)? + length);
            }
        };
        Some(self.moment_of(self.calendar.days(next)?, 0.0))
    }

    /// Least and greatest moment of a date's year, month, day or time, both part of it; `None` for a day that the calendar does
    /// not have. Both are a little early, because moments are computed.
    #[must_use]
    pub fn span(&self, date: &Date) -> Option<(f64, f64)> {
        let (begins, ends) = (self.begins(date)?, self.ends(date)?);
        let early = noise(begins.abs().max(ends.abs())).min((ends - begins) / 4.0);
        Some((begins - early, ends - early))
    }

    #[expect(clippy::cast_precision_loss, reason = "days of 100,000 years")]
    fn moment_of(&self, day: i64, of_day: f64) -> f64 {
        (day - self.epoch_day) as f64 * SECONDS_A_DAY + (of_day - self.epoch_of_day)
    }

    /// A value as text: the date, and the time of day where it is not midnight, to the second or as many of its digits (3, 6 or
    /// 9) as are not zero.
    #[must_use]
    pub fn text(&self, value: f64) -> Option<String> {
        let (date, of_day) = self.date_and_time(value, 0.0)?;
        if of_day == 0 {
            return Some(date);
        }
        Some(format!("{date}T{}:{}", minutes_text(of_day), seconds_text(of_day)))
    }

    /// Formats a value for people; times are `step` apart (0 if not known): the date, the time of day to the minute unless it is midnight,
    /// and the seconds and fractions that are not zero to a hundredth of the step.
    #[must_use]
    pub fn label(&self, value: f64, step: f64) -> Option<String> {
        let (date, of_day) = self.date_and_time(value, self.moment(step).abs())?;
        if of_day == 0 {
            return Some(date);
        }
        let minutes = minutes_text(of_day);
        if of_day % (60 * NANOSECONDS) == 0 {
            return Some(format!("{date} {minutes}"));
        }
        Some(format!("{date} {minutes}:{}", seconds_text(of_day)))
    }

    /// Whether the date of a value is certain: in the standard and the proleptic Gregorian calendar, which some programs
    /// confuse, it must not be before 15 October 1582, nor after the year 9999. An epoch before is read as CF defines the calendar.
    pub(crate) fn is_agreed(&self, value: f64) -> bool {
        if !matches!(self.calendar, Calendar::Standard | Calendar::ProlepticGregorian) {
            return true;
        }
        let begins = |date| self.calendar.days(date).map(|day| self.moment_of(day, 0.0));
        let (from, end) = (begins(GREGORIAN_FROM), begins([10_000, 1, 1]));
        from.zip(end).is_some_and(|(from, end)| (from..end).contains(&self.moment(value)))
    }

    /// Whether the epoch lies before 15 October 1582 in the standard calendar: some programs read such dates as Julian, others as
    /// Gregorian.
    pub(crate) fn is_epoch_ambiguous(&self) -> bool {
        let from = self.calendar.days(GREGORIAN_FROM);
        self.calendar == Calendar::Standard && from.is_some_and(|from| self.epoch_day < from)
    }

    /// Length of the unit in seconds.
    pub(crate) fn unit_seconds(&self) -> f64 {
        self.unit.seconds / self.unit.parts
    }

    /// Number to add to a value in these units to get the same time in `other`; `None` if units or calendars differ, or if the
    /// number cannot be expressed exactly.
    #[expect(clippy::float_cmp, reason = "whole seconds")]
    pub(crate) fn offset_to(&self, other: &Self) -> Option<f64> {
        if self.calendar != other.calendar || self.unit != other.unit {
            return None;
        }
        let seconds = other.moment_of(self.epoch_day, self.epoch_of_day);
        let steps = seconds * self.unit.parts / self.unit.seconds;
        (self.moment(steps) == seconds).then_some(steps)
    }

    /// Date, and nanoseconds since its midnight, rounded to the resolution of a floating-point number of this size (tenths of days are
    /// not exact) and to a part of at most a hundredth of `step` seconds.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "whole numbers of days below 5e7, of nanoseconds below those of a day"
    )]
    fn date_and_time(&self, value: f64, step: f64) -> Option<(String, i64)> {
        let moment = self.moment(value);
        let since_midnight = self.epoch_of_day + moment;
        let days = (since_midnight / SECONDS_A_DAY).floor();
        if days.abs() > 5e7 || days.is_nan() {
            return None;
        }
        let told_apart = moment.abs() * f64::EPSILON * NANOSECONDS as f64;
        let fine = GRAINS.into_iter().find(|&grain| grain as f64 > told_apart).unwrap_or(NANOSECONDS);
        let part = step * NANOSECONDS as f64 / 100.0;
        let grain = GRAINS.into_iter().rev().find(|&grain| grain as f64 <= part).unwrap_or(1).max(fine);
        let of_day = (since_midnight - days * SECONDS_A_DAY) * NANOSECONDS as f64;
        let of_day = (of_day / grain as f64).round() as i64 * grain;
        let days = self.epoch_day + days as i64 + of_day.div_euclid(NANOSECONDS_A_DAY);
        let [year, month, day] = self.calendar.date_of(days)?;
        let sign = if year < 0 { "-" } else { "" };
        Some((format!("{sign}{:04}-{month:02}-{day:02}", year.abs()), of_day.rem_euclid(NANOSECONDS_A_DAY)))
    }

    /// Returns the finest part of a date in which the values differ: the day if all are at midnight.
    #[must_use]
    pub fn precision(&self, values: &[f64]) -> Precision {
        let is_whole = |moment: f64, length: f64| {
            let count = (self.epoch_of_day + moment) / length;
            (count - count.round()).abs() * length <= noise(moment)
        };
        let moments = || values.iter().filter(|value| value.is_finite()).map(|&value| self.moment(value));
        let found = LENGTHS.into_iter().find(|&(_, length)| moments().all(|moment| is_whole(moment, length)));
        found.map_or(Precision::Nanosecond, |(precision, _)| precision)
    }
}

/// Largest rounding error of a computed moment, seconds.
fn noise(moment: f64) -> f64 {
    (moment.abs() * 4.0 * f64::EPSILON).max(1e-10)
}

/// Hours and minutes.
fn minutes_text(of_day: i64) -> String {
    let minutes = of_day / (60 * NANOSECONDS);
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

/// Seconds of the minute, with as many digits of a fraction as are not zero: none, 3, 6 or 9.
fn seconds_text(of_day: i64) -> String {
    let (second, fraction) = (of_day / NANOSECONDS % 60, of_day % NANOSECONDS);
    match fraction {
        0 => format!("{second:02}"),
        _ if fraction % 1_000_000 == 0 => format!("{second:02}.{:03}", fraction / 1_000_000),
        _ if fraction % 1_000 == 0 => format!("{second:02}.{:06}", fraction / 1_000),
        _ => format!("{second:02}.{fraction:09}"),
    }
}

/// A date and time without its time zone, and the seconds that the zone is ahead of UTC (`Z`, `UTC`, `+02`, `-0530`, `+5:30`);
/// `None` for an offset that cannot be read.
fn without_zone(text: &str) -> Option<(&str, f64)> {
    let lower = text.to_ascii_lowercase();
    if let Some(rest) = ["utc", "gmt", "z"].iter().find_map(|name| lower.strip_suffix(*name)) {
        return Some((text[..rest.len()].trim_end(), 0.0));
    }
    // Dates contain the sign too; a time zone follows a time of day.
    let Some(at) = text.rfind(['+', '-']).filter(|&at| text[..at].contains(':')) else {
        return Some((text, 0.0));
    };
    let (sign, offset) = text[at..].split_at(1);
    let (hours, minutes) = match offset.split_once(':') {
        Some(parts) => parts,
        None if offset.len() == 4 => offset.split_at_checked(2)?,
        None => (offset, "0"),
    };
    let number = |part: &str, most: f64| {
        let is_number = (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        part.parse().ok().filter(|&value: &f64| is_number && value <= most)
    };
    let ahead = number(hours, 24.0)? * 3_600.0 + number(minutes, 59.0)? * 60.0;
    Some((text[..at].trim_end(), if sign == "-" { -ahead } else { ahead }))
}

/// The smallest part that a date names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// A whole year.
    Year,
    /// A whole month.
    Month,
    /// A whole day.
    Day,
    /// A whole hour.
    Hour,
    /// A whole minute.
    Minute,
    /// A whole second.
    Second,
    /// A thousandth of a second.
    Millisecond,
    /// A millionth of a second.
    Microsecond,
    /// A billionth of a second.
    Nanosecond,
}

/// Seconds of the parts of dates that are equally long in all calendars.
const LENGTHS: [(Precision, f64); 7] = [
    (Precision::Day, SECONDS_A_DAY),
    (Precision::Hour, 3_600.0),
    (Precision::Minute, 60.0),
    (Precision::Second, 1.0),
    (Precision::Millisecond, 1e-3),
    (Precision::Microsecond, 1e-6),
    (Precision::Nanosecond, 1e-9),
];

/// A date, or a part of one, as people write it: `2001`, `2001-03`, `2001-03-01`, `2001-03-01T12:30`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Date {
    date: [i64; 3],
    of_day: f64,
    /// Smallest part that the text names.
    pub precision: Precision,
}

impl Date {
    /// Parses a date; `None` for other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_end_matches('Z');
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
        let (date, time) = digits.split_once(['T', ' ']).unwrap_or((digits, ""));
        let is_number =
            |part: &str| (1..=5).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        let parts: Vec<&str> = date.split('-').collect();
        if parts.len() > 3 || !parts.iter().all(|part| is_number(part)) {
            return None;
        }
        let mut date = [1, 1, 1];
        for (to, part) in date.iter_mut().zip(&parts) {
            *to = part.parse().ok()?;
        }
        date[0] *= sign;
        let mut precision = [Precision::Year, Precision::Month, Precision::Day][parts.len() - 1];
        let mut of_day = 0.0;
        if !time.trim().is_empty() {
            if precision != Precision::Day {
                return None;
            }
            let steps = [
                (Precision::Hour, 3600.0, 24.0),
                (Precision::Minute, 60.0, 60.0),
                (Precision::Second, 1.0, 61.0),
            ];
            let times: Vec<&str> = time.trim().split(':').collect();
            if times.len() > steps.len() {
                return None;
            }
            for (part, (of, seconds, limit)) in times.iter().zip(steps) {
                let is_plain =
                    part.bytes().all(|b| b.is_ascii_digit() || (b == b'.' && of == Precision::Second));
                let value: f64 =
                    part.parse().ok().filter(|&value| is_plain && (0.0..limit).contains(&value))?;
                of_day += value * seconds;
                precision = match part.split_once('.').map_or(0, |(_, digits)| digits.len()) {
                    0 => of,
                    1..=3 => Precision::Millisecond,
                    4..=6 => Precision::Microsecond,
                    _ => Precision::Nanosecond,
                };
            }
        }
        Some(Self { date, of_day, precision })
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Year => "year",
            Self::Month => "month",
            Self::Day => "day",
            Self::Hour => "hour",
            Self::Minute => "minute",
            Self::Second => "second",
            Self::Millisecond => "millisecond",
            Self::Microsecond => "microsecond",
            Self::Nanosecond => "nanosecond",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Calendar; 6] = [
        Calendar::Standard,
        Calendar::ProlepticGregorian,
        Calendar::Julian,
        Calendar::NoLeap,
        Calendar::AllLeap,
        Calendar::Days360,
    ];

    #[test]
    fn days_follow_one_another_in_every_calendar() {
        for calendar in ALL {
            let first = calendar.days([-5, 1, 1]).unwrap();
            let mut last = calendar.date_of(first).unwrap();
            for days in first + 1..first + 800_000 {
                if days % 97 != 0 && !(577_000..578_500).contains(&days) {
                    continue;
                }
                let date = calendar.date_of(days).unwrap_or_else(|| panic!("{calendar:?} {days}"));
                assert!(date > last, "{calendar:?} {days}: {last:?} {date:?}");
                assert_eq!(calendar.days(date), Some(days), "{calendar:?} {date:?}");
                last = date;
            }
        }
    }

    /// Expected values are those of cftime.
    #[test]
    fn times_of_files_are_dates() {
        for (value, units, calendar, expected) in [
            (59.0, "days since 2000-01-01", "standard", "2000-02-29"),
            (59.0, "days since 2000-01-01", "noleap", "2000-03-01"),
            (59.0, "days since 2001-01-01", "all_leap", "2001-02-29"),
            (59.0, "days since 2000-01-01", "360_day", "2000-02-30"),
            (36.0, "hours since 1900-1-1 00:00:0.0", "gregorian", "1900-01-02T12:00:00"),
            (1.0, "days since 1582-10-04", "standard", "1582-10-15"),
            (1.0, "days since 1582-10-04", "proleptic_gregorian", "1582-10-05"),
            (1.0, "days since 1582-10-04", "julian", "1582-10-05"),
            (0.0, "days since 0001-01-01 00:00:00 UTC", "365_day", "0001-01-01"),
            (730_119.0, "days since 0001-01-01", "standard", "1999-12-30"),
            (-1.0, "seconds since 1970-01-01T00:00:00Z", "", "1969-12-31T23:59:59"),
            (2.0, "weeks since 1970-01-01 00:00:00+00:00", "", "1970-01-15"),
            (2_451_545.0, "days since -4713-01-01 12:00:00", "standard", "2000-01-01T12:00:00"),
            (2_451_545.0, "days since -4713-01-01 12:00:00", "julian", "1999-12-19T12:00:00"),
            (2_451_545.0, "days since -4713-11-24 12:00:00", "proleptic_gregorian", "2000-01-01T12:00:00"),
            (365.0, "days since -0001-01-01", "standard", "-0001-12-31"),
            (366.0, "days since -0001-01-01", "gregorian", "0001-01-01"),
            (366.0, "days since -1-1-1", "julian", "0001-01-01"),
            (365.0, "days since -0001-01-01", "proleptic_gregorian", "0000-01-01"),
            (366.0, "days since 0000-01-01", "proleptic_gregorian", "0001-01-01"),
            (365.0, "days since -0001-01-01", "noleap", "0000-01-01"),
            (366.0, "days since -0001-01-01", "all_leap", "0000-01-01"),
            (360.0, "days since -0001-01-01", "360_day", "0000-01-01"),
        ] {
            let units =
                TimeUnits::parse(units, calendar).unwrap_or_else(|e| panic!("{units} {calendar}: {e}"));
            assert_eq!(units.text(value).as_deref(), Some(expected), "{value} {calendar}");
        }
        for (units, calendar, why) in [
            (
                "months since 2000-01-01",
                "standard",
                "`months` has no fixed length in the calendar `standard`",
            ),
            ("common_years since 2000-01-01", "360_day", "`common_years` has no fixed length"),
            ("days", "", "no time since a date"),
            ("days since never", "", "`never`, since which this axis counts, cannot be read"),
            ("days since 2000-01-01", "martian", "calendar `martian`"),
            ("days since 2001-02-29", "noleap", "the calendar `noleap` has no date `2001-02-29`"),
            ("days since 0000-01-01", "standard", "has no date"),
            ("days since 0000-01-01", "gregorian", "has no date"),
            ("days since 0000-01-01", "julian", "has no date"),
            ("days since 2001-01-01 00:00 +530", "", "cannot be read"),
            ("days since 2001-01-01 00:00 +2:90", "", "cannot be read"),
            ("days since 2001-01-01 00:00 EST", "", "cannot be read"),
            ("days since 2001-01-01 00:00 +\u{e9}\u{e9}", "", "cannot be read"),
        ] {
            let error = TimeUnits::parse(units, calendar).unwrap_err();
            assert!(error.message().contains(why), "{units} {calendar}: {error}");
        }
    }

    /// Expected values are those of xarray.
    #[test]
    fn zones_are_ahead_of_utc() {
        for (units, calendar, expected) in [
            ("hours since 2000-01-02 00:00:00 -05:30", "standard", "2000-01-02T05:30:00"),
            ("hours since 2000-01-02 00:00:00 -0530", "noleap", "2000-01-02T05:30:00"),
            ("hours since 2000-01-02T00:00:00+0200", "", "2000-01-01T22:00:00"),
            ("hours since 2000-01-02 00:00:00.0 +02:00", "360_day", "2000-01-01T22:00:00"),
            ("hours since 2000-01-02 00:00 +02", "julian", "2000-01-01T22:00:00"),
            ("hours since 2000-01-02 00:00:00 -5:30", "standard", "2000-01-02T05:30:00"),
            ("hours since 2000-01-02 12:00:00 +2", "standard", "2000-01-02T10:00:00"),
            ("hours since 2000-01-02 00:00:00 utc", "standard", "2000-01-02"),
            ("Hours Since 2000-01-02 12:00 GMT", "GREGORIAN", "2000-01-02T12:00:00"),
            ("hours since -0001-12-30 00:00:00 -12:00", "standard", "-0001-12-30T12:00:00"),
        ] {
            let time = TimeUnits::parse(units, calendar).unwrap_or_else(|e| panic!("{units}: {e}"));
            assert_eq!(time.text(0.0).as_deref(), Some(expected), "{units}");
        }
        let months = TimeUnits::parse("months since 2000-01-15 06:00", "360_day").unwrap();
        assert_eq!(months.text(2.5).as_deref(), Some("2000-03-30T06:00:00"));
        let years = TimeUnits::parse("common_years since 2000-01-01", "noleap").unwrap();
        assert_eq!(years.text(2.5).as_deref(), Some("2002-07-02T12:00:00"));
    }

    #[test]
    fn a_part_of_a_date_is_all_that_begins_with_it() {
        let units = |calendar: &str| TimeUnits::parse("seconds since 1999-12-30", calendar).unwrap();
        let span = |text: &str, calendar: &str| {
            let date = Date::parse(text).unwrap_or_else(|| panic!("{text}"));
            let units = units(calendar);
            let text = |moment: Option<f64>| units.text(moment.unwrap()).unwrap();
            (text(units.begins(&date)), text(units.ends(&date)))
        };
        let is = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(span("2001", "standard"), is("2001-01-01", "2002-01-01"));
        assert_eq!(span("2000-02", "standard"), is("2000-02-01", "2000-03-01"));
        assert_eq!(span("2000-12", "360_day"), is("2000-12-01", "2001-01-01"));
        assert_eq!(span("-1", "standard"), is("-0001-01-01", "0001-01-01"));
        assert_eq!(span("-0001-12", "julian"), is("-0001-12-01", "0001-01-01"));
        assert_eq!(span("-0001", "noleap"), is("-0001-01-01", "0000-01-01"));
        assert_eq!(span("2000-02-30", "360_day"), is("2000-02-30", "2000-03-01"));
        assert_eq!(span("2000-02-28T23", "noleap"), is("2000-02-28T23:00:00", "2000-03-01"));
        assert_eq!(span("2000-01-01T00:00:59", "standard"), is("2000-01-01T00:00:59", "2000-01-01T00:01:00"));
        let (half, after) = ("2000-01-01T00:00:00.500", "2000-01-01T00:00:00.501");
        assert_eq!(span("2000-01-01T00:00:00.5", "standard"), is(half, after));
        for wrong in
            ["", "x", "2001-", "2001-1-1-1", "2001-03T12", "2001-03-01T25", "1.5", "2001-03-01T12:60"]
        {
            assert!(Date::parse(wrong).is_none(), "{wrong}");
        }
        assert!(units("noleap").begins(&Date::parse("2001-02-29").unwrap()).is_none());
    }

    /// Expected values are those of cftime, and of pandas for nanoseconds.
    #[test]
    fn fractions_of_seconds_are_written() {
        for (value, units, expected) in [
            (1.0, "milliseconds since 2001-01-01", "2001-01-01T00:00:00.001"),
            (1_000.0, "ms since 2001-01-01", "2001-01-01T00:00:01"),
            (3.0, "microseconds since 2001-01-01", "2001-01-01T00:00:00.000003"),
            (-1.0, "us since 2001-01-01", "2000-12-31T23:59:59.999999"),
            (7.0, "nanoseconds since 2001-01-01", "2001-01-01T00:00:00.000000007"),
            (1_600_000_000_000_500_000.0, "ns since 1970-01-01", "2020-09-13T12:26:40.000500"),
            (0.5, "seconds since 2001-01-01", "2001-01-01T00:00:00.500"),
            (0.25, "seconds since 2001-01-01 00:00:00.5", "2001-01-01T00:00:00.750"),
            (45_000.1, "days since 1900-01-01", "2023-03-17T02:24:00"),
            (20_000.0 + 1.0 / 3.0, "days since 1970-01-01", "2024-10-04T08:00:00"),
            (0.1 + 0.2, "days since 1970-01-01", "1970-01-01T07:12:00"),
            (738_000.7, "days since 0001-01-01", "2021-07-28T16:48:00"),
            (1.0 - 1e-16, "days since 2001-01-01", "2001-01-02"),
        ] {
            let time = TimeUnits::parse(units, "standard").unwrap_or_else(|e| panic!("{units}: {e}"));
            assert_eq!(time.text(value).as_deref(), Some(expected), "{value} {units}");
        }
    }

    #[test]
    fn precision_is_what_tells_values_apart() {
        for (values, units, expected) in [
            (&[0.0, 1.0, 30.0][..], "days since 2001-01-01", Precision::Day),
            (&[0.0, 1.0], "days since 2001-01-01 12:00", Precision::Hour),
            (&[0.0, 0.1, 0.2], "hours since 2001-01-01", Precision::Minute),
            (&[20_000.0, 20_000.1, 20_000.3, f64::NAN], "days since 1970-01-01", Precision::Minute),
            (&[0.0, 10.0], "seconds since 2001-01-01", Precision::Second),
            (&[0.0, 0.3], "seconds since 2001-01-01", Precision::Millisecond),
            (&[0.0, 3.0], "us since 2001-01-01", Precision::Microsecond),
            (&[0.0, 3.0], "ns since 2001-01-01", Precision::Nanosecond),
        ] {
            let time = TimeUnits::parse(units, "").unwrap_or_else(|e| panic!("{units}: {e}"));
            assert_eq!(time.precision(values), expected, "{values:?} {units}");
        }
    }
}
