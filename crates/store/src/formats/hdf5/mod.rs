//! HDF5 files, and NetCDF-4 files, which are HDF5 with conventions.
//!
//! The C library lists the objects and the locations of chunks; elements are read and decoded without it wherever the filters allow
//! (see `storage`), so its process-wide lock does not serialize reading. Values are served as stored, big-endian if the file is.
//! Objects that are not arrays of numbers are listed as left out. Other files are opened if links and virtual data sets lead to them,
//! within the exported folder only, and never by the library.
//!
//! ```text
//! library/   unsafe: safe interface of the C library
//! walk       all names of groups and data sets, bounded     index     result of the walk in the side cache
//! files, links   other files, and links to them             vds       virtual data sets
//! netcdf     dimension names, hidden attributes             openpmd   axes of particle-mesh files
//! coordinates   values of coordinate variables
//! describe   description of all arrays
//! storage    locations of elements, reading them            chunk_index   checked locations of chunks
//! filters    decoders of deflate, shuffle, ...              signature     first bytes of a file
//! hexadecimal   bytes as text, in the index
//! ```

mod chunk_index;
mod coordinates;
mod describe;
mod files;
pub(crate) mod filters;
mod hexadecimal;
mod index;
mod library;
mod links;
mod netcdf;
mod openpmd;
mod signature;
mod storage;
mod vds;
mod walk;

use std::sync::Arc;

use array::{
    AxisRange, Dataset, Error, ErrorKind, PackedChunk, Region, Result, Selection, Target, c_strides,
};

use self::files::{LinkedFiles, ObjectId};
use self::library::{DatasetInfo, Datatype, TextEnd, TextForm};
pub use self::library::{NewHdf5, create_hdf5};
pub(crate) use self::signature::recognizes;
use self::storage::{DatasetStorage, StorageReader};
use self::vds::VirtualPart;
use self::walk::Hdf5Variable;
use crate::cache::chunk_cache::ChunkStore;
use crate::formats::common::chunked::{ChunkPart, for_each_chunk};
use crate::schedule::once::Once;
use crate::{Access, CancelFlag, FileBytes, Format, OpenOptions};

/// Opens a file.
///
/// # Errors
/// `Corrupt` when it is not an HDF5 file that the library can open.
pub(crate) fn open(file: Arc<FileBytes>, options: &OpenOptions) -> Result<Hdf5> {
    let mut files = LinkedFiles::open(file, options.folder.as_deref())?;
    let mut tree = index::tree(&mut files, options)?;
    let sources = std::mem::take(&mut tree.sources).into_iter().enumerate();
    let mut hdf5 = Hdf5 {
        dataset: Arc::new(describe::empty(&files)),
        files,
        arrays: Vec::new(),
        sources: sources.map(|(number, source)| Hdf5Array::of_source(source, number)).collect(),
        chunks: ChunkStore::new(options.scratch.clone()),
    };
    let (dataset, arrays) = describe::describe(&hdf5, tree);
    hdf5.dataset = Arc::new(dataset);
    hdf5.arrays = arrays;
    Ok(hdf5)
}

/// Open HDF5 file.
#[derive(Debug)]
pub(crate) struct Hdf5 {
    files: LinkedFiles,
    dataset: Arc<Dataset>,
    /// Stored arrays, in the order of the arrays of `dataset`.
    arrays: Vec<Hdf5Array>,
    /// Sources of virtual data sets.
    sources: Vec<Hdf5Array>,
    chunks: ChunkStore,
}

/// Array as it is stored in the file.
#[derive(Debug)]
struct Hdf5Array {
    id: ObjectId,
    facts: DatasetInfo,
    /// Elements per axis as described; those beyond the extent of the data set are all `beyond_extent`.
    shape: Vec<u64>,
    /// Elements per axis that the data set has.
    extent: Vec<u64>,
    /// Stored element with which indices beyond the extent are filled.
    beyond_extent: Vec<u8>,
    item_bytes: usize,
    /// Number of the array in the chunk cache.
    number: u32,
    /// Parts, where it is a virtual data set.
    parts: Option<Arc<Vec<VirtualPart>>>,
    /// Looked up at the first read.
    storage: Once<DatasetStorage>,
}

/// Advice for a file whose superblock is older than the rest.
const IN_SWMR: &str = "the file is being written in SWMR mode, or its writer ended without closing it: \
     read it again once it is closed, or after `h5clear -s`";

/// Numbers of sources of virtual data sets begin here: above those of arrays, below those of coordinates.
const FIRST_SOURCE: u32 = u32::MAX / 2;

impl Hdf5Array {
    /// Creates the stored array of a description, which may be longer than its data set along unlimited dimensions.
    fn of(variable: &Hdf5Variable, number: u32, shape: Vec<u64>, item_bytes: usize) -> Self {
        let (id, facts, parts) = (variable.id, variable.facts.clone(), variable.parts.clone());
        let item_bytes = facts.within.map_or(item_bytes, |(size, _)| size);
        let extent = facts.shape.clone().unwrap_or_default();
        let beyond_extent = if extent == shape { Vec::new() } else { describe::fill_beyond_extent(variable) };
        Self { id, facts, shape, extent, beyond_extent, item_bytes, number, parts, storage: Once::default() }
    }

    /// Stores all elements in memory: strings, each a row of bytes.
    fn store_texts(&mut self, rows: Vec<u8>) {
        self.extent.extend(self.shape.last());
        self.beyond_extent = vec![0];
        self.storage = Once::made(DatasetStorage::Kept(rows));
    }

    /// End of strings of one length, where their last bytes may be no part of them.
    fn text_end(&self) -> Option<TextEnd> {
        match self.facts.text {
            Some(TextForm::Fixed(end)) if end != TextEnd::Last => Some(end),
            _ => None,
        }
    }

    fn is_longer(&self) -> bool {
        self.shape != self.extent
    }

    fn of_source(source: vds::SourceDataset, number: usize) -> Self {
        let vds::SourceDataset { id, facts, shape, parts } = source;
        let item_bytes = match &facts.element {
            Datatype::Number(dtype) | Datatype::Enumeration { dtype, .. } => dtype.size_bytes(),
            _ => 1,
        };
        let number = FIRST_SOURCE + u32::try_from(number).unwrap_or(FIRST_SOURCE / 2);
        let extent = shape.clone();
        Self {
            id,
            facts,
            shape,
            extent,
            beyond_extent: Vec::new(),
            item_bytes,
            number,
            parts,
            storage: Once::default(),
        }
    }
}

impl Hdf5 {
    /// Reads elements of one array, which need not be in the description yet.
    fn read_stored(
        &self,
        stored: &Hdf5Array,
        selection: &Selection,
        into: Region,
        cancel: &CancelFlag,
    ) -> Result<()> {
        let mut within = into;
        let mut ranges = selection.ranges().to_vec();
        if stored.is_longer() {
            for (axis, range) in ranges.iter_mut().enumerate() {
                // Elements within the extent come first: steps are positive.
                let (_, count) = range.within(0, stored.extent[axis]);
                let (inside, outside) = within.split(axis, usize::try_from(count).unwrap_or(usize::MAX));
                fill(outside, &stored.beyond_extent, cancel)?;
                within = inside;
                range.count = count;
            }
        }
        let selection = Selection::new(ranges)?;
        if stored.is_longer() && selection.is_empty() {
            return Ok(());
        }
        if let Some(parts) = &stored.parts {
            return vds::read_parts(self, stored, parts, &selection, within, cancel);
        }
        if stored.facts.within.is_some() || stored.facts.padded.is_some() {
            return self.read_within(stored, &selection, within, cancel);
        }
        if let Some(end) = stored.text_end() {
            return self.read_texts(stored, end, &selection, within, cancel);
        }
        self.with_storage(stored, cancel, |storage, reader| {
            storage.read(&stored.extent, &selection, within, reader)
        })
    }

    /// Reads the file's elements piece by piece, and copies the member or the bits of each that are selected.
    fn read_within(
        &self,
        stored: &Hdf5Array,
        selection: &Selection,
        into: Region,
        cancel: &CancelFlag,
    ) -> Result<()> {
        let size = stored.item_bytes;
        let tile = storage::tile(&stored.extent, size);
        for_each_chunk(selection, &tile, into, &mut |part, mut into| {
            let selection = Selection::new(part.ranges(&tile))?;
            let (target, region) = Target::new(&selection.shape(), size)?;
            self.with_storage(stored, cancel, |storage, reader| {
                storage.read(&stored.extent, &selection, region, reader)
            })?;
            let mut elements = target.into_vec()?;
            if let Some(padded) = stored.facts.padded {
                padded.widen(&mut elements);
            }
            let offset = stored.facts.within.map_or(0, |(_, offset)| offset);
            let strides = c_strides(into.shape(), size);
            into.write_strided(elements.get(offset..).unwrap_or_default(), &strides)
        })
    }

    /// Reads whole strings piece by piece, clears the bytes after their ends, and copies the selected bytes.
    fn read_texts(
        &self,
        stored: &Hdf5Array,
        end: TextEnd,
        selection: &Selection,
        into: Region,
        cancel: &CancelFlag,
    ) -> Result<()> {
        let size_bytes = stored.extent.last().copied().unwrap_or(1);
        let text_bytes = usize::try_from(size_bytes).unwrap_or(usize::MAX).max(1);
        let tile = storage::tile(&stored.extent, stored.item_bytes);
        for_each_chunk(selection, &tile, into, &mut |part, into| {
            let mut ranges = part.ranges(&tile);
            let mut meant: Vec<AxisRange> =
                ranges.iter().map(|range| AxisRange { start: 0, step: 1, ..*range }).collect();
            if let (Some(range), Some(meant)) = (ranges.last_mut(), meant.last_mut()) {
                *meant = *range;
                *range = AxisRange { start: 0, count: size_bytes, step: 1 };
            }
            let texts = Selection::new(ranges)?;
            let shape = texts.shape();
            let (target, region) = Target::new(&shape, stored.item_bytes)?;
            self.with_storage(stored, cancel, |storage, reader| {
                storage.read(&stored.extent, &texts, region, reader)
            })?;
            let mut bytes = target.into_vec()?;
            bytes.chunks_exact_mut(text_bytes).for_each(|text| end.clear_rest(text));
            ChunkPart { position: &[], inside: &meant }.copy(&bytes, &shape, into)
        })
    }

    /// Calls `read` with the storage of an array, which is looked up at the first read.
    fn with_storage<T>(
        &self,
        stored: &Hdf5Array,
        cancel: &CancelFlag,
        read: impl FnOnce(&DatasetStorage, &StorageReader<'_>) -> Result<T>,
    ) -> Result<T> {
        let locate = || {
            let object = self.files.object(stored.id)?;
            let located =
                DatasetStorage::locate(object, &stored.facts, &stored.extent, stored.item_bytes, cancel);
            located.map_err(|e| {
                let file = self.files.get(stored.id.file);
                let is_in_swmr = file.is_ok_and(|file| signature::is_in_swmr(&file.bytes));
                if is_in_swmr && e.kind() != ErrorKind::Cancelled { e.context(IN_SWMR) } else { e }
            })
        };
        let storage = stored.storage.get_or_make(cancel, locate)?;
        let reader = StorageReader {
            file: &*self.files.get(stored.id.file)?.bytes,
            store: &self.chunks,
            array: stored.number,
            item_bytes: stored.item_bytes,
            fill: &stored.facts.fill,
            cancel,
        };
        read(storage, &reader)
    }

    fn stored(&self, array: u32) -> Result<&Hdf5Array> {
        self.arrays.get(array as usize).ok_or_else(|| {
            Error::not_found(format!("expected an array below {}, found {array}", self.arrays.len()))
        })
    }
}

impl Format for Hdf5 {
    fn dataset(&self) -> Arc<Dataset> {
        Arc::clone(&self.dataset)
    }

    fn access(&self, array: u32) -> Access {
        match self.arrays.get(array as usize).map(|a| &a.facts.layout) {
            Some(library::DatasetLayout::Chunked(_)) => Access::Chunked,
            _ => Access::Flat,
        }
    }

    fn read(
        &self,
        array: u32,
        _level: u8,
        selection: &Selection,
        into: Region,
        cancel: &CancelFlag,
    ) -> Result<()> {
        let stored = self.stored(array)?;
        self.read_stored(stored, selection, into, cancel).map_err(|e| {
            let name = self.dataset.array(array).map_or("", |a| a.name.as_str());
            e.context(format!("read array `{name}`"))
        })
    }

    fn packed(
        &self,
        array: u32,
        _level: u8,
        selection: &Selection,
        cancel: &CancelFlag,
    ) -> Result<Option<PackedChunk>> {
        let stored = self.stored(array)?;
        let is_plain =
            stored.facts.within.is_none() && stored.facts.padded.is_none() && stored.text_end().is_none();
        if stored.parts.is_some() || stored.is_longer() || !is_plain {
            return Ok(None);
        }
        self.with_storage(stored, cancel, |storage, reader| storage.packed(selection, reader))
    }
}

/// Bytes of a repeated element that are written at a time.
const FILLED_BYTES: usize = 256 << 10;

/// Fills a region with copies of one element.
fn fill(mut region: Region, element: &[u8], cancel: &CancelFlag) -> Result<()> {
    let size_bytes = region.size_bytes();
    let piece = element.repeat((FILLED_BYTES / element.len().max(1)).max(1));
    let mut at = 0;
    while at < size_bytes {
        cancel.check()?;
        let now = piece.len().min(size_bytes - at);
        region.write_at(at, &piece[..now])?;
        at += now;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
