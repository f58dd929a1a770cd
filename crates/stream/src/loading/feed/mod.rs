//! Movement of blocks from a source to the volumes that participants view: the I/O around [`Loader`].

mod placer;

use std::collections::VecDeque;
use std::future::ready;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use array::{
    Block, BlockKey, Completion, Completions, DatasetId, Error, ErrorKind, Generation, Result, Source,
};
use futures::future::OptionFuture;
use futures::stream::{BoxStream, SelectAll};
use futures::{FutureExt, StreamExt};
use session::ParticipantId;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::loading::loader::{BlockRequest, FailedBlocks, Loader};
use crate::loading::volume::Volumes;
use crate::tasks::sleep_until;

use placer::Placer;

/// Most blocks placed in one batch, all of one level. Larger batches are cheaper per block, but pictures see
/// a block only when its whole batch has been placed.
pub(crate) const MAX_PLACED_AT_ONCE: usize = 32;
/// Most answers taken before other events are handled.
const MAX_TAKEN_AT_ONCE: usize = 32;

/// Answer of a source: one block of a batch, or the end of the batch.
enum BatchAnswer {
    One(u64, Completion),
    End(u64),
}

/// Hint that a data set has changed since it was described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StaleHint {
    /// Identity and generation of the data set as described.
    pub(crate) data: (DatasetId, Generation),
    /// True if a request for one of its blocks failed for this reason.
    pub(crate) is_certain: bool,
}

/// Loader, and the signals that wake it.
pub(crate) struct Feed {
    loader: Mutex<Loader>,
    changed: Notify,
    /// Newest hint about a changed data set.
    stale: watch::Sender<Option<StaleHint>>,
    source: Arc<dyn Source>,
    volumes: Arc<Volumes>,
    placer: Arc<Placer>,
}

impl Feed {
    /// Creates a feed. `max_bytes_in_flight`: hard limit of bytes requested and not yet placed.
    pub(crate) fn new(source: Arc<dyn Source>, volumes: Arc<Volumes>, max_bytes_in_flight: u64) -> Self {
        Self {
            loader: Mutex::new(Loader::new(max_bytes_in_flight)),
            changed: Notify::new(),
            stale: watch::Sender::new(None),
            source,
            volumes,
            placer: Arc::new(Placer::new()),
        }
    }

    /// Replaces the requests of `who` by those that `lacking` returns. The loader is locked while `lacking`
    /// examines the pool, so that a block that was just placed is not fetched again.
    pub(crate) fn request(&self, who: ParticipantId, lacking: impl FnOnce() -> Vec<BlockRequest>) {
        self.with(|loader| loader.request(who, lacking()));
        self.changed.notify_one();
    }

    /// Removes all requests of `who`.
    pub(crate) fn forget(&self, who: ParticipantId) {
        self.with(|loader| loader.forget(who));
        self.changed.notify_one();
    }

    /// Returns the number of blocks that `who` lacks, and the failures among them.
    pub(crate) fn block_status(&self, who: ParticipantId) -> (u64, FailedBlocks) {
        self.with(|loader| (loader.lacking(who), loader.failed_blocks(who)))
    }

    /// Returns a receiver of hints about changed data sets.
    pub(crate) fn stale(&self) -> watch::Receiver<Option<StaleHint>> {
        self.stale.subscribe()
    }

    /// Wants and bytes in flight.
    pub(crate) fn in_flight(&self) -> (usize, u64) {
        self.with(|loader| loader.in_flight())
    }

    /// Returns the total time spent placing blocks.
    pub(crate) fn time_placing(&self) -> Duration {
        self.placer.time_worked()
    }

    /// Fetches blocks forever.
    ///
    /// # Cancel safety
    /// Dropping the future cancels all wants.
    pub(crate) async fn run(&self) {
        let mut answers: SelectAll<BoxStream<'static, BatchAnswer>> = SelectAll::new();
        // Blocks to place, and blocks that need memory still held by a picture. Both count as in flight,
        // which bounds them.
        let (mut arrived, mut crowded) = (VecDeque::new(), Vec::new());
        let (mut placing, mut patient) = (None, None);
        loop {
            if placing.is_none() && !arrived.is_empty() {
                placing = Some(Box::pin(self.place_now(next_to_place(&mut arrived))));
            }
            if patient.is_none() && !crowded.is_empty() {
                patient = Some(Box::pin(self.place_in_time(std::mem::take(&mut crowded))));
            }
            let started = self.with(|loader| loader.start(Instant::now()));
            if let Some((batch, wants)) = started {
                answers.push(label(batch, self.source.blocks(wants)));
            }
            let retry_at = self.with(|loader| loader.next_retry());
            tokio::select! {
                () = self.changed.notified() => {}
                Some(answer) = answers.next(), if !answers.is_empty() => {
                    arrived.extend(self.take(answer, &mut answers));
                }
                Some(waiting) = OptionFuture::from(placing.as_mut()) => {
                    placing = None;
                    crowded.extend(waiting);
                }
                Some(()) = OptionFuture::from(patient.as_mut()) => patient = None,
                () = sleep_until(retry_at) => {}
            }
        }
    }

    /// Takes an answer and those that are ready with it; returns their blocks. Failures are announced at
    /// once, blocks when they have been placed.
    fn take(
        &self,
        first: BatchAnswer,
        more: &mut SelectAll<BoxStream<'static, BatchAnswer>>,
    ) -> Vec<Arc<Block>> {
        let mut next = Some(first);
        let (mut arrived, mut has_failed) = (Vec::new(), false);
        while let Some(answer) = next {
            let now = Instant::now();
            match answer {
                BatchAnswer::One(batch, Completion { key, result }) => {
                    self.note_stale(&key, &result);
                    has_failed |= result.is_err();
                    arrived.extend(self.with(|loader| loader.complete(batch, key, result, now)));
                }
                BatchAnswer::End(batch) => has_failed |= self.with(|loader| loader.ended(batch, now)),
            }
            let is_enough = arrived.len() >= MAX_TAKEN_AT_ONCE;
            next = if is_enough { None } else { more.next().now_or_never().flatten() };
        }
        if has_failed {
            self.announce();
        }
        arrived
    }

    /// Reports a hint that a data set has changed since it was described.
    pub(crate) fn report_stale(&self, hint: StaleHint) {
        // All failed blocks give the same certain hint, which is reported once; an uncertain one is always
        // checked again.
        let is_news = |known: Option<StaleHint>| known != Some(hint) || !hint.is_certain;
        self.stale.send_if_modified(|known| is_news(known.replace(hint)));
    }

    fn note_stale(&self, key: &BlockKey, result: &Result<Arc<Block>>) {
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Stale) {
            self.report_stale(StaleHint { data: (key.dataset, key.generation), is_certain: true });
        }
    }

    /// Places blocks into all volumes that contain them; returns those that have to wait for memory. Runs on
    /// the placer's thread, while a blocking task waits for it, which also stops the paused clock of tests.
    async fn place_now(&self, blocks: Vec<Arc<Block>>) -> Vec<Arc<Block>> {
        let (volumes, placer, placed) = (Arc::clone(&self.volumes), Arc::clone(&self.placer), blocks.clone());
        let work = move || placer.run(move || into_all(&volumes, &placed));
        let outcomes = tokio::task::spawn_blocking(work).await.ok().flatten();
        self.note_placed(blocks, outcomes)
    }

    /// Places blocks into all volumes that contain them, after waiting for the pictures that hold the memory.
    async fn place_in_time(&self, blocks: Vec<Arc<Block>>) {
        let (volumes, placed) = (Arc::clone(&self.volumes), blocks.clone());
        let place = move |block: &Arc<Block>| {
            volumes.with_block(&block.key).iter().try_for_each(|volume| volume.insert(block)).map(|()| true)
        };
        let work = move || placed.iter().map(place).collect();
        let outcomes = tokio::task::spawn_blocking(work).await.ok();
        self.note_placed(blocks, outcomes);
    }

    /// Records the outcomes of placing blocks (`None` if they are unknown) and announces them; returns the
    /// blocks that have to wait for memory.
    fn note_placed(&self, blocks: Vec<Arc<Block>>, outcomes: Option<Vec<Result<bool>>>) -> Vec<Arc<Block>> {
        let failed = || blocks.iter().map(|_| Err(Error::internal("placing a block failed"))).collect();
        let outcomes = outcomes.unwrap_or_else(failed);
        let now = Instant::now();
        let mut crowded = Vec::new();
        self.with(|loader| {
            for (block, outcome) in blocks.into_iter().zip(outcomes) {
                match outcome {
                    Ok(true) => loader.placed(block.key, None, now),
                    Ok(false) => crowded.push(block),
                    Err(refused) => loader.placed(block.key, Some(refused), now),
                }
            }
        });
        self.announce();
        crowded
    }

    /// Wakes all subscribers of all volumes.
    fn announce(&self) {
        self.volumes.all().iter().for_each(|volume| volume.announce());
    }

    fn with<T>(&self, f: impl FnOnce(&mut Loader) -> T) -> T {
        f(&mut self.loader.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Stream of the answers of a batch, followed by its end.
///
/// A source that panics ends its answers, so that the remaining blocks fail; the panic hook reports the
/// panic.
fn label(batch: u64, completions: Completions) -> BoxStream<'static, BatchAnswer> {
    let end = futures::stream::once(ready(BatchAnswer::End(batch)));
    // The stream ends after a panic.
    let whole = AssertUnwindSafe(completions).catch_unwind().filter_map(|found| ready(found.ok()));
    whole.map(move |c| BatchAnswer::One(batch, c)).chain(end).boxed()
}

/// Takes the blocks to place next: all of one level, so that coarse blocks are visible before fine ones have
/// been placed.
fn next_to_place(arrived: &mut VecDeque<Arc<Block>>) -> Vec<Arc<Block>> {
    let level = arrived.front().map(|first| first.key.level);
    let is_next = |block: &&Arc<Block>| Some(block.key.level) == level;
    let count = arrived.iter().take_while(is_next).take(MAX_PLACED_AT_ONCE).count();
    arrived.drain(..count).collect()
}

/// Places blocks into all volumes that contain them; false for those that have to wait for memory.
fn into_all(volumes: &Volumes, blocks: &[Arc<Block>]) -> Vec<Result<bool>> {
    let mut outcomes: Vec<Result<bool>> = blocks.iter().map(|_| Ok(true)).collect();
    for volume in volumes.all() {
        let own: Vec<usize> = (0..blocks.len()).filter(|&i| volume.holds(&blocks[i].key)).collect();
        let placed = volume.insert_all_now(&own.iter().map(|&i| &*blocks[i]).collect::<Vec<_>>());
        for (i, placed) in own.into_iter().zip(placed) {
            let outcome = &mut outcomes[i];
            if !matches!((&*outcome, &placed), (Err(_), _) | (Ok(false), Ok(_))) {
                *outcome = placed;
            }
        }
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use array::conformance::{MemorySource, one_array};
    use array::{Content, Priority};
    use render::{Demand, Demanded, LevelLimit, VolumeView};
    use tokio::task::JoinSet;

    use super::*;
    use crate::loading::volume::{Volume, VolumeSubscription};

    const ADA: ParticipantId = ParticipantId(1);
    const BOB: ParticipantId = ParticipantId(2);

    fn key(of: &VolumeSubscription, index: u64) -> BlockKey {
        let first = of.volume.view.key(0, [0; 3]);
        BlockKey { index: first.index + index, ..first }
    }

    fn request(feed: &Feed, who: ParticipantId, subscription: &VolumeSubscription, index: u64) {
        let block = Demanded { key: key(subscription, index), priority: Priority::NORMAL };
        let demand = Demand { wanted: 0, limit: LevelLimit::Finest, blocks: vec![block], pool_bytes: 0 };
        feed.request(who, || subscription.set_demand(&Arc::new(demand)));
    }

    fn insert(volume: &Volume, key: BlockKey) {
        let content = Content::Data { bytes: vec![7; 16 * 16 * 16].into(), range: None };
        volume.insert(&Block { key, content }).unwrap();
    }

    /// Returns true as soon as the condition holds; false if it does not within two seconds.
    async fn soon(is_so: impl Fn() -> bool) -> bool {
        for _ in 0..200 {
            if is_so() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    #[test]
    fn blocks_are_placed_level_by_level_and_not_too_many_at_once() {
        let block = |(level, index)| {
            let key = BlockKey { dataset: DatasetId(1), generation: Generation(0), array: 0, level, index };
            Arc::new(Block { key, content: Content::NotCovered })
        };
        let most = MAX_PLACED_AT_ONCE as u64;
        let fine = (0..most + 3).map(|index| (0, index));
        let mut arrived: VecDeque<_> = [(2, 0), (1, 0), (1, 1)].into_iter().chain(fine).map(block).collect();
        let mut counts = Vec::new();
        while !arrived.is_empty() {
            counts.push(next_to_place(&mut arrived).len());
        }
        assert_eq!(counts, [1, 2, MAX_PLACED_AT_ONCE, 3]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn placing_blocks_does_not_wait_for_memory_held_by_a_picture_of_another_participant() {
        let dataset = one_array("|u1".parse().unwrap(), &[2, 32, 32, 32], &[1, 16, 16, 16]);
        let source =
            MemorySource::new(dataset.clone(), vec![vec![vec![7; 2 * 32 * 32 * 32].into()]]).unwrap();
        let look = |volumes: &Arc<Volumes>, who, t| {
            let view = Arc::new(VolumeView::new(&dataset, 0, &[t, 0, 0, 0]).unwrap());
            let subscription = volumes.subscribe(who, &dataset, view).unwrap();
            volumes.divide_memory();
            subscription
        };
        let block_bytes = {
            let roomy = look(&Arc::new(Volumes::new(1 << 20)), ADA, 0);
            insert(&roomy.volume, key(&roomy, 0));
            roomy.volume.memory().0
        };
        let volumes = Arc::new(Volumes::new(2 * block_bytes));
        let (ada, bob) = (look(&volumes, ADA, 0), look(&volumes, BOB, 1));
        insert(&ada.volume, key(&ada, 0));
        let drawable = ada.drawable();
        let picture = drawable.picture();
        let feed = Arc::new(Feed::new(Arc::new(source), volumes, 1 << 20));
        let mut tasks = JoinSet::new();
        let fed = Arc::clone(&feed);
        tasks.spawn(async move { fed.run().await });

        request(&feed, ADA, &ada, 1);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(
            feed.block_status(ADA),
            (1, FailedBlocks::default()),
            "there is no room before the picture is finished"
        );
        request(&feed, BOB, &bob, 0);
        assert!(soon(|| feed.block_status(BOB).0 == 0).await, "the other volume has room");
        drop(picture);
        assert!(soon(|| feed.block_status(ADA).0 == 0).await, "the picture released its memory");
        assert_eq!(feed.in_flight(), (0, 0));
    }
}
