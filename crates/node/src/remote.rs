//! A data set of another process as a [`Source`]: blocks and reads over one connection.
//!
//! Blocks are pipelined, one `read_block` each; a read is one `read` whatever its runs, its pieces written
//! straight to their place. Everything received is checked against the description before it counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{
    Block, BlockKey, Completion, Completions, Content, Dataset, Error, ErrorKind, Priority, ReadRequest,
    Region, Result, Selection, Source, Target, Urgency, Want,
};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt};
use link::{OpStream, Reply};
use parking_lot::Mutex;
use wire::ops::{self, BlockBody, BlockPlace, Describe, Read, ReadBlock, ReadBody, Stats, StatsRequest};

use crate::asks::Ask;
use crate::dial::Dialer;

/// Requests of one call under way; far more than any path needs to stay full with blocks of 256 KiB.
const MAX_BLOCKS_UNDER_WAY: usize = 512;
/// Separate stretches of a result that may be there before the gaps between them close.
const MAX_STRETCHES: usize = 65_536;

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

    /// Statistics of decoded values, computed where the data are.
    ///
    /// # Errors
    /// The server's.
    pub async fn stats(&self, request: &StatsRequest, urgency: Urgency) -> Result<Stats> {
        self.dialer.ask(request.clone(), urgency).await.map_err(|e| self.heed(e))
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
async fn receive(mut answer: OpStream, mut into: Region) -> Result<()> {
    let mut items = BTreeMap::new();
    let mut there = Stretches::default();
    while let Some(reply) = answer.next().await {
        match reply? {
            Reply::Item { item, body, bulk_bytes } => {
                let start = ReadBody::decode(body)?.offset_bytes;
                there.add(start, bulk_bytes)?;
                if bulk_bytes > 0 {
                    items.insert(item, start);
                }
            }
            Reply::Piece { item, offset, bytes, complete } => {
                let start =
                    items.get(&item).ok_or_else(|| Error::corrupt("expected a piece of an open item"))?;
                let at = start.checked_add(offset).and_then(|n| usize::try_from(n).ok());
                let at = at.ok_or_else(|| Error::corrupt("expected a piece inside the result"))?;
                into.write_at(at, &bytes)?;
                if complete {
                    items.remove(&item);
                }
            }
        }
    }
    there.check_whole(into.size_bytes() as u64)
}

/// For a target with gaps: put together first, then spread out.
async fn receive_scattered(answer: OpStream, selection: &Selection, mut into: Region) -> Result<()> {
    let (target, region) = Target::new(&selection.shape(), into.item_bytes())?;
    receive(answer, region).await?;
    into.write_all(&target.into_vec()?)
}

/// Which stretches of a result are there: start to end, without overlap.
#[derive(Debug, Default)]
struct Stretches(BTreeMap<u64, u64>);

impl Stretches {
    fn add(&mut self, start: u64, length: u64) -> Result<()> {
        let overlaps =
            || Error::corrupt(format!("expected pieces that do not overlap, found a second one at {start}"));
        let end = start.checked_add(length).ok_or_else(overlaps)?;
        if length == 0 {
            return Ok(());
        }
        let before = self.0.range(..=start).next_back().map(|(&s, &e)| (s, e));
        let after = self.0.range(start..).next().map(|(&s, &e)| (s, e));
        if before.is_some_and(|(_, e)| e > start) || after.is_some_and(|(s, _)| s < end) {
            return Err(overlaps());
        }
        let mut joined = (start, end);
        if let Some((s, _)) = before.filter(|(_, e)| *e == start) {
            joined.0 = s;
        }
        if let Some((s, e)) = after.filter(|(s, _)| *s == end) {
            self.0.remove(&s);
            joined.1 = e;
        }
        self.0.insert(joined.0, joined.1);
        if self.0.len() > MAX_STRETCHES {
            return Err(Error::corrupt(format!(
                "expected at most {MAX_STRETCHES} separate pieces, found more"
            )));
        }
        Ok(())
    }

    fn check_whole(&self, size_bytes: u64) -> Result<()> {
        if self.0.len() == 1 && self.0.get(&0) == Some(&size_bytes) {
            return Ok(());
        }
        let there: u64 = self.0.iter().map(|(s, e)| e - s).sum();
        Err(Error::corrupt(format!("expected {size_bytes} bytes, found {there} when the answer ended")))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_in_any_order_make_a_whole() {
        let mut s = Stretches::default();
        for (start, length) in [(4, 4), (0, 4), (12, 2), (8, 4)] {
            s.add(start, length).unwrap();
        }
        assert!(s.check_whole(14).is_ok());
        assert!(s.check_whole(15).is_err());
    }

    #[test]
    fn overlaps_and_gaps_are_corrupt() {
        let mut s = Stretches::default();
        s.add(4, 4).unwrap();
        for (start, length) in [(4, 4), (0, 5), (7, 1), (0, 100), (u64::MAX, 1)] {
            assert_eq!(s.add(start, length).unwrap_err().kind(), ErrorKind::Corrupt, "{start}+{length}");
        }
        assert!(s.check_whole(8).is_err());
    }
}
