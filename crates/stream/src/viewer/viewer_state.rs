//! State of one viewer: the newest request, which the frame loop reads, and the outbox.
//!
//! A new request replaces the one before, so nothing queues up.

use std::sync::{Arc, Mutex, PoisonError};

use session::PictureSize;
use tokio::sync::Notify;
use tokio::time::Instant;
use view::View;

use crate::viewer::outbox::ViewerOutbox;
use crate::viewer::together::DueUpdates;

/// View that a participant requests, and its presentation.
#[derive(Clone, Debug)]
pub(crate) struct ViewerRequest {
    /// Number of the view.
    pub(crate) seq: u64,
    pub(crate) view: Arc<View>,
    pub(crate) says_moving: bool,
    /// Time of the last change of the view.
    pub(crate) changed_at: Instant,
    pub(crate) size: PictureSize,
    /// Newest frame that the participant has shown.
    pub(crate) shown: u64,
    /// The participant requested an exact picture.
    pub(crate) wants_still: bool,
}

/// State of one viewer, shared with its frame loop.
pub(crate) struct ViewerState {
    /// Newest request; `None` after the participant left.
    request: Mutex<Option<ViewerRequest>>,
    /// Notified after each change.
    pub(crate) wake: Notify,
    pub(crate) outbox: ViewerOutbox,
    /// Updates about the other participants that are due.
    pub(crate) due: DueUpdates,
}

impl ViewerState {
    pub(crate) fn new(size: PictureSize) -> Self {
        let request = ViewerRequest {
            seq: 0,
            view: Arc::new(View::default()),
            says_moving: false,
            changed_at: Instant::now(),
            size,
            shown: 0,
            wants_still: false,
        };
        Self {
            request: Mutex::new(Some(request)),
            wake: Notify::new(),
            outbox: ViewerOutbox::default(),
            due: DueUpdates::default(),
        }
    }

    /// Returns the newest request; `None` after the participant left.
    pub(crate) fn request(&self) -> Option<ViewerRequest> {
        self.request.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the request and wakes the frame loop.
    pub(crate) fn change(&self, f: impl FnOnce(&mut ViewerRequest)) {
        if let Some(request) = self.request.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            f(request);
        }
        self.wake.notify_one();
    }

    /// Marks the participant as gone.
    pub(crate) fn leave(&self) {
        *self.request.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.outbox.close();
        self.wake.notify_one();
    }
}
