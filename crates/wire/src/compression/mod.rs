//! Lossless compression of bulk, with the restored size given in advance.
//!
//! The bytes of elements are sorted by their significance first where that helps (a *shuffle*). The speed and
//! the benefit of a method are measured and judged elsewhere; here are the functions, and the encoding of the
//! method in a body. Restoring never takes more memory than the body announces, and a body never announces
//! more than an item may hold.

mod shuffle;

use std::io::Read;

use array::{Error, Packing, Result};
use flate2::read::{GzEncoder, MultiGzDecoder, ZlibDecoder, ZlibEncoder};

use crate::frames::codec::{ByteReader, ByteWriter};
use crate::limits::MAX_ITEM_BULK_BYTES;

/// Capability of a client that can restore LZ4.
pub const LZ4: &str = "lz4";
/// Capability of a client that can restore Zstandard.
pub const ZSTD: &str = "zstd";
/// Capability of a client that can restore zlib and gzip, which stored chunks often use.
pub const DEFLATE: &str = "deflate";
/// Capability of a client that wants all bulk compressed, without measurements.
pub const COMPRESS: &str = "compress";

/// Widest element that is shuffled, bytes.
const MAX_WIDTH: u8 = 16;

/// Compressed format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// One LZ4 block.
    Lz4,
    /// Zstandard frames (RFC 8878).
    Zstd,
    /// A zlib stream (RFC 1950).
    Zlib,
    /// Gzip members, one or more (RFC 1952).
    Gzip,
}

impl From<Packing> for Algorithm {
    fn from(packing: Packing) -> Self {
        match packing {
            Packing::Zlib => Self::Zlib,
            Packing::Gzip => Self::Gzip,
            Packing::Zstd => Self::Zstd,
        }
    }
}

/// Compression method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CompressionMethod {
    /// The format.
    pub algorithm: Algorithm,
    /// Compression level, from 1. LZ4 has one level.
    pub level: u8,
    /// Size of an element for the shuffle, bytes; 1: no shuffle.
    pub width: u8,
}

/// Description of compressed bulk, from which it can be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressed {
    /// The format.
    pub algorithm: Algorithm,
    /// Size of a shuffled element, bytes; 1: not shuffled.
    pub width: u8,
    /// Restored size, bytes.
    pub plain_bytes: u32,
}

impl CompressionMethod {
    /// Compresses; `None` where the result is not smaller, or is too large for an item.
    #[must_use]
    pub fn compress(self, plain: &[u8]) -> Option<(Compressed, Vec<u8>)> {
        let plain_bytes = u32::try_from(plain.len()).ok().filter(|&n| u64::from(n) <= MAX_ITEM_BULK_BYTES)?;
        let width = self.width.clamp(1, MAX_WIDTH);
        let sorted = (width > 1).then(|| shuffle::sort(plain, usize::from(width)));
        let input = sorted.as_deref().unwrap_or(plain);
        let carried = match self.algorithm {
            Algorithm::Lz4 => lz4_flex::block::compress(input),
            Algorithm::Zstd => zstd::bulk::compress(input, i32::from(self.level)).ok()?,
            Algorithm::Zlib => deflate(ZlibEncoder::new(input, self.effort()))?,
            Algorithm::Gzip => deflate(GzEncoder::new(input, self.effort()))?,
        };
        let compressed = Compressed { algorithm: self.algorithm, width, plain_bytes };
        (carried.len() < plain.len()).then_some((compressed, carried))
    }
}

impl CompressionMethod {
    fn effort(self) -> flate2::Compression {
        flate2::Compression::new(u32::from(self.level.clamp(1, 9)))
    }
}

fn deflate(mut encoder: impl Read) -> Option<Vec<u8>> {
    let mut carried = Vec::new();
    encoder.read_to_end(&mut carried).ok()?;
    Some(carried)
}

/// Fills `bytes`, and checks the end of the stream: the checksum, and no more data. Returns the number of
/// bytes.
fn inflate(mut decoder: impl Read, bytes: &mut [u8]) -> std::io::Result<usize> {
    let mut size_bytes = 0;
    while size_bytes < bytes.len() {
        match decoder.read(&mut bytes[size_bytes..])? {
            0 => return Ok(size_bytes),
            count => size_bytes += count,
        }
    }
    Ok(size_bytes + decoder.read(&mut [0])?)
}

impl Compressed {
    /// Restores the original bytes.
    ///
    /// # Errors
    /// `Corrupt` when `carried` is not valid, or has another size when restored.
    pub fn restore(self, carried: &[u8]) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.plain_bytes as usize];
        let (name, restored) = match self.algorithm {
            Algorithm::Lz4 => (
                LZ4,
                lz4_flex::block::decompress_into(carried, &mut bytes).map_err(|error| error.to_string()),
            ),
            Algorithm::Zlib => {
                ("zlib", inflate(ZlibDecoder::new(carried), &mut bytes).map_err(|error| error.to_string()))
            }
            Algorithm::Gzip => {
                ("gzip", inflate(MultiGzDecoder::new(carried), &mut bytes).map_err(|error| error.to_string()))
            }
            Algorithm::Zstd => (
                ZSTD,
                zstd::bulk::decompress_to_buffer(carried, &mut bytes[..]).map_err(|error| error.to_string()),
            ),
        };
        let found = match restored {
            Ok(size_bytes) if size_bytes == bytes.len() => {
                let width = usize::from(self.width);
                return Ok(if width > 1 { shuffle::unsort(&bytes, width) } else { bytes });
            }
            Ok(size_bytes) => format!("{size_bytes} bytes"),
            Err(error) => error,
        };
        Err(Error::corrupt(format!(
            "expected {} bytes compressed by {name}, found {found}",
            self.plain_bytes
        )))
    }

    pub(crate) fn encode(self, w: &mut ByteWriter) {
        let algorithm = match self.algorithm {
            Algorithm::Lz4 => 1,
            Algorithm::Zstd => 2,
            Algorithm::Zlib => 3,
            Algorithm::Gzip => 4,
        };
        w.u8(algorithm).u8(self.width).u32(self.plain_bytes);
    }

    pub(crate) fn decode(r: &mut ByteReader) -> Result<Self> {
        let algorithm = match r.u8("compression")? {
            1 => Algorithm::Lz4,
            2 => Algorithm::Zstd,
            3 => Algorithm::Zlib,
            4 => Algorithm::Gzip,
            other => {
                return Err(Error::corrupt(format!("expected a compression from 1 to 4, found {other}")));
            }
        };
        let (width, plain_bytes) = (r.u8("width")?, r.u32("plain bytes")?);
        if !(1..=MAX_WIDTH).contains(&width) || u64::from(plain_bytes) > MAX_ITEM_BULK_BYTES {
            return Err(Error::corrupt(format!(
                "expected elements of 1 to {MAX_WIDTH} bytes, at most {MAX_ITEM_BULK_BYTES} bytes of them, found \
                 {width} and {plain_bytes}"
            )));
        }
        Ok(Self { algorithm, width, plain_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways() -> impl Iterator<Item = CompressionMethod> {
        let formats = [
            (Algorithm::Lz4, 1),
            (Algorithm::Zstd, 1),
            (Algorithm::Zstd, 9),
            (Algorithm::Zlib, 6),
            (Algorithm::Gzip, 1),
        ];
        formats.into_iter().flat_map(|(algorithm, level)| {
            [1, 2, 3, 4, 8, 16].map(|width| CompressionMethod { algorithm, level, width })
        })
    }

    /// Sine wave in `f32`.
    fn wave(count: u16) -> Vec<u8> {
        (0..count).flat_map(|n| (f32::from(n) * 0.01).sin().to_le_bytes()).collect()
    }

    #[test]
    fn compression_round_trips() {
        // Includes sizes that cut the last element.
        for size_bytes in [64, 1000, 4099, 40_000] {
            let plain = &wave(10_000)[..size_bytes];
            for way in ways() {
                let Some((compressed, carried)) = way.compress(plain) else { continue };
                assert!(carried.len() < plain.len(), "{way:?}");
                assert_eq!(compressed.restore(&carried).unwrap(), plain, "{way:?} of {size_bytes}");
            }
        }
    }

    #[test]
    fn sorting_by_significance_helps_floats() {
        let size = |width| {
            CompressionMethod { algorithm: Algorithm::Zstd, level: 1, width }
                .compress(&wave(60_000))
                .unwrap()
                .1
                .len()
        };
        assert!(size(4) * 10 < size(1) * 9, "{} and {}", size(4), size(1));
    }

    #[test]
    fn gzip_of_several_members_is_restored_whole() {
        let plain = [[1; 3_000], [2; 3_000]].concat();
        let way = CompressionMethod { algorithm: Algorithm::Gzip, level: 6, width: 1 };
        let member = |part: &[u8]| way.compress(part).expect("it gets smaller").1;
        let members = [member(&plain[..1_000]), member(&plain[1_000..])].concat();
        let (how, _) = way.compress(&plain).expect("as above");
        assert_eq!(how.restore(&members).unwrap(), plain);
        assert!(how.restore(&members[..members.len() - 1]).is_err(), "the second one is cut");
        assert!(how.restore(&[&members[..], &member(&plain)].concat()).is_err(), "one too many");
    }

    #[test]
    fn noise_is_not_compressed() {
        let mut state = 1_u64;
        let noise: Vec<u8> = (0..10_000)
            .map(|_| {
                state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                state.to_le_bytes()[7]
            })
            .collect();
        assert!(ways().all(|way| way.compress(&noise).is_none()));
    }

    #[test]
    fn a_wrong_size_or_other_bytes_are_corrupt_and_take_no_more_memory_than_was_said() {
        let plain = vec![0; 1 << 20];
        for way in ways() {
            let (compressed, carried) = way.compress(&plain).unwrap();
            for plain_bytes in [compressed.plain_bytes - 1, compressed.plain_bytes + 1, 0] {
                assert!(Compressed { plain_bytes, ..compressed }.restore(&carried).is_err(), "{way:?}");
            }
            assert!(compressed.restore(&carried[..carried.len() / 2]).is_err(), "{way:?}");
            assert!(compressed.restore(b"something else").is_err(), "{way:?}");
            assert!(compressed.restore(&[]).is_err(), "{way:?}");
        }
    }
}
