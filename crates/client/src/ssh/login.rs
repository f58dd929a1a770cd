//! A login in progress, from the first frame to the direct link that takes over if one is possible.

use std::time::Duration;

use array::{Error, ErrorKind, Result};
use link::{ClientHandle, Driver, Trust};
use tokio::sync::watch;
use wire::ClientConfig;

use super::SshAddress;
use super::channel::SshChannel;
use super::greeting::{DirectAddress, Greeting};
use crate::dial::{ConnectOptions, Endpoint, open};
use crate::receive_limit;

/// Timeout of a login: a user may have to enter a password, and the other side may have to index a large file. Until
/// then the running `ssh` shows that the login is in progress.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Timeout for connecting a direct link; a firewall may drop all packets.
const DIRECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Greeting of the other side, or the reason that there is none, as soon as it is known.
#[derive(Clone)]
pub(crate) struct SshLogin(watch::Receiver<Option<Result<Greeting>>>);

impl SshLogin {
    /// Starts `ssh`; the connection accepts requests at once.
    pub(crate) async fn begin(
        address: &SshAddress,
        window_bytes: u64,
        reach: ConnectOptions,
    ) -> Result<(Self, ClientHandle, Driver, SshSession)> {
        let (channel, link) = SshChannel::start(address).await?;
        let mut config =
            ClientConfig { window_bytes, welcome_within: LOGIN_TIMEOUT, ..ClientConfig::default() };
        config.capabilities.extend(reach.compression.capabilities());
        let (handle, driver) = receive_limit::connect(link, config)?;
        let (outcome, receiver) = watch::channel(None);
        let session = SshSession { channel, outcome, handle: handle.clone(), window_bytes, reach };
        Ok((Self(receiver), handle, driver, session))
    }

    /// Waits for the greeting of the other side, which precedes any response.
    pub(crate) async fn greeting(&self) -> Result<Greeting> {
        self.outcome().await.unwrap_or_else(|| Err(Error::cancelled()))
    }

    /// Returns the outcome; `None` if the login was abandoned.
    async fn outcome(&self) -> Option<Result<Greeting>> {
        self.0.clone().wait_for(Option::is_some).await.ok().and_then(|greeting| greeting.clone())
    }

    /// Returns the reason that the handshake failed, if the connection was lost.
    pub(crate) async fn explain(&self, lost: Error) -> Error {
        match self.outcome().await {
            Some(Ok(greeting)) => lost.context(format!("`{}` there", greeting.program)),
            Some(Err(error)) => error,
            None => lost,
        }
    }
}

/// Keeps an ssh channel open while the connection over it lives.
pub(crate) struct SshSession {
    channel: SshChannel,
    outcome: watch::Sender<Option<Result<Greeting>>>,
    handle: ClientHandle,
    window_bytes: u64,
    reach: ConnectOptions,
}

impl SshSession {
    /// Runs until the connection ends. `take_over` is called with a direct link, if one is possible.
    pub(crate) async fn attend<F: Future<Output = bool>>(
        mut self,
        take_over: impl FnOnce(ClientHandle) -> F,
    ) {
        let greeting = self.channel.greeting().await;
        let direct = greeting.as_ref().ok().and_then(|greeting| greeting.direct.clone());
        self.outcome.send_replace(Some(greeting));
        let directly = async {
            let Some(direct) = direct else { return };
            let address = direct.address;
            match self.directly(direct, take_over).await {
                Ok(()) => tracing::info!("the direct link to {address} ended"),
                Err(error) => {
                    tracing::info!("no direct link to {address}, all data pass through ssh: {error}")
                }
            }
        };
        tokio::join!(self.handle.closed(), directly);
    }

    /// Connects to the address on which the other side listens, and uses that link until it ends.
    async fn directly<F: Future<Output = bool>>(
        &self,
        direct: DirectAddress,
        take_over: impl FnOnce(ClientHandle) -> F,
    ) -> Result<()> {
        let server = Endpoint {
            host: direct.address.ip().to_string(),
            port: direct.address.port(),
            trust: Trust::Fingerprint(direct.fingerprint.parse()?),
            token: direct.token,
            window_bytes: self.window_bytes,
            reach: self.reach,
            paths: None,
        };
        let connecting = tokio::time::timeout(DIRECT_TIMEOUT, open(&server)).await;
        let (handle, mut driver) = connecting.unwrap_or_else(|_| Err(too_slow()))?;
        tokio::select! {
            biased;
            welcomed = tokio::time::timeout(DIRECT_TIMEOUT, handle.welcomed()) => {
                welcomed.unwrap_or_else(|_| Err(too_slow()))?;
            }
            () = &mut driver => return Err(handle.ended().unwrap_or_else(too_slow)),
        }
        if take_over(handle).await {
            tracing::info!("a direct link to {} has taken over from ssh", direct.address);
        }
        driver.await;
        Ok(())
    }
}

fn too_slow() -> Error {
    Error::new(ErrorKind::TimedOut, format!("expected a direct link within {} s", DIRECT_TIMEOUT.as_secs()))
}
