//! Detection of a longer path: what looks like a queue, but does not shrink when bytes are taken out of it,
//! is a part of the path's own delay.
//!
//! Each cut takes bytes out of the path anyway, so no additional experiment is needed. A queue that others
//! fill shrinks as well, by what this flow takes out of it; only a flow with a very small share could not
//! detect it.

/// Share of the bytes taken out by which a queue must at least shrink.
const SEEN_SHARE: f64 = 0.125;
/// Consecutive drains without effect after which the path counts as longer.
const DRAINS_IN_VAIN: u32 = 2;

/// State from one cut to the next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongerPath {
    /// Queue at the cut, seconds, and bytes in flight then.
    at_cut: Option<(f64, f64)>,
    taken_bytes: f64,
    in_vain: u32,
}

impl LongerPath {
    /// Records the beginning of a drain.
    pub(super) fn on_cut(&mut self, queue_secs: f64, in_flight_bytes: f64) {
        self.at_cut = Some((queue_secs, in_flight_bytes));
        self.taken_bytes = 0.0;
    }

    /// Records the end of a drain; data sent from now on sees its effect.
    pub(super) fn on_drained(&mut self, in_flight_bytes: f64) {
        self.taken_bytes = self.at_cut.map_or(0.0, |(_, before)| before - in_flight_bytes);
    }

    /// Returns whether the path is longer, once the data sent after the drain has arrived. Queues up to
    /// `least_secs` prove nothing.
    pub(super) fn on_seen(&mut self, queue_secs: f64, capacity_bytes_per_sec: f64, least_secs: f64) -> bool {
        let Some((before_secs, _)) = self.at_cut.take() else { return false };
        let taken_secs = self.taken_bytes / capacity_bytes_per_sec;
        let has_shown = before_secs - queue_secs > SEEN_SHARE * taken_secs;
        if queue_secs <= least_secs || has_shown {
            self.in_vain = 0;
        } else if taken_secs > least_secs / 2.0 {
            self.in_vain += 1;
        }
        let is_longer = self.in_vain >= DRAINS_IN_VAIN;
        if is_longer {
            self.in_vain = 0;
        }
        is_longer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drains by 20 ms of a path, after which the queue is `left_ms` of 40 ms.
    fn drain(longer_path: &mut LongerPath, left_ms: f64) -> bool {
        longer_path.on_cut(40e-3, 6e6);
        longer_path.on_drained(4e6);
        longer_path.on_seen(left_ms * 1e-3, 100e6, 5e-3)
    }

    #[test]
    fn a_queue_that_does_not_fall_twice_is_the_way() {
        let mut longer_path = LongerPath::default();
        assert!(!drain(&mut longer_path, 39.0) && drain(&mut longer_path, 39.0));
        assert!(!drain(&mut longer_path, 39.0), "from now on that is no queue");
    }

    #[test]
    fn a_queue_that_falls_is_one() {
        let mut longer_path = LongerPath::default();
        for left_ms in [39.0, 30.0, 39.0, 36.0, 39.0, 4.0, 39.0] {
            assert!(!drain(&mut longer_path, left_ms), "{left_ms} ms");
        }
    }

    #[test]
    fn cuts_that_remove_no_queue_do_not_count() {
        let mut longer_path = LongerPath::default();
        for _ in 0..4 {
            longer_path.on_cut(40e-3, 6e6);
            longer_path.on_drained(5.9e6);
            assert!(!longer_path.on_seen(40e-3, 100e6, 5e-3));
        }
    }
}
