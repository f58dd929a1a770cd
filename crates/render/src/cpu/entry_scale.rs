//! Map from places to entries of a transfer function's table.
//!
//! A *place* is linear in the value, so that places can be interpolated and compared like values; on a linear
//! scale it is also the number of the entry. On other scales entries are spread evenly over positions on the
//! scale ([`view::RangeScale`]), and a place, which is then a multiple of the value, becomes an entry only when
//! the table is looked up: in `f32` a place keeps its relative precision over any number of powers of ten.

use view::ValueScale;

use crate::TransferFunction;
use crate::cpu::table::ENTRIES;
use crate::simd::{Simd, SimdStep};

/// Map from places to entries, and from entries to positions on the scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EntryScale {
    pub(crate) scale: ValueScale,
    /// Entry = `shift + per_octave * log2(place)` on a logarithmic scale, and with `log2(1 + |place|)` and the sign
    /// of the place on a symmetric one.
    pub(crate) shift: f32,
    pub(crate) per_octave: f32,
    /// Decoded value of place 0, and change of places when decoded values change by 1.
    pub(crate) origin: f64,
    pub(crate) gain: f64,
    /// Entry of the lowest position: entry 0 of a logarithmic scale is for values of 0 and less.
    first: f64,
    lowest: f64,
    per_position: f64,
}

impl EntryScale {
    /// Returns the map for a transfer function.
    #[expect(clippy::cast_possible_truncation, reason = "entries are found in f32")]
    pub(crate) fn new(transfer: &TransferFunction) -> Self {
        let [low, high] = transfer.domain();
        let own = transfer.range_scale();
        let scale = transfer.scale;
        let first = if scale == ValueScale::Log { 1.0 } else { 0.0 };
        let per_position = ((ENTRIES - 1) as f64 - first) / (high - low);
        let gain = match scale {
            ValueScale::Linear => per_position,
            ValueScale::Log => own.value(-(low + high) / 2.0),
            ValueScale::Symlog => own.threshold().recip(),
        };
        let of_place_1 = match scale {
            ValueScale::Linear | ValueScale::Symlog => 0.0,
            ValueScale::Log => -gain.log2(),
        };
        let shift = first + (of_place_1 - low) * per_position;
        Self {
            scale,
            shift: shift as f32,
            per_octave: per_position as f32,
            origin: if scale.is_linear() { low } else { 0.0 },
            gain,
            first,
            lowest: low,
            per_position,
        }
    }

    /// Returns the position of an entry on the scale; minus infinity for values without a position.
    pub(crate) fn position(&self, entry: usize) -> f64 {
        let entry = entry as f64;
        if entry < self.first {
            f64::NEG_INFINITY
        } else {
            self.lowest + (entry - self.first) / self.per_position
        }
    }

    /// Returns `[a, b]`: the position of an entry is `a + b * entry`, if it has one.
    pub(crate) fn positions(&self) -> [f64; 2] {
        let per_entry = self.per_position.recip();
        [self.lowest - self.first * per_entry, per_entry]
    }

    /// Returns the entry of a place, not rounded; it may lie outside of the table.
    #[inline]
    pub(crate) fn entry(&self, place: f32) -> f32 {
        match self.scale {
            ValueScale::Linear => place,
            ValueScale::Log => log_entry(place, self.shift, self.per_octave),
            ValueScale::Symlog => symlog_entry(place, self.shift, self.per_octave),
        }
    }

    /// Returns the entries of sixteen places.
    #[inline(always)]
    pub(crate) fn entries<S: Simd>(&self, simd: S, places: S::F) -> S::F {
        if self.scale.is_linear() { places } else { simd.call(ScaledEntries { scale: self, places }) }
    }
}

/// [`EntryScale::entries`] for scales that are not linear, as a function of its own.
struct ScaledEntries<'a, S: Simd> {
    scale: &'a EntryScale,
    places: S::F,
}

impl<S: Simd> SimdStep<S> for ScaledEntries<'_, S> {
    type Output = S::F;

    #[inline(always)]
    fn run(self, simd: S) -> S::F {
        let EntryScale { scale, shift, per_octave, .. } = *self.scale;
        let mut places = simd.store(self.places);
        // Loops without branches, which the compiler turns into vector instructions.
        if scale == ValueScale::Log {
            for place in &mut places {
                *place = log_entry(*place, shift, per_octave);
            }
        } else {
            for place in &mut places {
                *place = symlog_entry(*place, shift, per_octave);
            }
        }
        simd.load(&places)
    }
}

/// Positive places have entries from 1 on, so that they are not taken for values of 0 and less.
#[inline(always)]
fn log_entry(place: f32, shift: f32, per_octave: f32) -> f32 {
    let entry = (shift + per_octave * log2(place.max(f32::MIN_POSITIVE))).max(1.0);
    // Also 0 for NaN.
    if place > 0.0 { entry } else { 0.0 }
}

#[inline(always)]
fn symlog_entry(place: f32, shift: f32, per_octave: f32) -> f32 {
    let size = place.abs();
    // Not by 1 + size where that would be rounded to 1.
    let octaves =
        if size < 1e-3 { size * (std::f32::consts::LOG2_E - size * HALF_LOG2_E) } else { log2(1.0 + size) };
    shift + per_octave * octaves.copysign(place)
}

const HALF_LOG2_E: f32 = std::f32::consts::LOG2_E / 2.0;

/// Returns the logarithm of a normal positive number, with an error below 1e-6 for numbers near 1 and a relative
/// one below 1e-6 for others: `log2(m) = 2 atanh((m - 1) / (m + 1)) / ln(2)` for the mantissa `m` from
/// `sqrt(1/2)` to `sqrt(2)`.
#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "an exponent")]
fn log2(number: f32) -> f32 {
    const SQRT_HALF_BITS: u32 = 0x3F35_04F3;
    let bits = number.to_bits();
    let exponent = bits.wrapping_sub(SQRT_HALF_BITS).cast_signed() >> 23;
    let mantissa = f32::from_bits(bits.wrapping_sub((exponent << 23).cast_unsigned()));
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let series = 1.0 + square * (1.0 / 3.0 + square * (1.0 / 5.0 + square * (1.0 / 7.0)));
    exponent as f32 + t * series * (2.0 * std::f32::consts::LOG2_E)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpacityPoint;

    #[test]
    fn the_logarithm_is_exact_to_six_digits() {
        for i in -3000..3000 {
            let number = (f64::from(i) / 30.0).exp2();
            #[expect(clippy::cast_possible_truncation, reason = "rounding")]
            let found = f64::from(log2(number as f32));
            let expected = number.log2();
            assert!(
                (found - expected).abs() < 1e-6 * expected.abs().max(1.0),
                "{number}: {found} {expected}"
            );
        }
    }

    #[test]
    #[expect(clippy::cast_possible_truncation, reason = "rounding")]
    fn entries_rise_with_values_and_lie_at_their_positions() {
        for (scale, range) in [
            (ValueScale::Linear, [-3.0, 5.0]),
            (ValueScale::Log, [1e-28, 1e-20]),
            (ValueScale::Log, [0.5, 1e30]),
            (ValueScale::Symlog, [-1e5, 1e6]),
            (ValueScale::Symlog, [1e-3, 1.0]),
        ] {
            let opacity = vec![OpacityPoint { value: range[0], opacity: 0.5 }];
            let tf = TransferFunction { range, scale, opacity, ..TransferFunction::ramp(0.0, 1.0, 1.0) };
            let (entries, own) = (EntryScale::new(&tf), tf.range_scale());
            let mut last = f32::NEG_INFINITY;
            for i in 0..=400 {
                let value = own.at_share(f64::from(i) / 400.0);
                let entry = entries.entry(((value - entries.origin) * entries.gain) as f32);
                let [a, b] = entries.positions();
                let expected = (own.position(value) - a) / b;
                assert!((f64::from(entry) - expected).abs() < 0.02, "{scale:?} {value}: {entry} {expected}");
                assert!(entry > last, "{scale:?} {value}");
                last = entry;
            }
        }
    }

    #[test]
    fn values_without_a_logarithm_have_an_entry_of_their_own() {
        let tf = TransferFunction {
            scale: ValueScale::Log,
            range: [1.0, 100.0],
            opacity: vec![OpacityPoint { value: 1.0, opacity: 0.5 }],
            ..TransferFunction::ramp(0.0, 1.0, 1.0)
        };
        let entries = EntryScale::new(&tf);
        assert_eq!([-5.0, 0.0, f32::NAN].map(|place| entries.entry(place)), [0.0; 3]);
        assert!(entries.entry(1e-30) >= 1.0 && entries.position(0) == f64::NEG_INFINITY);
    }
}
