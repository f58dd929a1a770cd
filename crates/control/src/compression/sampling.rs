//! Schedule of samples of the data: a first one, then at growing intervals while they find no change.

/// Interval from the first sample to the second, bytes of data.
const FIRST_INTERVAL_BYTES: u64 = 1 << 20;
/// Longest interval between samples, bytes of data.
const LONGEST_INTERVAL_BYTES: u64 = 1 << 30;

/// Counts the data that pass.
#[derive(Clone, Debug, Default)]
pub struct SampleSchedule {
    /// Bytes of data until the next sample.
    left_bytes: u64,
    interval_bytes: u64,
}

impl SampleSchedule {
    /// Counts data; true when a sample of them should be taken.
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
