//! Memory accounting of blocks: a block is counted until its last copy is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes charged for a block from its loading until the block and every copy that a picture holds are
/// dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    meter: Arc<AtomicUsize>,
    bytes: usize,
}

impl Charge {
    pub(crate) fn new(meter: &Arc<AtomicUsize>, bytes: usize) -> Self {
        meter.fetch_add(bytes, Ordering::Relaxed);
        Self { meter: Arc::clone(meter), bytes }
    }
}

impl Clone for Charge {
    fn clone(&self) -> Self {
        Self::new(&self.meter, self.bytes)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.meter.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
