//! Table of the formats: adding one is a module `formats/NAME` and one entry here.
//!
//! `formats::open` tests the entries in this order, and `formats::recognize` tests the same entries without opening the data.

use std::path::Path;
use std::sync::Arc;

use array::Result;

use crate::formats::{amr, hdf5, mgh, netcdf3, nifti, npy, nrrd, raw, zarr};
use crate::{FileBytes, Format, OpenOptions};

/// Bytes at the beginning of a file in which the signature tests search.
pub(crate) const HEAD_BYTES: usize = 64 << 10;

/// Opens a file of one format.
type FileOpener = fn(Arc<FileBytes>, &OpenOptions) -> Result<Arc<dyn Format>>;

/// Opens a directory; `None` if it does not have the format.
type DirectoryOpener = fn(&Path, &OpenOptions) -> Result<Option<Arc<dyn Format>>>;

/// Format of single files.
pub(crate) struct FileFormat {
    /// Name in error messages and of recognized files.
    pub(crate) name: &'static str,
    /// Names in the message about a file that no entry recognizes.
    pub(crate) listed: &'static [&'static str],
    /// Signature test: whether a file that begins with these bytes has this format.
    pub(crate) recognizes: fn(head: &[u8]) -> bool,
    /// Endings of lower-case file names; used only if no signature test succeeds.
    pub(crate) endings: &'static [&'static str],
    /// Opens a file of this format.
    pub(crate) open: FileOpener,
}

/// Format of directories.
pub(crate) struct DirectoryFormat {
    /// Name of recognized directories.
    pub(crate) name: &'static str,
    /// Whether a directory has this format.
    pub(crate) recognizes: fn(&Path, &OpenOptions) -> Result<bool>,
    /// Opens a directory; `None` if it does not have this format.
    pub(crate) open: DirectoryOpener,
}

/// Formats of files, in the order of their tests.
pub(crate) const FILE_FORMATS: &[FileFormat] = &[
    FileFormat {
        name: "HDF5",
        listed: &["HDF5"],
        recognizes: hdf5::recognizes,
        endings: &[".h5", ".hdf5", ".he5", ".nc4"],
        open: |file, options| Ok(amr::over(Arc::new(hdf5::open(file, options)?))),
    },
    FileFormat {
        name: "NetCDF-3",
        listed: &["NetCDF-3"],
        recognizes: netcdf3::recognizes,
        endings: &[".nc", ".cdf", ".nc3"],
        open: |file, options| Ok(Arc::new(netcdf3::open(file, options)?)),
    },
    FileFormat {
        name: "NRRD",
        listed: &["NRRD"],
        recognizes: nrrd::recognizes,
        endings: &[".nrrd", ".nhdr"],
        open: |file, options| Ok(Arc::new(nrrd::open(file, options)?)),
    },
    FileFormat {
        name: "NIfTI",
        listed: &["NIfTI", "Analyze"],
        recognizes: nifti::recognizes,
        endings: &[".nii", ".nii.gz", ".hdr", ".hdr.gz", ".img", ".img.gz"],
        open: |file, options| Ok(Arc::new(nifti::open(file, options)?)),
    },
    FileFormat {
        name: "MGH",
        listed: &["MGH"],
        recognizes: |_| false,
        endings: &[".mgh", ".mgz", ".mgh.gz"],
        open: |file, options| Ok(Arc::new(mgh::open(file, options)?)),
    },
    FileFormat {
        name: "NumPy",
        listed: &["NumPy"],
        recognizes: npy::recognizes,
        endings: &[".npy"],
        open: |file, options| Ok(Arc::new(npy::open(file, options)?)),
    },
    FileFormat {
        name: "Enzo",
        listed: &["Enzo"],
        recognizes: amr::is_enzo,
        endings: &[".hierarchy"],
        open: |file, options| Ok(Arc::new(amr::open_enzo(file, options)?)),
    },
    FileFormat {
        name: "Zarr",
        listed: &[],
        recognizes: zarr::recognizes_archive,
        endings: &[".zip"],
        open: |file, options| Ok(Arc::new(zarr::open_archive(file, options)?)),
    },
    FileFormat {
        name: "raw",
        listed: &[],
        recognizes: |_| false,
        endings: &[".toml"],
        open: |file, options| Ok(Arc::new(raw::open(file, options)?)),
    },
];

/// Formats of directories, in the order of their tests.
pub(crate) const DIRECTORY_FORMATS: &[DirectoryFormat] = &[
    DirectoryFormat {
        name: "Zarr",
        recognizes: |path, _| Ok(zarr::recognizes(path)),
        open: |path, options| {
            if !zarr::recognizes(path) {
                return Ok(None);
            }
            Ok(Some(Arc::new(zarr::open(path, options).map_err(|e| e.context("Zarr"))?)))
        },
    },
    DirectoryFormat {
        name: "mesh",
        recognizes: amr::recognizes_directory,
        open: |path, options| match amr::open_directory(path, options)? {
            Some(mesh) => Ok(Some(Arc::new(mesh))),
            None => Ok(None),
        },
    },
];

/// Returns the first format of files whose signature test succeeds.
pub(crate) fn format_of_head(head: &[u8]) -> Option<&'static FileFormat> {
    FILE_FORMATS.iter().find(|format| (format.recognizes)(head))
}

/// Returns the first format of files that has the ending of the name of a file.
pub(crate) fn format_of_name(path: &Path) -> Option<&'static FileFormat> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    FILE_FORMATS.iter().find(|format| format.endings.iter().any(|ending| name.ends_with(ending)))
}
