//! The asking side for applications: requests as streams of replies.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::Bytes;
use wire::{
    ChunkHead, Client, ClientConfig, ClientEvent, Error, ErrorKind, Machine, OpId, Priority, Result, Urgency,
    Welcome,
};

use crate::Link;
use crate::drive::{Driver, Shared, Side, drive, now, watch};
use crate::many::{self, Said};
use crate::receive::{Counts, Receiver, Slot};
use crate::receive_many::{Asking, Ends};
use crate::room::{Ticket, Waiting};
use crate::stream::OpStream;

/// Replies that wait in all streams of a connection together; then nothing more is received.
pub const MAX_WAITING_REPLIES: usize = 16_384;
/// Bytes of bodies that wait likewise. Bulk is bounded by the window.
pub const MAX_WAITING_BODY_BYTES: usize = 16 << 20;
/// Of a group's operations under way, as many must have ended as this part of them before others follow.
const ENDED_FRACTION: usize = 16;
/// So many of a group may be under way however much bulk they are expected to answer with.
const LEAST_UNDER_WAY: usize = 64;

/// Puts a client on a link.
///
/// # Errors
/// When something in `config` exceeds its limit.
pub fn connect(link: Link, config: ClientConfig) -> Result<(ClientHandle, Driver)> {
    let machine = Client::new(config, now())?;
    let shared = Shared::new(ClientSide {
        machine,
        askers: HashMap::new(),
        counts: Counts::default(),
        manys: HashMap::new(),
        groups: HashMap::new(),
        last_many: 0,
        waiting_replies: 0,
        waiting_body_bytes: 0,
        welcome: None,
        ended: None,
        waiting_for_news: Vec::new(),
        waiting_for_room: Waiting::default(),
    });
    let driver = drive(link, Arc::clone(&shared));
    Ok((ClientHandle(Arc::new(Owner(shared))), driver))
}

/// Some of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The head of an item.
    Item {
        /// Its number in the operation.
        item: u32,
        /// The small part.
        body: Bytes,
        /// Size of the bulk that follows in pieces.
        bulk_bytes: u64,
    },
    /// Some of an item's bulk.
    Piece {
        /// The item.
        item: u32,
        /// Where in the item's bulk.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
        /// The item is complete and its checksum is right. Until then the bytes are not proven.
        complete: bool,
    },
}

impl Reply {
    fn body_bytes(&self) -> usize {
        match self {
            Self::Item { body, .. } => body.len(),
            Self::Piece { .. } => 0,
        }
    }

    fn bulk_bytes(&self) -> u64 {
        match self {
            Self::Item { .. } => 0,
            Self::Piece { bytes, .. } => bytes.len() as u64,
        }
    }
}

/// A whole item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The small part.
    pub body: Bytes,
    /// The bulk, checked.
    pub bulk: Bytes,
}

/// What waits for one stream.
#[derive(Default)]
struct Inbox {
    replies: VecDeque<Reply>,
    end: Option<Result<()>>,
    waker: Option<Waker>,
}

/// Who has asked for an operation.
enum Asker {
    /// A stream of replies.
    Stream(Inbox),
    /// Somebody who takes the answer where it arrives.
    Slot(Slot),
    /// One of many operations whose answers come by one stream.
    OneOf(u64),
    /// One of many operations whose answers are taken where they arrive: of which group, and which one of it.
    Grouped { group: u64, number: usize, expected_bytes: u64, receiver: Box<dyn Receiver> },
}

pub(crate) struct ClientSide {
    machine: Client,
    askers: HashMap<OpId, Asker>,
    counts: Counts,
    manys: HashMap<u64, many::Inbox>,
    groups: HashMap<u64, Ends>,
    /// Number of the newest of the two above.
    last_many: u64,
    waiting_replies: usize,
    waiting_body_bytes: usize,
    welcome: Option<Welcome>,
    ended: Option<Error>,
    /// Those who wait for the welcome or the end.
    waiting_for_news: Vec<Waker>,
    /// Those who wait until a request is taken.
    waiting_for_room: Waiting,
}

impl ClientSide {
    fn post(&mut self, op: OpId, reply: Reply) {
        let (body_bytes, bulk_bytes) = (reply.body_bytes(), reply.bulk_bytes());
        // A message was put together, or a piece of it made a value of its own.
        self.counts.bulk_bytes += bulk_bytes;
        self.counts.copied_bytes += bulk_bytes;
        let waker = match self.askers.get_mut(&op) {
            Some(Asker::Slot(_) | Asker::Grouped { .. }) => return self.receive(op, reply),
            Some(Asker::Stream(inbox)) => {
                inbox.replies.push_back(reply);
                &mut inbox.waker
            }
            Some(Asker::OneOf(id)) => match self.manys.get_mut(id) {
                Some(inbox) => {
                    inbox.said.push_back((op, Said::Reply(reply)));
                    &mut inbox.waker
                }
                None => return self.machine.grant(bulk_bytes),
            },
            None => return self.machine.grant(bulk_bytes),
        };
        waker.take().into_iter().for_each(Waker::wake);
        self.waiting_replies += 1;
        self.waiting_body_bytes += body_bytes;
    }

    /// The only item of an operation, and its end.
    fn post_whole(&mut self, op: OpId, whole: Item) {
        let bulk_bytes = whole.bulk.len() as u64;
        if matches!(self.askers.get(&op), Some(Asker::Stream(_)) | None) {
            let Item { body, bulk } = whole;
            self.post(op, Reply::Item { item: 0, body, bulk_bytes });
            if bulk_bytes > 0 {
                self.post(op, Reply::Piece { item: 0, offset: 0, bytes: bulk, complete: true });
            }
            return self.post_end(op, Ok(()));
        }
        // It was put together with others; whoever takes it where it arrives copies it again.
        self.counts.bulk_bytes += bulk_bytes;
        self.counts.copied_bytes += bulk_bytes;
        if let Some(Asker::OneOf(_)) = self.askers.get(&op) {
            return self.say_last(op, Said::Whole(whole));
        }
        self.counts.copied_bytes += bulk_bytes;
        self.machine.grant(bulk_bytes);
        let taken = self.receiver(op).map_or(Ok(()), |receiver| receiver.whole(whole));
        self.post_end(op, taken);
    }

    /// Who takes the answer where it arrives.
    fn receiver(&mut self, op: OpId) -> Option<&mut Box<dyn Receiver>> {
        match self.askers.get_mut(&op)? {
            Asker::Slot(slot) => slot.receiver.as_mut(),
            Asker::Grouped { receiver, .. } => Some(receiver),
            Asker::Stream(_) | Asker::OneOf(_) => None,
        }
    }

    fn receive(&mut self, op: OpId, reply: Reply) {
        let bulk_bytes = reply.bulk_bytes();
        self.machine.grant(bulk_bytes);
        let Some(receiver) = self.receiver(op) else { return };
        let taken = match reply {
            Reply::Item { item, body, bulk_bytes } => receiver.item(item, body, bulk_bytes),
            Reply::Piece { item, offset, bytes, complete } => receiver.piece(item, offset, &bytes, complete),
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
        match self.askers.get_mut(&op) {
            Some(Asker::Slot(slot)) => slot.end(end),
            Some(Asker::Stream(inbox)) => {
                inbox.end = Some(end);
                inbox.waker.take().into_iter().for_each(Waker::wake);
            }
            Some(Asker::OneOf(_)) => self.say_last(op, end.map_or_else(Said::Failed, |()| Said::Done)),
            Some(Asker::Grouped { .. }) => self.end_grouped(op, end),
            None => {}
        }
    }

    /// The last that is heard of one of many; nothing is kept of it.
    fn say_last(&mut self, op: OpId, last: Said) {
        if let Some(Asker::OneOf(id)) = self.askers.remove(&op)
            && let Some(inbox) = self.manys.get_mut(&id)
        {
            if let Said::Whole(Item { body, .. }) = &last {
                self.waiting_replies += 1;
                self.waiting_body_bytes += body.len();
            }
            inbox.said.push_back((op, last));
            inbox.under_way -= 1;
            inbox.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    fn end_grouped(&mut self, op: OpId, end: Result<()>) {
        if let Some(Asker::Grouped { group, number, expected_bytes, mut receiver }) = self.askers.remove(&op)
        {
            let end = end.and_then(|()| receiver.finish());
            // It lets go of where the answer went before anybody hears of the end.
            drop(receiver);
            if let Some(ends) = self.groups.get_mut(&group) {
                ends.add(number, expected_bytes, end);
            }
        }
    }

    /// The application has taken a reply, or will never.
    fn account(&mut self, reply: &Reply) {
        self.waiting_replies -= 1;
        self.waiting_body_bytes -= reply.body_bytes();
        self.machine.grant(reply.bulk_bytes());
    }

    fn account_said(&mut self, said: &Said) {
        match said {
            Said::Reply(reply) => self.account(reply),
            Said::Whole(Item { body, bulk }) => {
                self.waiting_replies -= 1;
                self.waiting_body_bytes -= body.len();
                self.machine.grant(bulk.len() as u64);
            }
            Said::Done | Said::Failed(_) => {}
        }
    }

    /// The next reply of a stream, and whether the driver has something to do now.
    pub(crate) fn poll_reply(&mut self, op: OpId, cx: &Context<'_>) -> (Poll<Option<Result<Reply>>>, bool) {
        let had_space = self.has_space();
        let Some(Asker::Stream(inbox)) = self.askers.get_mut(&op) else { return (Poll::Ready(None), false) };
        if let Some(reply) = inbox.replies.pop_front() {
            self.account(&reply);
            return (Poll::Ready(Some(Ok(reply))), !had_space || self.machine.owes_credit());
        }
        let Some(end) = inbox.end.take() else {
            inbox.waker = Some(cx.waker().clone());
            return (Poll::Pending, false);
        };
        self.askers.remove(&op);
        (Poll::Ready(end.err().map(Err)), false)
    }

    /// Nobody listens to the answer any more; false when nobody did before.
    pub(crate) fn forget_stream(&mut self, op: OpId) -> bool {
        let Some(Asker::Stream(inbox)) = self.askers.remove(&op) else { return false };
        inbox.replies.iter().for_each(|reply| self.account(reply));
        true
    }

    pub(crate) fn drop_stream(&mut self, op: OpId) {
        if self.forget_stream(op) {
            self.machine.cancel(op);
        }
    }
}

/// What [`Receiving`](crate::Receiving) needs.
impl ClientSide {
    /// `None`, with the receiver left, when there is no room.
    pub(crate) fn request_into(
        &mut self,
        name: &str,
        parameters: &Bytes,
        urgency: Urgency,
        receiver: &mut Option<Box<dyn Receiver>>,
    ) -> Result<Option<OpId>> {
        match self.machine.request(name, parameters.clone(), urgency) {
            Ok(op) => {
                let slot = receiver.take().map(|receiver| (op, Asker::Slot(Slot::new(receiver))));
                self.askers.extend(slot);
                Ok(Some(op))
            }
            Err(error) if error.kind() == ErrorKind::Busy => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn slot(&mut self, op: OpId) -> Option<&mut Slot> {
        match self.askers.get_mut(&op) {
            Some(Asker::Slot(slot)) => Some(slot),
            _ => None,
        }
    }

    /// True when the operation had not ended.
    pub(crate) fn close_slot(&mut self, op: OpId) -> bool {
        let slot = self.askers.remove(&op);
        let under_way = matches!(slot, Some(Asker::Slot(slot)) if slot.receiver.is_some());
        if under_way {
            self.machine.cancel(op);
        }
        under_way
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }
}

/// What [`Many`](crate::Many) needs.
impl ClientSide {
    pub(crate) fn open_many(&mut self) -> u64 {
        self.last_many += 1;
        self.manys.insert(self.last_many, many::Inbox::default());
        self.last_many
    }

    pub(crate) fn request_many(
        &mut self,
        id: u64,
        name: &str,
        parameters: &mut VecDeque<Bytes>,
        urgency: Urgency,
    ) -> Result<Vec<OpId>> {
        let mut ops = Vec::with_capacity(parameters.len().min(self.machine.room(urgency.priority)));
        while let Some(next) = parameters.pop_front() {
            match self.machine.request(name, next.clone(), urgency) {
                Ok(op) => {
                    self.askers.insert(op, Asker::OneOf(id));
                    ops.push(op);
                }
                Err(error) => {
                    parameters.push_front(next);
                    if error.kind() != ErrorKind::Busy || self.ended.is_some() {
                        return Err(error);
                    }
                    break;
                }
            }
        }
        if let Some(inbox) = self.manys.get_mut(&id) {
            inbox.under_way += ops.len();
        }
        Ok(ops)
    }

    /// All news of many; `None` when there are none yet, false when there will be none.
    pub(crate) fn take_said(&mut self, id: u64, said: &mut Vec<(OpId, Said)>) -> Option<bool> {
        let inbox = self.manys.get_mut(&id)?;
        if inbox.said.is_empty() {
            return (inbox.under_way == 0).then_some(false);
        }
        let news = std::mem::take(&mut inbox.said);
        news.iter().for_each(|(_, what)| self.account_said(what));
        said.extend(news);
        Some(true)
    }

    pub(crate) fn wait_for_many(&mut self, id: u64, waker: &Waker) {
        if let Some(inbox) = self.manys.get_mut(&id) {
            inbox.waker = Some(waker.clone());
        }
    }

    pub(crate) fn note(&mut self, op: OpId, body: Bytes) -> Result<()> {
        self.machine.note(op, body)
    }

    pub(crate) fn adjust(&mut self, op: OpId, urgency: Urgency) {
        self.machine.adjust(op, urgency);
    }

    pub(crate) fn cancel_one_of(&mut self, id: u64, op: OpId) {
        if matches!(self.askers.get(&op), Some(Asker::OneOf(of)) if *of == id) {
            self.askers.remove(&op);
            self.machine.cancel(op);
            if let Some(inbox) = self.manys.get_mut(&id) {
                inbox.under_way -= 1;
                inbox.waker.take().into_iter().for_each(Waker::wake);
            }
        }
    }

    pub(crate) fn close_many(&mut self, id: u64) {
        let Some(inbox) = self.manys.remove(&id) else { return };
        inbox.said.iter().for_each(|(_, what)| self.account_said(what));
        self.cancel_all(|asker| matches!(asker, Asker::OneOf(of) if *of == id));
    }

    fn cancel_all(&mut self, is_one: impl Fn(&Asker) -> bool) {
        let mut ops: Vec<OpId> = self.askers.extract_if(|_, asker| is_one(asker)).map(|(op, _)| op).collect();
        ops.sort_unstable();
        ops.into_iter().for_each(|op| self.machine.cancel(op));
    }

    pub(crate) fn is_receiving(&self) -> bool {
        self.has_space()
    }

    pub(crate) fn owes_credit(&self) -> bool {
        self.machine.owes_credit()
    }

    /// Wakes those for whom there is room now.
    fn give_room(&mut self) {
        let Self { machine, waiting_for_room, .. } = self;
        waiting_for_room.wake(|tier| machine.room(Priority { tier, weight: 0.0 }));
    }
}

/// What [`ClientHandle::receive_many`] needs.
impl ClientSide {
    pub(crate) fn open_group(&mut self) -> u64 {
        self.last_many += 1;
        self.groups.insert(self.last_many, Ends::default());
        self.last_many
    }

    /// Starts operations, as many as there is room for and as are good for two windows of bulk; `next` is the number of
    /// the first in its group. While many of a group are under way it waits until some have ended, so that those that
    /// follow them travel together. One that cannot be asked has ended.
    pub(crate) fn request_grouped(
        &mut self,
        group: u64,
        next: &mut usize,
        name: &str,
        asks: &mut VecDeque<Asking>,
    ) {
        let Self { machine, askers, groups, ended, .. } = self;
        let (Some(ends), Some(first)) = (groups.get_mut(&group), asks.front()) else { return };
        let most_bytes = machine.window_bytes().saturating_mul(2);
        let is_full = |ends: &Ends, parts: usize| {
            let is_ahead = ends.expected_bytes + most_bytes / parts as u64 > most_bytes;
            ends.under_way >= LEAST_UNDER_WAY && is_ahead
        };
        let has_room = machine.room(first.urgency.priority) >= ends.under_way / ENDED_FRACTION;
        if ended.is_none() && (!has_room || is_full(ends, ENDED_FRACTION)) {
            return;
        }
        while let Some(Asking { parameters, urgency, .. }) = asks.front() {
            if is_full(ends, usize::MAX) && ended.is_none() {
                return;
            }
            let requested = machine.request(name, parameters.clone(), *urgency);
            if requested.as_ref().is_err_and(|e| e.kind() == ErrorKind::Busy) && ended.is_none() {
                return;
            }
            let Some(Asking { receiver, expected_bytes, .. }) = asks.pop_front() else { return };
            let number = *next;
            *next += 1;
            ends.begin(expected_bytes);
            match requested {
                Ok(op) => drop(askers.insert(op, Asker::Grouped { group, number, expected_bytes, receiver })),
                Err(error) => {
                    drop(receiver);
                    ends.add(number, expected_bytes, Err(error));
                }
            }
        }
    }

    pub(crate) fn ends(&mut self, group: u64) -> Option<&mut Ends> {
        self.groups.get_mut(&group)
    }

    pub(crate) fn close_group(&mut self, group: u64) {
        if self.groups.remove(&group).is_some_and(|ends| ends.under_way > 0) {
            self.cancel_all(|asker| matches!(asker, Asker::Grouped { group: of, .. } if *of == group));
        }
    }
}

impl Side for ClientSide {
    type Machine = Client;

    fn machine(&mut self) -> &mut Client {
        &mut self.machine
    }

    fn take_bulk(&mut self, now: Instant, head: ChunkHead, bytes: &[u8]) {
        // An error has closed the machine, whose events say so.
        let Ok(Some(complete)) = self.machine.handle_bulk(now, head, bytes) else { return };
        let ChunkHead { op, item, offset } = head;
        if let Some(receiver) = self.receiver(op) {
            let taken = receiver.piece(item, offset, bytes, complete);
            self.counts.bulk_bytes += bytes.len() as u64;
            self.counts.copied_bytes += bytes.len() as u64;
            self.machine.grant(bytes.len() as u64);
            return self.stop_if_refused(op, taken);
        }
        self.post(op, Reply::Piece { item, offset, bytes: Bytes::copy_from_slice(bytes), complete });
    }

    fn has_space(&self) -> bool {
        self.waiting_replies < MAX_WAITING_REPLIES && self.waiting_body_bytes < MAX_WAITING_BODY_BYTES
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
        }
        self.give_room();
    }
}

/// Closes the connection when the last handle and the last stream are gone.
struct Owner(Arc<Shared<ClientSide>>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.change(|side| side.machine.close(Error::new(ErrorKind::Cancelled, "the client is done")));
    }
}

/// Asks a server for operations. Cheap to clone; the connection lives as long as a handle or a stream does.
#[derive(Clone)]
pub struct ClientHandle(Arc<Owner>);

impl fmt::Debug for ClientHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientHandle")
    }
}

impl ClientHandle {
    pub(crate) fn shared(&self) -> &Shared<ClientSide> {
        &self.0.0
    }

    /// Starts an operation at once.
    ///
    /// # Errors
    /// `Busy` when there is no room for another one now, `TooLarge` when name or parameters exceed their limit, or
    /// why the connection ended.
    pub fn try_request(&self, name: &str, parameters: Bytes, urgency: Urgency) -> Result<OpStream> {
        let op = self.shared().change(|side| {
            let op = side.machine.request(name, parameters, urgency)?;
            side.askers.insert(op, Asker::Stream(Inbox::default()));
            Ok::<_, Error>(op)
        })?;
        Ok(OpStream::new(op, self.clone()))
    }

    /// Starts an operation as soon as there is room for it, which is nearly always now.
    ///
    /// # Errors
    /// As [`try_request`](Self::try_request), but never `Busy`.
    ///
    /// # Cancel safety
    /// Safe: until it returns, nothing was asked.
    pub async fn request(&self, name: &str, parameters: Bytes, urgency: Urgency) -> Result<OpStream> {
        loop {
            self.room(urgency.priority).await;
            match self.try_request(name, parameters.clone(), urgency) {
                // Somebody else was faster; a server without a place for us says busy too, and for good.
                Err(error) if error.kind() == ErrorKind::Busy && self.ended().is_none() => {}
                done => return done,
            }
        }
    }

    /// Waits until there is room for an operation of this priority, or the connection is over.
    pub(crate) async fn room(&self, priority: Priority) {
        let ticket = self.shared().with(|side| side.waiting_for_room.ticket(priority));
        let place = Place { client: self, ticket };
        poll_fn(|cx| {
            self.shared().with(|side| {
                if side.ended.is_some() || side.machine.room(priority) > 0 {
                    return Poll::Ready(());
                }
                side.waiting_for_room.wait(place.ticket, cx.waker());
                Poll::Pending
            })
        })
        .await;
    }

    /// Runs an operation that answers with one item.
    ///
    /// # Errors
    /// The operation's, or `Corrupt` when it answered without an item.
    ///
    /// # Cancel safety
    /// Dropping it cancels the operation.
    pub async fn call(&self, name: &str, parameters: Bytes, urgency: Urgency) -> Result<Item> {
        self.request(name, parameters, urgency).await?.only_item().await
    }

    /// Waits for the end of the handshake.
    ///
    /// # Errors
    /// Why the connection ended instead.
    ///
    /// # Cancel safety
    /// Safe: nothing is consumed.
    pub async fn welcomed(&self) -> Result<Welcome> {
        poll_fn(|cx| {
            self.shared().with(|side| match (&side.ended, &side.welcome) {
                (Some(error), _) => Poll::Ready(Err(error.clone())),
                (None, Some(welcome)) => Poll::Ready(Ok(welcome.clone())),
                (None, None) => {
                    watch(&mut side.waiting_for_news, cx);
                    Poll::Pending
                }
            })
        })
        .await
    }

    /// Waits for the end of the connection and says why it ended.
    ///
    /// # Cancel safety
    /// Safe: nothing is consumed.
    pub async fn closed(&self) -> Error {
        poll_fn(|cx| {
            self.shared().with(|side| {
                side.ended.clone().map_or_else(
                    || {
                        watch(&mut side.waiting_for_news, cx);
                        Poll::Pending
                    },
                    Poll::Ready,
                )
            })
        })
        .await
    }

    /// Why the connection is over, if it is.
    #[must_use]
    pub fn ended(&self) -> Option<Error> {
        self.shared().with(|side| side.ended.clone())
    }

    /// Ends the connection, telling the server why; everything under way fails.
    pub fn close(&self, error: Error) {
        self.shared().change(|side| {
            side.machine.close(error);
            side.settle();
        });
    }
}

/// A place among those who wait for room. Whoever leaves it passes on what it was woken for.
struct Place<'a> {
    client: &'a ClientHandle,
    ticket: Ticket,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.client.shared().with(|side| {
            side.waiting_for_room.leave(self.ticket);
            side.give_room();
        });
    }
}
