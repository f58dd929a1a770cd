//! Files that `get` writes: `.npy`, `.raw`, `.nc`, `.h5`, `.zarr`, `.csv`. They are written beside their final name,
//! and renamed when complete.
//!
//! A flat file is a header and then the elements in C order (`flat`); Zarr is a folder of chunks ([`zarr`]).

pub(crate) mod coordinates;
pub(crate) mod csv;
pub(crate) mod flat;
pub(crate) mod hdf5;
pub(crate) mod mp4;
pub(crate) mod netcdf;
pub(crate) mod npy;
pub(crate) mod webm;
pub mod zarr;

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use array::{ArrayInfo, Attribute, Attributes, ByteOrder, DType, Decoding, Error, Meaning, Result, Scalar};

/// Kind of file to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// numpy's format.
    Npy,
    /// Elements without a header.
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
    /// Determines the kind by the file's extension.
    ///
    /// # Errors
    /// `Invalid`, listing the supported extensions.
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

    /// Returns the byte order in which elements are written.
    #[must_use]
    pub fn byte_order(self) -> ByteOrder {
        match self {
            Self::Npy | Self::Raw | Self::Csv => ByteOrder::NATIVE,
            Self::NetCdf => ByteOrder::Big,
            Self::Hdf5 | Self::Zarr => ByteOrder::Little,
        }
    }
}

/// Returns the attributes of an array in the form that all readers accept: `_FillValue` is one number that an element
/// can have, in the type of the elements (signed if `_Unsigned` changes the sign, as readers expect). Another fill
/// value becomes `missing_value`, except for NaN, which no comparison finds and JSON cannot represent.
#[must_use]
pub fn normalized_attributes(array: &ArrayInfo) -> Attributes {
    let mut all = array.attributes.clone();
    if array.meaning == Meaning::Text {
        // With this attribute xarray would decode characters; the elements are decoded texts, or plain bytes.
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

/// Returns the CF attributes for converting stored values to decoded ones. Attributes without an effect are omitted,
/// because readers would convert integers and single precision to doubles.
pub fn scale_and_offset(decoding: &Decoding) -> impl Iterator<Item = (String, Attribute)> {
    [("scale_factor", decoding.scale, 1.0), ("add_offset", decoding.offset, 0.0)]
        .into_iter()
        .filter(|(_, value, absent)| value != absent)
        .map(|(name, value, _)| (name.to_owned(), Attribute::number_of(value)))
}

/// Facts about the written array for the header.
#[derive(Clone, Debug)]
pub(crate) struct ArrayHeader {
    /// Name of the array.
    pub(crate) name: String,
    /// Names of the axes that are kept.
    pub(crate) axes: Vec<String>,
    /// Elements per axis that is kept.
    pub(crate) shape: Vec<u64>,
    /// Type and byte order in the file.
    pub(crate) dtype: DType,
    /// Other attributes: units, and scale and offset if the values are written as stored.
    pub(crate) attributes: Attributes,
}

/// A file or folder that is being written, in a private folder: removed when dropped, moved to its final name by
/// [`AtomicOutput::keep`].
#[derive(Debug)]
pub(crate) struct AtomicOutput {
    /// Path of the file or folder until it is complete.
    pub(crate) path: PathBuf,
    folder: PathBuf,
    target: PathBuf,
}

/// Maximum number of leftover folders of the same process id and name that are skipped.
const MAX_LEFTOVERS: u32 = 100;

impl AtomicOutput {
    /// Creates a private folder beside `target`, so that the rename is atomic. An existing link under its name is never
    /// followed.
    ///
    /// # Errors
    /// `Invalid` if `target` has no name, is a folder, or is a file that is being read; `Io`, `Denied`.
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
        // The target of a link is written; the link is not replaced.
        let target = &target.canonicalize().unwrap_or_else(|_| target.to_path_buf());
        if target.metadata().is_ok_and(|about| !about.is_file()) {
            return refused("is not a file that can be replaced");
        }
        if is_open_here(target) {
            return refused("contains the data that are being read");
        }
        let name = target
            .file_name()
            .ok_or_else(|| Error::invalid(format!("expected a file name, found `{}`", target.display())))?;
        let mut number = 0;
        loop {
            let folder = format!(".{}.part{}-{number}", name.to_string_lossy(), std::process::id());
            let folder = target.with_file_name(folder);
            match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(Self { path: folder.join(name), folder, target: target.to_path_buf() }),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && number < MAX_LEFTOVERS => {
                    number += 1
                }
                Err(e) => return Err(Error::from(e).context(format!("write `{}`", target.display()))),
            }
        }
    }

    /// Checks the free space, because some systems can create a file that does not fit.
    ///
    /// # Errors
    /// `TooLarge` if there is less free space than `data_bytes`.
    pub(crate) fn expect_space(&self, data_bytes: u64) -> Result<()> {
        let Ok(about) = rustix::fs::statvfs(&self.folder) else { return Ok(()) };
        let free = about.f_bavail.saturating_mul(about.f_frsize);
        if data_bytes > free {
            return Err(Error::too_large(format!(
                "expected {data_bytes} bytes of free space, found {free}: `{}`",
                self.target.display()
            )));
        }
        Ok(())
    }

    /// Adds the final name of the file to an error, instead of its temporary one.
    pub(crate) fn failed(&self, error: impl Into<Error>) -> Error {
        error.into().context(format!("write `{}`", self.target.display()))
    }

    /// Moves the output to its final name. An existing file is replaced.
    ///
    /// # Errors
    /// `Io`, `Denied`.
    pub(crate) fn keep(self) -> Result<()> {
        std::fs::rename(&self.path, &self.target).map_err(|e| self.failed(e))
    }
}

/// Returns whether this process has the file open, under this name or another: it may be reading it. False if the
/// system does not provide this.
fn is_open_here(path: &Path) -> bool {
    let (Ok(about), Ok(open)) = (path.metadata(), std::fs::read_dir("/proc/self/fd")) else { return false };
    let same = |other: std::fs::Metadata| (other.dev(), other.ino()) == (about.dev(), about.ino());
    open.flatten().any(|entry| entry.path().metadata().is_ok_and(same))
}

impl Drop for AtomicOutput {
    fn drop(&mut self) {
        // A leftover that cannot be removed has a descriptive name.
        drop(std::fs::remove_dir_all(&self.folder));
    }
}
