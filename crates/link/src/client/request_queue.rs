//! Callers that wait until a request is accepted: the most urgent first, then in order of arrival. As many
//! are woken as there is room for, however many wait.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::task::Waker;

use wire::Priority;

/// Sort key of a waiting caller, smaller is sooner: tier, then a unique number.
pub(crate) type QueuePosition = (Reverse<u8>, u64);

#[derive(Default)]
pub(crate) struct WaitingCallers {
    tickets: u64,
    wakers: BTreeMap<QueuePosition, Waker>,
}

impl WaitingCallers {
    pub(crate) fn position(&mut self, priority: Priority) -> QueuePosition {
        self.tickets += 1;
        (Reverse(priority.tier), self.tickets)
    }

    pub(crate) fn wait(&mut self, position: QueuePosition, waker: &Waker) {
        self.wakers.insert(position, waker.clone());
    }

    pub(crate) fn leave(&mut self, position: QueuePosition) {
        self.wakers.remove(&position);
    }

    /// Wakes as many callers as `room` returns for their tier; a higher tier never has less room.
    pub(crate) fn wake(&mut self, room: impl Fn(u8) -> usize) {
        let mut woken = 0;
        while let Some(first) = self.wakers.first_entry()
            && room(first.key().0.0) > woken
        {
            first.remove().wake();
            woken += 1;
        }
    }

    pub(crate) fn wake_all(&mut self) {
        std::mem::take(&mut self.wakers).into_values().for_each(Waker::wake);
    }
}
