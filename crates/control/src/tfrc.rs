//! `tfrc`: TCP-friendly rate control (RFC 5348): the rate that TCP would have at the measured loss event rate
//! and round trip, but smooth. For pictures and sound beside other traffic.
//!
//! Loss events are counted by the sender. Reordering is not loss: late packets undo their loss event, and
//! afterwards losses count only after the largest observed delay.

use std::collections::VecDeque;
use std::time::Duration;

use crate::limits::even_quantum;
use crate::{Ack, Config, Controller, PacketEvent, SendLimits};

/// Number of averaged loss intervals, and their weights (section 5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// Most losses that wait for confirmation.
const MOST_PENDING: usize = 4096;
/// Factor on the observed lateness after which a loss is confirmed.
const LATENESS_SLACK: f64 = 1.5;
/// Lowest rate, packets per second: one in 64 s (`t_mbi`, section 4.3).
const LEAST_PACKETS_PER_SEC: f64 = 1.0 / 64.0;

/// Rate of TCP at a loss event rate, bytes per second (section 3.1), with an acknowledgement per packet and
/// `t_RTO` = 4 R.
fn throughput(packet_bytes: f64, rtt: f64, loss: f64) -> f64 {
    let timeout = 4.0 * rtt;
    let denominator = rtt * (2.0 * loss / 3.0).sqrt()
        + timeout * 3.0 * (3.0 * loss / 8.0).sqrt() * loss * (1.0 + 32.0 * loss * loss);
    packet_bytes / denominator
}

/// Loss event rate at which TCP would have this rate.
fn loss_for(packet_bytes: f64, rtt: f64, rate: f64) -> f64 {
    let (mut low, mut high) = (1e-10f64, 1.0f64);
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        if throughput(packet_bytes, rtt, middle) > rate {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Loss event with the packets after it.
#[derive(Debug)]
struct LossEvent {
    /// Send time of its first lost packet.
    began: Duration,
    /// Packets from there to the next event, or until now.
    packets: f64,
    /// Bytes still considered lost.
    lost_bytes: u64,
}

#[derive(Debug)]
struct PendingLoss {
    declared_at: f64,
    sent_at: Duration,
    bytes: u64,
}

/// TFRC controller.
#[derive(Debug)]
pub(crate) struct Tfrc {
    packet_bytes: u64,
    rtt: f64,
    rate: f64,
    arriving: f64,
    doubled_at: f64,
    /// Loss events, oldest first; the interval before the oldest is `first_interval`.
    events: VecDeque<LossEvent>,
    first_interval: f64,
    pending: VecDeque<PendingLoss>,
    /// Largest observed lateness of packets that had been declared lost, seconds.
    lateness: f64,
    is_limited: bool,
}

impl Tfrc {
    pub(crate) fn new(config: &Config) -> Self {
        let rtt = config.first_rtt_secs();
        let packet = config.packet_bytes as f64;
        Self {
            packet_bytes: config.packet_bytes,
            rtt,
            // Section 4.2: min(4 s, max(2 s, 4380)) per round trip.
            rate: (4.0 * packet).min((2.0 * packet).max(4380.0)) / rtt,
            arriving: 0.0,
            doubled_at: 0.0,
            events: VecDeque::new(),
            first_interval: 0.0,
            pending: VecDeque::new(),
            lateness: 0.0,
            is_limited: false,
        }
    }

    fn on_ack(&mut self, at: f64, ack: &Ack) {
        if let Some(rtt) = ack.rtt.map(|rtt| rtt.as_secs_f64().max(1e-6)) {
            self.rtt = 0.9 * self.rtt + 0.1 * rtt;
        }
        if let Some(delivery) = ack.delivery {
            self.arriving = delivery.rate_bytes_per_sec;
            self.is_limited = delivery.is_app_limited;
        }
        if let Some(event) = self.events.back_mut() {
            event.packets += ack.bytes as f64 / self.packet_bytes as f64;
        }
        self.confirm(at);
        self.set_rate(at);
    }

    /// Counts the losses that were not undone in time.
    fn confirm(&mut self, at: f64) {
        let wait = (LATENESS_SLACK * self.lateness).min(self.rtt);
        while let Some(loss) = self.pending.pop_front_if(|loss| at - loss.declared_at >= wait) {
            self.count(loss.sent_at, loss.bytes);
        }
    }

    fn count(&mut self, sent_at: Duration, bytes: u64) {
        let packets = bytes as f64 / self.packet_bytes as f64;
        if let Some(event) = self.events.back_mut() {
            event.packets += packets;
            // One event per round trip (section 5.2); packets sent before it belong to it too.
            if sent_at.as_secs_f64() < event.began.as_secs_f64() + self.rtt {
                event.lost_bytes = event.lost_bytes.saturating_add(bytes);
                return;
            }
        } else {
            // Section 6.3.1: the interval before the first event is the one that explains half of the
            // arriving rate.
            let packet = self.packet_bytes as f64;
            self.first_interval =
                1.0 / loss_for(packet, self.rtt, (self.arriving / 2.0).max(packet / self.rtt));
        }
        if self.events.len() > WEIGHTS.len() {
            self.first_interval = self.events.pop_front().map_or(0.0, |event| event.packets);
        }
        self.events.push_back(LossEvent { began: sent_at, packets: 0.0, lost_bytes: bytes });
    }

    /// Loss event rate (section 5.4): weighted intervals, with the open one only where it lowers the rate.
    fn loss_event_rate(&self) -> f64 {
        let intervals: Vec<f64> =
            self.events.iter().rev().map(|e| e.packets).chain([self.first_interval]).collect();
        let mean = |from: usize| {
            let weighted = || WEIGHTS.iter().zip(intervals.iter().skip(from));
            let sum: f64 = weighted().map(|(w, i)| w * i).sum();
            sum / weighted().map(|(w, _)| w).sum::<f64>().max(1e-9)
        };
        (1.0 / mean(0).max(mean(1)).max(1.0)).min(1.0)
    }

    fn set_rate(&mut self, at: f64) {
        let packet = self.packet_bytes as f64;
        // A source with little to send keeps its rate (section 4.3, data-limited intervals).
        let most = if self.is_limited { self.rate.max(2.0 * self.arriving) } else { 2.0 * self.arriving };
        if self.events.is_empty() {
            if at - self.doubled_at >= self.rtt && self.arriving > 0.0 {
                self.rate = (2.0 * self.rate).min(most).max(packet / self.rtt);
                self.doubled_at = at;
            }
            return;
        }
        let allowed = throughput(packet, self.rtt, self.loss_event_rate());
        self.rate = allowed.min(most).max(packet * LEAST_PACKETS_PER_SEC);
    }

    fn on_spurious(&mut self, at: f64, bytes: u64, sent_at: Duration) {
        if let Some(i) = self.pending.iter().position(|loss| loss.sent_at == sent_at) {
            self.lateness = self.lateness.max(at - self.pending[i].declared_at).min(self.rtt);
            self.pending.remove(i);
            return;
        }
        // The loss was counted: wait longer in future, and undo the event when no byte of it is lost.
        self.lateness = (2.0 * self.lateness).max(self.rtt / 16.0).min(self.rtt);
        let Some(i) = self.events.iter().rposition(|event| event.began <= sent_at) else { return };
        self.events[i].lost_bytes = self.events[i].lost_bytes.saturating_sub(bytes);
        if self.events[i].lost_bytes > 0 {
            return;
        }
        let packets = self.events.remove(i).map_or(0.0, |event| event.packets);
        match i.checked_sub(1).and_then(|before| self.events.get_mut(before)) {
            Some(before) => before.packets += packets,
            None => self.first_interval += packets,
        }
    }
}

impl Controller for Tfrc {
    fn on(&mut self, now: Duration, event: &PacketEvent) {
        let at = now.as_secs_f64();
        match event {
            PacketEvent::Ack(ack) => self.on_ack(at, ack),
            PacketEvent::Loss(loss) => {
                if self.pending.len() == MOST_PENDING
                    && let Some(oldest) = self.pending.pop_front()
                {
                    self.count(oldest.sent_at, oldest.bytes);
                }
                self.pending.push_back(PendingLoss {
                    declared_at: at,
                    sent_at: loss.sent_at,
                    bytes: loss.bytes,
                });
                self.confirm(at);
            }
            PacketEvent::Spurious { bytes, sent_at } => self.on_spurious(at, *bytes, *sent_at),
            // The no-feedback timer (section 4.4).
            PacketEvent::Timeout => self.rate /= 2.0,
            _ => {}
        }
    }

    fn limits(&self) -> SendLimits {
        let quantum = even_quantum(self.packet_bytes, self.rate);
        // The rate is the limit; the window only stops a sender without acknowledgements.
        let window = 4.0 * self.rate * self.rtt + 4.0 * quantum + 4.0 * self.packet_bytes as f64;
        SendLimits::new(self.packet_bytes, self.rate, window, quantum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_equation_is_the_papers() {
        // 1460 bytes, 100 ms, 1 %: 1460 / (0.1 x 0.08165 + 0.4 x 3 x 0.061237 x 0.01 x 1.0032) = 164 kB/s.
        let rate = throughput(1460.0, 0.1, 0.01);
        assert!((rate / 164.0e3 - 1.0).abs() < 0.01, "{rate}");
        let back = loss_for(1460.0, 0.1, rate);
        assert!((back / 0.01 - 1.0).abs() < 1e-6, "{back}");
    }

    /// Simulates a packet per millisecond, with the given losses and late arrivals.
    fn feed(tfrc: &mut Tfrc, ms: std::ops::Range<u64>, mut also: impl FnMut(&mut Tfrc, u64)) {
        for i in ms {
            let now = Duration::from_millis(i);
            let delivery = crate::DeliverySample {
                rate_bytes_per_sec: 1.5e6,
                delivered_bytes: i * 1500,
                delivered_at_send_bytes: i.saturating_sub(100) * 1500,
                is_app_limited: false,
            };
            let ack = Ack {
                bytes: 1500,
                sent_at: now.saturating_sub(Duration::from_millis(100)),
                rtt: Some(Duration::from_millis(100)),
                delivery: Some(delivery),
                in_flight_bytes: 150_000,
            };
            tfrc.on(now, &PacketEvent::Ack(ack));
            also(tfrc, i);
        }
    }

    fn lose(tfrc: &mut Tfrc, ms: u64) {
        let loss = crate::LostPackets {
            bytes: 1500,
            sent_at: Duration::from_millis(ms.saturating_sub(103)),
            in_flight_bytes: 0,
        };
        tfrc.on(Duration::from_millis(ms), &PacketEvent::Loss(loss));
    }

    #[test]
    fn the_rate_is_that_of_the_loss_event_rate() {
        let mut tfrc = Tfrc::new(&Config::new(1500));
        feed(&mut tfrc, 100..6_000, |tfrc, ms| {
            if ms % 400 == 0 {
                lose(tfrc, ms);
            }
        });
        // One event every 401 packets (400 arrive, one is lost).
        let expected = throughput(1500.0, 0.1, 1.0 / 401.0);
        let rate = tfrc.limits().rate_bytes_per_sec();
        assert!((rate / expected - 1.0).abs() < 0.02, "{rate}, expected {expected}");
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let mut tfrc = Tfrc::new(&Config::new(1500));
        feed(&mut tfrc, 100..6_000, |tfrc, ms| {
            if ms % 400 < 3 {
                lose(tfrc, ms);
            }
        });
        assert!((tfrc.loss_event_rate() * 403.0 - 1.0).abs() < 0.02, "{}", tfrc.loss_event_rate());
    }

    #[test]
    fn late_packets_are_not_losses() {
        let mut tfrc = Tfrc::new(&Config::new(1500));
        feed(&mut tfrc, 100..6_000, |tfrc, ms| {
            if ms % 77 == 0 {
                lose(tfrc, ms);
            }
            if ms % 77 == 5 {
                let sent_at = Duration::from_millis((ms - 5).saturating_sub(103));
                tfrc.on(Duration::from_millis(ms), &PacketEvent::Spurious { bytes: 1500, sent_at });
            }
        });
        assert!(tfrc.events.is_empty(), "{:?}", tfrc.events);
        // Slow start, up to twice the arriving rate.
        assert!((tfrc.limits().rate_bytes_per_sec() - 3.0e6).abs() < 1.0);
    }
}
