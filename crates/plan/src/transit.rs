//! One-way delays without a common clock: how they change shows whether a queue grows on this way, whatever the other
//! does, for the unknown difference of the clocks is the same in each.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Packets that a trend is read from.
const MAX_TRANSITS: usize = 100;
/// Fewer say nothing.
const LEAST_TRANSITS: usize = 12;
/// Thresholds of the pairwise comparison and difference tests (Jain, Dovrolis: pathload, 2002).
const COMPARISON: (f64, f64) = (0.54, 0.66);
const DIFFERENCE: (f64, f64) = (0.45, 0.55);

/// Trend of delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trend {
    /// They grow: more is sent than gets through.
    Growing,
    /// They do not.
    Steady,
    /// The two tests disagree, or too little was sent.
    Unclear,
}

/// Times of packets on one way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transit {
    /// Arrival by the receiver's clock minus departure by the sender's, seconds: right but for a constant.
    delays_secs: VecDeque<f64>,
}

impl Transit {
    /// A packet left at `sent` of its sender's clock and arrived at `received` of its receiver's; in order of departure.
    pub fn record(&mut self, sent: Duration, received: Duration) {
        if self.delays_secs.len() >= MAX_TRANSITS {
            self.delays_secs.pop_front();
        }
        self.delays_secs.push_back(received.as_secs_f64() - sent.as_secs_f64());
    }

    /// Longest minus shortest delay, seconds: the queue on this way, clocks' drift included.
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

    /// Delays are grouped, and the median of each group counts: as many as the square root of their number.
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

    /// Packets a millisecond apart over 20 ms, by clocks that differ by `apart`, with a delay that grows by so much each.
    fn told(apart: Duration, growth: Duration, noise: &[u64]) -> Transit {
        let mut transit = Transit::default();
        for (n, noise) in (0_u32..100).zip(noise.iter().cycle()) {
            let sent = Duration::from_millis(1) * n;
            let delay = Duration::from_millis(20) + growth * n + Duration::from_micros(*noise);
            transit.record(sent, sent + delay + apart);
        }
        transit
    }

    #[test]
    fn a_growing_queue_shows_whatever_the_clocks_say() {
        let noise = [120, 10, 350, 80, 260, 0, 190];
        for apart in [Duration::ZERO, Duration::from_secs(86_400)] {
            let growing = told(apart, Duration::from_micros(100), &noise);
            assert_eq!(growing.trend(), Trend::Growing);
            assert!((growing.queue_secs().unwrap() - 0.0100).abs() < 0.0005);
            assert_eq!(told(apart, Duration::ZERO, &noise).trend(), Trend::Steady);
        }
        assert_eq!(Transit::default().trend(), Trend::Unclear);
    }
}
