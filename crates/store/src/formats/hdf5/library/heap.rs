//! Check of a global heap before the library reads it.
//!
//! The library walks the objects of a heap by their sizes, and never ends at a free one of size zero. Only a damaged or malicious
//! file has such a heap, so it is refused when its bytes are read.

/// First bytes of a global heap: its name, version and three zeros. The library reads heaps and raw data by
/// the same kind of read. Raw data that begin like a heap by chance are refused only if a walk through them
/// never ends, too.
const SIGNATURE: &[u8] = b"GCOL\x01\0\0\0";

/// Whether walking the objects in `bytes`, a heap or its beginning, comes to an end. `length_bytes`: how many
/// bytes the file uses for lengths.
pub(super) fn ends(bytes: &[u8], length_bytes: usize) -> bool {
    if !bytes.starts_with(SIGNATURE) {
        return true;
    }
    let header = (8 + length_bytes).next_multiple_of(8);
    let mut rest = bytes.get(header..).unwrap_or_default();
    while let Some((index, size)) = object(rest, length_bytes) {
        // The free object counts its own header, others do not, and are padded.
        let step = if index == 0 {
            Some(size)
        } else {
            size.checked_next_multiple_of(8).and_then(|n| n.checked_add(header))
        };
        let Some(step) = step else { return true };
        if step == 0 {
            return false;
        }
        rest = rest.get(step..).unwrap_or_default();
    }
    true
}

/// Index and size of the object at the start; `None` if the bytes are too few for one.
fn object(bytes: &[u8], length_bytes: usize) -> Option<(u16, usize)> {
    let index = u16::from_le_bytes(*bytes.first_chunk::<2>()?);
    let mut size = [0; 8];
    size.get_mut(..length_bytes)?.copy_from_slice(bytes.get(8..8 + length_bytes)?);
    Some((index, usize::try_from(u64::from_le_bytes(size)).unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heap(objects: &[(u16, u64)]) -> Vec<u8> {
        let mut bytes = b"GCOL\x01\0\0\0".to_vec();
        bytes.extend(4096u64.to_le_bytes());
        for &(index, size) in objects {
            bytes.extend(index.to_le_bytes());
            bytes.extend([0; 6]);
            bytes.extend(size.to_le_bytes());
            let inside = if index == 0 { size.saturating_sub(16) } else { size.next_multiple_of(8) };
            bytes.resize(bytes.len() + usize::try_from(inside).unwrap(), 0xff);
        }
        bytes
    }

    #[test]
    fn only_an_empty_free_object_never_ends() {
        assert!(ends(&heap(&[(1, 5), (2, 0), (0, 64)]), 8));
        assert!(!ends(&heap(&[(1, 5), (0, 0)]), 8));
        assert!(!ends(&heap(&[(0, 0), (1, 5)]), 8));
        assert!(ends(b"GCOL\x01\0\0\0", 8) && ends(b"", 8) && ends(&[0; 64], 8));
    }
}
