//! Many operations whose answers come by one stream: for whoever asks thousands at a time. One lock and one wake-up
//! serve all that has arrived, and nothing is kept for an operation but its number.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use bytes::Bytes;
use wire::{Error, ErrorKind, OpId, Priority, Result, Urgency};

use crate::client::{AnswerConsumer, ClientHandle, ClientSide, Item, Reply};
use crate::drive::ProtocolSide;

/// News of one of many operations.
#[derive(Clone, Debug, PartialEq)]
pub enum OpEvent {
    /// Some of its answer.
    Reply(Reply),
    /// Its whole answer, which was small; nothing more is heard of it.
    Whole(Item),
    /// It ended well; nothing more is heard of it.
    Done,
    /// It ended otherwise; nothing more is heard of it.
    Failed(Error),
}

/// News of the operations of one [`RequestSet`] that were not taken yet.
#[derive(Default)]
pub(crate) struct SetInbox {
    pub(crate) said: VecDeque<(OpId, OpEvent)>,
    pub(crate) under_way: usize,
    pub(crate) waker: Option<Waker>,
}

/// Operations of one connection whose answers come together. Dropping it cancels those that have not ended.
///
/// Bulk bytes that wait here use up the connection's window: take them, or drop it.
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
        // Also those that were started before one that could not be.
        if let Some(inbox) = self.request_sets.get_mut(&id) {
            inbox.under_way += ops.len();
        }
        result.map(|()| ops)
    }

    /// All news of many; `None` when there are none yet, false when there will be none.
    pub(crate) fn take_events(&mut self, id: u64, said: &mut Vec<(OpId, OpEvent)>) -> Option<bool> {
        let inbox = self.request_sets.get_mut(&id)?;
        if inbox.said.is_empty() {
            return (inbox.under_way == 0).then_some(false);
        }
        let news = std::mem::take(&mut inbox.said);
        news.iter().for_each(|(_, what)| self.account_event(what));
        said.extend(news);
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
                inbox.under_way -= 1;
                inbox.waker.take().into_iter().for_each(Waker::wake);
            }
        }
    }

    pub(crate) fn close_set(&mut self, id: u64) {
        let Some(inbox) = self.request_sets.remove(&id) else { return };
        inbox.said.iter().for_each(|(_, what)| self.account_event(what));
        self.cancel_all(|consumer| matches!(consumer, AnswerConsumer::InSet(of) if *of == id));
    }
}

impl ClientHandle {
    /// No operations yet; their answers will come together.
    #[must_use]
    pub fn request_set(&self) -> RequestSet {
        let id = self.shared().with(ClientSide::open_set);
        RequestSet { id, client: self.clone() }
    }
}

impl RequestSet {
    /// Starts one operation for each of `parameters`, as many as there is room for now; their numbers in order. What
    /// is not taken stays in `parameters`. All of them travel as one batch.
    ///
    /// # Errors
    /// `TooLarge` when name or parameters exceed their limit, or why the connection ended. Those started before stay
    /// under way.
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

    /// Waits for news and appends all there are to `said`. False, with nothing appended, when no operation is under
    /// way.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&self, said: &mut Vec<(OpId, OpEvent)>) -> bool {
        let shared = self.client.shared();
        let (any, concerns_driver) = poll_fn(|cx| {
            shared.with(|side| {
                let had_space = side.has_space();
                match side.take_events(self.id, said) {
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

    /// Changes how much an operation matters, also for what the server has queued already.
    pub fn adjust(&self, op: OpId, urgency: Urgency) {
        self.client.shared().change(|side| side.adjust(op, urgency));
    }

    /// Withdraws an operation: nothing more is heard of it, except what was there already.
    pub fn cancel(&self, op: OpId) {
        self.client.shared().change(|side| side.cancel_in_set(self.id, op));
    }
}

impl Drop for RequestSet {
    fn drop(&mut self) {
        self.client.shared().change(|side| side.close_set(self.id));
    }
}
