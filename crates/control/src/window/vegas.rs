//! `vegas`: keeps two to four packets in the queue (Brakmo, Peterson, JSAC 13(8), 1995). Once per round trip
//! it compares the expected rate without queue with the actual one: diff = window (1 - least RTT / RTT).

use super::law::{Law, PathSample};

/// Packets in the queue below which the window grows by one (the paper's alpha).
const FEW: f64 = 2.0;
/// Packets in the queue above which the window shrinks by one (beta).
const MANY: f64 = 4.0;
/// Packets in the queue above which slow start ends (gamma).
const START_ENDS: f64 = 1.0;

/// Vegas law.
#[derive(Debug)]
pub(crate) struct Vegas {
    /// Smallest round trip of the current round, seconds, which delayed acknowledgements distort least.
    round_rtt: f64,
    grows_this_round: bool,
}

impl Vegas {
    pub(crate) fn new() -> Self {
        Self { round_rtt: f64::INFINITY, grows_this_round: true }
    }

    /// Packets in the queue; ends the round.
    fn queued(&mut self, flight: &PathSample, window: f64) -> f64 {
        let rtt = std::mem::replace(&mut self.round_rtt, f64::INFINITY);
        if rtt.is_finite() { window * (1.0 - flight.least_rtt / rtt) } else { 0.0 }
    }
}

impl Law for Vegas {
    fn observe(&mut self, flight: &PathSample) {
        self.round_rtt = self.round_rtt.min(flight.rtt);
    }

    /// Doubles every other round trip.
    fn start(&mut self, flight: &PathSample, window: f64) -> (f64, bool) {
        if flight.is_round {
            self.grows_this_round = !self.grows_this_round;
            let queued = self.queued(flight, window);
            if queued > START_ENDS {
                return (window - queued, true);
            }
        }
        (if self.grows_this_round { window + flight.acked } else { window }, false)
    }

    fn grow(&mut self, flight: &PathSample, window: f64) -> f64 {
        if !flight.is_round {
            return window;
        }
        match self.queued(flight, window) {
            queued if queued < FEW => window + 1.0,
            queued if queued > MANY => window - 1.0,
            _ => window,
        }
    }

    fn shrink(&mut self, _: &PathSample, window: f64) -> f64 {
        window * 0.75
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::flight;
    use super::*;

    #[test]
    fn it_settles_with_two_to_four_packets_in_the_queue() {
        let mut law = Vegas::new();
        // A path that carries 100 packets in 100 ms: everything above them waits.
        let mut window = 50.0;
        for round in 0..200u32 {
            let rtt = 0.1 * (window / 100.0f64).max(1.0);
            let now =
                PathSample { least_rtt: 0.1, is_round: true, acked: window, ..flight(f64::from(round), rtt) };
            law.observe(&now);
            window = law.grow(&now, window);
        }
        assert!((102.0..=104.5).contains(&window), "{window}");
    }
}
