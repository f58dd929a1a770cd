//! Knowledge of one direction of a path: from measurements on this host, and from the other host's report on
//! its sending.

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

/// Valid sizes of IP packets, bytes.
const PACKET_BYTES: std::ops::RangeInclusive<u32> = 68..=65_535;
/// Fewest measurements of a send method that is compared with another.
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
    /// Report of the other host, with its time.
    #[serde(default, rename = "told")]
    reported: Option<(PathReport, Duration)>,
}

impl OneWayPath {
    /// Records a measurement of this direction at `at`; true when it shows that the path has changed.
    pub(crate) fn record(&mut self, at: Duration, measured: Measurement) -> bool {
        match measured {
            Measurement::Train(_, bytes, spread) => return self.capacity.record(at, bytes, spread),
            Measurement::Packets { sent, lost, .. } => self.loss.record(at, lost, sent),
            Measurement::Reordered { sent, late, .. } => self.reordering.record(at, late, sent),
            Measurement::Transit(_, sent, received) => self.transit.record(sent, received),
            Measurement::Mtu(_, bytes) if PACKET_BYTES.contains(&bytes) => self.mtu_bytes = Some((bytes, at)),
            Measurement::Achieved(_, method, rate) => return self.achieved.record(at, method, rate),
            Measurement::Report(reported) if reported.is_sound() => self.reported = Some((*reported, at)),
            // Measurements of both directions, and invalid ones.
            Measurement::Mtu(..)
            | Measurement::Report(_)
            | Measurement::RoundTrip(_)
            | Measurement::LeastRoundTrip(_)
            | Measurement::Udp(_) => {}
        }
        false
    }

    /// Report of the other host, with its age added.
    fn reported(&self, now: Duration) -> PathReport {
        self.reported
            .as_ref()
            .map(|(reported, at)| reported.later(now.saturating_sub(*at)))
            .unwrap_or_default()
    }

    /// Age of the other host's report on this direction; `None` where there is none.
    #[must_use]
    pub fn reported_for(&self, now: Duration) -> Option<Duration> {
        self.reported.as_ref().map(|(_, at)| now.saturating_sub(*at)).filter(|age| *age <= MAX_AGE)
    }

    /// Capacity of the bottleneck, bytes per second.
    #[must_use]
    pub fn capacity(&self, now: Duration) -> Option<Estimate> {
        more_confident(self.capacity.estimate(now), self.reported(now).capacity_bytes_per_sec)
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

    /// Largest IP packet, bytes, unless it was measured too long ago.
    #[must_use]
    pub fn mtu_bytes(&self, now: Duration) -> Option<Estimate> {
        let own = self.mtu_bytes.and_then(|(bytes, at)| {
            let (bytes, age) = (f64::from(bytes), now.saturating_sub(at));
            (age <= MAX_AGE).then(|| Estimate::new(bytes, (bytes, bytes), 1, age))
        });
        more_confident(own, self.reported(now).mtu_bytes)
    }

    /// Rates of all send methods; where both hosts measured the same one, the rate of this host.
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

    /// Fastest send method.
    #[must_use]
    pub fn best(&self, now: Duration) -> Option<AchievedRate> {
        fastest(self.achieved(now).into_iter())
    }

    /// Fastest method by this protocol with enough measurements for a comparison; the other host's report on
    /// its sending has priority, because a sender knows when there was enough to send.
    pub(crate) fn comparable(&self, now: Duration, protocol: &str) -> Option<AchievedRate> {
        let is_comparable = |got: &AchievedRate| {
            got.method.protocol == protocol && !got.is_held() && got.bytes_per_sec.samples >= LEAST_COMPARED
        };
        let reported = fastest(self.reported(now).achieved.into_iter().filter(is_comparable));
        reported.or_else(|| fastest(self.achieved(now).into_iter().filter(is_comparable)))
    }

    /// Method of fewest streams by this protocol that reached this rate, often enough to be relied on; at
    /// most as many streams as a link may have, whatever the other host reports.
    pub(crate) fn filling(&self, now: Duration, protocol: &str, bytes_per_sec: f64) -> Option<AchievedRate> {
        let is_enough = |got: &AchievedRate| {
            let rate = &got.bytes_per_sec;
            let is_possible =
                (1..=MAX_STREAMS).contains(&got.method.streams) && got.method.protocol == protocol;
            is_possible && rate.samples >= LEAST_COMPARED && rate.value >= bytes_per_sec
        };
        self.achieved(now).into_iter().filter(is_enough).min_by_key(|got| got.method.streams)
    }

    /// Report of this direction for another host.
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

    /// Rate of this direction, bytes per second, with its source: the result of packet trains, or the rate of
    /// a transfer if that is higher, because no transfer exceeds its path.
    #[must_use]
    pub fn rate(&self, now: Duration) -> Option<(Estimate, String)> {
        let trains = self.capacity(now);
        match (trains, self.best(now)) {
            (Some(trains), None) => Some((trains, describe_trains(&trains))),
            // For a moment more arrives than the path carries: from queues, or because this host was late.
            (Some(trains), Some(best))
                if trains.high >= best.bytes_per_sec.value
                    || trains.confidence >= best.bytes_per_sec.confidence =>
            {
                Some((trains, describe_trains(&trains)))
            }
            (_, Some(AchievedRate { method, bytes_per_sec })) => {
                let SendMethod { protocol, controller, streams } = method;
                let by = format!("{protocol} with {controller}, {streams} at a time");
                let samples = bytes_per_sec.samples;
                let how = format!("{samples} transfers reached this by {by}; the path may carry more");
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

fn more_confident(own: Option<Estimate>, reported: Option<Estimate>) -> Option<Estimate> {
    own.into_iter().chain(reported).max_by(|a, b| a.confidence.total_cmp(&b.confidence))
}

/// Returns the narrower of two shares, which is based on more packets; the number of reports says nothing of
/// that.
fn narrower(own: Option<Estimate>, reported: Option<Estimate>) -> Option<Estimate> {
    let width = |share: &Estimate| share.high - share.low;
    own.into_iter().chain(reported).min_by(|a, b| width(a).total_cmp(&width(b)))
}

fn fastest(methods: impl Iterator<Item = AchievedRate>) -> Option<AchievedRate> {
    methods.max_by(|a, b| a.bytes_per_sec.value.total_cmp(&b.bytes_per_sec.value))
}

fn describe_trains(trains: &Estimate) -> String {
    format!("the rate at which most of {} packet trains arrived", trains.samples)
}
