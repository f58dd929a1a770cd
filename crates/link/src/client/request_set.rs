//! Many operations whose answers arrive in one stream, for callers that request thousands at a time. One lock
//! and one wake-up serve everything that has arrived, and only the number of an operation is kept.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use bytes::Bytes;
use wire::{Error, ErrorKind, OpId, Priority, Result, Urgency};

use crate::client::{AnswerConsumer, ClientHandle, ClientSide, Item, Reply};
use crate::drive::ProtocolSide;

/// Event of one operation of a [`RequestSet`].
#[derive(Clone, Debug, PartialEq)]
pub enum OpEvent {
    /// Part of the answer.
    Reply(Reply),
    /// Whole answer, which was small; the last event of the operation.
    Whole(Item),
    /// The operation ended successfully; its last event.
    Done,
    /// The operation failed; its last event.
    Failed(Error),
}

/// Events of the operations of one [`RequestSet`] that were not taken yet.
#[derive(Default)]
pub(crate) struct SetInbox {
    pub(crate) events: VecDeque<(OpId, OpEvent)>,
    pub(crate) in_flight: usize,
    pub(crate) waker: Option<Waker>,
}

/// Operations of one connection whose answers arrive together. Dropping it cancels those that have not ended.
///
/// Bulk bytes that wait here use up the connection's window: take them, or drop the set.
pub struct RequestSet {
    id: u64,
    client: ClientHandle,
}

impl fmt::Debug for RequestSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestSet({})", self.id)
    }
}

impl ClientSide {
    pub(crate) fn open_set(&mut self) -> u64 {
        self.last_set += 1;
        self.request_sets.insert(self.last_set, SetInbox::default());
        self.last_set
    }

    pub(crate) fn request_in_set(
        &mut self,
        id: u64,
        name: &str,
        parameters: &mut VecDeque<Bytes>,
        urgency: Urgency,
    ) -> Result<Vec<OpId>> {
        let mut ops = Vec::with_capacity(parameters.len().min(self.machine.room(urgency.priority)));
        let mut result = Ok(());
        while let Some(next) = parameters.front() {
            if let Err(error) = self.machine.check_request(name, next.len(), urgency) {
                if error.kind() != ErrorKind::Busy || self.ended.is_some() {
                    result = Err(error);
                }
                break;
            }
            let next = parameters.pop_front().unwrap_or_default();
            let op = self.machine.request(name, next, urgency)?;
            self.consumers.insert(op, AnswerConsumer::InSet(id));
            ops.push(op);
        }
        // Includes the operations that were started before one that failed to start.
        if let Some(inbox) = self.request_sets.get_mut(&id) {
            inbox.in_flight += ops.len();
        }
        result.map(|()| ops)
    }

    /// Appends all events of a set; `None` when there are none yet, false when there will be none.
    pub(crate) fn take_events(&mut self, id: u64, events: &mut Vec<(OpId, OpEvent)>) -> Option<bool> {
        let inbox = self.request_sets.get_mut(&id)?;
        if inbox.events.is_empty() {
            return (inbox.in_flight == 0).then_some(false);
        }
        let taken = std::mem::take(&mut inbox.events);
        taken.iter().for_each(|(_, what)| self.account_event(what));
        events.extend(taken);
        Some(true)
    }

    pub(crate) fn wait_for_set(&mut self, id: u64, waker: &Waker) {
        if let Some(inbox) = self.request_sets.get_mut(&id) {
            inbox.waker = Some(waker.clone());
        }
    }

    pub(crate) fn cancel_in_set(&mut self, id: u64, op: OpId) {
        if matches!(self.consumers.get(op), Some(AnswerConsumer::InSet(of)) if *of == id) {
            self.consumers.remove(op);
            self.machine.cancel(op);
            if let Some(inbox) = self.request_sets.get_mut(&id) {
                inbox.in_flight -= 1;
                inbox.waker.take().into_iter().for_each(Waker::wake);
            }
        }
    }

    pub(crate) fn close_set(&mut self, id: u64) {
        let Some(inbox) = self.request_sets.remove(&id) else { return };
        inbox.events.iter().for_each(|(_, what)| self.account_event(what));
        self.cancel_all(|consumer| matches!(consumer, AnswerConsumer::InSet(of) if *of == id));
    }
}

impl ClientHandle {
    /// Creates an empty set of operations whose answers arrive together.
    #[must_use]
    pub fn request_set(&self) -> RequestSet {
        let id = self.shared().with(ClientSide::open_set);
        RequestSet { id, client: self.clone() }
    }
}

impl RequestSet {
    /// Starts one operation for each of `parameters`, as many as there is room for now, and returns their
    /// numbers in order. The rest stays in `parameters`. All started operations travel as one batch.
    ///
    /// # Errors
    /// `TooLarge` when name or parameters exceed their limit, or the reason why the connection ended.
    /// Operations that were started before remain in flight.
    pub fn request(
        &self,
        name: &str,
        parameters: &mut VecDeque<Bytes>,
        urgency: Urgency,
    ) -> Result<Vec<OpId>> {
        self.client.shared().change(|side| side.request_in_set(self.id, name, parameters, urgency))
    }

    /// Waits until there is room for an operation of this priority, or the connection is over.
    ///
    /// # Cancel safety
    /// Safe: nothing is reserved.
    pub async fn room(&self, priority: Priority) {
        self.client.room(priority).await;
    }

    /// Waits for events and appends all available ones to `events`. Returns false, with nothing appended, when
    /// no operation is in flight.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&self, events: &mut Vec<(OpId, OpEvent)>) -> bool {
        let shared = self.client.shared();
        let (any, concerns_driver) = poll_fn(|cx| {
            shared.with(|side| {
                let had_space = side.has_space();
                match side.take_events(self.id, events) {
                    Some(any) => Poll::Ready((any, !had_space || side.machine.owes_credit())),
                    None => {
                        side.wait_for_set(self.id, cx.waker());
                        Poll::Pending
                    }
                }
            })
        })
        .await;
        if concerns_driver {
            shared.change(|_| ());
        }
        any
    }

    /// Changes the urgency of an operation, also of its items that the server has queued.
    pub fn adjust(&self, op: OpId, urgency: Urgency) {
        self.client.shared().change(|side| side.adjust(op, urgency));
    }

    /// Withdraws an operation: no event of it follows, except those that have already arrived.
    pub fn cancel(&self, op: OpId) {
        self.client.shared().change(|side| side.cancel_in_set(self.id, op));
    }
}

impl Drop for RequestSet {
    fn drop(&mut self) {
        self.client.shared().change(|side| side.close_set(self.id));
    }
}
