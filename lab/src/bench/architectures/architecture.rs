//! Ways of doing many operations, and the connections that they do them over.

use std::any::Any;

use array::{Error, Priority, Result, Urgency};
use bytes::Bytes;
use futures::future::BoxFuture;
use link::{ClientHandle, OpStream};
use wire::ops;

/// Connections at a time of the ways that have several; a server takes 64 of one network.
pub(super) const CONNECTIONS: usize = 48;
/// Operations under way at a time of the ways that wait for nothing; the server may take fewer and then has the rest wait.
pub(super) const UNDER_WAY: usize = 65_536;

/// Gives connections to one server.
pub(super) trait ConnectionSource: Send + Sync {
    /// A new connection, ready for operations.
    fn connect(&self) -> BoxFuture<'_, Result<KeptConnection>>;
}

/// A way of doing many operations.
pub(super) trait Architecture: Sync {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// Connections that it keeps from one operation to the next.
    fn kept_connections(&self) -> usize;

    /// Operations that it has under way at a time, at most.
    fn most_under_way(&self) -> usize;

    /// Round trips that an operation waits for, with those of connecting.
    fn round_trips(&self) -> u32 {
        1
    }

    /// Does all operations over its kept `connections`, or new ones of `site`; answers in the order of asking.
    fn run<'a>(
        &'a self,
        site: &'a dyn ConnectionSource,
        kept: &'a [KeptConnection],
        asks: &'a [Bytes],
    ) -> AnswersFuture<'a>;
}

pub(super) type AnswersFuture<'a> = BoxFuture<'a, Result<Vec<Bytes>>>;

/// A connection, with what keeps it alive.
pub(super) struct KeptConnection {
    pub(super) handle: ClientHandle,
    pub(super) _kept: Box<dyn Any + Send + Sync>,
}

impl KeptConnection {
    /// Asks as soon as there is room.
    pub(super) async fn ask(&self, parameters: &Bytes) -> Result<OpStream> {
        self.handle.request(ops::READ, parameters.clone(), Urgency::of(Priority::NORMAL)).await
    }

    /// Asks and waits for the answer.
    pub(super) async fn read(&self, parameters: &Bytes) -> Result<Bytes> {
        answer(self.ask(parameters).await?).await
    }
}

/// The only answer to an operation.
pub(super) async fn answer(mut operation: OpStream) -> Result<Bytes> {
    let mut bulk = Bytes::new();
    while let Some(item) = operation.next_item().await {
        bulk = item?.bulk;
    }
    Ok(bulk)
}

/// The connection of an architecture that keeps a single one.
pub(super) fn only(kept: &[KeptConnection]) -> Result<&KeptConnection> {
    kept.first().ok_or_else(|| Error::internal("expected a connection, found none"))
}
