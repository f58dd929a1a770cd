//! Those who wait until a request is taken: the most urgent first, then in the order they came. As many are woken as
//! there is room for, however many wait.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::task::Waker;

use wire::Priority;

/// Smaller is sooner; the second part is unique.
pub(crate) type Ticket = (Reverse<u8>, u64);

#[derive(Default)]
pub(crate) struct Waiting {
    tickets: u64,
    wakers: BTreeMap<Ticket, Waker>,
}

impl Waiting {
    pub(crate) fn ticket(&mut self, priority: Priority) -> Ticket {
        self.tickets += 1;
        (Reverse(priority.tier), self.tickets)
    }

    pub(crate) fn wait(&mut self, ticket: Ticket, waker: &Waker) {
        self.wakers.insert(ticket, waker.clone());
    }

    pub(crate) fn leave(&mut self, ticket: Ticket) {
        self.wakers.remove(&ticket);
    }

    /// Wakes as many as `room` says that a tier has; a higher tier never has less.
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
