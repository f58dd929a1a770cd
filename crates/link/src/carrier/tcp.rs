//! Byte streams over TCP, with TLS or, on loopback by choice, without. A length precedes each frame.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, BufReader};
use tokio::net::TcpStream;
use wire::{Deframer, Error, ErrorKind, Message, Result, Retry};

use crate::carrier::tcp_flow::unheld;
use crate::carrier::tls::{self, Trust};
use crate::carrier::{Received, broken, ended, give};
use crate::{Carrier, Link, TcpMonitor, carrier::tcp_rate};

/// Time limit from the first packet to the end of the TLS handshake.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Silence after which the operating system sends the first TCP keepalive probe.
pub const KEEPALIVE_AFTER: Duration = Duration::from_secs(30);
/// Interval of TCP keepalive probes.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Most bytes that the kernel may hold unsent (`TCP_NOTSENT_LOWAT`): urgent data cannot overtake them.
pub const UNSENT_BYTES: u32 = 256 << 10;
/// Size of a client's read buffer, bytes. Clients receive bulk, which TLS alone would read in steps of 4 KiB.
pub(crate) const READ_BYTES: usize = 256 << 10;
/// Size of the read buffer of other streams, bytes.
const PLAIN_READ_BYTES: usize = 16 << 10;
/// Most buffers passed to one system call; the usual `IOV_MAX` is 1024, and TLS gains nothing beyond a few
/// dozen.
const MAX_SLICES: usize = 64;

/// Connects to a data server.
///
/// # Errors
/// `Unreachable` or `TimedOut` when no server answers, `Denied` when the server's identity is not the trusted
/// one.
///
/// # Cancel safety
/// Dropping the future closes the socket.
pub async fn connect(host: &str, port: u16, trust: &Trust) -> Result<Link> {
    let peer = format!("{host}:{port}");
    let connecting = async {
        let stream = TcpStream::connect((host, port)).await.map_err(unreachable)?;
        prepare(&stream)?;
        let monitor = TcpMonitor::on(&stream);
        match trust {
            Trust::Plain => {
                check_loopback(&stream)?;
                Ok(over_socket(BufReader::with_capacity(READ_BYTES, stream), monitor, peer.as_str()))
            }
            _ => {
                let session = tls::connect(stream, host, &[tls::ALPN_WIRE], trust).await?;
                Ok(over_socket(session, monitor, peer.as_str()))
            }
        }
    };
    let done = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
    done.unwrap_or_else(|_| Err(too_slow())).map_err(|e| e.context(format!("connecting to {peer}")))
}

/// Sets the options that every socket here has: no delay for small messages, keepalive probes, a short queue
/// in the kernel. Applies to accepted sockets too.
///
/// # Errors
/// The operating system refused.
pub fn prepare(stream: &TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let socket = socket2::SockRef::from(stream);
    let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE_AFTER).with_interval(KEEPALIVE_INTERVAL);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_notsent_lowat(UNSENT_BYTES)?;
    Ok(())
}

/// Limits the sending rate of a socket, bytes per second, whatever is requested later; a listening socket
/// passes the limit on to each connection that it accepts from now on. Further streams of a link share the
/// limit.
///
/// # Errors
/// `Unsupported`, with advice, where the system cannot pace.
pub fn hold_to(socket: &impl AsFd, most_bytes_per_sec: f64) -> Result<()> {
    tcp_rate::hold(socket.as_fd(), most_bytes_per_sec).map_err(unheld)
}

/// Creates a link over any stream of bytes.
pub fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, peer: impl Into<String>) -> Link {
    over_buffered(BufReader::with_capacity(PLAIN_READ_BYTES, stream), peer)
}

/// Creates a link over a stream of bytes that buffers what it has read, such as a TLS session: bulk is copied
/// once, from that buffer to its destination.
pub fn over_buffered(
    stream: impl AsyncBufRead + AsyncWrite + Unpin + Send + 'static,
    peer: impl Into<String>,
) -> Link {
    over_socket(stream, None, peer)
}

/// Creates a link over a buffered stream of bytes. With `monitor`, the kernel's statistics of its socket are
/// the link's flow.
pub fn over_socket(
    stream: impl AsyncBufRead + AsyncWrite + Unpin + Send + 'static,
    monitor: Option<TcpMonitor>,
    peer: impl Into<String>,
) -> Link {
    let flow = monitor.as_ref().map(TcpMonitor::flow);
    let link = Link::new(Framed::new(stream, monitor), peer);
    match flow {
        Some(flow) => link.with_flow(flow),
        None => link,
    }
}

pub(crate) fn check_loopback(stream: &TcpStream) -> Result<()> {
    let address = stream.peer_addr().map_err(broken)?;
    if address.ip().is_loopback() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Denied,
        format!("expected a loopback address for a connection without TLS, found {address}"),
    ))
}

pub(crate) fn too_slow() -> Error {
    let secs = CONNECT_TIMEOUT.as_secs();
    Error::new(ErrorKind::TimedOut, format!("expected a connection within {secs} s, found none"))
}

pub(crate) fn unreachable(error: io::Error) -> Error {
    let text = error.to_string();
    // Resolver errors have no error kind of their own; a temporary one (no name server answers) differs only
    // in its text.
    if text.contains("Name or service not known") {
        let what = format!("expected a host that is known here, found none of this name ({text})");
        return Error::new(ErrorKind::Unreachable, what).with_retry(Retry::Never);
    }
    Error::new(ErrorKind::Unreachable, text)
}

/// Stream of bytes as a carrier.
pub(crate) struct Framed<S> {
    stream: S,
    deframer: Deframer,
    /// Parts of messages that were taken from the queue and not written yet.
    parts: VecDeque<Bytes>,
    needs_flush: bool,
    /// Released together with the stream.
    _monitor: Option<TcpMonitor>,
}

impl<S> Framed<S> {
    pub(crate) fn new(stream: S, monitor: Option<TcpMonitor>) -> Self {
        let (deframer, parts) = (Deframer::new(), VecDeque::new());
        Self { stream, deframer, parts, needs_flush: false, _monitor: monitor }
    }
}

impl<S: AsyncWrite + Unpin> Framed<S> {
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let filled =
            slices.iter_mut().zip(&self.parts).map(|(slice, part)| *slice = IoSlice::new(part)).count();
        let mut written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, &slices[..filled]))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        while let Some(part) = self.parts.front_mut() {
            if written < part.len() {
                part.advance(written);
                break;
            }
            written -= part.len();
            self.parts.pop_front();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncBufRead + AsyncWrite + Unpin + Send + 'static> Carrier for Framed<S> {
    fn poll_send(&mut self, cx: &mut Context<'_>, outgoing: &mut VecDeque<Message>) -> Poll<Result<()>> {
        loop {
            while self.parts.len() < MAX_SLICES
                && let Some(message) = outgoing.pop_front()
            {
                self.parts.extend(message.into_stream_parts());
                self.needs_flush = true;
            }
            if self.parts.is_empty() {
                break;
            }
            ready!(self.poll_write(cx)).map_err(broken)?;
        }
        if self.needs_flush {
            ready!(Pin::new(&mut self.stream).poll_flush(cx)).map_err(broken)?;
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
        loop {
            let mut there = ready!(Pin::new(&mut self.stream).poll_fill_buf(cx)).map_err(broken)?;
            if there.is_empty() {
                let end = if self.deframer.is_empty() { Ok(false) } else { Err(ended()) };
                return Poll::Ready(end);
            }
            let there_bytes = there.len();
            let is_some = give(self.deframer.cut(&mut there, limit_bytes)?, take);
            let taken_bytes = there_bytes - there.len();
            Pin::new(&mut self.stream).consume(taken_bytes);
            if is_some {
                return Poll::Ready(Ok(true));
            }
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx).map_err(broken)
    }
}
