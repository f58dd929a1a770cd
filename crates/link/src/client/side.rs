//! State of a client's operations: the consumer of each answer, and the parts that the application has not
//! taken yet. The methods that only one kind of consumer needs are defined in its module:
//! [`ReadHandle`](crate::ReadHandle), [`RequestSet`](crate::RequestSet),
//! [`receive_many`](crate::ClientHandle::receive_many).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::Bytes;
use wire::{
    BulkPart, ChunkHead, Client, ClientEvent, Error, ItemHead, Machine, OpId, OpTable, Priority, Result,
    Urgency, Welcome,
};

use super::{Item, MAX_WAITING_BODY_BYTES, MAX_WAITING_REPLIES, OWN_BODY_BYTES, OWN_REPLIES, Reply};
use crate::client::read_sink::{ReadSink, ReceiveCounts, SinkSlot};
use crate::client::read_sinks::EndedRequests;
use crate::client::receive_group::GroupMember;
use crate::client::request_queue::WaitingCallers;
use crate::client::request_set::{self, OpEvent};
use crate::drive::ProtocolSide;
use crate::flow::Flow;

/// Replies of one stream that were not taken yet, and the result of the operation.
#[derive(Default)]
pub(crate) struct StreamInbox {
    replies: VecDeque<Reply>,
    body_bytes: usize,
    end: Option<Result<()>>,
    waker: Option<Waker>,
}

impl StreamInbox {
    fn push(&mut self, reply: Reply) {
        self.body_bytes += reply.body_bytes();
        self.replies.push_back(reply);
    }

    fn pop(&mut self) -> Option<Reply> {
        let reply = self.replies.pop_front()?;
        self.body_bytes -= reply.body_bytes();
        Some(reply)
    }

    /// Part of the waiting replies that exceeds the stream's own room.
    fn excess(&self) -> Waits {
        Waits {
            replies: self.replies.len().saturating_sub(OWN_REPLIES),
            body_bytes: self.body_bytes.saturating_sub(OWN_BODY_BYTES),
        }
    }
}

/// Amount of replies that the application has not taken yet.
#[derive(Clone, Copy, Default)]
struct Waits {
    replies: usize,
    body_bytes: usize,
}

impl Reply {
    /// Counts the reply as one that waits.
    fn waits(&self) -> Waits {
        Waits { replies: 1, body_bytes: self.body_bytes() }
    }
}

impl Waits {
    fn add(&mut self, other: Self) {
        self.replies += other.replies;
        self.body_bytes += other.body_bytes;
    }

    fn take_off(&mut self, other: Self) {
        self.replies -= other.replies;
        self.body_bytes -= other.body_bytes;
    }
}

/// Consumer of an operation's answer.
pub(crate) enum AnswerConsumer {
    /// A stream of replies.
    Stream(StreamInbox),
    /// Sink that takes the answer as it arrives.
    Sink(SinkSlot),
    /// One of many operations whose events arrive in one set; its number.
    InSet(u64),
    /// Operation of a group of read sinks: the group, and its number in the group.
    InGroup { group: u64, number: usize, expected_bytes: u64, sink: Box<dyn ReadSink> },
}

pub(crate) struct ClientSide {
    pub(crate) machine: Client,
    by_parts: bool,
    /// Membership among the connections that share a receive rate, while the connection is open.
    member: Option<GroupMember>,
    /// Statistics of the connection, which count packets received after gaps; `None` where gaps do not matter.
    flow: Option<Arc<dyn Flow>>,
    /// Round trips of the window, and packets received after gaps, at the last check.
    looked: (u64, u64),
    pub(crate) consumers: OpTable<AnswerConsumer>,
    pub(crate) counts: ReceiveCounts,
    pub(crate) request_sets: HashMap<u64, request_set::SetInbox>,
    pub(crate) groups: HashMap<u64, EndedRequests>,
    /// Number of the newest request set or group.
    pub(crate) last_set: u64,
    /// Waiting replies of all streams together, beyond the room that each stream has for itself.
    waits: Waits,
    pub(crate) welcome: Option<Welcome>,
    pub(crate) ended: Option<Error>,
    /// Tasks that wait for the welcome or the end.
    pub(crate) waiting_for_news: Vec<Waker>,
    /// Callers that wait until a request is accepted.
    pub(crate) waiting_for_room: WaitingCallers,
}

impl ClientSide {
    /// Creates the state. `by_parts`: bulk arrives outside the frames.
    pub(crate) fn new(
        machine: Client,
        by_parts: bool,
        member: Option<GroupMember>,
        flow: Option<Arc<dyn Flow>>,
    ) -> Self {
        Self {
            machine,
            by_parts,
            member,
            flow,
            looked: (0, 0),
            consumers: OpTable::default(),
            counts: ReceiveCounts::default(),
            request_sets: HashMap::new(),
            groups: HashMap::new(),
            last_set: 0,
            waits: Waits::default(),
            welcome: None,
            ended: None,
            waiting_for_news: Vec::new(),
            waiting_for_room: WaitingCallers::default(),
        }
    }

    /// Starts an operation whose answer is a stream.
    pub(crate) fn request_stream(&mut self, name: &str, parameters: Bytes, urgency: Urgency) -> Result<OpId> {
        let op = self.machine.request(name, parameters, urgency)?;
        self.consumers.insert(op, AnswerConsumer::Stream(StreamInbox::default()));
        Ok(op)
    }

    fn post(&mut self, op: OpId, reply: Reply) {
        let bulk_bytes = reply.bulk_bytes();
        // Assembling a message, or copying a part of it, counts as one copy; a part is one copy.
        self.counts.bulk_bytes += bulk_bytes;
        self.counts.copied_bytes += if self.by_parts { 0 } else { bulk_bytes };
        let waker = match self.consumers.get_mut(op) {
            Some(AnswerConsumer::Sink(_) | AnswerConsumer::InGroup { .. }) => return self.receive(op, reply),
            Some(AnswerConsumer::Stream(inbox)) => {
                self.waits.take_off(inbox.excess());
                inbox.push(reply);
                self.waits.add(inbox.excess());
                &mut inbox.waker
            }
            Some(AnswerConsumer::InSet(id)) => match self.request_sets.get_mut(id) {
                Some(inbox) => {
                    self.waits.add(reply.waits());
                    inbox.events.push_back((op, OpEvent::Reply(reply)));
                    &mut inbox.waker
                }
                None => return self.machine.grant(bulk_bytes),
            },
            None => return self.machine.grant(bulk_bytes),
        };
        waker.take().into_iter().for_each(Waker::wake);
    }

    /// Delivers the only item of an operation together with its end.
    fn post_whole(&mut self, op: OpId, whole: Item) {
        let bulk_bytes = whole.bulk.len() as u64;
        if matches!(self.consumers.get(op), Some(AnswerConsumer::Stream(_)) | None) {
            let Item { body, bulk } = whole;
            self.post(op, Reply::Item { item: 0, body, bulk_bytes });
            if bulk_bytes > 0 {
                self.post(op, Reply::Piece { item: 0, offset: 0, bytes: bulk, complete: true });
            }
            return self.post_end(op, Ok(()));
        }
        // The item was assembled from a batch; a sink copies it again.
        self.counts.bulk_bytes += bulk_bytes;
        self.counts.copied_bytes += bulk_bytes;
        if let Some(AnswerConsumer::InSet(_)) = self.consumers.get(op) {
            return self.post_last(op, OpEvent::Whole(whole));
        }
        self.counts.copied_bytes += bulk_bytes;
        self.machine.grant(bulk_bytes);
        let taken = self.sink(op).map_or(Ok(()), |sink| sink.whole(whole));
        self.post_end(op, taken);
    }

    /// Returns the sink of an operation whose answer is delivered as it arrives; `None` for other consumers.
    fn sink(&mut self, op: OpId) -> Option<&mut Box<dyn ReadSink>> {
        match self.consumers.get_mut(op)? {
            AnswerConsumer::Sink(slot) => slot.sink.as_mut(),
            AnswerConsumer::InGroup { sink, .. } => Some(sink),
            AnswerConsumer::Stream(_) | AnswerConsumer::InSet(_) => None,
        }
    }

    /// Passes bulk to a sink.
    fn put_to_its_place(&mut self, head: ChunkHead, bytes: &[u8], complete: bool) {
        let ChunkHead { op, item, offset } = head;
        let Some(sink) = self.sink(op) else {
            return self
                .post(op, Reply::Piece { item, offset, bytes: Bytes::copy_from_slice(bytes), complete });
        };
        let taken = sink.piece(item, offset, bytes, complete);
        self.counts.bulk_bytes += bytes.len() as u64;
        self.counts.copied_bytes += bytes.len() as u64;
        self.machine.grant(bytes.len() as u64);
        self.stop_if_refused(op, taken);
    }

    fn receive(&mut self, op: OpId, reply: Reply) {
        let bulk_bytes = reply.bulk_bytes();
        self.machine.grant(bulk_bytes);
        let Some(sink) = self.sink(op) else { return };
        let taken = match reply {
            Reply::Item { item, body, bulk_bytes } => sink.item(item, body, bulk_bytes),
            Reply::Piece { item, offset, bytes, complete } => sink.piece(item, offset, &bytes, complete),
        };
        self.counts.copied_bytes += bulk_bytes;
        self.stop_if_refused(op, taken);
    }

    fn stop_if_refused(&mut self, op: OpId, taken: Result<()>) {
        if let Err(error) = taken {
            self.machine.cancel(op);
            self.post_end(op, Err(error));
        }
    }

    fn post_end(&mut self, op: OpId, end: Result<()>) {
        match self.consumers.get_mut(op) {
            Some(AnswerConsumer::Sink(slot)) => slot.end(end),
            Some(AnswerConsumer::Stream(inbox)) => {
                inbox.end = Some(end);
                inbox.waker.take().into_iter().for_each(Waker::wake);
            }
            Some(AnswerConsumer::InSet(_)) => {
                self.post_last(op, end.map_or_else(OpEvent::Failed, |()| OpEvent::Done))
            }
            Some(AnswerConsumer::InGroup { .. }) => self.end_grouped(op, end),
            None => {}
        }
    }

    /// Delivers the last event of an operation of a set, and removes the operation.
    fn post_last(&mut self, op: OpId, last: OpEvent) {
        if let Some(AnswerConsumer::InSet(id)) = self.consumers.remove(op)
            && let Some(inbox) = self.request_sets.get_mut(&id)
        {
            if let OpEvent::Whole(Item { body, .. }) = &last {
                self.waits.add(Waits { replies: 1, body_bytes: body.len() });
            }
            inbox.events.push_back((op, last));
            inbox.in_flight -= 1;
            inbox.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    fn end_grouped(&mut self, op: OpId, end: Result<()>) {
        if let Some(AnswerConsumer::InGroup { group, number, expected_bytes, mut sink }) =
            self.consumers.remove(op)
        {
            let end = end.and_then(|()| sink.finish());
            // The sink releases the destination of the answer before the result is visible.
            drop(sink);
            if let Some(ends) = self.groups.get_mut(&group) {
                ends.add(number, expected_bytes, end);
            }
        }
    }

    /// Releases an event that the application has taken, or will never take.
    pub(crate) fn account_event(&mut self, event: &OpEvent) {
        match event {
            OpEvent::Reply(reply) => {
                self.waits.take_off(reply.waits());
                self.machine.grant(reply.bulk_bytes());
            }
            OpEvent::Whole(Item { body, bulk }) => {
                self.waits.take_off(Waits { replies: 1, body_bytes: body.len() });
                self.machine.grant(bulk.len() as u64);
            }
            OpEvent::Done | OpEvent::Failed(_) => {}
        }
    }

    /// Polls the next reply of a stream; the second value is true when the driver has something to do.
    pub(crate) fn poll_reply(&mut self, op: OpId, cx: &Context<'_>) -> (Poll<Option<Result<Reply>>>, bool) {
        let had_space = self.has_space();
        let Some(AnswerConsumer::Stream(inbox)) = self.consumers.get_mut(op) else {
            return (Poll::Ready(None), false);
        };
        let before = inbox.excess();
        if let Some(reply) = inbox.pop() {
            self.waits.add(inbox.excess());
            self.waits.take_off(before);
            self.machine.grant(reply.bulk_bytes());
            return (Poll::Ready(Some(Ok(reply))), !had_space || self.machine.owes_credit());
        }
        let Some(end) = inbox.end.take() else {
            inbox.waker = Some(cx.waker().clone());
            return (Poll::Pending, false);
        };
        self.consumers.remove(op);
        (Poll::Ready(end.err().map(Err)), false)
    }

    /// Discards the answer of a stream; false when it had no consumer.
    pub(crate) fn forget_stream(&mut self, op: OpId) -> bool {
        let Some(AnswerConsumer::Stream(inbox)) = self.consumers.remove(op) else { return false };
        self.waits.take_off(inbox.excess());
        self.machine.grant(inbox.replies.iter().map(Reply::bulk_bytes).sum());
        true
    }

    pub(crate) fn drop_stream(&mut self, op: OpId) {
        if self.forget_stream(op) {
            self.machine.cancel(op);
        }
    }

    pub(crate) fn note(&mut self, op: OpId, body: Bytes) -> Result<()> {
        self.machine.note(op, body)
    }

    pub(crate) fn adjust(&mut self, op: OpId, urgency: Urgency) {
        self.machine.adjust(op, urgency);
    }

    pub(crate) fn cancel_all(&mut self, is_one: impl Fn(&AnswerConsumer) -> bool) {
        self.consumers.take_if(is_one).into_iter().for_each(|(op, _)| self.machine.cancel(op));
    }

    /// Checks for gaps, once in each round trip of the window.
    fn look_for_gaps(&mut self) {
        let rounds = self.machine.rounds();
        if let Some(flow) = self.flow.as_ref().filter(|_| rounds != self.looked.0) {
            let out_of_order = flow.statistics().out_of_order.unwrap_or_default();
            self.machine.note_gaps(out_of_order > self.looked.1);
            self.looked = (rounds, out_of_order);
        }
    }

    /// Wakes callers for which there is room now.
    pub(crate) fn give_room(&mut self) {
        let Self { machine, waiting_for_room, .. } = self;
        waiting_for_room.wake(|tier| machine.room(Priority { tier, weight: 0.0 }));
    }
}

impl ProtocolSide for ClientSide {
    type Machine = Client;

    fn machine(&mut self) -> &mut Client {
        &mut self.machine
    }

    fn take_bulk(&mut self, now: Instant, head: ChunkHead, bytes: &[u8]) {
        // An error closes the state machine, whose events report it.
        let Ok(Some(complete)) = self.machine.handle_bulk(now, head, bytes) else { return };
        self.put_to_its_place(head, bytes, complete);
    }

    fn take_apart(&mut self, now: Instant, head: &ItemHead, offset: u64, bytes: &[u8]) {
        // An error closes the state machine, whose events report it.
        let Ok(Some(complete)) = self.machine.handle_apart(now, head, offset, bytes) else { return };
        self.put_to_its_place(ChunkHead { op: head.op, item: head.item, offset }, bytes, complete);
    }

    fn take_part(&mut self, now: Instant, part: BulkPart) {
        // An error closes the state machine, whose events report it.
        drop(self.machine.handle_part(now, part));
    }

    fn take_gone(&mut self, bytes: u64) {
        drop(self.machine.handle_gone(bytes));
    }

    fn has_space(&self) -> bool {
        self.waits.replies < MAX_WAITING_REPLIES && self.waits.body_bytes < MAX_WAITING_BODY_BYTES
    }

    fn prepare(&mut self) {
        self.look_for_gaps();
        if let Some(member) = &mut self.member {
            member.settle(&mut self.machine);
        }
    }

    fn settle(&mut self) {
        let mut news = false;
        while let Some(event) = self.machine.poll_event() {
            match event {
                ClientEvent::Item { op, item, body, bulk_bytes } => {
                    self.post(op, Reply::Item { item, body, bulk_bytes });
                }
                ClientEvent::Piece { op, item, offset, bytes, complete } => {
                    self.post(op, Reply::Piece { item, offset, bytes, complete });
                }
                ClientEvent::Whole { op, body, bulk } => self.post_whole(op, Item { body, bulk }),
                ClientEvent::Done { op } => self.post_end(op, Ok(())),
                ClientEvent::Failed { op, error } => self.post_end(op, Err(error)),
                ClientEvent::Welcomed(welcome) => (self.welcome, news) = (Some(welcome), true),
                ClientEvent::Closed { error } => (self.ended, news) = (Some(error), true),
            }
        }
        if news {
            self.waiting_for_news.drain(..).for_each(Waker::wake);
        }
        if self.ended.is_some() {
            self.waiting_for_room.wake_all();
            self.member = None;
        }
        self.give_room();
    }
}
