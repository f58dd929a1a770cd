//! Presets of transfer functions by kind of data.
//!
//! The table [`PRESETS`] is the only description: the command line, Python and the viewer (through a generated
//! file) use it. Opacities are given as *thickness*, a multiple of the optical thickness of the densest value of
//! a default transfer function, so that a preset looks the same in small and large volumes.

use array::ValueSample;

use crate::kind::DataKind;
use crate::transfer::{check_range, densest, span};
use crate::{Transfer, ValueScale};

/// Values at the ends of the color map of a preset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PresetRange {
    /// Decoded values.
    Values([f64; 2]),
    /// Values below which these shares of the values lie.
    Shares([f64; 2]),
    /// Symmetric about zero, up to the magnitude below which this share of the magnitudes lie.
    Symmetric(f64),
    /// From the border of the background, see [`background_border`], to the value below which this share lies.
    AboveBackground(f64),
}

/// Preset of a transfer function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// Name on the command line and in Python.
    pub name: &'static str,
    /// Name in the viewer.
    pub label: &'static str,
    /// Description.
    pub help: &'static str,
    /// Kinds of data that it is offered for first.
    pub kinds: &'static [DataKind],
    /// Name of the color map.
    pub map: &'static str,
    /// Ends of the color map.
    pub range: PresetRange,
    /// Points `[place, thickness]`: the place is a decoded value for [`PresetRange::Values`], else a share of the
    /// range on the scale.
    pub points: &'static [[f64; 2]],
}

/// All presets, in the order of the viewer's menu.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "ct",
        label: "CT: skin and bone",
        help: "Computed tomography in Hounsfield units: bone within translucent skin.",
        kinds: &[DataKind::Ct],
        map: "ct-bone",
        range: PresetRange::Values([-500.0, 1000.0]),
        points: &[
            [-700.0, 0.0],
            [-500.0, 0.12],
            [-300.0, 0.12],
            [-150.0, 0.02],
            [100.0, 0.02],
            [200.0, 0.5],
            [400.0, 5.0],
            [1000.0, 10.0],
        ],
    },
    Preset {
        name: "ct-bone",
        label: "CT: bone",
        help: "Computed tomography in Hounsfield units: bone alone.",
        kinds: &[DataKind::Ct],
        map: "ct-bone",
        range: PresetRange::Values([-500.0, 1000.0]),
        points: &[[130.0, 0.0], [220.0, 0.6], [400.0, 5.0], [1000.0, 10.0]],
    },
    Preset {
        name: "ct-soft-tissue",
        label: "CT: soft tissue",
        help: "Computed tomography in Hounsfield units: fat, muscle and organs.",
        kinds: &[DataKind::Ct],
        map: "ct-soft",
        range: PresetRange::Values([-160.0, 240.0]),
        points: &[[-250.0, 0.0], [-150.0, 0.3], [-50.0, 0.5], [20.0, 1.5], [100.0, 3.0], [240.0, 5.0]],
    },
    Preset {
        name: "ct-lung",
        label: "CT: lung",
        help: "Computed tomography in Hounsfield units: lung and airways.",
        kinds: &[DataKind::Ct],
        map: "ct-lung",
        range: PresetRange::Values([-1000.0, -300.0]),
        points: &[[-960.0, 0.0], [-900.0, 0.4], [-700.0, 0.8], [-500.0, 0.5], [-400.0, 0.05], [-300.0, 0.0]],
    },
    Preset {
        name: "mr",
        label: "MR",
        help: "Magnetic resonance and other scans without units: gray above the background.",
        kinds: &[DataKind::Mr],
        map: "gray",
        range: PresetRange::AboveBackground(0.998),
        points: &[[0.0, 0.0], [0.1, 0.25], [0.4, 0.8], [1.0, 3.0]],
    },
    Preset {
        name: "microscopy",
        label: "Microscopy",
        help: "Microscope images: dark values are transparent; from the first percentile to the 99.8th.",
        kinds: &[DataKind::Microscopy],
        map: "gray",
        range: PresetRange::Shares([0.01, 0.998]),
        points: &[[0.0, 0.0], [0.12, 0.0], [0.5, 0.6], [1.0, 3.0]],
    },
    Preset {
        name: "segmentation",
        label: "Segmentation",
        help: "Labels: a color for each whole number, 0 is transparent.",
        kinds: &[DataKind::Labels],
        map: "labels",
        range: PresetRange::Values([0.0, 255.0]),
        points: &[[-1.0, 1.0], [-0.5, 1.0], [-0.5, 0.0], [0.5, 0.0], [0.5, 1.0]],
    },
    Preset {
        name: "simulation",
        label: "Simulation",
        help: "Fields: the high values emphasized, the low ones faint.",
        kinds: &[DataKind::Field],
        map: "viridis",
        range: PresetRange::Shares([0.002, 0.998]),
        points: &[[0.0, 0.0], [0.15, 0.0], [0.3, 0.03], [0.6, 0.12], [0.8, 0.5], [1.0, 2.0]],
    },
    Preset {
        name: "signed",
        label: "Signed field",
        help: "Fields of both signs: symmetric about zero, which is transparent.",
        kinds: &[DataKind::Signed],
        map: "coolwarm",
        range: PresetRange::Symmetric(0.995),
        points: &[[0.0, 1.5], [0.2, 0.4], [0.4, 0.0], [0.6, 0.0], [0.8, 0.4], [1.0, 1.5]],
    },
];

/// Finds a preset by its name.
#[must_use]
pub fn find_preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

impl Preset {
    /// Returns the transfer function for values in a volume with these sides, in voxels.
    #[must_use]
    pub fn transfer(&self, values: &ValueSample, sides_voxels: [u64; 3]) -> Transfer {
        let range = self.range_of(values);
        let dense = densest(sides_voxels.into_iter().max().unwrap_or(1));
        let scale = ValueScale::Linear.over(range);
        let point = |&[place, thickness]: &[f64; 2]| {
            let is_value = matches!(self.range, PresetRange::Values(_));
            [if is_value { place } else { scale.at_share(place) }, thickened(dense, thickness)]
        };
        Transfer::new(range, self.map, self.points.iter().map(point).collect())
    }

    /// Returns the ends of the color map; those of all usual values if the values have no such range.
    fn range_of(&self, values: &ValueSample) -> [f64; 2] {
        let at = |share: f64| values.quantile(share).unwrap_or(0.0);
        let range = match self.range {
            PresetRange::Values(range) => range,
            PresetRange::Shares([low, high]) => [at(low), at(high)],
            PresetRange::Symmetric(share) => {
                let mut magnitudes: Vec<f64> = values.sorted.iter().map(|value| value.abs()).collect();
                magnitudes.sort_by(f64::total_cmp);
                let largest =
                    ValueSample { sorted: magnitudes, ..values.clone() }.quantile(share).unwrap_or(0.0);
                [-largest, largest]
            }
            PresetRange::AboveBackground(share) => [background_border(values).unwrap_or(at(0.0)), at(share)],
        };
        if check_range(range).is_ok() { range } else { span(values) }
    }
}

/// Returns the opacity of a value that is `thickness` times as thick, optically, as one of opacity `dense`.
pub(crate) fn thickened(dense: f64, thickness: f64) -> f64 {
    (1.0 - (1.0 - dense).powf(thickness)).clamp(0.0, 1.0)
}

/// Bins of the histogram that a threshold is searched in.
const OTSU_BINS: usize = 256;
/// Share of the values above which outliers do not stretch that histogram.
const OTSU_TAIL: f64 = 0.998;

/// Returns the value that separates background from objects: the threshold between two classes of values that
/// has the largest variance between them; `None` if all usual values are equal. Source: N. Otsu, "A threshold
/// selection method from gray-level histograms", IEEE Transactions on Systems, Man, and Cybernetics 9 (1979).
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the bins")]
#[expect(clippy::cast_precision_loss, reason = "counts of a sample")]
pub fn background_border(values: &ValueSample) -> Option<f64> {
    let [low, high] = [values.quantile(0.0)?, values.quantile(OTSU_TAIL)?];
    check_range([low, high]).ok()?;
    let width = (high - low) / OTSU_BINS as f64;
    let mut bins = [0.0; OTSU_BINS];
    for value in &values.sorted {
        let bin = ((value - low) / width).clamp(0.0, (OTSU_BINS - 1) as f64) as usize;
        bins[bin] += 1.0;
    }
    let total: f64 = bins.iter().sum();
    let moment: f64 = bins.iter().enumerate().map(|(bin, count)| bin as f64 * count).sum();
    let (mut best, mut border) = (0.0, None);
    let (mut below, mut moment_below) = (0.0, 0.0);
    for (bin, count) in bins.iter().enumerate() {
        below += count;
        moment_below += bin as f64 * count;
        let above = total - below;
        if below == 0.0 || above == 0.0 {
            continue;
        }
        let apart = moment_below / below - (moment - moment_below) / above;
        let between = below * above * apart * apart;
        if between > best {
            (best, border) = (between, Some(low + (bin + 1) as f64 * width));
        }
    }
    border
}

#[cfg(test)]
mod tests {
    use array::Meaning;

    use super::*;
    use crate::DataHints;

    fn sample(values: impl IntoIterator<Item = f64>) -> ValueSample {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let [low, high] = [sorted.first(), sorted.last()].map(|end| end.copied().unwrap_or(0.0));
        ValueSample {
            count: sorted.len() as u64,
            infinite: 0,
            low,
            high,
            sorted,
            packing: None,
            has_missing: false,
        }
    }

    #[test]
    fn presets_are_legal_for_any_values() {
        let all = [
            vec![],
            vec![0.0],
            vec![-1.0, 1.0],
            vec![f64::MIN, f64::MAX],
            (0..5000).map(f64::from).collect(),
            vec![7.5; 40],
        ];
        for (preset, values) in PRESETS.iter().flat_map(|preset| all.iter().map(move |v| (preset, v.clone())))
        {
            for sides in [[1; 3], [64; 3], [4096; 3]] {
                let transfer = preset.transfer(&sample(values.clone()), sides);
                transfer.check().unwrap_or_else(|e| panic!("{}: {e}", preset.name));
            }
        }
    }

    #[test]
    fn every_kind_has_a_preset_and_names_are_used_once() {
        let mut names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PRESETS.len());
        use DataKind::{Ct, Field, Labels, Microscopy, Mr, Signed};
        for kind in [Labels, Ct, Mr, Microscopy, Signed, Field] {
            assert!(PRESETS.iter().any(|preset| preset.kinds.contains(&kind)), "{kind:?}");
        }
        assert_eq!(DataHints::of_meaning(Meaning::Labels).kind(&sample([])), Labels);
    }

    #[test]
    fn the_background_ends_between_two_heaps() {
        let heaps =
            sample((0..900).map(|i| f64::from(i % 30)).chain((0..300).map(|i| 200.0 + f64::from(i % 50))));
        let border = background_border(&heaps).unwrap();
        assert!((29.0..200.0).contains(&border), "{border}");
        assert_eq!(background_border(&sample([5.0; 9])), None);
    }

    #[test]
    fn a_symmetric_range_has_zero_in_its_middle() {
        let field = sample((0..1000).map(|i| f64::from(i) / 500.0 - 0.5));
        let transfer = find_preset("signed").unwrap().transfer(&field, [64; 3]);
        assert!((transfer.range[0] + transfer.range[1]).abs() < 1e-12);
        let middle = transfer.opacity.iter().find(|[value, _]| value.abs() < 0.4).unwrap();
        assert!(middle[1].abs() < 1e-12);
    }
}
