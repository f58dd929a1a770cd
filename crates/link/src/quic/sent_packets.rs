//! Send times of the batches that are in flight, kept until the batches are acknowledged. The stack
//! identifies packets by their send time.

use std::collections::VecDeque;
use std::time::Duration;

use control::{DeliverySample, DeliverySampler, SendStamp};

/// Most batches remembered until they are acknowledged; beyond it the oldest are forgotten, and their
/// acknowledgements give no rate sample.
const MAX_BATCHES: usize = 1 << 17;
/// Batches older than the newest acknowledged one that are kept, for reordering.
const LATE_BATCHES: usize = 256;

/// Packets that were sent together.
#[derive(Clone, Copy, Debug)]
struct SentBatch {
    stamp: SendStamp,
    /// Send time that was reported to the controller: the batches of a train count as one.
    told_at: Duration,
}

/// Batches in flight in order of their send times, and the sampler of the delivery rate.
#[derive(Debug, Default)]
pub(super) struct SentPackets {
    batches: VecDeque<SentBatch>,
    sampler: DeliverySampler,
}

impl SentPackets {
    /// Records a batch; `in_flight_bytes` is the amount before it.
    pub(super) fn on_sent(&mut self, now: Duration, in_flight_bytes: u64) {
        let stamp = self.sampler.on_sent(now, in_flight_bytes);
        if self.batches.len() >= MAX_BATCHES {
            self.batches.pop_front();
        }
        self.batches.push_back(SentBatch { stamp, told_at: now });
    }

    /// Sets the reported send time of the last `count` batches to `at`.
    pub(super) fn tell(&mut self, count: usize, at: Duration) {
        self.batches.iter_mut().rev().take(count).for_each(|batch| batch.told_at = at);
    }

    /// Records that there was nothing to send.
    pub(super) fn on_app_limited(&mut self, in_flight_bytes: u64) {
        self.sampler.on_app_limited(in_flight_bytes);
    }

    /// Records acknowledged bytes, the newest of which were sent at `sent_at`; returns the sample of the
    /// delivery rate, and the reported send time. Older batches are forgotten, except for some that may be
    /// late.
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

    /// Returns the reported send time of the batch that was sent at `sent_at`.
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
