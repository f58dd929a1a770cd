//! The client's side: the queue of servers that offered themselves on a port of this process.

use std::net::SocketAddr;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use link::Link;
use link::offer::Offer;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

/// How long a server that was there may take to come again: longer than it pauses between attempts.
const AGAIN_WITHIN: Duration = Duration::from_secs(30);

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
    /// Takes the servers that come by `coming`, from a port at `address` where they show `token`. The tasks in `listening`
    /// end with this value.
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

    /// Token that servers have to show.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A link to the next server that offers itself; waits for the first one without end.
    ///
    /// # Errors
    /// `TimedOut` when the last one does not come again.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn next(&self) -> Result<Link> {
        let mut offers = self.offers.lock().await;
        loop {
            let offer = match offers.was_one {
                false => offers.coming.recv().await,
                true => tokio::time::timeout(AGAIN_WITHIN, offers.coming.recv()).await.map_err(|_| gone())?,
            };
            let offer = offer.ok_or_else(Error::cancelled)?;
            let peer = offer.peer();
            match offer.take().await {
                Ok(link) => {
                    offers.was_one = true;
                    tracing::info!("the server at {peer} has connected");
                    return Ok(link);
                }
                Err(error) => tracing::debug!(%peer, %error, "a server went before it was taken"),
            }
        }
    }
}

fn gone() -> Error {
    let secs = AGAIN_WITHIN.as_secs();
    Error::new(
        ErrorKind::TimedOut,
        format!("expected the server to connect again within {secs} s, it did not"),
    )
}
