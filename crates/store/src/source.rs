//! Turns any [`Format`] into a [`Source`]: block wants and reads become jobs for the storage threads.
//!
//! A block's job runs when it is the most urgent one; what was withdrawn before is never read, what is
//! withdrawn while it runs ends at the format's next look at its [`Cancel`]. Finished blocks that nobody has
//! taken yet are bounded per call, so a slow asker slows only itself. What a format has to prepare first keeps no
//! thread waiting: jobs are submitted afterwards.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use array::{
    BlockInfo, Completions, Dataset, Error, ErrorKind, ReadRequest, Region, Result, Selection, Source, Want,
};
use futures::channel::mpsc::unbounded;
use futures::future::{BoxFuture, Either, FutureExt, join_all, select};
use futures::stream::{FuturesUnordered, StreamExt};

use crate::jobs::{Answers, BlockJob, Call, PieceJob, Watch, WithdrawOnDrop};
use crate::workers::{Job, Workers};
use crate::{Cancel, Format, pieces};

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

    /// What it wraps.
    #[must_use]
    pub fn format(&self) -> &Arc<dyn Format> {
        &self.format
    }

    fn block_job(&self, dataset: &Arc<Dataset>, want: Want, call: &Call) -> Result<BlockJob> {
        let BlockInfo { selection, size_bytes, .. } = dataset.block(want.key())?;
        Ok(BlockJob {
            format: Arc::clone(&self.format),
            dataset: Arc::clone(dataset),
            selection,
            size_bytes,
            watch: Watch::start(want),
            permit: None,
            call: call.clone(),
        })
    }

    fn pieces(&self, request: &ReadRequest, into: Region) -> Result<Vec<(Selection, Region)>> {
        let dataset = self.format.dataset();
        let array = request.check(&dataset, &into)?;
        pieces::cut(array, request.level, self.format.access(request.array), &request.selection, into)
    }
}

impl Source for FormatSource {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        futures::future::ready(Ok(self.format.dataset())).boxed()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        let dataset = self.format.dataset();
        let (sender, receiver) = unbounded();
        let call = Call { sender, in_hand: Arc::default() };
        let mut answers = Answers {
            preparing: FuturesUnordered::new(),
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
            match self.format.prepare(array, priority) {
                None => submit(boxed(jobs)),
                Some(preparation) => answers.preparing.push(submit_after(preparation, jobs).boxed()),
            }
        }
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
            let withdraw = WithdrawOnDrop(Cancel::default());
            let (sender, mut results) = unbounded();
            let job = |(selection, into)| {
                let (format, cancel, sender) = (Arc::clone(&format), withdraw.0.clone(), sender.clone());
                let request = ReadRequest { selection, ..request.clone() };
                Box::new(PieceJob { format, request, into, cancel, sender }) as Box<dyn Job>
            };
            submit(pieces.into_iter().map(job).collect());
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
}

/// Submits jobs when their file is prepared, unless all are withdrawn before.
async fn submit_after(preparation: BoxFuture<'static, Result<()>>, jobs: Vec<BlockJob>) {
    let prepared = {
        let withdrawn = join_all(jobs.iter().map(|job| job.watch.want.cancelled()));
        match select(std::pin::pin!(withdrawn), preparation).await {
            Either::Left(_) => return,
            Either::Right((prepared, _)) => prepared,
        }
    };
    match prepared {
        Ok(()) => submit(boxed(jobs)),
        Err(error) => boxed(jobs).into_iter().for_each(|job| job.refuse(error.clone())),
    }
}

fn boxed(jobs: Vec<BlockJob>) -> Vec<Box<dyn Job>> {
    jobs.into_iter().map(|job| Box::new(job) as Box<dyn Job>).collect()
}

fn submit(jobs: Vec<Box<dyn Job>>) {
    for job in Workers::shared().submit(jobs) {
        job.refuse(Error::new(ErrorKind::Busy, "expected room in the storage queue, found it full"));
    }
}

#[cfg(test)]
mod tests;
