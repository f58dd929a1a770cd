//! Model of one direction of a link: computes whether and when a packet arrives. Pure: time is an argument, and random
//! numbers come from a seed.

use std::time::Duration;

use super::spec::{LaneSpec, LossModel};
use crate::rng::SeededRng;

/// Longest idle time for which cross traffic is simulated afterwards, seconds: earlier packets have left the queue.
const CROSS_MEMORY_SECS: f64 = 1.0;
/// Distance of the random points of the jitter, in jitters: so slow that packets stay in order.
const JITTER_SPACING: f64 = 10.0;

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketFate {
    /// The queue was full.
    Dropped,
    /// The packet was lost after the bottleneck, whose time it used.
    Lost,
    /// The packet arrives.
    Arrives {
        /// Arrival time.
        at: Duration,
        /// The packet is delayed, so that later ones may overtake it.
        late: bool,
    },
}

/// State of one direction. Times are since the link was made, and do not decrease.
#[derive(Debug)]
pub(super) struct LaneState {
    spec: LaneSpec,
    mtu_bytes: f64,
    rng: SeededRng,
    /// Time at which the last byte in the queue will have left, seconds.
    empty_at: f64,
    in_burst: bool,
    jitter: Jitter,
    last_at: Duration,
    /// Arrival time of the next packet of cross traffic, seconds.
    cross_at: f64,
    /// Bytes of cross traffic that entered the queue.
    cross_bytes: f64,
}

impl LaneState {
    pub(super) fn new(spec: LaneSpec, mtu: u32, seed: u64) -> Self {
        let mut rng = SeededRng::new(seed);
        let jitter = Jitter::new(spec.jitter.as_secs_f64(), &mut rng);
        Self {
            spec,
            mtu_bytes: f64::from(mtu),
            rng,
            empty_at: 0.0,
            in_burst: false,
            jitter,
            last_at: Duration::ZERO,
            cross_at: 0.0,
            cross_bytes: 0.0,
        }
    }

    /// Changes the properties of the link. Waiting packets leave at the new rate, even if they exceed the new queue; packets in
    /// transit are not overtaken.
    pub(super) fn change(&mut self, now: Duration, spec: LaneSpec) {
        let backlog_bytes = self.backlog_bytes(now);
        self.empty_at = now.as_secs_f64() + spec.rate_bytes_per_sec.map_or(0.0, |rate| backlog_bytes / rate);
        if spec.jitter != self.spec.jitter {
            self.jitter = Jitter::new(spec.jitter.as_secs_f64(), &mut self.rng);
        }
        self.in_burst = false;
        self.spec = spec;
    }

    /// Computes the fate of a packet of `bytes` that reaches the link.
    pub(super) fn pass(&mut self, now: Duration, bytes: usize) -> PacketFate {
        self.cross_until(now);
        let Some(departs) = self.queue(now.as_secs_f64(), bytes as f64) else { return PacketFate::Dropped };
        if self.loses() {
            return PacketFate::Lost;
        }
        let delay = self.spec.delay.as_secs_f64() + self.jitter.at(departs, &mut self.rng);
        let in_order = Duration::from_secs_f64(departs + delay).max(self.last_at);
        self.last_at = in_order;
        let late = self.spec.late > 0.0 && self.rng.uniform() < self.spec.late;
        PacketFate::Arrives { at: in_order + if late { self.spec.late_by } else { Duration::ZERO }, late }
    }

    /// Returns the bytes in the queue.
    pub(super) fn backlog_bytes(&self, now: Duration) -> f64 {
        let rate = self.spec.rate_bytes_per_sec.unwrap_or(0.0);
        (self.empty_at - now.as_secs_f64()).max(0.0) * rate
    }

    /// Adds a packet to the queue; returns the time at which it has left, seconds, or `None` if it does not fit.
    fn queue(&mut self, now: f64, bytes: f64) -> Option<f64> {
        let Some(rate) = self.spec.rate_bytes_per_sec else { return Some(now) };
        let waiting = (self.empty_at - now).max(0.0) * rate;
        if waiting + bytes > self.spec.queue_bytes {
            return None;
        }
        self.empty_at = self.empty_at.max(now) + bytes / rate;
        Some(self.empty_at)
    }

    fn loses(&mut self) -> bool {
        match self.spec.loss {
            LossModel::Each(share) => share > 0.0 && self.rng.uniform() < share,
            LossModel::Bursts { begins, ends } => {
                let changes = if self.in_burst { ends } else { begins };
                self.in_burst ^= self.rng.uniform() < changes;
                self.in_burst
            }
        }
    }

    /// Adds the packets of cross traffic until `now` to the queue: full packets at random times (a Poisson process).
    fn cross_until(&mut self, now: Duration) {
        let Some(rate) = self.spec.rate_bytes_per_sec.filter(|_| self.spec.cross > 0.0) else { return };
        let now = now.as_secs_f64();
        self.cross_at = self.cross_at.max(now - CROSS_MEMORY_SECS);
        let mean_gap = self.mtu_bytes / (rate * self.spec.cross);
        while self.cross_at <= now {
            if self.queue(self.cross_at, self.mtu_bytes).is_some() {
                self.cross_bytes += self.mtu_bytes;
            }
            self.cross_at -= mean_gap * (1.0 - self.rng.uniform()).ln();
        }
    }
}

/// Varying delay: linear interpolation between random points.
#[derive(Debug)]
struct Jitter {
    most_secs: f64,
    from: (f64, f64),
    to: (f64, f64),
}

impl Jitter {
    fn new(most_secs: f64, rng: &mut SeededRng) -> Self {
        let mut jitter = Self { most_secs, from: (0.0, 0.0), to: (0.0, 0.0) };
        jitter.to.1 = jitter.point(rng);
        jitter
    }

    fn point(&self, rng: &mut SeededRng) -> f64 {
        self.most_secs * 2.0f64.mul_add(rng.uniform(), -1.0)
    }

    fn at(&mut self, now: f64, rng: &mut SeededRng) -> f64 {
        if self.most_secs == 0.0 {
            return 0.0;
        }
        let spacing = JITTER_SPACING * self.most_secs;
        if now >= self.to.0 + spacing {
            // Idle for longer than the distance of points: start again here.
            self.from = (now, self.point(rng));
            self.to = (now + spacing, self.point(rng));
        } else if now >= self.to.0 {
            self.from = self.to;
            self.to = (self.from.0 + spacing, self.point(rng));
        }
        let along = (now - self.from.0) / (self.to.0 - self.from.0).max(f64::MIN_POSITIVE);
        (self.to.1 - self.from.1).mul_add(along.clamp(0.0, 1.0), self.from.1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::Options;
    use super::*;

    const PACKET: usize = 1250;

    fn lane(change: impl FnOnce(&mut Options)) -> LaneState {
        let mut options = Options { rate: "100mbit".into(), ..Options::default() };
        change(&mut options);
        let spec = options.parse().expect("a link");
        LaneState::new(spec.forward, spec.mtu, 7)
    }

    /// Sends `count` packets at `share` of 100 Mb/s; each takes 0.1 ms at the full rate.
    fn send(lane: &mut LaneState, count: u32, share: f64) -> Vec<PacketFate> {
        let gap = Duration::from_secs_f64(1e-4 / share);
        (0..count).map(|i| lane.pass(gap * i, PACKET)).collect()
    }

    fn count(fates: &[PacketFate], what: impl Fn(&PacketFate) -> bool) -> f64 {
        fates.iter().filter(|f| what(f)).count() as f64
    }

    fn arrivals(fates: &[PacketFate]) -> Vec<Duration> {
        let at = |f: &PacketFate| match f {
            PacketFate::Arrives { at, .. } => Some(*at),
            _ => None,
        };
        fates.iter().filter_map(at).collect()
    }

    #[test]
    fn an_idle_link_delays_by_its_delay_and_a_packet_time() {
        let mut lane = lane(|_| ());
        let PacketFate::Arrives { at, late: false } = lane.pass(Duration::ZERO, PACKET) else {
            panic!("it arrives")
        };
        assert_eq!(at, Duration::from_micros(10_100));
    }

    #[test]
    fn a_link_without_rate_only_delays() {
        let mut lane = lane(|o| o.rate = "none".into());
        for i in 0..1000 {
            let now = Duration::from_micros(i);
            assert_eq!(
                lane.pass(now, 65_000),
                PacketFate::Arrives { at: now + Duration::from_millis(10), late: false }
            );
        }
    }

    #[test]
    fn packets_beyond_the_rate_are_dropped_and_the_others_leave_at_the_rate() {
        let mut lane = lane(|_| ());
        let fates = send(&mut lane, 120_000, 1.2);
        // A queue of one product, 200 packets, is filled first.
        let expected = 120_000.0 / 6.0 - 200.0;
        let dropped = count(&fates, |f| *f == PacketFate::Dropped);
        assert!((dropped - expected).abs() < 20.0, "{dropped} dropped, {expected} expected");
        let at = arrivals(&fates);
        let took = (at[at.len() - 1] - at[0]).as_secs_f64();
        assert!((took - (at.len() - 1) as f64 * 1e-4).abs() < 1e-6, "{took} s for {}", at.len());
    }

    #[test]
    fn a_full_queue_has_the_given_delay() {
        let mut lane = lane(|o| o.queue = "50ms".into());
        send(&mut lane, 20_000, 2.0);
        let now = Duration::from_secs(1);
        let waits = lane.backlog_bytes(now) / 12.5e6;
        assert!((waits - 0.05).abs() < 3e-4, "{waits} s");
    }

    #[test]
    fn packets_are_lost_with_the_given_probability() {
        let mut lane = lane(|o| o.loss = "1%".into());
        let lost = count(&send(&mut lane, 200_000, 0.5), |f| *f == PacketFate::Lost);
        assert!((lost - 2000.0).abs() < 4.0 * 2000f64.sqrt(), "{lost}");
    }

    #[test]
    fn bursts_have_the_given_share_and_length() {
        let mut lane = lane(|o| o.loss = "0.1%:10%".into());
        let fates = send(&mut lane, 1_000_000, 0.5);
        let lost = count(&fates, |f| *f == PacketFate::Lost);
        let bursts =
            fates.windows(2).filter(|w| w[0] != PacketFate::Lost && w[1] == PacketFate::Lost).count() as f64;
        assert!((lost / 1e6 - 0.0099).abs() < 0.0015, "{lost}");
        assert!((lost / bursts - 10.0).abs() < 1.0, "{} per burst", lost / bursts);
    }

    #[test]
    fn a_changed_link_keeps_queued_packets_and_their_order() {
        let mut lane = lane(|o| (o.rate, o.queue) = ("100mbit".into(), "50ms".into()));
        let before = arrivals(&send(&mut lane, 1_000, 2.0));
        let now = Duration::from_millis(50);
        let waiting = lane.backlog_bytes(now);
        let slower =
            Options { rate: "10mbit".into(), rtt: "2ms".into(), queue: "900ms".into(), ..Options::default() };
        lane.change(now, slower.parse().expect("a link").forward);
        assert!((lane.backlog_bytes(now) - waiting).abs() < 1.0, "{} of {waiting}", lane.backlog_bytes(now));
        let PacketFate::Arrives { at, .. } = lane.pass(now, PACKET) else { panic!("it arrives") };
        let expected = 0.05 + (waiting + PACKET as f64) / 1.25e6 + 1e-3;
        assert!((at.as_secs_f64() - expected).abs() < 1e-4, "{at:?}, expected {expected} s");
        assert!(before.iter().all(|before| *before <= at));
    }

    #[test]
    fn a_lane_with_full_loss_delivers_nothing_until_it_is_changed() {
        let mut lane = lane(|o| o.loss = "100%".into());
        assert_eq!(count(&send(&mut lane, 1_000, 0.5), |f| *f == PacketFate::Lost), 1_000.0);
        lane.change(Duration::from_secs(1), Options::default().parse().expect("a link").forward);
        assert!(matches!(lane.pass(Duration::from_secs(1), PACKET), PacketFate::Arrives { .. }));
    }

    #[test]
    fn jitter_stays_within_its_bounds_and_keeps_the_order() {
        let mut lane = lane(|o| o.jitter = "5ms".into());
        let fates = send(&mut lane, 50_000, 0.5);
        let at = arrivals(&fates);
        assert!(at.is_sorted());
        let delays: Vec<f64> =
            at.iter().zip(0..).map(|(at, i)| at.as_secs_f64() - f64::from(i) * 2e-4).collect();
        let (least, most) = delays.iter().fold((f64::MAX, 0.0f64), |(l, m), d| (l.min(*d), m.max(*d)));
        assert!(least >= 0.0051 && most <= 0.0152, "{least} to {most}");
        assert!(most - least > 0.008, "{least} to {most}");
    }

    #[test]
    fn late_packets_are_overtaken_by_others() {
        let mut lane = lane(|o| o.late = "2%:5ms".into());
        let fates = send(&mut lane, 50_000, 0.5);
        let late = count(&fates, |f| matches!(f, PacketFate::Arrives { late: true, .. }));
        assert!((late - 1000.0).abs() < 130.0, "{late}");
        let at = arrivals(&fates);
        let passed = (0..at.len() - 30).filter(|i| at[*i] > at[i + 20]).count() as f64;
        assert!((passed - late).abs() < 0.05 * late, "{passed} of {late}");
    }

    #[test]
    fn cross_traffic_takes_its_share() {
        let mut lane = lane(|o| o.cross = "40%".into());
        // Ours and theirs fit together.
        let fates = send(&mut lane, 100_000, 0.5);
        assert_eq!(count(&fates, |f| *f == PacketFate::Dropped), 0.0);
        assert!((lane.cross_bytes / (20.0 * 12.5e6) - 0.4).abs() < 0.004, "{}", lane.cross_bytes);
    }

    #[test]
    fn packets_beyond_the_rate_with_cross_traffic_are_dropped() {
        let mut lane = lane(|o| o.cross = "40%".into());
        let fates = send(&mut lane, 200_000, 0.8);
        let ours = count(&fates, |f| *f != PacketFate::Dropped) * PACKET as f64;
        let both = (ours + lane.cross_bytes) / (25.0 * 12.5e6);
        assert!((both - 1.0).abs() < 0.005, "{both} of the rate");
    }

    #[test]
    fn cross_traffic_after_a_long_pause_is_computed_quickly() {
        let mut lane = lane(|o| o.cross = "40%".into());
        let fate = lane.pass(Duration::from_secs(1_000_000), PACKET);
        assert!(matches!(fate, PacketFate::Arrives { .. }));
    }

    #[test]
    fn equal_seeds_give_equal_fates() {
        let run = || {
            let mut lane =
                lane(|o| (o.loss, o.jitter, o.late) = ("3%".into(), "1ms".into(), "1%:2ms".into()));
            send(&mut lane, 5_000, 1.1)
        };
        assert_eq!(run(), run());
    }
}
