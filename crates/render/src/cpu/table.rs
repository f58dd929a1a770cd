//! Transfer function as a table over stored values, computed once per picture.
//!
//! Decoding, range, color, opacity and step length are combined in one lookup: a stored value becomes a place, and
//! the place an entry of the table (the same number on a linear scale, see [`EntryScale`]), which is the
//! premultiplied color of one sample. An entry is 64 bits: red, green, blue
//! and opacity in 16 bits each, scaled so that the table's highest opacity uses them all.
//!
//! The value is assumed to be linear between two samples of a ray. If opacity is linear in between, the entry
//! in the middle is sufficient; if it is not, the interval is cut into 4 or 16 parts, which have tables of
//! their own. [`TransferTable::bends`] is the measure of the nonlinearity (see [`ERROR_PER_BEND`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use array::Decoding;
use glam::{Vec3, Vec4};

use crate::TransferFunction;
use crate::blocks::cell_stats::ValueVariation;
use crate::blocks::memo::MEMO_SIZE;
use crate::blocks::voxel::PlaceScale;
use crate::cpu::empty_space::sampling_rate::{BENT, DOUBLE, QUADRUPLE, SINGLE};
use crate::cpu::entry_scale::EntryScale;
use crate::scene::color_map::OwnColors;
use crate::scene::transfer::interpolate;
use crate::simd::Simd;

/// Entries of a table; 16 KiB fit the nearest cache beside voxels. The nearest entry is used, so a value has
/// a resolution of 1/4094 of the transfer function's domain.
pub(crate) const ENTRIES: usize = 2048;

/// Numbers of parts into which the interval between two samples may be cut.
pub(crate) const PARTS: [u32; 3] = [1, 4, 16];

const SQRT_3: f32 = 1.732_051;

/// Largest error of a sample's opacity that is accepted instead of more parts.
pub(crate) const TOLERANCE: f32 = 1.0 / 512.0;

/// Largest error of the opacity of a sample for several steps, if values were linear between samples: they
/// are curved, so the real error is far less.
const RATE_TOLERANCE: f32 = 1.0 / 256.0;

/// Bound of the error when the entry in the middle of an interval represents the mean of the interval: at
/// most the bend times the interval's length in entries times this (one bend in the middle of an interval of
/// length `l` lifts the mean by a slope of `bend / 2` over `l / 2`, halved).
pub(crate) const ERROR_PER_BEND: f32 = 1.0 / 8.0;

/// Premultiplied colors and opacities of samples of one length.
#[derive(Debug)]
pub(crate) struct TableEntries {
    /// Red, green, blue, opacity, the first lowest.
    pub(crate) packed: Box<[u64; ENTRIES]>,
    /// Value of one unit of a component's 16-bit number.
    pub(crate) unit: f32,
    entry_scale: EntryScale,
}

/// Weight of color changes: in a nearly opaque interval the first colors hide the others, so that the color
/// in the middle is not that of the whole. A change of color counts as this bend, times the square of
/// opacity.
const ORDER_BEND: f64 = 1.0 / 32.0;

/// Bend of a curve that is linear in the logarithm, per entry and slope, times the entries of an octave: over an
/// interval of `l` entries the middle of the values lies `ln(2) l^2 / (24 p)` entries above the mean of their
/// positions for `p` entries per octave, which is the error of a bend of `ln(2) / (3 p)` per entry (see
/// [`ERROR_PER_BEND`]).
const CURVE_BEND: f64 = std::f64::consts::LN_2 / 3.0;

/// Table of a transfer function over stored values, for samples of one length.
#[derive(Debug)]
pub(crate) struct TransferTable {
    /// Entries for whole samples and for parts: see [`PARTS`].
    pub(crate) parts: [TableEntries; 3],
    /// Entries for 2 and 4 whole samples at once.
    pub(crate) longer: [TableEntries; 2],
    /// Prefix sums, up to each entry, of the changes of the slope of opacity (of whole samples, per entry),
    /// and of changes of color where opacity is high (see [`ORDER_BEND`]).
    pub(crate) bends: Box<[f32; ENTRIES]>,
    /// Prefix sums, up to each entry, of the changes of opacity, and of color times opacity.
    changes: Vec<f32>,
    /// Length of a whole sample, smallest voxel spacings of level 0.
    thickness: f64,
    /// Length of an interval in entries below which the middle is sufficient anywhere: all bends together
    /// would not require parts.
    pub(crate) longest_even: f32,
    pub(crate) scale: PlaceScale,
    pub(crate) entry_scale: EntryScale,
    /// Number of visible entries before each one.
    visible_before: Vec<u32>,
    /// Colors if the map is categorical; their opacity is 1.
    own: Option<OwnColors>,
}

impl TableEntries {
    fn new(entry_scale: EntryScale, entry: impl Fn(usize) -> Vec4) -> Self {
        const FULL: f32 = u16::MAX as f32;
        let entries: Vec<Vec4> = (0..ENTRIES).map(entry).collect();
        let most = entries.iter().map(|e| e.w).fold(0.0, f32::max);
        let pack = |entry: &Vec4| {
            let parts = (*entry * (FULL / most.max(f32::MIN_POSITIVE)) + 0.5).to_array();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
            parts.iter().rev().fold(0, |packed, &part| packed << 16 | u64::from(part as u16))
        };
        let mut packed = Box::new([0; ENTRIES]);
        packed.iter_mut().zip(&entries).for_each(|(to, entry)| *to = pack(entry));
        Self { packed, unit: most / FULL, entry_scale }
    }

    /// Returns the entries nearest to sixteen places, with components in [units](TableEntries::unit); zero
    /// for NaN.
    #[inline(always)]
    #[expect(unsafe_code, reason = "read at places that were clamped before")]
    pub(crate) fn at<S: Simd>(&self, simd: S, places: S::F) -> [S::F; 4] {
        let places = self.entry_scale.entries(simd, places);
        let last = simd.splat((ENTRIES - 1) as f32);
        let near = simd.add(simd.min(simd.max(places, simd.splat(0.0)), last), simd.splat(0.5));
        let at = simd.store_u(simd.truncate(near));
        // SAFETY: `at` lies between 0 and `ENTRIES - 1`; NaN became 0.
        unsafe { simd.entries(self.packed.as_ptr(), &at) }
    }

    /// Returns the entry nearest to a place.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped, and parts of 16 bits"
    )]
    fn entry(&self, place: f32) -> Vec4 {
        let entry = self.entry_scale.entry(place);
        let packed = self.packed[(entry.clamp(0.0, (ENTRIES - 1) as f32) + 0.5) as usize];
        let part = |shift: u32| f32::from((packed >> shift) as u16);
        Vec4::new(part(0), part(16), part(32), part(48)) * self.unit
    }
}

impl TransferTable {
    /// `thickness`: length of a step in smallest voxel spacings of level 0.
    #[expect(clippy::cast_possible_truncation, reason = "opacities are drawn in f32")]
    pub(crate) fn new(transfer: &TransferFunction, decoding: &Decoding, thickness: f64) -> Self {
        let (entry_scale, own_scale) = (EntryScale::new(transfer), transfer.range_scale());
        let colors = transfer.colors();
        let sample = |i: usize| {
            let position = entry_scale.position(i);
            if position == f64::NEG_INFINITY {
                return (interpolate(&colors, 0.0), 0.0);
            }
            let value = own_scale.value(position);
            (interpolate(&colors, own_scale.share(value)), transfer.opacity_at(value))
        };
        let samples: Vec<([f32; 3], f64)> = (0..ENTRIES).map(sample).collect();
        let entries = |thickness: f64| {
            TableEntries::new(entry_scale, |i| {
                premultiplied(samples[i].0, corrected(samples[i].1, thickness))
            })
        };
        let parts = PARTS.map(|parts| entries(thickness / f64::from(parts)));
        let longer = [2.0, 4.0].map(|times| entries(thickness * times));
        let opacities: Vec<f64> = samples.iter().map(|s| corrected(s.1, thickness)).collect();
        let mut bends = Box::new([0.0; ENTRIES]);
        let mut changes = vec![0.0; ENTRIES];
        // Opacity that is linear on the scale is not linear in the value.
        let curve =
            if transfer.scale.is_linear() { 0.0 } else { CURVE_BEND / f64::from(entry_scale.per_octave) };
        let mut sum = 0.0;
        for i in 1..ENTRIES {
            let next = opacities[(i + 1).min(ENTRIES - 1)];
            sum += (opacities[i - 1] - 2.0 * opacities[i] + next).abs();
            let [before, here] = [i - 1, i].map(|i| Vec3::from(samples[i].0));
            let recolored = opacities[i] * f64::from((here - before).abs().max_element());
            sum += ORDER_BEND * opacities[i] * recolored;
            sum += curve * ((opacities[i] - opacities[i - 1]).abs() + opacities[i] * recolored);
            bends[i] = sum as f32;
            changes[i] = changes[i - 1] + (opacities[i] - opacities[i - 1]).abs() as f32 + recolored as f32;
        }
        // A little less than exact, for rounding.
        let longest_even = 0.999 * TOLERANCE / (sum as f32 * ERROR_PER_BEND);
        let mut visible_before = vec![0; ENTRIES + 1];
        for (i, &opacity) in opacities.iter().enumerate() {
            visible_before[i + 1] = visible_before[i] + u32::from(opacity > 0.0);
        }
        let own = OwnColors::new(&transfer.color_map, &colors);
        let EntryScale { origin, gain, .. } = entry_scale;
        let scale = PlaceScale::new((origin - decoding.offset) / decoding.scale, decoding.scale * gain);
        Self {
            parts,
            longer,
            bends,
            changes,
            thickness,
            longest_even,
            scale,
            entry_scale,
            visible_before,
            own,
        }
    }

    /// Returns the words of [`crate::device::Prepared::table_words`].
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is meant")]
    pub(crate) fn words(&self) -> impl Iterator<Item = u32> + '_ {
        let halves = |&entry: &u64| [entry as u32, (entry >> 32) as u32];
        let entries = self.parts.iter().flat_map(move |part| part.packed.iter().flat_map(halves));
        let units = self.parts.iter().map(|part| part.unit.to_bits());
        entries.chain(self.bends.iter().map(|bend| bend.to_bits())).chain(units).chain([0])
    }

    /// Returns the colors by label, four words each.
    pub(crate) fn label_words(&self) -> impl Iterator<Item = u32> + '_ {
        let table = match &self.own {
            Some(OwnColors::OfLabels(table)) => table.as_slice(),
            Some(OwnColors::Packed) | None => &[],
        };
        table.iter().flat_map(|&[r, g, b]| [r, g, b, 1.0].map(f32::to_bits))
    }

    /// Returns the entry number of a stored value, not rounded; it may lie outside of the table.
    pub(crate) fn entry_of(&self, stored: f64) -> f32 {
        self.entry_scale.entry(self.scale.place(stored))
    }

    /// Returns the entry of a whole sample nearest to a place; zero for NaN.
    pub(crate) fn entry(&self, place: f32) -> Vec4 {
        if place.is_nan() { Vec4::ZERO } else { self.parts[0].entry(place) }
    }

    /// Returns the color of one sample of a label at a place.
    #[inline]
    pub(crate) fn label_entry(&self, place: f32, label: u32) -> Vec4 {
        let entry = self.parts[0].entry(place);
        let colored = |own: &OwnColors| Vec3::from(own.of(label)).extend(1.0) * entry.w;
        self.own.as_ref().map_or(entry, colored)
    }

    /// Returns the visibility of the stored values from `low` to `high`, and of all that is interpolated
    /// between them.
    pub(crate) fn visibility_of(&self, range: [f32; 2]) -> RangeVisibility {
        let Some(EntryRange { first, last, longest }) = self.stretch(range) else {
            return RangeVisibility::Absent;
        };
        if self.visible_before[last + 1] == self.visible_before[first] {
            return RangeVisibility::Hidden { gap: self.visible_before[first] };
        }
        let missed = (self.bends[last] - self.bends[first]) * longest * ERROR_PER_BEND;
        if missed > TOLERANCE { RangeVisibility::Bent } else { RangeVisibility::Even }
    }

    /// Returns the sampling rate of a cell with stored values from `low` to `high` and this variation: one of
    /// those of [`crate::cpu::empty_space::sampling_rate`].
    #[expect(clippy::cast_possible_truncation, reason = "compared only; saturates")]
    pub(crate) fn sampling_rate_of(&self, range: [f32; 2], variation: &ValueVariation) -> u8 {
        let Some(EntryRange { first, last, longest }) = self.stretch(range) else { return QUADRUPLE };
        if self.visible_before[last + 1] == self.visible_before[first] {
            return QUADRUPLE;
        }
        let bends = self.bends[last] - self.bends[first];
        if !self.entry_scale.scale.is_linear() {
            // Entries are not spread evenly over values: a rise of the value means any number of entries.
            return if bends * longest * ERROR_PER_BEND > TOLERANCE { BENT } else { SINGLE };
        }
        let gain = (self.thickness * self.scale.gain.abs()) as f32;
        // Interpolated values change by no more than the rise along each axis.
        let way = longest.min(gain * variation.first_difference * SQRT_3);
        let missed = bends * way * ERROR_PER_BEND;
        if missed > TOLERANCE {
            return BENT;
        }
        let slope = (self.changes[last] - self.changes[first]) / (last - first).max(1) as f32 + bends;
        // Between samples this far apart a parabola of this curvature deviates from the straight line by this
        // number of entries, two thirds on average; opacity of this number of steps has that error.
        let apart = gain * self.thickness as f32 / 8.0 * variation.second_difference;
        let is_enough = |steps: f32| {
            let lost = apart * steps * steps * slope * steps * 2.0 / 3.0;
            // Intervals are longer, the opacities that bend higher: the error per step is that of one.
            lost <= RATE_TOLERANCE && missed * steps * steps <= TOLERANCE * steps
        };
        if is_enough(4.0) {
            QUADRUPLE
        } else if is_enough(2.0) {
            DOUBLE
        } else {
            SINGLE
        }
    }

    /// Returns the entries of a range of stored values; `None` if the range is empty.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the table")]
    fn stretch(&self, [low, high]: [f32; 2]) -> Option<EntryRange> {
        if low > high {
            return None;
        }
        let place = |v: f32| {
            let place = (f64::from(v) - self.scale.origin) * self.scale.gain;
            if self.entry_scale.scale.is_linear() { place } else { f64::from(self.entry_of(f64::from(v))) }
        };
        let (a, b) = (place(low).min(place(high)), place(low).max(place(high)));
        let end = (ENTRIES - 1) as f64;
        // One entry more on both sides, for rounding of interpolated values.
        let first = ((a + 0.5).floor() - 1.0).clamp(0.0, end) as usize;
        let last = ((b + 0.5).floor() + 1.0).clamp(0.0, end) as usize;
        // Values hardly ever pass more than half of a cell's range from one sample to the next.
        let longest = ((b - a) / 2.0).min(f64::from(f32::MAX)) as f32;
        Some(EntryRange { first, last, longest })
    }
}

/// Entries of a cell's values, from the first to the last.
struct EntryRange {
    first: usize,
    last: usize,
    /// Longest interval from one sample to the next, entries.
    longest: f32,
}

/// Tables of one picture: for samples that represent 1, 2, 4, ... steps.
#[derive(Debug)]
pub(crate) struct TransferTables {
    /// Unique id in this process.
    pub(crate) number: u64,
    pub(crate) by_stride: Vec<TransferTable>,
}

/// Parameters that tables are made from, besides the view's decoding.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recipe {
    pub(crate) transfer: TransferFunction,
    /// Length of one step in smallest voxel spacings of level 0.
    pub(crate) thickness: f64,
    /// Logarithm of the longest stride.
    pub(crate) coarsest_log2: usize,
    /// Not used for the tables, but part of the id under which blocks store their visible cells.
    pub(crate) skip_empty: bool,
}

/// Tables of the last few pictures with different parameters, so that not every picture computes its own.
/// Clones share the tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableMemo(Arc<Mutex<Vec<KeptTables>>>);

type KeptTables = (Recipe, Arc<TransferTables>);

impl TableMemo {
    pub(crate) fn of(&self, recipe: Recipe, decoding: &Decoding) -> Arc<TransferTables> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tables)) = remembered.iter().find(|(other, _)| *other == recipe) {
            return Arc::clone(tables);
        }
        let table =
            |log2| TransferTable::new(&recipe.transfer, decoding, f64::from(1u32 << log2) * recipe.thickness);
        let tables = Arc::new(TransferTables {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            by_stride: (0..=recipe.coarsest_log2).map(table).collect(),
        });
        remembered.truncate(MEMO_SIZE - 1);
        remembered.insert(0, (recipe, Arc::clone(&tables)));
        tables
    }
}

/// Visibility of a range of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeVisibility {
    /// No value is there.
    Absent,
    /// All values are hidden. Something is visible between the values of two gaps.
    Hidden { gap: u32 },
    /// Some values are visible, and their opacity is so nearly linear that one lookup per sample suffices.
    Even,
    /// Some values are visible, and their opacity is nonlinear or jumps.
    Bent,
}

impl RangeVisibility {
    /// True if no value is visible.
    pub(crate) fn is_hidden(self) -> bool {
        matches!(self, Self::Absent | Self::Hidden { .. })
    }

    /// Returns the gap that hidden values lie in.
    pub(crate) fn gap(self) -> Option<u32> {
        if let Self::Hidden { gap } = self { Some(gap) } else { None }
    }
}

/// Returns the opacity of a step `thickness` times as long as the one that `opacity` is meant for.
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
            let table = TransferTable::new(&tf, &decoding(scale, offset), 1.0);
            for value in [-10.0, 0.0, 5.0, 33.0, 50.0, 99.0, 200.0] {
                let expected = tf.opacity_at(value) as f32;
                let found = table.entry(table.scale.place((value - offset) / scale)).w;
                assert!((found - expected).abs() < 1e-3, "{value} at {scale}, {offset}");
            }
        }
    }

    #[test]
    fn opacity_of_two_half_steps_and_of_all_parts_is_that_of_one() {
        let tf = TransferFunction::ramp(0.0, 1.0, 0.8);
        let table = TransferTable::new(&tf, &decoding(1.0, 0.0), 1.0);
        let one = table.parts[0].entry(1500.0).w;
        let half = TransferTable::new(&tf, &decoding(1.0, 0.0), 0.5).parts[0].entry(1500.0).w;
        assert!((1.0 - (1.0 - half) * (1.0 - half) - one).abs() < 2e-5);
        for (parts, entries) in PARTS.into_iter().zip(&table.parts) {
            let all = 1.0 - (1.0 - entries.entry(1500.0).w).powi(parts.cast_signed());
            assert!((all - one).abs() < 2e-5, "{all} of {parts} parts instead of {one}");
        }
    }

    #[test]
    fn faint_entries_keep_their_digits() {
        let tf = TransferFunction::ramp(0.0, 1.0, 1e-5);
        let entry = TransferTable::new(&tf, &decoding(1.0, 0.0), 1.0).parts[0].entry(2047.0).w;
        assert!((entry / 1e-5 - 1.0).abs() < 1e-4, "{entry}");
    }

    #[test]
    fn cells_are_sampled_the_more_densely_the_more_their_values_bend() {
        let points = [(0.0, 0.0), (20.0, 0.0), (100.0, 0.05)];
        let opacity = points.map(|(value, opacity)| OpacityPoint { value, opacity }).to_vec();
        let tf = TransferFunction { opacity, ..TransferFunction::ramp(0.0, 100.0, 1.0) };
        let rates = |thickness| {
            let table = TransferTable::new(&tf, &decoding(1.0, 0.0), thickness);
            [0.0, 1.0, 40.0, f32::NAN].map(|bow| {
                table.sampling_rate_of(
                    [60.0, 62.0],
                    &ValueVariation { first_difference: 1.0, second_difference: bow },
                )
            })
        };
        assert_eq!(rates(1.0), [QUADRUPLE, DOUBLE, SINGLE, SINGLE]);
        assert_eq!(rates(0.25)[1], QUADRUPLE, "four short steps are one long one");
        let table = TransferTable::new(&tf, &decoding(1.0, 0.0), 1.0);
        assert_eq!(
            table.sampling_rate_of(
                [2.0, 10.0],
                &ValueVariation { first_difference: 8.0, second_difference: 40.0 }
            ),
            QUADRUPLE,
            "nothing is seen"
        );
        let points = [(50.0, 0.0), (100.0, 1.0)];
        let opacity = points.map(|(value, opacity)| OpacityPoint { value, opacity }).to_vec();
        let table = TransferTable::new(&TransferFunction { opacity, ..tf }, &decoding(1.0, 0.0), 1.0);
        let rises = [0.05, 0.2, 0.4, 1.0, f32::NAN];
        let rates = rises.map(|rise| {
            table.sampling_rate_of(
                [40.0, 60.0],
                &ValueVariation { first_difference: rise, second_difference: 0.0 },
            )
        });
        assert_eq!(rates, [QUADRUPLE, DOUBLE, SINGLE, BENT, BENT], "what matters is how far a step leads");
    }

    #[test]
    fn hidden_even_and_bent_ranges_are_known() {
        let points = [(2.0, 0.0), (3.0, 1.0), (4.0, 0.0)];
        let opacity = points.map(|(value, opacity)| OpacityPoint { value, opacity }).to_vec();
        let tf = TransferFunction { opacity, ..TransferFunction::ramp(0.0, 10.0, 1.0) };
        for scale in [1.0, -1.0] {
            let table = TransferTable::new(&tf, &decoding(scale, 0.0), 1.0);
            let s = |low: f32, high: f32| {
                table.visibility_of(if scale > 0.0 { [low, high] } else { [-high, -low] })
            };
            assert_eq!([s(0.0, 9.0), s(2.9, 3.05), s(3.9, 8.0)], [RangeVisibility::Bent; 3]);
            assert_eq!([s(2.1, 2.2), s(2.95, 2.96)], [RangeVisibility::Even; 2]);
            assert_eq!(table.visibility_of([f32::INFINITY, f32::NEG_INFINITY]), RangeVisibility::Absent);
            let [below, above] = [s(0.0, 1.9), s(4.1, 1e9)];
            assert!(
                [below, above].iter().all(|s| matches!(s, RangeVisibility::Hidden { .. })) && below != above
            );
            assert_eq!(below, s(-1e9, 0.5));
        }
    }
}
