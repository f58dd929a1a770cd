//! The operations a node answers, registered by name. A user's own operation is one more [`Handler`] here and one
//! more [`Ask`](crate::asks::Ask) on the other side; `examples/operations` has three.

mod describe;
mod forward;
mod list;
mod read;
mod read_block;
mod read_packed;
mod read_together;
pub(crate) mod servers;
mod stats;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use array::{Error, ErrorKind, Result};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, join_all};
use link::Flow;
use link::quic::Rejecting;
pub use link::{Change, Item, OpStream, Operation, Reply};
pub use wire::ops::{BlockPlace, decode_json, encode_json};

use crate::exports::Exports;
use crate::gate::{ClientId, Entry, Gate};
use crate::metrics::{self, Metrics};
use crate::outlet::Outlet;
use crate::paths::{Paths, TakePart, TellPath};
use crate::peers::TellPeers;
use crate::under_way::Place;
use crate::url::Url;
use forward::{Forwarded, forward};

/// One kind of operation. The server's side of a registered operation.
pub trait Handler: Send + Sync + 'static {
    /// Value that [`begin`](Self::begin) passes to [`run`](Self::run): usually the parsed parameters.
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

    /// True when it only reads, and so may be done before the client's handshake is over: whoever overheard a client that
    /// asks in its first packets may have it done once more.
    fn only_reads(&self) -> bool {
        false
    }

    /// False for what tells of this server itself. Else a server that has the data answers instead, where parameters say in the
    /// common way which those are: with what this one may do there, so of data only.
    fn is_passed_on(&self) -> bool {
        true
    }

    /// How many calls of one priority that are ready at the same time begin together; those that say
    /// [`Begun::Together`] share a task.
    fn most_together(&self) -> usize {
        1
    }

    /// Does the work of those, answers each and ends it. It hears no changes, and looks at
    /// [`Operation::is_cancelled`] as often as is worthwhile.
    fn run_together(&self, works: Vec<(Self::Work, Call)>) -> impl Future<Output = ()> + Send {
        async {
            for (work, call) in works {
                let result = self.run(work, &call).await;
                end(&call, result);
            }
        }
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
    /// The rest, in one task with what began together with it.
    Together(W),
}

/// One call of an operation.
pub struct Call {
    /// The operation on the wire.
    pub operation: Operation,
    /// Client that asks.
    pub client: ClientId,
    /// State that all operations of the node share.
    pub node: Arc<Shared>,
    /// The connection, where it says something of itself.
    pub(crate) flow: Option<Arc<dyn Flow>>,
    /// How answers leave for this client.
    pub(crate) outlet: Arc<Outlet>,
    /// Until it ends.
    pub(crate) place: Place,
}

/// State that all operations of a node share.
pub struct Shared {
    /// The data sets.
    pub exports: Exports,
    /// Memory for answers that are being prepared.
    pub gate: Gate,
    /// Other servers of the same data, which clients are told of.
    pub peers: Vec<Url>,
    /// Name of this server among other servers; set once it listens.
    pub name: OnceLock<String>,
    /// Counts of the packets that its UDP port rejected; set once it listens by QUIC.
    pub rejecting: OnceLock<Rejecting>,
    /// Memory of the network paths to clients.
    pub paths: Paths,
    /// Counters since the start.
    pub metrics: Metrics,
}

impl Call {
    /// Counts reads that were answered.
    pub(crate) fn count_reads(&self, count: u64, data_bytes: u64) {
        metrics::add(&self.node.metrics.reads, count);
        metrics::add(&self.node.metrics.read_bytes, data_bytes);
    }

    /// Waits for room in the connection, then at the node's gate for up to `most_bytes` of memory: how many it got
    /// is [`Entry::admitted`]'s, at least [`Gate::own_bytes`] of those asked for. Nothing is held while waiting for
    /// the peer.
    ///
    /// # Cancel safety
    /// Safe: nothing is held before it returns.
    pub async fn enter(&self, most_bytes: u64) -> Entry {
        self.enter_with(self.node.gate.own_bytes().min(most_bytes), most_bytes).await
    }

    /// Waits as [`enter`](Self::enter) does, for an answer that cannot be cut: it gets all of `bytes`, or what the
    /// gate gives at once if that is less.
    ///
    /// # Cancel safety
    /// Safe: nothing is held before it returns.
    pub(crate) async fn enter_whole(&self, bytes: u64) -> Entry {
        self.enter_with(bytes, bytes).await
    }

    async fn enter_with(&self, least_bytes: u64, most_bytes: u64) -> Entry {
        self.operation.room().await;
        let urgency = self.operation.urgency();
        let mut entry = self.node.gate.enter(self.client, urgency, least_bytes, most_bytes);
        entry.admitted().await;
        entry
    }
}

/// Operations by name.
#[derive(Clone, Default)]
pub struct Registry(BTreeMap<&'static str, Arc<dyn AnyHandler>>);

impl Registry {
    /// Registry of the operations that every data server answers.
    #[must_use]
    pub fn of_data_server() -> Self {
        let mut registry = Self::default();
        registry.add(list::List);
        registry.add(describe::Describe);
        registry.add(read::Read);
        registry.add(read_block::ReadBlock);
        registry.add(stats::Stats);
        registry.add(TellPeers);
        registry.add(TellPath);
        registry.add(TakePart);
        registry
    }

    /// Adds an operation, or replaces the one of its name.
    pub fn add(&mut self, handler: impl Handler) {
        self.0.insert(handler.name(), Arc::new(handler));
    }

    /// Whether there is an operation of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// How many calls of this name begin together.
    pub(crate) fn most_together(&self, name: &str) -> usize {
        self.0.get(name).map_or(1, |handler| handler.most_together())
    }

    /// Whether calls of this name may begin before it is proven who asks.
    pub(crate) fn only_reads(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|handler| handler.only_reads())
    }

    /// Begins calls of one name; what is left of them is to be run in tasks of their own. What does more than read waits
    /// there until it is proven who asks, and is dropped where that does not come.
    pub(crate) fn begin(&self, calls: Vec<Call>) -> Vec<BoxFuture<'static, ()>> {
        let Some(first) = calls.first() else { return Vec::new() };
        let waiting = first.flow.as_ref().filter(|flow| !flow.is_proven());
        let Some(flow) = waiting.filter(|_| !self.only_reads(first.operation.name())) else {
            return self.begin_proven(calls);
        };
        let (proven, registry) = (flow.proven(), self.clone());
        let waiting = async move {
            if proven.await {
                join_all(registry.begin_proven(calls)).await;
            }
        };
        vec![waiting.boxed()]
    }

    fn begin_proven(&self, calls: Vec<Call>) -> Vec<BoxFuture<'static, ()>> {
        let Some(name) = calls.first().map(|call| call.operation.name()) else { return Vec::new() };
        if let Some(handler) = self.0.get(name) {
            return Arc::clone(handler).begin(calls);
        }
        let unknown = self.unknown(name);
        calls.into_iter().map(|call| run_elsewhere(call, unknown.clone()).boxed()).collect()
    }

    fn unknown(&self, name: &str) -> Error {
        let names: Vec<&str> = self.0.keys().copied().collect();
        Error::unsupported(format!("expected one of the operations {names:?}, found `{name}`"))
    }
}

/// Answers at once, unless the connection is full of answers that nobody takes.
fn answer_now(call: Call, body: Bytes) -> Option<BoxFuture<'static, ()>> {
    match call.operation.try_answer(body.clone(), Bytes::new()) {
        Ok(()) => None,
        Err(error) if error.kind() == ErrorKind::Busy => {
            let later = async move {
                if let Err(error) = call.operation.answer(body, Bytes::new()).await {
                    end(&call, Err(error));
                }
            };
            Some(later.boxed())
        }
        Err(error) => {
            end(&call, Err(error));
            None
        }
    }
}

async fn run<H: Handler>(handler: Arc<H>, work: H::Work, call: Call) {
    let result = if handler.hears_changes() {
        handler.run(work, &call).await
    } else {
        let working = async {
            let forwarded = match handler.is_passed_on() {
                true => forward(&call).await?,
                false => Forwarded::NotThere,
            };
            match forwarded {
                Forwarded::Answered => Ok(()),
                Forwarded::NotThere => handler.run(work, &call).await,
            }
        };
        until_cancelled(&call, working).await
    };
    end(&call, result);
}

/// A call that nobody knows here, but perhaps the server that has the data.
async fn run_elsewhere(call: Call, unknown: Error) {
    let working = async {
        match forward(&call).await? {
            Forwarded::Answered => Ok(()),
            Forwarded::NotThere => Err(unknown),
        }
    };
    let result = until_cancelled(&call, working).await;
    end(&call, result);
}

async fn until_cancelled(call: &Call, working: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::select! {
        biased;
        () = call.operation.cancelled() => Err(Error::cancelled()),
        result = working => result,
    }
}

fn end(call: &Call, result: Result<()>) {
    match result {
        Ok(()) => call.operation.done(),
        Err(error) => {
            tracing::debug!(operation = call.operation.name(), %error, "failed");
            metrics::add(&call.node.metrics.failed, 1);
            call.operation.fail(error);
        }
    }
}

/// A [`Handler`] of any kind of work.
trait AnyHandler: Send + Sync {
    fn only_reads(&self) -> bool;
    fn most_together(&self) -> usize;
    fn begin(self: Arc<Self>, calls: Vec<Call>) -> Vec<BoxFuture<'static, ()>>;
}

impl<H: Handler> AnyHandler for H {
    fn only_reads(&self) -> bool {
        Handler::only_reads(self)
    }

    fn most_together(&self) -> usize {
        Handler::most_together(self)
    }

    fn begin(self: Arc<Self>, calls: Vec<Call>) -> Vec<BoxFuture<'static, ()>> {
        let (mut rest, mut together) = (Vec::new(), Vec::new());
        for call in calls {
            match Handler::begin(&*self, call.operation.parameters()) {
                Ok(Begun::Done) => end(&call, Ok(())),
                Ok(Begun::Answered(body)) => rest.extend(answer_now(call, body)),
                Ok(Begun::Work(work)) => rest.push(run(Arc::clone(&self), work, call).boxed()),
                Ok(Begun::Together(work)) => together.push((work, call)),
                Err(error) => end(&call, Err(error)),
            }
        }
        if !together.is_empty() {
            rest.push(async move { self.run_together(together).await }.boxed());
        }
        rest
    }
}
