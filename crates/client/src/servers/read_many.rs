//! Many reads of one call from several servers. Small reads are batched: a server with room takes as many as suit it in
//! one request. Large ones are split like any other read, a limited number at a time.

use std::cmp::Reverse;
use std::sync::Arc;

use array::{Dataset, Error, Priority, ReadEnds, ReadRequest, Region, Result, Target};
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, FuturesUnordered, StreamExt};

use super::first_answer::{Candidates, ItemUrgency, WorkItem, first_answer};
use super::group::{ReplicaSource, ServerGroup};
use super::reads::{PartTarget, read_of};
use super::scheduler::WorkRequest;
use super::work_queue::{NoServer, WorkPermit, WorkTicket};
use crate::reading::read_batches::{NumberedRead, NumberedResults, ReadBatches, all_fail};

/// Maximum number of reads in one request to a server: with 24 bytes each, enough to fill a round trip of 150 ms.
const MAX_BATCHED_READS: usize = 4_096;
/// Maximum number of large reads of one call in flight; each is split into as many parts as servers have room for.
pub(super) const MAX_LARGE_READS: usize = 64;

/// Reads from any server of the data, all of it in the current state.
///
/// # Cancel safety
/// Dropping the stream withdraws the reads that have not completed.
pub(super) fn read_many(group: Arc<ServerGroup>, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
    let begun = async move {
        let dataset = match group.dataset().await {
            Ok(dataset) => dataset,
            Err(error) => return all_fail(reads.len(), error),
        };
        let ReadBatches { ended, small, large } = ReadBatches::of(&dataset, reads);
        let small = SmallReads::new(Arc::clone(&group), Arc::clone(&dataset), small);
        let small = stream::unfold(small, async |mut small| Some((small.next().await?, small)));
        let large = stream::iter(large)
            .map(move |(number, request, into)| {
                let read = read_of(Arc::clone(&group), Arc::clone(&dataset), request, into);
                read.map(move |end| (number, end))
            })
            .buffer_unordered(MAX_LARGE_READS);
        let rest = stream::select(small.flat_map(stream::iter), large);
        stream::iter(ended).chain(rest).boxed()
    };
    begun.flatten_stream().boxed()
}

/// Small reads, and those of them in flight.
struct SmallReads {
    group: Arc<ServerGroup>,
    dataset: Arc<Dataset>,
    /// Reads that are not requested yet; the next one is the last.
    rest: Vec<NumberedRead>,
    rest_bytes: u64,
    turn: Option<WorkTicket>,
    parts: FuturesUnordered<BoxFuture<'static, NumberedResults>>,
}

impl SmallReads {
    /// Creates a queue of reads that are valid for `dataset`.
    fn new(group: Arc<ServerGroup>, dataset: Arc<Dataset>, mut rest: Vec<NumberedRead>) -> Self {
        rest.sort_by_key(|(number, request, _)| (request.priority, Reverse(*number)));
        let rest_bytes = size_bytes(&rest);
        Self { group, dataset, rest, rest_bytes, turn: None, parts: FuturesUnordered::new() }
    }

    /// Returns the results of some reads; `None` if all have completed.
    async fn next(&mut self) -> Option<NumberedResults> {
        loop {
            if self.turn.is_none()
                && let Some((_, request, _)) = self.rest.last()
            {
                self.turn = Some(self.group.queue.ask(WorkRequest {
                    priority: request.priority,
                    bytes: self.rest_bytes,
                    is_one_piece: false,
                    may: self.group.all(),
                    is_second: false,
                }));
            }
            let Self { turn: Some(waiting), parts, .. } = self else { return self.parts.next().await };
            tokio::select! {
                biased;
                Some(ends) = parts.next(), if !parts.is_empty() => return Some(ends),
                granted = waiting.granted() => {
                    self.turn = None;
                    match granted {
                        Ok(permit) => self.begin(permit),
                        Err(NoServer) => return Some(self.give_up()),
                    }
                }
            }
        }
    }

    /// Sends the next reads to a server: as many as suit it, all of one priority.
    fn begin(&mut self, mut permit: WorkPermit) {
        let Some((_, ReadRequest { priority, .. }, _)) = self.rest.last() else { return };
        let mut bytes = 0;
        let fit = |(_, request, into): &&NumberedRead| {
            bytes += into.size_bytes() as u64;
            request.priority == *priority && bytes <= permit.bytes()
        };
        let count = self.rest.iter().rev().take(MAX_BATCHED_READS).take_while(fit).count().max(1);
        let reads = self.rest.split_off(self.rest.len() - count);
        let taken_bytes = size_bytes(&reads);
        self.rest_bytes -= taken_bytes;
        permit.resize(taken_bytes);
        let part = part(Arc::clone(&self.group), Arc::clone(&self.dataset), reads, permit);
        self.parts.push(part.boxed());
    }

    fn give_up(&mut self) -> NumberedResults {
        let error = self.group.no_answer(&self.dataset, &[]);
        self.rest.drain(..).map(|(number, ..)| (number, Err(error.clone()))).collect()
    }
}

fn size_bytes(reads: &[NumberedRead]) -> u64 {
    reads.iter().map(|(_, _, into)| into.size_bytes() as u64).sum()
}

/// Reads in one request to a server, and the regions of their results.
struct ReadBatch {
    priority: Priority,
    numbers: Vec<usize>,
    requests: Vec<ReadRequest>,
    places: Vec<PartTarget>,
}

async fn part(
    group: Arc<ServerGroup>,
    dataset: Arc<Dataset>,
    reads: Vec<NumberedRead>,
    permit: WorkPermit,
) -> NumberedResults {
    let priority = reads.first().map(|(_, request, _)| request.priority).unwrap_or_default();
    let count = reads.len();
    let (numbers, requests, places) = (Vec::with_capacity(count), Vec::with_capacity(count), Vec::new());
    let mut part = ReadBatch { priority, numbers, requests, places };
    for (number, request, into) in reads {
        part.numbers.push(number);
        part.requests.push(request);
        part.places.push(PartTarget::of(into));
    }
    match part.ask(&group, &dataset, permit).await {
        Ok(apart) => part.deliver(apart).await,
        Err(_) => part.each_alone(&group, &dataset).await,
    }
}

impl ReadBatch {
    /// Asks servers until one has answered the whole request; returns the data that could not be written to their
    /// region, because another server was writing there.
    async fn ask(
        &mut self,
        group: &ServerGroup,
        dataset: &Arc<Dataset>,
        permit: WorkPermit,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let Self { priority, requests, places, .. } = self;
        let piece = WorkItem {
            asked: ItemUrgency::Fixed(*priority),
            bytes: permit.bytes(),
            candidates: Candidates::any(group.all()),
            first: Some(permit),
        };
        first_answer(group, dataset, piece, |member, _| {
            let lent = places.iter_mut().map(PartTarget::lend);
            let asked = requests.iter().cloned().zip(lent).collect();
            Box::pin(async move {
                let apart = read_all(group.source(member), dataset, asked).await?;
                group.check_same(member, dataset).await?;
                Ok(apart)
            })
        })
        .await
    }

    async fn deliver(self, apart: Vec<Option<Vec<u8>>>) -> NumberedResults {
        let mut ends = Vec::with_capacity(apart.len());
        for ((number, place), bytes) in self.numbers.into_iter().zip(self.places).zip(apart) {
            let end = match bytes {
                Some(bytes) => place.take_back().await.map_or(Ok(()), |mut region| region.write_all(&bytes)),
                None => Ok(()),
            };
            ends.push((number, end));
        }
        ends
    }

    /// Reads each one alone, so that a read that fails does not affect the others.
    async fn each_alone(self, group: &Arc<ServerGroup>, dataset: &Arc<Dataset>) -> NumberedResults {
        let reads = self.numbers.into_iter().zip(self.requests).zip(self.places);
        let alone = reads.map(async |((number, request), place)| match place.take_back().await {
            Some(into) => (number, read_of(Arc::clone(group), Arc::clone(dataset), request, into).await),
            None => (number, Err(Error::internal("the region of a read was lost"))),
        });
        stream::iter(alone).buffer_unordered(MAX_LARGE_READS).collect().await
    }
}

/// Reads all from one server: into the region of each, or into separate memory if that is lent.
async fn read_all(
    source: &Arc<dyn ReplicaSource>,
    dataset: &Dataset,
    asked: Vec<(ReadRequest, Option<Region>)>,
) -> Result<Vec<Option<Vec<u8>>>> {
    let count = asked.len();
    let (mut reads, mut targets) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for (request, place) in asked {
        let (target, into) = match place {
            Some(into) => (None, into),
            None => {
                let item_bytes = dataset.array(request.array)?.dtype.size_bytes();
                let (target, into) = Target::new(&request.selection.shape(), item_bytes)?;
                (Some(target), into)
            }
        };
        reads.push((request, into));
        targets.push(target);
    }
    let mut ends = source.read_many(reads);
    let mut ended = 0;
    while let Some((_, end)) = ends.next().await {
        end?;
        ended += 1;
    }
    if ended != count {
        return Err(Error::internal(format!("expected {count} reads to end, found {ended}")));
    }
    targets.into_iter().map(|target| target.map(Target::into_vec).transpose()).collect()
}
