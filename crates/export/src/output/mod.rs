//! Files that `get` writes: `.npy`, `.raw`, `.nc`, `.h5`, `.zarr`, `.csv`. Written beside their place and renamed when whole.
//!
//! A flat file is a header and then the elements in C order (`flat`); Zarr is a folder of chunks ([`zarr`]).

pub(crate) mod coordinates;
pub(crate) mod csv;
pub(crate) mod flat;
pub(crate) mod hdf5;
pub(crate) mod mp4;
pub(crate) mod netcdf;
pub(crate) mod npy;
pub mod zarr;

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use array::{ArrayInfo, Attribute, Attributes, ByteOrder, DType, Decoding, Error, Meaning, Result, Scalar};

/// Kind of file to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// numpy's format.
    Npy,
    /// The elements and nothing else.
    Raw,
    /// NetCDF-3 (64-bit data).
    NetCdf,
    /// HDF5, one contiguous data set.
    Hdf5,
    /// A Zarr v3 array.
    Zarr,
    /// A table of a small selection, with its coordinates.
    Csv,
}

impl FileKind {
    /// By the file's extension.
    ///
    /// # Errors
    /// `Invalid`, listing what works.
    pub fn of(path: &Path) -> Result<Self> {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        match extension.as_str() {
            "npy" => Ok(Self::Npy),
            "raw" | "bin" => Ok(Self::Raw),
            "nc" => Ok(Self::NetCdf),
            "h5" | "hdf5" => Ok(Self::Hdf5),
            "zarr" => Ok(Self::Zarr),
            "csv" => Ok(Self::Csv),
            _ => Err(Error::invalid(format!(
                "expected an output that ends in .npy, .raw, .nc, .h5, .zarr or .csv, found `{}`",
                path.display()
            ))),
        }
    }

    /// The byte order in which elements are written.
    #[must_use]
    pub fn byte_order(self) -> ByteOrder {
        match self {
            Self::Npy | Self::Raw | Self::Csv => ByteOrder::NATIVE,
            Self::NetCdf => ByteOrder::Big,
            Self::Hdf5 | Self::Zarr => ByteOrder::Little,
        }
    }
}

/// Attributes of an array in the form that all readers accept: `_FillValue` is one number that an element can have, in the
/// type of the elements (signed where `_Unsigned` changes the sign, as readers expect). Another fill value becomes
/// `missing_value`, which may be any value but NaN: NaN equals nothing, and JSON has no number for it.
#[must_use]
pub fn meant_attributes(array: &ArrayInfo) -> Attributes {
    let mut all = array.attributes.clone();
    if array.meaning == Meaning::Text {
        // It tells xarray to decode characters; the elements are texts that are decoded already, or plain bytes.
        all.remove("_Encoding");
        return all;
    }
    let element = array.dtype.element();
    let wanted = if array.decoding.unsigned.is_some() { element.signed() } else { element };
    let fill = |value: Scalar| match array.decoding.unsigned {
        Some(_) => value.wrapped(wanted),
        None => value.exactly(wanted),
    };
    let is_nan = |value: &Scalar| value.as_f64().is_nan();
    if let Some(Attribute::Numbers(numbers, _)) = all.get_mut("missing_value") {
        numbers.retain(|number| !is_nan(number));
        if numbers.is_empty() {
            all.remove("missing_value");
        }
    }
    if matches!(all.get("missing_value"), Some(Attribute::Number(number, _)) if is_nan(number)) {
        all.remove("missing_value");
    }
    match all.remove("_FillValue") {
        Some(Attribute::Number(value, own)) => match fill(value) {
            Some(value) => drop(all.insert("_FillValue".into(), Attribute::Number(value, Some(wanted)))),
            None if is_nan(&value) => {}
            None => drop(all.entry("missing_value".into()).or_insert(Attribute::Number(value, own))),
        },
        Some(other) => drop(all.entry("missing_value".into()).or_insert(other)),
        None => {}
    }
    all
}

/// How stored values become the meant ones, in CF's words: only what changes them, for readers take whatever is said for
/// a reason to make doubles of integers and of single precision.
pub fn scale_and_offset(decoding: &Decoding) -> impl Iterator<Item = (String, Attribute)> {
    [("scale_factor", decoding.scale, 1.0), ("add_offset", decoding.offset, 0.0)]
        .into_iter()
        .filter(|(_, value, absent)| value != absent)
        .map(|(name, value, _)| (name.to_owned(), Attribute::number_of(value)))
}

/// Facts about the written array that a header needs.
#[derive(Clone, Debug)]
pub(crate) struct ArrayHeader {
    /// Name of the array.
    pub(crate) name: String,
    /// Names of the axes that are left.
    pub(crate) axes: Vec<String>,
    /// Elements per axis that is left.
    pub(crate) shape: Vec<u64>,
    /// Type and byte order in the file.
    pub(crate) dtype: DType,
    /// Other attributes: units, and scale and offset where the values are written as stored.
    pub(crate) attributes: Attributes,
}

/// A file or folder under way, in a folder of its own that nobody else may enter: removed when dropped, in place
/// after [`Draft::keep`].
#[derive(Debug)]
pub(crate) struct AtomicOutput {
    /// Path of the file or folder until it is in place.
    pub(crate) path: PathBuf,
    room: PathBuf,
    target: PathBuf,
}

/// Leftovers of the same process and name that are stepped over.
const MAX_ROOMS: u32 = 100;

impl AtomicOutput {
    /// Beside `target`, so that the rename is atomic. The folder is made anew: a link that waits under its name is
    /// never followed.
    ///
    /// # Errors
    /// `Invalid` when `target` has no name, is a folder, or holds data that are being read; `Io`, `Denied`.
    pub(crate) fn beside(target: &Path) -> Result<Self> {
        let refused = |what: &str| {
            Err(Error::invalid(format!(
                "expected another output, found `{}`, which {what}",
                target.display()
            )))
        };
        if target.is_dir() {
            return refused("is a folder");
        }
        // What a link leads to is written, not put in place of the link.
        let target = &target.canonicalize().unwrap_or_else(|_| target.to_path_buf());
        if target.metadata().is_ok_and(|about| !about.is_file()) {
            return refused("is no file that could be replaced");
        }
        if is_open_here(target) {
            return refused("holds the data that are read");
        }
        let name = target
            .file_name()
            .ok_or_else(|| Error::invalid(format!("expected a file name, found `{}`", target.display())))?;
        let mut number = 0;
        loop {
            let room = format!(".{}.part{}-{number}", name.to_string_lossy(), std::process::id());
            let room = target.with_file_name(room);
            match std::fs::DirBuilder::new().mode(0o700).create(&room) {
                Ok(()) => return Ok(Self { path: room.join(name), room, target: target.to_path_buf() }),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && number < MAX_ROOMS => number += 1,
                Err(e) => return Err(Error::from(e).context(format!("write `{}`", target.display()))),
            }
        }
    }

    /// A file of any length can be made on some systems; that it cannot be filled should show before the copy begins.
    ///
    /// # Errors
    /// `TooLarge` when there is less free space than `data_bytes`.
    pub(crate) fn expect_space(&self, data_bytes: u64) -> Result<()> {
        let Ok(about) = rustix::fs::statvfs(&self.room) else { return Ok(()) };
        let free = about.f_bavail.saturating_mul(about.f_frsize);
        if data_bytes > free {
            return Err(Error::too_large(format!(
                "expected {data_bytes} bytes of free space, found {free}: `{}`",
                self.target.display()
            )));
        }
        Ok(())
    }

    /// Says which file an error is about: the one that was asked for, not where it is for now.
    pub(crate) fn failed(&self, error: impl Into<Error>) -> Error {
        error.into().context(format!("write `{}`", self.target.display()))
    }

    /// Puts it in place. A file takes the place of an older one.
    ///
    /// # Errors
    /// `Io`, `Denied`.
    pub(crate) fn keep(self) -> Result<()> {
        std::fs::rename(&self.path, &self.target).map_err(|e| self.failed(e))
    }
}

/// Whether this process has the file open: then it reads it, under this name or another. False where the system does not
/// tell.
fn is_open_here(path: &Path) -> bool {
    let (Ok(about), Ok(open)) = (path.metadata(), std::fs::read_dir("/proc/self/fd")) else { return false };
    let same = |other: std::fs::Metadata| (other.dev(), other.ino()) == (about.dev(), about.ino());
    open.flatten().any(|entry| entry.path().metadata().is_ok_and(same))
}

impl Drop for AtomicOutput {
    fn drop(&mut self) {
        // Nothing more can be done about a leftover than to leave it under its telling name.
        drop(std::fs::remove_dir_all(&self.room));
    }
}
