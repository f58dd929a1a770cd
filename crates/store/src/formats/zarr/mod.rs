//! Zarr stores of versions 2 and 3 in a directory, including OME-Zarr multiscale images and climate data.
//!
//! Values are served as stored: in version 2 in the byte order of its `dtype`, in version 3, which has none, in the host's. Every
//! array has its path as its name; a multiscale image is in addition one array with levels. `identity` states which rewritten chunks
//! are detected.
//!
//! ```text
//! directory   files below one directory, links out of it refused; or in an archive (archive)
//! nodes       groups and arrays with their metadata     stored       one array and its chunks
//! shards      index of files with many chunks           packing      bytes-to-bytes codecs, undone within bounds
//! filters     elements, their order, and filters        nested       shards within chunks
//! identity    detection of changed chunks               file_states  the same while a store is open
//! transpose   order of the axes of a chunk
//! ome         multiscale images and labels              attributes   attributes of groups and arrays
//! describe    description
//! ```

mod archive;
mod attributes;
mod describe;
mod directory;
mod file_states;
mod filters;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod identity;
mod nested;
mod nodes;
mod ome;
mod packing;
mod shards;
mod stored;
mod transpose;

use std::path::Path;
use std::sync::Arc;

use array::{Dataset, Error, PackedChunk, Region, Result, Selection};

use self::directory::Directory;
use self::nodes::DOCUMENTS;
use self::stored::ZarrArray;
use crate::cache::chunk_cache::ChunkStore;
use crate::{Access, CancelFlag, FileBytes, Format, OpenOptions};

/// Whether a directory is a store.
pub(crate) fn recognizes(directory: &Path) -> bool {
    DOCUMENTS.iter().any(|name| directory.join(name).is_file())
}

pub(crate) use archive::recognizes as recognizes_archive;

/// Opens a store.
///
/// # Errors
/// `NotFound` without metadata, `Corrupt` when those of the root are wrong.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Zarr> {
    opened(Arc::new(Directory::open(path)?), options)
}

/// Opens a store in a `.zip` file.
///
/// # Errors
/// Errors of [`open`].
pub(crate) fn open_archive(file: Arc<FileBytes>, options: &OpenOptions) -> Result<Zarr> {
    opened(Arc::new(Directory::of_archive(file)?), options)
}

fn opened(directory: Arc<Directory>, options: &OpenOptions) -> Result<Zarr> {
    let nodes = nodes::read(&directory)?;
    let described = describe::describe(&directory, nodes, &options.scratch)?;
    Ok(Zarr {
        dataset: Arc::new(described.dataset),
        stored: described.stored,
        levels: described.levels,
        chunks: ChunkStore::new(options.scratch.clone()),
    })
}

/// An open store.
pub(crate) struct Zarr {
    dataset: Arc<Dataset>,
    stored: Vec<ZarrArray>,
    /// Per array of the data set and level: which stored array it is.
    levels: Vec<Vec<usize>>,
    chunks: ChunkStore,
}

impl Zarr {
    /// A level, and its number among all that are stored.
    fn stored(&self, array: u32, level: u8) -> Result<(u32, &ZarrArray)> {
        let levels = self.levels.get(array as usize);
        let number = levels.and_then(|levels| levels.get(usize::from(level))).copied();
        let found = number.and_then(|n| Some((u32::try_from(n).ok()?, self.stored.get(n)?)));
        found.ok_or_else(|| {
            Error::not_found(format!("expected a stored level, found array {array}, level {level}"))
        })
    }
}

impl Format for Zarr {
    fn dataset(&self) -> Arc<Dataset> {
        Arc::clone(&self.dataset)
    }

    fn access(&self, _array: u32) -> Access {
        Access::Chunked
    }

    fn read(
        &self,
        array: u32,
        level: u8,
        selection: &Selection,
        into: Region,
        cancel: &CancelFlag,
    ) -> Result<()> {
        let (number, stored) = self.stored(array, level)?;
        stored.read(number, selection, into, &self.chunks, cancel).map_err(|e| {
            let name = self.dataset.array(array).map_or("", |a| a.name.as_str());
            e.context(format!("read array `{name}`"))
        })
    }

    fn packed(
        &self,
        array: u32,
        level: u8,
        selection: &Selection,
        _cancel: &CancelFlag,
    ) -> Result<Option<PackedChunk>> {
        self.stored(array, level)?.1.packed(selection)
    }
}

#[cfg(test)]
mod tests;
