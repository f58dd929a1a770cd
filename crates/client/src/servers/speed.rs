//! Speed of a server, estimated from its responses. Pure: time is an argument, relative to any fixed moment.
//!
//! Two numbers matter: the rate while the server has enough work, and the minimum time of a response. Twice their
//! product is the window of the server, so that it does not idle until the next request arrives.

use std::time::Duration;

/// Window before any measurement, in bytes: as large as the minimum window of a connection.
const FIRST_WINDOW_BYTES: u64 = 4 << 20;
/// Minimum window, in bytes: two of the smallest parts.
const MIN_WINDOW_BYTES: u64 = 512 << 10;
/// Maximum window, in bytes: two bandwidth-delay products of 10 Gb/s and 100 ms.
const MAX_WINDOW_BYTES: u64 = 256 << 20;
/// Minimum time span over which a rate is measured.
const MIN_SPAN: Duration = Duration::from_millis(20);
/// Weight of a sample that is faster, and of one that is slower, than the estimate.
const SAMPLE_WEIGHTS: (f64, f64) = (0.5, 0.25);

/// Measured speed of one server.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerSpeed {
    rate_bytes_per_sec: Option<f64>,
    shortest: Option<Duration>,
    /// Bytes delivered since the beginning of the span.
    counted_bytes: u64,
    /// Beginning of the span; `None` while there is no work.
    span_from: Option<Duration>,
    /// Whether the window was full at any time of the span: only then may the estimate decrease.
    was_full: bool,
}

impl ServerSpeed {
    /// Returns the rate in bytes per second; `None` before any delivery.
    pub(super) fn rate_bytes_per_sec(&self) -> Option<f64> {
        self.rate_bytes_per_sec
    }

    /// Returns the minimum time of a response.
    pub(super) fn shortest(&self) -> Option<Duration> {
        self.shortest
    }

    /// Returns the window in bytes: two bandwidth-delay products.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped at once")]
    pub(super) fn window_bytes(&self) -> u64 {
        match (self.rate_bytes_per_sec, self.shortest) {
            (Some(rate), Some(shortest)) => {
                ((2.0 * rate * shortest.as_secs_f64()) as u64).clamp(MIN_WINDOW_BYTES, MAX_WINDOW_BYTES)
            }
            _ => FIRST_WINDOW_BYTES,
        }
    }

    /// Records that the window is full.
    pub(super) fn record_full(&mut self) {
        self.was_full = true;
    }

    /// Records a response of `bytes` at `now` after `took`; `is_idle`: no work is left.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn delivered(&mut self, bytes: u64, took: Duration, now: Duration, is_idle: bool) {
        self.shortest = Some(self.shortest.map_or(took, |s| s.min(took)));
        match self.span_from {
            // The time that the bytes of the first response took is not known; this is a lower bound of the rate.
            None => {
                let least = bytes as f64 / took.as_secs_f64().max(1e-6);
                if self.rate_bytes_per_sec.is_none_or(|rate| rate < least) {
                    self.rate_bytes_per_sec = Some(least);
                }
                self.restart(now);
            }
            Some(from) => {
                self.counted_bytes += bytes;
                let span = now.saturating_sub(from);
                if span >= MIN_SPAN {
                    self.update_rate(self.counted_bytes as f64 / span.as_secs_f64());
                    self.restart(now);
                }
            }
        }
        if is_idle {
            self.span_from = None;
        }
    }

    /// Records that nothing of `bytes` was delivered in `quiet_for`, which is an upper bound of the rate.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn silent(&mut self, bytes: u64, quiet_for: Duration) {
        let most = bytes as f64 / quiet_for.as_secs_f64().max(1e-6);
        self.rate_bytes_per_sec = Some(self.rate_bytes_per_sec.map_or(most, |rate| rate.min(most)));
    }

    fn restart(&mut self, now: Duration) {
        (self.counted_bytes, self.span_from, self.was_full) = (0, Some(now), false);
    }

    fn update_rate(&mut self, sample: f64) {
        let Some(rate) = &mut self.rate_bytes_per_sec else { return };
        if sample > *rate {
            *rate += SAMPLE_WEIGHTS.0 * (sample - *rate);
        } else if self.was_full {
            *rate += SAMPLE_WEIGHTS.1 * (sample - *rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_window_is_two_bandwidth_delay_products() {
        let mut speed = ServerSpeed::default();
        assert_eq!(speed.window_bytes(), FIRST_WINDOW_BYTES);
        // 100 MB/s, 100 ms: an answer of 1 MB each 10 ms.
        for n in 0..200 {
            speed.record_full();
            speed.delivered(1_000_000, millis(100), millis(100 + 10 * n), false);
        }
        let rate = speed.rate_bytes_per_sec().unwrap();
        assert!((rate / 1e8 - 1.0).abs() < 0.05, "{rate}");
        assert!((19_000_000..21_000_000).contains(&speed.window_bytes()), "{}", speed.window_bytes());
    }

    #[test]
    fn the_rate_decreases_only_if_the_window_was_full() {
        let mut speed = ServerSpeed::default();
        speed.delivered(1_000_000, millis(10), millis(10), false);
        for n in 1..50 {
            speed.delivered(1000, millis(10), millis(10 + 100 * n), n % 2 == 0);
        }
        assert!(speed.rate_bytes_per_sec().unwrap() >= 1e8);
        for n in 50..100 {
            speed.record_full();
            speed.delivered(1_000_000, millis(10), millis(10 + 100 * n), false);
        }
        assert!(speed.rate_bytes_per_sec().unwrap() < 1.2e7, "with a full window");
    }
}
