//! Signature of HDF5 files, recognition of files by it, and the SWMR flag of the superblock.

use crate::FileBytes;

/// The first bytes of the superblock.
pub(super) const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// Positions of the superblock in the head of a file: at the start, or after a user block whose size is a
/// power of two.
const PLACES: [usize; 4] = [0, 512, 1024, 2048];

/// Whether a program writes the file while others read it (SWMR), or ended while it did: the head of the file is older than the
/// rest then.
pub(super) fn is_in_swmr(file: &FileBytes) -> bool {
    const SWMR_VERSION: u8 = 3;
    const SWMR_WRITE: u8 = 1 << 2;
    let mut head = [0; 12];
    let is_read = file.read_at(0, &mut head).is_ok();
    is_read && head.starts_with(SIGNATURE) && head[8] >= SWMR_VERSION && head[11] & SWMR_WRITE != 0
}

/// Whether these first bytes are of an HDF5 file.
pub(crate) fn recognizes(head: &[u8]) -> bool {
    PLACES.iter().any(|&at| head.get(at..).is_some_and(|rest| rest.starts_with(SIGNATURE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_says_whether_a_file_is_written_beside_its_readers() {
        let dir = tempfile::tempdir().unwrap();
        for (name, version, flags, expected) in
            [("a", 3, 5, true), ("b", 3, 0, false), ("c", 3, 1, false), ("d", 0, 5, false)]
        {
            let path = dir.path().join(name);
            let head = [SIGNATURE, &[version, 8, 8, flags], &[0; 36]].concat();
            std::fs::write(&path, head).unwrap();
            assert_eq!(is_in_swmr(&FileBytes::open(&path).unwrap()), expected, "{name}");
        }
    }
}
