//! A data set of another process as a [`Source`]: blocks and reads over one connection.
//!
//! Blocks are pipelined, with one `read_block` request each. A read is one `read` request, whatever its runs, and its
//! pieces are written directly to their location. All received data are checked against the description before they are
//! used.

use std::sync::Arc;

use array::{
    Block, BlockKey, Completion, Completions, Content, Dataset, Error, ErrorKind, Loan, Priority, ReadEnds,
    ReadRequest, Region, Result, Selection, Source, Urgency, ValueRange, Want,
};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use link::{ClientHandle, ReadSink, SinkRequest};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use wire::compression::Compressed;
use wire::ops::{self, BlockBody, BlockPlace, DescribeParameters, ReadBlockParameters, ReadParameters, Rows};

use crate::dial::retry::BusyRetry;
use crate::dial::{CurrentConnection, Dialer};
use crate::reading::block_fetches::one_by_one;
pub use crate::reading::decompression::Carried;
use crate::reading::decompression::{DecompressionLimit, Tally};
use crate::reading::read_batches::{NumberedRead, ReadBatches, all_fail};
use crate::reading::read_sink::{ArrivedBytes, SelectionSink, put};
use crate::requests::RemoteOperation;
use crate::servers::{ReplicaSource, UnassignedParts};

/// Maximum number of block requests of one call in flight; more than any path needs with blocks of 256 KiB.
const MAX_BLOCKS_IN_FLIGHT: usize = 512;
/// Maximum number of large reads of one call in flight; each arrives in pieces, and is decompressed concurrently.
const MAX_LARGE_READS: usize = 4_096;
/// Size of the parts of a read whose rest is requested over another connection, in bytes.
const PART_BYTES: u64 = 4 << 20;
/// Maximum number of parts in flight of a read whose rest is requested over another connection.
const MAX_PARTS_IN_FLIGHT: usize = 64;
/// Maximum number of reads that are retried concurrently, after the server was too busy for them.
const MAX_RETRIES_IN_FLIGHT: usize = 64;

/// A data set that another process serves. Clones share the connection.
#[derive(Clone, Debug)]
pub struct RemoteSource {
    dialer: Dialer,
    name: String,
    described: Arc<Mutex<Option<Arc<Dataset>>>>,
    tally: Arc<Tally>,
    decompression_limit: DecompressionLimit,
}

impl RemoteSource {
    /// Creates a source of the data set called `name` (empty: the only one), without a request.
    #[must_use]
    pub fn new(dialer: Dialer, name: String) -> Self {
        let (described, tally) = (Arc::default(), Arc::default());
        Self { dialer, name, described, tally, decompression_limit: DecompressionLimit::default() }
    }

    /// Returns the name of the data set on the server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of bytes of reads and blocks received so far, and of the bytes transferred for them.
    #[must_use]
    pub fn carried(&self) -> Carried {
        self.tally.carried()
    }

    /// Returns the dialer of the server.
    #[must_use]
    pub fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    async fn dataset(&self) -> Result<Arc<Dataset>> {
        if let Some(known) = self.described.lock().clone() {
            return Ok(known);
        }
        self.asked().await
    }

    /// Requests the description, and stores it.
    async fn asked(&self) -> Result<Arc<Dataset>> {
        let dataset = self.described_now().await?;
        *self.described.lock() = Some(Arc::clone(&dataset));
        Ok(dataset)
    }

    /// Requests the description from the server, even if one is stored. The stored one is not replaced: reads still
    /// request data in that state.
    ///
    /// # Errors
    /// The operation's error, or the reason that there is no connection.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the operation.
    pub async fn described_now(&self) -> Result<Arc<Dataset>> {
        self.dialer
            .ask(DescribeParameters { name: self.name.clone() }, Urgency::of(Priority::INTERACTIVE))
            .await
    }

    /// Forgets the description after a stale response, so that it is requested again.
    fn note_staleness(&self, error: Error) -> Error {
        if error.kind() == ErrorKind::Stale {
            *self.described.lock() = None;
        }
        error
    }

    /// Sends a request that is neither a block nor a read to the server.
    ///
    /// # Errors
    /// The operation's error, or the reason that there is no connection.
    pub async fn ask<A: RemoteOperation>(&self, ask: A, urgency: Urgency) -> Result<A::Response> {
        self.dialer.ask(ask, urgency).await.map_err(|e| self.note_staleness(e))
    }

    /// Fetches one block; `None` if it was withdrawn.
    async fn one_block(&self, want: Want) -> Option<Completion> {
        let result = want.drive(self.fetch(&want), |_| ()).await?;
        Some(Completion { key: want.key(), result: result.map_err(|e| self.note_staleness(e)) })
    }

    async fn fetch(&self, want: &Want) -> Result<Arc<Block>> {
        let mut retry = BusyRetry::default();
        loop {
            match self.fetch_once(want).await {
                Ok(block) => return Ok(block),
                Err(error) => retry.after(error, want.urgency().deadline).await?,
            }
        }
    }

    /// Requests a block once, and again over each connection that replaces the one that was used.
    async fn fetch_once(&self, want: &Want) -> Result<Arc<Block>> {
        let key = want.key();
        let expected_bytes = self.dataset().await?.block(key)?.size_bytes;
        loop {
            let current = self.dialer.current().await?;
            if let Some(block) = self.fetch_by(current, want, expected_bytes).await? {
                return Ok(block);
            }
        }
    }

    /// Fetches over one connection; `None` if another one has replaced it.
    async fn fetch_by(
        &self,
        mut current: CurrentConnection,
        want: &Want,
        expected_bytes: u64,
    ) -> Result<Option<Arc<Block>>> {
        let key = want.key();
        let client = current.client.clone();
        let (collector, block) =
            BlockCollector::new(key, expected_bytes, want.urgency().priority, &self.tally);
        let parameters = ReadBlockParameters { key }.encode();
        let mut receiving =
            client.receive(ops::READ_BLOCK, parameters, want.urgency(), Box::new(collector)).await?;
        let mut seen = 0;
        loop {
            tokio::select! {
                biased;
                end = &mut receiving => break end?,
                () = current.replaced() => return Ok(None),
                version = want.changed(seen) => {
                    seen = version;
                    receiving.adjust(want.urgency());
                }
            }
        }
        let no_block = |_| Error::corrupt("expected a block, found the end of the answer");
        block.await.map_err(no_block)?.map(|block| Some(Arc::new(block)))
    }

    async fn read_into(self, request: ReadRequest, into: Region) -> Result<()> {
        let dataset = self.dataset().await?;
        self.read_of(dataset, request, into).await
    }

    /// Reads data in the state that `dataset` describes.
    async fn read_of(self, dataset: Arc<Dataset>, request: ReadRequest, into: Region) -> Result<()> {
        request.check(&dataset, &into)?;
        if request.selection.is_empty() {
            return Ok(());
        }
        let parameters = parameters(&dataset, &request);
        let urgency = Urgency::of(request.priority);
        let (mut retry, mut place) = (BusyRetry::default(), into);
        loop {
            let (loan, lent) = place.lend();
            let mut current = self.dialer.current().await?;
            let (sink, done) = SelectionSink::counted(lent, Arc::clone(&self.tally)).recording_arrivals();
            let (sink, restored) = sink.restoring(request.priority, &self.decompression_limit);
            let sink = Box::new(sink);
            let client = current.client.clone();
            let mut receiving = client.receive(ops::READ, parameters.clone(), urgency, sink).await?;
            let received = tokio::select! {
                biased;
                received = &mut receiving => received,
                () = current.replaced() => {
                    drop(receiving);
                    restored.ended().await?;
                    let place = loan.try_end().map_err(still_lent)?;
                    return self.read_rest(dataset, request, place, done).await;
                }
            };
            let Err(error) = restored.ended().await.and(received) else { return Ok(()) };
            retry.after(self.note_staleness(error), None).await?;
            place = loan.try_end().map_err(still_lent)?;
        }
    }

    /// Reads the data that have not arrived of a read that was withdrawn, over the current connection.
    fn read_rest(
        self,
        dataset: Arc<Dataset>,
        request: ReadRequest,
        into: Region,
        done: ArrivedBytes,
    ) -> BoxFuture<'static, Result<()>> {
        async move {
            let level = dataset.array(request.array)?.level(request.level)?;
            let grain = level.grain().map(<[u64]>::to_vec);
            let parts = missing(&request.selection, grain, into, &done);
            let reads = parts.into_iter().map(|(selection, into)| {
                self.clone().read_of(Arc::clone(&dataset), ReadRequest { selection, ..request }, into)
            });
            stream::iter(reads).buffer_unordered(MAX_PARTS_IN_FLIGHT).try_collect().await
        }
        .boxed()
    }

    /// Sends one request for all small reads, and one for each large read; reads that are not valid complete at once.
    async fn read_each(self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        let begun = async { Ok::<_, Error>((self.dataset().await?, self.dialer.client().await?)) };
        let (dataset, client) = match begun.await {
            Ok(both) => both,
            Err(error) => return all_fail(reads.len(), error),
        };
        let ReadBatches { ended, small, large } = ReadBatches::of(&dataset, reads);
        let (this, of) = (self.clone(), Arc::clone(&dataset));
        let large = stream::iter(large).map(move |(number, request, into)| {
            this.clone().read_of(Arc::clone(&of), request, into).map(move |end| (number, end))
        });
        let small = self.read_small(&dataset, &client, small);
        stream::iter(ended).chain(stream::select(small, large.buffer_unordered(MAX_LARGE_READS))).boxed()
    }

    /// Sends small reads, which are valid for `dataset`. Reads that the server is too busy for are retried after the
    /// others have completed.
    fn read_small(
        self,
        dataset: &Arc<Dataset>,
        client: &ClientHandle,
        reads: Vec<NumberedRead>,
    ) -> impl Stream<Item = (usize, Result<()>)> + Send + use<> {
        let (mut asked, mut loans) = (Vec::with_capacity(reads.len()), Vec::with_capacity(reads.len()));
        let mut regions = Vec::with_capacity(reads.len());
        for (number, request, into) in reads {
            let (loan, lent) = into.lend();
            asked.push((number, request));
            loans.push(Some(loan));
            regions.push(lent);
        }
        let asked = Arc::new(asked);
        let (requests, dataset, tally) = (Arc::clone(&asked), Arc::clone(dataset), Arc::clone(&self.tally));
        let of = Arc::clone(&dataset);
        let asking = move |(n, into): (usize, Region)| {
            let (_, request) = &requests[n];
            let expected_bytes = into.size_bytes() as u64;
            let sink = Box::new(SelectionSink::counted(into, Arc::clone(&tally)));
            let urgency = Urgency::of(request.priority);
            SinkRequest { parameters: parameters(&dataset, request), urgency, expected_bytes, sink }
        };
        let refused = Arc::new(Mutex::new(Vec::new()));
        let (busy, this) = (Arc::clone(&refused), self.clone());
        let asks = regions.into_iter().enumerate().map(asking);
        let answered = client.receive_many(ops::READ, asks).filter_map(move |(n, end)| {
            let (number, request) = &asked[n];
            let end = end.map_err(|error| this.note_staleness(error));
            let is_over = match (end, loans[n].take()) {
                (Err(error), Some(loan)) if error.kind() == ErrorKind::Busy => {
                    busy.lock().push((*number, request.clone(), loan, error));
                    None
                }
                (end, _) => Some((*number, end)),
            };
            std::future::ready(is_over)
        });
        let retries = async move { stream::iter(std::mem::take(&mut *refused.lock())) };
        let retries = retries.flatten_stream().map(move |(number, request, loan, error)| {
            self.clone().read_again(Arc::clone(&of), request, loan, error).map(move |end| (number, end))
        });
        answered.chain(retries.buffer_unordered(MAX_RETRIES_IN_FLIGHT))
    }

    async fn read_again(
        self,
        dataset: Arc<Dataset>,
        request: ReadRequest,
        loan: Loan,
        error: Error,
    ) -> Result<()> {
        BusyRetry::default().after(error, None).await?;
        self.read_of(dataset, request, loan.try_end().map_err(still_lent)?).await
    }
}

/// Returns the parts of a read that have not arrived, with their locations. Parts follow stored chunks, so that few
/// chunks are decoded twice.
fn missing(
    selection: &Selection,
    grain: Option<Vec<u64>>,
    into: Region,
    done: &ArrivedBytes,
) -> Vec<(Selection, Region)> {
    let (shape, item_bytes) = (selection.shape(), into.item_bytes());
    let mut rest = UnassignedParts::new(selection, item_bytes, grain, into);
    let mut parts = Vec::new();
    while let Some((part, region)) = rest.take(PART_BYTES) {
        let of_whole = part.ranges().iter().zip(selection.ranges());
        let start: Vec<u64> =
            of_whole.map(|(part, whole)| (part.start - whole.start) / whole.step.max(1)).collect();
        let (bytes, rows) = Rows::of_box(&start, &part.shape(), &shape, item_bytes);
        if !rows.into_iter().all(|start| done.has(start, bytes)) {
            parts.push((part, region));
        }
    }
    parts
}

fn still_lent(_: Loan) -> Error {
    Error::internal("a completed read still has its region")
}

/// Encodes a read, which is valid for `dataset`, as parameters of a request.
fn parameters(dataset: &Dataset, request: &ReadRequest) -> Bytes {
    let ReadRequest { array, level, ref selection, .. } = *request;
    let place = BlockPlace { dataset: dataset.id, generation: dataset.generation, array, level };
    ReadParameters { place, selection: selection.clone() }.encode()
}

/// Assembles a block in its own memory, because a block may be kept for long.
struct BlockCollector {
    key: BlockKey,
    expected_bytes: u64,
    priority: Priority,
    tally: Arc<Tally>,
    body: Option<(BlockBody, Option<Compressed>)>,
    bytes: Vec<u8>,
    block: Option<oneshot::Sender<Result<Block>>>,
}

impl BlockCollector {
    fn new(
        key: BlockKey,
        expected_bytes: u64,
        priority: Priority,
        tally: &Arc<Tally>,
    ) -> (Self, oneshot::Receiver<Result<Block>>) {
        let (sender, block) = oneshot::channel();
        let (tally, block_to) = (Arc::clone(tally), Some(sender));
        (Self { key, expected_bytes, priority, tally, body: None, bytes: Vec::new(), block: block_to }, block)
    }

    /// Sends the block; it is decompressed on a storage thread if it is compressed. The receiver may have been dropped.
    fn give(&mut self, how: Option<Compressed>, range: Option<ValueRange>) {
        let (key, carried) = (self.key, std::mem::take(&mut self.bytes));
        let Some(to) = self.block.take() else { return };
        let block =
            move |bytes: Vec<u8>| Block { key, content: Content::Data { bytes: bytes.into(), range } };
        match how {
            None => drop(to.send(Ok(block(carried)))),
            // The number of blocks in flight is limited, and each has at most one such job.
            Some(how) => store::soon(self.priority, move || drop(to.send(how.restore(&carried).map(block)))),
        }
    }
}

impl ReadSink for BlockCollector {
    fn item(&mut self, item: u32, body: Bytes, bulk_bytes: u64) -> Result<()> {
        let (body, how) = BlockBody::decode_with(body)?;
        let expected = if body == BlockBody::NotCovered { 0 } else { self.expected_bytes };
        let found = how.map_or(bulk_bytes, |how| u64::from(how.plain_bytes));
        if item > 0 || found != expected || bulk_bytes > expected {
            let found = format!("item {item} of {found} bytes, carried by {bulk_bytes}");
            return Err(Error::corrupt(format!("expected one block of {expected} bytes, found {found}")));
        }
        self.tally.add(expected, bulk_bytes);
        // The description guarantees that blocks of this size are within the limits.
        self.bytes.reserve_exact(usize::try_from(bulk_bytes).unwrap_or(0));
        self.body = Some((body, how));
        Ok(())
    }

    fn piece(&mut self, _item: u32, offset: u64, bytes: &[u8], _complete: bool) -> Result<()> {
        put(&mut self.bytes, offset, bytes)
    }

    fn takes_any_order(&self) -> bool {
        true
    }

    fn finish(&mut self) -> Result<()> {
        match self.body.take() {
            None => return Err(Error::corrupt("expected a block, found the end of the answer")),
            Some((BlockBody::NotCovered, _)) => {
                let block = Block { key: self.key, content: Content::NotCovered };
                self.block.take().into_iter().for_each(|to| drop(to.send(Ok(block.clone()))));
            }
            Some((BlockBody::Data { range }, how)) => self.give(how, range),
        }
        Ok(())
    }
}

impl ReplicaSource for RemoteSource {
    fn describe_again(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        let this = self.clone();
        async move { this.asked().await }.boxed()
    }
}

impl Source for RemoteSource {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        let this = self.clone();
        async move { this.dataset().await }.boxed()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        let this = self.clone();
        one_by_one(wants, MAX_BLOCKS_IN_FLIGHT, move |want| {
            let this = this.clone();
            async move { this.one_block(want).await }
        })
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        self.clone().read_into(request, into).boxed()
    }

    fn read_many(&self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        self.clone().read_each(reads).flatten_stream().boxed()
    }
}
