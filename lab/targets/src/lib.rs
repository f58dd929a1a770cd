//! Bodies of the fuzz targets: each takes foreign bytes. An error is a correct result; a panic, a hang and memory beyond
//! the limit are failures. `tools/fuzz.sh` seeds and runs the targets, `lab/tests/fuzz_seeds.rs` runs their bodies on the
//! seeds that are kept.
//!
//! ```text
//! files         a file of one format
//! pair          a header with files of data beside it
//! zarr          a directory of files
//! chunk         a stored chunk and its filters
//! frames        bytes received on a connection
//! server        the server's state machine, and a script of what the client sends
//! client        the client's state machine, and a script of what the server sends
//! datagrams     datagrams and records of the link `lossy`, at both ends
//! operations    parameters and answers of operations
//! description   description of a server's data, and its use by a viewer
//! talk          a view and notes of participants in a session
//! geometry      a file of geometry
//! texts         selections and locations as people type them
//! ```

#![expect(clippy::disallowed_methods, reason = "every script starts at the present time")]

pub mod chunk;
pub mod client;
pub mod datagrams;
pub mod description;
pub mod files;
pub mod frames;
pub mod geometry;
pub mod operations;
pub mod pair;
mod script;
pub mod server;
pub mod talk;
pub mod texts;
pub mod zarr;
