//! The operations a node answers, registered by name. A user's own operation is one more [`Handler`] here and one
//! more [`Ask`](crate::asks::Ask) on the other side; `examples/operations` has three.

mod describe;
mod list;
mod read;
mod read_block;
mod stats;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use array::{Error, ErrorKind, Result};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
pub use link::{Change, Item, OpStream, Operation, Reply};
pub use wire::ops::{BlockPlace, decode_json, encode_json};

use crate::exports::Exports;
use crate::gate::{ClientId, Entry, Gate};
use crate::peers::TellPeers;
use crate::url::Url;

/// One kind of operation. The server's side of a registered operation.
pub trait Handler: Send + Sync + 'static {
    /// What [`begin`](Self::begin) leaves to [`run`](Self::run): usually the parameters, read.
    type Work: Send + 'static;

    /// Its name on the wire, at most 64 bytes.
    fn name(&self) -> &'static str;

    /// Reads and checks the parameters, the most urgent first, within one priority in the order in which a client asked. Nothing else of the connection moves
    /// meanwhile: it takes microseconds.
    ///
    /// # Errors
    /// What the client is told; `Invalid` for parameters that are none.
    fn begin(&self, parameters: Bytes) -> Result<Begun<Self::Work>>;

    /// Does the work and answers: items, in any number. The caller says *done* or *failed* afterwards. It is dropped
    /// when the client withdraws the operation, unless [`hears_changes`](Self::hears_changes).
    ///
    /// # Errors
    /// What the client is told.
    fn run(&self, work: Self::Work, call: &Call) -> impl Future<Output = Result<()>> + Send;

    /// True when `run` listens to notes, adjustments and withdrawal itself.
    fn hears_changes(&self) -> bool {
        false
    }
}

/// How an operation began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun<W> {
    /// This is the whole answer, one item without bulk: no task is made for it.
    Answered(Bytes),
    /// It is done, and there is nothing to say: one-way operations end so.
    Done,
    /// The rest, in a task of its own.
    Work(W),
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
    /// Other servers of the same data, which clients are told of.
    pub peers: Vec<Url>,
    /// What this server is called among others, once it listens.
    pub name: OnceLock<String>,
}

impl Call {
    /// Waits for room in the connection, then at the node's gate for up to `most_bytes` of memory: how many it got
    /// is [`Entry::admitted`]'s, at least [`Gate::own_bytes`] of those asked for. Nothing is held while waiting for
    /// the peer.
    ///
    /// # Cancel safety
    /// Safe: nothing is held before it returns.
    pub async fn enter(&self, most_bytes: u64) -> Entry {
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
pub struct Registry(BTreeMap<&'static str, Arc<dyn AnyHandler>>);

impl Registry {
    /// What every data server answers.
    #[must_use]
    pub fn of_data_server() -> Self {
        let mut registry = Self::default();
        registry.add(list::List);
        registry.add(describe::Describe);
        registry.add(read::Read);
        registry.add(read_block::ReadBlock);
        registry.add(stats::Stats);
        registry.add(TellPeers);
        registry
    }

    /// Adds an operation, or replaces the one of its name.
    pub fn add(&mut self, handler: impl Handler) {
        self.0.insert(handler.name(), Arc::new(handler));
    }

    /// Begins a call; what is left of it is to be run in a task of its own.
    pub(crate) fn begin(&self, call: Call) -> Option<BoxFuture<'static, ()>> {
        let name = call.operation.name();
        let begun = self.0.get(name).ok_or_else(|| self.unknown(name));
        match begun.and_then(|handler| Arc::clone(handler).begin(call.operation.parameters())) {
            Ok(Begun::Done) => end(&call, Ok(())),
            Ok(Begun::Answered(body)) => match call.operation.try_item(body.clone(), Bytes::new()) {
                // The connection is full of answers that nobody takes.
                Err(error) if error.kind() == ErrorKind::Busy => {
                    return Some(answer_later(call, body).boxed());
                }
                sent => end(&call, sent),
            },
            Ok(Begun::Work(work)) => return Some(run(call, work).boxed()),
            Err(error) => end(&call, Err(error)),
        }
        None
    }

    fn unknown(&self, name: &str) -> Error {
        let names: Vec<&str> = self.0.keys().copied().collect();
        Error::unsupported(format!("expected one of the operations {names:?}, found `{name}`"))
    }
}

async fn answer_later(call: Call, body: Bytes) {
    let sent = call.operation.item(body, Bytes::new()).await;
    end(&call, sent);
}

async fn run(call: Call, work: Box<dyn Work>) {
    let result = if work.hears_changes() {
        work.run(&call).await
    } else {
        tokio::select! {
            biased;
            () = call.operation.cancelled() => Err(Error::cancelled()),
            result = work.run(&call) => result,
        }
    };
    end(&call, result);
}

fn end(call: &Call, result: Result<()>) {
    match result {
        Ok(()) => call.operation.done(),
        Err(error) => {
            tracing::debug!(operation = call.operation.name(), %error, "failed");
            call.operation.fail(error);
        }
    }
}

/// A [`Handler`] of any kind of work.
trait AnyHandler: Send + Sync {
    fn begin(self: Arc<Self>, parameters: Bytes) -> Result<Begun<Box<dyn Work>>>;
}

/// What is left of an operation that has begun.
trait Work: Send {
    fn hears_changes(&self) -> bool;
    fn run<'a>(self: Box<Self>, call: &'a Call) -> BoxFuture<'a, Result<()>>;
}

impl<H: Handler> AnyHandler for H {
    fn begin(self: Arc<Self>, parameters: Bytes) -> Result<Begun<Box<dyn Work>>> {
        Ok(match Handler::begin(&*self, parameters)? {
            Begun::Answered(body) => Begun::Answered(body),
            Begun::Done => Begun::Done,
            Begun::Work(work) => Begun::Work(Box::new(Rest { handler: self, work })),
        })
    }
}

struct Rest<H: Handler> {
    handler: Arc<H>,
    work: H::Work,
}

impl<H: Handler> Work for Rest<H> {
    fn hears_changes(&self) -> bool {
        self.handler.hears_changes()
    }

    fn run<'a>(self: Box<Self>, call: &'a Call) -> BoxFuture<'a, Result<()>> {
        async move { self.handler.run(self.work, call).await }.boxed()
    }
}
