//! Safe interface of the C library: one lock, handles that are released on drop, errors instead of codes.
//!
//! This folder is the only place of the crate with `unsafe`. It returns files, links, attributes, data sets and data types as
//! plain values; their interpretation is left to the modules above.
//!
//! HDF5 is not thread-safe: every call happens under [`hdf5_metno_sys::LOCK`], which any other user of the library in the process
//! shares. It is held only for look-ups and for filters without a decoder of this crate; bulk bytes are read and decoded without it.
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
pub(super) use dataset::{DatasetInfo, DatasetLayout, PipelineFilter, TextForm, UNLIMITED, trim_text};
pub(super) use datatype::{CompoundMember, Datatype, TextEnd};
pub(super) use file::{GroupLink, Hdf5File, LinkTarget, Object, ObjectKind, ObjectToken};
pub(super) use mappings::{DataspaceSelection, HyperslabAxis, VirtualMapping};
