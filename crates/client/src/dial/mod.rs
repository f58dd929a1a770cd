//! The connection to one server: opened on first use, reopened after it broke, and shared by all requests to the
//! server.
//!
//! Requests in flight on a connection that breaks fail with `Unreachable`; the next request reconnects, with growing
//! pauses between failed attempts.

mod protocol_choice;
mod protocol_switch;
pub(crate) mod retry;
pub(crate) mod shared_failure;

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use array::{Error, ErrorKind, Result, Urgency};
use bytes::Bytes;
use futures::future::{BoxFuture, OptionFuture};
use link::multistream::{MAX_STREAMS, Rails};
use link::{Choice, ClientHandle, Flow, OpStream, Protocol, Refusal, RememberedPath, TcpOptions, Trust};
use plan::Carrying;
use tokio::sync::{Mutex, watch as signal};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio::time::error::Elapsed;
use wire::compression::{COMPRESS, DEFLATE, LZ4, ZSTD};
use wire::{ClientConfig, SentAhead};

use crate::dial::retry::BusyRetry;
use crate::dial::shared_failure::SharedFailure;
use crate::paths::{ConnectionMonitor, Paths, learn};
use crate::receive_limit;
use crate::requests::RemoteOperation;
use crate::reverse::AwaitedServers;
use crate::ssh::{SshAddress, SshLogin};
use crate::url::Url;
use protocol_choice::{OpenedLink, PendingLink};
pub(crate) use protocol_switch::CurrentConnection;
use protocol_switch::ProtocolSwitch;

/// Pause after the first failed attempt; doubled after each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Maximum pause between attempts to connect.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Minimum receive window, in bytes; enough for a fast link.
const MIN_WINDOW_BYTES: u64 = 4 << 20;

/// Address of a server, and the options for connecting to it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Requirement that the server's certificate must meet.
    pub trust: Trust,
    /// Token that authorizes this client; empty if none is needed.
    pub token: String,
    /// Maximum number of bulk bytes in flight to this client.
    pub window_bytes: u64,
    /// Protocol and rate control of the connection.
    pub reach: ConnectOptions,
    /// Store of network paths that the connection reads and updates; `None`: paths are not remembered.
    pub paths: Option<Paths>,
}

/// Options for connecting to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConnectOptions {
    /// Protocol of the link.
    pub protocol: Protocol,
    /// Congestion controller for both directions; `None`: the protocol's own.
    pub choice: Option<Choice>,
    /// Compression of data that the server sends.
    pub compression: Compression,
    /// Number of TCP connections of the link.
    pub streams: Streams,
    /// Additional network routes to the same server, over TCP.
    pub rails: Rails,
}

/// Connection options as text from a user; options that are `None` have their defaults.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectOptionsText<'a> {
    /// Protocol of the link.
    pub link: Option<&'a str>,
    /// Congestion controller; requires a protocol that supports controllers.
    pub controller: Option<&'a str>,
    /// Compression of data that the server sends.
    pub compression: Option<&'a str>,
    /// Number of TCP connections of the link.
    pub streams: Option<&'a str>,
    /// Additional network routes to the same server.
    pub rails: Option<&'a str>,
}

impl ConnectOptionsText<'_> {
    /// Parses the options.
    ///
    /// # Errors
    /// `Invalid` for an unknown value, and for two values that contradict each other.
    pub fn reach(&self) -> Result<ConnectOptions> {
        fn of<T: FromStr<Err = Error> + Default>(word: Option<&str>) -> Result<T> {
            word.map_or_else(|| Ok(T::default()), str::parse)
        }
        let invalid = |refusal: Refusal| Error::invalid(refusal.to_string());
        let choice: Option<Choice> = self.controller.map(str::parse).transpose().map_err(invalid)?;
        let (compression, streams, rails) =
            (of(self.compression)?, of(self.streams)?, of::<Rails>(self.rails)?);
        let is_several = matches!(streams, Streams::Of(2..)) || rails.count() > 0;
        // A controller requires a protocol that supports controllers, and only TCP has several streams.
        let otherwise = match (self.controller.is_some(), is_several) {
            (true, _) => Protocol::Quic,
            (false, true) => Protocol::Tcp,
            (false, false) => Protocol::default(),
        };
        let protocol = self.link.map_or(Ok(otherwise), str::parse)?;
        if is_several && !matches!(protocol, Protocol::Tcp | Protocol::Auto) {
            return Err(Error::invalid(format!(
                "expected the link `tcp` or `auto` for several streams or rails, found `{protocol}`"
            )));
        }
        if let Some(choice) = choice.filter(|choice| protocol == Protocol::Tcp && choice.name() != "rate") {
            return Err(Error::invalid(format!(
                "expected no controller but `rate=N` for the link `tcp`, whose congestion control is that of the kernel, found \
                 `{choice}`; use `--link quic`"
            )));
        }
        Ok(ConnectOptions { protocol, choice, compression, streams, rails })
    }
}

/// Number of TCP connections of one link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// One, unless the remembered path is faster with more.
    #[default]
    Auto,
    /// This number of connections.
    Of(u32),
}

impl FromStr for Streams {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let of = |count: u32| (1..=MAX_STREAMS).contains(&count).then_some(Self::Of(count));
        let found = if text == "auto" { Some(Self::Auto) } else { text.parse().ok().and_then(of) };
        found.ok_or_else(|| {
            Error::invalid(format!(
                "expected `auto` or a number of streams, 1 to {MAX_STREAMS}, found `{text}`"
            ))
        })
    }
}

/// Compression of the data that a server sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Only if the server measures that compressed data arrive sooner.
    #[default]
    Auto,
    /// No compression.
    None,
    /// LZ4 in all cases.
    Lz4,
    /// Zstandard in all cases.
    Zstd,
}

impl Compression {
    /// Returns the capabilities that the client sends to the server.
    pub(crate) fn capabilities(self) -> impl Iterator<Item = String> {
        let names: &[&str] = match self {
            Self::Auto => &[LZ4, ZSTD, DEFLATE],
            Self::None => &[],
            Self::Lz4 => &[LZ4, COMPRESS],
            Self::Zstd => &[ZSTD, COMPRESS],
        };
        names.iter().map(|&name| name.to_owned())
    }
}

impl FromStr for Compression {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            "lz4" => Ok(Self::Lz4),
            "zstd" => Ok(Self::Zstd),
            _ => Err(Error::invalid(format!(
                "expected the compression `auto`, `none`, `lz4` or `zstd`, found `{text}`"
            ))),
        }
    }
}

impl Endpoint {
    /// Creates the endpoint of a URL that [`complete`](crate::running_servers::complete) has filled in. Without a
    /// fingerprint, the certificate is verified in the ordinary way.
    ///
    /// # Errors
    /// `Invalid` for a malformed fingerprint.
    pub fn of(url: &Url, window_bytes: u64) -> Result<Self> {
        Ok(Self {
            host: url.host.clone(),
            port: url.port,
            trust: trust_of(url)?,
            token: url.token.clone().unwrap_or_default(),
            window_bytes: window_bytes.max(MIN_WINDOW_BYTES),
            reach: ConnectOptions::default(),
            paths: None,
        })
    }

    /// Returns this endpoint with a store of paths: connections start from the values that `paths` holds, and update
    /// them.
    #[must_use]
    pub fn remembering(self, paths: Paths) -> Self {
        Self { paths: Some(paths), ..self }
    }

    /// Returns this endpoint with the options `reach`.
    #[must_use]
    pub fn by(self, reach: ConnectOptions) -> Self {
        Self { reach, ..self }
    }
}

/// Method of connecting to a server.
enum DialMethod {
    Port(Endpoint),
    Ssh {
        address: SshAddress,
        window_bytes: u64,
        reach: ConnectOptions,
    },
    /// The server connects to this process.
    Awaited {
        awaiting: AwaitedServers,
        window_bytes: u64,
        compression: Compression,
    },
}

impl DialMethod {
    /// Name of the server, for display.
    fn name(&self) -> String {
        match self {
            Self::Port(server) => format!("server {}:{}", server.host, server.port),
            Self::Ssh { address, .. } => format!("ssh to {}", address.authority()),
            Self::Awaited { awaiting, .. } => format!("a server that connects to {}", awaiting.address()),
        }
    }
}

/// A connection, possibly before the end of its handshake.
#[derive(Clone)]
struct DialerConnection {
    number: u64,
    /// Number of times that the dialer had replaced its connection before this one.
    moves: u64,
    handle: ClientHandle,
    is_welcomed: Arc<AtomicBool>,
    /// The ssh channel after a direct link took over; the server ends when this channel closes.
    channel: Option<ClientHandle>,
    login: Option<SshLogin>,
}

#[derive(Default)]
struct DialerState {
    connection: Option<DialerConnection>,
    /// Number of connections started.
    begun: u64,
    failures: u32,
    not_before: Option<Instant>,
    /// Driver tasks of the connections; aborted when this value is dropped.
    drivers: JoinSet<()>,
}

impl DialerState {
    /// Returns the connection if it accepts requests; the ssh channel if a direct link has broken.
    fn live(&mut self) -> Option<DialerConnection> {
        let has_ended = |handle: &ClientHandle| handle.ended().is_some() || handle.is_spent();
        let connection = self.connection.as_mut()?;
        if has_ended(&connection.handle) {
            connection.handle = connection.channel.take().filter(|channel| !has_ended(channel))?;
        }
        Some(connection.clone())
    }
}

/// Sends requests to one server, and connects when needed. Clones share the connection.
#[derive(Clone)]
pub struct Dialer {
    method: Arc<DialMethod>,
    failure: Arc<SharedFailure>,
    state: Arc<Mutex<DialerState>>,
    /// Number of times that a working connection was replaced.
    moved: Arc<signal::Sender<u64>>,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dialer({})", self.method.name())
    }
}

impl Dialer {
    /// Creates a dialer, without connecting.
    #[must_use]
    pub fn new(server: Endpoint) -> Self {
        Self::by(DialMethod::Port(server))
    }

    /// Creates a dialer through ssh, without logging in. `reach` applies to the direct link, where there is one; only
    /// its compression applies to the ssh channel.
    #[must_use]
    pub fn through_ssh(address: SshAddress, window_bytes: u64, reach: ConnectOptions) -> Self {
        let window_bytes = window_bytes.max(MIN_WINDOW_BYTES);
        Self::by(DialMethod::Ssh { address, window_bytes, reach })
    }

    /// Creates a dialer for a server that connects to this process, without waiting for one.
    #[must_use]
    pub fn awaiting(awaiting: AwaitedServers, window_bytes: u64, compression: Compression) -> Self {
        let window_bytes = window_bytes.max(MIN_WINDOW_BYTES);
        Self::by(DialMethod::Awaited { awaiting, window_bytes, compression })
    }

    fn by(method: DialMethod) -> Self {
        Self {
            method: Arc::new(method),
            failure: Arc::default(),
            state: Arc::default(),
            moved: Arc::new(signal::Sender::new(0)),
        }
    }

    /// Returns the open connection; connects if there is none. Callers that wait for the same attempt share its error.
    ///
    /// # Errors
    /// `Unreachable`, `TimedOut`, `Denied` (token, certificate, login), `Unsupported` (no common version).
    ///
    /// # Cancel safety
    /// Safe: an attempt in progress is abandoned.
    pub async fn client(&self) -> Result<ClientHandle> {
        Ok(self.current().await?.client)
    }

    /// Returns the live connection as [`client`](Self::client) does, with a signal of its replacement.
    ///
    /// # Errors
    /// As [`client`](Self::client).
    ///
    /// # Cancel safety
    /// As [`client`](Self::client).
    pub(crate) async fn current(&self) -> Result<CurrentConnection> {
        let connection = self.connection().await?;
        self.settled(&connection).await?;
        Ok(CurrentConnection {
            client: connection.handle,
            moves: connection.moves,
            moved: self.moved.subscribe(),
        })
    }

    /// Replaces the connection by one of this protocol, as is done automatically if the other protocol may be faster.
    /// Data of requests in flight that have not arrived are requested again over the new connection. Returns false if
    /// there is no connection to replace.
    ///
    /// # Errors
    /// The errors of connecting; the connection then stays as it was.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the connection as it was.
    pub async fn carry_by(&self, to: Carrying) -> Result<bool> {
        let DialMethod::Port(server) = &*self.method else { return Ok(false) };
        let Some(number) = self.state.lock().await.live().map(|connection| connection.number) else {
            return Ok(false);
        };
        let changed = self.changing(server, number).change(to, None).await?;
        Ok(changed.is_some())
    }

    fn changing(&self, server: &Endpoint, number: u64) -> ProtocolSwitch {
        ProtocolSwitch {
            server: server.clone(),
            state: Arc::downgrade(&self.state),
            number,
            moved: Arc::clone(&self.moved),
        }
    }

    /// Returns the reason that the last connection ended; `None` while it is open, before the first one, and while one
    /// is being opened.
    pub(crate) fn lost(&self) -> Option<Error> {
        let state = self.state.try_lock().ok()?;
        let connection = state.connection.as_ref()?;
        let has_channel = connection.channel.as_ref().is_some_and(|channel| channel.ended().is_none());
        connection.handle.ended().filter(|_| !has_channel)
    }

    /// Returns the name of the array at the end of an `ssh://` path; waits for the greeting of the other side. Empty
    /// without an ssh connection.
    ///
    /// # Errors
    /// The reason that the other side sent no greeting.
    pub async fn named_array(&self) -> Result<String> {
        let login = self.state.lock().await.connection.as_ref().and_then(|c| c.login.clone());
        match login {
            Some(login) => login.greeting().await.map(|greeting| greeting.array),
            None => Ok(String::new()),
        }
    }

    /// Returns a connection that accepts requests, possibly before the end of its handshake.
    async fn connection(&self) -> Result<DialerConnection> {
        let before = self.failure.count();
        let mut state = self.state.lock().await;
        if let Some(live) = state.live() {
            return Ok(live);
        }
        if let Some(error) = self.failure.since(before) {
            return Err(error);
        }
        state.connection = None;
        if let Some(at) = state.not_before {
            tokio::time::sleep_until(at).await;
        }
        state.begun += 1;
        while state.drivers.try_join_next().is_some() {}
        match self.begin(&mut state).await {
            Ok(connection) => {
                state.connection = Some(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                self.note_failure(&mut state, &error);
                Err(error)
            }
        }
    }

    async fn begin(&self, state: &mut DialerState) -> Result<DialerConnection> {
        let number = state.begun;
        let (handle, login) = match &*self.method {
            DialMethod::Port(server) => {
                let opened = open_watched(server).await.map_err(|e| hint(server, e))?;
                state.drivers.spawn(opened.driving);
                if let Some(flow) = opened.flow.filter(|flow| may_change(server, &**flow)) {
                    let changing = self.changing(server, number);
                    state.drivers.spawn(changing.attend(flow, opened.handle.watch(), opened.later));
                }
                (opened.handle, None)
            }
            DialMethod::Ssh { address, window_bytes, reach } => {
                let begun = SshLogin::begin(address, *window_bytes, *reach).await?;
                let (login, handle, driver, attending) = begun;
                state.drivers.spawn(driver);
                let state_then = Arc::downgrade(&self.state);
                state.drivers.spawn(attending.attend(move |direct| take_over(state_then, number, direct)));
                (handle, Some(login))
            }
            DialMethod::Awaited { awaiting, window_bytes, compression } => {
                let link = awaiting.next().await.map_err(|e| e.context(self.method.name()))?;
                let token = awaiting.token().to_owned();
                let mut config =
                    ClientConfig { token, window_bytes: *window_bytes, ..ClientConfig::default() };
                config.capabilities.extend(compression.capabilities());
                let (handle, driver) = receive_limit::connect(link, config)?;
                state.drivers.spawn(driver);
                (handle, None)
            }
        };
        let moves = *self.moved.borrow();
        Ok(DialerConnection { number, moves, handle, is_welcomed: Arc::default(), channel: None, login })
    }

    fn note_failure(&self, state: &mut DialerState, error: &Error) {
        let pause = FIRST_PAUSE.saturating_mul(1 << state.failures.min(10)).min(MAX_PAUSE);
        state.failures = state.failures.saturating_add(1);
        state.not_before = Some(Instant::now() + pause);
        self.failure.record(error);
        state.connection = None;
    }

    /// Waits for the end of the handshake.
    async fn settled(&self, connection: &DialerConnection) -> Result<()> {
        if connection.is_welcomed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let welcomed = match connection.handle.welcomed().await {
            Ok(_) => Ok(()),
            Err(lost) => Err(self.explain(connection, lost).await),
        };
        let mut state = self.state.lock().await;
        if state.connection.as_ref().is_some_and(|c| c.number == connection.number) {
            match &welcomed {
                Ok(()) => (state.failures, state.not_before) = (0, None),
                Err(error) => self.note_failure(&mut state, error),
            }
        }
        connection.is_welcomed.store(welcomed.is_ok(), Ordering::Relaxed);
        welcomed
    }

    /// Returns the reason that the handshake failed.
    async fn explain(&self, connection: &DialerConnection, lost: Error) -> Error {
        match &connection.login {
            Some(login) => login.explain(lost).await,
            None => lost,
        }
        .context(self.method.name())
    }

    /// Sends a request and reads the response; retries after a pause, a limited number of times, if the server is busy.
    ///
    /// # Errors
    /// The operation's error, or the reason that there is no connection.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the operation.
    pub async fn ask<A: RemoteOperation>(&self, ask: A, urgency: Urgency) -> Result<A::Response> {
        let mut retry = BusyRetry::default();
        loop {
            let replies = self.request(&ask, urgency).await?;
            match ask.answer(replies).await {
                Ok(answer) => return Ok(answer),
                Err(error) => retry.after(error, urgency.deadline).await?,
            }
        }
    }

    /// Sends a one-way request: returns as soon as the request is on its way. Its result is not reported.
    ///
    /// # Errors
    /// The reason that there is no connection; `Invalid` or `TooLarge` if name or parameters are too long.
    ///
    /// # Cancel safety
    /// Safe: the request is not sent until this returns.
    pub async fn tell<A: RemoteOperation>(&self, ask: &A, urgency: Urgency) -> Result<()> {
        self.request(ask, urgency).await?.detach();
        Ok(())
    }

    /// Sends a request at once: on a new connection together with the hello message, which saves a round trip.
    async fn request<A: RemoteOperation>(&self, ask: &A, urgency: Urgency) -> Result<OpStream> {
        self.begin_operation(ask.name(), ask.parameters()?, urgency).await
    }

    /// Sends a request for an operation by name, with encoded parameters.
    ///
    /// # Errors
    /// As [`tell`](Self::tell).
    pub async fn begin_operation(&self, name: &str, parameters: Bytes, urgency: Urgency) -> Result<OpStream> {
        let connection = self.connection().await?;
        let asked = connection.handle.request(name, parameters, urgency).await;
        self.settled(&connection).await?;
        asked
    }
}

/// Returns the verification that a URL requires: the certificate whose fingerprint it contains, or else any that this
/// machine trusts.
///
/// # Errors
/// `Invalid` for a malformed fingerprint.
pub fn trust_of(url: &Url) -> Result<Trust> {
    url.fingerprint.as_ref().map_or(Ok(Trust::System), |text| text.parse().map(Trust::Fingerprint))
}

/// A connection before the end of its handshake.
pub(crate) struct OpenedConnection {
    /// Sends requests.
    pub(crate) handle: ClientHandle,
    /// Transfers bytes until the connection ends.
    pub(crate) driving: BoxFuture<'static, ()>,
    /// Control and statistics of the connection's sending side, if its protocol supports them.
    pub(crate) flow: Option<Arc<dyn Flow>>,
    /// Link by another protocol that may still connect.
    later: Option<PendingLink>,
}

/// Connects, without waiting for the handshake. The future transfers bytes until the connection ends.
pub(crate) async fn open(server: &Endpoint) -> Result<(ClientHandle, BoxFuture<'static, ()>)> {
    open_watched(server).await.map(|opened| (opened.handle, opened.driving))
}

/// Connects as [`open`] does; the result also has the connection's control and statistics.
pub(crate) async fn open_watched(server: &Endpoint) -> Result<OpenedConnection> {
    let ConnectOptions { protocol, choice, .. } = server.reach;
    // A controller requires a protocol that supports controllers.
    let protocol = if choice.is_some() && protocol == Protocol::Auto { Protocol::Quic } else { protocol };
    let options = link::quic::EndpointOptions {
        choice: choice.unwrap_or_default(),
        window_bytes: server.window_bytes,
        most_bytes_per_sec: None,
        start: link::quic::Start::AtOnce,
        // Default of the protocol.
        bulk: link::quic::BulkTransport::default(),
    };
    let tcp = match protocol {
        Protocol::Tcp | Protocol::Auto => tcp_options(server).await,
        _ => TcpOptions::default(),
    };
    let OpenedLink { link, later } = match protocol {
        Protocol::Auto => protocol_choice::connect(server, tcp, &options).await?,
        _ => {
            let link = link::dial(&server.host, server.port, &server.trust, protocol, tcp, &options).await?;
            OpenedLink { link, later: None }
        }
    };
    let opened = put_on(server, protocol, link).await?;
    Ok(OpenedConnection { later, ..opened })
}

/// Returns the number of TCP connections of a link to this server, and their network routes.
async fn tcp_options(server: &Endpoint) -> TcpOptions {
    let ConnectOptions { choice, streams, rails, .. } = server.reach;
    let streams = match streams {
        Streams::Of(count) => count,
        // A fixed rate does not need a second stream, and would be divided among the streams.
        Streams::Auto if choice.is_none() => protocol_choice::streams(server).await,
        Streams::Auto => 1,
    };
    TcpOptions { streams, rails }
}

/// Returns whether the protocol of a connection may change while it transfers data: if the user chose none, and the
/// server is on another machine.
fn may_change(server: &Endpoint, flow: &dyn Flow) -> bool {
    let ConnectOptions { protocol, choice, streams, rails, .. } = server.reach;
    let is_automatic =
        protocol == Protocol::Auto && choice.is_none() && streams == Streams::Auto && rails.count() == 0;
    let is_remote = flow.peer().is_some_and(|peer| !peer.ip().to_canonical().is_loopback());
    is_automatic && is_remote && !matches!(server.trust, Trust::Plain)
}

fn late<T>(_: Elapsed) -> Result<T> {
    Err(Error::new(ErrorKind::TimedOut, "expected the other protocol to connect in time"))
}

/// Starts a client on a link by `protocol`, with the remembered values of the path.
async fn put_on(server: &Endpoint, protocol: Protocol, link: link::Link) -> Result<OpenedConnection> {
    let ConnectOptions { choice, compression, .. } = server.reach;
    if let Some(now) = link.flow().map(|flow| flow.statistics()) {
        tracing::info!(server = link.peer(), link = now.protocol, streams = now.streams, "connected");
    }
    let mut config = ClientConfig {
        token: server.token.clone(),
        window_bytes: server.window_bytes,
        ..ClientConfig::default()
    };
    config.capabilities.extend(choice.map(link::controller_capability));
    config.capabilities.extend(compression.capabilities());
    let flow = link.flow();
    // A QUIC link already sends with this controller.
    if let Some((choice, flow)) = choice.zip(flow.as_ref()).filter(|_| protocol == Protocol::Tcp) {
        flow.control(choice)?;
    }
    let known = remember(server, flow.as_deref()).await;
    config.sent_ahead = known.map_or(SentAhead::Found, |known| SentAhead::Known(known.filling_bytes()));
    config.capabilities.extend(known.map(link::path_capability));
    let watching = watch(server.paths.clone(), flow.clone());
    let (handle, driver) = receive_limit::connect(link, config)?;
    // A client that uses remembered values asks the server for the values that only the server can measure.
    let used_paths = server.paths.clone().zip(flow.clone()).filter(|_| protocol == Protocol::Auto);
    let learning = used_paths.map(|(paths, flow)| learn(handle.clone(), paths, flow));
    let driving = async move {
        tokio::select! {
            () = driver => {}
            () = watching => {}
            () = async { OptionFuture::from(learning).await; std::future::pending().await } => {}
        }
    };
    Ok(OpenedConnection { handle, driving: Box::pin(driving), flow, later: None })
}

/// Starts the connection from the remembered values of its path; returns those of the direction to this host.
async fn remember(server: &Endpoint, flow: Option<&dyn Flow>) -> Option<RememberedPath> {
    let (paths, flow) = server.paths.as_ref().zip(flow)?;
    let known = paths.known(flow).await;
    if let Some(up) = known.up {
        flow.remember(up);
    }
    known.down
}

/// Monitors the connection without end, starting after the first received packet: sent packets alone show nothing about
/// the path.
async fn watch(paths: Option<Paths>, flow: Option<Arc<dyn Flow>>) {
    if let Some((paths, flow)) = paths.zip(flow)
        && flow.proven().await
        && let Some(watching) = ConnectionMonitor::begin(&paths, Some(flow))
    {
        watching.run().await;
    }
    std::future::pending().await
}

/// Adds advice on a certificate that is not trusted to an error.
fn hint(server: &Endpoint, error: Error) -> Error {
    if error.kind() == ErrorKind::Denied && matches!(server.trust, Trust::System) {
        return error.context(
            "use the complete URL that the server printed, with its fingerprint `#...fp=sha256:...`",
        );
    }
    error
}

/// Makes a direct link the current connection, if the login that it belongs to is still the current one.
async fn take_over(state: Weak<Mutex<DialerState>>, number: u64, direct: ClientHandle) -> bool {
    let Some(state) = state.upgrade() else { return false };
    let mut state = state.lock().await;
    let Some(current) = state.connection.as_mut().filter(|c| c.number == number) else { return false };
    current.channel = Some(std::mem::replace(&mut current.handle, direct));
    true
}
