//! Times of files as dates: numbers of `hours since 1900-01-01` and their like (CF conventions, section 4.4).
//!
//! Calendars that are called Gregorian give dates only since 1582, where all programs agree; other times stay numbers.
//! [`calendar`](crate::time::calendar) has the arithmetic of all calendars.

pub mod calendar;

use crate::time::calendar::{Calendar, GREGORIAN_FROM, TimeUnits};

const SECONDS_A_DAY: f64 = 86_400.0;

/// The date of a value in CF `units`, and the time of day where it is not midnight, with as many parts as times `step` apart need (0
/// where that is not known); `None` where that cannot be said: units that are no such time, an unknown calendar, a date before 1582 or
/// after 9999 in the standard calendar.
#[must_use]
pub fn date(value: f64, step: f64, units: &str, calendar: &str) -> Option<String> {
    let time = TimeUnits::parse(units, calendar).ok().filter(|time| time.is_agreed(value))?;
    time.label(value, step)
}

/// Epoch, unit and calendar by which times are counted: `days since 2001-01-01` of `noleap`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    calendar: Calendar,
    unit_seconds: f64,
    /// The epoch, seconds since the beginning of the year 0 of the calendar.
    at_seconds: f64,
}

impl Reference {
    /// Parses CF `units` and a calendar's name; `None` where the units are no such time, where the calendar is unknown, and
    /// before 15 October 1582 in the standard calendar, which programs read as Julian or Gregorian.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "whole numbers below 10,000")]
    pub fn of(units: &str, calendar: &str) -> Option<Self> {
        let calendar: Calendar = calendar.trim().parse().ok()?;
        let (unit, epoch) = units.split_once(" since ")?;
        let (date, of_day) = parts_of(epoch.trim())?;
        if date.iter().any(|part| part.fract() != 0.0) {
            return None;
        }
        let date = date.map(|part| part as i64);
        if calendar == Calendar::Standard && date < GREGORIAN_FROM {
            return None;
        }
        let at_seconds = calendar.moment(date, of_day)?;
        Some(Self { calendar, unit_seconds: seconds_of(unit.trim())?, at_seconds })
    }

    /// Number to add to a time by `self` to get the same time by `other`; `None` where their units or calendars differ, or
    /// where it cannot be expressed exactly.
    #[must_use]
    #[expect(clippy::float_cmp, reason = "whole seconds")]
    pub fn in_terms_of(&self, other: &Self) -> Option<f64> {
        if self.calendar != other.calendar || self.unit_seconds != other.unit_seconds {
            return None;
        }
        let seconds = self.at_seconds - other.at_seconds;
        let steps = seconds / self.unit_seconds;
        (steps * self.unit_seconds == seconds).then_some(steps)
    }

    /// Description of unit and calendar: equal for all references that share both.
    #[must_use]
    pub fn clock(&self) -> String {
        format!("{} s by {:?}", self.unit_seconds, self.calendar)
    }
}

fn seconds_of(unit: &str) -> Option<f64> {
    let unit = unit.to_ascii_lowercase();
    Some(match unit.strip_suffix('s').filter(|one| !one.is_empty()).unwrap_or(&unit) {
        "second" | "sec" | "s" => 1.0,
        "minute" | "min" => 60.0,
        "hour" | "hr" | "h" => 3_600.0,
        "day" | "d" => SECONDS_A_DAY,
        _ => return None,
    })
}

/// Year, month, day, and seconds of the day, of `1900-1-1`, `1900-01-01 12:30:00` or `1900-01-01T12:30:00Z`.
fn parts_of(text: &str) -> Option<([f64; 3], f64)> {
    let text = text.trim_end_matches('Z').trim_end_matches(" UTC");
    let (day, time) = text.split_once(['T', ' ']).unwrap_or((text, ""));
    let numbers = |text: &str, sign| -> Option<Vec<f64>> {
        text.split(sign)
            .map(|part| part.trim().parse().ok().filter(|v: &f64| (0.0..10_000.0).contains(v)))
            .collect()
    };
    let &[year, month, day] = numbers(day, '-')?.as_slice() else { return None };
    let time = if time.trim().is_empty() { vec![0.0] } else { numbers(time, ':')? };
    let of_day = time.iter().zip([3_600.0, 60.0, 1.0]).map(|(part, seconds)| part * seconds).sum::<f64>();
    let is_legal = (1.0..=12.0).contains(&month)
        && (1.0..=31.0).contains(&day)
        && time.len() <= 3
        && of_day < SECONDS_A_DAY;
    is_legal.then_some(([year, month, day], of_day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_files_are_dates() {
        for (value, units, expected) in [
            (0.0, "days since 1970-01-01", "1970-01-01"),
            (12.0, "hours since 1900-1-1 00:00:0.0", "1900-01-01 12:00"),
            (31.0 + 28.0, "days since 1900-01-01", "1900-03-01"),
            (59.0, "days since 2000-01-01T06:30:00Z", "2000-02-29 06:30"),
            (86_400.0 * 366.0, "seconds since 2000-01-01 00:00:00 UTC", "2001-01-01"),
            (-1.0, "minutes since 1990-01-01", "1989-12-31 23:59"),
            (1e-9, "Days since 1990-01-01", "1990-01-01"),
        ] {
            assert_eq!(date(value, 1.0, units, "standard").as_deref(), Some(expected), "{value} {units}");
        }
        for (value, calendar, expected) in [
            (59.0, "noleap", "2000-03-01"),
            (59.25, "360_day", "2000-02-30 06:00"),
            (59.0, "366_day", "2000-02-29"),
        ] {
            assert_eq!(
                date(value, 1.0, "days since 2000-01-01", calendar).as_deref(),
                Some(expected),
                "{calendar}"
            );
        }
        assert_eq!(date(0.0, 1.0, "days since 2000-01-01", "lunar"), None);
    }

    #[test]
    fn times_that_differ_look_different() {
        for (value, step, units, expected) in [
            (10.0, 10.0, "seconds since 2001-01-01", "2001-01-01 00:00:10"),
            (60.0, 10.0, "seconds since 2001-01-01", "2001-01-01 00:01"),
            (90.0, 90.0, "seconds since 2001-01-01", "2001-01-01 00:01:30"),
            (0.1, 0.1, "seconds since 2001-01-01", "2001-01-01 00:00:00.100"),
            (1.0, 1.0, "milliseconds since 2001-01-01", "2001-01-01 00:00:00.001"),
            (86_400_000.0, 0.0, "ms since 2001-01-01", "2001-01-02"),
            (3.0, 1.0, "microseconds since 2001-01-01", "2001-01-01 00:00:00.000003"),
            (7.0, 1.0, "nanoseconds since 2001-01-01", "2001-01-01 00:00:00.000000007"),
            (1.0, -1.0, "weeks since 2001-01-01", "2001-01-08"),
            (12.0, 6.0, "hours since 2001-01-01 00:00 +02:00", "2001-01-01 10:00"),
            // A tenth of an hour in single precision is 1.4 ms late.
            (f64::from(24.1_f32), 0.1, "hours since 2001-01-01", "2001-01-02 00:06"),
            (0.5, f64::NAN, "days since 2001-01-01", "2001-01-01 12:00"),
        ] {
            assert_eq!(date(value, step, units, "standard").as_deref(), Some(expected), "{value} {units}");
        }
    }

    #[test]
    fn times_since_other_days_are_the_same_times() {
        let shift = |from: &str, to: &str, calendar: &str| {
            let of = |date: &str| Reference::of(&format!("days since {date}"), calendar);
            of(from)?.in_terms_of(&of(to)?)
        };
        for (from, to, calendar, expected) in [
            ("2001-01-01", "2000-01-01", "standard", Some(366.0)),
            ("2001-01-01", "2000-01-01", "proleptic_gregorian", Some(366.0)),
            ("2001-01-01", "2000-01-01", "noleap", Some(365.0)),
            ("2001-01-01", "2000-01-01", "365_day", Some(365.0)),
            ("2002-01-01", "2001-01-01", "all_leap", Some(366.0)),
            ("2001-03-01", "2000-03-01", "360_day", Some(360.0)),
            ("1901-03-01", "1900-02-28", "julian", Some(367.0)),
            ("1900-03-01", "1900-02-28", "standard", Some(1.0)),
            ("2000-03-01", "2000-02-28", "noleap", Some(1.0)),
            ("2000-01-01 12:00", "2000-01-01", "", Some(0.5)),
            ("1500-01-01", "1500-01-02", "proleptic_gregorian", Some(-1.0)),
            ("1500-01-01", "1600-01-01", "standard", None),
            ("2000-02-29", "2000-02-28", "noleap", None),
            ("2000-02-31", "2000-02-28", "standard", None),
            ("2000-01-01", "2000-01-01", "martian", None),
        ] {
            assert_eq!(shift(from, to, calendar), expected, "{from} {to} {calendar}");
        }
        let of = |units: &str, calendar: &str| Reference::of(units, calendar).unwrap();
        let days = of("days since 2000-01-01", "standard");
        assert!(days.in_terms_of(&of("hours since 2000-01-01", "standard")).is_none());
        assert!(days.in_terms_of(&of("days since 2000-01-01", "noleap")).is_none());
        assert_eq!(days.in_terms_of(&of("day since 1999-12-31", "gregorian")), Some(1.0));
    }

    #[test]
    fn what_is_no_such_time_stays_a_number() {
        for (value, units, calendar) in [
            (1.0, "days", "standard"),
            (1.0, "months since 2000-01-01", "standard"),
            (1.0, "days since 0001-01-01", "standard"),
            (1.0, "days since 1582-10-14", "proleptic_gregorian"),
            (-1.0, "days since 1582-10-15", ""),
            (3_000_000.0, "days since 2000-01-01", "standard"),
            (1e300, "days since 2000-01-01", "standard"),
            (f64::NAN, "days since 2000-01-01", "standard"),
            (1.0, "days since 2000-13-01", "standard"),
            (1.0, "days since never", "standard"),
        ] {
            assert_eq!(date(value, 1.0, units, calendar), None, "{value} {units} {calendar}");
        }
    }
}
