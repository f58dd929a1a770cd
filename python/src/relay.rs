//! Relay between a viewing node of this process and a page that has no connection to it: Python moves the messages, for
//! example through the kernel of a notebook.
//!
//! Both directions are bounded: the page grants room for the bytes that it can take, and learns which of its bytes the node
//! has taken.

use std::sync::Arc;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;

use array::{Error, Result};
use node::relay::Relays;

use crate::callbacks;
use crate::errors::raise;
use crate::runtime::runtime;

/// Most messages of the page that wait for the node; a page sends few before it learns that they were taken.
const MAX_WAITING_MESSAGES: usize = 4096;
/// Largest room for bytes that a page may grant.
const MAX_WINDOW_BYTES: usize = 64 << 20;

/// Callbacks of a relay.
struct RelayCallbacks {
    /// Called with each message of the node, in order, and with `None` at the end.
    on_message: Py<PyAny>,
    /// Called with the size of each message of the page when the node has taken it.
    on_taken: Py<PyAny>,
}

/// A connected page; dropping it ends the connection.
#[pyclass(frozen, module = "corridor._native")]
pub(crate) struct PageRelay {
    outgoing: mpsc::Sender<Bytes>,
    room: Arc<Semaphore>,
    window_bytes: usize,
    task: AbortHandle,
}

impl PageRelay {
    /// Connects a page that can take `window_bytes` before it grants more room.
    pub(crate) fn connect(
        relays: Relays,
        on_message: Py<PyAny>,
        on_taken: Py<PyAny>,
        window_bytes: usize,
    ) -> Result<Self> {
        if window_bytes == 0 || window_bytes > MAX_WINDOW_BYTES {
            return Err(Error::invalid(format!(
                "expected a window of 1 to {MAX_WINDOW_BYTES} bytes, found {window_bytes}"
            )));
        }
        let (outgoing, from_page) = mpsc::channel(MAX_WAITING_MESSAGES);
        let room = Arc::new(Semaphore::new(window_bytes));
        let callbacks = Arc::new(RelayCallbacks { on_message, on_taken });
        let work = run(relays, callbacks, from_page, Arc::clone(&room), window_bytes);
        let task = runtime()?.spawn(work).abort_handle();
        Ok(Self { outgoing, room, window_bytes, task })
    }
}

#[pymethods]
impl PageRelay {
    /// Sends a message of the page to the node.
    fn send(&self, py: Python<'_>, message: &[u8]) -> PyResult<()> {
        match self.outgoing.try_send(Bytes::copy_from_slice(message)) {
            Err(mpsc::error::TrySendError::Full(_)) => {
                Err(PyBufferError::new_err("the page sends messages faster than the viewer takes them"))
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Err(raise(py, &Error::cancelled())),
            Ok(()) => Ok(()),
        }
    }

    /// Grants room for further bytes to the page; more than the window at a time has no effect.
    fn grant(&self, size_bytes: usize) {
        let used = self.window_bytes.saturating_sub(self.room.available_permits());
        self.room.add_permits(size_bytes.min(used));
    }

    /// Ends the connection.
    fn close(&self) {
        self.task.abort();
    }
}

impl Drop for PageRelay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Moves messages in both directions until one side ends.
async fn run(
    relays: Relays,
    callbacks: Arc<RelayCallbacks>,
    mut from_page: mpsc::Receiver<Bytes>,
    room: Arc<Semaphore>,
    window_bytes: usize,
) {
    let Ok(end) = relays.connect().await else {
        return call(&callbacks, None).await;
    };
    let (mut to_node, mut from_node) = (end.outgoing, end.incoming);
    let sending = async {
        while let Some(message) = from_page.recv().await {
            let size_bytes = message.len();
            if to_node.send(message).await.is_err() {
                return;
            }
            let told = Arc::clone(&callbacks);
            called(move |py| told.on_taken.call1(py, (size_bytes,)).map(drop)).await;
        }
    };
    let receiving = async {
        while let Some(message) = from_node.next().await {
            let needed = u32::try_from(message.len().min(window_bytes)).unwrap_or(u32::MAX);
            // The semaphore is never closed.
            let Ok(permit) = room.acquire_many(needed).await else { return };
            permit.forget();
            call(&callbacks, Some(message)).await;
        }
    };
    tokio::select! {
        () = sending => {}
        () = receiving => {}
    }
    call(&callbacks, None).await;
}

/// Passes a message on to Python; waits until it has been taken, so that the order is kept.
async fn call(callbacks: &Arc<RelayCallbacks>, message: Option<Bytes>) {
    let callbacks = Arc::clone(callbacks);
    called(move |py| {
        let message = message.map(|message| PyBytes::new(py, &message));
        callbacks.on_message.call1(py, (message,)).map(drop)
    })
    .await;
}

/// Calls Python on a callback thread, and waits for its end.
async fn called(callback: impl FnOnce(Python<'_>) -> PyResult<()> + Send + 'static) {
    let (done, ended) = oneshot::channel();
    callbacks::run(move |py| {
        if let Err(problem) = callback(py) {
            problem.write_unraisable(py, None);
        }
        // The relay may have been closed meanwhile.
        _ = done.send(());
    })
    .await;
    // An error: the callback was dropped, since Python is shutting down.
    drop(ended.await);
}
