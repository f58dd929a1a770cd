//! Chunks of Blosc 1 and Blosc2: a header, the offsets of blocks, and the blocks, each compressed in one stream or in one for each
//! byte of an element, after a few filters.
//!
//! Blocks are decoded one by one; the caller copies them to their positions.

use array::{Error, Result};
use flate2::{Decompress, FlushDecompress};

use super::empty_buffer;
use crate::formats::common::shuffle::{unshuffle, unshuffle_bits};

/// Header sizes of Blosc 1 and of Blosc2, bytes.
const BLOSC_HEADER_BYTES: usize = 16;
const LONG_HEADER_BYTES: usize = 32;
/// Most filters of a Blosc2 chunk.
const MAX_BLOSC_FILTERS: usize = 6;
/// Most streams of a split block in the first edition; other blocks were never split.
const MAX_STREAMS: usize = 16;
/// Fewest elements of each stream of a split block.
const LEAST_STREAM_ITEMS: usize = 128;
/// Distance from which on BloscLZ writes longer distances.
const FAR: usize = 8191;

const SHUFFLE: u8 = 1;
const BIT_SHUFFLE: u8 = 2;
const DELTA: u8 = 3;
const TRUNCATE: u8 = 4;

fn bad(what: &str) -> Error {
    Error::corrupt(format!("expected a chunk packed by Blosc, found {what}"))
}

fn number(bytes: &[u8], at: usize) -> Result<usize> {
    let four = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    let four = four.ok_or_else(|| bad("its end too early"))?;
    usize::try_from(i32::from_le_bytes(*four)).map_err(|_| bad("a negative size"))
}

/// The compressor of the streams.
#[derive(Clone, Copy, Debug)]
enum BloscCodec {
    BloscLz,
    Lz4,
    Snappy,
    Zlib,
    Zstd,
}

/// Chunk with its checked header.
#[derive(Debug)]
pub(super) struct BloscChunk<'a> {
    bytes: &'a [u8],
    header_bytes: usize,
    item_bytes: usize,
    /// Bytes after unpacking.
    pub(super) size_bytes: usize,
    /// Size of all blocks except the last, bytes.
    pub(super) block_bytes: usize,
    body: BloscBody,
    is_split: bool,
    is_first_edition: bool,
    /// Codes with a parameter each, in the order in which they were applied.
    filters: Vec<(u8, u8)>,
}

#[derive(Clone, Copy, Debug)]
enum BloscBody {
    Packed(BloscCodec),
    Plain,
    /// One repeated value; position of its bytes.
    Repeated {
        start: usize,
        len: usize,
    },
    NotANumber,
    Zeros,
}

impl<'a> BloscChunk<'a> {
    /// Parses the header.
    ///
    /// # Errors
    /// `Corrupt` if the header is invalid, `Unsupported` for features that are not decoded here.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let head: &[u8; BLOSC_HEADER_BYTES] =
            bytes.first_chunk::<BLOSC_HEADER_BYTES>().ok_or_else(|| bad("its end too early"))?;
        let (version, flags, item_bytes) = (head[0], head[2], usize::from(head[3]));
        let (size_bytes, block_bytes, stored) = (number(head, 4)?, number(head, 8)?, number(head, 12)?);
        let bytes = bytes.get(..stored).ok_or_else(|| bad("its end too early"))?;
        let is_long = flags & 5 == 5;
        let header_bytes = if is_long { LONG_HEADER_BYTES } else { BLOSC_HEADER_BYTES };
        let tail = bytes.get(BLOSC_HEADER_BYTES..header_bytes).ok_or_else(|| bad("its end too early"))?;
        if item_bytes == 0 || (block_bytes == 0 && size_bytes > 0) {
            return Err(bad("sizes of zero"));
        }
        let mut chunk = Self {
            bytes,
            header_bytes,
            item_bytes,
            size_bytes,
            block_bytes: block_bytes.min(size_bytes).max(1),
            body: BloscBody::Plain,
            is_split: flags & 0x10 == 0,
            is_first_edition: version <= 2,
            filters: short_filters(flags, item_bytes),
        };
        let mut special = 0;
        if let Some(tail) = tail.first_chunk::<{ LONG_HEADER_BYTES - BLOSC_HEADER_BYTES }>() {
            chunk.filters =
                (0..MAX_BLOSC_FILTERS).map(|n| (tail[n], tail[8 + n])).filter(|f| f.0 != 0).collect();
            let (more_flags, flags) = (tail[14], tail[15]);
            if flags & 0x89 != 0 || more_flags != 0 {
                return Err(unsupported(
                    "Blosc2 with a dictionary, or blocks elsewhere or of their own sizes",
                ));
            }
            special = flags >> 4 & 7;
        }
        if let Some((code, _)) = chunk.filters.iter().find(|(code, _)| *code > TRUNCATE) {
            return Err(unsupported(&format!("Blosc2's filter {code}")));
        }
        chunk.body = chunk.body(flags, special)?;
        Ok(chunk)
    }

    fn body(&self, flags: u8, special: u8) -> Result<BloscBody> {
        match special {
            0 => {}
            // Unset values are arbitrary.
            1 | 4 => return Ok(BloscBody::Zeros),
            2 if matches!(self.item_bytes, 4 | 8) => return Ok(BloscBody::NotANumber),
            3 if self.bytes.len() > self.header_bytes => {
                let len = self.bytes.len() - self.header_bytes;
                return Ok(BloscBody::Repeated { start: self.header_bytes, len });
            }
            _ => return Err(bad("an unknown special value")),
        }
        if flags & 2 != 0 {
            return match self.bytes.len() - self.header_bytes == self.size_bytes {
                true => Ok(BloscBody::Plain),
                false => Err(bad("plain bytes of another number")),
            };
        }
        Ok(BloscBody::Packed(match flags >> 5 {
            0 => BloscCodec::BloscLz,
            1 => BloscCodec::Lz4,
            2 if self.is_first_edition => BloscCodec::Snappy,
            3 => BloscCodec::Zlib,
            4 => BloscCodec::Zstd,
            other => return Err(unsupported(&format!("Blosc's compressor {other}"))),
        }))
    }

    /// Returns the number of blocks.
    pub(super) fn blocks(&self) -> usize {
        self.size_bytes.div_ceil(self.block_bytes)
    }

    /// Calls `each` with every block in turn.
    ///
    /// # Errors
    /// `Corrupt`, `TooLarge` without memory, and those of `each`.
    pub(super) fn for_each_block(&self, each: &mut dyn FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        let [mut block, mut spare] = [empty_buffer(self.block_bytes)?, empty_buffer(self.block_bytes)?];
        // The delta filter is over the first block.
        let is_delta = self.filters.iter().any(|(code, _)| *code == DELTA);
        let mut first = empty_buffer(if is_delta { self.block_bytes } else { 0 })?;
        for number in 0..self.blocks() {
            let start = number * self.block_bytes;
            let size = self.block_bytes.min(self.size_bytes - start);
            block.resize(size, 0);
            spare.resize(size, 0);
            match self.body {
                BloscBody::Packed(codec) => {
                    self.unpack(number, codec, &mut block)?;
                    for filter in self.filters.iter().rev() {
                        self.undo(*filter, number, &first, &mut block, &mut spare)?;
                    }
                    if is_delta && number == 0 {
                        first.extend_from_slice(&block);
                    }
                }
                BloscBody::Plain => {
                    let from = self.header_bytes + start;
                    let plain = self.bytes.get(from..from + size).ok_or_else(|| bad("its end too early"))?;
                    block.copy_from_slice(plain);
                }
                BloscBody::Repeated { start: from, len } => {
                    let value = self.bytes.get(from..from + len).ok_or_else(|| bad("its end too early"))?;
                    for (at, byte) in block.iter_mut().enumerate() {
                        *byte = value[(start + at) % len];
                    }
                }
                BloscBody::NotANumber => {
                    let four = f32::NAN.to_le_bytes();
                    let eight = f64::NAN.to_le_bytes();
                    let value: &[u8] = if self.item_bytes == 4 { &four } else { &eight };
                    for (at, byte) in block.iter_mut().enumerate() {
                        *byte = value[(start + at) % value.len()];
                    }
                }
                BloscBody::Zeros => block.fill(0),
            }
            each(number, &block)?;
        }
        Ok(())
    }

    fn unpack(&self, number_of_block: usize, codec: BloscCodec, block: &mut [u8]) -> Result<()> {
        let mut at = number(self.bytes, self.header_bytes + 4 * number_of_block)?;
        let is_last_short = block.len() < self.block_bytes;
        let was_split = !self.is_first_edition
            || (self.item_bytes <= MAX_STREAMS && self.block_bytes / self.item_bytes >= LEAST_STREAM_ITEMS);
        let streams = if self.is_split && was_split && !is_last_short { self.item_bytes } else { 1 };
        let size = block.len() / streams;
        if size == 0 || size * streams != block.len() {
            return Err(bad("a block that cannot be split"));
        }
        for part in block.chunks_exact_mut(size) {
            let four = self.bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
            let stored = i32::from_le_bytes(*four.ok_or_else(|| bad("a block beyond its end"))?);
            at += 4;
            let Ok(stored) = usize::try_from(stored) else {
                // A run of one byte.
                let is_run = self.bytes.get(at).is_some_and(|token| token & 1 != 0) && !self.is_first_edition;
                let value = u8::try_from(stored.unsigned_abs()).ok().filter(|_| is_run);
                part.fill(value.ok_or_else(|| bad("an unknown kind of stream"))?);
                at += 1;
                continue;
            };
            let stream = self.bytes.get(at..).and_then(|rest| rest.get(..stored));
            let stream = stream.ok_or_else(|| bad("a stream beyond its end"))?;
            at += stored;
            match stored {
                0 if !self.is_first_edition => part.fill(0),
                _ if stored == part.len() => part.copy_from_slice(stream),
                _ => codec.unpack(stream, part)?,
            }
        }
        Ok(())
    }

    /// Undoes one filter in `block`.
    fn undo(
        &self,
        (code, parameter): (u8, u8),
        number: usize,
        first: &[u8],
        block: &mut Vec<u8>,
        spare: &mut Vec<u8>,
    ) -> Result<()> {
        let item = self.item_bytes;
        match code {
            SHUFFLE => {
                let item = if parameter == 0 { item } else { usize::from(parameter) };
                unshuffle(block, item, spare);
            }
            BIT_SHUFFLE => {
                let count = block.len() / item;
                // Blosc 1 does not shuffle data that are no multiple of eight.
                if self.is_first_edition && !count.is_multiple_of(8) {
                    return Ok(());
                }
                unshuffle_bits(block, item, spare);
            }
            DELTA => {
                undo_delta(block, (number > 0).then_some(first), item);
                return Ok(());
            }
            TRUNCATE => return Ok(()),
            _ => return Err(bad("an unknown filter")),
        }
        std::mem::swap(block, spare);
        Ok(())
    }
}

fn unsupported(what: &str) -> Error {
    Error::unsupported(format!("expected a chunk that can be unpacked here, found {what}"))
}

/// Filters that the first edition's flags name.
fn short_filters(flags: u8, item_bytes: usize) -> Vec<(u8, u8)> {
    match (flags & 1 != 0, flags & 4 != 0) {
        (true, _) if item_bytes > 1 => vec![(SHUFFLE, 0)],
        (_, true) => vec![(BIT_SHUFFLE, 0)],
        _ => Vec::new(),
    }
}

/// Differences by exclusive or: within the first block to the element before, in others to the first block.
fn undo_delta(block: &mut [u8], first: Option<&[u8]>, item_bytes: usize) {
    let width = match item_bytes {
        1 | 2 | 4 | 8 => item_bytes,
        n if n.is_multiple_of(8) => 8,
        _ => 1,
    };
    let whole = block.len() / width * width;
    match first {
        Some(first) => {
            block[..whole].iter_mut().zip(first).for_each(|(byte, reference)| *byte ^= reference);
        }
        None => {
            for at in width..whole {
                block[at] ^= block[at - width];
            }
        }
    }
}

impl BloscCodec {
    /// Fills `out` to its end.
    fn unpack(self, packed: &[u8], out: &mut [u8]) -> Result<()> {
        let found = match self {
            Self::BloscLz => return unpack_blosclz(packed, out),
            Self::Lz4 => lz4_flex::block::decompress_into(packed, out).map_err(|e| bad(&e.to_string()))?,
            Self::Snappy => {
                let mut decoder = snap::raw::Decoder::new();
                let size = snap::raw::decompress_len(packed).map_err(|e| bad(&e.to_string()))?;
                if size != out.len() {
                    return Err(bad("a stream of another size"));
                }
                decoder.decompress(packed, out).map_err(|e| bad(&e.to_string()))?
            }
            Self::Zlib => {
                let mut inflate = Decompress::new(true);
                inflate.decompress(packed, out, FlushDecompress::Finish).map_err(|e| bad(&e.to_string()))?;
                usize::try_from(inflate.total_out()).unwrap_or(usize::MAX)
            }
            Self::Zstd => ::zstd::bulk::decompress_to_buffer(packed, out).map_err(|e| bad(&e.to_string()))?,
        };
        if found == out.len() { Ok(()) } else { Err(bad("a stream of another size")) }
    }
}

/// BloscLZ: literals of up to 32 bytes, and copies from up to 73,726 bytes back.
fn unpack_blosclz(packed: &[u8], out: &mut [u8]) -> Result<()> {
    let short = || bad("its end too early");
    let mut input = packed.iter().copied();
    let mut next = || input.next();
    let mut done = 0;
    // The first is always a literal.
    let mut control = next().map(|c| usize::from(c & 31));
    while let Some(c) = control {
        if c < 32 {
            for _ in 0..=c {
                *out.get_mut(done).ok_or_else(|| bad("more bytes than expected"))? =
                    next().ok_or_else(short)?;
                done += 1;
            }
        } else {
            let mut len = (c >> 5) - 1;
            if len == 6 {
                loop {
                    let more = next().ok_or_else(short)?;
                    len += usize::from(more);
                    if more != 255 {
                        break;
                    }
                    if len > out.len() {
                        return Err(bad("more bytes than expected"));
                    }
                }
            }
            let low = usize::from(next().ok_or_else(short)?);
            let mut back = ((c & 31) << 8) + low + 1;
            if low == 255 && c & 31 == 31 {
                let (high, low) = (next().ok_or_else(short)?, next().ok_or_else(short)?);
                back = (usize::from(high) << 8) + usize::from(low) + FAR + 1;
            }
            let from = done.checked_sub(back).ok_or_else(|| bad("a copy from before its start"))?;
            let end = done + len + 3;
            if end > out.len() {
                return Err(bad("more bytes than expected"));
            }
            // Byte by byte: source and copy may overlap.
            for at in 0..len + 3 {
                out[done + at] = out[from + at];
            }
            done = end;
        }
        control = next().map(usize::from);
    }
    if done == out.len() { Ok(()) } else { Err(short()) }
}

/// The bytes of a chunk of the first edition.
///
/// # Errors
/// `Corrupt` unless just `expected` bytes come out.
pub(crate) fn decode(packed: &[u8], expected: usize) -> Result<Vec<u8>> {
    let chunk = BloscChunk::parse(packed)?;
    if chunk.size_bytes != expected {
        return Err(bad(&format!("{} bytes instead of {expected}", chunk.size_bytes)));
    }
    let mut out = empty_buffer(expected)?;
    chunk.for_each_block(&mut |_, block| {
        out.extend_from_slice(block);
        Ok(())
    })?;
    Ok(out)
}
