//! Random numbers from a seed.

/// Generator of random numbers (splitmix64): the same seed gives the same run.
#[derive(Clone, Debug)]
pub(crate) struct SeededRng(u64);

impl SeededRng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    /// Returns a random integer below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.bits() % end.max(1)
    }

    /// Returns a uniformly distributed number, at least 0 and below 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a random number of successes before the first failure, if each try fails with probability `failing`.
    pub(crate) fn geometric(&mut self, failing: f64) -> f64 {
        if failing <= 0.0 {
            return f64::INFINITY;
        }
        ((1.0 - self.uniform()).ln() / (1.0 - failing.min(1.0)).ln()).floor()
    }
}
