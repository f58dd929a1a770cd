//! The answering side for applications: operations as they come, each with its own handle.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use wire::limits::HIGHEST_TIER;
use wire::{
    Bulk, Error, ErrorKind, Hello, Machine, OpId, Result, Server, ServerConfig, ServerEvent, Urgency,
};

use crate::Link;
use crate::drive::{Driver, Shared, Side, drive, now, watch};

/// Operations and notes that wait to be taken in one connection; then nothing more is received.
pub const MAX_WAITING_EVENTS: usize = 1_024;
/// Bytes of their parameters and bodies likewise.
pub const MAX_WAITING_EVENT_BYTES: usize = 8 << 20;

/// Puts a server on a link.
///
/// # Errors
/// When something in `config` exceeds its limit.
pub fn serve(link: Link, config: ServerConfig) -> Result<(ServerConnection, Driver)> {
    let peer = link.peer().to_owned();
    let machine = Server::new(config, now())?;
    let shared = Shared::new(ServerSide {
        machine,
        hello: None,
        incoming: VecDeque::new(),
        ops: HashMap::new(),
        waiting_events: 0,
        waiting_bytes: 0,
        ended: None,
        acceptor: Vec::new(),
        waiting_for_room: BTreeMap::new(),
    });
    let driver = drive(link, Arc::clone(&shared));
    Ok((ServerConnection { shared, peer }, driver))
}

struct Incoming {
    op: OpId,
    name: String,
    parameters: Bytes,
}

/// What the application has not heard yet of an operation.
struct OpState {
    urgency: Urgency,
    adjusted: bool,
    cancelled: bool,
    notes: VecDeque<Bytes>,
    waiting: Vec<Waker>,
}

impl OpState {
    fn new(urgency: Urgency) -> Self {
        Self { urgency, adjusted: false, cancelled: false, notes: VecDeque::new(), waiting: Vec::new() }
    }

    fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

struct ServerSide {
    machine: Server,
    hello: Option<Hello>,
    incoming: VecDeque<Incoming>,
    ops: HashMap<OpId, OpState>,
    waiting_events: usize,
    waiting_bytes: usize,
    ended: Option<Error>,
    /// Those who wait for the hello or the next operation.
    acceptor: Vec<Waker>,
    /// Operations that wait until an item is taken, by tier: all of one tier find room at once.
    waiting_for_room: BTreeMap<(u8, OpId), Vec<Waker>>,
}

impl ServerSide {
    fn waits(&mut self, size_bytes: usize) {
        self.waiting_events += 1;
        self.waiting_bytes += size_bytes;
    }

    fn taken(&mut self, size_bytes: usize) {
        self.waiting_events -= 1;
        self.waiting_bytes -= size_bytes;
    }

    fn handle(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Hello(hello) => self.hello = Some(hello),
            ServerEvent::Request { op, name, parameters, urgency } => {
                self.waits(parameters.len());
                // Copied, because an operation may live long, and a slice would keep all that was received with it.
                let parameters = Bytes::copy_from_slice(&parameters);
                self.ops.insert(op, OpState::new(urgency));
                self.incoming.push_back(Incoming { op, name, parameters });
            }
            ServerEvent::Adjust { op, urgency } => self.update(op, |state| {
                state.urgency = urgency;
                state.adjusted = true;
            }),
            ServerEvent::Cancel { op } => self.update(op, |state| state.cancelled = true),
            ServerEvent::Note { op, body } => {
                if self.ops.contains_key(&op) {
                    self.waits(body.len());
                    self.update(op, |state| state.notes.push_back(body));
                }
                return;
            }
            ServerEvent::Closed { error } => {
                self.ended = Some(error);
                std::mem::take(&mut self.waiting_for_room).into_values().flatten().for_each(Waker::wake);
                self.ops.values_mut().for_each(|state| {
                    state.cancelled = true;
                    state.wake();
                });
            }
        }
        self.acceptor.drain(..).for_each(Waker::wake);
    }

    fn update(&mut self, op: OpId, f: impl FnOnce(&mut OpState)) {
        self.look_for_room(op);
        if let Some(state) = self.ops.get_mut(&op) {
            f(state);
            state.wake();
        }
    }

    fn poll_change(&mut self, op: OpId, cx: &Context<'_>) -> Poll<Change> {
        let Some(state) = self.ops.get_mut(&op) else { return Poll::Ready(Change::Cancelled) };
        if state.cancelled {
            return Poll::Ready(Change::Cancelled);
        }
        if std::mem::take(&mut state.adjusted) {
            return Poll::Ready(Change::Adjusted(state.urgency));
        }
        if let Some(body) = state.notes.pop_front() {
            self.taken(body.len());
            return Poll::Ready(Change::Note(body));
        }
        watch(&mut state.waiting, cx);
        Poll::Pending
    }

    fn poll_room(&mut self, op: OpId, cx: &Context<'_>) -> Poll<()> {
        if !must_wait(&self.machine, op) {
            return Poll::Ready(());
        }
        watch(self.waiting_for_room.entry((self.tier(op), op)).or_default(), cx);
        Poll::Pending
    }

    fn tier(&self, op: OpId) -> u8 {
        self.ops.get(&op).map_or(0, |state| state.urgency.priority.tier.min(HIGHEST_TIER))
    }

    /// Wakes those who wait for room for one operation: it has ended, or its tier is about to change.
    fn look_for_room(&mut self, op: OpId) {
        let wakers = self.waiting_for_room.remove(&(self.tier(op), op));
        wakers.into_iter().flatten().for_each(Waker::wake);
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

    fn drop_operation(&mut self, op: OpId) {
        self.end(op, |machine| {
            machine.fail(op, Error::internal("the operation was dropped without an end"));
        });
        if let Some(state) = self.ops.remove(&op) {
            state.notes.iter().for_each(|body| self.taken(body.len()));
        }
    }
}

impl Side for ServerSide {
    type Machine = Server;

    fn machine(&mut self) -> &mut Server {
        &mut self.machine
    }

    fn has_space(&self) -> bool {
        self.waiting_events < MAX_WAITING_EVENTS && self.waiting_bytes < MAX_WAITING_EVENT_BYTES
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
    shared: Arc<Shared<ServerSide>>,
    peer: String,
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
        self.shared.change(|side| side.machine.accept());
    }

    /// Turns the client away, saying why.
    pub fn refuse(&self, error: Error) {
        self.shared.change(|side| {
            side.machine.refuse(error);
            side.settle();
        });
    }

    /// The next operation; `None` once the connection is over.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&self) -> Option<Operation> {
        poll_fn(|cx| {
            self.shared.take(|side| {
                if side.ended.is_some() {
                    return Poll::Ready(None);
                }
                let Some(Incoming { op, name, parameters }) = side.incoming.pop_front() else {
                    watch(&mut side.acceptor, cx);
                    return Poll::Pending;
                };
                side.taken(parameters.len());
                Poll::Ready(Some(Operation { op, name, parameters, shared: Arc::clone(&self.shared) }))
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

/// What changed about an operation under way.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
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
    name: String,
    parameters: Bytes,
    shared: Arc<Shared<ServerSide>>,
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

    /// How much it matters now.
    #[must_use]
    pub fn urgency(&self) -> Urgency {
        self.shared.with(|side| side.ops.get(&self.op).map_or_else(default_urgency, |state| state.urgency))
    }

    /// True once nobody wants it any more.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shared.with(|side| side.ops.get(&self.op).is_none_or(|state| state.cancelled))
    }

    /// Waits for the next change.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn changed(&self) -> Change {
        poll_fn(|cx| self.shared.take(|side| side.poll_change(self.op, cx))).await
    }

    /// Waits until nobody wants it any more; notes and adjustments on the way are dropped.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn cancelled(&self) {
        while self.changed().await != Change::Cancelled {}
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
        let bulk = Bulk::from(bulk);
        loop {
            self.room().await;
            match self.put(body.clone(), bulk.clone()) {
                // Somebody else was faster.
                Err(error) if error.kind() == ErrorKind::Busy => {}
                done => return done,
            }
        }
    }

    /// Sends an item if there is room for it now.
    ///
    /// # Errors
    /// `Busy` when there is none; otherwise as [`item`](Self::item).
    pub fn try_item(&self, body: Bytes, bulk: Bytes) -> Result<()> {
        self.put(body, bulk.into())
    }

    fn put(&self, body: Bytes, bulk: Bulk) -> Result<()> {
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

fn default_urgency() -> Urgency {
    Urgency::of(wire::Priority::BACKGROUND)
}

impl Drop for Operation {
    fn drop(&mut self) {
        self.shared.change(|side| side.drop_operation(self.op));
    }
}
