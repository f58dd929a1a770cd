//! Helpers for asynchronous tasks: blocking work, waiting for an optional time, and cancellation of drawings.

use array::{Error, Result};
use render::Cancel;
use tokio::time::Instant;

/// Cancels a drawing when this is dropped.
#[derive(Default)]
pub(crate) struct CancelOnDrop(Cancel);

impl CancelOnDrop {
    /// Returns the flag to pass to the drawing.
    pub(crate) fn flag(&self) -> Cancel {
        self.0.clone()
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs blocking work on a thread for it.
///
/// # Errors
/// `Internal` when the work panicked.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|e| Error::internal(format!("drawing ended unexpectedly: {e}")))
}

/// Waits until a time; forever without one.
pub(crate) async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
