//! Moves blocks from a source to the volumes that somebody looks at: the I/O around [`Loader`].

use std::sync::{Arc, Mutex, PoisonError};

use array::{
    Block, BlockKey, Completion, Completions, DatasetId, Error, ErrorKind, Generation, Result, Source,
};
use futures::future::OptionFuture;
use futures::stream::{BoxStream, SelectAll};
use futures::{FutureExt, StreamExt};
use session::ParticipantId;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::frame_loop::sleep_until;
use crate::loader::{Loader, Trouble, Wish};
use crate::volume::{Volume, Volumes};

/// Most blocks placed in one go: other answers wait meanwhile.
const MAX_PLACED_AT_ONCE: usize = 32;

/// What a source's answer is: one block of a batch, or the end of the batch.
enum Answer {
    One(u64, Completion),
    End(u64),
}

/// The loader and what wakes it.
pub(crate) struct Feed {
    loader: Mutex<Loader>,
    changed: Notify,
    /// The last data set of which a block was asked for in vain because it changed.
    stale: watch::Sender<Option<(DatasetId, Generation)>>,
    source: Arc<dyn Source>,
    volumes: Arc<Volumes>,
}

impl Feed {
    /// `max_bytes_under_way`: hard limit of bytes asked for and not yet placed.
    pub(crate) fn new(source: Arc<dyn Source>, volumes: Arc<Volumes>, max_bytes_under_way: u64) -> Self {
        Self {
            loader: Mutex::new(Loader::new(max_bytes_under_way)),
            changed: Notify::new(),
            stale: watch::Sender::new(None),
            source,
            volumes,
        }
    }

    /// What `who` lacks from now on. `lacking` looks at the pool while no block changes its state here: one that
    /// was just placed is not fetched again.
    pub(crate) fn wish(&self, who: ParticipantId, lacking: impl FnOnce() -> Vec<Wish>) {
        self.with(|loader| loader.wish(who, lacking()));
        self.changed.notify_one();
    }

    /// `who` looks away.
    pub(crate) fn forget(&self, who: ParticipantId) {
        self.with(|loader| loader.forget(who));
        self.changed.notify_one();
    }

    /// How many blocks `who` lacks, and what is wrong with some of them.
    pub(crate) fn outlook(&self, who: ParticipantId) -> (u64, Trouble) {
        self.with(|loader| (loader.lacking(who), loader.trouble(who)))
    }

    /// Changes when a data set turns out to have changed since it was described.
    pub(crate) fn stale(&self) -> watch::Receiver<Option<(DatasetId, Generation)>> {
        self.stale.subscribe()
    }

    /// Wants and bytes under way.
    pub(crate) fn under_way(&self) -> (usize, u64) {
        self.with(|loader| loader.under_way())
    }

    /// Fetches for ever.
    ///
    /// # Cancel safety
    /// Dropping it withdraws every want.
    pub(crate) async fn run(&self) {
        let mut answers: SelectAll<BoxStream<'static, Answer>> = SelectAll::new();
        // Blocks for which only a finished picture may give room; they count as under way, which bounds them.
        let mut crowded = Vec::new();
        let mut patient = None;
        loop {
            if patient.is_none() && !crowded.is_empty() {
                let blocks = std::mem::take(&mut crowded);
                patient =
                    Some(Box::pin(self.place(blocks, |volume, block| volume.insert(block).map(|()| true))));
            }
            let started = self.with(|loader| loader.start(Instant::now()));
            if let Some((batch, wants)) = started {
                answers.push(label(batch, self.source.blocks(wants)));
            }
            let retry_at = self.with(|loader| loader.next_retry());
            tokio::select! {
                () = self.changed.notified() => {}
                Some(answer) = answers.next(), if !answers.is_empty() => {
                    crowded.extend(self.take(answer, &mut answers).await);
                }
                Some(_) = OptionFuture::from(patient.as_mut()) => patient = None,
                () = sleep_until(retry_at) => {}
            }
        }
    }

    /// Takes an answer and those that are ready with it; gives the blocks that have to wait for room.
    async fn take(&self, first: Answer, more: &mut SelectAll<BoxStream<'static, Answer>>) -> Vec<Arc<Block>> {
        let mut next = Some(first);
        let mut arrived = Vec::new();
        while let Some(answer) = next {
            let now = Instant::now();
            match answer {
                Answer::One(batch, Completion { key, result }) => {
                    self.note_stale(&key, &result);
                    arrived.extend(self.with(|loader| loader.complete(batch, key, result, now)));
                }
                Answer::End(batch) => self.with(|loader| loader.ended(batch, now)),
            }
            let is_enough = arrived.len() >= MAX_PLACED_AT_ONCE;
            next = if is_enough { None } else { more.next().now_or_never().flatten() };
        }
        self.place(arrived, Volume::insert_now).await
    }

    /// Somebody found that a data set has changed since it was described.
    pub(crate) fn suspect(&self, data: (DatasetId, Generation)) {
        self.stale.send_if_modified(|known| known.replace(data) != Some(data));
    }

    fn note_stale(&self, key: &BlockKey, result: &Result<Arc<Block>>) {
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Stale) {
            self.suspect((key.dataset, key.generation));
        }
    }

    /// Puts blocks into every volume they belong to; gives those that have to wait for room.
    async fn place(&self, blocks: Vec<Arc<Block>>, insert: Insert) -> Vec<Arc<Block>> {
        let (volumes, placed) = (Arc::clone(&self.volumes), blocks.clone());
        let work = move || placed.iter().map(|block| into_all(&volumes, block, insert)).collect();
        let failed = |_| blocks.iter().map(|_| Err(Error::internal("placing a block went wrong"))).collect();
        let outcomes: Vec<Result<bool>> = tokio::task::spawn_blocking(work).await.unwrap_or_else(failed);
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
        self.volumes.all().iter().for_each(|volume| volume.announce());
        crowded
    }

    fn with<T>(&self, f: impl FnOnce(&mut Loader) -> T) -> T {
        f(&mut self.loader.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn label(batch: u64, completions: Completions) -> BoxStream<'static, Answer> {
    let end = futures::stream::once(std::future::ready(Answer::End(batch)));
    completions.map(move |c| Answer::One(batch, c)).chain(end).boxed()
}

/// Puts a block into a volume; false where it has to wait for room.
type Insert = fn(&Volume, &Block) -> Result<bool>;

fn into_all(volumes: &Volumes, block: &Block, insert: Insert) -> Result<bool> {
    let mut has_room = true;
    for volume in volumes.with_block(&block.key) {
        has_room &= insert(&volume, block)?;
    }
    Ok(has_room)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use array::conformance::{MemorySource, one_array};
    use array::{Content, Priority};
    use render::{Demand, Demanded, Limit, VolumeView};
    use tokio::task::JoinSet;

    use super::*;
    use crate::volume::Watching;

    const ADA: ParticipantId = ParticipantId(1);
    const BOB: ParticipantId = ParticipantId(2);

    fn key(of: &Watching, index: u64) -> BlockKey {
        let first = of.volume.view.key(0, [0; 3]);
        BlockKey { index: first.index + index, ..first }
    }

    fn wish(feed: &Feed, who: ParticipantId, watching: &Watching, index: u64) {
        let block = Demanded { key: key(watching, index), priority: Priority::NORMAL };
        let demand = Demand { wanted: 0, limit: Limit::Finest, blocks: vec![block], pool_bytes: 0 };
        feed.wish(who, || watching.want(&Arc::new(demand)));
    }

    fn insert(volume: &Volume, key: BlockKey) {
        let content = Content::Data { bytes: vec![7; 16 * 16 * 16].into(), range: None };
        volume.insert(&Block { key, content }).unwrap();
    }

    /// True when it becomes so within a while.
    async fn soon(is_so: impl Fn() -> bool) -> bool {
        for _ in 0..200 {
            if is_so() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn nobody_waits_for_memory_that_the_picture_of_somebody_else_holds() {
        let dataset = one_array("|u1".parse().unwrap(), &[2, 32, 32, 32], &[1, 16, 16, 16]);
        let source =
            MemorySource::new(dataset.clone(), vec![vec![vec![7; 2 * 32 * 32 * 32].into()]]).unwrap();
        let look = |volumes: &Arc<Volumes>, who, t| {
            let view = Arc::new(VolumeView::new(&dataset, 0, &[t, 0, 0, 0]).unwrap());
            let watching = volumes.look(who, &dataset, view).unwrap();
            volumes.share_out();
            watching
        };
        let block_bytes = {
            let roomy = look(&Arc::new(Volumes::new(1 << 20)), ADA, 0);
            insert(&roomy.volume, key(&roomy, 0));
            roomy.volume.memory().0
        };
        let volumes = Arc::new(Volumes::new(2 * block_bytes));
        let (ada, bob) = (look(&volumes, ADA, 0), look(&volumes, BOB, 1));
        insert(&ada.volume, key(&ada, 0));
        let subject = ada.subject();
        let picture = subject.picture();
        let feed = Arc::new(Feed::new(Arc::new(source), volumes, 1 << 20));
        let mut tasks = JoinSet::new();
        let fed = Arc::clone(&feed);
        tasks.spawn(async move { fed.run().await });

        wish(&feed, ADA, &ada, 1);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(feed.outlook(ADA), (1, Trouble::default()), "there is no room before the picture is done");
        wish(&feed, BOB, &bob, 0);
        assert!(soon(|| feed.outlook(BOB).0 == 0).await, "his volume has room");
        drop(picture);
        assert!(soon(|| feed.outlook(ADA).0 == 0).await, "the picture gave room");
        assert_eq!(feed.under_way(), (0, 0));
    }
}
