//! `Source` trait: everything that can give blocks of an array.
//!
//! Examples are a format on disk, a cache, a remote server, a running simulation, a concatenated set of files. A source can wrap a
//! source; a wrapper forwards every method, so the trait has no defaults that a wrapper could use by mistake. A method that has a
//! default gives the same answers with it, only slower.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::{BoxStream, FuturesUnordered, StreamExt};

use crate::{
    ArrayInfo, Block, BlockKey, Dataset, PackedChunk, Priority, Region, Result, Selection, Want,
    expect_target,
};

/// Result of one want: its block or its error.
#[derive(Clone, Debug)]
pub struct Completion {
    /// Which block it answers.
    pub key: BlockKey,
    /// The block, or why there is none.
    pub result: Result<Arc<Block>>,
}

/// Completions in any order; ends when every want that was not cancelled has been answered.
pub type Completions = BoxStream<'static, Completion>;

/// Ends of many reads: which one, counted as they were given, and how. In any order, each once.
pub type ReadEnds = BoxStream<'static, (usize, Result<()>)>;

/// Elements to be read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadRequest {
    /// Number of the array in the description.
    pub array: u32,
    /// Number of the level; 0 is full resolution.
    pub level: u8,
    /// Which elements of that level.
    pub selection: Selection,
    /// Priority of the read.
    pub priority: Priority,
}

impl ReadRequest {
    /// Checks the selection against the level and the target; returns the array. Every source checks the
    /// reads it receives with this function.
    ///
    /// # Errors
    /// `NotFound` or `Invalid` when there is no such array or level, or when selection or target do not fit.
    pub fn check<'a>(&self, dataset: &'a Dataset, into: &Region) -> Result<&'a ArrayInfo> {
        let array = dataset.array(self.array)?;
        self.selection.check(&array.level(self.level)?.shape)?;
        expect_target(into, &self.selection, array.dtype.size_bytes())?;
        Ok(array)
    }
}

/// Provider of blocks of arrays: a file format, a cache, a remote server.
///
/// Errors of a single block arrive in its [`Completion`]; they never end the stream for the others.
pub trait Source: Send + Sync + 'static {
    /// Returns the description of the data set. Reads no array data. A source that grows returns a new value
    /// with a new generation.
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>>;

    /// Fetches blocks. Each want that is not cancelled gets exactly one completion; a cancelled one gets at most one. A key of another
    /// data set or generation gets the error `Stale`. Dropping the stream cancels the rest.
    fn blocks(&self, wants: Vec<Want>) -> Completions;

    /// Reads exactly the elements of `request.selection` into `into`, whose shape equals the selection's;
    /// elements as stored (dtype and byte order of the array). On success every element was written and
    /// every region released. Dropping the future detaches.
    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>>;

    /// As [`read`](Self::read), for many reads that are wanted at the same time: small ones may share their costs.
    /// Dropping the stream detaches those that have not ended.
    fn read_many(&self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        let each = reads.into_iter().enumerate();
        each.map(|(number, (request, into))| self.read(request, into).map(move |end| (number, end)))
            .collect::<FuturesUnordered<_>>()
            .boxed()
    }

    /// Returns the stored bytes of a selection that is one whole compressed chunk which the receiver can decompress, so that it is not
    /// decoded here; `None` in every other case, in which [`read`](Self::read) gives the elements.
    fn packed(&self, _request: &ReadRequest) -> BoxFuture<'static, Result<Option<PackedChunk>>> {
        ready(Ok(None)).boxed()
    }
}

impl<S: Source + ?Sized> Source for Arc<S> {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        (**self).describe()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        (**self).blocks(wants)
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        (**self).read(request, into)
    }

    fn read_many(&self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        (**self).read_many(reads)
    }

    fn packed(&self, request: &ReadRequest) -> BoxFuture<'static, Result<Option<PackedChunk>>> {
        (**self).packed(request)
    }
}
