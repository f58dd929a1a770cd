//! Limit of one client's running operations: their number, and the bytes of their parameters. Each operation frees its
//! part when it ends, even if others of its batch are still running.

use std::sync::Arc;

use array::{Error, ErrorKind};
use tokio::sync::Notify;
use wire::{Limiter, Permit};

/// Maximum number of running operations of one client, which the last batch may exceed; further ones wait, the most
/// urgent first.
const MAX_RUNNING: u64 = 1024;
/// Number of operations that each tier above background may run beyond the maximum.
const RUNNING_PER_TIER: u64 = 128;
/// Maximum number of parameter bytes of the running operations of one client; Corridor's clients send less than 1 KiB
/// each.
const MAX_PARAMETER_BYTES: u64 = 4 << 20;

/// Running operations of one connection: begun and not ended.
pub(crate) struct OperationLimit {
    running: Limiter,
    parameter_bytes: Limiter,
    ended: Arc<Notify>,
}

impl OperationLimit {
    /// Creates a limit without running operations.
    pub(crate) fn new() -> Self {
        Self {
            running: Limiter::new(MAX_RUNNING),
            parameter_bytes: Limiter::new(MAX_PARAMETER_BYTES),
            ended: Arc::default(),
        }
    }

    /// Returns the lowest tier of which operations may begin now.
    pub(crate) fn least_tier(&self) -> u8 {
        let Some(beyond) = self.running.used().checked_sub(MAX_RUNNING) else { return 0 };
        u8::try_from(beyond / RUNNING_PER_TIER + 1).unwrap_or(u8::MAX)
    }

    /// Begins the operations of a batch, given by the bytes of their parameters: the first ones, as long as these fit.
    /// Their number is not checked here; the caller checks [`least_tier`](Self::least_tier) before it takes a batch.
    pub(crate) fn begin(&self, parameter_bytes: impl Iterator<Item = usize>) -> Vec<OperationPermit> {
        let begin = |bytes: usize| {
            let parameters = self.parameter_bytes.try_acquire(bytes as u64)?;
            let mut running = self.running.permit();
            running.grow_to(1);
            Some(OperationPermit { running, parameters, ended: Arc::clone(&self.ended) })
        };
        parameter_bytes.map_while(begin).collect()
    }

    /// Waits until an operation ends, or has ended since the last call. One caller waits at a time.
    ///
    /// # Cancel safety
    /// Safe: no end is missed.
    pub(crate) async fn ended(&self) {
        self.ended.notified().await;
    }
}

/// Returns the error for an operation whose parameters do not fit.
pub(crate) fn too_many_parameters() -> Error {
    let what = format!(
        "parameters of running operations exceed {MAX_PARAMETER_BYTES} bytes; wait until some operations have ended"
    );
    Error::new(ErrorKind::Busy, what)
}

/// Share of the limit that one operation takes until it is dropped.
pub(crate) struct OperationPermit {
    running: Permit,
    parameters: Permit,
    ended: Arc<Notify>,
}

impl Drop for OperationPermit {
    fn drop(&mut self) {
        self.running.shrink_to(0);
        self.parameters.shrink_to(0);
        // Last, because the waiting task checks the limit as soon as it is woken.
        self.ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_begins_as_far_as_its_parameters_fit() {
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
    fn urgent_tiers_may_exceed_the_maximum() {
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
