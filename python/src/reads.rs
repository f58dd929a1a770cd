//! Execution of reads for Python: reads of one call are requested together, of any data sets, and their elements are
//! converted on the storage threads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use array::{
    AxisRange, Dataset, Error, ErrorKind, Priority, ReadRequest, Region, Result, Selection, Source, Target,
    decode,
};
use futures::stream::{self, BoxStream, Stream, StreamExt};
use pyo3::prelude::*;
use store::on_pool;
use wire::ops::BlockPlace;

/// Maximum number of completed reads in one conversion job, so that small ones share its cost.
const MAX_JOB_READS: usize = 256;
/// Maximum number of bytes in one conversion job, so that large reads are converted concurrently.
const MAX_JOB_BYTES: usize = 1 << 20;
/// Maximum number of conversion jobs of one call that run or wait for a thread.
const MAX_JOBS: usize = 1024;

/// Elements to read: number of the array, level, and `(start, count, step)` of each axis in C order.
#[derive(Clone, Debug, FromPyObject)]
pub(crate) struct SelectionArgument(u32, u8, Vec<(u64, u64, u64)>);

impl SelectionArgument {
    /// Converts it to the place and selection that operations take.
    pub(crate) fn place(self, dataset: &Dataset) -> Result<(BlockPlace, Selection)> {
        let Self(array, level, ranges) = self;
        let place = BlockPlace { dataset: dataset.id, generation: dataset.generation, array, level };
        Ok((place, selection(ranges)?))
    }
}

fn selection(ranges: Vec<(u64, u64, u64)>) -> Result<Selection> {
    Selection::new(ranges.into_iter().map(|(start, count, step)| AxisRange { start, count, step }))
}

/// Whether the description of a connection may be outdated, because a request found that the data have changed or that
/// the server cannot be reached. Clones share the flag.
#[derive(Clone, Default)]
pub(crate) struct StaleFlag(Arc<AtomicBool>);

impl StaleFlag {
    /// Updates the flag by a result, and returns the result.
    pub(crate) fn note<T>(&self, end: Result<T>) -> Result<T> {
        end.inspect_err(|error| {
            if matches!(error.kind(), ErrorKind::Stale | ErrorKind::Unreachable) {
                self.0.store(true, Ordering::Relaxed);
            }
        })
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Reads elements and converts them for Python: C order, the host's byte order, decoded if requested.
#[derive(Clone)]
pub(crate) struct ElementReader {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) dataset: Arc<Dataset>,
    pub(crate) is_decoded: bool,
    pub(crate) priority: Priority,
    pub(crate) stale: StaleFlag,
}

impl ElementReader {
    /// Reads one selection.
    pub(crate) async fn read(self, wanted: SelectionArgument) -> Result<Vec<u8>> {
        let (request, region, target) = self.request(wanted)?;
        let end = self.source.read(request, region).await;
        let arrived = check_states(vec![(0, Some((target, end)))]).await;
        let (_, elements) = finish_together(arrived).await.remove(0);
        elements
    }

    /// Checks that the source still describes the data that this connection was opened with, or data that have grown
    /// from them. A source that finds changed data describes and reads those from then on.
    async fn check_state(&self) -> Result<()> {
        let now = self.source.describe().await?;
        let is_same = (now.id, now.generation) == (self.dataset.id, self.dataset.generation);
        // Data that have grown at the end keep the existing elements at their positions.
        if is_same || now.has_grown_from(&self.dataset) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Stale, "the data have changed since they were opened; open them again"))
    }

    fn request(&self, wanted: SelectionArgument) -> Result<(ReadRequest, Region, ReadTarget)> {
        let SelectionArgument(number, level, ranges) = wanted;
        let array = self.dataset.array(number)?;
        let selection = selection(ranges)?;
        selection.check(&array.level(level)?.shape)?;
        let (target, region) = Target::new(&selection.shape(), array.dtype.size_bytes())?;
        let target =
            ReadTarget { target, size_bytes: region.size_bytes(), array: number, reader: self.clone() };
        Ok((ReadRequest { array: number, level, selection, priority: self.priority }, region, target))
    }
}

/// Reads many selections, each with its own reader, in one request. Each completes once, by its number, in any order.
pub(crate) fn read_each(
    requests: Vec<(ElementReader, SelectionArgument)>,
) -> impl Stream<Item = (usize, Result<Vec<u8>>)> + Send + 'static {
    let mut refused = Vec::new();
    let mut targets = Vec::with_capacity(requests.len());
    let mut by_source = BTreeMap::<usize, SourceReads>::new();
    for (number, (reader, wanted)) in requests.into_iter().enumerate() {
        let target = match reader.request(wanted) {
            Ok((request, region, target)) => {
                let source = Arc::as_ptr(&reader.source).cast::<()>().addr();
                by_source
                    .entry(source)
                    .or_insert_with(|| SourceReads::of(reader.source))
                    .add(number, request, region);
                Some(target)
            }
            Err(error) => {
                refused.push((number, Err(error)));
                None
            }
        };
        targets.push(target);
    }
    let ended = stream::select_all(by_source.into_values().map(SourceReads::begin))
        .map(move |(number, end)| (number, targets[number].take().map(|target| (target, end))));
    let finished = ended
        .ready_chunks(MAX_JOB_READS)
        .then(check_states)
        .flat_map(|arrived| stream::iter(in_jobs(arrived)))
        .map(finish_together)
        .buffer_unordered(MAX_JOBS);
    stream::iter(refused).chain(finished.flat_map(stream::iter))
}

/// Reads of one data set, which share their cost.
struct SourceReads {
    source: Arc<dyn Source>,
    /// Number of each read in the call.
    numbers: Vec<usize>,
    reads: Vec<(ReadRequest, Region)>,
}

impl SourceReads {
    fn of(source: Arc<dyn Source>) -> Self {
        Self { source, numbers: Vec::new(), reads: Vec::new() }
    }

    fn add(&mut self, number: usize, request: ReadRequest, into: Region) {
        self.numbers.push(number);
        self.reads.push((request, into));
    }

    fn begin(self) -> BoxStream<'static, (usize, Result<()>)> {
        let Self { source, numbers, reads } = self;
        source.read_many(reads).map(move |(place, end)| (numbers[place], end)).boxed()
    }
}

/// Target of a read's elements, and their form for Python.
struct ReadTarget {
    target: Target,
    size_bytes: usize,
    array: u32,
    reader: ElementReader,
}

impl ReadTarget {
    fn finish(self) -> Result<Vec<u8>> {
        let array = self.reader.dataset.array(self.array)?;
        let mut elements = self.target.into_vec()?;
        if self.reader.is_decoded {
            return decode(&elements, array.dtype, &array.decoding);
        }
        array.dtype.to_native(&mut elements);
        Ok(elements)
    }

    /// Returns whether the elements need a conversion.
    fn needs_conversion(&self) -> bool {
        self.reader.is_decoded || self.reader.dataset.array(self.array).is_ok_and(|a| a.dtype.is_swapped())
    }
}

/// A read whose elements have arrived, or its error.
type ArrivedRead = (usize, Result<ReadTarget>);

/// A read that has completed, and its result.
type EndedRead = (usize, Option<(ReadTarget, Result<()>)>);

/// Checks that the data of completed reads are still those that their connection was opened with; otherwise elements,
/// and errors with that cause, become the error `Stale`. To be called after the reads have completed, because a source
/// may find changed data at any time before.
async fn check_states(ended: Vec<EndedRead>) -> Vec<ArrivedRead> {
    let mut states: BTreeMap<usize, Result<()>> = BTreeMap::new();
    let mut arrived = Vec::with_capacity(ended.len());
    for (number, once) in ended {
        let Some((target, end)) = once else {
            arrived.push((number, Err(Error::internal("a read ended twice"))));
            continue;
        };
        let connection = Arc::as_ptr(&target.reader.dataset).addr();
        let state = match states.get(&connection) {
            Some(state) => state.clone(),
            None => target.reader.check_state().await,
        };
        states.insert(connection, state.clone());
        let end = match state {
            Err(state) if end.is_ok() || state.kind() == ErrorKind::Stale => Err(state),
            _ => end,
        };
        arrived.push((number, target.reader.stale.note(end).map(|()| target)));
    }
    arrived
}

/// Splits reads that completed together into jobs.
fn in_jobs(arrived: Vec<ArrivedRead>) -> Vec<Vec<ArrivedRead>> {
    let mut jobs: Vec<Vec<ArrivedRead>> = Vec::new();
    let mut room_bytes = 0;
    for one in arrived {
        let size_bytes = one.1.as_ref().map_or(0, |target| target.size_bytes);
        match jobs.last_mut() {
            Some(job) if size_bytes <= room_bytes => {
                room_bytes -= size_bytes;
                job.push(one);
            }
            _ => {
                room_bytes = MAX_JOB_BYTES.saturating_sub(size_bytes);
                jobs.push(vec![one]);
            }
        }
    }
    jobs
}

/// Converts the elements of reads, if needed, in one job on a storage thread: the tasks that drive connections must not
/// be delayed.
async fn finish_together(arrived: Vec<ArrivedRead>) -> Vec<(usize, Result<Vec<u8>>)> {
    let finish = |(number, target): ArrivedRead| (number, target.and_then(ReadTarget::finish));
    let mut work =
        arrived.iter().filter_map(|(_, target)| target.as_ref().ok()).filter(|l| l.needs_conversion());
    let Some(priority) = work.next().map(|target| target.reader.priority) else {
        return arrived.into_iter().map(finish).collect();
    };
    let numbers: Vec<usize> = arrived.iter().map(|(number, _)| *number).collect();
    let finished = on_pool(priority, move |_| Ok(arrived.into_iter().map(finish).collect())).await;
    finished.unwrap_or_else(|error| numbers.into_iter().map(|number| (number, Err(error.clone()))).collect())
}
