//! Opens whatever a location names: looks at the first bytes, then at the name.
//!
//! A location is a path or `synthetic:NAME?...`. Which formats there are is the table in this file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use array::{Error, Result, Source};

use crate::synthetic::{self, Synthetic};
use crate::{FileBytes, Format, FormatSource};

/// How far a long task is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, for people: `indexing brain.nii.gz`.
    pub what: String,
    /// Bytes done.
    pub done_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
}

/// Told of progress now and then, from any thread.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// What may be chosen when opening.
#[derive(Clone, Default)]
pub struct OpenOptions {
    /// Directory for things worth keeping between runs (gzip restart points, made levels); `None` keeps
    /// them in memory only.
    pub side_dir: Option<PathBuf>,
    /// Told how long work goes.
    pub on_progress: Option<OnProgress>,
}

impl fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenOptions").field("side_dir", &self.side_dir).finish_non_exhaustive()
    }
}

/// Bytes looked at to recognise a file.
const HEAD_BYTES: usize = 4096;

type Open = fn(Arc<FileBytes>, &OpenOptions) -> Result<Arc<dyn Format>>;

/// One format of files.
struct Kind {
    /// For error messages.
    name: &'static str,
    /// Whether these first bytes, or failing that this lower-case file name, are of this format.
    recognises: fn(head: &[u8], name: &str) -> bool,
    open: Open,
}

/// Every format of files. The first that recognises a file opens it, so those known by their bytes stand
/// before those known by their name.
const KINDS: &[Kind] = &[Kind {
    name: "HDF5",
    recognises: crate::hdf5::recognises,
    open: |file, _| Ok(Arc::new(crate::hdf5::open(file)?)),
}];

/// Opens a location as a source.
///
/// # Errors
/// `NotFound`, `Unsupported` when nothing recognises it (listing what would be), `Corrupt` when a header is wrong.
pub fn open(location: &str, options: &OpenOptions) -> Result<Arc<dyn Source>> {
    Ok(Arc::new(FormatSource::new(open_format(location, options)?)))
}

/// Opens a location without making a source of it.
///
/// # Errors
/// As [`open`].
pub fn open_format(location: &str, options: &OpenOptions) -> Result<Arc<dyn Format>> {
    let format = open_unchecked(location, options).map_err(|e| e.context(format!("open `{location}`")))?;
    format.dataset().check()?;
    Ok(format)
}

fn open_unchecked(location: &str, options: &OpenOptions) -> Result<Arc<dyn Format>> {
    if location.starts_with(synthetic::SCHEME) {
        return Ok(Arc::new(Synthetic::open(location)?));
    }
    let path = Path::new(location);
    let file = FileBytes::open(path)?;
    let head = file.head(HEAD_BYTES)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match KINDS.iter().find(|kind| (kind.recognises)(&head, &name)) {
        Some(kind) => (kind.open)(file, options).map_err(|e| e.context(kind.name)),
        None => Err(Error::unsupported(format!(
            "expected one of the formats {}; found a file that begins with {:02x?}",
            KINDS.iter().map(|k| k.name).collect::<Vec<_>>().join(", "),
            &head[..head.len().min(8)]
        ))),
    }
}
