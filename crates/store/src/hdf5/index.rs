//! Result of a walk through a file, kept for the next time: a file of many objects, such as the grids of a
//! mesh, then opens sooner.
//!
//! The walk asks the C library for each object and each of its attributes. The side cache has all of it in
//! one piece, under the identity of the file's state. Only descriptions are kept: positions of elements are
//! still looked up in the file.

use array::Result;

use super::describe;
use super::files::Files;
use super::walk::{Tree, walk};
use crate::OpenOptions;

/// Fewer objects are found sooner than they are looked up.
const LEAST_KEPT_OBJECTS: usize = 512;
/// Longest index that is kept, bytes.
const MAX_INDEX_BYTES: usize = 256 << 20;
/// Its name in the side cache, with the version of its form.
pub(super) const NAME: &str = "hdf5-6/tree";

/// All that is in a file: as it was kept, else by a walk.
///
/// # Errors
/// Those of the walk.
pub(super) fn tree(files: &mut Files, options: &OpenOptions) -> Result<Tree> {
    let (side, id) = (options.side_cache(), describe::identity(files));
    let kept = side.as_ref().and_then(|side| side.get(id, NAME));
    if let Some(tree) = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
        return Ok(tree);
    }
    let tree = walk(files)?;
    let is_kept = tree.objects() >= LEAST_KEPT_OBJECTS && !tree.has_failed;
    if let Some(side) = side.filter(|_| is_kept)
        && let Some(bytes) = serde_json::to_vec(&tree).ok().filter(|bytes| bytes.len() <= MAX_INDEX_BYTES)
        && let Err(error) = side.put(id, NAME, &bytes)
    {
        tracing::debug!(%error, "what is in a file was not kept");
    }
    Ok(tree)
}

/// Bytes as text of two digits each, which is half as long as a list of numbers.
pub(super) mod hexadecimal {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    const DIGITS: &[u8; 16] = b"0123456789abcdef";

    pub(in super::super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect::<String>().serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
            return Err(D::Error::custom("expected two digits for each byte"));
        };
        let byte = |&[high, low]: &[u8; 2]| Some(digit(high)? << 4 | digit(low)?);
        pairs.iter().map(byte).collect::<Option<_>>().ok_or_else(|| D::Error::custom("expected digits"))
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Held(#[serde(with = "hexadecimal")] Vec<u8>);

    #[test]
    fn bytes_come_back_and_other_text_is_refused() {
        let held = Held((0..=255).collect());
        let text = serde_json::to_string(&held).unwrap();
        assert_eq!((text.len(), serde_json::from_str::<Held>(&text).unwrap()), (514, held));
        for bad in ["\"0\"", "\"0g\"", "\"é\"", "7"] {
            assert!(serde_json::from_str::<Held>(bad).is_err(), "{bad}");
        }
    }
}
