//! The server's side of the operation `peers`, and the check of the chain of servers that data come through. A chain
//! with a loop would repeat requests without end, so a server that would close a loop refuses to start.

use std::collections::BTreeSet;
use std::time::Duration;

use array::{Error, Result};
use bytes::Bytes;
use client::peers::{CHAIN_TIMEOUT, DatasetPeers, MAX_CHAIN, PEERS, of};
use client::url::Url;
use futures::future::join_all;
use tokio::time::Instant;
use wire::ops::{DescribeParameters, encode_json};

use crate::exports::Export;
use crate::ops::{BeginOutcome, Handler, OperationCall};
use crate::stack::Stack;

/// Time for which a response about a chain is cached.
const CHAIN_VALID_FOR: Duration = Duration::from_secs(1);

/// Answers `peers`: the peers of a data set, and the servers that it comes through.
pub struct PeersHandler;

impl Handler for PeersHandler {
    type Work = DescribeParameters;

    fn name(&self) -> &'static str {
        PEERS
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<DescribeParameters>> {
        DescribeParameters::decode(parameters).map(BeginOutcome::Work)
    }

    async fn run(&self, asked: DescribeParameters, call: &OperationCall) -> Result<()> {
        let node = &call.node;
        let export = node.exports.find(&asked.name).await?;
        let is_only_one = node.exports.all().len() == 1;
        let peers = named_peers(&node.peers, &export.name, is_only_one);
        let mut chain = vec![node.name.get().cloned().unwrap_or_default()];
        // Half of the remaining time: the client has to get the response before it gives up.
        let deadline = call.operation.urgency().deadline.map(Instant::from_std);
        let left = deadline.map_or(CHAIN_TIMEOUT, |at| at.saturating_duration_since(Instant::now()));
        chain.extend(upstream_chain(&export, left.min(CHAIN_TIMEOUT) / 2).await);
        call.operation.item(encode_json(&DatasetPeers { peers, chain })?, Bytes::new()).await
    }
}

/// Returns the peers that have a data set: those configured without a data set have the same names as this server.
fn named_peers(peers: &[Url], export: &str, is_only_one: bool) -> Vec<String> {
    let has_it = |peer: &&Url| peer.dataset.is_empty() || peer.dataset == export || is_only_one;
    let url = |peer: &Url| {
        let dataset = if peer.dataset.is_empty() { export.to_owned() } else { peer.dataset.clone() };
        Url { dataset, array: String::new(), ..peer.clone() }.to_string()
    };
    peers.iter().filter(has_it).map(url).collect()
}

/// Returns the servers that an export's data come through, nearest first, according to their responses within a time
/// limit. If one of them does not respond, the last known ones are included.
async fn upstream_chain(export: &Export, within: Duration) -> Vec<String> {
    // Each request here causes one to every server behind this one.
    let mut heard_at = export.chain_heard.lock().await;
    if heard_at.is_some_and(|at| at.elapsed() < CHAIN_VALID_FOR) {
        return export.chain.lock().clone();
    }
    // A closed data set is a file in a folder here, without servers behind it.
    let Some(stack) = export.open_stack() else { return Vec::new() };
    let (heard, is_whole) = query_chain(&stack, within).await;
    *heard_at = Some(Instant::now());
    let mut known = export.chain.lock();
    let last = if is_whole { Vec::new() } else { known.clone() };
    let mut seen = BTreeSet::new();
    let all = heard.into_iter().chain(last).filter(|name| seen.insert(name.clone()));
    *known = all.take(MAX_CHAIN).collect();
    known.clone()
}

/// Returns the servers that a stack's data come through, according to their responses within a time limit, and whether
/// all have responded.
async fn query_chain(stack: &Stack, within: Duration) -> (Vec<String>, bool) {
    // Every data set of every server has a chain of its own.
    let asked = join_all(stack.upstream.readers().map(|remote| of(remote, within))).await;
    let is_whole = asked.iter().all(Result::is_ok);
    (asked.into_iter().flatten().flat_map(|peers| peers.chain).collect(), is_whole)
}

/// Checks that an export's data do not come from the server called `name` itself. The export remembers that name.
///
/// # Errors
/// `Invalid` for a loop, or a chain of more than [`MAX_CHAIN`] servers.
pub async fn check_chain(export: &Export, name: &str) -> Result<()> {
    export.server_name.get_or_init(|| name.to_owned());
    check(&upstream_chain(export, CHAIN_TIMEOUT).await, &export.name, name)
}

/// Checks a stack that an export is about to use, as [`check_chain`] does.
///
/// # Errors
/// As [`check_chain`].
pub(crate) async fn check_upstream(stack: &Stack, name: &str) -> Result<()> {
    check(&query_chain(stack, CHAIN_TIMEOUT).await.0, &stack.name, name)
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
    fn peers_without_a_data_set_have_all_and_others_only_the_named_one() {
        let peers: Vec<Url> = ["corridor://a:1#token=t", "corridor://b:1/x", "corridor://c:1/y/u"]
            .map(|url| url.parse().unwrap())
            .to_vec();
        assert_eq!(named_peers(&peers, "x", false), ["corridor://a:1/x#token=t", "corridor://b:1/x"]);
        assert_eq!(
            named_peers(&peers, "z", true),
            ["corridor://a:1/z#token=t", "corridor://b:1/x", "corridor://c:1/y"],
            "the only data set may have another name there"
        );
    }
}
