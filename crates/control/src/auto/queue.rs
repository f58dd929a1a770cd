//! Estimate of the queueing delay: round trips compared with the smallest one, and the threshold that ends
//! growth.

use crate::filter::SlidingMin;

/// Queue that ends growth, relative part: share of the round trip.
const QUEUE_RTTS: f64 = 0.05;
/// Queue that ends growth, absolute part, seconds.
const QUEUE_SECS: f64 = 2.5e-3;
/// Part of the queue at which losses began that may be filled afterwards.
const BELOW_LOSS: f64 = 0.6;
/// Most halvings of the threshold: below, noise would dominate.
const MOST_HALVINGS: f64 = 3.0;
/// Cycles without congestive loss after which the threshold doubles again.
const CLEAN_CYCLES: u32 = 20;
/// Time window of the smallest round trip, seconds, if longer than `BASE_RTTS`.
const BASE_SECS: f64 = 10.0;
/// Time window of the smallest round trip, in round trips.
const BASE_RTTS: f64 = 60.0;

/// Estimator of the queue, from round trips.
#[derive(Clone, Debug)]
pub(super) struct QueueEstimator {
    first_rtt_secs: f64,
    base: SlidingMin,
    recent: SlidingMin,
    /// Largest queue of this round without noise, seconds.
    round_secs: f64,
    /// Largest queue of this round with noise, seconds.
    peak_secs: f64,
    /// Halvings of the threshold. Where a buffer is small, all its flows halve equally often: they see the
    /// same losses.
    halvings: f64,
    clean_cycles: u32,
}

impl QueueEstimator {
    pub(super) fn new(first_rtt_secs: f64) -> Self {
        Self {
            first_rtt_secs,
            base: SlidingMin::new(),
            recent: SlidingMin::new(),
            round_secs: 0.0,
            peak_secs: 0.0,
            halvings: 0.0,
            clean_cycles: 0,
        }
    }

    /// Records a round trip; the smallest of a quarter of `step_secs` is the current one.
    pub(super) fn on_rtt(&mut self, at: f64, step_secs: f64, rtt_secs: f64) {
        self.base.add(at, BASE_SECS.max(BASE_RTTS * self.base_secs()), rtt_secs);
        self.recent.add(at, step_secs / 4.0, rtt_secs);
        self.round_secs = self.round_secs.max(self.secs());
        self.peak_secs = self.peak_secs.max(rtt_secs - self.base_secs());
    }

    pub(super) fn end_round(&mut self) {
        self.round_secs = self.secs();
        self.peak_secs = 0.0;
    }

    /// Resets the base to the current round trip: there is no queue.
    pub(super) fn begin_anew(&mut self, at: f64) {
        let now_secs = self.recent.value();
        self.base = SlidingMin::new();
        self.base.add(at, BASE_SECS, now_secs);
        self.end_round();
    }

    /// Round trip without queue, seconds.
    pub(super) fn base_secs(&self) -> f64 {
        let base = self.base.value();
        if base.is_finite() { base.max(1e-6) } else { self.first_rtt_secs }
    }

    /// Current queue, seconds.
    pub(super) fn secs(&self) -> f64 {
        let queue = self.recent.value() - self.base.value();
        if queue.is_finite() { queue.max(0.0) } else { 0.0 }
    }

    /// Threshold that ends growth, seconds.
    pub(super) fn threshold_secs(&self) -> f64 {
        (QUEUE_RTTS * self.base_secs() + QUEUE_SECS) / self.halvings.exp2()
    }

    pub(super) fn is_long(&self) -> bool {
        self.secs() > self.threshold_secs()
    }

    /// Returns whether the queue is almost empty.
    pub(super) fn is_empty(&self) -> bool {
        self.secs() < self.threshold_secs() / 8.0
    }

    /// Returns whether the queue is no longer than noise.
    pub(super) fn is_short(&self) -> bool {
        self.secs() < self.threshold_secs() / 4.0
    }

    /// Returns whether the queue was short during the whole round.
    pub(super) fn is_calm(&self) -> bool {
        self.round_secs < self.threshold_secs() / 4.0
    }

    /// Ends a cycle; `has_lost`: by losses, so the buffer is no larger than the observed queue.
    pub(super) fn end_cycle(&mut self, has_lost: bool) {
        if has_lost {
            let usual = self.threshold_secs() * self.halvings.exp2();
            let wanted = (usual / (BELOW_LOSS * self.peak_secs).max(1e-9)).log2().ceil();
            self.halvings = wanted.clamp(0.0, MOST_HALVINGS);
            self.clean_cycles = 0;
            return;
        }
        self.clean_cycles += 1;
        if self.clean_cycles >= CLEAN_CYCLES {
            self.clean_cycles = 0;
            self.halvings = (self.halvings - 1.0).max(0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue_of(rtts_ms: &[f64]) -> QueueEstimator {
        let mut queue = QueueEstimator::new(0.1);
        for (i, rtt) in rtts_ms.iter().enumerate() {
            queue.on_rtt(i as f64 * 0.01, 0.1, rtt * 1e-3);
        }
        queue
    }

    #[test]
    fn single_late_acknowledgements_are_not_a_queue() {
        assert!(!queue_of(&[100.0, 100.0, 150.0, 100.0]).is_long());
        assert!(queue_of(&[100.0, 100.0, 112.0, 112.0, 112.0, 112.0, 112.0]).is_long());
    }

    #[test]
    fn losses_at_a_short_queue_lower_the_threshold() {
        let mut queue = queue_of(&[100.0, 104.0]);
        let usual = queue.threshold_secs();
        assert!((usual - 7.5e-3).abs() < 1e-9, "{usual}");
        queue.end_cycle(true);
        assert!((queue.threshold_secs() - usual / 4.0).abs() < 1e-9, "{}", queue.threshold_secs());
        for _ in 0..CLEAN_CYCLES {
            queue.end_cycle(false);
        }
        assert!((queue.threshold_secs() - usual / 2.0).abs() < 1e-9);
    }
}
