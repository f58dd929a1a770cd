//! Interface of the laws by which the controllers of TCP's family change the window.

use std::fmt::Debug;

/// State of the path at an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathSample {
    /// Seconds since the start.
    pub(crate) at: f64,
    /// Latest round trip, seconds.
    pub(crate) rtt: f64,
    /// Smallest round trip so far, seconds.
    pub(crate) least_rtt: f64,
    /// True when this acknowledgement ended a round trip.
    pub(crate) is_round: bool,
    /// Packets newly acknowledged.
    pub(crate) acked: f64,
}

/// Law by which one controller changes the window, in packets.
pub(crate) trait Law: Debug + Send {
    /// Congestion avoidance: returns the window after `flight.acked` packets.
    fn grow(&mut self, flight: &PathSample, window: f64) -> f64;

    /// Returns the window after a loss event.
    fn shrink(&mut self, flight: &PathSample, window: f64) -> f64;

    /// Returns the slow start threshold after a timeout; the window then restarts from its minimum.
    fn time_out(&mut self, flight: &PathSample, window: f64) -> f64 {
        self.shrink(flight, window)
    }

    /// Observes an acknowledgement, whatever the window does.
    fn observe(&mut self, _flight: &PathSample) {}

    /// Slow start: returns the window after `flight.acked` packets, and whether slow start ends here.
    fn start(&mut self, flight: &PathSample, window: f64) -> (f64, bool) {
        (window + flight.acked, false)
    }
}
