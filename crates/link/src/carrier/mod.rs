//! Interface of every carrier: whole messages, in order, in both directions.

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

/// Something that arrived.
#[derive(Debug)]
pub enum Received<'a> {
    /// A whole message.
    Message(Bytes),
    /// Some bulk of a chunk, where the carrier has it: whoever wants it copies it to its place, once.
    Bulk {
        /// Which item, and where in its bulk.
        head: ChunkHead,
        /// The bytes, at least one.
        bytes: &'a [u8],
    },
    /// Some bulk that came apart from the messages, in any order, and lies in memory of its own.
    Part(BulkPart),
    /// Some bulk that came apart from the messages, borrowed from the carrier's memory.
    Apart {
        /// Head of the item that the bulk belongs to.
        head: ItemHead,
        /// Offset of the bytes in the item's bulk.
        offset: u64,
        /// The bytes, at least one.
        bytes: &'a [u8],
    },
    /// So many bytes of bulk were withdrawn on their way and will not come.
    Gone(u64),
}

/// Moves messages between two peers, in order and without loss, until it ends.
///
/// Both directions are independent: neither method waits for the other. One task polls both.
pub trait Carrier: Send + 'static {
    /// Sends all of `outgoing`, many messages at once where that is possible. Ready when the last byte was handed
    /// on; pending with some of it still queued here or there.
    ///
    /// # Errors
    /// The carrier broke.
    fn poll_send(&mut self, cx: &mut Context<'_>, outgoing: &mut VecDeque<Message>) -> Poll<Result<()>>;

    /// While [`poll_send`](Self::poll_send) is pending: whether more would find a way of its own, beside what is queued.
    fn takes_more(&self) -> bool {
        false
    }

    /// Hands over what has arrived next, once: a message of at most `limit_bytes`, or some of one where it lies. False
    /// when the peer ended the carrier between two messages.
    ///
    /// # Errors
    /// `Unreachable` when the carrier broke, `TooLarge` or `Corrupt` when the peer sent what is no message; it can
    /// still be told then.
    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        limit_bytes: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Poll<Result<bool>>;

    /// Says that nothing more will be sent.
    ///
    /// # Errors
    /// The carrier broke.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>>;
}

/// A carrier, and who is at the other end.
pub struct Link {
    pub(crate) carrier: Box<dyn Carrier>,
    pub(crate) peer: String,
    flow: Option<Arc<dyn Flow>>,
    /// Bulk comes apart from the messages.
    pub(crate) by_parts: bool,
    /// Whoever sends keeps what waits on the way short.
    pub(crate) is_paced: bool,
    /// Lets further streams join, once the client may come in.
    pub(crate) opening: Option<Box<dyn FnOnce() + Send>>,
}

impl Link {
    /// A link over `carrier`. `peer`: the other end's address, for people.
    pub fn new(carrier: impl Carrier, peer: impl Into<String>) -> Self {
        let (carrier, peer) = (Box::new(carrier), peer.into());
        Self { carrier, peer, flow: None, by_parts: false, is_paced: false, opening: None }
    }

    /// Marks the carrier as one that brings bulk apart from the messages.
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

    /// Handle on what this side sends: statistics, and the controller where the protocol has one. Outlives the link.
    #[must_use]
    pub fn flow(&self) -> Option<Arc<dyn Flow>> {
        self.flow.clone()
    }

    /// The other end's address, for people.
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

/// Hands over what was cut off a stream; false when that is nothing yet.
pub(crate) fn give(cut: Option<Deframed<'_>>, take: &mut dyn FnMut(Received<'_>)) -> bool {
    let Some(cut) = cut else { return false };
    take(match cut {
        Deframed::Frame(frame) => Received::Message(frame),
        Deframed::Bulk { head, bytes } => Received::Bulk { head, bytes },
        Deframed::Apart { head, offset, bytes } => Received::Apart { head, offset, bytes },
    });
    true
}

/// Hands over a whole message; false where the carrier has ended.
pub(crate) fn give_whole(message: Option<Bytes>, take: &mut dyn FnMut(Received<'_>)) -> bool {
    let any = message.is_some();
    message.into_iter().for_each(|message| take(Received::Message(message)));
    any
}

/// A broken carrier, whatever the operating system calls it: another connection may do.
pub(crate) fn broken(error: impl Into<io::Error>) -> Error {
    let error = error.into();
    // What libraries say of an end in the midst of something is advice for programmers.
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return ended();
    }
    Error::new(ErrorKind::Unreachable, format!("the connection broke: {error}")).with_retry(Retry::MayHelp)
}

pub(crate) fn ended() -> Error {
    Error::new(ErrorKind::Unreachable, "the other side ended the connection")
}
