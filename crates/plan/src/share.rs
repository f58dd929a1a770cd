//! Share of packets with a property (lost, reordered): counts that fade, and a confidence interval.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::estimate::{Estimate, MAX_AGE, confidence_share_at, latest_record};

/// Quantile of the normal distribution for 95 %.
const Z: f64 = 1.96;
/// Most packets counted: earlier ones weigh no more than this many.
const MOST_PACKETS: f64 = 1e9;

/// Share of packets, 0 to 1; old packets count less.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacketShare {
    hit_packets: f64,
    packets: f64,
    at: Duration,
    /// Number of records.
    #[serde(rename = "told")]
    records: u32,
}

impl PacketShare {
    /// Records `hit` of `packets`; more than all count as all.
    pub fn record(&mut self, at: Duration, hit: u64, packets: u64) {
        if packets == 0 {
            return;
        }
        let at = latest_record(self.at, at);
        let new = (packets as f64).min(MOST_PACKETS);
        let new_hit = hit.min(packets) as f64 / packets as f64 * new;
        let kept =
            confidence_share_at(at.saturating_sub(self.at)).min((MOST_PACKETS - new) / self.packets.max(1.0));
        self.hit_packets = self.hit_packets * kept + new_hit;
        self.packets = self.packets * kept + new;
        (self.at, self.records) = (at, self.records.saturating_add(1));
    }

    /// Share, with Wilson's interval (1927), which also holds for a count of zero.
    #[must_use]
    pub fn estimate(&self, now: Duration) -> Option<Estimate> {
        let age = now.saturating_sub(self.at);
        if self.packets <= 0.0 || age > MAX_AGE {
            return None;
        }
        let (n, share) = (self.packets, self.hit_packets / self.packets);
        let square = Z * Z / n;
        let center = (share + square / 2.0) / (1.0 + square);
        let half = Z / (1.0 + square) * (share * (1.0 - share) / n + square / (4.0 * n)).max(0.0).sqrt();
        let interval = ((center - half).max(0.0), (center + half).min(1.0));
        Some(Estimate::new(share, interval, self.records as usize, age))
    }

    pub(crate) fn is_sound(&self) -> bool {
        let is_count = |n: f64| (0.0..=MOST_PACKETS * (1.0 + 1e-9)).contains(&n);
        is_count(self.hit_packets)
            && is_count(self.packets)
            && self.hit_packets <= self.packets * (1.0 + 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::HALF_LIFE;

    #[test]
    fn zero_losses_among_few_packets_have_a_wide_interval() {
        let mut loss = PacketShare::default();
        assert!(loss.estimate(Duration::ZERO).is_none());
        loss.record(Duration::ZERO, 0, 100);
        let few = loss.estimate(Duration::ZERO).unwrap();
        assert!(few.value.abs() < 1e-12 && (0.03..0.04).contains(&few.high), "{few:?}");
        loss.record(Duration::ZERO, 0, 1_000_000);
        assert!(loss.estimate(Duration::ZERO).unwrap().high < 1e-5);
    }

    #[test]
    fn old_samples_count_half() {
        let mut loss = PacketShare::default();
        loss.record(Duration::ZERO, 200, 1000);
        loss.record(HALF_LIFE, 0, 500);
        assert!((loss.estimate(HALF_LIFE).unwrap().value - 0.1).abs() < 1e-9);
        assert!(loss.estimate(HALF_LIFE + MAX_AGE * 2).is_none());
    }
}
