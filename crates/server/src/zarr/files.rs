//! Shapes of arrays as their files define them: those of blocks, except for texts, whose bytes are not an axis here but
//! one element.

use array::{ArrayInfo, Level, Meaning};

/// Size of a character of fixed-length Unicode text, in bytes.
pub(super) const CHARACTER_BYTES: u64 = 4;

/// Returns the size of one text in bytes, if the elements are texts.
pub(super) fn text_bytes(array: &ArrayInfo, level: &Level) -> Option<u64> {
    level.shape.last().copied().filter(|_| array.meaning == Meaning::Text)
}

fn is_text(array: &ArrayInfo) -> usize {
    usize::from(array.meaning == Meaning::Text)
}

/// Returns the number of elements per axis.
pub(super) fn shape<'a>(array: &ArrayInfo, level: &'a Level) -> &'a [u64] {
    &level.shape[..level.shape.len() - is_text(array)]
}

/// Returns the number of elements per axis of a chunk.
pub(super) fn chunk_shape<'a>(array: &ArrayInfo, level: &'a Level) -> &'a [u64] {
    &level.block[..level.block.len() - is_text(array)]
}

/// Returns the number of chunks per axis.
pub(super) fn grid(array: &ArrayInfo, level: &Level) -> Vec<u64> {
    let axes = shape(array, level).iter().zip(chunk_shape(array, level));
    axes.map(|(&n, &chunk)| n.div_ceil(chunk.max(1))).collect()
}

/// Returns the size of a chunk in bytes; chunks at the edges of the array are padded to it.
pub(super) fn chunk_bytes(array: &ArrayInfo, level: &Level) -> u64 {
    let text = text_bytes(array, level).map(|bytes| bytes.saturating_mul(CHARACTER_BYTES));
    let item_bytes = text.unwrap_or(array.dtype.size_bytes() as u64);
    chunk_shape(array, level).iter().fold(item_bytes, |n, &b| n.saturating_mul(b))
}
