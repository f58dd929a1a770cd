//! Data that grow while they are read: existing elements stay readable.
//!
//! A read of a changed file fails with `Stale`, because a result must not mix bytes of two states. If the data have
//! only grown at the end ([`Dataset::has_grown_from`]), the whole read is repeated in the current state. Requests for
//! blocks are not repeated: the renderer receives the error and describes the data again. Coarser levels may be
//! computed differently for longer data; they then stay stale for readers that opened the shorter data.

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

/// Pauses before each check of the data, in milliseconds: a writer may need some time, and a server checks its files
/// once per second.
const PAUSES_MILLIS: [u64; 8] = [0, 50, 100, 200, 400, 600, 800, 1000];
/// Maximum number of failures to open the data during one search for their new state.
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
    reopen: ReopenSource,
    /// For each array, the number of levels that are computed as at the time of opening; empty until the data have
    /// grown.
    kept_levels: Arc<Mutex<Vec<usize>>>,
    /// State for which the last search failed, and the time; locked during a search.
    last_failure: Arc<tokio::sync::Mutex<Option<(DatasetId, Generation, Instant)>>>,
}

fn still_lent(_: Loan) -> Error {
    Error::internal("a completed read still has its region")
}

impl GrowingSource {
    pub(crate) fn new(source: Arc<dyn Source>, reopen: ReopenSource) -> Self {
        let current = Arc::new(Mutex::new(source));
        Self { current, reopen, kept_levels: Arc::default(), last_failure: Arc::default() }
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
        let mut failed = self.last_failure.lock().await;
        let is_fresh = |at: &Instant| at.elapsed() < FAILURE_VALID_FOR;
        if failed.is_some_and(|(id, generation, at)| {
            (id, generation) == (before.id, before.generation) && is_fresh(&at)
        }) {
            return Err(stale);
        }
        if self.find_grown(before).await {
            return Ok(());
        }
        *failed = Some((before.id, before.generation, Instant::now()));
        Err(stale)
    }

    /// Searches for data that have grown from `before`, and uses them from now on; returns false if there are none.
    async fn find_grown(&self, before: &Dataset) -> bool {
        let is_before =
            |dataset: &Dataset| (dataset.id, dataset.generation) == (before.id, before.generation);
        // Another task may have searched meanwhile.
        if let Ok(known) = self.source().describe().await
            && !is_before(&known)
            && known.has_grown_from(before)
        {
            self.update_kept_levels(before, &known);
            return true;
        }
        let mut failures = 0;
        for pause in PAUSES_MILLIS {
            sleep(Duration::from_millis(pause)).await;
            // A file that is being written may be malformed for a moment.
            let reopened = async {
                let source = (self.reopen)().await?;
                let now = source.describe().await?;
                Ok::<_, Error>((source, now))
            };
            match reopened.await {
                Ok((_, now)) if is_before(&now) => {}
                Ok((source, now)) if now.has_grown_from(before) => {
                    tracing::debug!(name = now.name, "the data have grown");
                    self.update_kept_levels(before, &now);
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

    /// Updates the number of levels that are computed as at the time of opening.
    fn update_kept_levels(&self, before: &Dataset, now: &Dataset) {
        let mut kept = self.kept_levels.lock();
        let count = now.arrays.len().max(kept.len());
        kept.resize(count, usize::MAX);
        for ((now, then), kept) in now.arrays.iter().zip(&before.arrays).zip(kept.iter_mut()) {
            *kept = (*kept).min(now.levels_kept_from(then));
        }
    }

    /// Checks that the level of a request is still computed as at the time of opening.
    ///
    /// # Errors
    /// `Stale` for a level that is no longer computed as at the time of opening.
    fn check_level(&self, request: &ReadRequest) -> Result<()> {
        let kept = self.kept_levels.lock().get(request.array as usize).copied();
        if kept.is_none_or(|kept| usize::from(request.level) < kept) {
            return Ok(());
        }
        let what = "the data have grown and their coarser levels have changed; open them again";
        Err(Error::new(ErrorKind::Stale, what))
    }

    /// Reads, and repeats the read in the current state if the data have grown.
    async fn read_with_repeats(self, request: ReadRequest, into: Region) -> Result<()> {
        let mut region = into;
        for number in 0.. {
            self.check_level(&request)?;
            let source = self.source();
            let before = source.describe().await?;
            let (loan, lent) = region.lend();
            let result = source.read(request.clone(), lent).await;
            match result {
                Err(stale) if stale.kind() == ErrorKind::Stale && number < MAX_REPEATS => {
                    self.wait_for_growth(&before, stale).await?;
                    region = loan.try_end().map_err(still_lent)?;
                }
                result => return result,
            }
        }
        Ok(())
    }

    /// Reads many selections, and repeats those that are stale if the data have grown.
    async fn read_many_with_repeats(self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        if reads.iter().any(|(request, _)| self.check_level(request).is_err()) {
            let each = stream::iter(reads.into_iter().enumerate()).map(move |(number, (request, into))| {
                let this = self.clone();
                async move { (number, this.read_with_repeats(request, into).await) }
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
        let to_repeat = Arc::new(Mutex::new(Vec::new()));
        let stale = Arc::clone(&to_repeat);
        let ends = source.read_many(lent).filter_map(move |(number, end)| {
            let kept = kept.get_mut(number).and_then(Option::take);
            let completed = match (end, kept) {
                (Err(error), Some((request, loan))) if error.kind() == ErrorKind::Stale => {
                    stale.lock().push((number, request, loan, error));
                    None
                }
                (end, _) => Some((number, end)),
            };
            std::future::ready(completed)
        });
        let to_repeat = async move { stream::iter(std::mem::take(&mut *to_repeat.lock())) };
        let repeated = to_repeat.flatten_stream().map(move |(number, request, loan, error)| {
            let (this, before) = (self.clone(), Arc::clone(&before));
            async move {
                let read = async {
                    this.wait_for_growth(&before, error).await?;
                    this.read_with_repeats(request, loan.try_end().map_err(still_lent)?).await
                };
                (number, read.await)
            }
        });
        ends.chain(repeated.buffer_unordered(MAX_CONCURRENT_REPEATS)).boxed()
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
        self.clone().read_with_repeats(request, into).boxed()
    }

    fn read_many(&self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        self.clone().read_many_with_repeats(reads).flatten_stream().boxed()
    }

    fn packed(&self, request: &ReadRequest) -> BoxFuture<'static, Result<Option<PackedChunk>>> {
        self.source().packed(request)
    }
}
