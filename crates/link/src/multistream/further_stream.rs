//! Further stream on the server: sends the messages that its link assigns to it, in a task of its own, so
//! that several streams are encrypted in parallel.

use std::time::Duration;

use bytes::Buf;
use futures::StreamExt;
use futures::channel::{mpsc, oneshot};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use wire::limits::DEAD_AFTER;
use wire::{Error, ErrorKind, Message, Result, Retry};

use super::TAKEN;
use super::pinned_sender::PinnedSenders;
use crate::TcpMonitor;
use crate::carrier::tcp_flow::TcpFlow;
use crate::carrier::{broken, ended};

/// Time that a stream may take to end after its link.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);
/// Interval at which a stream is checked for missing acknowledgements.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Link's handle of a stream: accepts one message while another one is written.
pub(super) struct FurtherStream {
    pub(super) messages: mpsc::Sender<Message>,
    /// Cancelled when the stream has ended.
    pub(super) ended: oneshot::Receiver<()>,
    pub(super) flow: Option<TcpFlow>,
}

/// Stream that has presented its ticket and is not running yet. Dropping it closes the socket.
pub struct JoinedStream {
    session: TlsStream<TcpStream>,
    monitor: Option<TcpMonitor>,
    streams: mpsc::Sender<FurtherStream>,
    pinned_senders: PinnedSenders,
}

impl JoinedStream {
    pub(super) fn new(
        session: TlsStream<TcpStream>,
        monitor: Option<TcpMonitor>,
        streams: mpsc::Sender<FurtherStream>,
        pinned_senders: PinnedSenders,
    ) -> Self {
        Self { session, monitor, streams, pinned_senders }
    }

    /// Accepts the stream and sends on it until its link ends.
    ///
    /// # Errors
    /// The stream broke, which breaks its link; or the link ended before.
    ///
    /// # Cancel safety
    /// Dropping the future breaks the stream.
    pub async fn run(self) -> Result<()> {
        let local = self.session.get_ref().0.local_addr().ok();
        match local.and_then(|local| self.pinned_senders.take(local.ip())) {
            Some(sender) => sender.run(self.send()).await,
            None => self.send().await,
        }
    }

    async fn send(mut self) -> Result<()> {
        self.session.write_u8(TAKEN).await.map_err(broken)?;
        self.session.flush().await.map_err(broken)?;
        let (messages, queue) = mpsc::channel(0);
        let (mut alive, ended_with_it) = oneshot::channel();
        let flow = self.monitor.as_ref().map(TcpMonitor::flow);
        let stream = FurtherStream { messages, ended: ended_with_it, flow };
        self.streams.try_send(stream).map_err(|_| ended())?;
        tokio::select! {
            done = send_all(&mut self.session, queue) => done,
            error = silence(self.monitor.as_ref()) => Err(error),
            error = ends_with(&mut alive) => Err(error),
        }
    }
}

async fn send_all(session: &mut TlsStream<TcpStream>, mut queue: mpsc::Receiver<Message>) -> Result<()> {
    while let Some(message) = queue.next().await {
        let mut parts = message.into_stream_parts();
        let (head, bulk) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        session.write_all_buf(&mut head.chain(bulk)).await.map_err(broken)?;
        session.flush().await.map_err(broken)?;
    }
    session.shutdown().await.map_err(broken)
}

/// Waits for the end of the link, and then for a limited time: the rest of the data is not wanted any more,
/// and a peer that does not read would keep the stream open for ever.
async fn ends_with(alive: &mut oneshot::Sender<()>) -> Error {
    alive.cancellation().await;
    tokio::time::sleep(LAST_WORDS_WITHIN).await;
    ended()
}

/// Waits until nothing was acknowledged for as long as a peer may be silent. The pings of the link use its
/// first stream; the path of this one may fail alone, which the kernel reports only after many minutes.
async fn silence(monitor: Option<&TcpMonitor>) -> Error {
    let Some(monitor) = monitor else { return std::future::pending().await };
    let mut unanswered = 0;
    while LOOK_EVERY * unanswered < DEAD_AFTER {
        tokio::time::sleep(LOOK_EVERY).await;
        unanswered = if monitor.is_unanswered_for(LOOK_EVERY) { unanswered + 1 } else { 0 };
    }
    let secs = DEAD_AFTER.as_secs();
    Error::new(ErrorKind::TimedOut, format!("nothing was acknowledged for {secs} s"))
        .with_retry(Retry::MayHelp)
}
