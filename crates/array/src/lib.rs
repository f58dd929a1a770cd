//! Data model: element types, axes, selections, levels, blocks, wants, targets, errors, and the [`Source`] trait through which every
//! stage of the data path gives blocks to the next.
//!
//! This crate is pure: no sockets, files, clocks, threads or randomness. It never decodes a format and never draws. Read [`Dataset`]
//! first, then [`Source`].
//!
//! Order of axes: C order, last axis fastest, `[t, z, y, x]` where an array has these axes.

#[cfg(feature = "conformance")]
pub mod conformance;
mod description;
mod error;
mod reading;
pub mod time;
pub mod values;

pub use description::anatomy::{ANATOMICAL_SPACE, SPACE_ATTRIBUTE};
pub use description::attribute::{Attribute, Attributes, MAX_ATTRIBUTE_BYTES, MAX_ATTRIBUTE_DEPTH};
pub use description::axis::{Axis, AxisKind, Coordinates, kind_of_degrees};
pub use description::dataset::{
    ArrayInfo, Dataset, DatasetId, Decoding, Generation, LeftOut, MAX_LEVELS, MAX_TEXT_BYTES,
    MAX_TEXT_ELEMENTS, Meaning,
};
pub use description::grids::{GRID_COLUMNS, GRIDS_ATTRIBUTE, GridBox};
pub use description::level::{
    Affine, Level, LevelOrigin, MAX_BLOCK_BYTES, MAX_CHUNK_BLOCK_BYTES, MIN_BLOCK_BYTES, choose_blocks,
};
pub use description::storage::{Filter, Group, Storage};
pub use error::{Error, ErrorKind, Result, Retry};
/// The half-precision float that [`with_element!`] names.
pub use half::f16 as F16;
pub use reading::block::{Block, BlockInfo, BlockKey, Content, ValueRange};
pub use reading::gather::{BlockPart, BlockParts, WINDOW_BLOCKS, expect_target, gather};
pub use reading::long_work::{LongTask, LongWork, WorkProgress};
pub use reading::packed::{PackedChunk, Packing};
pub use reading::selection::{AxisRange, IndexEntry, Indexing, MAX_AXES, PerAxis, ResolvedIndex, Selection};
pub use reading::source::{Completion, Completions, ReadEnds, ReadRequest, Source};
pub use reading::target::{Loan, ReadPart, ReadPartBytes, Region, Target, c_strides, cut_by_grid};
pub use reading::want::{Priority, Urgency, Want, WantHandle, want};
pub use values::decode::decode;
pub use values::dtype::{ByteOrder, DType, ElementType, Scalar};
pub use values::element::{Element, elements};
pub use values::float::{float_of_text, float_text, same_float, same_floats};
pub use values::sample::{Padding, ValueSample, ValueSampler, mix64};
