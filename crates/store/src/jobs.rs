//! The two kinds of work that [`FormatSource`](crate::FormatSource) queues: one block, one piece of a read.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use array::stats::value_range;
use array::{
    Block, BlockKey, Completion, Content, Dataset, Error, ErrorKind, ReadRequest, Region, Result, Selection,
    Target, Urgency, Want,
};
use bytes::Bytes;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, Stream, StreamExt};

use crate::workers::{Job, Workers};
use crate::{Cancel, Format};

/// Most bytes of blocks that are being read or wait to be taken, per call of `blocks`; one block may
/// always be under way.
pub const MAX_BYTES_IN_HAND: u64 = 64 << 20;

/// What the jobs of one call of `blocks` share. The channel is bounded by `in_hand`.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) sender: UnboundedSender<Delivery>,
    pub(crate) in_hand: Arc<AtomicU64>,
}

/// A completion and the room it takes until somebody takes it.
pub(crate) type Delivery = (Completion, Option<Permit>);

/// Room for one block's bytes; given back when dropped.
pub(crate) struct Permit {
    in_hand: Arc<AtomicU64>,
    size_bytes: u64,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.in_hand.fetch_sub(self.size_bytes, Ordering::Relaxed);
        Workers::shared().look_again();
    }
}

/// Reads one block.
pub(crate) struct BlockJob {
    pub(crate) format: Arc<dyn Format>,
    pub(crate) dataset: Arc<Dataset>,
    pub(crate) selection: Selection,
    pub(crate) size_bytes: u64,
    pub(crate) watch: Arc<Watch>,
    pub(crate) permit: Option<Permit>,
    pub(crate) call: Call,
}

impl BlockJob {
    fn read(&self) -> Result<Arc<Block>> {
        let key = self.watch.want.key();
        if self.urgency().deadline.is_some_and(has_passed) {
            return Err(Error::new(ErrorKind::TimedOut, "the block's deadline passed before it was read"));
        }
        let array = self.dataset.array(key.array)?;
        let (target, region) = Target::new(&self.selection.shape(), array.dtype.size_bytes())?;
        self.format.read(key.array, key.level, &self.selection, region, &self.watch.cancel)?;
        let bytes = target.into_vec()?;
        let range = value_range(&bytes, array.dtype, &array.decoding);
        Ok(Arc::new(Block { key, content: Content::Data { bytes: Bytes::from(bytes), range } }))
    }

    fn deliver(mut self, result: Result<Arc<Block>>) {
        self.watch.cancel.cancel();
        let completion = Completion { key: self.watch.want.key(), result };
        // The asker may have gone; then nobody misses it.
        drop(self.call.sender.unbounded_send((completion, self.permit.take())));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "storage threads are an edge: a deadline is compared with the clock here"
)]
fn has_passed(deadline: Instant) -> bool {
    deadline < Instant::now()
}

impl Job for BlockJob {
    fn urgency(&self) -> Urgency {
        self.watch.want.urgency()
    }

    fn is_withdrawn(&self) -> bool {
        self.watch.cancel.check().is_err()
    }

    fn has_room(&self) -> bool {
        let in_hand = self.call.in_hand.load(Ordering::Relaxed);
        in_hand == 0 || in_hand.saturating_add(self.size_bytes) <= MAX_BYTES_IN_HAND
    }

    fn claim(&mut self) {
        self.call.in_hand.fetch_add(self.size_bytes, Ordering::Relaxed);
        self.permit = Some(Permit { in_hand: Arc::clone(&self.call.in_hand), size_bytes: self.size_bytes });
    }

    fn run(self: Box<Self>) {
        let key = self.watch.want.key();
        let result = self.read().map_err(|e| {
            e.context(format!("block {} of level {}, array {}", key.index, key.level, key.array))
        });
        self.deliver(result);
    }

    fn refuse(self: Box<Self>, error: Error) {
        self.deliver(Err(error));
    }
}

/// Sets a job's cancel flag when its want is cancelled: wakes as the want changes.
pub(crate) struct Watch {
    pub(crate) want: Want,
    /// Set by the want's cancellation, by the end of the stream, or because the job is done.
    pub(crate) cancel: Cancel,
}

impl Watch {
    pub(crate) fn start(want: Want) -> Arc<Self> {
        let watch = Arc::new(Self { want, cancel: Cancel::default() });
        watch.look();
        watch
    }

    /// Looks once and asks to be woken at the next change.
    fn look(self: &Arc<Self>) {
        let waker = Waker::from(Arc::clone(self));
        let mut context = Context::from_waker(&waker);
        let mut seen = 0;
        while self.cancel.check().is_ok() {
            let Poll::Ready(version) = self.want.poll_changed(&mut context, seen) else { return };
            seen = version;
            if self.want.is_cancelled() {
                self.cancel.cancel();
            }
        }
    }
}

impl Wake for Watch {
    fn wake(self: Arc<Self>) {
        self.look();
    }
}

/// The completions of one call of `blocks`; dropping it withdraws what is left.
pub(crate) struct Answers {
    /// Jobs that are submitted when their file is prepared.
    pub(crate) preparing: FuturesUnordered<BoxFuture<'static, ()>>,
    pub(crate) refused: VecDeque<Completion>,
    pub(crate) receiver: UnboundedReceiver<Delivery>,
    pub(crate) cancels: Vec<Cancel>,
}

impl Answers {
    pub(crate) fn refuse(&mut self, key: BlockKey, error: Error) {
        self.refused.push_back(Completion { key, result: Err(error) });
    }
}

impl Stream for Answers {
    type Item = Completion;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Completion>> {
        if let Some(refused) = self.refused.pop_front() {
            return Poll::Ready(Some(refused));
        }
        while let Poll::Ready(Some(())) = self.preparing.poll_next_unpin(cx) {}
        Pin::new(&mut self.receiver).poll_next(cx).map(|delivery| delivery.map(|(completion, _)| completion))
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.cancels.iter().for_each(Cancel::cancel);
    }
}

/// Reads one piece of a large read into its part of the target.
pub(crate) struct PieceJob {
    pub(crate) format: Arc<dyn Format>,
    pub(crate) request: ReadRequest,
    pub(crate) into: Region,
    pub(crate) cancel: Cancel,
    pub(crate) sender: UnboundedSender<Result<()>>,
}

impl Job for PieceJob {
    fn urgency(&self) -> Urgency {
        Urgency::of(self.request.priority)
    }

    fn is_withdrawn(&self) -> bool {
        self.cancel.check().is_err()
    }

    fn has_room(&self) -> bool {
        true
    }

    fn claim(&mut self) {}

    fn run(self: Box<Self>) {
        let Self { format, request, into, cancel, sender } = *self;
        let ReadRequest { array, level, selection, .. } = request;
        let result = format.read(array, level, &selection, into, &cancel);
        let result =
            result.map_err(|e| e.context(format!("read [{selection}] of level {level}, array {array}")));
        drop(sender.unbounded_send(result));
    }

    fn refuse(self: Box<Self>, error: Error) {
        let Self { into, sender, .. } = *self;
        drop(into);
        drop(sender.unbounded_send(Err(error)));
    }
}

/// Withdraws the pieces of a read whose future is dropped.
pub(crate) struct WithdrawOnDrop(pub(crate) Cancel);

impl Drop for WithdrawOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
