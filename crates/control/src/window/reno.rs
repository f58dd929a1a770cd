//! `reno`: one packet more per round trip, half the window at a loss (RFC 5681; one reduction per loss event
//! as in NewReno, RFC 6582). Its rate is about 1.22 packets / (RTT sqrt(p)) (Mathis et al. 1997, with an
//! acknowledgement per packet).

use super::law::{Law, PathSample};

/// Reno law.
#[derive(Debug)]
pub(crate) struct Reno;

impl Law for Reno {
    fn grow(&mut self, flight: &PathSample, window: f64) -> f64 {
        window + flight.acked / window
    }

    fn shrink(&mut self, _: &PathSample, window: f64) -> f64 {
        window / 2.0
    }
}
