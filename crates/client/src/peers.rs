//! Other servers of the same data: how a client asks for them, with the operation `peers`.
//!
//! A server is configured with its peers (`serve --peer`) and names them to its clients, so that one URL suffices to
//! read from all of them. It also names the servers through which it gets the data, if it gets them from another
//! server.

use std::time::Duration;

use array::{Error, ErrorKind, Priority, Result, Urgency};
use bytes::Bytes;
use link::OpStream;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use wire::ops::{DescribeParameters, decode_json};

use crate::remote::RemoteSource;
use crate::requests::RemoteOperation;
use crate::servers::MAX_SERVERS;
use crate::url::Url;

/// Name of the operation.
pub const PEERS: &str = "peers";
/// Maximum number of servers between data and client, in parallel or in series.
pub const MAX_CHAIN: usize = 64;
/// Timeout for the responses of the other servers of a chain.
pub const CHAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Response of a server about one data set: other servers of it, and the chain of servers that it comes through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetPeers {
    /// URLs of other servers that have the same data, with their tokens and fingerprints.
    pub peers: Vec<String>,
    /// Names of the servers between the data and the client, this one first; only their equality has a meaning.
    pub chain: Vec<String>,
}

impl DatasetPeers {
    /// Returns the peers that `server` named, without itself and malformed URLs. A peer without a token gets the token
    /// of `server`.
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

/// Request for the peers of a data set.
#[derive(Clone, Debug)]
pub struct PeersRequest {
    /// Name of the data set; empty for the only one.
    pub dataset: String,
}

impl RemoteOperation for PeersRequest {
    type Response = DatasetPeers;

    fn name(&self) -> &str {
        PEERS
    }

    fn parameters(&self) -> Result<Bytes> {
        Ok(DescribeParameters { name: self.dataset.clone() }.encode())
    }

    async fn answer(&self, replies: OpStream) -> Result<DatasetPeers> {
        let mut found: DatasetPeers =
            decode_json(&replies.with_bulk_up_to(0).only_item().await?.body, "the peers of a data set")?;
        // The response is not trusted; excess entries are dropped.
        found.peers.truncate(MAX_SERVERS);
        found.chain.truncate(MAX_CHAIN + 1);
        Ok(found)
    }
}

/// Asks the server of a data set for its peers and its chain.
///
/// # Errors
/// The errors of the request; `TimedOut`; `Unsupported` by servers of older versions.
pub async fn of(remote: &RemoteSource, within: Duration) -> Result<DatasetPeers> {
    let ask = PeersRequest { dataset: remote.name().to_owned() };
    let deadline = Instant::now() + within;
    let urgency = Urgency { priority: Priority::INTERACTIVE, deadline: Some(deadline.into_std()) };
    let answer = tokio::time::timeout_at(deadline, remote.dialer().ask(ask, urgency)).await;
    answer.unwrap_or_else(|_| Err(Error::new(ErrorKind::TimedOut, "a server did not report its peers")))
}
