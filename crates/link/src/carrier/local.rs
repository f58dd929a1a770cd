//! Link between two ends in one process: a pair of bounded channels.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::channel::mpsc;
use futures::{Sink, Stream};
use wire::{Error, Message, Result};

use crate::carrier::{Received, ended, give_whole};
use crate::{Carrier, Link};

/// Most messages queued in one direction of a link within a process.
pub const QUEUED_MESSAGES: usize = 16;

/// Creates two links that are connected to each other.
#[must_use]
pub fn pair() -> (Link, Link) {
    let (to_a, from_b) = mpsc::channel(QUEUED_MESSAGES);
    let (to_b, from_a) = mpsc::channel(QUEUED_MESSAGES);
    let link = |sender, receiver| Link::new(LocalCarrier { sender, receiver }, "this process");
    (link(to_a, from_a), link(to_b, from_b))
}

/// End of a link whose messages the caller moves itself: for a peer behind the connection of another program.
pub struct MessageEnd {
    /// Messages for the link, in order.
    pub outgoing: mpsc::Sender<Bytes>,
    /// Messages of the link, in order; ends with it.
    pub incoming: mpsc::Receiver<Bytes>,
}

/// Creates a link and the other end of it as messages. `peer` is the displayed address of that end.
#[must_use]
pub fn by_messages(peer: &str) -> (Link, MessageEnd) {
    let (outgoing, receiver) = mpsc::channel(QUEUED_MESSAGES);
    let (sender, incoming) = mpsc::channel(QUEUED_MESSAGES);
    (Link::new(LocalCarrier { sender, receiver }, peer), MessageEnd { outgoing, incoming })
}

struct LocalCarrier {
    sender: mpsc::Sender<Bytes>,
    receiver: mpsc::Receiver<Bytes>,
}

impl Carrier for LocalCarrier {
    fn poll_send(&mut self, cx: &mut Context<'_>, outgoing: &mut VecDeque<Message>) -> Poll<Result<()>> {
        while !outgoing.is_empty() {
            ready!(self.sender.poll_ready(cx)).map_err(|_| ended())?;
            if let Some(message) = outgoing.pop_front() {
                self.sender.start_send(message.into_bytes()).map_err(|_| ended())?;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        limit_bytes: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Poll<Result<bool>> {
        let message = ready!(Pin::new(&mut self.receiver).poll_next(cx));
        let message = message.map(|m| check_size(m, limit_bytes)).transpose()?;
        Poll::Ready(Ok(give_whole(message, take)))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.sender).poll_close(cx).map_err(|_| ended())
    }
}

pub(crate) fn check_size(message: Bytes, limit_bytes: usize) -> Result<Bytes> {
    if message.len() <= limit_bytes {
        return Ok(message);
    }
    let found = message.len();
    Err(Error::too_large(format!("expected a message of at most {limit_bytes} bytes, found {found}")))
}
