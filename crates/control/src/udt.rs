//! `udt`: UDT's native control (draft-gg-udt-03; Gu, Grossman, "UDT: UDP-based data transfer for high-speed
//! wide area networks", 2007). Every 10 ms the rate grows by a step that depends on the magnitude of the free
//! capacity; a loss lengthens the sending period by an eighth. Needs the arrival rate and the capacity from
//! the receiver.
//!
//! The draft spreads repeated decreases within one congestion period by a random number; here by half the average
//! number of loss reports, so that a run can be repeated.

use std::time::Duration;

use crate::limits::{even_quantum, sane_rate};
use crate::{Config, Controller, LostPackets, PacketEvent, ReceiverReport, SendLimits};

/// Interval of rate steps, seconds (the draft's SYN).
const SYN_SECS: f64 = 0.01;
/// Factor of the increase (the draft's beta).
const STEP: f64 = 1.5e-6;
/// Factor of the sending period at a decrease.
const SLOW_DOWN: f64 = 1.125;
/// Most decreases in one congestion period.
const MOST_DECREASES: u32 = 5;
/// Slack of the flow window, packets.
const SLACK_PACKETS: f64 = 16.0;

/// UDT controller.
#[derive(Debug)]
pub(crate) struct Udt {
    packet_bytes: u64,
    rtt_secs: f64,
    /// Rate, bytes per second; `None` during slow start.
    rate: Option<f64>,
    window_packets: f64,
    /// Arrival rate and bottleneck capacity, bytes per second.
    arriving: f64,
    capacity: f64,
    stepped_at: f64,
    /// Send time up to which losses belong to the current congestion period.
    period_began: Option<Duration>,
    reports_in_period: u32,
    average_reports: f64,
    decreases: u32,
}

/// Packets per SYN that are added where `free_bytes_per_sec` are free.
fn step_packets(free_bytes_per_sec: f64, packet_bytes: f64) -> f64 {
    if free_bytes_per_sec <= 0.0 {
        return 1.0 / packet_bytes;
    }
    let magnitude = 10f64.powf((free_bytes_per_sec * 8.0).log10().ceil());
    (magnitude * STEP / packet_bytes).max(1.0 / packet_bytes)
}

impl Udt {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            packet_bytes: config.packet_bytes,
            rtt_secs: config.first_rtt_secs(),
            rate: None,
            window_packets: SLACK_PACKETS,
            arriving: 0.0,
            capacity: 0.0,
            stepped_at: 0.0,
            period_began: None,
            reports_in_period: 0,
            average_reports: 1.0,
            decreases: 0,
        }
    }

    fn on_report(&mut self, report: &ReceiverReport) {
        let smooth = |old: f64, new: Option<f64>| match new.filter(|n| n.is_finite() && *n > 0.0) {
            Some(new) if old > 0.0 => old + (new - old) / 8.0,
            Some(new) => new,
            None => old,
        };
        self.arriving = smooth(self.arriving, report.arrival_bytes_per_sec);
        self.capacity = smooth(self.capacity, report.capacity_bytes_per_sec);
    }

    /// Increases the rate, once per SYN.
    fn step(&mut self, at: f64) {
        if at - self.stepped_at < SYN_SECS {
            return;
        }
        self.stepped_at = at;
        let Some(rate) = self.rate else { return };
        let packet = self.packet_bytes as f64;
        self.window_packets = self.arriving / packet * (self.rtt_secs + SYN_SECS) + SLACK_PACKETS;
        let free = self.capacity - rate;
        self.set_rate(rate + step_packets(free, packet) * packet / SYN_SECS);
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = Some(sane_rate(rate));
    }

    /// Returns the rate; ends slow start if necessary.
    fn end_slow_start(&mut self) -> f64 {
        let by_window = self.window_packets * self.packet_bytes as f64 / (self.rtt_secs + SYN_SECS);
        let rate = self.rate.unwrap_or(if self.arriving > 0.0 { self.arriving } else { by_window });
        self.set_rate(rate);
        rate
    }

    fn on_loss(&mut self, now: Duration, loss: &LostPackets) {
        let rate = self.end_slow_start();
        if self.period_began.is_none_or(|began| loss.sent_at > began) {
            self.average_reports += (f64::from(self.reports_in_period) - self.average_reports) / 8.0;
            self.period_began = Some(now);
            self.reports_in_period = 1;
            self.decreases = 1;
            return self.set_rate(rate / SLOW_DOWN);
        }
        self.reports_in_period = self.reports_in_period.saturating_add(1);
        let spacing = (self.average_reports / 2.0).max(1.0);
        let is_due = f64::from(self.reports_in_period) >= f64::from(self.decreases + 1) * spacing;
        if self.decreases < MOST_DECREASES && is_due {
            self.decreases += 1;
            self.set_rate(rate / SLOW_DOWN);
        }
    }
}

impl Controller for Udt {
    fn on(&mut self, now: Duration, event: &PacketEvent) {
        match event {
            PacketEvent::Ack(ack) => {
                if let Some(rtt) = ack.rtt {
                    self.rtt_secs += (rtt.as_secs_f64() - self.rtt_secs) / 8.0;
                }
                if self.rate.is_none() {
                    self.window_packets += ack.bytes as f64 / self.packet_bytes as f64;
                }
                self.step(now.as_secs_f64());
            }
            PacketEvent::Loss(loss) => self.on_loss(now, loss),
            PacketEvent::Timeout => {
                let rate = self.end_slow_start();
                self.set_rate(rate / 2.0);
            }
            PacketEvent::Report(report) => self.on_report(report),
            _ => {}
        }
    }

    fn limits(&self) -> SendLimits {
        let window = self.window_packets * self.packet_bytes as f64;
        let rate = self.rate.unwrap_or(2.0 * window / self.rtt_secs.max(1e-6));
        SendLimits::new(self.packet_bytes, rate, window, even_quantum(self.packet_bytes, rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_those_of_the_table() {
        // The paper's table for 1500-byte packets: free Mb/s, packets per SYN.
        for (free_mbps, packets) in
            [(0.05, 0.00067), (0.5, 0.001), (5.0, 0.01), (50.0, 0.1), (500.0, 1.0), (5000.0, 10.0)]
        {
            let step = step_packets(free_mbps * 125e3, 1500.0);
            assert!((step / packets - 1.0).abs() < 0.01, "{free_mbps} Mb/s: {step}, expected {packets}");
        }
    }

    #[test]
    fn a_loss_makes_the_period_an_eighth_longer() {
        let mut udt = Udt::new(&Config::new(1500));
        udt.set_rate(1e6);
        let loss = LostPackets { bytes: 1500, sent_at: Duration::from_millis(90), in_flight_bytes: 0 };
        udt.on(Duration::from_millis(100), &PacketEvent::Loss(loss.clone()));
        assert!((udt.limits().rate_bytes_per_sec() - 1e6 / 1.125).abs() < 1.0);
        let window = udt.limits().rate_bytes_per_sec();
        udt.average_reports = 100.0;
        udt.on(Duration::from_millis(101), &PacketEvent::Loss(loss));
        assert_eq!(udt.limits().rate_bytes_per_sec(), window, "the same congestion period");
    }
}
