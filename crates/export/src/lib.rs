//! Files that are written from any source: copies of arrays, pictures, films, meshes.
//!
//! ```text
//!   selection_text, coordinate_selection --> get --> read_slabs --> output (.npy, .nc, .h5, .zarr, .csv, ...)
//!   bounded_scan --> statistics, region_statistics, mesh
//!   picture (options to a view) --> film (one or many pictures, numbered or as a film) --> output::mp4
//!                                 '--> row_pictures (single pictures of any size)
//! ```
//!
//! Read [`get`] first (copies a selection to a file), then [`film`] (pictures, numbered or as a film). [`bounded_scan`] reads a
//! selection part by part in bounded memory; [`statistics`], [`region_statistics`] and [`mesh`] use it. This crate depends on neither servers nor
//! clients.

pub mod bounded_scan;
pub mod coordinate_selection;
pub mod film;
pub mod get;
pub mod mesh;
pub mod output;
pub mod picture;
pub mod read_slabs;
pub mod region_statistics;
pub mod row_pictures;
pub mod selection_text;
pub mod statistics;

pub use output::FileKind;
