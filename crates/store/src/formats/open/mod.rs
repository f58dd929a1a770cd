//! Opens whatever a location names: looks at the first bytes, then at the name.
//!
//! A location is a path or `synthetic:NAME?...`. Which formats there are is the table in this file.

use std::path::Path;
use std::sync::Arc;

use array::{Error, Result, Source};

use crate::formats::common::labels::Meant;
use crate::formats::synthetic::{self, Synthetic};
use crate::{
    FileBytes, Format, FormatSource, Levels, OpenOptions, formats::amr, formats::hdf5, formats::mgh,
    formats::netcdf3, formats::nifti, formats::npy, formats::nrrd, formats::raw,
};

/// Bytes looked at to recognise a file.
pub(crate) const HEAD_BYTES: usize = 64 << 10;

type Open = fn(Arc<FileBytes>, &OpenOptions) -> Result<Arc<dyn Format>>;

/// One format of files.
pub(crate) struct Kind {
    /// For error messages.
    pub(crate) name: &'static str,
    /// Whether a file that begins with these bytes is of this format.
    pub(crate) recognises: fn(head: &[u8]) -> bool,
    /// How lower-case names of such files end; they decide only when no format recognises the bytes.
    pub(crate) endings: &'static [&'static str],
    open: Open,
}

/// Every format of files.
pub(crate) const KINDS: &[Kind] = &[
    Kind {
        name: "HDF5",
        recognises: |head| hdf5::recognises(head, ""),
        endings: &[".h5", ".hdf5", ".he5", ".nc4"],
        open: |file, options| Ok(amr::over(Arc::new(hdf5::open(file, options)?))),
    },
    Kind {
        name: "NetCDF-3",
        recognises: netcdf3::recognises,
        endings: &[".nc", ".cdf", ".nc3"],
        open: |file, options| Ok(Arc::new(netcdf3::open(file, options)?)),
    },
    Kind {
        name: "NRRD",
        recognises: nrrd::recognises,
        endings: &[".nrrd", ".nhdr"],
        open: |file, options| Ok(Arc::new(nrrd::open(file, options)?)),
    },
    Kind {
        name: "NIfTI",
        recognises: nifti::recognises,
        endings: &[".nii", ".nii.gz", ".hdr", ".hdr.gz", ".img", ".img.gz"],
        open: |file, options| Ok(Arc::new(nifti::open(file, options)?)),
    },
    Kind {
        name: "MGH",
        recognises: |_| false,
        endings: &[".mgh", ".mgz", ".mgh.gz"],
        open: |file, options| Ok(Arc::new(mgh::open(file, options)?)),
    },
    Kind {
        name: "NumPy",
        recognises: npy::recognises,
        endings: &[".npy"],
        open: |file, options| Ok(Arc::new(npy::open(file, options)?)),
    },
    Kind {
        name: "Enzo",
        recognises: amr::is_enzo,
        endings: &[".hierarchy"],
        open: |file, options| Ok(Arc::new(amr::open_enzo(file, options)?)),
    },
    Kind {
        name: "Zarr",
        recognises: crate::formats::zarr::recognises_archive,
        endings: &[".zip"],
        open: |file, options| Ok(Arc::new(crate::formats::zarr::open_archive(file, options)?)),
    },
    Kind {
        name: "raw",
        recognises: |_| false,
        endings: &[".toml"],
        open: |file, options| Ok(Arc::new(raw::open(file, options)?)),
    },
];

/// Opens a location as a source with the levels that it lacks.
///
/// # Errors
/// `NotFound`, `Unsupported` when nothing recognises it (listing what would be), `Corrupt` when a header is wrong.
pub fn open(location: &str, options: &OpenOptions) -> Result<Arc<dyn Source>> {
    let format = FormatSource::new(open_format(location, options)?);
    Ok(Arc::new(Levels::new(format, options)))
}

/// Opens a location as it is stored, without making a source of it.
///
/// # Errors
/// As [`open`].
pub fn open_format(location: &str, options: &OpenOptions) -> Result<Arc<dyn Format>> {
    let format = open_unchecked(location, options).map_err(|e| e.context(format!("open `{location}`")))?;
    format.dataset().check()?;
    Ok(Meant::over(format, options.meaning))
}

fn open_unchecked(location: &str, options: &OpenOptions) -> Result<Arc<dyn Format>> {
    if location.starts_with(synthetic::SCHEME) {
        return Ok(Arc::new(Synthetic::open(location)?));
    }
    let path = Path::new(location);
    if path.is_dir() {
        return open_directory(path, options);
    }
    let file = FileBytes::open(path)?;
    let head = file.head(HEAD_BYTES)?;
    if head.is_empty() {
        return Err(Error::unsupported("expected data, found an empty file"));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let by_bytes = KINDS.iter().find(|kind| (kind.recognises)(&head));
    let by_name = || KINDS.iter().find(|kind| kind.endings.iter().any(|ending| name.ends_with(ending)));
    match by_bytes.or_else(by_name) {
        Some(kind) => (kind.open)(file, options).map_err(|e| e.context(kind.name)),
        None => Err(Error::unsupported(format!(
            "expected HDF5, NetCDF-3, NRRD, NIfTI, Analyze, MGH, NumPy, Enzo, the folder of a Zarr store or of a mesh, or for numbers without a header a description of \
             them, `NAME.toml` (docs/raw.md); found a file that begins with {:02x?}",
            &head[..head.len().min(8)]
        ))),
    }
}

fn open_directory(path: &Path, options: &OpenOptions) -> Result<Arc<dyn Format>> {
    if crate::formats::zarr::recognises(path) {
        return Ok(Arc::new(crate::formats::zarr::open(path, options).map_err(|e| e.context("Zarr"))?));
    }
    if let Some(mesh) = amr::open_directory(path, options)? {
        return Ok(Arc::new(mesh));
    }
    Err(Error::unsupported(format!(
        "expected a file, a Zarr store (a directory with `zarr.json`, `.zgroup` or `.zarray`) or the folder of a mesh (with \
         `NAME.hierarchy` of Enzo, or `*.h5` of Carpet), found another directory; for the data sets in it run `corridor serve {}`, \
         then `corridor view` with a link that it prints",
        path.display()
    )))
}

#[cfg(test)]
mod tests;
