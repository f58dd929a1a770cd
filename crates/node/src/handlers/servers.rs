//! Operation `servers`: reports the servers that a viewing node reads from, with the amount of data from each and their
//! availability, for display in the viewer.

use std::time::Duration;

use array::{Error, Result};
use bytes::Bytes;
use serde_json::{Value, json};
use server::ops::{BeginOutcome, Handler, OperationCall};
use tokio::time::MissedTickBehavior;
use wire::ops::{self, encode_json};

use crate::describe;

/// Interval at which the state is checked, and sent if it has changed.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Answers `servers`: sends the state, and later each change of it, until the operation is cancelled.
pub(crate) struct ServersHandler;

impl Handler for ServersHandler {
    type Work = ();

    fn name(&self) -> &'static str {
        ops::SERVERS
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
        let all = call.node.exports.all();
        let [export] = &*all else {
            return Err(Error::unsupported(
                "`servers` needs a server of a single data set; this one has several",
            ));
        };
        let mut sent = Value::Null;
        let mut ticks = tokio::time::interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now = describe::servers(&export.stack().await?.servers());
            if now != sent {
                call.operation.room().await;
                call.operation.item(body(&now)?, Bytes::new()).await?;
                sent = now;
            }
        }
    }
}

/// Encodes the body of an item.
pub(crate) fn body(servers: &Value) -> Result<Bytes> {
    encode_json(&json!({"servers": servers}))
}
