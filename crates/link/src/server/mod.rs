//! Server side for applications: operations as they arrive, each with its own handle.

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

/// Most notes that wait to be taken in one connection; the connection then stops receiving.
pub const MAX_WAITING_NOTES: usize = 1_024;
/// Most bytes of notes that wait to be taken in one connection; the connection then stops receiving.
pub const MAX_WAITING_NOTE_BYTES: usize = 8 << 20;
/// Most parameters of operations that wait to be taken in one connection, bytes; further operations fail with
/// *busy*. The connection goes on receiving, because a received frame may be the credit that other operations
/// wait for.
pub const MAX_WAITING_PARAMETER_BYTES: usize = 32 << 20;

/// Puts a server on a link.
///
/// # Errors
/// Returned when a value in `config` exceeds its limit.
pub fn serve(link: Link, config: ServerConfig) -> Result<(ServerConnection, Driver)> {
    let places = u64::from(config.most_operations);
    serve_among(link, config, WaitingLimit::new(places))
}

/// Puts a server on a link whose waiting operations count towards a limit that connections share: beyond it and the
/// places that each connection has of its own, operations fail with *busy*.
///
/// # Errors
/// The errors of [`serve`].
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

/// Changes of an operation that the application has not taken yet. Most operations are answered and forgotten
/// without any.
#[derive(Default)]
struct OpState {
    adjusted: bool,
    cancelled: bool,
    notes: VecDeque<Bytes>,
    waiting: Vec<Waker>,
    /// Tier in which the operation waits for room.
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
    /// Tasks that wait for the hello or the next operation.
    acceptor: Vec<Waker>,
    /// Operations that wait until an item is accepted, by tier: all of one tier find room at once.
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
        // Copied, because an operation may live long, and a slice would keep the whole received buffer alive.
        let parameters = Bytes::copy_from_slice(parameters);
        self.incoming.push(urgency.priority, WaitingOperation { op, name, parameters });
    }

    fn handle_note(&mut self, op: OpId, body: &Bytes) {
        // Copied like parameters: a frame may be much larger than the note in it.
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

    /// Records a change of an operation that is open or has recorded changes.
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

    /// Current urgency of an operation; the lowest once its last frame was sent.
    fn urgency(&self, op: OpId) -> Urgency {
        self.machine.urgency(op).unwrap_or(Urgency::of(Priority::BACKGROUND))
    }

    /// Wakes the tasks that wait for room for one operation: it has ended, or its tier may have changed.
    fn look_for_room(&mut self, op: OpId) {
        if let Some(tier) = self.ops.get_mut(&op).and_then(|state| state.waits_in_tier.take()) {
            let wakers = self.waiting_for_room.remove(&(tier, op));
            wakers.into_iter().flatten().for_each(Waker::wake);
        }
    }

    /// Wakes the tasks for which there is room now, in a few steps however many wait.
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
            machine.fail(op, Error::internal("the operation was dropped without an answer"));
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

/// Connection of one client. Dropping it ends the connection and all its operations.
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
    /// Displayed address of the client.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// Waits for the client to say hello; then [`accept`](Self::accept) or [`refuse`](Self::refuse) it.
    ///
    /// # Errors
    /// The reason why the connection ended: no hello in time, no common version, another frame than a hello.
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

    /// Admits the client.
    pub fn accept(&self) {
        // Streams may join before the client is notified.
        let opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(open) = opening {
            open();
        }
        self.shared.change(|side| side.machine.accept());
    }

    /// Refuses the client and sends the reason.
    pub fn refuse(&self, error: Error) {
        self.shared.change(|side| {
            side.machine.refuse(error);
            side.settle();
        });
    }

    /// Returns the next operation, the most urgent first; `None` once the connection is over.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&self) -> Option<Operation> {
        self.next_of(0).await
    }

    /// Returns the next operation of this tier or above; see [`next`](Self::next). Other operations wait here
    /// in order of urgency, follow adjustments, and need no task.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next_of(&self, least_tier: u8) -> Option<Operation> {
        self.next_together(least_tier, |_| 1).await?.pop()
    }

    /// Returns the next operation of this tier or above, with the following ones of the same name and
    /// priority that are ready: at most as many as `most` returns for that name. In order, at least one.
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

    /// Returns the reason why the connection ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<Error> {
        self.shared.with(|side| side.ended.clone())
    }

    /// Ends the connection and sends the reason to the client.
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

/// Change to an operation in flight.
#[derive(Clone, Debug, PartialEq)]
pub enum OperationChange {
    /// New urgency; only the newest value is reported.
    Adjusted(Urgency),
    /// Message from the client.
    Note(Bytes),
    /// The client withdrew the operation, or the connection is over: stop.
    Cancelled,
}

/// Operation to be answered with items, then `done` or `fail`. All methods take `&self`, so that one part of
/// a task can wait for [`changed`](Self::changed) while another answers. Dropping it before its end fails it.
pub struct Operation {
    op: OpId,
    name: Arc<str>,
    parameters: Bytes,
    shared: Arc<SharedSide<ServerSide>>,
    /// The operation has ended and needs no cleanup.
    is_over: bool,
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operation({} {})", self.op, self.name)
    }
}

impl Operation {
    /// Number of the operation.
    #[must_use]
    pub fn op(&self) -> OpId {
        self.op
    }

    /// Registered name of the operation.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parameters, encoded as the operation defines.
    #[must_use]
    pub fn parameters(&self) -> Bytes {
        self.parameters.clone()
    }

    /// Size of the parameters, bytes.
    #[must_use]
    pub fn parameter_bytes(&self) -> usize {
        self.parameters.len()
    }

    /// Current urgency.
    #[must_use]
    pub fn urgency(&self) -> Urgency {
        self.shared.with(|side| side.urgency(self.op))
    }

    /// True once the operation was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shared.with(|side| side.is_cancelled(self.op))
    }

    /// Removes the cancelled operations from a list of operations of one connection, under one lock.
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

    /// Waits until the operation is cancelled; discards notes and adjustments.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn cancelled(&self) {
        while self.changed().await != OperationChange::Cancelled {}
    }

    /// Waits until an item would be accepted at once, or the operation is over. Callers prepare bulk after
    /// it, not before, which bounds the prepared bulk.
    ///
    /// # Cancel safety
    /// Safe: nothing is reserved.
    pub async fn room(&self) {
        poll_fn(|cx| self.shared.with(|side| side.poll_room(self.op, cx))).await;
    }

    /// Sends an item as soon as there is room for it. The bulk is shared, not copied.
    ///
    /// # Errors
    /// `Cancelled` when the operation was cancelled, `TooLarge` when body or bulk exceed their limit.
    ///
    /// # Cancel safety
    /// Safe: until it returns, nothing was queued.
    pub async fn item(&self, body: Bytes, bulk: Bytes) -> Result<()> {
        // The checksum is computed here, outside the lock and once.
        let bulk = CheckedBulk::from(bulk);
        loop {
            self.room().await;
            match self.put(body.clone(), bulk.clone()) {
                // Another operation was faster.
                Err(error) if error.kind() == ErrorKind::Busy => {}
                done => return done,
            }
        }
    }

    /// Sends the only item and the end together, as soon as there is room.
    ///
    /// # Errors
    /// The errors of [`item`](Self::item).
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
    /// `Busy` when there is none; otherwise those of [`item`](Self::item).
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

    /// Sends the only item and the end of each of many operations, in order, as soon as there is room;
    /// cheaper than [`answer`](Self::answer) for each. Withdrawn operations are skipped.
    ///
    /// # Cancel safety
    /// Operations that are not queued yet fail.
    pub async fn answer_all(answers: impl IntoIterator<Item = (Self, Bytes, Bytes)>) {
        let checked =
            answers.into_iter().map(|(operation, body, bulk)| (operation, body, CheckedBulk::from(bulk)));
        let mut left: VecDeque<(Self, Bytes, CheckedBulk)> = checked.collect();
        while let Some((first, ..)) = left.front() {
            first.room().await;
            let shared = Arc::clone(&first.shared);
            // Dropped after the lock is released.
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
    /// `Busy` when there is none; otherwise those of [`item`](Self::item).
    pub fn try_item(&self, body: Bytes, bulk: Bytes) -> Result<()> {
        self.put(body, bulk.into())
    }

    fn put(&self, body: Bytes, bulk: CheckedBulk) -> Result<()> {
        self.shared.change(|side| side.machine.item(self.op, body, bulk))
    }

    /// Completes the answer. Later calls, and calls after `fail`, do nothing.
    pub fn done(&self) {
        self.shared.change(|side| side.end(self.op, |machine| machine.done(self.op)));
    }

    /// Fails the operation. Later calls, and calls after `done`, do nothing.
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
