//! Operations of one client that are being answered: how many, and the bytes of their parameters. Each gives both back
//! when it ends, even if others that began together with it go on.

use std::sync::Arc;

use array::{Error, ErrorKind};
use tokio::sync::Notify;
use wire::{Limiter, Permit};

/// Operations of one client that are being answered, and the rest of those that begin together; the others wait, the
/// least urgent longest.
const MAX_RUNNING: u64 = 1024;
/// Each tier above background has room for this many more.
const RUNNING_PER_TIER: u64 = 128;
/// Parameters of those that are being answered, bytes; ours take less than 1 KiB each.
const MAX_PARAMETER_BYTES: u64 = 4 << 20;

/// Counts the operations of one connection that have begun and not ended.
pub(crate) struct OperationLimit {
    running: Limiter,
    parameter_bytes: Limiter,
    ended: Arc<Notify>,
}

impl OperationLimit {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self {
            running: Limiter::new(MAX_RUNNING),
            parameter_bytes: Limiter::new(MAX_PARAMETER_BYTES),
            ended: Arc::default(),
        }
    }

    /// Lowest tier of which more may begin now.
    pub(crate) fn least_tier(&self) -> u8 {
        let Some(beyond) = self.running.used().checked_sub(MAX_RUNNING) else { return 0 };
        u8::try_from(beyond / RUNNING_PER_TIER + 1).unwrap_or(u8::MAX)
    }

    /// Begins operations that came together, given by the bytes of their parameters: the first ones, as many as these
    /// fit. Whether they are too many is asked before they come.
    pub(crate) fn begin(&self, parameter_bytes: impl Iterator<Item = usize>) -> Vec<OperationPermit> {
        let begin = |bytes: usize| {
            let parameters = self.parameter_bytes.try_acquire(bytes as u64)?;
            let mut running = self.running.permit();
            running.grow_to(1);
            Some(OperationPermit { running, parameters, ended: Arc::clone(&self.ended) })
        };
        parameter_bytes.map_while(begin).collect()
    }

    /// Waits until one has ended since it was last waited for. One waits at a time.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub(crate) async fn ended(&self) {
        self.ended.notified().await;
    }
}

/// Error of an operation whose parameters do not fit.
pub(crate) fn too_many_parameters() -> Error {
    let what = format!("expected at most {MAX_PARAMETER_BYTES} bytes of parameters under way, found more");
    Error::new(ErrorKind::Busy, what)
}

/// Part of one operation in the limit, until it is dropped.
pub(crate) struct OperationPermit {
    running: Permit,
    parameters: Permit,
    ended: Arc<Notify>,
}

impl Drop for OperationPermit {
    fn drop(&mut self) {
        self.running.shrink_to(0);
        self.parameters.shrink_to(0);
        // Only now: whoever is woken looks at once.
        self.ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_those_that_come_together_the_first_are_taken_as_far_as_they_fit() {
        const MAX: usize = 4 << 20;
        let limit = OperationLimit::new();
        let _before = limit.begin([MAX - 7].into_iter());
        let fitting = |sizes: &[usize]| limit.begin(sizes.iter().copied()).len();
        assert_eq!(fitting(&[3, 3, 3, 1]), 2);
        assert_eq!(fitting(&[3, 4]), 2);
        assert_eq!(fitting(&[8, 1]), 0);
        assert_eq!(fitting(&[]), 0);
    }

    #[test]
    fn the_least_urgent_wait_longest() {
        let limit = OperationLimit::new();
        let mut begun = Vec::new();
        let mut least_tier_of = |running: usize| {
            begun.extend(limit.begin(std::iter::repeat_n(0, running - begun.len())));
            limit.least_tier()
        };
        assert_eq!([0, 1023, 1024, 1151, 1152, 1536].map(&mut least_tier_of), [0, 0, 1, 1, 2, 5]);
        drop(begun);
        assert_eq!(limit.least_tier(), 0);
    }
}
