//! `bic`: a binary search for the window between the one that lost and the one after it (Xu, Harfoush, Rhee, "Binary
//! Increase Congestion Control", INFOCOM 2004): half the distance per round trip, at most [`MOST_STEP`]; beyond the old
//! maximum the same in reverse.

use super::law::{Law, PathSample};

/// Window below which the law is Reno's, packets.
const LOW_PACKETS: f64 = 14.0;
/// Most packets per round trip (the paper's Smax).
const MOST_STEP: f64 = 32.0;
/// Fewest packets per round trip (the paper's Smin).
const LEAST_STEP: f64 = 0.01;
/// Factor of the window after a loss.
const BETA: f64 = 0.8;

/// BIC law.
#[derive(Debug, Default)]
pub(crate) struct Bic {
    /// Window at the last loss, packets.
    most: f64,
}

impl Bic {
    /// Packets per round trip.
    fn step(&self, window: f64) -> f64 {
        if window < self.most {
            return ((self.most - window) / 2.0).clamp(LEAST_STEP, MOST_STEP);
        }
        // Maximum probing: near the maximum as slow as the search was, then twice as fast each round trip.
        (window - self.most).clamp(1.0, MOST_STEP)
    }
}

impl Law for Bic {
    fn grow(&mut self, flight: &PathSample, window: f64) -> f64 {
        let step = if window < LOW_PACKETS { 1.0 } else { self.step(window) };
        window + step * flight.acked / window
    }

    fn shrink(&mut self, _: &PathSample, window: f64) -> f64 {
        if window < LOW_PACKETS {
            self.most = window;
            return window / 2.0;
        }
        // Fast convergence: a flow that lost before its old maximum yields.
        self.most = if window < self.most { window * (1.0 + BETA) / 2.0 } else { window };
        window * BETA
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::flight;
    use super::*;

    /// Windows at the ends of round trips.
    fn rounds(law: &mut Bic, mut window: f64, count: usize) -> Vec<f64> {
        (0..count)
            .map(|_| {
                let step = law.step(window);
                let one = PathSample { acked: window, ..flight(0.0, 0.1) };
                window = law.grow(&one, window);
                assert!(window <= window + step);
                window
            })
            .collect()
    }

    #[test]
    fn the_search_is_linear_then_binary_then_probes_beyond() {
        let mut law = Bic::default();
        let from = law.shrink(&flight(0.0, 0.1), 1_000.0);
        assert!((from - 800.0).abs() < 1e-9);
        let windows = rounds(&mut law, from, 20);
        // 200 packets away: 32 per round trip while more than 64 are missing, then halves.
        assert!((windows[3] - 928.0).abs() < 1e-6 && (windows[4] - 960.0).abs() < 1e-6, "{windows:?}");
        assert!((windows[5] - 980.0).abs() < 1e-6 && (windows[6] - 990.0).abs() < 1e-6, "{windows:?}");
        let beyond = rounds(&mut law, 1_001.0, 7);
        assert!((beyond[0] - 1_002.0).abs() < 1e-6 && (beyond[4] - 1_032.0).abs() < 1e-6, "{beyond:?}");
        assert!((beyond[6] - beyond[5] - 32.0).abs() < 1e-6, "{beyond:?}");
    }
}
