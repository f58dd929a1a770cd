//! Which other servers have the same data: the operation `peers`, both sides of it.
//!
//! A server is told of its peers (`serve --peer`) and tells its clients, so that one URL is enough to read from all of
//! them. It also tells through which servers it has its data, where it has them from another one: a chain that comes
//! back to where it began would ask for ever, and is refused when the server starts that would close it.

use std::collections::BTreeSet;
use std::time::Duration;

use array::{Error, ErrorKind, Priority, Result, Urgency};
use bytes::Bytes;
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use wire::ops::Describe;

use crate::assemble::Stack;
use crate::client::remote::RemoteSource;
use crate::client::requests::Ask;
use crate::client::servers::MAX_SERVERS;
use crate::client::url::Url;
use crate::ops::{Begun, Call, Handler, OpStream, decode_json, encode_json};
use crate::server::exports::Export;

/// The operation's name.
pub const PEERS: &str = "peers";
/// Most servers between data and client, side by side or behind one another.
pub const MAX_CHAIN: usize = 64;
/// How long the other servers of a chain may take to say what they are.
pub(crate) const CHAIN_WITHIN: Duration = Duration::from_secs(5);

/// Time for which an answer about a chain is taken as valid.
const CHAIN_HOLDS: Duration = Duration::from_secs(1);

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
    pub(crate) fn others(&self, server: &Url) -> Vec<Url> {
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
pub struct AskPeers {
    /// The data set; empty for the only one.
    pub dataset: String,
}

impl Ask for AskPeers {
    type Answer = Peers;

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

/// The server's side.
pub(crate) struct TellPeers;

impl Handler for TellPeers {
    type Work = Describe;

    fn name(&self) -> &'static str {
        PEERS
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn begin(&self, parameters: Bytes) -> Result<Begun<Describe>> {
        Describe::decode(parameters).map(Begun::Work)
    }

    async fn run(&self, asked: Describe, call: &Call) -> Result<()> {
        let node = &call.node;
        let export = node.exports.find(&asked.name).await?;
        let is_only_one = node.exports.all().len() == 1;
        let peers = told(&node.peers, &export.name, is_only_one);
        let mut chain = vec![node.name.get().cloned().unwrap_or_default()];
        // Half of the time that is left: whoever asks has to hear of it before it gives up.
        let deadline = call.operation.urgency().deadline.map(Instant::from_std);
        let left = deadline.map_or(CHAIN_WITHIN, |at| at.saturating_duration_since(Instant::now()));
        chain.extend(behind(&export, left.min(CHAIN_WITHIN) / 2).await);
        call.operation.item(encode_json(&Peers { peers, chain })?, Bytes::new()).await
    }
}

/// The peers that have a data set: those named without one have the same names as here.
fn told(peers: &[Url], export: &str, is_only_one: bool) -> Vec<String> {
    let has_it = |peer: &&Url| peer.dataset.is_empty() || peer.dataset == export || is_only_one;
    let url = |peer: &Url| {
        let dataset = if peer.dataset.is_empty() { export.to_owned() } else { peer.dataset.clone() };
        Url { dataset, array: String::new(), ..peer.clone() }.to_string()
    };
    peers.iter().filter(has_it).map(url).collect()
}

/// The servers through which an export has its data, nearest first: as they say within a time. While one of them does not
/// answer, those that were heard of last count too.
async fn behind(export: &Export, within: Duration) -> Vec<String> {
    // Each question here is one to every server behind.
    let mut heard_at = export.chain_heard.lock().await;
    if heard_at.is_some_and(|at| at.elapsed() < CHAIN_HOLDS) {
        return export.chain.lock().clone();
    }
    // What is not open lies in a folder here, and has nobody behind it.
    let Some(stack) = export.open_stack() else { return Vec::new() };
    let (heard, is_whole) = heard(&stack, within).await;
    *heard_at = Some(Instant::now());
    let mut known = export.chain.lock();
    let last = if is_whole { Vec::new() } else { known.clone() };
    let mut seen = BTreeSet::new();
    let all = heard.into_iter().chain(last).filter(|name| seen.insert(name.clone()));
    *known = all.take(MAX_CHAIN).collect();
    known.clone()
}

/// The servers through which a stack has its data, as they say within a time, and whether all have answered.
async fn heard(stack: &Stack, within: Duration) -> (Vec<String>, bool) {
    // Every data set of every server has a chain of its own.
    let asked = join_all(stack.upstream().readers().map(|remote| of(remote, within))).await;
    let is_whole = asked.iter().all(Result::is_ok);
    (asked.into_iter().flatten().flat_map(|peers| peers.chain).collect(), is_whole)
}

/// Asks the server of a data set for its peers and its chain.
///
/// # Errors
/// Those of asking; `TimedOut`; `Unsupported` from servers of older versions.
pub async fn of(remote: &RemoteSource, within: Duration) -> Result<Peers> {
    let ask = AskPeers { dataset: remote.name().to_owned() };
    let deadline = Instant::now() + within;
    let urgency = Urgency { priority: Priority::INTERACTIVE, deadline: Some(deadline.into_std()) };
    let answer = tokio::time::timeout_at(deadline, remote.dialer().ask(ask, urgency)).await;
    answer.unwrap_or_else(|_| Err(Error::new(ErrorKind::TimedOut, "a server did not say what its peers are")))
}

/// Checks that an export's data do not come from the server called `name` itself. The export remembers that name.
///
/// # Errors
/// `Invalid` for a loop, or a chain of more than [`MAX_CHAIN`] servers.
pub(crate) async fn check_chain(export: &Export, name: &str) -> Result<()> {
    export.server_name.get_or_init(|| name.to_owned());
    check(&behind(export, CHAIN_WITHIN).await, &export.name, name)
}

/// Checks, as [`check_chain`] does, a stack that an export is to have.
///
/// # Errors
/// As [`check_chain`].
pub(crate) async fn check_upstream(stack: &Stack, name: &str) -> Result<()> {
    check(&heard(stack, CHAIN_WITHIN).await.0, &stack.name, name)
}

fn check(chain: &[String], data: &str, name: &str) -> Result<()> {
    let through = |chain: &[String]| chain.join("` - `");
    if let Some(at) = chain.iter().position(|server| server == name) {
        return Err(Error::invalid(format!(
            "expected data of another server, found that `{data}` come from this one, through `{}`",
            through(&chain[..=at])
        )));
    }
    if chain.len() >= MAX_CHAIN {
        let found = through(chain);
        return Err(Error::invalid(format!(
            "expected a chain of at most {MAX_CHAIN} servers, found `{found}`"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_without_a_data_set_have_all_and_others_their_own() {
        let peers: Vec<Url> = ["corridor://a:1#token=t", "corridor://b:1/x", "corridor://c:1/y/u"]
            .map(|url| url.parse().unwrap())
            .to_vec();
        assert_eq!(told(&peers, "x", false), ["corridor://a:1/x#token=t", "corridor://b:1/x"]);
        assert_eq!(
            told(&peers, "z", true),
            ["corridor://a:1/z#token=t", "corridor://b:1/x", "corridor://c:1/y"],
            "the only data set may have another name there"
        );
    }
}
