//! Knowledge of one direction of a path: from measurements made here, and from what the other host says of its sending.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::achieved::{Achieved, SendMethod};
use crate::advice::MAX_STREAMS;
use crate::capacity::BottleneckCapacity;
use crate::estimate::{Estimate, MAX_AGE};
use crate::path::Measurement;
use crate::report::{AchievedRate, PathReport};
use crate::share::PacketShare;
use crate::transit::{Transit, Trend};

/// Sizes of packets that IP knows, bytes.
const PACKET_BYTES: std::ops::RangeInclusive<u32> = 68..=65_535;
/// A way of so many measurements can be compared with another.
const LEAST_COMPARED: u32 = 3;

/// Knowledge of one direction of a path. Where both hosts know something, the more confident estimate counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OneWayPath {
    capacity: BottleneckCapacity,
    loss: PacketShare,
    reordering: PacketShare,
    transit: Transit,
    achieved: Achieved,
    mtu_bytes: Option<(u32, Duration)>,
    /// By the other host, and when.
    #[serde(default, rename = "told")]
    reported: Option<(PathReport, Duration)>,
}

impl OneWayPath {
    /// Something was measured at `at` of this way; true when it shows that the path has changed.
    pub(crate) fn record(&mut self, at: Duration, measured: Measurement) -> bool {
        match measured {
            Measurement::Train(_, bytes, spread) => return self.capacity.record(at, bytes, spread),
            Measurement::Packets { sent, lost, .. } => self.loss.record(at, lost, sent),
            Measurement::Reordered { sent, late, .. } => self.reordering.record(at, late, sent),
            Measurement::Transit(_, sent, received) => self.transit.record(sent, received),
            Measurement::Mtu(_, bytes) if PACKET_BYTES.contains(&bytes) => self.mtu_bytes = Some((bytes, at)),
            Measurement::Achieved(_, method, rate) => return self.achieved.record(at, method, rate),
            Measurement::Report(reported) if reported.is_sound() => self.reported = Some((*reported, at)),
            // Of no single way, or such as cannot be.
            Measurement::Mtu(..)
            | Measurement::Report(_)
            | Measurement::RoundTrip(_)
            | Measurement::LeastRoundTrip(_)
            | Measurement::Udp(_) => {}
        }
        false
    }

    /// Knowledge that the other host told, with its age added.
    fn reported(&self, now: Duration) -> PathReport {
        self.reported
            .as_ref()
            .map(|(reported, at)| reported.later(now.saturating_sub(*at)))
            .unwrap_or_default()
    }

    /// Since the other host said something of this way; none where it did not.
    #[must_use]
    pub fn reported_for(&self, now: Duration) -> Option<Duration> {
        self.reported.as_ref().map(|(_, at)| now.saturating_sub(*at)).filter(|age| *age <= MAX_AGE)
    }

    /// Capacity of the bottleneck, bytes per second.
    #[must_use]
    pub fn capacity(&self, now: Duration) -> Option<Estimate> {
        surer(self.capacity.estimate(now), self.reported(now).capacity_bytes_per_sec)
    }

    /// Share of packets lost.
    #[must_use]
    pub fn loss(&self, now: Duration) -> Option<Estimate> {
        narrower(self.loss.estimate(now), self.reported(now).loss)
    }

    /// Share of packets overtaken.
    #[must_use]
    pub fn reordering(&self, now: Duration) -> Option<Estimate> {
        narrower(self.reordering.estimate(now), self.reported(now).reordering)
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
        surer(own, self.reported(now).mtu_bytes)
    }

    /// Rates that each way of sending got; where both hosts saw the same way, the rate that this host saw.
    #[must_use]
    pub fn achieved(&self, now: Duration) -> Vec<AchievedRate> {
        let own = self
            .achieved
            .rates(now)
            .map(|(method, rate)| AchievedRate { method: method.clone(), bytes_per_sec: rate });
        let mut all: Vec<AchievedRate> = own.collect();
        for got in self.reported(now).achieved {
            if all.iter().all(|known| known.method != got.method) {
                all.push(got);
            }
        }
        all
    }

    /// The fastest way of sending.
    #[must_use]
    pub fn best(&self, now: Duration) -> Option<AchievedRate> {
        fastest(self.achieved(now).into_iter())
    }

    /// The fastest way by this protocol that was measured often enough to be compared; as the other host saw its sending,
    /// where it says so, for it knows when there was enough to send.
    pub(crate) fn comparable(&self, now: Duration, protocol: &str) -> Option<AchievedRate> {
        let is_comparable = |got: &AchievedRate| {
            got.method.protocol == protocol && !got.is_held() && got.bytes_per_sec.samples >= LEAST_COMPARED
        };
        let reported = fastest(self.reported(now).achieved.into_iter().filter(is_comparable));
        reported.or_else(|| fastest(self.achieved(now).into_iter().filter(is_comparable)))
    }

    /// The way of fewest streams by this protocol that was seen to get so much, often enough to be believed; of as many as a link
    /// may have, whatever the other host says it had.
    pub(crate) fn filling(&self, now: Duration, protocol: &str, bytes_per_sec: f64) -> Option<AchievedRate> {
        let is_enough = |got: &AchievedRate| {
            let rate = &got.bytes_per_sec;
            let is_possible =
                (1..=MAX_STREAMS).contains(&got.method.streams) && got.method.protocol == protocol;
            is_possible && rate.samples >= LEAST_COMPARED && rate.value >= bytes_per_sec
        };
        self.achieved(now).into_iter().filter(is_enough).min_by_key(|got| got.method.streams)
    }

    /// All of it, as another host may be told.
    #[must_use]
    pub fn to_report(&self, now: Duration) -> PathReport {
        PathReport {
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
            (_, Some(AchievedRate { method, bytes_per_sec })) => {
                let SendMethod { protocol, controller, streams } = method;
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
            && self.reported.as_ref().is_none_or(|(reported, _)| reported.is_sound())
    }
}

fn surer(own: Option<Estimate>, reported: Option<Estimate>) -> Option<Estimate> {
    own.into_iter().chain(reported).max_by(|a, b| a.confidence.total_cmp(&b.confidence))
}

/// The narrower of two shares, which rests on more packets: how often a share was told says nothing of that.
fn narrower(own: Option<Estimate>, reported: Option<Estimate>) -> Option<Estimate> {
    let width = |share: &Estimate| share.high - share.low;
    own.into_iter().chain(reported).min_by(|a, b| width(a).total_cmp(&width(b)))
}

fn fastest(methods: impl Iterator<Item = AchievedRate>) -> Option<AchievedRate> {
    methods.max_by(|a, b| a.bytes_per_sec.value.total_cmp(&b.bytes_per_sec.value))
}

fn said_of_trains(trains: &Estimate) -> String {
    format!("the rate at which most of {} packet trains arrived", trains.samples)
}
