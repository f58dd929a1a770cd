//! Transfer functions, as part of a view, and default ones.
//!
//! A transfer function is defined over *decoded* values. Its opacity applies to the length of one smallest
//! voxel spacing of level 0, so it does not depend on the level drawn. Color maps are defined by the
//! renderer; here a map is only a short name.

use array::{Error, Meaning, Padding, Result, ValueSample};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::preset::thickened;
use crate::{DataHints, DataKind, PRESETS, ValueScale};

/// Maximum number of points of an opacity curve.
pub const MAX_OPACITY_POINTS: usize = 256;
/// Longest name of a color map, bytes.
const MAX_MAP_BYTES: usize = 64;
/// Share of the voxels that the default transfer function hides: most of a real volume is air, water or
/// background.
const HIDDEN_SHARE: f64 = 0.72;
/// Shares of the voxels below and above which colors saturate, so that a few outliers do not compress the
/// range of the rest.
const TAIL_SHARE: f64 = 0.002;
/// Narrowest range of usual values, as a share of their magnitude. A narrower one is a single value with
/// rounding, such as the thin atmosphere around a star.
const NARROWEST_SHARE: f64 = 1e-5;
/// Number of values among which more than one must differ from the most frequent one, for the differing ones to
/// determine the range.
const FEWEST_OTHERS_OF: usize = 10_000;
/// Share of the volume's longest side through which the densest value lets [`CLEAR_SHARE`] of the light pass.
const THICKNESS_SHARE: f64 = 0.1;
/// Share of the light that passes through [`THICKNESS_SHARE`] of the densest value.
const CLEAR_SHARE: f64 = 0.05;
/// Most layers of a thin volume, and least ratio of its longest side to them.
const FEW_LAYERS: u64 = 8;
/// Opacities of the lowest and the highest values of thin volumes, over the smallest voxel spacing.
const LAYER_OPACITIES: [f64; 2] = [0.35, 0.9];
/// Greatest distance from the color range at which padding begins to be hidden, as a share of the range.
const PADDING_ROOM: f64 = 0.25;
/// Colors of maps and thin volumes of computed tomography: the usual window of soft tissue, Hounsfield units.
const CT_WINDOW: [f64; 2] = [-160.0, 240.0];
/// Opacities of fields: at the value below which a share of the values lie, but at least at a share of the range,
/// the thickness as in [`crate::Preset`]. The steps keep the inner values visible through the outer ones.
const FIELD_POINTS: [[f64; 3]; 5] =
    [[0.6, 0.12, 0.0], [0.8, 0.3, 0.04], [0.92, 0.5, 0.15], [0.98, 0.7, 0.6], [1.0, 1.0, 2.0]];
/// Least ratio of the values at [`POWER_TAILS`] for which colors are logarithmic.
const LEAST_POWERS: f64 = 1e3;
/// Shares of the values between which the ratio is measured: a few small values do not count.
const POWER_TAILS: [f64; 2] = [0.05, 0.95];
/// Fewest different values of data with a preset: fewer are a mask.
const FEWEST_VALUES: usize = 4;
/// Lowest place, in widths below the range, to which a point without a position on the scale is moved.
const LOWEST_SHARE: f64 = 1.0;
/// Range in which every label of the color map `labels` has its own color.
const LABEL_RANGE: [f64; 2] = [0.0, 255.0];
/// Range of packed colors, decoded: from no strength to full strength.
const COLOR_RANGE: [f64; 2] = [0.0, 255.0];

/// Colors and opacities of values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    expecting = "a transfer function, such as {\"range\": [LOW, HIGH], \"map\": NAME, \"opacity\": [[VALUE, ALPHA]]}"
)]
pub struct Transfer {
    /// Values at the ends of the color map, decoded.
    pub range: [f64; 2],
    /// Name of the color map; with `_r` at its end it is reversed.
    pub map: String,
    /// True if the color map is reversed, in addition to `_r` in its name.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reversed: bool,
    /// Scale of the values, for colors and between opacity points.
    #[serde(default, skip_serializing_if = "ValueScale::is_linear")]
    pub scale: ValueScale,
    /// Opacity curve `[value, alpha]`, ascending in value, linear on the scale between; constant outside. Alpha
    /// (0 to 1) is the opacity over the length of one smallest voxel spacing of level 0.
    pub opacity: Vec<[f64; 2]>,
    /// Fields of a later version: preserved but ignored.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Largest magnitude of a value: differences of larger ones may overflow.
const WIDEST: f64 = f64::MAX / 4.0;

impl Transfer {
    /// Creates a transfer function with a linear scale.
    #[must_use]
    pub fn new(range: [f64; 2], map: &str, opacity: Vec<[f64; 2]>) -> Self {
        let (reversed, scale, other) = (false, ValueScale::Linear, Map::new());
        Self { range, map: map.into(), reversed, scale, opacity, other }
    }

    /// Returns a default transfer function for values with this distribution in a volume with these sides, in
    /// voxels: common values are transparent, rare high ones are dense; in thin volumes every value is
    /// visible. Maps of one layer are opaque. Values that look like padding are hidden.
    #[must_use]
    pub fn sensible(values: &ValueSample, meaning: Meaning, sides_voxels: [u64; 3]) -> Self {
        let padding = values.padding();
        let own = padding.as_ref().map(|padding| values.without(padding));
        let values = own.as_ref().unwrap_or(values);
        let [low, high] = span(values);
        let looks = Looks::of(sides_voxels);
        let dense = match looks {
            Looks::Map => 1.0,
            _ => densest(sides_voxels.into_iter().max().unwrap_or(1)),
        };
        // Labels and colors have no rare values to emphasize: thin volumes of them are shown completely.
        let own_dense = if looks == Looks::Volume { dense } else { dense.max(LAYER_OPACITIES[1]) };
        if meaning == Meaning::Labels {
            // Label 0 is background; all others, negative ones too, are objects: values below the first point
            // have its opacity.
            let opacity =
                vec![[-1.0, own_dense], [-0.5, own_dense], [-0.5, 0.0], [0.5, 0.0], [0.5, own_dense]];
            return Self::new(LABEL_RANGE, "labels", opacity);
        }
        if meaning == Meaning::Colors {
            let [low, high] = COLOR_RANGE;
            let opacity = vec![[low, 0.0], [high, own_dense]];
            return Self::new(COLOR_RANGE, "rgb", opacity);
        }
        let opacity = match looks {
            Looks::Map | Looks::Layers => looks.visible_over([low, high]),
            Looks::Volume => {
                let first = values.quantile(HIDDEN_SHARE).unwrap_or(low + HIDDEN_SHARE * (high - low));
                // A nonzero constant is an object.
                let first = if is_constant(values) && values.low != 0.0 { low } else { first };
                let first = first.clamp(low, low + 0.9 * (high - low));
                vec![[low, 0.0], [first, 0.0], [first + 0.5 * (high - first), 0.3 * dense], [high, dense]]
            }
        };
        let mut transfer = Self::new([low, high], "viridis", opacity);
        transfer.hide(padding);
        transfer
    }

    /// Returns the default transfer function of an array: the preset of its kind of data for volumes, and in
    /// thin volumes a range and a color map that suit it. Positive values over many powers of ten get a
    /// logarithmic scale. Values that look like padding are hidden.
    #[must_use]
    pub fn first(values: &ValueSample, hints: &DataHints, sides_voxels: [u64; 3]) -> Self {
        let padding = values.padding();
        let own = padding.as_ref().map(|padding| values.without(padding));
        let own = own.as_ref().unwrap_or(values);
        // Air of one value looks like padding, but tells computed tomography.
        let kind = match hints.kind(values) {
            DataKind::Ct => DataKind::Ct,
            _ => hints.kind(own),
        };
        let looks = Looks::of(sides_voxels);
        let is_usual = match kind {
            DataKind::Labels | DataKind::Colors => true,
            // Without air, the others may be few.
            DataKind::Ct => false,
            _ => !has_several(own),
        };
        let preset = PRESETS.iter().find(|preset| preset.kinds.contains(&kind));
        let (false, Some(preset)) = (is_usual, preset) else {
            return Self::sensible(values, hints.meaning, sides_voxels);
        };
        let is_log = kind == DataKind::Field && spans_powers(own);
        let mut transfer = match (kind, looks) {
            (DataKind::Field, Looks::Volume) => Self::of_field(own, is_log, sides_voxels),
            (_, Looks::Volume) => preset.transfer(own, sides_voxels),
            (_, Looks::Map | Looks::Layers) => {
                let preset = preset.transfer(own, sides_voxels);
                let (range, map) = match kind {
                    DataKind::Ct => (CT_WINDOW, "gray"),
                    DataKind::Signed => (preset.range, preset.map.as_str()),
                    DataKind::Field => (span(own), "viridis"),
                    _ => (span(own), "gray"),
                };
                Self::new(range, map, looks.visible_over(range))
            }
        };
        if is_log && transfer.range[0] > 0.0 {
            transfer.scale = ValueScale::Log;
        }
        // What surrounds a body is black in images of it, be it air or padding.
        if kind != DataKind::Ct {
            transfer.hide(padding);
        }
        transfer
    }

    /// Returns the default for a volume of a field: faint where values are common, dense where they are high.
    fn of_field(values: &ValueSample, is_log: bool, sides_voxels: [u64; 3]) -> Self {
        let range = span(values);
        let scale = if is_log { ValueScale::Log } else { ValueScale::Linear }.over(range);
        let dense = densest(sides_voxels.into_iter().max().unwrap_or(1));
        let mut last = range[0];
        let mut opacity = vec![[last, 0.0]];
        for [quantile, least_share, thickness] in FIELD_POINTS {
            let common = values.quantile(quantile).unwrap_or(range[0]);
            last = common.max(scale.at_share(least_share)).clamp(last, range[1]);
            opacity.push([last, thickened(dense, thickness)]);
        }
        Self::new(range, "viridis", opacity)
    }

    /// Hides values that look like padding.
    fn hide(&mut self, padding: Option<Padding>) {
        let Some(Padding { value, border, .. }) = padding else { return };
        let [low, high] = self.range;
        // Near the range, so that few entries of the color table lie in between.
        let room = (high - low) * PADDING_ROOM;
        let [first, last] = [self.opacity[0], self.opacity[self.opacity.len() - 1]];
        if value < border && first[1] > 0.0 {
            let at = border.max(low - room).min(first[0]);
            self.opacity.splice(0..0, [[at, 0.0], [at, first[1]]]);
        } else if value > border && last[1] > 0.0 {
            let at = border.min(high + room).max(last[0]);
            self.opacity.extend([[at, last[1]], [at, 0.0]]);
        }
    }

    /// Returns a default transfer function as [`Transfer::first`] does, but with colors from the lowest to the
    /// highest value.
    #[must_use]
    pub fn over_all(values: &ValueSample, hints: &DataHints, sides_voxels: [u64; 3]) -> Self {
        let first = Self::first(values, hints, sides_voxels);
        let [low, high] = [values.low, values.high].map(|v| v.clamp(-WIDEST, WIDEST));
        if !hints.meaning.is_continuous() || values.count == 0 || check_range([low, high]).is_err() {
            return first;
        }
        let opacity = match Looks::of(sides_voxels) {
            looks @ (Looks::Map | Looks::Layers) => looks.visible_over([low, high]),
            Looks::Volume => first.opacity.iter().map(|&[v, a]| [v.clamp(low, high), a]).collect(),
        };
        let scale = if first.scale.over([low, high]).is_defined() { first.scale } else { ValueScale::Linear };
        Self { range: [low, high], opacity, scale, ..first }
    }

    /// Moves colors and opacity to another range; changes nothing for labels and packed colors, or for an
    /// invalid range.
    #[must_use]
    pub fn spread_over(mut self, range: [f64; 2]) -> Self {
        if check_range(range).is_err() || matches!(self.map.as_str(), "labels" | "rgb") {
            return self;
        }
        if !self.scale.over(range).is_defined() {
            self.scale = ValueScale::Linear;
        }
        let (from, to) = (self.scale.over(self.range), self.scale.over(range));
        for [value, _] in &mut self.opacity {
            // Points of 0 and less have no place on a logarithmic scale.
            let share = from.share(*value).max(-LOWEST_SHARE);
            *value = to.at_share(share).clamp(-WIDEST, WIDEST);
        }
        self.range = range;
        self
    }

    /// Checks constraints beyond the types: finite numbers, a valid range, an ascending bounded curve.
    ///
    /// # Errors
    /// `Invalid`, naming the field.
    pub fn check(&self) -> Result<()> {
        check_range(self.range)?;
        check_map(&self.map)?;
        if !self.scale.over(self.range).is_defined() {
            return Err(Error::invalid(format!(
                "expected a range above 0 for a logarithmic scale, found {} to {}; use `symlog` for values of both signs",
                self.range[0], self.range[1]
            )));
        }
        if self.opacity.is_empty() || self.opacity.len() > MAX_OPACITY_POINTS {
            return Err(Error::invalid(format!(
                "expected 1 to {MAX_OPACITY_POINTS} points of opacity, found {}",
                self.opacity.len()
            )));
        }
        if self.opacity.iter().any(|[v, a]| !v.is_finite() || !(0.0..=1.0).contains(a)) {
            return Err(Error::invalid("expected finite values with opacities from 0 to 1"));
        }
        if self.opacity.windows(2).any(|pair| pair[0][0] > pair[1][0]) {
            return Err(Error::invalid("expected points of opacity in ascending order of value"));
        }
        Ok(())
    }
}

/// Returns true if values are positive and spread over many powers of ten.
pub(crate) fn spans_powers(values: &ValueSample) -> bool {
    let [low, high] = POWER_TAILS.map(|share| values.quantile(share).unwrap_or(0.0));
    values.low > 0.0 && low > 0.0 && high / low >= LEAST_POWERS
}

/// Returns true if some of the values differ.
#[expect(clippy::float_cmp, reason = "the very same value")]
fn has_several(values: &ValueSample) -> bool {
    let distinct = values.sorted.windows(2).filter(|pair| pair[0] != pair[1]).take(FEWEST_VALUES).count() + 1;
    distinct >= FEWEST_VALUES
}

fn is_constant(values: &ValueSample) -> bool {
    values.count > 0 && values.low >= values.high
}

/// # Errors
/// `Invalid` if no color map can be mapped to it.
pub(crate) fn check_range([low, high]: [f64; 2]) -> Result<()> {
    // The width is a divisor: it and its reciprocal must be finite.
    let width = high - low;
    if width > 0.0 && width.is_finite() && width.recip().is_finite() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "expected a range of finite values with low below high, and neither nearer nor farther apart than numbers can say, found {low} and {high}"
    )))
}

/// # Errors
/// `Invalid` for an empty or too long name.
pub(crate) fn check_map(map: &str) -> Result<()> {
    if (1..=MAX_MAP_BYTES).contains(&map.len()) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "expected the name of a color map of 1 to {MAX_MAP_BYTES} bytes, found {}",
        map.len()
    )))
}

/// Shape of a volume, by its sides in voxels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looks {
    /// Single layer.
    Map,
    /// A few layers, or a needle: so thin that hidden values would leave nothing visible.
    Layers,
    Volume,
}

impl Looks {
    pub(crate) fn of(sides_voxels: [u64; 3]) -> Self {
        let [shortest, longest] =
            [sides_voxels.iter().min(), sides_voxels.iter().max()].map(|side| side.copied().unwrap_or(1));
        match shortest {
            0 | 1 => Self::Map,
            n if n <= FEW_LAYERS && n.saturating_mul(FEW_LAYERS) <= longest => Self::Layers,
            _ => Self::Volume,
        }
    }

    /// Returns the opacity of a map or a thin volume, which hides no value of a range.
    fn visible_over(self, [low, high]: [f64; 2]) -> Vec<[f64; 2]> {
        let [first, last] = if self == Self::Map { [1.0; 2] } else { LAYER_OPACITIES };
        vec![[low, first], [high, last]]
    }
}

/// Returns the ends of the color map: the values without their tails, never empty.
pub(crate) fn span(values: &ValueSample) -> [f64; 2] {
    let bounded = |v: f64| v.clamp(-WIDEST, WIDEST);
    let ends = |values: &ValueSample| {
        let [low, high] = [values.quantile(TAIL_SHARE)?, values.quantile(1.0 - TAIL_SHARE)?];
        check_range([bounded(low), bounded(high)]).is_ok().then_some([bounded(low), bounded(high)])
    };
    let usual = ends(values);
    let is_wide = |[low, high]: &[f64; 2]| high - low > NARROWEST_SHARE * low.abs().max(high.abs());
    if let Some(usual) = usual.filter(is_wide) {
        return usual;
    }
    // Nearly all values are equal: the range is that of the others, unless those are a few outliers.
    if let Some(common) = values.quantile(0.5) {
        #[expect(clippy::float_cmp, reason = "the very same value")]
        let is_other = |v: &f64| *v != common && (*v - common).abs() > NARROWEST_SHARE * common.abs();
        let rest: Vec<f64> = values.sorted.iter().copied().filter(is_other).collect();
        let is_enough = usual.is_none() || rest.len() * FEWEST_OTHERS_OF > values.sorted.len();
        let rest = ValueSample { sorted: rest, ..values.clone() };
        if let (Some(low), Some(high), true) =
            (rest.quantile(TAIL_SHARE), rest.quantile(1.0 - TAIL_SHARE), is_enough)
        {
            let ends = [bounded(low.min(common)), bounded(high.max(common))];
            if check_range(ends).is_ok() {
                return ends;
            }
        }
    }
    if let Some(usual) = usual {
        return usual;
    }
    // A constant: margins on both sides that survive rounding.
    let Some(value) = values.quantile(0.5).map(bounded) else { return [0.0, 1.0] };
    let room = value.abs().max(1.0) * 0.5;
    [value - room, value + room]
}

#[expect(clippy::cast_precision_loss, reason = "a length in voxels")]
pub(crate) fn densest(longest_side_voxels: u64) -> f64 {
    let voxels = (longest_side_voxels.max(1) as f64 * THICKNESS_SHARE).max(1.0);
    1.0 - CLEAR_SHARE.powf(1.0 / voxels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: impl IntoIterator<Item = f64>) -> ValueSample {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let ends = [sorted.first(), sorted.last()].map(|v| v.copied().unwrap_or(0.0));
        ValueSample {
            count: sorted.len() as u64,
            infinite: 0,
            low: ends[0],
            high: ends[1],
            sorted,
            packing: None,
            has_missing: false,
        }
    }

    /// Returns the transfer functions that are made without being asked for.
    fn every(values: &ValueSample, meaning: Meaning, sides: [u64; 3]) -> [Transfer; 3] {
        let hints = DataHints::of_meaning(meaning);
        [
            Transfer::sensible(values, meaning, sides),
            Transfer::first(values, &hints, sides),
            Transfer::over_all(values, &hints, sides),
        ]
    }

    #[test]
    fn values_as_far_apart_as_numbers_go_have_a_transfer_function() {
        for values in [vec![], vec![f64::MIN, f64::MAX], vec![-1.7e308, 0.0, 1.7e308], vec![-1.0, f64::MAX]] {
            for meaning in [Meaning::Intensity, Meaning::Labels] {
                let values = spread(values.clone());
                for transfer in every(&values, meaning, [16; 3]) {
                    transfer.check().unwrap();
                    assert!((transfer.range[1] - transfer.range[0]).is_finite(), "{:?}", transfer.range);
                }
            }
        }
    }

    #[test]
    fn the_first_function_hides_the_background_and_is_always_legal() {
        let air = spread((0..1630).map(|i| if i < 1000 { 0.0 } else { f64::from(i - 1000) * 255.0 / 630.0 }));
        let t = Transfer::sensible(&air, Meaning::Intensity, [256; 3]);
        t.check().unwrap();
        let [first_seen, _] = t.opacity[1];
        assert!(first_seen > 3.9, "the air ends near 0, seen from {first_seen}");
        for values in [
            vec![0.0],
            vec![f64::NAN; 0],
            vec![7.0; 5],
            vec![1e30; 9],
            vec![-1e-30, 0.0, 1e-30],
            vec![0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
            vec![5e-324, 1e-323],
        ] {
            for meaning in [Meaning::Intensity, Meaning::Labels] {
                for sides in [[0; 3], [1; 3], [4096, 4096, 1], [3, 4096, 4096], [1_000_000, 4, 4], [4096; 3]]
                {
                    let values = spread(values.clone());
                    for transfer in every(&values, meaning, sides) {
                        transfer.check().unwrap_or_else(|e| panic!("{values:?}: {e}"));
                    }
                }
            }
        }
    }

    #[test]
    fn a_constant_lies_in_the_middle_of_its_range() {
        for value in [0.0f64, 5.0, -1e9] {
            let [low, high] = Transfer::sensible(&spread([value; 40]), Meaning::Intensity, [8; 3]).range;
            assert!(low < value && value < high && high - low >= 1.0, "{value}: {low} to {high}");
            let opacity = Transfer::sensible(&spread([value; 40]), Meaning::Intensity, [8; 3]).opacity;
            let is_seen = opacity.iter().any(|&[at, alpha]| at <= value && alpha > 0.0);
            assert_eq!(is_seen, value != 0.0, "{value}: zero is nothing, anything else is a thing");
        }
    }

    #[test]
    fn outliers_do_not_stretch_the_range_and_all_of_it_is_one_step_away() {
        let usual = || (0..2000).map(|i| f64::from(i) / 2000.0);
        for outliers in [vec![1e30], vec![-9999.0, 3e38, 1e20, 5.0]] {
            let values = spread(usual().chain(outliers));
            let [low, high] = Transfer::sensible(&values, Meaning::Intensity, [60; 3]).range;
            assert!((-0.01..0.01).contains(&low) && (0.99..1.01).contains(&high), "{low} to {high}");
            assert_eq!(
                Transfer::over_all(&values, &DataHints::of_meaning(Meaning::Intensity), [60; 3]).range,
                [values.low, values.high]
            );
        }
        // Values that span four powers of ten, such as densities in g/cm^3: some are visible.
        let powers = spread((0..2000).map(|i| 1e-28 * 10f64.powf(f64::from(i) / 500.0)));
        let t = Transfer::sensible(&powers, Meaning::Intensity, [96; 3]);
        t.check().unwrap();
        assert!(t.range[1] < 1e-24 && t.opacity.iter().any(|&[v, a]| a > 0.0 && v <= t.range[1]));
    }

    #[test]
    fn one_value_and_its_rounding_is_no_range() {
        let atmosphere = (0..9990).map(|i| 1e-10 * (1.0 + f64::from(i % 7) * 1e-16));
        let star = (0..10).map(|i| 1e-4 * f64::from(i + 1));
        let [low, high] =
            Transfer::sensible(&spread(atmosphere.chain(star)), Meaning::Intensity, [60; 3]).range;
        assert!(low <= 1.001e-10 && high > 9e-4, "{low} to {high}");
        // The rounding is all there is, or all but one value.
        for outlier in [None, Some(1e30)] {
            let values = spread((0..9999).map(|i| 300.0 + f64::from(i % 100) * 1e-6).chain(outlier));
            let [low, high] = Transfer::sensible(&values, Meaning::Intensity, [60; 3]).range;
            assert!(low >= 300.0 && high <= 300.0001 && low < high, "{low} to {high}");
        }
    }

    #[test]
    fn padding_is_out_of_range_and_out_of_sight() {
        let own = || (0..500).map(|i| f64::from(i % 83) / 83.0);
        for value in [-9999.0, 1e20] {
            let values = spread(own().chain(std::iter::repeat_n(value, 900)));
            for sides in [[60; 3], [1, 60, 60], [3, 60, 60]] {
                let t = Transfer::sensible(&values, Meaning::Intensity, sides);
                t.check().unwrap();
                assert!(t.range[0] > -0.1 && t.range[1] < 1.1, "{:?}", t.range);
                let end = if value < 0.0 { t.opacity[0] } else { t.opacity[t.opacity.len() - 1] };
                assert!(end[1] == 0.0 && end[0].abs() < 2.0, "{:?}", t.opacity);
                assert!(t.opacity.iter().any(|&[_, a]| a > 0.0));
            }
        }
    }

    #[test]
    fn saturated_pixels_of_a_photo_are_seen() {
        let pixels = (0..950).map(|i| f64::from(i % 97)).chain(std::iter::repeat_n(255.0, 50));
        let values = ValueSample { packing: Some([1.0, 0.0]), ..spread(pixels) };
        let photo = Transfer::sensible(&values, Meaning::Intensity, [640, 480, 1]);
        assert_eq!(photo.range, [0.0, 255.0]);
        assert!(photo.opacity.iter().all(|&[_, opacity]| opacity > 0.999), "{:?}", photo.opacity);
    }

    #[test]
    fn a_map_of_one_layer_is_opaque_and_of_few_layers_nothing_is_hidden() {
        let values = spread((0..64).map(f64::from));
        let map = Transfer::sensible(&values, Meaning::Intensity, [360, 180, 1]);
        assert!(map.opacity.iter().all(|&[_, opacity]| opacity > 0.999));
        let labels = Transfer::sensible(&values, Meaning::Labels, [360, 180, 1]);
        assert_eq!(labels.opacity, [[-1.0, 1.0], [-0.5, 1.0], [-0.5, 0.0], [0.5, 0.0], [0.5, 1.0]]);
        for sides in [[3, 180, 360], [1_000_000, 4, 4]] {
            let layers = Transfer::sensible(&values, Meaning::Intensity, sides);
            assert!(layers.opacity.iter().all(|&[_, opacity]| opacity > 0.3), "{:?}", layers.opacity);
        }
    }

    #[test]
    fn larger_volumes_are_thinner_per_voxel() {
        assert!(densest(4096) < densest(256));
        assert!((1.0 - densest(1000)).powf(100.0) - CLEAR_SHARE < 1e-9);
    }

    #[test]
    fn each_kind_of_data_has_its_first_function() {
        let hints = DataHints::of_meaning(Meaning::Intensity);
        let first = |values: &ValueSample, hints: &DataHints| {
            let transfer = Transfer::first(values, hints, [64; 3]);
            transfer.check().unwrap();
            transfer
        };
        let powers = spread((0..2000).map(|i| 1e-28 * 10f64.powf(f64::from(i) / 250.0)));
        let density = first(&powers, &hints);
        assert!(density.scale == ValueScale::Log && density.range[0] > 0.0, "{density:?}");
        let outlier = spread((1..2000).map(f64::from).chain([1e30]));
        assert_eq!(first(&outlier, &hints).scale, ValueScale::Linear, "one value is no power of ten");
        let wave = spread((0..2000).map(|i| (f64::from(i) / 99.0).sin()));
        let signed = first(&wave, &hints);
        assert_eq!(signed.map, "coolwarm");
        assert!((signed.range[0] + signed.range[1]).abs() < 1e-9);
        let body = spread((0..2000).map(|i| f64::from([-1000, -1000, 40 + i % 9, 700][i as usize % 4])));
        assert_eq!(first(&body, &hints).map, "ct-bone");
        let slice = Transfer::first(&body, &hints, [200, 200, 1]);
        assert!(slice.map == "gray" && slice.opacity.iter().all(|&[_, a]| a > 0.999), "{slice:?}");
        let padded = spread((0..2000).map(|i| (f64::from(i) / 99.0).sin()).chain([-9999.0; 500]));
        let padded = first(&padded, &hints);
        assert!(padded.range[0] > -2.0 && padded.opacity[0][1].abs() < 1e-12, "{padded:?}");
    }

    #[test]
    fn another_range_keeps_the_places_of_points_on_the_scale() {
        let log = Transfer {
            scale: ValueScale::Log,
            ..Transfer::new([1.0, 100.0], "gray", vec![[1.0, 0.0], [10.0, 0.5], [100.0, 1.0]])
        };
        let moved = log.clone().spread_over([1e-6, 1e6]);
        assert!((moved.opacity[1][0] - 1.0).abs() < 1e-9 && moved.scale == ValueScale::Log, "{moved:?}");
        assert_eq!(log.clone().spread_over([-1.0, 1.0]).scale, ValueScale::Linear);
        let error = Transfer { range: [0.0, 1.0], ..log }.check().unwrap_err().to_string();
        assert!(error.contains("`symlog`"), "{error}");
    }
}
