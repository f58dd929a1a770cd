//! Combines the stages into one running Corridor process.
//!
//! This crate puts the other stages together and adds what only a whole process has: a port, a token, a memory
//! budget, folders of the user. It reads no format (it writes those of `get`), draws nothing and decides nothing about
//! views. Read [`assemble`] first (the stack from data to whoever asks), then [`node`] (a server that offers stacks).
//!
//! ```text
//!   url -> assemble -> exports -> ops -> connection -> port <- http
//!            |  ^                  gate       lobby      |
//!  catalogue, servers, remote, dial  <-- other nodes ---'
//!                              paths: remembered by dial and connection
//! ```

mod again;
pub mod asks;
pub mod assemble;
mod assets;
mod base64;
mod by_size;
pub mod called;
pub mod catalogue;
mod colormaps;
pub mod connection;
pub mod demo;
pub mod describe;
mod descriptors;
pub mod dial;
pub mod exports;
pub mod film;
mod folder;
mod follow;
pub mod front;
pub mod gate;
pub mod get;
mod growing;
mod http;
pub mod identity;
mod in_vain;
mod interpret;
pub mod join;
mod landing;
mod listen;
pub mod lobby;
pub mod memory;
pub mod mesh;
pub mod metrics;
pub mod node;
pub mod offer;
pub mod ops;
mod outlet;
mod output;
pub mod paths;
mod patience;
pub mod peers;
pub mod pick;
pub mod picture;
pub mod places;
pub mod port;
pub mod receiver;
pub mod remote;
mod restoring;
pub mod runtime;
pub mod scan;
pub mod sel;
pub mod servers;
pub mod slabs;
pub mod ssh;
mod statistics;
pub mod token;
mod under_way;
mod upstream;
pub mod url;
#[cfg(test)]
mod vectors;
pub mod view;
mod world;
pub mod zarr;

pub use output::FileKind;
