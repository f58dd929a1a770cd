//! Endpoints of QUIC connections: a client that connects, and a server's listener.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use control::{Choice, RememberedPath};
use futures::FutureExt;
use futures::future::BoxFuture;
use quinn::crypto::rustls::{HandshakeData, QuicServerConfig};
use quinn::{
    AckFrequencyConfig, Connecting, Connection, ConnectionError, Endpoint, EndpointConfig,
    MtuDiscoveryConfig, ServerConfig, TokioRuntime, TransportConfig, ValidationTokenConfig, VarInt,
};
use rustls::server::ServerSessionMemoryCache;
use tokio::time::timeout;
use wire::{Error, ErrorKind, Result};

use super::adapter::{Factory, SharedPace};
use super::crypto::CountingCrypto;
use super::early_data::{EarlyData, HandshakeEnd, HandshakeOutcome, handshake_end};
use super::lanes::{CLIENT_LANES, LaneCarrier, RECORD_LANES, SERVER_LANES};
use super::lossy::{
    LossyReceiver, LossySender, RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES, SharedCounts, UNWANTED_BUFFER_BYTES,
};
use super::pace::PacedController;
use super::probe::Prober;
use super::rejected::{ConnectionIds, RejectionMonitor};
use super::segment::{SEGMENT_BYTES, most_streams};
use super::session_ticket_cache::{self, ServerKey};
use super::socket::{PacedSocket, bind};
use super::tokens::{TOKEN_LIFETIME, TOKENS_SENT, UsedTokens};
use crate::Link;
use crate::carrier::tcp::{CONNECT_TIMEOUT, too_slow};
use crate::carrier::tls::{ALPN_LOSSY, ALPN_WIRE, Identity, Trust};
use crate::carrier::{broken, ended};
use crate::flow::{Flow, Statistics};

/// Time limit for one of several addresses; the next one is tried after it.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);
/// Idle timeout of a connection; the protocol above sends pings and gives up earlier.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Packets that may overtake one before it counts as lost; after an eighth of a round trip it counts as lost
/// in any case.
const REORDERING_PACKETS: u32 = 10;
/// Longest delay of acknowledgements that the peer is asked for, because round trips are measured by them.
const ACK_DELAY: Duration = Duration::from_millis(2);
/// Packet size that every path carries, payload of UDP in bytes (RFC 9000, section 14).
const SAFE_PACKET_BYTES: u16 = 1200;
/// Largest packet tried, payload of UDP in bytes: a jumbo frame without IPv6's and UDP's headers.
const MAX_PACKET_BYTES: u16 = 8952;
/// Size of the headers of UDP and IP, versions 4 and 6, bytes.
const HEADER_BYTES: (u16, u16) = (28, 48);
/// Receive window of a server, bytes: data of a client that was not handled yet. Requests are small.
const SERVER_WINDOW_BYTES: u32 = 4 << 20;
/// Most session tickets that a server keeps, two for each client, about 2 KiB each.
const MAX_TICKETS: usize = 1024;
/// Receive window besides that for bulk, bytes: for heads of items and other frames.
const WINDOW_MARGIN_BYTES: u64 = 20 << 20;

/// Options of one side of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndpointOptions {
    /// Congestion controller of this side, until another is requested.
    pub choice: Choice,
    /// Upper limit of the sending rate, whatever is requested, bytes per second.
    pub most_bytes_per_sec: Option<f64>,
    /// Bulk bytes that may be in flight to this side.
    pub window_bytes: u64,
    /// Transport of bulk; chosen by the client.
    pub bulk: BulkTransport,
    /// Earliest time of requests: on a client, when it sends them; on a server, when it accepts them.
    pub start: Start,
}

/// Earliest time of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// After the handshake.
    #[default]
    Proven,
    /// In a client's first packets (early data), where this process has a session ticket of the server and
    /// the server accepts early data: one round trip earlier. An attacker can replay such requests once, so a
    /// server executes only reads until [`Flow::proven`]. Bulk in datagrams waits for the handshake.
    AtOnce,
}

/// Transport of the bulk of large items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BulkTransport {
    /// In order, multiplexed with that of other operations.
    #[default]
    Ordered,
    /// In datagrams, delivered out of order and retransmitted if lost.
    Lossy {
        /// With parity, from which most lost datagrams are restored.
        redundancy: bool,
    },
}

fn new_pace(options: &EndpointOptions, peer: SocketAddr) -> Result<Arc<SharedPace>> {
    // Expected packet size after MTU discovery; controllers count in packets.
    let packet_bytes = path_packet_bytes(peer);
    let pace = PacedController::new(options.choice, packet_bytes.into(), options.most_bytes_per_sec);
    pace.map(SharedPace::new).map_err(|refusal| Error::unsupported(refusal.to_string()))
}

/// Passes the round trip of the handshake to the controller.
pub(super) fn begin(connection: &Connection, pace: &SharedPace) -> Result<()> {
    let (now, rtt) = (pace.now(), connection.rtt());
    pace.with(|pace| pace.begin(now, rtt)).map_err(|refusal| Error::unsupported(refusal.to_string()))
}

fn var_int(value: u64) -> VarInt {
    VarInt::from_u64(value).unwrap_or(VarInt::MAX)
}

fn transport(
    pace: &Arc<SharedPace>,
    peer: SocketAddr,
    receive_bytes: u64,
    lanes: u8,
    datagram_bytes: usize,
) -> Arc<TransportConfig> {
    let mut acknowledging = AckFrequencyConfig::default();
    acknowledging.max_ack_delay(Some(ACK_DELAY)).reordering_threshold(REORDERING_PACKETS.into());
    let mut mtu = MtuDiscoveryConfig::default();
    mtu.upper_bound(path_packet_bytes(peer));
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(0_u32.into())
        .max_concurrent_uni_streams(most_streams(receive_bytes, lanes + RECORD_LANES).into())
        .stream_receive_window(var_int(SEGMENT_BYTES as u64))
        .receive_window(var_int(receive_bytes))
        .max_idle_timeout(Some(IDLE_TIMEOUT.try_into().unwrap_or(VarInt::from_u32(60_000).into())))
        .packet_threshold(REORDERING_PACKETS)
        .datagram_receive_buffer_size((datagram_bytes > 0).then_some(datagram_bytes))
        .datagram_send_buffer_size(SEND_BUFFER_BYTES)
        .ack_frequency_config(Some(acknowledging))
        .mtu_discovery_config(Some(mtu))
        .congestion_controller_factory(Arc::new(Factory(Arc::clone(pace))));
    Arc::new(config)
}

/// Address for a socket that sends to `peer`: any address of its family, any port.
fn any_port(peer: SocketAddr) -> SocketAddr {
    let any: IpAddr =
        if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    SocketAddr::new(any, 0)
}

/// Size of the headers of a packet to `peer`, bytes.
fn header_bytes(peer: IpAddr) -> u16 {
    if peer.is_ipv4() { HEADER_BYTES.0 } else { HEADER_BYTES.1 }
}

/// Largest UDP payload that this host sends to `peer` without fragmentation; the path may carry less.
fn path_packet_bytes(peer: SocketAddr) -> u16 {
    let asked = UdpSocket::bind(any_port(peer)).and_then(|socket| {
        socket.connect(peer)?;
        let mtu = if peer.is_ipv4() {
            rustix::net::sockopt::ip_mtu(&socket)
        } else {
            rustix::net::sockopt::ipv6_mtu(&socket)
        };
        Ok(mtu?)
    });
    let mtu = asked.map_or(1500, |mtu| u16::try_from(mtu).unwrap_or(u16::MAX));
    mtu.saturating_sub(header_bytes(peer.ip())).clamp(SAFE_PACKET_BYTES, MAX_PACKET_BYTES)
}

fn endpoint(
    socket: &Arc<PacedSocket>,
    max_packet_bytes: u16,
    server: Option<ServerConfig>,
) -> Result<Endpoint> {
    let mut config = EndpointConfig::default();
    let rejections = Arc::clone(&socket.rejections);
    config
        .cid_generator(move || Box::new(ConnectionIds::new(Arc::clone(&rejections))))
        // A packet whose first two bits are zero belongs to a packet train and not to QUIC.
        .grease_quic_bit(false)
        .max_udp_payload_size(max_packet_bytes)
        .map_err(|e| Error::internal(format!("expected a usable packet size, found: {e}")))?;
    let socket = Arc::<PacedSocket>::clone(socket);
    Ok(Endpoint::new_with_abstract_socket(config, server, socket, Arc::new(TokioRuntime))?)
}

/// Connects to a data server.
///
/// # Errors
/// `Unreachable` or `TimedOut` when no server answers, `Denied` when the server's identity is not the trusted
/// one, `Unsupported` for a controller that needs signals that this protocol cannot provide, `Invalid`
/// without encryption.
///
/// # Cancel safety
/// Dropping the future closes the socket.
pub async fn connect(host: &str, port: u16, trust: &Trust, options: &EndpointOptions) -> Result<Link> {
    let connecting = async {
        let mut last =
            Error::new(ErrorKind::Unreachable, format!("expected an address of `{host}`, found none"));
        let found = tokio::net::lookup_host((host, port)).await.map_err(crate::carrier::tcp::unreachable)?;
        let mut addresses = found.peekable();
        while let Some(address) = addresses.next() {
            let within = if addresses.peek().is_some() { ATTEMPT_TIMEOUT } else { CONNECT_TIMEOUT };
            match timeout(within, connect_to(address, host, trust, options)).await {
                Ok(Ok(link)) => return Ok(link),
                Ok(Err(error)) => last = error,
                Err(_) => last = too_slow(),
            }
        }
        Err(last)
    };
    let done = timeout(CONNECT_TIMEOUT, connecting).await;
    done.unwrap_or_else(|_| Err(too_slow()))
        .map_err(|e| e.context(format!("connecting to {host}:{port} by QUIC")))
}

async fn connect_to(
    address: SocketAddr,
    host: &str,
    trust: &Trust,
    options: &EndpointOptions,
) -> Result<Link> {
    let pace = new_pace(options, address)?;
    let receive_bytes = options.window_bytes.saturating_add(WINDOW_MARGIN_BYTES);
    let (protocol, datagram_bytes) = match options.bulk {
        BulkTransport::Ordered => (ALPN_WIRE, 0),
        BulkTransport::Lossy { .. } => (ALPN_LOSSY, RECEIVE_BUFFER_BYTES),
    };
    let server = ServerKey { address, host: host.to_owned(), trust: trust.clone(), protocol };
    let mut config = session_ticket_cache::config(&server)?;
    config.transport_config(transport(&pace, address, receive_bytes, SERVER_LANES, datagram_bytes));
    let max_packet_bytes = path_packet_bytes(address).max(1472);
    let socket = PacedSocket::new(bind(any_port(address))?, max_packet_bytes.into())?;
    let endpoint = endpoint(&socket, max_packet_bytes, None)?;
    let connecting = socket
        .join(&pace, || endpoint.connect_with(config, address, host))
        .map_err(|e| Error::invalid(format!("expected a host name or address, found `{host}`: {e}")))?;
    let (connection, handshake_end) = connect_early(connecting, &pace, server, options).await?;
    let name = format!("{host}:{port}", port = address.port());
    let (carried, prober) = (Arc::clone(&pace), Prober::new(&socket, &connection));
    Ok(match options.bulk {
        BulkTransport::Ordered => {
            let lanes = LaneCarrier::new(connection.clone(), carried, CLIENT_LANES, SERVER_LANES);
            let lanes = lanes.with_early_data(handshake_end.clone().map(EarlyData::for_client), None);
            let flow = QuicFlow { prober, connection, pace, counts: None, handshake_end };
            Link::new(lanes, name).paced().with_flow(flow)
        }
        BulkTransport::Lossy { redundancy } => {
            let counts = SharedCounts::default();
            let carrier = LossyReceiver::new(connection.clone(), carried, Arc::clone(&counts), redundancy);
            let flow = QuicFlow { prober, connection, pace, counts: Some(counts), handshake_end };
            Link::new(carrier, name).by_parts().paced().with_flow(flow)
        }
    })
}

/// Waits until a client may send requests: returns at once where early data is possible, else after the
/// handshake.
async fn connect_early(
    connecting: Connecting,
    pace: &Arc<SharedPace>,
    server: ServerKey,
    options: &EndpointOptions,
) -> Result<(Connection, Option<HandshakeEnd>)> {
    let may_ask = options.start == Start::AtOnce && options.bulk == BulkTransport::Ordered;
    let connecting = match connecting.into_0rtt() {
        Ok((connection, taken)) => {
            // After a failure the next connection begins without a ticket.
            let handshake_end =
                handshake_end(&connection, pace, taken, move || session_ticket_cache::forget(&server));
            if may_ask {
                return Ok((connection, Some(handshake_end)));
            }
            return match handshake_end.await {
                HandshakeOutcome::Lost => Err(turned_away(&connection)),
                HandshakeOutcome::Accepted | HandshakeOutcome::Rejected => Ok((connection, None)),
            };
        }
        Err(connecting) => connecting,
    };
    let connection = connecting.await.map_err(refused)?;
    begin(&connection, pace)?;
    Ok((connection, None))
}

/// Reason of a failed handshake.
pub(super) fn turned_away(connection: &Connection) -> Error {
    connection.close_reason().map_or_else(ended, refused)
}

/// Maps an error of the stack: tells an untrusted server from one that cannot be reached.
pub(super) fn refused(error: ConnectionError) -> Error {
    /// TLS alerts about certificates (RFC 8446, section 6.2), as QUIC carries them (RFC 9001, section 4.8).
    const CERTIFICATE_ALERTS: std::ops::RangeInclusive<u64> = 0x100 + 42..=0x100 + 49;
    /// TLS alert that says that the server does not speak the protocol (RFC 7301, section 3.2), as QUIC carries it.
    const NO_PROTOCOL_ALERT: u64 = 0x100 + 120;
    match error {
        ConnectionError::TransportError(e) if u64::from(e.code) == NO_PROTOCOL_ALERT => Error::unsupported(
            "expected a server that knows the link `lossy`, found one that does not; use `quic`",
        ),
        ConnectionError::TransportError(e) if CERTIFICATE_ALERTS.contains(&e.code.into()) => {
            Error::new(ErrorKind::Denied, e.reason)
        }
        ConnectionError::TimedOut => too_slow(),
        other => broken(other),
    }
}

/// UDP listener of a server.
pub struct Listener {
    endpoint: Endpoint,
    socket: Arc<PacedSocket>,
    config: ServerConfig,
    options: EndpointOptions,
}

impl Listener {
    /// Listens at `address`.
    ///
    /// # Errors
    /// `Io` when the address is not available, `Corrupt` for an invalid identity.
    pub fn bind(address: SocketAddr, identity: &Identity, options: EndpointOptions) -> Result<Self> {
        let mut crypto = rustls::ServerConfig::clone(&*identity.server_config(&[ALPN_WIRE, ALPN_LOSSY])?);
        // Tickets are kept here and used once. Self-contained tickets would allow unlimited replays of early
        // data.
        crypto.session_storage = ServerSessionMemoryCache::new(MAX_TICKETS);
        crypto.max_early_data_size = if options.start == Start::AtOnce { u32::MAX } else { 0 };
        let crypto = QuicServerConfig::try_from(crypto)
            .map_err(|e| Error::internal(format!("expected TLS 1.3, found: {e}")))?;
        let socket = PacedSocket::new(bind(address)?, MAX_PACKET_BYTES.into())?;
        let crypto = CountingCrypto::new(crypto, Arc::clone(&socket.rejections));
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        let mut tokens = ValidationTokenConfig::default();
        tokens.log(Arc::new(UsedTokens::default())).lifetime(TOKEN_LIFETIME).sent(TOKENS_SENT);
        config.validation_token_config(tokens);
        let endpoint = endpoint(&socket, MAX_PACKET_BYTES, Some(config.clone()))?;
        Ok(Self { endpoint, socket, config, options })
    }

    /// Address that the listener is bound to.
    ///
    /// # Errors
    /// The operating system does not provide it.
    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.endpoint.local_addr()?)
    }

    /// Counters of the packets that this port has rejected.
    #[must_use]
    pub fn rejecting(&self) -> RejectionMonitor {
        RejectionMonitor(Arc::clone(&self.socket.rejections))
    }

    /// Returns the next client that begins a handshake.
    ///
    /// # Cancel safety
    /// Safe: no client is lost.
    pub async fn accept(&self) -> Option<IncomingConnection> {
        let incoming = self.endpoint.accept().await?;
        let (socket, config) = (Arc::clone(&self.socket), self.config.clone());
        Some(IncomingConnection { incoming, socket, config, options: self.options })
    }
}

/// Client that has sent one packet. Its address may be forged until it [`is_reached`](Self::is_reached).
pub struct IncomingConnection {
    incoming: quinn::Incoming,
    socket: Arc<PacedSocket>,
    config: ServerConfig,
    options: EndpointOptions,
}

impl IncomingConnection {
    /// Address that the client claims.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.incoming.remote_address()
    }

    /// Returns whether the client has answered a packet that was sent to its address.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.incoming.remote_address_validated()
    }

    /// Sends a Retry packet: the client has to return with a token that only its address receives.
    pub fn send_back(self) {
        // Fails for a client that has already returned with a token; its address is validated then.
        drop(self.incoming.retry());
    }

    /// Finishes the handshake.
    ///
    /// # Errors
    /// `TimedOut` or `Unreachable` when the client does not finish.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection.
    pub async fn establish(self) -> Result<Link> {
        let Self { incoming, socket, mut config, options } = self;
        let peer = incoming.remote_address();
        let pace = new_pace(&options, peer)?;
        let window_bytes = SERVER_WINDOW_BYTES.into();
        config.transport_config(transport(&pace, peer, window_bytes, CLIENT_LANES, UNWANTED_BUFFER_BYTES));
        let establishing = async {
            let accepted = socket.join(&pace, || incoming.accept_with(Arc::new(config))).map_err(broken)?;
            let none = |_| Error::internal("expected a server's connection, found a client's");
            let (connection, taken) = accepted.into_0rtt().map_err(none)?;
            let handshake_end = handshake_end(&connection, &pace, taken, || ());
            // A client with a ticket may send requests before the handshake is over.
            let first = tokio::select! {
                biased;
                outcome = handshake_end.clone() => (outcome != HandshakeOutcome::Lost).then_some(None),
                first = connection.accept_uni() => first.ok().map(Some),
            };
            let lost = || connection.close_reason().map_or_else(ended, broken);
            let first = first.ok_or_else(lost)?;
            Ok((connection, handshake_end, first))
        };
        let done = timeout(CONNECT_TIMEOUT, establishing).await;
        let (connection, handshake_end, first) = done.unwrap_or_else(|_| Err(too_slow()))?;
        let handshake_end = handshake_end.clone().now_or_never().is_none().then_some(handshake_end);
        let (carried, prober) = (Arc::clone(&pace), Prober::new(&socket, &connection));
        let name = peer.to_string();
        if !is_lossy(&connection) {
            let lanes = LaneCarrier::new(connection.clone(), carried, SERVER_LANES, CLIENT_LANES);
            let lanes = lanes.with_early_data(handshake_end.clone().map(EarlyData::for_server), first);
            let flow = QuicFlow { prober, connection, pace, counts: None, handshake_end };
            return Ok(Link::new(lanes, name).with_flow(flow));
        }
        if handshake_end.is_some() {
            return Err(Error::corrupt("expected the end of the handshake, found bulk wanted by datagrams"));
        }
        let counts = SharedCounts::default();
        let carrier = LossySender::new(connection.clone(), carried, Arc::clone(&counts), first);
        let flow = QuicFlow { prober, connection, pace, counts: Some(counts), handshake_end };
        Ok(Link::new(carrier, name).with_flow(flow))
    }
}

/// Returns whether the client asked for bulk in datagrams.
fn is_lossy(connection: &Connection) -> bool {
    let handshake = connection.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
    handshake.is_some_and(|data| data.protocol.as_deref() == Some(ALPN_LOSSY))
}

/// Controller and counters of a connection, as long as a handle exists.
struct QuicFlow {
    prober: Prober,
    connection: Connection,
    pace: Arc<SharedPace>,
    /// Counters of datagrams, for the link `lossy` only.
    counts: Option<SharedCounts>,
    /// End of the handshake, where early data was possible.
    handshake_end: Option<HandshakeEnd>,
}

impl Flow for QuicFlow {
    fn control(&self, choice: Choice) -> Result<()> {
        let now = self.pace.now();
        let done = self.pace.with(|pace| pace.choose(now, choice));
        done.map_err(|refusal| Error::unsupported(refusal.to_string()))
    }

    fn remember(&self, known: RememberedPath) {
        let now = self.pace.now();
        self.pace.with(|pace| pace.remember(now, known));
    }

    /// Address of the peer when the connection began. Remembered paths are not applied to a peer that only
    /// claims its address.
    fn peer(&self) -> Option<SocketAddr> {
        Some(self.prober.first_peer())
    }

    fn is_proven(&self) -> bool {
        let outcome = |handshake_end: &HandshakeEnd| handshake_end.clone().now_or_never();
        self.handshake_end.as_ref().is_none_or(|handshake_end| {
            outcome(handshake_end).is_some_and(|outcome| outcome != HandshakeOutcome::Lost)
        })
    }

    fn proven(&self) -> BoxFuture<'static, bool> {
        match &self.handshake_end {
            Some(handshake_end) => {
                handshake_end.clone().map(|outcome| outcome != HandshakeOutcome::Lost).boxed()
            }
            None => std::future::ready(true).boxed(),
        }
    }

    fn prober(&self) -> Option<&Prober> {
        Some(&self.prober)
    }

    fn statistics(&self) -> Statistics {
        // The stack's lock is taken and released first, because the stack calls the controller while holding
        // it.
        let stack = self.connection.stats();
        let rtt = self.connection.rtt();
        let told = |counts: &SharedCounts| *counts.lock().unwrap_or_else(PoisonError::into_inner);
        let datagrams = self.counts.as_ref().map(told);
        let headers = header_bytes(self.connection.remote_address().ip().to_canonical());
        self.pace.with(|pace| {
            let counters = pace.counters();
            Statistics {
                protocol: if datagrams.is_some() { "lossy" } else { "quic" },
                streams: 1,
                controller: Some(pace.choice()),
                kernel_controller: None,
                // The stack reports a guess before the first measurement.
                rtt: pace.least_rtt().map(|_| rtt),
                least_rtt: pace.least_rtt(),
                sent_bytes: stack.udp_tx.bytes,
                received_bytes: stack.udp_rx.bytes,
                lost_bytes: counters.lost_bytes,
                sent_packets: stack.path.sent_packets,
                lost_packets: stack.path.lost_packets,
                reordered: None,
                out_of_order: None,
                in_flight_bytes: pace.in_flight_bytes(),
                window_bytes: pace.limits().window_bytes(),
                rate_bytes_per_sec: Some(pace.limits().rate_bytes_per_sec()),
                delivery_bytes_per_sec: counters.delivery_bytes_per_sec,
                packet_bytes: stack.path.current_mtu.into(),
                mtu_bytes: Some(u32::from(stack.path.current_mtu) + u32::from(headers)),
                batches: counters.batches,
                datagrams,
            }
        })
    }
}
