//! The operations a node answers, registered by name. A user's own operation is one more [`Handler`] here and one
//! more [`Ask`](crate::dial::Ask) on the other side.

mod describe;
mod list;
mod read;
mod read_block;
mod stats;

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{Error, Result};
use futures::future::BoxFuture;
use link::{Change, Operation};

use crate::exports::Exports;
use crate::gate::{ClientId, Entry, Gate};

/// One kind of operation. The server's side of a registered operation.
pub trait Handler: Send + Sync + 'static {
    /// Its name on the wire.
    fn name(&self) -> &'static str;

    /// Answers one call: items, in any number. The caller says *done* or *failed* afterwards. It is dropped when
    /// the client withdraws the operation, unless [`hears_changes`](Self::hears_changes).
    ///
    /// # Errors
    /// What the client is told.
    fn answer(&self, call: Arc<Call>) -> BoxFuture<'static, Result<()>>;

    /// True when it listens to notes, adjustments and withdrawal itself.
    fn hears_changes(&self) -> bool {
        false
    }
}

/// One call of an operation.
pub struct Call {
    /// The operation on the wire.
    pub operation: Operation,
    /// Who asks.
    pub client: ClientId,
    /// What there is.
    pub node: Arc<Shared>,
}

/// What all operations of a node share.
pub struct Shared {
    /// The data sets.
    pub exports: Exports,
    /// Memory for answers that are being prepared.
    pub gate: Gate,
}

impl Call {
    /// Waits for room in the connection, then at the node's gate for up to `most_bytes` of memory: how many it got
    /// is [`Entry::admitted`]'s. Nothing is held while waiting for the peer.
    pub(crate) async fn enter(&self, most_bytes: u64) -> Entry {
        self.operation.room().await;
        let gate = &self.node.gate;
        let least_bytes = gate.own_bytes().min(most_bytes);
        let mut entry = gate.enter(self.client, self.operation.urgency(), least_bytes, most_bytes);
        entry.admitted().await;
        entry
    }
}

/// Operations by name.
#[derive(Clone, Default)]
pub struct Registry(BTreeMap<&'static str, Arc<dyn Handler>>);

impl Registry {
    /// What every data server answers.
    #[must_use]
    pub fn of_data_server() -> Self {
        let mut registry = Self::default();
        registry.add(Arc::new(list::List));
        registry.add(Arc::new(describe::Describe));
        registry.add(Arc::new(read::Read));
        registry.add(Arc::new(read_block::ReadBlock));
        registry.add(Arc::new(stats::Stats));
        registry
    }

    /// Adds an operation, or replaces the one of its name.
    pub fn add(&mut self, handler: Arc<dyn Handler>) {
        self.0.insert(handler.name(), handler);
    }

    /// Answers a call to its end.
    pub(crate) async fn run(&self, call: Arc<Call>) {
        let result = match self.0.get(call.operation.name()) {
            None => Err(self.unknown(call.operation.name())),
            Some(handler) if handler.hears_changes() => handler.answer(Arc::clone(&call)).await,
            Some(handler) => {
                tokio::select! {
                    biased;
                    () = withdrawn(&call.operation) => Err(Error::cancelled()),
                    result = handler.answer(Arc::clone(&call)) => result,
                }
            }
        };
        match result {
            Ok(()) => call.operation.done(),
            Err(error) => {
                tracing::debug!(operation = call.operation.name(), %error, "failed");
                call.operation.fail(error);
            }
        }
    }

    fn unknown(&self, name: &str) -> Error {
        let names: Vec<&str> = self.0.keys().copied().collect();
        Error::unsupported(format!("expected one of the operations {names:?}, found `{name}`"))
    }
}

async fn withdrawn(operation: &Operation) {
    while operation.changed().await != Change::Cancelled {}
}
