//! The client's side: the queue of servers that connected to a port of this process.

use std::net::SocketAddr;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use link::Link;
use link::offer::Offer;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

/// Timeout for the return of a server that was connected before; longer than its pause between attempts.
const RETURN_TIMEOUT: Duration = Duration::from_secs(30);

/// Servers that connect to a port of this process, until this is dropped.
pub struct AwaitedServers {
    address: SocketAddr,
    token: String,
    queue: Mutex<OfferQueue>,
    _listening: JoinSet<()>,
}

struct OfferQueue {
    offers: mpsc::Receiver<Offer>,
    /// Whether a server has connected before.
    has_connected: bool,
}

impl AwaitedServers {
    /// Creates the queue of the servers in `offers`, which connect to `address` and present `token`. The tasks in
    /// `listening` end with this value.
    #[must_use]
    pub fn new(
        address: SocketAddr,
        token: String,
        offers: mpsc::Receiver<Offer>,
        listening: JoinSet<()>,
    ) -> Self {
        let queue = Mutex::new(OfferQueue { offers, has_connected: false });
        Self { address, token, queue, _listening: listening }
    }

    /// Returns the address on which this process listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the token that servers have to present.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Waits for the next server that connects, the first one without a timeout, and returns its link.
    ///
    /// # Errors
    /// `TimedOut` if the last server does not return.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn next(&self) -> Result<Link> {
        let mut queue = self.queue.lock().await;
        loop {
            let offer = match queue.has_connected {
                false => queue.offers.recv().await,
                true => {
                    tokio::time::timeout(RETURN_TIMEOUT, queue.offers.recv()).await.map_err(|_| gone())?
                }
            };
            let offer = offer.ok_or_else(Error::cancelled)?;
            let peer = offer.peer();
            match offer.take().await {
                Ok(link) => {
                    queue.has_connected = true;
                    tracing::info!("the server at {peer} has connected");
                    return Ok(link);
                }
                Err(error) => tracing::debug!(%peer, %error, "a waiting server disconnected"),
            }
        }
    }
}

fn gone() -> Error {
    let secs = RETURN_TIMEOUT.as_secs();
    Error::new(ErrorKind::TimedOut, format!("the server did not connect again within {secs} s"))
}
