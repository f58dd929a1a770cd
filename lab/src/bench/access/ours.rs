//! The reads by Corridor, as an application does them: through the stack of a remote URL, into memory of its own.

use std::path::Path;
use std::sync::Arc;

use array::{Dataset, Error, Priority, ReadRequest, Region, Result, Selection, Source, Target};
use client::dial::{Compression, ConnectOptions};
use client::directories::UserDirectories;
use client::url::Location;
use futures::stream::StreamExt;
use node::assemble::{Context, assemble};
use node::memory::MemoryBudget;
use tokio::task::JoinSet;

/// Memory of the client, bytes: an eighth of it is the window of the connection, more than any of our links hold.
const MEMORY_BYTES: u64 = 2 << 30;

/// A connected client.
pub(super) struct Ours {
    source: Arc<dyn Source>,
}

impl Ours {
    /// Connects, and learns what there is.
    pub(super) async fn connect(url: &str, home: &Path) -> Result<Self> {
        Self::connect_with(url, home, Compression::Auto).await
    }

    /// Connects, with data compressed on the way or not.
    pub(super) async fn connect_with(url: &str, home: &Path, compression: Compression) -> Result<Self> {
        let location: Location = url.parse()?;
        let context = Context::new(UserDirectories::below(home), MemoryBudget::reading(MEMORY_BYTES), None)
            .reaching(ConnectOptions { compression, ..ConnectOptions::default() });
        let source = assemble(&location, &context).await?.source;
        source.describe().await?;
        Ok(Self { source })
    }

    /// Description of the server's data.
    pub(super) async fn dataset(&self) -> Result<Arc<Dataset>> {
        self.source.describe().await
    }

    /// Makes all reads, each an operation of its own.
    pub(super) async fn read(&self, work: BenchReads) -> Result<()> {
        let request = |selection| ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL };
        let reads = work.reads.into_iter().map(|(selection, region)| (request(selection), region));
        let mut ends = self.source.read_many(reads.collect());
        // In a task, as a server's or a notebook's work is.
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            while let Some((_, end)) = ends.next().await {
                end?;
            }
            Ok(())
        });
        let ended = reading.join_next().await.unwrap_or(Ok(Ok(())));
        ended.unwrap_or_else(|e| Err(Error::internal(e.to_string())))
    }

    /// One read of the first array.
    pub(super) async fn one(&self, selection: Selection, into: Region, priority: Priority) -> Result<()> {
        self.source.read(ReadRequest { array: 0, level: 0, selection, priority }, into).await
    }

    /// One read of another array.
    pub(super) async fn array(&self, array: u32, selection: Selection, into: Region) -> Result<()> {
        self.source.read(ReadRequest { array, level: 0, selection, priority: Priority::NORMAL }, into).await
    }
}

/// Reads of boxes of one shape, and where their elements land: one after another in a target.
pub(super) struct BenchReads {
    reads: Vec<(Selection, Region)>,
}

impl BenchReads {
    /// For boxes of one shape. The target's memory is there already, so that no page of it is made while time is taken.
    pub(super) fn new(boxes: Vec<Selection>) -> Result<(Self, Target)> {
        let shape = boxes.first().map(Selection::shape).unwrap_or_default();
        let mut whole = shape.clone();
        whole[0] *= boxes.len() as u64;
        let (target, mut region) = Target::new(&whole, 1)?;
        region.together_mut().into_iter().for_each(|bytes| bytes.fill(1));
        let mut cuts: Vec<Vec<usize>> = region.shape().iter().map(|&n| vec![n]).collect();
        cuts[0] = vec![region.shape()[0] / boxes.len(); boxes.len()];
        let reads = boxes.into_iter().zip(region.grid(&cuts)?).collect();
        Ok((Self { reads }, target))
    }
}
