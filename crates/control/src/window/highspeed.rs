//! `highspeed`: HighSpeed TCP (RFC 3649). The response function is a line in log-log space from Reno's at 38 packets
//! and a loss of 10^-3 to 83,000 packets at 10^-7.

use super::law::{Law, PathSample};

/// Window below which the law is Reno's (the RFC's `Low_Window`).
const LOW_PACKETS: f64 = 38.0;
/// Upper window of the response function (the RFC's `High_Window`).
const HIGH_PACKETS: f64 = 83_000.0;
/// Decrease at `HIGH_PACKETS` (the RFC's `High_Decrease`).
const HIGH_CUT: f64 = 0.1;

/// HighSpeed TCP law.
#[derive(Debug)]
pub(crate) struct HighSpeed;

/// Decrease b(w) (section 5).
fn cut(window: f64) -> f64 {
    let place = (window / LOW_PACKETS).ln() / (HIGH_PACKETS / LOW_PACKETS).ln();
    (0.5 + (HIGH_CUT - 0.5) * place).clamp(HIGH_CUT, 0.5)
}

/// Increase a(w) (section 5): w^2 p(w) 2 b(w) / (2 - b(w)), with p(w) = 0.078 / w^1.2.
fn step(window: f64) -> f64 {
    let loss = 0.078 / window.powf(1.2);
    let cut = cut(window);
    (window * window * loss * 2.0 * cut / (2.0 - cut)).max(1.0)
}

impl Law for HighSpeed {
    fn grow(&mut self, flight: &PathSample, window: f64) -> f64 {
        let step = if window <= LOW_PACKETS { 1.0 } else { step(window) };
        window + step * flight.acked / window
    }

    fn shrink(&mut self, _: &PathSample, window: f64) -> f64 {
        if window <= LOW_PACKETS { window / 2.0 } else { window * (1.0 - cut(window)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_cuts_are_those_of_the_table() {
        // RFC 3649, appendix B: w, a(w), b(w). The table rounds a(w) down to whole packets of its own recursion.
        for (window, a, b) in [
            (38.0, 1.0, 0.50),
            (118.0, 2.0, 0.44),
            (1058.0, 8.0, 0.33),
            (5610.0, 21.0, 0.25),
            (26864.0, 45.0, 0.16),
            (84035.0, 71.0, 0.10),
        ] {
            assert!((step(window) - a).abs() <= 0.1 * a + 0.5, "a({window}) = {}", step(window));
            assert!((cut(window) - b).abs() < 0.012, "b({window}) = {}", cut(window));
        }
    }
}
