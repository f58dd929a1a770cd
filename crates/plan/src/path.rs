//! Knowledge of a network path between two hosts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::achieved::SendMethod;
use crate::estimate::latest_record;
use crate::network::Signature;
use crate::one_way::OneWayPath;
use crate::report::PathReport;
use crate::rtt::RttHistory;

/// Direction of a path, as seen from this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From here to the other host.
    Up,
    /// From the other host to here.
    Down,
}

/// Measurement of a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Measurement {
    /// One round trip, seconds.
    RoundTrip(f64),
    /// Minimum of many round trips, seconds.
    LeastRoundTrip(f64),
    /// Arrival of a train: bytes without its first packet, and the time from the first packet to the last.
    Train(Direction, u64, Duration),
    /// Packets sent, and the number of lost ones.
    Packets {
        /// Direction of the packets.
        direction: Direction,
        /// Number of packets sent.
        sent: u64,
        /// Number of lost packets.
        lost: u64,
    },
    /// Packets sent, and the number of overtaken ones.
    Reordered {
        /// Direction of the packets.
        direction: Direction,
        /// Number of packets sent.
        sent: u64,
        /// Number of late packets.
        late: u64,
    },
    /// Send time of a packet (by the sender's clock) and its arrival time (by the receiver's).
    Transit(Direction, Duration, Duration),
    /// Largest IP packet that the path carries, bytes.
    Mtu(Direction, u32),
    /// Rate of a transfer while there was enough to send, bytes per second.
    Achieved(Direction, SendMethod, f64),
    /// Report of the other host on its sending to here; it replaces the report before.
    Report(Box<PathReport>),
    /// True when UDP got through.
    Udp(bool),
}

/// Knowledge of a path. Bounded to some 8 KiB, however much is recorded. Times are since an epoch of the
/// caller's choice, which must always be the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// Round trip.
    pub rtt: RttHistory,
    up: OneWayPath,
    down: OneWayPath,
    /// Last result of trying UDP, with its time.
    #[serde(default)]
    udp: Option<(bool, Duration)>,
    #[serde(rename = "told_at")]
    recorded_at: Duration,
}

impl Path {
    /// Records a measurement at `at`; true when it shows that the path has changed. Invalid measurements are
    /// ignored.
    pub fn record(&mut self, at: Duration, measured: Measurement) -> bool {
        self.recorded_at = latest_record(self.recorded_at, at);
        match measured {
            Measurement::RoundTrip(secs) => return self.rtt.record(at, secs),
            Measurement::LeastRoundTrip(secs) => self.rtt.record_least(at, secs),
            Measurement::Train(direction, ..)
            | Measurement::Packets { direction, .. }
            | Measurement::Reordered { direction, .. }
            | Measurement::Transit(direction, ..)
            | Measurement::Mtu(direction, _)
            | Measurement::Achieved(direction, ..) => {
                return self.one_way_mut(direction).record(at, measured);
            }
            Measurement::Report(_) => return self.down.record(at, measured),
            Measurement::Udp(got_through) => self.udp = Some((got_through, at)),
        }
        false
    }

    /// Knowledge of one direction.
    #[must_use]
    pub fn one_way(&self, direction: Direction) -> &OneWayPath {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    fn one_way_mut(&mut self, direction: Direction) -> &mut OneWayPath {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    /// Time since UDP was last seen to be blocked, if that is the last result.
    #[must_use]
    pub fn udp_refused_for(&self, now: Duration) -> Option<Duration> {
        self.udp.filter(|(got_through, _)| !got_through).map(|(_, at)| now.saturating_sub(at))
    }

    /// Time of the latest record.
    #[must_use]
    pub fn recorded_at(&self) -> Duration {
        self.recorded_at
    }

    /// Properties by which its bottleneck in this direction is recognized.
    #[must_use]
    pub fn signature(&self, now: Duration, direction: Direction) -> Option<Signature> {
        let rtt_secs = self.rtt.least(now)?.value;
        let capacity = self.one_way(direction).capacity(now);
        Some(Signature { rtt_secs, capacity_bytes_per_sec: capacity.map(|c| c.value) })
    }

    /// Returns whether a stored path is valid: within its bounds, every number valid.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.rtt.is_sound() && self.up.is_sound() && self.down.is_sound()
    }
}
