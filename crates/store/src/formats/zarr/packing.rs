//! Bytes-to-bytes codecs of a chunk: compressors and checksums, whose output is bounded by the size of a chunk. Otherwise a chunk of
//! a few kilobytes could become gigabytes.

use std::io::Read;

use array::{Error, Result};
use serde_json::Value;

use crate::formats::common::shuffle::unshuffle;
use crate::formats::hdf5::filters::blosc;

/// Codecs of arrays that keep the number of bytes.
const SIZE_KEEPING: [&str; 3] = ["bytes", "endian", "transpose"];
const CHECKSUM_BYTES: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BytesCodec {
    Gzip,
    Zlib,
    Bz2,
    Zstd,
    /// numcodecs' LZ4: the size before one block.
    Lz4,
    /// xz, or LZMA's own older form.
    Lzma,
    Blosc,
    /// Byte shuffle of elements.
    Shuffle(usize),
    Crc32c,
    /// Checksums of numcodecs, which precede the bytes.
    Crc32cFirst,
    Crc32,
    Adler32,
}

/// Most memory that LZMA decompression may take besides its output, bytes: slightly more than the strongest preset needs.
const MAX_LZMA_BYTES: u64 = 96 << 20;

/// Bytes-to-bytes codecs of an array, the last ones of its chain; they are undone first.
#[derive(Debug, Default)]
pub(super) struct BytesCodecs {
    /// Codecs in the order in which they are undone.
    steps: Vec<BytesCodec>,
    /// The codecs before them keep the number of bytes.
    is_exact: bool,
}

impl BytesCodecs {
    /// Takes steps off the end of a chain of codecs.
    pub(super) fn take_from(codecs: &mut Vec<Value>) -> Self {
        let mut steps = Vec::new();
        while let Some(step) = codecs.last().and_then(step) {
            steps.push(step);
            codecs.pop();
        }
        let is_exact = codecs.iter().all(|codec| SIZE_KEEPING.contains(&name(codec)));
        Self { steps, is_exact }
    }

    /// Returns the compression format, if it is the only codec and clients can undo it.
    pub(super) fn portable(&self) -> Option<array::Packing> {
        match self.steps[..] {
            [BytesCodec::Gzip] => Some(array::Packing::Gzip),
            [BytesCodec::Zlib] => Some(array::Packing::Zlib),
            [BytesCodec::Zstd] => Some(array::Packing::Zstd),
            _ => None,
        }
    }

    /// Returns the most bytes that decoding uses at a time, including the stored bytes and the buffers of the codecs before.
    pub(super) fn needed_bytes(&self, stored_bytes: u64, chunk_bytes: u64) -> u64 {
        let unpacked = self.steps.iter().map(|_| self.most_bytes(chunk_bytes, false)).max();
        let unpacked = unpacked.unwrap_or(0).max(chunk_bytes);
        stored_bytes.max(unpacked).saturating_add(unpacked)
    }

    /// Most bytes after a step: exactly the chunk's after the last one where that is known, else with some room for
    /// checksums and indexes.
    fn most_bytes(&self, chunk_bytes: u64, is_last: bool) -> u64 {
        let is_single = self.steps.iter().filter(|step| !step.is_checksum()).count() <= 1;
        if self.is_exact && (is_last || is_single) {
            return chunk_bytes;
        }
        chunk_bytes.saturating_add(chunk_bytes / 8).saturating_add(1 << 20)
    }

    /// Undoes the codecs.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are no valid output of the codecs, or decode to more than a chunk.
    pub(super) fn undo(&self, stored: Vec<u8>, chunk_bytes: usize) -> Result<Vec<u8>> {
        let mut bytes = stored;
        for (number, step) in self.steps.iter().enumerate() {
            let is_last = self.steps[number + 1..].iter().all(|step| step.is_checksum());
            let most = self.most_bytes(chunk_bytes as u64, is_last);
            let checksums = self.steps[number + 1..].iter().filter(|step| step.is_checksum()).count();
            let most = usize::try_from(most).unwrap_or(usize::MAX).saturating_add(checksums * CHECKSUM_BYTES);
            bytes = step.undo(bytes, most)?;
        }
        Ok(bytes)
    }
}

fn too_much(what: &str, most: u64, found: u64) -> Error {
    Error::corrupt(format!("expected at most {most} bytes packed by {what}, found at least {found}"))
}

/// A codec's name; version 2 calls it `id`, and some have a prefix in version 3.
pub(super) fn name(codec: &Value) -> &str {
    let name = codec.get("name").or_else(|| codec.get("id")).unwrap_or(codec);
    let name = name.as_str().unwrap_or_default();
    name.strip_prefix("numcodecs.").unwrap_or(name)
}

fn step(codec: &Value) -> Option<BytesCodec> {
    match name(codec) {
        "gzip" => Some(BytesCodec::Gzip),
        "zlib" => Some(BytesCodec::Zlib),
        "bz2" => Some(BytesCodec::Bz2),
        "zstd" => Some(BytesCodec::Zstd),
        "lz4" => Some(BytesCodec::Lz4),
        // Raw streams have no header; their default is 3.
        "lzma" if setting(codec, "format").is_none_or(|format| *format != 3) => Some(BytesCodec::Lzma),
        "blosc" => Some(BytesCodec::Blosc),
        "shuffle" => {
            let size = setting(codec, "elementsize").and_then(Value::as_u64).unwrap_or(4);
            usize::try_from(size)
                .ok()
                .filter(|size| (1..=MAX_SHUFFLED).contains(size))
                .map(BytesCodec::Shuffle)
        }
        "crc32c" if setting(codec, "location").is_none_or(|at| at == "end") => Some(BytesCodec::Crc32c),
        "crc32c" if setting(codec, "location").is_some_and(|at| at == "start") => {
            Some(BytesCodec::Crc32cFirst)
        }
        "crc32" if setting(codec, "location").is_none_or(|at| at == "start") => Some(BytesCodec::Crc32),
        "adler32" if setting(codec, "location").is_none_or(|at| at == "start") => Some(BytesCodec::Adler32),
        _ => None,
    }
}

/// Largest element of the shuffle codec, bytes.
const MAX_SHUFFLED: usize = 64 << 10;

/// Returns a setting of a codec; in version 2 settings are beside the name.
fn setting<'a>(codec: &'a Value, name: &str) -> Option<&'a Value> {
    codec.get("configuration").unwrap_or(codec).get(name)
}

impl BytesCodec {
    fn is_checksum(self) -> bool {
        matches!(self, Self::Crc32c | Self::Crc32cFirst | Self::Crc32 | Self::Adler32)
    }

    fn undo(self, bytes: Vec<u8>, most: usize) -> Result<Vec<u8>> {
        match self {
            Self::Lz4 => unpack_lz4(&bytes, most),
            Self::Lzma => unpack("lzma", lzma(&bytes)?, most),
            Self::Blosc => unpack_blosc(&bytes, most),
            Self::Shuffle(size) => Ok(unshuffled(&bytes, size)),
            Self::Crc32cFirst => verify_first(&bytes, crc32c::crc32c),
            Self::Crc32 => verify_first(&bytes, |data| {
                let mut sum = flate2::Crc::new();
                sum.update(data);
                sum.sum()
            }),
            Self::Adler32 => verify_first(&bytes, adler32),
            Self::Gzip => unpack("gzip", flate2::read::MultiGzDecoder::new(&bytes[..]), most),
            Self::Zlib => unpack("zlib", flate2::read::ZlibDecoder::new(&bytes[..]), most),
            Self::Bz2 => unpack("bz2", bzip2::read::BzDecoder::new(&bytes[..]), most),
            Self::Zstd => unpack_zstd(&bytes, most),
            Self::Crc32c => verify(bytes),
        }
    }
}

fn unpack(what: &str, mut packed: impl Read, most: usize) -> Result<Vec<u8>> {
    let corrupt =
        |e: std::io::Error| Error::corrupt(format!("expected a chunk packed by {what}, found: {e}"));
    let mut bytes = vec![0; most];
    let mut size = 0;
    while size < most {
        match packed.read(&mut bytes[size..]).map_err(corrupt)? {
            0 => break,
            read => size += read,
        }
    }
    // Also reads the checksum at the end.
    if packed.read(&mut [0]).map_err(corrupt)? > 0 {
        return Err(too_much(what, most as u64, most as u64 + 1));
    }
    bytes.truncate(size);
    Ok(bytes)
}

/// Decompresses a frame in one piece: a stream would allocate a window as large as the frame requests.
fn unpack_zstd(packed: &[u8], most: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; most];
    let unpacked = zstd::bulk::decompress_to_buffer(packed, &mut bytes[..]);
    let size = unpacked.map_err(|e| {
        Error::corrupt(format!("expected a chunk of at most {most} bytes packed by zstd, found: {e}"))
    })?;
    bytes.truncate(size);
    Ok(bytes)
}

fn verify(mut bytes: Vec<u8>) -> Result<Vec<u8>> {
    let Some((data, stored)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(Error::corrupt("expected a chunk with a checksum, found less than four bytes"));
    };
    let (stored, computed) = (u32::from_le_bytes(*stored), crc32c::crc32c(data));
    if stored != computed {
        return Err(Error::corrupt(format!("expected the checksum {stored:08x}, found {computed:08x}")));
    }
    bytes.truncate(bytes.len() - CHECKSUM_BYTES);
    Ok(bytes)
}

fn lzma(bytes: &[u8]) -> Result<impl Read> {
    let stream = liblzma::stream::Stream::new_auto_decoder(MAX_LZMA_BYTES, 0);
    let stream =
        stream.map_err(|e| Error::corrupt(format!("expected a chunk packed by lzma, found: {e}")))?;
    Ok(liblzma::read::XzDecoder::new_stream(bytes, stream))
}

/// The size in four bytes, then one block.
fn unpack_lz4(packed: &[u8], most: usize) -> Result<Vec<u8>> {
    let (size, block) =
        packed.split_first_chunk::<4>().ok_or_else(|| Error::corrupt("expected a chunk packed by lz4"))?;
    let size = u32::from_le_bytes(*size) as usize;
    if size > most {
        return Err(too_much("lz4", most as u64, size as u64));
    }
    let mut bytes = vec![0; size];
    let corrupt = |e| Error::corrupt(format!("expected a chunk packed by lz4, found: {e}"));
    let found = lz4_flex::block::decompress_into(block, &mut bytes).map_err(corrupt)?;
    bytes.truncate(found);
    Ok(bytes)
}

/// The size in the header is checked before.
fn unpack_blosc(packed: &[u8], most: usize) -> Result<Vec<u8>> {
    let promised = packed.get(4..8).and_then(|raw| raw.first_chunk::<4>()).copied().map(u32::from_le_bytes);
    let promised = promised
        .ok_or_else(|| Error::corrupt("expected a chunk packed by blosc, found less than a header"))?
        as usize;
    if promised > most {
        return Err(too_much("blosc", most as u64, promised as u64));
    }
    if promised == 0 { Ok(Vec::new()) } else { blosc::decode(packed, promised) }
}

/// Undoes a shuffle; bytes behind the last whole element are not shuffled.
pub(super) fn unshuffled(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut out = vec![0; bytes.len()];
    unshuffle(bytes, size, &mut out);
    out
}

/// The bytes behind a checksum of theirs.
fn verify_first(bytes: &[u8], sum: impl Fn(&[u8]) -> u32) -> Result<Vec<u8>> {
    let Some((stored, data)) = bytes.split_first_chunk::<CHECKSUM_BYTES>() else {
        return Err(Error::corrupt("expected a chunk with a checksum, found less than four bytes"));
    };
    let (stored, computed) = (u32::from_le_bytes(*stored), sum(data));
    if stored != computed {
        return Err(Error::corrupt(format!("expected the checksum {stored:08x}, found {computed:08x}")));
    }
    Ok(data.to_vec())
}

/// Computes the checksum as zlib does.
fn adler32(data: &[u8]) -> u32 {
    const LARGEST_PRIME: u32 = 65_521;
    let (mut a, mut b) = (1u32, 0u32);
    // Number of bytes for which neither sum overflows before it is reduced.
    for part in data.chunks(5_552) {
        for &byte in part {
            a += u32::from(byte);
            b += a;
        }
        (a, b) = (a % LARGEST_PRIME, b % LARGEST_PRIME);
    }
    b << 16 | a
}
