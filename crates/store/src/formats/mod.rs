//! File formats: one module for each, listed in `registry`.

pub(crate) mod amr;
pub(crate) mod common;
pub(crate) mod hdf5;
pub(crate) mod mgh;
pub(crate) mod netcdf3;
pub(crate) mod nifti;
pub(crate) mod npy;
pub(crate) mod nrrd;
pub(crate) mod objects;
pub(crate) mod open;
pub(crate) mod raw;
pub(crate) mod recognize;
pub(crate) mod registry;
pub(crate) mod synthetic;
pub(crate) mod zarr;
