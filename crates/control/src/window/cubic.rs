//! `cubic`: the window is a cubic function of the time since the last loss, flat where the loss was (RFC 9438). Where
//! Reno would be faster, it follows Reno.

use super::law::{Law, PathSample};

/// Packets per second cubed (RFC 9438, section 5).
const C: f64 = 0.4;
/// Factor of the window after a loss.
const BETA: f64 = 0.7;
/// Growth of the Reno estimate per round trip (section 4.3): 3 (1 - beta) / (1 + beta).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// CUBIC law.
#[derive(Debug, Default)]
pub(crate) struct Cubic {
    /// Window at the last loss, packets; lower after a loss before it was reached (section 4.7).
    most: f64,
    /// Start of this epoch, seconds, and the window then.
    epoch: Option<(f64, f64)>,
    /// Window that Reno would have.
    reno: f64,
}

impl Cubic {
    /// Window of the cubic function, `W_cubic(t)` (equations 1 and 2).
    fn target(&self, since_secs: f64, from: f64) -> f64 {
        let k = ((self.most - from).max(0.0) / C).cbrt();
        C * (since_secs - k).powi(3) + self.most.max(from)
    }
}

impl Law for Cubic {
    fn grow(&mut self, flight: &PathSample, window: f64) -> f64 {
        let (began, from) = *self.epoch.get_or_insert_with(|| {
            self.reno = window;
            (flight.at, window)
        });
        let alpha = if self.reno < self.most { ALPHA } else { 1.0 };
        self.reno += alpha * flight.acked / window;
        let since = flight.at - began;
        if self.target(since, from) < self.reno {
            return window.max(self.reno);
        }
        let target = self.target(since + flight.rtt, from).clamp(window, 1.5 * window);
        window + (target - window) * flight.acked / window
    }

    fn shrink(&mut self, _: &PathSample, window: f64) -> f64 {
        self.most = if window < self.most { window * (1.0 + BETA) / 2.0 } else { window };
        self.epoch = None;
        window * BETA
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{flight, run};
    use super::*;

    #[test]
    fn the_window_follows_the_cubic_function() {
        // After a loss at 10,000 packets: W(t) = 0.4 (t - K)^3 + 10,000 with K = cbrt(3,000 / 0.4) = 19.6 s.
        let mut law = Cubic::default();
        let from = law.shrink(&flight(0.0, 0.1), 10_000.0);
        assert!((from - 7_000.0).abs() < 1e-9);
        for (secs, expected) in [(5.0, 8_763.0), (19.6, 10_000.0), (25.0, 10_063.0), (35.0, 11_466.0)] {
            let mut law = Cubic { most: law.most, epoch: None, reno: 0.0 };
            let window = run(&mut law, from, 0.1, secs);
            assert!((window / expected - 1.0).abs() < 0.01, "W({secs}) = {window}, expected {expected}");
        }
    }

    #[test]
    fn on_short_paths_it_is_not_slower_than_reno() {
        let mut law = Cubic::default();
        let from = law.shrink(&flight(0.0, 0.01), 50.0);
        let window = run(&mut law, from, 0.01, 1.0);
        // Reno's estimate: 0.53 packets per round trip from 35, one packet above 50.
        assert!(window > 75.0, "{window}");
    }

    #[test]
    fn a_loss_before_the_old_maximum_releases_more() {
        let mut law = Cubic::default();
        law.shrink(&flight(0.0, 0.1), 1_000.0);
        law.shrink(&flight(1.0, 0.1), 800.0);
        assert!((law.most - 680.0).abs() < 1e-9);
    }
}
