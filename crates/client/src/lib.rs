//! The client: connections to servers that are opened on demand and reopened after failures, and sources over them.
//!
//! ```text
//!   url (locations)
//!    |
//!    v
//!   dial, ssh, reverse (one connection) --> remote (a data set as a source) --> servers (replicas as one source)
//!    |                                        |  reading: received data           |
//!   paths (remembered network paths)          v                                   v
//!                                           requests, remote_call (operations)  catalogue (many data sets as one source)
//! ```
//!
//! Read [`url`] first (locations as users write them), then [`dial`] (the connection to one server) and [`remote`] (a data set
//! of that server as a source). [`servers`] reads the same data from several servers, [`catalogue`] joins many data sets into
//! one; [`ssh`] and [`reverse`] reach servers without an open port. [`paths`] stores measurements of the network paths to other
//! hosts. This crate contains no server, and opens no data files.

pub mod catalogue;
pub mod dial;
pub mod directories;
pub mod paths;
pub mod peers;
pub mod random;
pub mod reading;
pub mod receive_limit;
pub mod remote;
pub mod remote_call;
pub mod requests;
pub mod reverse;
pub mod running_servers;
pub mod servers;
pub mod ssh;
pub mod text;
pub mod upstream;
pub mod url;
