//! Rates that theory predicts for a TCP flow.

/// Constant of the rate law of standard congestion control: the square root of 3/2.
const RENO: f64 = 1.224_744_871_391_589;
/// Constants of CUBIC (RFC 9438, section 4.1): C in segments per second cubed, and beta.
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;
/// Smallest window, segments.
const LEAST_WINDOW: f64 = 1.0;
/// Headers of IP and TCP with timestamps, bytes.
const TCP_HEADER_BYTES: f64 = 52.0;
/// IP packet size assumed where it is not known, bytes: the largest of Ethernet.
pub(crate) const USUAL_MTU_BYTES: f64 = 1500.0;

/// Data that a TCP segment carries in IP packets of this size, bytes.
pub(crate) fn segment_bytes(mtu_bytes: Option<f64>) -> f64 {
    mtu_bytes.unwrap_or(USUAL_MTU_BYTES) - TCP_HEADER_BYTES
}

/// Rate of a standard TCP flow where a share `loss` of its segments is lost at random, bytes per second (Mathis, Semke,
/// Mahdavi, Ott 1997). Infinite without loss.
#[must_use]
pub fn reno_bytes_per_sec(segment_bytes: f64, rtt_secs: f64, loss: f64) -> f64 {
    window_rate(segment_bytes, rtt_secs, RENO / loss.max(0.0).sqrt())
}

/// Rate of a CUBIC flow under the same loss (RFC 9438, section 5.1, average window), never lower than that of standard
/// TCP.
#[must_use]
pub fn cubic_bytes_per_sec(segment_bytes: f64, rtt_secs: f64, loss: f64) -> f64 {
    let factor = (CUBIC_C * (3.0 + CUBIC_BETA) / (4.0 * (1.0 - CUBIC_BETA))).powf(0.25);
    let window = factor * (rtt_secs / loss.max(0.0)).powf(0.75);
    window_rate(segment_bytes, rtt_secs, window).max(reno_bytes_per_sec(segment_bytes, rtt_secs, loss))
}

/// Time that CUBIC takes after one loss until it sends at `bytes_per_sec` again (RFC 9438, section 4.2: K).
#[must_use]
pub fn cubic_recovery_secs(segment_bytes: f64, rtt_secs: f64, bytes_per_sec: f64) -> f64 {
    let window = bytes_per_sec * rtt_secs / segment_bytes;
    (window * (1.0 - CUBIC_BETA) / CUBIC_C).cbrt()
}

/// Bandwidth-delay product: bytes that fill a path (RFC 6349, section 3.3).
#[must_use]
pub fn bandwidth_delay_bytes(bytes_per_sec: f64, rtt_secs: f64) -> f64 {
    bytes_per_sec * rtt_secs
}

fn window_rate(segment_bytes: f64, rtt_secs: f64, window_segments: f64) -> f64 {
    segment_bytes * window_segments.max(LEAST_WINDOW) / rtt_secs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_fat_path_takes_cubic_long_to_fill_again() {
        // Computed by hand: 12,950 segments of 1448 bytes are in flight; the cube root of 12,950 x 0.3 / 0.4
        // is 21.3.
        let secs = cubic_recovery_secs(1448.0, 0.150, 125e6);
        assert!((secs - 21.34).abs() < 0.01, "{secs}");
    }

    #[test]
    fn rates_agree_with_the_published_formulas() {
        // Computed by hand: RTT 0.1 s, loss 1e-4: 1.054 x 1000^(3/4) segments for CUBIC, 1.2247 x 100 for
        // standard TCP.
        let window = |rate: f64| rate * 0.1 / 1500.0;
        assert!((window(reno_bytes_per_sec(1500.0, 0.1, 1e-4)) - 122.5).abs() < 0.1);
        assert!((window(cubic_bytes_per_sec(1500.0, 0.1, 1e-4)) - 187.0).abs() < 2.0);
        // Short path, 0.01 s and 1e-2: CUBIC is in its region of standard TCP.
        let short = cubic_bytes_per_sec(1500.0, 0.01, 1e-2) * 0.01 / 1500.0;
        assert!((short - 12.2).abs() < 0.1, "{short}");
    }
}
