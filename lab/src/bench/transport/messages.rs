//! Messages, and nothing else: a server that sends as many as it is asked for, and a client that counts what arrives. Both
//! sides of every flow of ours, by QUIC and by TCP with TLS.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime};

use array::{Error, Priority, Result, Urgency};
use bytes::Bytes;
use link::multistream::{self, AcceptedSession, Rails, StreamRegistry};
use link::{
    Choice, ClientHandle, Fingerprint, Flow, Identity, Item, Link, Operation, ReadHandle, ReadSink,
    ReceiveGroup, RememberedPath, Trust, carrier::tcp, carrier::tls, quic,
};
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use wire::{ClientConfig, SentAhead, ServerConfig};

use super::super::wall_clock;
use super::{blind, stock};

/// Largest message: what one item may hold.
pub(super) const MAX_MESSAGE_BYTES: u64 = 32 << 20;
/// Sends messages: `u64` how many, `u64` of how many bytes.
const SEND: &str = "send";
/// Sends messages in time: `u64` how many, `u64` of how many bytes, `u64` microseconds from one to the next. The body of each is
/// when it was there to be sent, as `u64` microseconds since 1970.
const STREAM: &str = "stream";
/// Reports statistics of the sending side, as [`Sent`] in JSON.
const SENT: &str = "sent";

/// First line of a server of messages: where it can be reached.
#[derive(Debug, Serialize, Deserialize)]
pub struct MessageServerReady {
    /// Address for messages by QUIC.
    pub quic: SocketAddr,
    /// Address for messages by TLS over TCP.
    pub tcp: SocketAddr,
    /// Address at which the QUIC stack answers with its own defaults, without any of ours.
    pub stock: SocketAddr,
    /// Address for datagrams that are sent blindly.
    pub blind: SocketAddr,
    /// Fingerprint of the server's certificate.
    pub fingerprint: String,
}

/// Statistics of the sending side so far.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Sent {
    /// Time by its own clock.
    pub(super) at_secs: f64,
    /// Bytes sent, without the headers of IP and UDP.
    pub(super) bytes: u64,
    pub(super) lost_packets: u64,
    pub(super) packets: u64,
    /// Address that it sends to, as it sees it.
    pub(super) peer: Option<SocketAddr>,
    /// Counters of the link `lossy`: datagrams of bulk, of parity, and those that left again.
    pub(super) datagrams: u64,
    pub(super) parity: u64,
    pub(super) again: u64,
}

/// Sends messages to all clients until the process ends.
///
/// # Errors
/// The address cannot be had.
pub async fn serve(listen: SocketAddr, ready: impl FnOnce(&MessageServerReady) -> Result<()>) -> Result<()> {
    let identity = Identity::self_signed(&["messages".to_owned()])?;
    // It only sends messages, so that it needs no token.
    let options = quic::EndpointOptions { start: quic::Start::AtOnce, ..quic::EndpointOptions::default() };
    let by_quic = quic::Listener::bind(listen, &identity, options)?;
    let by_tcp = TcpListener::bind((listen.ip(), 0)).await?;
    let stock = stock::StockServer::bind((listen.ip(), 0).into(), &identity)?;
    let blind = blind::BlindServer::bind((listen.ip(), 0).into(), identity.fingerprint().to_string()).await?;
    ready(&MessageServerReady {
        quic: by_quic.address()?,
        tcp: by_tcp.local_addr()?,
        stock: stock.address()?,
        blind: blind.address()?,
        fingerprint: identity.fingerprint().to_string(),
    })?;
    let config = identity.server_config(&tls::SERVED)?;
    let registry = StreamRegistry::default();
    let mut tasks = JoinSet::new();
    let mut stock_tasks = JoinSet::new();
    tasks.spawn(blind.run());
    loop {
        tokio::select! {
            Some(incoming) = by_quic.accept() => {
                tasks.spawn(async move { answer(incoming.establish().await?).await });
            }
            Ok((stream, _)) = by_tcp.accept() => {
                let (config, registry) = (Arc::clone(&config), registry.clone());
                tasks.spawn(async move { over_tls(stream, config, &registry).await });
            }
            Some(incoming) = stock.accept() => {
                stock_tasks.spawn(stock::answer(incoming));
            }
            // A client that leaves ends its own conversation only.
            Some(_) = tasks.join_next() => {}
            Some(_) = stock_tasks.join_next() => {}
        }
    }
}

async fn over_tls(
    stream: TcpStream,
    config: Arc<rustls::ServerConfig>,
    registry: &StreamRegistry,
) -> Result<()> {
    tcp::prepare(&stream)?;
    let watch = link::TcpMonitor::on(&stream);
    let session = tls::accept(stream, config).await?;
    match registry.accept(session, watch, "client".to_owned()).await? {
        AcceptedSession::Link(link) => answer(link).await,
        AcceptedSession::Stream(stream) => stream.run().await,
        AcceptedSession::Other(_) => Err(Error::unsupported("expected the wire, found another protocol")),
    }
}

async fn answer(link: Link) -> Result<()> {
    let start = wall_clock::now();
    let flow = link.flow();
    let (connection, driver) = link::serve(link, ServerConfig::default())?;
    let mut tasks = JoinSet::new();
    tasks.spawn(driver);
    let hello = connection.hello().await?;
    if let (Some(choice), Some(flow)) = (link::requested_controller(&hello.capabilities)?, &flow) {
        flow.control(choice)?;
    }
    if let (Some(known), Some(flow)) = (link::remembered_path(&hello.capabilities), &flow) {
        flow.remember(known);
    }
    connection.accept();
    while let Some(operation) = connection.next().await {
        let flow = flow.clone();
        tasks.spawn(async move {
            let done = match operation.name() {
                SEND => send(&operation).await,
                STREAM => stream(&operation).await,
                _ => tell(&operation, flow.as_deref(), start).await,
            };
            match done {
                Ok(()) => operation.done(),
                Err(error) => operation.fail(error),
            }
        });
        while tasks.try_join_next().is_some() {}
    }
    Ok(())
}

fn numbers<const N: usize>(operation: &Operation) -> Result<[u64; N]> {
    let mut parameters = wire::ByteReader::new(operation.parameters());
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = parameters.u64("count, size or time")?;
    }
    Ok(numbers)
}

/// A message of so many bytes, each of which depends on its position.
pub(super) fn message(size: u64) -> Bytes {
    static LARGEST: LazyLock<Bytes> = LazyLock::new(|| {
        // Weyl's sequence: every word differs from its neighbors.
        let words = (0..MAX_MESSAGE_BYTES / 8).map(|at| at.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        words.flat_map(u64::to_le_bytes).collect()
    });
    LARGEST.slice(..usize::try_from(size.min(MAX_MESSAGE_BYTES)).unwrap_or_default())
}

async fn send(operation: &Operation) -> Result<()> {
    let [count, size] = numbers(operation)?;
    let message = message(size);
    for _ in 0..count {
        operation.item(Bytes::new(), message.clone()).await?;
    }
    Ok(())
}

async fn stream(operation: &Operation) -> Result<()> {
    let [count, size, micros] = numbers(operation)?;
    let message = message(size);
    let mut ticks = tokio::time::interval(Duration::from_micros(micros.max(1)));
    for _ in 0..count {
        ticks.tick().await;
        operation.item(Bytes::copy_from_slice(&now_micros().to_le_bytes()), message.clone()).await?;
    }
    Ok(())
}

/// Microseconds since 1970.
pub(super) fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

async fn tell(operation: &Operation, flow: Option<&dyn Flow>, start: Instant) -> Result<()> {
    let flow = flow.ok_or_else(|| Error::unsupported("expected statistics"))?;
    let statistics = flow.statistics();
    let datagrams = statistics.datagrams.unwrap_or_default();
    let sent = Sent {
        datagrams: datagrams.datagrams,
        parity: datagrams.parity,
        again: datagrams.again,
        at_secs: start.elapsed().as_secs_f64(),
        bytes: statistics.sent_bytes,
        lost_packets: statistics.lost_packets,
        packets: statistics.sent_packets,
        peer: flow.peer(),
    };
    let body = serde_json::to_vec(&sent).map_err(|e| Error::internal(format!("statistics: {e}")))?;
    operation.item(Bytes::from(body), Bytes::new()).await
}

/// Protocol by which messages arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum MessageTransport {
    Tcp { streams: u32 },
    Quic(Choice),
    Lossy { choice: Choice, redundancy: bool },
}

impl MessageTransport {
    fn bulk(self) -> quic::BulkTransport {
        match self {
            Self::Tcp { .. } | Self::Quic(_) => quic::BulkTransport::Ordered,
            Self::Lossy { redundancy, .. } => quic::BulkTransport::Lossy { redundancy },
        }
    }
}

/// A client of such a server.
pub(super) struct MessageClient {
    handle: ClientHandle,
    flow: Option<Arc<dyn Flow>>,
    _tasks: JoinSet<()>,
}

impl MessageClient {
    /// Connects; the handshake is over then. `window_bytes` may be on their way.
    pub(super) async fn connect(
        ready: &MessageServerReady,
        way: MessageTransport,
        window_bytes: u64,
    ) -> Result<Self> {
        Self::connect_among(ready, way, window_bytes, None).await
    }

    /// Connects as [`connect`](Self::connect) does; arriving data shares the rate of `group`, where there is one.
    pub(super) async fn connect_among(
        ready: &MessageServerReady,
        way: MessageTransport,
        window_bytes: u64,
        group: Option<&ReceiveGroup>,
    ) -> Result<Self> {
        let config = ClientConfig { window_bytes, ..ClientConfig::default() };
        let client = Self::open(ready, way, quic::Start::Proven, config, group).await?;
        client.handle.welcomed().await?;
        Ok(client)
    }

    /// Connects, as soon as something can be asked; with what is remembered of the path from the server.
    pub(super) async fn begin(
        ready: &MessageServerReady,
        way: MessageTransport,
        window_bytes: u64,
        start: quic::Start,
        known: Option<RememberedPath>,
    ) -> Result<Self> {
        let sent_ahead = known.map_or(SentAhead::Found, |known| SentAhead::Known(known.filling_bytes()));
        let mut config = ClientConfig { window_bytes, sent_ahead, ..ClientConfig::default() };
        config.capabilities.extend(known.map(link::path_capability));
        Self::open(ready, way, start, config, None).await
    }

    async fn open(
        ready: &MessageServerReady,
        way: MessageTransport,
        start: quic::Start,
        mut config: ClientConfig,
        group: Option<&ReceiveGroup>,
    ) -> Result<Self> {
        let trust = Trust::Fingerprint(ready.fingerprint.parse::<Fingerprint>()?);
        let window_bytes = config.window_bytes;
        let link = match way {
            MessageTransport::Tcp { streams } => {
                multistream::connect(
                    &ready.tcp.ip().to_string(),
                    ready.tcp.port(),
                    &trust,
                    streams,
                    Rails::default(),
                )
                .await?
            }
            MessageTransport::Quic(choice) | MessageTransport::Lossy { choice, .. } => {
                config.capabilities.push(link::controller_capability(choice));
                let bulk = way.bulk();
                let options = quic::EndpointOptions {
                    choice,
                    window_bytes,
                    bulk,
                    start,
                    ..quic::EndpointOptions::default()
                };
                quic::connect(&ready.quic.ip().to_string(), ready.quic.port(), &trust, &options).await?
            }
        };
        let flow = link.flow();
        let (handle, driver) = match group {
            Some(group) => link::connect_among(group, link, config)?,
            None => link::connect(link, config)?,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(driver);
        Ok(Self { handle, flow, _tasks: tasks })
    }

    /// Statistics and control of the connection.
    pub(super) fn flow(&self) -> Option<&dyn Flow> {
        self.flow.as_deref()
    }

    /// Asks for messages; `arrived` counts their bytes. Dropping it withdraws them.
    pub(super) async fn receive(
        &self,
        count: u64,
        message_bytes: u64,
        arrived: Arc<AtomicU64>,
    ) -> Result<ReadHandle> {
        self.receive_by(count, message_bytes, Box::new(ReceivedBytes(arrived))).await
    }

    /// Asks for messages, which go to `receiver`. Dropping it withdraws them.
    pub(super) async fn receive_by(
        &self,
        count: u64,
        message_bytes: u64,
        receiver: Box<dyn ReadSink>,
    ) -> Result<ReadHandle> {
        let parameters = [count.to_le_bytes(), message_bytes.to_le_bytes()].concat();
        self.handle.receive(SEND, parameters.into(), Urgency::of(Priority::NORMAL), receiver).await
    }

    /// Asks for messages that are sent in time, which go to `receiver`. Dropping it withdraws them.
    pub(super) async fn stream(
        &self,
        count: u64,
        message_bytes: u64,
        every: Duration,
        receiver: Box<dyn ReadSink>,
    ) -> Result<ReadHandle> {
        let micros = u64::try_from(every.as_micros()).unwrap_or(u64::MAX);
        let parameters = [count, message_bytes, micros].map(u64::to_le_bytes).concat();
        self.handle.receive(STREAM, parameters.into(), Urgency::of(Priority::NORMAL), receiver).await
    }

    /// Asks the server's side of this connection what it has sent so far.
    pub(super) async fn sent(&self) -> Result<Sent> {
        let Item { body, .. } = self.handle.call(SENT, Bytes::new(), Urgency::of(Priority::URGENT)).await?;
        serde_json::from_slice(&body).map_err(|e| Error::corrupt(format!("expected statistics: {e}")))
    }
}

/// Counts and keeps nothing.
struct ReceivedBytes(Arc<AtomicU64>);

impl ReadSink for ReceivedBytes {
    fn item(&mut self, _: u32, _: Bytes, _: u64) -> Result<()> {
        Ok(())
    }

    fn takes_any_order(&self) -> bool {
        true
    }

    fn piece(&mut self, _: u32, _: u64, bytes: &[u8], _: bool) -> Result<()> {
        self.0.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
