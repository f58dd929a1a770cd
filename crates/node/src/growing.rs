//! Data that grow while they are read: elements that existed before stay readable.
//!
//! A file that changed is stale: a result must not mix bytes of two states. If the file has only grown at its end
//! ([`Dataset::has_grown_from`]), a stale read is repeated, as a whole, in the current state. Blocks are not repeated:
//! the renderer gets the error that they are stale, and describes the data again. Coarser levels of longer data may be
//! computed differently: they are then stale for readers that opened the shorter ones.

use std::sync::Arc;
use std::time::Duration;

use array::{
    Completions, Dataset, DatasetId, Error, ErrorKind, Generation, Loan, PackedChunk, ReadEnds, ReadRequest,
    Region, Result, Source, Want,
};
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

/// Pauses before the data are checked again, in milliseconds: a writer may not have finished, and a server checks its
/// files once per second.
const PAUSES_MILLIS: [u64; 8] = [0, 50, 100, 200, 400, 600, 800, 1000];
/// Maximum number of failures to open the data before the search ends.
const MAX_FAILURES: u32 = 3;
/// Time for which a failed search is remembered.
const FAILURE_VALID_FOR: Duration = Duration::from_secs(1);
/// Maximum number of times that one read is repeated: the data may grow faster than they are read.
const MAX_REPEATS: u32 = 10;
/// Number of reads of one call that are repeated concurrently.
const MAX_CONCURRENT_REPEATS: usize = 64;

/// Function that opens the current state of the data.
pub(crate) type ReopenSource = Arc<dyn Fn() -> BoxFuture<'static, Result<Arc<dyn Source>>> + Send + Sync>;

/// A source of data that may grow.
#[derive(Clone)]
pub(crate) struct GrowingSource {
    current: Arc<Mutex<Arc<dyn Source>>>,
    renew: ReopenSource,
    /// For each array, the number of levels that are computed as at the time of opening; empty until the data have
    /// grown.
    kept_levels: Arc<Mutex<Vec<usize>>>,
    /// Locked during a search: the state for which the last search failed, and its time.
    looking: Arc<tokio::sync::Mutex<Option<(DatasetId, Generation, Instant)>>>,
}

fn still_lent(_: Loan) -> Error {
    Error::internal("a completed read still has its region")
}

impl GrowingSource {
    pub(crate) fn new(source: Arc<dyn Source>, renew: ReopenSource) -> Self {
        let current = Arc::new(Mutex::new(source));
        Self { current, renew, kept_levels: Arc::default(), looking: Arc::default() }
    }

    fn source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.current.lock())
    }

    /// Waits until the data have changed from `before`, and uses the new state if they have grown.
    ///
    /// # Errors
    /// `stale` if they have changed in another way, or no new state is found in time.
    ///
    /// # Cancel safety
    /// Safe.
    async fn wait_for_growth(&self, before: &Dataset, stale: Error) -> Result<()> {
        let mut failed = self.looking.lock().await;
        let is_fresh = |at: &Instant| at.elapsed() < FAILURE_VALID_FOR;
        if failed.is_some_and(|(id, generation, at)| {
            (id, generation) == (before.id, before.generation) && is_fresh(&at)
        }) {
            return Err(stale);
        }
        let found = self.find(before).await;
        if !found {
            *failed = Some((before.id, before.generation, Instant::now()));
        }
        if found { Ok(()) } else { Err(stale) }
    }

    /// Searches for data that have grown from `before`, and uses them from now on; returns false if there are none.
    async fn find(&self, before: &Dataset) -> bool {
        let is_before =
            |dataset: &Dataset| (dataset.id, dataset.generation) == (before.id, before.generation);
        // Another task may have searched meanwhile.
        if let Ok(known) = self.source().describe().await
            && !is_before(&known)
            && known.has_grown_from(before)
        {
            self.note_levels(before, &known);
            return true;
        }
        let mut failures = 0;
        for pause in PAUSES_MILLIS {
            sleep(Duration::from_millis(pause)).await;
            // A file that is being written may be malformed for a moment.
            let renewed = async {
                let source = (self.renew)().await?;
                let now = source.describe().await?;
                Ok::<_, Error>((source, now))
            };
            match renewed.await {
                Ok((_, now)) if is_before(&now) => {}
                Ok((source, now)) if now.has_grown_from(before) => {
                    tracing::debug!(name = now.name, "the data have grown");
                    self.note_levels(before, &now);
                    *self.current.lock() = source;
                    return true;
                }
                Ok(_) => return false,
                Err(_) if failures < MAX_FAILURES => failures += 1,
                Err(_) => return false,
            }
        }
        false
    }

    fn note_levels(&self, before: &Dataset, now: &Dataset) {
        let mut kept = self.kept_levels.lock();
        let count = now.arrays.len().max(kept.len());
        kept.resize(count, usize::MAX);
        for ((now, then), kept) in now.arrays.iter().zip(&before.arrays).zip(kept.iter_mut()) {
            *kept = (*kept).min(now.levels_kept_from(then));
        }
    }

    /// # Errors
    /// `Stale` for a level that is no longer computed as at the time of opening.
    fn check_level(&self, request: &ReadRequest) -> Result<()> {
        let kept = self.kept_levels.lock().get(request.array as usize).copied();
        if kept.is_none_or(|kept| usize::from(request.level) < kept) {
            return Ok(());
        }
        let what = "the data have grown, and their coarser levels are computed again: open them again";
        Err(Error::new(ErrorKind::Stale, what))
    }

    async fn read_following(self, request: ReadRequest, into: Region) -> Result<()> {
        let mut place = into;
        for number in 0.. {
            self.check_level(&request)?;
            let source = self.source();
            let before = source.describe().await?;
            let (loan, lent) = place.lend();
            let end = source.read(request.clone(), lent).await;
            match end {
                Err(stale) if stale.kind() == ErrorKind::Stale && number < MAX_REPEATS => {
                    self.wait_for_growth(&before, stale).await?;
                    place = loan.try_end().map_err(still_lent)?;
                }
                end => return end,
            }
        }
        Ok(())
    }

    async fn read_each(self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        if reads.iter().any(|(request, _)| self.check_level(request).is_err()) {
            let each = stream::iter(reads.into_iter().enumerate()).map(move |(number, (request, into))| {
                let this = self.clone();
                async move { (number, this.read_following(request, into).await) }
            });
            return each.buffer_unordered(MAX_CONCURRENT_REPEATS).boxed();
        }
        let source = self.source();
        let Ok(before) = source.describe().await else { return source.read_many(reads) };
        let (mut kept, mut lent) = (Vec::with_capacity(reads.len()), Vec::with_capacity(reads.len()));
        for (request, into) in reads {
            let (loan, region) = into.lend();
            kept.push(Some((request.clone(), loan)));
            lent.push((request, region));
        }
        let again = Arc::new(Mutex::new(Vec::new()));
        let stale = Arc::clone(&again);
        let ends = source.read_many(lent).filter_map(move |(number, end)| {
            let kept = kept.get_mut(number).and_then(Option::take);
            let is_over = match (end, kept) {
                (Err(error), Some((request, loan))) if error.kind() == ErrorKind::Stale => {
                    stale.lock().push((number, request, loan, error));
                    None
                }
                (end, _) => Some((number, end)),
            };
            std::future::ready(is_over)
        });
        let again = async move { stream::iter(std::mem::take(&mut *again.lock())) };
        let again = again.flatten_stream().map(move |(number, request, loan, error)| {
            let (this, before) = (self.clone(), Arc::clone(&before));
            async move {
                let read = async {
                    this.wait_for_growth(&before, error).await?;
                    this.read_following(request, loan.try_end().map_err(still_lent)?).await
                };
                (number, read.await)
            }
        });
        ends.chain(again.buffer_unordered(MAX_CONCURRENT_REPEATS)).boxed()
    }
}

impl Source for GrowingSource {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        self.source().describe()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        self.source().blocks(wants)
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        self.clone().read_following(request, into).boxed()
    }

    fn read_many(&self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        self.clone().read_each(reads).flatten_stream().boxed()
    }

    fn packed(&self, request: &ReadRequest) -> BoxFuture<'static, Result<Option<PackedChunk>>> {
        self.source().packed(request)
    }
}
