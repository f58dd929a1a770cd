//! Sources of bytes: files read by position, with counted requests and detection of changes.
//!
//! Flat formats read from a [`ByteStore`]. A file is one; the decompressed content of a gzip file is another. Nothing is cached here:
//! the operating system caches files.

use std::fs::{File, Metadata};
use std::io::IoSliceMut;
use std::num::NonZero;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use array::{DatasetId, Error, ErrorKind, Priority, Result};
use futures::future::BoxFuture;
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::CancelFlag;
use crate::io::read_ahead::{is_far, pages};

/// Shortest interval between checks of a path while its file is read: a file that is replaced by renaming does not change itself.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Requests and bytes asked of the operating system, since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounts {
    /// Reads by position.
    pub requests: u64,
    /// Requested bytes.
    pub bytes: u64,
}

#[derive(Debug, Default)]
struct AtomicIoCounts {
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl AtomicIoCounts {
    const fn new() -> Self {
        Self { requests: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    fn add(&self, bytes: u64) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn counts(&self) -> IoCounts {
        IoCounts {
            requests: self.requests.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}

static PROCESS: AtomicIoCounts = AtomicIoCounts::new();

/// Returns the counts of requests and bytes asked of all files of this process so far.
#[must_use]
pub fn process_io_counts() -> IoCounts {
    PROCESS.counts()
}

/// Bytes that can be read at any position, from several threads at once.
pub trait ByteStore: Send + Sync + 'static {
    /// Number of bytes; `u64::MAX` if only reading can tell (compressed data).
    fn size_bytes(&self) -> u64;

    /// Returns long work that must be done once before anything can be read; `None` when there is none or it
    /// is done. All callers share the same work; it is cancelled when all of them have dropped it. It begins
    /// when it is polled. A read without it does the work first, on the reader's thread.
    fn prepare(&self, _priority: Priority) -> Option<BoxFuture<'static, Result<()>>> {
        None
    }

    /// Fills `into` from `offset` on. Blocking; long reads check `cancel`.
    ///
    /// # Errors
    /// `Corrupt` beyond the end, `Stale` if the bytes changed since opening, `Io`, `Cancelled`.
    fn read_at(&self, offset: u64, into: &mut [u8], cancel: &CancelFlag) -> Result<()>;

    /// Reads as [`read_at`](Self::read_at) does, without checking the bytes for changes: they must not be used before
    /// [`check_unchanged`](Self::check_unchanged), which may follow many reads.
    ///
    /// # Errors
    /// Errors of [`read_at`](Self::read_at).
    fn read_unchecked(&self, offset: u64, into: &mut [u8], cancel: &CancelFlag) -> Result<()> {
        self.read_at(offset, into, cancel)
    }

    /// Checks that the bytes have not changed since opening, so that the results of earlier reads are valid.
    ///
    /// # Errors
    /// `Stale` when something did.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    /// Announces small reads that will be made soon, in this order; a store may fetch their bytes in the meantime if that saves time. Does
    /// not wait for the bytes, and reports no errors: the reads will.
    fn expect(&self, _ranges: &[Range<u64>]) {}

    /// Returns the counts of requests and bytes asked of the operating system through this store.
    fn counts(&self) -> IoCounts;
}

/// An open file that is not expected to change.
#[derive(Debug)]
pub struct FileBytes {
    file: File,
    path: PathBuf,
    stamp: FileStamp,
    counters: AtomicIoCounts,
    opened_at: Instant,
    /// Milliseconds after opening at which the path was last checked and still led to this state of the file.
    in_place_at_millis: AtomicU64,
}

/// Size and modification time of a file, which identify its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    size_bytes: u64,
    modified_seconds: i64,
    modified_nanoseconds: i64,
}

impl FileStamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            size_bytes: metadata.len(),
            modified_seconds: metadata.mtime(),
            modified_nanoseconds: metadata.mtime_nsec(),
        }
    }

    /// Returns the bytes of the state for identities.
    pub(crate) fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.size_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.modified_seconds.to_le_bytes());
        bytes[16..].copy_from_slice(&self.modified_nanoseconds.to_le_bytes());
        bytes
    }
}

impl FileBytes {
    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// `NotFound`, `Denied`, `Invalid` when it is not a regular file.
    #[expect(clippy::disallowed_methods, reason = "the time since opening decides when the path is checked")]
    pub fn open(path: &Path) -> Result<Arc<Self>> {
        let place = |e: Error| e.context(format!("open `{}`", path.display()));
        // Opening a named pipe would wait for its writer: check before.
        let metadata = std::fs::metadata(path).map_err(|e| place(e.into()))?;
        if !metadata.is_file() {
            return Err(place(Error::invalid(format!(
                "expected a regular file, found {}",
                if metadata.is_dir() { "a directory" } else { "a pipe, socket or device" }
            ))));
        }
        let file = File::open(path).map_err(|e| place(e.into()))?;
        let stamp = FileStamp::of(&file.metadata().map_err(|e| place(e.into()))?);
        Ok(Arc::new(Self {
            file,
            path: path.to_owned(),
            stamp,
            counters: AtomicIoCounts::default(),
            opened_at: Instant::now(),
            in_place_at_millis: AtomicU64::new(0),
        }))
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// State of the file when it was opened.
    pub(crate) fn stamp(&self) -> FileStamp {
        self.stamp
    }

    /// The parts of a data set's identity that this file contributes: name, size, time of modification. Not where it lies:
    /// copies on several hosts are the same data set.
    #[must_use]
    pub fn identity(&self) -> Vec<Vec<u8>> {
        vec![
            self.path.file_name().unwrap_or_default().as_encoded_bytes().to_vec(),
            self.stamp.size_bytes.to_le_bytes().to_vec(),
            self.stamp.modified_seconds.to_le_bytes().to_vec(),
            self.stamp.modified_nanoseconds.to_le_bytes().to_vec(),
        ]
    }

    /// The identity of a data set that is this file alone.
    #[must_use]
    pub fn dataset_id(&self) -> DatasetId {
        DatasetId::of(self.identity())
    }

    /// The file's name, for people.
    #[must_use]
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Opens a file that this one names. It must lie in the same directory or below: a header is foreign
    /// input and must not reach the rest of the disk.
    ///
    /// # Errors
    /// `Denied` for other locations; errors of [`open`](Self::open).
    pub fn open_beside(&self, name: &str) -> Result<Arc<Self>> {
        use std::path::Component::{CurDir, Normal};
        let relative = Path::new(name);
        if name.is_empty() || !relative.components().all(|c| matches!(c, Normal(_) | CurDir)) {
            return Err(Error::new(
                ErrorKind::Denied,
                format!("expected the name of a file in the same directory or below, found `{name}`"),
            ));
        }
        // Links are followed, and must not lead out either.
        let folder = self.path.with_file_name("");
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        let folder = folder.canonicalize()?;
        let place =
            folder.join(relative).canonicalize().map_err(|e| Error::from(e).context(name.to_owned()))?;
        if !place.starts_with(&folder) {
            return Err(Error::new(
                ErrorKind::Denied,
                format!("expected a file in the same directory or below, found a link out of it: `{name}`"),
            ));
        }
        Self::open(&place)
    }

    /// Path of a file that this one names, relative to its own folder; it must lie in `folder` or below, after symbolic links are resolved.
    /// Paths outside are not even tested.
    ///
    /// # Errors
    /// `Denied` for other locations, `NotFound`.
    pub(crate) fn within(&self, name: &str, folder: &Path) -> Result<PathBuf> {
        let denied =
            || Error::new(ErrorKind::Denied, format!("`{name}` lies outside of the exported folder"));
        let own = self.path.parent().filter(|own| !own.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (folder, own) = (folder.canonicalize()?, own.canonicalize()?);
        let mut place = PathBuf::new();
        for part in own.join(name).components() {
            match part {
                std::path::Component::ParentDir => drop(place.pop()),
                std::path::Component::CurDir => {}
                other => place.push(other),
            }
        }
        if !place.starts_with(&folder) {
            return Err(denied());
        }
        let missing = |e| Error::from(e).context(format!("`{name}` is not there"));
        let found = place.canonicalize().map_err(|e: std::io::Error| match e.kind() {
            std::io::ErrorKind::NotFound => Error::not_found(format!("`{name}` is not there")),
            _ => missing(e),
        })?;
        if found.starts_with(&folder) { Ok(found) } else { Err(denied()) }
    }

    /// The first bytes, at most `limit`.
    ///
    /// # Errors
    /// Errors of [`ByteStore::read_at`].
    pub fn head(&self, limit: usize) -> Result<Vec<u8>> {
        let size = usize::try_from(self.stamp.size_bytes).unwrap_or(usize::MAX).min(limit);
        let mut head = vec![0; size];
        self.read_at(0, &mut head)?;
        Ok(head)
    }

    /// Checks that size and time of modification are those seen at opening, and that no other file has taken
    /// its place (noticed within [`LOOK_AGAIN_AFTER`]).
    ///
    /// # Errors
    /// `Stale` when they are not.
    pub fn check_unchanged(&self) -> Result<()> {
        self.check_after(self.opened_at.elapsed())
    }

    /// Does the check of [`check_unchanged`](Self::check_unchanged) at the time `open_for` after opening.
    fn check_after(&self, open_for: Duration) -> Result<()> {
        if FileStamp::of(&self.file.metadata()?) == self.stamp && self.is_in_place(open_for) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Stale,
            format!("the file changed since it was opened, open it again: `{}`", self.path.display()),
        ))
    }

    /// Whether the file was not replaced, as far as that was checked. A deleted file counts as not replaced.
    fn is_in_place(&self, open_for: Duration) -> bool {
        let looked_at = Duration::from_millis(self.in_place_at_millis.load(Ordering::Relaxed));
        if open_for < looked_at + LOOK_AGAIN_AFTER {
            return true;
        }
        if std::fs::metadata(&self.path).is_ok_and(|there| FileStamp::of(&there) != self.stamp) {
            // Not recorded: later reads detect it too.
            return false;
        }
        let open_for_millis = u64::try_from(open_for.as_millis()).unwrap_or(u64::MAX);
        self.in_place_at_millis.store(open_for_millis, Ordering::Relaxed);
        true
    }

    /// Fills `into` from `offset` on, in one request, which cannot be cancelled.
    ///
    /// # Errors
    /// Errors of [`ByteStore::read_at`].
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        self.read_unchecked(offset, into)?;
        // After the read, so that a change before or during it is seen.
        self.check_unchanged()
    }

    fn read_unchecked(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let size = into.len() as u64;
        self.counters.add(size);
        PROCESS.add(size);
        let Err(e) = self.file.read_exact_at(into, offset) else { return Ok(()) };
        // A file that shrank is *stale* before it is *truncated*.
        self.check_unchanged()?;
        Err(match e.kind() {
            std::io::ErrorKind::UnexpectedEof => Error::corrupt(format!(
                "expected bytes {offset} to {} of a file of {} bytes: `{}`",
                offset.saturating_add(size),
                self.stamp.size_bytes,
                self.path.display()
            )),
            _ => Error::from(e).context(format!("read `{}`", self.path.display())),
        })
    }

    /// Whether the byte at `offset` is in the memory of the system; `false` if the system cannot tell.
    fn is_in_memory(&self, offset: u64) -> bool {
        let looked = preadv2(&self.file, &mut [IoSliceMut::new(&mut [0])], offset, ReadWriteFlags::NOWAIT);
        !matches!(looked, Err(Errno::AGAIN | Errno::OPNOTSUPP))
    }
}

/// A store whose reads are not checked one by one; see [`ByteStore::read_unchecked`].
pub(crate) struct Unchecked(pub(crate) Arc<dyn ByteStore>);

impl ByteStore for Unchecked {
    fn size_bytes(&self) -> u64 {
        self.0.size_bytes()
    }

    fn prepare(&self, priority: Priority) -> Option<BoxFuture<'static, Result<()>>> {
        self.0.prepare(priority)
    }

    fn read_at(&self, offset: u64, into: &mut [u8], cancel: &CancelFlag) -> Result<()> {
        self.0.read_unchecked(offset, into, cancel)
    }

    fn expect(&self, ranges: &[Range<u64>]) {
        self.0.expect(ranges);
    }

    fn check_unchanged(&self) -> Result<()> {
        self.0.check_unchanged()
    }

    fn counts(&self) -> IoCounts {
        self.0.counts()
    }
}

impl ByteStore for FileBytes {
    fn size_bytes(&self) -> u64 {
        self.stamp.size_bytes
    }

    fn read_at(&self, offset: u64, into: &mut [u8], _cancel: &CancelFlag) -> Result<()> {
        Self::read_at(self, offset, into)
    }

    fn read_unchecked(&self, offset: u64, into: &mut [u8], _cancel: &CancelFlag) -> Result<()> {
        Self::read_unchecked(self, offset, into)
    }

    fn check_unchanged(&self) -> Result<()> {
        Self::check_unchanged(self)
    }

    /// Has the system fetch them from the disk, if they are not in memory.
    fn expect(&self, ranges: &[Range<u64>]) {
        if !is_far(ranges, |offset| self.is_in_memory(offset)) {
            return;
        }
        for range in pages(ranges) {
            let size_bytes = NonZero::new(range.end - range.start);
            // Only advice: if it is refused, the reads fetch their bytes.
            if let Err(error) = fadvise(&self.file, range.start, size_bytes, Advice::WillNeed) {
                tracing::debug!(%error, path = %self.path.display(), "nothing is fetched ahead");
                return;
            }
        }
    }

    fn counts(&self) -> IoCounts {
        self.counters.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_counts_and_notices_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, b"0123456789").unwrap();
        let file = FileBytes::open(&path).unwrap();
        let mut three = [0; 3];
        file.read_at(4, &mut three).unwrap();
        assert_eq!(&three, b"456");
        assert_eq!(file.counts(), IoCounts { requests: 1, bytes: 3 });
        assert_eq!(file.read_at(8, &mut three).unwrap_err().kind(), ErrorKind::Corrupt);
        std::fs::write(&path, b"short").unwrap();
        assert_eq!(file.read_at(0, &mut three).unwrap_err().kind(), ErrorKind::Stale);
    }

    #[test]
    fn a_file_that_is_replaced_by_renaming_is_noticed_within_a_second() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&path, b"0123456789").unwrap();
        let file = FileBytes::open(&path).unwrap();
        let kind_after = |millis| file.check_after(Duration::from_millis(millis)).map_err(|e| e.kind());
        assert_eq!(kind_after(1000), Ok(()));
        std::fs::write(&other, b"0123456789, and more").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(kind_after(1999), Ok(()), "looked at once in a second");
        assert_eq!(kind_after(2000), Err(ErrorKind::Stale));
        assert_eq!(kind_after(2001), Err(ErrorKind::Stale), "by everybody from then on");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(kind_after(9000), Ok(()), "what is gone was not replaced");
    }

    #[test]
    fn headers_reach_only_files_beside_them() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("in")).unwrap();
        for name in ["secret", "in/header", "in/data"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        let header = FileBytes::open(&dir.path().join("in/header")).unwrap();
        assert_eq!(header.open_beside("./data").unwrap().head(99).unwrap(), b"in/data");
        for name in ["../secret", "/etc/passwd", "x/../../secret", ""] {
            assert_eq!(header.open_beside(name).unwrap_err().kind(), ErrorKind::Denied, "{name}");
        }
    }

    #[test]
    fn files_name_others_within_a_folder_only() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("exported");
        std::fs::create_dir_all(folder.join("in/deep")).unwrap();
        for name in ["secret", "exported/data", "exported/in/header", "exported/in/deep/data"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        std::os::unix::fs::symlink(dir.path().join("secret"), folder.join("in/way out")).unwrap();
        let header = FileBytes::open(&folder.join("in/header")).unwrap();
        let within = |name: &str| header.within(name, &folder);
        assert!(within("../data").unwrap().ends_with("exported/data"));
        assert!(within("./deep/../deep/data").unwrap().ends_with("in/deep/data"));
        assert!(within(folder.join("data").to_str().unwrap()).is_ok(), "absolute, and inside");
        for name in ["../../secret", "../../none", "/etc/passwd", "way out"] {
            assert_eq!(within(name).unwrap_err().kind(), ErrorKind::Denied, "{name}");
        }
        assert_eq!(within("none").unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_directory_is_no_file() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(FileBytes::open(dir.path()).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(FileBytes::open(&dir.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
