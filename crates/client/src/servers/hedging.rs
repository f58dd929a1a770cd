//! When an answer is late, and how many may be asked for a second time. Pure.
//!
//! "The tail at scale" (Dean and Barroso, 2013): a second request after the 95th percentile of the usual time, first
//! answer wins, costs a few percent and cuts the tail. Usual is measured as time taken over time expected, so
//! that pieces of all sizes and servers of all speeds are of one kind.

use std::time::Duration;

/// Second requests, as a share of all that were answered.
pub(super) const HEDGE_SHARE: f64 = 0.05;
/// Second requests that may be saved up.
const MAX_SAVED: f64 = 8.0;
/// There from the start.
const FIRST_SAVED: f64 = 2.0;
/// Answers remembered.
const REMEMBERED: usize = 64;
/// Answers needed before they say what is usual.
const ENOUGH: usize = 16;
/// So many times the expected time is late, while it is not known what is usual.
const LATE_BY_DEFAULT: f64 = 4.0;
/// So many times the usual time is late, once that is known.
const LATE_BEYOND_USUAL: f64 = 1.5;
/// Late at the earliest.
const LATE_AT_LEAST: Duration = Duration::from_millis(10);
/// Late where nothing is known.
const LATE_WHEN_UNKNOWN: Duration = Duration::from_secs(1);
/// So many times the expected time without any answer at all is silence.
const SILENT_BY: u32 = 4;
/// Silent at the earliest.
const SILENT_AT_LEAST: Duration = Duration::from_secs(2);
/// Silent where nothing is known.
const SILENT_WHEN_UNKNOWN: Duration = Duration::from_secs(10);

/// Usual ratio of the time that an answer took to the time that was expected, over the last answers.
#[derive(Default)]
pub(super) struct LatenessEstimate {
    ratios: Vec<f64>,
    next: usize,
    /// The 95th percentile, looked up anew every few answers.
    usual: Option<f64>,
}

impl LatenessEstimate {
    /// An answer came.
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

    /// After how long an answer is late.
    pub(super) fn late_after(&self, expected: Option<Duration>) -> Duration {
        let Some(expected) = expected else { return LATE_WHEN_UNKNOWN };
        let times = self.usual.map_or(LATE_BY_DEFAULT, |usual| usual * LATE_BEYOND_USUAL);
        let secs = expected.as_secs_f64() * times;
        Duration::try_from_secs_f64(secs).unwrap_or(LATE_WHEN_UNKNOWN).max(LATE_AT_LEAST)
    }

    /// After how long without any answer a server counts as silent.
    pub(super) fn silent_after(expected: Option<Duration>) -> Duration {
        expected.map_or(SILENT_WHEN_UNKNOWN, |e| e.saturating_mul(SILENT_BY).max(SILENT_AT_LEAST))
    }
}

/// Second requests that may still be made.
pub(super) struct HedgeBudget(f64);

impl Default for HedgeBudget {
    fn default() -> Self {
        Self(FIRST_SAVED)
    }
}

impl HedgeBudget {
    /// Something was answered.
    pub(super) fn earn(&mut self) {
        self.0 = (self.0 + HEDGE_SHARE).min(MAX_SAVED);
    }

    /// Takes one, if there is one.
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
    fn what_is_usual_is_learnt() {
        let mut lateness = LatenessEstimate::default();
        assert_eq!(lateness.late_after(None), LATE_WHEN_UNKNOWN);
        assert_eq!(lateness.late_after(Some(SECOND)), SECOND * 4);
        for n in 0..100u32 {
            lateness.took(if n % 30 == 0 { SECOND * 20 } else { SECOND }, SECOND);
        }
        assert_eq!(lateness.late_after(Some(SECOND * 2)), SECOND * 3, "three percent are no habit");
        assert_eq!(lateness.late_after(Some(Duration::ZERO)), LATE_AT_LEAST);
        for _ in 0..REMEMBERED {
            lateness.took(SECOND * 2, SECOND);
        }
        assert_eq!(lateness.late_after(Some(SECOND)), SECOND * 3);
    }

    #[test]
    fn second_requests_are_few() {
        let mut allowance = HedgeBudget::default();
        let mut spent = 0;
        for _ in 0..1000 {
            allowance.earn();
            spent += u32::from(allowance.spend());
        }
        assert!((50..=53).contains(&spent), "{spent} of 1000");
    }
}
