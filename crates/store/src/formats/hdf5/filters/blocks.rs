//! Filters of other programs: zstd, bzip2, LZ4 in blocks, and bitshuffle with or without a compressor.
//!
//! Each filter knows its output size, and allocates no more than that.

use std::io::Read;

use array::{Error, Result};

use super::empty_buffer;
use crate::formats::common::shuffle::unshuffle_bits;

/// Bytes of a bitshuffle block if the file does not state its size.
const BITSHUFFLE_BLOCK_BYTES: usize = 8192;
/// Fewest elements of a bitshuffle block.
const LEAST_BITSHUFFLE_BLOCK: usize = 128;
/// Most bytes that LZ4 decompresses from one byte; zstd and bzip2 rarely reach this ratio.
const MAX_LZ4_RATIO: usize = 256;

fn bad(what: &str) -> Error {
    Error::corrupt(format!("expected a chunk packed by {what}"))
}

/// The next `N` bytes of `input`.
fn take<const N: usize>(input: &mut &[u8], what: &str) -> Result<[u8; N]> {
    let (head, rest) = input.split_first_chunk::<N>().ok_or_else(|| bad(what))?;
    *input = rest;
    Ok(*head)
}

/// Returns the next bytes of `input`, after their length.
fn take_counted<'a>(input: &mut &'a [u8], what: &str) -> Result<&'a [u8]> {
    let size = usize::try_from(u32::from_be_bytes(take(input, what)?)).unwrap_or(usize::MAX);
    let (head, rest) = input.split_at_checked(size).ok_or_else(|| bad(what))?;
    *input = rest;
    Ok(head)
}

pub(super) fn zstd(packed: &[u8], expected: usize) -> Result<Vec<u8>> {
    let mut out = empty_buffer(expected)?;
    out.resize(expected, 0);
    fill(&mut out, |out| zstd_into(packed, out))
}

fn zstd_into(packed: &[u8], out: &mut [u8]) -> Result<usize> {
    ::zstd::bulk::decompress_to_buffer(packed, out)
        .map_err(|e| Error::corrupt(format!("expected a chunk packed by zstd, found: {e}")))
}

fn lz4_into(packed: &[u8], out: &mut [u8]) -> Result<usize> {
    lz4_flex::block::decompress_into(packed, out)
        .map_err(|e| Error::corrupt(format!("expected a chunk packed by LZ4, found: {e}")))
}

fn fill(out: &mut Vec<u8>, unpack: impl FnOnce(&mut [u8]) -> Result<usize>) -> Result<Vec<u8>> {
    let found = unpack(out)?;
    if found != out.len() {
        return Err(Error::corrupt(format!("expected {} bytes in a packed chunk, found {found}", out.len())));
    }
    Ok(std::mem::take(out))
}

pub(super) fn bzip2(packed: &[u8], expected: usize) -> Result<Vec<u8>> {
    let mut out = empty_buffer(expected)?;
    // One byte more than expected shows an output that is too long.
    let mut reader = ::bzip2::read::MultiBzDecoder::new(packed).take(expected as u64 + 1);
    reader
        .read_to_end(&mut out)
        .map_err(|e| Error::corrupt(format!("expected a chunk packed by bzip2, found: {e}")))?;
    if out.len() != expected {
        return Err(bad("bzip2"));
    }
    Ok(out)
}

/// Size of all, size of a block, then every block with its packed size in front; one that did not shrink is plain.
pub(super) fn lz4(packed: &[u8], expected: usize) -> Result<Vec<u8>> {
    const WHAT: &str = "LZ4";
    let mut input = packed;
    let total = u64::from_be_bytes(take(&mut input, WHAT)?);
    let block = usize::try_from(u32::from_be_bytes(take(&mut input, WHAT)?)).unwrap_or(usize::MAX);
    if total != expected as u64 || block == 0 || expected / MAX_LZ4_RATIO > packed.len() {
        return Err(bad(WHAT));
    }
    let mut out = empty_buffer(expected)?;
    out.resize(expected, 0);
    for part in out.chunks_mut(block) {
        let stored = take_counted(&mut input, WHAT)?;
        let found = if stored.len() == part.len() {
            part.copy_from_slice(stored);
            part.len()
        } else {
            lz4_into(stored, part)?
        };
        if found != part.len() {
            return Err(bad(WHAT));
        }
    }
    Ok(out)
}

/// Compressor of the blocks of bitshuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockPacking {
    Plain,
    Lz4,
    Zstd,
}

/// Undoes bitshuffle: blocks of elements, packed one by one where a compressor is named.
///
/// `block_items`: the block size of the file for blocks that are not compressed; compressed ones state it themselves.
pub(super) fn bitshuffle(
    packed: &[u8],
    expected: usize,
    item_bytes: usize,
    block_items: usize,
    packing: BlockPacking,
) -> Result<Vec<u8>> {
    const WHAT: &str = "bitshuffle";
    let mut input = packed;
    let item_bytes = item_bytes.max(1);
    let mut items_per_block = match block_items {
        0 => (BITSHUFFLE_BLOCK_BYTES / item_bytes / 8 * 8).max(LEAST_BITSHUFFLE_BLOCK),
        named => named,
    };
    if packing != BlockPacking::Plain {
        let total = u64::from_be_bytes(take(&mut input, WHAT)?);
        let block = usize::try_from(u32::from_be_bytes(take(&mut input, WHAT)?)).unwrap_or(usize::MAX);
        items_per_block = if block == 0 { items_per_block } else { block / item_bytes };
        if total != expected as u64 || expected / MAX_LZ4_RATIO > packed.len().saturating_mul(64) {
            return Err(bad(WHAT));
        }
    }
    if items_per_block == 0 || !items_per_block.is_multiple_of(8) {
        return Err(bad(WHAT));
    }
    let mut out = empty_buffer(expected)?;
    out.resize(expected, 0);
    // Elements beyond a multiple of eight are not shuffled.
    let shuffled = expected / item_bytes / 8 * 8 * item_bytes;
    let (blocks, rest) = out.split_at_mut(shuffled);
    let block_bytes = items_per_block.saturating_mul(item_bytes);
    let mut unpacked = empty_buffer(block_bytes.min(shuffled))?;
    for part in blocks.chunks_mut(block_bytes) {
        let bits = match packing {
            BlockPacking::Plain => {
                let (bits, left) = input.split_at_checked(part.len()).ok_or_else(|| bad(WHAT))?;
                input = left;
                bits
            }
            _ => {
                let stored = take_counted(&mut input, WHAT)?;
                unpacked.resize(part.len(), 0);
                let found = match packing {
                    BlockPacking::Zstd => zstd_into(stored, &mut unpacked)?,
                    _ => lz4_into(stored, &mut unpacked)?,
                };
                unpacked.get(..found).filter(|bits| bits.len() == part.len()).ok_or_else(|| bad(WHAT))?
            }
        };
        unshuffle_bits(bits, item_bytes, part);
    }
    if input.len() != rest.len() {
        return Err(bad(WHAT));
    }
    rest.copy_from_slice(input);
    Ok(out)
}
