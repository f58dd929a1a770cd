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

pub mod assemble;
pub mod demo;
pub mod describe;
mod growing;
mod interpret;
pub mod join;
pub mod memory;
pub mod node;
pub mod operations;
pub mod server;
mod servers;
pub mod ssh;
#[cfg(test)]
mod vectors;
pub mod view;
