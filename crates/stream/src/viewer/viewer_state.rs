//! One participant's seat: where what they want now meets the loop that draws for them.
//!
//! Newest wins: a new view takes the place of the one before, so nothing queues up.

use std::sync::{Arc, Mutex, PoisonError};

use session::PictureSize;
use tokio::sync::Notify;
use tokio::time::Instant;
use view::View;

use crate::viewer::outbox::ViewerOutbox;

/// View that a participant wants to see, and how.
#[derive(Clone, Debug)]
pub(crate) struct ViewerRequest {
    /// Number of the view.
    pub(crate) seq: u64,
    pub(crate) view: Arc<View>,
    pub(crate) says_moving: bool,
    /// When the view last changed.
    pub(crate) changed_at: Instant,
    pub(crate) size: PictureSize,
    /// The newest frame they have shown.
    pub(crate) shown: u64,
    /// They asked for an exact picture.
    pub(crate) wants_still: bool,
}

/// Seat of one participant: holds their newest wishes for the loop that draws for them.
pub(crate) struct ViewerState {
    /// `None` once they left.
    request: Mutex<Option<ViewerRequest>>,
    /// Something changed.
    pub(crate) wake: Notify,
    pub(crate) outbox: ViewerOutbox,
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
        Self { request: Mutex::new(Some(request)), wake: Notify::new(), outbox: ViewerOutbox::default() }
    }

    /// Returns the current wishes; `None` once they left.
    pub(crate) fn request(&self) -> Option<ViewerRequest> {
        self.request.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes what is wanted and wakes the loop.
    pub(crate) fn change(&self, f: impl FnOnce(&mut ViewerRequest)) {
        if let Some(request) = self.request.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            f(request);
        }
        self.wake.notify_one();
    }

    /// They left.
    pub(crate) fn leave(&self) {
        *self.request.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.outbox.close();
        self.wake.notify_one();
    }
}
