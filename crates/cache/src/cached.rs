//! [`Cached`]: a source that keeps the blocks of another source.
//!
//! One task (`task.rs`) owns the table; this file is the interface of callers. A call is passed through an inbox that is bounded in wants,
//! and answered through a channel with room for each of its wants, so the task never waits for a slow caller.
//!
//! Reads of a few blocks that are all in the cache are served from them; any other read goes to the inner source unchanged, since that
//! source reads these elements best, and a large read would only flush the cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use array::{
    BlockKey, BlockParts, Completion, Completions, Dataset, Error, ErrorKind, PackedChunk, ReadEnds,
    ReadRequest, Region, Result, Source, Want,
};
use futures::future::{BoxFuture, join_all};
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;

use crate::events::{CacheEvent, EVENTS_KEPT};
use crate::inbox::{CacheCall, CacheInbox, CachedBlock, Peek};
use crate::table::{CacheCounters, HeldMemory};
use crate::task::CacheTask;

pub use crate::inbox::MAX_WAITING;

/// Most blocks of one read that are looked up in the cache; reads of more go to the inner source.
const MAX_PEEKED: u64 = 64;

/// Source that caches the blocks of another source, within a hard limit in bytes.
///
/// Clones share one cache. When the last clone and the last stream of answers are gone, its task ends.
#[derive(Clone)]
pub struct Cached {
    shared: Arc<CachedInner>,
}

struct CachedInner {
    inner: Arc<dyn Source>,
    inbox: Arc<CacheInbox>,
    counters: Arc<Mutex<CacheCounters>>,
    events: broadcast::Sender<CacheEvent>,
    /// Whether blocks were ever requested; until then the cache is empty, and reads need not ask the task.
    was_asked: AtomicBool,
    /// Ends the task when dropped.
    _task: JoinSet<()>,
}

impl Cached {
    /// Wraps `inner`. `capacity_bytes` limits the bytes of cached blocks, of blocks under way, and of evicted blocks that still have a
    /// holder.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn new(inner: Arc<dyn Source>, capacity_bytes: u64) -> Self {
        Self::with_held_memory(inner, capacity_bytes, HeldMemory::CountedHere)
    }

    /// Wraps `inner` as [`new`](Self::new) does; `held_memory` is the budget that counts evicted blocks that still have a holder.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn with_held_memory(inner: Arc<dyn Source>, capacity_bytes: u64, held_memory: HeldMemory) -> Self {
        let inbox = Arc::new(CacheInbox::default());
        let counters = Arc::new(Mutex::new(CacheCounters { capacity_bytes, ..CacheCounters::default() }));
        let (events, _) = broadcast::channel(EVENTS_KEPT);
        let cache_task = CacheTask::new(
            Arc::clone(&inner),
            capacity_bytes,
            held_memory,
            Arc::clone(&inbox),
            Arc::clone(&counters),
            events.clone(),
        );
        let mut task = JoinSet::new();
        task.spawn(cache_task.run());
        Self {
            shared: Arc::new(CachedInner {
                inner,
                inbox,
                counters,
                events,
                was_asked: AtomicBool::new(false),
                _task: task,
            }),
        }
    }

    /// Returns the bytes held in each state and the counts of events so far.
    #[must_use]
    pub fn counters(&self) -> CacheCounters {
        *self.shared.counters.lock()
    }

    /// Subscribes to all events from now on. A receiver that falls more than [`EVENTS_KEPT`] events behind
    /// loses the oldest ones.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<CacheEvent> {
        self.shared.events.subscribe()
    }

    /// Returns the wrapped source.
    #[must_use]
    pub fn inner(&self) -> &Arc<dyn Source> {
        &self.shared.inner
    }

    /// Fills `into` from the cache if it has all blocks; returns `into` otherwise.
    async fn read_cached(&self, request: &ReadRequest, into: Region) -> Result<Option<Region>> {
        if !self.shared.was_asked.load(Ordering::Relaxed) {
            return Ok(Some(into));
        }
        let dataset = self.shared.inner.describe().await?;
        let array = dataset.array(request.array)?;
        let level = array.level(request.level)?;
        if request.selection.check(&level.shape).is_err()
            || BlockParts::touched(&request.selection, level) > MAX_PEEKED
        {
            return Ok(Some(into));
        }
        let first = BlockKey {
            dataset: dataset.id,
            generation: dataset.generation,
            array: request.array,
            level: request.level,
            index: 0,
        };
        let keys = BlockParts::indices(&request.selection, level).map(|index| BlockKey { index, ..first });
        let Some(blocks) = self.peek(keys.collect()).await else { return Ok(Some(into)) };
        let item_bytes = array.dtype.size_bytes();
        let pieces = BlockParts::new(&request.selection, level, item_bytes, into)?;
        for (piece, block) in pieces.zip(&blocks) {
            piece.copy_from(block, level, item_bytes)?;
        }
        Ok(None)
    }

    /// Answers the reads whose blocks are all cached, and passes the others to the inner source.
    async fn read_many_cached(&self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        let lookups = reads.into_iter().map(async |(request, into)| {
            let rest = self.read_cached(&request, into).await;
            rest.map(|into| into.map(|into| (request, into)))
        });
        let (mut ends, mut numbers, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for (number, lookup) in join_all(lookups).await.into_iter().enumerate() {
            match lookup {
                Ok(Some(read)) => {
                    numbers.push(number);
                    rest.push(read);
                }
                ended => ends.push((number, ended.map(drop))),
            }
        }
        let rest = self.shared.inner.read_many(rest).map(move |(n, end)| (numbers[n], end));
        futures::stream::iter(ends).chain(rest).boxed()
    }

    /// Returns these blocks if all are cached and covered; counts as neither hit nor use.
    async fn peek(&self, keys: Vec<BlockKey>) -> Option<Vec<CachedBlock>> {
        let (reply, answer) = tokio::sync::oneshot::channel();
        self.shared.inbox.peek(Peek { keys, reply });
        answer.await.ok().flatten()
    }
}

impl Source for Cached {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        self.shared.inner.describe()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        self.shared.was_asked.store(true, Ordering::Relaxed);
        let (answers, receiver) = mpsc::channel(wants.len().max(1));
        if let Err(refused) = self.shared.inbox.call(CacheCall { wants, answers }) {
            return futures::stream::iter(refused.into_iter().map(|want| {
                let expected = format!("expected at most {MAX_WAITING} wants at a time, found more");
                Completion { key: want.key(), result: Err(Error::new(ErrorKind::Busy, expected)) }
            }))
            .boxed();
        }
        // The stream keeps the cache, and so its task, alive.
        let state = (receiver, Arc::clone(&self.shared));
        futures::stream::unfold(state, |(mut receiver, shared)| async move {
            receiver.recv().await.map(|answer| (answer, (receiver, shared)))
        })
        .boxed()
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        let this = self.clone();
        async move {
            match this.read_cached(&request, into).await? {
                None => Ok(()),
                Some(into) => this.shared.inner.read(request, into).await,
            }
        }
        .boxed()
    }

    fn read_many(&self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        if !self.shared.was_asked.load(Ordering::Relaxed) {
            return self.shared.inner.read_many(reads);
        }
        let this = self.clone();
        async move { this.read_many_cached(reads).await }.flatten_stream().boxed()
    }

    fn packed(&self, request: &ReadRequest) -> BoxFuture<'static, Result<Option<PackedChunk>>> {
        self.shared.inner.packed(request)
    }
}
