//! Directory as the store of a Zarr hierarchy: keys are paths below it, and nothing outside it is reachable. Also an archive, whose
//! members have the keys as names.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use array::{Error, ErrorKind, Result};

use super::archive::Archive;
use super::attributes::quoted;
use super::file_states::FileStates;
use crate::io::byte_store::FileStamp;
use crate::{ByteStore, FileBytes};

/// Largest metadata document of a Zarr store, bytes.
const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// A file of a store: a file of its own, or a member of an archive.
#[derive(Clone, Debug)]
pub(super) struct StoredFile {
    file: Arc<FileBytes>,
    start: u64,
    size_bytes: u64,
    /// Decompressed size, if the file is compressed by deflate.
    unpacked_bytes: Option<u64>,
}

impl StoredFile {
    fn own(file: Arc<FileBytes>) -> Self {
        let size_bytes = file.size_bytes();
        Self { file, start: 0, size_bytes, unpacked_bytes: None }
    }

    /// A stretch of an archive.
    pub(super) fn part_of_archive(
        file: Arc<FileBytes>,
        start: u64,
        size_bytes: u64,
        unpacked_bytes: Option<u64>,
    ) -> Self {
        Self { file, start, size_bytes, unpacked_bytes }
    }

    /// Bytes, once unpacked.
    pub(super) fn size_bytes(&self) -> u64 {
        self.unpacked_bytes.unwrap_or(self.size_bytes)
    }

    /// Reads a range of bytes; compressed files are read by [`read_all`](Self::read_all) only.
    ///
    /// # Errors
    /// `Unsupported` for a packed one; `Io`, `Stale`.
    pub(super) fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        if self.unpacked_bytes.is_some() {
            return Err(Error::unsupported(
                "parts of a member that is packed by deflate; store it in the archive without compression",
            ));
        }
        self.file.read_at(self.start + offset, into)
    }

    /// Reads all bytes, if there are at most `most`.
    ///
    /// # Errors
    /// `Corrupt`, also when there are more; `Io`, `Stale`.
    pub(super) fn read_all(&self, most: u64) -> Result<Vec<u8>> {
        let size = self.size_bytes();
        if size.max(self.size_bytes) > most {
            return Err(Error::corrupt(format!("expected at most {most} bytes, found {size}")));
        }
        let mut bytes = vec![0; usize::try_from(self.size_bytes).unwrap_or(usize::MAX)];
        self.file.read_at(self.start, &mut bytes)?;
        if self.unpacked_bytes.is_none() {
            return Ok(bytes);
        }
        let mut unpacked = Vec::new();
        let found = flate2::read::DeflateDecoder::new(&bytes[..]).take(size + 1).read_to_end(&mut unpacked);
        match found {
            Ok(_) if unpacked.len() as u64 == size => Ok(unpacked),
            Ok(_) => Err(Error::corrupt(format!("expected a member of {size} bytes, found others"))),
            Err(e) => Err(Error::corrupt(format!("expected a member packed by deflate, found: {e}"))),
        }
    }

    fn stamp(&self) -> FileStamp {
        self.file.stamp()
    }

    /// Parts of a data set's identity.
    pub(super) fn identity(&self) -> Vec<Vec<u8>> {
        self.file.identity()
    }
}

/// Bytes of a file that are there, their number bounded, but not read yet.
#[derive(Debug)]
pub(super) struct FileRange {
    pub(super) file: StoredFile,
    pub(super) offset: u64,
    pub(super) size_bytes: u64,
}

impl FileRange {
    /// # Errors
    /// `Io`, `Stale`.
    pub(super) fn read(&self) -> Result<Vec<u8>> {
        if (self.offset, self.size_bytes) == (0, self.file.size_bytes()) {
            return self.file.read_all(self.size_bytes.max(self.file.size_bytes));
        }
        let mut bytes = vec![0; usize::try_from(self.size_bytes).unwrap_or(usize::MAX)];
        self.file.read_at(self.offset, &mut bytes)?;
        Ok(bytes)
    }
}

/// Listing of the directories directly below a directory.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Names of the directories, sorted.
    pub(super) names: Vec<String>,
    /// Whether there are more than the limit.
    pub(super) has_more: bool,
    /// Whether there are links to directories, which are not among the names.
    pub(super) has_links: bool,
}

/// The directory of a store.
#[derive(Debug)]
pub(super) struct Directory {
    /// Path of the directory without symbolic links.
    root: PathBuf,
    /// Archive, where the store is one.
    archive: Option<Archive>,
    /// States of the files of chunks.
    states: FileStates,
}

impl Directory {
    /// # Errors
    /// `NotFound`, `Io`.
    pub(super) fn open(root: &Path) -> Result<Self> {
        Ok(Self { root: std::fs::canonicalize(root)?, archive: None, states: FileStates::default() })
    }

    /// An archive as a store.
    ///
    /// # Errors
    /// `Corrupt` when it is none, `Io`.
    pub(super) fn of_archive(file: Arc<FileBytes>) -> Result<Self> {
        let root = file.path().to_owned();
        Ok(Self { root, archive: Some(Archive::open(file)?), states: FileStates::default() })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The file of a key; `None` when there is none.
    ///
    /// # Errors
    /// `Denied` when a symbolic link leads out of the store; `Invalid` when it is no regular file; `Io`.
    pub(super) fn file(&self, key: &str) -> Result<Option<StoredFile>> {
        if let Some(archive) = &self.archive {
            return archive.member(key);
        }
        let Some(path) = self.inside(key)? else { return Ok(None) };
        match FileBytes::open(&path) {
            // Deleted between the two checks.
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            opened => opened.map(|file| Some(StoredFile::own(file))),
        }
    }

    /// The file of a chunk or shard; `None` when it was never written. Its state is noted.
    ///
    /// # Errors
    /// Errors of [`file`](Self::file); `Stale` when it, or any other, is not in the state in which it was before.
    pub(super) fn chunk_file(&self, key: &str) -> Result<Option<StoredFile>> {
        let file = self.file(key)?;
        self.states.record(key, file.as_ref().map(StoredFile::stamp))?;
        Ok(file)
    }

    /// The state of a chunk's file or of a folder, as part of the store's identity; `None` when there is none. That of
    /// a file is noted.
    ///
    /// # Errors
    /// `Stale` when the file is not in the state in which it was before.
    pub(super) fn stamp_of(&self, key: &str) -> Result<Option<FileStamp>> {
        if let Some(archive) = &self.archive {
            // Its members change with it.
            return Ok(archive.has(key).then(|| archive.file().stamp()));
        }
        let metadata = std::fs::metadata(self.root.join(key)).ok();
        let stamp = metadata.as_ref().map(FileStamp::of);
        if !metadata.is_some_and(|metadata| metadata.is_dir()) {
            self.states.record(key, stamp)?;
        }
        Ok(stamp)
    }

    /// A whole file, not read yet; `None` when there is none.
    ///
    /// # Errors
    /// `Corrupt` when it has more than `most` bytes.
    pub(super) fn object(&self, key: &str, most: u64) -> Result<Option<FileRange>> {
        let Some(file) = self.chunk_file(key)? else { return Ok(None) };
        let size_bytes = file.size_bytes();
        // The compressed bytes of a member are read as a whole too.
        let largest = size_bytes.max(file.size_bytes);
        if largest > most {
            return Err(Error::corrupt(format!("expected at most {most} bytes, found {largest}")));
        }
        Ok(Some(FileRange { file, offset: 0, size_bytes }))
    }

    /// A metadata document; `None` when there is none. Numbers that JSON has not are as [`quoted`] has them.
    ///
    /// # Errors
    /// `Corrupt` when it is not JSON or larger than such documents are.
    pub(super) fn document(&self, key: &str) -> Result<Option<(serde_json::Value, StoredFile)>> {
        let Some(file) = self.file(key)? else { return Ok(None) };
        if file.size_bytes() > MAX_DOCUMENT_BYTES {
            return Err(Error::corrupt(format!("expected at most {MAX_DOCUMENT_BYTES} bytes in `{key}`")));
        }
        let text = file.read_all(MAX_DOCUMENT_BYTES)?;
        let value = serde_json::from_slice(&text).or_else(|_| serde_json::from_slice(&quoted(&text)));
        let value = value.map_err(|e| Error::corrupt(format!("expected JSON in `{key}`, found: {e}")))?;
        Ok(Some((value, file)))
    }

    /// Lists the directories directly below that of a key, at most `limit`. Links are not followed: objects of the store are found at
    /// their own paths, and a link to a directory above would never end.
    ///
    /// # Errors
    /// `Denied`, `Io`.
    pub(super) fn directories(&self, key: &str, limit: usize) -> Result<Listing> {
        let mut listing = Listing::default();
        if let Some(archive) = &self.archive {
            (listing.names, listing.has_more) = archive.folders(key, limit);
            return Ok(listing);
        }
        let Some(path) = self.inside(key)? else { return Ok(listing) };
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_symlink() && entry.path().is_dir() {
                listing.has_links = true;
            }
            if !kind.is_dir() {
                continue;
            }
            if listing.names.len() >= limit {
                listing.has_more = true;
                break;
            }
            listing.names.push(entry.file_name().to_string_lossy().into_owned());
        }
        listing.names.sort_unstable();
        Ok(listing)
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
}
