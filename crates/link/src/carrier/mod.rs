//! Interface of a transport: whole messages, in order, in both directions.

pub mod local;
pub mod tcp;
pub(crate) mod tcp_flow;
pub(crate) mod tcp_info;
pub(crate) mod tcp_rate;
pub mod tls;
pub mod ws;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use wire::{BulkPart, ChunkHead, Deframed, Error, ErrorKind, ItemHead, Message, Result, Retry};

use crate::flow::Flow;

/// Message or bulk that arrived.
#[derive(Debug)]
pub enum Received<'a> {
    /// A whole message.
    Message(Bytes),
    /// Bytes of a chunk's bulk, in the carrier's buffer; the receiver copies them once.
    Bulk {
        /// Item that the bytes belong to, and their offset in its bulk.
        head: ChunkHead,
        /// Bytes, at least one.
        bytes: &'a [u8],
    },
    /// Bulk that arrived outside the messages, in any order, in memory of its own.
    Part(BulkPart),
    /// Bulk that arrived outside the messages, borrowed from the carrier's buffer.
    Apart {
        /// Head of the item that the bulk belongs to.
        head: ItemHead,
        /// Offset of the bytes in the item's bulk.
        offset: u64,
        /// Bytes, at least one.
        bytes: &'a [u8],
    },
    /// Bytes of bulk that were cancelled after they were sent and will not arrive.
    Gone(u64),
}

/// Moves messages between two peers, in order and without loss, until it ends.
///
/// The directions are independent: neither method waits for the other. One task polls both.
pub trait Carrier: Send + 'static {
    /// Sends all of `outgoing`, many messages at a time where possible. Ready when the last byte was passed
    /// on; pending while a part is still queued in `outgoing` or in the carrier.
    ///
    /// # Errors
    /// The carrier broke.
    fn poll_send(&mut self, cx: &mut Context<'_>, outgoing: &mut VecDeque<Message>) -> Poll<Result<()>>;

    /// True while [`poll_send`](Self::poll_send) is pending but further messages could be sent past the
    /// queued ones.
    fn takes_more(&self) -> bool {
        false
    }

    /// Passes on the next thing that arrived, once: a message of at most `limit_bytes`, or a part of one in
    /// the carrier's buffer. Returns false when the peer ended the carrier between two messages.
    ///
    /// # Errors
    /// `Unreachable` when the carrier broke; `TooLarge` or `Corrupt` when the peer sent an invalid message,
    /// of which it can still be notified.
    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        limit_bytes: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Poll<Result<bool>>;

    /// Ends the sending direction.
    ///
    /// # Errors
    /// The carrier broke.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>>;
}

/// Carrier with the address of its other end.
pub struct Link {
    pub(crate) carrier: Box<dyn Carrier>,
    pub(crate) peer: String,
    flow: Option<Arc<dyn Flow>>,
    /// Bulk arrives outside the messages.
    pub(crate) by_parts: bool,
    /// The senders keep the queue on the path short.
    pub(crate) is_paced: bool,
    /// Lets further streams join; called once the client is admitted.
    pub(crate) opening: Option<Box<dyn FnOnce() + Send>>,
}

impl Link {
    /// Creates a link over `carrier`. `peer` is the displayed address of the other end.
    pub fn new(carrier: impl Carrier, peer: impl Into<String>) -> Self {
        let (carrier, peer) = (Box::new(carrier), peer.into());
        Self { carrier, peer, flow: None, by_parts: false, is_paced: false, opening: None }
    }

    /// Marks the carrier as one that delivers bulk outside the messages.
    pub(crate) fn by_parts(self) -> Self {
        Self { by_parts: true, ..self }
    }

    /// Marks the link as paced: the senders run a congestion controller of this project, which keeps the queues on the
    /// path short.
    pub(crate) fn paced(self) -> Self {
        Self { is_paced: true, ..self }
    }

    /// Lets further streams join the link once the client has been admitted: `open` is called then.
    pub(crate) fn opening(self, open: impl FnOnce() + Send + 'static) -> Self {
        Self { opening: Some(Box::new(open)), ..self }
    }

    /// Attaches `flow`, which reports how this side's sending goes and controls it.
    pub(crate) fn with_flow(self, flow: impl Flow + 'static) -> Self {
        Self { flow: Some(Arc::new(flow)), ..self }
    }

    /// Handle for statistics of what this side sends and, where the protocol has one, its congestion
    /// controller. Outlives the link.
    #[must_use]
    pub fn flow(&self) -> Option<Arc<dyn Flow>> {
        self.flow.clone()
    }

    /// Displayed address of the other end.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.peer
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({})", self.peer)
    }
}

/// Passes on what the deframer returned; false when that is nothing yet.
pub(crate) fn give(cut: Option<Deframed<'_>>, take: &mut dyn FnMut(Received<'_>)) -> bool {
    let Some(cut) = cut else { return false };
    take(match cut {
        Deframed::Frame(frame) => Received::Message(frame),
        Deframed::Bulk { head, bytes } => Received::Bulk { head, bytes },
        Deframed::Apart { head, offset, bytes } => Received::Apart { head, offset, bytes },
    });
    true
}

/// Passes on a whole message; false when the carrier has ended.
pub(crate) fn give_whole(message: Option<Bytes>, take: &mut dyn FnMut(Received<'_>)) -> bool {
    let any = message.is_some();
    message.into_iter().for_each(|message| take(Received::Message(message)));
    any
}

/// Error of a broken carrier, whatever error the operating system reports; a new connection may work.
pub(crate) fn broken(error: impl Into<io::Error>) -> Error {
    let error = error.into();
    // The text of this error in libraries is advice for programmers.
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return ended();
    }
    Error::new(ErrorKind::Unreachable, format!("the connection broke: {error}")).with_retry(Retry::MayHelp)
}

pub(crate) fn ended() -> Error {
    Error::new(ErrorKind::Unreachable, "the other side ended the connection")
}
