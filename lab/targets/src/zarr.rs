//! A Zarr store from bytes: the input is an archive of small files, written out as a folder.

use std::path::{Component, Path};

/// Most files of an archive.
const MAX_FILES: usize = 64;

/// Writes the files of `archive` below a folder, opens it and reads from it. An archive is a list of entries: one byte
/// for the length of a path, the path, two bytes for the length of the content (little-endian), the content.
pub fn open_and_read(archive: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder for the store");
    let root = folder.path().join("x.zarr");
    std::fs::create_dir(&root).expect("the folder is made");
    let mut rest = archive;
    for _ in 0..MAX_FILES {
        let Some((path, content)) = entry(&mut rest) else { break };
        write(&root, path, content);
    }
    crate::files::read_some(&root);
}

/// Takes the next entry; a length beyond the end means all that is left.
fn entry<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let path_bytes = *rest.split_off_first()?;
    let path = take(rest, usize::from(path_bytes));
    let content_bytes = take(rest, 2).first_chunk().map_or(0, |n| u16::from_le_bytes(*n));
    Some((path, take(rest, usize::from(content_bytes))))
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, left) = rest.split_at(count.min(rest.len()));
    *rest = left;
    taken
}

/// Writes a file where its path stays below `root` and fits the files there already.
fn write(root: &Path, path: &[u8], content: &[u8]) {
    let Ok(path) = std::str::from_utf8(path) else { return };
    let path = Path::new(path);
    if path.components().all(|part| matches!(part, Component::Normal(_))) {
        let path = root.join(path);
        let made = path.parent().is_some_and(|folder| std::fs::create_dir_all(folder).is_ok());
        if made {
            std::fs::write(path, content).unwrap_or_default();
        }
    }
}
