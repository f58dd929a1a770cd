//! One port for all protocols: the wire protocol over TLS, HTTPS, and on loopback plain HTTP, told apart by their first
//! bytes; and the wire protocol over QUIC on the UDP port of the same number.
//!
//! Each connection is one task, from its first byte to its last, whatever it is upgraded to;
//! [`connections`](crate::connections) decides who may be connected, and for how long. Connections with other protocols
//! are closed.

pub mod listen;
pub mod open_files;
mod write_timeout;

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use axum::Router;
use axum::response::{IntoResponse, Redirect, Response};
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use link::multistream::topology::Topology;
use link::multistream::{AcceptedSession, StreamRegistry};
use link::{Link, TcpMonitor, quic};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::rustls;

use crate::connection::Service;
use crate::connections::{ConnectionSlot, Connections, Limits};
use crate::http::UpgradeSender;
use crate::http::refusal::{refused_for, wants_page};
use crate::port::write_timeout::WriteTimeout;
use crate::public_address::{RequestPeer, ServerNames, StrippedPath};
use crate::reverse::WaitingClient;
use crate::rooms::{RoomPath, Rooms};
use crate::zarr::Caller;

/// Maximum size of a request's headers, in bytes.
const MAX_HEADER_BYTES: usize = 16 << 10;
/// Number of bytes that tell protocols apart.
const SNIFFED_BYTES: usize = 4;
/// Pause before checking again for first bytes that did not arrive together.
const SNIFF_PAUSE: Duration = Duration::from_millis(50);
/// Pause after the system refused a connection (too many open files), which an immediate retry would not change.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answer to requests for a room that is not open.
const ROOM_GONE: &str =
    "this data set is not open any more; open it again from the first page of this server";

/// Protocol of a connection, according to its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SniffedProtocol {
    Tls,
    Http,
    Wire,
    Unknown,
}

fn protocol(first: &[u8]) -> SniffedProtocol {
    const METHODS: [&[u8]; 6] = [b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI", b"DELE"];
    match first {
        // A TLS record of a handshake, version 3.x.
        [0x16, 0x03, ..] => SniffedProtocol::Tls,
        first if METHODS.contains(&first) => SniffedProtocol::Http,
        // The length of a hello message, little-endian, always below 64 KiB.
        [_, _, 0, 0] => SniffedProtocol::Wire,
        _ => SniffedProtocol::Unknown,
    }
}

/// Most links of this process that wait to be served; further ones wait at their maker.
pub const MAX_OFFERED_LINKS: usize = 4;

/// An incoming connection.
enum AcceptedConnection {
    /// A link within this process.
    Link(Link),
    Stream(TcpStream, SocketAddr),
    Quic(Box<quic::IncomingConnection>),
}

impl AcceptedConnection {
    fn peer(&self) -> SocketAddr {
        match self {
            Self::Link(_) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            Self::Stream(_, peer) => *peer,
            Self::Quic(incoming) => incoming.peer(),
        }
    }
}

/// QUIC endpoint; logs at its end the number of packets it rejected.
struct UdpListener(quic::Listener);

impl Drop for UdpListener {
    fn drop(&mut self) {
        let rejected = self.0.rejecting().so_far();
        if rejected != quic::Rejected::default() {
            tracing::info!(?rejected, "UDP packets that were rejected");
        }
    }
}

async fn next_of(udp: Option<&UdpListener>) -> Option<quic::IncomingConnection> {
    match udp {
        Some(udp) => udp.0.accept().await,
        None => std::future::pending().await,
    }
}

async fn next_link(links: Option<&mut mpsc::Receiver<Link>>) -> Option<Link> {
    match links {
        Some(links) => links.recv().await,
        None => std::future::pending().await,
    }
}

/// A listening port, and the services on it.
pub struct Port {
    listener: TcpListener,
    /// QUIC on the same port; none if UDP is not available.
    udp: Option<UdpListener>,
    tls: Arc<rustls::ServerConfig>,
    connections: Connections,
    /// Links that further streams may join.
    registry: StreamRegistry,
    /// Clients that this server connects to.
    waiting_clients: Vec<WaitingClient>,
    /// Links of clients in this process.
    links: Option<mpsc::Receiver<Link>>,
    /// Routers for HTTP.
    pub sites: Routers,
    service: Arc<Service>,
    /// Services of further data sets, by the path of their pages.
    rooms: Arc<Rooms>,
}

/// Routers for HTTP, by the kind of connection.
#[derive(Clone)]
pub struct Routers {
    /// For requests that are encrypted, or come from this machine.
    pub all: Router,
    /// For unencrypted requests from another machine.
    pub redirect: Router,
    /// Names of the server, by which requests are checked.
    pub names: Arc<ServerNames>,
}

impl Port {
    /// Creates a port with all services on a listener.
    #[must_use]
    pub fn new(
        listener: TcpListener,
        udp: Option<quic::Listener>,
        tls: Arc<rustls::ServerConfig>,
        sites: Routers,
        service: Arc<Service>,
    ) -> Self {
        Self {
            listener,
            udp: udp.map(UdpListener),
            tls,
            connections: Connections::new(Limits::default()),
            registry: Topology::detect().map_or_else(StreamRegistry::default, StreamRegistry::on),
            waiting_clients: Vec::new(),
            links: None,
            sites,
            service,
            rooms: Arc::default(),
        }
    }

    /// Returns this port, which also serves these rooms.
    #[must_use]
    pub fn with_rooms(self, rooms: Arc<Rooms>) -> Self {
        Self { rooms, ..self }
    }

    /// Returns the maximum number of connections at a time.
    #[must_use]
    pub fn most_connections(&self) -> usize {
        self.connections.most_connections()
    }

    /// Returns this port, which also connects to these clients.
    #[must_use]
    pub fn connecting_to(self, waiting_clients: Vec<WaitingClient>) -> Self {
        Self { waiting_clients, ..self }
    }

    /// Returns this port, which also serves links that are made in this process and sent to the other value.
    #[must_use]
    pub fn accepting_links(self) -> (Self, mpsc::Sender<Link>) {
        let (sender, links) = mpsc::channel(MAX_OFFERED_LINKS);
        (Self { links: Some(links), ..self }, sender)
    }

    /// Returns this port with other limits for its connections.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { connections: Connections::new(limits), ..self }
    }

    /// Serves without end.
    ///
    /// # Cancel safety
    /// Dropping the future ends every connection.
    pub async fn run(mut self) {
        let mut links = self.links.take();
        let this = Arc::new(self);
        let mut tasks = JoinSet::new();
        let mut waiting_clients = JoinSet::new();
        for number in 0..this.waiting_clients.len() {
            let this = Arc::clone(&this);
            waiting_clients.spawn(async move {
                this.waiting_clients[number].run(Arc::clone(&this.service), &this.connections).await;
            });
        }
        loop {
            let came = tokio::select! {
                accepted = this.listener.accept() => match accepted {
                    Ok((stream, peer)) => AcceptedConnection::Stream(stream, peer),
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                        continue;
                    }
                },
                Some(link) = next_link(links.as_mut()) => AcceptedConnection::Link(link),
                Some(incoming) = next_of(this.udp.as_ref()) => {
                    // An address may be forged; it must not take the place of another client.
                    if !incoming.is_reached() && this.connections.is_crowded() {
                        incoming.send_back();
                        continue;
                    }
                    AcceptedConnection::Quic(Box::new(incoming))
                }
            };
            let peer = came.peer();
            let slot = Arc::new(this.connections.enter(peer.ip()));
            while tasks.try_join_next().is_some() {}
            // A connection that was closed for this one is about to end.
            while tasks.len() >= this.connections.most_connections() {
                tasks.join_next().await;
            }
            let this = Arc::clone(&this);
            tasks.spawn(async move {
                let _connected = this.service.shared.metrics.connect();
                let begun = tokio::time::Instant::now();
                tracing::debug!(%peer, "connected");
                let ended = tokio::select! {
                    biased;
                    why = slot.visit_ended() => Err(why),
                    result = this.connection(came, &slot) => result,
                };
                let took = begun.elapsed();
                match ended {
                    Ok(()) => tracing::debug!(%peer, ?took, "connection ended"),
                    Err(error) => tracing::debug!(%peer, ?took, %error, "connection ended"),
                }
            });
        }
    }

    async fn connection(&self, came: AcceptedConnection, slot: &Arc<ConnectionSlot>) -> Result<()> {
        match came {
            AcceptedConnection::Link(link) => Arc::clone(&self.service).serve(link, slot).await,
            AcceptedConnection::Stream(stream, peer) => self.stream(stream, peer, slot).await,
            AcceptedConnection::Quic(incoming) => {
                let link = self.in_time(incoming.establish()).await?;
                Arc::clone(&self.service).serve(link, slot).await
            }
        }
    }

    async fn stream(&self, stream: TcpStream, peer: SocketAddr, slot: &Arc<ConnectionSlot>) -> Result<()> {
        link::carrier::tcp::prepare(&stream)?;
        let is_loopback = peer.ip().to_canonical().is_loopback();
        match self.in_time(sniff(&stream)).await? {
            SniffedProtocol::Tls => self.encrypted(stream, peer, slot).await,
            SniffedProtocol::Http => {
                let site = if is_loopback { &self.sites.all } else { &self.sites.redirect };
                self.http(stream, site, RequestPeer { address: peer.ip(), is_encrypted: false }, peer, slot)
                    .await
            }
            SniffedProtocol::Wire => {
                Err(Error::new(ErrorKind::Denied, "the wire protocol requires TLS on this port"))
            }
            SniffedProtocol::Unknown => Err(Error::corrupt("expected TLS or HTTP, found something else")),
        }
    }

    async fn encrypted(&self, stream: TcpStream, peer: SocketAddr, slot: &Arc<ConnectionSlot>) -> Result<()> {
        let watch = TcpMonitor::on(&stream);
        let session = self.in_time(link::carrier::tls::accept(stream, Arc::clone(&self.tls))).await?;
        match self.in_time(self.registry.accept(session, watch, peer.to_string())).await? {
            AcceptedSession::Link(link) => Arc::clone(&self.service).serve(link, slot).await,
            AcceptedSession::Stream(stream) => {
                slot.join()?;
                stream.run().await
            }
            AcceptedSession::Other(session) => {
                let from = RequestPeer { address: peer.ip(), is_encrypted: true };
                self.http(*session, &self.sites.all, from, peer, slot).await
            }
        }
    }

    /// Answers requests, until one of them turns the connection into a WebSocket.
    async fn http<S>(
        &self,
        stream: S,
        site: &Router,
        from: RequestPeer,
        peer: SocketAddr,
        slot: &Arc<ConnectionSlot>,
    ) -> Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (handover, mut sockets) = mpsc::channel(1);
        let caller = Caller { slot: Arc::clone(slot), client: self.service.next_client(), from: peer.ip() };
        let site = TowerToHyperService::new(site.clone());
        let names = Arc::clone(&self.sites.names);
        let shared = Arc::clone(&self.service.shared);
        let (rooms, entered) = (Arc::clone(&self.rooms), Arc::new(Mutex::new(None)));
        let room = Arc::clone(&entered);
        let answer = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(UpgradeSender(handover.clone()));
            request.extensions_mut().insert(caller.clone());
            request.extensions_mut().insert(from);
            let mut slash = match names.stripped(request.uri()) {
                Some(StrippedPath::Slash(to)) => Some(to),
                Some(StrippedPath::Path(uri)) => {
                    *request.uri_mut() = uri;
                    None
                }
                None => None,
            };
            let mut is_gone = false;
            *room.lock() = None;
            match rooms.at(request.uri()) {
                Some(RoomPath::Open(service, uri)) => {
                    *request.uri_mut() = uri;
                    *room.lock() = Some(service);
                }
                Some(RoomPath::Slash(to)) => slash = Some(to),
                Some(RoomPath::Gone) => is_gone = true,
                None => {}
            }
            let (site, shared) = (site.clone(), Arc::clone(&shared));
            // Never the query: it may contain a token.
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            async move {
                let answer: Response = match slash {
                    Some(to) => Redirect::permanent(&to).into_response(),
                    None if is_gone => refused_for(ROOM_GONE, wants_page(request.headers())),
                    None => site.call(request).await?,
                };
                let (status, bytes) = (answer.status(), answer.body().size_hint().lower());
                shared.metrics.count_http(status.as_u16(), bytes);
                tracing::debug!(%peer, %method, path, status = status.as_u16(), bytes, "HTTP");
                Ok::<_, Infallible>(answer)
            }
        });
        let broken = |e: hyper::Error| Error::new(ErrorKind::Unreachable, format!("HTTP: {e}"));
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.connections.limits().first_bytes_within)
            .max_buf_size(MAX_HEADER_BYTES)
            .serve_connection(
                TokioIo::new(WriteTimeout::new(stream, self.connections.limits().write_timeout)),
                answer,
            )
            .with_upgrades()
            .await
            .map_err(broken)?;
        let Ok(socket) = sockets.try_recv() else { return Ok(()) };
        let socket = TokioIo::new(socket.await.map_err(broken)?);
        let link = link::carrier::ws::accepted(socket, peer.to_string()).await;
        let service = entered.lock().take().unwrap_or_else(|| Arc::clone(&self.service));
        service.serve(link, slot).await
    }

    async fn in_time<T>(&self, first: impl Future<Output = Result<T>>) -> Result<T> {
        let done = tokio::time::timeout(self.connections.limits().first_bytes_within, first).await;
        done.unwrap_or_else(|_| Err(too_slow()))
    }
}

fn too_slow() -> Error {
    Error::new(ErrorKind::TimedOut, "the client sent no request in time")
}

/// Reads the first bytes without consuming them.
async fn sniff(stream: &TcpStream) -> Result<SniffedProtocol> {
    let mut first = [0; SNIFFED_BYTES];
    loop {
        let there = stream.peek(&mut first).await?;
        if there == SNIFFED_BYTES {
            return Ok(protocol(&first));
        }
        if there == 0 {
            return Err(Error::new(
                ErrorKind::Unreachable,
                "the client closed the connection without a request",
            ));
        }
        // Bytes that have arrived already make `peek` ready; check again when more may have arrived.
        tokio::time::sleep(SNIFF_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_protocols_apart() {
        assert_eq!(protocol(&[0x16, 0x03, 0x01, 0x02]), SniffedProtocol::Tls);
        assert_eq!(protocol(b"GET "), SniffedProtocol::Http);
        assert_eq!(protocol(b"POST"), SniffedProtocol::Http);
        assert_eq!(protocol(&[0x40, 0x01, 0, 0]), SniffedProtocol::Wire);
        assert_eq!(protocol(&[0xff, 0x01, 7, 0]), SniffedProtocol::Unknown);
        assert_eq!(protocol(b"get "), SniffedProtocol::Unknown);
    }
}
