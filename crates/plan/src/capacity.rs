//! Capacity of a bottleneck, from the spacing of the packets of a train at their arrival.
//!
//! A train that is sent at once arrives at the rate of the bottleneck. Cross traffic between its packets
//! makes it look slower, timers that deliver several packets together make it look faster; both scatter,
//! while the true rate repeats (Dovrolis, Ramanathan, Moore: packet-dispersion techniques, 2004). So the
//! estimate is the mode.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::estimate::{Estimate, MAX_AGE};
use crate::series::{MAX_SAMPLES, Series};

/// Factor around the mode within which trains agree with it.
const AGREEING: f64 = 1.1;

/// Capacity of a bottleneck, from packet trains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BottleneckCapacity {
    trains: Series,
}

impl BottleneckCapacity {
    /// Records a train: `bytes` without its first packet, over `spread` from the arrival of the first packet
    /// to the last; true when it shows that the path has changed.
    pub fn record(&mut self, at: Duration, bytes: u64, spread: Duration) -> bool {
        self.trains.record(at, bytes as f64 / spread.as_secs_f64())
    }

    /// Capacity, bytes per second. The confidence falls with the square of the share of trains that agree
    /// (within a tenth): where less than half do, the mode may be of trains that were delayed and then
    /// arrived at once.
    #[must_use]
    pub fn estimate(&self, now: Duration) -> Option<Estimate> {
        let age = self.trains.age(now);
        let rates = self.trains.sorted(MAX_SAMPLES);
        let mode = half_sample_mode(&rates).filter(|_| age <= MAX_AGE)?;
        let agreeing: Vec<f64> =
            rates.iter().copied().filter(|rate| (mode / AGREEING..=mode * AGREEING).contains(rate)).collect();
        // Where none agrees, the interval covers all of them.
        let shown = if agreeing.is_empty() { &rates } else { &agreeing };
        let (low, high) = (shown.first().copied()?, shown.last().copied()?);
        let share = agreeing.len() as f64 / rates.len() as f64;
        Some(Estimate::new(mode, (low, high), rates.len(), age).with_confidence_scaled(share * share))
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.trains.is_sound()
    }
}

/// Mode of ascending positive values: takes the half of them that spans the smallest ratio, and so on within that half
/// (Bickel, Fruehwirth: half-sample mode, 2006).
fn half_sample_mode(sorted: &[f64]) -> Option<f64> {
    let mut densest = sorted;
    while densest.len() > 2 {
        let half = densest.len().div_ceil(2);
        let ratio = |of: &&[f64]| match of {
            [first, .., last] => last / first,
            _ => 1.0,
        };
        densest = densest.windows(half).min_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
    }
    let (first, last) = (densest.first()?, densest.last()?);
    Some((first * last).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_the_densest_value() {
        assert_eq!(half_sample_mode(&[]), None);
        assert_eq!(half_sample_mode(&[4.0]), Some(4.0));
        let mode = half_sample_mode(&[1.0, 3.0, 7.0, 9.9, 10.0, 10.1, 15.0, 40.0]).unwrap();
        assert!((9.8..10.2).contains(&mode), "{mode}");
    }

    #[test]
    fn a_train_without_duration_is_ignored() {
        let mut capacity = BottleneckCapacity::default();
        capacity.record(Duration::ZERO, 1000, Duration::ZERO);
        capacity.record(Duration::ZERO, 0, Duration::from_secs(1));
        assert!(capacity.estimate(Duration::ZERO).is_none());
    }

    #[test]
    fn two_contradicting_trains_have_no_confidence() {
        let mut capacity = BottleneckCapacity::default();
        capacity.record(Duration::ZERO, 1_000, Duration::from_secs(1));
        capacity.record(Duration::ZERO, 1_000_000, Duration::from_secs(1));
        let found = capacity.estimate(Duration::ZERO).unwrap();
        assert!(found.confidence.abs() < 1e-12 && found.low < 1_001.0 && found.high > 999_999.0, "{found:?}");
    }
}
