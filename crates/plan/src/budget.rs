//! Budget of probing: a limit of bytes per network and hour, and one probe of a bottleneck at a time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::estimate::FAR_AHEAD;

/// Most bytes that probes of all hosts behind one bottleneck send within any hour, both directions together.
pub const PATH_BYTES_PER_HOUR: u64 = 32 << 20;
/// Most bytes that all probes of a user send within any hour.
pub const ALL_BYTES_PER_HOUR: u64 = 256 << 20;
/// Time after which a probe that never reported its end counts as ended.
pub const PROBE_WITHIN: Duration = Duration::from_secs(60);
const HOUR_SECS: f64 = 3600.0;

/// Recently spent bytes, as a leaky bucket. It holds half of the hourly limit and leaks as much in an hour,
/// so at most the limit passes within any hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeBudget {
    level_bytes: f64,
    at: Duration,
    busy_until: Duration,
}

/// Reason why nothing may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMuch {
    /// Another probe is in progress.
    Busy,
    /// The budget allows the bytes after this time.
    Spent(Duration),
}

impl ProbeBudget {
    /// Takes `bytes` from a budget of `bytes_per_hour`.
    ///
    /// # Errors
    /// [`TooMuch::Spent`] with the time to wait.
    pub fn spend(&mut self, now: Duration, bytes: u64, bytes_per_hour: u64) -> Result<(), TooMuch> {
        let room = bytes_per_hour as f64 / 2.0;
        // A date written by a wrong clock is discarded: nothing would leak until that time.
        if self.at > now + FAR_AHEAD {
            (self.level_bytes, self.at) = (0.0, now);
        }
        // Nothing leaks when the clock was set back a little.
        let leaked = now.saturating_sub(self.at).as_secs_f64() / HOUR_SECS * room;
        let level = (self.level_bytes - leaked).max(0.0) + bytes as f64;
        if level > room {
            let wait_secs = (level - room) / room * HOUR_SECS;
            return Err(TooMuch::Spent(Duration::try_from_secs_f64(wait_secs).unwrap_or(Duration::MAX)));
        }
        (self.level_bytes, self.at) = (level, now.max(self.at));
        Ok(())
    }

    /// Begins a probe.
    ///
    /// # Errors
    /// [`TooMuch::Busy`] while another one is in progress.
    pub fn begin(&mut self, now: Duration) -> Result<(), TooMuch> {
        // A time far ahead was written by a wrong clock.
        if (now + Duration::from_nanos(1)..=now + PROBE_WITHIN).contains(&self.busy_until) {
            return Err(TooMuch::Busy);
        }
        self.busy_until = now + PROBE_WITHIN;
        Ok(())
    }

    /// Ends the probe.
    pub fn end(&mut self) {
        self.busy_until = Duration::ZERO;
    }

    /// Returns whether a stored budget is valid.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        (0.0..=ALL_BYTES_PER_HOUR as f64).contains(&self.level_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_000_000);

    #[test]
    fn no_hour_exceeds_the_budget() {
        let mut budget = ProbeBudget::default();
        let mut spent: Vec<(u64, u64)> = Vec::new();
        // A train is requested every second of a day, of sizes from 24 kB to 745 kB.
        for second in 0..86_400_u64 {
            let bytes = 24_000 + second * 7919 % 721_000;
            if budget.spend(NOW + Duration::from_secs(second), bytes, PATH_BYTES_PER_HOUR).is_ok() {
                spent.push((second, bytes));
            }
        }
        let within = |from: u64| {
            spent
                .iter()
                .filter(|(at, _)| (from..from + 3600).contains(at))
                .map(|(_, bytes)| bytes)
                .sum::<u64>()
        };
        let most = (0..82_800).step_by(60).map(within).max().unwrap();
        assert!(most <= PATH_BYTES_PER_HOUR, "{most}");
        assert!(within(0) > PATH_BYTES_PER_HOUR * 9 / 10, "the allowed bytes are granted: {}", within(0));
    }

    #[test]
    fn a_refusal_states_the_time_to_wait() {
        let mut budget = ProbeBudget::default();
        budget.spend(NOW, 5000, 10_000).unwrap();
        let Err(TooMuch::Spent(wait)) = budget.spend(NOW, 1000, 10_000) else { panic!("the budget is full") };
        assert_eq!(wait, Duration::from_secs(720), "a fifth of the bytes that leak in an hour");
        assert!(budget.spend(NOW + wait, 1000, 10_000).is_ok());
    }

    #[test]
    fn a_budget_of_a_clock_far_ahead_is_discarded() {
        let mut budget = ProbeBudget::default();
        budget.spend(NOW * 2, 5000, 10_000).unwrap();
        assert_eq!(budget.spend(NOW, 5000, 10_000), Ok(()));
        assert!(budget.spend(NOW, 1000, 10_000).is_err(), "the budget counts from then on");
        let a_little = Duration::from_secs(60);
        assert!(
            budget.spend(NOW - a_little, 1000, 10_000).is_err(),
            "nothing leaks while the clock is set back a little"
        );
    }

    #[test]
    fn one_probe_at_a_time_even_if_one_never_ends() {
        let mut budget = ProbeBudget::default();
        budget.begin(NOW).unwrap();
        assert_eq!(budget.begin(NOW + PROBE_WITHIN / 2), Err(TooMuch::Busy));
        assert_eq!(budget.begin(NOW + PROBE_WITHIN), Ok(()), "the first one has expired");
        budget.end();
        assert_eq!(budget.begin(NOW + PROBE_WITHIN), Ok(()));
        assert_eq!(budget.begin(Duration::ZERO), Ok(()), "a clock was set back");
    }
}
