//! `stats`: extremes, mean and histogram of decoded values, computed within the memory limit of the node.

use array::Result;
use bytes::Bytes;
use export::statistics::MAX_MEMORY_BYTES;
use wire::ops::{self, StatsParameters};

use super::{BeginOutcome, Handler, OperationCall};

/// Answers `stats`: statistics of decoded values.
pub struct StatsHandler;

impl Handler for StatsHandler {
    type Work = StatsParameters;

    fn name(&self) -> &'static str {
        ops::STATS
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<StatsParameters>> {
        StatsParameters::decode(parameters).map(BeginOutcome::Work)
    }

    async fn run(&self, request: StatsParameters, call: &OperationCall) -> Result<()> {
        let (stack, _) = call.node.exports.at(&request.place).await?;
        let mut memory = call.enter(MAX_MEMORY_BYTES).await;
        let stats = stack.stats(&request, call.operation.urgency(), memory.admitted().await).await?;
        call.operation.item(stats.encode()?, Bytes::new()).await
    }
}
