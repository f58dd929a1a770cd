//! Packet trains: the rate at which the bottleneck passes packets that were sent together.
//!
//! The spread of their acknowledgements is the time that the bottleneck took (packet dispersion).
//! Acknowledgements are noisy by tens of microseconds, so a train that took less than [`SHORTEST_SECS`] gives
//! only a lower bound.

use std::time::Duration;

use crate::{Ack, LostPackets};

/// Shortest spread that is evaluated, seconds: shorter ones are mostly noise.
pub(super) const SHORTEST_SECS: f64 = 150e-6;
/// Share of a train that must have arrived: its end may be lost.
const ENOUGH: f64 = 0.9;

/// Train in flight.
#[derive(Clone, Debug)]
pub(super) struct ProbeTrain {
    bytes: f64,
    /// Fewest bytes of a train: fewer bytes sent together are not a train.
    least_bytes: f64,
    sent_bytes: f64,
    first_sent_at: Duration,
    last_sent_at: Duration,
    first_acked_at: Option<f64>,
    /// Bytes acknowledged after the first acknowledgement.
    spread_bytes: f64,
    arrived_bytes: f64,
    lost_bytes: f64,
}

/// Capacity measured by a train.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TrainCapacity {
    /// Capacity, bytes per second.
    Exactly(f64),
    /// Lower bound, bytes per second: the spread was too short.
    AtLeast(f64),
}

impl ProbeTrain {
    pub(super) fn new(bytes: f64, least_bytes: f64) -> Self {
        Self {
            bytes,
            least_bytes,
            sent_bytes: 0.0,
            first_sent_at: Duration::ZERO,
            last_sent_at: Duration::ZERO,
            first_acked_at: None,
            spread_bytes: 0.0,
            arrived_bytes: 0.0,
            lost_bytes: 0.0,
        }
    }

    /// Returns whether part of the train is still to be sent.
    pub(super) fn is_leaving(&self) -> bool {
        self.sent_bytes < self.bytes
    }

    /// Bytes to be sent together.
    pub(super) fn bytes(&self) -> f64 {
        self.bytes
    }

    /// Records sent bytes, which belong to the train if it is not complete. A few small packets, of a flow
    /// that has little to send yet, are ignored: they arrive as far apart as they were sent.
    pub(super) fn on_sent(&mut self, now: Duration, bytes: u64) {
        let is_begun = self.sent_bytes > 0.0;
        if !self.is_leaving() || !is_begun && (bytes as f64) < self.least_bytes.min(self.bytes) {
            return;
        }
        if !is_begun {
            self.first_sent_at = now;
            self.bytes = self.bytes.min(bytes as f64);
        }
        self.last_sent_at = now;
        self.sent_bytes += bytes as f64;
    }

    /// Handles an acknowledgement; returns the result of the train once enough of it, or something sent after
    /// it, was acknowledged.
    pub(super) fn on_ack(&mut self, at: f64, ack: &Ack) -> Option<TrainCapacity> {
        if self.sent_bytes == 0.0 || ack.sent_at < self.first_sent_at {
            return None;
        }
        if ack.sent_at > self.last_sent_at {
            if self.first_acked_at.is_none() {
                self.send_again();
                return None;
            }
            return self.read(at);
        }
        if self.first_acked_at.is_some() {
            self.spread_bytes += ack.bytes as f64;
        }
        self.first_acked_at.get_or_insert(at);
        self.arrived_bytes += ack.bytes as f64;
        if self.arrived_bytes + self.lost_bytes >= ENOUGH * self.sent_bytes { self.read(at) } else { None }
    }

    /// Handles a loss; true when the train lost it.
    pub(super) fn on_lost(&mut self, loss: &LostPackets) -> bool {
        let is_of_train =
            self.sent_bytes > 0.0 && self.first_sent_at <= loss.sent_at && loss.sent_at <= self.last_sent_at;
        if is_of_train {
            self.lost_bytes += loss.bytes as f64;
        }
        is_of_train
    }

    /// Share of the train that was lost so far.
    pub(super) fn lost_share(&self) -> f64 {
        self.lost_bytes / self.sent_bytes.max(1.0)
    }

    /// Restarts a train that cannot be evaluated, because it was acknowledged together with later data, or
    /// lost. Shorter if it was lost.
    fn send_again(&mut self) {
        let bytes = if self.lost_bytes > 0.0 { (self.bytes / 2.0).max(self.least_bytes) } else { self.bytes };
        *self = Self::new(bytes, self.least_bytes);
    }

    fn read(&self, at: f64) -> Option<TrainCapacity> {
        let spread_secs = at - self.first_acked_at?;
        if self.spread_bytes == 0.0 {
            return Some(TrainCapacity::AtLeast(self.arrived_bytes / SHORTEST_SECS));
        }
        if spread_secs < SHORTEST_SECS {
            return Some(TrainCapacity::AtLeast(self.spread_bytes / SHORTEST_SECS));
        }
        Some(TrainCapacity::Exactly(self.spread_bytes / spread_secs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a train of 100 packets, acknowledged one every `micros`, of which the last `lost` are lost.
    fn read(micros: u64, lost: u64) -> Option<TrainCapacity> {
        let mut train = ProbeTrain::new(150_000.0, 6_000.0);
        train.on_sent(Duration::from_millis(1), 150_000);
        assert!(!train.is_leaving());
        let ack = |sent_ms, i| {
            (
                1e-6 * (20_000 + micros * i) as f64,
                Ack {
                    bytes: 1500,
                    sent_at: Duration::from_millis(sent_ms),
                    rtt: None,
                    delivery: None,
                    in_flight_bytes: 0,
                },
            )
        };
        let mut acks: Vec<(f64, Ack)> = (0..100 - lost).map(|i| ack(1, i)).collect();
        acks.push(ack(2, 100));
        acks.iter().find_map(|(at, ack)| train.on_ack(*at, ack))
    }

    #[test]
    fn the_spread_is_the_capacity() {
        // 1500 bytes every 12 us: 1 Gb/s.
        let Some(TrainCapacity::Exactly(rate)) = read(12, 0) else { panic!("{:?}", read(12, 0)) };
        assert!((rate / 125e6 - 1.0).abs() < 1e-6, "{rate}");
    }

    #[test]
    fn a_flow_with_little_to_send_sends_no_train() {
        let mut train = ProbeTrain::new(150_000.0, 6_000.0);
        for (sent_ms, acked_at) in [(1, 0.021), (9, 0.029)] {
            train.on_sent(Duration::from_millis(sent_ms), 300);
            let sent_at = Duration::from_millis(sent_ms);
            let ack = Ack { bytes: 300, sent_at, rtt: None, delivery: None, in_flight_bytes: 0 };
            assert_eq!(train.on_ack(acked_at, &ack), None);
        }
        train.on_sent(Duration::from_millis(30), 60_000);
        assert!(!train.is_leaving() && train.bytes() == 60_000.0, "what there is by then is one");
    }

    #[test]
    fn a_train_that_is_acknowledged_together_with_what_followed_it_is_sent_again() {
        let mut train = ProbeTrain::new(150_000.0, 6_000.0);
        train.on_sent(Duration::from_millis(1), 60_000);
        assert!(!train.is_leaving());
        let sent_at = Duration::from_millis(2);
        let ack = Ack { bytes: 61_500, sent_at, rtt: None, delivery: None, in_flight_bytes: 0 };
        assert_eq!(train.on_ack(0.03, &ack), None);
        assert!(train.is_leaving(), "it would be waited for until the end");
    }

    #[test]
    fn a_short_spread_is_a_lower_bound() {
        assert!(matches!(read(1, 0), Some(TrainCapacity::AtLeast(rate)) if rate > 5e8));
    }

    #[test]
    fn a_train_that_lost_its_end_is_read_when_something_later_arrives() {
        assert!(matches!(read(12, 40), Some(TrainCapacity::Exactly(_))));
        assert_eq!(read(12, 100), None);
    }
}
