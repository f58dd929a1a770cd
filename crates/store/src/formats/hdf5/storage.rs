//! Storage of the elements of one data set, looked up once, and reads without the lock of the library.
//!
//! Contiguous and unfiltered data are read directly from the file; chunks with known filters are read by position and decoded here;
//! compact data are kept in memory. Only data with other filters are read through the library.

use array::{Error, PackedChunk, Region, Result, Selection};

use super::chunk_index::ChunkIndex;
use super::filters::FilterPipeline;
use super::library::{ChunkLocation, DatasetInfo, DatasetLayout, Object};
use crate::cache::chunk_cache::{ChunkStore, DecodedChunk};
use crate::formats::common::chunked::{ChunkPart, fill, for_each_chunk, whole_chunk};
use crate::formats::common::flat::FlatArray;
use crate::schedule::scratch::MAX_CHUNK_BYTES;
use crate::{ByteStore, CancelFlag};

/// Returns the most stored bytes of a chunk of `chunk_bytes`: filters may add a little.
const fn most_stored_bytes(chunk_bytes: u64) -> u64 {
    chunk_bytes + chunk_bytes / 8 + 4096
}

/// Location of the elements.
#[derive(Debug)]
pub(super) enum DatasetStorage {
    /// Contiguous in the file, C order.
    Contiguous(FlatArray),
    /// Chunks whose filters are decoded here.
    Chunked(ChunkedStorage),
    /// In memory: compact data and decoded strings.
    Kept(Vec<u8>),
    /// Never written.
    Unwritten,
    /// Read through the library, in pieces of this shape.
    Library { object: Object, piece: Vec<u64> },
}

/// Chunks that are decoded here.
#[derive(Debug)]
pub(super) struct ChunkedStorage {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    chunk_index: ChunkIndex,
    pipeline: FilterPipeline,
    partial_unfiltered: bool,
}

/// Arguments of a read besides the storage.
pub(super) struct StorageReader<'a> {
    pub(super) file: &'a dyn ByteStore,
    pub(super) store: &'a ChunkStore,
    pub(super) array: u32,
    pub(super) item_bytes: usize,
    pub(super) fill: &'a [u8],
    pub(super) cancel: &'a CancelFlag,
}

impl DatasetStorage {
    /// Looks up the storage of a data set.
    ///
    /// # Errors
    /// `Corrupt` if the look-up of the library fails, `TooLarge` beyond the limits, `Cancelled`.
    pub(super) fn locate(
        object: Object,
        facts: &DatasetInfo,
        shape: &[u64],
        item_bytes: usize,
        cancel: &CancelFlag,
    ) -> Result<Self> {
        let outer = shape.len().saturating_sub(facts.inner_axes);
        match &facts.layout {
            DatasetLayout::Contiguous => match object.contiguous_offset()? {
                Some(offset) => Ok(Self::Contiguous(FlatArray::c_order(offset, item_bytes, shape)?)),
                None => Ok(Self::Unwritten),
            },
            DatasetLayout::Compact => {
                let (outer, inner) = shape.split_at(outer);
                let mut bytes = buffer(shape, item_bytes)?;
                let element_bytes = buffer_size(inner, item_bytes)?;
                object.read(&Selection::all(outer), element_bytes, &mut bytes)?;
                Ok(Self::Kept(bytes))
            }
            DatasetLayout::Chunked(chunk) => match FilterPipeline::of(&facts.filters, item_bytes) {
                Some(pipeline) => Ok(Self::Chunked(ChunkedStorage {
                    shape: shape.to_vec(),
                    chunk: chunk.clone(),
                    chunk_index: ChunkIndex::find(
                        object,
                        &shape[..outer],
                        chunk.get(..outer).unwrap_or_default(),
                        cancel,
                    )?,
                    pipeline,
                    partial_unfiltered: facts.partial_unfiltered,
                })),
                None => Ok(Self::Library { object, piece: chunk.clone() }),
            },
            DatasetLayout::External | DatasetLayout::Virtual => {
                Err(Error::unsupported("expected data within the file"))
            }
        }
    }

    /// Reads `selection` of an array of `shape` into `into`.
    ///
    /// # Errors
    /// `Io`, `Corrupt`, `Stale`, `Cancelled`.
    pub(super) fn read(
        &self,
        shape: &[u64],
        selection: &Selection,
        into: Region,
        reader: &StorageReader<'_>,
    ) -> Result<()> {
        match self {
            Self::Contiguous(array) => {
                array.check_within(reader.file.size_bytes())?;
                array.read(reader.file, selection, into, reader.cancel)
            }
            Self::Chunked(chunks) => chunks.read(selection, into, reader),
            Self::Kept(bytes) => {
                let part = ChunkPart { position: &[], inside: selection.ranges() };
                part.copy(bytes, shape, into)
            }
            Self::Unwritten => fill(into, reader.fill),
            Self::Library { object, piece } => for_each_chunk(selection, piece, into, &mut |part, into| {
                reader.cancel.check()?;
                read_by_library(object, part, piece, into, reader)
            }),
        }
    }
}

impl DatasetStorage {
    /// Returns the stored bytes of a whole chunk, if clients can decompress them.
    ///
    /// # Errors
    /// Errors of [`read`](Self::read).
    pub(super) fn packed(
        &self,
        selection: &Selection,
        reader: &StorageReader<'_>,
    ) -> Result<Option<PackedChunk>> {
        match self {
            Self::Chunked(chunks) => chunks.packed(selection, reader),
            Self::Contiguous(_) | Self::Kept(_) | Self::Unwritten | Self::Library { .. } => Ok(None),
        }
    }
}

impl ChunkedStorage {
    fn read(&self, selection: &Selection, into: Region, reader: &StorageReader<'_>) -> Result<()> {
        for_each_chunk(selection, &self.chunk, into, &mut |part, into| {
            reader.cancel.check()?;
            match self.chunk_index.get(part.position)? {
                Some(location) => self
                    .read_chunk(part, &location, into, reader)
                    .map_err(|e| e.context(format!("chunk {:?}", part.position))),
                None => fill(into, reader.fill),
            }
        })
    }

    fn read_chunk(
        &self,
        part: &ChunkPart<'_>,
        location: &ChunkLocation,
        into: Region,
        reader: &StorageReader<'_>,
    ) -> Result<()> {
        let end = location.offset.checked_add(location.size_bytes);
        if end.is_none_or(|end| end > reader.file.size_bytes()) {
            return Err(Error::corrupt(format!(
                "expected a chunk within the file of {} bytes, found {} bytes at {}",
                reader.file.size_bytes(),
                location.size_bytes,
                location.offset
            )));
        }
        if self.is_plain(part.position) {
            // Chunks that are not decoded may be of any size.
            let chunk_bytes = self.chunk.iter().try_fold(reader.item_bytes as u64, |n, &s| n.checked_mul(s));
            if chunk_bytes != Some(location.size_bytes) {
                return Err(Error::corrupt(format!(
                    "expected a chunk of {:?} of {} bytes each, found {} bytes",
                    self.chunk, reader.item_bytes, location.size_bytes
                )));
            }
            let inside = Selection::new(part.inside.to_vec())?;
            let chunk = FlatArray::c_order(location.offset, reader.item_bytes, &self.chunk)?;
            return chunk.read(reader.file, &inside, into, reader.cancel);
        }
        let chunk_bytes = buffer_size(&self.chunk, reader.item_bytes)?;
        let decode = || self.decode(location, chunk_bytes, reader);
        if part.is_whole(&self.chunk) {
            return part.copy(&decode()?, &self.chunk, into);
        }
        let number = self.chunk_index.number(part.position);
        let bytes = reader.store.get(reader.array, number, chunk_bytes, reader.cancel, decode)?;
        part.copy(&bytes, &self.chunk, into)
    }

    fn packed(&self, selection: &Selection, reader: &StorageReader<'_>) -> Result<Option<PackedChunk>> {
        let (Some(position), Some((packing, width))) =
            (whole_chunk(selection, &self.chunk), self.pipeline.packing())
        else {
            return Ok(None);
        };
        let Some(location) = self.chunk_index.get(&position)? else { return Ok(None) };
        let chunk_bytes = buffer_size(&self.chunk, reader.item_bytes)? as u64;
        let end = location.offset.checked_add(location.size_bytes);
        // Damage of a chunk is reported when it is read.
        let is_usual = location.skipped_filters == 0
            && (1..chunk_bytes).contains(&location.size_bytes)
            && end.is_some_and(|end| end <= reader.file.size_bytes());
        if !is_usual {
            return Ok(None);
        }
        let mut bytes = vec![0; usize::try_from(location.size_bytes).unwrap_or(usize::MAX)];
        reader.file.read_at(location.offset, &mut bytes, reader.cancel)?;
        Ok(Some(PackedChunk { bytes: bytes.into(), packing, width }))
    }

    /// Whether the stored bytes of this chunk are its elements.
    fn is_plain(&self, position: &[u64]) -> bool {
        let axes = position.iter().zip(&self.chunk).zip(&self.shape);
        let partial = axes.into_iter().any(|((&p, &c), &s)| (p + 1).saturating_mul(c) > s);
        self.pipeline.is_empty() || (self.partial_unfiltered && partial)
    }

    fn decode(
        &self,
        location: &ChunkLocation,
        chunk_bytes: usize,
        reader: &StorageReader<'_>,
    ) -> Result<DecodedChunk> {
        if location.size_bytes > most_stored_bytes(chunk_bytes as u64).saturating_mul(self.pipeline.padding())
        {
            return Err(Error::corrupt(format!(
                "expected at most about {chunk_bytes} stored bytes, found {}",
                location.size_bytes
            )));
        }
        let needed_bytes = self.pipeline.needed_bytes(location.size_bytes, chunk_bytes as u64);
        let room = reader.store.scratch().reserve(chunk_bytes as u64, needed_bytes, reader.cancel)?;
        let mut stored = vec![0; usize::try_from(location.size_bytes).unwrap_or(0)];
        reader.file.read_at(location.offset, &mut stored, reader.cancel)?;
        let bytes = self.pipeline.decode(stored, location.skipped_filters, chunk_bytes)?;
        Ok(DecodedChunk::new(bytes, room))
    }
}

/// Reads the bounding box of a part through the library and copies the selected elements.
fn read_by_library(
    object: &Object,
    part: &ChunkPart<'_>,
    piece: &[u64],
    into: Region,
    reader: &StorageReader<'_>,
) -> Result<()> {
    let selection = Selection::new(part.ranges(piece))?;
    let shape = selection.shape();
    // The library holds a chunk as stored and as decoded.
    let chunk_bytes = buffer_size(piece, into.item_bytes())? as u64;
    let needed_bytes = most_stored_bytes(chunk_bytes) + chunk_bytes + into.size_bytes() as u64;
    let _room = reader.store.scratch().reserve(chunk_bytes, needed_bytes, reader.cancel)?;
    let mut bytes = buffer(&shape, into.item_bytes())?;
    object.read(&selection, into.item_bytes(), &mut bytes)?;
    let mut into = into;
    into.write_all(&bytes)
}

/// Bytes of a tile: read or assembled at a time by each reading thread, for data without chunks.
const TILE_BYTES: u64 = 4 << 20;

/// Returns the shape of a tile: whole rows, layers and so on, up to [`TILE_BYTES`].
pub(super) fn tile(shape: &[u64], item_bytes: usize) -> Vec<u64> {
    let mut left = TILE_BYTES / (item_bytes as u64).max(1);
    let size = |&n: &u64| {
        let size = n.min(left).max(1);
        left /= size;
        size
    };
    let mut tile: Vec<u64> = shape.iter().rev().map(size).collect();
    tile.reverse();
    tile
}

fn buffer_size(shape: &[u64], item_bytes: usize) -> Result<usize> {
    let bytes = shape.iter().try_fold(item_bytes as u64, |n, &s| n.checked_mul(s));
    bytes.filter(|&n| n <= MAX_CHUNK_BYTES).and_then(|n| usize::try_from(n).ok()).ok_or_else(|| {
        Error::too_large(format!(
            "expected chunks of at most {MAX_CHUNK_BYTES} bytes, found the shape {shape:?}"
        ))
    })
}

fn buffer(shape: &[u64], item_bytes: usize) -> Result<Vec<u8>> {
    Ok(vec![0; buffer_size(shape, item_bytes)?])
}
