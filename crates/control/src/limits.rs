//! Limits that a controller returns. Whatever its arithmetic gives, a [`SendLimits`] is finite and allows
//! progress.

/// Lowest rate of any controller, bytes per second: one small packet a second keeps acknowledgements coming.
pub const MIN_RATE_BYTES_PER_SEC: f64 = 1_500.0;
/// Highest rate of any controller, bytes per second: 10 Tb/s, above any host.
pub const MAX_RATE_BYTES_PER_SEC: f64 = 1.25e12;
/// Largest congestion window, bytes: [`MAX_RATE_BYTES_PER_SEC`] over almost a second.
pub const MAX_WINDOW_BYTES: u64 = 1 << 40;
/// Largest burst of packets sent together, bytes: a train that measures 100 Gb/s takes 12 MB.
pub const MAX_QUANTUM_BYTES: u64 = 1 << 24;

/// Packets that may be sent together on any path.
pub(crate) const EVEN_PACKETS: f64 = 10.0;

/// Limits of sending: rate, window and quantum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendLimits {
    rate_bytes_per_sec: f64,
    window_bytes: u64,
    quantum_bytes: u64,
}

impl SendLimits {
    /// Creates limits, each clamped to its bounds; a value that is not a number becomes the lower bound.
    /// Window and quantum hold at least one packet of `packet_bytes`.
    #[must_use]
    pub fn new(packet_bytes: u64, rate_bytes_per_sec: f64, window_bytes: f64, quantum_bytes: f64) -> Self {
        let rate = sane_rate(rate_bytes_per_sec);
        let packet = packet_bytes.clamp(1, MAX_QUANTUM_BYTES);
        Self {
            rate_bytes_per_sec: rate,
            window_bytes: whole(window_bytes).clamp(packet, MAX_WINDOW_BYTES),
            quantum_bytes: whole(quantum_bytes).clamp(packet, MAX_QUANTUM_BYTES),
        }
    }

    /// Pacing rate, bytes per second.
    #[must_use]
    pub fn rate_bytes_per_sec(&self) -> f64 {
        self.rate_bytes_per_sec
    }

    /// Congestion window: most bytes in flight.
    #[must_use]
    pub fn window_bytes(&self) -> u64 {
        self.window_bytes
    }

    /// Quantum: most bytes sent together.
    #[must_use]
    pub fn quantum_bytes(&self) -> u64 {
        self.quantum_bytes
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and gives 0 for NaN"
)]
pub(crate) fn whole(bytes: f64) -> u64 {
    bytes as u64
}

/// Clamps a rate to its bounds; a value that is not a number becomes the lower bound.
pub(crate) fn sane_rate(bytes_per_sec: f64) -> f64 {
    if bytes_per_sec.is_nan() {
        return MIN_RATE_BYTES_PER_SEC;
    }
    bytes_per_sec.clamp(MIN_RATE_BYTES_PER_SEC, MAX_RATE_BYTES_PER_SEC)
}

/// Quantum for `rate_bytes_per_sec`: one millisecond's worth, between one and ten packets; on fast paths a
/// quarter of a millisecond's, so that the clock is not read more often. Larger quanta save processor time
/// and cause bursts; see [`Pacer`](crate::Pacer).
pub(crate) fn even_quantum(packet_bytes: u64, rate_bytes_per_sec: f64) -> f64 {
    let packet = packet_bytes as f64;
    (rate_bytes_per_sec * 1e-3).clamp(packet, EVEN_PACKETS * packet).max(rate_bytes_per_sec * 0.25e-3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_always_usable() {
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e300] {
            let limits = SendLimits::new(1500, odd, odd, odd);
            assert!(limits.rate_bytes_per_sec() >= MIN_RATE_BYTES_PER_SEC, "{odd}: {limits:?}");
            assert!(limits.rate_bytes_per_sec() <= MAX_RATE_BYTES_PER_SEC, "{odd}: {limits:?}");
            assert!((1500..=MAX_WINDOW_BYTES).contains(&limits.window_bytes()), "{odd}: {limits:?}");
            assert!((1500..=MAX_QUANTUM_BYTES).contains(&limits.quantum_bytes()), "{odd}: {limits:?}");
        }
    }
}
