//! Helpers of asynchronous tasks: work on threads that may block, waiting for a time that may not be set, and drawings that are
//! withdrawn when nobody waits for them any more.

use array::{Error, Result};
use render::Cancel;
use tokio::time::Instant;

/// Withdraws a drawing when whoever waits for it is dropped.
#[derive(Default)]
pub(crate) struct CancelOnDrop(Cancel);

impl CancelOnDrop {
    /// The flag, for whoever draws.
    pub(crate) fn flag(&self) -> Cancel {
        self.0.clone()
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs work that blocks on a thread that may.
///
/// # Errors
/// `Internal` when the work panicked.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|e| Error::internal(format!("drawing ended unexpectedly: {e}")))
}

/// Waits until then; for ever without a time.
pub(crate) async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
