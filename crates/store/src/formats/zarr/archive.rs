//! Zip archive as the store of a Zarr hierarchy, read-only: keys are names of its members (ZIP's application note, with ZIP64).
//!
//! Uncompressed members, which Zarr writes, are read as files are; members compressed by deflate are read as a whole, within their
//! size. Encrypted members, other methods and archives of several files are refused with the reason.

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{Error, Result};

use super::directory::StoredFile;
use super::nodes::DOCUMENTS;
use crate::{ByteStore, FileBytes};

/// Longest comment at the end of a zip archive, bytes.
const MAX_COMMENT_BYTES: u64 = 65_535;
const END_BYTES: usize = 22;
const END_64_BYTES: usize = 56;
const LOCATOR_BYTES: usize = 20;
const DIRECTORY_ENTRY_BYTES: usize = 46;
const LOCAL_BYTES: usize = 30;
/// Most bytes of the central directory of a zip archive.
const MAX_LIST_BYTES: u64 = 256 << 20;
/// Most members of a zip archive.
const MAX_ARCHIVE_MEMBERS: u64 = 1 << 20;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Whether these are the first bytes of an archive with members.
pub(crate) fn recognizes(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04")
}

/// Zip archive with the positions of its members.
#[derive(Debug)]
pub(super) struct Archive {
    file: Arc<FileBytes>,
    members: BTreeMap<String, ArchiveMember>,
}

#[derive(Clone, Copy, Debug)]
struct ArchiveMember {
    /// Offset of its local header.
    header: u64,
    packed_bytes: u64,
    size_bytes: u64,
    method: u16,
    is_encrypted: bool,
}

fn corrupt(what: &str) -> Error {
    Error::corrupt(format!("expected a .zip archive, found {what}"))
}

fn two(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|raw| raw.first_chunk()).map_or(0, |raw| u16::from_le_bytes(*raw))
}

fn four(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|raw| raw.first_chunk()).map_or(0, |raw| u32::from_le_bytes(*raw))
}

fn eight(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|raw| raw.first_chunk()).map_or(0, |raw| u64::from_le_bytes(*raw))
}

impl Archive {
    /// Reads the list of members. Where all of them lie in one folder, that folder is the store.
    ///
    /// # Errors
    /// `Corrupt`, `TooLarge`, `Io`.
    pub(super) fn open(file: Arc<FileBytes>) -> Result<Self> {
        let (start, size, count) = list_place(&file)?;
        let fits = start.checked_add(size).is_some_and(|end| end <= file.size_bytes());
        if !fits {
            return Err(corrupt("a list of members beyond its end"));
        }
        if size > MAX_LIST_BYTES || count > MAX_ARCHIVE_MEMBERS {
            return Err(Error::too_large(format!("more than {MAX_ARCHIVE_MEMBERS} members of an archive")));
        }
        let mut list = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
        file.read_at(start, &mut list)?;
        let (mut members, mut rest) = (BTreeMap::new(), &list[..]);
        for _ in 0..count {
            let (name, member, after) = entry(rest)?;
            rest = after;
            if !name.ends_with('/') {
                members.insert(name, member);
            }
        }
        Ok(Self { file, members: without_folder(members) })
    }

    pub(super) fn file(&self) -> &Arc<FileBytes> {
        &self.file
    }

    /// Returns a member; `None` if there is none of this name.
    ///
    /// # Errors
    /// `Unsupported` for one that is encrypted or compressed by another method, `Corrupt` if its header is wrong.
    pub(super) fn member(&self, key: &str) -> Result<Option<StoredFile>> {
        let Some(member) = self.members.get(key) else { return Ok(None) };
        if member.is_encrypted || !matches!(member.method, STORED | DEFLATED) {
            let what = if member.is_encrypted { "encrypted" } else { "packed by other means than deflate" };
            return Err(Error::unsupported(format!("member `{key}` of the archive, which is {what}")));
        }
        let mut head = [0; LOCAL_BYTES];
        let inside = |end: Option<u64>| end.is_some_and(|end| end <= self.file.size_bytes());
        if !inside(member.header.checked_add(LOCAL_BYTES as u64)) {
            return Err(corrupt("a member beyond its end"));
        }
        self.file.read_at(member.header, &mut head)?;
        if !head.starts_with(b"PK\x03\x04") {
            return Err(corrupt("a member without a header"));
        }
        let start =
            member.header + (LOCAL_BYTES as u64) + u64::from(two(&head, 26)) + u64::from(two(&head, 28));
        if !inside(start.checked_add(member.packed_bytes)) {
            return Err(corrupt("a member beyond its end"));
        }
        let is_packed = member.method == DEFLATED;
        if !is_packed && member.packed_bytes != member.size_bytes {
            return Err(corrupt("a stored member of two sizes"));
        }
        let file = Arc::clone(&self.file);
        Ok(Some(StoredFile::part_of_archive(
            file,
            start,
            member.packed_bytes,
            is_packed.then_some(member.size_bytes),
        )))
    }

    /// Whether a name has members below it, or is one.
    pub(super) fn has(&self, key: &str) -> bool {
        self.members.contains_key(key)
    }

    /// Names of folders directly below one, sorted, at most `limit`; and whether there are more.
    pub(super) fn folders(&self, key: &str, limit: usize) -> (Vec<String>, bool) {
        let prefix = if key.is_empty() { String::new() } else { format!("{key}/") };
        let mut names: Vec<String> = Vec::new();
        let mut from = prefix.clone();
        // Skips from each folder to the entry after it: a folder may have many members.
        while let Some((name, _)) = self.members.range(from.clone()..).next() {
            let Some(rest) = name.strip_prefix(&prefix) else { break };
            let Some((folder, _)) = rest.split_once('/') else {
                from = format!("{name}\0");
                continue;
            };
            if names.len() >= limit {
                return (names, true);
            }
            names.push(folder.to_owned());
            // The character behind the slash.
            from = format!("{prefix}{folder}0");
        }
        names.dedup();
        (names, false)
    }
}

/// Returns the central directory: start, bytes, and number of members.
fn list_place(file: &FileBytes) -> Result<(u64, u64, u64)> {
    let size = file.size_bytes();
    let from = size.saturating_sub(MAX_COMMENT_BYTES + (END_BYTES + LOCATOR_BYTES) as u64);
    let mut tail = vec![0; usize::try_from(size - from).unwrap_or(usize::MAX)];
    file.read_at(from, &mut tail)?;
    let is_end = |at: usize| {
        tail[at..].starts_with(b"PK\x05\x06")
            && tail.len() - at >= END_BYTES
            && at + END_BYTES + usize::from(two(&tail, at + 20)) <= tail.len()
    };
    let at = (0..tail.len()).rev().find(|&at| is_end(at)).ok_or_else(|| corrupt("no list of its members"))?;
    let end = &tail[at..];
    let found = (u64::from(four(end, 16)), u64::from(four(end, 12)), u64::from(two(end, 10)));
    let is_64 = found.0 == u64::from(u32::MAX) || found.1 == u64::from(u32::MAX) || found.2 == 0xffff;
    let locator = at.checked_sub(LOCATOR_BYTES).map(|at| &tail[at..at + LOCATOR_BYTES]);
    let Some(locator) = locator.filter(|l| l.starts_with(b"PK\x06\x07")) else {
        return if is_64 { Err(corrupt("a list of its members in no known form")) } else { Ok(found) };
    };
    let place = eight(locator, 8);
    if place.checked_add(END_64_BYTES as u64).is_none_or(|end| end > size) {
        return Err(corrupt("a list of its members beyond its end"));
    }
    let mut end = [0; END_64_BYTES];
    file.read_at(place, &mut end)?;
    if !end.starts_with(b"PK\x06\x06") {
        return Err(corrupt("a list of its members in no known form"));
    }
    Ok((eight(&end, 48), eight(&end, 40), eight(&end, 32)))
}

/// Parses one entry of the central directory; returns the rest.
fn entry(list: &[u8]) -> Result<(String, ArchiveMember, &[u8])> {
    let cut_short = || corrupt("a list of its members that is cut short");
    let (head, after) = list.split_at_checked(DIRECTORY_ENTRY_BYTES).ok_or_else(cut_short)?;
    if !head.starts_with(b"PK\x01\x02") {
        return Err(cut_short());
    }
    let [name, extra, comment] = [28, 30, 32].map(|at| usize::from(two(head, at)));
    let (name, after) = after.split_at_checked(name).ok_or_else(cut_short)?;
    let (extra, after) = after.split_at_checked(extra).ok_or_else(cut_short)?;
    let (_, after) = after.split_at_checked(comment).ok_or_else(cut_short)?;
    let mut sizes = [24, 20, 42].map(|at| u64::from(four(head, at)));
    // ZIP64 lists, one after another, the values that four bytes do not hold.
    let mut large = extra_field(extra, 1).unwrap_or_default();
    for size in sizes.iter_mut().filter(|size| **size == u64::from(u32::MAX)) {
        let (raw, rest) = large.split_at_checked(8).ok_or_else(cut_short)?;
        (*size, large) = (eight(raw, 0), rest);
    }
    let [size_bytes, packed_bytes, header] = sizes;
    let (method, is_encrypted) = (two(head, 10), two(head, 8) & 1 == 1);
    let name = String::from_utf8_lossy(name).trim_start_matches('/').to_owned();
    Ok((name, ArchiveMember { header, packed_bytes, size_bytes, method, is_encrypted }, after))
}

fn extra_field(mut extra: &[u8], number: u16) -> Option<&[u8]> {
    while extra.len() >= 4 {
        let (id, size) = (two(extra, 0), usize::from(two(extra, 2)));
        let field = extra.get(4..4 + size)?;
        if id == number {
            return Some(field);
        }
        extra = &extra[4 + size..];
    }
    None
}

/// The members of the only folder there is, where the store's documents are not at the top.
fn without_folder(members: BTreeMap<String, ArchiveMember>) -> BTreeMap<String, ArchiveMember> {
    let is_store = DOCUMENTS.iter().any(|name| members.contains_key(*name));
    let first = members.keys().find(|name| !name.starts_with("__MACOSX/"));
    let folder = first.and_then(|name| name.split_once('/')).map(|(folder, _)| format!("{folder}/"));
    let Some(folder) = folder.filter(|_| !is_store) else { return members };
    let inside =
        |(name, member): (&String, &ArchiveMember)| Some((name.strip_prefix(&folder)?.to_owned(), *member));
    members.iter().filter_map(inside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive of stored members, as Python's `zipfile` writes it.
    fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut out, mut list) = (Vec::new(), Vec::new());
        for (name, bytes) in members {
            let header = u32::try_from(out.len()).unwrap();
            let [size, length] = [bytes.len(), name.len()].map(|n| u32::try_from(n).unwrap());
            let sizes = [0u32.to_le_bytes(), size.to_le_bytes(), size.to_le_bytes()].concat();
            let lengths = u16::try_from(length).unwrap().to_le_bytes();
            out.extend(
                [&b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0"[..], &sizes, &lengths, &[0, 0], name.as_bytes(), bytes]
                    .concat(),
            );
            list.extend(
                [&b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0"[..], &sizes, &lengths, &[0; 12]].concat(),
            );
            list.extend([&header.to_le_bytes()[..], name.as_bytes()].concat());
        }
        let [start, size] = [out.len(), list.len()].map(|n| u32::try_from(n).unwrap().to_le_bytes());
        let count = u16::try_from(members.len()).unwrap().to_le_bytes();
        out.extend(list);
        out.extend([&b"PK\x05\x06\0\0\0\0"[..], &count, &count, &size, &start, &[0, 0]].concat());
        out
    }

    fn open(bytes: &[u8]) -> Result<Archive> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.zip");
        std::fs::write(&path, bytes).unwrap();
        Archive::open(FileBytes::open(&path)?)
    }

    #[test]
    fn members_are_found_and_folders_listed() {
        let bytes = archive(&[
            ("x.zarr/a/c/0", b"12"),
            ("x.zarr/a/zarr.json", b"{}"),
            ("x.zarr/b/zarr.json", b"{}"),
            ("x.zarr/zarr.json", b"{}"),
        ]);
        let archive = open(&bytes).unwrap();
        assert_eq!(archive.folders("", 9), (vec!["a".to_owned(), "b".to_owned()], false));
        assert_eq!(archive.folders("", 1), (vec!["a".to_owned()], true));
        assert_eq!(archive.folders("a", 9), (vec!["c".to_owned()], false));
        assert_eq!(archive.member("a/c/0").unwrap().unwrap().read_all(2).unwrap(), b"12");
        assert!(archive.member("a/c/1").unwrap().is_none());
    }

    #[test]
    fn no_bytes_are_too_odd() {
        let whole = archive(&[("zarr.json", b"{}")]);
        for end in 0..whole.len() {
            assert!(open(&whole[..end]).is_err(), "{end}");
        }
        for place in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut odd = whole.clone();
                odd[place] = value;
                // Whatever it says, it ends.
                if let Ok(archive) = open(&odd) {
                    drop(archive.member("zarr.json").map(|file| file.map(|file| file.read_all(100))));
                }
            }
        }
    }
}
