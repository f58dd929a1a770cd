//! Two kinds of work that [`FormatSource`](crate::FormatSource) queues: one block, and one piece of a read.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use array::values::stats::value_range;
use array::{
    Block, BlockKey, Completion, Content, Dataset, Error, ErrorKind, ReadRequest, Region, Result, Selection,
    Target, Urgency, Want,
};
use bytes::Bytes;
use futures::channel::mpsc::{Receiver, Sender};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, Stream, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::schedule::workers::{QueuePermit, WorkerJob, Workers, rank, take};
use crate::{CancelFlag, Format};

/// Most bytes of blocks that are queued, being read or wait to be taken, per call of `blocks`; one block may
/// always be under way.
pub const MAX_BYTES_IN_HAND: u64 = 64 << 20;
/// Unit in which the bytes of blocks in use are counted.
const ROOM_UNIT_BYTES: u64 = 1 << 10;
const ROOM_UNITS: u32 = 64 << 10;
const _: () = assert!(ROOM_UNITS as u64 * ROOM_UNIT_BYTES == MAX_BYTES_IN_HAND);

/// State that the jobs of one call of `blocks` share. The channel has room for the answer of each; `room` bounds the bytes in it.
#[derive(Clone)]
pub(crate) struct BlocksCall {
    pub(crate) sender: Sender<BlockDelivery>,
    pub(crate) room: Arc<Semaphore>,
    /// Counts changes of its wants.
    changes: Arc<AtomicU64>,
}

impl BlocksCall {
    pub(crate) fn new(sender: Sender<BlockDelivery>) -> Self {
        Self { sender, room: Arc::new(Semaphore::new(ROOM_UNITS as usize)), changes: Arc::default() }
    }
}

/// Completion with its permit, which is held until the completion is taken.
pub(crate) type BlockDelivery = (Completion, Option<OwnedSemaphorePermit>);

/// Reads one block.
pub(crate) struct BlockJob {
    pub(crate) format: Arc<dyn Format>,
    pub(crate) dataset: Arc<Dataset>,
    pub(crate) selection: Selection,
    pub(crate) size_bytes: u64,
    pub(crate) watch: Arc<CancelWatch>,
    pub(crate) permit: Option<OwnedSemaphorePermit>,
    pub(crate) call: BlocksCall,
}

impl BlockJob {
    fn read(&self) -> Result<Arc<Block>> {
        let key = self.watch.want.key();
        if self.urgency().deadline.is_some_and(has_passed) {
            return Err(Error::new(ErrorKind::TimedOut, "the block's deadline passed before it was read"));
        }
        if !self.format.covers(key.array, key.level, &self.selection) {
            return Ok(Arc::new(Block { key, content: Content::NotCovered }));
        }
        let array = self.dataset.array(key.array)?;
        let (target, region) = Target::new(&self.selection.shape(), array.dtype.size_bytes())?;
        self.format.read(key.array, key.level, &self.selection, region, &self.watch.cancel)?;
        let bytes = target.into_vec()?;
        let range = value_range(&bytes, array.dtype, &array.decoding);
        Ok(Arc::new(Block { key, content: Content::Data { bytes: Bytes::from(bytes), range } }))
    }

    pub(crate) fn deliver(mut self, result: Result<Arc<Block>>) {
        self.watch.cancel.cancel();
        let completion = Completion { key: self.watch.want.key(), result };
        // The channel has room for every answer, so this fails only if the caller is gone.
        drop(self.call.sender.try_send((completion, self.permit.take())));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "storage threads are an edge: a deadline is compared with the clock here"
)]
fn has_passed(deadline: Instant) -> bool {
    deadline < Instant::now()
}

impl WorkerJob for BlockJob {
    fn urgency(&self) -> Urgency {
        self.watch.want.urgency()
    }

    fn is_withdrawn(&self) -> bool {
        self.watch.cancel.check().is_err()
    }

    fn run(self: Box<Self>, permit: QueuePermit) {
        drop(permit);
        let key = self.watch.want.key();
        let result = self.read().map_err(|e| {
            e.context(format!("block {} of level {}, array {}", key.index, key.level, key.array))
        });
        self.deliver(result);
    }
}

/// Queues the jobs of one call, the most urgent first, as its budget has room for their blocks.
///
/// # Cancel safety
/// Jobs that are not queued yet are dropped.
pub(crate) async fn queue_all(jobs: Vec<BlockJob>, call: BlocksCall) {
    let mut jobs = VecDeque::from(jobs);
    let mut sorted_at = None;
    loop {
        let changes = Some(call.changes.load(Ordering::Relaxed));
        if sorted_at != changes {
            sorted_at = changes;
            jobs.make_contiguous().sort_by_cached_key(|job| Reverse(rank(job.urgency())));
        }
        let Some(mut job) = jobs.pop_front() else { return };
        if job.is_withdrawn() {
            continue;
        }
        let units = u32::try_from(job.size_bytes.div_ceil(ROOM_UNIT_BYTES)).unwrap_or(u32::MAX);
        job.permit = take(&call.room, units.min(ROOM_UNITS)).await;
        let workers = Workers::of(&*job.format);
        let permit = workers.permit().await;
        workers.submit(Box::new(job), permit);
    }
}

/// Sets a job's cancel flag when its want is cancelled: wakes as the want changes.
pub(crate) struct CancelWatch {
    pub(crate) want: Want,
    changes: Arc<AtomicU64>,
    /// Set by the want's cancellation, by the end of the stream, or because the job is done.
    pub(crate) cancel: CancelFlag,
}

impl CancelWatch {
    pub(crate) fn start(want: Want, call: &BlocksCall) -> Arc<Self> {
        let changes = Arc::clone(&call.changes);
        let watch = Arc::new(Self { want, changes, cancel: CancelFlag::default() });
        watch.check();
        watch
    }

    /// Checks once, and registers to be woken at the next change.
    fn check(self: &Arc<Self>) {
        let waker = Waker::from(Arc::clone(self));
        let mut context = Context::from_waker(&waker);
        let mut seen = 0;
        while self.cancel.check().is_ok() {
            let Poll::Ready(version) = self.want.poll_changed(&mut context, seen) else { return };
            seen = version;
            self.changes.fetch_add(1, Ordering::Relaxed);
            if self.want.is_cancelled() {
                self.cancel.cancel();
            }
        }
    }
}

impl Wake for CancelWatch {
    fn wake(self: Arc<Self>) {
        self.check();
    }
}

/// Completions of one call of `blocks`; dropping it cancels the rest.
pub(crate) struct CompletionStream {
    /// Jobs on their way into the queue.
    pub(crate) queueing: FuturesUnordered<BoxFuture<'static, ()>>,
    pub(crate) refused: VecDeque<Completion>,
    pub(crate) receiver: Receiver<BlockDelivery>,
    pub(crate) cancels: Vec<CancelFlag>,
}

impl CompletionStream {
    /// Queues the jobs that fit now.
    pub(crate) fn queue(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(())) = self.queueing.poll_next_unpin(cx) {}
    }

    pub(crate) fn refuse(&mut self, key: BlockKey, error: Error) {
        self.refused.push_back(Completion { key, result: Err(error) });
    }
}

impl Stream for CompletionStream {
    type Item = Completion;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Completion>> {
        if let Some(refused) = self.refused.pop_front() {
            return Poll::Ready(Some(refused));
        }
        self.queue(cx);
        let delivery = self.receiver.poll_next_unpin(cx);
        let completion = delivery.map(|delivery| delivery.map(|(completion, _)| completion));
        if completion.is_ready() {
            // Its share of the budget is free for the next.
            self.queue(cx);
        }
        completion
    }
}

impl Drop for CompletionStream {
    fn drop(&mut self) {
        self.cancels.iter().for_each(CancelFlag::cancel);
    }
}

/// Reads one piece of a large read into its part of the target.
pub(crate) struct PieceJob {
    pub(crate) format: Arc<dyn Format>,
    pub(crate) request: ReadRequest,
    pub(crate) into: Region,
    pub(crate) cancel: CancelFlag,
    /// Channel with room for the result of each piece.
    pub(crate) sender: Sender<Result<()>>,
}

impl WorkerJob for PieceJob {
    fn urgency(&self) -> Urgency {
        Urgency::of(self.request.priority)
    }

    fn is_withdrawn(&self) -> bool {
        self.cancel.check().is_err()
    }

    fn run(self: Box<Self>, permit: QueuePermit) {
        drop(permit);
        let Self { format, request, into, cancel, mut sender } = *self;
        let ReadRequest { array, level, selection, .. } = request;
        let result = format.read(array, level, &selection, into, &cancel);
        let result =
            result.map_err(|e| e.context(format!("read [{selection}] of level {level}, array {array}")));
        drop(sender.try_send(result));
    }
}

/// Cancels the pieces of a read when its future is dropped.
pub(crate) struct CancelWorkOnDrop(pub(crate) CancelFlag);

impl Drop for CancelWorkOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
