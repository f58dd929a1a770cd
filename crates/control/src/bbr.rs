//! `bbr`: paces at the largest recent delivery rate, probes for more, and drains the queue that it caused
//! (BBR version 1, draft-cardwell-iccrg-bbr-congestion-control-00, 2017). Unlike versions 2 and 3, it does
//! not react to losses.

use std::time::Duration;

use crate::filter::SlidingMax;
use crate::limits::even_quantum;
use crate::round::RoundTracker;
use crate::{Ack, Config, Controller, DeliverySample, PacketEvent, SendLimits};

/// Gain of Startup: 2/ln 2, the smallest that doubles the rate each round.
const HIGH_GAIN: f64 = 2.885;
/// Gains of `ProbeBW`, one per smallest round trip.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Window in bandwidth-delay products during `ProbeBW`.
const WINDOW_GAIN: f64 = 2.0;
/// Rounds that the maximum of the bandwidth covers.
const BANDWIDTH_ROUNDS: f64 = 10.0;
/// Growth that a round of Startup must bring while the pipe is not full.
const STARTUP_GROWTH: f64 = 1.25;
/// Rounds without that growth after which the pipe is full.
const FULL_ROUNDS: u32 = 3;
/// Interval at which the smallest round trip is measured again, seconds.
const PROBE_RTT_EVERY_SECS: f64 = 10.0;
/// Duration of that measurement, with a window of `LEAST_PACKETS`, seconds.
const PROBE_RTT_SECS: f64 = 0.2;
/// Smallest window, packets.
const LEAST_PACKETS: f64 = 4.0;
/// First window, packets.
const FIRST_PACKETS: f64 = 10.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum BbrState {
    Startup,
    Drain,
    ProbeBandwidth { phase: usize, since: f64 },
    ProbeRtt { until: Option<f64> },
}

/// BBR controller.
#[derive(Debug)]
pub(crate) struct Bbr {
    packet_bytes: u64,
    first_rtt_secs: f64,
    state: BbrState,
    bandwidth: SlidingMax,
    rounds: f64,
    round: RoundTracker,
    least_rtt: f64,
    least_rtt_at: f64,
    full_bandwidth: f64,
    full_rounds: u32,
    is_pipe_full: bool,
    window_bytes: f64,
}

impl Bbr {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            packet_bytes: config.packet_bytes,
            first_rtt_secs: config.first_rtt_secs(),
            state: BbrState::Startup,
            bandwidth: SlidingMax::new(),
            rounds: 0.0,
            round: RoundTracker::default(),
            least_rtt: f64::INFINITY,
            least_rtt_at: 0.0,
            full_bandwidth: 0.0,
            full_rounds: 0,
            is_pipe_full: false,
            window_bytes: FIRST_PACKETS * config.packet_bytes as f64,
        }
    }

    fn packets(&self, count: f64) -> f64 {
        count * self.packet_bytes as f64
    }

    fn rtt(&self) -> f64 {
        if self.least_rtt.is_finite() { self.least_rtt } else { self.first_rtt_secs }
    }

    /// Bytes in flight at `gain` bandwidth-delay products.
    fn in_flight(&self, gain: f64) -> f64 {
        match self.bandwidth.value() {
            0.0 => self.packets(FIRST_PACKETS),
            bandwidth => gain * bandwidth * self.rtt() + 3.0 * even_quantum(self.packet_bytes, bandwidth),
        }
    }

    fn gains(&self) -> (f64, f64) {
        match self.state {
            BbrState::Startup => (HIGH_GAIN, HIGH_GAIN),
            BbrState::Drain => (1.0 / HIGH_GAIN, HIGH_GAIN),
            BbrState::ProbeBandwidth { phase, .. } => (CYCLE[phase % CYCLE.len()], WINDOW_GAIN),
            BbrState::ProbeRtt { .. } => (1.0, 1.0),
        }
    }

    fn on_ack(&mut self, at: f64, ack: &Ack) {
        let is_round = ack.delivery.is_some_and(|d| self.round.on_ack(&d));
        // While the window is reduced on purpose, the delivery rate says nothing.
        let is_held = matches!(self.state, BbrState::ProbeRtt { .. });
        if let Some(delivery) = ack.delivery.filter(|_| !is_held) {
            self.rounds += f64::from(u8::from(is_round));
            self.on_delivery(&delivery, is_round);
        }
        let is_rtt_old = at - self.least_rtt_at > PROBE_RTT_EVERY_SECS;
        if let Some(rtt) = ack.rtt.map(|rtt| rtt.as_secs_f64().max(1e-6))
            && (rtt <= self.least_rtt || is_rtt_old)
        {
            self.least_rtt = rtt;
            self.least_rtt_at = at;
        }
        self.advance(at, ack.in_flight_bytes as f64, is_rtt_old);
        self.set_window(ack.bytes as f64, ack.delivery.map_or(0, |d| d.delivered_bytes));
    }

    fn on_delivery(&mut self, delivery: &DeliverySample, is_round: bool) {
        if !delivery.is_app_limited || delivery.rate_bytes_per_sec > self.bandwidth.value() {
            self.bandwidth.add(self.rounds, BANDWIDTH_ROUNDS, delivery.rate_bytes_per_sec);
        }
        if self.is_pipe_full || !is_round || delivery.is_app_limited {
            return;
        }
        if self.bandwidth.value() >= STARTUP_GROWTH * self.full_bandwidth {
            self.full_bandwidth = self.bandwidth.value();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.is_pipe_full = self.full_rounds >= FULL_ROUNDS;
    }

    fn advance(&mut self, at: f64, in_flight: f64, is_rtt_old: bool) {
        match self.state {
            BbrState::Startup if self.is_pipe_full => self.state = BbrState::Drain,
            BbrState::Drain if in_flight <= self.in_flight(1.0) => self.probe_bandwidth(at),
            BbrState::ProbeBandwidth { phase, since } if self.is_phase_over(phase, at - since, in_flight) => {
                self.state = BbrState::ProbeBandwidth { phase: (phase + 1) % CYCLE.len(), since: at };
            }
            BbrState::ProbeRtt { until: None } if in_flight <= self.packets(LEAST_PACKETS) => {
                self.state = BbrState::ProbeRtt { until: Some(at + PROBE_RTT_SECS.max(self.rtt())) };
            }
            BbrState::ProbeRtt { until: Some(until) } if at >= until => {
                self.least_rtt_at = at;
                if self.is_pipe_full {
                    self.probe_bandwidth(at);
                } else {
                    self.state = BbrState::Startup;
                }
            }
            _ => {}
        }
        if is_rtt_old && !matches!(self.state, BbrState::ProbeRtt { .. }) {
            self.state = BbrState::ProbeRtt { until: None };
        }
    }

    /// Starts `ProbeBW`. The draft begins at a random phase; this one, without random numbers, at the first
    /// phase of even rate.
    fn probe_bandwidth(&mut self, at: f64) {
        self.state = BbrState::ProbeBandwidth { phase: 2, since: at };
    }

    fn is_phase_over(&self, phase: usize, secs: f64, in_flight: f64) -> bool {
        let is_long = secs > self.rtt();
        match CYCLE[phase % CYCLE.len()] {
            gain if gain > 1.0 => is_long && in_flight >= self.in_flight(gain),
            gain if gain < 1.0 => is_long || in_flight <= self.in_flight(1.0),
            _ => is_long,
        }
    }

    fn set_window(&mut self, acked: f64, delivered: u64) {
        let target = self.in_flight(self.gains().1);
        if self.is_pipe_full {
            self.window_bytes = (self.window_bytes + acked).min(target);
        } else if self.window_bytes < target || (delivered as f64) < self.packets(FIRST_PACKETS) {
            self.window_bytes += acked;
        }
        self.window_bytes = self.window_bytes.max(self.packets(LEAST_PACKETS));
    }
}

impl Controller for Bbr {
    fn on(&mut self, now: Duration, event: &PacketEvent) {
        match event {
            PacketEvent::Ack(ack) => self.on_ack(now.as_secs_f64(), ack),
            PacketEvent::Timeout => self.window_bytes = self.packets(LEAST_PACKETS),
            _ => {}
        }
    }

    fn limits(&self) -> SendLimits {
        let rate = match self.bandwidth.value() {
            0.0 => HIGH_GAIN * self.packets(FIRST_PACKETS) / self.first_rtt_secs,
            bandwidth => self.gains().0 * bandwidth,
        };
        let window = match self.state {
            BbrState::ProbeRtt { .. } => self.packets(LEAST_PACKETS).min(self.window_bytes),
            _ => self.window_bytes,
        };
        SendLimits::new(self.packet_bytes, rate, window, even_quantum(self.packet_bytes, rate))
    }
}
