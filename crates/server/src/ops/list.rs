//! `list`: the data sets of the server.

use array::Result;
use bytes::Bytes;
use wire::ops::{self, ListEntry};

use super::{BeginOutcome, Handler, OperationCall};

/// Answers `list`: the data sets of the server.
pub struct ListHandler;

impl Handler for ListHandler {
    type Work = ();

    fn name(&self) -> &'static str {
        ops::LIST
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
        let entries = call.node.exports.list().await;
        call.operation.item(ListEntry::encode_all(&entries)?, Bytes::new()).await
    }
}
