//! Signature of HDF5 files, and recognition of files by it.

/// The first bytes of the superblock.
pub(super) const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// Positions of the superblock in the head of a file: at the start, or after a user block whose size is a
/// power of two.
const PLACES: [usize; 4] = [0, 512, 1024, 2048];

/// Whether these first bytes, or else this name, are of an HDF5 file.
pub(crate) fn recognises(head: &[u8], name: &str) -> bool {
    PLACES.iter().any(|&at| head.get(at..).is_some_and(|rest| rest.starts_with(SIGNATURE)))
        || [".h5", ".hdf5", ".he5", ".nc4"].iter().any(|ending| name.ends_with(ending))
}
