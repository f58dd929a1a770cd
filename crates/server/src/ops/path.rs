//! Handler of the operation that reports the path to a client. The document is that of `GET /path`.

use std::net::IpAddr;

use array::{Error, Result};
use bytes::Bytes;
use client::paths::{self, PathSummary};
use link::quic::RejectionMonitor;
use wire::ops::{self, encode_json};

use super::{BeginOutcome, Handler, NodeState, OperationCall};

/// Reports the values that this host knows of the path to a client, with counts of the packets that its UDP port
/// rejected.
pub(crate) async fn of_client(node: &NodeState, client: IpAddr) -> Result<PathSummary> {
    let report = paths::of_client(&node.paths, client).await?;
    Ok(report.rejecting(node.rejecting.get().map(RejectionMonitor::so_far)))
}

/// Answers `path`: the known values of the path to the client.
pub struct PathHandler;

impl Handler for PathHandler {
    type Work = ();

    fn name(&self) -> &'static str {
        ops::PATH
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn is_forwarded(&self) -> bool {
        false
    }

    fn begin(&self, _parameters: Bytes) -> Result<BeginOutcome<()>> {
        Ok(BeginOutcome::Work(()))
    }

    async fn run(&self, (): (), call: &OperationCall) -> Result<()> {
        let peer = call.flow.as_ref().and_then(|flow| flow.peer());
        let unknown = "expected a connection by TCP or QUIC, found one without a known path";
        let peer = peer.ok_or_else(|| Error::unsupported(unknown))?;
        let report = of_client(&call.node, peer.ip()).await?;
        call.operation.item(encode_json(&report)?, Bytes::new()).await
    }
}
