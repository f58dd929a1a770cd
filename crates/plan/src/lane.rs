//! Knowledge of one direction of a path: from measurements made here, and from what the other host says of its sending.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::achieved::{Achieved, Way};
use crate::advice::MAX_STREAMS;
use crate::capacity::Capacity;
use crate::estimate::{Estimate, MAX_AGE};
use crate::path::Measurement;
use crate::share::Share;
use crate::told::{Got, Told};
use crate::transit::{Transit, Trend};

/// Sizes of packets that IP knows, bytes.
const PACKET_BYTES: std::ops::RangeInclusive<u32> = 68..=65_535;
/// A way of so many measurements can be compared with another.
const LEAST_COMPARED: u32 = 3;

/// Knowledge of one direction of a path. Where both hosts know something, the more confident estimate counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    capacity: Capacity,
    loss: Share,
    reordering: Share,
    transit: Transit,
    achieved: Achieved,
    mtu_bytes: Option<(u32, Duration)>,
    /// By the other host, and when.
    #[serde(default)]
    told: Option<(Told, Duration)>,
}

impl Lane {
    /// Something was measured at `at` of this way; true when it shows that the path has changed.
    pub(crate) fn tell(&mut self, at: Duration, measured: Measurement) -> bool {
        match measured {
            Measurement::Train(_, bytes, spread) => return self.capacity.tell(at, bytes, spread),
            Measurement::Packets { sent, lost, .. } => self.loss.tell(at, lost, sent),
            Measurement::Reordered { sent, late, .. } => self.reordering.tell(at, late, sent),
            Measurement::Transit(_, sent, received) => self.transit.tell(sent, received),
            Measurement::Mtu(_, bytes) if PACKET_BYTES.contains(&bytes) => self.mtu_bytes = Some((bytes, at)),
            Measurement::Achieved(_, way, rate) => return self.achieved.tell(at, way, rate),
            Measurement::Told(told) if told.is_sound() => self.told = Some((*told, at)),
            // Of no single way, or such as cannot be.
            Measurement::Mtu(..)
            | Measurement::Told(_)
            | Measurement::RoundTrip(_)
            | Measurement::LeastRoundTrip(_)
            | Measurement::Udp(_) => {}
        }
        false
    }

    /// Knowledge that the other host told, with its age added.
    fn told(&self, now: Duration) -> Told {
        self.told.as_ref().map(|(told, at)| told.later(now.saturating_sub(*at))).unwrap_or_default()
    }

    /// Since the other host said something of this way; none where it did not.
    #[must_use]
    pub fn told_for(&self, now: Duration) -> Option<Duration> {
        self.told.as_ref().map(|(_, at)| now.saturating_sub(*at)).filter(|age| *age <= MAX_AGE)
    }

    /// Capacity of the bottleneck, bytes per second.
    #[must_use]
    pub fn capacity(&self, now: Duration) -> Option<Estimate> {
        surer(self.capacity.estimate(now), self.told(now).capacity_bytes_per_sec)
    }

    /// Share of packets lost.
    #[must_use]
    pub fn loss(&self, now: Duration) -> Option<Estimate> {
        narrower(self.loss.estimate(now), self.told(now).loss)
    }

    /// Share of packets overtaken.
    #[must_use]
    pub fn reordering(&self, now: Duration) -> Option<Estimate> {
        narrower(self.reordering.estimate(now), self.told(now).reordering)
    }

    /// Trend of the one-way delays.
    #[must_use]
    pub fn delay_trend(&self) -> Trend {
        self.transit.trend()
    }

    /// Largest IP packet, bytes, unless that was found out too long ago.
    #[must_use]
    pub fn mtu_bytes(&self, now: Duration) -> Option<Estimate> {
        let own = self.mtu_bytes.and_then(|(bytes, at)| {
            let (bytes, age) = (f64::from(bytes), now.saturating_sub(at));
            (age <= MAX_AGE).then(|| Estimate::new(bytes, (bytes, bytes), 1, age))
        });
        surer(own, self.told(now).mtu_bytes)
    }

    /// Rates that each way of sending got; where both hosts saw the same way, the rate that this host saw.
    #[must_use]
    pub fn achieved(&self, now: Duration) -> Vec<Got> {
        let own = self.achieved.rates(now).map(|(way, rate)| Got { way: way.clone(), bytes_per_sec: rate });
        let mut all: Vec<Got> = own.collect();
        for got in self.told(now).achieved {
            if all.iter().all(|known| known.way != got.way) {
                all.push(got);
            }
        }
        all
    }

    /// The fastest way of sending.
    #[must_use]
    pub fn best(&self, now: Duration) -> Option<Got> {
        fastest(self.achieved(now).into_iter())
    }

    /// The fastest way by this protocol that was measured often enough to be compared; as the other host saw its sending,
    /// where it says so, for it knows when there was enough to send.
    pub(crate) fn comparable(&self, now: Duration, protocol: &str) -> Option<Got> {
        let is_comparable = |got: &Got| {
            got.way.protocol == protocol && !got.is_held() && got.bytes_per_sec.samples >= LEAST_COMPARED
        };
        let told = fastest(self.told(now).achieved.into_iter().filter(is_comparable));
        told.or_else(|| fastest(self.achieved(now).into_iter().filter(is_comparable)))
    }

    /// The way of fewest streams by this protocol that was seen to get so much, often enough to be believed; of as many as a link
    /// may have, whatever the other host says it had.
    pub(crate) fn filling(&self, now: Duration, protocol: &str, bytes_per_sec: f64) -> Option<Got> {
        let is_enough = |got: &Got| {
            let rate = &got.bytes_per_sec;
            let is_possible = (1..=MAX_STREAMS).contains(&got.way.streams) && got.way.protocol == protocol;
            is_possible && rate.samples >= LEAST_COMPARED && rate.value >= bytes_per_sec
        };
        self.achieved(now).into_iter().filter(is_enough).min_by_key(|got| got.way.streams)
    }

    /// All of it, as another host may be told.
    #[must_use]
    pub fn to_tell(&self, now: Duration) -> Told {
        Told {
            capacity_bytes_per_sec: self.capacity(now),
            loss: self.loss(now),
            reordering: self.reordering(now),
            mtu_bytes: self.mtu_bytes(now),
            achieved: self.achieved(now),
        }
    }

    /// The rate that this way carries, bytes per second, and how that is known: what packet trains show, or what a
    /// transfer got if that is more, for nothing is faster than its path.
    #[must_use]
    pub fn rate(&self, now: Duration) -> Option<(Estimate, String)> {
        let trains = self.capacity(now);
        match (trains, self.best(now)) {
            (Some(trains), None) => Some((trains, said_of_trains(&trains))),
            // For a moment more comes than the path carries: from queues, or because this host was late.
            (Some(trains), Some(best))
                if trains.high >= best.bytes_per_sec.value
                    || trains.confidence >= best.bytes_per_sec.confidence =>
            {
                Some((trains, said_of_trains(&trains)))
            }
            (_, Some(Got { way, bytes_per_sec })) => {
                let Way { protocol, controller, streams } = way;
                let by = format!("{protocol} with {controller}, {streams} at a time");
                let samples = bytes_per_sec.samples;
                let how = format!("{samples} transfers got this by {by}; the path may carry more");
                Some((bytes_per_sec, how))
            }
            (None, None) => None,
        }
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.capacity.is_sound()
            && self.loss.is_sound()
            && self.reordering.is_sound()
            && self.transit.is_sound()
            && self.achieved.is_sound()
            && self.mtu_bytes.is_none_or(|(bytes, _)| PACKET_BYTES.contains(&bytes))
            && self.told.as_ref().is_none_or(|(told, _)| told.is_sound())
    }
}

fn surer(own: Option<Estimate>, told: Option<Estimate>) -> Option<Estimate> {
    own.into_iter().chain(told).max_by(|a, b| a.confidence.total_cmp(&b.confidence))
}

/// The narrower of two shares, which rests on more packets: how often a share was told says nothing of that.
fn narrower(own: Option<Estimate>, told: Option<Estimate>) -> Option<Estimate> {
    let width = |share: &Estimate| share.high - share.low;
    own.into_iter().chain(told).min_by(|a, b| width(a).total_cmp(&width(b)))
}

fn fastest(ways: impl Iterator<Item = Got>) -> Option<Got> {
    ways.max_by(|a, b| a.bytes_per_sec.value.total_cmp(&b.bytes_per_sec.value))
}

fn said_of_trains(trains: &Estimate) -> String {
    format!("the rate at which most of {} packet trains arrived", trains.samples)
}
