//! The C library behind safe calls: one lock, handles that close themselves, errors instead of codes.
//!
//! This folder is the only place of the crate with `unsafe`. It knows files, links, attributes, data sets and
//! element types as the library tells them, and gives plain values; what they mean is decided elsewhere.
//!
//! HDF5 is not thread-safe: every call happens under [`hdf5_metno_sys::LOCK`], which any other user of the
//! library in the process shares. It is only held to look things up and for filters that have no decoder
//! of ours; bulk bytes are read and decoded without it.
#![expect(unsafe_code, reason = "HDF5 is a C library")]

mod attribute;
mod calls;
mod chunks;
mod create;
mod dataset;
mod datatype;
mod driver;
mod file;
mod heap;
mod mappings;

pub(super) use attribute::AttributeValue;
pub(super) use chunks::ChunkLocation;
pub use create::{NewHdf5, create_hdf5};
pub(super) use dataset::{DatasetInfo, DatasetLayout, PipelineFilter, TextForm, trim_text};
pub(super) use datatype::{CompoundMember, Datatype, TextEnd};
pub(super) use file::{GroupLink, Hdf5File, LinkTarget, Object, ObjectKind, ObjectToken};
pub(super) use mappings::{DataspaceSelection, HyperslabAxis, VirtualMapping};
