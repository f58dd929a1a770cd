//! The native half of the Python package `corridor`: opens what a person named and reads selections of it, without
//! holding Python's lock while anything waits. What Python people see (mappings, indexing, futures) is Python:
//! `corridor/*.py`. Knows no protocol and no format.

mod callbacks;
mod connection;
mod errors;
mod many;
mod picture;
mod reads;
mod runtime;
mod slabs;

use pyo3::prelude::*;

/// The module `corridor._native`.
#[pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use super::connection::{Connection, Reading, list_datasets, open};

    #[pymodule_export]
    use super::many::{begin_many, read_many};

    #[pymodule_export]
    use super::picture::render;

    #[pymodule_export]
    use super::slabs::Slabs;

    /// The package's version.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
