//! Configuration of a new controller.

use std::time::Duration;

use crate::limits::whole;

/// Start values of a controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Full packet size, bytes, as the engine counts.
    pub packet_bytes: u64,
    /// Round trip of the handshake, if it was measured.
    pub handshake_rtt: Option<Duration>,
    /// Remembered path; `auto` starts from it.
    pub remembered: Option<RememberedPath>,
    /// Rate of `rate`, bytes per second; upper limit of `auto`.
    pub rate_bytes_per_sec: Option<f64>,
}

/// Remembered properties of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RememberedPath {
    /// Rate of one connection, bytes per second.
    pub rate_bytes_per_sec: f64,
    /// Capacity of the bottleneck, bytes per second.
    pub capacity_bytes_per_sec: f64,
    /// Round trip without queues.
    pub rtt: Duration,
}

impl RememberedPath {
    /// Bytes that fill the path: the bandwidth-delay product.
    #[must_use]
    pub fn filling_bytes(&self) -> u64 {
        whole(self.rate_bytes_per_sec * self.rtt.as_secs_f64())
    }
}

impl Config {
    /// Round trip assumed where none is known (RFC 9002, section 6.2.2).
    pub const UNKNOWN_RTT: Duration = Duration::from_millis(333);

    /// Creates a configuration for an unknown path, with packets of `packet_bytes`.
    #[must_use]
    pub fn new(packet_bytes: u64) -> Self {
        Self {
            packet_bytes: packet_bytes.max(1),
            handshake_rtt: None,
            remembered: None,
            rate_bytes_per_sec: None,
        }
    }

    /// Best guess of the round trip, seconds.
    pub(crate) fn first_rtt_secs(&self) -> f64 {
        let known = self.handshake_rtt.or(self.remembered.map(|r| r.rtt));
        known.filter(|rtt| !rtt.is_zero()).unwrap_or(Self::UNKNOWN_RTT).as_secs_f64()
    }
}
