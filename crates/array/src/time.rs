//! Times of files as dates: numbers of `hours since 1900-01-01` and their like (CF conventions, section 4.4).
//!
//! Of the calendars that agree with today's only; other times stay numbers.

/// Calendars in which these dates are right, since [`FIRST_DAY`].
const CALENDARS: [&str; 3] = ["standard", "gregorian", "proleptic_gregorian"];
/// 15 October 1582, in days since 1970: before it the standard calendar is Julian.
const FIRST_DAY: f64 = -141_427.0;
/// The end of the year 9999, in days since 1970.
const END: f64 = 2_932_897.0;
const SECONDS_A_DAY: f64 = 86_400.0;

/// The date, and the time of day to the minute where it is not midnight, of a value in CF `units`; `None` where that cannot be said:
/// units that are no such time, another calendar, a date before 1582 or after 9999.
#[must_use]
pub fn date(value: f64, units: &str, calendar: &str) -> Option<String> {
    if !CALENDARS.contains(&calendar.to_ascii_lowercase().as_str()) {
        return None;
    }
    let (unit, epoch) = units.split_once(" since ")?;
    let start = days_of(epoch.trim())?;
    let days = start + value * seconds_of(unit.trim())? / SECONDS_A_DAY;
    if !(start >= FIRST_DAY && (FIRST_DAY..END).contains(&days)) {
        return None;
    }
    let minutes = (days * 1_440.0).round();
    let whole = (minutes / 1_440.0).floor();
    let [year, month, day] = civil(whole);
    let of_day = minutes - whole * 1_440.0;
    let text = format!("{year:04}-{month:02}-{day:02}");
    if of_day == 0.0 {
        return Some(text);
    }
    Some(format!("{text} {:02}:{:02}", (of_day / 60.0).floor(), of_day % 60.0))
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

/// Days since 1970 of `1900-1-1`, `1900-01-01 12:30:00` or `1900-01-01T12:30:00Z`.
fn days_of(text: &str) -> Option<f64> {
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
    is_legal.then(|| days_since_1970(year, month, day) + of_day / SECONDS_A_DAY)
}

/// Days since 1970 of a date (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn days_since_1970(year: f64, month: f64, day: f64) -> f64 {
    let year = if month <= 2.0 { year - 1.0 } else { year };
    let era = (year / 400.0).floor();
    let of_era = year - era * 400.0;
    let of_year = ((153.0 * ((month + 9.0) % 12.0) + 2.0) / 5.0).floor() + day - 1.0;
    let day_of_era = of_era * 365.0 + (of_era / 4.0).floor() - (of_era / 100.0).floor() + of_year;
    era * 146_097.0 + day_of_era - 719_468.0
}

/// Year, month and day of whole days since 1970; the inverse of [`days_since_1970`].
fn civil(days: f64) -> [f64; 3] {
    let days = days + 719_468.0;
    let era = (days / 146_097.0).floor();
    let of_era = days - era * 146_097.0;
    let year = ((of_era - (of_era / 1_460.0).floor() + (of_era / 36_524.0).floor()
        - (of_era / 146_096.0).floor())
        / 365.0)
        .floor();
    let of_year = of_era - (365.0 * year + (year / 4.0).floor() - (year / 100.0).floor());
    let month = ((5.0 * of_year + 2.0) / 153.0).floor();
    let day = of_year - ((153.0 * month + 2.0) / 5.0).floor() + 1.0;
    let month = if month < 10.0 { month + 3.0 } else { month - 9.0 };
    [year + era * 400.0 + if month <= 2.0 { 1.0 } else { 0.0 }, month, day]
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
            assert_eq!(date(value, units, "standard").as_deref(), Some(expected), "{value} {units}");
        }
    }

    #[test]
    fn every_day_has_its_date() {
        let mut last = civil(FIRST_DAY - 1.0);
        assert_eq!(civil(FIRST_DAY), [1582.0, 10.0, 15.0]);
        let mut days = FIRST_DAY;
        while days < 60_000.0 {
            let now = civil(days);
            let [year, month, day] = now;
            assert_eq!(days_since_1970(year, month, day), days);
            assert!(now > last && (1.0..=12.0).contains(&month) && (1.0..=31.0).contains(&day), "{now:?}");
            (last, days) = (now, days + 1.0);
        }
    }

    #[test]
    fn what_is_no_such_time_stays_a_number() {
        for (value, units, calendar) in [
            (1.0, "days since 2000-01-01", "noleap"),
            (1.0, "days", "standard"),
            (1.0, "months since 2000-01-01", "standard"),
            (1.0, "days since 0001-01-01", "standard"),
            (1e300, "days since 2000-01-01", "standard"),
            (f64::NAN, "days since 2000-01-01", "standard"),
            (1.0, "days since 2000-13-01", "standard"),
            (1.0, "days since never", "standard"),
        ] {
            assert_eq!(date(value, units, calendar), None, "{value} {units} {calendar}");
        }
    }
}
