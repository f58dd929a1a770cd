//! The connection to one server: made when first needed, made again when it broke, shared by everything that asks it.
//!
//! What was under way when it broke fails with `Unreachable`; the next request connects anew, with growing
//! pauses between attempts in vain.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use array::{Error, ErrorKind, Result, Urgency};
use link::{ClientHandle, OpStream, Trust};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;
use wire::ClientConfig;

use crate::asks::Ask;
use crate::url::Url;

/// Pause after the first attempt in vain; doubled after each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause between attempts.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Least receive window that still keeps a fast link busy, bytes.
const MIN_WINDOW_BYTES: u64 = 4 << 20;

/// Where and how to connect.
#[derive(Clone, Debug)]
pub struct Server {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// What its certificate must be.
    pub trust: Trust,
    /// Shows that we may; empty where none is needed.
    pub token: String,
    /// Bulk bytes that may be on their way to us.
    pub window_bytes: u64,
}

impl Server {
    /// From a URL, completed by the runtime notes. Without a fingerprint, ordinary certificates decide.
    ///
    /// # Errors
    /// `Invalid` for a fingerprint that is none.
    pub fn of(url: &Url, window_bytes: u64) -> Result<Self> {
        let trust = match &url.fingerprint {
            Some(text) => Trust::Fingerprint(text.parse()?),
            None => Trust::System,
        };
        Ok(Self {
            host: url.host.clone(),
            port: url.port,
            trust,
            token: url.token.clone().unwrap_or_default(),
            window_bytes: window_bytes.max(MIN_WINDOW_BYTES),
        })
    }
}

struct State {
    handle: Option<ClientHandle>,
    failures: u32,
    not_before: Option<Instant>,
    /// The last attempt in vain: its number and why.
    in_vain: Option<(u64, Error)>,
    /// The loops of connections; ends with this value.
    drivers: JoinSet<()>,
}

/// Asks one server, connecting when needed. Clones share the connection.
#[derive(Clone)]
pub struct Dialer {
    server: Arc<Server>,
    /// Attempts in vain so far, to be read without waiting for the one under way.
    attempts: Arc<AtomicU64>,
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dialer({}:{})", self.server.host, self.server.port)
    }
}

impl Dialer {
    /// Connects to nobody yet.
    #[must_use]
    pub fn new(server: Server) -> Self {
        let state =
            State { handle: None, failures: 0, not_before: None, in_vain: None, drivers: JoinSet::new() };
        Self { server: Arc::new(server), attempts: Arc::default(), state: Arc::new(Mutex::new(state)) }
    }

    /// The live connection, made now if there is none. Whoever waits while another one's attempt fails shares its
    /// error: during an outage everybody hears of it after one attempt, not one after the other.
    ///
    /// # Errors
    /// `Unreachable`, `TimedOut`, `Denied` (token, certificate), `Unsupported` (no common version).
    ///
    /// # Cancel safety
    /// Safe: an attempt under way is given up.
    pub async fn client(&self) -> Result<ClientHandle> {
        let before = self.attempts.load(Ordering::Relaxed);
        let mut state = self.state.lock().await;
        if let Some(handle) = state.handle.as_ref().filter(|h| h.ended().is_none()) {
            return Ok(handle.clone());
        }
        if let Some((attempt, error)) = &state.in_vain
            && *attempt > before
        {
            return Err(error.clone());
        }
        state.handle = None;
        if let Some(at) = state.not_before {
            tokio::time::sleep_until(at).await;
        }
        match self.connect(&mut state).await {
            Ok(handle) => {
                state.failures = 0;
                state.not_before = None;
                state.handle = Some(handle.clone());
                Ok(handle)
            }
            Err(error) => {
                let pause = FIRST_PAUSE.saturating_mul(1 << state.failures.min(10)).min(MAX_PAUSE);
                state.failures = state.failures.saturating_add(1);
                state.not_before = Some(Instant::now() + pause);
                let attempt = self.attempts.fetch_add(1, Ordering::Relaxed) + 1;
                state.in_vain = Some((attempt, error.clone()));
                Err(error)
            }
        }
    }

    async fn connect(&self, state: &mut State) -> Result<ClientHandle> {
        let server = &self.server;
        let link =
            link::tcp::connect(&server.host, server.port, &server.trust).await.map_err(|e| self.hint(e))?;
        let config = ClientConfig {
            token: server.token.clone(),
            window_bytes: server.window_bytes,
            ..ClientConfig::default()
        };
        let (handle, driver) = link::connect(link, config)?;
        while state.drivers.try_join_next().is_some() {}
        state.drivers.spawn(driver);
        handle.welcomed().await.map_err(|e| e.context(format!("server {}:{}", server.host, server.port)))?;
        Ok(handle)
    }

    /// Says what a person can do about a certificate that nobody vouches for.
    fn hint(&self, error: Error) -> Error {
        if error.kind() == ErrorKind::Denied && matches!(self.server.trust, Trust::System) {
            return error.context(
                "use the whole link that the server printed, with its fingerprint `#...fp=sha256:...`",
            );
        }
        error
    }

    /// Asks once and reads the answer.
    ///
    /// # Errors
    /// The operation's, or why there is no connection.
    ///
    /// # Cancel safety
    /// Dropping it cancels the operation.
    pub async fn ask<A: Ask>(&self, ask: A, urgency: Urgency) -> Result<A::Answer> {
        let replies = self.request(&ask, urgency).await?;
        ask.answer(replies).await
    }

    /// Asks one-way: returns as soon as the operation is on its way. Nobody hears of its end.
    ///
    /// # Errors
    /// Why there is no connection; `Invalid` or `TooLarge` when name or parameters are too long.
    ///
    /// # Cancel safety
    /// Safe: until it returns, nothing was asked.
    pub async fn tell<A: Ask>(&self, ask: &A, urgency: Urgency) -> Result<()> {
        self.request(ask, urgency).await?.detach();
        Ok(())
    }

    async fn request<A: Ask>(&self, ask: &A, urgency: Urgency) -> Result<OpStream> {
        let client = self.client().await?;
        client.request(ask.name(), ask.parameters(), urgency).await
    }
}
