//! Choice of the compression of data before they are sent, from measurements of the link and of samples of
//! the data, never from their names.
//!
//! A compression method delivers data at the rate of its slowest stage: compression, the link times the
//! compression ratio, decompression. It is used when that exceeds sending the data uncompressed by a margin,
//! because cores that compress do not encrypt meanwhile. [`Goodput`] measures the link, [`SampleSchedule`]
//! decides when another sample is due, [`choose`] selects the method.

mod goodput;
mod sampling;

pub use goodput::Goodput;
pub use sampling::SampleSchedule;

/// Performance of a compression method on a sample of the data, with one core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    /// Compression ratio: bytes of data for each byte sent.
    pub ratio: f64,
    /// Compression speed, bytes of data per second.
    pub compress_bytes_per_sec: f64,
    /// Decompression speed, bytes of data per second.
    pub restore_bytes_per_sec: f64,
}

/// Part of a core's speed that is available: the rest is for encryption, reading and other clients.
const CORE_SHARE: f64 = 0.5;
/// Factor by which a method must exceed no compression.
const LEAST_GAIN: f64 = 1.2;
/// Factor by which a method must exceed the present one.
const LEAST_CHANGE: f64 = 1.03;
/// Lower bound of the bytes sent for each byte of data.
const LEAST_SHARE: f64 = 1e-3;
/// Fastest link that is compressed for, bytes per second; above it no samples are taken. Faster links are
/// often bound by processors (loopback, encryption), and compression then makes them slower: by two fifths
/// where it was tried at 130 MB/s.
pub const FASTEST_BYTES_PER_SEC: f64 = 60e6;

impl Sampled {
    /// Average of the known performance and a newer sample, which counts by `weight` (0 to 1). Times and
    /// sizes are averaged, not rates: a run of zeros says little about the rest.
    #[must_use]
    pub fn towards(self, found: Self, weight: f64) -> Self {
        let mean = |known: f64, found: f64| 1.0 / ((1.0 - weight) / known + weight / found);
        Self {
            ratio: mean(self.ratio, found.ratio),
            compress_bytes_per_sec: mean(self.compress_bytes_per_sec, found.compress_bytes_per_sec),
            restore_bytes_per_sec: mean(self.restore_bytes_per_sec, found.restore_bytes_per_sec),
        }
    }

    /// Corrects the estimate of this method by another method, measured on the same samples, whose
    /// performance turned out to be `after` and not `before`. Whole pieces compress better than samples of
    /// them, and a busy host is slower with any method. Without this correction the current method would seem
    /// better than those that are known from samples only.
    #[must_use]
    pub fn along_with(self, before: Self, after: Self) -> Self {
        // Bytes sent for each byte of data: their differences are similar where ratios are not, because zeros
        // become a thousand times smaller.
        let share = 1.0 / self.ratio + 1.0 / after.ratio - 1.0 / before.ratio;
        let compress = after.compress_bytes_per_sec / before.compress_bytes_per_sec;
        Self {
            ratio: 1.0 / share.clamp(LEAST_SHARE, 1.0),
            compress_bytes_per_sec: self.compress_bytes_per_sec * compress,
            restore_bytes_per_sec: self.restore_bytes_per_sec,
        }
    }

    /// Rate of delivered data, bytes per second, over a link that carries `link_bytes_per_sec`.
    #[must_use]
    pub fn delivers(&self, link_bytes_per_sec: f64) -> f64 {
        let cores = self.compress_bytes_per_sec.min(self.restore_bytes_per_sec) * CORE_SHARE;
        (link_bytes_per_sec * self.ratio).min(cores)
    }
}

/// True when a method that compresses at most this fast, with one core, can exceed no compression over this
/// link.
#[must_use]
pub fn may_help(link_bytes_per_sec: f64, fastest_bytes_per_sec: f64) -> bool {
    fastest_bytes_per_sec * CORE_SHARE > link_bytes_per_sec * LEAST_GAIN
}

/// True when one of these methods reduces the data enough to help over some link. Incompressible data need no
/// measurement of the link, and must not wait for one.
#[must_use]
pub fn is_compressible(methods: &[Sampled]) -> bool {
    methods.iter().any(|method| method.ratio >= LEAST_GAIN)
}

/// Selects the method for a link that carries `link_bytes_per_sec`: its index in `methods`, or `None`.
/// `current` is kept where no other method is clearly better.
#[must_use]
pub fn choose(link_bytes_per_sec: f64, methods: &[Sampled], current: Option<usize>) -> Option<usize> {
    let delivers = |index: Option<usize>| match index.and_then(|index| methods.get(index)) {
        Some(method) => method.delivers(link_bytes_per_sec),
        None => link_bytes_per_sec,
    };
    // A method that is slower than no compression is not kept.
    let current = current.filter(|&index| delivers(Some(index)) > link_bytes_per_sec);
    let indices = (0..methods.len()).map(Some);
    let best = indices.max_by(|&a, &b| delivers(a).total_cmp(&delivers(b))).flatten();
    let least = if current.is_none() { LEAST_GAIN } else { LEAST_CHANGE };
    if delivers(best) > delivers(current) * least { best } else { current }
}

#[cfg(test)]
mod tests;
