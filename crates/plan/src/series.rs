//! Values of one quantity over time, newest last: bounded, aged, and restarted when the path has changed.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::estimate::{Estimate, MAX_AGE, is_quantity, latest_record};

/// Most values of a quantity that are kept.
pub const MAX_SAMPLES: usize = 64;
/// Number of newest values in the trimmed mean.
const TRIMMED_OF: usize = 10;
/// Divisor: this part of those values is left out at each end.
const TRIMMED_ONE_IN: usize = 10;
/// Consecutive outliers that show a change of the path.
const SHIFT_RUN: usize = 3;
/// Standard deviations from the earlier values beyond which a value is an outlier.
const SHIFT_SIGMAS: f64 = 2.5;
/// Fewest earlier values for the detection of a change.
const SHIFT_AFTER: usize = 5;
/// Smallest standard deviation assumed, as a share of the mean, because of the resolution of timers.
const LEAST_SIGMA: f64 = 0.01;

/// Value with its time since the caller's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct TimedValue {
    at: Duration,
    value: f64,
}

/// Values of one quantity. A change is detected as in Enable (network advice for tuned transfers): three
/// consecutive values beyond 2.5 standard deviations, here on the same side; the older values are then
/// dropped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    samples: VecDeque<TimedValue>,
    shifts: u32,
}

impl Series {
    /// Records a value; true when it shows that the path has changed. Invalid values are ignored.
    pub fn record(&mut self, at: Duration, value: f64) -> bool {
        if !is_quantity(value) {
            return false;
        }
        let at = self.samples.back().map_or(at, |newest| latest_record(newest.at, at));
        self.samples.iter_mut().for_each(|sample| sample.at = sample.at.min(at));
        self.samples.push_back(TimedValue { at, value });
        self.forget(at);
        let has_shifted = self.has_shifted();
        if has_shifted {
            self.samples.drain(..self.samples.len() - SHIFT_RUN);
            self.shifts = self.shifts.saturating_add(1);
        }
        has_shifted
    }

    /// Drops values that are too old or too many.
    pub(crate) fn forget(&mut self, now: Duration) {
        while self.samples.front().is_some_and(|oldest| now.saturating_sub(oldest.at) > MAX_AGE) {
            self.samples.pop_front();
        }
        let surplus = self.samples.len().saturating_sub(MAX_SAMPLES);
        self.samples.drain(..surplus);
    }

    fn has_shifted(&self) -> bool {
        let Some(before) = self.samples.len().checked_sub(SHIFT_RUN).filter(|n| *n >= SHIFT_AFTER) else {
            return false;
        };
        let values = || self.samples.iter().map(|sample| sample.value);
        let (mean, sigma) = mean_and_sigma(values().take(before));
        let far = SHIFT_SIGMAS * sigma.max(LEAST_SIGMA * mean);
        let newest = || values().skip(before);
        newest().all(|value| value > mean + far) || newest().all(|value| value < mean - far)
    }

    /// Number of detected changes of the path.
    #[must_use]
    pub fn shifts(&self) -> u32 {
        self.shifts
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Returns whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Smallest value.
    #[must_use]
    pub fn min(&self) -> Option<f64> {
        self.sorted(MAX_SAMPLES).first().copied()
    }

    /// Age of the newest value.
    pub(crate) fn age(&self, now: Duration) -> Duration {
        self.samples.back().map_or(Duration::ZERO, |newest| now.saturating_sub(newest.at))
    }

    /// Mean of the last ten without the top and bottom tenth.
    #[must_use]
    pub fn trimmed_mean(&self, now: Duration) -> Option<Estimate> {
        let sorted = self.sorted(TRIMMED_OF);
        let kept = trimmed(&sorted);
        if kept.is_empty() || self.age(now) > MAX_AGE {
            return None;
        }
        let mean = kept.iter().sum::<f64>() / kept.len() as f64;
        let all = self.sorted(MAX_SAMPLES);
        Some(Estimate::new(mean, middle(&all), all.len(), self.age(now)))
    }

    /// Newest `count` values, ascending.
    pub(crate) fn sorted(&self, count: usize) -> Vec<f64> {
        let mut values: Vec<f64> = self.samples.iter().rev().take(count).map(|s| s.value).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    /// Returns whether a stored series is valid.
    pub(crate) fn is_sound(&self) -> bool {
        self.samples.len() <= MAX_SAMPLES && self.samples.iter().all(|sample| is_quantity(sample.value))
    }
}

/// Returns the values without the top and bottom tenth.
fn trimmed(sorted: &[f64]) -> &[f64] {
    let cut = (sorted.len() + TRIMMED_ONE_IN / 2) / TRIMMED_ONE_IN;
    sorted.get(cut..sorted.len() - cut).unwrap_or(sorted)
}

/// Bounds of the middle four fifths of ascending values.
pub(crate) fn middle(sorted: &[f64]) -> (f64, f64) {
    let last = sorted.len().saturating_sub(1);
    let cut = (last + TRIMMED_ONE_IN / 2) / TRIMMED_ONE_IN;
    let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
    (at(cut), at(last - cut))
}

fn mean_and_sigma(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(values: &[f64]) -> Series {
        let mut series = Series::default();
        for (second, value) in (0..).zip(values) {
            series.record(Duration::from_secs(second), *value);
        }
        series
    }

    #[test]
    fn extremes_of_the_last_ten_values_do_not_count() {
        let values = [900.0, 10.0, 10.0, 10.0, 10.0, 50.0, 10.0, 1.0, 10.0, 10.0, 10.0];
        let mean = recorded(&values).trimmed_mean(Duration::from_secs(10)).unwrap();
        assert!((mean.value - 10.0).abs() < 1e-12, "{mean:?}");
        assert!(mean.low <= 10.0 && mean.high >= 10.0);
    }

    #[test]
    fn three_consecutive_outliers_restart_the_series_and_two_do_not() {
        let before = [20.0, 21.0, 19.0, 20.0, 20.5, 19.5, 20.0];
        let two: Vec<f64> = before.into_iter().chain([40.0, 41.0, 20.0]).collect();
        assert_eq!((recorded(&two).shifts(), recorded(&two).len()), (0, 10));
        let three: Vec<f64> = before.into_iter().chain([40.0, 41.0, 40.0]).collect();
        assert_eq!((recorded(&three).shifts(), recorded(&three).len()), (1, 3));
        let both_sides: Vec<f64> = before.into_iter().chain([40.0, 2.0, 40.0]).collect();
        assert_eq!(recorded(&both_sides).shifts(), 0);
    }

    #[test]
    fn values_of_a_clock_far_ahead_age_like_others() {
        let ahead = MAX_AGE * 100;
        let mut series = Series::default();
        series.record(ahead, 2.0);
        series.record(Duration::from_secs(1), 3.0);
        assert_eq!((series.len(), series.age(MAX_AGE)), (2, MAX_AGE - Duration::from_secs(1)));
        series.record(MAX_AGE * 2, 4.0);
        assert_eq!(series.min(), Some(4.0), "earlier values are too old");
    }

    #[test]
    fn old_and_invalid_values_are_ignored() {
        let mut series = recorded(&[1.0, f64::NAN, -1.0, f64::INFINITY, 0.0]);
        assert_eq!(series.len(), 1);
        assert!(series.trimmed_mean(MAX_AGE * 2).is_none(), "too old for an estimate");
        series.record(MAX_AGE * 2, 3.0);
        assert_eq!(series.min(), Some(3.0));
        for n in 0..1000 {
            series.record(MAX_AGE * 2, 3.0 + f64::from(n % 7) * 0.1);
        }
        assert_eq!(series.len(), MAX_SAMPLES);
    }
}
