//! Result of a walk through a file, kept for the next time: a file of many objects, such as the grids of a
//! mesh, then opens sooner.
//!
//! The walk asks the C library for each object and each of its attributes. The side cache has all of it in
//! one piece, under the identity of the file's state. Only descriptions are kept: positions of elements are
//! still looked up in the file.

use array::Result;

use super::describe;
use super::files::LinkedFiles;
use super::walk::{FileTree, walk};
use crate::OpenOptions;

/// Fewer objects are found sooner than they are looked up.
const LEAST_KEPT_OBJECTS: usize = 512;
/// Longest index that is kept, bytes.
const MAX_INDEX_BYTES: usize = 256 << 20;
/// Its name in the side cache, with the version of its form.
pub(super) const NAME: &str = "hdf5-7/tree";

/// All that is in a file: as it was kept, else by a walk.
///
/// # Errors
/// Those of the walk.
pub(super) fn tree(files: &mut LinkedFiles, options: &OpenOptions) -> Result<FileTree> {
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
