//! Nodes on real sockets, on loopback: what is served equals what is there, and bad input ends politely.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

extern crate corridor_node as node;

mod catalogue;
mod chains;
mod common;
mod compression;
mod copies;
mod counts;
mod crowd;
mod early;
mod hostile;
mod operations;
mod paths;
mod reach;
mod remote;
mod servers;
mod viewer;
mod web;
