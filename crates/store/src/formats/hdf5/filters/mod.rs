//! Decoders of HDF5's filters without the library: its own filters, and the most used ones of other programs.
//!
//! A pipeline with any other filter has no [`FilterPipeline`] here; such data sets are read through the library, which is built
//! without plug-ins. Every step knows its output size, so a malicious chunk cannot allocate more memory than the chunk shape of
//! its data set.

mod aec;
mod blocks;
pub(crate) mod blosc;
mod blosc2;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod szip;

use array::{Error, Packing, Result};
use flate2::{Decompress, FlushDecompress, Status};

use self::blocks::BlockPacking;
use self::szip::Szip;
use super::library::PipelineFilter;
use crate::formats::common::shuffle::unshuffle;

/// Most bytes that deflate decompresses from one byte.
const MAX_DEFLATE_RATIO: usize = 1032;
/// Widest element that clients unshuffle, bytes.
const MAX_SHUFFLE_WIDTH: u8 = 16;
/// Blosc2 stores whole blocks on every axis: less than twice as many elements on each, and at a low level as they are.
const MAX_PADDING: u64 = 8;
/// Bytes of the checksum that Fletcher 32 appends.
const CHECKSUM_BYTES: usize = 4;

/// Registered numbers of filters with their names, for messages.
const NAMES: &[(i32, &str)] = &[
    (1, "deflate"),
    (2, "shuffle"),
    (3, "fletcher32"),
    (4, "szip"),
    (5, "nbit"),
    (6, "scaleoffset"),
    (307, "bzip2"),
    (32_000, "lzf"),
    (32_001, "blosc"),
    (32_004, "lz4"),
    (32_008, "bitshuffle"),
    (32_013, "zfp"),
    (32_015, "zstd"),
    (32_017, "sz"),
    (32_026, "blosc2"),
];

/// The filter's name for people.
pub(super) fn name(id: i32) -> String {
    let known = NAMES.iter().find(|(number, _)| *number == id);
    known.map_or_else(|| format!("filter {id}"), |(_, name)| (*name).to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilterStep {
    Deflate,
    Shuffle { item_bytes: usize },
    Fletcher32,
    Lzf,
    Szip(Szip),
    Bzip2,
    Blosc,
    Blosc2,
    Lz4,
    Bitshuffle { item_bytes: usize, block_items: usize, packing: BlockPacking },
    Zstd,
}

impl FilterStep {
    /// Whether the output size can be known only from the bytes.
    fn compresses(self) -> bool {
        !matches!(
            self,
            Self::Shuffle { .. } | Self::Fletcher32 | Self::Bitshuffle { packing: BlockPacking::Plain, .. }
        )
    }
}

/// Filters of a data set in the order in which they were applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilterPipeline(Vec<FilterStep>);

impl FilterPipeline {
    /// Returns `None` if a filter is not decoded here, or if two compress (the size between them would be unknown).
    pub(super) fn of(filters: &[PipelineFilter], item_bytes: usize) -> Option<Self> {
        let steps: Option<Vec<FilterStep>> = filters.iter().map(|f| step(f, item_bytes)).collect();
        let steps = steps?;
        let compressors = steps.iter().filter(|s| s.compresses()).count();
        (compressors <= 1).then_some(Self(steps))
    }

    /// True when stored bytes are the elements.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the compression format and the shuffle width, if clients can undo the pipeline: deflate, with or without shuffle.
    pub(super) fn packing(&self) -> Option<(Packing, u8)> {
        match self.0[..] {
            [FilterStep::Deflate] => Some((Packing::Zlib, 1)),
            [FilterStep::Shuffle { item_bytes }, FilterStep::Deflate] => Some((
                Packing::Zlib,
                u8::try_from(item_bytes).ok().filter(|n| (1..=MAX_SHUFFLE_WIDTH).contains(n))?,
            )),
            _ => None,
        }
    }

    /// Returns the largest ratio of the stored size to the chunk size.
    pub(super) fn padding(&self) -> u64 {
        if self.0.contains(&FilterStep::Blosc2) { MAX_PADDING } else { 1 }
    }

    /// Returns the most memory that [`decode`](Self::decode) uses at a time, including its input.
    pub(super) fn needed_bytes(&self, stored_bytes: u64, chunk_bytes: u64) -> u64 {
        // Every step except the checksum holds its input and its output.
        let steps = self.0.iter().filter(|step| **step != FilterStep::Fletcher32).count();
        let sums = (self.0.len() * CHECKSUM_BYTES) as u64;
        // Some also hold a block or lines of pixels.
        let besides = match self
            .0
            .iter()
            .any(|step| matches!(step, FilterStep::Blosc | FilterStep::Blosc2 | FilterStep::Szip(_)))
        {
            true => 2 * chunk_bytes,
            false if self.0.iter().any(|step| matches!(step, FilterStep::Bitshuffle { .. })) => chunk_bytes,
            false => 0,
        };
        besides
            + match steps {
                0 => stored_bytes.max(chunk_bytes) + sums,
                1 => stored_bytes + chunk_bytes + sums,
                _ => stored_bytes.max(chunk_bytes) + chunk_bytes + 2 * sums,
            }
    }

    /// Decodes a chunk of `chunk_bytes`. Bit i of `skipped` set: step i was not applied.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are no valid output of the filters, `TooLarge` without memory.
    pub(super) fn decode(&self, stored: Vec<u8>, skipped: u32, chunk_bytes: usize) -> Result<Vec<u8>> {
        // HDF5 allows 32 filters, as many as the mask has bits.
        let applied = (0..u32::BITS).map(|bit| skipped & (1 << bit) == 0);
        let steps: Vec<FilterStep> =
            self.0.iter().zip(applied).filter(|(_, applied)| *applied).map(|(s, _)| *s).collect();
        let mut bytes = stored;
        for (number, step) in steps.iter().enumerate().rev() {
            let checksums = steps[..number].iter().filter(|s| **s == FilterStep::Fletcher32).count();
            bytes = step.undo(bytes, chunk_bytes.saturating_add(checksums * CHECKSUM_BYTES))?;
        }
        if bytes.len() != chunk_bytes {
            return Err(Error::corrupt(format!(
                "expected a chunk of {chunk_bytes} bytes, found {}",
                bytes.len()
            )));
        }
        Ok(bytes)
    }
}

fn step(filter: &PipelineFilter, item_bytes: usize) -> Option<FilterStep> {
    let parameter = |n: usize| filter.parameters.get(n).map(|&value| value as usize);
    match filter.id {
        1 => Some(FilterStep::Deflate),
        2 => Some(FilterStep::Shuffle { item_bytes: parameter(0).unwrap_or(item_bytes) }),
        3 => Some(FilterStep::Fletcher32),
        4 => Szip::new(&filter.parameters).map(FilterStep::Szip),
        307 => Some(FilterStep::Bzip2),
        32_000 => Some(FilterStep::Lzf),
        32_001 => Some(FilterStep::Blosc),
        32_004 => Some(FilterStep::Lz4),
        32_008 => Some(FilterStep::Bitshuffle {
            item_bytes: parameter(2).filter(|&n| n > 0).unwrap_or(item_bytes),
            block_items: parameter(3).unwrap_or(0),
            packing: match parameter(4).unwrap_or(0) {
                0 => BlockPacking::Plain,
                2 => BlockPacking::Lz4,
                3 => BlockPacking::Zstd,
                _ => return None,
            },
        }),
        32_015 => Some(FilterStep::Zstd),
        32_026 => Some(FilterStep::Blosc2),
        _ => None,
    }
}

impl FilterStep {
    /// `expected`: bytes before this step was applied, where it changes their number.
    fn undo(self, bytes: Vec<u8>, expected: usize) -> Result<Vec<u8>> {
        match self {
            Self::Deflate => inflate(&bytes, expected),
            Self::Shuffle { item_bytes } => unshuffled(bytes, item_bytes),
            Self::Fletcher32 => verify(bytes),
            Self::Lzf => unlzf(&bytes, expected),
            Self::Szip(szip) => szip.decode(&bytes, expected),
            Self::Bzip2 => blocks::bzip2(&bytes, expected),
            Self::Blosc => blosc::decode(&bytes, expected),
            Self::Blosc2 => blosc2::decode(&bytes, expected),
            Self::Lz4 => blocks::lz4(&bytes, expected),
            Self::Bitshuffle { item_bytes, block_items, packing } => {
                // Plain blocks keep their number of bytes, a checksum of before included.
                let expected = if packing == BlockPacking::Plain { bytes.len() } else { expected };
                blocks::bitshuffle(&bytes, expected, item_bytes, block_items, packing)
            }
            Self::Zstd => blocks::zstd(&bytes, expected),
        }
    }
}

/// Returns an empty buffer with memory for `size_bytes`.
fn empty_buffer(size_bytes: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(size_bytes)
        .map_err(|_| Error::too_large(format!("expected memory for a chunk of {size_bytes} bytes")))?;
    Ok(bytes)
}

fn inflate(packed: &[u8], expected: usize) -> Result<Vec<u8>> {
    let most = packed.len().saturating_mul(MAX_DEFLATE_RATIO);
    if expected > most {
        return Err(Error::corrupt(format!(
            "expected a chunk of {expected} bytes, found {} deflated ones, which cannot hold more than {most}",
            packed.len()
        )));
    }
    let mut bytes = empty_buffer(expected)?;
    let status = Decompress::new(true).decompress_vec(packed, &mut bytes, FlushDecompress::Finish);
    match status {
        Ok(Status::StreamEnd) if bytes.len() == expected => Ok(bytes),
        Ok(Status::StreamEnd) => {
            Err(Error::corrupt(format!("expected {expected} bytes after inflating, found {}", bytes.len())))
        }
        Ok(_) => Err(Error::corrupt(format!("expected a deflated chunk to end after {expected} bytes"))),
        Err(e) => Err(Error::corrupt(format!("expected a deflated chunk, found: {e}"))),
    }
}

fn unshuffled(bytes: Vec<u8>, item_bytes: usize) -> Result<Vec<u8>> {
    if item_bytes <= 1 || bytes.len() <= item_bytes {
        return Ok(bytes);
    }
    let mut out = empty_buffer(bytes.len())?;
    out.resize(bytes.len(), 0);
    unshuffle(&bytes, item_bytes, &mut out);
    Ok(out)
}

fn verify(mut bytes: Vec<u8>) -> Result<Vec<u8>> {
    let Some((data, stored)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(Error::corrupt("expected a chunk with a checksum, found less than four bytes"));
    };
    let (stored, computed) = (u32::from_le_bytes(*stored), fletcher32(data));
    // Libraries before 1.6.3 wrote the bytes of each half in the other order on little-endian hosts.
    let swapped = ((computed & 0x00ff_00ff) << 8) | ((computed >> 8) & 0x00ff_00ff);
    if stored != computed && stored != swapped {
        return Err(Error::corrupt(format!("expected the checksum {stored:08x}, found {computed:08x}")));
    }
    bytes.truncate(bytes.len() - CHECKSUM_BYTES);
    Ok(bytes)
}

/// Fletcher's checksum over big-endian 16-bit words, as HDF5 computes it.
fn fletcher32(data: &[u8]) -> u32 {
    // Number of words that can be summed before 32 bits overflow.
    const WORDS: usize = 360;
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    let (mut sum1, mut sum2) = (0u32, 0u32);
    let (words, rest) = data.as_chunks::<2>();
    for block in words.chunks(WORDS) {
        for word in block {
            sum1 += u32::from(u16::from_be_bytes(*word));
            sum2 += sum1;
        }
        (sum1, sum2) = (fold(sum1), fold(sum2));
    }
    if let [last] = rest {
        sum1 += u32::from(*last) << 8;
        sum2 += sum1;
        (sum1, sum2) = (fold(sum1), fold(sum2));
    }
    (fold(sum2) << 16) | fold(sum1)
}

/// LZF: literal runs and back references of up to 264 bytes, at most 8 KiB back.
fn unlzf(packed: &[u8], expected: usize) -> Result<Vec<u8>> {
    // One back reference of three bytes gives at most 264.
    if expected / 88 > packed.len() {
        return Err(Error::corrupt(format!("expected {expected} bytes from {} of LZF", packed.len())));
    }
    let bad = || Error::corrupt("expected a chunk packed by LZF");
    let mut out = empty_buffer(expected)?;
    let mut input = packed;
    while let [control, rest @ ..] = input {
        let control = usize::from(*control);
        if control < 32 {
            let (literal, rest) = rest.split_at_checked(control + 1).ok_or_else(bad)?;
            out.extend_from_slice(literal);
            input = rest;
        } else {
            let (more, rest) = match control >> 5 {
                7 => rest.split_first().map(|(&n, rest)| (usize::from(n), rest)).ok_or_else(bad)?,
                _ => (0, rest),
            };
            let (&low, rest) = rest.split_first().ok_or_else(bad)?;
            let back = ((control & 0x1f) << 8) + usize::from(low) + 1;
            let start = out.len().checked_sub(back).ok_or_else(bad)?;
            // Byte by byte: source and copy may overlap.
            for i in 0..(control >> 5) + more + 2 {
                out.push(out[start + i]);
            }
            input = rest;
        }
        if out.len() > expected {
            return Err(bad());
        }
    }
    if out.len() == expected { Ok(out) } else { Err(bad()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn filter(id: i32, parameters: &[u32]) -> PipelineFilter {
        PipelineFilter { id, parameters: parameters.to_vec(), available: true }
    }

    #[test]
    fn checksum_by_hand() {
        // Words 0x0102, 0x0304, 0x0500: their sum, and the sum of the sums 0x0102, 0x0406, 0x0906.
        assert_eq!(fletcher32(&[1, 2, 3, 4, 5]), 0x0e0e_0906);
        assert_eq!(fletcher32(&[0xff; 4]), 0xffff_ffff);
        assert_eq!(fletcher32(&[]), 0);
    }

    #[test]
    fn undoes_a_pipeline_and_honors_the_mask() {
        let data: Vec<u8> = (0..64u8).collect();
        let pipeline = FilterPipeline::of(&[filter(3, &[]), filter(1, &[6])], 4).unwrap();
        let mut summed = data.clone();
        summed.extend(fletcher32(&data).to_le_bytes());
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&summed).unwrap();
        let packed = encoder.finish().unwrap();
        assert_eq!(pipeline.decode(packed, 0, 64).unwrap(), data);
        assert_eq!(pipeline.decode(summed.clone(), 0b10, 64).unwrap(), data);
        assert_eq!(pipeline.decode(data.clone(), 0b11, 64).unwrap(), data);
        summed[5] ^= 1;
        let error = pipeline.decode(summed, 0b10, 64).unwrap_err();
        assert!(error.to_string().starts_with("expected the checksum"), "{error}");
    }

    #[test]
    fn a_deflate_bomb_is_refused_without_memory() {
        let error = inflate(&[0; 10], 1 << 40).unwrap_err();
        assert!(error.to_string().contains("cannot hold more"), "{error}");
        assert!(inflate(&[1, 2, 3, 4], 100).is_err());
    }

    #[test]
    fn lzf_copies_overlapping_runs() {
        // Literal "ab", then 7 bytes from 2 back.
        assert_eq!(unlzf(&[1, b'a', b'b', 5 << 5, 1], 9).unwrap(), b"ababababa");
        assert!(unlzf(&[5 << 5, 1], 7).is_err());
        assert!(unlzf(&[9, 1], 10).is_err());
    }

    #[test]
    fn foreign_filters_have_no_pipeline() {
        assert_eq!(FilterPipeline::of(&[filter(5, &[])], 4), None);
        assert_eq!(FilterPipeline::of(&[filter(1, &[]), filter(1, &[])], 4), None);
        assert!(FilterPipeline::of(&[], 4).unwrap().is_empty());
    }
}
