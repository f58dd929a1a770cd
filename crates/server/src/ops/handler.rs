//! Interface of an operation on the server's side: a kind of operation ([`Handler`]), one call of it ([`OperationCall`]), and the state that
//! all operations of a node share ([`NodeState`]).

use std::sync::{Arc, OnceLock};

use array::{Result, Selection};
use bytes::Bytes;
use client::paths::Paths;
use client::remote_call::{CallProgress, ItemBody, Operand, ResultArray};
use client::url::Url;
use export::bounded_scan::Scan;
use link::quic::Rejecting;
use link::{Flow, Operation};
use serde::Serialize;
use wire::ops::{ReadBody, encode_json};

use crate::admission::{ClientId, Entry, Gate};
use crate::exports::Exports;
use crate::metrics::{self, Metrics};
use crate::ops::operation_limit::Place;
use crate::response_compression::ResponseCompression;

/// Most bulk bytes of one piece.
const PIECE_BYTES: usize = 4 << 20;

/// One kind of operation. The server's side of a registered operation.
pub trait Handler: Send + Sync + 'static {
    /// Value that [`begin`](Self::begin) passes to [`run`](Self::run): usually the parsed parameters.
    type Work: Send + 'static;

    /// Its name on the wire, at most 64 bytes.
    fn name(&self) -> &'static str;

    /// Reads and checks the parameters. Of calls that wait, the most urgent begins first, and within one priority the one that the
    /// client asked for first. It blocks everything else on the connection, so it must take microseconds.
    ///
    /// # Errors
    /// The error that the client gets; `Invalid` for parameters that are none.
    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<Self::Work>>;

    /// Does the work and answers: items, in any number. The caller says *done* or *failed* afterwards. It is dropped
    /// when the client withdraws the operation, unless [`hears_changes`](Self::hears_changes).
    ///
    /// # Errors
    /// The error that the client gets.
    fn run(&self, work: Self::Work, call: &OperationCall) -> impl Future<Output = Result<()>> + Send;

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
    fn run_together(&self, works: Vec<(Self::Work, OperationCall)>) -> impl Future<Output = ()> + Send {
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
pub enum BeginOutcome<W> {
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
pub struct OperationCall {
    /// The operation on the wire.
    pub operation: Operation,
    /// Client that asks.
    pub client: ClientId,
    /// State that all operations of the node share.
    pub node: Arc<NodeState>,
    /// The connection, where it says something of itself.
    pub(crate) flow: Option<Arc<dyn Flow>>,
    /// How answers leave for this client.
    pub(crate) compression: Arc<ResponseCompression>,
    /// Until it ends.
    pub(crate) place: Place,
}

/// State that all operations of a node share.
pub struct NodeState {
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

impl OperationCall {
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

    /// Prepares a scan of the elements that `of` names.
    ///
    /// # Errors
    /// `Stale` when the data have changed; `Invalid` for an array, level or selection that does not exist.
    pub async fn scan(&self, of: &Operand) -> Result<Scan> {
        let place = of.place();
        let (stack, dataset) = self.node.exports.at(&place).await?;
        let selection = of.selection.clone().map(Selection::new).transpose()?;
        Scan::new(Arc::clone(&stack.source), dataset, &place, selection, self.operation.urgency().priority)
    }

    /// Says how far the work is. Left out while the connection has no room: nobody waits for it.
    pub fn progress(&self, done: u64, total: u64) {
        if let Ok(body) = encode_json(&ItemBody::<()>::Progress(CallProgress { done, total })) {
            self.operation.try_item(body, Bytes::new()).unwrap_or_default();
        }
    }

    /// Announces the array that pieces will make up.
    ///
    /// # Errors
    /// `Cancelled` when nobody wants it any more.
    pub async fn elements(&self, elements: ResultArray) -> Result<()> {
        self.operation.item(encode_json(&ItemBody::<()>::Elements(elements))?, Bytes::new()).await
    }

    /// Sends a stretch of the announced array that begins at byte `offset` of it.
    ///
    /// # Errors
    /// `Cancelled` when nobody wants it any more.
    pub async fn piece(&self, mut offset: u64, mut stretch: Bytes) -> Result<()> {
        while !stretch.is_empty() {
            let piece = stretch.split_to(stretch.len().min(PIECE_BYTES));
            let body = ReadBody { offset_bytes: offset }.encode();
            offset += piece.len() as u64;
            self.operation.item(body, piece).await?;
        }
        Ok(())
    }

    /// Sends the result, the last item.
    ///
    /// # Errors
    /// `Cancelled` when nobody wants it any more.
    pub async fn result<R: Serialize>(&self, result: &R) -> Result<()> {
        self.operation.item(encode_json(&ItemBody::Result(result))?, Bytes::new()).await
    }
}

/// Says *done*, or *failed* and why, and counts what failed.
pub(super) fn end(call: &OperationCall, result: Result<()>) {
    match result {
        Ok(()) => call.operation.done(),
        Err(error) => {
            tracing::debug!(operation = call.operation.name(), %error, "failed");
            metrics::add(&call.node.metrics.failed, 1);
            call.operation.fail(error);
        }
    }
}
