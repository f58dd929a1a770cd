//! Transfer function: the mapping of decoded values to color and opacity.
//!
//! A value that the user sets and links contain. Opacity is piecewise linear between control points and
//! constant beyond the outermost ones; color comes from a map spread over a range and is constant beyond it.
//! Both are linear on the scale ([`ValueScale`]) of the function; on a logarithmic one values of 0 and less are
//! transparent, and have the lowest color where opacity is not used.
//! To hide values outside a range, end the opacity points with zeros.

use array::{Error, Result};
use serde::{Deserialize, Serialize};
use view::{RangeScale, ValueScale};

use crate::scene::color_map::{COLORS, color_map_names, color_map_table};

/// Control point: an opacity at a decoded value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpacityPoint {
    /// Decoded value.
    pub value: f64,
    /// Opacity of a layer as thick as the smallest voxel spacing of level 0; 0 to 1.
    pub opacity: f64,
}

/// Mapping of decoded values to color and opacity; see the module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferFunction {
    /// Name of the color map; see [`color_map_names`].
    #[serde(rename = "colour_map")]
    pub color_map: String,
    /// Reverses the color map.
    #[serde(default)]
    pub reversed: bool,
    /// Scale of the values.
    #[serde(default)]
    pub scale: ValueScale,
    /// Decoded values at the ends of the color map, the low one first.
    pub range: [f64; 2],
    /// Control points by increasing value; two at one value make a step.
    pub opacity: Vec<OpacityPoint>,
}

/// Margin for the opacity before a step at the lowest value, as a share of the span of values in which
/// anything changes: some entries of the table.
const ROOM_BEFORE_STEP: f64 = 1.0 / 512.0;

impl TransferFunction {
    /// Most control points of a transfer function.
    pub const MAX_POINTS: usize = 256;

    /// Returns a default for values between `low` and `high`: viridis, the lowest tenth hidden, then an even
    /// rise to `opacity`.
    #[must_use]
    pub fn ramp(low: f64, high: f64, opacity: f64) -> Self {
        let (low, high) = if low < high { (low, high) } else { (low - 0.5, low + 0.5) };
        let point = |share: f64, opacity| OpacityPoint { value: low + (high - low) * share, opacity };
        Self {
            color_map: "viridis".into(),
            reversed: false,
            scale: ValueScale::Linear,
            range: [low, high],
            opacity: vec![point(0.0, 0.0), point(0.1, 0.0), point(1.0, opacity)],
        }
    }

    /// Returns a transfer function that shows every label but 0 with this opacity.
    #[must_use]
    pub fn labels(opacity: f64) -> Self {
        let point = |value, opacity| OpacityPoint { value, opacity };
        Self {
            color_map: "labels".into(),
            reversed: false,
            scale: ValueScale::Linear,
            range: [0.0, 255.0],
            // Negative labels are objects too: values below the first point have its opacity.
            opacity: vec![
                point(-1.0, opacity),
                point(-0.5, opacity),
                point(-0.5, 0.0),
                point(0.5, 0.0),
                point(0.5, opacity),
            ],
        }
    }

    /// Checks a transfer function from an untrusted source.
    ///
    /// # Errors
    /// `Invalid`, with a message that names the cause.
    pub fn check(&self) -> Result<()> {
        if color_map_table(&self.color_map).is_none() {
            return Err(Error::invalid(format!(
                "expected one of the color maps {}, found `{}`; `_r` at the end of a name reverses it",
                color_map_names().join(", "),
                self.color_map
            )));
        }
        let [low, high] = self.range;
        // The width is a divisor: the width and the quotient must be finite.
        let width = high - low;
        if !(width > 0.0 && width.is_finite() && width.recip().is_finite()) {
            return Err(Error::invalid(format!("expected a range from low to high, found {:?}", self.range)));
        }
        if !self.range_scale().is_defined() {
            return Err(Error::invalid(format!(
                "expected a range above 0 for a logarithmic scale, found {:?}",
                self.range
            )));
        }
        if self.opacity.is_empty() || self.opacity.len() > Self::MAX_POINTS {
            return Err(Error::invalid(format!(
                "expected 1 to {} opacity points, found {}",
                Self::MAX_POINTS,
                self.opacity.len()
            )));
        }
        let legal = |p: &OpacityPoint| p.value.is_finite() && (0.0..=1.0).contains(&p.opacity);
        if !self.opacity.iter().all(legal) || !self.opacity.is_sorted_by(|a, b| a.value <= b.value) {
            return Err(Error::invalid(format!(
                "expected finite, increasing values with opacities from 0 to 1, found {:?}",
                self.opacity
            )));
        }
        Ok(())
    }

    /// Returns the scale over the range.
    #[must_use]
    pub fn range_scale(&self) -> RangeScale {
        self.scale.over(self.range)
    }

    /// Returns the opacity of a decoded value; 0 for NaN, and for values without a position on the scale. At a
    /// step the right-hand side counts.
    #[must_use]
    pub fn opacity_at(&self, value: f64) -> f64 {
        let after = self.opacity.partition_point(|p| p.value <= value);
        let (before, next) = (after.checked_sub(1).map(|i| self.opacity[i]), self.opacity.get(after));
        let scale = self.range_scale();
        let position = scale.position(value);
        match (before, next) {
            _ if position.is_nan() || position == f64::NEG_INFINITY => 0.0,
            (Some(a), Some(b)) => {
                let [from, to] = [a, *b].map(|point| scale.position(point.value));
                // A point without a position is infinitely far away.
                let share = if from.is_finite() { (position - from) / (to - from) } else { 1.0 };
                a.opacity + (b.opacity - a.opacity) * share
            }
            (Some(end), None) => end.opacity,
            (None, Some(end)) => end.opacity,
            (None, None) => 0.0,
        }
    }

    /// Returns the span of positions on the scale in which anything changes: the hull of the range and the control
    /// points. If it begins with a step, it has a margin for the opacity before the step, which is that of all
    /// lower values.
    pub(crate) fn domain(&self) -> [f64; 2] {
        let scale = self.range_scale();
        let positions = self.opacity.iter().map(|p| scale.position(p.value)).filter(|p| p.is_finite());
        let ends = self.range.map(|end| scale.position(end));
        let [low, high] = positions.fold(ends, |[low, high], v| [low.min(v), high.max(v)]);
        let is_step = matches!(*self.opacity, [OpacityPoint { value, opacity }, next, ..]
            if scale.position(value) <= low
                && scale.position(next.value) <= low
                && opacity.total_cmp(&next.opacity).is_ne());
        let room = (high - low) * ROOM_BEFORE_STEP;
        [if is_step && (low - room).is_finite() { low - room } else { low }, high]
    }

    /// Returns the map's colors as 0 to 1, in the direction of use.
    pub(crate) fn colors(&self) -> Vec<[f32; 3]> {
        let table = color_map_table(&self.color_map).unwrap_or([[0; 3]; COLORS]);
        let mut colors: Vec<_> = table.iter().map(|c| c.map(|v| f32::from(v) / 255.0)).collect();
        if self.reversed {
            colors.reverse();
        }
        colors
    }

    /// Returns the sRGB color of a decoded value, interpolated in the map.
    #[must_use]
    pub fn color_at(&self, value: f64) -> [f32; 3] {
        interpolate(&self.colors(), self.range_scale().share(value))
    }

    /// Returns the sRGB colors of decoded values as bytes; those that are not finite get the color `other`.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of colors")]
    pub fn colors_of(&self, values: impl Iterator<Item = f64>, other: [u8; 3]) -> Vec<[u8; 3]> {
        let (colors, scale) = (self.colors(), self.range_scale());
        let byte = |c: f32| (c * 255.0).round().clamp(0.0, 255.0) as u8;
        let color = |value: f64| interpolate(&colors, scale.share(value)).map(byte);
        values.map(|value| if value.is_finite() { color(value) } else { other }).collect()
    }
}

/// Returns the color at a share of the range, interpolated linearly.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the table")]
pub(crate) fn interpolate(colors: &[[f32; 3]], share: f64) -> [f32; 3] {
    let last = colors.len() - 1;
    let place = share.clamp(0.0, 1.0) * last as f64;
    let index = (place as usize).min(last - 1);
    let share = (place - index as f64) as f32;
    std::array::from_fn(|c| colors[index][c] + (colors[index + 1][c] - colors[index][c]) * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(list: &[(f64, f64)]) -> TransferFunction {
        let opacity = list.iter().map(|&(value, opacity)| OpacityPoint { value, opacity }).collect();
        TransferFunction { opacity, ..TransferFunction::ramp(0.0, 1.0, 1.0) }
    }

    #[test]
    fn opacity_is_linear_between_points_and_holds_beyond() {
        let tf = points(&[(1.0, 0.2), (3.0, 0.6)]);
        for (value, expected) in
            [(-9.0, 0.2), (1.0, 0.2), (2.0, 0.4), (3.0, 0.6), (9.0, 0.6), (f64::NAN, 0.0)]
        {
            assert!((tf.opacity_at(value) - expected).abs() < 1e-12, "{value}");
        }
    }

    #[test]
    fn a_domain_that_begins_with_a_step_has_room_for_what_is_before_it() {
        let tf = points(&[(-0.5, 0.0), (-0.5, 1.0), (2.0, 1.0), (2.0, 0.0)]);
        let [low, high] = tf.domain();
        assert!((-0.55..-0.5).contains(&low) && high.total_cmp(&2.0).is_eq(), "{low} {high}");
        assert_eq!([tf.opacity_at(low), tf.opacity_at(high)], [0.0; 2]);
        assert_eq!(points(&[(-0.5, 0.0), (2.0, 1.0)]).domain(), [-0.5, 2.0]);
        assert_eq!(points(&[(0.5, 0.0), (0.5, 1.0)]).domain(), [0.0, 1.0], "the step is within the range");
    }

    #[test]
    fn two_points_at_one_value_make_a_step() {
        let tf = points(&[(1.0, 0.0), (1.0, 1.0), (2.0, 1.0), (2.0, 0.0)]);
        tf.check().unwrap();
        for (value, expected) in [(0.999, 0.0), (1.0, 1.0), (1.999, 1.0), (2.0, 0.0)] {
            assert!((tf.opacity_at(value) - expected).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn every_label_but_0_is_visible() {
        let labels = TransferFunction::labels(0.4);
        for (label, expected) in [(-9e15, 0.4), (-2.0, 0.4), (-1.0, 0.4), (0.0, 0.0), (1.0, 0.4), (1e15, 0.4)]
        {
            assert!((labels.opacity_at(label) - expected).abs() < 1e-12, "{label}");
        }
        assert!((labels.opacity_at(labels.domain()[0]) - 0.4).abs() < 1e-12);
    }

    #[test]
    fn one_point_is_the_same_everywhere() {
        assert!((points(&[(5.0, 0.3)]).opacity_at(-1e9) - 0.3).abs() < 1e-12);
    }

    #[test]
    fn colors_follow_the_range_and_its_direction() {
        let tf = TransferFunction { color_map: "gray".into(), range: [10.0, 20.0], ..points(&[(0.0, 1.0)]) };
        assert!((tf.color_at(15.0)[0] - 0.5).abs() < 0.01);
        assert!((tf.color_at(99.0)[1] - 1.0).abs() < 1e-6);
        let reversed = TransferFunction { reversed: true, ..tf };
        assert!((reversed.color_at(12.5)[2] - 0.75).abs() < 0.01);
    }

    #[test]
    fn bad_functions_are_refused() {
        let good = TransferFunction::ramp(0.0, 1.0, 0.5);
        good.check().unwrap();
        TransferFunction::labels(1.0).check().unwrap();
        TransferFunction::ramp(3.0, 3.0, 0.5).check().unwrap();
        let bad = [
            TransferFunction { color_map: "jet".into(), ..good.clone() },
            TransferFunction { range: [1.0, 1.0], ..good.clone() },
            TransferFunction { range: [0.0, f64::INFINITY], ..good.clone() },
            TransferFunction { opacity: Vec::new(), ..good.clone() },
            points(&[(1.0, 0.0), (0.0, 0.0)]),
            points(&[(1.0, 1.5)]),
            points(&[(f64::NAN, 0.5)]),
        ];
        for tf in bad {
            assert!(tf.check().is_err(), "{tf:?}");
        }
    }
}
