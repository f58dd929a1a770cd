//! Kinds of data, as far as they determine how values are usually shown: guessed from the description of an
//! array and from a sample of its values.

use array::{ArrayInfo, AxisKind, Dataset, Meaning, ValueSample};

/// Kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKind {
    /// Numbers of objects, see [`Meaning::Labels`].
    Labels,
    /// Packed colors of an image.
    Colors,
    /// Computed tomography in Hounsfield units: air is -1000, water 0.
    Ct,
    /// Magnetic resonance, or another scan without absolute units.
    Mr,
    /// Microscope image.
    Microscopy,
    /// Field with values on both sides of zero.
    Signed,
    /// Any other field, such as a simulation's.
    Field,
}

impl DataKind {
    /// Returns the name used in the viewer and in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Labels => "labels",
            Self::Colors => "colors",
            Self::Ct => "ct",
            Self::Mr => "mr",
            Self::Microscopy => "microscopy",
            Self::Signed => "signed",
            Self::Field => "field",
        }
    }
}

/// Facts of an array's description that tell its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataHints {
    /// Meaning of the values.
    pub meaning: Meaning,
    /// True for integers as stored.
    pub is_integer: bool,
    /// True if the units are Hounsfield units.
    pub is_hounsfield: bool,
    /// True if the units are others.
    pub has_other_units: bool,
    /// True for a format of medical images (NIfTI, Analyze, MGH).
    pub is_medical: bool,
    /// True for lengths in micrometers or nanometers, and for arrays with channels.
    pub is_microscopic: bool,
}

/// Formats of medical images.
const MEDICAL_FORMATS: [&str; 3] = ["NIfTI", "Analyze", "MGH"];
/// Spellings of Hounsfield units, in lower case.
const HOUNSFIELD: [&str; 4] = ["hu", "hounsfield", "hounsfield unit", "hounsfield units"];
/// Units of length of microscope images, in lower case.
const SMALL_LENGTHS: [&str; 8] =
    ["um", "µm", "μm", "micrometer", "micrometers", "micron", "microns", "nanometer"];

/// Lowest values of computed tomography: air, and the paddings -1024, -2000, -2048 and -3024 in use.
const CT_LOWEST: [f64; 2] = [-4096.0, -900.0];
/// Range of the highest value of computed tomography: bone, or metal.
const CT_HIGHEST: [f64; 2] = [150.0, 32_767.0];
/// Values of air in computed tomography are below this.
const CT_AIR: f64 = -700.0;
/// Values of soft tissue in computed tomography.
const CT_SOFT: [f64; 2] = [-200.0, 200.0];
/// Least share of air, and of soft tissue, in computed tomography.
const CT_SHARES: [f64; 2] = [0.03, 0.02];
/// Least magnitude of the smaller end of a signed field, as a share of the larger one.
const SIGNED_SHARE: f64 = 0.15;
/// Shares at which the ends of a signed field are measured.
const SIGNED_TAILS: [f64; 2] = [0.005, 0.995];

impl DataHints {
    /// Returns the facts of an array.
    #[must_use]
    pub fn of(dataset: &Dataset, array: &ArrayInfo) -> Self {
        let units = array.units.trim().to_ascii_lowercase();
        let is_hounsfield = HOUNSFIELD.contains(&units.as_str());
        let world = array.world_units.trim().to_lowercase();
        let axis_units =
            array.axes.iter().filter(|axis| axis.kind.is_spatial()).map(|axis| axis.units.as_str());
        let is_small = |units: &str| SMALL_LENGTHS.contains(&units.trim().to_lowercase().as_str());
        let has_channels = array.axes.iter().any(|axis| axis.kind == AxisKind::Channel);
        Self {
            meaning: array.meaning,
            is_integer: array.dtype.element().is_integer(),
            is_hounsfield,
            has_other_units: !units.is_empty() && !is_hounsfield,
            is_medical: MEDICAL_FORMATS.contains(&dataset.format.as_str()),
            is_microscopic: has_channels || is_small(&world) || axis_units.into_iter().any(is_small),
        }
    }

    /// Returns facts of which only the meaning is known.
    #[must_use]
    pub fn of_meaning(meaning: Meaning) -> Self {
        Self { meaning, ..Self::default() }
    }

    /// Returns the kind of an array with these facts and values.
    #[must_use]
    pub fn kind(&self, values: &ValueSample) -> DataKind {
        match self.meaning {
            Meaning::Labels => return DataKind::Labels,
            Meaning::Colors => return DataKind::Colors,
            _ => {}
        }
        if self.is_hounsfield || !self.has_other_units && is_ct(values) {
            return DataKind::Ct;
        }
        if is_signed(values) {
            return DataKind::Signed;
        }
        let is_amount = values.sorted.first().is_some_and(|low| *low >= 0.0) && !self.has_other_units;
        if self.is_microscopic && self.is_integer && is_amount {
            return DataKind::Microscopy;
        }
        if self.is_medical && is_amount { DataKind::Mr } else { DataKind::Field }
    }
}

/// Returns the share of a sorted sample from `low` to below `high`.
#[expect(clippy::cast_precision_loss, reason = "a share of a sample")]
fn share_within(sorted: &[f64], [low, high]: [f64; 2]) -> f64 {
    let count = sorted.partition_point(|v| *v < high) - sorted.partition_point(|v| *v < low);
    count as f64 / sorted.len().max(1) as f64
}

/// Returns true if values look like Hounsfield units: whole numbers with air, soft tissue, and something denser.
fn is_ct(values: &ValueSample) -> bool {
    let within = |value: f64, [low, high]: [f64; 2]| (low..=high).contains(&value);
    let is_whole = || values.sorted.iter().all(|value| value.fract().abs() < f64::EPSILON);
    let [air, soft] = CT_SHARES;
    values.count > 0
        && within(values.low, CT_LOWEST)
        && within(values.high, CT_HIGHEST)
        && share_within(&values.sorted, [f64::NEG_INFINITY, CT_AIR]) >= air
        && share_within(&values.sorted, CT_SOFT) >= soft
        && is_whole()
}

/// Returns true if values lie on both sides of zero, with ends of similar magnitude.
fn is_signed(values: &ValueSample) -> bool {
    let [low, high] = SIGNED_TAILS.map(|share| values.quantile(share).unwrap_or(0.0));
    low < 0.0 && high > 0.0 && (-low).min(high) >= SIGNED_SHARE * (-low).max(high)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_kind_follows_meaning_units_format_and_values() {
        let none = DataHints::of_meaning(Meaning::Intensity);
        let body = sample((0..400).map(|i| [-1024.0, -3024.0, 40.0, 900.0][i % 4]));
        assert_eq!(none.kind(&body), DataKind::Ct);
        assert_ne!(DataHints { has_other_units: true, ..none }.kind(&body), DataKind::Ct, "kelvin, say");
        let wave = sample((0..400).map(|i| (f64::from(i) / 9.0).sin()));
        assert_eq!(none.kind(&wave), DataKind::Signed);
        let celsius = sample((0..400).map(|i| f64::from(i) / 10.0 - 2.0));
        assert_eq!(none.kind(&celsius), DataKind::Field, "a little below zero");
        let counts = sample((0..400).map(f64::from));
        assert_eq!(DataHints { is_medical: true, ..none }.kind(&counts), DataKind::Mr);
        let cells = DataHints { is_microscopic: true, is_integer: true, ..none };
        assert_eq!(cells.kind(&counts), DataKind::Microscopy);
        assert_eq!(DataHints::of_meaning(Meaning::Labels).kind(&counts), DataKind::Labels);
        assert_eq!(DataHints { is_hounsfield: true, ..none }.kind(&counts), DataKind::Ct);
        assert_eq!(none.kind(&sample([])), DataKind::Field);
    }
}
