//! Interface of an operation on the server's side: a kind of operation ([`Handler`]), one call of it
//! ([`OperationCall`]), and the state that all operations of a node share ([`NodeState`]).

use std::sync::{Arc, OnceLock};

use array::{Result, Selection};
use bytes::Bytes;
use client::paths::Paths;
use client::remote_call::{CallProgress, ItemBody, Operand, ResultArray};
use client::url::Url;
use export::bounded_scan::Scan;
use link::quic::RejectionMonitor;
use link::{Flow, Operation};
use serde::Serialize;
use wire::ops::{ReadBody, encode_json};

use crate::answer_memory::{AnswerMemory, ClientId, MemoryReservation};
use crate::exports::Exports;
use crate::guests::GuestPass;
use crate::metrics::{self, Metrics};
use crate::ops::operation_limit::OperationPermit;
use crate::response_compression::ResponseCompression;
use crate::token::Right;

/// Maximum number of bulk bytes in one piece.
const PIECE_BYTES: usize = 4 << 20;

/// One kind of operation: the server's side of a registered operation.
pub trait Handler: Send + Sync + 'static {
    /// Value that [`begin`](Self::begin) passes to [`run`](Self::run): usually the parsed parameters.
    type Work: Send + 'static;

    /// Name in the wire protocol, at most 64 bytes.
    fn name(&self) -> &'static str;

    /// Parses and checks the parameters. Of waiting calls, the most urgent begins first, and within one priority the
    /// one that the client sent first. It blocks everything else on the connection, so it must take microseconds.
    ///
    /// # Errors
    /// The error for the client; `Invalid` for malformed parameters.
    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<Self::Work>>;

    /// Runs the operation and sends any number of items. The caller sends *done* or *failed* afterwards. The future is
    /// dropped when the client withdraws the operation, unless [`handles_changes`](Self::handles_changes).
    ///
    /// # Errors
    /// The error for the client.
    fn run(&self, work: Self::Work, call: &OperationCall) -> impl Future<Output = Result<()>> + Send;

    /// Returns true if `run` handles notes, adjustments and withdrawal itself.
    fn handles_changes(&self) -> bool {
        false
    }

    /// Returns true if the operation only reads, and so may begin before the client's handshake is complete: an
    /// attacker who recorded the first packets of a client may have it repeated once.
    fn only_reads(&self) -> bool {
        false
    }

    /// Returns false for operations about this server itself. Other operations are forwarded to a server that has the
    /// data, if their parameters name the data as a [`CallRequest`](client::remote_call::CallRequest). They run there
    /// with the rights of this server, so they may concern only data.
    fn is_forwarded(&self) -> bool {
        true
    }

    /// Returns how many calls of one priority that are ready at the same time begin together; those that return
    /// [`BeginOutcome::Together`] share a task.
    fn most_together(&self) -> usize {
        1
    }

    /// Runs these calls, answers each and ends it. Changes are not delivered, so it checks [`Operation::is_cancelled`]
    /// at suitable intervals.
    fn run_together(&self, works: Vec<(Self::Work, OperationCall)>) -> impl Future<Output = ()> + Send {
        async {
            for (work, call) in works {
                let result = self.run(work, &call).await;
                end(&call, result);
            }
        }
    }
}

/// Outcome of beginning an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BeginOutcome<W> {
    /// The complete response, one item without bulk data: no task is created.
    Answered(Bytes),
    /// The operation has ended without a response, as one-way operations do.
    Done,
    /// The rest runs in a task of its own.
    Work(W),
    /// The rest runs in one task with the calls that began together with it.
    Together(W),
}

/// One call of an operation.
pub struct OperationCall {
    /// The operation in the wire protocol.
    pub operation: Operation,
    /// Client that sent the call.
    pub client: ClientId,
    /// Rights of the client.
    pub right: Right,
    /// Access of a guest, which an owner of the session may take away; `None` for other clients.
    pub guest: Option<Arc<GuestPass>>,
    /// State that all operations of the node share.
    pub node: Arc<NodeState>,
    /// Flow of the connection, if it has statistics.
    pub(crate) flow: Option<Arc<dyn Flow>>,
    /// Compression of responses to this client.
    pub(crate) compression: Arc<ResponseCompression>,
    /// Held until the operation ends.
    pub(crate) permit: OperationPermit,
}

/// State that all operations of a node share.
pub struct NodeState {
    /// The data sets.
    pub exports: Exports,
    /// Memory for responses in preparation.
    pub answer_memory: AnswerMemory,
    /// Other servers of the same data, which clients are told of.
    pub peers: Vec<Url>,
    /// Name of this server among other servers; set once it listens.
    pub name: OnceLock<String>,
    /// Counts of the packets that its UDP port rejected; set once it listens by QUIC.
    pub rejecting: OnceLock<RejectionMonitor>,
    /// Database of the network paths to clients.
    pub paths: Paths,
    /// Counters since the start.
    pub metrics: Metrics,
}

impl OperationCall {
    /// Checks that the client may still request operations of this name.
    ///
    /// # Errors
    /// `Denied`, with the reason.
    pub(crate) fn check_right(&self) -> Result<()> {
        self.right.check_operation(self.operation.name())?;
        self.guest.as_ref().map_or(Ok(()), |guest| guest.check())
    }

    /// Counts reads that were answered.
    pub(crate) fn count_reads(&self, count: u64, data_bytes: u64) {
        metrics::add(&self.node.metrics.reads, count);
        metrics::add(&self.node.metrics.read_bytes, data_bytes);
    }

    /// Waits for room in the connection, then for up to `most_bytes` of the node's memory for answers, at least
    /// [`AnswerMemory::own_bytes`] if `most_bytes` is larger. [`MemoryReservation::admitted`] returns the granted
    /// number of bytes. No memory is held while waiting for the connection.
    ///
    /// # Cancel safety
    /// Safe: nothing is held before it returns.
    pub async fn enter(&self, most_bytes: u64) -> MemoryReservation {
        self.enter_with(self.node.answer_memory.own_bytes().min(most_bytes), most_bytes).await
    }

    /// Waits as [`enter`](Self::enter) does, for an answer that cannot be split: for all of `bytes`, or for the most
    /// that a reservation waits for if that is less.
    ///
    /// # Cancel safety
    /// Safe: nothing is held before it returns.
    pub(crate) async fn enter_whole(&self, bytes: u64) -> MemoryReservation {
        self.enter_with(bytes, bytes).await
    }

    async fn enter_with(&self, least_bytes: u64, most_bytes: u64) -> MemoryReservation {
        self.operation.room().await;
        let urgency = self.operation.urgency();
        let mut reservation = self.node.answer_memory.reserve(self.client, urgency, least_bytes, most_bytes);
        reservation.admitted().await;
        reservation
    }

    /// Prepares a scan of the elements that `of` names.
    ///
    /// # Errors
    /// `Stale` if the data have changed; `Invalid` for an array, level or selection that does not exist.
    pub async fn scan(&self, of: &Operand) -> Result<Scan> {
        let place = of.place();
        let (stack, dataset) = self.node.exports.at(&place).await?;
        let selection = of.selection.clone().map(Selection::new).transpose()?;
        Scan::new(Arc::clone(&stack.source), dataset, &place, selection, self.operation.urgency().priority)
    }

    /// Sends the progress of the operation; dropped while the connection has no room.
    pub fn progress(&self, done: u64, total: u64) {
        if let Ok(body) = encode_json(&ItemBody::<()>::Progress(CallProgress { done, total })) {
            self.operation.try_item(body, Bytes::new()).unwrap_or_default();
        }
    }

    /// Announces the type and shape of the array whose pieces follow.
    ///
    /// # Errors
    /// `Cancelled` if the operation was withdrawn.
    pub async fn elements(&self, elements: ResultArray) -> Result<()> {
        self.operation.item(encode_json(&ItemBody::<()>::Elements(elements))?, Bytes::new()).await
    }

    /// Sends a part of the announced array that begins at byte `offset` of it.
    ///
    /// # Errors
    /// `Cancelled` if the operation was withdrawn.
    pub async fn piece(&self, mut offset: u64, mut stretch: Bytes) -> Result<()> {
        while !stretch.is_empty() {
            let piece = stretch.split_to(stretch.len().min(PIECE_BYTES));
            let body = ReadBody { offset_bytes: offset }.encode();
            offset += piece.len() as u64;
            self.operation.item(body, piece).await?;
        }
        Ok(())
    }

    /// Sends the result, which is the last item.
    ///
    /// # Errors
    /// `Cancelled` if the operation was withdrawn.
    pub async fn result<R: Serialize>(&self, result: &R) -> Result<()> {
        self.operation.item(encode_json(&ItemBody::Result(result))?, Bytes::new()).await
    }
}

/// Sends *done*, or *failed* with the reason, and counts failures.
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
