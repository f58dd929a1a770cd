//! Coordinates along the axes of a picture's box, and ticks at round ones: numbers, degrees, dates.

use array::time::calendar::{Date, TimeUnits};

use super::numbers::{number_text, round_below};

/// Kind of coordinates of an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum AxisQuantity {
    /// Numbers with units.
    Number,
    /// Numbers of voxels, which are whole.
    Index,
    /// Degrees to the north.
    Latitude,
    /// Degrees to the east.
    Longitude,
    /// Times since a date.
    Time(TimeUnits),
}

/// An axis of the box around a volume.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisNote {
    /// Name.
    pub name: String,
    /// Units; empty if unknown, and for degrees, dates and indices.
    pub units: String,
    /// Kind of the coordinates.
    pub quantity: AxisQuantity,
    /// Shares of the box along the axis, from 0 at its low end to 1, in ascending order, and the coordinates there, which rise or fall.
    /// Without two, nothing is written.
    pub samples: Vec<[f64; 2]>,
    /// True if lengths along the axis are those of the world.
    pub is_to_scale: bool,
}

/// Steps of degrees.
const DEGREE_STEPS: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 45.0, 60.0, 90.0];
/// Maximum number of ticks of an axis.
const MAX_TICKS: f64 = 12.0;
/// Smallest number of ticks for which times are cut at whole units.
const FEWEST_DATES: usize = 2;

impl AxisNote {
    /// An axis that has world coordinates from one end of the box to the other.
    #[must_use]
    pub fn of_world(name: &str, units: &str, ends: [f64; 2]) -> Self {
        Self {
            name: name.to_owned(),
            units: units.to_owned(),
            quantity: AxisQuantity::Number,
            samples: vec![[0.0, ends[0]], [1.0, ends[1]]],
            is_to_scale: true,
        }
    }

    /// Name and units, written beside the axis; empty for degrees, which speak for themselves.
    pub(super) fn title(&self) -> String {
        match self.quantity {
            AxisQuantity::Latitude | AxisQuantity::Longitude => String::new(),
            AxisQuantity::Index => format!("{} (index)", self.name),
            _ if self.units.is_empty() => self.name.clone(),
            _ => format!("{} ({})", self.name, self.units),
        }
    }

    /// Coordinates at two shares of the box.
    fn at(&self, share: f64) -> Option<f64> {
        interpolated(&self.samples, share, 0)
    }

    /// Share of the box at a coordinate.
    fn share_of(&self, coordinate: f64) -> Option<f64> {
        let mut turned = self.samples.clone();
        if turned.first()?[1] > turned.last()?[1] {
            turned.reverse();
        }
        interpolated(&turned, coordinate, 1)
    }

    /// Returns about `count` ticks between two shares of the box: the share of each, and its text.
    pub(super) fn ticks(&self, shares: [f64; 2], count: f64) -> Vec<(f64, String)> {
        let [Some(a), Some(b)] = shares.map(|share| self.at(share)) else { return Vec::new() };
        let count = count.min(MAX_TICKS);
        if count < 1.0 || !a.is_finite() || !b.is_finite() || a.to_bits() == b.to_bits() {
            return Vec::new();
        }
        let [low, high] = [a.min(b), a.max(b)];
        let found = match &self.quantity {
            AxisQuantity::Number => numbers(low, high, round_step((high - low) / count)),
            AxisQuantity::Index => numbers(low.max(0.0), high, round_step((high - low) / count).max(1.0)),
            AxisQuantity::Latitude => {
                degrees(low.max(-90.0), high.min(90.0), count, ["S", "N"], |value| value)
            }
            AxisQuantity::Longitude => {
                degrees(low, high, count, ["W", "E"], |value| (value + 180.0).rem_euclid(360.0) - 180.0)
            }
            AxisQuantity::Time(units) => dates(units, low, high, count),
        };
        found.into_iter().filter_map(|(value, text)| Some((self.share_of(value)?, text))).collect()
    }
}

/// Interpolates between pairs, in ascending order of their entry `by`; extrapolates beyond the ends.
fn interpolated(pairs: &[[f64; 2]], at: f64, by: usize) -> Option<f64> {
    let after = pairs.partition_point(|pair| pair[by] < at).clamp(1, pairs.len().max(2) - 1);
    let (low, high) = (pairs.get(after - 1)?, pairs.get(after)?);
    let share = (at - low[by]) / (high[by] - low[by]);
    let found = low[1 - by] + share * (high[1 - by] - low[1 - by]);
    found.is_finite().then_some(found)
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that is no less than this.
fn round_step(least: f64) -> f64 {
    let below = round_below(least);
    let power = 10f64.powf(below.log10().floor());
    let is_enough = |step: &f64| *step >= least * (1.0 - 1e-9);
    [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter().find(is_enough).unwrap_or(10.0 * power)
}

/// Multiples of a step between two values; none if there are too many or the step is lost in rounding.
fn multiples(low: f64, high: f64, step: f64) -> Vec<f64> {
    let (first, last) = ((low / step - 1e-6).ceil(), (high / step + 1e-6).floor());
    if !(step > 0.0 && step.is_finite() && last - first < 4.0 * MAX_TICKS && low + step > low) {
        return Vec::new();
    }
    // By multiplication: sums of a rounded step would drift. No -0.
    (0..64u32).map(|n| (first + f64::from(n)) * step + 0.0).take_while(|&v| v <= high + 1e-6 * step).collect()
}

fn numbers(low: f64, high: f64, step: f64) -> Vec<(f64, String)> {
    multiples(low, high, step).into_iter().map(|value| (value, tick_text(value, step))).collect()
}

/// Size from which on numbers are not written out.
const MOST_PLAIN: f64 = 1e15;
/// Most decimals of a number that is written out.
const MOST_DECIMALS: f64 = 9.0;

/// Text of a multiple of a step: as many digits as the step needs, so that neighbors differ.
fn tick_text(value: f64, step: f64) -> String {
    let short = number_text(value);
    let decimals = (-(step.log10() + 1e-9).floor()).max(0.0);
    let is_plain =
        value.abs() < MOST_PLAIN && (value == 0.0 || value.abs() >= 1e-3) && decimals <= MOST_DECIMALS;
    let is_exact = short.parse().is_ok_and(|shown: f64| (shown - value).abs() <= 1e-3 * step);
    if is_exact && (!is_plain || short.contains('e') && step >= 1e3) {
        return short;
    }
    if !is_plain {
        return format!("{value:e}");
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 9")]
    let decimals = decimals as usize;
    format!("{value:.decimals$}")
}

/// Degrees with the letter of their side; `turned` brings them into one turn.
fn degrees(
    low: f64,
    high: f64,
    count: f64,
    sides: [&str; 2],
    turned: impl Fn(f64) -> f64,
) -> Vec<(f64, String)> {
    let least = (high - low) / count;
    let whole = DEGREE_STEPS.into_iter().find(|&step| least >= 1.0 && step >= least * (1.0 - 1e-9));
    let step = whole.unwrap_or_else(|| round_step(least));
    let text = |value: f64| {
        let own = turned(value);
        let size = tick_text(own.abs(), step);
        let is_between = own.abs() < 1e-9 || (sides[1] == "E" && (own.abs() - 180.0).abs() < 1e-9);
        let side = if is_between { "" } else { sides[usize::from(own > 0.0)] };
        format!("{size}°{side}")
    };
    multiples(low, high, step).into_iter().map(|value| (value, text(value))).collect()
}

/// First moments of years, months, days, hours or minutes, whichever are as many as fit; else none.
fn dates(units: &TimeUnits, low: f64, high: f64, count: f64) -> Vec<(f64, String)> {
    /// Steps: how many of a unit, and which: 0 years, 1 months, 2 days, 3 hours, 4 minutes.
    const STEPS: [(i64, usize); 20] = [
        (1, 4),
        (5, 4),
        (15, 4),
        (30, 4),
        (1, 3),
        (3, 3),
        (6, 3),
        (12, 3),
        (1, 2),
        (5, 2),
        (10, 2),
        (1, 1),
        (3, 1),
        (6, 1),
        (1, 0),
        (2, 0),
        (5, 0),
        (10, 0),
        (50, 0),
        (100, 0),
    ];
    /// Seconds of one year, month, day, hour, minute, about.
    const SECONDS: [f64; 5] = [31_557_600.0, 2_629_800.0, 86_400.0, 3_600.0, 60.0];
    let span = units.moment(high) - units.moment(low);
    #[expect(clippy::cast_precision_loss, reason = "up to 100")]
    let is_coarse = |&(every, unit): &(i64, usize)| every as f64 * SECONDS[unit] * count >= 0.9 * span;
    let Some((every, unit)) = STEPS.into_iter().find(is_coarse) else { return Vec::new() };
    let per_value = units.moment(1.0);
    let Some(first) = units.text(low) else { return Vec::new() };
    let Some(start) = FirstDate::parse(&first) else { return Vec::new() };
    let has_day = |day: &i64| {
        let date = Date::parse(&format!("{:04}-{:02}-{day:02}", start.year, start.month));
        date.is_some_and(|date| units.begins(&date).is_some())
    };
    let days = (28..=31).rev().find(has_day).unwrap_or(30);
    let mut ticks = Vec::new();
    for number in 0..64 {
        let (date, text) = start.later(every, unit, number, days);
        let Some(value) = Date::parse(&date).and_then(|date| units.begins(&date)).map(|m| m / per_value)
        else {
            continue;
        };
        if value > high {
            break;
        }
        if value >= low {
            ticks.push((value, text));
        }
    }
    if ticks.len() < FEWEST_DATES { Vec::new() } else { ticks }
}

/// Date and time at which an axis begins.
struct FirstDate {
    year: i64,
    month: i64,
    day: i64,
    minutes: i64,
}

impl FirstDate {
    /// Parses `YYYY-MM-DD`, with `THH:MM...` if it is not midnight.
    fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.split_once('T').unwrap_or((text, "00:00"));
        let mut parts = date.rsplitn(3, '-').map(|part| part.parse::<i64>().ok());
        let (day, month, year) = (parts.next()??, parts.next()??, parts.next()??);
        let mut clock = time.split(':').map(|part| part.parse::<i64>().ok());
        let minutes = clock.next()?? * 60 + clock.next()??;
        Some(Self { year, month, day, minutes })
    }

    /// Tick `number` from the beginning on, of those at each `every` units, as a date and a short text; the first month has `days`. The
    /// date may not exist, such as 30 February.
    fn later(&self, every: i64, unit: usize, number: i64, days: i64) -> (String, String) {
        let Self { year, month, day, minutes } = *self;
        match unit {
            0 => {
                let year = (year.div_euclid(every) + number) * every;
                (format!("{year:04}-01-01"), year.to_string())
            }
            1 => {
                let months = year * 12 + (month - 1).div_euclid(every) * every + number * every;
                let text = month_text(months);
                (format!("{text}-01"), text)
            }
            2 => {
                let per_month = if every == 1 { 31 } else { 30 / every };
                let months = year * 12 + month - 1 + number / per_month;
                let text = format!("{}-{:02}", month_text(months), number % per_month * every + 1);
                (text.clone(), text)
            }
            _ => {
                let every = if unit == 3 { every * 60 } else { every };
                let at = minutes / every * every + number * every;
                let (day, at) = (day + at / 1440, at % 1440);
                let (months, day) =
                    if day > days { (year * 12 + month, day - days) } else { (year * 12 + month - 1, day) };
                let date = format!("{}-{day:02}", month_text(months));
                let clock = format!("{:02}:{:02}", at / 60, at % 60);
                let text = if at == 0 { date.clone() } else { clock.clone() };
                (format!("{date}T{clock}"), text)
            }
        }
    }
}

/// Formats a number of months since year 0 as `2001-02`.
fn month_text(months: i64) -> String {
    format!("{:04}-{:02}", months.div_euclid(12), months.rem_euclid(12) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(quantity: AxisQuantity, from: f64, to: f64) -> AxisNote {
        AxisNote { quantity, ..AxisNote::of_world("a", "", [from, to]) }
    }

    fn texts(axis: &AxisNote, count: f64) -> Vec<String> {
        axis.ticks([0.0, 1.0], count).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_and_lie_where_their_coordinates_are() {
        assert_eq!(texts(&axis(AxisQuantity::Number, 0.9, 0.1), 4.0), ["0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(
            texts(&axis(AxisQuantity::Number, 1.00002, 1.00004), 3.0),
            ["1.00002", "1.00003", "1.00004"]
        );
        assert_eq!(
            texts(&axis(AxisQuantity::Number, 1e9 - 2.0, 1e9 + 2.0), 4.0),
            ["999999998", "999999999", "1000000000", "1000000001", "1000000002"]
        );
        assert_eq!(texts(&axis(AxisQuantity::Number, 0.0, 4e6), 4.0), ["0", "1e6", "2e6", "3e6", "4e6"]);
        assert_eq!(
            texts(&axis(AxisQuantity::Number, 2e-41, 8e-41), 3.0),
            ["2e-41", "4e-41", "6e-41", "8e-41"]
        );
        assert_eq!(texts(&axis(AxisQuantity::Index, -0.5, 2.5), 12.0), ["0", "1", "2"]);
        assert_eq!(
            texts(&axis(AxisQuantity::Latitude, -90.0, 90.0), 4.0),
            ["90°S", "45°S", "0°", "45°N", "90°N"]
        );
        assert_eq!(
            texts(&axis(AxisQuantity::Longitude, 0.0, 360.0), 4.0),
            ["0°", "90°E", "180°", "90°W", "0°"]
        );
        let mut uneven = axis(AxisQuantity::Number, 0.0, 1000.0);
        uneven.samples = vec![[0.0, 1000.0], [0.5, 100.0], [1.0, 0.0]];
        let found = uneven.ticks([0.0, 1.0], 5.0);
        assert_eq!(
            found.iter().map(|t| t.1.as_str()).collect::<Vec<_>>(),
            ["0", "200", "400", "600", "800", "1000"]
        );
        assert!(
            (found[1].0 - (0.5 - 0.5 / 9.0)).abs() < 1e-9 && (found[0].0 - 1.0).abs() < 1e-9,
            "{found:?}"
        );
        for bad in [[0.0, 0.0], [f64::NAN, 1.0], [1e300, 1e300 * (1.0 + 1e-16)], [0.0, f64::INFINITY]] {
            assert!(texts(&axis(AxisQuantity::Number, bad[0], bad[1]), 5.0).is_empty(), "{bad:?}");
        }
    }

    #[test]
    fn times_have_ticks_at_dates_of_every_calendar() {
        let of = |units: &str, calendar: &str, to: f64, count: f64| {
            let units = TimeUnits::parse(units, calendar).unwrap();
            texts(&axis(AxisQuantity::Time(units), 0.0, to), count)
        };
        assert_eq!(
            of("days since 2000-01-01", "standard", 731.0, 4.0),
            ["2000-01", "2000-07", "2001-01", "2001-07", "2002-01"]
        );
        assert_eq!(
            of("days since 2000-01-01", "360_day", 3600.0, 5.0),
            ["2000", "2002", "2004", "2006", "2008", "2010"]
        );
        assert_eq!(
            of("days since 2000-02-27", "noleap", 3.0, 4.0),
            ["2000-02-27", "2000-02-28", "2000-03-01", "2000-03-02"]
        );
        assert_eq!(
            of("hours since 2001-12-31 18:00", "standard", 12.0, 5.0),
            ["18:00", "21:00", "2002-01-01", "03:00", "06:00"]
        );
    }
}
