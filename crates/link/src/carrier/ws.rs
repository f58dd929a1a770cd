//! WebSockets: each binary message is one frame. For browsers, and for networks that block everything else.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, Take};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use tokio_tungstenite::tungstenite::http::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::{Message as WsMessage, Role, WebSocketConfig};
use tokio_tungstenite::{WebSocketStream, client_async_with_config, tungstenite};
use wire::limits::{MAX_FIRST_FRAME_BYTES, MAX_FRAME_BYTES};
use wire::{Error, ErrorKind, Message, Result};

use crate::carrier::local::check_size;
use crate::carrier::tcp::{self, CONNECT_TIMEOUT};
use crate::carrier::tls::{self, Trust};
use crate::carrier::{Received, give_whole};
use crate::{Carrier, Link};

/// Largest header of a WebSocket frame, bytes (RFC 6455, section 5.2).
const MOST_HEADER_BYTES: u64 = 14;
/// Path of the URL at which a node answers WebSockets.
pub const PATH: &str = "/wire";

/// Connects to a node's WebSocket.
///
/// # Errors
/// `Unreachable` or `TimedOut` when no server answers, `Denied` when the server's identity is not the trusted
/// one, `Unsupported` when the server is not a Corridor node.
///
/// # Cancel safety
/// Dropping the future closes the socket.
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
                let stream = tls::connect(stream, host, &[tls::ALPN_HTTP], trust).await?;
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
    Ok(over(socket, peer))
}

/// Creates the server's response to a WebSocket request, to be sent before [`accepted`].
///
/// # Errors
/// `Invalid` when the request does not ask for a WebSocket.
pub fn answer<B, C: Default>(request: &Request<B>) -> Result<Response<C>> {
    create_response_with_body(request, C::default)
        .map_err(|e| Error::invalid(format!("expected a request for a WebSocket, found: {e}")))
}

/// Creates a link over a stream on which a request was [answered](answer). Until the client is admitted, no
/// more than one first message is read.
pub async fn accepted<S>(stream: S, peer: impl Into<String>) -> Link
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let gate = LimitedStream(stream.take(MAX_FIRST_FRAME_BYTES as u64 + MOST_HEADER_BYTES));
    let socket = WebSocketStream::from_raw_socket(gate, Role::Server, Some(config())).await;
    let open = |socket: &mut WebSocketStream<LimitedStream<S>>| socket.get_mut().0.set_limit(u64::MAX);
    Link::new(WsCarrier { socket, needs_flush: false, open: Some(open) }, peer)
}

/// WebSocket limits: no message beyond one frame.
#[must_use]
pub fn config() -> WebSocketConfig {
    WebSocketConfig::default().max_message_size(Some(MAX_FRAME_BYTES)).max_frame_size(Some(MAX_FRAME_BYTES))
}

/// Creates a link over an open socket.
pub fn over<S>(socket: WebSocketStream<S>, peer: impl Into<String>) -> Link
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    Link::new(WsCarrier { socket, needs_flush: false, open: None }, peer)
}

/// Stream that ends after a number of bytes, until that limit is lifted.
struct LimitedStream<S>(Take<S>);

impl<S: AsyncRead + Unpin> AsyncRead for LimitedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for LimitedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.0.get_mut()).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.0.get_mut()).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.0.get_mut()).poll_shutdown(cx)
    }
}

struct WsCarrier<S> {
    socket: WebSocketStream<S>,
    needs_flush: bool,
    /// Lifts the limit on data of a client that is not admitted yet.
    open: Option<fn(&mut WebSocketStream<S>)>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> WsCarrier<S> {
    fn socket(&mut self) -> Pin<&mut WebSocketStream<S>> {
        Pin::new(&mut self.socket)
    }
}

fn broken(error: tungstenite::Error) -> Error {
    Error::new(ErrorKind::Unreachable, format!("the socket broke: {error}"))
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Carrier for WsCarrier<S> {
    fn poll_send(&mut self, cx: &mut Context<'_>, outgoing: &mut VecDeque<Message>) -> Poll<Result<()>> {
        while !outgoing.is_empty() {
            ready!(self.socket().poll_ready(cx)).map_err(broken)?;
            if let Some(message) = outgoing.pop_front() {
                self.socket().start_send(WsMessage::Binary(message.into_bytes())).map_err(broken)?;
                self.needs_flush = true;
            }
        }
        if self.needs_flush {
            ready!(self.socket().poll_flush(cx)).map_err(broken)?;
            self.needs_flush = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        limit_bytes: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Poll<Result<bool>> {
        if limit_bytes > MAX_FIRST_FRAME_BYTES
            && let Some(open) = self.open.take()
        {
            open(&mut self.socket);
        }
        loop {
            return Poll::Ready(match ready!(self.socket().poll_next(cx)) {
                None => Ok(false),
                Some(Ok(WsMessage::Binary(bytes))) => {
                    check_size(bytes, limit_bytes).map(|message| give_whole(Some(message), take))
                }
                Some(Ok(WsMessage::Text(_))) => Err(Error::corrupt("expected a binary message, found text")),
                // The library answers control frames; a close frame ends the stream.
                Some(Ok(_)) => continue,
                Some(Err(error)) => Err(broken(error)),
            });
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.socket().poll_close(cx).map_err(broken)
    }
}
