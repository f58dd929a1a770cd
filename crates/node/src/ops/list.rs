//! `list`: what data sets there are.

use std::sync::Arc;

use array::Result;
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use wire::ops::{self, ListEntry};

use super::{Call, Handler};

pub(super) struct List;

impl Handler for List {
    fn name(&self) -> &'static str {
        ops::LIST
    }

    fn answer(&self, call: Arc<Call>) -> BoxFuture<'static, Result<()>> {
        async move {
            let entries = call.node.exports.list().await;
            call.operation.item(ListEntry::encode_all(&entries)?, Bytes::new()).await
        }
        .boxed()
    }
}
