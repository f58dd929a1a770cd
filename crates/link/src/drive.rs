//! Loop that moves bytes between a [`Carrier`](crate::Carrier) and a state machine of the protocol.
//!
//! The state machine is behind a lock that the application's handles share, so their calls are plain function
//! calls and a dropped handle can always report it. The driver is woken when there may be something to send.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use tokio::time::Sleep;
use wire::limits::MAX_FRAME_BYTES;
use wire::{BulkPart, Chunk, ChunkHead, Error, ErrorKind, Frame, ItemHead, Machine, Message};

use crate::carrier::{Received, ended};
use crate::clock::now;
use crate::{Carrier, Link};

/// Runs one connection until it ends; to be spawned in a task set of its owner. Dropping it breaks the
/// connection: all operations in flight fail.
pub type Driver = BoxFuture<'static, ()>;

/// Bytes taken from the state machine and written together, at least. Urgent data cannot overtake them any
/// more.
const BATCH_BYTES: usize = 256 << 10;
/// Iterations of the loop before other tasks get their turn.
const ROUNDS_PER_POLL: usize = 64;
/// Time limit for sending the last messages of a connection that has ended.
const LINGER: Duration = Duration::from_secs(1);

/// State machine with the events that its application has not taken yet.
pub(crate) trait ProtocolSide: Send + 'static {
    type Machine: Machine;

    fn machine(&mut self) -> &mut Self::Machine;
    /// False while the application lags behind; the driver receives nothing then.
    fn has_space(&self) -> bool;
    /// Handles bulk of a chunk. An error closes the state machine, whose events report it.
    fn take_bulk(&mut self, now: Instant, head: ChunkHead, bytes: &[u8]) {
        let ChunkHead { op, item, offset } = head;
        let chunk = Chunk { op, item, offset, bytes: Bytes::copy_from_slice(bytes) };
        drop(self.machine().handle_frame(now, Frame::Chunk(chunk).encode().into_bytes()));
    }
    /// Handles bulk that arrived outside the frames, or that will not arrive; called only where a side asked
    /// for such bulk.
    fn take_part(&mut self, _now: Instant, _part: BulkPart) {}
    fn take_apart(&mut self, _now: Instant, _head: &ItemHead, _offset: u64, _bytes: &[u8]) {
        self.machine().close(Error::corrupt("expected a frame of a client, found bulk"));
    }
    fn take_gone(&mut self, _bytes: u64) {}
    /// Called before the state machine is asked for its next timeout and its messages.
    fn prepare(&mut self) {}
    /// Delivers the events of the state machine, and wakes callers that wait for room.
    fn settle(&mut self);
}

/// One side, shared by the driver and the application's handles.
pub(crate) struct SharedSide<S> {
    side: Mutex<S>,
    driver: AtomicWaker,
}

impl<S: ProtocolSide> SharedSide<S> {
    pub(crate) fn new(side: S) -> Arc<Self> {
        Arc::new(Self { side: Mutex::new(side), driver: AtomicWaker::new() })
    }

    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut S) -> T) -> T {
        // Every method of a machine leaves it consistent, also when a caller's closure panics afterwards.
        f(&mut self.side.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs a call that may have given the driver something to do.
    pub(crate) fn change<T>(&self, f: impl FnOnce(&mut S) -> T) -> T {
        let out = self.with(f);
        self.driver.wake();
        out
    }

    /// Runs a call that may have made space, for which the driver had stopped receiving.
    pub(crate) fn take<T>(&self, f: impl FnOnce(&mut S) -> T) -> T {
        let (out, made_space) = self.with(|side| {
            let had_space = side.has_space();
            (f(side), !had_space && side.has_space())
        });
        if made_space {
            self.driver.wake();
        }
        out
    }
}

struct Drive<S: ProtocolSide> {
    shared: Arc<SharedSide<S>>,
    /// Displayed address of the other end.
    peer: String,
    carrier: Box<dyn Carrier>,
    outgoing: VecDeque<Message>,
    /// Bytes of the batch being written; 0 when the carrier can take more.
    batch_bytes: usize,
    /// The carrier has not passed on all that it was given.
    is_sending: bool,
    timer: Pin<Box<Sleep>>,
    carrier_broke: bool,
    linger_until: Option<Instant>,
}

pub(crate) fn drive<S: ProtocolSide>(link: Link, shared: Arc<SharedSide<S>>) -> Driver {
    Box::pin(async move {
        // Created here, inside a runtime.
        let timer = Box::pin(tokio::time::sleep(Duration::ZERO));
        Drive {
            shared,
            peer: link.peer,
            carrier: link.carrier,
            outgoing: VecDeque::new(),
            batch_bytes: 0,
            is_sending: false,
            timer,
            carrier_broke: false,
            linger_until: None,
        }
        .await;
    })
}

impl<S: ProtocolSide> Future for Drive<S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.shared.driver.register(cx.waker());
        for _ in 0..ROUNDS_PER_POLL {
            let moved = self.receive(cx) | self.expire(cx) | self.send(cx);
            if self.carrier_broke {
                return Poll::Ready(());
            }
            if self.shared.with(|side| side.machine().is_finished()) {
                return self.finish(cx);
            }
            if !moved {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<S: ProtocolSide> Drive<S> {
    /// Receives one frame, if the state machine and the application are ready for it.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let listening = self.shared.with(|side| {
            let ready = side.has_space() && side.machine().wants_frames();
            ready.then(|| side.machine().frame_limit_bytes())
        });
        let Some(limit_bytes) = listening else { return false };
        let shared = &self.shared;
        let mut take = |received: Received<'_>| {
            shared.with(|side| {
                match received {
                    // An error closes the state machine, whose events report it.
                    Received::Message(message) => drop(side.machine().handle_frame(now(), message)),
                    Received::Bulk { head, bytes } => side.take_bulk(now(), head, bytes),
                    Received::Part(part) => side.take_part(now(), part),
                    Received::Apart { head, offset, bytes } => side.take_apart(now(), &head, offset, bytes),
                    Received::Gone(bytes) => side.take_gone(bytes),
                }
                side.settle();
            });
        };
        let Poll::Ready(received) = self.carrier.poll_take(cx, limit_bytes, &mut take) else { return false };
        match received {
            Ok(true) => {}
            Ok(false) => self.lose(ended()),
            Err(error) if error.kind() == ErrorKind::Unreachable => self.lose(error),
            Err(error) => self.step(|machine, _| machine.close(error)),
        }
        true
    }

    /// Handles timeouts.
    fn expire(&mut self, cx: &mut Context<'_>) -> bool {
        let at = self.shared.with(|side| {
            side.prepare();
            side.machine().poll_timeout()
        });
        let Some(at) = at else { return false };
        if self.poll_timer(cx, at).is_pending() {
            return false;
        }
        self.shared.with(|side| {
            let now = now();
            if !side.has_space() {
                side.machine().handle_unread(now);
            }
            side.machine().handle_timeout(now);
            side.settle();
        });
        true
    }

    /// Sends one batch: all that is ready, most urgent first, in as few writes as possible.
    fn send(&mut self, cx: &mut Context<'_>) -> bool {
        self.shared.with(|side| {
            let now = now();
            while self.batch_bytes < BATCH_BYTES
                && let Some(message) = side.machine().poll_transmit(now)
            {
                self.batch_bytes += message.size_bytes();
                self.outgoing.push_back(message);
            }
            side.settle();
        });
        if self.batch_bytes == 0 && !self.is_sending {
            return false;
        }
        let has_batch = self.batch_bytes > 0;
        match self.carrier.poll_send(cx, &mut self.outgoing) {
            Poll::Ready(Ok(())) => (self.batch_bytes, self.is_sending) = (0, false),
            Poll::Ready(Err(error)) => self.lose(error),
            Poll::Pending => {
                self.is_sending = true;
                if !has_batch || !self.carrier.takes_more() {
                    return false;
                }
                self.batch_bytes = 0;
            }
        }
        true
    }

    /// Ends the connection: sends the rest, then discards what still arrives, so that the last messages are
    /// not lost to a TCP reset.
    fn finish(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let until = *self.linger_until.get_or_insert_with(|| now() + LINGER);
        if self.poll_timer(cx, until).is_ready() || ready!(self.poll_last_words(cx)).is_err() {
            return Poll::Ready(());
        }
        while let Ok(true) = ready!(self.carrier.poll_take(cx, MAX_FRAME_BYTES, &mut |_| ())) {}
        Poll::Ready(())
    }

    fn poll_last_words(&mut self, cx: &mut Context<'_>) -> Poll<wire::Result<()>> {
        ready!(self.carrier.poll_send(cx, &mut self.outgoing))?;
        self.carrier.poll_close(cx)
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>, at: Instant) -> Poll<()> {
        if self.timer.deadline().into_std() != at {
            self.timer.as_mut().reset(at.into());
        }
        self.timer.as_mut().poll(cx)
    }

    fn step(&self, f: impl FnOnce(&mut S::Machine, Instant)) {
        self.shared.with(|side| {
            f(side.machine(), now());
            side.settle();
        });
    }

    fn lose(&mut self, error: Error) {
        self.carrier_broke = true;
        let error = error.context(format!("connection to {}", self.peer));
        self.step(|machine, _| machine.handle_lost(error));
    }
}

impl<S: ProtocolSide> Drop for Drive<S> {
    fn drop(&mut self) {
        self.step(|machine, _| machine.handle_lost(ended()));
    }
}

/// Registers a waker, once.
pub(crate) fn watch(waiting: &mut Vec<Waker>, cx: &Context<'_>) {
    if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
        waiting.push(cx.waker().clone());
    }
}
