//! Server side of a link of several streams: sends the bulk of large items on any stream that can take it.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use futures::channel::mpsc;
use futures::{FutureExt, StreamExt};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use wire::{Message, MessageContent, Result};

use super::flow::StreamsFlow;
use super::further_stream::FurtherStream;
use super::stream_registry::Registration;
use crate::carrier::tcp::Framed;
use crate::carrier::{Received, ended};
use crate::server::bulk_apart::Items;
use crate::{Carrier, Link, TcpMonitor};

/// Most frames that wait for the first stream while the others take bulk.
const MAX_FRAMES_AHEAD: usize = 1_024;

/// Server side of a link of several streams. Only the first stream exists until others have joined.
pub(super) struct StreamsServer {
    first: Framed<TlsStream<TcpStream>>,
    /// Frames that are sent in order, on the first stream.
    frames: VecDeque<Message>,
    items: Items,
    /// Bulk that is not assigned to a stream yet.
    parts: VecDeque<Message>,
    arriving: mpsc::Receiver<FurtherStream>,
    more: Vec<FurtherStream>,
    /// Index of the stream that is asked first.
    turn: usize,
    /// A stream could take bulk at the last check.
    is_one_free: bool,
    is_closing: bool,
    flow: Option<StreamsFlow>,
    /// Dropped after `arriving`, so that no stream joins a link that is over.
    _registration: Registration,
}

impl StreamsServer {
    pub(super) fn link(
        session: TlsStream<TcpStream>,
        monitor: Option<TcpMonitor>,
        peer: String,
        arriving: mpsc::Receiver<FurtherStream>,
        registration: Registration,
    ) -> Link {
        let flow = monitor.as_ref().map(|monitor| StreamsFlow::new(monitor.flow()));
        let sending = Self {
            first: Framed::new(session, monitor),
            frames: VecDeque::new(),
            items: Items::default(),
            parts: VecDeque::new(),
            arriving,
            more: Vec::new(),
            turn: 0,
            is_one_free: false,
            is_closing: false,
            flow: flow.clone(),
            _registration: registration,
        };
        let link = Link::new(sending, peer);
        match flow {
            Some(flow) => link.with_flow(flow),
            None => link,
        }
    }

    /// Adds the streams that have joined. The end of one ends the link.
    fn look_after(&mut self, cx: &mut Context<'_>) -> Result<()> {
        while let Poll::Ready(Some(stream)) = self.arriving.poll_next_unpin(cx) {
            if let (Some(all), Some(flow)) = (&self.flow, &stream.flow) {
                all.add(flow.clone());
            }
            self.more.push(stream);
        }
        let mut is_broken = false;
        if self.is_closing {
            return Ok(());
        }
        for stream in &mut self.more {
            is_broken |= stream.ended.poll_unpin(cx).is_ready();
        }
        if is_broken { Err(ended().context("a further stream of the link")) } else { Ok(()) }
    }

    /// Queues a message for the first stream, or as bulk for any stream.
    fn sort(&mut self, message: Message) {
        if self.more.is_empty() {
            return self.frames.push_back(message);
        }
        match message.content() {
            Some(MessageContent::Item(head)) => self.items.begin(&head),
            Some(MessageContent::Failed(op)) => self.items.forget(op),
            Some(MessageContent::Chunk(chunk)) => {
                if let Some(part) = self.items.part(chunk) {
                    return self.parts.push_back(part.encode());
                }
            }
            Some(MessageContent::Cancelled(_)) | None => {}
        }
        self.frames.push_back(message);
    }

    /// Passes bulk to the further streams that can take it.
    fn hand_out(&mut self, cx: &mut Context<'_>) -> Result<()> {
        self.is_one_free = false;
        for _ in 0..self.more.len() {
            let at = self.turn % self.more.len();
            self.turn = at + 1;
            let stream = &mut self.more[at].messages;
            while stream.poll_ready(cx).map_err(|_| ended())?.is_ready() {
                let Some(part) = self.parts.pop_front() else {
                    self.is_one_free = true;
                    // The stream keeps its turn.
                    self.turn = at;
                    return Ok(());
                };
                stream.start_send(part).map_err(|_| ended())?;
            }
        }
        Ok(())
    }
}

impl Carrier for StreamsServer {
    fn poll_send(&mut self, cx: &mut Context<'_>, outgoing: &mut VecDeque<Message>) -> Poll<Result<()>> {
        self.look_after(cx)?;
        while let Some(message) = outgoing.pop_front() {
            self.sort(message);
        }
        loop {
            self.hand_out(cx)?;
            if self.first.poll_send(cx, &mut self.frames)?.is_pending() {
                return Poll::Pending;
            }
            // The first stream has nothing else to send.
            match self.parts.pop_front() {
                Some(part) => self.frames.push_back(part),
                None => return Poll::Ready(Ok(())),
            }
        }
    }

    fn takes_more(&self) -> bool {
        self.is_one_free && self.frames.len() < MAX_FRAMES_AHEAD
    }

    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        limit_bytes: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Poll<Result<bool>> {
        self.look_after(cx)?;
        self.first.poll_take(cx, limit_bytes, take)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.is_closing = true;
        self.more.iter_mut().for_each(|stream| stream.messages.close_channel());
        self.more.retain_mut(|stream| stream.ended.poll_unpin(cx).is_pending());
        if self.more.is_empty() { self.first.poll_close(cx) } else { Poll::Pending }
    }
}
