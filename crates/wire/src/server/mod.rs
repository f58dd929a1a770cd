//! Server side of a connection.

pub(crate) mod outbox;
pub(crate) mod whole;

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Instant;

use array::{Error, ErrorKind, Result, Retry, Urgency};
use bytes::Bytes;

use crate::flow::deadline::{self, Deadlines};
use crate::flow::liveness::Liveness;
use crate::frames::batch::{RequestBatch, WholeItem};
use crate::frames::check::{check_capabilities, unexpected, within};
use crate::limits::{
    BATCH, HANDSHAKE_TIMEOUT, HIGHEST_VERSION, LOWEST_VERSION, MAX_BODY_BYTES, MAX_FIRST_FRAME_BYTES,
    MAX_FRAME_BYTES, MAX_ITEM_BULK_BYTES, MAX_NAME_BYTES, MAX_OPERATIONS, MAX_QUEUED_CONTROL,
};
use crate::server::outbox::ServerOutbox;
use crate::{Frame, Hello, ItemHead, Machine, Message, OpId, OpTable, OperationRequest, Welcome};

/// Bulk bytes with their checksum, shared and immutable. The checksum is computed outside the lock of a
/// server, and once for bytes that are sent several times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedBulk {
    bytes: Bytes,
    crc32c: u32,
}

impl CheckedBulk {
    /// Bytes of the bulk.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl From<Bytes> for CheckedBulk {
    fn from(bytes: Bytes) -> Self {
        let crc32c = crc32c::crc32c(&bytes);
        Self { bytes, crc32c }
    }
}

/// Configuration of a server, which it reports to its clients.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Supported protocol versions.
    pub versions: RangeInclusive<u16>,
    /// Capabilities beyond the version.
    pub capabilities: Vec<String>,
    /// Name and version of the program.
    pub program: String,
    /// Most operations of one client in flight, at most [`MAX_OPERATIONS`].
    pub most_operations: u32,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            versions: LOWEST_VERSION..=HIGHEST_VERSION,
            capabilities: vec!["crc32c".into(), BATCH.into()],
            program: concat!("corridor ", env!("CARGO_PKG_VERSION")).into(),
            most_operations: MAX_OPERATIONS,
        }
    }
}

/// Event that a server reports to the application.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent {
    /// Hello of a client with a common version: [`Server::accept`] or [`Server::refuse`] it. No more frames
    /// are read until then.
    Hello(Hello),
    /// Operation to answer.
    Request {
        /// Number of the operation.
        op: OpId,
        /// Registered name of the operation.
        name: Arc<str>,
        /// Parameters, encoded as the operation defines.
        parameters: Bytes,
        /// Urgency of the operation.
        urgency: Urgency,
    },
    /// New urgency of an operation. Its queued items were moved.
    Adjust {
        /// Number of the operation.
        op: OpId,
        /// New urgency.
        urgency: Urgency,
    },
    /// Stop of an operation that was cancelled or whose deadline passed. Its queued items were dropped.
    Cancel {
        /// Number of the operation.
        op: OpId,
    },
    /// Message to a running operation.
    Note {
        /// Number of the operation.
        op: OpId,
        /// Contents of the message.
        body: Bytes,
    },
    /// End of the connection and of all its operations.
    Closed {
        /// Reason of the end.
        error: Error,
    },
}

#[derive(Debug)]
enum ServerPhase {
    AwaitingHello { until: Instant },
    Deciding { version: u16 },
    Open,
    Closed,
}

/// Operation from its request until its last frame was sent.
#[derive(Debug)]
struct ServerOp {
    urgency: Urgency,
    next_item: u32,
    /// The application has called `done`; items may still be queued.
    ended: bool,
    /// Age of its answer, if that was queued as a whole.
    whole: Option<u64>,
}

/// Server side of a connection: operations in, items out.
///
/// [`Machine`] describes how it is driven. Its own methods are the application's calls:
/// [`accept`](Self::accept) or [`refuse`](Self::refuse) once, then [`item`](Self::item), [`done`](Self::done)
/// and [`fail`](Self::fail) for each operation, and [`close`](Machine::close). The end of an operation is
/// sent exactly once.
#[derive(Debug)]
pub struct Server {
    state: ServerPhase,
    config: ServerConfig,
    last_op: u32,
    ops: OpTable<ServerOp>,
    deadlines: Deadlines,
    outbox: ServerOutbox,
    events: VecDeque<ServerEvent>,
    liveness: Liveness,
}

impl Server {
    /// Creates a server on an accepted carrier.
    ///
    /// # Errors
    /// `TooLarge` when a value in `config` exceeds its limit.
    pub fn new(config: ServerConfig, now: Instant) -> Result<Self> {
        within(config.program.len(), MAX_NAME_BYTES, "the program's name")?;
        check_capabilities(&config.capabilities)?;
        Ok(Self {
            state: ServerPhase::AwaitingHello { until: now + HANDSHAKE_TIMEOUT },
            config,
            last_op: 0,
            ops: OpTable::default(),
            deadlines: Deadlines::default(),
            outbox: ServerOutbox::default(),
            events: VecDeque::new(),
            liveness: Liveness::new(now),
        })
    }

    /// Admits the client that sent the [hello](ServerEvent::Hello).
    pub fn accept(&mut self) {
        if let ServerPhase::Deciding { version } = self.state {
            self.state = ServerPhase::Open;
            self.outbox.push_control(Frame::Welcome(Welcome {
                version,
                capabilities: self.config.capabilities.clone(),
                program: self.config.program.clone(),
                most_operations: self.most_operations(),
            }));
        }
    }

    /// Refuses the client and sends the reason.
    pub fn refuse(&mut self, error: Error) {
        if matches!(self.state, ServerPhase::AwaitingHello { .. } | ServerPhase::Deciding { .. }) {
            self.end(error.clone());
            self.outbox.push_control(Frame::Refused { error });
        }
    }

    /// Queues an item of an answer; its bulk is shared, not copied.
    ///
    /// # Errors
    /// `Cancelled` when the operation is over, `Busy` when there is no [room](Self::room_bytes), `TooLarge` when
    /// body or bulk exceed their limit.
    pub fn item(&mut self, op: OpId, body: Bytes, bulk: CheckedBulk) -> Result<()> {
        let CheckedBulk { bytes: bulk, crc32c: bulk_crc32c } = bulk;
        within(body.len(), MAX_BODY_BYTES, "the body of an item")?;
        within(
            bulk.len(),
            usize::try_from(MAX_ITEM_BULK_BYTES).unwrap_or(usize::MAX),
            "the bulk of an item",
        )?;
        let Some(state) = self.ops.get_mut(op).filter(|o| !o.ended) else {
            return Err(Error::cancelled());
        };
        let priority = state.urgency.priority;
        if self.outbox.room_bytes(priority) == 0 {
            return Err(Error::new(ErrorKind::Busy, "expected room for another item, found none"));
        }
        let item = state.next_item;
        state.next_item = item
            .checked_add(1)
            .ok_or_else(|| Error::too_large("expected at most 2^32 items in an operation, found more"))?;
        let bulk_bytes = bulk.len() as u64;
        self.outbox.push_item(priority, ItemHead { op, item, body, bulk_bytes, bulk_crc32c }, bulk);
        Ok(())
    }

    /// Queues the only item and the end of an operation that has had none; cheaper than [`item`](Self::item)
    /// and [`done`](Self::done).
    ///
    /// # Errors
    /// The errors of [`item`](Self::item).
    pub fn answer(&mut self, op: OpId, body: Bytes, bulk: CheckedBulk) -> Result<()> {
        let Some(state) = self.ops.get_mut(op).filter(|o| !o.ended) else {
            return Err(Error::cancelled());
        };
        let priority = state.urgency.priority;
        let is_first = state.next_item == 0 && self.outbox.room_bytes(priority) > 0;
        let whole = WholeItem { item: 0, body, bulk: bulk.bytes, bulk_crc32c: bulk.crc32c };
        let pushed = if is_first { self.outbox.push_whole(priority, op, whole) } else { Err(whole) };
        match pushed {
            Ok(age) => {
                (state.next_item, state.ended, state.whole) = (1, true, Some(age));
                Ok(())
            }
            Err(WholeItem { body, bulk: bytes, bulk_crc32c: crc32c, .. }) => {
                self.item(op, body, CheckedBulk { bytes, crc32c })?;
                self.done(op);
                Ok(())
            }
        }
    }

    /// Bytes that may still be queued for this operation. An item is accepted as a whole while this is not
    /// zero. More urgent operations find room when others do not. Zero for an operation that is over.
    #[must_use]
    pub fn room_bytes(&self, op: OpId) -> usize {
        self.ops.get(op).map_or(0, |o| self.outbox.room_bytes(o.urgency.priority))
    }

    /// Current urgency of an operation; `None` once its last frame was sent.
    #[must_use]
    pub fn urgency(&self, op: OpId) -> Option<Urgency> {
        self.ops.get(op).map(|o| o.urgency)
    }

    /// True until the operation has ended, here or on the other side.
    #[must_use]
    pub fn is_open(&self, op: OpId) -> bool {
        self.ops.get(op).is_some_and(|o| !o.ended)
    }

    /// Completes an answer: `done` follows the queued items. Has no effect when the operation is over.
    pub fn done(&mut self, op: OpId) {
        if let Some(state) = self.ops.get_mut(op).filter(|o| !o.ended) {
            state.ended = true;
            self.outbox.push_done(op, state.urgency.priority, state.next_item);
        }
    }

    /// Fails an operation and drops its queued items. Has no effect when it is over.
    pub fn fail(&mut self, op: OpId, error: Error) {
        if self.is_open(op) {
            self.drop_op(op, error);
        }
    }

    fn most_operations(&self) -> u32 {
        self.config.most_operations.clamp(1, MAX_OPERATIONS)
    }

    fn forget(&mut self, op: OpId) -> Option<ServerOp> {
        let state = self.ops.remove(op)?;
        self.deadlines.replace(op, state.urgency.deadline, None);
        Some(state)
    }

    fn drop_op(&mut self, op: OpId, error: Error) {
        if let Some(ServerOp { urgency, whole: Some(age), .. }) = self.forget(op) {
            self.outbox.withdraw(urgency.priority, age);
        }
        self.outbox.drop_line(op);
        self.outbox.push_control(Frame::Failed { op, error });
    }

    /// Stops an operation that the client withdrew.
    fn stop(&mut self, op: OpId, error: Error) {
        let Some(state) = self.ops.get(op) else { return };
        if !state.ended {
            self.events.push_back(ServerEvent::Cancel { op });
        }
        self.drop_op(op, error);
    }

    fn end(&mut self, error: Error) {
        if matches!(self.state, ServerPhase::Closed) {
            return;
        }
        self.state = ServerPhase::Closed;
        self.ops = OpTable::default();
        self.deadlines.clear();
        self.outbox.clear();
        self.events.push_back(ServerEvent::Closed { error });
    }

    fn handle(&mut self, now: Instant, frame: Frame) -> Result<()> {
        match (&self.state, frame) {
            (ServerPhase::Closed, _) => Ok(()),
            (_, Frame::Close { error }) => {
                self.end(error.context("closed by the client"));
                Ok(())
            }
            (ServerPhase::AwaitingHello { .. }, Frame::Hello(hello)) => {
                self.handle_hello(hello);
                Ok(())
            }
            (ServerPhase::AwaitingHello { .. }, other) => Err(unexpected("hello", &other)),
            (ServerPhase::Deciding { .. }, _) => {
                Err(Error::internal("a frame was read before the client was let in"))
            }
            (ServerPhase::Open, frame) => self.handle_open(now, frame),
        }
    }

    fn handle_hello(&mut self, hello: Hello) {
        let ours = &self.config.versions;
        let version = hello.highest_version.min(*ours.end());
        if version < hello.lowest_version.max(*ours.start()) {
            return self.refuse(Error::unsupported(format!(
                "expected a common version, found {} to {} here and {} to {} at the client",
                ours.start(),
                ours.end(),
                hello.lowest_version,
                hello.highest_version
            )));
        }
        self.outbox.add_credit(hello.credit_bytes);
        if hello.capabilities.iter().any(|name| name == BATCH) {
            self.outbox.batch();
        }
        self.state = ServerPhase::Deciding { version };
        self.events.push_back(ServerEvent::Hello(hello));
    }

    fn handle_open(&mut self, now: Instant, frame: Frame) -> Result<()> {
        match frame {
            Frame::Request(request) => {
                let OperationRequest { op, name, priority, deadline_ms, parameters } = request;
                let urgency = Urgency { priority, deadline: deadline::from_wire(now, deadline_ms) };
                return self.handle_request(op, name.into(), parameters, urgency);
            }
            Frame::Requests(requests) => return self.handle_requests(now, requests),
            Frame::Adjust { op, priority, deadline_ms } => {
                let deadline = deadline::from_wire(now, deadline_ms);
                self.handle_adjust(op, Urgency { priority, deadline });
            }
            Frame::Cancel { op } => self.stop(op, Error::cancelled()),
            Frame::Credit { bytes } => self.outbox.add_credit(bytes),
            Frame::Note { op, body } => {
                if self.is_open(op) {
                    self.events.push_back(ServerEvent::Note { op, body });
                }
            }
            Frame::Ping { nonce } => self.liveness.handle_ping(nonce),
            Frame::Pong { .. } => {}
            other => return Err(unexpected("a frame of a client", &other)),
        }
        Ok(())
    }

    fn handle_requests(&mut self, now: Instant, requests: RequestBatch) -> Result<()> {
        let RequestBatch { first, name, priority, deadline_ms, parameters } = requests;
        let urgency = Urgency { priority, deadline: deadline::from_wire(now, deadline_ms) };
        (first.0..=u32::MAX)
            .zip(parameters)
            .try_for_each(|(op, own)| self.handle_request(OpId(op), Arc::clone(&name), own, urgency))
    }

    fn handle_request(
        &mut self,
        op: OpId,
        name: Arc<str>,
        parameters: Bytes,
        urgency: Urgency,
    ) -> Result<()> {
        if op.0 <= self.last_op {
            return Err(Error::corrupt(format!(
                "expected an operation number above {}, found {op}",
                self.last_op
            )));
        }
        self.last_op = op.0;
        if self.ops.len() >= self.most_operations() as usize {
            let most = self.most_operations();
            let error = format!("expected at most {most} operations in flight, found one more");
            self.outbox.push_control(Frame::Failed { op, error: Error::new(ErrorKind::Busy, error) });
            return Ok(());
        }
        self.deadlines.replace(op, None, urgency.deadline);
        self.ops.insert(op, ServerOp { urgency, next_item: 0, ended: false, whole: None });
        self.events.push_back(ServerEvent::Request { op, name, parameters, urgency });
        Ok(())
    }

    fn handle_adjust(&mut self, op: OpId, urgency: Urgency) {
        if let Some(state) = self.ops.get_mut(op) {
            self.deadlines.replace(op, state.urgency.deadline, urgency.deadline);
            let before = std::mem::replace(&mut state.urgency, urgency).priority;
            match state.whole.take().and_then(|age| Some((age, self.outbox.withdraw(before, age)?))) {
                Some((age, answer)) => self.outbox.push_apart(urgency.priority, age, answer),
                None => self.outbox.set_priority(op, urgency.priority),
            }
            if !state.ended {
                self.events.push_back(ServerEvent::Adjust { op, urgency });
            }
        }
    }
}

impl Machine for Server {
    type Event = ServerEvent;

    fn handle_frame(&mut self, now: Instant, frame: Bytes) -> Result<()> {
        self.liveness.handle_heard(now);
        let limit = self.frame_limit_bytes();
        let result = within(frame.len(), limit, "a frame")
            .and_then(|()| Frame::decode(frame))
            .and_then(|frame| self.handle(now, frame));
        if let Err(error) = &result {
            self.close(error.clone().context("what the client sent").with_retry(Retry::Never));
        }
        result
    }

    fn handle_timeout(&mut self, now: Instant) {
        let listening = self.wants_frames();
        match self.state {
            ServerPhase::AwaitingHello { until } if now >= until => {
                return self.close(Error::new(
                    ErrorKind::TimedOut,
                    format!("expected a hello within {} s, found none", HANDSHAKE_TIMEOUT.as_secs()),
                ));
            }
            ServerPhase::Closed => return,
            _ => {}
        }
        if let Err(error) = self.liveness.handle_timeout(now, listening, false) {
            return self.close(error);
        }
        while let Some(op) = self.deadlines.pop_passed(now) {
            self.stop(op, Error::new(ErrorKind::TimedOut, "the deadline passed"));
        }
    }

    fn handle_unread(&mut self, now: Instant) {
        self.liveness.handle_unread(now);
    }

    fn handle_lost(&mut self, error: Error) {
        self.end(error);
        self.outbox.clear();
    }

    fn close(&mut self, error: Error) {
        if !matches!(self.state, ServerPhase::Closed) {
            self.end(error.clone());
            self.outbox.push_control(Frame::Close { error });
        }
    }

    fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Message> {
        if matches!(self.state, ServerPhase::Open)
            && let Some(frame) = self.liveness.poll_transmit()
        {
            return Some(frame.encode());
        }
        let frame = self.outbox.pop()?;
        match &frame {
            Frame::Done { op } => drop(self.forget(*op)),
            Frame::Answers(answers) => answers.iter().filter(|a| a.done).for_each(|answer| {
                self.forget(answer.op);
            }),
            _ => {}
        }
        Some(frame.encode())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let hello = match self.state {
            ServerPhase::Closed => return None,
            ServerPhase::AwaitingHello { until } => Some(until),
            ServerPhase::Deciding { .. } | ServerPhase::Open => None,
        };
        [hello, self.deadlines.next(), Some(self.liveness.poll_timeout(false))].into_iter().flatten().min()
    }

    fn wants_frames(&self) -> bool {
        self.events.is_empty()
            && self.outbox.control_frames() < MAX_QUEUED_CONTROL
            && !matches!(self.state, ServerPhase::Deciding { .. } | ServerPhase::Closed)
    }

    fn frame_limit_bytes(&self) -> usize {
        match self.state {
            ServerPhase::AwaitingHello { .. } => MAX_FIRST_FRAME_BYTES,
            _ => MAX_FRAME_BYTES,
        }
    }

    fn is_finished(&self) -> bool {
        matches!(self.state, ServerPhase::Closed) && self.outbox.control_frames() == 0
    }
}
