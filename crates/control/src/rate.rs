//! `rate`: a fixed, given rate from the first packet on, whatever is lost. For reserved paths, and as the
//! measure of what a path allows.

use std::time::Duration;

use crate::limits::even_quantum;
use crate::{Config, Controller, PacketEvent, SendLimits};

/// Window, in products of rate and smoothed round trip: room for retransmissions.
const WINDOW_RTTS: f64 = 3.0;

/// Rate where none was given, bytes per second: 100 Mb/s.
const DEFAULT_RATE_BYTES_PER_SEC: f64 = 12.5e6;

/// Controller with a fixed rate.
#[derive(Debug)]
pub(crate) struct Rate {
    packet_bytes: u64,
    rate_bytes_per_sec: f64,
    rtt_secs: f64,
}

impl Rate {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            packet_bytes: config.packet_bytes,
            rate_bytes_per_sec: config.rate_bytes_per_sec.unwrap_or(DEFAULT_RATE_BYTES_PER_SEC),
            rtt_secs: config.first_rtt_secs(),
        }
    }
}

impl Controller for Rate {
    fn on(&mut self, _now: Duration, event: &PacketEvent) {
        if let PacketEvent::Ack(ack) = event
            && let Some(rtt) = ack.rtt
        {
            self.rtt_secs += (rtt.as_secs_f64() - self.rtt_secs) / 8.0;
        }
    }

    fn limits(&self) -> SendLimits {
        let rate = self.rate_bytes_per_sec;
        let quantum = even_quantum(self.packet_bytes, rate);
        let window = (WINDOW_RTTS * rate * self.rtt_secs).max(rate * 10e-3) + 10.0 * quantum;
        SendLimits::new(self.packet_bytes, rate, window, quantum)
    }
}
