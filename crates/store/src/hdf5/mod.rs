//! HDF5 files, and NetCDF-4 files, which are HDF5 with conventions.
//!
//! The C library lists what is there and where chunks lie; elements are read and decoded without it wherever
//! the filters allow (see `storage`), so its process-wide lock does not serialise reading. Values are given as
//! stored, big-endian where the file is. What is no array of numbers is listed as left out. Nothing outside the
//! file is ever opened: external links, external data and virtual data sets are named and not followed.
//!
//! ```text
//! library/   unsafe: the C library behind safe calls
//! walk       every group and data set once, bounded         index   what it found, kept for the next time
//! netcdf     dimension names, hidden attributes       openpmd   axes of particle-mesh files
//! coordinates   values of coordinate variables
//! describe   all of it into the description of arrays
//! storage    where elements lie, reading them         places   where chunks do, and whether that is true
//! filters    undoing deflate, shuffle, ...
//! ```

mod coordinates;
mod describe;
mod filters;
mod index;
mod library;
mod netcdf;
mod openpmd;
mod places;
mod storage;
mod walk;

use std::sync::Arc;

use array::{Dataset, Error, PackedChunk, Region, Result, Selection};

use self::library::{Facts, File, Token};
pub use self::library::{NewHdf5, create_hdf5};
use self::storage::{Reader, Storage};
use crate::kept::ChunkStore;
use crate::once::Once;
use crate::{Access, Cancel, FileBytes, Format, OpenOptions};

/// The first bytes of the superblock.
const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// Where it may lie in the head of a file: at the start, or after a user block of a power of two.
const PLACES: [usize; 4] = [0, 512, 1024, 2048];

/// Whether these first bytes, or else this name, are of an HDF5 file.
pub(crate) fn recognises(head: &[u8], name: &str) -> bool {
    PLACES.iter().any(|&at| head.get(at..).is_some_and(|rest| rest.starts_with(SIGNATURE)))
        || [".h5", ".hdf5", ".he5", ".nc4"].iter().any(|ending| name.ends_with(ending))
}

/// Opens a file.
///
/// # Errors
/// `Corrupt` when it is not an HDF5 file that the library can open.
pub(crate) fn open(file: Arc<FileBytes>, options: &OpenOptions) -> Result<Hdf5> {
    let library = File::open(&file)?;
    let tree = index::tree(&library, &file, options)?;
    let mut hdf5 = Hdf5 {
        dataset: Arc::new(describe::empty(&file)),
        file,
        library,
        arrays: Vec::new(),
        chunks: ChunkStore::new(options.scratch.clone()),
    };
    let (dataset, arrays) = describe::describe(&hdf5, tree);
    hdf5.dataset = Arc::new(dataset);
    hdf5.arrays = arrays;
    Ok(hdf5)
}

/// An open file.
#[derive(Debug)]
pub(crate) struct Hdf5 {
    file: Arc<FileBytes>,
    library: File,
    dataset: Arc<Dataset>,
    /// Beside the arrays of `dataset`.
    arrays: Vec<Stored>,
    chunks: ChunkStore,
}

/// One array as the file has it.
#[derive(Debug)]
struct Stored {
    token: Token,
    facts: Facts,
    shape: Vec<u64>,
    item_bytes: usize,
    /// Looked up at the first read.
    storage: Once<Storage>,
}

impl Stored {
    fn new(token: Token, facts: Facts, shape: Vec<u64>, item_bytes: usize) -> Self {
        Self { token, facts, shape, item_bytes, storage: Once::default() }
    }
}

impl Hdf5 {
    /// Reads elements of one array, which need not be in the description yet.
    fn read_stored(
        &self,
        array: u32,
        stored: &Stored,
        selection: &Selection,
        into: Region,
        cancel: &Cancel,
    ) -> Result<()> {
        self.with_storage(array, stored, cancel, |storage, reader| {
            storage.read(&stored.shape, selection, into, reader)
        })
    }

    /// Does something where the elements of an array lie.
    fn with_storage<T>(
        &self,
        array: u32,
        stored: &Stored,
        cancel: &Cancel,
        how: impl FnOnce(&Storage, &Reader<'_>) -> Result<T>,
    ) -> Result<T> {
        let locate = || {
            let object = self.library.object(stored.token)?;
            Storage::locate(object, &stored.facts, &stored.shape, stored.item_bytes, cancel)
        };
        let storage = stored.storage.get_or_make(cancel, locate)?;
        let reader = Reader {
            file: &*self.file,
            store: &self.chunks,
            array,
            item_bytes: stored.item_bytes,
            fill: &stored.facts.fill,
            cancel,
        };
        how(storage, &reader)
    }

    fn stored(&self, array: u32) -> Result<&Stored> {
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
            Some(library::Layout::Chunked(_)) => Access::Chunked,
            _ => Access::Flat,
        }
    }

    fn read(
        &self,
        array: u32,
        _level: u8,
        selection: &Selection,
        into: Region,
        cancel: &Cancel,
    ) -> Result<()> {
        let stored = self.stored(array)?;
        self.read_stored(array, stored, selection, into, cancel).map_err(|e| {
            let name = self.dataset.array(array).map_or("", |a| a.name.as_str());
            e.context(format!("read array `{name}`"))
        })
    }

    fn packed(
        &self,
        array: u32,
        _level: u8,
        selection: &Selection,
        cancel: &Cancel,
    ) -> Result<Option<PackedChunk>> {
        let stored = self.stored(array)?;
        self.with_storage(array, stored, cancel, |storage, reader| storage.packed(selection, reader))
    }
}

#[cfg(test)]
mod tests;
