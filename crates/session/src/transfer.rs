//! Transfer functions as a view carries them, and a sensible one to start with.
//!
//! A transfer function is defined over *decoded* values. Its opacity is what one smallest voxel spacing of
//! level 0 takes away, so it does not depend on the level drawn. Names of colour maps are the renderer's:
//! here a map is only a short word.

use array::stats::Histogram;
use array::{Error, Meaning, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Most points of an opacity curve.
pub const MAX_OPACITY_POINTS: usize = 256;
/// Longest name of a colour map, bytes.
const MAX_MAP_BYTES: usize = 64;
/// Share of the voxels that the first transfer function hides: of real volumes most is air, water or background.
const HIDDEN_SHARE: f64 = 0.72;
/// Shares of the voxels below and above which colours saturate, so that a few outliers do not bleach the rest.
const TAIL_SHARE: f64 = 0.002;
/// The densest value lets `CLEAR_SHARE` of the light through `THICKNESS_SHARE` of the volume's longest side.
const THICKNESS_SHARE: f64 = 0.1;
const CLEAR_SHARE: f64 = 0.05;
/// Range in which every label of the map for labels has a colour of its own.
const LABEL_RANGE: [f64; 2] = [0.0, 255.0];

/// Which values are seen, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Values at the ends of the colour map, decoded.
    pub range: [f64; 2],
    /// Name of the colour map.
    pub map: String,
    /// `[value, alpha]`, ascending in value, linear between; outside, the nearest point holds. Alpha (0 to 1)
    /// is the opacity over the length of one smallest voxel spacing of level 0.
    pub opacity: Vec<[f64; 2]>,
    /// Fields of a later version: kept, ignored.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The value below which `share` (0 to 1) of the values lie, linear within a bin.
#[expect(clippy::cast_precision_loss, reason = "counts of voxels and bins, a share is enough")]
fn quantile(values: &Histogram, share: f64) -> f64 {
    let total: f64 = values.counts.iter().map(|&n| n as f64).sum();
    let width = values.high - values.low;
    if total <= 0.0 {
        return values.low + share * width;
    }
    let mut rest = share * total;
    for (bin, &count) in values.counts.iter().enumerate() {
        let count = count as f64;
        if rest <= count && count > 0.0 {
            return values.low + (bin as f64 + rest / count) / values.counts.len() as f64 * width;
        }
        rest -= count;
    }
    values.high
}

/// Values beyond that, on both sides of zero, may have differences that are no numbers.
const WIDEST: f64 = f64::MAX / 4.0;

impl Transfer {
    /// A first transfer function for values spread like this in a volume of so many voxels along its sides: common values
    /// are clear, rare high ones are dense. A map of one layer is opaque: nothing is behind it. Without counts only the
    /// range is known.
    #[must_use]
    pub fn sensible(values: &Histogram, meaning: Meaning, sides_voxels: [u64; 3]) -> Self {
        let unknown = Histogram { low: 0.0, high: 1.0, counts: Vec::new() };
        let is_known = values.low.is_finite() && values.high.is_finite() && values.low <= values.high;
        let values = if is_known { values } else { &unknown };
        // Values so far apart that their difference is no number: how they are spread is not known then.
        let apart =
            Histogram { low: values.low.max(-WIDEST), high: values.high.min(WIDEST), counts: Vec::new() };
        let values = if (values.high - values.low).is_finite() { values } else { &apart };
        let [low, high] = span(values);
        let is_map = sides_voxels.contains(&1);
        let dense = if is_map { 1.0 } else { densest(sides_voxels.into_iter().max().unwrap_or(1)) };
        if meaning == Meaning::Labels {
            // Label 0 means nothing; every other one is a thing.
            let opacity = vec![[0.5, 0.0], [0.5, dense]];
            return Self { range: LABEL_RANGE, map: "labels".into(), opacity, other: Map::new() };
        }
        if is_map {
            let opacity = vec![[low, 1.0], [high, 1.0]];
            return Self { range: [low, high], map: "viridis".into(), opacity, other: Map::new() };
        }
        let first = quantile(values, HIDDEN_SHARE).clamp(low, low + 0.9 * (high - low));
        let opacity =
            vec![[low, 0.0], [first, 0.0], [first + 0.5 * (high - first), 0.3 * dense], [high, dense]];
        Self { range: [low, high], map: "viridis".into(), opacity, other: Map::new() }
    }

    /// Checks what serde does not: finite numbers, a range, an ascending bounded curve.
    ///
    /// # Errors
    /// `Invalid`, naming the field.
    pub fn check(&self) -> Result<()> {
        check_range(self.range)?;
        check_map(&self.map)?;
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

/// # Errors
/// `Invalid` where no colour map can be spread over it.
pub(crate) fn check_range([low, high]: [f64; 2]) -> Result<()> {
    // The width is divided by: it and what is left of it must be numbers.
    let width = high - low;
    if width > 0.0 && width.is_finite() && width.recip().is_finite() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "expected a range of finite values with low below high, and neither nearer nor farther apart than numbers can say, found {low} and {high}"
    )))
}

/// # Errors
/// `Invalid` for what is no short word.
pub(crate) fn check_map(map: &str) -> Result<()> {
    if (1..=MAX_MAP_BYTES).contains(&map.len()) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "expected the name of a colour map of 1 to {MAX_MAP_BYTES} bytes, found {}",
        map.len()
    )))
}

/// Ends of the colour map: the histogram without its tails, never empty.
fn span(values: &Histogram) -> [f64; 2] {
    let [low, high] = [quantile(values, TAIL_SHARE), quantile(values, 1.0 - TAIL_SHARE)];
    // Bins are no wider than values ask for: those in a single one are all the same.
    let is_constant = values.counts.iter().filter(|&&count| count > 0).count() == 1;
    if low < high && !is_constant {
        return [low, high];
    }
    // A constant: room on both sides that survives rounding.
    let room = values.low.abs().max(1.0) * 0.5;
    [values.low - room, values.high + room]
}

#[expect(clippy::cast_precision_loss, reason = "a length in voxels")]
fn densest(longest_side_voxels: u64) -> f64 {
    let voxels = (longest_side_voxels.max(1) as f64 * THICKNESS_SHARE).max(1.0);
    1.0 - CLEAR_SHARE.powf(1.0 / voxels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_as_far_apart_as_numbers_go_have_a_transfer_function() {
        for (low, high) in [(-1.7e308, 1.7e308), (f64::MIN, f64::MAX), (-1.0, f64::MAX)] {
            for counts in [Vec::new(), vec![3, 0, 5]] {
                let values = Histogram { low, high, counts };
                let transfer = Transfer::sensible(&values, Meaning::Intensity, [16; 3]);
                transfer.check().unwrap();
                assert!((transfer.range[1] - transfer.range[0]).is_finite(), "{:?}", transfer.range);
            }
        }
    }

    #[test]
    fn quantiles_lie_where_the_values_are() {
        let h = Histogram { low: 0.0, high: 100.0, counts: vec![90, 0, 0, 10] };
        assert!((quantile(&h, 0.45) - 12.5).abs() < 1e-9);
        assert!((quantile(&h, 0.95) - 87.5).abs() < 1e-9);
        assert!((quantile(&h, 1.0) - 100.0).abs() < 1e-9);
        let unknown = Histogram { low: -1.0, high: 1.0, counts: Vec::new() };
        assert!((quantile(&unknown, 0.75) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn the_first_function_hides_the_background_and_is_always_legal() {
        let air = Histogram { low: 0.0, high: 255.0, counts: [vec![1000], vec![10; 63]].concat() };
        let t = Transfer::sensible(&air, Meaning::Intensity, [256; 3]);
        t.check().unwrap();
        let [first_seen, _] = t.opacity[1];
        assert!(first_seen > 3.9, "the bin of air ends near 4, seen from {first_seen}");
        for h in [
            Histogram { low: 0.0, high: 0.0, counts: vec![] },
            Histogram { low: f64::NAN, high: 1.0, counts: vec![] },
            Histogram { low: 7.0, high: 7.0, counts: vec![5] },
            Histogram { low: 1e30, high: 1e30, counts: vec![] },
            Histogram { low: -1e-30, high: 1e-30, counts: vec![1, 2, 3] },
        ] {
            for meaning in [Meaning::Intensity, Meaning::Labels] {
                for sides in [[0; 3], [1; 3], [4096, 4096, 1], [4096; 3]] {
                    Transfer::sensible(&h, meaning, sides).check().unwrap_or_else(|e| panic!("{h:?}: {e}"));
                }
            }
        }
    }

    #[test]
    fn a_constant_lies_in_the_middle_of_its_range() {
        for value in [0.0f64, 5.0, -1e9] {
            let high = if value == 0.0 { 1e-300 } else { value.next_up() };
            let constant = Histogram { low: value, high, counts: vec![40, 0] };
            let [low, high] = Transfer::sensible(&constant, Meaning::Intensity, [8; 3]).range;
            assert!(low < value && value < high && high - low >= 1.0, "{value}: {low} to {high}");
        }
    }

    #[test]
    fn a_map_of_one_layer_is_opaque() {
        let values = Histogram { low: 0.0, high: 1.0, counts: vec![1; 64] };
        let map = Transfer::sensible(&values, Meaning::Intensity, [360, 180, 1]);
        assert!(map.opacity.iter().all(|&[_, opacity]| opacity > 0.999));
        let labels = Transfer::sensible(&values, Meaning::Labels, [360, 180, 1]);
        assert_eq!(labels.opacity, [[0.5, 0.0], [0.5, 1.0]]);
    }

    #[test]
    fn larger_volumes_are_thinner_per_voxel() {
        assert!(densest(4096) < densest(256));
        assert!((1.0 - densest(1000)).powf(100.0) - CLEAR_SHARE < 1e-9);
    }
}
