//! A data set of another process as a [`Source`]: blocks and reads over one connection.
//!
//! Blocks are pipelined, one `read_block` each; a read is one `read` whatever its runs, its pieces written
//! straight to their place. Everything received is checked against the description before it counts.

use std::sync::Arc;

use array::{
    Block, BlockKey, Completion, Completions, Content, Dataset, Error, ErrorKind, Priority, ReadRequest,
    Region, Result, Selection, Source, Target, Urgency, Want,
};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt};
use link::OpStream;
use parking_lot::Mutex;
use wire::ops::{self, BlockBody, BlockPlace, Describe, Read, ReadBlock};

use crate::asks::Ask;
use crate::dial::Dialer;
use crate::landing::Landing;

/// Requests of one call under way; far more than any path needs to stay full with blocks of 256 KiB.
const MAX_BLOCKS_UNDER_WAY: usize = 512;

/// A data set that another process exports. Clones share the connection.
#[derive(Clone, Debug)]
pub struct RemoteSource {
    dialer: Dialer,
    name: String,
    described: Arc<Mutex<Option<Arc<Dataset>>>>,
}

impl RemoteSource {
    /// The data set exported under `name` (empty: the only one). Asks nothing yet.
    #[must_use]
    pub fn new(dialer: Dialer, name: String) -> Self {
        Self { dialer, name, described: Arc::default() }
    }

    /// Its name on the server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What asks its server.
    pub(crate) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    async fn dataset(&self) -> Result<Arc<Dataset>> {
        if let Some(known) = self.described.lock().clone() {
            return Ok(known);
        }
        let ask = Describe { name: self.name.clone() };
        let dataset = self.dialer.ask(ask, Urgency::of(Priority::INTERACTIVE)).await?;
        *self.described.lock() = Some(Arc::clone(&dataset));
        Ok(dataset)
    }

    /// A stale answer means that what we know is old: describe again next time.
    fn heed(&self, error: Error) -> Error {
        if error.kind() == ErrorKind::Stale {
            *self.described.lock() = None;
        }
        error
    }

    /// Asks its server for something else.
    ///
    /// # Errors
    /// The operation's, or why there is no connection.
    pub async fn ask<A: Ask>(&self, ask: A, urgency: Urgency) -> Result<A::Answer> {
        self.dialer.ask(ask, urgency).await.map_err(|e| self.heed(e))
    }

    /// One block; `None` when it was withdrawn.
    async fn one_block(&self, want: Want) -> Option<Completion> {
        let key = want.key();
        let fetched = self.fetch(&want);
        tokio::select! {
            biased;
            () = want.cancelled() => None,
            result = fetched => Some(Completion { key, result: result.map_err(|e| self.heed(e)) }),
        }
    }

    async fn fetch(&self, want: &Want) -> Result<Arc<Block>> {
        let key = want.key();
        let expected_bytes = self.dataset().await?.block(key)?.size_bytes;
        self.dialer.ask(FetchBlock { want, expected_bytes }, want.urgency()).await.map(Arc::new)
    }

    async fn read_into(self, request: ReadRequest, into: Region) -> Result<()> {
        let dataset = self.dataset().await?;
        request.check(&dataset, &into)?;
        if request.selection.is_empty() {
            return Ok(());
        }
        let place = BlockPlace {
            dataset: dataset.id,
            generation: dataset.generation,
            array: request.array,
            level: request.level,
        };
        let urgency = Urgency::of(request.priority);
        let ask = ReadInto { read: Read { place, selection: request.selection }, into };
        self.dialer.ask(ask, urgency).await.map_err(|e| self.heed(e))
    }
}

/// `read_block` of a want, as urgent as the want is at each moment.
struct FetchBlock<'a> {
    want: &'a Want,
    expected_bytes: u64,
}

impl Ask for FetchBlock<'_> {
    type Answer = Block;

    fn name(&self) -> &str {
        ops::READ_BLOCK
    }

    fn parameters(&self) -> Bytes {
        ReadBlock { key: self.want.key() }.encode()
    }

    async fn answer(self, mut replies: OpStream) -> Result<Block> {
        let mut seen = 0;
        let item = loop {
            tokio::select! {
                biased;
                item = replies.next_item() => break item,
                version = self.want.changed(seen) => {
                    seen = version;
                    replies.adjust(self.want.urgency());
                }
            }
        };
        let item = item.ok_or_else(|| Error::corrupt("expected a block, found the end of the answer"))??;
        read_block(self.want.key(), item, self.expected_bytes)
    }
}

/// `read` whose pieces are written to their place as they come.
struct ReadInto {
    read: Read,
    into: Region,
}

impl Ask for ReadInto {
    type Answer = ();

    fn name(&self) -> &str {
        ops::READ
    }

    fn parameters(&self) -> Bytes {
        self.read.encode()
    }

    async fn answer(self, replies: OpStream) -> Result<()> {
        if self.into.is_contiguous() {
            receive(replies, self.into).await
        } else {
            receive_scattered(replies, &self.read.selection, self.into).await
        }
    }
}

fn read_block(key: BlockKey, item: link::Item, expected_bytes: u64) -> Result<Block> {
    let content = match BlockBody::decode(item.body)? {
        BlockBody::NotCovered => Content::NotCovered,
        BlockBody::Data { range } => {
            if item.bulk.len() as u64 != expected_bytes {
                return Err(Error::corrupt(format!(
                    "expected a block of {expected_bytes} bytes, found {}",
                    item.bulk.len()
                )));
            }
            Content::Data { bytes: compact(item.bulk), range }
        }
    };
    Ok(Block { key, content })
}

/// A block is kept for long; it must not keep a much larger receive buffer alive with it.
fn compact(bytes: Bytes) -> Bytes {
    const SMALL_BYTES: usize = 64 << 10;
    if bytes.len() < SMALL_BYTES { Bytes::copy_from_slice(&bytes) } else { bytes }
}

/// Writes pieces to their place as they come.
async fn receive(mut answer: OpStream, into: Region) -> Result<()> {
    let mut landing = Landing::new(into);
    while let Some(reply) = answer.next().await {
        landing.take(reply?)?;
    }
    landing.check_whole()
}

/// For a target with gaps: put together first, then spread out.
async fn receive_scattered(answer: OpStream, selection: &Selection, mut into: Region) -> Result<()> {
    let (target, region) = Target::new(&selection.shape(), into.item_bytes())?;
    receive(answer, region).await?;
    into.write_all(&target.into_vec()?)
}

impl Source for RemoteSource {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        let this = self.clone();
        async move { this.dataset().await }.boxed()
    }

    fn blocks(&self, mut wants: Vec<Want>) -> Completions {
        // The connection orders what was asked; of what is not asked yet the most urgent comes first.
        wants.sort_by_key(|w| std::cmp::Reverse(w.urgency().priority));
        let this = self.clone();
        stream::iter(wants)
            .map(move |want| {
                let this = this.clone();
                async move { this.one_block(want).await }
            })
            .buffer_unordered(MAX_BLOCKS_UNDER_WAY)
            .filter_map(std::future::ready)
            .boxed()
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        self.clone().read_into(request, into).boxed()
    }
}
