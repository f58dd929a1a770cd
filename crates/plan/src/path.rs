//! All that is known of a network path between two hosts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::achieved::SendMethod;
use crate::estimate::latest_record;
use crate::network::Signature;
use crate::one_way::OneWayPath;
use crate::report::PathReport;
use crate::rtt::RttHistory;

/// One way of a path, as seen from this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From here to the other host.
    Up,
    /// From the other host to here.
    Down,
}

/// Something that was measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Measurement {
    /// One round trip, seconds.
    RoundTrip(f64),
    /// The least of many round trips, seconds.
    LeastRoundTrip(f64),
    /// A train arrived: bytes without its first packet, and the time from the first packet to the last.
    Train(Direction, u64, Duration),
    /// Packets sent, and how many of them were lost.
    Packets {
        /// Which way they went.
        direction: Direction,
        /// All of them.
        sent: u64,
        /// Those that did not arrive.
        lost: u64,
    },
    /// Packets sent, and how many of them were overtaken.
    Reordered {
        /// Which way they went.
        direction: Direction,
        /// All of them.
        sent: u64,
        /// Those that came late.
        late: u64,
    },
    /// A packet left (by its sender's clock) and arrived (by its receiver's).
    Transit(Direction, Duration, Duration),
    /// Largest IP packet that gets through, bytes.
    Mtu(Direction, u32),
    /// Rate of a transfer while there was enough to send, bytes per second.
    Achieved(Direction, SendMethod, f64),
    /// Report of the other host on its sending to here; it replaces the report before.
    Report(Box<PathReport>),
    /// Whether UDP got through.
    Udp(bool),
}

/// Knowledge of a path. Bounded: some 8 KiB, however much is told. Times are since an epoch of the caller's choice,
/// which must be the same whenever the path is looked at again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// The round trip.
    pub rtt: RttHistory,
    up: OneWayPath,
    down: OneWayPath,
    /// Whether UDP got through when that was seen last, and when.
    #[serde(default)]
    udp: Option<(bool, Duration)>,
    #[serde(rename = "told_at")]
    recorded_at: Duration,
}

impl Path {
    /// Something was measured at `at`; true when it shows that the path has changed. What cannot be (no number, no time)
    /// is passed over.
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

    /// One way of it.
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

    /// Since when it is known that UDP does not get through, if that is the last that was seen of it.
    #[must_use]
    pub fn udp_refused_for(&self, now: Duration) -> Option<Duration> {
        self.udp.filter(|(got_through, _)| !got_through).map(|(_, at)| now.saturating_sub(at))
    }

    /// When something was told last.
    #[must_use]
    pub fn recorded_at(&self) -> Duration {
        self.recorded_at
    }

    /// By what its bottleneck towards this direction is recognised.
    #[must_use]
    pub fn signature(&self, now: Duration, direction: Direction) -> Option<Signature> {
        let rtt_secs = self.rtt.least(now)?.value;
        let capacity = self.one_way(direction).capacity(now);
        Some(Signature { rtt_secs, capacity_bytes_per_sec: capacity.map(|c| c.value) })
    }

    /// Whether a path that was stored can have come from here: within its bounds, every number one.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.rtt.is_sound() && self.up.is_sound() && self.down.is_sound()
    }
}
