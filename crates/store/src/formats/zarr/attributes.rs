//! Attributes of groups and arrays (JSON): converted for descriptions, and for the CF conventions.

use array::{Attribute, Attributes, DType, ElementType, Scalar, float_of_text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::formats::common::cf;

/// xarray's attribute for the names of dimensions.
pub(super) const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";
/// CF's attribute of the fill value.
const FILL_VALUE: &str = "_FillValue";
/// Most bytes of a number as base64 text: a complex one of two doubles.
const MAX_NUMBER_TEXT: usize = 24;

/// Prefix of texts that stand for bare words. Python writes numbers that JSON lacks as bare words; [`quoted`] turns them into texts with
/// this prefix, so that they differ from texts of the file.
const WORD: &str = "\0";
const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// Replaces bare words for numbers by texts that are recognized as such later.
pub(super) fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 64);
    let (mut rest, mut is_within, mut is_escaped) = (text, false, false);
    while let Some((&byte, after)) = rest.split_first() {
        let word = WORDS.into_iter().find(|word| !is_within && rest.starts_with(word.as_bytes()));
        if let Some(word) = word {
            out.extend([b"\"\\u0000", word.as_bytes(), b"\""].concat());
            rest = &rest[word.len()..];
            continue;
        }
        if byte == b'"' && !is_escaped {
            is_within = !is_within;
        }
        is_escaped = is_within && byte == b'\\' && !is_escaped;
        out.push(byte);
        rest = after;
    }
    out
}

/// Bare words as the texts that Zarr's documents have for them.
pub(super) fn with_plain_words(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(word) = word(text) {
                *text = word.to_owned();
            }
        }
        Value::Array(list) => list.iter_mut().for_each(with_plain_words),
        Value::Object(map) => map.values_mut().for_each(with_plain_words),
        _ => {}
    }
}

/// Returns the bare word that a text stands for.
fn word(text: &str) -> Option<&'static str> {
    let rest = text.strip_prefix(WORD)?;
    WORDS.into_iter().find(|word| *word == rest)
}

/// Returns the float that a bare word stands for.
fn bare(value: &Value) -> Option<f64> {
    value.as_str().and_then(word).and_then(float_of_text)
}

/// Most bytes of the attributes of a whole Zarr store, as JSON.
const MAX_STORE_BYTES: usize = 32 << 20;
/// Most attributes of a store that are listed by name as left out.
const MAX_NAMED: usize = 20;

/// Reader of the attributes of a store, within a limit in bytes.
pub(super) struct AttributeReader {
    left_bytes: usize,
    /// Attributes that were left out, and why.
    pub(super) left_out: Vec<String>,
}

impl Default for AttributeReader {
    fn default() -> Self {
        Self { left_bytes: MAX_STORE_BYTES, left_out: Vec::new() }
    }
}

impl AttributeReader {
    /// Attributes as a description has them, of the group or array at `path`.
    pub(super) fn read(&mut self, path: &str, map: &Map<String, Value>) -> Attributes {
        let mut all = Attributes::new();
        for (name, value) in map.iter().filter(|(name, _)| *name != DIMENSIONS) {
            match self.one(name, value) {
                Ok(attribute) => drop(all.insert(name.clone(), attribute)),
                Err(error) if self.left_out.len() < MAX_NAMED => {
                    self.left_out.push(format!("attribute `{name}` of `/{path}` is left out: {error}"));
                }
                Err(_) => {}
            }
        }
        all
    }

    fn one(&mut self, name: &str, value: &Value) -> array::Result<Attribute> {
        let attribute = attribute(value)?;
        let bytes = name.len() + value.to_string().len();
        self.left_bytes = self.left_bytes.checked_sub(bytes).ok_or_else(|| {
            array::Error::too_large(format!("more than {MAX_STORE_BYTES} bytes of attributes in one store"))
        })?;
        Ok(attribute)
    }
}

fn attribute(value: &Value) -> array::Result<Attribute> {
    if let Some(float) = bare(value) {
        return Ok(Attribute::number_of(float));
    }
    let list = value.as_array().filter(|list| list.iter().any(|v| bare(v).is_some()));
    let numbers = list.and_then(|list| {
        list.iter().map(|v| bare(v).or_else(|| v.as_f64()).map(Scalar::Float)).collect::<Option<Vec<_>>>()
    });
    if let Some(numbers) = numbers {
        return Ok(Attribute::Numbers(numbers, None));
    }
    let mut value = value.clone();
    with_plain_words(&mut value);
    Attribute::from_json(value)
}

/// Attributes by which values are decoded, as CF's conventions read them.
pub(super) fn cf_values(map: &Map<String, Value>) -> cf::CfAttributes {
    let shown = map.iter().filter(|(name, _)| *name != DIMENSIONS);
    shown.filter_map(|(name, value)| cf_value(value).map(|v| (name.clone(), v))).collect()
}

/// Converts a value; `None` for values that CF does not define: null, maps, lists of several kinds.
fn cf_value(value: &Value) -> Option<cf::CfValue> {
    if let Value::Bool(flag) = value {
        return Some(cf::CfValue::Numbers(ElementType::Bool, vec![Scalar::Unsigned(u64::from(*flag))]));
    }
    match attribute(value).ok()? {
        Attribute::Text(text) => Some(cf::CfValue::Text(text)),
        Attribute::Texts(texts) => Some(cf::CfValue::Texts(texts)),
        Attribute::Number(number, _) => Some(cf::CfValue::Numbers(element(&[number]), vec![number])),
        Attribute::Numbers(list, _) => Some(cf::CfValue::Numbers(element(&list), list)),
        Attribute::Json(_) => None,
    }
}

/// The type that Python takes numbers of JSON for.
fn element(numbers: &[Scalar]) -> ElementType {
    match numbers {
        [Scalar::Float(_), ..] => ElementType::F64,
        _ if numbers.iter().any(|n| matches!(n, Scalar::Unsigned(_))) => ElementType::U64,
        _ => ElementType::I64,
    }
}

/// Returns xarray's fill value in the attributes of an array of version 3, if it has the type of the array: floats are the base64 text
/// of the eight bytes of a double.
pub(super) fn fill_attribute(map: &Map<String, Value>, dtype: DType) -> Option<Scalar> {
    let text = map.get(FILL_VALUE)?.as_str().filter(|text| text.len() <= MAX_NUMBER_TEXT)?;
    if !dtype.element().is_float() {
        return None;
    }
    let bytes: [u8; 8] = STANDARD.decode(text).ok()?.try_into().ok()?;
    Some(Scalar::Float(f64::from_le_bytes(bytes)))
}

/// Returns the fill value of a document of version 2 as an element of the array; `None` if there is none, or if it is no number.
#[expect(clippy::cast_possible_truncation, reason = "an element of single precision is one")]
pub(super) fn fill_v2(document: &Value, dtype: DType) -> Option<Scalar> {
    let value = document.get("fill_value")?;
    let float = value.as_f64().or_else(|| value.as_str().and_then(float_of_text));
    match dtype.element() {
        ElementType::Bool => None,
        ElementType::F32 => float.map(|v| Scalar::Float(f64::from(v as f32))),
        ElementType::F16 => float.map(|v| Scalar::Float(half::f16::from_f64(v).to_f64())),
        ElementType::F64 => float.map(Scalar::Float),
        ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64 => {
            value.as_u64().map(Scalar::Unsigned)
        }
        _ => value.as_i64().map(Scalar::Signed),
    }
}

/// Inserts a fill value into the attributes, and replaces one that is there.
pub(super) fn with_fill(values: &mut cf::CfAttributes, dtype: DType, fill: Scalar) {
    values.insert(FILL_VALUE.into(), cf::CfValue::Numbers(dtype.element(), vec![fill]));
}

/// Inserts a fill value into the attributes of a description, and replaces one that is there.
pub(super) fn insert_fill_attribute(attributes: &mut Attributes, dtype: DType, fill: Scalar) {
    attributes.insert(FILL_VALUE.into(), Attribute::Number(fill, Some(dtype.element())));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    #[test]
    fn bare_words_are_numbers_and_texts_stay_texts() {
        let text = br#"{"a": NaN, "b": [1, -Infinity], "c": "NaN", "d": {"e": [NaN, "x\"NaN"]}}"#;
        let value: Value = serde_json::from_slice(&quoted(text)).unwrap();
        let mut reader = AttributeReader::default();
        let found = reader.read("", &map(value));
        assert!(matches!(found["a"], Attribute::Number(Scalar::Float(v), None) if v.is_nan()));
        assert_eq!(
            found["b"],
            Attribute::Numbers(vec![Scalar::Float(1.0), Scalar::Float(f64::NEG_INFINITY)], None)
        );
        assert_eq!(found["c"], Attribute::Text("NaN".into()));
        assert_eq!(found["d"], Attribute::Json(json!({"e": ["NaN", "x\"NaN"]})));
        assert!(reader.left_out.is_empty());
        reader.read("a/b", &map(json!({"long": "x".repeat(2 << 20), "short": 1})));
        assert!(
            reader.left_out[0].starts_with("attribute `long` of `/a/b` is left out"),
            "{:?}",
            reader.left_out
        );
    }

    #[test]
    fn fill_values_of_floats_are_base64_in_version_3() {
        let dtype = |text: &str| text.parse::<DType>().unwrap();
        // What xarray writes for -9999 and NaN.
        let fill = |text: &str, of: &str| fill_attribute(&map(json!({"_FillValue": text})), dtype(of));
        assert_eq!(fill("AAAAAICHw8A=", "<f4"), Some(Scalar::Float(-9999.0)));
        assert!(matches!(fill("AAAAAAAA+H8=", "<f8"), Some(Scalar::Float(v)) if v.is_nan()));
        for (text, of) in [("AAAAAICHw8A=", "<i4"), ("NaN", "<f4"), ("AAAA", "<f4"), ("", "<f4")] {
            assert_eq!(fill(text, of), None, "{text}");
        }
    }
}
