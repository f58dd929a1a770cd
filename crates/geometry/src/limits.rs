//! Limits of geometry: files are foreign, and each picture draws all of a layer.

/// Largest file of a geometry, bytes: a surface of 10 million triangles in binary PLY.
pub const MAX_FILE_BYTES: u64 = 256 << 20;
/// Largest JSON text of a geometry, bytes.
pub const MAX_JSON_BYTES: usize = 64 << 20;
/// Most memory of the tree of a JSON text, bytes: sixteen times the largest text, or some two million positions.
pub const MAX_JSON_TREE_BYTES: usize = 1 << 30;
/// Most bytes that the compressed or encoded arrays of one file may decode to, together.
pub const MAX_DECODED_BYTES: usize = 1 << 30;
/// Most vertices of a geometry: 384 MiB of positions.
pub const MAX_VERTICES: usize = 16 << 20;
/// Most triangles of a geometry, and most segments of lines.
pub const MAX_TRIANGLES: usize = 32 << 20;
/// Most named sets of values by vertex that are kept; the others are left out with a note.
pub const MAX_VALUE_NAMES: usize = 32;
/// Most values by vertex of all names together: 512 MiB.
pub const MAX_VALUES: usize = 128 << 20;
/// Most text labels of a geometry; the others are left out with a note.
pub const MAX_TEXTS: usize = 4_096;
/// Longest text label, bytes; longer ones are cut.
pub const MAX_TEXT_BYTES: usize = 120;
