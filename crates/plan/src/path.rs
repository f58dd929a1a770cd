//! All that is known of a network path between two hosts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::achieved::{Achieved, Way};
use crate::capacity::Capacity;
use crate::estimate::{Estimate, MAX_AGE};
use crate::network::Signature;
use crate::rtt::Rtt;
use crate::share::Share;
use crate::transit::Transit;

/// Sizes of packets that IP knows, bytes.
const PACKET_BYTES: std::ops::RangeInclusive<u32> = 68..=65_535;

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
    /// What a transfer got while there was enough to send, bytes per second.
    Achieved(Direction, Way, f64),
}

/// What is known of one way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Of the bottleneck.
    pub capacity: Capacity,
    /// Share of packets lost.
    pub loss: Share,
    /// Share of packets overtaken.
    pub reordering: Share,
    /// One-way delays.
    pub transit: Transit,
    /// What transfers got.
    pub achieved: Achieved,
    mtu_bytes: Option<(u32, Duration)>,
}

impl Lane {
    /// Largest IP packet, bytes, unless that was found out too long ago.
    #[must_use]
    pub fn mtu_bytes(&self, now: Duration) -> Option<Estimate> {
        let (bytes, at) = self.mtu_bytes?;
        let age = now.saturating_sub(at);
        let bytes = f64::from(bytes);
        (age <= MAX_AGE).then(|| Estimate::new(bytes, (bytes, bytes), 1, age))
    }

    /// The rate that this way carries, bytes per second, and how that is known: what packet trains show, or what a
    /// transfer got if that is more, for nothing is faster than its path.
    #[must_use]
    pub fn rate(&self, now: Duration) -> Option<(Estimate, String)> {
        let best = self.achieved.best(now);
        let trains = self.capacity.estimate(now);
        match (trains, best) {
            (Some(trains), None) => Some((trains, said_of_trains(&trains))),
            (Some(trains), Some((_, rate))) if trains.high >= rate.value => {
                Some((trains, said_of_trains(&trains)))
            }
            (_, Some((way, rate))) => {
                let Way { protocol, controller, streams } = way;
                let by = format!("{protocol} with {controller}, {streams} at a time");
                Some((rate, format!("{} transfers got this by {by}; the path may carry more", rate.samples)))
            }
            (None, None) => None,
        }
    }

    fn is_sound(&self) -> bool {
        self.capacity.is_sound()
            && self.loss.is_sound()
            && self.reordering.is_sound()
            && self.transit.is_sound()
            && self.achieved.is_sound()
            && self.mtu_bytes.is_none_or(|(bytes, _)| PACKET_BYTES.contains(&bytes))
    }
}

fn said_of_trains(trains: &Estimate) -> String {
    format!("the rate at which most of {} packet trains arrived", trains.samples)
}

/// What is known of a path. Bounded: some 8 KiB whatever is told. Times are since an epoch of the caller's choice, which
/// must be the same whenever the path is looked at again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// The round trip.
    pub rtt: Rtt,
    up: Lane,
    down: Lane,
    told_at: Duration,
}

impl Path {
    /// Something was measured at `at`; true when it shows that the path has changed. What cannot be (no number, no time)
    /// is passed over.
    pub fn tell(&mut self, at: Duration, measured: Measurement) -> bool {
        self.told_at = self.told_at.max(at);
        match measured {
            Measurement::RoundTrip(secs) => return self.rtt.tell(at, secs),
            Measurement::LeastRoundTrip(secs) => self.rtt.tell_least(at, secs),
            Measurement::Train(direction, bytes, spread) => {
                return self.lane_mut(direction).capacity.tell(at, bytes, spread);
            }
            Measurement::Packets { direction, sent, lost } => {
                self.lane_mut(direction).loss.tell(at, lost, sent)
            }
            Measurement::Reordered { direction, sent, late } => {
                self.lane_mut(direction).reordering.tell(at, late, sent);
            }
            Measurement::Transit(direction, sent, received) => {
                self.lane_mut(direction).transit.tell(sent, received);
            }
            Measurement::Mtu(direction, bytes) if PACKET_BYTES.contains(&bytes) => {
                self.lane_mut(direction).mtu_bytes = Some((bytes, at));
            }
            Measurement::Mtu(..) => {}
            Measurement::Achieved(direction, way, rate) => {
                return self.lane_mut(direction).achieved.tell(at, way, rate);
            }
        }
        false
    }

    /// One way of it.
    #[must_use]
    pub fn lane(&self, direction: Direction) -> &Lane {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    fn lane_mut(&mut self, direction: Direction) -> &mut Lane {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    /// When something was told last.
    #[must_use]
    pub fn told_at(&self) -> Duration {
        self.told_at
    }

    /// By what its bottleneck towards this direction is recognised.
    #[must_use]
    pub fn signature(&self, now: Duration, direction: Direction) -> Option<Signature> {
        let rtt_secs = self.rtt.least(now)?.value;
        let capacity = self.lane(direction).capacity.estimate(now);
        Some(Signature { rtt_secs, capacity_bytes_per_sec: capacity.map(|c| c.value) })
    }

    /// Whether a path that was stored can have come from here: within its bounds, every number one.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.rtt.is_sound() && self.up.is_sound() && self.down.is_sound()
    }
}
