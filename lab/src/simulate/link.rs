//! Bottleneck of a simulated path: queue, rate, and losses and delays after it.

use std::time::Duration;

use super::{PathChange, SimulatedPath};
use crate::rng::SeededRng;

/// Fate of a segment.
pub(super) struct SegmentFate {
    /// Number of its packets that do not arrive.
    pub(super) lost_packets: u64,
    /// Time at which the sender receives the acknowledgement of the others.
    pub(super) acked_at: Duration,
}

/// State of the bottleneck.
pub(super) struct SimulatedLink {
    path: SimulatedPath,
    rng: SeededRng,
    /// Time at which the last byte in the queue will have left, seconds.
    empty_at: f64,
    /// Number of packets before the next random loss.
    until_loss: f64,
    last_acked_at: Duration,
    is_down: bool,
}

impl SimulatedLink {
    pub(super) fn new(path: &SimulatedPath, mut rng: SeededRng) -> Self {
        let until_loss = rng.geometric(path.loss);
        Self {
            path: path.clone(),
            rng,
            empty_at: 0.0,
            until_loss,
            last_acked_at: Duration::ZERO,
            is_down: false,
        }
    }

    pub(super) fn change(&mut self, now: Duration, change: &PathChange) {
        let backlog = self.queue_secs(now) * self.path.rate_bytes_per_sec;
        self.path.rate_bytes_per_sec = change.rate_bytes_per_sec;
        self.path.rtt = change.rtt;
        self.is_down = change.is_down;
        self.last_acked_at = Duration::ZERO;
        self.empty_at = now.as_secs_f64() + backlog / change.rate_bytes_per_sec;
    }

    /// Returns the delay in the queue of a byte that arrives now, seconds.
    pub(super) fn queue_secs(&self, now: Duration) -> f64 {
        (self.empty_at - now.as_secs_f64()).max(0.0)
    }

    /// Computes the fate of a segment of `packets` that reaches the queue.
    pub(super) fn pass(&mut self, now: Duration, packets: u64, extra_rtt: Duration) -> SegmentFate {
        if self.is_down {
            return SegmentFate { lost_packets: packets, acked_at: now };
        }
        let packet_bytes = self.path.packet_bytes as f64;
        let waiting_bytes = self.queue_secs(now) * self.path.rate_bytes_per_sec;
        let room = whole((self.path.buffer_bytes - waiting_bytes).max(0.0) / packet_bytes);
        // An empty link accepts one packet, however small the buffer is.
        let taken = packets.min(room.max(u64::from(waiting_bytes == 0.0)));
        let service = taken as f64 * packet_bytes / self.path.rate_bytes_per_sec;
        self.empty_at = self.empty_at.max(now.as_secs_f64()) + service;
        let lost_behind = self.lose(taken);
        let mut acked_at = Duration::from_secs_f64(self.empty_at) + self.path.rtt + extra_rtt;
        acked_at += self.path.noise.mul_f64(self.rng.uniform());
        // Noise delays acknowledgements, it does not reorder them.
        acked_at = acked_at.max(self.last_acked_at);
        self.last_acked_at = acked_at;
        if self.path.late > 0.0 && self.rng.uniform() < self.path.late {
            acked_at += self.path.late_by;
        }
        SegmentFate { lost_packets: packets - taken + lost_behind, acked_at: self.seen_at(acked_at) }
    }

    /// Returns the time at which a host that is busy at times processes an acknowledgement.
    fn seen_at(&self, at: Duration) -> Duration {
        let every = self.path.busy_every.as_nanos();
        let since = Duration::from_nanos(u64::try_from(at.as_nanos() % every.max(1)).unwrap_or_default());
        at + self.path.busy_for.saturating_sub(since)
    }

    /// Returns the number of `packets` that are lost at random.
    fn lose(&mut self, packets: u64) -> u64 {
        let mut left = packets as f64;
        let mut lost = 0;
        while self.until_loss < left {
            left -= self.until_loss + 1.0;
            lost += 1;
            self.until_loss = self.rng.geometric(self.path.loss);
        }
        self.until_loss -= left;
        lost
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates; never negative here"
)]
pub(super) fn whole(x: f64) -> u64 {
    x as u64
}
