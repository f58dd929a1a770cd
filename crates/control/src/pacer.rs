//! Pacing: the time of the next packets.
//!
//! A leaky bucket. Released bytes are paid for by waiting; idle time earns at most one quantum, so that a
//! connection does not burst after a pause. Time lost because the process woke up late is made up for.

use std::time::Duration;

use crate::SendLimits;

/// Longest delay of a late sender that is made up for, seconds: a busy host wakes a process some milliseconds
/// late, and a longer delay would become a burst.
const MOST_LATE_SECS: f64 = 20e-3;

/// Pacer of one connection.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    /// Time at which everything released so far is paid for, seconds.
    paid_at_secs: f64,
}

impl Pacer {
    /// Earliest time of the next quantum; not later than `now` if it may be sent at once.
    #[must_use]
    pub fn next_at(&self, now: Duration) -> Duration {
        let wait_secs = self.paid_at_secs - now.as_secs_f64();
        now + Duration::try_from_secs_f64(wait_secs).unwrap_or(Duration::ZERO)
    }

    /// Records bytes sent at `now`, before which there may have been nothing to send.
    pub fn on_sent(&mut self, now: Duration, bytes: u64, limits: &SendLimits) {
        self.pay(now, bytes, limits, limits.quantum_bytes() as f64 / limits.rate_bytes_per_sec());
    }

    /// Records bytes sent at `now` that had waited for their turn: if they are late, the next may be sent
    /// sooner.
    pub fn on_sent_waiting(&mut self, now: Duration, bytes: u64, limits: &SendLimits) {
        let quantum_secs = limits.quantum_bytes() as f64 / limits.rate_bytes_per_sec();
        self.pay(now, bytes, limits, quantum_secs.max(MOST_LATE_SECS));
    }

    fn pay(&mut self, now: Duration, bytes: u64, limits: &SendLimits, credit_secs: f64) {
        let cost_secs = bytes as f64 / limits.rate_bytes_per_sec();
        self.paid_at_secs = self.paid_at_secs.max(now.as_secs_f64() - credit_secs) + cost_secs;
    }

    /// Forgets the released bytes, for a rate so much higher that waiting for the old debt would waste the
    /// path.
    pub fn reset(&mut self, now: Duration) {
        self.paid_at_secs = self.paid_at_secs.min(now.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::even_quantum;

    /// Rates, the quanta of controllers at them, and the allowed variation of bins of 1 ms: four releases of
    /// 31 kB in each, or 3.3 of ten packets.
    const EVEN: [(f64, u64, f64); 2] = [(125e6, 31_250, 0.01), (50e6, 15_000, 0.15)];

    fn even(rate_bytes_per_sec: f64) -> SendLimits {
        SendLimits::new(1500, rate_bytes_per_sec, 1e9, even_quantum(1500, rate_bytes_per_sec))
    }

    /// Sends for `secs` with a timer that wakes up to `late` late; returns the bytes in each bin of 1 ms.
    fn bins(limits: &SendLimits, secs: f64, late: Duration) -> Vec<f64> {
        let mut pacer = Pacer::default();
        let count = Duration::from_secs_f64(secs).as_millis();
        let mut bins: Vec<f64> = (0..count).map(|_| 0.0).collect();
        let (mut now, mut dice) = (Duration::ZERO, 1u64);
        loop {
            let place = usize::try_from(now.as_millis()).unwrap();
            let Some(bin) = bins.get_mut(place) else { return bins };
            *bin += limits.quantum_bytes() as f64;
            pacer.on_sent(now, limits.quantum_bytes(), limits);
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            now = pacer.next_at(now).max(now) + late.mul_f64((dice >> 11) as f64 / (1u64 << 53) as f64);
        }
    }

    fn variation(bins: &[f64]) -> (f64, f64) {
        let mean = bins.iter().sum::<f64>() / bins.len() as f64;
        let square = bins.iter().map(|b| (b - mean).powi(2)).sum::<f64>() / bins.len() as f64;
        (mean * 1e3, square.sqrt() / mean)
    }

    #[test]
    fn the_rate_is_exact_and_even() {
        for (rate, quantum_bytes, most) in EVEN {
            let limits = even(rate);
            assert_eq!(limits.quantum_bytes(), quantum_bytes);
            let (found, cv) = variation(&bins(&limits, 2.0, Duration::ZERO));
            assert!((found / rate - 1.0).abs() < 1e-3, "{found}");
            assert!(cv < most, "coefficient of variation {cv}");
        }
    }

    #[test]
    fn a_late_timer_loses_no_rate() {
        for (rate, _, most) in EVEN {
            let (found, cv) = variation(&bins(&even(rate), 2.0, Duration::from_micros(100)));
            assert!((found / rate - 1.0).abs() < 2e-3, "{found}");
            assert!(cv < most, "coefficient of variation {cv}");
        }
    }

    #[test]
    fn a_sender_that_wakes_up_very_late_keeps_its_rate() {
        // 1 Gb/s, with a timer that fires only every 5 ms.
        let limits = even(125e6);
        let mut pacer = Pacer::default();
        let mut bytes = 0;
        for tick in 0..400 {
            let now = Duration::from_millis(5 * tick);
            while pacer.next_at(now) <= now {
                pacer.on_sent_waiting(now, 31_250, &limits);
                bytes += 31_250;
            }
        }
        assert!((f64::from(bytes) / 2.0 / 125e6 - 1.0).abs() < 0.02, "{bytes}");
    }

    #[test]
    fn an_idle_time_earns_one_quantum() {
        let limits = SendLimits::new(1500, 1.5e6, 1e9, 3_000.0);
        let mut pacer = Pacer::default();
        let now = Duration::from_secs(100);
        pacer.on_sent(now, 3_000, &limits);
        assert!(pacer.next_at(now) <= now, "the quantum that idleness earned");
        pacer.on_sent(now, 3_000, &limits);
        assert_eq!(pacer.next_at(now).saturating_sub(now).as_millis(), 2);
    }
}
