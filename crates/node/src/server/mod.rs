//! One port: connections, admission, Zarr over HTTP, the viewer's page, tokens, identity.

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
