//! Floats in descriptions: their equality, and NaN and infinities in JSON.
//!
//! Descriptions are compared and sent as a whole, and may contain NaN: the fill value that xarray writes, or a missing coordinate. So
//! equality here is identity, not arithmetic: NaN equals NaN, whatever its payload (JSON has one NaN), and 0 is not -0. Equality of a
//! stored value with a fill value is another test: see [`Decoding::is_missing`](crate::Decoding::is_missing).

use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Whether two floats of descriptions are the same: the same bits, or both NaN.
#[must_use]
#[inline]
pub fn same_float(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// Whether two lists have the same floats, by [`same_float`].
#[must_use]
pub fn same_floats(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| same_float(a, b))
}

/// Text that JSON has for NaN and infinities; `None` for finite floats.
#[must_use]
pub fn float_text(value: f64) -> Option<&'static str> {
    match value {
        _ if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

/// Float of a text from [`float_text`]; `None` for other texts.
#[must_use]
pub fn float_of_text(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// A float in JSON: a number, or `"NaN"`, `"Infinity"`, `"-Infinity"`. `null`, which programs up to 0.1 wrote for all
/// three, is read as NaN.
#[derive(Clone, Copy)]
struct JsonFloat(f64);

impl Serialize for JsonFloat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match float_text(self.0) {
            Some(text) => serializer.serialize_str(text),
            None => serializer.serialize_f64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for JsonFloat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FloatVisitor).map(Self)
    }
}

struct FloatVisitor;

impl Visitor<'_> for FloatVisitor {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or `NaN`, `Infinity`, `-Infinity`")
    }

    fn visit_f64<E>(self, value: f64) -> Result<f64, E> {
        Ok(value)
    }

    #[expect(clippy::cast_precision_loss, reason = "a float that was written without a fraction")]
    fn visit_u64<E>(self, value: u64) -> Result<f64, E> {
        Ok(value as f64)
    }

    #[expect(clippy::cast_precision_loss, reason = "a float that was written without a fraction")]
    fn visit_i64<E>(self, value: i64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<f64, E> {
        float_of_text(text).ok_or_else(|| E::custom(format!("expected a number, found `{text}`")))
    }

    fn visit_unit<E>(self) -> Result<f64, E> {
        Ok(f64::NAN)
    }
}

/// `#[serde(with = "float::json")]` for one float.
pub(crate) mod json {
    use super::{Deserialize, Deserializer, JsonFloat, Serialize, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        JsonFloat(*value).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        JsonFloat::deserialize(deserializer).map(|float| float.0)
    }
}

/// `#[serde(with = "float::json_list")]` for a list of floats.
pub(crate) mod json_list {
    use super::{Deserialize, Deserializer, JsonFloat, Serializer};

    pub(crate) fn serialize<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|&value| JsonFloat(value)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        Ok(Vec::<JsonFloat>::deserialize(deserializer)?.into_iter().map(|float| float.0).collect())
    }
}

/// `#[serde(with = "float::json_matrix")]` for a matrix of three rows.
pub(crate) mod json_matrix {
    use super::{Deserialize, Deserializer, JsonFloat, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(rows: &[[f64; 4]; 3], serializer: S) -> Result<S::Ok, S::Error> {
        rows.map(|row| row.map(JsonFloat)).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[[f64; 4]; 3], D::Error> {
        let rows = <[[JsonFloat; 4]; 3]>::deserialize(deserializer)?;
        Ok(rows.map(|row| row.map(|float| float.0)))
    }
}
