//! Index of one gzip file: restart points, found in one pass and kept in the side cache.

use std::io::{Read, Write};

use array::Result;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::MAX_SEGMENT_BYTES;
use super::decoder::{DecoderStop, GzipDecoder};
use crate::cache::chunk_cache::ChunkStore;
use crate::{CancelFlag, FileBytes};

/// Most restart points of a gzip file; beyond, every other one is removed and the spacing doubles. Their compressed windows are the
/// memory cost of an index: rarely more than half of 32 KiB each.
const MAX_POINTS: usize = 2048;
/// Bytes of earlier output to which deflate may refer back.
const WINDOW_BYTES: usize = 32 << 10;
/// Compressed bytes between two reports of progress.
const TELL_BYTES: u64 = 4 << 20;
/// Version of the format in which an index is kept.
const VERSION: u64 = 1;

/// Restart point: a position from which decoding can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RestartPoint {
    /// Position in the unpacked data.
    pub(super) unpacked: u64,
    /// The next byte of the file.
    pub(super) packed: u64,
    /// Number of bits of the byte before that are not used yet.
    pub(super) bits: u8,
    /// The output before it, deflated.
    window: Vec<u8>,
}

impl RestartPoint {
    fn new(unpacked: u64, packed: u64, bits: u8, window: &[u8]) -> Result<Self> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(window)?;
        Ok(Self { unpacked, packed, bits, window: encoder.finish()? })
    }

    /// The output before it, at most 32 KiB.
    pub(super) fn window(&self) -> Result<Vec<u8>> {
        let mut window = Vec::with_capacity(WINDOW_BYTES);
        DeflateDecoder::new(self.window.as_slice()).take(WINDOW_BYTES as u64).read_to_end(&mut window)?;
        Ok(window)
    }
}

/// Distance between restart points.
#[derive(Clone, Copy, Debug)]
pub(super) struct PointSpacing {
    /// Output between two of them, at first.
    pub(super) first_bytes: u64,
    /// Number of points at which every other one is removed.
    pub(super) most_points: usize,
}

impl Default for PointSpacing {
    fn default() -> Self {
        Self { first_bytes: 1 << 20, most_points: MAX_POINTS }
    }
}

/// The restart points of a file, in order; the first is its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GzipIndex {
    pub(super) points: Vec<RestartPoint>,
    /// Size of the unpacked data.
    pub(super) size_bytes: u64,
    /// The file ended before its data.
    pub(super) is_cut: bool,
}

impl GzipIndex {
    /// Which segment holds the unpacked byte `at`.
    pub(super) fn segment_at(&self, at: u64) -> usize {
        self.points.partition_point(|p| p.unpacked <= at).saturating_sub(1)
    }

    /// Start and end of a segment in the unpacked data.
    pub(super) fn span(&self, number: usize) -> (u64, u64) {
        let end = self.points.get(number + 1).map_or(self.size_bytes, |p| p.unpacked);
        (self.points[number].unpacked, end)
    }

    /// Decompresses the whole file once, and reports progress in compressed bytes at intervals. Decoded bytes are kept in `segments` as far as
    /// there is memory.
    pub(super) fn build(
        file: &FileBytes,
        start: u64,
        spacing: PointSpacing,
        tell: &dyn Fn(u64),
        segments: &ChunkStore,
        cancel: &CancelFlag,
    ) -> Result<Self> {
        let mut decoder = GzipDecoder::start(file, start)?;
        let mut points = vec![RestartPoint::new(0, decoder.packed(), 0, &[])?];
        let room = segments.scratch().try_reserve(MAX_SEGMENT_BYTES);
        let segment = || room.as_ref().map(|_| Vec::new());
        let mut pass = IndexingPass {
            window: Vec::new(),
            segment: segment(),
            unpacked: 0,
            spacing: spacing.first_bytes,
        };
        let mut output = vec![0; 128 << 10];
        let mut told = 0;
        let is_cut = loop {
            cancel.check()?;
            let (produced, stop) = decoder.step(&mut output, true)?;
            pass.take(&output[..produced]);
            if decoder.packed() >= told + TELL_BYTES || matches!(stop, DecoderStop::End | DecoderStop::Cut) {
                told = decoder.packed();
                tell(told);
            }
            match stop {
                DecoderStop::Within => {}
                DecoderStop::End => break false,
                DecoderStop::Cut => break true,
                DecoderStop::Block { packed, bits } => {
                    let last = points.last().map_or(0, |p| p.unpacked);
                    if pass.unpacked - last >= pass.spacing {
                        if let Some(whole) = std::mem::replace(&mut pass.segment, segment()) {
                            segments.put(0, points.len() as u64 - 1, whole);
                        }
                        points.push(RestartPoint::new(pass.unpacked, packed, bits, &pass.window)?);
                        if points.len() >= spacing.most_points {
                            thin(&mut points);
                            pass.spacing *= 2;
                            segments.clear();
                            // The point where it begins may be gone.
                            pass.segment = None;
                        }
                    }
                }
            }
        };
        Ok(Self { points, size_bytes: pass.unpacked, is_cut })
    }

    /// Encodes the index for the side cache, which checks the bytes and the identity of the file.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [VERSION, self.size_bytes, self.points.len() as u64] {
            bytes.extend(number.to_le_bytes());
        }
        for point in &self.points {
            for number in [point.unpacked, point.packed, u64::from(point.bits), point.window.len() as u64] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend(&point.window);
        }
        bytes
    }

    /// Parses the output of [`encode`](Self::encode); `None` for anything else.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let (version, size_bytes, count) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
        if version != VERSION || count == 0 || count > MAX_POINTS as u64 {
            return None;
        }
        let mut points = Vec::new();
        for _ in 0..count {
            let (unpacked, packed) = (number(&mut rest)?, number(&mut rest)?);
            let bits = u8::try_from(number(&mut rest)?).ok().filter(|&b| b < 8)?;
            let length = usize::try_from(number(&mut rest)?).ok()?;
            let (window, after) = rest.split_at_checked(length)?;
            points.push(RestartPoint { unpacked, packed, bits, window: window.to_vec() });
            rest = after;
        }
        let in_order = points.windows(2).all(|w| w[0].unpacked < w[1].unpacked);
        let complete = points[0].unpacked == 0 && points.iter().all(|p| p.unpacked <= size_bytes);
        (in_order && complete && rest.is_empty()).then_some(Self { points, size_bytes, is_cut: false })
    }
}

/// State of the pass through the data that makes the index.
struct IndexingPass {
    /// The last 32 KiB.
    window: Vec<u8>,
    /// Output since the last point, unless it is too long to keep.
    segment: Option<Vec<u8>>,
    unpacked: u64,
    spacing: u64,
}

impl IndexingPass {
    fn take(&mut self, output: &[u8]) {
        self.unpacked += output.len() as u64;
        let keep = WINDOW_BYTES.saturating_sub(output.len()).min(self.window.len());
        self.window.drain(..self.window.len() - keep);
        self.window.extend(&output[output.len().saturating_sub(WINDOW_BYTES)..]);
        if let Some(segment) = &mut self.segment {
            if (segment.len() + output.len()) as u64 <= MAX_SEGMENT_BYTES {
                segment.extend(output);
            } else {
                self.segment = None;
            }
        }
    }
}

/// Gives up every other point, keeping the first.
fn thin(points: &mut Vec<RestartPoint>) {
    let mut number = 0;
    points.retain(|_| {
        number += 1;
        number % 2 == 1
    });
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (first, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(u64::from_le_bytes(*first))
}
