//! The commands, one file each.

#[cfg(feature = "lab")]
pub(crate) mod bench;
pub(crate) mod cache;
pub(crate) mod demo;
pub(crate) mod get;
pub(crate) mod help;
pub(crate) mod info;
#[cfg(feature = "lab")]
pub(crate) mod lab;
pub(crate) mod path;
pub(crate) mod render;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod view;
#[cfg(not(feature = "lab"))]
pub(crate) mod without_lab;
