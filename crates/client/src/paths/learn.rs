//! Requests to a server for its view of a path, and the storage of its response: the values that the server knows of
//! its direction to the client are the client's values of the incoming direction.

use std::sync::Arc;
use std::time::Duration;

use array::{ErrorKind, Priority, Result, Urgency};
use bytes::Bytes;
use link::{ClientHandle, Flow, OpStream};
use plan::{Direction, Measurement, PathReport};
use serde::Deserialize;
use wire::ops::{self, decode_json};

use super::{Paths, far_host, now};
use crate::requests::RemoteOperation;

/// Interval after which a connection that uses remembered values asks again.
const REFRESH_INTERVAL: Duration = Duration::from_secs(3600);

/// Request for the values that the server knows of its direction to this client.
struct PathRequest;

/// The part of a report that the other side needs.
#[derive(Deserialize)]
struct ReportedSending {
    to: PathReport,
}

impl RemoteOperation for PathRequest {
    type Response = PathReport;

    fn name(&self) -> &str {
        ops::PATH
    }

    fn parameters(&self) -> Result<Bytes> {
        Ok(Bytes::new())
    }

    async fn answer(&self, replies: OpStream) -> Result<PathReport> {
        read(&replies.with_bulk_up_to(0).only_item().await?.body)
    }
}

/// Parses a report, and returns its values of the direction from the host that wrote it.
///
/// # Errors
/// `Corrupt` if it is not a report.
pub fn read(report: &[u8]) -> Result<PathReport> {
    Ok(decode_json::<ReportedSending>(report, "the report of a path")?.to)
}

/// Asks the server at the other end and remembers its response; returns whether the response contained values.
///
/// # Errors
/// The operation's error; `Unsupported` by servers without this operation.
///
/// # Cancel safety
/// Dropping the future withdraws the request.
pub(super) async fn ask(handle: &ClientHandle, paths: &Paths, host: std::net::IpAddr) -> Result<bool> {
    let replies =
        handle.request(PathRequest.name(), PathRequest.parameters()?, Urgency::of(Priority::NORMAL)).await?;
    let report = PathRequest.answer(replies).await?;
    let has_values = !report.is_empty();
    if has_values {
        paths.record(host, vec![Measurement::Report(Box::new(report))]);
    }
    Ok(has_values)
}

/// Asks after the handshake, unless there is a recent response; does nothing for this machine itself.
///
/// # Cancel safety
/// Dropping the future withdraws the request.
pub(crate) async fn learn(handle: ClientHandle, paths: Paths, flow: Arc<dyn Flow>) {
    let Some(host) = far_host(&*flow) else { return };
    let known = paths.recall(host, None).await;
    let reported_for = known.and_then(|known| known.path.one_way(Direction::Down).reported_for(now()));
    if reported_for.is_some_and(|age| age < REFRESH_INTERVAL) || handle.welcomed().await.is_err() {
        return;
    }
    match ask(&handle, &paths, host).await {
        Err(error) if error.kind() != ErrorKind::Unsupported => {
            tracing::debug!(%host, %error, "the server did not report its values of the path");
        }
        _ => {}
    }
}
