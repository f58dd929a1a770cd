//! Client side of a link of several streams: opens the further ones, and reads from all in turn.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use wire::{Error, ErrorKind, Message, Result};

use super::flow::StreamsFlow;
use super::ticket::JoinTicket;
use super::{MAX_STREAMS, Rail, Rails, TAKEN};
use crate::carrier::tcp::{self, CONNECT_TIMEOUT, Framed, prepare, too_slow, unreachable};
use crate::carrier::tcp_flow::TcpFlow;
use crate::carrier::tls::{self, ALPN_JOIN, ALPN_STREAMS, ALPN_WIRE, Trust};
use crate::carrier::{Received, broken};
use crate::{Carrier, Link, TcpMonitor};

type TlsSession = TlsStream<BufReader<TcpStream>>;
type FramedTls = Framed<TlsSession>;
type JoiningStream = BoxFuture<'static, Result<(FramedTls, Option<TcpFlow>)>>;

/// Connects to a data server by `streams` streams, at most [`MAX_STREAMS`], and at least one for each of
/// `rails`. The link is ready with the first stream, which goes to `host`; the others use the rails in turn.
/// Streams that fail to join are left out; a server that supports one stream only has no others.
///
/// # Errors
/// The errors of [`tcp::connect`]; `Invalid` for another number of streams.
///
/// # Cancel safety
/// Dropping the future closes the socket.
pub async fn connect(host: &str, port: u16, trust: &Trust, streams: u32, rails: Rails) -> Result<Link> {
    if !(1..=MAX_STREAMS).contains(&streams) {
        return Err(Error::invalid(format!("expected 1 to {MAX_STREAMS} streams, found {streams}")));
    }
    let streams = streams.max(1 + rails.count());
    if streams == 1 || matches!(trust, Trust::Plain) {
        return tcp::connect(host, port, trust).await;
    }
    let peer = format!("{host}:{port}");
    let connecting = async {
        let stream = TcpStream::connect((host, port)).await.map_err(unreachable)?;
        let address = stream.peer_addr().map_err(broken)?;
        let (session, monitor) = secured(stream, host, &[ALPN_STREAMS, ALPN_WIRE], trust).await?;
        if session.get_ref().1.alpn_protocol() != Some(ALPN_STREAMS) {
            return Ok(tcp::over_socket(session, monitor, peer.as_str()));
        }
        let target = Arc::new(JoinTarget {
            address,
            host: host.to_owned(),
            trust: trust.clone(),
            ticket: JoinTicket::of(session.get_ref().1)?,
        });
        let further =
            (1..streams).zip(rails.in_turn()).map(|(_, rail)| join(Arc::clone(&target), rail)).collect();
        Ok(StreamsClient::link(session, monitor, peer.as_str(), further))
    };
    let done = timeout(CONNECT_TIMEOUT, connecting).await;
    done.unwrap_or_else(|_| Err(too_slow())).map_err(|e| e.context(format!("connecting to {peer}")))
}

async fn secured(
    stream: TcpStream,
    host: &str,
    protocols: &[&[u8]],
    trust: &Trust,
) -> Result<(TlsSession, Option<TcpMonitor>)> {
    prepare(&stream)?;
    let monitor = TcpMonitor::on(&stream);
    Ok((tls::connect(stream, host, protocols, trust).await?, monitor))
}

/// Server and link that further streams join.
struct JoinTarget {
    address: SocketAddr,
    host: String,
    trust: Trust,
    ticket: JoinTicket,
}

/// Opens a further stream by a rail, or by the route of the first stream.
fn join(target: Arc<JoinTarget>, rail: Option<Rail>) -> JoiningStream {
    let joining = async move {
        let stream = match rail {
            Some(rail) => rail.connect(target.address).await?,
            None => TcpStream::connect(target.address).await.map_err(unreachable)?,
        };
        let (mut session, monitor) = secured(stream, &target.host, &[ALPN_JOIN], &target.trust).await?;
        session.write_all(target.ticket.bytes()).await.map_err(broken)?;
        session.flush().await.map_err(broken)?;
        if session.read_u8().await.map_err(broken)? != TAKEN {
            return Err(Error::new(ErrorKind::Denied, "the server rejected the stream"));
        }
        let flow = monitor.as_ref().map(TcpMonitor::flow);
        Ok((Framed::new(session, monitor), flow))
    };
    Box::pin(async move { timeout(CONNECT_TIMEOUT, joining).await.unwrap_or_else(|_| Err(too_slow())) })
}

/// Client's side of a link of several streams.
struct StreamsClient {
    first: FramedTls,
    more: Vec<FramedTls>,
    /// Further streams that wait for the server's first message.
    further: Vec<JoiningStream>,
    joining: FuturesUnordered<JoiningStream>,
    /// Index of the stream that is read next; 0 is the first one.
    turn: usize,
    flow: Option<StreamsFlow>,
}

impl StreamsClient {
    fn link(
        session: TlsSession,
        monitor: Option<TcpMonitor>,
        peer: &str,
        further: Vec<JoiningStream>,
    ) -> Link {
        let flow = monitor.as_ref().map(|monitor| StreamsFlow::new(monitor.flow()));
        let receiving = Self {
            first: Framed::new(session, monitor),
            more: Vec::new(),
            further,
            joining: FuturesUnordered::new(),
            turn: 0,
            flow: flow.clone(),
        };
        let link = Link::new(receiving, peer).by_parts();
        match flow {
            Some(flow) => link.with_flow(flow),
            None => link,
        }
    }

    /// Adds the streams that have joined; those that failed are left out.
    fn look_after(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(further_stream)) = self.joining.poll_next_unpin(cx) {
            if let Ok((stream, flow)) = further_stream {
                self.more.push(stream);
                self.flow.iter().zip(flow).for_each(|(all, flow)| all.add(flow));
            }
        }
    }

    /// Reads from a further stream; false when the server has closed it, as it does at the end of the link.
    fn poll_further(
        &mut self,
        cx: &mut Context<'_>,
        at: usize,
        limit_bytes: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Poll<Result<bool>> {
        let mut is_foreign = false;
        let mut take_apart = |received: Received<'_>| match received {
            Received::Apart { .. } => take(received),
            _ => is_foreign = true,
        };
        let polled = self.more[at].poll_take(cx, limit_bytes, &mut take_apart);
        if is_foreign {
            return Poll::Ready(Err(Error::corrupt(
                "expected bulk on a further stream, found another frame",
            )));
        }
        polled
    }
}

impl Carrier for StreamsClient {
    fn poll_send(&mut self, cx: &mut Context<'_>, outgoing: &mut VecDeque<Message>) -> Poll<Result<()>> {
        self.first.poll_send(cx, outgoing)
    }

    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        limit_bytes: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Poll<Result<bool>> {
        self.look_after(cx);
        for _ in 0..=self.more.len() {
            let at = self.turn % (1 + self.more.len());
            self.turn = at + 1;
            let Some(further) = at.checked_sub(1) else {
                let polled = self.first.poll_take(cx, limit_bytes, take);
                if matches!(polled, Poll::Ready(Ok(true))) && !self.further.is_empty() {
                    self.joining.extend(self.further.drain(..));
                }
                if polled.is_ready() {
                    return polled;
                }
                continue;
            };
            match self.poll_further(cx, further, limit_bytes, take) {
                Poll::Ready(Ok(false)) => drop(self.more.swap_remove(further)),
                Poll::Pending => {}
                ready => return ready,
            }
        }
        Poll::Pending
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.first.poll_close(cx)
    }
}
