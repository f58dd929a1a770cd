//! Moves blocks from a source to the volumes that somebody looks at: the I/O around [`Loader`].

use std::sync::{Arc, Mutex, PoisonError};

use array::{
    Block, BlockKey, Completion, Completions, DatasetId, Error, ErrorKind, Generation, Result, Source,
};
use futures::stream::{BoxStream, SelectAll};
use futures::{FutureExt, StreamExt};
use session::ParticipantId;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::frame_loop::sleep_until;
use crate::loader::{Loader, Trouble, Wish};
use crate::volume::Volumes;

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
        loop {
            let started = self.with(|loader| loader.start(Instant::now()));
            if let Some((batch, wants)) = started {
                answers.push(label(batch, self.source.blocks(wants)));
            }
            let retry_at = self.with(|loader| loader.next_retry());
            tokio::select! {
                () = self.changed.notified() => {}
                Some(answer) = answers.next(), if !answers.is_empty() => self.take(answer, &mut answers).await,
                () = sleep_until(retry_at) => {}
            }
        }
    }

    /// Takes an answer and those that are ready with it.
    async fn take(&self, first: Answer, more: &mut SelectAll<BoxStream<'static, Answer>>) {
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
        self.place(arrived).await;
        self.volumes.all().iter().for_each(|volume| volume.announce());
    }

    fn note_stale(&self, key: &BlockKey, result: &Result<Arc<Block>>) {
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Stale) {
            let now = Some((key.dataset, key.generation));
            self.stale.send_if_modified(|known| std::mem::replace(known, now) != now);
        }
    }

    async fn place(&self, blocks: Vec<Arc<Block>>) {
        let keys: Vec<BlockKey> = blocks.iter().map(|block| block.key).collect();
        let volumes = Arc::clone(&self.volumes);
        let outcomes = tokio::task::spawn_blocking(move || place(&volumes, &blocks)).await;
        let failed = |_| keys.iter().map(|_| Some(Error::internal("placing a block went wrong"))).collect();
        let outcomes: Vec<Option<Error>> = outcomes.unwrap_or_else(failed);
        let now = Instant::now();
        self.with(|loader| {
            keys.iter().zip(outcomes).for_each(|(key, refused)| loader.placed(*key, refused, now))
        });
    }

    fn with<T>(&self, f: impl FnOnce(&mut Loader) -> T) -> T {
        f(&mut self.loader.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn label(batch: u64, completions: Completions) -> BoxStream<'static, Answer> {
    let end = futures::stream::once(std::future::ready(Answer::End(batch)));
    completions.map(move |c| Answer::One(batch, c)).chain(end).boxed()
}

/// Puts blocks into every volume they belong to; says per block why it could not be, if so.
fn place(volumes: &Volumes, blocks: &[Arc<Block>]) -> Vec<Option<Error>> {
    let into_all = |block: &Block| -> Result<()> {
        volumes.with_block(&block.key).iter().try_for_each(|volume| volume.insert(block))
    };
    blocks.iter().map(|block| into_all(block).err()).collect()
}
