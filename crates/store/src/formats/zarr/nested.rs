//! Shards within a chunk: shards of shards, and shards after other codecs. Such a chunk is read as a whole and assembled from its inner
//! chunks.

use array::{Error, Result};
use serde_json::Value;

use super::filters::{ElementForm, FilterChain};
use super::packing::BytesCodecs;
use super::shards::Sharding;
use crate::formats::common::chunked::grid_position;

/// Deepest nesting of shards within a chunk: a read takes memory for one chunk of each level.
const MAX_NESTED_SHARDS: usize = 2;

/// Layout of a chunk that consists of nested shards.
#[derive(Debug)]
pub(super) struct NestedShards {
    shards: Sharding,
    /// Elements per axis of the inner chunks.
    chunk: Vec<u64>,
    packing: BytesCodecs,
    chain: FilterChain,
}

impl NestedShards {
    /// Parses the sharding codec of a chunk of `shape` elements, which lies in `depth` other nested shards.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported` for codecs that cannot be decoded.
    pub(super) fn of(
        codec: &Value,
        fill_value: Option<&Value>,
        form: ElementForm,
        shape: &[u64],
        depth: usize,
    ) -> Result<Self> {
        if depth >= MAX_NESTED_SHARDS {
            return Err(Error::unsupported(format!(
                "shards nested more than {MAX_NESTED_SHARDS} deep in a chunk"
            )));
        }
        let (chunk, shards, mut codecs) = Sharding::of(codec, shape)?;
        let packing = BytesCodecs::take_from(&mut codecs);
        let chain = FilterChain::of_v3(&codecs, fill_value, form, &chunk, depth + 1)?;
        Ok(Self { shards, chunk, packing, chain })
    }

    /// Codecs of the elements of the inner chunks.
    pub(super) fn chain(&self) -> &FilterChain {
        &self.chain
    }

    /// Size of the index, bytes.
    pub(super) fn index_bytes(&self) -> usize {
        self.shards.index_bytes()
    }

    /// Decodes a chunk of `shape` elements to C order.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(super) fn undo(&self, stored: &[u8], shape: &[u64]) -> Result<Vec<u8>> {
        let too_large = || Error::too_large("a chunk larger than the memory");
        let fill = self.chain.fill();
        let elements = element_count(shape).ok_or_else(too_large)?;
        let inner =
            element_count(&self.chunk).and_then(|n| self.chain.stored_bytes(n)).ok_or_else(too_large)?;
        let bytes = elements.checked_mul(fill.len()).ok_or_else(too_large)?;
        let mut out: Vec<u8> = fill.iter().copied().cycle().take(bytes).collect();
        for (number, chunk) in (0..).zip(self.shards.chunks_in(stored)?) {
            let Some(chunk) = chunk else { continue };
            let elements = self.chain.undo(self.packing.undo(chunk.to_vec(), inner)?, &self.chunk)?;
            self.put(&elements, &grid_position(number, self.shards.grid()), shape, &mut out);
        }
        Ok(out)
    }

    /// Copies a chunk to its position, row by row along the last axis.
    fn put(&self, chunk: &[u8], position: &[u64], shape: &[u64], out: &mut [u8]) {
        let item_bytes = self.chain.fill().len();
        let mut rows = self.chunk.clone();
        let row = rows.last_mut().map_or(1, |last| std::mem::replace(last, 1));
        let row_bytes = usize::try_from(row).unwrap_or(usize::MAX).saturating_mul(item_bytes).max(1);
        for (number, bytes) in (0..).zip(chunk.chunks_exact(row_bytes)) {
            let within = grid_position(number, &rows);
            let axes = position.iter().zip(&self.chunk).zip(&within).zip(shape);
            let start = axes.fold(0, |n, (((&p, &c), &w), &size)| n * size + p * c + w);
            let start = usize::try_from(start).unwrap_or(usize::MAX).saturating_mul(item_bytes);
            let place = out.get_mut(start..).and_then(|rest| rest.get_mut(..bytes.len()));
            place.into_iter().for_each(|place| place.copy_from_slice(bytes));
        }
    }
}

/// Number of elements of a shape; `None` if it exceeds the address space.
pub(super) fn element_count(shape: &[u64]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, &size| n.checked_mul(usize::try_from(size).ok()?))
}
