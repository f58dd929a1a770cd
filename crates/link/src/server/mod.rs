//! The answering side for applications: operations as they come, each with its own handle.

pub(crate) mod bulk_apart;
pub(crate) mod operation_queue;
pub(crate) mod waiting_limit;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use wire::limits::HIGHEST_TIER;
use wire::{
    CheckedBulk, Error, ErrorKind, Hello, Machine, OpId, Priority, Result, Server, ServerConfig, ServerEvent,
    Urgency,
};

use crate::Link;
use crate::clock::now;
use crate::drive::{Driver, ProtocolSide, SharedSide, drive, watch};
use crate::server::operation_queue::{OperationQueue, WaitingOperation};
use crate::server::waiting_limit::{Load, WaitingLimit, WaitingPermit};

/// Notes that wait to be taken in one connection; then nothing more is received.
pub const MAX_WAITING_NOTES: usize = 1_024;
/// Bytes of their bodies likewise.
pub const MAX_WAITING_NOTE_BYTES: usize = 8 << 20;
/// Parameters of operations that wait to be taken in one connection, bytes; beyond, operations fail with *busy*. What
/// is received must go on being heard, because it may be the credit that others wait for.
pub const MAX_WAITING_PARAMETER_BYTES: usize = 32 << 20;

/// Puts a server on a link.
///
/// # Errors
/// When something in `config` exceeds its limit.
pub fn serve(link: Link, config: ServerConfig) -> Result<(ServerConnection, Driver)> {
    let places = u64::from(config.most_operations);
    serve_among(link, config, WaitingLimit::new(places))
}

/// Puts a server on a link whose waiting operations count below a limit that other connections share: beyond it, and
/// beyond those that each connection has of its own, they fail with *busy*.
///
/// # Errors
/// As [`serve`].
pub fn serve_among(
    mut link: Link,
    config: ServerConfig,
    waiting_limit: WaitingLimit,
) -> Result<(ServerConnection, Driver)> {
    let peer = link.peer().to_owned();
    let machine = Server::new(config, now())?;
    let shared = SharedSide::new(ServerSide {
        machine,
        hello: None,
        incoming: OperationQueue::default(),
        waiting_permit: waiting_limit.permit(),
        ops: HashMap::new(),
        waiting_notes: 0,
        waiting_note_bytes: 0,
        ended: None,
        acceptor: Vec::new(),
        waiting_for_room: BTreeMap::new(),
    });
    let opening = Mutex::new(link.opening.take());
    let driver = drive(link, Arc::clone(&shared));
    Ok((ServerConnection { shared, peer, opening }, driver))
}

/// News of an operation that the application has not heard yet. Most operations are taken, answered and forgotten
/// without any.
#[derive(Default)]
struct OpState {
    adjusted: bool,
    cancelled: bool,
    notes: VecDeque<Bytes>,
    waiting: Vec<Waker>,
    /// The tier in which it waits for room.
    waits_in_tier: Option<u8>,
}

impl OpState {
    fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

struct ServerSide {
    machine: Server,
    hello: Option<Hello>,
    incoming: OperationQueue,
    waiting_permit: WaitingPermit,
    ops: HashMap<OpId, OpState>,
    waiting_notes: usize,
    waiting_note_bytes: usize,
    ended: Option<Error>,
    /// Those who wait for the hello or the next operation.
    acceptor: Vec<Waker>,
    /// Operations that wait until an item is taken, by tier: all of one tier find room at once.
    waiting_for_room: BTreeMap<(u8, OpId), Vec<Waker>>,
}

impl ServerSide {
    fn note_taken(&mut self, body: &Bytes) {
        self.waiting_notes -= 1;
        self.waiting_note_bytes -= body.len();
    }

    fn handle(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Hello(hello) => self.hello = Some(hello),
            ServerEvent::Request { op, name, parameters, urgency } => {
                self.handle_request(op, name, &parameters, urgency);
            }
            ServerEvent::Adjust { op, urgency } => self.adjust(op, urgency),
            ServerEvent::Cancel { op } => self.cancel(op),
            ServerEvent::Note { op, body } => self.handle_note(op, &body),
            ServerEvent::Closed { error } => {
                self.ended = Some(error);
                std::mem::take(&mut self.waiting_for_room).into_values().flatten().for_each(Waker::wake);
                self.incoming.clear();
                self.waiting_permit.shrink(Load::default());
                self.ops.values_mut().for_each(|state| {
                    state.cancelled = true;
                    state.wake();
                });
            }
        }
        self.acceptor.drain(..).for_each(Waker::wake);
    }

    fn handle_request(&mut self, op: OpId, name: Arc<str>, parameters: &Bytes, urgency: Urgency) {
        if self.incoming.parameter_bytes() + parameters.len() > MAX_WAITING_PARAMETER_BYTES {
            let most = MAX_WAITING_PARAMETER_BYTES;
            let what = format!("expected at most {most} bytes of parameters that wait, found more");
            return self.machine.fail(op, Error::new(ErrorKind::Busy, what));
        }
        let with_it = Load {
            operations: self.incoming.len() + 1,
            parameter_bytes: self.incoming.parameter_bytes() + parameters.len(),
        };
        if !self.waiting_permit.admit(with_it) {
            let what = "expected fewer operations of all clients that wait for this server, found too many";
            return self.machine.fail(op, Error::new(ErrorKind::Busy, what));
        }
        // Copied, because an operation may live long, and a slice would keep all that was received with it.
        let parameters = Bytes::copy_from_slice(parameters);
        self.incoming.push(urgency.priority, WaitingOperation { op, name, parameters });
    }

    fn handle_note(&mut self, op: OpId, body: &Bytes) {
        // Copied as parameters are: a frame may be much longer than the note in it.
        let body = Bytes::copy_from_slice(body);
        self.waiting_notes += 1;
        self.waiting_note_bytes += body.len();
        self.update(op, |state| state.notes.push_back(body));
    }

    fn adjust(&mut self, op: OpId, urgency: Urgency) {
        self.incoming.adjust(op, urgency.priority);
        self.update(op, |state| state.adjusted = true);
    }

    fn cancel(&mut self, op: OpId) {
        if self.incoming.remove(op).is_some() {
            self.waiting_permit.shrink(self.incoming.load());
            return self.forget(op);
        }
        if self.ops.contains_key(&op) {
            self.update(op, |state| state.cancelled = true);
        }
    }

    fn forget(&mut self, op: OpId) {
        self.look_for_room(op);
        if let Some(state) = self.ops.remove(&op) {
            state.notes.iter().for_each(|body| self.note_taken(body));
        }
    }

    /// Something is to be heard of an operation that is open, or that has been heard of.
    fn update(&mut self, op: OpId, f: impl FnOnce(&mut OpState)) {
        self.look_for_room(op);
        let state = self.ops.entry(op).or_default();
        f(state);
        state.wake();
    }

    fn is_cancelled(&self, op: OpId) -> bool {
        self.ops.get(&op).map_or_else(|| !self.machine.is_open(op), |state| state.cancelled)
    }

    fn poll_change(&mut self, op: OpId, cx: &Context<'_>) -> Poll<OperationChange> {
        if self.is_cancelled(op) {
            return Poll::Ready(OperationChange::Cancelled);
        }
        let urgency = self.urgency(op);
        let state = self.ops.entry(op).or_default();
        if std::mem::take(&mut state.adjusted) {
            return Poll::Ready(OperationChange::Adjusted(urgency));
        }
        if let Some(body) = state.notes.pop_front() {
            self.note_taken(&body);
            return Poll::Ready(OperationChange::Note(body));
        }
        watch(&mut state.waiting, cx);
        Poll::Pending
    }

    fn poll_room(&mut self, op: OpId, cx: &Context<'_>) -> Poll<()> {
        if !must_wait(&self.machine, op) {
            return Poll::Ready(());
        }
        let tier = self.urgency(op).priority.tier.min(HIGHEST_TIER);
        let tier = *self.ops.entry(op).or_default().waits_in_tier.get_or_insert(tier);
        watch(self.waiting_for_room.entry((tier, op)).or_default(), cx);
        Poll::Pending
    }

    /// How much an operation matters now; little once its last frame was sent.
    fn urgency(&self, op: OpId) -> Urgency {
        self.machine.urgency(op).unwrap_or(Urgency::of(Priority::BACKGROUND))
    }

    /// Wakes those who wait for room for one operation: it has ended, or its tier may have changed.
    fn look_for_room(&mut self, op: OpId) {
        if let Some(tier) = self.ops.get_mut(&op).and_then(|state| state.waits_in_tier.take()) {
            let wakers = self.waiting_for_room.remove(&(tier, op));
            wakers.into_iter().flatten().for_each(Waker::wake);
        }
    }

    /// Wakes those for whom there is room now, in a few steps however many wait.
    fn give_room(&mut self) {
        for tier in 0..=HIGHEST_TIER {
            let tier = (tier, OpId(0))..=(tier, OpId(u32::MAX));
            while let Some((&(tier, op), _)) = self.waiting_for_room.range(tier.clone()).next()
                && !must_wait(&self.machine, op)
            {
                let wakers = self.waiting_for_room.remove(&(tier, op));
                wakers.into_iter().flatten().for_each(Waker::wake);
            }
        }
    }

    fn end(&mut self, op: OpId, how: impl FnOnce(&mut Server)) {
        how(&mut self.machine);
        self.look_for_room(op);
    }

    /// Queues the only item and the end, and forgets the operation; false when there is no room for it.
    fn answer(&mut self, op: OpId, body: &Bytes, bulk: &CheckedBulk) -> bool {
        match self.machine.answer(op, body.clone(), bulk.clone()) {
            Err(error) if error.kind() == ErrorKind::Busy => return false,
            Err(error) => self.machine.fail(op, error),
            Ok(()) => {}
        }
        self.forget(op);
        true
    }

    fn drop_operation(&mut self, op: OpId) {
        self.end(op, |machine| {
            machine.fail(op, Error::internal("the operation was dropped without an end"));
        });
        self.forget(op);
    }
}

impl ProtocolSide for ServerSide {
    type Machine = Server;

    fn machine(&mut self) -> &mut Server {
        &mut self.machine
    }

    fn has_space(&self) -> bool {
        self.waiting_notes < MAX_WAITING_NOTES && self.waiting_note_bytes < MAX_WAITING_NOTE_BYTES
    }

    fn settle(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            self.handle(event);
        }
        self.give_room();
    }
}

/// One client's connection. Dropping it ends the connection and with it all its operations.
pub struct ServerConnection {
    shared: Arc<SharedSide<ServerSide>>,
    peer: String,
    /// Lets further streams join the link.
    opening: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl fmt::Debug for ServerConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerConnection({})", self.peer)
    }
}

impl ServerConnection {
    /// The client's address, for people.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// Waits for the client to say hello; then [`accept`](Self::accept) or [`refuse`](Self::refuse) it.
    ///
    /// # Errors
    /// Why the connection ended instead: no hello in time, no common version, something else than a hello.
    ///
    /// # Cancel safety
    /// Safe: nothing is consumed.
    pub async fn hello(&self) -> Result<Hello> {
        poll_fn(|cx| {
            self.shared.with(|side| match (&side.hello, &side.ended) {
                (Some(hello), None) => Poll::Ready(Ok(hello.clone())),
                (_, Some(error)) => Poll::Ready(Err(error.clone())),
                (None, None) => {
                    watch(&mut side.acceptor, cx);
                    Poll::Pending
                }
            })
        })
        .await
    }

    /// Lets the client in.
    pub fn accept(&self) {
        // Before the client hears of it.
        let opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(open) = opening {
            open();
        }
        self.shared.change(|side| side.machine.accept());
    }

    /// Turns the client away, saying why.
    pub fn refuse(&self, error: Error) {
        self.shared.change(|side| {
            side.machine.refuse(error);
            side.settle();
        });
    }

    /// The next operation, the most urgent first; `None` once the connection is over.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&self) -> Option<Operation> {
        self.next_of(0).await
    }

    /// The next operation of this tier or above; see [`next`](Self::next). What is not taken waits here in order of
    /// urgency, follows adjustments, and costs no task.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next_of(&self, least_tier: u8) -> Option<Operation> {
        self.next_together(least_tier, |_| 1).await?.pop()
    }

    /// As [`next_of`](Self::next_of), with those behind it that are ready too, of the same name and priority: up to as
    /// many as `most` says of that name. In order; never none.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next_together(
        &self,
        least_tier: u8,
        most: impl Fn(&str) -> usize,
    ) -> Option<Vec<Operation>> {
        let operation = |WaitingOperation { op, name, parameters }| {
            let shared = Arc::clone(&self.shared);
            Operation { op, name, parameters, shared, is_over: false }
        };
        poll_fn(|cx| {
            self.shared.with(|side| {
                if side.ended.is_some() {
                    return Poll::Ready(None);
                }
                let taken = side.incoming.take(least_tier, &most);
                side.waiting_permit.shrink(side.incoming.load());
                if taken.is_empty() {
                    watch(&mut side.acceptor, cx);
                    return Poll::Pending;
                }
                Poll::Ready(Some(taken.into_iter().map(operation).collect()))
            })
        })
        .await
    }

    /// Why the connection is over, if it is.
    #[must_use]
    pub fn ended(&self) -> Option<Error> {
        self.shared.with(|side| side.ended.clone())
    }

    /// Ends the connection, telling the client why.
    pub fn close(&self, error: Error) {
        self.shared.change(|side| {
            side.machine.close(error);
            side.settle();
        });
    }
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        self.close(Error::new(ErrorKind::Unreachable, "the server ended the connection"));
    }
}

/// Change to an operation under way.
#[derive(Clone, Debug, PartialEq)]
pub enum OperationChange {
    /// It matters more or less now; the newest value only.
    Adjusted(Urgency),
    /// A message from the client.
    Note(Bytes),
    /// Nobody wants it any more, or the connection is over: stop.
    Cancelled,
}

/// One operation to be answered: items, then `done` or `fail`. All methods take `&self`, so that one part of a task
/// can wait for [`changed`](Self::changed) while another answers. Dropping it without an end fails it.
pub struct Operation {
    op: OpId,
    name: Arc<str>,
    parameters: Bytes,
    shared: Arc<SharedSide<ServerSide>>,
    /// Nothing is left to be said or forgotten.
    is_over: bool,
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operation({} {})", self.op, self.name)
    }
}

impl Operation {
    /// Its number.
    #[must_use]
    pub fn op(&self) -> OpId {
        self.op
    }

    /// Its registered name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its parameters, encoded as the operation says.
    #[must_use]
    pub fn parameters(&self) -> Bytes {
        self.parameters.clone()
    }

    /// How long they are, bytes.
    #[must_use]
    pub fn parameter_bytes(&self) -> usize {
        self.parameters.len()
    }

    /// How much it matters now.
    #[must_use]
    pub fn urgency(&self) -> Urgency {
        self.shared.with(|side| side.urgency(self.op))
    }

    /// True once nobody wants it any more.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shared.with(|side| side.is_cancelled(self.op))
    }

    /// Leaves out those that nobody wants any more, of many of one connection, for the price of one look.
    pub fn retain_wanted<T>(operations: &mut Vec<T>, operation: impl Fn(&T) -> &Self) {
        let Some(shared) = operations.first().map(|first| Arc::clone(&operation(first).shared)) else {
            return;
        };
        let is_cancelled: Vec<bool> =
            shared.with(|side| operations.iter().map(|one| side.is_cancelled(operation(one).op)).collect());
        let mut is_cancelled = is_cancelled.into_iter();
        operations.retain(|_| !is_cancelled.next().unwrap_or(false));
    }

    /// Waits for the next change.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn changed(&self) -> OperationChange {
        poll_fn(|cx| self.shared.take(|side| side.poll_change(self.op, cx))).await
    }

    /// Waits until nobody wants it any more; notes and adjustments on the way are dropped.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn cancelled(&self) {
        while self.changed().await != OperationChange::Cancelled {}
    }

    /// Waits until an item would be taken at once, or the operation is over. Prepare bulk after it, not before: that
    /// keeps what is prepared within bounds.
    ///
    /// # Cancel safety
    /// Safe: nothing is reserved.
    pub async fn room(&self) {
        poll_fn(|cx| self.shared.with(|side| side.poll_room(self.op, cx))).await;
    }

    /// Sends an item as soon as there is room for it. The bulk is shared, not copied.
    ///
    /// # Errors
    /// `Cancelled` when nobody wants it any more, `TooLarge` when body or bulk exceed their limit.
    ///
    /// # Cancel safety
    /// Safe: until it returns, nothing was queued.
    pub async fn item(&self, body: Bytes, bulk: Bytes) -> Result<()> {
        // The checksum is made here, outside the lock and once.
        let bulk = CheckedBulk::from(bulk);
        loop {
            self.room().await;
            match self.put(body.clone(), bulk.clone()) {
                // Somebody else was faster.
                Err(error) if error.kind() == ErrorKind::Busy => {}
                done => return done,
            }
        }
    }

    /// Sends the only item and the end together, as soon as there is room.
    ///
    /// # Errors
    /// As [`item`](Self::item).
    ///
    /// # Cancel safety
    /// Safe: until it returns, nothing was queued.
    pub async fn answer(&self, body: Bytes, bulk: Bytes) -> Result<()> {
        let bulk = CheckedBulk::from(bulk);
        loop {
            match self.put_answer(body.clone(), bulk.clone()) {
                Err(error) if error.kind() == ErrorKind::Busy => self.room().await,
                done => return done,
            }
        }
    }

    /// Sends the only item and the end together if there is room now.
    ///
    /// # Errors
    /// `Busy` when there is none; otherwise as [`item`](Self::item).
    pub fn try_answer(&self, body: Bytes, bulk: Bytes) -> Result<()> {
        self.put_answer(body, bulk.into())
    }

    fn put_answer(&self, body: Bytes, bulk: CheckedBulk) -> Result<()> {
        self.shared.change(|side| {
            side.machine.answer(self.op, body, bulk)?;
            side.look_for_room(self.op);
            Ok(())
        })
    }

    /// Sends the only item and the end of each of many operations, as soon as there is room: the same as
    /// [`answer`](Self::answer) for each, in order, for less. What nobody wants any more is skipped.
    ///
    /// # Cancel safety
    /// Those that are not queued yet fail.
    pub async fn answer_all(answers: impl IntoIterator<Item = (Self, Bytes, Bytes)>) {
        let checked =
            answers.into_iter().map(|(operation, body, bulk)| (operation, body, CheckedBulk::from(bulk)));
        let mut left: VecDeque<(Self, Bytes, CheckedBulk)> = checked.collect();
        while let Some((first, ..)) = left.front() {
            first.room().await;
            let shared = Arc::clone(&first.shared);
            // Dropped after the lock was left.
            let mut ended = Vec::with_capacity(left.len());
            shared.change(|side| {
                while let Some((mut operation, body, bulk)) = left.pop_front() {
                    if !Arc::ptr_eq(&operation.shared, &shared) || !side.answer(operation.op, &body, &bulk) {
                        return left.push_front((operation, body, bulk));
                    }
                    operation.is_over = true;
                    ended.push(operation);
                }
            });
        }
    }

    /// Sends an item if there is room for it now.
    ///
    /// # Errors
    /// `Busy` when there is none; otherwise as [`item`](Self::item).
    pub fn try_item(&self, body: Bytes, bulk: Bytes) -> Result<()> {
        self.put(body, bulk.into())
    }

    fn put(&self, body: Bytes, bulk: CheckedBulk) -> Result<()> {
        self.shared.change(|side| side.machine.item(self.op, body, bulk))
    }

    /// The answer is complete. Later calls, and calls after `fail`, do nothing.
    pub fn done(&self) {
        self.shared.change(|side| side.end(self.op, |machine| machine.done(self.op)));
    }

    /// It failed. Later calls, and calls after `done`, do nothing.
    pub fn fail(&self, error: Error) {
        self.shared.change(|side| side.end(self.op, |machine| machine.fail(self.op, error)));
    }
}

fn must_wait(machine: &Server, op: OpId) -> bool {
    machine.is_open(op) && machine.room_bytes(op) == 0
}

impl Drop for Operation {
    fn drop(&mut self) {
        if !self.is_over {
            self.shared.change(|side| side.drop_operation(self.op));
        }
    }
}
