//! Guard of a controller's input: numbers are in their ranges, times in order. Engines compute events from
//! data of the peer, which is not trusted; every controller of the registry is behind a guard.

use std::time::Duration;

use crate::{
    Ack, Config, Controller, DeliverySample, LostPackets, MAX_RATE_BYTES_PER_SEC, MAX_WINDOW_BYTES,
    MIN_RATE_BYTES_PER_SEC, PacketEvent, ReceiverReport, RememberedPath, SendLimits,
};

/// Bounds of round trips.
const RTT: (Duration, Duration) = (Duration::from_micros(1), Duration::from_secs(60));
/// Upper bound of the packet size, bytes: the largest datagram.
const MAX_PACKET_BYTES: u64 = 65_535;

/// Controller that gets only valid events.
#[derive(Debug)]
pub(crate) struct Guard {
    inner: Box<dyn Controller>,
    now: Duration,
}

impl Guard {
    pub(crate) fn new(inner: Box<dyn Controller>) -> Self {
        Self { inner, now: Duration::ZERO }
    }
}

impl Controller for Guard {
    fn on(&mut self, now: Duration, event: &PacketEvent) {
        self.now = self.now.max(now);
        self.inner.on(self.now, &sane(self.now, event));
    }

    fn limits(&self) -> SendLimits {
        self.inner.limits()
    }
}

fn sane(now: Duration, event: &PacketEvent) -> PacketEvent {
    let few = |bytes: u64| bytes.min(MAX_WINDOW_BYTES);
    match event {
        PacketEvent::Sent { bytes, in_flight_bytes } => {
            PacketEvent::Sent { bytes: few(*bytes), in_flight_bytes: few(*in_flight_bytes) }
        }
        PacketEvent::Ack(ack) => PacketEvent::Ack(Ack {
            bytes: few(ack.bytes),
            sent_at: ack.sent_at.min(now),
            rtt: ack.rtt.map(sane_rtt),
            delivery: ack.delivery.as_ref().and_then(sane_delivery),
            in_flight_bytes: few(ack.in_flight_bytes),
        }),
        PacketEvent::Loss(loss) => PacketEvent::Loss(LostPackets {
            bytes: few(loss.bytes),
            sent_at: loss.sent_at.min(now),
            in_flight_bytes: few(loss.in_flight_bytes),
        }),
        PacketEvent::Spurious { bytes, sent_at } => {
            PacketEvent::Spurious { bytes: few(*bytes), sent_at: (*sent_at).min(now) }
        }
        PacketEvent::Report(report) => PacketEvent::Report(ReceiverReport {
            arrival_bytes_per_sec: report.arrival_bytes_per_sec.and_then(known_rate),
            capacity_bytes_per_sec: report.capacity_bytes_per_sec.and_then(known_rate),
        }),
        PacketEvent::Timeout | PacketEvent::AppLimited => event.clone(),
    }
}

fn sane_rtt(rtt: Duration) -> Duration {
    rtt.clamp(RTT.0, RTT.1)
}

/// Returns a rate, or `None` for an invalid one.
fn known_rate(rate: f64) -> Option<f64> {
    (rate > 0.0).then(|| rate.clamp(MIN_RATE_BYTES_PER_SEC, MAX_RATE_BYTES_PER_SEC))
}

fn sane_delivery(delivery: &DeliverySample) -> Option<DeliverySample> {
    let rate_bytes_per_sec = known_rate(delivery.rate_bytes_per_sec)?;
    let delivered_at_send_bytes = delivery.delivered_at_send_bytes.min(delivery.delivered_bytes);
    Some(DeliverySample { rate_bytes_per_sec, delivered_at_send_bytes, ..*delivery })
}

/// Returns a configuration with every number in its range, without an invalid remembered path.
pub(crate) fn sane_config(config: &Config) -> Config {
    let remembered = config.remembered.and_then(|known| {
        Some(RememberedPath {
            rate_bytes_per_sec: known_rate(known.rate_bytes_per_sec)?,
            capacity_bytes_per_sec: known_rate(known.capacity_bytes_per_sec)?,
            rtt: sane_rtt(known.rtt),
        })
    });
    Config {
        packet_bytes: config.packet_bytes.clamp(1, MAX_PACKET_BYTES),
        handshake_rtt: config.handshake_rtt.filter(|rtt| !rtt.is_zero()).map(sane_rtt),
        remembered,
        rate_bytes_per_sec: config.rate_bytes_per_sec.and_then(known_rate),
    }
}
