//! Operations that are called by name over data of another server: that server runs them, and its response is
//! forwarded. If it does not know the operation, the data are fetched and the operation runs here.

use array::{Error, ErrorKind, Result};
use bytes::Bytes;
use client::remote::RemoteSource;
use client::remote_call::CallRequest;
use client::upstream::another_may_answer;
use link::{OpStream, Reply};
use serde_json::Value;

use super::OperationCall;
use crate::answer_memory::MemoryReservation;

/// Result of forwarding a call to another server.
pub(super) enum Forwarded {
    /// The call was answered.
    Answered,
    /// No other server has the data, or knows the operation.
    NotThere,
}

/// Forwards `call` to a server that has the data.
///
/// # Errors
/// The error of that server; `Stale` if the data have changed.
///
/// # Cancel safety
/// Dropping the future cancels the operation there.
pub(super) async fn forward(call: &OperationCall) -> Result<Forwarded> {
    let Some(asked) = parsed(&call.operation.parameters()) else { return Ok(Forwarded::NotThere) };
    let (stack, _) = call.node.exports.at(&asked.of.place()).await?;
    let mut last = None;
    let (remotes, there) = stack.upstream.computing(&asked.of.place()).await?;
    let parameters = CallRequest { of: asked.of.at(there), ..asked }.encode()?;
    for remote in remotes {
        match forward_to(call, remote, &parameters).await {
            Ok(()) => return Ok(Forwarded::Answered),
            Err(ForwardError { error, is_begun: false }) if error.kind() == ErrorKind::Unsupported => {}
            Err(ForwardError { error, is_begun: false }) if another_may_answer(&error) => last = Some(error),
            Err(ForwardError { error, .. }) => return Err(error),
        }
    }
    last.map_or(Ok(Forwarded::NotThere), Err)
}

/// Parses parameters that name the elements of the operation as a [`CallRequest`]; `None` for others.
fn parsed(parameters: &[u8]) -> Option<CallRequest<Value>> {
    parameters.starts_with(b"{").then(|| CallRequest::parse(parameters).ok()).flatten()
}

/// Error of a response that did not arrive completely.
struct ForwardError {
    error: Error,
    /// Whether a part of it was forwarded already.
    is_begun: bool,
}

async fn forward_to(
    call: &OperationCall,
    remote: &RemoteSource,
    parameters: &Bytes,
) -> std::result::Result<(), ForwardError> {
    let before = |error| ForwardError { error, is_begun: false };
    let urgency = call.operation.urgency();
    let name = call.operation.name();
    let mut replies =
        remote.dialer().begin_operation(name, parameters.clone(), urgency).await.map_err(before)?;
    let first = match replies.next().await {
        Some(Err(error)) => return Err(before(error)),
        first => first.transpose().map_err(before)?,
    };
    forward_replies(call, first, &mut replies).await.map_err(|error| ForwardError { error, is_begun: true })
}

/// An item that has not arrived completely.
struct PartialReply {
    item: u32,
    body: Bytes,
    memory: MemoryReservation,
    bulk: Vec<u8>,
}

/// Forwards items, each when it is complete. Items of one operation arrive one after another. Their memory counts
/// toward the limit of this server: no more is taken from the other server than the client takes.
async fn forward_replies(call: &OperationCall, first: Option<Reply>, replies: &mut OpStream) -> Result<()> {
    let mut open: Option<PartialReply> = None;
    let mut next = first;
    while let Some(reply) = next {
        match reply {
            Reply::Item { body, bulk_bytes: 0, .. } => call.operation.item(body, Bytes::new()).await?,
            Reply::Item { .. } if open.is_some() => {
                return Err(Error::corrupt(
                    "expected an item to be complete before the next one of its operation",
                ));
            }
            Reply::Item { item, body, bulk_bytes } => {
                let memory = call.enter_whole(bulk_bytes).await;
                open = Some(PartialReply { item, body, memory, bulk: Vec::new() });
            }
            Reply::Piece { item, bytes, complete, .. } => {
                let of_item = open.as_mut().filter(|open| open.item == item);
                let missing = || Error::corrupt("expected a piece of an open item");
                of_item.ok_or_else(missing)?.bulk.extend_from_slice(&bytes);
                if complete && let Some(PartialReply { body, memory, bulk, .. }) = open.take() {
                    call.operation.item(body, memory.hold(bulk)).await?;
                }
            }
        }
        next = replies.next().await.transpose()?;
    }
    Ok(())
}
