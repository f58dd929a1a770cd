//! Scan of a folder for data sets: the files and folders in it, at any depth, that are one data set each.
//!
//! A Zarr store, the folder of a mesh and a description with its data file are one data set each, and their content is
//! not scanned. Nothing is opened as data, so a data set may turn out to be corrupt later. Results are cached by the
//! state of each file, so that the next scan costs one `stat` for each file. Hidden files and folders (`.name`) are
//! skipped.

use std::collections::{BTreeMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use array::{Error, Result};
use store::{DetachedHeader, OpenOptions};
use tokio::time::Instant;

/// Maximum number of files and folders in one scan.
pub(crate) const MAX_ENTRIES: usize = 262_144;
/// Maximum number of data sets in one folder.
pub(crate) const MAX_FOUND: usize = 65_536;
/// Maximum depth of nested folders in a scan.
const MAX_DEPTH: usize = 32;
/// Timeout of one scan.
const SCAN_TIMEOUT: Duration = Duration::from_secs(60);

/// A data set in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScannedDataset {
    /// Path below the folder, with `/`; it is the name of the data set.
    pub(crate) name: String,
    /// Path of the file or folder.
    pub(crate) path: PathBuf,
    /// Format, as far as recognized.
    pub(crate) format: &'static str,
    /// State at the time of the scan.
    pub(crate) state: FileState,
}

/// State of a file or folder: equal states mean that it has not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileState([i128; 4]);

impl FileState {
    fn of(about: &Metadata) -> Self {
        let modified = i128::from(about.mtime()) * 1_000_000_000 + i128::from(about.mtime_nsec());
        Self([about.dev().into(), about.ino().into(), about.size().into(), modified])
    }
}

/// Result of one scan of a folder.
#[derive(Debug, Default)]
pub(crate) struct ScanResult {
    /// Data sets, sorted by name.
    pub(crate) found: Vec<ScannedDataset>,
    /// Files and folders that are not data sets, with the reasons.
    pub(crate) left_out: Vec<(String, String)>,
    /// Reason that the scan is incomplete; `None` for a complete scan.
    pub(crate) incomplete: Option<String>,
}

/// A folder that is scanned for data sets.
#[derive(Debug)]
pub(crate) struct ScannedFolder {
    root: PathBuf,
    options: OpenOptions,
    /// Results of the last scan, by path, with the states that they are valid for.
    seen: BTreeMap<PathBuf, (FileState, Recognized)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Recognized {
    Data(&'static str),
    None(String),
}

/// A scan in progress.
struct FolderScan<'a> {
    folder: &'a mut ScannedFolder,
    seen: BTreeMap<PathBuf, (FileState, Recognized)>,
    visited: HashSet<(u64, u64)>,
    entries: usize,
    deadline: Instant,
    result: ScanResult,
}

impl ScannedFolder {
    /// Prepares scans of an existing folder. Links are followed only if they stay in it.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    pub(crate) fn new(root: &Path) -> Result<Self> {
        let at = |e: std::io::Error| Error::from(e).context(format!("folder `{}`", root.display()));
        let root = root.canonicalize().map_err(at)?;
        Ok(Self { root, options: OpenOptions::default(), seen: BTreeMap::new() })
    }

    /// Path of the folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Scans the whole folder. Blocking.
    pub(crate) fn scan(&mut self) -> ScanResult {
        let root = self.root.clone();
        let mut scan = FolderScan {
            folder: self,
            seen: BTreeMap::new(),
            visited: HashSet::new(),
            entries: 0,
            deadline: Instant::now() + SCAN_TIMEOUT,
            result: ScanResult::default(),
        };
        if let Ok(about) = std::fs::metadata(&root) {
            scan.visited.insert((about.dev(), about.ino()));
        }
        scan.enter(&root, "", 0);
        let FolderScan { seen, mut result, .. } = scan;
        self.seen = seen;
        result.found.sort_by(|a, b| a.name.cmp(&b.name));
        result.left_out.sort();
        result
    }
}

/// A file or folder in a folder.
struct FolderEntry {
    name: String,
    path: PathBuf,
    about: Metadata,
}

impl FolderScan<'_> {
    fn enter(&mut self, folder: &Path, name: &str, depth: usize) {
        let Some(entries) = self.entries_of(folder, name) else { return };
        let (folders, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.about.is_dir());
        let below = |entry: &FolderEntry| {
            if name.is_empty() { entry.name.clone() } else { format!("{name}/{}", entry.name) }
        };
        let mut found: Vec<(FolderEntry, Recognized)> = Vec::with_capacity(files.len());
        for entry in files {
            let seen = self.recognized(&entry, "its first bytes are not those of a known format");
            found.push((entry, seen));
        }
        // Each header is read once: a folder may have thousands of headers, and thousands of other files.
        let headers: Vec<DetachedHeader> = found
            .iter()
            .filter(|(_, seen)| matches!(seen, Recognized::Data("NRRD" | "NIfTI" | "raw" | "Enzo")))
            .filter_map(|(entry, _)| DetachedHeader::read(&entry.path))
            .collect();
        for (entry, seen) in found {
            let is_part = headers.iter().any(|header| header.has_part(&entry.name));
            match seen {
                _ if is_part => tracing::debug!("`{}` is a part of the data set beside it", below(&entry)),
                Recognized::Data(format) => self.add(below(&entry), entry, format),
                Recognized::None(why) => self.result.left_out.push((below(&entry), why)),
            }
        }
        for entry in folders {
            match self.recognized(&entry, "") {
                Recognized::Data(format) => self.add(below(&entry), entry, format),
                Recognized::None(why) if !why.is_empty() => self.result.left_out.push((below(&entry), why)),
                Recognized::None(_) if depth >= MAX_DEPTH => {
                    self.cut(&format!("folders deeper than {MAX_DEPTH} are not scanned"));
                }
                // A folder that is reached twice, through a link, is scanned once.
                Recognized::None(_) => {
                    if self.visited.insert((entry.about.dev(), entry.about.ino())) {
                        self.enter(&entry.path, &below(&entry), depth + 1);
                    }
                }
            }
        }
    }

    /// Records the first reason that the scan is incomplete.
    fn cut(&mut self, why: &str) {
        self.result.incomplete.get_or_insert_with(|| why.to_owned());
    }

    fn add(&mut self, name: String, entry: FolderEntry, format: &'static str) {
        if self.result.found.len() >= MAX_FOUND {
            return self.cut(&format!("it holds more than {MAX_FOUND} data sets"));
        }
        let state = FileState::of(&entry.about);
        self.result.found.push(ScannedDataset { name, path: entry.path, format, state });
    }

    /// Lists a folder in order of names; links only if they stay in the exported folder.
    fn entries_of(&mut self, folder: &Path, name: &str) -> Option<Vec<FolderEntry>> {
        let listed = match std::fs::read_dir(folder) {
            Ok(listed) => listed,
            Err(error) => {
                self.result.left_out.push((format!("{name}/"), error.to_string()));
                return None;
            }
        };
        let mut entries = Vec::new();
        for entry in listed.flatten() {
            if self.entries >= MAX_ENTRIES {
                self.cut(&format!("it holds more than {MAX_ENTRIES} files"));
                break;
            }
            if Instant::now() >= self.deadline {
                self.cut(&format!("the scan took longer than {} s", SCAN_TIMEOUT.as_secs()));
                break;
            }
            self.entries += 1;
            let path = entry.path();
            let below = path.strip_prefix(&self.folder.root).unwrap_or(&path).display().to_string();
            let left_out = |what: &str| (below.clone(), what.to_owned());
            let Ok(own) = entry.file_name().into_string() else {
                self.result.left_out.push(left_out("its name is not UTF-8"));
                continue;
            };
            if own.starts_with('.') {
                continue;
            }
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let leads_out = is_link && path.canonicalize().is_ok_and(|to| !to.starts_with(&self.folder.root));
            match std::fs::metadata(&path) {
                _ if leads_out => {
                    self.result.left_out.push(left_out("it is a link that leads out of the folder"))
                }
                Ok(about) if about.is_dir() || about.is_file() => {
                    entries.push(FolderEntry { name: own, path, about })
                }
                Ok(_) => self.result.left_out.push(left_out("it is a pipe, socket or device")),
                Err(error) => self.result.left_out.push(left_out(&error.to_string())),
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Some(entries)
    }

    /// Returns the cached result for an entry in this state, or recognizes it now; `unknown` is the reason for a file
    /// of unknown format. Creating a file in a folder changes its state.
    fn recognized(&mut self, entry: &FolderEntry, unknown: &str) -> Recognized {
        let state = FileState::of(&entry.about);
        let known = self.folder.seen.remove(&entry.path).filter(|(then, _)| *then == state);
        let seen = match known {
            Some((_, seen)) => seen,
            None => match store::recognize(&entry.path, &self.folder.options) {
                Ok(Some(format)) => Recognized::Data(format),
                Ok(None) if entry.about.is_file() && entry.about.len() == 0 => {
                    Recognized::None("it is empty".into())
                }
                Ok(None) => Recognized::None(unknown.to_owned()),
                // Not cached: whether a file can be read may change while its state does not.
                Err(error) => return Recognized::None(error.to_string()),
            },
        };
        self.seen.insert(entry.path.clone(), (state, seen.clone()));
        seen
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(scan: &ScanResult) -> Vec<&str> {
        scan.found.iter().map(|found| found.name.as_str()).collect()
    }

    #[test]
    fn data_sets_at_any_depth_are_found_and_changes_are_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str, bytes: &[u8]| {
            let path = dir.path().join("data").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, bytes).unwrap();
        };
        let npy = b"\x93NUMPY\x01\x00";
        at("a.npy", npy);
        at("deep/er/b.npy", npy);
        at("store/zarr.json", b"{}");
        at("store/c.npy", npy);
        at("head.nhdr", b"NRRD0004\ndata file: head.raw\n");
        at("head.raw", b"1234");
        at("notes.txt", b"words");
        at(".hidden.npy", npy);
        std::fs::write(dir.path().join("outside.npy"), npy).unwrap();
        symlink(dir.path().join("outside.npy"), dir.path().join("data/out.npy")).unwrap();
        symlink(dir.path().join("data/a.npy"), dir.path().join("data/in.npy")).unwrap();
        symlink(dir.path().join("data"), dir.path().join("data/deep/loop")).unwrap();
        let mut folder = ScannedFolder::new(&dir.path().join("data")).unwrap();
        let scan = folder.scan();
        assert_eq!(names(&scan)[..3], ["a.npy", "deep/er/b.npy", "head.nhdr"]);
        assert!(names(&scan).contains(&"store"));
        assert!(names(&scan).contains(&"in.npy"), "links that stay inside are followed");
        assert!(!names(&scan).iter().any(|name| name.contains("loop")), "each folder is scanned once");
        let left_out: Vec<_> = scan.left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert!(left_out.contains(&"notes.txt") && left_out.contains(&"out.npy"), "{left_out:?}");
        assert!(!left_out.contains(&"head.raw"), "a part of the data set beside it");

        at("new.npy", npy);
        at("notes.txt", b"\x93NUMPY\x01\x00");
        std::fs::remove_file(dir.path().join("data/a.npy")).unwrap();
        let scan = folder.scan();
        assert!(names(&scan).contains(&"new.npy") && names(&scan).contains(&"notes.txt"));
        assert!(!names(&scan).contains(&"a.npy"));
    }
}
