//! Distribution of values of any magnitude: a sorted sample, chosen evenly.
//!
//! A histogram of equal bins is useless if one value of 1e30 lies among values around 1, or if values span twenty powers of ten;
//! quantiles of a sample are not. The positions of values alone decide which are chosen, so the sample does not depend on the order in
//! which blocks arrive.

use crate::{DType, Decoding, Element, Error, Result, elements, with_element};

/// Most values that are kept: enough for quantiles to a hundredth, and sorted in a millisecond.
const MOST: usize = 1 << 14;

/// Share of equal values at one end, far from the others, that are taken for padding.
const PADDING_SHARE: f64 = 0.01;
/// Least distance of padding from the nearest other value, as a share of the range of most others.
const PADDING_GAP: f64 = 0.5;
/// Least distance of padding from the median of the other values, as a multiple of the range of most of these. Used if coarser levels
/// have averaged padding with values, so that there is no gap.
const PADDING_FAR: f64 = 8.0;
/// Least value, plus one, of all bits set that counts as the full scale of integers.
const LEAST_FULL_SCALE: u128 = 1 << 7;
/// Fewest distinct values besides padding: two kinds of values are a mask.
const FEWEST_OTHERS: usize = 3;
/// Fewest sampled values that are taken for padding: in an array of a few values, one at the end may be repeated by chance or by resampling.
const FEWEST_PADDED: usize = 16;

/// Collects a sample of values, block by block.
#[derive(Clone, Debug, Default)]
pub struct ValueSampler {
    /// Hash of the position, and value, of the values chosen so far.
    picked: Vec<(u64, f64)>,
    /// Values are picked whose hash is at most `u64::MAX` shifted right by this.
    shift: u32,
    count: u64,
    infinite: u64,
    low: f64,
    high: f64,
    packing: Option<[f64; 2]>,
    has_missing: bool,
}

/// Result of a [`ValueSampler`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueSample {
    /// Sample of the values, ascending.
    pub sorted: Vec<f64>,
    /// Number of finite values that were added.
    pub count: u64,
    /// Number of infinite values, which are not in `count`.
    pub infinite: u64,
    /// The lowest of all.
    pub low: f64,
    /// The highest of all.
    pub high: f64,
    /// Factor and offset by which integers became these values; `None` where they are no integers as stored.
    pub packing: Option<[f64; 2]>,
    /// Whether some values were missing: the file has a way of its own to mark them.
    pub has_missing: bool,
}

/// Padding: equal values far from all others at one end, which programs write for missing values without declaring them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Padding {
    /// The value.
    pub value: f64,
    /// Share of the values.
    pub share: f64,
    /// Halfway to where the others begin.
    pub border: f64,
}

impl ValueSampler {
    /// Adds the elements of the block numbered `block`, as stored.
    ///
    /// # Errors
    /// `Corrupt` when `stored` is no whole number of elements.
    pub fn add(&mut self, stored: &[u8], dtype: DType, decoding: &Decoding, block: u64) -> Result<()> {
        if !stored.len().is_multiple_of(dtype.size_bytes()) {
            return Err(Error::corrupt(format!(
                "expected a whole number of `{dtype}` elements, found {} bytes",
                stored.len()
            )));
        }
        let first = mix64(block);
        self.packing = dtype.element().is_integer().then_some([decoding.scale, decoding.offset]);
        with_element!(dtype.element(), T => for (place, value) in (0u64..).zip(elements::<T>(stored, dtype.order())) {
            self.add_value(decoding.decode(value.to_scalar()), mix64(first ^ place));
        });
        Ok(())
    }

    fn add_value(&mut self, value: f64, place_hash: u64) {
        if !value.is_finite() {
            self.infinite += u64::from(value.is_infinite());
            self.has_missing |= value.is_nan();
            return;
        }
        (self.low, self.high) =
            if self.count == 0 { (value, value) } else { (self.low.min(value), self.high.max(value)) };
        self.count += 1;
        if place_hash > u64::MAX >> self.shift {
            return;
        }
        self.picked.push((place_hash, value));
        while self.picked.len() > MOST && self.shift < 63 {
            self.shift += 1;
            let most = u64::MAX >> self.shift;
            self.picked.retain(|(place_hash, _)| *place_hash <= most);
        }
    }

    /// Returns the number of finite values that were added.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the distribution of the values added so far.
    #[must_use]
    pub fn spread(&self) -> ValueSample {
        let mut sorted: Vec<f64> = self.picked.iter().map(|(_, value)| *value).collect();
        sorted.sort_by(f64::total_cmp);
        let Self { count, infinite, low, high, packing, has_missing, .. } = *self;
        ValueSample { sorted, count, infinite, low, high, packing, has_missing }
    }
}

impl ValueSample {
    /// The value below which a share (0 to 1) of the values lie; `None` without values.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        quantile(&self.sorted, share)
    }

    /// Share of the values that lie below the first, and above the second.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shares")]
    pub fn outside(&self, [low, high]: [f64; 2]) -> [f64; 2] {
        let total = self.sorted.len().max(1) as f64;
        let below = self.sorted.partition_point(|&v| v < low);
        let above = self.sorted.len() - self.sorted.partition_point(|&v| v <= high);
        let share = |some: usize, is_any: bool| match some {
            // None of them was picked, but the extremes show that there are some.
            0 if is_any => 1.0 / self.count.max(1) as f64,
            some => some as f64 / total,
        };
        [share(below, self.count > 0 && self.low < low), share(above, self.count > 0 && self.high > high)]
    }

    /// Finds padding at either end; the larger share where both ends have some. The highest value is
    /// not taken for padding where it is the full scale of an integer: saturated sensors give it. Where missing values are marked,
    /// only values that programs use as marks, such as -9999, are taken for padding.
    #[must_use]
    pub fn padding(&self) -> Option<Padding> {
        let low = padding(&self.sorted);
        let turned: Vec<f64> = self.sorted.iter().rev().map(|v| -v).collect();
        let high = padding(&turned).map(|p| Padding { value: -p.value, border: -p.border, ..p });
        let high = high.filter(|p| !self.is_full_scale(p.value));
        match (low, high) {
            (Some(low), Some(high)) if high.share > low.share => Some(high),
            (low, high) => low.or(high),
        }
        .filter(|padding| !self.has_missing || is_usual_mark(padding.value))
    }

    /// Whether a value is the largest integer of some number of bits, as stored: 255, 4095 of a camera of 12 bits, 32767, 65535.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a value that does not fit is no full scale"
    )]
    fn is_full_scale(&self, value: f64) -> bool {
        self.packing.is_some_and(|[scale, offset]| {
            // The largest of 64 bits is a power of two as a double.
            let after = (((value - offset) / scale).round() + 1.0) as u128;
            after >= LEAST_FULL_SCALE && after.is_power_of_two()
        })
    }

    /// Returns the distribution without sampled values at or beyond the border of padding. `count` and the extremes stay those of all.
    #[must_use]
    pub fn without(&self, padding: &Padding) -> Self {
        let is_low = padding.value < padding.border;
        let is_kept = |v: &f64| if is_low { *v > padding.border } else { *v < padding.border };
        Self { sorted: self.sorted.iter().copied().filter(is_kept).collect(), ..self.clone() }
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index of a short list"
)]
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place as usize;
    let above = (below + 1).min(last);
    let part = place - below as f64;
    // Not by their difference, which may overflow.
    Some(sorted[below] * (1.0 - part) + sorted[above] * part)
}

/// Whether a value is one that programs write for missing ones: nines, the ends of integers, or a number beyond all measurements.
fn is_usual_mark(value: f64) -> bool {
    let size = value.abs();
    let is_nines = (2..=10).any(|digits| size == 10f64.powi(digits) - 1.0);
    is_nines || [32_767.0, 32_768.0, 2_147_483_647.0, 2_147_483_648.0].contains(&size) || size >= 1e15
}

/// Padding at the lower end of ascending values.
#[expect(clippy::float_cmp, reason = "padding is one value, written again and again")]
#[expect(clippy::cast_precision_loss, reason = "shares")]
fn padding(sorted: &[f64]) -> Option<Padding> {
    let value = *sorted.first()?;
    let run = sorted.partition_point(|&v| v <= value);
    let rest = &sorted[run..];
    let share = run as f64 / sorted.len() as f64;
    let distinct = rest.windows(2).filter(|pair| pair[0] != pair[1]).count() + 1;
    if run < FEWEST_PADDED || share < PADDING_SHARE || rest.len() < FEWEST_OTHERS || distinct < FEWEST_OTHERS
    {
        return None;
    }
    let at = |share| quantile(rest, share).unwrap_or(value);
    let (nearest, low, middle, high) = (rest[0], at(0.01), at(0.5), at(0.99));
    let found = |begins: f64| Padding { value, share, border: value / 2.0 + begins / 2.0 };
    if nearest - value > PADDING_GAP * (high - low) {
        return Some(found(nearest));
    }
    let begins = middle - (PADDING_FAR / 2.0) * (high - middle);
    (begins - value > (PADDING_FAR / 2.0) * (high - middle) && high > middle)
        .then(|| Padding { border: begins, ..found(begins) })
}

/// Spreads the bits of a number (`splitmix64`).
#[must_use]
pub fn mix64(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread_of(values: impl IntoIterator<Item = f64>) -> ValueSample {
        let mut sampler = ValueSampler::default();
        for (place, value) in (0u64..).zip(values) {
            sampler.add_value(value, mix64(place));
        }
        sampler.spread()
    }

    #[test]
    fn the_sample_does_not_depend_on_the_order_of_blocks() {
        let dtype: DType = "<f4".parse().unwrap();
        let block = |number: u32| -> Vec<u8> {
            (0..9000u32).flat_map(|i| ((number * 9000 + i) as f32).to_le_bytes()).collect()
        };
        let of = |order: [u32; 4]| {
            let mut sampler = ValueSampler::default();
            for number in order {
                sampler.add(&block(number), dtype, &Decoding::identity(dtype), u64::from(number)).unwrap();
            }
            sampler.spread()
        };
        let spread = of([0, 1, 2, 3]);
        assert_eq!(spread, of([3, 1, 0, 2]));
        assert!(spread.sorted.len() > MOST / 4 && spread.sorted.len() <= MOST && spread.count == 36_000);
        assert!((spread.quantile(0.5).unwrap() - 18_000.0).abs() < 500.0);
    }

    #[test]
    fn one_enormous_value_moves_no_quantile_and_is_said() {
        let values = (0..1000).map(|i| f64::from(i) / 1000.0).chain([1e30, f64::INFINITY, f64::NAN]);
        let spread = spread_of(values);
        assert!((spread.quantile(0.99).unwrap() - 0.99).abs() < 0.01);
        assert_eq!((spread.high, spread.infinite), (1e30, 1));
        let [below, above] = spread.outside([0.0, 1.0]);
        assert!(below == 0.0 && (above - 0.001).abs() < 1e-4, "{above}");
        let [below, above] = spread_of([1.0, f64::MAX, f64::MIN]).outside([0.0, 2.0]);
        assert!((below - 1.0 / 3.0).abs() < 1e-9 && (above - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn padding_is_known_by_its_distance() {
        let own = || (0..1000).map(|i| f64::from(i % 97) / 97.0);
        let padded = |value: f64, count: usize| spread_of(own().chain(std::iter::repeat_n(value, count)));
        for value in [-9999.0, 1e20, -1.0, 2.0, 9.969_21e36] {
            let spread = padded(value, 600);
            let padding = spread.padding().unwrap();
            assert!(padding.value == value && (padding.share - 0.375).abs() < 1e-9, "{padding:?}");
            let rest = spread.without(&padding);
            assert_eq!(rest.sorted.len(), 1000, "{padding:?}");
        }
        assert_eq!(padded(-9999.0, 3).padding(), None, "a few are outliers");
        let few = |repeated| spread_of((0..22).map(f64::from).chain(std::iter::repeat_n(-20.0, repeated)));
        assert_eq!(few(2).padding(), None, "an array of a few values");
        assert!(few(40).padding().is_some_and(|padding| padding.value == -20.0));
        assert_eq!(padded(-0.01, 600).padding(), None, "zeros beside small values are values");
        // Depths of an ocean whose land is NaN: the lowest temperature is a value.
        let beside_nan = |value: f64| {
            let marks = std::iter::repeat_n(f64::NAN, 100);
            spread_of(own().chain(std::iter::repeat_n(value, 600)).chain(marks)).padding()
        };
        assert_eq!(beside_nan(-1.0), None);
        assert!(beside_nan(-9999.0).is_some() && beside_nan(9.969_21e36).is_some());
        // As in a level of means: some values are mixed with padding.
        let mixed =
            own().chain(std::iter::repeat_n(-9999.0, 600)).chain((0..60).map(|i| -166.0 * f64::from(i)));
        let spread = spread_of(mixed);
        let padding = spread.padding().unwrap();
        assert!(padding.value == -9999.0 && padding.border > -100.0 && padding.border < 0.0, "{padding:?}");
    }

    #[test]
    fn saturated_values_of_integers_are_no_padding() {
        let padding = |dtype: &str, scaled: [f64; 2], end: i32| {
            let dtype: DType = dtype.parse().unwrap();
            let decoding = Decoding { scale: scaled[0], offset: scaled[1], ..Decoding::identity(dtype) };
            let mut bytes = Vec::new();
            for value in (0..950).map(|i| i % 97).chain(std::iter::repeat_n(end, 50)) {
                let value =
                    if dtype.element().is_float() { (value as f32).to_bits() } else { value.cast_unsigned() };
                bytes.extend_from_slice(&value.to_le_bytes()[..dtype.size_bytes()]);
            }
            let mut sampler = ValueSampler::default();
            sampler.add(&bytes, dtype, &decoding, 0).unwrap();
            sampler.spread().padding().map(|padding| padding.value)
        };
        let plain = [1.0, 0.0];
        for (dtype, full) in
            [("|u1", 255), ("<u2", 1023), ("<u2", 4095), ("<u2", 65_535), ("<i2", 32_767), ("<i4", i32::MAX)]
        {
            assert_eq!(padding(dtype, plain, full), None, "{dtype} {full}");
            assert_eq!(padding(dtype, [0.25, -7.5], full), None, "{dtype} {full}, scaled");
        }
        assert_eq!(padding("<u2", plain, 9999), Some(9999.0));
        assert_eq!(padding("<i2", plain, -9999), Some(-9999.0));
        assert_eq!(padding("<i2", plain, -32_768), Some(-32_768.0), "the lower end");
        assert_eq!(padding("<i2", [-1.0, 0.0], 32_767), Some(-32_767.0), "the lower end of what is meant");
        assert_eq!(padding("<f4", plain, 255), Some(255.0), "floats do not saturate");
    }

    #[test]
    fn masks_constants_and_nothing_have_no_padding() {
        assert_eq!(spread_of((0..100).map(|i| f64::from(i % 2))).padding(), None);
        assert_eq!(spread_of([7.0; 50]).padding(), None);
        assert_eq!(spread_of([]).padding(), None);
        assert_eq!(spread_of([]).quantile(0.5), None);
        assert_eq!(spread_of([f64::NAN]).outside([0.0, 1.0]), [0.0; 2]);
    }
}
