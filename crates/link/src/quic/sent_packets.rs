//! Send times of the batches that are in flight, kept until the batches are acknowledged. The stack identifies packets by
//! the time at which they left.

use std::collections::VecDeque;
use std::time::Duration;

use control::{DeliverySample, DeliverySampler, SendStamp};

/// Batches remembered until they are acknowledged; beyond, the oldest are forgotten, and their acknowledgements say
/// nothing of the path's speed.
const MAX_BATCHES: usize = 1 << 17;
/// Batches older than the newest acknowledged one that are still remembered: reordering.
const LATE_BATCHES: usize = 256;

/// Packets that left in one go.
#[derive(Clone, Copy, Debug)]
struct SentBatch {
    stamp: SendStamp,
    /// When they left, as the controller was told: the batches of a train count as one.
    told_at: Duration,
}

/// Batches in flight in the order in which they left, and the sampler of the delivery rate.
#[derive(Debug, Default)]
pub(super) struct SentPackets {
    batches: VecDeque<SentBatch>,
    sampler: DeliverySampler,
}

impl SentPackets {
    /// A batch leaves; `in_flight_bytes` is without it.
    pub(super) fn on_sent(&mut self, now: Duration, in_flight_bytes: u64) {
        let stamp = self.sampler.on_sent(now, in_flight_bytes);
        if self.batches.len() >= MAX_BATCHES {
            self.batches.pop_front();
        }
        self.batches.push_back(SentBatch { stamp, told_at: now });
    }

    /// The controller is told of the last `count` batches as of one that left at `at`.
    pub(super) fn tell(&mut self, count: usize, at: Duration) {
        self.batches.iter_mut().rev().take(count).for_each(|batch| batch.told_at = at);
    }

    /// There was nothing to send.
    pub(super) fn on_app_limited(&mut self, in_flight_bytes: u64) {
        self.sampler.on_app_limited(in_flight_bytes);
    }

    /// `bytes` were acknowledged, the newest of which left at `sent_at`: what that says of the path's speed, and when they left
    /// as the controller was told. Older batches are forgotten, but for some that may be late.
    pub(super) fn on_ack(
        &mut self,
        now: Duration,
        sent_at: Duration,
        bytes: u64,
    ) -> (Option<DeliverySample>, Duration) {
        let told_at = self.told_at(sent_at);
        let stamp = self.find(sent_at).map(|batch| batch.stamp);
        let delivery = stamp.and_then(|stamp| self.sampler.on_ack(now, &stamp, bytes));
        let before = self.batches.partition_point(|batch| batch.stamp.sent_at < sent_at);
        self.batches.drain(..before.saturating_sub(LATE_BATCHES));
        (delivery, told_at)
    }

    /// When what left at `sent_at` did so as the controller was told.
    pub(super) fn told_at(&self, sent_at: Duration) -> Duration {
        self.find(sent_at).map_or(sent_at, |batch| batch.told_at)
    }

    fn find(&self, sent_at: Duration) -> Option<&SentBatch> {
        let after = self.batches.partition_point(|batch| batch.stamp.sent_at <= sent_at);
        after.checked_sub(1).and_then(|at| self.batches.get(at))
    }

    #[cfg(test)]
    pub(super) fn told(&self) -> impl Iterator<Item = Duration> {
        self.batches.iter().map(|batch| batch.told_at)
    }
}
