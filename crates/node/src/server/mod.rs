//! One port: connections, admission, Zarr over HTTP, the viewer's page, tokens, identity.

pub mod admission;
pub(crate) mod assets;
pub(crate) mod colormaps;
pub mod connection;
pub mod connections;
pub mod exports;
pub(crate) mod folder_scan;
pub(crate) mod http;
pub mod identity;
pub(crate) mod listen;
pub mod metrics;
pub(crate) mod open_files;
pub(crate) mod operation_limit;
pub mod ops;
pub mod peers;
pub mod port;
pub mod public_address;
pub(crate) mod response_compression;
pub mod reverse;
pub mod stack;
pub mod token;
pub(crate) mod write_timeout;
pub mod zarr;
