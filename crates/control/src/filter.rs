//! Extremes over a sliding time window, in constant memory.

/// Smallest value of about the last `window` (in units of the caller): two halves, of which the older is
/// forgotten as a whole.
#[derive(Clone, Debug)]
pub(crate) struct SlidingMin {
    older: f64,
    newer: f64,
    newer_since: f64,
}

impl SlidingMin {
    pub(crate) fn new() -> Self {
        Self { older: f64::INFINITY, newer: f64::INFINITY, newer_since: f64::NEG_INFINITY }
    }

    /// Adds `value` at `at`; values older than `window` are forgotten, those younger than half of it are
    /// kept.
    pub(crate) fn add(&mut self, at: f64, window: f64, value: f64) {
        if at - self.newer_since > window {
            self.older = f64::INFINITY;
            self.newer = f64::INFINITY;
            self.newer_since = at;
        } else if at - self.newer_since > window / 2.0 {
            self.older = self.newer;
            self.newer = f64::INFINITY;
            self.newer_since = at;
        }
        self.newer = self.newer.min(value);
    }

    /// Smallest value; infinite before the first.
    pub(crate) fn value(&self) -> f64 {
        self.newer.min(self.older)
    }
}

/// Largest value of about the last `window`.
#[derive(Clone, Debug)]
pub(crate) struct SlidingMax(SlidingMin);

impl SlidingMax {
    pub(crate) fn new() -> Self {
        Self(SlidingMin::new())
    }

    pub(crate) fn add(&mut self, at: f64, window: f64, value: f64) {
        self.0.add(at, window, -value);
    }

    /// Largest value; 0 before the first.
    pub(crate) fn value(&self) -> f64 {
        (-self.0.value()).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_values_are_forgotten() {
        let mut least = SlidingMin::new();
        least.add(0.0, 10.0, 1.0);
        least.add(4.0, 10.0, 3.0);
        assert_eq!(least.value(), 1.0);
        least.add(6.0, 10.0, 4.0);
        assert_eq!(least.value(), 1.0);
        least.add(12.0, 10.0, 5.0);
        assert_eq!(least.value(), 4.0);
        least.add(30.0, 10.0, 7.0);
        assert_eq!(least.value(), 7.0);
    }

    #[test]
    fn the_largest_is_the_mirror_image() {
        let mut most = SlidingMax::new();
        assert_eq!(most.value(), 0.0);
        most.add(0.0, 10.0, 5.0);
        most.add(1.0, 10.0, 3.0);
        assert_eq!(most.value(), 5.0);
    }
}
