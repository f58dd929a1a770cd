//! Statistics of the values that a picture is made from, that is of the shown array at the shown time and
//! indices.

use array::ValueSample;
use array::values::stats::{ValueHistogram, ValueStats};
use serde::{Deserialize, Serialize};

use view::{DataHints, Mode, ValueScale, View};

/// Share of the values that the usual color range excludes at each end. Notes mention smaller shares only for
/// distant values.
const USUAL_SHARE: f64 = 0.003;
/// Smallest distance from the range that notes mention, as a multiple of the range's width.
const FAR_OUT: f64 = 1.0;

/// Statistics of the values of the blocks in memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueSummary {
    /// Number of the level of the blocks.
    pub level: u8,
    /// Number of values.
    pub count: u64,
    /// Number of missing, NaN and infinite values.
    pub missing: u64,
    /// Lowest value; `None` if there is none.
    pub low: Option<f64>,
    /// Highest value; `None` if there is none.
    pub high: Option<f64>,
    /// Share of the values below the color range.
    pub below: f64,
    /// Share of the values above the color range.
    pub above: f64,
    /// Value that looks like padding, and its share of all values.
    pub padding: Option<[f64; 2]>,
    /// Distribution of the values; `None` if there are none.
    pub histogram: Option<ValueHistogram>,
    /// Pairs of a share and the value below which that share of the values lie, ascending: see
    /// `QUANTILE_SHARES`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quantiles: Vec<[f64; 2]>,
    /// One sentence for users, if anything is unusual.
    pub note: Option<String>,
    /// Kind of data, as [`view::DataKind::name`] returns it; empty in summaries of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
}

/// Distance of values from a linear range, as a multiple of its width, from which on another scale is offered.
const FAR_FOR_LINEAR: f64 = 1e3;

/// Properties of a view that affect the statistics of its values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DrawnRange {
    /// Range of values that colors are mapped to.
    pub range: Option<[f64; 2]>,
    /// Scale of the colors.
    pub scale: ValueScale,
    /// True for the lowest and the highest values if they are transparent and nothing else shows them.
    pub hides: [bool; 2],
}

impl DrawnRange {
    /// Returns the properties of a view.
    #[must_use]
    pub fn of(view: &View) -> Self {
        let Some(transfer) = &view.transfer else { return Self::default() };
        // Opacity has no effect on slices and in projections of extreme values.
        let is_by_opacity = view.mode == Mode::Composite && view.slices.iter().all(|slice| slice.hidden);
        let is_clear =
            |point: Option<&[f64; 2]>| is_by_opacity && point.is_some_and(|[_, alpha]| *alpha <= 0.0);
        let hides = [is_clear(transfer.opacity.first()), is_clear(transfer.opacity.last())];
        Self { range: Some(transfer.range), scale: transfer.scale, hides }
    }
}

impl ValueSummary {
    /// Combines a sample and statistics; `drawn` tells how the values are drawn. Labels and packed colors
    /// have neither padding nor values outside of a range.
    #[must_use]
    pub fn of(
        spread: &ValueSample,
        stats: &ValueStats,
        hints: &DataHints,
        level: u8,
        drawn: DrawnRange,
    ) -> Self {
        let range = drawn.range;
        let is_amount = hints.meaning.is_continuous();
        let has_any = spread.count > 0;
        let [below, above] = range.filter(|_| is_amount).map_or([0.0; 2], |range| spread.outside(range));
        let padding = spread.padding().filter(|_| is_amount).map(|padding| [padding.value, padding.share]);
        let mut values = Self {
            level,
            count: spread.count,
            missing: stats.missing,
            low: has_any.then_some(spread.low),
            high: has_any.then_some(spread.high),
            below,
            above,
            padding,
            histogram: stats.histogram.clone(),
            quantiles: quantiles(spread).filter(|_| is_amount).unwrap_or_default(),
            note: None,
            kind: hints.kind(spread).name().to_owned(),
        };
        values.note = values.sentence(spread, drawn).filter(|_| is_amount || !has_any);
        values
    }

    fn sentence(&self, spread: &ValueSample, drawn: DrawnRange) -> Option<String> {
        let [low, high] = drawn.range?;
        if self.count == 0 {
            return Some("There is no value here: all are missing or no numbers.".into());
        }
        let mut parts = Vec::new();
        if spread.low >= spread.high && spread.infinite == 0 {
            parts.push(format!("All values are {}", number(spread.low)));
        }
        let width = high - low;
        let (mut below, mut above) = (self.below, self.above);
        let (mut lowest, mut highest) = (spread.low, spread.high);
        if let Some([value, share]) = self.padding {
            // Of the values besides padding.
            let rest = spread.padding().map(|padding| spread.without(&padding).sorted).unwrap_or_default();
            #[expect(clippy::cast_precision_loss, reason = "shares")]
            let share_of = |count: usize| count as f64 / spread.sorted.len().max(1) as f64;
            if value < low {
                below = share_of(rest.partition_point(|&v| v < low));
                lowest = rest.first().copied().unwrap_or(low);
            } else if value > high {
                above = share_of(rest.len() - rest.partition_point(|&v| v <= high));
                highest = rest.last().copied().unwrap_or(high);
            }
            if value < low || value > high {
                let [below, above] = drawn.hides;
                let is_hidden = if value < low { below } else { above };
                parts.push(format!(
                    "{} of the values are {}, which looks like padding{}",
                    percent(share),
                    number(value),
                    if is_hidden { ", and are not drawn" } else { "" }
                ));
            }
        }
        if drawn.scale == ValueScale::Log {
            parts.push(format!(
                "The values span {} powers of ten, so colors are logarithmic",
                (high / low).log10().round().max(1.0)
            ));
            let hidden = spread.outside([f64::MIN_POSITIVE, f64::MAX])[0];
            if hidden > 0.0 {
                parts.push(format!("{} of the values are 0 or less and have no logarithm", percent(hidden)));
            }
        }
        let is_worth =
            |share: f64, distance: f64| share > 0.0 && (share > USUAL_SHARE || distance > FAR_OUT * width);
        if is_worth(below, low - lowest) {
            parts.push(format!(
                "{} of the values lie below the colors, down to {}",
                percent(below),
                number(lowest)
            ));
        }
        if is_worth(above, highest - high) {
            parts.push(format!(
                "{} of the values lie above the colors, up to {}",
                percent(above),
                number(highest)
            ));
        }
        let far = highest - high;
        if drawn.scale == ValueScale::Linear && spread.low > 0.0 && far > FAR_FOR_LINEAR * width {
            parts.push("the scale `log` with the full range shows all".into());
        }
        if spread.infinite > 0 {
            parts.push(format!("{} are infinite", spread.infinite));
        }
        (!parts.is_empty()).then(|| format!("{}.", parts.join("; ")))
    }
}

/// Shares at the ends for which values are sent, besides [`EVEN_QUANTILES`] even steps: viewers offer ranges between
/// them.
const QUANTILE_SHARES: [f64; 6] = [0.0, 0.001, 0.002, 0.005, 0.01, 0.02];
/// Number of even steps of the shares for which values are sent.
const EVEN_QUANTILES: u32 = 64;

/// Returns values by the share of the values below them; `None` without values.
fn quantiles(sample: &ValueSample) -> Option<Vec<[f64; 2]>> {
    let even = (1..EVEN_QUANTILES).map(|step| f64::from(step) / f64::from(EVEN_QUANTILES));
    let mut shares: Vec<f64> =
        QUANTILE_SHARES.into_iter().flat_map(|share| [share, 1.0 - share]).chain(even).collect();
    shares.sort_by(f64::total_cmp);
    let value = |share: f64| match share {
        share if share <= 0.0 => Some(sample.low),
        share if share >= 1.0 => Some(sample.high),
        share => sample.quantile(share),
    };
    if sample.count == 0 {
        return None;
    }
    shares.into_iter().map(|share| Some([share, value(share)?])).collect()
}

/// Formats a share.
fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p < 0.1 => "less than 0.1 %".into(),
        p if p < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// Formats a number in about four digits.
fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (1e-3..1e6).contains(&size) {
        let text = format!("{value:.*}", if size >= 1000.0 { 0 } else { 3 });
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        return text.to_owned();
    }
    let text = format!("{value:.3e}");
    match text.split_once('e') {
        Some((digits, power)) => format!("{}e{power}", digits.trim_end_matches('0').trim_end_matches('.')),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use array::Meaning;
    use array::values::stats::Accumulator;

    use super::*;

    fn note(values: &[f64], range: [f64; 2]) -> Option<String> {
        let mut stats = Accumulator::new(16).unwrap();
        values.iter().for_each(|v| stats.add_value(*v));
        let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let ends = [sorted.first(), sorted.last()].map(|v| v.copied().unwrap_or(0.0));
        let infinite = values.iter().filter(|v| v.is_infinite()).count() as u64;
        let count = sorted.len() as u64;
        let spread = ValueSample {
            count,
            infinite,
            low: ends[0],
            high: ends[1],
            sorted,
            packing: None,
            has_missing: false,
        };
        let drawn = DrawnRange { range: Some(range), hides: [true, false], ..DrawnRange::default() };
        let of = |meaning| {
            ValueSummary::of(&spread, &stats.stats(), &DataHints::of_meaning(meaning), 0, drawn).note
        };
        assert!(
            of(Meaning::Labels).is_none() || sorted_is_empty(&spread),
            "a note on labels only says that all are missing"
        );
        of(Meaning::Intensity)
    }

    fn sorted_is_empty(spread: &ValueSample) -> bool {
        spread.sorted.is_empty()
    }

    #[test]
    fn the_note_names_values_outside_the_range() {
        let own: Vec<f64> = (0..1000).map(|i| f64::from(i % 100) / 100.0).collect();
        let with = |more: &[f64]| [&own, more].concat();
        assert_eq!(note(&own, [0.0, 1.0]), None);
        assert_eq!(
            note(&with(&[1.5]), [0.0, 1.0]),
            None,
            "a few values close to the range are not mentioned"
        );
        assert_eq!(
            note(&with(&[1e30]), [0.0, 1.0]).unwrap(),
            "less than 0.1 % of the values lie above the colors, up to 1e30."
        );
        assert_eq!(
            note(&own, [0.25, 0.5]).unwrap(),
            "25 % of the values lie below the colors, down to 0; 49 % of the values lie above the colors, up to 0.99."
        );
        assert_eq!(
            note(&with(&[-9999.0; 1500]), [0.0, 1.0]).unwrap(),
            "60 % of the values are -9999, which looks like padding, and are not drawn."
        );
        assert_eq!(
            note(&with(&[1e20; 1500]), [0.0, 1.0]).unwrap(),
            "60 % of the values are 1e20, which looks like padding.",
            "opaque at that end"
        );
        assert_eq!(note(&with(&[f64::INFINITY]), [0.0, 1.0]).unwrap(), "1 are infinite.");
        assert_eq!(note(&[7.5; 9], [3.75, 11.25]).unwrap(), "All values are 7.5.");
        assert!(note(&[f64::NAN], [0.0, 1.0]).unwrap().contains("no value here"));
    }

    #[test]
    fn the_note_explains_a_logarithmic_scale() {
        let values: Vec<f64> = (0..1000).map(|i| 1e-28 * 10f64.powf(f64::from(i) / 100.0)).collect();
        let mut stats = Accumulator::new(16).unwrap();
        values.iter().for_each(|v| stats.add_value(*v));
        let sample = ValueSample {
            count: 1000,
            infinite: 0,
            low: values[0],
            high: values[999],
            sorted: values,
            packing: None,
            has_missing: false,
        };
        let drawn = DrawnRange { range: Some([1e-28, 1e-18]), scale: ValueScale::Log, hides: [false; 2] };
        let hints = DataHints::of_meaning(Meaning::Intensity);
        let summary = ValueSummary::of(&sample, &stats.stats(), &hints, 0, drawn);
        assert_eq!(summary.note.unwrap(), "The values span 10 powers of ten, so colors are logarithmic.");
        assert_eq!(summary.kind, "field");
        let [first, last] = [summary.quantiles[0], summary.quantiles[summary.quantiles.len() - 1]];
        assert!(first[1] < 1.01e-28 && last[0] >= 1.0 && last[1] > 9e-19, "{first:?} {last:?}");
        assert!(summary.quantiles.is_sorted_by(|a, b| a[0] < b[0] && a[1] <= b[1]));
    }

    #[test]
    fn padding_is_hidden_where_opacity_decides() {
        let hides = |fields: serde_json::Value| {
            let view = View::parse(&fields.to_string()).unwrap();
            DrawnRange::of(&view).hides
        };
        let transfer =
            serde_json::json!({"range": [0, 1], "map": "gray", "opacity": [[-1, 0], [0, 1], [1, 1]]});
        assert_eq!(hides(serde_json::json!({ "transfer": transfer })), [true, false]);
        assert_eq!(hides(serde_json::json!({})), [false; 2]);
        for mut fields in
            [serde_json::json!({"mode": "minimum"}), serde_json::json!({"slices": [{"axis": "z", "at": 1}]})]
        {
            fields["transfer"] = transfer.clone();
            assert_eq!(hides(fields), [false; 2]);
        }
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (-9999.0, "-9999"),
            (0.25, "0.25"),
            (1e30, "1e30"),
            (1.2345e-28, "1.234e-28"),
            (-3024.0, "-3024"),
            (100.0, "100"),
        ] {
            assert!(number(value) == text || number(value) == "1.235e-28", "{}", number(value));
        }
    }
}
