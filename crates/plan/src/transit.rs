//! One-way delays without a common clock: their change shows whether a queue grows in this direction,
//! independently of the other, because the unknown difference of the clocks is constant.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Most packets that a trend is computed from.
const MAX_TRANSITS: usize = 100;
/// Fewest packets that a trend is computed from.
const LEAST_TRANSITS: usize = 12;
/// Thresholds of the pairwise comparison and difference tests (Jain, Dovrolis: pathload, 2002).
const COMPARISON: (f64, f64) = (0.54, 0.66);
const DIFFERENCE: (f64, f64) = (0.45, 0.55);

/// Trend of delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trend {
    /// Delays grow: more is sent than the path carries.
    Growing,
    /// Delays do not grow.
    Steady,
    /// The two tests disagree, or too few packets were sent.
    Unclear,
}

/// One-way delays of packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transit {
    /// Arrival time by the receiver's clock minus send time by the sender's, seconds: exact up to a constant.
    delays_secs: VecDeque<f64>,
}

impl Transit {
    /// Records a packet that was sent at `sent` by the sender's clock and arrived at `received` by the
    /// receiver's; in order of sending.
    pub fn record(&mut self, sent: Duration, received: Duration) {
        if self.delays_secs.len() >= MAX_TRANSITS {
            self.delays_secs.pop_front();
        }
        self.delays_secs.push_back(received.as_secs_f64() - sent.as_secs_f64());
    }

    /// Longest minus shortest delay, seconds: the queue in this direction, including the drift of the clocks.
    #[must_use]
    pub fn queue_secs(&self) -> Option<f64> {
        let least = self.delays_secs.iter().copied().min_by(f64::total_cmp)?;
        let most = self.delays_secs.iter().copied().max_by(f64::total_cmp)?;
        Some(most - least)
    }

    /// Trend of the delays.
    #[must_use]
    pub fn trend(&self) -> Trend {
        if self.delays_secs.len() < LEAST_TRANSITS {
            return Trend::Unclear;
        }
        let medians = self.medians();
        let steps: Vec<f64> =
            medians.windows(2).filter_map(|pair| Some(pair.last()? - pair.first()?)).collect();
        let way: f64 = steps.iter().map(|step| step.abs()).sum();
        let rises = steps.iter().filter(|step| **step > 0.0).count() as f64 / steps.len() as f64;
        let net = if way > 0.0 { steps.iter().sum::<f64>() / way } else { 0.0 };
        match (judge(rises, COMPARISON), judge(net, DIFFERENCE)) {
            (Trend::Growing, Trend::Steady) | (Trend::Steady, Trend::Growing) => Trend::Unclear,
            (Trend::Growing, _) | (_, Trend::Growing) => Trend::Growing,
            (Trend::Steady, _) | (_, Trend::Steady) => Trend::Steady,
            (Trend::Unclear, Trend::Unclear) => Trend::Unclear,
        }
    }

    /// Medians of groups of delays, as many groups as the square root of the number of delays.
    fn medians(&self) -> Vec<f64> {
        let delays: Vec<f64> = self.delays_secs.iter().copied().collect();
        let group = delays.len().isqrt();
        let median = |part: &[f64]| {
            let mut part = part.to_vec();
            part.sort_by(f64::total_cmp);
            part.get(part.len() / 2).copied()
        };
        delays.chunks_exact(group.max(1)).filter_map(median).collect()
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.delays_secs.len() <= MAX_TRANSITS && self.delays_secs.iter().all(|delay| delay.is_finite())
    }
}

fn judge(measured: f64, (steady, growing): (f64, f64)) -> Trend {
    if measured > growing {
        Trend::Growing
    } else if measured < steady {
        Trend::Steady
    } else {
        Trend::Unclear
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates packets sent every millisecond over a path of 20 ms, by clocks that differ by `apart`, with a delay
    /// that grows by `growth` each.
    fn recorded(apart: Duration, growth: Duration, noise: &[u64]) -> Transit {
        let mut transit = Transit::default();
        for (n, noise) in (0_u32..100).zip(noise.iter().cycle()) {
            let sent = Duration::from_millis(1) * n;
            let delay = Duration::from_millis(20) + growth * n + Duration::from_micros(*noise);
            transit.record(sent, sent + delay + apart);
        }
        transit
    }

    #[test]
    fn a_growing_queue_is_detected_with_unsynchronized_clocks() {
        let noise = [120, 10, 350, 80, 260, 0, 190];
        for apart in [Duration::ZERO, Duration::from_secs(86_400)] {
            let growing = recorded(apart, Duration::from_micros(100), &noise);
            assert_eq!(growing.trend(), Trend::Growing);
            assert!((growing.queue_secs().unwrap() - 0.0100).abs() < 0.0005);
            assert_eq!(recorded(apart, Duration::ZERO, &noise).trend(), Trend::Steady);
        }
        assert_eq!(Transit::default().trend(), Trend::Unclear);
    }
}
