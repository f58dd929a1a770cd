//! Native part of the Python package `corridor`: opens a user's location and reads selections of it, without holding
//! Python's lock while waiting. The public interface (mappings, indexing, futures) is written in Python:
//! `corridor/*.py`. This crate implements no protocol and no format.

mod callbacks;
mod connection;
mod errors;
mod many;
mod objects;
mod picture;
mod reads;
mod relay;
mod runtime;
mod session_link;
mod slabs;
mod view_server;

use pyo3::prelude::*;

/// The module `corridor._native`.
#[pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use super::connection::{Connection, Reading, list_datasets, open};

    #[pymodule_export]
    use super::many::{begin_many, read_many};

    #[pymodule_export]
    use super::objects::open_objects;

    #[pymodule_export]
    use super::picture::{render, resolve_view};

    #[pymodule_export]
    use super::relay::PageRelay;

    #[pymodule_export]
    use super::view_server::{ViewServer, serve_view, viewer_colormaps, viewer_page};

    #[pymodule_export]
    use super::session_link::{SessionLink, join_session};

    #[pymodule_export]
    use super::slabs::Slabs;

    /// The package's version.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
