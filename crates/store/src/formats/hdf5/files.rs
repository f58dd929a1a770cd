//! Files of one data set: the one that was opened, and those that its links and virtual data sets lead to.
//!
//! Names in files are untrusted input: they may lead into the exported folder and below it only, after symbolic links are
//! resolved, and to a bounded number of files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use array::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use super::library::{Hdf5File, Object, ObjectToken};
use crate::FileBytes;

/// Most files that the links and virtual data sets of one HDF5 file lead to: each stays open.
const MAX_LINKED_FILES: usize = 256;

/// Object of one of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct ObjectId {
    /// Number of its file; 0 is the one that was opened.
    pub(super) file: usize,
    pub(super) token: ObjectToken,
}

/// Reason why a link or a source of a virtual data set cannot be followed.
#[derive(Clone, Debug)]
pub(super) enum LinkError {
    /// The target does not exist.
    Missing(String),
    /// The target lies outside the exported folder or beyond a limit, or cannot be read.
    Refused(String),
}

impl LinkError {
    /// Returns the reason for messages.
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Missing(reason) | Self::Refused(reason) => reason,
        }
    }

    pub(super) fn of(error: &Error) -> Self {
        let reason = error.message().to_owned();
        if error.kind() == ErrorKind::NotFound { Self::Missing(reason) } else { Self::Refused(reason) }
    }
}

/// Open file of the data set.
#[derive(Debug)]
pub(super) struct LinkedFile {
    pub(super) bytes: Arc<FileBytes>,
    pub(super) library: Hdf5File,
}

/// Open files of one data set.
#[derive(Debug)]
pub(super) struct LinkedFiles {
    open: Vec<LinkedFile>,
    by_path: HashMap<PathBuf, std::result::Result<usize, LinkError>>,
    /// Folder in which all of them must lie.
    folder: PathBuf,
}

impl LinkedFiles {
    /// Opens the first file. `folder` is the exported folder; by default, the folder of the file.
    ///
    /// # Errors
    /// Errors of [`Hdf5File::open`].
    pub(super) fn open(bytes: Arc<FileBytes>, folder: Option<&Path>) -> Result<Self> {
        let library = Hdf5File::open(&bytes)?;
        let folder = folder.unwrap_or_else(|| bytes.path().parent().unwrap_or(Path::new(""))).to_owned();
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        let by_path = bytes.path().canonicalize().map(|path| (path, Ok(0))).into_iter().collect();
        Ok(Self { open: vec![LinkedFile { bytes, library }], by_path, folder })
    }

    /// Returns the file that was opened first.
    pub(super) fn first(&self) -> &Arc<FileBytes> {
        // There is always one.
        &self.open[0].bytes
    }

    /// Returns file `number`.
    ///
    /// # Errors
    /// `Internal` for a number that was never given.
    pub(super) fn get(&self, number: usize) -> Result<&LinkedFile> {
        self.open.get(number).ok_or_else(|| Error::internal(format!("expected a file numbered {number}")))
    }

    /// Object of one of the files.
    ///
    /// # Errors
    /// Errors of the library.
    pub(super) fn object(&self, id: ObjectId) -> Result<Object> {
        self.get(id.file)?.library.object(id.token)
    }

    /// Returns the bytes of the files, the first opened one first.
    pub(super) fn bytes(&self) -> impl Iterator<Item = &FileBytes> {
        self.open.iter().map(|file| &*file.bytes)
    }

    /// Opens the file `name` that file `from` refers to and returns its number; else the reason why it is not followed.
    pub(super) fn follow(&mut self, from: usize, name: &str) -> std::result::Result<usize, LinkError> {
        let path = self.get(from).and_then(|from| from.bytes.within(name, &self.folder));
        let path = path.map_err(|e| LinkError::of(&e))?;
        if let Some(known) = self.by_path.get(&path) {
            return known.clone();
        }
        if self.open.len() >= MAX_LINKED_FILES {
            return Err(LinkError::Refused(format!("more than {MAX_LINKED_FILES} files")));
        }
        let opened = FileBytes::open(&path).and_then(|bytes| Ok((Hdf5File::open(&bytes)?, bytes)));
        let number = match opened {
            Ok((library, bytes)) => {
                self.open.push(LinkedFile { bytes, library });
                Ok(self.open.len() - 1)
            }
            Err(_) => Err(LinkError::Refused(format!("`{name}` cannot be read as HDF5"))),
        };
        self.by_path.insert(path, number.clone());
        number
    }
}
