//! QUIC connection as a [`Carrier`]: frames are sent on several lanes, so that a lost packet delays only
//! later data of its own lane.
//!
//! ```text
//! lane 0   each way     all frames of the client, in order; frames of the server about the connection
//! lane n   from server  all frames of an operation on one of these lanes, in order
//! lane r   each way     the link `lossy` only: control records of datagrams; the last lane
//! ```
//!
//! A lane is a byte stream as over TCP, with a length before each frame. It is sent in consecutive
//! unidirectional streams of QUIC ([`segment`](super::segment)). The first frame on lane 0 comes before any
//! answer. When lane 0 ends, the carrier has ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use quinn::{Connection, ConnectionError, RecvStream};
use wire::{Error, Message, Result};

use super::adapter::SharedPace;
use super::early_data::{EarlyData, HandshakeOutcome};
use super::endpoint::{refused, turned_away};
use super::lane_receiver::{LaneReceiver, UnassignedStream};
use super::lane_sender::LaneSender;
use crate::Carrier;
use crate::carrier::{Received, broken};

/// Lanes that a client sends on.
pub(super) const CLIENT_LANES: u8 = 1;
/// Lanes that a server sends on: one for control, and enough for answers that few operations share a lane.
pub(super) const SERVER_LANES: u8 = 32;
/// Lanes of records in each direction, for the link `lossy`.
pub(super) const RECORD_LANES: u8 = 1;
/// Ready bit of the streams that the other side opens.
const ACCEPTING: u32 = 63;
/// Ready bit of the streams whose segment head has not arrived.
const ARRIVING: u32 = 62;
/// Most unacknowledged data that the stack keeps, bytes: 10 Gb/s over 200 ms.
const MAX_KEPT_BYTES: u64 = 256 << 20;

/// Lanes that have something to read, one bit each, and the task to wake for them.
#[derive(Default)]
struct ReadyLanes {
    ready_bits: AtomicU64,
    driver: AtomicWaker,
}

struct LaneWaker {
    ready: Arc<ReadyLanes>,
    number: u32,
}

impl Wake for LaneWaker {
    fn wake(self: Arc<Self>) {
        self.ready.ready_bits.fetch_or(1 << self.number, Ordering::AcqRel);
        self.ready.driver.wake();
    }
}

impl ReadyLanes {
    fn waker(self: &Arc<Self>, number: u32) -> Waker {
        Arc::new(LaneWaker { ready: Arc::clone(self), number }).into()
    }
}

type AcceptingStream = BoxFuture<'static, std::result::Result<RecvStream, ConnectionError>>;

/// QUIC connection as a carrier, with its lanes in both directions.
pub(super) struct LaneCarrier {
    connection: Connection,
    pace: Arc<SharedPace>,
    senders: Vec<LaneSender>,
    /// Receiving lane of records, where there is one; the sending one is the last.
    record_lane: Option<u32>,
    /// Bytes passed to the stack.
    written_bytes: u64,
    /// Receivers by lane; `None` once a lane has ended.
    receivers: Vec<Option<LaneReceiver>>,
    /// Next stream of the peer.
    accepting: AcceptingStream,
    /// Streams whose segment head was not read yet.
    arriving: Vec<UnassignedStream>,
    ready: Arc<ReadyLanes>,
    /// Ready bits taken over from `ready` and not served yet.
    ready_bits: u64,
    /// Lane that was served last; the others have their turn first.
    last: u32,
    has_begun: bool,
    kept_bytes: u64,
    /// State of early data, until the handshake is over.
    early: Option<EarlyData>,
}

impl LaneCarrier {
    /// Creates one side of a connection, with `out` lanes for sending and `into` lanes for receiving.
    pub(super) fn new(connection: Connection, pace: Arc<SharedPace>, out: u8, into: u8) -> Self {
        let ready = Arc::<ReadyLanes>::default();
        let receivers = (0..into).map(|lane| Some(LaneReceiver::new(ready.waker(lane.into())))).collect();
        Self {
            senders: (0..out).map(LaneSender::new).collect(),
            record_lane: None,
            written_bytes: 0,
            receivers,
            accepting: accepting(&connection),
            connection,
            pace,
            arriving: Vec::new(),
            ready,
            ready_bits: 1 << ACCEPTING,
            last: 0,
            has_begun: false,
            kept_bytes: 0,
            early: None,
        }
    }

    /// Sets the state of a connection whose handshake is or was in progress: `first` is a stream that the peer
    /// has already opened.
    pub(super) fn with_early_data(mut self, early: Option<EarlyData>, first: Option<RecvStream>) -> Self {
        self.early = early;
        self.arriving.extend(first.map(UnassignedStream::new));
        self.ready_bits |= 1 << ARRIVING;
        self
    }

    /// Creates the lanes of a connection, with one more lane in each direction for records.
    pub(super) fn with_records(connection: Connection, pace: Arc<SharedPace>, out: u8, into: u8) -> Self {
        let mut lanes = Self::new(connection, pace, out + RECORD_LANES, into + RECORD_LANES);
        lanes.record_lane = Some(into.into());
        lanes
    }

    /// True once the peer has sent data on its control lane.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Bytes passed to the stack so far.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Queues a record, including its length; [`poll_send`](Carrier::poll_send) sends it.
    pub(super) fn tell(&mut self, record: Bytes) {
        self.senders.last_mut().into_iter().for_each(|sender| sender.push_bytes(record.clone()));
    }

    /// True while records wait because the peer does not take them faster.
    pub(super) fn is_telling(&self) -> bool {
        self.senders.last().is_some_and(|sender| !sender.is_empty())
    }

    /// Returns the lane of a message.
    fn lane(&self, message: &Message) -> usize {
        let answers = self.senders.len() - 1 - usize::from(self.record_lane.is_some());
        match message.op() {
            Some(op) if answers > 0 => 1 + op.0 as usize % answers,
            _ => 0,
        }
    }

    /// Adapts the stack's send buffer to the path.
    fn adjust_kept(&mut self) {
        let wanted = self.pace.with(|pace| pace.kept_bytes()).min(MAX_KEPT_BYTES);
        if wanted > self.kept_bytes || wanted < self.kept_bytes / 2 {
            self.kept_bytes = wanted + wanted / 4;
            self.connection.set_send_window(self.kept_bytes);
        }
    }

    /// Checks whether the handshake is over. Rejected early data is sent again.
    fn poll_early(&mut self, cx: &mut Context<'_>) -> Result<()> {
        let Some(early) = &mut self.early else { return Ok(()) };
        let Poll::Ready(outcome) = early.poll(cx) else { return Ok(()) };
        let sent = self.early.take().map(EarlyData::into_sent).unwrap_or_default();
        match outcome {
            HandshakeOutcome::Accepted => Ok(()),
            HandshakeOutcome::Rejected => {
                self.senders = (0..).take(self.senders.len()).map(LaneSender::new).collect();
                for (lane, bytes) in sent {
                    if let Some(sender) = self.senders.get_mut(lane) {
                        sender.push_bytes(bytes);
                    }
                }
                Ok(())
            }
            HandshakeOutcome::Lost => Err(turned_away(&self.connection)),
        }
    }

    /// Queues messages, as far as they may be sent now.
    fn queue(&mut self, outgoing: &mut VecDeque<Message>) {
        while !self.early.as_ref().is_some_and(EarlyData::is_full)
            && let Some(message) = outgoing.pop_front()
        {
            let lane = self.lane(&message);
            let Some(sender) = self.senders.get_mut(lane) else { continue };
            for bytes in message.into_stream_parts() {
                if let Some(early) = &mut self.early {
                    early.note(lane, &bytes);
                }
                sender.push_bytes(bytes);
            }
        }
    }

    /// Takes the ready bit with this number; true when it was set.
    fn take_ready(&mut self, number: u32) -> bool {
        let is_ready = self.ready_bits & (1 << number) != 0;
        self.ready_bits &= !(1 << number);
        is_ready
    }

    /// Accepts the streams that the peer opened; the stack limits their number.
    fn accept(&mut self) -> Result<()> {
        let waker = self.ready.waker(ACCEPTING);
        while let Poll::Ready(accepted) = self.accepting.poll_unpin(&mut Context::from_waker(&waker)) {
            let lost = if self.early.is_some() { refused } else { broken };
            self.arriving.push(UnassignedStream::new(accepted.map_err(lost)?));
            self.accepting = accepting(&self.connection);
            self.ready_bits |= 1 << ARRIVING;
        }
        Ok(())
    }

    /// Assigns streams to their lanes.
    fn arrive(&mut self) -> Result<()> {
        let waker = self.ready.waker(ARRIVING);
        let mut cx = Context::from_waker(&waker);
        let mut still = Vec::new();
        for mut arriving in std::mem::take(&mut self.arriving) {
            let Poll::Ready(head) = arriving.poll_head(&mut cx) else {
                still.push(arriving);
                continue;
            };
            let head = head?;
            let receiver =
                self.receivers.get_mut(usize::from(head.lane)).and_then(Option::as_mut).ok_or_else(|| {
                    Error::corrupt(format!(
                        "expected a segment of an open lane, found one of lane {}",
                        head.lane
                    ))
                })?;
            receiver.append(head.number, arriving.into_stream())?;
            self.ready_bits |= 1 << head.lane;
        }
        self.arriving = still;
        Ok(())
    }

    /// Returns the lane to be served next: the control lane, then the others in turn; only the control lane
    /// until its first data.
    fn next_lane(&self) -> Option<u32> {
        let heard = if self.has_begun { (1 << (SERVER_LANES + RECORD_LANES)) - 1 } else { 1 };
        let ready_bits = self.ready_bits & heard;
        let later = ready_bits & !((2 << self.last) - 1);
        match (ready_bits & 1, later) {
            _ if ready_bits == 0 => None,
            (1, _) => Some(0),
            (_, 0) => Some(ready_bits.trailing_zeros()),
            _ => Some(later.trailing_zeros()),
        }
    }

    /// Like [`poll_take`](Carrier::poll_take), for frames and records; the first argument of `take` is true
    /// for a record.
    pub(super) fn poll_take_or_record(
        &mut self,
        cx: &mut Context<'_>,
        limit_bytes: usize,
        take: &mut dyn FnMut(bool, Received<'_>),
    ) -> Poll<Result<bool>> {
        self.ready.driver.register(cx.waker());
        self.poll_early(cx)?;
        self.ready_bits |= self.ready.ready_bits.swap(0, Ordering::AcqRel);
        if self.take_ready(ACCEPTING) {
            self.accept()?;
        }
        if self.take_ready(ARRIVING) {
            self.arrive()?;
        }
        while let Some(lane) = self.next_lane() {
            let is_record = Some(lane) == self.record_lane;
            let Some(slot) = self.receivers.get_mut(lane as usize) else { break };
            let take = &mut |received: Received<'_>| take(is_record, received);
            let polled =
                slot.as_mut().map_or(Poll::Pending, |receiver| receiver.poll_take(limit_bytes, take));
            match polled {
                Poll::Ready(Ok(true)) => {
                    (self.has_begun, self.last) = (true, lane);
                    let now = self.pace.now();
                    self.pace.with(|pace| pace.on_heard(now));
                    return Poll::Ready(Ok(true));
                }
                Poll::Ready(Ok(false)) if lane != 0 => *slot = None,
                Poll::Ready(end) => return Poll::Ready(end),
                Poll::Pending => {}
            }
            self.ready_bits &= !(1 << lane);
        }
        Poll::Pending
    }
}

fn accepting(connection: &Connection) -> AcceptingStream {
    let connection = connection.clone();
    Box::pin(async move { connection.accept_uni().await })
}

impl Carrier for LaneCarrier {
    fn poll_send(&mut self, cx: &mut Context<'_>, outgoing: &mut VecDeque<Message>) -> Poll<Result<()>> {
        self.poll_early(cx)?;
        self.queue(outgoing);
        let has_room = self.pace.with(|pace| {
            let has_room = pace.has_room();
            pace.backlog.writer = (!has_room).then(|| cx.waker().clone());
            has_room
        });
        if !has_room {
            return Poll::Pending;
        }
        self.adjust_kept();
        let mut is_done = outgoing.is_empty();
        for sender in self.senders.iter_mut().filter(|sender| !sender.is_empty()) {
            let written = sender.poll_write(cx, &self.connection);
            let bytes = sender.take_written_bytes();
            self.written_bytes += bytes;
            self.pace.with(|pace| pace.on_written(bytes));
            match written {
                Poll::Ready(Ok(())) => {}
                // The handshake has just failed or early data was rejected, which the next poll reports.
                Poll::Ready(Err(_)) if self.early.is_some() => is_done = false,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => is_done = false,
            }
        }
        if is_done { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        limit_bytes: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Poll<Result<bool>> {
        self.poll_take_or_record(cx, limit_bytes, &mut |_, received| take(received))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let connection = &self.connection;
        let mut is_done = true;
        for sender in &mut self.senders {
            is_done &= sender.poll_finish(cx, connection)?.is_ready();
        }
        if is_done { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl Drop for LaneCarrier {
    /// Closes the connection, which handles for statistics would otherwise keep open.
    fn drop(&mut self) {
        self.connection.close(0_u32.into(), b"");
    }
}
