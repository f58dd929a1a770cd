//! Dates of the times of files: numbers of `hours since 1900-01-01` and the like (CF conventions, section 4.4).
//!
//! Gregorian calendars give dates only since 1582, where all programs agree, until the year 9999; other times stay numbers.
//! [`calendar`] has the arithmetic of all calendars.

pub mod calendar;

use crate::time::calendar::TimeUnits;

/// Formats a value in CF `units` as a date, with the time of day unless it is midnight, with as many parts as times `step` apart need (0
/// if not known). Returns `None` for units that are not `UNIT since DATE`, for an unknown calendar, and, in Gregorian calendars, for a
/// value before 15 October 1582 or after the year 9999.
#[must_use]
pub fn date(value: f64, step: f64, units: &str, calendar: &str) -> Option<String> {
    let time = TimeUnits::parse(units, calendar).ok().filter(|time| time.is_agreed(value))?;
    time.label(value, step)
}

/// Epoch, unit and calendar of a time axis: `days since 2001-01-01` of `noleap`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference(TimeUnits);

impl Reference {
    /// Parses CF `units` and the name of a calendar; `None` for units that are not `UNIT since DATE`, for an unknown calendar, and for
    /// dates before 15 October 1582 in the standard calendar, which some programs read as Julian and others as Gregorian.
    #[must_use]
    pub fn of(units: &str, calendar: &str) -> Option<Self> {
        let time = TimeUnits::parse(units, calendar.trim()).ok()?;
        (!time.is_epoch_ambiguous()).then_some(Self(time))
    }

    /// Number to add to a time by `self` to get the same time by `other`; `None` if units or calendars differ, or if the number
    /// cannot be expressed exactly.
    #[must_use]
    pub fn in_terms_of(&self, other: &Self) -> Option<f64> {
        self.0.offset_to(&other.0)
    }

    /// Description of unit and calendar: equal for all references that share both.
    #[must_use]
    pub fn clock(&self) -> String {
        format!("{} s by {:?}", self.0.unit_seconds(), self.0.calendar)
    }
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

    /// As cftime gives them: files that count from the year 1 are common.
    #[test]
    fn an_epoch_before_1582_is_that_of_the_calendar() {
        for (value, units, calendar, expected) in [
            (17_522_904.0, "hours since 1-1-1 00:00:0.0", "standard", "2000-01-01"),
            (730_121.0, "days since 1-1-1", "standard", "2000-01-01"),
            (730_119.0, "days since 0001-01-01", "proleptic_gregorian", "2000-01-01"),
        ] {
            assert_eq!(date(value, 1.0, units, calendar).as_deref(), Some(expected), "{units} {calendar}");
        }
    }

    #[test]
    fn what_is_no_such_time_stays_a_number() {
        for (value, units, calendar) in [
            (1.0, "days", "standard"),
            (1.0, "months since 2000-01-01", "standard"),
            (1.0, "days since 0001-01-01", "standard"),
            (0.0, "days since 1582-10-14", "proleptic_gregorian"),
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
