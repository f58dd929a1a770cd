//! Bounded number of slots, given to the most urgent of the waiting wants.

use std::sync::Arc;

use array::{Error, ErrorKind, Result, Want};
use futures::channel::oneshot;
use parking_lot::Mutex;

/// Most wants that wait for a slot in which a level is made.
const MAX_WAITING: usize = 65_536;

/// Slots for work on wants.
#[derive(Clone)]
pub(super) struct WorkSlots(Arc<Mutex<SlotsState>>);

struct SlotsState {
    free: usize,
    /// Wants in the order of arrival.
    waiting: Vec<(Arc<Want>, oneshot::Sender<WorkSlot>)>,
}

/// Slot for one want; dropping it passes it to the next.
pub(super) struct WorkSlot {
    slots: WorkSlots,
}

impl WorkSlots {
    pub(super) fn new(count: usize) -> Self {
        Self(Arc::new(Mutex::new(SlotsState { free: count, waiting: Vec::new() })))
    }

    /// Waits for a slot.
    ///
    /// # Errors
    /// `Busy` when [`MAX_WAITING`] wait already.
    ///
    /// # Cancel safety
    /// A slot that was given to a future that is gone passes on.
    pub(super) async fn acquire(&self, want: &Arc<Want>) -> Result<WorkSlot> {
        let given = {
            let mut state = self.0.lock();
            if state.free > 0 {
                state.free -= 1;
                return Ok(WorkSlot { slots: self.clone() });
            }
            if state.waiting.len() >= MAX_WAITING {
                let expected =
                    format!("expected at most {MAX_WAITING} blocks waiting to be made, found more");
                return Err(Error::new(ErrorKind::Busy, expected));
            }
            let (sender, given) = oneshot::channel();
            state.waiting.push((Arc::clone(want), sender));
            given
        };
        given.await.map_err(|_| Error::cancelled())
    }
}

impl Drop for WorkSlot {
    fn drop(&mut self) {
        let mut state = self.slots.0.lock();
        state.waiting.retain(|(want, sender)| !want.is_cancelled() && !sender.is_canceled());
        let priorities = state.waiting.iter().enumerate().rev();
        let next = priorities.max_by_key(|(_, (want, _))| want.urgency().priority).map(|(at, _)| at);
        let Some(at) = next else {
            state.free += 1;
            return;
        };
        let (_, sender) = state.waiting.remove(at);
        drop(state);
        // If its caller is gone by now, the slot comes back in the error and passes on when that is dropped.
        drop(sender.send(Self { slots: self.slots.clone() }));
    }
}
