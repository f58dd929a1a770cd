//! Data model: element types, axes, selections, levels, blocks, wants, targets, errors, and the [`Source`]
//! trait through which every stage of the data path gives blocks to the next.
//!
//! This crate is pure: no sockets, files, clocks, threads or randomness. It never decodes a format and
//! never draws. Read [`Dataset`] first, then [`Source`].
//!
//! Order of axes: C order, last axis fastest, `[t, z, y, x]` where an array has these axes.

mod attribute;
mod axis;
mod block;
pub mod calendar;
#[cfg(feature = "conformance")]
pub mod conformance;
mod dataset;
mod decode;
mod dtype;
mod element;
mod error;
mod float;
mod gather;
mod grids;
mod growth;
mod level;
mod long_work;
mod packed;
mod selection;
mod source;
mod spread;
pub mod stats;
mod storage;
mod target;
pub mod time;
mod want;

pub use attribute::{Attribute, Attributes, MAX_ATTRIBUTE_BYTES, MAX_ATTRIBUTE_DEPTH};
pub use axis::{Axis, AxisKind, Coordinates, kind_of_degrees};
pub use block::{Block, BlockInfo, BlockKey, Content, ValueRange};
pub use dataset::{
    ArrayInfo, Dataset, DatasetId, Decoding, Generation, LeftOut, MAX_LEVELS, MAX_TEXT_BYTES,
    MAX_TEXT_ELEMENTS, Meaning,
};
pub use decode::decode;
pub use dtype::{ByteOrder, DType, ElementType, Scalar};
pub use element::{Element, elements};
pub use error::{Error, ErrorKind, Result, Retry};
pub use float::{float_of_text, float_text, same_float, same_floats};
pub use gather::{Piece, Pieces, WINDOW_BLOCKS, expect_target, gather};
pub use grids::{GRID_COLUMNS, GRIDS_ATTRIBUTE, GridBox};
/// The half-precision float that [`with_element!`] names.
pub use half::f16 as F16;
pub use level::{
    Affine, Level, LevelOrigin, MAX_BLOCK_BYTES, MAX_CHUNK_BLOCK_BYTES, MIN_BLOCK_BYTES, choose_blocks,
};
pub use long_work::{LongWork, Share, Task};
pub use packed::{PackedChunk, Packing};
pub use selection::{AxisRange, Index, Indexing, MAX_AXES, PerAxis, Resolved, Selection};
pub use source::{Completion, Completions, ReadEnds, ReadRequest, Source};
pub use spread::{Padding, Sampler, Spread, mix64};
pub use storage::{Filter, Group, Storage};
pub use target::{Loan, Part, PartBytes, Region, Target, c_strides, cut_by_grid};
pub use want::{Priority, Urgency, Want, WantHandle, want};
