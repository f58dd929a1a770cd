//! Rates that transfers reached, by protocol, controller and number of streams.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::series::Series;

/// Most send methods that are remembered for a path; the least recently used one is dropped.
pub const MAX_METHODS: usize = 16;
/// Longest name of a protocol or controller, bytes.
const MAX_NAME_BYTES: usize = 48;

/// Method of sending: protocol, controller and number of streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendMethod {
    /// Protocol: `tcp` or `quic`.
    pub protocol: String,
    /// Controller that decided the rate, such as `auto` or the kernel's `cubic`.
    pub controller: String,
    /// Parallel connections.
    pub streams: u32,
}

impl SendMethod {
    pub(crate) fn is_sound(&self) -> bool {
        self.protocol.len() <= MAX_NAME_BYTES && self.controller.len() <= MAX_NAME_BYTES
    }
}

/// Rates that transfers reached when there was enough to send, bytes per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Achieved {
    #[serde(rename = "ways")]
    methods: Vec<(SendMethod, Series)>,
}

impl Achieved {
    /// Records the rate of a transfer; true when it shows that the path has changed.
    pub fn record(&mut self, at: Duration, method: SendMethod, bytes_per_sec: f64) -> bool {
        if !method.is_sound() {
            return false;
        }
        let (method, mut series) = match self.methods.iter().position(|(known, _)| *known == method) {
            Some(place) => self.methods.remove(place),
            None => (method, Series::default()),
        };
        let has_shifted = series.record(at, bytes_per_sec);
        if !series.is_empty() {
            let surplus = (self.methods.len() + 1).saturating_sub(MAX_METHODS);
            self.methods.drain(..surplus);
            self.methods.push((method, series));
        }
        has_shifted
    }

    /// Returns each method with its rate.
    pub fn rates(&self, now: Duration) -> impl Iterator<Item = (&SendMethod, Estimate)> {
        self.methods.iter().filter_map(move |(method, series)| Some((method, series.trimmed_mean(now)?)))
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.methods.len() <= MAX_METHODS
            && self.methods.iter().all(|(method, series)| method.is_sound() && series.is_sound())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(controller: &str) -> SendMethod {
        SendMethod { protocol: "quic".into(), controller: controller.into(), streams: 1 }
    }

    #[test]
    fn the_least_recently_used_method_is_dropped() {
        let mut achieved = Achieved::default();
        for n in 0..MAX_METHODS + 4 {
            achieved.record(Duration::from_secs(1), method(&n.to_string()), 1e6 + n as f64);
            achieved.record(Duration::from_secs(1), method("0"), 5e6);
        }
        achieved.record(Duration::ZERO, method("none"), f64::NAN);
        achieved.record(Duration::ZERO, method(&"x".repeat(1000)), 1e6);
        assert_eq!(achieved.rates(Duration::from_secs(1)).count(), MAX_METHODS);
        assert!(achieved.rates(Duration::from_secs(1)).any(|(method, _)| method.controller == "0"));
    }
}
