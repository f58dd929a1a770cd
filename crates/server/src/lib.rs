//! The server: one port for connections, admission, operations, Zarr over HTTP and the viewer's page.
//!
//! ```text
//!   port --> http, zarr (HTTP)  -------------------+
//!     |                                            v
//!     +----> connection (wire protocol) --> ops --> exports --> stack (an open data set)
//!              connections, answer_memory: the limits of clients and memory
//!              token, guests, identity, public_address: authorization and addresses
//!              response_compression: compression of responses
//!              reverse: connections to waiting clients
//!              rooms: services of further data sets
//! ```
//!
//! Read [`ops`] first (an operation and a call of it), then [`exports`] (the data sets by name, which an
//! [`Opener`](exports::Opener) opens) and [`port`] (the protocols on a port). The origin of the data and the set of operations are
//! chosen by the crate `node`.

pub mod answer_memory;
pub mod connection;
pub mod connections;
pub mod exports;
pub mod geometry_origin;
pub mod guests;
pub mod http;
pub mod identity;
pub mod metrics;
pub mod ops;
pub mod peers;
pub mod port;
pub mod public_address;
pub(crate) mod response_compression;
pub mod reverse;
pub mod rooms;
pub mod stack;
pub mod token;
pub mod zarr;
