//! Statistics of decoded values: count, extremes, mean and a histogram, computed in one pass and mergeable.
//!
//! The histogram needs no range beforehand: the width of its bins is a power of two, and their edges are multiples of it; when a value
//! falls outside, neighboring bins are merged until it fits. So the result does not depend on the order in which blocks arrive, and
//! integers of a small range get one bin each.

use serde::{Deserialize, Serialize};

use crate::{DType, Decoding, Element, Error, Result, ValueRange, elements, with_element};

/// Fewest bins of a histogram; enough for the whole range of doubles.
pub const MIN_BINS: usize = 8;
/// Most bins of a histogram; more than a screen is wide.
pub const MAX_BINS: usize = 4096;

/// Statistics of the decoded values of a selection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueStats {
    /// Values present: finite and not missing.
    pub count: u64,
    /// Elements that are missing, NaN or infinite.
    pub missing: u64,
    /// Smallest value present.
    pub min: Option<f64>,
    /// Largest value present.
    pub max: Option<f64>,
    /// Mean of the values present.
    pub mean: Option<f64>,
    /// Distribution of the values; absent if there are no values or no bins were requested.
    pub histogram: Option<ValueHistogram>,
}

/// Counts of values in bins of equal width.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueHistogram {
    /// Lower edge of the first bin.
    pub low: f64,
    /// Upper edge of the last bin; belongs to the bin after it.
    pub high: f64,
    /// Values per bin, from low to high.
    pub counts: Vec<u64>,
}

/// Computes [`ValueStats`] block by block.
#[derive(Clone, Debug)]
pub struct Accumulator {
    count: u64,
    missing: u64,
    min: f64,
    max: f64,
    sum: f64,
    /// Sum of the rounding errors of `sum` so far (Neumaier's summation).
    lost: f64,
    bins: Bins,
}

impl Accumulator {
    /// Creates an accumulator with a histogram of at most `bins` bins; 0 for none.
    ///
    /// # Errors
    /// `Invalid` outside [`MIN_BINS`] to [`MAX_BINS`].
    pub fn new(bins: usize) -> Result<Self> {
        if bins != 0 && !(MIN_BINS..=MAX_BINS).contains(&bins) {
            return Err(Error::invalid(format!("expected 0 or {MIN_BINS} to {MAX_BINS} bins, found {bins}")));
        }
        Ok(Self {
            count: 0,
            missing: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            sum: 0.0,
            lost: 0.0,
            bins: Bins { counts: vec![0; bins], first: 0, log2_width: MIN_LOG2_WIDTH, is_empty: true },
        })
    }

    /// Adds elements as stored.
    ///
    /// # Errors
    /// `Corrupt` when `stored` is no whole number of elements.
    pub fn add(&mut self, stored: &[u8], dtype: DType, decoding: &Decoding) -> Result<()> {
        if !stored.len().is_multiple_of(dtype.size_bytes()) {
            return Err(Error::corrupt(format!(
                "expected a whole number of `{dtype}` elements, found {} bytes",
                stored.len()
            )));
        }
        with_element!(decoding.meant(dtype).element(), T => for value in elements::<T>(stored, dtype.order()) {
            self.add_value(decoding.decode(value.to_scalar()));
        });
        Ok(())
    }

    /// Adds one decoded value; NaN and infinities count as missing.
    pub fn add_value(&mut self, value: f64) {
        if !value.is_finite() {
            self.missing += 1;
            return;
        }
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.add_to_sum(value);
        self.bins.add(value, 1);
    }

    fn add_to_sum(&mut self, value: f64) {
        let total = self.sum + value;
        self.lost += if self.sum.abs() >= value.abs() {
            (self.sum - total) + value
        } else {
            (value - total) + self.sum
        };
        self.sum = total;
    }

    /// Adds the values of another accumulator. The histogram keeps its own number of bins.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.missing += other.missing;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.add_to_sum(other.sum);
        self.lost += other.lost;
        self.bins.merge(&other.bins);
    }

    /// Returns the statistics of all elements added so far.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a mean over 2^53 values is rounded anyway")]
    pub fn stats(&self) -> ValueStats {
        let present = |value: f64| (self.count > 0).then_some(value);
        ValueStats {
            count: self.count,
            missing: self.missing,
            min: present(self.min),
            max: present(self.max),
            mean: present((self.sum + self.lost) / self.count as f64),
            histogram: self.bins.histogram(),
        }
    }
}

/// Narrowest bins, as a power of two by which doubles are multiplied and divided exactly.
const MIN_LOG2_WIDTH: i32 = -1000;
/// Widest bins, as a power of two by which doubles are multiplied and divided exactly.
const MAX_LOG2_WIDTH: i32 = 1022;
/// Largest number of a bin: doubles represent every integer up to it.
const MAX_BIN_NUMBER: f64 = 4_503_599_627_370_496.0;

/// 2 to the power of `n`, exactly, for -1022 to 1023.
#[expect(clippy::cast_sign_loss, reason = "the biased exponent is positive")]
fn power_of_two(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// Bin `first + i` covers `[(first + i) * width, (first + i + 1) * width)`.
#[derive(Clone, Debug)]
struct Bins {
    counts: Vec<u64>,
    first: i64,
    log2_width: i32,
    is_empty: bool,
}

impl Bins {
    #[inline]
    fn number(value: f64, log2_width: i32) -> f64 {
        let number = value * power_of_two(-log2_width);
        // A tiny negative value must not become zero by underflow.
        if number == 0.0 && value < 0.0 { -1.0 } else { number.floor() }
    }

    #[inline]
    fn add(&mut self, value: f64, times: u64) {
        if self.counts.is_empty() {
            return;
        }
        let number = Self::number(value, self.log2_width);
        match self.slot(number).filter(|_| !self.is_empty) {
            Some(slot) => self.counts[slot] += times,
            None => self.make_room(value, times),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "bounded by MAX_BIN_NUMBER")]
    fn slot(&self, number: f64) -> Option<usize> {
        if number.abs() > MAX_BIN_NUMBER {
            return None;
        }
        let slot = usize::try_from(number as i64 - self.first).ok()?;
        (slot < self.counts.len()).then_some(slot)
    }

    /// The slots in use, as bin numbers.
    fn used(&self) -> Option<(i64, i64)> {
        let low = self.counts.iter().position(|&n| n > 0)?;
        let high = self.counts.iter().rposition(|&n| n > 0)?;
        Some((self.first + low as i64, self.first + high as i64))
    }

    /// Joins bins until `value` fits beside those in use, then counts it.
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "bounded by MAX_BIN_NUMBER")]
    fn make_room(&mut self, value: f64, times: u64) {
        let mut log2_width = self.log2_width;
        while Self::number(value, log2_width).abs() > MAX_BIN_NUMBER && log2_width < MAX_LOG2_WIDTH {
            log2_width += 1;
        }
        let low = loop {
            let number = Self::number(value, log2_width) as i64;
            let joined = |n: i64| n >> (log2_width - self.log2_width).min(63);
            let (low, high) = self.used().map_or((number, number), |(l, h)| (joined(l), joined(h)));
            let (low, high) = (low.min(number), high.max(number));
            // MIN_BINS of the widest bins hold every double.
            if high - low < self.counts.len() as i64 || log2_width == MAX_LOG2_WIDTH {
                break low;
            }
            log2_width += 1;
        };
        self.rebin(low, log2_width);
        self.is_empty = false;
        let slot = self.slot(Self::number(value, self.log2_width)).unwrap_or(0);
        self.counts[slot] += times;
    }

    /// Moves the counts to bins of the new width, starting at bin number `first`.
    fn rebin(&mut self, first: i64, log2_width: i32) {
        let mut counts = vec![0; self.counts.len()];
        let shift = (log2_width - self.log2_width).min(63);
        for (at, &n) in self.counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            let number = (self.first + at as i64) >> shift;
            let slot = usize::try_from(number - first).unwrap_or(0).min(counts.len() - 1);
            counts[slot] += n;
        }
        (self.counts, self.first, self.log2_width) = (counts, first, log2_width);
    }

    fn merge(&mut self, other: &Self) {
        for (at, &n) in other.counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            let low = other.edge(other.first + at as i64);
            self.coarsen_to(other.log2_width);
            self.add(low, n);
        }
    }

    /// Widens the bins to at least those of another histogram, so that each of its bins lies in one bin of this one.
    fn coarsen_to(&mut self, log2_width: i32) {
        if self.log2_width < log2_width {
            let shift = (log2_width - self.log2_width).min(63);
            self.rebin(self.first >> shift, log2_width);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "bounded by MAX_BIN_NUMBER")]
    fn edge(&self, number: i64) -> f64 {
        (number as f64 * power_of_two(self.log2_width)).min(f64::MAX)
    }

    fn histogram(&self) -> Option<ValueHistogram> {
        let (low, high) = self.used()?;
        let slots = usize::try_from(low - self.first).ok()?..=usize::try_from(high - self.first).ok()?;
        Some(ValueHistogram {
            low: self.edge(low),
            high: self.edge(high + 1),
            counts: self.counts[slots].to_vec(),
        })
    }
}

/// Range of the stored values that are present (neither NaN nor missing), as blocks carry it.
#[must_use]
pub fn value_range(stored: &[u8], dtype: DType, decoding: &Decoding) -> Option<ValueRange> {
    fn extremes<T: Element>(stored: &[u8], dtype: DType, exists: impl Fn(T) -> bool) -> Option<ValueRange> {
        let mut found: Option<(T, T)> = None;
        for value in elements::<T>(stored, dtype.order()).filter(|v| exists(*v)) {
            let (min, max) = found.unwrap_or((value, value));
            found = Some((if value < min { value } else { min }, if value > max { value } else { max }));
        }
        found.map(|(min, max)| ValueRange { min: min.to_scalar(), max: max.to_scalar() })
    }
    let dtype = decoding.meant(dtype);
    with_element!(dtype.element(), T => if !decoding.hides_some() {
        extremes::<T>(stored, dtype, |v| !v.is_nan())
    } else {
        extremes::<T>(stored, dtype, |v| !v.is_nan() && !decoding.is_missing(v.to_scalar()))
    })
}
