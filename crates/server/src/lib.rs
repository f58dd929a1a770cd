//! One port for everything that a server answers: connections, admission, operations, Zarr over HTTP, the viewer's page,
//! tokens, identity.
//!
//! ```text
//!   exports -> ops -> connection -> port <- http, zarr
//!     stack   gate      lobby
//! ```
//!
//! Read [`ops`] first (an operation and a call of it), then [`exports`] (the data sets by name, which an
//! [`Opener`](exports::Opener) opens) and [`port`] (which protocols meet there). This crate decides neither where data
//! come from nor which operations there are.

pub mod admission;
pub mod connection;
pub mod connections;
pub mod exports;
pub mod http;
pub mod identity;
pub mod metrics;
pub mod ops;
pub mod peers;
pub mod port;
pub mod public_address;
pub(crate) mod response_compression;
pub mod reverse;
pub mod stack;
pub mod token;
pub mod zarr;
