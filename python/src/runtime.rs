//! The tokio runtime of the process, and blocking waits that Ctrl-C interrupts.

use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

use array::{Error, Result};
use pyo3::prelude::*;
use tokio::runtime::Runtime;

/// Interval at which Python's signals are checked during a wait.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A runtime and the process that created it: its threads do not survive a fork.
static RUNTIME: OnceLock<(u32, Runtime)> = OnceLock::new();

/// Returns the process's runtime, created on first use.
///
/// # Errors
/// `Io` if the system cannot create threads; `Unsupported` in a child made by fork after its parent used the runtime.
pub(crate) fn runtime() -> Result<&'static Runtime> {
    if RUNTIME.get().is_none() {
        let made = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("corridor").build();
        let made = made.map_err(|e| Error::from(e).context("starting threads"))?;
        // Another thread may have been first; this runtime is then shut down unused.
        if let Err((_, unused)) = RUNTIME.set((std::process::id(), made)) {
            unused.shutdown_background();
        }
    }
    let (process, runtime) = RUNTIME.get().ok_or_else(|| Error::internal("expected a runtime"))?;
    if *process != std::process::id() {
        return Err(Error::unsupported(
            "this process was forked from one that had already used corridor, whose threads do not survive a fork; \
             start worker processes with the method `spawn` or `forkserver`",
        ));
    }
    Ok(runtime)
}

/// Runs `work` to its end without Python's lock; a signal (Ctrl-C) drops it.
///
/// # Errors
/// The errors of `work`, or the exception that the signal's handler raised.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> PyResult<T> {
    wait_and(py, work, || Ok(()))
}

/// Waits as [`wait`] does, and calls `periodic` at intervals, with Python's lock.
///
/// # Errors
/// The errors of `work` and `periodic`, or the exception that the signal's handler raised.
pub(crate) fn wait_and<T: Send + 'static>(
    py: Python<'_>,
    work: impl Future<Output = Result<T>> + Send + 'static,
    periodic: impl Fn() -> PyResult<()>,
) -> PyResult<T> {
    let runtime = runtime().map_err(|e| crate::errors::raise(py, &e))?;
    let mut task = runtime.spawn(work);
    loop {
        let ended = py.detach(|| {
            runtime.block_on(async { tokio::time::timeout(SIGNAL_CHECK_INTERVAL, &mut task).await })
        });
        match ended {
            Ok(Ok(result)) => return result.map_err(|e| crate::errors::raise(py, &e)),
            Ok(Err(e)) => {
                let error = Error::internal(format!("a task ended early: {e}"));
                return Err(crate::errors::raise(py, &error));
            }
            Err(_) => {
                if let Err(signal) = py.check_signals().and_then(|()| periodic()) {
                    task.abort();
                    return Err(signal);
                }
            }
        }
    }
}
