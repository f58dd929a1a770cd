//! Whether data are compressed before they are sent, and how: decided from what was measured of the link and of samples
//! of the data, never from what either is called.
//!
//! A way of compressing delivers data at the rate of its slowest stage: compressing, the link times what the way saves,
//! restoring. It is taken when that beats sending the data as they are by a margin, for cores that compress do not
//! encrypt meanwhile. [`Goodput`] measures the link, [`SampleSchedule`] says when another sample is due, [`choose`] decides.

mod goodput;
mod sampling;

pub use goodput::Goodput;
pub use sampling::SampleSchedule;

/// Performance of a way of compressing on a sample of the data, with one core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    /// Bytes of data for each byte that is sent.
    pub ratio: f64,
    /// Data compressed, bytes per second.
    pub compress_bytes_per_sec: f64,
    /// Data restored, bytes per second.
    pub restore_bytes_per_sec: f64,
}

/// The part of a core's speed that is counted upon: the rest is for encryption, reading and other clients.
const CORE_SHARE: f64 = 0.5;
/// A way has to be better than no compression by this factor, and than another way by the second one.
const LEAST_GAIN: f64 = 1.2;
const LEAST_CHANGE: f64 = 1.03;
/// Less is never expected to be sent of a byte of data.
const LEAST_SHARE: f64 = 1e-3;
/// A link that is faster than this is never compressed for, and no sample is taken for it: bytes per second. What is faster
/// is often bound by processors rather than by a link (loopback, encryption), and then compression makes it slower: where
/// it was tried at 130 MB/s, by two fifths.
pub const FASTEST_BYTES_PER_SEC: f64 = 60e6;

impl Sampled {
    /// Average of what is known and a newer sample, which counts by `weight` (0 to 1). Times and sizes are averaged, not
    /// rates: a stretch of zeros says little about the rest.
    #[must_use]
    pub fn towards(self, found: Self, weight: f64) -> Self {
        let mean = |known: f64, found: f64| 1.0 / ((1.0 - weight) / known + weight / found);
        Self {
            ratio: mean(self.ratio, found.ratio),
            compress_bytes_per_sec: mean(self.compress_bytes_per_sec, found.compress_bytes_per_sec),
            restore_bytes_per_sec: mean(self.restore_bytes_per_sec, found.restore_bytes_per_sec),
        }
    }

    /// Estimate for this way after another way, measured on the same samples, turned out to be `after` and not `before`.
    /// Whole pieces are compressed better than samples of them, and a busy host is slower, whatever the way. Without this
    /// correction the way in use would seem better than those that are known from samples only.
    #[must_use]
    pub fn along_with(self, before: Self, after: Self) -> Self {
        // What is sent of each byte, differences of which are alike where ratios are not: zeros become a thousand times smaller.
        let share = 1.0 / self.ratio + 1.0 / after.ratio - 1.0 / before.ratio;
        let compress = after.compress_bytes_per_sec / before.compress_bytes_per_sec;
        Self {
            ratio: 1.0 / share.clamp(LEAST_SHARE, 1.0),
            compress_bytes_per_sec: self.compress_bytes_per_sec * compress,
            restore_bytes_per_sec: self.restore_bytes_per_sec,
        }
    }

    /// Data delivered, bytes per second, over a link that carries `link_bytes_per_sec`.
    #[must_use]
    pub fn delivers(&self, link_bytes_per_sec: f64) -> f64 {
        let cores = self.compress_bytes_per_sec.min(self.restore_bytes_per_sec) * CORE_SHARE;
        (link_bytes_per_sec * self.ratio).min(cores)
    }
}

/// True when a way that compresses at most so fast, with one core, can be better than nothing over this link.
#[must_use]
pub fn may_help(link_bytes_per_sec: f64, fastest_bytes_per_sec: f64) -> bool {
    fastest_bytes_per_sec * CORE_SHARE > link_bytes_per_sec * LEAST_GAIN
}

/// True when one of these ways shrinks the data enough to help over some link. Incompressible data need no measurement of
/// the link, and must not wait for one.
#[must_use]
pub fn is_compressible(ways: &[Sampled]) -> bool {
    ways.iter().any(|way| way.ratio >= LEAST_GAIN)
}

/// The way to take over a link that carries `link_bytes_per_sec`: its place in `ways`, or none. `current` is kept where
/// nothing is clearly better.
#[must_use]
pub fn choose(link_bytes_per_sec: f64, ways: &[Sampled], current: Option<usize>) -> Option<usize> {
    let delivers = |way: Option<usize>| match way.and_then(|place| ways.get(place)) {
        Some(way) => way.delivers(link_bytes_per_sec),
        None => link_bytes_per_sec,
    };
    // What is slower than no compression at all is not kept.
    let current = current.filter(|&place| delivers(Some(place)) > link_bytes_per_sec);
    let places = (0..ways.len()).map(Some);
    let best = places.max_by(|&a, &b| delivers(a).total_cmp(&delivers(b))).flatten();
    let least = if current.is_none() { LEAST_GAIN } else { LEAST_CHANGE };
    if delivers(best) > delivers(current) * least { best } else { current }
}

#[cfg(test)]
mod tests;
