//! Tests of nodes over real sockets on loopback: served data equal the source, and bad input is refused with an error.

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
mod geometry;
mod hostile;
mod opening;
mod operations;
mod paths;
mod reach;
mod remote;
mod servers;
mod together;
mod viewer;
mod web;
