//! A number that says what it rests on, and how old it may be.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Age at which a measurement is believed half as much as a new one.
pub const HALF_LIFE: Duration = Duration::from_secs(2 * 86_400);
/// Age at which a measurement is forgotten.
pub const MAX_AGE: Duration = Duration::from_secs(14 * 86_400);
/// Time ahead of now from which a measurement is taken to have come from a wrong clock.
pub(crate) const FAR_AHEAD: Duration = Duration::from_secs(3600);
/// So many measurements are believed two thirds, if they are new and agree.
const HALF_TRUSTED_SAMPLES: f64 = 2.0;

/// A measured quantity. `low` and `high` hold the middle four fifths of what was measured (of a share: its 95 % interval).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The best guess.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// 0 to 1: grows with the number of measurements, and halves with each [`HALF_LIFE`] since the newest.
    pub confidence: f64,
    /// Measurements it rests on.
    pub samples: u32,
    /// Since the newest of them, seconds.
    pub age_secs: f64,
}

impl Estimate {
    /// A value in its interval; ends the wrong way round, or that leave the value out, are widened.
    #[must_use]
    pub(crate) fn new(value: f64, (low, high): (f64, f64), samples: usize, age: Duration) -> Self {
        Self {
            value,
            low: low.min(value),
            high: high.max(value),
            confidence: believed(samples, age),
            samples: u32::try_from(samples).unwrap_or(u32::MAX),
            age_secs: age.as_secs_f64(),
        }
    }

    /// The estimate with its confidence reduced to this share.
    #[must_use]
    pub(crate) fn doubted(self, share: f64) -> Self {
        Self { confidence: self.confidence * share.clamp(0.0, 1.0), ..self }
    }

    /// The estimate after some more time; none when it is too old then.
    #[must_use]
    pub(crate) fn later(self, by: Duration) -> Option<Self> {
        let age_secs = self.age_secs + by.as_secs_f64();
        let confidence = self.confidence * left_after(by);
        (age_secs <= MAX_AGE.as_secs_f64()).then_some(Self { confidence, age_secs, ..self })
    }

    /// Whether its numbers are in order and each `can_be`.
    pub(crate) fn is_within(&self, can_be: impl Fn(f64) -> bool) -> bool {
        let ends = [self.low, self.value, self.high];
        ends.into_iter().all(can_be)
            && ends.is_sorted()
            && (0.0..=1.0).contains(&self.confidence)
            && (0.0..=MAX_AGE.as_secs_f64()).contains(&self.age_secs)
    }
}

/// When something was told last, that was told at `before` and is told again now: a clock that was set back a little does not
/// make the newest the oldest, one that was far ahead is forgotten.
pub(crate) fn latest_record(before: Duration, now: Duration) -> Duration {
    if before > now + FAR_AHEAD { now } else { before.max(now) }
}

/// Share of the confidence that is left after `age`, 0 to 1.
pub(crate) fn left_after(age: Duration) -> f64 {
    0.5_f64.powf(age.as_secs_f64() / HALF_LIFE.as_secs_f64())
}

fn believed(samples: usize, age: Duration) -> f64 {
    let samples = samples as f64;
    samples / (samples + HALF_TRUSTED_SAMPLES) * left_after(age)
}

/// Rounded up to a whole number; the largest there is for what is beyond it, 0 for what is no number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and gives 0 for NaN"
)]
pub(crate) fn whole(value: f64) -> u64 {
    value.ceil() as u64
}

/// Whether a told quantity (seconds, bytes, a rate) can be one: a number, and of a size that sums and ratios endure.
pub(crate) fn is_quantity(value: f64) -> bool {
    (1e-12..1e18).contains(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn belief_grows_with_samples_and_halves_with_age() {
        let one = Estimate::new(1.0, (1.0, 1.0), 1, Duration::ZERO);
        let ten = Estimate::new(1.0, (1.0, 1.0), 10, Duration::ZERO);
        let old = Estimate::new(1.0, (1.0, 1.0), 10, HALF_LIFE);
        assert!(one.confidence < ten.confidence && ten.confidence < 1.0);
        assert!((old.confidence - ten.confidence / 2.0).abs() < 1e-12);
    }
}
