//! WebSockets: each binary message is one frame. For browsers, and for networks that let nothing else through.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::{Sink, SinkExt, Stream, StreamExt, future};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::{Message as WsMessage, WebSocketConfig};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use wire::limits::MAX_FRAME_BYTES;
use wire::{Error, ErrorKind, Message, Result};

use crate::local::check_size;
use crate::tcp::{self, CONNECT_TIMEOUT};
use crate::tls::{self, Trust};
use crate::{Carrier, Link};

/// Where a node answers WebSockets.
pub const PATH: &str = "/wire";

/// Connects to a node's WebSocket.
///
/// # Errors
/// `Unreachable` or `TimedOut` when nobody answers, `Denied` when the other side is not who it should be,
/// `Unsupported` when it is no Corridor node.
///
/// # Cancel safety
/// Dropping it closes the socket.
pub async fn connect(host: &str, port: u16, trust: &Trust) -> Result<Link> {
    let peer = format!("{host}:{port}");
    let connecting = async {
        let stream = TcpStream::connect((host, port)).await.map_err(tcp::unreachable)?;
        tcp::prepare(&stream)?;
        match trust {
            Trust::Plain => {
                tcp::check_loopback(&stream)?;
                upgrade(stream, &format!("ws://{peer}{PATH}"), &peer).await
            }
            _ => {
                let stream = tls::connect(stream, host, tls::ALPN_HTTP, trust).await?;
                upgrade(stream, &format!("wss://{peer}{PATH}"), &peer).await
            }
        }
    };
    let done = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
    done.unwrap_or_else(|_| Err(tcp::too_slow()))
        .map_err(|e| e.context(format!("connecting to {peer}{PATH}")))
}

async fn upgrade<S>(stream: S, url: &str, peer: &str) -> Result<Link>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (socket, _response) = client_async_with_config(url, stream, Some(config())).await.map_err(|e| {
        Error::new(ErrorKind::Unsupported, format!("expected a WebSocket at {PATH}, found: {e}"))
    })?;
    Ok(over_tungstenite(socket, peer))
}

/// Limits of a socket: no message beyond one frame.
#[must_use]
pub fn config() -> WebSocketConfig {
    WebSocketConfig::default().max_message_size(Some(MAX_FRAME_BYTES)).max_frame_size(Some(MAX_FRAME_BYTES))
}

/// A link over an open socket of tungstenite.
pub fn over_tungstenite<S>(socket: WebSocketStream<S>, peer: impl Into<String>) -> Link
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken = |e| Error::new(ErrorKind::Unreachable, format!("the socket broke: {e}"));
    let (sink, stream) = socket.split();
    let incoming = stream.filter_map(move |message| {
        future::ready(match message {
            Ok(WsMessage::Binary(bytes)) => Some(Ok(bytes)),
            Ok(WsMessage::Text(_)) => Some(Err(Error::corrupt("expected a binary message, found text"))),
            // Answered by the library; a close ends the stream.
            Ok(_) => None,
            Err(e) => Some(Err(broken(e))),
        })
    });
    let outgoing = sink
        .sink_map_err(broken)
        .with(|bytes: Bytes| future::ready(Ok::<_, Error>(WsMessage::Binary(bytes))));
    over(incoming, outgoing, peer)
}

/// A link over any pair of binary messages in and out, such as both halves of a web framework's socket.
///
/// The caller limits a message to [`MAX_FRAME_BYTES`] where the framework buffers it, and leaves out what is not
/// binary.
pub fn over<I, O>(incoming: I, outgoing: O, peer: impl Into<String>) -> Link
where
    I: Stream<Item = Result<Bytes>> + Send + 'static,
    O: Sink<Bytes, Error = Error> + Send + 'static,
{
    let socket = Socket { incoming: Box::pin(incoming), outgoing: Box::pin(outgoing), needs_flush: false };
    Link::new(socket, peer)
}

struct Socket<I, O> {
    incoming: Pin<Box<I>>,
    outgoing: Pin<Box<O>>,
    needs_flush: bool,
}

impl<I, O> Carrier for Socket<I, O>
where
    I: Stream<Item = Result<Bytes>> + Send + 'static,
    O: Sink<Bytes, Error = Error> + Send + 'static,
{
    fn poll_send(&mut self, cx: &mut Context<'_>, outgoing: &mut VecDeque<Message>) -> Poll<Result<()>> {
        while !outgoing.is_empty() {
            ready!(self.outgoing.as_mut().poll_ready(cx))?;
            if let Some(message) = outgoing.pop_front() {
                self.outgoing.as_mut().start_send(message.into_bytes())?;
                self.needs_flush = true;
            }
        }
        if self.needs_flush {
            ready!(self.outgoing.as_mut().poll_flush(cx))?;
            self.needs_flush = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>, limit_bytes: usize) -> Poll<Result<Option<Bytes>>> {
        let message = ready!(self.incoming.as_mut().poll_next(cx)).transpose()?;
        Poll::Ready(message.map(|m| check_size(m, limit_bytes)).transpose())
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.outgoing.as_mut().poll_close(cx)
    }
}
