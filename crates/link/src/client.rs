//! The asking side for applications: requests as streams of replies.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use wire::{
    ChunkHead, Client, ClientConfig, ClientEvent, Error, ErrorKind, Machine, OpId, Priority, Result, Urgency,
    Welcome,
};

use crate::Link;
use crate::drive::{Driver, Shared, Side, drive, now, watch};
use crate::many::{self, Said};
use crate::receive::{Counts, Receiver, Slot};
use crate::room::{Ticket, Waiting};

/// Replies that wait in all streams of a connection together; then nothing more is received.
pub const MAX_WAITING_REPLIES: usize = 16_384;
/// Bytes of bodies that wait likewise. Bulk is bounded by the window.
pub const MAX_WAITING_BODY_BYTES: usize = 16 << 20;
/// Reserved at once for an item that is put together; more as its bytes come.
const FIRST_RESERVE_BYTES: u64 = 1 << 20;

/// Puts a client on a link.
///
/// # Errors
/// When something in `config` exceeds its limit.
pub fn connect(link: Link, config: ClientConfig) -> Result<(ClientHandle, Driver)> {
    let machine = Client::new(config, now())?;
    let shared = Shared::new(ClientSide {
        machine,
        inboxes: HashMap::new(),
        slots: HashMap::new(),
        counts: Counts::default(),
        manys: HashMap::new(),
        one_of: HashMap::new(),
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

pub(crate) struct ClientSide {
    machine: Client,
    inboxes: HashMap<OpId, Inbox>,
    /// Operations whose answers are taken where they arrive.
    slots: HashMap<OpId, Slot>,
    counts: Counts,
    /// Inboxes of many operations each, and which operation belongs to which.
    manys: HashMap<u64, many::Inbox>,
    one_of: HashMap<OpId, u64>,
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
        // A message was put together, or a piece of it made a value of its own.
        self.counts.bulk_bytes += reply.bulk_bytes();
        self.counts.copied_bytes += reply.bulk_bytes();
        if self.slots.contains_key(&op) {
            return self.receive(op, reply);
        }
        let many = self.one_of.get(&op).and_then(|id| self.manys.get_mut(id));
        let (body_bytes, bulk_bytes) = (reply.body_bytes(), reply.bulk_bytes());
        let waker = match (many, self.inboxes.get_mut(&op)) {
            (Some(inbox), _) => {
                inbox.said.push_back((op, Said::Reply(reply)));
                &mut inbox.waker
            }
            (None, Some(inbox)) => {
                inbox.replies.push_back(reply);
                &mut inbox.waker
            }
            (None, None) => return self.machine.grant(bulk_bytes),
        };
        waker.take().into_iter().for_each(Waker::wake);
        self.waiting_replies += 1;
        self.waiting_body_bytes += body_bytes;
    }

    fn receive(&mut self, op: OpId, reply: Reply) {
        let Some(receiver) = self.slots.get_mut(&op).and_then(|slot| slot.receiver.as_mut()) else {
            return self.machine.grant(reply.bulk_bytes());
        };
        let taken = match reply {
            Reply::Item { item, body, bulk_bytes } => receiver.item(item, body, bulk_bytes),
            Reply::Piece { item, offset, bytes, complete } => {
                self.counts.copied_bytes += bytes.len() as u64;
                self.machine.grant(bytes.len() as u64);
                receiver.piece(item, offset, &bytes, complete)
            }
        };
        self.stop_if_refused(op, taken);
    }

    fn stop_if_refused(&mut self, op: OpId, taken: Result<()>) {
        if let (Err(error), Some(slot)) = (taken, self.slots.get_mut(&op)) {
            slot.end(Err(error));
            self.machine.cancel(op);
        }
    }

    fn post_end(&mut self, op: OpId, end: Result<()>) {
        if let Some(slot) = self.slots.get_mut(&op) {
            slot.end(end);
        } else if let Some(inbox) = self.one_of.remove(&op).and_then(|id| self.manys.get_mut(&id)) {
            inbox.said.push_back((op, end.map_or_else(Said::Failed, |()| Said::Done)));
            inbox.under_way -= 1;
            inbox.waker.take().into_iter().for_each(Waker::wake);
        } else if let Some(inbox) = self.inboxes.get_mut(&op) {
            inbox.end = Some(end);
            inbox.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    /// The application has taken a reply, or will never.
    fn account(&mut self, reply: &Reply) {
        self.waiting_replies -= 1;
        self.waiting_body_bytes -= reply.body_bytes();
        self.machine.grant(reply.bulk_bytes());
    }

    /// The next reply of a stream, and whether the driver has something to do now.
    fn poll_reply(&mut self, op: OpId, cx: &Context<'_>) -> (Poll<Option<Result<Reply>>>, bool) {
        let had_space = self.has_space();
        let Some(inbox) = self.inboxes.get_mut(&op) else { return (Poll::Ready(None), false) };
        if let Some(reply) = inbox.replies.pop_front() {
            self.account(&reply);
            return (Poll::Ready(Some(Ok(reply))), !had_space || self.machine.owes_credit());
        }
        let Some(end) = inbox.end.take() else {
            inbox.waker = Some(cx.waker().clone());
            return (Poll::Pending, false);
        };
        self.inboxes.remove(&op);
        (Poll::Ready(end.err().map(Err)), false)
    }

    /// Nobody listens to the answer any more; false when nobody did before.
    fn forget_stream(&mut self, op: OpId) -> bool {
        let Some(inbox) = self.inboxes.remove(&op) else { return false };
        inbox.replies.iter().for_each(|reply| self.account(reply));
        true
    }

    fn drop_stream(&mut self, op: OpId) {
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
                self.slots.extend(receiver.take().map(|receiver| (op, Slot::new(receiver))));
                Ok(Some(op))
            }
            Err(error) if error.kind() == ErrorKind::Busy => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn slot(&mut self, op: OpId) -> Option<&mut Slot> {
        self.slots.get_mut(&op)
    }

    /// True when the operation had not ended.
    pub(crate) fn close_slot(&mut self, op: OpId) -> bool {
        let under_way = self.slots.remove(&op).is_some_and(|slot| slot.receiver.is_some());
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
                    self.one_of.insert(op, id);
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
        for (_, what) in &news {
            if let Said::Reply(reply) = what {
                self.account(reply);
            }
        }
        said.extend(news);
        Some(true)
    }

    pub(crate) fn wait_for_many(&mut self, id: u64, waker: &Waker) {
        if let Some(inbox) = self.manys.get_mut(&id) {
            inbox.waker = Some(waker.clone());
        }
    }

    pub(crate) fn adjust(&mut self, op: OpId, urgency: Urgency) {
        self.machine.adjust(op, urgency);
    }

    pub(crate) fn cancel_one_of(&mut self, id: u64, op: OpId) {
        if self.one_of.get(&op) == Some(&id) {
            self.one_of.remove(&op);
            self.machine.cancel(op);
            if let Some(inbox) = self.manys.get_mut(&id) {
                inbox.under_way -= 1;
                inbox.waker.take().into_iter().for_each(Waker::wake);
            }
        }
    }

    pub(crate) fn close_many(&mut self, id: u64) {
        let Some(inbox) = self.manys.remove(&id) else { return };
        for (_, what) in &inbox.said {
            if let Said::Reply(reply) = what {
                self.account(reply);
            }
        }
        let mut ops: Vec<OpId> = self.one_of.extract_if(|_, of| *of == id).map(|(op, _)| op).collect();
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

impl Side for ClientSide {
    type Machine = Client;

    fn machine(&mut self) -> &mut Client {
        &mut self.machine
    }

    fn take_bulk(&mut self, now: Instant, head: ChunkHead, bytes: &[u8]) {
        // An error has closed the machine, whose events say so.
        let Ok(Some(complete)) = self.machine.handle_bulk(now, head, bytes) else { return };
        let ChunkHead { op, item, offset } = head;
        if let Some(receiver) = self.slots.get_mut(&op).and_then(|slot| slot.receiver.as_mut()) {
            self.counts.bulk_bytes += bytes.len() as u64;
            self.counts.copied_bytes += bytes.len() as u64;
            self.machine.grant(bytes.len() as u64);
            let taken = receiver.piece(item, offset, bytes, complete);
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
            side.inboxes.insert(op, Inbox::default());
            Ok::<_, Error>(op)
        })?;
        Ok(OpStream { op, client: self.clone(), open: BTreeMap::new() })
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

/// The answer to one operation: its replies, then the end or an error. Dropping it cancels the operation.
///
/// Bulk bytes that wait here use up the connection's window, for all its operations: take them, or drop the stream.
pub struct OpStream {
    op: OpId,
    client: ClientHandle,
    /// Items of which `next_item` has seen the beginning.
    open: BTreeMap<u32, (Bytes, BytesMut)>,
}

impl fmt::Debug for OpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpStream({})", self.op)
    }
}

impl OpStream {
    /// Its number.
    #[must_use]
    pub fn op(&self) -> OpId {
        self.op
    }

    /// The next reply; `None` after the last one. After an error there is none.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&mut self) -> Option<Result<Reply>> {
        poll_fn(|cx| self.poll_reply(cx)).await
    }

    /// The next whole item, put together in memory; `None` after the last one. Not to be mixed with
    /// [`next`](Self::next).
    ///
    /// # Cancel safety
    /// Safe: what has come is kept.
    pub async fn next_item(&mut self) -> Option<Result<Item>> {
        poll_fn(|cx| self.poll_item(cx)).await
    }

    /// The only item of an answer that has one, once the operation ended well.
    ///
    /// # Errors
    /// The operation's, or `Corrupt` when it answered without an item.
    ///
    /// # Cancel safety
    /// Dropping it cancels the operation.
    pub async fn only_item(mut self) -> Result<Item> {
        let mut first = None;
        while let Some(item) = self.next_item().await {
            first.get_or_insert(item?);
        }
        first.ok_or_else(|| Error::corrupt("expected an item in answer, found none"))
    }

    /// Lets the operation run to its end without anybody listening: how an operation is asked one-way.
    pub fn detach(self) {
        self.client.shared().change(|side| side.forget_stream(self.op));
    }

    /// Changes how much it matters, also for what the server has queued already.
    pub fn adjust(&self, urgency: Urgency) {
        self.client.shared().change(|side| side.machine.adjust(self.op, urgency));
    }

    /// Sends a message to the running operation.
    ///
    /// # Errors
    /// `TooLarge` when it exceeds its limit, `Busy` when too much is waiting to be sent.
    pub fn note(&self, body: Bytes) -> Result<()> {
        self.client.shared().change(|side| side.machine.note(self.op, body))
    }

    fn poll_reply(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Reply>>> {
        let shared = self.client.shared();
        let (reply, concerns_driver) = shared.with(|side| side.poll_reply(self.op, cx));
        if concerns_driver {
            shared.change(|_| ());
        }
        reply
    }

    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Item>>> {
        loop {
            match ready!(self.poll_reply(cx)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(Reply::Item { body, bulk_bytes: 0, .. })) => {
                    return Poll::Ready(Some(Ok(Item { body, bulk: Bytes::new() })));
                }
                Some(Ok(Reply::Item { item, body, bulk_bytes })) => {
                    let reserve = usize::try_from(bulk_bytes.min(FIRST_RESERVE_BYTES)).unwrap_or(0);
                    self.open.insert(item, (body, BytesMut::with_capacity(reserve)));
                }
                Some(Ok(Reply::Piece { item, offset, bytes, complete })) => {
                    if complete && let Some((body, mut start)) = self.open.remove(&item) {
                        // One piece is the whole: no copy.
                        if offset == 0 {
                            return Poll::Ready(Some(Ok(Item { body, bulk: bytes })));
                        }
                        start.extend_from_slice(&bytes);
                        return Poll::Ready(Some(Ok(Item { body, bulk: start.freeze() })));
                    }
                    if let Some((_, start)) = self.open.get_mut(&item) {
                        start.extend_from_slice(&bytes);
                    }
                }
            }
        }
    }
}

impl Stream for OpStream {
    type Item = Result<Reply>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Reply>>> {
        self.poll_reply(cx)
    }
}

impl Drop for OpStream {
    fn drop(&mut self) {
        self.client.shared().change(|side| side.drop_stream(self.op));
    }
}
