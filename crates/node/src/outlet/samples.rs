//! Samples: what every way of compressing makes of a small part of the data, and how fast.

use std::time::Duration;

use bytes::Bytes;
use control::compression::Sampled;
use tokio::time::Instant;
use wire::compression::{Algorithm, Way};

/// Size of a sample.
const SAMPLE_BYTES: usize = 64 << 10;
/// Of Zstandard: how hard to try.
const LEVELS: [u8; 3] = [1, 3, 7];

/// A part from the middle of the data that begins with an element.
pub(super) fn middle(data: &Bytes, item_bytes: usize) -> Bytes {
    let start = data.len().saturating_sub(SAMPLE_BYTES) / 2;
    let start = start - start % item_bytes.max(1);
    data.slice(start..data.len().min(start + SAMPLE_BYTES))
}

/// All ways, in an order that is always the same.
pub(super) fn try_all(sample: &[u8], width: u8, algorithms: &[Algorithm]) -> Vec<(Way, Sampled)> {
    let levels = |&algorithm: &Algorithm| {
        let levels = if algorithm == Algorithm::Zstd { &LEVELS[..] } else { &LEVELS[..1] };
        levels.iter().map(move |&level| (algorithm, level))
    };
    let width = better_width(sample, width, algorithms);
    let ways = algorithms.iter().flat_map(levels).map(|(algorithm, level)| Way { algorithm, level, width });
    ways.map(|way| (way, try_one(sample, way))).collect()
}

/// Whether elements are to be sorted by significance, as the first way says.
fn better_width(sample: &[u8], width: u8, algorithms: &[Algorithm]) -> u8 {
    let Some(&algorithm) = algorithms.first().filter(|_| width > 1) else { return 1 };
    let size = |width| {
        let done = Way { algorithm, level: LEVELS[0], width }.compress(sample);
        done.map_or(sample.len(), |(_, carried)| carried.len())
    };
    if size(width) < size(1) { width } else { 1 }
}

fn try_one(sample: &[u8], way: Way) -> Sampled {
    let start = Instant::now();
    let done = way.compress(sample);
    let took = start.elapsed();
    let Some((how, carried)) = done else { return sampled(sample.len(), sample.len(), took, f64::MAX) };
    let start = Instant::now();
    // What was compressed just now can be restored.
    let restored_bytes = how.restore(&carried).map_or(0, |restored| restored.len());
    let restore_bytes_per_sec = rate(restored_bytes, start.elapsed());
    sampled(sample.len(), carried.len(), took, restore_bytes_per_sec)
}

pub(super) fn sampled(
    data_bytes: usize,
    carried_bytes: usize,
    took: Duration,
    restore_bytes_per_sec: f64,
) -> Sampled {
    Sampled {
        ratio: as_f64(data_bytes) / as_f64(carried_bytes.max(1)),
        compress_bytes_per_sec: rate(data_bytes, took),
        restore_bytes_per_sec,
    }
}

fn rate(bytes: usize, took: Duration) -> f64 {
    as_f64(bytes) / took.as_secs_f64().max(1e-9)
}

#[expect(clippy::cast_precision_loss, reason = "sizes of pieces are far below 2^52")]
fn as_f64(bytes: usize) -> f64 {
    bytes as f64
}
