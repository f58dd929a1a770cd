//! `stats`: extremes, mean and histogram of decoded values, gathered in the memory that the gate gives.

use std::sync::Arc;

use array::Result;
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use wire::ops::{self, StatsRequest};

use super::{Call, Handler};
use crate::statistics::MOST_BYTES;

pub(super) struct Stats;

impl Handler for Stats {
    fn name(&self) -> &'static str {
        ops::STATS
    }

    fn answer(&self, call: Arc<Call>) -> BoxFuture<'static, Result<()>> {
        async move {
            let request = StatsRequest::decode(call.operation.parameters())?;
            let (stack, _) = call.node.exports.at(&request.place).await?;
            let mut memory = call.enter(MOST_BYTES).await;
            let stats = stack.stats(&request, call.operation.urgency(), memory.admitted().await).await?;
            call.operation.item(stats.encode()?, Bytes::new()).await
        }
        .boxed()
    }
}
