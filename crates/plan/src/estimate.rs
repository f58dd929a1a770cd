//! Estimate of a quantity, with its basis and its age.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Age at which a measurement has half the confidence of a new one.
pub const HALF_LIFE: Duration = Duration::from_secs(2 * 86_400);
/// Age at which a measurement is forgotten.
pub const MAX_AGE: Duration = Duration::from_secs(14 * 86_400);
/// Time in the future from which a timestamp is considered the result of a wrong clock.
pub(crate) const FAR_AHEAD: Duration = Duration::from_secs(3600);
/// Number of new and consistent measurements with half of the full confidence.
const HALF_TRUSTED_SAMPLES: f64 = 2.0;

/// Measured quantity. `low` and `high` bound the middle four fifths of the measurements (of a share: its 95 %
/// interval).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Best estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Confidence from 0 to 1: grows with the number of measurements, and halves with each [`HALF_LIFE`]
    /// since the newest.
    pub confidence: f64,
    /// Number of measurements.
    pub samples: u32,
    /// Age of the newest measurement, seconds.
    pub age_secs: f64,
}

impl Estimate {
    /// Creates an estimate; an interval in the wrong order, or without the value, is widened.
    #[must_use]
    pub(crate) fn new(value: f64, (low, high): (f64, f64), samples: usize, age: Duration) -> Self {
        Self {
            value,
            low: low.min(value),
            high: high.max(value),
            confidence: confidence_of(samples, age),
            samples: u32::try_from(samples).unwrap_or(u32::MAX),
            age_secs: age.as_secs_f64(),
        }
    }

    /// Returns the estimate with its confidence reduced to this share.
    #[must_use]
    pub(crate) fn with_confidence_scaled(self, share: f64) -> Self {
        Self { confidence: self.confidence * share.clamp(0.0, 1.0), ..self }
    }

    /// Returns the estimate after some more time; `None` when it is too old then.
    #[must_use]
    pub(crate) fn later(self, by: Duration) -> Option<Self> {
        let age_secs = self.age_secs + by.as_secs_f64();
        let confidence = self.confidence * confidence_share_at(by);
        (age_secs <= MAX_AGE.as_secs_f64()).then_some(Self { confidence, age_secs, ..self })
    }

    /// Returns whether the numbers are in order and each satisfies `can_be`.
    pub(crate) fn is_within(&self, can_be: impl Fn(f64) -> bool) -> bool {
        let ends = [self.low, self.value, self.high];
        ends.into_iter().all(can_be)
            && ends.is_sorted()
            && (0.0..=1.0).contains(&self.confidence)
            && (0.0..=MAX_AGE.as_secs_f64()).contains(&self.age_secs)
    }
}

/// Time of the latest record, given the one before and the current time: a clock that was set back a little
/// does not make the newest record the oldest, and a time far ahead is discarded.
pub(crate) fn latest_record(before: Duration, now: Duration) -> Duration {
    if before > now + FAR_AHEAD { now } else { before.max(now) }
}

/// Share of the confidence that remains at this age, 0 to 1.
pub(crate) fn confidence_share_at(age: Duration) -> f64 {
    0.5_f64.powf(age.as_secs_f64() / HALF_LIFE.as_secs_f64())
}

fn confidence_of(samples: usize, age: Duration) -> f64 {
    let samples = samples as f64;
    samples / (samples + HALF_TRUSTED_SAMPLES) * confidence_share_at(age)
}

/// Rounds up to an integer; saturates, and returns 0 for a value that is not a number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and gives 0 for NaN"
)]
pub(crate) fn whole(value: f64) -> u64 {
    value.ceil() as u64
}

/// Returns whether a reported quantity (seconds, bytes, a rate) is valid: a number whose sums and ratios do
/// not overflow.
pub(crate) fn is_quantity(value: f64) -> bool {
    (1e-12..1e18).contains(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_grows_with_samples_and_halves_with_age() {
        let one = Estimate::new(1.0, (1.0, 1.0), 1, Duration::ZERO);
        let ten = Estimate::new(1.0, (1.0, 1.0), 10, Duration::ZERO);
        let old = Estimate::new(1.0, (1.0, 1.0), 10, HALF_LIFE);
        assert!(one.confidence < ten.confidence && ten.confidence < 1.0);
        assert!((old.confidence - ten.confidence / 2.0).abs() < 1e-12);
    }
}
