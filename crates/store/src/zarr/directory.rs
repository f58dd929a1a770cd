//! A directory as the store of a Zarr hierarchy: keys are paths below it, and nothing above it is reachable.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use array::{Error, ErrorKind, Result};
use bytes::Bytes;
use zarrs::storage::byte_range::{ByteRange, ByteRangeIterator};
use zarrs::storage::{MaybeBytesIterator, ReadableStorageTraits, StorageError, StoreKey};

use crate::{ByteStore, FileBytes};

/// Largest piece of a file that is read at once, bytes: a chunk and some more.
const MAX_PIECE_BYTES: u64 = (1 << 30) + (1 << 28);
/// Largest metadata document, bytes.
const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// The directory of a store.
#[derive(Debug)]
pub(super) struct Directory {
    /// Without symbolic links.
    root: PathBuf,
}

impl Directory {
    /// # Errors
    /// `NotFound`, `Io`.
    pub(super) fn open(root: &Path) -> Result<Self> {
        Ok(Self { root: std::fs::canonicalize(root)? })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The file of a key; `None` when there is none.
    ///
    /// # Errors
    /// `Denied` when a symbolic link leads out of the store; `Io`.
    pub(super) fn file(&self, key: &str) -> Result<Option<Arc<FileBytes>>> {
        match self.inside(key)? {
            Some(path) if path.is_file() => FileBytes::open(&path).map(Some),
            _ => Ok(None),
        }
    }

    /// All bytes of a file; `None` when there is none.
    ///
    /// # Errors
    /// `Corrupt` when it has more than `most` bytes.
    pub(super) fn object(&self, key: &str, most: u64) -> Result<Option<Vec<u8>>> {
        let Some(file) = self.file(key)? else { return Ok(None) };
        if file.size_bytes() > most {
            return Err(Error::corrupt(format!(
                "expected at most {most} bytes, found {}",
                file.size_bytes()
            )));
        }
        file.head(usize::try_from(most).unwrap_or(usize::MAX)).map(Some)
    }

    /// A metadata document; `None` when there is none.
    ///
    /// # Errors
    /// `Corrupt` when it is not JSON or larger than such documents are.
    pub(super) fn document(&self, key: &str) -> Result<Option<(serde_json::Value, Arc<FileBytes>)>> {
        let Some(file) = self.file(key)? else { return Ok(None) };
        if file.size_bytes() > MAX_DOCUMENT_BYTES {
            return Err(Error::corrupt(format!("expected at most {MAX_DOCUMENT_BYTES} bytes in `{key}`")));
        }
        let text = file.head(usize::try_from(MAX_DOCUMENT_BYTES).unwrap_or(usize::MAX))?;
        let value = serde_json::from_slice(&text)
            .map_err(|e| Error::corrupt(format!("expected JSON in `{key}`, found: {e}")))?;
        Ok(Some((value, file)))
    }

    /// Names of directories directly below the one of a key, sorted, at most `limit`; and whether there are more.
    ///
    /// # Errors
    /// `Denied`, `Io`.
    pub(super) fn directories(&self, key: &str, limit: usize) -> Result<(Vec<String>, bool)> {
        let Some(path) = self.inside(key)? else { return Ok((Vec::new(), false)) };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let below = if key.is_empty() { name.clone() } else { format!("{key}/{name}") };
            // A link that leads out is as good as absent while listing.
            if self.inside(&below).is_ok_and(|path| path.is_some_and(|p| p.is_dir())) {
                if names.len() >= limit {
                    return Ok((names, true));
                }
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok((names, false))
    }

    fn inside(&self, key: &str) -> Result<Option<PathBuf>> {
        if key.split('/').any(|part| part == "..") || key.starts_with('/') {
            return Err(Error::invalid(format!("expected a key within the store, found `{key}`")));
        }
        match std::fs::canonicalize(self.root.join(key)) {
            Ok(path) if path.starts_with(&self.root) => Ok(Some(path)),
            Ok(_) => Err(Error::new(
                ErrorKind::Denied,
                format!("expected a key within the store, found a symbolic link out of it: `{key}`"),
            )),
            Err(e)
                if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
            {
                Ok(None)
            }
            Err(e) => Err(e.into()),
        }
    }

    fn piece(file: &FileBytes, range: ByteRange) -> Result<Bytes> {
        let size = file.size_bytes();
        let (start, length) = match range {
            ByteRange::FromStart(start, Some(length)) => (start, length),
            ByteRange::FromStart(start, None) => (start, size.saturating_sub(start)),
            ByteRange::Suffix(length) => (size.saturating_sub(length), length),
        };
        let fits = start.checked_add(length).is_some_and(|end| end <= size) && length <= MAX_PIECE_BYTES;
        if !fits {
            return Err(Error::corrupt(format!(
                "expected {length} bytes from {start}, at most {MAX_PIECE_BYTES}, found a file of {size}"
            )));
        }
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        file.read_at(start, &mut bytes)?;
        Ok(bytes.into())
    }
}

fn storage_error(error: Error) -> StorageError {
    StorageError::Other(error.to_string())
}

impl ReadableStorageTraits for Directory {
    fn get_partial_many<'a>(
        &'a self,
        key: &StoreKey,
        byte_ranges: ByteRangeIterator<'a>,
    ) -> std::result::Result<MaybeBytesIterator<'a>, StorageError> {
        let Some(file) = self.file(key.as_str()).map_err(storage_error)? else { return Ok(None) };
        let pieces = byte_ranges.map(move |range| Self::piece(&file, range).map_err(storage_error));
        Ok(Some(Box::new(pieces)))
    }

    fn size_key(&self, key: &StoreKey) -> std::result::Result<Option<u64>, StorageError> {
        let file = self.file(key.as_str()).map_err(storage_error)?;
        Ok(file.map(|file| file.size_bytes()))
    }

    fn supports_get_partial(&self) -> bool {
        true
    }
}
