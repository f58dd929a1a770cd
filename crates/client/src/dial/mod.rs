//! The connection to one server: made when first needed, made again when it broke, shared by everything that asks it.
//!
//! What was under way when it broke fails with `Unreachable`; the next request connects anew, with growing
//! pauses between attempts in vain.

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
use link::{Choice, ClientHandle, Flow, OpStream, Protocol, Refusal, Remembered, Trust, Ways};
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

/// Pause after the first attempt in vain; doubled after each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause between attempts.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Least receive window that still keeps a fast link busy, bytes.
const MIN_WINDOW_BYTES: u64 = 4 << 20;

/// Address of a server, and the way to connect to it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Condition that its certificate must meet.
    pub trust: Trust,
    /// Shows that we may; empty where none is needed.
    pub token: String,
    /// Bulk bytes that may be on their way to us.
    pub window_bytes: u64,
    /// By which protocol, and how fast.
    pub reach: ConnectOptions,
    /// Memory of network paths, which the connection reads and adds to; `None`: nothing is remembered.
    pub paths: Option<Paths>,
}

/// How a server is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConnectOptions {
    /// The protocol.
    pub protocol: Protocol,
    /// The controller asked for, of what the server sends and of what we send; none: whatever the protocol does.
    pub choice: Option<Choice>,
    /// Compression of data on their way here.
    pub compression: Compression,
    /// By how many connections, over TCP.
    pub streams: Streams,
    /// Other ways to the same server, over TCP.
    pub rails: Rails,
}

/// A way to reach servers as people say it; what is left out is as without a word.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectOptionsText<'a> {
    /// The protocol.
    pub link: Option<&'a str>,
    /// The controller; who asks for one means a protocol that has them.
    pub controller: Option<&'a str>,
    /// Compression of data on their way here.
    pub compression: Option<&'a str>,
    /// By how many connections.
    pub streams: Option<&'a str>,
    /// Other ways to the same server.
    pub rails: Option<&'a str>,
}

impl ConnectOptionsText<'_> {
    /// Parses these words into a way to reach a server.
    ///
    /// # Errors
    /// `Invalid` for a word that is not known, and for two words that do not go together.
    pub fn reach(&self) -> Result<ConnectOptions> {
        fn of<T: FromStr<Err = Error> + Default>(word: Option<&str>) -> Result<T> {
            word.map_or_else(|| Ok(T::default()), str::parse)
        }
        let unknown = |refusal: Refusal| Error::invalid(refusal.to_string());
        let choice: Option<Choice> = self.controller.map(str::parse).transpose().map_err(unknown)?;
        let (compression, streams, rails) =
            (of(self.compression)?, of(self.streams)?, of::<Rails>(self.rails)?);
        let is_several = matches!(streams, Streams::Of(2..)) || rails.count() > 0;
        // Who asks for a controller means a protocol that has them, and only TCP has several streams.
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
                "expected `rate=N` for the link `tcp`, where the kernel decides within that, found the controller \
                 `{choice}`; `--link quic` has it"
            )));
        }
        Ok(ConnectOptions { protocol, choice, compression, streams, rails })
    }
}

/// How many TCP connections one link takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// One, unless what is remembered of the path says that more fill it better.
    #[default]
    Auto,
    /// So many.
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

/// Whether a server compresses what it sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Only where the server measures that data arrive sooner when compressed.
    #[default]
    Auto,
    /// Never.
    None,
    /// By LZ4, whatever it brings.
    Lz4,
    /// By Zstandard, whatever it brings.
    Zstd,
}

impl Compression {
    /// Capabilities that the client names to the server.
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
    /// From a URL, completed by the runtime notes. Without a fingerprint, ordinary certificates decide.
    ///
    /// # Errors
    /// `Invalid` for a fingerprint that is none.
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

    /// Returns this server with a memory of paths: the connection begins from what `paths` remember, and adds to it.
    #[must_use]
    pub fn remembering(self, paths: Paths) -> Self {
        Self { paths: Some(paths), ..self }
    }

    /// Returns this server, reached by `reach`.
    #[must_use]
    pub fn by(self, reach: ConnectOptions) -> Self {
        Self { reach, ..self }
    }
}

/// How a server is reached.
enum DialMethod {
    Port(Endpoint),
    Ssh {
        address: SshAddress,
        window_bytes: u64,
        reach: ConnectOptions,
    },
    /// It connects to us.
    Awaited {
        awaiting: AwaitedServers,
        window_bytes: u64,
        compression: Compression,
    },
}

impl DialMethod {
    /// For people.
    fn name(&self) -> String {
        match self {
            Self::Port(server) => format!("server {}:{}", server.host, server.port),
            Self::Ssh { address, .. } => format!("ssh to {}", address.authority()),
            Self::Awaited { awaiting, .. } => format!("a server that connects to {}", awaiting.address()),
        }
    }
}

/// A connection, welcomed or not yet.
#[derive(Clone)]
struct DialerConnection {
    number: u64,
    /// Number of replaced connections of the dialer before this handle.
    moves: u64,
    handle: ClientHandle,
    is_welcomed: Arc<AtomicBool>,
    /// Once a direct link has taken over: the ssh channel, with which the other side ends.
    channel: Option<ClientHandle>,
    login: Option<SshLogin>,
}

#[derive(Default)]
struct DialerState {
    connection: Option<DialerConnection>,
    /// Connections begun.
    begun: u64,
    failures: u32,
    not_before: Option<Instant>,
    /// The loops of connections; ends with this value.
    drivers: JoinSet<()>,
}

impl DialerState {
    /// The connection, if it lives and more can be asked; over the channel where a direct link has broken.
    fn live(&mut self) -> Option<DialerConnection> {
        let is_over = |handle: &ClientHandle| handle.ended().is_some() || handle.is_spent();
        let connection = self.connection.as_mut()?;
        if is_over(&connection.handle) {
            connection.handle = connection.channel.take().filter(|channel| !is_over(channel))?;
        }
        Some(connection.clone())
    }
}

/// Asks one server, connecting when needed. Clones share the connection.
#[derive(Clone)]
pub struct Dialer {
    way: Arc<DialMethod>,
    failure: Arc<SharedFailure>,
    state: Arc<Mutex<DialerState>>,
    /// How often another connection has taken the place of one that carried.
    moved: Arc<signal::Sender<u64>>,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dialer({})", self.way.name())
    }
}

impl Dialer {
    /// Connects to nobody yet.
    #[must_use]
    pub fn new(server: Endpoint) -> Self {
        Self::by(DialMethod::Port(server))
    }

    /// Logs in nowhere yet. `reach` is for the direct link, where there can be one; ssh's own channel only compresses by it.
    #[must_use]
    pub fn through_ssh(address: SshAddress, window_bytes: u64, reach: ConnectOptions) -> Self {
        let window_bytes = window_bytes.max(MIN_WINDOW_BYTES);
        Self::by(DialMethod::Ssh { address, window_bytes, reach })
    }

    /// Has not waited for anybody yet.
    #[must_use]
    pub fn awaiting(awaiting: AwaitedServers, window_bytes: u64, compression: Compression) -> Self {
        let window_bytes = window_bytes.max(MIN_WINDOW_BYTES);
        Self::by(DialMethod::Awaited { awaiting, window_bytes, compression })
    }

    fn by(way: DialMethod) -> Self {
        Self {
            way: Arc::new(way),
            failure: Arc::default(),
            state: Arc::default(),
            moved: Arc::new(signal::Sender::new(0)),
        }
    }

    /// The live connection, made now if there is none. Whoever waits while another one's attempt fails shares its error.
    ///
    /// # Errors
    /// `Unreachable`, `TimedOut`, `Denied` (token, certificate, login), `Unsupported` (no common version).
    ///
    /// # Cancel safety
    /// Safe: an attempt under way is given up.
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

    /// Replaces the connection by one of this protocol, as is done automatically where the path needs it. Requests under way are
    /// sent again over it for the data that have not arrived. False where there is no connection to replace.
    ///
    /// # Errors
    /// Those of connecting; the connection then stays as it was.
    ///
    /// # Cancel safety
    /// Dropping it leaves things as they are.
    pub async fn carry_by(&self, to: Carrying) -> Result<bool> {
        let DialMethod::Port(server) = &*self.way else { return Ok(false) };
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

    /// Why the connection that there was has ended; `None` while it lives, before there was one, and while one is being made.
    pub(crate) fn lost(&self) -> Option<Error> {
        let state = self.state.try_lock().ok()?;
        let connection = state.connection.as_ref()?;
        let is_over_channel = connection.channel.as_ref().is_some_and(|channel| channel.ended().is_none());
        connection.handle.ended().filter(|_| !is_over_channel)
    }

    /// With ssh: the name of the array that the path ended with; waits until the other side has said it. Empty without a
    /// connection.
    ///
    /// # Errors
    /// Why the other side did not say anything.
    pub async fn named_array(&self) -> Result<String> {
        let login = self.state.lock().await.connection.as_ref().and_then(|c| c.login.clone());
        match login {
            Some(login) => login.greeting().await.map(|greeting| greeting.array),
            None => Ok(String::new()),
        }
    }

    /// A connection on which operations can be asked at once, before anybody was welcomed.
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
        let (handle, login) = match &*self.way {
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
                let link = awaiting.next().await.map_err(|e| e.context(self.way.name()))?;
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
        self.failure.note(error);
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

    /// Why there was no welcome.
    async fn explain(&self, connection: &DialerConnection, lost: Error) -> Error {
        match &connection.login {
            Some(login) => login.explain(lost).await,
            None => lost,
        }
        .context(self.way.name())
    }

    /// Asks and reads the answer; again after a pause, a few times, where the server says that it is busy.
    ///
    /// # Errors
    /// The operation's, or why there is no connection.
    ///
    /// # Cancel safety
    /// Dropping it cancels the operation.
    pub async fn ask<A: RemoteOperation>(&self, ask: A, urgency: Urgency) -> Result<A::Response> {
        let mut again = BusyRetry::default();
        loop {
            let replies = self.request(&ask, urgency).await?;
            match ask.answer(replies).await {
                Ok(answer) => return Ok(answer),
                Err(error) => again.after(error, urgency.deadline).await?,
            }
        }
    }

    /// Asks one-way: returns as soon as the operation is on its way. Nobody hears of its end.
    ///
    /// # Errors
    /// Why there is no connection; `Invalid` or `TooLarge` when name or parameters are too long.
    ///
    /// # Cancel safety
    /// Safe: until it returns, nothing was asked.
    pub async fn tell<A: RemoteOperation>(&self, ask: &A, urgency: Urgency) -> Result<()> {
        self.request(ask, urgency).await?.detach();
        Ok(())
    }

    /// Asks at once: on a new connection together with the hello, which saves a round trip.
    async fn request<A: RemoteOperation>(&self, ask: &A, urgency: Urgency) -> Result<OpStream> {
        self.begin_operation(ask.name(), ask.parameters()?, urgency).await
    }

    /// Asks for an operation by name, with parameters as they travel.
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

/// Trust that a URL demands: the certificate whose fingerprint it names, else any that this machine trusts.
///
/// # Errors
/// `Invalid` for a malformed fingerprint.
pub fn trust_of(url: &Url) -> Result<Trust> {
    url.fingerprint.as_ref().map_or(Ok(Trust::System), |text| text.parse().map(Trust::Fingerprint))
}

/// A connection that was made, and not welcomed yet.
pub(crate) struct OpenedConnection {
    /// Asks.
    pub(crate) handle: ClientHandle,
    /// Moves bytes until the connection ends.
    pub(crate) driving: BoxFuture<'static, ()>,
    /// Control and statistics of what the connection sends, if its protocol has them.
    pub(crate) flow: Option<Arc<dyn Flow>>,
    /// Link by another protocol that may still connect.
    later: Option<PendingLink>,
}

/// Connects, without waiting to be welcomed. The future moves bytes until the connection ends.
pub(crate) async fn open(server: &Endpoint) -> Result<(ClientHandle, BoxFuture<'static, ()>)> {
    open_watched(server).await.map(|opened| (opened.handle, opened.driving))
}

/// Connects as [`open`] does; the result also has the connection's control and statistics.
pub(crate) async fn open_watched(server: &Endpoint) -> Result<OpenedConnection> {
    let ConnectOptions { protocol, choice, .. } = server.reach;
    // Who asks for a controller means a protocol that has them.
    let protocol = if choice.is_some() && protocol == Protocol::Auto { Protocol::Quic } else { protocol };
    let options = link::quic::Options {
        choice: choice.unwrap_or_default(),
        window_bytes: server.window_bytes,
        most_bytes_per_sec: None,
        start: link::quic::Start::AtOnce,
        // As the protocol says.
        bulk: link::quic::Bulk::default(),
    };
    let ways = match protocol {
        Protocol::Tcp | Protocol::Auto => ways_of(server).await,
        _ => Ways::default(),
    };
    let OpenedLink { link, later } = match protocol {
        Protocol::Auto => protocol_choice::connect(server, ways, &options).await?,
        _ => {
            let link = link::dial(&server.host, server.port, &server.trust, protocol, ways, &options).await?;
            OpenedLink { link, later: None }
        }
    };
    let opened = put_on(server, protocol, link).await?;
    Ok(OpenedConnection { later, ..opened })
}

/// Returns how many TCP connections a link to this server takes, and by which ways.
async fn ways_of(server: &Endpoint) -> Ways {
    let ConnectOptions { choice, streams, rails, .. } = server.reach;
    let streams = match streams {
        Streams::Of(count) => count,
        // A rate that was named needs no second stream, and would be divided among them.
        Streams::Auto if choice.is_none() => protocol_choice::streams(server).await,
        Streams::Auto => 1,
    };
    Ways { streams, rails }
}

/// Whether the protocol of a connection may be changed while it carries data: where the user chose none, and the server is on
/// another machine.
fn may_change(server: &Endpoint, flow: &dyn Flow) -> bool {
    let ConnectOptions { protocol, choice, streams, rails, .. } = server.reach;
    let is_open =
        protocol == Protocol::Auto && choice.is_none() && streams == Streams::Auto && rails.count() == 0;
    let is_far = flow.peer().is_some_and(|peer| !peer.ip().to_canonical().is_loopback());
    is_open && is_far && !matches!(server.trust, Trust::Plain)
}

fn late<T>(_: Elapsed) -> Result<T> {
    Err(Error::new(ErrorKind::TimedOut, "expected the other protocol to get through in time"))
}

/// Starts a client on a link by `protocol`, with all that is known of the path.
async fn put_on(server: &Endpoint, protocol: Protocol, link: link::Link) -> Result<OpenedConnection> {
    let ConnectOptions { choice, compression, .. } = server.reach;
    if let Some(is) = link.flow().map(|flow| flow.statistics()) {
        tracing::info!(server = link.peer(), link = is.protocol, streams = is.streams, "connected");
    }
    let mut config = ClientConfig {
        token: server.token.clone(),
        window_bytes: server.window_bytes,
        ..ClientConfig::default()
    };
    config.capabilities.extend(choice.map(link::asking));
    config.capabilities.extend(compression.capabilities());
    let flow = link.flow();
    // By QUIC we send by it already.
    if let Some((choice, flow)) = choice.zip(flow.as_ref()).filter(|_| protocol == Protocol::Tcp) {
        flow.control(choice)?;
    }
    let known = remember(server, flow.as_deref()).await;
    config.sent_ahead = known.map_or(SentAhead::Found, |known| SentAhead::Known(known.filling_bytes()));
    config.capabilities.extend(known.map(link::telling));
    let watching = watch(server.paths.clone(), flow.clone());
    let (handle, driver) = receive_limit::connect(link, config)?;
    // Who goes by what is remembered asks for what can only be seen from there.
    let asks = server.paths.clone().zip(flow.clone()).filter(|_| protocol == Protocol::Auto);
    let asking = asks.map(|(paths, flow)| learn(handle.clone(), paths, flow));
    let driving = async move {
        tokio::select! {
            () = driver => {}
            () = watching => {}
            () = async { OptionFuture::from(asking).await; std::future::pending().await } => {}
        }
    };
    Ok(OpenedConnection { handle, driving: Box::pin(driving), flow, later: None })
}

/// Lets the connection begin from what is remembered of its path; gives what is known of the way here.
async fn remember(server: &Endpoint, flow: Option<&dyn Flow>) -> Option<Remembered> {
    let (paths, flow) = server.paths.as_ref().zip(flow)?;
    let known = paths.known(flow).await;
    if let Some(up) = known.up {
        flow.remember(up);
    }
    known.down
}

/// For ever, from when somebody was heard: what was only sent says nothing of a path.
async fn watch(paths: Option<Paths>, flow: Option<Arc<dyn Flow>>) {
    if let Some((paths, flow)) = paths.zip(flow)
        && flow.proven().await
        && let Some(watching) = ConnectionMonitor::begin(&paths, Some(flow))
    {
        watching.run().await;
    }
    std::future::pending().await
}

/// Says what a person can do about a certificate that nobody vouches for.
fn hint(server: &Endpoint, error: Error) -> Error {
    if error.kind() == ErrorKind::Denied && matches!(server.trust, Trust::System) {
        return error
            .context("use the whole link that the server printed, with its fingerprint `#...fp=sha256:...`");
    }
    error
}

/// From now on a direct link is asked, if the login it came from still counts.
async fn take_over(state: Weak<Mutex<DialerState>>, number: u64, direct: ClientHandle) -> bool {
    let Some(state) = state.upgrade() else { return false };
    let mut state = state.lock().await;
    let Some(current) = state.connection.as_mut().filter(|c| c.number == number) else { return false };
    current.channel = Some(std::mem::replace(&mut current.handle, direct));
    true
}
