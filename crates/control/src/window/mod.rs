//! Controllers of TCP's family: a window that grows with acknowledgements and shrinks once per loss event.
//!
//! Their common part is here: slow start with a threshold, one reduction per round trip of losses (NewReno's
//! recovery, RFC 6582), the timeout (RFC 5681), pacing over the round trip. The specific part of each is a
//! [`Law`] in a file of its own. Windows are counted in packets, as in the papers.

mod bic;
mod cubic;
mod highspeed;
mod law;
mod reno;
mod scalable;
mod vegas;
mod westwood;

use std::time::Duration;

pub(crate) use bic::Bic;
pub(crate) use cubic::Cubic;
pub(crate) use highspeed::HighSpeed;
use law::{Law, PathSample};
pub(crate) use reno::Reno;
pub(crate) use scalable::Scalable;
pub(crate) use vegas::Vegas;
pub(crate) use westwood::Westwood;

use crate::limits::even_quantum;
use crate::round::RoundTracker;
use crate::{Ack, Config, Controller, MAX_WINDOW_BYTES, PacketEvent, SendLimits};

/// Initial window, packets (RFC 6928).
const FIRST_PACKETS: f64 = 10.0;
/// Smallest window, packets (RFC 5681, equation 4).
const LEAST_PACKETS: f64 = 2.0;
/// Factor of the pacing rate over window divided by round trip in slow start, so that pacing does not limit
/// (Linux: `tcp_pacing_ss_ratio`).
const PACING_SLOW_START: f64 = 2.0;
const PACING: f64 = 1.2;

/// Window controller with a law.
#[derive(Debug)]
pub(crate) struct WindowController<L> {
    law: L,
    packet_bytes: u64,
    /// Window, packets.
    window: f64,
    /// Slow start threshold, packets.
    threshold: f64,
    srtt: f64,
    latest: PathSample,
    round: RoundTracker,
    /// Send time up to which losses belong to the last loss event.
    answered_until: Option<Duration>,
    /// Window and threshold before the last reduction, and the bytes still considered lost.
    before: Option<(f64, f64, u64)>,
    is_limited: bool,
}

impl<L: Law> WindowController<L> {
    pub(crate) fn new(config: &Config, law: L) -> Self {
        let rtt = config.first_rtt_secs();
        Self {
            law,
            packet_bytes: config.packet_bytes,
            window: FIRST_PACKETS,
            threshold: f64::INFINITY,
            srtt: rtt,
            latest: PathSample { at: 0.0, rtt, least_rtt: f64::INFINITY, is_round: false, acked: 0.0 },
            round: RoundTracker::default(),
            answered_until: None,
            before: None,
            is_limited: false,
        }
    }

    /// Continues from `bytes` in flight, in congestion avoidance.
    pub(crate) fn resume(&mut self, bytes: f64) {
        self.window = bytes / self.packet_bytes as f64;
        self.bound();
        self.threshold = self.window;
    }

    fn bound(&mut self) {
        let most = MAX_WINDOW_BYTES as f64 / self.packet_bytes as f64;
        self.window = self.window.max(LEAST_PACKETS).min(most);
    }

    fn on_ack(&mut self, now: Duration, ack: &Ack) {
        if let Some(rtt) = ack.rtt.map(|rtt| rtt.as_secs_f64().max(1e-6)) {
            self.latest.rtt = rtt;
            self.latest.least_rtt = self.latest.least_rtt.min(rtt);
            self.srtt += (rtt - self.srtt) / 8.0;
        }
        self.latest.at = now.as_secs_f64();
        self.latest.acked = ack.bytes as f64 / self.packet_bytes as f64;
        self.latest.is_round = ack.delivery.is_some_and(|d| self.round.on_ack(&d));
        self.law.observe(&self.latest);
        let is_recovering = self.answered_until.is_some_and(|until| ack.sent_at <= until);
        if is_recovering || std::mem::take(&mut self.is_limited) {
            return;
        }
        if self.window < self.threshold {
            let (window, is_over) = self.law.start(&self.latest, self.window);
            self.window = window.min(self.threshold.max(self.window));
            if is_over {
                self.threshold = self.window;
            }
        } else {
            self.window = self.law.grow(&self.latest, self.window);
            // A law that reduces the window by itself does not return to slow start.
            self.threshold = self.threshold.min(self.window);
        }
        self.bound();
    }

    fn on_loss(&mut self, now: Duration, bytes: u64, sent_at: Duration) {
        if self.answered_until.is_some_and(|until| sent_at <= until) {
            if let Some((_, _, lost)) = &mut self.before {
                *lost = lost.saturating_add(bytes);
            }
            return;
        }
        self.before = Some((self.window, self.threshold, bytes));
        self.latest.at = now.as_secs_f64();
        self.window = self.law.shrink(&self.latest, self.window);
        self.bound();
        self.threshold = self.window;
        self.answered_until = Some(now);
    }

    fn on_timeout(&mut self, now: Duration) {
        self.latest.at = now.as_secs_f64();
        self.threshold = self.law.time_out(&self.latest, self.window).max(LEAST_PACKETS);
        self.window = LEAST_PACKETS;
        self.answered_until = Some(now);
        self.before = None;
    }

    /// Undoes a reduction when all its lost packets turn out to be late (RFC 4015).
    fn on_spurious(&mut self, bytes: u64) {
        let Some((window, threshold, lost)) = &mut self.before else { return };
        *lost = lost.saturating_sub(bytes);
        if *lost == 0 {
            self.window = self.window.max(*window);
            self.threshold = *threshold;
            self.answered_until = None;
            self.before = None;
        }
    }
}

impl<L: Law> Controller for WindowController<L> {
    fn on(&mut self, now: Duration, event: &PacketEvent) {
        match event {
            PacketEvent::Ack(ack) => self.on_ack(now, ack),
            PacketEvent::Loss(loss) => self.on_loss(now, loss.bytes, loss.sent_at),
            PacketEvent::Timeout => self.on_timeout(now),
            PacketEvent::Spurious { bytes, .. } => self.on_spurious(*bytes),
            PacketEvent::AppLimited => self.is_limited = true,
            PacketEvent::Sent { .. } | PacketEvent::Report(_) => {}
        }
    }

    fn limits(&self) -> SendLimits {
        let bytes = self.window * self.packet_bytes as f64;
        let pacing = if self.window < self.threshold { PACING_SLOW_START } else { PACING };
        let rate = pacing * bytes / self.srtt;
        SendLimits::new(self.packet_bytes, rate, bytes, even_quantum(self.packet_bytes, rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a sample of a path without particularities.
    pub(super) fn flight(at: f64, rtt: f64) -> PathSample {
        PathSample { at, rtt, least_rtt: rtt, is_round: false, acked: 1.0 }
    }

    /// Returns the round trips until the window is `to`.
    pub(super) fn rounds_to(law: &mut impl Law, mut window: f64, to: f64, rtt: f64) -> u32 {
        let mut rounds = 0;
        while window < to {
            window = one_round(law, window, f64::from(rounds) * rtt, rtt);
            rounds += 1;
        }
        rounds
    }

    /// Returns the window after `secs` without loss, from 0 on.
    pub(super) fn run(law: &mut impl Law, mut window: f64, rtt: f64, secs: f64) -> f64 {
        let mut at = 0.0;
        while at < secs {
            window = one_round(law, window, at, rtt);
            at += rtt;
        }
        window
    }

    /// Simulates a round trip in ten parts.
    fn one_round(law: &mut impl Law, window: f64, at: f64, rtt: f64) -> f64 {
        (0..10u32).fold(window, |w, part| {
            let now = PathSample { acked: window / 10.0, ..flight(at + f64::from(part) * rtt / 10.0, rtt) };
            law.grow(&now, w)
        })
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn ack(bytes: u64, sent_at: Duration) -> PacketEvent {
        PacketEvent::Ack(Ack { bytes, sent_at, rtt: Some(ms(100)), delivery: None, in_flight_bytes: 0 })
    }

    fn loss(sent_at: Duration) -> PacketEvent {
        PacketEvent::Loss(crate::LostPackets { bytes: 1500, sent_at, in_flight_bytes: 0 })
    }

    #[test]
    fn slow_start_doubles_and_one_loss_event_is_answered_once() {
        let mut reno = WindowController::new(&Config::new(1500), Reno);
        reno.on(ms(100), &ack(15_000, ms(0)));
        assert_eq!(reno.limits().window_bytes(), 30_000);
        reno.on(ms(200), &ack(30_000, ms(100)));
        assert_eq!(reno.limits().window_bytes(), 60_000);
        reno.on(ms(201), &loss(ms(100)));
        assert_eq!(reno.limits().window_bytes(), 30_000);
        reno.on(ms(202), &loss(ms(150)));
        assert_eq!(reno.limits().window_bytes(), 30_000, "the same event");
        reno.on(ms(302), &loss(ms(202)));
        assert_eq!(reno.limits().window_bytes(), 15_000, "a new one");
    }

    #[test]
    fn a_timeout_starts_again_below_half() {
        let mut reno = WindowController::new(&Config::new(1500), Reno);
        reno.on(ms(100), &ack(45_000, ms(0)));
        reno.on(ms(900), &PacketEvent::Timeout);
        assert_eq!(reno.limits().window_bytes(), 3_000);
        reno.on(ms(1_000), &ack(60_000, ms(901)));
        assert_eq!(reno.limits().window_bytes(), 30_000, "slow start ends at half of 40 packets");
    }

    #[test]
    fn late_packets_take_the_reduction_back() {
        let mut reno = WindowController::new(&Config::new(1500), Reno);
        reno.on(ms(100), &ack(15_000, ms(0)));
        reno.on(ms(110), &loss(ms(50)));
        assert_eq!(reno.limits().window_bytes(), 15_000);
        reno.on(ms(120), &PacketEvent::Spurious { bytes: 1500, sent_at: ms(50) });
        assert_eq!(reno.limits().window_bytes(), 30_000);
    }
}
