//! Blocks: the unit of caching and transfer.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{ArrayInfo, DatasetId, Generation, Level, Scalar, Selection};

/// Key of one block: a box of one array at one level (the block grid includes time).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BlockKey {
    /// The data set.
    pub dataset: DatasetId,
    /// Generation of the data set.
    pub generation: Generation,
    /// Number of the array in the description.
    pub array: u32,
    /// Number of the level in the array's description.
    pub level: u8,
    /// Linear index in the level's block grid, C order.
    pub index: u64,
}

/// Elements that a block covers and their size in bytes; returned by
/// [`Dataset::block`](crate::Dataset::block).
#[derive(Clone, Debug, PartialEq)]
pub struct BlockInfo<'a> {
    /// The array it is a part of.
    pub array: &'a ArrayInfo,
    /// The level it is a part of.
    pub level: &'a Level,
    /// Elements of the block, clipped to the shape of the level.
    pub selection: Selection,
    /// Bytes of these elements; the memory cost of a covered block.
    pub size_bytes: u64,
}

/// Smallest and largest *stored* value among those that are present (neither NaN nor missing).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueRange {
    /// Smallest.
    pub min: Scalar,
    /// Largest.
    pub max: Scalar,
}

/// Answer of a source for one block.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// The elements, C order, as stored (the array's dtype and byte order), clipped to the level's shape.
    Data {
        /// Shared and immutable.
        bytes: Bytes,
        /// Range of the values present; `None` when every value is missing or NaN.
        range: Option<ValueRange>,
    },
    /// The level has no values here (sparse levels, AMR): the ancestor is used instead.
    NotCovered,
}

/// Block with its content, as caches keep it and renderers draw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Key of the block.
    pub key: BlockKey,
    /// Data of the block, or the fact that its level does not cover it.
    pub content: Content,
}

impl Block {
    /// Memory it holds, bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        match &self.content {
            Content::Data { bytes, .. } => bytes.len(),
            Content::NotCovered => 0,
        }
    }

    /// The bytes, where covered.
    #[must_use]
    pub fn bytes(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Data { bytes, .. } => Some(bytes),
            Content::NotCovered => None,
        }
    }
}
