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

/// Waits for servers until it is dropped.
pub struct AwaitedServers {
    address: SocketAddr,
    token: String,
    offers: Mutex<OfferQueue>,
    _listening: JoinSet<()>,
}

struct OfferQueue {
    coming: mpsc::Receiver<Offer>,
    was_one: bool,
}

impl AwaitedServers {
    /// Takes the servers that arrive through `coming`, from a port at `address` where they present `token`. The tasks
    /// in `listening` end with this value.
    #[must_use]
    pub fn new(
        address: SocketAddr,
        token: String,
        coming: mpsc::Receiver<Offer>,
        listening: JoinSet<()>,
    ) -> Self {
        let offers = Mutex::new(OfferQueue { coming, was_one: false });
        Self { address, token, offers, _listening: listening }
    }

    /// Address on which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Token that servers have to present.
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
        let mut offers = self.offers.lock().await;
        loop {
            let offer = match offers.was_one {
                false => offers.coming.recv().await,
                true => {
                    tokio::time::timeout(RETURN_TIMEOUT, offers.coming.recv()).await.map_err(|_| gone())?
                }
            };
            let offer = offer.ok_or_else(Error::cancelled)?;
            let peer = offer.peer();
            match offer.take().await {
                Ok(link) => {
                    offers.was_one = true;
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
    Error::new(
        ErrorKind::TimedOut,
        format!("expected the server to connect again within {secs} s, it did not"),
    )
}
