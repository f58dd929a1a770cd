//! Recognition of the format of a path without opening it as data, for programs that scan folders.
//!
//! A file is recognized by its first bytes, else by the ending of its name; a folder by the files that make it a data set. A
//! recognized path may still fail to open.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use array::Result;

use crate::OpenOptions;
use crate::formats::registry::{DIRECTORY_FORMATS, HEAD_BYTES, format_of_head, format_of_name};

/// Bytes of a file that are tested first: most signatures lie in them.
const FIRST_BYTES: u64 = 4 << 10;

/// Returns the format of a file or folder by its signature or name; `None` if it is no data set.
///
/// # Errors
/// `Io`, `Denied`, `NotFound`.
pub fn recognize(path: &Path, options: &OpenOptions) -> Result<Option<&'static str>> {
    if std::fs::metadata(path)?.is_dir() {
        for format in DIRECTORY_FORMATS {
            if (format.recognizes)(path, options)? {
                return Ok(Some(format.name));
            }
        }
        return Ok(None);
    }
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    (&mut file).take(FIRST_BYTES).read_to_end(&mut head)?;
    if head.is_empty() {
        return Ok(None);
    }
    if let Some(format) = format_of_head(&head).or_else(|| format_of_name(path)) {
        return Ok(Some(format.name));
    }
    if head.len() as u64 == FIRST_BYTES {
        file.take(HEAD_BYTES as u64 - FIRST_BYTES).read_to_end(&mut head)?;
    }
    Ok(format_of_head(&head).map(|format| format.name))
}

/// File that describes data in other files beside it.
#[derive(Debug)]
pub struct DetachedHeader {
    name: String,
    stem: String,
    text: String,
}

impl DetachedHeader {
    /// Reads the beginning of a file; `None` where its name is not that of a description.
    #[must_use]
    pub fn read(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let lower = name.to_ascii_lowercase();
        if !DESCRIPTIONS.iter().any(|ending| lower.ends_with(ending)) {
            return None;
        }
        let mut text = Vec::new();
        let read = File::open(path).and_then(|file| file.take(FIRST_BYTES * 16).read_to_end(&mut text));
        if read.is_err() {
            text.clear();
        }
        Some(Self { stem: stem(&name), name, text: String::from_utf8_lossy(&text).into_owned() })
    }

    /// Whether a file in the same folder is part of its data set: it has the same stem (`a.nhdr` and `a.raw`), or is named in its text.
    #[must_use]
    pub fn has_part(&self, name: &str) -> bool {
        name != self.name && (stem(name) == self.stem || self.text.lines().any(|line| names(line, name)))
    }
}

fn stem(name: &str) -> String {
    name.split('.').next().unwrap_or_default().to_ascii_lowercase()
}

/// Endings of files that describe data in other files.
const DESCRIPTIONS: [&str; 4] = [".nhdr", ".hdr", ".toml", ".hierarchy"];

/// Whether a line contains the name of a file as a separate word.
fn names(line: &str, file: &str) -> bool {
    line.match_indices(file).any(|(at, found)| {
        let is_edge = |c: Option<char>| c.is_none_or(|c| c.is_whitespace() || "\"'=:,[]/".contains(c));
        is_edge(line[..at].chars().next_back()) && is_edge(line[at + found.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_files_are_told_apart_from_what_is_no_data() {
        let dir = tempfile::tempdir().unwrap();
        let options = OpenOptions::default();
        let at = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, bytes).unwrap();
            recognize(&path, &options).unwrap()
        };
        assert_eq!(at("notes.txt", b"words"), None);
        assert_eq!(at("empty.nc", b""), None);
        assert_eq!(at("a.npy", b"\x93NUMPY\x01\x00"), Some("NumPy"));
        assert_eq!(at("without_ending", b"CDF\x01\x00\x00\x00\x00"), Some("NetCDF-3"));
        let mut behind = vec![0; 2048];
        behind.extend(b"\x89HDF\r\n\x1a\n");
        behind.resize(8192, 0);
        assert_eq!(at("user_block", &behind), Some("HDF5"));
        at("store/zarr.json", b"{}");
        assert_eq!(recognize(&dir.path().join("store"), &options).unwrap(), Some("Zarr"));
        assert_eq!(recognize(dir.path(), &options).unwrap(), None);
    }

    #[test]
    fn parts_of_a_data_set_are_none_by_themselves() {
        let dir = tempfile::tempdir().unwrap();
        let header = dir.path().join("head.nhdr");
        std::fs::write(&header, "NRRD0004\ndata file: other.raw\n").unwrap();
        for (name, expected) in
            [("head.raw.gz", true), ("other.raw", true), ("another.raw", false), ("head.nhdr", false)]
        {
            assert_eq!(DetachedHeader::read(&header).unwrap().has_part(name), expected, "{name}");
        }
        std::fs::write(dir.path().join("words.txt"), "other.raw").unwrap();
        assert!(DetachedHeader::read(&dir.path().join("words.txt")).is_none());
    }
}
