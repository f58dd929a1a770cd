//! An HDF5 file with one array: `store` creates the file, and the elements are written as in any flat file.

use std::path::Path;

use array::Result;
use store::{NewHdf5, create_hdf5};

use super::ArrayHeader;

/// Creates the file; returns the byte offset at which the elements begin.
///
/// # Errors
/// `Io`.
pub(crate) fn begin(path: &Path, what: &ArrayHeader) -> Result<u64> {
    create_hdf5(
        path,
        &NewHdf5 {
            name: &what.name,
            element: what.dtype.element(),
            shape: &what.shape,
            axes: &what.axes,
            attributes: &what.attributes,
        },
    )
}
