//! Other servers of the same data: how a client asks for them, with the operation `peers`.
//!
//! A server is told of its peers (`serve --peer`) and tells its clients, so that one URL is enough to read from all of
//! them. It also tells through which servers it has its data, where it has them from another one.

use std::time::Duration;

use array::{Error, ErrorKind, Priority, Result, Urgency};
use bytes::Bytes;
use link::OpStream;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use wire::ops::{Describe, decode_json};

use crate::remote::RemoteSource;
use crate::requests::RemoteOperation;
use crate::servers::MAX_SERVERS;
use crate::url::Url;

/// The operation's name.
pub const PEERS: &str = "peers";
/// Most servers between data and client, side by side or behind one another.
pub const MAX_CHAIN: usize = 64;
/// How long the other servers of a chain may take to say what they are.
pub const CHAIN_WITHIN: Duration = Duration::from_secs(5);

/// Answer of a server about one data set: other servers of it, and the chain of servers that it comes through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peers {
    /// URLs of other servers that have the same data, with what it takes to come in there.
    pub peers: Vec<String>,
    /// The servers between the data and the client, this one first: names that only need to differ.
    pub chain: Vec<String>,
}

impl Peers {
    /// The peers that `server` told of, without itself and what is no URL. Where it told no token, its own may do.
    #[must_use]
    pub fn others(&self, server: &Url) -> Vec<Url> {
        let mut others: Vec<Url> = Vec::new();
        for mut peer in
            self.peers.iter().filter_map(|text| text.parse::<Url>().ok()).flat_map(|u| u.servers())
        {
            let is_known = |url: &Url| (&url.host, url.port) == (&peer.host, peer.port);
            if others.len() + 1 < MAX_SERVERS && !is_known(server) && !others.iter().any(is_known) {
                peer.token = peer.token.or_else(|| server.token.clone());
                others.push(peer);
            }
        }
        others
    }
}

/// Asks a server for the peers of a data set.
#[derive(Clone, Debug)]
pub struct PeersRequest {
    /// The data set; empty for the only one.
    pub dataset: String,
}

impl RemoteOperation for PeersRequest {
    type Response = Peers;

    fn name(&self) -> &str {
        PEERS
    }

    fn parameters(&self) -> Result<Bytes> {
        Ok(Describe { name: self.dataset.clone() }.encode())
    }

    async fn answer(&self, replies: OpStream) -> Result<Peers> {
        let mut found: Peers =
            decode_json(&replies.with_bulk_up_to(0).only_item().await?.body, "the peers of a data set")?;
        // Nothing in it can be trusted; what is more than anybody needs is left out.
        found.peers.truncate(MAX_SERVERS);
        found.chain.truncate(MAX_CHAIN + 1);
        Ok(found)
    }
}

/// Asks the server of a data set for its peers and its chain.
///
/// # Errors
/// Those of asking; `TimedOut`; `Unsupported` from servers of older versions.
pub async fn of(remote: &RemoteSource, within: Duration) -> Result<Peers> {
    let ask = PeersRequest { dataset: remote.name().to_owned() };
    let deadline = Instant::now() + within;
    let urgency = Urgency { priority: Priority::INTERACTIVE, deadline: Some(deadline.into_std()) };
    let answer = tokio::time::timeout_at(deadline, remote.dialer().ask(ask, urgency)).await;
    answer.unwrap_or_else(|_| Err(Error::new(ErrorKind::TimedOut, "a server did not say what its peers are")))
}
