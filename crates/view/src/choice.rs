//! Transfer functions as people ask for them: by the name of a color map or preset, or by some members.

use array::{Error, Result, ValueSample};
use serde_json::{Map, Value};

use crate::fields::field::FieldType;
use crate::fields::find_field;
use crate::fields::validate::check_members;
use crate::preset::{PRESETS, Preset, find_preset};
use crate::{Transfer, ValueScale};

/// Request for a transfer function that is not complete.
#[derive(Clone, Debug, PartialEq)]
pub enum TransferChoice {
    /// Another color map, by its name.
    Map(String),
    /// A preset.
    Preset(&'static Preset),
    /// Some members of a transfer function; the others are kept, or chosen to suit the values.
    Members(Map<String, Value>),
}

/// Share of the positive values below which the range of a logarithmic scale does not begin.
const LOG_TAIL: f64 = 0.002;
/// Least low end of a range on a logarithmic scale, as a share of the high end, if no positive value is known.
const LOG_SHARE: f64 = 1e-6;

impl TransferChoice {
    /// Returns the choice that a user has written; `None` for a complete transfer function. `is_map` tells whether
    /// a name is that of a color map.
    ///
    /// # Errors
    /// `Invalid` for an unknown name, listing `maps` and presets, and for members of a wrong type.
    pub fn of(written: &Value, maps: &[&str], is_map: impl Fn(&str) -> bool) -> Result<Option<Self>> {
        match written {
            Value::String(name) => {
                if let Some(preset) = find_preset(name) {
                    return Ok(Some(Self::Preset(preset)));
                }
                if is_map(name) {
                    return Ok(Some(Self::Map(name.clone())));
                }
                let presets: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
                Err(Error::invalid(format!(
                    "expected one of the color maps {}, with `_r` at the end for the reversed one, or one of the presets {}, or JSON, found `{name}`",
                    maps.join(", "),
                    presets.join(", ")
                )))
            }
            Value::Object(members) => {
                let is_whole = ["range", "map", "opacity"].into_iter().all(|name| members.contains_key(name));
                if is_whole {
                    return Ok(None);
                }
                if let Some(FieldType::Record(record)) =
                    find_field("transfer").map(|field| *field.plain_type())
                {
                    check_members("transfer", record, written)?;
                }
                Ok(Some(Self::Members(members.clone())))
            }
            _ => Ok(None),
        }
    }

    /// Returns the name of the color map alone, if nothing else is chosen.
    #[must_use]
    pub fn map(&self) -> Option<&str> {
        match self {
            Self::Map(name) => Some(name),
            _ => None,
        }
    }

    /// Completes the choice from a transfer function and the values of a volume with these sides, in voxels.
    ///
    /// # Errors
    /// `Invalid` if the members do not fit together.
    pub fn complete(&self, base: Transfer, values: &ValueSample, sides_voxels: [u64; 3]) -> Result<Transfer> {
        let transfer = match self {
            Self::Map(name) => Transfer { map: name.clone(), ..base },
            Self::Preset(preset) => preset.transfer(values, sides_voxels),
            Self::Members(members) => with_members(base, members, values)?,
        };
        transfer.check()?;
        Ok(transfer)
    }
}

fn with_members(base: Transfer, members: &Map<String, Value>, values: &ValueSample) -> Result<Transfer> {
    let range: Option<[f64; 2]> =
        members.get("range").and_then(|range| serde_json::from_value(range.clone()).ok());
    let scale = members.get("scale").and_then(|scale| serde_json::from_value(scale.clone()).ok());
    // Points that are not given keep their places in the range.
    let mut base = match range {
        Some(range) => base.spread_over(range),
        None => base,
    };
    if let Some(scale) = scale {
        let positive = values.sorted.partition_point(|value| *value <= 0.0);
        let above = ValueSample { sorted: values.sorted[positive..].to_vec(), ..values.clone() };
        base = base.rescaled(scale, above.quantile(LOG_TAIL));
    }
    let Ok(Value::Object(mut all)) = serde_json::to_value(&base) else {
        return Err(Error::internal("a transfer function is always a JSON object"));
    };
    for (name, value) in members {
        all.insert(name.clone(), value.clone());
    }
    serde_json::from_value(Value::Object(all))
        .map_err(|_| Error::invalid("expected members of a transfer function as in docs/view.md"))
}

impl Transfer {
    /// Changes the scale; points of opacity keep their places in the range. For a logarithmic scale a range that
    /// reaches down to 0 begins at `least_positive` instead, or far below its high end.
    #[must_use]
    pub fn rescaled(self, scale: ValueScale, least_positive: Option<f64>) -> Self {
        let [low, high] = self.range;
        if scale == self.scale {
            return self;
        }
        if scale == ValueScale::Log && high <= 0.0 {
            // No value has a logarithm: the check of the result says so.
            return Self { scale, ..self };
        }
        let least = least_positive.filter(|least| (0.0..high).contains(least) && *least > 0.0);
        let low =
            if scale == ValueScale::Log && low <= 0.0 { least.unwrap_or(high * LOG_SHARE) } else { low };
        let (from, to) = (self.scale.over(self.range), scale.over([low, high]));
        // Points outside of the range stay at their values, as far as these have a position.
        let moved = |&[value, alpha]: &[f64; 2]| {
            let share = from.share(value);
            [if (0.0..=1.0).contains(&share) { to.at_share(share) } else { value }, alpha]
        };
        let mut opacity: Vec<[f64; 2]> = self.opacity.iter().map(moved).collect();
        opacity.sort_by(|a, b| a[0].total_cmp(&b[0]));
        Self { scale, range: [low, high], opacity, ..self }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn choice(written: Value) -> Result<Option<TransferChoice>> {
        TransferChoice::of(&written, &["gray"], |name| name == "gray" || name == "gray_r")
    }

    fn sample(values: impl IntoIterator<Item = f64>) -> ValueSample {
        let sorted: Vec<f64> = values.into_iter().collect();
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
    fn names_and_members_complete_a_function() {
        let base = Transfer::new([0.0, 100.0], "viridis", vec![[0.0, 0.0], [50.0, 0.1], [100.0, 0.5]]);
        let values = sample((0..=1000).map(|i| f64::from(i) / 10.0));
        let complete = |written: Value| {
            choice(written).unwrap().unwrap().complete(base.clone(), &values, [64; 3]).unwrap()
        };
        assert_eq!(complete(json!("gray_r")), Transfer { map: "gray_r".into(), ..base.clone() });
        assert_eq!(complete(json!("ct-bone")).map, "ct-bone");
        let log = complete(json!({"scale": "log"}));
        assert!(log.range[0] > 0.0 && log.range[0] < 1.0 && log.scale == ValueScale::Log, "{log:?}");
        assert!((log.scale.over(log.range).share(log.opacity[1][0]) - 0.5).abs() < 1e-9, "{log:?}");
        let narrow = complete(json!({"range": [10, 20], "reversed": true}));
        assert!(narrow.reversed && narrow.opacity[1] == [15.0, 0.1], "{narrow:?}");
        assert_eq!(choice(json!({"range": [0, 1], "map": "gray", "opacity": [[0, 1]]})).unwrap(), None);
    }

    #[test]
    fn unknown_names_and_wrong_members_are_refused_with_what_there_is() {
        let unknown = choice(json!("jet")).unwrap_err().to_string();
        assert!(
            unknown.contains("gray") && unknown.contains("ct-bone") && unknown.contains("`jet`"),
            "{unknown}"
        );
        let wrong = choice(json!({"scale": "ln"})).unwrap_err().to_string();
        assert!(wrong.contains("`transfer.scale`"), "{wrong}");
        let below = choice(json!({"scale": "log", "range": [-2, -1]})).unwrap().unwrap();
        let base = Transfer::new([0.0, 1.0], "gray", vec![[0.0, 1.0]]);
        let error = below.complete(base, &sample([-2.0, -1.0]), [8; 3]).unwrap_err().to_string();
        assert!(error.contains("above 0 for a logarithmic scale"), "{error}");
    }
}
