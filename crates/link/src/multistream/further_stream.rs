//! A further stream at the server: sends what its link hands to it, in a task of its own, so that several are encrypted at a
//! time.

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

/// How long a stream whose link is over may go on.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);
/// How often it is looked at, whether what was sent is answered.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The link's end of a stream: takes one message while another one is written.
pub(super) struct FurtherStream {
    pub(super) messages: mpsc::Sender<Message>,
    /// Cancelled when the stream has ended.
    pub(super) ended: oneshot::Receiver<()>,
    pub(super) flow: Option<TcpFlow>,
}

/// A stream that has shown its ticket and is not taken yet. Dropping it closes the socket.
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

    /// Takes the stream and sends on it until its link ends.
    ///
    /// # Errors
    /// The stream broke, which breaks its link; or the link was over before.
    ///
    /// # Cancel safety
    /// Dropping it breaks the stream.
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

/// Waits for the end of the link: what is still to be written then is wanted by nobody, and a side that reads nothing would
/// keep the stream for ever.
async fn ends_with(alive: &mut oneshot::Sender<()>) -> Error {
    alive.cancellation().await;
    tokio::time::sleep(LAST_WORDS_WITHIN).await;
    ended()
}

/// Waits until what was sent was not answered for as long as a peer may be silent. The link's own questions cross by its first
/// stream; this one's way may be gone all the same, which the kernel takes many minutes to say.
async fn silence(monitor: Option<&TcpMonitor>) -> Error {
    let Some(monitor) = monitor else { return std::future::pending().await };
    let mut unanswered = 0;
    while LOOK_EVERY * unanswered < DEAD_AFTER {
        tokio::time::sleep(LOOK_EVERY).await;
        unanswered = if monitor.is_unanswered_for(LOOK_EVERY) { unanswered + 1 } else { 0 };
    }
    let secs = DEAD_AFTER.as_secs();
    Error::new(
        ErrorKind::TimedOut,
        format!("expected an answer to what was sent within {secs} s, found none"),
    )
    .with_retry(Retry::MayHelp)
}
