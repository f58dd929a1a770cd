//! The link `lossy` on a QUIC connection: connects [`DatagramSender`] and [`DatagramReceiver`] to its
//! datagrams, lanes and clock.
//!
//! The stack sends datagrams before stream data. So that frames are not starved, datagrams leave some bytes
//! of each packet to them, and pause when much was written to the lanes.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use quinn::{Connection, ConnectionError, RecvStream, SendDatagramError};
use tokio::time::Sleep;
use wire::{Error, Message, MessageContent, Result};

use super::adapter::SharedPace;
use super::lanes::{CLIENT_LANES, LaneCarrier, SERVER_LANES};
use crate::Carrier;
use crate::carrier::{Received, broken};
use crate::clock::now;
use crate::datagram::{DatagramCounts, DatagramReceiver, DatagramRecord, DatagramSender};

/// Size of the stack's buffer of datagrams to send, bytes: larger than the data that ever waits there.
pub(super) const SEND_BUFFER_BYTES: usize = 16 << 20;
/// Size of the stack's buffer of received datagrams, bytes; when it is full, the stack drops the oldest. 60 ms at 1 Gb/s.
pub(super) const RECEIVE_BUFFER_BYTES: usize = 8 << 20;
/// Size of the receive buffer of a side that wants no datagrams, bytes; received ones are discarded. The
/// stack does not send datagrams itself where it would receive none.
pub(super) const UNWANTED_BUFFER_BYTES: usize = 4 << 10;
/// Bytes of each packet that are reserved for frames.
const LEFT_BYTES: usize = 64;
/// Records or useless datagrams handled before other tasks get their turn.
const ROUNDS_PER_POLL: u32 = 64;
/// Bytes written to the lanes that fit beside datagrams.
const LITTLE_BYTES: u64 = 2 << 10;

/// Counters that are readable while the carrier is being driven.
pub(super) type SharedCounts = Arc<Mutex<DatagramCounts>>;

fn tell(shared: &SharedCounts, counts: DatagramCounts) {
    *shared.lock().unwrap_or_else(PoisonError::into_inner) = counts;
}

/// Wakes the task at the timeout of a state machine.
struct MachineTimer(Pin<Box<Sleep>>);

impl MachineTimer {
    fn new() -> Self {
        Self(Box::pin(tokio::time::sleep(Duration::ZERO)))
    }

    /// True when the time has come; otherwise the task is woken then.
    fn poll(&mut self, cx: &mut Context<'_>, at: Option<Instant>) -> bool {
        let Some(at) = at else { return false };
        if self.0.deadline().into_std() != at {
            self.0.as_mut().reset(at.into());
        }
        self.0.as_mut().poll(cx).is_ready()
    }
}

/// Takes the next frame or record from the lanes: frames are passed to `take`, records to `record`.
fn poll_lanes(
    lanes: &mut LaneCarrier,
    cx: &mut Context<'_>,
    limit_bytes: usize,
    take: &mut dyn FnMut(Received<'_>),
    record: &mut dyn FnMut(DatagramRecord) -> Result<()>,
) -> Poll<Result<LaneOutput>> {
    let mut recorded = None;
    let polled = lanes.poll_take_or_record(cx, limit_bytes, &mut |is_record, received| match received {
        Received::Message(message) if is_record => {
            recorded = Some(DatagramRecord::decode(message).and_then(&mut *record))
        }
        _ if is_record => recorded = Some(Err(Error::corrupt("expected a record, found a chunk"))),
        received => take(received),
    });
    polled.map(|ready| match (ready?, recorded) {
        (_, Some(done)) => done.map(|()| LaneOutput::Record),
        (true, None) => Ok(LaneOutput::Frame),
        (false, None) => Ok(LaneOutput::End),
    })
}

enum LaneOutput {
    Record,
    Frame,
    End,
}

/// Carrier of the server side.
pub(super) struct LossySender {
    lanes: LaneCarrier,
    /// Messages that are sent as frames.
    frames: VecDeque<Message>,
    sender: DatagramSender,
    connection: Connection,
    pace: Arc<SharedPace>,
    timer: MachineTimer,
    counts: SharedCounts,
    /// Bytes written to the lanes when last no datagram waited.
    calm_bytes: u64,
}

impl LossySender {
    /// Creates the server side. `first` is a stream that the client has already opened.
    pub(super) fn new(
        connection: Connection,
        pace: Arc<SharedPace>,
        counts: SharedCounts,
        first: Option<RecvStream>,
    ) -> Self {
        let lanes =
            LaneCarrier::with_records(connection.clone(), Arc::clone(&pace), SERVER_LANES, CLIENT_LANES);
        Self {
            lanes: lanes.with_early_data(None, first),
            frames: VecDeque::new(),
            sender: DatagramSender::new(),
            connection,
            pace,
            timer: MachineTimer::new(),
            counts,
            calm_bytes: 0,
        }
    }

    /// Sends what can be sent now; ready when all frames were passed on.
    fn pump(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let mut frames;
        loop {
            // Records that cannot be sent yet wait in the sender, where they are bounded.
            if !self.lanes.is_telling() {
                while let Some(record) = self.sender.poll_record() {
                    self.lanes.tell(record.encode());
                }
            }
            frames = self.lanes.poll_send(cx, &mut self.frames)?;
            self.send_datagrams(cx)?;
            if self.timer.poll(cx, self.sender.poll_timeout()) {
                self.sender.handle_timeout(now());
            } else if !self.sender.has_records() || self.lanes.is_telling() {
                break;
            }
        }
        tell(&self.counts, self.sender.counts());
        frames.map(Ok)
    }

    /// Passes datagrams to the stack until enough of them wait there.
    fn send_datagrams(&mut self, cx: &mut Context<'_>) -> Result<()> {
        let Some(most_bytes) = self.connection.max_datagram_size() else { return Ok(()) };
        let most_bytes = most_bytes.saturating_sub(LEFT_BYTES);
        while let room = self.room(cx)
            && room > 0
        {
            let mut left = room;
            while left > 0 {
                let Some(datagram) = self.sender.poll_datagram(now(), most_bytes) else { return Ok(()) };
                let size_bytes = datagram.len();
                left = left.saturating_sub(size_bytes);
                match self.connection.send_datagram(datagram) {
                    Ok(()) => self.pace.with(|pace| pace.backlog.on_datagram(size_bytes)),
                    // The MTU has just decreased: this datagram is reported missing and sent again, later
                    // ones have the new size.
                    Err(SendDatagramError::TooLarge) => {
                        cx.waker().wake_by_ref();
                        return Ok(());
                    }
                    Err(SendDatagramError::ConnectionLost(error)) => return Err(broken(error)),
                    Err(error) => return Err(Error::unsupported(format!("expected datagrams: {error}"))),
                }
            }
        }
        Ok(())
    }

    /// Bytes of datagrams that may be passed to the stack; where there is no room, the task is woken after
    /// packets were sent.
    fn room(&mut self, cx: &mut Context<'_>) -> usize {
        let written = self.lanes.written_bytes();
        let connection = &self.connection;
        let waiting = || SEND_BUFFER_BYTES.saturating_sub(connection.datagram_send_buffer_space());
        let most = self.pace.with(|pace| pace.waiting_datagram_bytes());
        let mut room = |waiting: usize| {
            // The stack counts some bytes of overhead for each datagram.
            if waiting < LEFT_BYTES {
                self.calm_bytes = written;
            }
            if written - self.calm_bytes > LITTLE_BYTES { 0 } else { most.saturating_sub(waiting) }
        };
        let found = room(waiting());
        if found > 0 {
            return found;
        }
        // Checked again, because packets sent meanwhile would wake no task.
        self.pace.with(|pace| pace.backlog.writer = Some(cx.waker().clone()));
        room(waiting())
    }
}

impl Carrier for LossySender {
    fn poll_send(&mut self, cx: &mut Context<'_>, outgoing: &mut VecDeque<Message>) -> Poll<Result<()>> {
        while let Some(message) = outgoing.pop_front() {
            if !message.content().is_some_and(|content| self.sender.take(content)) {
                self.frames.push_back(message);
            }
        }
        match self.pump(cx) {
            Poll::Ready(Ok(())) if !self.sender.is_idle() => Poll::Pending,
            pumped => pumped,
        }
    }

    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        limit_bytes: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Poll<Result<bool>> {
        let sender = &mut self.sender;
        let mut record = |record| sender.handle_record(record);
        let mut rounds = 0;
        while let Poll::Ready(taken) = poll_lanes(&mut self.lanes, cx, limit_bytes, take, &mut record) {
            match taken? {
                LaneOutput::Frame => return Poll::Ready(Ok(true)),
                LaneOutput::End => return Poll::Ready(Ok(false)),
                LaneOutput::Record => rounds += 1,
            }
            if rounds >= ROUNDS_PER_POLL {
                cx.waker().wake_by_ref();
                break;
            }
        }
        // Retransmissions are not triggered by a call of `poll_send`.
        let _is_done = self.pump(cx)?;
        Poll::Pending
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.lanes.poll_close(cx)
    }
}

/// Carrier of the client side.
pub(super) struct LossyReceiver {
    lanes: LaneCarrier,
    receiver: DatagramReceiver,
    connection: Connection,
    datagrams: BoxStream<'static, std::result::Result<Bytes, ConnectionError>>,
    timer: MachineTimer,
    counts: SharedCounts,
}

impl LossyReceiver {
    pub(super) fn new(
        connection: Connection,
        pace: Arc<SharedPace>,
        counts: SharedCounts,
        redundancy: bool,
    ) -> Self {
        let mut lanes = LaneCarrier::with_records(connection.clone(), pace, CLIENT_LANES, SERVER_LANES);
        lanes.tell(DatagramRecord::Want { redundancy }.encode());
        let datagrams = stream::unfold(connection.clone(), |connection| async move {
            Some((connection.read_datagram().await, connection))
        });
        Self {
            lanes,
            receiver: DatagramReceiver::new(redundancy, connection.rtt()),
            connection,
            datagrams: datagrams.boxed(),
            timer: MachineTimer::new(),
            counts,
        }
    }

    /// Passes on what the receiver has, if anything.
    fn give(&mut self, take: &mut dyn FnMut(Received<'_>)) -> bool {
        if let Some(part) = self.receiver.poll_part() {
            take(Received::Part(part));
            return true;
        }
        let gone_bytes = self.receiver.poll_gone();
        if gone_bytes > 0 {
            take(Received::Gone(gone_bytes));
        }
        gone_bytes > 0
    }

    /// Sends a report that is due.
    fn pump(&mut self, cx: &mut Context<'_>) -> Result<()> {
        self.receiver.set_rtt(self.connection.rtt());
        loop {
            // A report describes the current state: while one waits to be sent, no other is made.
            if !self.lanes.is_telling()
                && let Some(report) = self.receiver.poll_report(now())
            {
                self.lanes.tell(report.encode());
            }
            // Unsent reports follow with the next frames, or when there is room; then this function is called
            // again.
            let _is_done = self.lanes.poll_send(cx, &mut VecDeque::new())?;
            if self.lanes.is_telling() || !self.timer.poll(cx, self.receiver.poll_timeout()) {
                break;
            }
        }
        tell(&self.counts, self.receiver.counts());
        Ok(())
    }
}

impl Carrier for LossyReceiver {
    fn poll_send(&mut self, cx: &mut Context<'_>, outgoing: &mut VecDeque<Message>) -> Poll<Result<()>> {
        for message in &*outgoing {
            if let Some(MessageContent::Cancelled(op)) = message.content() {
                self.lanes.tell(DatagramRecord::Cancel(op).encode());
            }
        }
        self.lanes.poll_send(cx, outgoing)
    }

    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        limit_bytes: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Poll<Result<bool>> {
        for _ in 0..ROUNDS_PER_POLL {
            if self.give(take) {
                return Poll::Ready(Ok(true));
            }
            let receiver = &mut self.receiver;
            let mut record = |record| receiver.handle_record(now(), record);
            match poll_lanes(&mut self.lanes, cx, limit_bytes, take, &mut record) {
                Poll::Ready(taken) => match taken? {
                    LaneOutput::Frame => return Poll::Ready(Ok(true)),
                    LaneOutput::End => return Poll::Ready(Ok(false)),
                    LaneOutput::Record => continue,
                },
                Poll::Pending => {}
            }
            if self.lanes.has_begun()
                && let Poll::Ready(Some(datagram)) = self.datagrams.poll_next_unpin(cx)
            {
                self.receiver.handle_datagram(now(), datagram.map_err(broken)?);
                continue;
            }
            self.pump(cx)?;
            return Poll::Pending;
        }
        cx.waker().wake_by_ref();
        self.pump(cx)?;
        Poll::Pending
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.lanes.poll_close(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::SocketAddr;

    use quinn::crypto::rustls::QuicServerConfig;
    use quinn::{Endpoint, ServerConfig};
    use wire::{BulkPart, Chunk, Frame, ItemHead, OpId};

    use super::*;
    use crate::carrier::tls::{ALPN_LOSSY, Identity, Trust};
    use crate::datagram::{Datagram, MAX_ASKED_RUNS};
    use crate::quic::pace::PacedController;
    use crate::quic::session_ticket_cache::{self, ServerKey};

    /// Creates a client's connection and the server's; the endpoints are to be kept.
    async fn connections() -> (Connection, Connection, [Endpoint; 2]) {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let identity = Identity::self_signed(&["localhost".into()]).expect("an identity");
        let crypto =
            rustls::ServerConfig::clone(&identity.server_config(&[ALPN_LOSSY]).expect("its own key"));
        let crypto = Arc::new(QuicServerConfig::try_from(crypto).expect("TLS 1.3"));
        let server = Endpoint::server(ServerConfig::with_crypto(crypto), any).expect("a socket");
        let client = Endpoint::client(any).expect("a socket");
        let address = server.local_addr().expect("an address");
        let trust = Trust::Fingerprint(identity.fingerprint());
        let key = ServerKey { address, host: "localhost".into(), trust, protocol: ALPN_LOSSY };
        let config = session_ticket_cache::config(&key).expect("TLS 1.3");
        let near = async { client.connect_with(config, address, "localhost").expect("a name").await };
        let far = async { server.accept().await.expect("a client").await };
        let (near, far) = tokio::join!(near, far);
        (near.expect("a server"), far.expect("a client"), [client, server])
    }

    fn pace() -> Arc<SharedPace> {
        let choice = "rate=1Gb/s".parse().expect("a choice");
        SharedPace::new(PacedController::new(choice, 1_472, None).expect("its signals are there"))
    }

    fn head() -> ItemHead {
        ItemHead { op: OpId(1), item: 0, body: Bytes::new(), bulk_bytes: 1 << 20, bulk_crc32c: 0 }
    }

    #[tokio::test]
    async fn a_client_that_says_much_is_heard_in_turns() {
        const REPORTS: u64 = 2_000;
        let (near, far, _endpoints) = connections().await;
        let mut server = LossySender::new(far.clone(), pace(), SharedCounts::default(), None);
        server.sender.take(MessageContent::Item(head()));
        let bytes = Bytes::from_static(&[1; 4_096]);
        server.sender.take(MessageContent::Chunk(Chunk { op: OpId(1), item: 0, offset: 0, bytes }));
        assert!(server.sender.poll_datagram(now(), 1_200).is_some());
        let mut client = LaneCarrier::with_records(near, pace(), CLIENT_LANES, SERVER_LANES);
        for _ in 0..REPORTS {
            client.tell(DatagramRecord::Report { settled: 0, missing: Vec::from([0..1, 1..1]) }.encode());
        }
        let mut outgoing = VecDeque::from([Frame::Ping { nonce: 1 }.encode()]);
        poll_fn(|cx| client.poll_send(cx, &mut outgoing)).await.unwrap();
        while far.stats().udp_rx.bytes < REPORTS * 8 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let (mut heard, mut most) = (0, 0);
        let hearing = poll_fn(|cx| {
            if let Poll::Ready(taken) = server.poll_take(cx, 1 << 20, &mut |_| ()) {
                assert!(taken.unwrap(), "the client is still there");
                cx.waker().wake_by_ref();
            }
            let before = std::mem::replace(&mut heard, server.sender.counts().missed);
            most = most.max(heard - before);
            if heard == REPORTS { Poll::Ready(()) } else { Poll::Pending }
        });
        tokio::time::timeout(Duration::from_secs(60), hearing).await.expect("it goes on by itself");
        assert!(most <= u64::from(ROUNDS_PER_POLL), "{most} at once");
    }

    #[tokio::test]
    async fn reports_that_cannot_leave_do_not_pile_up() {
        let (near, _far, _endpoints) = connections().await;
        let pace = pace();
        let mut client = LossyReceiver::new(near, Arc::clone(&pace), SharedCounts::default(), false);
        tokio::time::pause();
        // Blocks writing, as a server without credit would.
        pace.with(|pace| pace.on_written(1 << 40));
        for number in 0..10_000 {
            let part = BulkPart { head: head(), offset: number, bytes: Bytes::from_static(b"x") };
            client.receiver.handle_datagram(now(), Datagram::Bulk { number: 2 * number + 1, part }.encode());
        }
        for _ in 0..50 {
            tokio::time::advance(Duration::from_millis(10)).await;
            poll_fn(|cx| Poll::Ready(client.pump(cx))).await.unwrap();
            let asked = client.receiver.counts().missed;
            assert!(asked <= MAX_ASKED_RUNS as u64, "{asked} asked for");
        }
        let asked = client.receiver.counts().missed;
        pace.with(|pace| pace.on_acks_end(Duration::ZERO, Duration::ZERO, 0, true));
        for _ in 0..10 {
            tokio::time::advance(Duration::from_millis(10)).await;
            poll_fn(|cx| Poll::Ready(client.pump(cx))).await.unwrap();
        }
        assert!(client.receiver.counts().missed > asked, "they are asked for when there is room");
    }
}
