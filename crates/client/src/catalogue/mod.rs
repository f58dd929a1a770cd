//! A catalogue: data sets of several servers as one [`Source`]. Data sets that follow one another in time become one
//! array.
//!
//! - `discovery` asks servers for their data sets.
//! - `series` (pure) decides which data sets follow one another in time, whatever their reference dates are.
//! - `join` (pure) joins many descriptions into one, and records where each segment of an array lies.
//! - `read_many` sends each data set one request for all reads of a call that lie in it.
//!
//! This module does not use the network: every data set is a [`Source`], of one server or of several replicas. A result
//! never mixes two states of a data set: when one data set changes, the whole catalogue is stale.

mod discovery;
mod join;
mod read_many;
mod series;

use std::sync::Arc;

use array::values::stats::value_range;
use array::{
    Block, BlockInfo, BlockKey, Completion, Completions, Content, Dataset, Error, ErrorKind, ReadEnds,
    ReadRequest, Region, Result, Selection, Source, Target, Urgency, Want,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use parking_lot::Mutex;
use wire::ops::{BlockPlace, encode_dataset};

use crate::dial::shared_failure::SharedFailure;
use crate::reading::block_fetches::{one_block, one_by_one};
use discovery::described;
pub use discovery::{CatalogueHost, FoundDataset, MAX_DATASETS, find, is_one, same_everywhere};
use join::{ArraySegment, JoinedCatalogue};

/// Number of data sets that are described concurrently.
const MAX_CONCURRENT_DESCRIPTIONS: usize = 32;
/// Maximum size of the descriptions of all data sets of a catalogue together, encoded, in bytes.
const MAX_DESCRIBED_BYTES: usize = 64 << 20;
/// Maximum number of blocks of one call in flight.
const MAX_BLOCKS_IN_FLIGHT: usize = 512;
/// Maximum number of segments of one read in flight, and of data sets that many reads are sent to at a time. The source
/// of each segment splits it further.
const MAX_SEGMENTS_IN_FLIGHT: usize = 64;

/// One data set of a catalogue.
#[derive(Clone)]
pub struct CatalogueEntry {
    /// Name of the data set on its server.
    pub name: String,
    /// Source of the data set.
    pub source: Arc<dyn Source>,
}

/// Several data sets as one source. Clones share all state.
#[derive(Clone)]
pub struct Catalogue(Arc<CatalogueState>);

struct CatalogueState {
    entries: Vec<CatalogueEntry>,
    known: Mutex<Option<Arc<JoinedCatalogue>>>,
    failure: SharedFailure,
    describing: tokio::sync::Mutex<()>,
}

impl Catalogue {
    /// Creates a catalogue of these data sets, without requests.
    ///
    /// # Errors
    /// `Invalid` for none, `TooLarge` for more than [`MAX_DATASETS`].
    pub fn new(entries: Vec<CatalogueEntry>) -> Result<Self> {
        if entries.is_empty() {
            return Err(Error::invalid("expected data sets for a catalogue, found none"));
        }
        if entries.len() > MAX_DATASETS {
            let found = entries.len();
            return Err(Error::too_large(format!(
                "expected at most {MAX_DATASETS} data sets, found {found}"
            )));
        }
        Ok(Self(Arc::new(CatalogueState {
            entries,
            known: Mutex::default(),
            failure: SharedFailure::default(),
            describing: tokio::sync::Mutex::default(),
        })))
    }

    async fn joined(&self) -> Result<Arc<JoinedCatalogue>> {
        if let Some(known) = self.0.known.lock().clone() {
            return Ok(known);
        }
        let before = self.0.failure.count();
        let _only_one_asks = self.0.describing.lock().await;
        if let Some(known) = self.0.known.lock().clone() {
            return Ok(known);
        }
        if let Some(error) = self.0.failure.since(before) {
            return Err(error);
        }
        let joined = self.join().await;
        match &joined {
            Ok(joined) => *self.0.known.lock() = Some(Arc::clone(joined)),
            Err(error) => self.0.failure.record(error),
        }
        joined
    }

    /// Describes all data sets and joins them.
    async fn join(&self) -> Result<Arc<JoinedCatalogue>> {
        let mut describing = stream::iter(self.0.entries.clone())
            .map(|entry| async move {
                let dataset = described(&*entry.source).await.map_err(|e| of_dataset(e, &entry.name))?;
                Ok::<_, Error>((entry.name, dataset))
            })
            .buffered(MAX_CONCURRENT_DESCRIPTIONS);
        let (mut described, mut size_bytes) = (Vec::new(), 0);
        while let Some((name, dataset)) = describing.try_next().await? {
            size_bytes += encode_dataset(&dataset)?.len();
            if size_bytes > MAX_DESCRIBED_BYTES {
                return Err(Error::too_large(format!(
                    "expected data sets whose descriptions take at most {MAX_DESCRIBED_BYTES} bytes together, found more \
                     with `{name}`; open some of them by their names"
                )));
            }
            described.push((name, dataset));
        }
        Ok(Arc::new(join::join(&described)?))
    }

    /// Returns the number of the data set that contains all of an array, and the array's place in it; `None` if several
    /// data sets contain parts of it.
    ///
    /// # Errors
    /// The errors of describing; `Stale` for a place of another state.
    pub(crate) async fn place_there(&self, place: &BlockPlace) -> Result<Option<(usize, BlockPlace)>> {
        let joined = self.joined().await?;
        if (place.dataset, place.generation) != (joined.dataset.id, joined.dataset.generation) {
            return Err(Error::new(ErrorKind::Stale, "the catalogue has changed; describe it again"));
        }
        Ok(joined.place_there(place))
    }

    /// Adds the name of the data set to an error. A stale data set invalidates the joined description.
    fn note_staleness(&self, part: &ArraySegment, error: Error) -> Error {
        if error.kind() == ErrorKind::Stale {
            *self.0.known.lock() = None;
        }
        of_dataset(error, &self.0.entries[part.entry].name)
    }

    /// Fetches one block; `None` if it was withdrawn.
    async fn one(&self, want: Want) -> Option<Completion> {
        let result = want.drive(self.fetch(&want), |_| ()).await?;
        Some(Completion { key: want.key(), result })
    }

    async fn fetch(&self, want: &Want) -> Result<Arc<Block>> {
        let key = want.key();
        let joined = self.joined().await?;
        let info = joined.dataset.block(key)?;
        let content = match joined.block_there(key, &info.selection) {
            Some((part, there)) => {
                let source = Arc::clone(&self.0.entries[part.entry].source);
                let block = one_block(source, there, want.urgency(), want).await;
                block.map_err(|e| self.note_staleness(part, e))?.content.clone()
            }
            None => self.gathered(&joined, key, &info, want.urgency()).await?,
        };
        Ok(Arc::new(Block { key, content }))
    }

    /// Assembles a block that no single data set contains.
    async fn gathered(
        &self,
        joined: &Arc<JoinedCatalogue>,
        key: BlockKey,
        info: &BlockInfo<'_>,
        urgency: Urgency,
    ) -> Result<Content> {
        let (dtype, selection) = (info.array.dtype, info.selection.clone());
        let (target, region) = Target::new(&selection.shape(), dtype.size_bytes())?;
        let request =
            ReadRequest { array: key.array, level: key.level, selection, priority: urgency.priority };
        self.read_segments(joined, request, region).await?;
        let bytes = target.into_vec()?;
        let range = value_range(&bytes, dtype, &info.array.decoding);
        Ok(Content::Data { bytes: bytes.into(), range })
    }

    /// Reads every segment from its data set.
    async fn read_segments(
        &self,
        joined: &JoinedCatalogue,
        request: ReadRequest,
        into: Region,
    ) -> Result<()> {
        let segments = joined.segments_of(request.array, &request.selection, into);
        let reads = segments.into_iter().map(|(part, selection, region)| {
            let request = ReadRequest { array: part.array, selection, ..request.clone() };
            self.read_segment(part, request, region).boxed()
        });
        let reads: Vec<BoxFuture<'_, Result<()>>> = reads.collect();
        stream::iter(reads).buffer_unordered(MAX_SEGMENTS_IN_FLIGHT).try_collect().await
    }

    /// Reads one segment, and checks afterwards that its data set is still in the state that was joined.
    async fn read_segment(&self, part: &ArraySegment, request: ReadRequest, into: Region) -> Result<()> {
        self.unchanged(part).await?;
        let source = &self.0.entries[part.entry].source;
        let Some(shift) = &part.shift else {
            source.read(request, into).await.map_err(|error| self.note_staleness(part, error))?;
            return self.unchanged(part).await;
        };
        let (target, own) = Target::new(&request.selection.shape(), into.item_bytes())?;
        source.read(request, own).await.map_err(|error| self.note_staleness(part, error))?;
        let mut bytes = target.into_vec()?;
        shift.apply(&mut bytes)?;
        let mut into = into;
        into.write_all(&bytes)?;
        self.unchanged(part).await
    }

    /// Checks that a data set is in the state that was joined.
    async fn unchanged(&self, part: &ArraySegment) -> Result<()> {
        let found = self.0.entries[part.entry].source.describe().await;
        found.and_then(|found| part.check_same(&found)).map_err(|error| self.note_staleness(part, error))
    }

    async fn read_into(&self, request: ReadRequest, into: Region) -> Result<()> {
        let joined = self.joined().await?;
        request.check(&joined.dataset, &into)?;
        if Selection::is_empty(&request.selection) {
            return Ok(());
        }
        self.read_segments(&joined, request, into).await
    }
}

fn of_dataset(error: Error, name: &str) -> Error {
    error.context(format!("data set `{name}` of the catalogue"))
}

impl Source for Catalogue {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        let this = self.clone();
        async move { Ok(Arc::clone(&this.joined().await?.dataset)) }.boxed()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        let this = self.clone();
        one_by_one(wants, MAX_BLOCKS_IN_FLIGHT, move |want| {
            let this = this.clone();
            async move { this.one(want).await }
        })
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        let this = self.clone();
        async move { this.read_into(request, into).await }.boxed()
    }

    fn read_many(&self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        self.clone().read_each(reads).flatten_stream().boxed()
    }
}

#[cfg(test)]
mod tests;
