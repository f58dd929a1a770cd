//! Index of a file in the side cache: the result of the walk through it. A file of many objects, such as the grids of a mesh, then
//! opens faster.
//!
//! The walk requests each object and each of its attributes from the C library. The side cache has all of them in one entry, under
//! the identity of the state of the file. Only descriptions are kept: positions of elements are still looked up in the file.

use array::Result;

use super::describe;
use super::files::LinkedFiles;
use super::walk::{FileTree, walk};
use crate::OpenOptions;

/// Fewest objects of a file whose index is cached: a walk through fewer ones is faster than a look-up.
const LEAST_KEPT_OBJECTS: usize = 512;
/// Longest index of an HDF5 file that is cached, bytes.
const MAX_INDEX_BYTES: usize = 256 << 20;
/// Name of the index in the side cache, with the version of its format.
pub(super) const NAME: &str = "hdf5-7/tree";

/// Returns the objects of a file: from the side cache, else by a walk.
///
/// # Errors
/// Errors of the walk.
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
