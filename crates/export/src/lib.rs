//! Files that are written from any source: copies of arrays, pictures, films, meshes.
//!
//! This crate knows no servers and no clients. Read [`get`] first (a selection becomes a file), then [`film`] (pictures,
//! numbered or as a film). [`bounded_scan`] reads a selection part by part in bounded memory; [`statistics`] and [`mesh`]
//! stand on it.

pub mod bounded_scan;
pub mod coordinate_selection;
pub mod film;
pub mod get;
pub mod mesh;
pub mod output;
pub mod picture;
pub mod read_slabs;
pub mod selection_text;
pub mod statistics;

pub use output::FileKind;
