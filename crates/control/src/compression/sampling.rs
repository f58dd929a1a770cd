//! When samples of data are worth their time: a first one, then ever more seldom while they find the same.

/// From the first sample to the second, bytes of data.
const FIRST_INTERVAL_BYTES: u64 = 1 << 20;
/// Between samples at most.
const LONGEST_INTERVAL_BYTES: u64 = 1 << 30;

/// Counts the data that pass.
#[derive(Clone, Debug, Default)]
pub struct SampleSchedule {
    /// Until the next sample, bytes of data.
    left_bytes: u64,
    interval_bytes: u64,
}

impl SampleSchedule {
    /// Data pass; true when a sample of them should be taken.
    pub fn pass(&mut self, bytes: u64) -> bool {
        if self.left_bytes > 0 {
            self.left_bytes = self.left_bytes.saturating_sub(bytes);
            return false;
        }
        self.interval_bytes = (self.interval_bytes * 2).clamp(FIRST_INTERVAL_BYTES, LONGEST_INTERVAL_BYTES);
        self.left_bytes = self.interval_bytes;
        true
    }
}
