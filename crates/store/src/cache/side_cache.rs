//! Side cache: a directory for data that are kept between runs (made levels, restart points of gzip files).
//!
//! The directory never lies beside the data. Only its own folder is read, and only its own files are deleted: the directory may
//! contain other files. Entries of other users are ignored. Entries are keyed by the identity of the data set, so a changed file
//! never finds old ones. They have a checksum, so a damaged entry counts as missing, and are written to a temporary name and
//! renamed, so a reader never sees a partial one. Any entry may be deleted at any time. Several caches, also of other processes,
//! may share a directory and its limit. All calls are blocking.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use array::{DatasetId, Error, Result};
use parking_lot::Mutex;
use rustix::fs::OFlags;
use xxhash_rust::xxh3::Xxh3;

/// Default limit of a side cache, bytes: enough for the levels of about 150 GB of data.
pub const SIDE_CACHE_BYTES: u64 = 20 << 30;
/// Largest entry, bytes.
pub const MAX_ENTRY_BYTES: u64 = 1 << 30;
/// Longest name of an entry, bytes.
const MAX_SIDE_NAME_BYTES: usize = 200;
/// Tenths of the limit that stay after a cleanup of a full cache.
const KEPT_TENTHS: u64 = 9;
/// Share of the limit after whose writing a process counts the entries of the others again: the directory may exceed the limit by
/// this share for each writer.
const UNSEEN_SHARE: u64 = 16;
/// Age at which a temporary file counts as abandoned by a process that died, and at which an empty folder is removed.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);
/// Number of times that the folder of an entry is made again after another process removed it.
const FOLDER_TRIES: usize = 8;
/// Deepest directory below the side cache's own that is read.
const MAX_SIDE_FOLDER_DEPTH: usize = 8;

const MAGIC: [u8; 8] = *b"CRDSIDE1";
const ENTRY_HEADER_BYTES: usize = 8 + 8 + 16;
const TEMPORARY: &str = ".tmp-";

/// A directory of checked entries, bounded in bytes.
#[derive(Debug)]
pub struct SideCache {
    dir: PathBuf,
    max_bytes: u64,
    /// Bytes that may be written before the size of the directory is measured again.
    unseen_bytes: Mutex<u64>,
}

/// Counter of temporary files, so that caches of this process that share a directory use different names.
static NEXT_TEMPORARY: AtomicU64 = AtomicU64::new(0);

impl SideCache {
    /// A side cache in `dir`, which is made when the first entry is written.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>, max_bytes: u64) -> Self {
        Self { dir: dir.into(), max_bytes, unseen_bytes: Mutex::new(0) }
    }

    /// Returns the directory of the cache.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The entry of this name, if there is one and it is sound; counts as its use.
    #[must_use]
    pub fn get(&self, dataset: DatasetId, name: &str) -> Option<Vec<u8>> {
        let path = self.path(dataset, name).ok()?;
        let mut file = open_own(&path)?;
        let Some(bytes) = read_entry(&mut file, dataset, name) else {
            tracing::debug!(path = %path.display(), "an entry of the side cache is damaged; leaving it out");
            drop(fs::remove_file(&path));
            return None;
        };
        // The time of modification is the time of the last use; it is no harm when it cannot be set.
        drop(file.set_modified(SystemTime::now()));
        Some(bytes)
    }

    /// Keeps an entry, replacing an older one; makes room first if that takes it.
    ///
    /// # Errors
    /// `Invalid` for a name that is no relative path of plain words; `TooLarge` beyond [`MAX_ENTRY_BYTES`] or the limit of the
    /// cache; else the error of the file system. Callers can continue without the entry.
    pub fn put(&self, dataset: DatasetId, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path(dataset, name)?;
        let size_bytes = (bytes.len() + ENTRY_HEADER_BYTES) as u64;
        if size_bytes > MAX_ENTRY_BYTES.min(self.max_bytes) {
            return Err(Error::too_large(format!(
                "expected an entry of at most {} bytes, found {size_bytes}",
                MAX_ENTRY_BYTES.min(self.max_bytes)
            )));
        }
        self.make_room(size_bytes);
        let parent = path.parent().unwrap_or(&self.dir);
        let number = NEXT_TEMPORARY.fetch_add(1, Ordering::Relaxed);
        let temporary = parent.join(format!("{TEMPORARY}{}-{number}", std::process::id()));
        let write = || {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
            write_entry(&temporary, dataset, name, bytes)?;
            fs::rename(&temporary, &path)
        };
        // A cleanup removes folders that were empty for long, possibly the one of this entry: before it is written to, or between the
        // tests that it exists and that it is a folder.
        let is_gone = |written: &std::io::Result<()>| {
            written.as_ref().is_err_and(|e| {
                matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::AlreadyExists)
            })
        };
        let mut written = write();
        for _ in 0..FOLDER_TRIES {
            if !is_gone(&written) {
                break;
            }
            written = write();
        }
        written.map_err(|e| {
            drop(fs::remove_file(&temporary));
            Error::from(e).context(format!("write `{}`", path.display()))
        })
    }

    /// Number of entries and of their bytes.
    #[must_use]
    pub fn usage(&self) -> (u64, u64) {
        let mut found = Vec::new();
        find_all(&self.dir, &mut found);
        (found.len() as u64, found.iter().map(|file| file.size_bytes).sum())
    }

    /// Deletes every entry, and the folders that are empty then; returns their number and bytes. Other files stay.
    #[must_use]
    pub fn clear(&self) -> (u64, u64) {
        let mut found = Vec::new();
        find_all(&self.dir, &mut found);
        let (mut count, mut size_bytes) = (0, 0);
        for file in found {
            if is_entry(&file.path) && fs::remove_file(&file.path).is_ok() {
                count += 1;
                size_bytes += file.size_bytes;
            }
            // Only succeeds for folders that are empty; never above the data set's own.
            let folders = file.path.ancestors().skip(1).take_while(|folder| *folder != self.dir);
            folders.take(MAX_SIDE_FOLDER_DEPTH).for_each(|folder| drop(fs::remove_dir(folder)));
        }
        *self.unseen_bytes.lock() = 0;
        (count, size_bytes)
    }

    fn path(&self, dataset: DatasetId, name: &str) -> Result<PathBuf> {
        let is_word = |word: &str| {
            !word.is_empty()
                && !word.starts_with('.')
                && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        };
        if name.len() > MAX_SIDE_NAME_BYTES || !name.split('/').all(is_word) {
            return Err(Error::invalid(format!("expected a name of plain words, found `{name}`")));
        }
        Ok(self.dir.join(dataset.to_string()).join(name))
    }

    /// Counts `size_bytes` more, and deletes the entries used longest ago when that is too much.
    fn make_room(&self, size_bytes: u64) {
        let mut unseen_bytes = self.unseen_bytes.lock();
        if size_bytes <= *unseen_bytes {
            *unseen_bytes -= size_bytes;
            return;
        }
        let mut found = Vec::new();
        find_all(&self.dir, &mut found);
        let total: u64 = found.iter().map(|f| f.size_bytes).sum();
        let mut after = total.saturating_add(size_bytes);
        if after > self.max_bytes {
            found.sort_by_key(|f| f.used);
            let goal = self.max_bytes / 10 * KEPT_TENTHS;
            for file in found {
                if after <= goal.max(size_bytes) {
                    break;
                }
                if is_entry(&file.path) && fs::remove_file(&file.path).is_ok() {
                    after = after.saturating_sub(file.size_bytes);
                }
            }
        }
        *unseen_bytes = self.max_bytes.saturating_sub(after).min(self.max_bytes / UNSEEN_SHARE);
    }
}

struct SideEntry {
    path: PathBuf,
    size_bytes: u64,
    used: SystemTime,
}

/// Lists the entries of every data set in `dir`. Other folders are ignored.
fn find_all(dir: &Path, found: &mut Vec<SideEntry>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| DatasetId::try_from(name.to_owned()).is_ok());
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find(&entry.path(), 1, found);
            remove_if_abandoned(&entry.path());
        }
    }
}

/// Lists the entries below `dir`, and deletes abandoned temporary files.
fn find(dir: &Path, depth: usize, found: &mut Vec<SideEntry>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
        if metadata.is_dir() && depth < MAX_SIDE_FOLDER_DEPTH {
            find(&path, depth + 1, found);
            remove_if_abandoned(&path);
        }
        if !metadata.is_file() {
            continue;
        }
        let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        if !entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
            found.push(SideEntry { path, size_bytes: metadata.len(), used });
        } else if is_abandoned(used) {
            drop(fs::remove_file(&path));
        }
    }
}

fn is_abandoned(used: SystemTime) -> bool {
    used.elapsed().is_ok_and(|age| age > ABANDONED_AFTER)
}

/// Deletes a folder that has long been empty.
fn remove_if_abandoned(folder: &Path) {
    if folder.metadata().and_then(|about| about.modified()).is_ok_and(is_abandoned) {
        // Only succeeds when it is empty.
        drop(fs::remove_dir(folder));
    }
}

fn checksum(dataset: DatasetId, name: &str, bytes: &[u8]) -> [u8; 16] {
    let mut hasher = Xxh3::new();
    hasher.update(&dataset.0.to_le_bytes());
    hasher.update(&(name.len() as u64).to_le_bytes());
    hasher.update(name.as_bytes());
    hasher.update(bytes);
    hasher.digest128().to_le_bytes()
}

/// Opens a file if this user owns it and no other user can write it; links, pipes and files of other users count as missing.
fn open_own(path: &Path) -> Option<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let about = file.metadata().ok()?;
    let is_own = about.uid() == rustix::process::geteuid().as_raw() && about.mode() & 0o022 == 0;
    (about.is_file() && is_own).then_some(file)
}

/// Whether it begins as entries do.
fn is_entry(path: &Path) -> bool {
    let mut magic = [0; MAGIC.len()];
    open_own(path).is_some_and(|mut file| file.read_exact(&mut magic).is_ok()) && magic == MAGIC
}

fn write_entry(path: &Path, dataset: DatasetId, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    // An existing file or link of this name is not written to.
    drop(fs::remove_file(path));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut header = Vec::with_capacity(ENTRY_HEADER_BYTES);
    header.extend(MAGIC);
    header.extend((bytes.len() as u64).to_le_bytes());
    header.extend(checksum(dataset, name, bytes));
    file.write_all(&header)?;
    file.write_all(bytes)
}

fn read_entry(file: &mut File, dataset: DatasetId, name: &str) -> Option<Vec<u8>> {
    let mut header = [0; ENTRY_HEADER_BYTES];
    file.read_exact(&mut header).ok()?;
    let (magic, rest) = header.split_first_chunk::<8>()?;
    let (length, sum) = rest.split_first_chunk::<8>()?;
    let length = u64::from_le_bytes(*length);
    let on_disk = file.metadata().ok()?.len();
    if *magic != MAGIC || length > MAX_ENTRY_BYTES || on_disk != length + ENTRY_HEADER_BYTES as u64 {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 == length && checksum(dataset, name, &bytes) == sum).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: DatasetId = DatasetId(7);

    fn entries(dir: &Path) -> Vec<String> {
        let mut found = Vec::new();
        find_all(dir, &mut found);
        let mut names: Vec<String> = found
            .iter()
            .map(|f| f.path.strip_prefix(dir).unwrap().to_string_lossy().split_once('/').unwrap().1.into())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn is_cleared_of_its_own_entries_only() {
        let dir = tempfile::tempdir().unwrap();
        let side = SideCache::new(dir.path(), 1 << 20);
        side.put(ID, "a/b", b"12345").unwrap();
        side.put(ID, "c", b"").unwrap();
        let others = [dir.path().join("mine"), dir.path().join(ID.to_string()).join("notes")];
        others.iter().for_each(|path| fs::write(path, "keep").unwrap());
        let (count, size_bytes) = side.usage();
        assert_eq!((count, size_bytes), (3, 5 + 4 + 2 * ENTRY_HEADER_BYTES as u64));
        assert_eq!(side.clear(), (2, 5 + 2 * ENTRY_HEADER_BYTES as u64));
        assert!(others.iter().all(|path| path.exists()));
        assert_eq!((side.get(ID, "a/b"), side.get(ID, "c")), (None, None));
        side.put(ID, "a/b", b"again").unwrap();
        assert_eq!(side.get(ID, "a/b").unwrap(), b"again");
    }

    #[test]
    fn keeps_what_it_was_given() {
        let dir = tempfile::tempdir().unwrap();
        let side = SideCache::new(dir.path().join("not/there/yet"), 1 << 20);
        assert_eq!(side.get(ID, "a/b"), None);
        side.put(ID, "a/b", b"first").unwrap();
        side.put(ID, "a/b", b"second").unwrap();
        side.put(ID, "empty", b"").unwrap();
        assert_eq!(side.get(ID, "a/b").unwrap(), b"second");
        assert_eq!(side.get(ID, "empty").unwrap(), b"");
        assert_eq!(side.get(DatasetId(8), "a/b"), None, "another data set");
        fs::remove_dir_all(side.dir()).unwrap();
        assert_eq!(side.get(ID, "a/b"), None);
        side.put(ID, "a/b", b"third").unwrap();
        assert_eq!(side.get(ID, "a/b").unwrap(), b"third");
    }

    #[test]
    fn damaged_entries_are_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let side = SideCache::new(dir.path(), 1 << 20);
        let path = side.path(ID, "x").unwrap();
        side.put(ID, "x", b"some bytes").unwrap();
        let sound = fs::read(&path).unwrap();
        for at in 0..sound.len() {
            let mut damaged = sound.clone();
            damaged[at] ^= 0x10;
            fs::write(&path, damaged).unwrap();
            assert_eq!(side.get(ID, "x"), None, "byte {at} differs");
            fs::write(&path, &sound[..at]).unwrap();
            assert_eq!(side.get(ID, "x"), None, "cut at {at}");
        }
        fs::write(&path, [&sound[..], b"more"].concat()).unwrap();
        assert_eq!(side.get(ID, "x"), None, "too long");
        fs::create_dir_all(dir.path().join(ID.to_string()).join("y")).unwrap();
        fs::copy(dir.path().join(ID.to_string()).join("y"), &path).unwrap_err();
        fs::write(side.path(ID, "z").unwrap(), &sound).unwrap();
        assert_eq!(side.get(ID, "z"), None, "an entry under another name");
    }

    #[test]
    fn the_entries_used_longest_ago_go_first() {
        let dir = tempfile::tempdir().unwrap();
        let entry = 1000 + ENTRY_HEADER_BYTES as u64;
        let side = SideCache::new(dir.path(), 10 * entry);
        let used = |name: &str, seconds: u64| {
            let file = File::options().write(true).open(side.path(ID, name).unwrap()).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        };
        for i in 0..10 {
            side.put(ID, &format!("e{i}"), &[i; 1000]).unwrap();
            used(&format!("e{i}"), 1000 + u64::from(i));
        }
        assert!(side.get(ID, "e1").is_some(), "and so it was used just now");
        side.put(ID, "new", &[0; 1000]).unwrap();
        assert_eq!(entries(dir.path()), ["e1", "e3", "e4", "e5", "e6", "e7", "e8", "e9", "new"]);
        let error = side.put(ID, "huge", &vec![0; 20_000]).unwrap_err();
        assert_eq!(error.kind(), array::ErrorKind::TooLarge);
    }

    #[test]
    fn several_share_a_directory_and_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let entry = 1000 + ENTRY_HEADER_BYTES as u64;
        let limit = 32 * entry;
        let sides = [(); 3].map(|()| SideCache::new(dir.path(), limit));
        for i in 0..60 {
            for (number, side) in sides.iter().enumerate() {
                side.put(ID, &format!("e{number}-{i}"), &[0; 1000]).unwrap();
            }
        }
        let mut found = Vec::new();
        find_all(dir.path(), &mut found);
        let total: u64 = found.iter().map(|f| f.size_bytes).sum();
        assert!(total <= limit + 3 * limit / UNSEEN_SHARE && total > limit / 2, "{total} of {limit}");
    }

    #[test]
    fn what_is_not_its_own_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let foreign = [
            dir.path().join("project/results/run42.h5"),
            dir.path().join("notes.txt"),
            dir.path().join(ID.to_string()).join("notes.txt"),
        ];
        for path in &foreign {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![7; 100_000]).unwrap();
        }
        fs::create_dir(dir.path().join("empty")).unwrap();
        let side = SideCache::new(dir.path(), 20_000);
        for i in 0..50 {
            side.put(ID, &format!("e{i}"), &[0; 1000]).unwrap();
        }
        assert!(foreign.iter().all(|path| fs::read(path).unwrap() == vec![7; 100_000]));
        assert!(dir.path().join("empty").exists());
    }

    #[test]
    fn links_and_what_others_may_write_are_not_believed_nor_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let side = SideCache::new(dir.path(), 1 << 20);
        side.put(ID, "x", b"own").unwrap();
        let path = side.path(ID, "x").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(side.get(ID, "x"), None, "others may have written it");
        let victim = dir.path().join("victim");
        fs::write(&victim, b"precious").unwrap();
        let temporary = path.with_file_name(".tmp-1-1");
        symlink(&victim, &temporary).unwrap();
        write_entry(&temporary, ID, "x", b"bytes").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        symlink(&path, side.path(ID, "link").unwrap()).unwrap();
        assert_eq!(side.get(ID, "link"), None);
    }

    #[test]
    fn several_write_into_a_folder_at_once() {
        const ENTRIES: usize = 8;
        // Each begins with no folder, and all the while somebody looks for what is empty.
        for _ in 0..50 {
            let dir = tempfile::tempdir().unwrap();
            std::thread::scope(|scope| {
                let writers = [0, 1, 2, 3].map(|writer: u8| {
                    let side = SideCache::new(dir.path(), 64 << 20);
                    scope.spawn(move || {
                        for i in 0..ENTRIES {
                            side.put(ID, &format!("{writer}/{i}/x"), &[writer; 1000]).unwrap();
                        }
                    })
                });
                while !writers.iter().all(|writer| writer.is_finished()) {
                    find_all(dir.path(), &mut Vec::new());
                }
            });
            let side = SideCache::new(dir.path(), 64 << 20);
            for (writer, i) in (0..4).flat_map(|writer| (0..ENTRIES).map(move |i| (writer, i))) {
                assert_eq!(side.get(ID, &format!("{writer}/{i}/x")).unwrap(), [writer; 1000]);
            }
        }
    }

    #[test]
    fn names_stay_inside_and_left_overs_go() {
        let dir = tempfile::tempdir().unwrap();
        let side = SideCache::new(dir.path(), 1 << 20);
        for name in ["", "/x", "../x", "a/../b", "a//b", "a b", ".hidden", "a\0b", &"x".repeat(300)] {
            assert!(side.put(ID, name, b"x").is_err(), "`{name}`");
            assert_eq!(side.get(ID, name), None);
        }
        let left = dir.path().join(ID.to_string()).join(".tmp-1-1");
        fs::create_dir_all(left.parent().unwrap()).unwrap();
        fs::write(&left, b"half").unwrap();
        let long_ago = SystemTime::now() - 2 * ABANDONED_AFTER;
        File::options().write(true).open(&left).unwrap().set_modified(long_ago).unwrap();
        side.put(ID, "x", b"x").unwrap();
        assert!(!left.exists());
    }

    #[test]
    fn empty_folders_stay_while_somebody_may_be_about_to_write_there() {
        let dir = tempfile::tempdir().unwrap();
        let [young, old] = ["young", "old"].map(|name| dir.path().join(ID.to_string()).join(name));
        for folder in [&young, &old] {
            fs::create_dir_all(folder).unwrap();
        }
        let long_ago = SystemTime::now() - 2 * ABANDONED_AFTER;
        File::open(&old).unwrap().set_modified(long_ago).unwrap();
        find_all(dir.path(), &mut Vec::new());
        assert!(young.exists() && !old.exists());
    }
}
