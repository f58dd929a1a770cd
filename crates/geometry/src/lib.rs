//! Geometry that is drawn beside arrays: surfaces of triangles, lines, points and text labels.
//!
//! [`read`] turns the bytes of a file into a [`Geometry`]; nothing here opens a file. Readers of binary formats are
//! written here because they read foreign bytes: counts are compared with the bytes that are left before memory is
//! reserved, and each refusal is a sentence. XML, CSV, JSON, zlib and base64 are read by libraries.
//!
//! # Spaces
//! Positions are those of the file, in the world space of the arrays beside it: millimeters in RAS for medical data.
//! Three kinds of files need more:
//! - Files that state `SPACE=LPS` in a comment (3D Slicer) have x and y negated.
//! - FreeSurfer surfaces are relative to the middle of their volume; the `cras` of their footer is added, unless the
//!   footer says that positions are in scanner space already. The same holds for GIfTI files with `VolGeomC_R` metadata
//!   whose spaces are unknown.
//! - GIfTI positions are multiplied with the matrix of their coordinate system if that leads from an unknown space to a
//!   known one.
//!
//! GeoJSON, shapefiles and tables with columns `longitude` and `latitude` have [`GeometrySpace::Geographic`] positions: x is
//! the longitude and y the latitude, both in degrees, as in arrays with these coordinates.

mod bytes;
mod formats;
mod json;
mod limits;
mod model;
mod read;

pub use limits::{
    MAX_DECODED_BYTES, MAX_FILE_BYTES, MAX_JSON_BYTES, MAX_JSON_TREE_BYTES, MAX_TEXT_BYTES, MAX_TEXTS,
    MAX_TRIANGLES, MAX_VALUE_NAMES, MAX_VALUES, MAX_VERTICES,
};
pub use model::{Geometry, GeometrySpace, VertexText, VertexValues};
pub use read::{EXTENSIONS, is_geometry_name, read};
