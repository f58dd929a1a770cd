//! The asking side of operations, and of those that everybody has and that answer with one item.

use std::sync::Arc;

use array::{Dataset, Result};
use bytes::Bytes;
use link::OpStream;
use wire::ops::{self, Describe, ListEntry, Stats, StatsRequest};

/// One operation as a client asks for it; the server has a handler of the same name.
///
/// [`Dialer::ask`](crate::dial::Dialer::ask) waits for the answer, [`Dialer::tell`](crate::dial::Dialer::tell) asks
/// one-way.
pub trait RemoteOperation: Send + Sync {
    /// Type of the answer.
    type Response: Send;

    /// The operation's registered name, at most 64 bytes.
    fn name(&self) -> &str;

    /// Encoded parameters, at most 1 MiB.
    ///
    /// # Errors
    /// Why they cannot be said.
    fn parameters(&self) -> Result<Bytes>;

    /// Reads the answer: one item ([`OpStream::only_item`]), several, or pieces as they come. Nothing in it can be
    /// trusted. Dropping the stream cancels the operation. It is asked again where a server was too busy, or another
    /// server may answer.
    ///
    /// # Errors
    /// The operation's; `Corrupt` when the answer is something else.
    fn answer(&self, replies: OpStream) -> impl Future<Output = Result<Self::Response>> + Send;
}

/// Operation that lists the data sets of a server.
#[derive(Clone, Copy, Debug)]
pub struct List;

impl RemoteOperation for List {
    type Response = Vec<ListEntry>;

    fn name(&self) -> &str {
        ops::LIST
    }

    fn parameters(&self) -> Result<Bytes> {
        Ok(Bytes::new())
    }

    async fn answer(&self, replies: OpStream) -> Result<Vec<ListEntry>> {
        ListEntry::decode_all(&replies.with_bulk_up_to(0).only_item().await?.body)
    }
}

impl RemoteOperation for Describe {
    type Response = Arc<Dataset>;

    fn name(&self) -> &str {
        ops::DESCRIBE
    }

    fn parameters(&self) -> Result<Bytes> {
        Ok(self.encode())
    }

    async fn answer(&self, replies: OpStream) -> Result<Arc<Dataset>> {
        let item = replies.with_bulk_up_to(ops::MAX_DESCRIPTION_BYTES as u64).only_item().await?;
        // A description may be longer than a body may: then it comes as bulk.
        let text = if item.body.is_empty() { &item.bulk } else { &item.body };
        ops::decode_dataset(text).map(Arc::new)
    }
}

impl RemoteOperation for StatsRequest {
    type Response = Stats;

    fn name(&self) -> &str {
        ops::STATS
    }

    fn parameters(&self) -> Result<Bytes> {
        Ok(self.encode())
    }

    async fn answer(&self, replies: OpStream) -> Result<Stats> {
        Stats::decode(&replies.with_bulk_up_to(0).only_item().await?.body)
    }
}
