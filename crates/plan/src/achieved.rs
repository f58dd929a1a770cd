//! Rates that transfers reached, by protocol, controller and number of streams.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::series::Series;

/// Ways of sending that are remembered for a path; the one that was not used longest makes room.
pub const MAX_WAYS: usize = 16;
/// Longest name, bytes.
const MAX_NAME_BYTES: usize = 48;

/// How something was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// `tcp`, `quic`.
    pub protocol: String,
    /// Controller that decided the rate, such as `auto` or the kernel's `cubic`.
    pub controller: String,
    /// Connections at a time.
    pub streams: u32,
}

impl Way {
    pub(crate) fn is_sound(&self) -> bool {
        self.protocol.len() <= MAX_NAME_BYTES && self.controller.len() <= MAX_NAME_BYTES
    }
}

/// Rates that transfers got when there was enough to send, bytes per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Achieved {
    ways: Vec<(Way, Series)>,
}

impl Achieved {
    /// A transfer got this rate; true when it shows that the path has changed.
    pub fn tell(&mut self, at: Duration, way: Way, bytes_per_sec: f64) -> bool {
        if !way.is_sound() {
            return false;
        }
        let (way, mut series) = match self.ways.iter().position(|(known, _)| *known == way) {
            Some(place) => self.ways.remove(place),
            None => (way, Series::default()),
        };
        let has_shifted = series.tell(at, bytes_per_sec);
        if !series.is_empty() {
            let surplus = (self.ways.len() + 1).saturating_sub(MAX_WAYS);
            self.ways.drain(..surplus);
            self.ways.push((way, series));
        }
        has_shifted
    }

    /// Each way and its rate.
    pub fn rates(&self, now: Duration) -> impl Iterator<Item = (&Way, Estimate)> {
        self.ways.iter().filter_map(move |(way, series)| Some((way, series.trimmed_mean(now)?)))
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.ways.len() <= MAX_WAYS
            && self.ways.iter().all(|(way, series)| way.is_sound() && series.is_sound())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(controller: &str) -> Way {
        Way { protocol: "quic".into(), controller: controller.into(), streams: 1 }
    }

    #[test]
    fn the_way_that_was_not_used_longest_makes_room() {
        let mut achieved = Achieved::default();
        for n in 0..MAX_WAYS + 4 {
            achieved.tell(Duration::from_secs(1), way(&n.to_string()), 1e6 + n as f64);
            achieved.tell(Duration::from_secs(1), way("0"), 5e6);
        }
        achieved.tell(Duration::ZERO, way("none"), f64::NAN);
        achieved.tell(Duration::ZERO, way(&"x".repeat(1000)), 1e6);
        assert_eq!(achieved.rates(Duration::from_secs(1)).count(), MAX_WAYS);
        assert!(achieved.rates(Duration::from_secs(1)).any(|(way, _)| way.controller == "0"));
    }
}
