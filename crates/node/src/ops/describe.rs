//! `describe`: one data set's description.

use std::sync::Arc;

use array::Result;
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use wire::limits::MAX_BODY_BYTES;
use wire::ops;

use super::{Call, Handler};

pub(super) struct Describe;

impl Handler for Describe {
    fn name(&self) -> &'static str {
        ops::DESCRIBE
    }

    fn answer(&self, call: Arc<Call>) -> BoxFuture<'static, Result<()>> {
        async move {
            let asked = ops::Describe::decode(call.operation.parameters())?;
            let text = call.node.exports.find(&asked.name)?.encoded().await?;
            // The rare description that is longer than a body may be travels as bulk.
            let (body, bulk) =
                if text.len() > MAX_BODY_BYTES { (Bytes::new(), text) } else { (text, Bytes::new()) };
            call.operation.item(body, bulk).await
        }
        .boxed()
    }
}
