//! `westwood`: Reno's growth; at a loss the window becomes the measured capacity of the path, bandwidth times
//! the smallest round trip (Westwood+: Grieco, Mascolo, CCR 34(2), 2004), so that random losses cost little.

use super::law::{Law, PathSample};

/// Weight of the past in the filter of the bandwidth, per sample (the paper's 0.9).
const KEEP: f64 = 0.9;
/// Shortest interval of a sample, seconds.
const LEAST_SAMPLE_SECS: f64 = 0.05;

/// Westwood law.
#[derive(Debug, Default)]
pub(crate) struct Westwood {
    /// Filtered bandwidth, packets per second.
    bandwidth: f64,
    since: f64,
    acked: f64,
}

impl Westwood {
    fn carried(&self, flight: &PathSample) -> f64 {
        if flight.least_rtt.is_finite() { self.bandwidth * flight.least_rtt } else { 0.0 }
    }
}

impl Law for Westwood {
    fn observe(&mut self, flight: &PathSample) {
        self.acked += flight.acked;
        let secs = flight.at - self.since;
        if secs < flight.rtt.max(LEAST_SAMPLE_SECS) {
            return;
        }
        let sample = self.acked / secs;
        self.bandwidth =
            if self.bandwidth == 0.0 { sample } else { KEEP * self.bandwidth + (1.0 - KEEP) * sample };
        self.since = flight.at;
        self.acked = 0.0;
    }

    fn grow(&mut self, flight: &PathSample, window: f64) -> f64 {
        window + flight.acked / window
    }

    fn shrink(&mut self, flight: &PathSample, window: f64) -> f64 {
        self.carried(flight).min(window)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::flight;
    use super::*;

    #[test]
    fn a_loss_leaves_what_the_path_carries() {
        let mut law = Westwood::default();
        // 1000 packets per second for 20 s; round trip 150 ms, of it 50 ms in a queue.
        for i in 1..=20_000u32 {
            law.observe(&PathSample { acked: 1.0, least_rtt: 0.1, ..flight(f64::from(i) / 1e3, 0.15) });
        }
        let left = law.shrink(&PathSample { least_rtt: 0.1, ..flight(20.0, 0.15) }, 150.0);
        assert!((left - 100.0).abs() < 2.0, "{left}");
    }
}
