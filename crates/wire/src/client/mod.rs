//! Client side of a connection.

pub(crate) mod outgoing;
pub(crate) mod turns;

mod arriving;
mod event;
mod parts;
mod segments;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use array::{Error, ErrorKind, Priority, Result, Retry, Urgency};
use bytes::Bytes;

use crate::client::outgoing::{OutgoingQueue, QueuedRequest};
use crate::client::turns::Turns;
use crate::flow::deadline::{self, Deadlines};
use crate::flow::liveness::Liveness;
use crate::flow::window::AdaptiveWindow;
use crate::frames::check::{check_capabilities, unexpected, within};
use crate::limits::{
    BATCH, CREDIT_FRACTION, HIGHEST_TIER, MAX_BODY_BYTES, MAX_FRAME_BYTES, MAX_NAME_BYTES, MAX_OPERATIONS,
    MAX_OUTGOING_BYTES, MAX_OUTGOING_BYTES_PER_TIER, MAX_TOKEN_BYTES, OPERATIONS_PER_TIER,
};
use crate::{Frame, Hello, Machine, Message, OpId, OpTable, Welcome};
use arriving::{OpenItem, unknown};
use parts::EarlyParts;

pub use event::{ClientConfig, ClientEvent, SentAhead};

#[derive(Debug)]
enum ClientPhase {
    Greeting { until: Instant },
    Open,
    Closed(Error),
}

/// Operation from its request until the server's last frame about it.
#[derive(Debug)]
struct ClientOp {
    deadline: Option<Instant>,
    urgency: Urgency,
    next_item: u32,
    open: BTreeMap<u32, OpenItem>,
    /// False once the operation ended here (cancelled, too late, corrupt): further frames are discarded.
    wanted: bool,
    /// Its answer is reported in the order of arrival.
    in_any_order: bool,
    early_parts: Option<Box<EarlyParts>>,
}

impl ClientOp {
    fn new(urgency: Urgency) -> Self {
        Self {
            deadline: urgency.deadline,
            urgency,
            next_item: 0,
            open: BTreeMap::new(),
            wanted: true,
            in_any_order: false,
            early_parts: None,
        }
    }
}

/// Client side of a connection: operations out, items in.
///
/// [`Machine`] describes how it is driven. Its own methods are the application's calls:
/// [`request`](Self::request), [`adjust`](Self::adjust), [`cancel`](Self::cancel), [`note`](Self::note),
/// [`grant`](Self::grant), [`close`](Machine::close). Each operation ends once: by `Done`, by `Failed`, or by
/// `cancel`, after which no event of it follows.
#[derive(Debug)]
pub struct Client {
    state: ClientPhase,
    versions: RangeInclusive<u16>,
    window: AdaptiveWindow,
    /// State of returning credit in turns; without it, credit is returned when enough is owed.
    turns: Option<Turns>,
    /// Bulk bytes the server may still send.
    credit_bytes: u64,
    /// Bulk bytes that have arrived and were not taken yet.
    untaken_bytes: u64,
    most_operations: u32,
    last_op: u32,
    ops: OpTable<ClientOp>,
    open_items: usize,
    /// Bulk arrives outside the frames.
    expects_parts: bool,
    /// Places taken by parts that arrived early; see [`MAX_AHEAD`](crate::limits::MAX_AHEAD).
    places_ahead: usize,
    deadlines: Deadlines,
    outgoing: OutgoingQueue,
    /// Name of the last request, which the next one often shares.
    last_name: Arc<str>,
    adjusted: BTreeSet<OpId>,
    events: VecDeque<ClientEvent>,
    liveness: Liveness,
    welcome_within: Duration,
}

impl Client {
    /// Creates a client on a connected carrier; its hello is the first message.
    ///
    /// # Errors
    /// `Invalid` when a value in `config` exceeds its limit.
    pub fn new(config: ClientConfig, now: Instant) -> Result<Self> {
        check(&config)?;
        let mut window = AdaptiveWindow::new(config.window_bytes, config.sent_ahead);
        window.limit(config.in_turns.map(|turns| turns.window_bytes));
        let hello = Hello {
            lowest_version: *config.versions.start(),
            highest_version: *config.versions.end(),
            capabilities: config.capabilities,
            token: config.token,
            credit_bytes: window.size_bytes(),
            program: config.program,
        };
        Ok(Self {
            state: ClientPhase::Greeting { until: now + config.welcome_within },
            welcome_within: config.welcome_within,
            versions: config.versions,
            credit_bytes: window.size_bytes(),
            window,
            turns: config.in_turns.map(|turns| Turns::new(turns.step_bytes, config.window_bytes)),
            untaken_bytes: 0,
            most_operations: MAX_OPERATIONS,
            last_op: 0,
            ops: OpTable::default(),
            open_items: 0,
            expects_parts: false,
            places_ahead: 0,
            deadlines: Deadlines::default(),
            outgoing: OutgoingQueue::new(Frame::Hello(hello)),
            last_name: "".into(),
            adjusted: BTreeSet::new(),
            events: VecDeque::new(),
            liveness: Liveness::new(now),
        })
    }

    /// Starts an operation. It is sent at once, also before the welcome.
    ///
    /// # Errors
    /// `Busy` when there is no [room](Self::has_room); `Invalid` or `TooLarge` when name or parameters are
    /// too long; the reason why the connection ended, if it has; `Unreachable` when no
    /// [number](Self::numbers_left) is left.
    pub fn request(&mut self, name: &str, parameters: Bytes, urgency: Urgency) -> Result<OpId> {
        self.check_request(name, parameters.len(), urgency)?;
        let op = OpId(self.last_op + 1);
        self.last_op = op.0;
        if *self.last_name != *name {
            self.last_name = name.into();
        }
        let name = Arc::clone(&self.last_name);
        self.outgoing.ask(QueuedRequest { op, name, urgency, parameters });
        self.deadlines.replace(op, None, urgency.deadline);
        self.ops.insert(op, ClientOp::new(urgency));
        Ok(op)
    }

    /// Checks whether [`request`](Self::request) would accept an operation with parameters of this size now.
    ///
    /// # Errors
    /// The errors of `request`.
    pub fn check_request(&self, name: &str, parameter_bytes: usize, urgency: Urgency) -> Result<()> {
        if let ClientPhase::Closed(error) = &self.state {
            return Err(error.clone());
        }
        within(name.len(), MAX_NAME_BYTES, "the name of an operation")?;
        within(parameter_bytes, MAX_BODY_BYTES, "parameters")?;
        if self.numbers_left() == 0 {
            let what = "all operation numbers of this connection are used; connect again";
            return Err(Error::new(ErrorKind::Unreachable, what).with_retry(Retry::MayHelp));
        }
        if self.room(urgency.priority) == 0 {
            return Err(Error::new(ErrorKind::Busy, "expected room for another operation, found none"));
        }
        Ok(())
    }

    /// Operations that may still be requested on this connection, before another one is needed: numbers are
    /// never reused.
    #[must_use]
    pub fn numbers_left(&self) -> u32 {
        u32::MAX - self.last_op
    }

    /// True when [`request`](Self::request) would accept an operation now, whatever its priority.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.room(Priority::BACKGROUND) > 0
    }

    /// Operations of this priority that would be accepted now. Each tier above background has room of its
    /// own, so that urgent operations are accepted when lower tiers have filled theirs.
    #[must_use]
    pub fn room(&self, priority: Priority) -> usize {
        let above = usize::from(HIGHEST_TIER - priority.tier.min(HIGHEST_TIER));
        let most = self.most_operations as usize;
        let most = most - above * (most / OPERATIONS_PER_TIER);
        let most_bytes =
            MAX_OUTGOING_BYTES + (usize::from(HIGHEST_TIER) - above) * MAX_OUTGOING_BYTES_PER_TIER;
        let by_bytes = self.outgoing.room(most_bytes);
        by_bytes.min(most.saturating_sub(self.ops.len()))
    }

    /// Changes the urgency of an operation; has no effect when it has ended.
    pub fn adjust(&mut self, op: OpId, urgency: Urgency) {
        if let Some(state) = self.ops.get_mut(op).filter(|o| o.wanted && o.urgency != urgency) {
            self.deadlines.replace(op, state.deadline, urgency.deadline);
            state.deadline = urgency.deadline;
            state.urgency = urgency;
            self.adjusted.insert(op);
        }
    }

    /// Withdraws an operation: no event about it follows.
    pub fn cancel(&mut self, op: OpId) {
        if self.ops.get(op).is_some_and(|o| o.wanted) {
            self.abandon(op);
            let dropped = self.events.iter().filter(|e| e.op() == Some(op));
            let dropped_bytes = dropped.map(ClientEvent::bulk_bytes).sum();
            self.grant(dropped_bytes);
            self.events.retain(|e| e.op() != Some(op));
        }
    }

    /// Sends a message to a running operation; has no effect when it has ended.
    ///
    /// # Errors
    /// `TooLarge` when it is too long, `Busy` when too much is waiting to be sent.
    pub fn note(&mut self, op: OpId, body: Bytes) -> Result<()> {
        within(body.len(), MAX_BODY_BYTES, "a note")?;
        if self.outgoing.room(MAX_OUTGOING_BYTES) == 0 {
            return Err(Error::new(ErrorKind::Busy, "expected room for a note, found none"));
        }
        if self.ops.get(op).is_some_and(|o| o.wanted) {
            self.outgoing.push(Frame::Note { op, body });
        }
        Ok(())
    }

    /// Returns credit for bulk bytes that the application has taken.
    pub fn grant(&mut self, bulk_bytes: u64) {
        self.untaken_bytes = self.untaken_bytes.saturating_sub(bulk_bytes);
    }

    /// True when a credit frame waits to be sent, or a turn is [wanted](Self::wants_turn) for one.
    #[must_use]
    pub fn owes_credit(&self) -> bool {
        self.credit_due_bytes() > 0 || self.wants_turn()
    }

    /// Bytes that a credit frame would grant now.
    fn credit_due_bytes(&self) -> u64 {
        let owed_bytes = self.owed_bytes();
        match &self.turns {
            Some(turns) => turns.due_bytes(owed_bytes),
            None if owed_bytes >= self.window.size_bytes() / CREDIT_FRACTION => owed_bytes,
            None => 0,
        }
    }

    /// True when credit is returned in turns, a step of it is owed, and no turn was [taken](Self::take_turn)
    /// for it.
    #[must_use]
    pub fn wants_turn(&self) -> bool {
        let turns = self.turns.as_ref().filter(|_| matches!(self.state, ClientPhase::Open));
        turns.is_some_and(|turns| turns.is_wanted(self.owed_bytes()))
    }

    /// Schedules a step of credit at `at`; has no effect where credit is not returned in turns.
    pub fn take_turn(&mut self, now: Instant, at: Instant) {
        if let Some(turns) = &mut self.turns {
            turns.take(now, at);
        }
    }

    /// Limits the bulk bytes in flight, whatever the path holds; only where credit is returned in turns. Bulk
    /// that was allowed earlier may still arrive.
    pub fn limit_window(&mut self, limit_bytes: u64) {
        if self.turns.is_some() {
            self.window.limit(Some(limit_bytes));
        }
    }

    /// Bulk bytes that arrived since the last call of [`take_arrived`](Self::take_arrived), where credit is
    /// returned in turns.
    #[must_use]
    pub fn arrived_bytes(&self) -> u64 {
        self.turns.as_ref().map_or(0, Turns::arrived_bytes)
    }

    /// Returns [`arrived_bytes`](Self::arrived_bytes) and restarts the count.
    pub fn take_arrived(&mut self) -> u64 {
        self.turns.as_mut().map_or(0, Turns::take_arrived)
    }

    /// Recent minimum round trip, once one was measured.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.window.shortest()
    }

    /// Returns whether an answer is incomplete.
    #[must_use]
    pub fn has_operations(&self) -> bool {
        !self.ops.is_empty()
    }

    /// Credit that the server was not granted yet, bytes.
    fn owed_bytes(&self) -> u64 {
        self.window.size_bytes().saturating_sub(self.held_bytes())
    }

    /// Bulk bytes that the server may still send.
    #[must_use]
    pub fn credit_bytes(&self) -> u64 {
        self.credit_bytes
    }

    /// Number of the window's round trips so far.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.window.rounds()
    }

    /// Sets whether the carrier receives packets after gaps, which means that packets are lost.
    pub fn note_gaps(&mut self, has_gaps: bool) {
        self.window.note_gaps(has_gaps);
    }

    /// Window: bulk bytes that may be in flight or not yet taken, enough to fill the path as far as it is
    /// known. Bulk that was allowed before the window fell may still arrive.
    #[must_use]
    pub fn window_bytes(&self) -> u64 {
        self.window.size_bytes()
    }

    /// Bulk bytes that may be in flight by the granted credit, or were not taken yet.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.credit_bytes.saturating_add(self.untaken_bytes)
    }

    /// Ends an operation on this side, and tells the server to stop.
    fn abandon(&mut self, op: OpId) {
        let Some(state) = self.ops.get_mut(op) else { return };
        let has_ended = state.has_ended();
        state.wanted = false;
        self.open_items -= state.open.len();
        self.places_ahead -= state.places_ahead();
        self.untaken_bytes = self.untaken_bytes.saturating_sub(state.early_bytes());
        (state.open, state.early_parts) = (BTreeMap::new(), None);
        self.deadlines.replace(op, state.deadline.take(), None);
        self.adjusted.remove(&op);
        self.outgoing.push(Frame::Cancel { op });
        if has_ended {
            self.ops.remove(op);
        }
    }

    fn abandon_with(&mut self, op: OpId, error: Error) {
        self.abandon(op);
        self.events.push_back(ClientEvent::Failed { op, error });
    }

    /// Handles the server's last frame about an operation.
    fn retire(&mut self, op: OpId, event: ClientEvent) -> Result<()> {
        if self.forget(op)?.wanted {
            self.events.push_back(event);
        }
        Ok(())
    }

    fn forget(&mut self, op: OpId) -> Result<ClientOp> {
        let state = self.ops.remove(op).ok_or_else(|| unknown(op))?;
        self.open_items -= state.open.len();
        self.places_ahead -= state.places_ahead();
        self.untaken_bytes = self.untaken_bytes.saturating_sub(state.early_bytes());
        self.deadlines.replace(op, state.deadline, None);
        self.adjusted.remove(&op);
        Ok(state)
    }

    /// Ends the connection.
    fn end(&mut self, error: Error) {
        if matches!(self.state, ClientPhase::Closed(_)) {
            return;
        }
        for (op, _) in std::mem::take(&mut self.ops).take_if(|o| o.wanted) {
            self.events.push_back(ClientEvent::Failed { op, error: error.clone() });
        }
        self.deadlines.clear();
        self.adjusted.clear();
        self.outgoing.clear();
        (self.open_items, self.places_ahead) = (0, 0);
        self.events.push_back(ClientEvent::Closed { error: error.clone() });
        self.state = ClientPhase::Closed(error);
    }

    fn handle(&mut self, now: Instant, frame: Frame) -> Result<()> {
        match (&self.state, frame) {
            (ClientPhase::Closed(_), _) => Ok(()),
            (_, Frame::Close { error }) => {
                self.end(error.context("closed by the server"));
                Ok(())
            }
            (ClientPhase::Greeting { .. }, Frame::Welcome(welcome)) => self.handle_welcome(welcome),
            (ClientPhase::Greeting { .. }, Frame::Refused { error }) => {
                self.end(error.context("refused by the server"));
                Ok(())
            }
            (ClientPhase::Open, frame) => self.handle_open(now, frame),
            (ClientPhase::Greeting { .. }, other) => Err(unexpected("welcome or refused", &other)),
        }
    }

    fn handle_welcome(&mut self, welcome: Welcome) -> Result<()> {
        if !self.versions.contains(&welcome.version) {
            return Err(Error::corrupt(format!(
                "expected a version of {:?}, found {}",
                self.versions, welcome.version
            )));
        }
        self.most_operations = welcome.most_operations.clamp(1, MAX_OPERATIONS);
        if welcome.capabilities.iter().any(|name| name == BATCH) {
            self.outgoing.batch();
        }
        self.state = ClientPhase::Open;
        self.events.push_back(ClientEvent::Welcomed(welcome));
        Ok(())
    }

    fn close_if_broken<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            // The path may have damaged the bytes, so another connection may work.
            self.close(error.clone().context("what the server sent").with_retry(Retry::MayHelp));
        }
        result
    }

    fn poll_frame(&mut self, now: Instant) -> Option<Frame> {
        if let Some(frame) = self.poll_upkeep(now).or_else(|| self.outgoing.pop(now)) {
            return Some(frame);
        }
        if matches!(self.state, ClientPhase::Closed(_)) {
            return None;
        }
        let op = self.adjusted.pop_first()?;
        let Urgency { priority, deadline } = self.ops.get(op)?.urgency;
        Some(Frame::Adjust { op, priority, deadline_ms: deadline::to_wire(now, deadline) })
    }

    /// Returns whether the server has begun an answer that it may continue.
    fn is_in_transfer(&self) -> bool {
        self.open_items > 0 && self.credit_bytes > 0
    }

    /// Next frame that maintains the connection: credit, a ping or a pong. Such frames do not wait behind
    /// requests on a slow link, because the server stops without credit.
    fn poll_upkeep(&mut self, now: Instant) -> Option<Frame> {
        if !matches!(self.state, ClientPhase::Open) {
            return None;
        }
        let bytes = self.credit_due_bytes();
        if bytes > 0 {
            if let Some(turns) = &mut self.turns {
                turns.handle_granted(bytes);
            }
            self.credit_bytes += bytes;
            return Some(Frame::Credit { bytes });
        }
        if let Some(nonce) = self.window.poll_ping(now) {
            return Some(Frame::Ping { nonce });
        }
        self.liveness.poll_transmit()
    }
}

impl Machine for Client {
    type Event = ClientEvent;

    fn handle_frame(&mut self, now: Instant, frame: Bytes) -> Result<()> {
        self.liveness.handle_heard(now);
        let result = Frame::decode(frame).and_then(|frame| self.handle(now, frame));
        self.close_if_broken(result)
    }

    fn handle_timeout(&mut self, now: Instant) {
        let listening = self.wants_frames();
        match self.state {
            ClientPhase::Greeting { until } if now >= until => {
                return self.close(Error::new(
                    ErrorKind::TimedOut,
                    format!("expected a welcome within {} s, found none", self.welcome_within.as_secs()),
                ));
            }
            // The silence before the welcome has its own limit.
            ClientPhase::Greeting { .. } => self.liveness.handle_heard(now),
            ClientPhase::Closed(_) => return,
            ClientPhase::Open => {}
        }
        if let Some(turns) = &mut self.turns {
            turns.handle_timeout(now);
        }
        if let Err(error) = self.liveness.handle_timeout(now, listening, self.is_in_transfer()) {
            return self.close(error);
        }
        while let Some(op) = self.deadlines.pop_passed(now) {
            if let Some(state) = self.ops.get_mut(op) {
                state.deadline = None;
                self.abandon_with(op, Error::new(ErrorKind::TimedOut, "the deadline passed"));
            }
        }
    }

    fn handle_unread(&mut self, now: Instant) {
        self.liveness.handle_unread(now);
    }

    fn handle_lost(&mut self, error: Error) {
        self.end(error);
        self.outgoing.clear();
    }

    fn close(&mut self, error: Error) {
        if !matches!(self.state, ClientPhase::Closed(_)) {
            self.end(error.clone());
            self.outgoing.push(Frame::Close { error });
        }
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Message> {
        self.poll_frame(now).map(|frame| frame.encode())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let greeting = match self.state {
            ClientPhase::Closed(_) => return None,
            ClientPhase::Greeting { until } => Some(until),
            ClientPhase::Open => None,
        };
        let turn = self.turns.as_ref().and_then(Turns::poll_timeout);
        let liveness = Some(self.liveness.poll_timeout(self.is_in_transfer()));
        [greeting, self.deadlines.next(), liveness, turn].into_iter().flatten().min()
    }

    fn wants_frames(&self) -> bool {
        self.events.is_empty() && !matches!(self.state, ClientPhase::Closed(_))
    }

    fn frame_limit_bytes(&self) -> usize {
        MAX_FRAME_BYTES
    }

    fn is_finished(&self) -> bool {
        matches!(self.state, ClientPhase::Closed(_)) && self.outgoing.is_empty()
    }
}

fn check(config: &ClientConfig) -> Result<()> {
    within(config.token.len(), MAX_TOKEN_BYTES, "a token")?;
    within(config.program.len(), MAX_NAME_BYTES, "the program's name")?;
    check_capabilities(&config.capabilities)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "where time begins does not matter")]
    fn when_all_numbers_are_used_another_connection_is_needed() {
        let mut client = Client::new(ClientConfig::default(), Instant::now()).unwrap();
        client.last_op = u32::MAX - 1;
        let mut ask = || client.request("read", Bytes::new(), Urgency::of(Priority::NORMAL));
        assert_eq!(ask(), Ok(OpId(u32::MAX)));
        let error = ask().unwrap_err();
        assert_eq!((error.kind(), error.retry()), (ErrorKind::Unreachable, Retry::MayHelp));
        assert!(client.has_room() && client.numbers_left() == 0, "nobody waits for room that never comes");
    }
}
