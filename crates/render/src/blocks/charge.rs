//! Memory of blocks, counted as long as anybody holds them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that a block costs from its loading until it and every copy that a picture still holds are gone.
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
