//! Storage of the data: file formats, synthetic fields, and levels made on demand.
//!
//! This crate turns a location into an [`array::Source`]. It never draws, never talks to a network, and never
//! writes beside the data; the one new file it can make is that of [`create_hdf5`]. Read [`Format`] first
//! (the trait of file formats), then [`FormatSource`] (which turns a format into a source).

mod ahead;
mod amr;
mod byte_store;
mod cf;
mod chunked;
mod describe;
mod flat;
mod flat_file;
mod format;
mod gzip;
mod hdf5;
mod jobs;
mod kept;
mod labels;
mod levels;
mod mgh;
mod netcdf3;
mod nifti;
mod npy;
mod nrrd;
mod once;
mod open;
mod options;
mod pieces;
mod pool;
mod portions;
mod raw;
mod recognise;
mod scratch;
mod shuffle;
mod side;
mod source;
mod synthetic;
mod text;
mod together;
mod units;
mod window;
mod workers;
mod zarr;

pub use byte_store::{ByteStore, FileBytes, IoCounts, process_io_counts};
pub use format::{Access, Cancel, Format};
pub use gzip::GzipBytes;
pub use hdf5::{NewHdf5, create_hdf5};
pub use jobs::MAX_BYTES_IN_HAND;
pub use levels::{BLOCKS_AT_ONCE, COARSEST_SIDE, KEPT_PERCENT, Levels, PIECE_BYTES, PIECES_AT_ONCE};
pub use open::{open, open_format};
pub use options::{OnProgress, OpenOptions, Progress};
pub use pool::{on_pool, soon};
pub use recognise::{Description, recognise};
pub use scratch::{DEFAULT_SCRATCH_BYTES, Scratch};
pub use side::{MAX_ENTRY_BYTES, SIDE_CACHE_BYTES, SideCache};
pub use source::FormatSource;
pub use window::Flat;
pub use workers::{MAX_QUEUED_JOBS, step_back};
