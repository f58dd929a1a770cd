//! Hedging: when a response is late, and how many second requests may be sent. Pure: does no input or output.
//!
//! "The tail at scale" (Dean and Barroso, 2013): a second request after the 95th percentile of the usual time, of which
//! the first response is used, costs a few percent and shortens the tail. The usual time is measured as the ratio of
//! the time taken to the time expected, so that parts of all sizes and servers of all speeds are comparable.

use std::time::Duration;

/// Number of second requests, as a fraction of all responses.
pub(super) const HEDGE_SHARE: f64 = 0.05;
/// Maximum number of second requests that are saved up.
const MAX_SAVED: f64 = 8.0;
/// Number of second requests allowed at the start.
const FIRST_SAVED: f64 = 2.0;
/// Number of responses in the estimate.
const REMEMBERED: usize = 64;
/// Minimum number of responses for an estimate.
const ENOUGH: usize = 16;
/// Ratio to the expected time from which a response is late, without an estimate.
const LATE_BY_DEFAULT: f64 = 4.0;
/// Ratio to the usual time from which a response is late, with an estimate.
const LATE_BEYOND_USUAL: f64 = 1.5;
/// Minimum time after which a response is late.
const LATE_AT_LEAST: Duration = Duration::from_millis(10);
/// Time after which a response is late if no expected time is known.
const LATE_WHEN_UNKNOWN: Duration = Duration::from_secs(1);
/// Ratio to the expected time without any response from which a server is silent.
const SILENT_BY: u32 = 4;
/// Minimum time without any response after which a server is silent.
const SILENT_AT_LEAST: Duration = Duration::from_secs(2);
/// Time without any response after which a server is silent, if no expected time is known.
const SILENT_WHEN_UNKNOWN: Duration = Duration::from_secs(10);

/// Usual ratio of the time that a response took to the time that was expected, over the last responses.
#[derive(Default)]
pub(super) struct LatenessEstimate {
    ratios: Vec<f64>,
    next: usize,
    /// The 95th percentile, computed again after every few responses.
    usual: Option<f64>,
}

impl LatenessEstimate {
    /// Records a response.
    pub(super) fn took(&mut self, took: Duration, expected: Duration) {
        let ratio = took.as_secs_f64() / expected.as_secs_f64().max(1e-6);
        if self.ratios.len() < REMEMBERED {
            self.ratios.push(ratio);
        } else {
            self.ratios[self.next] = ratio;
        }
        self.next = (self.next + 1) % REMEMBERED;
        if self.next.is_multiple_of(ENOUGH / 2) && self.ratios.len() >= ENOUGH {
            let mut sorted = self.ratios.clone();
            sorted.sort_by(f64::total_cmp);
            self.usual = sorted.get(sorted.len() * 95 / 100).copied();
        }
    }

    /// Returns the delay after which a response is late.
    pub(super) fn late_after(&self, expected: Option<Duration>) -> Duration {
        let Some(expected) = expected else { return LATE_WHEN_UNKNOWN };
        let times = self.usual.map_or(LATE_BY_DEFAULT, |usual| usual * LATE_BEYOND_USUAL);
        let secs = expected.as_secs_f64() * times;
        Duration::try_from_secs_f64(secs).unwrap_or(LATE_WHEN_UNKNOWN).max(LATE_AT_LEAST)
    }

    /// Returns the delay without any response after which a server counts as silent.
    pub(super) fn silent_after(expected: Option<Duration>) -> Duration {
        expected.map_or(SILENT_WHEN_UNKNOWN, |e| e.saturating_mul(SILENT_BY).max(SILENT_AT_LEAST))
    }
}

/// Number of second requests that may still be sent.
pub(super) struct HedgeBudget(f64);

impl Default for HedgeBudget {
    fn default() -> Self {
        Self(FIRST_SAVED)
    }
}

impl HedgeBudget {
    /// Adds the share of one response.
    pub(super) fn earn(&mut self) {
        self.0 = (self.0 + HEDGE_SHARE).min(MAX_SAVED);
    }

    /// Takes one second request from the budget; returns false if there is none.
    pub(super) fn spend(&mut self) -> bool {
        let is_there = self.0 >= 1.0;
        if is_there {
            self.0 -= 1.0;
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_usual_delay_is_learned() {
        let mut lateness = LatenessEstimate::default();
        assert_eq!(lateness.late_after(None), LATE_WHEN_UNKNOWN);
        assert_eq!(lateness.late_after(Some(SECOND)), SECOND * 4);
        for n in 0..100u32 {
            lateness.took(if n % 30 == 0 { SECOND * 20 } else { SECOND }, SECOND);
        }
        assert_eq!(
            lateness.late_after(Some(SECOND * 2)),
            SECOND * 3,
            "three percent do not change the percentile"
        );
        assert_eq!(lateness.late_after(Some(Duration::ZERO)), LATE_AT_LEAST);
        for _ in 0..REMEMBERED {
            lateness.took(SECOND * 2, SECOND);
        }
        assert_eq!(lateness.late_after(Some(SECOND)), SECOND * 3);
    }

    #[test]
    fn second_requests_are_few() {
        let mut budget = HedgeBudget::default();
        let mut spent = 0;
        for _ in 0..1000 {
            budget.earn();
            spent += u32::from(budget.spend());
        }
        assert!((50..=53).contains(&spent), "{spent} of 1000");
    }
}
