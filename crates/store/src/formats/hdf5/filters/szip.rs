//! Szip, as HDF5 stores it: the size of the chunk, then lines of pixels compressed by adaptive entropy coding (see `aec`).
//!
//! Pixels of more than 24 bits are coded byte by byte, and lines are padded to whole blocks.

use array::{Error, Result};

use super::aec::AecParameters;
use super::empty_buffer;
use crate::formats::common::shuffle::unshuffle;

/// Differences between neighbors are coded rather than the pixels.
const NEAREST_NEIGHBOR: u32 = 32;
/// The most significant byte of a pixel comes first.
const BIG_ENDIAN: u32 = 16;
/// Most pixels of one szip block.
const MAX_BLOCK: u32 = 32;
/// Most blocks of one line.
const MAX_BLOCKS_PER_LINE: u32 = 128;

/// Parameters of szip in a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Szip {
    options: u32,
    pixels_per_block: u32,
    bits_per_pixel: u32,
    pixels_per_line: u32,
}

impl Szip {
    /// Parses the parameters of the filter; `None` if they are invalid.
    pub(super) fn new(parameters: &[u32]) -> Option<Self> {
        let &[options, pixels_per_block, bits_per_pixel, pixels_per_line, ..] = parameters else {
            return None;
        };
        let is_usual = (1..=MAX_BLOCK).contains(&pixels_per_block)
            && pixels_per_block.is_multiple_of(2)
            // The library makes no line shorter than a block, which padding would make much longer.
            && (pixels_per_block..=MAX_BLOCK * MAX_BLOCKS_PER_LINE).contains(&pixels_per_line)
            && matches!(bits_per_pixel, 1..=24 | 32 | 64);
        is_usual.then_some(Self { options, pixels_per_block, bits_per_pixel, pixels_per_line })
    }

    /// The bytes of a chunk.
    ///
    /// # Errors
    /// `Corrupt` unless just `expected` bytes come out.
    pub(super) fn decode(self, packed: &[u8], expected: usize) -> Result<Vec<u8>> {
        let bad = |what: &str| Error::corrupt(format!("expected a chunk packed by szip, found {what}"));
        let (size, packed) = packed.split_first_chunk::<4>().ok_or_else(|| bad("its end too early"))?;
        if u32::from_le_bytes(*size) as usize != expected {
            return Err(bad("another size"));
        }
        let is_split = self.bits_per_pixel > 24;
        let (bits, pixel_bytes) = match is_split {
            true => (8, 1),
            false => (self.bits_per_pixel, (self.bits_per_pixel as usize).div_ceil(8)),
        };
        // Three bytes are kept in four.
        let pixel_bytes = if pixel_bytes == 3 { 4 } else { pixel_bytes };
        if !expected.is_multiple_of(pixel_bytes) {
            return Err(bad("a part of a pixel"));
        }
        let line = self.pixels_per_line as usize;
        let blocks = self.pixels_per_line.div_ceil(self.pixels_per_block);
        let padded = (blocks * self.pixels_per_block) as usize;
        let lines = (expected / pixel_bytes).div_ceil(line);
        let pixels = if padded == line { expected / pixel_bytes } else { lines * padded };
        let coding = AecParameters {
            bits,
            block: self.pixels_per_block as usize,
            blocks: blocks as usize,
            differences: self.options & NEAREST_NEIGHBOR != 0,
        };
        let is_big = self.options & BIG_ENDIAN != 0;
        let mut coded = empty_buffer(pixels * pixel_bytes)?;
        coding.decode(packed, pixels, &mut |pixel| {
            let bytes = pixel.to_be_bytes();
            let bytes = &bytes[bytes.len() - pixel_bytes..];
            match is_big {
                true => coded.extend_from_slice(bytes),
                false => coded.extend(bytes.iter().rev()),
            }
        })?;
        if padded != line {
            // Padding at the end of every line goes.
            let (line, padded) = (line * pixel_bytes, padded * pixel_bytes);
            for number in 1..lines {
                coded.copy_within(number * padded..number * padded + line, number * line);
            }
            coded.truncate(expected);
        }
        if !is_split {
            return Ok(coded);
        }
        // The first bytes of all pixels, then the second ones, ...
        let mut out = empty_buffer(expected)?;
        out.resize(expected, 0);
        unshuffle(&coded, self.bits_per_pixel as usize / 8, &mut out);
        Ok(out)
    }
}
