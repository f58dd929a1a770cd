//! Samples: the ratio and speed of every compression method on a small part of the data.

use std::time::Duration;

use bytes::Bytes;
use control::compression::{Sampled, may_help};
use tokio::time::Instant;
use wire::compression::{Algorithm, CompressionMethod};

/// Number of stretches in a sample.
const STRETCHES: usize = 4;
/// Size of a stretch, bytes.
const STRETCH_BYTES: usize = 16 << 10;
/// Levels of LZ4 and Zstandard that are tried, each with the maximum speed of one core, in bytes per second.
const LZ4_LEVELS: [(u8, f64); 1] = [(1, f64::MAX)];
const ZSTD_LEVELS: [(u8, f64); 3] = [(1, 600e6), (3, 300e6), (7, 100e6)];

/// Returns stretches spread evenly over the data, each of whole elements.
pub(super) fn stretches(data: &Bytes, item_bytes: usize) -> Vec<u8> {
    let item = item_bytes.max(1);
    let size = (STRETCH_BYTES / item * item).min(data.len());
    let apart = data.len().saturating_sub(size) / (STRETCHES - 1) / item * item;
    let starts = (0..STRETCHES).map(|n| n * apart).take(if apart < size { 1 } else { STRETCHES });
    starts.flat_map(|start| &data[start..start + size]).copied().collect()
}

/// Tries all methods that may help over such a link; returns them with the fastest first, in a deterministic order.
pub(super) fn try_all(
    sample: &[u8],
    width: u8,
    algorithms: &[Algorithm],
    link_bytes_per_sec: f64,
) -> Vec<(CompressionMethod, Sampled)> {
    let levels = |&algorithm: &Algorithm| {
        let levels = if algorithm == Algorithm::Zstd { &ZSTD_LEVELS[..] } else { &LZ4_LEVELS[..] };
        let helping = levels.iter().filter(|(_, fastest)| may_help(link_bytes_per_sec, *fastest));
        helping.map(move |&(level, _)| (algorithm, level))
    };
    let width = better_width(sample, width, algorithms);
    let methods = algorithms.iter().flat_map(levels).map(|(algorithm, level)| CompressionMethod {
        algorithm,
        level,
        width,
    });
    methods.map(|method| (method, try_one(sample, method))).collect()
}

/// Chooses whether elements are shuffled by significance, by the result of the first method.
fn better_width(sample: &[u8], width: u8, algorithms: &[Algorithm]) -> u8 {
    let Some(&algorithm) = algorithms.first().filter(|_| width > 1) else { return 1 };
    let size = |width| {
        let done = CompressionMethod { algorithm, level: 1, width }.compress(sample);
        done.map_or(sample.len(), |(_, carried)| carried.len())
    };
    if size(width) < size(1) { width } else { 1 }
}

fn try_one(sample: &[u8], method: CompressionMethod) -> Sampled {
    let start = Instant::now();
    let done = method.compress(sample);
    let took = start.elapsed();
    let Some((how, carried)) = done else { return sampled(sample.len(), sample.len(), took, f64::MAX) };
    let start = Instant::now();
    // Data that were just compressed can be decompressed.
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
