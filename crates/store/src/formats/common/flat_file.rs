//! Format of uncompressed arrays in byte stores: NRRD, NIfTI, raw and NetCDF-3 files once their headers are read.

use std::sync::Arc;

use array::{
    ArrayInfo, Attributes, Dataset, DatasetId, Error, Generation, Group, LeftOut, Priority, Region, Result,
    Selection,
};
use futures::future::BoxFuture;

use crate::formats::common::flat::FlatArray;
use crate::io::window::FlatSource;
use crate::{Access, ByteStore, CancelFlag, FileBytes, Format, GzipBytes, OpenOptions};

/// Array of a file, with the layout of its elements and the store that holds them.
#[derive(Clone)]
pub(crate) struct FlatFileArray {
    pub(crate) info: ArrayInfo,
    pub(crate) layout: FlatArray,
    pub(crate) store: Arc<dyn ByteStore>,
    pub(crate) access: Access,
}

/// Content of a header other than its arrays.
#[derive(Default)]
pub(crate) struct HeaderInfo {
    pub(crate) format: &'static str,
    pub(crate) attributes: Attributes,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) warnings: Vec<String>,
    /// Identities of further files that are not kept open; see [`FileBytes::identity`].
    pub(crate) identity: Vec<Vec<u8>>,
    pub(crate) groups: Vec<Group>,
}

/// An opened file of flat arrays.
pub(crate) struct FlatFile {
    dataset: Arc<Dataset>,
    arrays: Vec<(FlatArray, Arc<dyn ByteStore>, Access)>,
}

impl FlatFile {
    /// Opens the arrays of a header. `files`: the header's file first, then those that it names.
    ///
    /// # Errors
    /// `Corrupt` when an array's description is impossible.
    pub(crate) fn new(files: &[&FileBytes], about: HeaderInfo, placed: Vec<FlatFileArray>) -> Result<Self> {
        let mut dataset = Dataset {
            id: DatasetId::of(files.iter().flat_map(|f| f.identity()).chain(about.identity)),
            generation: Generation(0),
            name: files.first().map(|f| f.name()).unwrap_or_default(),
            format: about.format.into(),
            arrays: Vec::with_capacity(placed.len()),
            attributes: about.attributes,
            left_out: about.left_out,
            warnings: about.warnings,
            groups: about.groups,
        };
        let mut arrays = Vec::with_capacity(placed.len());
        for FlatFileArray { info, layout, store, access } in placed {
            dataset.arrays.push(info);
            arrays.push((layout, store, access));
        }
        dataset.check()?;
        Ok(Self { dataset: Arc::new(dataset), arrays })
    }
}

impl Format for FlatFile {
    fn dataset(&self) -> Arc<Dataset> {
        Arc::clone(&self.dataset)
    }

    fn access(&self, array: u32) -> Access {
        self.arrays.get(array as usize).map_or(Access::Flat, |(_, _, access)| *access)
    }

    fn prepare(&self, array: u32, priority: Priority) -> Option<BoxFuture<'static, Result<()>>> {
        self.arrays.get(array as usize).and_then(|(_, store, _)| store.prepare(priority))
    }

    fn flat(&self, array: u32, level: u8) -> Option<FlatSource> {
        let (layout, store, access) = self.arrays.get(array as usize).filter(|_| level == 0)?;
        (*access == Access::Flat).then(|| FlatSource { layout: layout.clone(), store: Arc::clone(store) })
    }

    fn read(
        &self,
        array: u32,
        level: u8,
        selection: &Selection,
        into: Region,
        cancel: &CancelFlag,
    ) -> Result<()> {
        let stored = self.arrays.get(array as usize).filter(|_| level == 0);
        let (layout, store, _) = stored.ok_or_else(|| {
            Error::invalid(format!(
                "expected level 0 of one of {} arrays, found level {level} of array {array}",
                self.arrays.len()
            ))
        })?;
        layout.read(store.as_ref(), selection, into, cancel)
    }
}

/// Compression of the bytes of an array in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileCompression {
    /// Not compressed.
    Plain,
    /// The file from this byte on is one gzip stream.
    Gzip {
        /// Byte of the file at which the stream begins.
        start: u64,
    },
}

/// Returns the store that gives an array's bytes, and the cost of access. A plain array must lie within its file; the size of a
/// compressed one is known only by reading.
///
/// # Errors
/// `Corrupt` when a plain array ends beyond its file.
pub(crate) fn store(
    file: &Arc<FileBytes>,
    packing: FileCompression,
    layout: &FlatArray,
    options: &OpenOptions,
) -> Result<(Arc<dyn ByteStore>, Access)> {
    match packing {
        FileCompression::Plain => {
            layout.check_within(file.size_bytes())?;
            Ok((Arc::clone(file) as Arc<dyn ByteStore>, Access::Flat))
        }
        FileCompression::Gzip { start } => {
            let inside = GzipBytes::new(Arc::clone(file), start, options);
            Ok((Arc::new(inside), Access::Chunked))
        }
    }
}
