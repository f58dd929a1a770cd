//! What the data is: element types, axes, selections, levels, blocks, wants, targets, errors, and the
//! [`Source`] trait through which every stage of the data path gives blocks to the next.
//!
//! This crate is pure: no sockets, files, clocks, threads or randomness. It never decodes a format and
//! never draws. Read [`Dataset`] first, then [`Source`].
//!
//! Order of axes: C order, last axis fastest, `[t, z, y, x]` where an array has these axes.

mod axis;
mod block;
mod dataset;
mod dtype;
mod error;
mod level;
mod selection;
mod source;
mod target;
mod want;

pub use axis::{Axis, AxisKind, Coordinates};
pub use block::{Block, BlockKey, Content, ValueRange};
pub use dataset::{
    ArrayInfo, Attribute, Attributes, Dataset, DatasetId, Decoding, Generation, LeftOut, MAX_LEVELS, Meaning,
};
pub use dtype::{ByteOrder, DType, ElementType, Scalar};
pub use error::{Error, ErrorKind, Result, Retry};
pub use level::{
    Affine, Level, LevelOrigin, MAX_BLOCK_BYTES, MAX_CHUNK_BLOCK_BYTES, MIN_BLOCK_BYTES, choose_blocks,
};
pub use selection::{AxisRange, Index, Indexing, MAX_AXES, Resolved, Selection};
pub use source::{Completion, Completions, ReadRequest, Source};
pub use target::{Region, Target, c_strides, cut_by_grid};
pub use want::{Priority, Urgency, Want, WantHandle, want};
