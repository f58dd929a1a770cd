//! Round trip of a path: minimum, smoothed value, trimmed mean.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::estimate::{Estimate, FAR_AHEAD, MAX_AGE, is_quantity};
use crate::series::Series;

/// Gain of the smoothed round trip (RFC 6298, section 2).
const SMOOTHED_GAIN: f64 = 1.0 / 8.0;
const VARIATION_GAIN: f64 = 1.0 / 4.0;

/// Round trips of a path, seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RttHistory {
    series: Series,
    /// Minimum, with its time.
    least: Option<(f64, Duration)>,
    smoothed_secs: Option<f64>,
    variation_secs: f64,
}

impl RttHistory {
    /// Records a round trip; true when it shows that the path has changed.
    pub fn record(&mut self, at: Duration, secs: f64) -> bool {
        if !is_quantity(secs) {
            return false;
        }
        let has_shifted = self.series.record(at, secs);
        if has_shifted {
            *self = Self { series: std::mem::take(&mut self.series), ..Self::default() };
        }
        self.smooth(secs);
        self.record_least(at, secs);
        has_shifted
    }

    /// Records the minimum of many round trips that another component observed.
    pub fn record_least(&mut self, at: Duration, secs: f64) {
        // A time far ahead was recorded by a wrong clock.
        let is_old = |seen: Duration| at.saturating_sub(seen) > MAX_AGE || seen > at + FAR_AHEAD;
        let known = self.least.filter(|(_, seen)| !is_old(*seen)).map(|(least, _)| least);
        if is_quantity(secs) && known.is_none_or(|known| secs <= known) {
            let among = self.series.min().filter(|_| known.is_none()).unwrap_or(secs);
            self.least = Some((among.min(secs), at));
        }
    }

    /// Updates the smoothed value (RFC 6298, section 2).
    fn smooth(&mut self, secs: f64) {
        match &mut self.smoothed_secs {
            Some(smoothed) => {
                self.variation_secs += VARIATION_GAIN * ((*smoothed - secs).abs() - self.variation_secs);
                *smoothed += SMOOTHED_GAIN * (secs - *smoothed);
            }
            None => (self.smoothed_secs, self.variation_secs) = (Some(secs), secs / 2.0),
        }
    }

    /// Round trip without queues: the minimum that is not too old.
    #[must_use]
    pub fn least(&self, now: Duration) -> Option<Estimate> {
        let (least, seen) = self.least?;
        // Each newer round trip confirms it.
        let since_seen = now.saturating_sub(seen);
        let age = if self.series.is_empty() { since_seen } else { since_seen.min(self.series.age(now)) };
        let high = self.series.trimmed_mean(now).map_or(least, |mean| mean.value);
        (age <= MAX_AGE).then(|| Estimate::new(least, (least, high), self.series.len().max(1), age))
    }

    /// Mean of the last ten without the top and bottom tenth.
    #[must_use]
    pub fn trimmed_mean(&self, now: Duration) -> Option<Estimate> {
        self.series.trimmed_mean(now)
    }

    /// Smoothed round trip and its mean variation (RFC 6298), seconds.
    #[must_use]
    pub fn smoothed(&self) -> Option<(f64, f64)> {
        self.smoothed_secs.map(|smoothed| (smoothed, self.variation_secs))
    }

    /// Number of detected changes of the path.
    #[must_use]
    pub fn shifts(&self) -> u32 {
        self.series.shifts()
    }

    pub(crate) fn is_sound(&self) -> bool {
        let numbers = [self.least.map(|(least, _)| least), self.smoothed_secs];
        self.series.is_sound() && self.variation_secs >= 0.0 && numbers.into_iter().flatten().all(is_quantity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn smoothing_follows_rfc_6298() {
        let mut rtt = RttHistory::default();
        rtt.record(SECOND, 0.100);
        assert_eq!(rtt.smoothed(), Some((0.100, 0.050)));
        rtt.record(SECOND * 2, 0.180);
        let (smoothed, variation) = rtt.smoothed().unwrap();
        assert!((smoothed - 0.110).abs() < 1e-12, "7/8 of 100 ms and 1/8 of 180: {smoothed}");
        assert!((variation - 0.0575).abs() < 1e-12, "3/4 of 50 ms and 1/4 of 80: {variation}");
    }

    #[test]
    fn the_minimum_is_forgotten_when_the_path_changes_or_with_age() {
        let mut rtt = RttHistory::default();
        for n in 1..=13 {
            rtt.record(SECOND * n, if n <= 10 { 0.020 } else { 0.150 });
        }
        assert_eq!(rtt.shifts(), 1);
        assert!((rtt.least(SECOND * 14).unwrap().value - 0.150).abs() < 1e-9);
        rtt.record(SECOND * 14 + MAX_AGE, 0.160);
        rtt.record(SECOND * 15 + MAX_AGE, 0.170);
        assert!((rtt.least(SECOND * 16 + MAX_AGE).unwrap().value - 0.160).abs() < 1e-9);
        assert!(rtt.least(SECOND * 16 + MAX_AGE * 3).is_none());
    }

    #[test]
    fn the_minimum_rtt_of_the_kernel_is_used() {
        let mut rtt = RttHistory::default();
        rtt.record(SECOND, 0.030);
        rtt.record_least(SECOND, 0.019);
        let least = rtt.least(SECOND).unwrap();
        assert!((least.value - 0.019).abs() < 1e-12 && (least.high - 0.030).abs() < 1e-12);
    }
}
