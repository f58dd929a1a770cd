//! Combines the stages into one running Corridor process.
//!
//! This crate puts the other stages together: it opens sources, divides the memory, lists the operations, and starts
//! servers and viewing nodes. It reads no format, draws nothing and decides nothing about views. Read [`assemble`] first (the
//! stack from data to whoever asks), then [`node`] (a server that offers stacks).
//!
//! ```text
//!   url -> assemble -> server (exports, operations, port)
//!             |  ^              |
//!            client  <-- other nodes
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
mod servers;
pub mod ssh;
#[cfg(test)]
mod vectors;
pub mod view;
