//! Reaching data elsewhere: connections that are made, kept and made again, and sources over them.
//!
//! Read [`url`] first (locations as people write them), then [`dial`] (the connection to one server) and [`remote`] (a data
//! set of that server as a source). [`servers`] reads the same data from several servers, [`catalogue`] makes one data set
//! of many; [`ssh`] and [`reverse`] reach servers that have no port of their own. [`paths`] remembers how the network
//! paths to other hosts are. This crate serves nobody, and opens no file of data.

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
