//! Capacity of the bottleneck, as far as a flow can know it.
//!
//! The capacity is the unit in which flows of one bottleneck grow alike, so it must not depend on the share
//! of a flow: the arriving rate is only a lower bound. Packet trains provide the rest.

use super::train::TrainCapacity;
use crate::filter::SlidingMax;

/// Number of trains remembered.
const TRAINS: usize = 5;
/// Part of a lower bound that is used: the spread of a short train is noisy.
const SURE_SHARE: f64 = 0.75;

/// Estimator of the capacity, bytes per second.
#[derive(Clone, Debug)]
pub(super) struct CapacityEstimator {
    arrived: SlidingMax,
    exact: Vec<f64>,
    at_least: f64,
}

impl CapacityEstimator {
    pub(super) fn new(remembered: Option<f64>) -> Self {
        Self { arrived: SlidingMax::new(), exact: remembered.into_iter().collect(), at_least: 0.0 }
    }

    /// Records an arriving rate; forgotten after `window_secs`.
    pub(super) fn on_arrived(&mut self, at: f64, window_secs: f64, bytes_per_sec: f64) {
        self.arrived.add(at, window_secs, bytes_per_sec);
    }

    /// Records the result of a train; true when it changed the estimate.
    pub(super) fn on_train(&mut self, shown: TrainCapacity) -> bool {
        match shown {
            TrainCapacity::Exactly(bytes_per_sec) => {
                if self.exact.len() == TRAINS {
                    self.exact.remove(0);
                }
                self.exact.push(bytes_per_sec);
                self.at_least = 0.0;
                true
            }
            TrainCapacity::AtLeast(bytes_per_sec) => {
                let is_news = SURE_SHARE * bytes_per_sec > self.value();
                if is_news {
                    self.at_least = SURE_SHARE * bytes_per_sec;
                }
                is_news
            }
        }
    }

    /// Returns whether enough trains were evaluated.
    pub(super) fn is_settled(&self) -> bool {
        self.exact.len() == TRAINS
    }

    /// Estimate; 0 while nothing is known.
    ///
    /// Packets of other flows within a train lower its result, noise goes both ways; so the median is used.
    pub(super) fn value(&self) -> f64 {
        let mut exact = self.exact.clone();
        exact.sort_by(|a, b| b.total_cmp(a));
        let place = exact.len().saturating_sub(1) / 2;
        let shown = exact.get(place).copied().unwrap_or(0.0);
        self.arrived.value().max(shown).max(self.at_least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lucky_train_does_not_count() {
        let mut capacity = CapacityEstimator::new(None);
        for shown in [90.0, 100.0, 140.0, 60.0, 98.0] {
            capacity.on_train(TrainCapacity::Exactly(shown));
        }
        assert_eq!(capacity.value(), 98.0);
        capacity.on_arrived(0.0, 1.0, 120.0);
        assert_eq!(capacity.value(), 120.0, "what arrived is certain");
    }

    #[test]
    fn a_short_train_only_raises() {
        let mut capacity = CapacityEstimator::new(Some(100.0));
        assert!(!capacity.on_train(TrainCapacity::AtLeast(100.0)));
        assert!(capacity.on_train(TrainCapacity::AtLeast(400.0)));
        assert_eq!(capacity.value(), 300.0);
        assert!(capacity.on_train(TrainCapacity::Exactly(200.0)));
        assert_eq!(capacity.value(), 200.0);
    }
}
