//! Files that are written: copies, pictures, films, meshes.

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
