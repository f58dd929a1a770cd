//! Adapter of any [`Format`] to a [`Source`]: block wants and reads become jobs for the storage threads.
//!
//! A block's job runs when it is the most urgent one. A want that is cancelled before is never read; one that is cancelled while it
//! runs ends at the format's next check of its [`CancelFlag`]. Finished blocks that are not taken yet are bounded per call, so a slow
//! caller slows only itself. Preparation of a format (such as the index of a gzip file) blocks no thread: jobs are submitted after it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Waker};

use array::{
    BlockInfo, Completions, Dataset, Error, PackedChunk, ReadEnds, ReadRequest, Region, Result, Selection,
    Source, Want,
};
use futures::channel::mpsc;
use futures::future::{BoxFuture, Either, FutureExt, join_all, select};
use futures::stream::{FuturesUnordered, StreamExt};

use crate::io::batch_reads::{SmallRead, read_together};
use crate::schedule::jobs::{
    BlockJob, BlocksCall, CancelWatch, CancelWorkOnDrop, CompletionStream, PieceJob, queue_all,
};
use crate::schedule::pool::on_pool;
use crate::schedule::workers::{WorkerJob, Workers};
use crate::{CancelFlag, Format, schedule::read_pieces};

/// A format as a source.
#[derive(Clone)]
pub struct FormatSource {
    format: Arc<dyn Format>,
}

impl FormatSource {
    /// Wraps an opened format.
    #[must_use]
    pub fn new(format: Arc<dyn Format>) -> Self {
        Self { format }
    }

    /// Returns the wrapped format.
    #[must_use]
    pub fn format(&self) -> &Arc<dyn Format> {
        &self.format
    }

    fn block_job(&self, dataset: &Arc<Dataset>, want: Want, call: &BlocksCall) -> Result<BlockJob> {
        let BlockInfo { selection, size_bytes, .. } = dataset.block(want.key())?;
        Ok(BlockJob {
            format: Arc::clone(&self.format),
            dataset: Arc::clone(dataset),
            selection,
            size_bytes,
            watch: CancelWatch::start(want, call),
            permit: None,
            call: call.clone(),
        })
    }

    /// Returns the cost of a read, if it is above 0 and so little that the read need not be cut, and nothing
    /// has to be prepared first.
    fn small_cost(&self, dataset: &Dataset, request: &ReadRequest, into: &Region) -> Option<u64> {
        let array = request.check(dataset, into).ok()?;
        let access = self.format.access(request.array);
        let cost = read_pieces::read_cost(array, request.level, access, &request.selection);
        let is_prepared = || self.format.prepare(request.array, request.priority).is_none();
        Some(cost).filter(|&cost| 0 < cost && cost < read_pieces::PIECE_COST && is_prepared())
    }

    fn pieces(&self, request: &ReadRequest, into: Region) -> Result<Vec<(Selection, Region)>> {
        let dataset = self.format.dataset();
        let array = request.check(&dataset, &into)?;
        read_pieces::cut(array, request.level, self.format.access(request.array), &request.selection, into)
    }
}

impl Source for FormatSource {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        futures::future::ready(Ok(self.format.dataset())).boxed()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        let dataset = self.format.dataset();
        let (sender, receiver) = mpsc::channel(wants.len());
        let call = BlocksCall::new(sender);
        let mut answers = CompletionStream {
            queueing: FuturesUnordered::new(),
            refused: VecDeque::new(),
            receiver,
            cancels: Vec::new(),
        };
        let mut by_array: BTreeMap<u32, Vec<BlockJob>> = BTreeMap::new();
        for want in wants {
            let key = want.key();
            match self.block_job(&dataset, want, &call) {
                Err(error) => answers.refuse(key, error),
                Ok(job) => {
                    answers.cancels.push(job.watch.cancel.clone());
                    by_array.entry(key.array).or_default().push(job);
                }
            }
        }
        for (array, jobs) in by_array {
            let priority = jobs.iter().map(|job| job.urgency().priority).max().unwrap_or_default();
            let preparation = self.format.prepare(array, priority);
            answers.queueing.push(queue_prepared(preparation, jobs, call.clone()).boxed());
        }
        drop(call);
        // Jobs that fit begin before the stream is polled.
        answers.queue(&mut Context::from_waker(Waker::noop()));
        answers.boxed()
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        let pieces = self.pieces(&request, into);
        let format = Arc::clone(&self.format);
        async move {
            let pieces = pieces?;
            if let Some(preparation) = format.prepare(request.array, request.priority) {
                preparation.await?;
            }
            let expected = pieces.len();
            let workers = Workers::of(&*format);
            let withdraw = CancelWorkOnDrop(CancelFlag::default());
            let (sender, mut results) = mpsc::channel(expected);
            for (selection, into) in pieces {
                let permit = workers.permit().await;
                let (format, cancel, sender) = (Arc::clone(&format), withdraw.0.clone(), sender.clone());
                let request = ReadRequest { selection, ..request.clone() };
                let job = PieceJob { format, request, into, cancel, sender };
                workers.submit(Box::new(job), permit);
            }
            drop(sender);
            let mut finished = 0;
            while let Some(result) = results.next().await {
                result?;
                finished += 1;
            }
            if finished < expected {
                return Err(Error::internal(format!(
                    "expected {expected} pieces of a read, found {finished}"
                )));
            }
            Ok(())
        }
        .boxed()
    }

    fn packed(&self, request: &ReadRequest) -> BoxFuture<'static, Result<Option<PackedChunk>>> {
        let (format, request) = (Arc::clone(&self.format), request.clone());
        on_pool(request.priority, move |cancel| {
            let dataset = format.dataset();
            let ReadRequest { array, level, selection, .. } = request;
            selection.check(&dataset.array(array)?.level(level)?.shape)?;
            format.packed(array, level, &selection, cancel)
        })
        .boxed()
    }

    fn read_many(&self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        let dataset = self.format.dataset();
        let (mut small, large) = (Vec::new(), FuturesUnordered::new());
        for (number, (request, into)) in reads.into_iter().enumerate() {
            match self.small_cost(&dataset, &request, &into) {
                Some(cost) => small.push(SmallRead { number, request, into, cost }),
                None => large.push(self.read(request, into).map(move |end| (number, end))),
            }
        }
        let small = read_together(&self.format, small);
        if large.is_empty() { small } else { futures::stream::select(small, large).boxed() }
    }
}

/// Queues jobs when their file is prepared, unless all are withdrawn before.
async fn queue_prepared(
    preparation: Option<BoxFuture<'static, Result<()>>>,
    jobs: Vec<BlockJob>,
    call: BlocksCall,
) {
    if let Some(preparation) = preparation {
        let prepared = {
            let withdrawn = join_all(jobs.iter().map(|job| job.watch.want.cancelled()));
            match select(std::pin::pin!(withdrawn), preparation).await {
                Either::Left(_) => return,
                Either::Right((prepared, _)) => prepared,
            }
        };
        if let Err(error) = prepared {
            return jobs.into_iter().for_each(|job| job.deliver(Err(error.clone())));
        }
    }
    queue_all(jobs, call).await;
}

#[cfg(test)]
mod tests;
