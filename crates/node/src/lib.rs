//! Combines the other crates into one running Corridor process.
//!
//! ```text
//!   location (url) --> assemble (opens sources, memory budget) --> stack
//!                                                                    |
//!   operations, join, pick, measure, ... (handlers) --> node <-------+
//!                                                        |
//!                              view (node with a session), demo, ssh (standard input and output)
//! ```
//!
//! This crate opens sources, divides the memory, registers the operations, and starts servers and viewing nodes. It contains no
//! file format, no renderer and no logic of views. Read [`assemble`] first (the stack from the data to their readers), then
//! [`node`] (a server that serves stacks).

// Futures of pictures to save contain those of the renderer and of its graphics library.
#![recursion_limit = "256"]

pub mod assemble;
pub mod demo;
pub mod describe;
pub mod geometry;
mod growing;
mod handlers;
pub mod layers;
pub mod memory;
pub mod node;
mod opening;
pub mod operations;
pub mod relay;
pub mod ssh;
pub mod take_part;
#[cfg(test)]
mod vectors;
pub mod view;
mod viewed;
