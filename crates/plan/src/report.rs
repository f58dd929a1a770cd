//! Report of the other host on its own sending: a sender observes losses and the rates of its methods, a
//! receiver hardly does.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::achieved::{MAX_METHODS, SendMethod};
use crate::estimate::{Estimate, is_quantity};

/// Knowledge of a host about one direction of a path, as it is reported to others: rates are bytes per
/// second, loss and reordering shares from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// Capacity of the bottleneck.
    pub capacity_bytes_per_sec: Option<Estimate>,
    /// Share of packets lost.
    pub loss: Option<Estimate>,
    /// Share of packets overtaken.
    pub reordering: Option<Estimate>,
    /// Largest IP packet that the path carries.
    pub mtu_bytes: Option<Estimate>,
    /// Rates of transfers.
    #[serde(default)]
    pub achieved: Vec<AchievedRate>,
}

/// Rate that one send method reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AchievedRate {
    /// Send method.
    #[serde(flatten)]
    pub method: SendMethod,
    /// Rate, bytes per second.
    pub bytes_per_sec: Estimate,
}

impl AchievedRate {
    /// Returns whether the rate was given by the user: it says nothing about what the method can reach.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.method.controller == "rate"
    }
}

impl PathReport {
    /// Returns whether the report is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the report after some time, without entries that are too old then.
    pub(crate) fn later(&self, by: Duration) -> Self {
        let later = |estimate: Option<Estimate>| estimate.and_then(|estimate| estimate.later(by));
        let achieved = |achieved: &AchievedRate| {
            Some(AchievedRate {
                method: achieved.method.clone(),
                bytes_per_sec: achieved.bytes_per_sec.later(by)?,
            })
        };
        Self {
            capacity_bytes_per_sec: later(self.capacity_bytes_per_sec),
            loss: later(self.loss),
            reordering: later(self.reordering),
            mtu_bytes: later(self.mtu_bytes),
            achieved: self.achieved.iter().filter_map(achieved).collect(),
        }
    }

    /// Returns whether the report is valid; it comes from another host.
    pub(crate) fn is_sound(&self) -> bool {
        let quantities = [self.capacity_bytes_per_sec, self.mtu_bytes].into_iter().flatten();
        let rates = self.achieved.iter().map(|achieved| achieved.bytes_per_sec);
        let mut shares = [self.loss, self.reordering].into_iter().flatten();
        self.achieved.len() <= MAX_METHODS
            && self.achieved.iter().all(|achieved| achieved.method.is_sound())
            && quantities.chain(rates).all(|told| told.is_within(is_quantity))
            && shares.all(|told| told.is_within(|share| (0.0..=1.0).contains(&share)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{HALF_LIFE, MAX_AGE};

    fn estimate(value: f64) -> Estimate {
        Estimate::new(value, (value, value), 6, Duration::ZERO)
    }

    #[test]
    fn reports_lose_confidence_and_expire() {
        let told = PathReport { loss: Some(estimate(0.01)), ..PathReport::default() };
        let loss = told.later(HALF_LIFE).loss.unwrap();
        assert!((loss.confidence - 0.375).abs() < 1e-12, "half of 6 in 8: {loss:?}");
        assert!((loss.age_secs - HALF_LIFE.as_secs_f64()).abs() < 1e-6);
        assert!(told.later(MAX_AGE + HALF_LIFE).is_empty());
    }

    #[test]
    fn invalid_reports_are_recognized() {
        assert!(PathReport { loss: Some(estimate(1.0)), ..PathReport::default() }.is_sound());
        for odd in [f64::NAN, -0.1, 1.1] {
            assert!(!PathReport { loss: Some(estimate(odd)), ..PathReport::default() }.is_sound(), "{odd}");
        }
        for odd in [f64::INFINITY, 0.0, -5.0] {
            let capacity_bytes_per_sec = Some(estimate(odd));
            assert!(!PathReport { capacity_bytes_per_sec, ..PathReport::default() }.is_sound(), "{odd}");
        }
        let doubtful = Estimate { confidence: 1.5, ..estimate(1e6) };
        assert!(!PathReport { mtu_bytes: Some(doubtful), ..PathReport::default() }.is_sound());
        let method = |n: usize| SendMethod { protocol: "tcp".into(), controller: n.to_string(), streams: 1 };
        let achieved = |n| AchievedRate { method: method(n), bytes_per_sec: estimate(1e6) };
        let of = |count| PathReport { achieved: (0..count).map(achieved).collect(), ..PathReport::default() };
        assert!(of(MAX_METHODS).is_sound() && !of(MAX_METHODS + 1).is_sound());
    }
}
