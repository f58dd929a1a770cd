//! The client's side of operations, and of the standard operations that answer with one item.

use std::sync::Arc;

use array::{Dataset, Result};
use bytes::Bytes;
use link::OpStream;
use wire::ops::{
    self, DescribeParameters, GeometryBody, GeometryParameters, ListEntry, MAX_GEOMETRY_PIECE_BYTES,
    StatsAnswer, StatsParameters,
};

/// One operation as a client requests it; the server has a handler of the same name.
///
/// [`Dialer::ask`](crate::dial::Dialer::ask) waits for the response, [`Dialer::tell`](crate::dial::Dialer::tell) is
/// one-way.
pub trait RemoteOperation: Send + Sync {
    /// Type of the response.
    type Response: Send;

    /// Registered name of the operation, at most 64 bytes.
    fn name(&self) -> &str;

    /// Encodes the parameters, at most 1 MiB.
    ///
    /// # Errors
    /// The reason that they cannot be encoded.
    fn parameters(&self) -> Result<Bytes>;

    /// Reads the response: one item ([`OpStream::only_item`]), several, or pieces as they arrive. Its content is not
    /// trusted. Dropping the stream cancels the operation. The request is sent again if a server was too busy, or if
    /// another server may answer.
    ///
    /// # Errors
    /// The operation's error; `Corrupt` if the response has another form.
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

impl RemoteOperation for DescribeParameters {
    type Response = Arc<Dataset>;

    fn name(&self) -> &str {
        ops::DESCRIBE
    }

    fn parameters(&self) -> Result<Bytes> {
        Ok(self.encode())
    }

    async fn answer(&self, replies: OpStream) -> Result<Arc<Dataset>> {
        let item = replies.with_bulk_up_to(ops::MAX_DESCRIPTION_BYTES as u64).only_item().await?;
        // A description may exceed the maximum size of a body: it is then sent as bulk data.
        let text = if item.body.is_empty() { &item.bulk } else { &item.body };
        ops::decode_dataset(text).map(Arc::new)
    }
}

impl RemoteOperation for StatsParameters {
    type Response = StatsAnswer;

    fn name(&self) -> &str {
        ops::STATS
    }

    fn parameters(&self) -> Result<Bytes> {
        Ok(self.encode())
    }

    async fn answer(&self, replies: OpStream) -> Result<StatsAnswer> {
        StatsAnswer::decode(&replies.with_bulk_up_to(0).only_item().await?.body)
    }
}

impl RemoteOperation for GeometryParameters {
    type Response = (GeometryBody, Bytes);

    fn name(&self) -> &str {
        ops::GEOMETRY
    }

    fn parameters(&self) -> Result<Bytes> {
        Ok(self.encode())
    }

    async fn answer(&self, replies: OpStream) -> Result<(GeometryBody, Bytes)> {
        let item = replies.with_bulk_up_to(MAX_GEOMETRY_PIECE_BYTES as u64).only_item().await?;
        Ok((GeometryBody::decode(item.body)?, item.bulk))
    }
}
