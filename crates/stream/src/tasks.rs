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

/// Lowers the scheduling priority of this thread by some steps of `nice`.
#[cfg(target_os = "linux")]
pub(crate) fn lower_priority(nice_steps: i32) {
    // On Linux `None` means the calling thread, not the process as in POSIX.
    let lowered = rustix::process::getpriority_process(None)
        .and_then(|own| rustix::process::setpriority_process(None, own + nice_steps));
    if let Err(error) = lowered {
        tracing::debug!(%error, "a thread in the background keeps its weight");
    }
}

/// Leaves the scheduling priority as it is: other systems have one for the whole process only.
#[cfg(not(target_os = "linux"))]
pub(crate) fn lower_priority(_nice_steps: i32) {}
