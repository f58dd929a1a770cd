//! Operations of one client that are being answered: each takes a place, and the bytes of its parameters. It gives
//! both back when it ends, even if others that began together with it go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Counts the operations of one connection that have begun and not ended.
#[derive(Default)]
pub(crate) struct UnderWay {
    operations: AtomicUsize,
    parameter_bytes: AtomicUsize,
    freed: Notify,
}

impl UnderWay {
    /// How many there are.
    pub(crate) fn operations(&self) -> usize {
        self.operations.load(Ordering::Relaxed)
    }

    /// Bytes of their parameters.
    pub(crate) fn parameter_bytes(&self) -> usize {
        self.parameter_bytes.load(Ordering::Relaxed)
    }

    /// One more, until its place is dropped.
    pub(crate) fn begin(self: &Arc<Self>, parameter_bytes: usize) -> Place {
        self.operations.fetch_add(1, Ordering::Relaxed);
        self.parameter_bytes.fetch_add(parameter_bytes, Ordering::Relaxed);
        Place { of: Arc::clone(self), parameter_bytes }
    }

    /// Waits until one has ended since it was last waited for. One waits at a time.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }
}

/// The place of one operation.
pub(crate) struct Place {
    of: Arc<UnderWay>,
    parameter_bytes: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.operations.fetch_sub(1, Ordering::Relaxed);
        self.of.parameter_bytes.fetch_sub(self.parameter_bytes, Ordering::Relaxed);
        self.of.freed.notify_one();
    }
}
