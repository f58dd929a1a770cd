//! A QUIC connection as a [`Carrier`]: the protocol's frames on several streams, so that a lost packet holds up only
//! what came after it on its own stream.
//!
//! ```text
//! control  one each way  all frames of the client, in order; those of the server that are about the connection
//! answers  from server   the frames of an operation all go on one of them, in order
//! ```
//!
//! All are one-way streams; the first that a side opens is its control, and the first frame of it comes before any
//! answer. When control ends, the carrier has ended. Each stream is a stream of bytes as over TCP: every frame is
//! preceded by its length.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use quinn::{Connection, ConnectionError, RecvStream, SendStream};
use wire::{Deframer, Error, Message, Result};

use super::adapter::SharedPace;
use super::reassembly::Reassembly;
use crate::Carrier;
use crate::carrier::{broken, ended};

/// Most streams one way: control, and answers enough that few operations share one.
pub(super) const MOST_LANES: u32 = 32;
/// Bell of the streams that the other side opens.
const ACCEPTING: u32 = 63;
/// Most that the stack keeps of what was sent and not acknowledged, bytes: 10 Gb/s over 200 ms.
const MAX_KEPT_BYTES: u64 = 256 << 20;
/// Taken of a stream at once, bytes.
const PIECE_BYTES: usize = 64 << 10;

/// Which streams have something, one bit each.
#[derive(Default)]
struct Bells {
    rung: AtomicU64,
    driver: AtomicWaker,
}

struct Bell {
    bells: Arc<Bells>,
    number: u32,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.bells.rung.fetch_or(1 << self.number, Ordering::AcqRel);
        self.bells.driver.wake();
    }
}

/// What is sent on one stream.
struct Outlet {
    stream: SendStream,
    parts: VecDeque<Bytes>,
}

impl Outlet {
    fn new(stream: SendStream) -> Self {
        Self { stream, parts: VecDeque::new() }
    }

    /// Hands everything to the stack; gives the bytes handed over now.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        let mut bytes = 0;
        while !self.parts.is_empty() {
            // Cancel safe: what a dropped future has not written is still in the parts.
            let polled = pin!(self.stream.write_chunks(self.parts.make_contiguous())).poll(cx);
            let Poll::Ready(written) = polled else { break };
            let written = written.map_err(broken)?;
            bytes += written.bytes as u64;
            self.parts.drain(..written.chunks);
        }
        if bytes == 0 && !self.parts.is_empty() { Poll::Pending } else { Poll::Ready(Ok(bytes)) }
    }
}

/// What is received on one stream.
struct Inlet {
    stream: RecvStream,
    waker: Waker,
    reassembly: Reassembly,
    deframer: Deframer,
}

impl Inlet {
    fn new(stream: RecvStream, bells: &Arc<Bells>, number: u32) -> Self {
        let bell = Arc::new(Bell { bells: Arc::clone(bells), number });
        bell.wake_by_ref();
        Self { stream, waker: bell.into(), reassembly: Reassembly::default(), deframer: Deframer::new() }
    }

    /// The next frame; `None` at the end. `waiting` is what all streams hold out of order, at most `most_waiting`.
    fn poll_frame(
        &mut self,
        limit_bytes: usize,
        waiting: &mut u64,
        most_waiting: u64,
    ) -> Poll<Result<Option<Bytes>>> {
        let mut cx = Context::from_waker(&self.waker);
        loop {
            if let Some(frame) = self.deframer.next_frame(limit_bytes)? {
                return Poll::Ready(Ok(Some(frame)));
            }
            if let Some(piece) = self.reassembly.next() {
                *waiting -= piece.len() as u64;
                self.deframer.buffer().extend_from_slice(&piece);
                continue;
            }
            let reading = pin!(self.stream.read_chunk(PIECE_BYTES, false));
            let Some(chunk) = ready!(reading.poll(&mut cx)).map_err(broken)? else {
                let is_clean = self.reassembly.is_empty() && self.deframer.is_empty();
                return Poll::Ready(if is_clean { Ok(None) } else { Err(ended()) });
            };
            *waiting += chunk.bytes.len() as u64;
            self.reassembly.insert(chunk.offset, chunk.bytes)?;
            if *waiting > most_waiting {
                return Poll::Ready(Err(Error::too_large(format!(
                    "expected at most {most_waiting} bytes that wait for lost ones, found more"
                ))));
            }
        }
    }
}

/// See the module.
pub(super) struct Lanes {
    connection: Connection,
    pace: Arc<SharedPace>,
    /// Control, then the answers.
    outlets: Vec<Outlet>,
    /// By bell; none once it ended.
    inlets: Vec<Option<Inlet>>,
    /// The other side's next stream.
    accepting: Option<BoxFuture<'static, std::result::Result<RecvStream, ConnectionError>>>,
    bells: Arc<Bells>,
    /// Bells heard and not looked after yet.
    rung: u64,
    has_begun: bool,
    waiting_bytes: u64,
    most_waiting_bytes: u64,
    kept_bytes: u64,
}

impl Lanes {
    /// One side of a new connection. `most_waiting_bytes` may wait for lost ones before them.
    pub(super) fn new(
        connection: Connection,
        pace: Arc<SharedPace>,
        most_waiting_bytes: u64,
    ) -> Result<Self> {
        // As many as the other side takes, without waiting for it: one for a server, all for a client.
        let open = || connection.open_uni().now_or_never().map(|opened| opened.map(Outlet::new));
        let outlets = std::iter::from_fn(open).take(MOST_LANES as usize);
        let outlets = outlets.collect::<std::result::Result<Vec<_>, _>>().map_err(broken)?;
        if outlets.is_empty() {
            return Err(Error::unsupported("expected a peer that takes a stream, found none allowed"));
        }
        let mut lanes = Self {
            connection,
            pace,
            outlets,
            inlets: Vec::new(),
            accepting: None,
            bells: Arc::default(),
            rung: 0,
            has_begun: false,
            waiting_bytes: 0,
            most_waiting_bytes,
            kept_bytes: 0,
        };
        lanes.await_inlet();
        Ok(lanes)
    }

    fn await_inlet(&mut self) {
        let connection = self.connection.clone();
        self.accepting = Some(Box::pin(async move { connection.accept_uni().await }));
        self.rung |= 1 << ACCEPTING;
    }

    /// Which stream a message goes on.
    fn lane(&self, message: &Message) -> usize {
        let answers = self.outlets.len() - 1;
        match message.op() {
            Some(op) if answers > 0 => 1 + op.0 as usize % answers,
            _ => 0,
        }
    }

    /// Keeps what the stack may hold in step with the path.
    fn adjust_kept(&mut self) {
        let wanted = self.pace.with(|pace| pace.kept_bytes()).min(MAX_KEPT_BYTES);
        if wanted > self.kept_bytes || wanted < self.kept_bytes / 2 {
            self.kept_bytes = wanted + wanted / 4;
            self.connection.set_send_window(self.kept_bytes);
        }
    }

    /// Takes the streams that the other side opened.
    fn accept(&mut self) -> Result<()> {
        let bell: Waker = Arc::new(Bell { bells: Arc::clone(&self.bells), number: ACCEPTING }).into();
        while let Some(accepting) = &mut self.accepting {
            match accepting.poll_unpin(&mut Context::from_waker(&bell)) {
                Poll::Pending => break,
                Poll::Ready(Err(error)) => return Err(broken(error)),
                Poll::Ready(Ok(stream)) => {
                    let number = u32::try_from(self.inlets.len()).unwrap_or(u32::MAX);
                    if number >= MOST_LANES {
                        return Err(Error::corrupt(format!(
                            "expected at most {MOST_LANES} streams, found more"
                        )));
                    }
                    self.inlets.push(Some(Inlet::new(stream, &self.bells, number)));
                    self.rung |= 1 << number;
                    self.await_inlet();
                }
            }
        }
        self.rung &= !(1 << ACCEPTING);
        Ok(())
    }
}

impl Carrier for Lanes {
    fn poll_send(&mut self, cx: &mut Context<'_>, outgoing: &mut VecDeque<Message>) -> Poll<Result<()>> {
        while let Some(message) = outgoing.pop_front() {
            let lane = self.lane(&message);
            if let Some(outlet) = self.outlets.get_mut(lane) {
                outlet.parts.extend(message.into_stream_parts());
            }
        }
        let has_room = self.pace.with(|pace| {
            let has_room = pace.has_room();
            pace.writer = (!has_room).then(|| cx.waker().clone());
            has_room
        });
        if !has_room {
            return Poll::Pending;
        }
        self.adjust_kept();
        let mut is_done = true;
        for outlet in self.outlets.iter_mut().filter(|outlet| !outlet.parts.is_empty()) {
            if let Poll::Ready(bytes) = outlet.poll_write(cx) {
                let bytes = bytes?;
                self.pace.with(|pace| pace.on_written(bytes));
            }
            is_done &= outlet.parts.is_empty();
        }
        if is_done { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>, limit_bytes: usize) -> Poll<Result<Option<Bytes>>> {
        self.bells.driver.register(cx.waker());
        self.rung |= self.bells.rung.swap(0, Ordering::AcqRel);
        if self.rung & (1 << ACCEPTING) != 0 {
            self.accept()?;
        }
        // Control alone until it has begun; the bells of the others keep.
        let heard = if self.has_begun { u64::MAX } else { 1 };
        loop {
            let number = (self.rung & heard & !(1 << ACCEPTING)).trailing_zeros();
            let Some(slot) = self.inlets.get_mut(number as usize) else { return Poll::Pending };
            let polled = slot.as_mut().map_or(Poll::Pending, |inlet| {
                inlet.poll_frame(limit_bytes, &mut self.waiting_bytes, self.most_waiting_bytes)
            });
            match polled {
                Poll::Ready(Ok(Some(frame))) => {
                    self.has_begun = true;
                    return Poll::Ready(Ok(Some(frame)));
                }
                Poll::Ready(Ok(None)) if number != 0 => *slot = None,
                Poll::Ready(end) => return Poll::Ready(end),
                Poll::Pending => {}
            }
            self.rung &= !(1 << number);
        }
    }

    fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<Result<()>> {
        for outlet in &mut self.outlets {
            // An error says that it was closed before.
            drop(outlet.stream.finish());
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Lanes {
    /// Whoever still asks for statistics does not keep the connection.
    fn drop(&mut self) {
        self.connection.close(0_u32.into(), b"");
    }
}
