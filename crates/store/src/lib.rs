//! Storage of the data: file formats, synthetic fields, and levels made on demand.
//!
//! This crate turns a location into an [`array::Source`]. It never draws, never talks to a network, and never writes beside the data;
//! it writes only to the cache on disk, and new HDF5 files ([`create_hdf5`]). Read [`Format`] first (the trait of file formats), then [`FormatSource`]
//! (which turns a format into a source).

mod cache;
mod format;
mod formats;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod io;
mod options;
mod pyramid;
mod schedule;

pub use cache::side_cache::{MAX_ENTRY_BYTES, SIDE_CACHE_BYTES, SideCache};
pub use format::{Access, CancelFlag, Format};
pub use formats::hdf5::{NewHdf5, create_hdf5};
pub use formats::objects::{ObjectReader, ObjectsDescription, open_objects};
pub use formats::open::{open, open_format};
pub use formats::recognize::{DetachedHeader, recognize};
pub use io::byte_store::{ByteStore, FileBytes, IoCounts, process_io_counts};
pub use io::gzip::GzipBytes;
pub use io::window::FlatSource;
pub use options::{LongTaskProgress, OnProgress, OpenOptions};
pub use pyramid::{BLOCKS_AT_ONCE, COARSEST_SIDE, KEPT_PERCENT, Levels, PIECE_BYTES, PIECES_AT_ONCE};
pub use schedule::jobs::MAX_BYTES_IN_HAND;
pub use schedule::pool::{on_pool, soon};
pub use schedule::scratch::{DEFAULT_SCRATCH_BYTES, Scratch};
pub use schedule::source::FormatSource;
pub use schedule::workers::{MAX_QUEUED_JOBS, step_back};
