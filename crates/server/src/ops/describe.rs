//! `describe`: one data set's description.

use array::Result;
use bytes::Bytes;
use wire::limits::MAX_BODY_BYTES;
use wire::ops;

use super::{BeginOutcome, Handler, OperationCall};

/// Answers `describe`: the description of one data set.
pub struct DescribeHandler;

impl Handler for DescribeHandler {
    type Work = ops::DescribeParameters;

    fn name(&self) -> &'static str {
        ops::DESCRIBE
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<ops::DescribeParameters>> {
        ops::DescribeParameters::decode(parameters).map(BeginOutcome::Work)
    }

    async fn run(&self, asked: ops::DescribeParameters, call: &OperationCall) -> Result<()> {
        let text = call.node.exports.find(&asked.name).await?.encoded().await?;
        // A description that exceeds the maximum size of a body is sent as bulk data.
        let (body, bulk) =
            if text.len() > MAX_BODY_BYTES { (Bytes::new(), text) } else { (text, Bytes::new()) };
        call.operation.item(body, bulk).await
    }
}
