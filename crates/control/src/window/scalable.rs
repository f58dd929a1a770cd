//! `scalable`: a hundredth of a packet more per acknowledgement, an eighth less at a loss (Kelly, "Scalable TCP", 2003):
//! the time to recover does not depend on the window. Below [`LOW_PACKETS`] it is Reno.

use super::law::{Law, PathSample};

/// Packets per acknowledgement (the paper's a).
const STEP: f64 = 0.01;
/// Part given up at a loss (the paper's b).
const CUT: f64 = 0.125;
/// Window below which the law is Reno's (the paper's legacy window).
const LOW_PACKETS: f64 = 16.0;

/// Scalable TCP law.
#[derive(Debug)]
pub(crate) struct Scalable;

impl Law for Scalable {
    fn grow(&mut self, flight: &PathSample, window: f64) -> f64 {
        if window <= LOW_PACKETS { window + flight.acked / window } else { window + STEP * flight.acked }
    }

    fn shrink(&mut self, _: &PathSample, window: f64) -> f64 {
        if window <= LOW_PACKETS { window / 2.0 } else { window * (1.0 - CUT) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{flight, rounds_to};
    use super::*;

    #[test]
    fn recovery_takes_as_long_at_any_window() {
        // Claim of the paper: log(1/(1-b)) / log(1+a), about 13.4 round trips.
        for window in [100.0, 10_000.0, 1e6] {
            let shrunk = Scalable.shrink(&flight(0.0, 0.1), window);
            let rounds = rounds_to(&mut Scalable, shrunk, window, 0.1);
            assert!((13..=14).contains(&rounds), "{rounds} rounds from {shrunk}");
        }
    }
}
