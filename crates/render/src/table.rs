//! The transfer function as a table over stored values, made once per picture.
//!
//! Decoding, range, colour, opacity and step length are folded into one look-up: a stored value becomes a
//! place in the table, the entry there is the premultiplied colour of one sample.

use array::Decoding;
use glam::Vec4;

use crate::TransferFunction;
use crate::colour::is_categorical;
use crate::transfer::interpolate;

/// Entries of a table; 32 KiB fit the nearest cache. The nearest entry is taken, so a value is known to
/// 1/4094 of the transfer function's domain.
const ENTRIES: usize = 2048;

/// Adding this to a float between 0 and 2^22 leaves its nearest whole number in the low bits.
pub(crate) const ROUND: f32 = 12_582_912.0;

/// See the module.
#[derive(Debug)]
pub(crate) struct Table {
    /// Premultiplied colour and opacity of one sample.
    entries: Box<[Vec4; ENTRIES]>,
    /// Place in the table = `(stored - origin) * gain`.
    pub(crate) origin: f64,
    pub(crate) gain: f64,
    /// How many entries before this one can be seen.
    visible_before: Vec<u32>,
    /// Colours by label, where the map is categorical; their opacity is 1.
    labels: Option<Vec<Vec4>>,
}

impl Table {
    /// `thickness`: length of a step in smallest voxel spacings of level 0.
    pub(crate) fn new(transfer: &TransferFunction, decoding: &Decoding, thickness: f64) -> Self {
        let [low, high] = transfer.domain();
        let colours = transfer.colours();
        let per_value = (ENTRIES - 1) as f64 / (high - low);
        let entry = |i: usize| {
            let value = low + i as f64 / per_value;
            let opacity = corrected(transfer.opacity_at(value), thickness);
            premultiplied(interpolate(&colours, transfer.range, value), opacity)
        };
        let entries: Box<[Vec4; ENTRIES]> = Box::new(std::array::from_fn(entry));
        let mut visible_before = vec![0; ENTRIES + 1];
        for (i, entry) in entries.iter().enumerate() {
            visible_before[i + 1] = visible_before[i] + u32::from(entry.w > 0.0);
        }
        let labels = is_categorical(&transfer.colour_map)
            .then(|| colours.iter().map(|&[r, g, b]| Vec4::new(r, g, b, 1.0)).collect());
        Self {
            entries,
            origin: (low - decoding.offset) / decoding.scale,
            gain: decoding.scale * per_value,
            visible_before,
            labels,
        }
    }

    /// The entries nearest to four places.
    #[inline(always)]
    pub(crate) fn entries(&self, places: Vec4) -> [Vec4; 4] {
        const LAST: Vec4 = Vec4::splat((ENTRIES - 1) as f32);
        let rounded = places.max(Vec4::ZERO).min(LAST) + ROUND;
        let entry = |v: f32| self.entries[v.to_bits() as usize & (ENTRIES - 1)];
        [entry(rounded.x), entry(rounded.y), entry(rounded.z), entry(rounded.w)]
    }

    /// The entry nearest to a place.
    #[inline(always)]
    pub(crate) fn entry(&self, place: f32) -> Vec4 {
        self.entries(Vec4::splat(place))[0]
    }

    /// The entry nearest to a stored value.
    #[expect(clippy::cast_possible_truncation, reason = "places in the table are f32")]
    pub(crate) fn entry_of(&self, stored: f64) -> Vec4 {
        const FAR: f64 = 1e30;
        self.entry(((stored - self.origin) * self.gain).clamp(-FAR, FAR) as f32)
    }

    /// The colour of one sample of a label at a place.
    #[inline]
    pub(crate) fn label_entry(&self, place: f32, label: u8) -> Vec4 {
        let entry = self.entry(place);
        self.labels.as_ref().map_or(entry, |colours| colours[usize::from(label)] * entry.w)
    }

    /// False when no stored value from `low` to `high` can be seen, nor anything interpolated between.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the table")]
    pub(crate) fn may_show(&self, [low, high]: [f32; 2]) -> bool {
        if low > high {
            return false;
        }
        let place = |v: f32| (f64::from(v) - self.origin) * self.gain;
        let (a, b) = (place(low).min(place(high)), place(low).max(place(high)));
        let last = (ENTRIES - 1) as f64;
        // One entry more on both sides: rounding of interpolated values.
        let first = ((a + 0.5).floor() - 1.0).clamp(0.0, last) as usize;
        let end = ((b + 0.5).floor() + 1.0).clamp(0.0, last) as usize + 1;
        self.visible_before[end] > self.visible_before[first]
    }
}

/// Opacity of a step `thickness` times as long as the one that `opacity` is meant for.
fn corrected(opacity: f64, thickness: f64) -> f64 {
    1.0 - (1.0 - opacity).powf(thickness)
}

#[expect(clippy::cast_possible_truncation, reason = "opacities are drawn in f32")]
fn premultiplied([r, g, b]: [f32; 3], opacity: f64) -> Vec4 {
    Vec4::new(r, g, b, 1.0) * opacity as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpacityPoint;

    fn decoding(scale: f64, offset: f64) -> Decoding {
        Decoding { scale, offset, ..Decoding::identity("<i2".parse().unwrap()) }
    }

    #[test]
    #[expect(clippy::cast_possible_truncation, reason = "test values are small")]
    fn entries_follow_decoded_values() {
        let tf = TransferFunction::ramp(0.0, 100.0, 0.5);
        for (scale, offset) in [(1.0, 0.0), (0.5, -20.0), (-2.0, 7.0)] {
            let table = Table::new(&tf, &decoding(scale, offset), 1.0);
            for value in [-10.0, 0.0, 5.0, 33.0, 50.0, 99.0, 200.0] {
                let stored = (value - offset) / scale;
                let place = ((stored - table.origin) * table.gain) as f32;
                let expected = tf.opacity_at(value) as f32;
                assert!((table.entry(place).w - expected).abs() < 1e-3, "{value} at {scale}, {offset}");
            }
        }
    }

    #[test]
    fn opacity_of_two_half_steps_is_that_of_one() {
        let tf = TransferFunction::ramp(0.0, 1.0, 0.8);
        let one = Table::new(&tf, &decoding(1.0, 0.0), 1.0).entry(1500.0).w;
        let half = Table::new(&tf, &decoding(1.0, 0.0), 0.5).entry(1500.0).w;
        assert!((1.0 - (1.0 - half) * (1.0 - half) - one).abs() < 1e-6);
    }

    #[test]
    fn hidden_ranges_are_known() {
        let points = [(2.0, 0.0), (3.0, 1.0), (4.0, 0.0)];
        let opacity = points.map(|(value, opacity)| OpacityPoint { value, opacity }).to_vec();
        let tf = TransferFunction { opacity, ..TransferFunction::ramp(0.0, 10.0, 1.0) };
        for scale in [1.0, -1.0] {
            let table = Table::new(&tf, &decoding(scale, 0.0), 1.0);
            let s = |low: f32, high: f32| if scale > 0.0 { [low, high] } else { [-high, -low] };
            assert!(
                table.may_show(s(0.0, 9.0)) && table.may_show(s(2.9, 2.95)) && table.may_show(s(3.9, 8.0))
            );
            assert!(!table.may_show(s(0.0, 1.9)) && !table.may_show(s(4.1, 1e9)));
            assert!(!table.may_show([f32::INFINITY, f32::NEG_INFINITY]), "nothing is there");
        }
    }
}
