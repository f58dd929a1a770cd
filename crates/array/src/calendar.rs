//! Dates of CF's calendars (conventions, section 4.4.1) as numbers of seconds, for selecting samples by date.
//!
//! A moment is seconds since the beginning of the year before the year 1 of its own calendar: only moments of the same calendar can be compared.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

const SECONDS_A_DAY: f64 = 86_400.0;
/// Days before each month of a year without a leap day.
const BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
/// The first day of the Gregorian calendar, and the last one of the Julian one before it, in the standard calendar.
pub(crate) const GREGORIAN_FROM: [i64; 3] = [1582, 10, 15];
const JULIAN_UNTIL: [i64; 3] = [1582, 10, 4];
/// Years that are accepted.
const YEARS: std::ops::RangeInclusive<i64> = -99_999..=99_999;

/// How dates count days.
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
    /// The number of a written year where years are counted through; `None` for a year that the calendar lacks. In the calendars
    /// of history 1 follows -1; the others have a year 0 (cftime's `has_year_zero`).
    fn counted(self, year: i64) -> Option<i64> {
        match self {
            Self::Standard | Self::Julian if year == 0 => None,
            Self::Standard | Self::Julian if year < 0 => Some(year + 1),
            _ => Some(year),
        }
    }

    /// The year as it is written; the inverse of [`counted`](Self::counted).
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

    /// The same for a date whose year is counted.
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

    /// The moment `of_day` seconds after midnight of a date; `None` for a day that the calendar does not have.
    #[expect(clippy::cast_precision_loss, reason = "days of 100,000 years")]
    pub(crate) fn moment(self, date: [i64; 3], of_day: f64) -> Option<f64> {
        Some(self.days(date)? as f64 * SECONDS_A_DAY + of_day)
    }

    /// A moment as text: the date, and the time of day where it is not midnight, to the second.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "checked to be a date of some year")]
    pub fn text(self, moment: f64) -> Option<String> {
        let seconds = moment.round();
        let days = (seconds / SECONDS_A_DAY).floor();
        if days.abs() > 5e7 || days.is_nan() {
            return None;
        }
        let [year, month, day] = self.date_of(days as i64)?;
        let of_day = seconds - days * SECONDS_A_DAY;
        let sign = if year < 0 { "-" } else { "" };
        let date = format!("{sign}{:04}-{month:02}-{day:02}", year.abs());
        if of_day == 0.0 {
            return Some(date);
        }
        let (hour, minute) = ((of_day / 3600.0).floor(), (of_day % 3600.0 / 60.0).floor());
        Some(format!("{date}T{hour:02}:{minute:02}:{:02}", of_day % 60.0))
    }
}

/// How values of a time axis become moments: `days since 1850-01-01`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeUnits {
    /// How days are counted.
    pub calendar: Calendar,
    seconds: f64,
    epoch: f64,
}

impl TimeUnits {
    /// Parses CF units and a calendar's name; `None` for units that are not `UNIT since DATE`, and for units without a fixed
    /// length.
    #[must_use]
    pub fn parse(units: &str, calendar: &str) -> Option<Self> {
        let calendar: Calendar = calendar.parse().ok()?;
        let (unit, epoch) = units.split_once(" since ")?;
        let unit = unit.trim().to_ascii_lowercase();
        let seconds = match unit.strip_suffix('s').filter(|one| !one.is_empty()).unwrap_or(&unit) {
            "microsecond" | "microsec" | "u" => 1e-6,
            "millisecond" | "millisec" | "msec" | "m" if unit != "m" => 1e-3,
            "second" | "sec" | "s" => 1.0,
            "minute" | "min" => 60.0,
            "hour" | "hr" | "h" => 3_600.0,
            "day" | "d" => SECONDS_A_DAY,
            "week" => 7.0 * SECONDS_A_DAY,
            _ => return None,
        };
        let epoch = Date::parse(&without_zone(epoch.trim())?)?;
        Some(Self { calendar, seconds, epoch: epoch.begins(calendar)? })
    }

    /// The moment of a value.
    #[must_use]
    pub fn moment(&self, value: f64) -> f64 {
        self.epoch + value * self.seconds
    }
}

/// Removes the name or the zero offset of UTC; `None` for another time zone.
fn without_zone(text: &str) -> Option<String> {
    let text = text.trim_end_matches(" UTC").trim_end_matches(" GMT").trim_end_matches('Z').trim_end();
    let has_offset = text.rfind(['+', '-']).is_some_and(|at| text[..at].contains(':'));
    let text = if has_offset {
        let at = text.rfind(['+', '-'])?;
        let is_zero = text[at + 1..].chars().all(|c| c == '0' || c == ':');
        is_zero.then(|| text[..at].trim_end().to_owned())?
    } else {
        text.to_owned()
    };
    Some(text)
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
    /// A second, or a part of one.
    Second,
}

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
                precision = of;
            }
        }
        Some(Self { date, of_day, precision })
    }

    /// First moment of the named year, month, day or time; `None` for a day that the calendar does not have.
    #[must_use]
    pub fn begins(&self, calendar: Calendar) -> Option<f64> {
        calendar.moment(self.date, self.of_day)
    }

    /// First moment after the named year, month, day or time.
    #[must_use]
    pub fn ends(&self, calendar: Calendar) -> Option<f64> {
        let [year, month, _] = self.date;
        match self.precision {
            Precision::Year => calendar.moment([calendar.year_after(year)?, 1, 1], 0.0),
            Precision::Month if month == 12 => calendar.moment([calendar.year_after(year)?, 1, 1], 0.0),
            Precision::Month => calendar.moment([year, month + 1, 1], 0.0),
            Precision::Day => Some(self.begins(calendar)? + SECONDS_A_DAY),
            Precision::Hour => Some(self.begins(calendar)? + 3600.0),
            Precision::Minute => Some(self.begins(calendar)? + 60.0),
            Precision::Second => Some(self.begins(calendar)? + 1.0),
        }
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
                if days % 97 != 0 && !(578_000..580_500).contains(&days) {
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
            let units = TimeUnits::parse(units, calendar).unwrap_or_else(|| panic!("{units} {calendar}"));
            assert_eq!(
                units.calendar.text(units.moment(value)).as_deref(),
                Some(expected),
                "{value} {calendar}"
            );
        }
        for (units, calendar) in [
            ("months since 2000-01-01", ""),
            ("days", ""),
            ("days since never", ""),
            ("days since 2000-01-01", "martian"),
            ("days since 2001-02-29", "noleap"),
            ("days since 0000-01-01", "standard"),
            ("days since 0000-01-01", "gregorian"),
            ("days since 0000-01-01", "julian"),
            ("days since 2001-01-01 00:00:00+02:00", ""),
        ] {
            assert_eq!(TimeUnits::parse(units, calendar), None, "{units} {calendar}");
        }
    }

    #[test]
    fn a_part_of_a_date_is_all_that_begins_with_it() {
        let span = |text: &str, calendar: Calendar| {
            let date = Date::parse(text).unwrap_or_else(|| panic!("{text}"));
            let text = |moment: Option<f64>| calendar.text(moment.unwrap()).unwrap();
            (text(date.begins(calendar)), text(date.ends(calendar)))
        };
        let is = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(span("2001", Calendar::Standard), is("2001-01-01", "2002-01-01"));
        assert_eq!(span("2000-02", Calendar::Standard), is("2000-02-01", "2000-03-01"));
        assert_eq!(span("2000-12", Calendar::Days360), is("2000-12-01", "2001-01-01"));
        assert_eq!(span("-1", Calendar::Standard), is("-0001-01-01", "0001-01-01"));
        assert_eq!(span("-0001-12", Calendar::Julian), is("-0001-12-01", "0001-01-01"));
        assert_eq!(span("-0001", Calendar::NoLeap), is("-0001-01-01", "0000-01-01"));
        assert_eq!(span("2000-02-30", Calendar::Days360), is("2000-02-30", "2000-03-01"));
        assert_eq!(span("2000-02-28T23", Calendar::NoLeap), is("2000-02-28T23:00:00", "2000-03-01"));
        for wrong in
            ["", "x", "2001-", "2001-1-1-1", "2001-03T12", "2001-03-01T25", "1.5", "2001-03-01T12:60"]
        {
            assert!(Date::parse(wrong).is_none(), "{wrong}");
        }
        assert!(Date::parse("2001-02-29").unwrap().begins(Calendar::NoLeap).is_none());
    }
}
