//! Scales of transfer functions: linear, logarithmic and symmetric logarithmic positions of values.

use serde::{Deserialize, Serialize};

/// Threshold of the symmetric logarithm, as a share of the largest magnitude of the range: three powers of ten
/// on each side of zero are spread, which is the most that a color map of 256 colors shows well.
pub const SYMLOG_SHARE: f64 = 1e-3;

/// Scale of a transfer function: how far apart values are, in the color map and between opacity points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueScale {
    /// Equal differences are equally far apart.
    #[default]
    Linear,
    /// Equal ratios are equally far apart: `log2(v)`. Values of 0 and less have no position: they are
    /// transparent, or have the lowest color where opacity is not used.
    Log,
    /// Logarithm on both sides of zero, linear near it: `sign(v) * log2(1 + |v| / c)`, where the threshold `c`
    /// is [`SYMLOG_SHARE`] times the largest magnitude of the range. Below `c` it is nearly linear, far above
    /// nearly the logarithm. Source: J. Webber, "A bi-symmetric log transformation for wide-range data",
    /// Measurement Science and Technology 24 (2013) 027001.
    Symlog,
}

impl ValueScale {
    /// Returns true for [`ValueScale::Linear`].
    #[must_use]
    pub fn is_linear(&self) -> bool {
        *self == Self::Linear
    }

    /// Returns the scale over a range, which determines the threshold of the symmetric logarithm.
    #[must_use]
    pub fn over(self, range: [f64; 2]) -> RangeScale {
        let largest = range[0].abs().max(range[1].abs());
        let threshold = (largest * SYMLOG_SHARE).max(f64::MIN_POSITIVE);
        RangeScale { scale: self, range, threshold }
    }
}

/// Scale with the range that it is used for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeScale {
    scale: ValueScale,
    range: [f64; 2],
    threshold: f64,
}

impl RangeScale {
    /// Returns the kind of scale.
    #[must_use]
    pub fn scale(&self) -> ValueScale {
        self.scale
    }

    /// Returns the threshold `c` of [`ValueScale::Symlog`], in the units of values.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Returns the position of a value; minus infinity for values of 0 and less on a logarithmic scale.
    #[must_use]
    pub fn position(&self, value: f64) -> f64 {
        match self.scale {
            ValueScale::Linear => value,
            ValueScale::Log if value <= 0.0 => f64::NEG_INFINITY,
            ValueScale::Log => value.log2(),
            ValueScale::Symlog => {
                (value.abs() / self.threshold).ln_1p().copysign(value) / std::f64::consts::LN_2
            }
        }
    }

    /// Returns the value at a position: the inverse of [`RangeScale::position`].
    #[must_use]
    pub fn value(&self, position: f64) -> f64 {
        match self.scale {
            ValueScale::Linear => position,
            ValueScale::Log => position.exp2(),
            ValueScale::Symlog => {
                ((position.abs() * std::f64::consts::LN_2).exp_m1() * self.threshold).copysign(position)
            }
        }
    }

    /// Returns the place of a value in the range, as a share: 0 at the low end, 1 at the high end, and beyond
    /// them outside of the range.
    #[must_use]
    pub fn share(&self, value: f64) -> f64 {
        let [low, high] = self.range.map(|end| self.position(end));
        (self.position(value) - low) / (high - low)
    }

    /// Returns the value at a share of the range: the inverse of [`RangeScale::share`].
    #[must_use]
    pub fn at_share(&self, share: f64) -> f64 {
        let [low, high] = self.range.map(|end| self.position(end));
        self.value(low + share * (high - low))
    }

    /// Returns powers of ten inside the range, and zero and negative ones on a symmetric scale, in ascending order:
    /// at most about `count` of them, evenly spread.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "fewer than 700 powers")]
    pub fn powers(&self, count: f64) -> Vec<f64> {
        let [low, high] = self.range;
        let least = if self.scale == ValueScale::Log { low } else { self.threshold };
        let largest = low.abs().max(high.abs());
        let (first, last) = (least.max(f64::MIN_POSITIVE).log10().ceil(), largest.log10().floor());
        let sides = if low < 0.0 && high > 0.0 { 2.0 } else { 1.0 };
        let step = ((last - first + 1.0) * sides / count.max(1.0)).ceil().max(1.0);
        let powers =
            (0..=((last - first) / step).max(0.0) as usize).map(|i| 10f64.powf(first + i as f64 * step));
        let powers: Vec<f64> = powers.collect();
        let negative = powers.iter().rev().map(|power| -power);
        let zero = (self.scale == ValueScale::Symlog).then_some(0.0);
        let all = negative.chain(zero).chain(powers.iter().copied());
        all.filter(|value| (low..=high).contains(value)).collect()
    }

    /// Returns true if values of the range have positions: on a logarithmic scale it lies above zero.
    #[must_use]
    pub fn is_defined(&self) -> bool {
        self.scale != ValueScale::Log || self.range[0] > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGES: [[f64; 2]; 5] = [[1e-28, 1e-20], [0.5, 2.0], [-3.0, 1e6], [-1e-9, 1e-9], [1.0, 1e30]];
    const SCALES: [ValueScale; 3] = [ValueScale::Linear, ValueScale::Log, ValueScale::Symlog];

    #[test]
    fn positions_have_an_inverse_and_rise() {
        for (scale, range) in SCALES.into_iter().flat_map(|scale| RANGES.map(|range| (scale, range))) {
            let own = scale.over(range);
            if !own.is_defined() {
                continue;
            }
            let mut last = f64::NEG_INFINITY;
            for i in 0..=1000 {
                let share = f64::from(i) / 1000.0;
                let value = own.at_share(share);
                assert!((own.share(value) - share).abs() < 1e-9, "{scale:?} {range:?} {share}");
                let back = own.value(own.position(value));
                assert!((back - value).abs() <= 1e-12 * value.abs().max(own.threshold()), "{value} {back}");
                assert!(value > last, "{scale:?} {range:?}: {value} after {last}");
                last = value;
            }
        }
    }

    #[test]
    fn the_symmetric_logarithm_is_linear_near_zero_and_odd() {
        let own = ValueScale::Symlog.over([-1000.0, 1000.0]);
        assert!((own.threshold() - 1.0).abs() < 1e-12);
        assert!((own.position(0.01) / own.position(0.001) - 10.0).abs() < 0.1);
        assert!((own.position(1000.0) - 1001f64.log2()).abs() < 1e-12);
        assert!((own.position(-5.0) + own.position(5.0)).abs() < 1e-12);
        assert!((own.share(0.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn powers_of_ten_lie_in_the_range() {
        assert_eq!(ValueScale::Log.over([0.5, 2000.0]).powers(9.0), [1.0, 10.0, 100.0, 1000.0]);
        let both = ValueScale::Symlog.over([-1000.0, 20.0]).powers(9.0);
        assert_eq!(both, [-1000.0, -100.0, -10.0, -1.0, 0.0, 1.0, 10.0]);
        assert!(ValueScale::Log.over([1e-300, 1e300]).powers(5.0).len() <= 6);
    }

    #[test]
    fn values_without_a_logarithm_lie_below_all_others() {
        let own = ValueScale::Log.over([1.0, 100.0]);
        assert!(own.share(0.0) == f64::NEG_INFINITY && own.share(-5.0) == f64::NEG_INFINITY);
        assert!((own.share(10.0) - 0.5).abs() < 1e-12);
        assert!(!ValueScale::Log.over([0.0, 1.0]).is_defined());
    }
}
