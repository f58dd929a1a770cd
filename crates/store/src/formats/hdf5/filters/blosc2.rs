//! Frames of Blosc2, as its HDF5 filter stores them: a header, one chunk, and an index of chunks.
//!
//! A chunk of several axes consists of blocks of as many axes, padded to whole blocks; the header's `b2nd` entry has their shapes.

use array::{Error, Result};

use super::blosc::BloscChunk;
use super::empty_buffer;

/// Offsets of fields in the header. Its numbers are big-endian.
const HEADER_SIZE_AT: usize = 11;
const CHUNKS_SIZE_AT: usize = 39;
const NAMES_AT: usize = 87;
const MAGIC_AT: usize = 2;
const MAGIC: &[u8] = b"b2frame\0";
/// Most axes of a Blosc2 chunk.
const MAX_AXES: usize = 16;

fn bad(what: &str) -> Error {
    Error::corrupt(format!("expected a frame of Blosc2, found {what}"))
}

fn four(bytes: &[u8], at: usize) -> Result<usize> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    let found = u32::from_be_bytes(*found.ok_or_else(|| bad("its end too early"))?);
    usize::try_from(found).map_err(|_| bad("a size that is too large"))
}

fn eight(bytes: &[u8], at: usize) -> Result<usize> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
    let found = u64::from_be_bytes(*found.ok_or_else(|| bad("its end too early"))?);
    usize::try_from(found).map_err(|_| bad("a size that is too large"))
}

/// Decodes the single chunk of a frame.
///
/// # Errors
/// `Corrupt` unless the output has `expected` bytes, `Unsupported` for features that are not decoded here.
pub(super) fn decode(packed: &[u8], expected: usize) -> Result<Vec<u8>> {
    if packed.get(MAGIC_AT..MAGIC_AT + MAGIC.len()) != Some(MAGIC) {
        return Err(bad("other bytes"));
    }
    let header_bytes = four(packed, HEADER_SIZE_AT)?;
    let header = packed.get(..header_bytes).ok_or_else(|| bad("its end too early"))?;
    let mut out = empty_buffer(expected)?;
    out.resize(expected, 0);
    match chunk_place(packed, header_bytes)? {
        FrameChunk::Zeros => {}
        FrameChunk::NotANumber => {
            let item_bytes = four(header, 48)?;
            let (single, double) = (f32::NAN.to_le_bytes(), f64::NAN.to_le_bytes());
            let value: &[u8] = match item_bytes {
                4 => &single,
                8 => &double,
                _ => return Err(bad("an unknown special value")),
            };
            out.chunks_mut(item_bytes).for_each(|item| item.copy_from_slice(&value[..item.len()]));
        }
        FrameChunk::At(at) => {
            let chunk = BloscChunk::parse(packed.get(at..).ok_or_else(|| bad("a chunk beyond its end"))?)?;
            match blocks_of(header)? {
                Some(blocks) => scatter(&chunk, &blocks, &mut out)?,
                None if chunk.size_bytes == expected => {
                    let block_bytes = chunk.block_bytes;
                    chunk.for_each_block(&mut |number, block| {
                        let place =
                            out.get_mut(number * block_bytes..).and_then(|o| o.get_mut(..block.len()));
                        place.ok_or_else(|| bad("more bytes than expected"))?.copy_from_slice(block);
                        Ok(())
                    })?;
                }
                None => return Err(bad(&format!("{} bytes instead of {expected}", chunk.size_bytes))),
            }
        }
    }
    Ok(out)
}

enum FrameChunk {
    At(usize),
    Zeros,
    NotANumber,
}

/// Finds the one chunk: the index of chunks, itself a chunk, follows the chunks.
fn chunk_place(packed: &[u8], header_bytes: usize) -> Result<FrameChunk> {
    let index_at = header_bytes.checked_add(eight(packed, CHUNKS_SIZE_AT)?);
    let index = index_at.and_then(|at| packed.get(at..)).ok_or_else(|| bad("its end too early"))?;
    let index = BloscChunk::parse(index)?;
    let mut place = [0; 8];
    if index.size_bytes != place.len() {
        return Err(bad("several chunks"));
    }
    index.for_each_block(&mut |number, block| {
        let at = number * index.block_bytes;
        if let Some(part) = place.get_mut(at..at + block.len()) {
            part.copy_from_slice(block);
        }
        Ok(())
    })?;
    let [.., kind] = place;
    match kind {
        0..=0x7f => {
            let at = usize::try_from(u64::from_le_bytes(place)).ok();
            Ok(FrameChunk::At(
                at.and_then(|at| at.checked_add(header_bytes)).ok_or_else(|| bad("a far chunk"))?,
            ))
        }
        // Unset values are arbitrary.
        0x81 | 0x84 => Ok(FrameChunk::Zeros),
        0x82 => Ok(FrameChunk::NotANumber),
        _ => Err(bad("an unknown special value")),
    }
}

/// Shapes of a chunk of several axes and of the blocks in it.
struct BlockGrid {
    shape: Vec<usize>,
    block: Vec<usize>,
}

/// Reads the shapes that the header names; `None` where it names none.
fn blocks_of(header: &[u8]) -> Result<Option<BlockGrid>> {
    // An array of three: the size of the entries, a map from names to where they lie, and the entries.
    let mut at = NAMES_AT + 1 + 3;
    let count = match header.get(at) {
        Some(0xde) => header.get(at + 1..at + 3).map_or(0, |n| usize::from(n[0]) << 8 | usize::from(n[1])),
        _ => return Ok(None),
    };
    at += 3;
    for _ in 0..count {
        let len = usize::from(header.get(at).copied().unwrap_or(0) & 0x1f);
        let name = header.get(at + 1..at + 1 + len).ok_or_else(|| bad("its end too early"))?;
        let entry = four(header, at + 1 + len + 1)?;
        if name == b"b2nd" || name == b"caterva" {
            // A type byte and four bytes of length precede it.
            let entry = header.get(entry.saturating_add(5)..).ok_or_else(|| bad("its end too early"))?;
            return axes(entry).map(Some);
        }
        at += 1 + len + 5;
    }
    Ok(None)
}

fn axes(entry: &[u8]) -> Result<BlockGrid> {
    let count = usize::from(entry.get(2).copied().unwrap_or(0));
    if count == 0 || count > MAX_AXES {
        return Err(bad(&format!("{count} axes")));
    }
    let shape_at = 3 + 1;
    let chunk_at = shape_at + 9 * count + 1;
    let block_at = chunk_at + 5 * count + 1;
    let shape = (0..count).map(|n| eight(entry, shape_at + 9 * n + 1)).collect::<Result<Vec<_>>>()?;
    let chunk = (0..count).map(|n| four(entry, chunk_at + 5 * n + 1)).collect::<Result<Vec<_>>>()?;
    let block = (0..count).map(|n| four(entry, block_at + 5 * n + 1)).collect::<Result<Vec<_>>>()?;
    if shape != chunk || block.contains(&0) || shape.contains(&0) {
        return Err(bad(&format!("blocks of {block:?} in chunks of {chunk:?} of {shape:?}")));
    }
    Ok(BlockGrid { shape, block })
}

/// Copies the blocks of a chunk to their positions.
fn scatter(chunk: &BloscChunk<'_>, axes: &BlockGrid, out: &mut [u8]) -> Result<()> {
    let product = |sizes: &[usize]| sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
    let grid: Vec<usize> = axes.shape.iter().zip(&axes.block).map(|(n, block)| n.div_ceil(*block)).collect();
    let (items, block_items) = (product(&axes.shape), product(&axes.block));
    let item_bytes = items.and_then(|items| out.len().checked_div(items)).unwrap_or(0);
    let blocks = product(&grid);
    let is_whole = items.and_then(|items| items.checked_mul(item_bytes)) == Some(out.len()) && item_bytes > 0;
    // A block is unpacked in memory of its size, which must not be more than that of the chunk.
    let is_blocks = chunk.block_bytes <= out.len()
        && block_items.and_then(|n| n.checked_mul(item_bytes)) == Some(chunk.block_bytes)
        && blocks == Some(chunk.blocks())
        && blocks.and_then(|n| n.checked_mul(chunk.block_bytes)) == Some(chunk.size_bytes);
    if !is_whole || !is_blocks {
        return Err(bad(&format!("blocks of {:?} in {:?}", axes.block, axes.shape)));
    }
    chunk.for_each_block(&mut |number, block| {
        let mut first = vec![0; grid.len()];
        let mut rest = number;
        for ((first, &count), &size) in first.iter_mut().zip(&grid).zip(&axes.block).rev() {
            *first = rest % count * size;
            rest /= count;
        }
        place(block, axes, &first, item_bytes, out)
    })
}

/// Copies the rows of a block that lie in the chunk.
fn place(block: &[u8], axes: &BlockGrid, first: &[usize], item_bytes: usize, out: &mut [u8]) -> Result<()> {
    let ([.., row], [.., width], [.., from]) = (&axes.block[..], &axes.shape[..], first) else {
        return Err(bad("no axes"));
    };
    let inside = (*row).min(width - from) * item_bytes;
    'rows: for (number, bytes) in block.chunks_exact(row * item_bytes).enumerate() {
        let mut rest = number;
        let (mut at, mut stride) = (*from, *width);
        let outer = axes.block.iter().zip(&axes.shape).zip(first).rev().skip(1);
        for ((&size, &all), &start) in outer {
            let index = start + rest % size;
            rest /= size;
            if index >= all {
                continue 'rows;
            }
            at += index * stride;
            stride *= all;
        }
        let into = out.get_mut(at * item_bytes..).and_then(|out| out.get_mut(..inside));
        into.ok_or_else(|| bad("more bytes than expected"))?.copy_from_slice(&bytes[..inside]);
    }
    Ok(())
}
