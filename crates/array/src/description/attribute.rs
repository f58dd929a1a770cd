//! Attributes: metadata of a file besides its arrays, with the structure and the types that the file gives them.
//!
//! There are two kinds of files. NetCDF, HDF5 and similar formats store typed numbers, and the type matters to readers (a scale in
//! single precision gives values in single precision). JSON, as in Zarr, has numbers without a type, and also booleans, null, lists
//! and maps. Both are kept unchanged in descriptions on the wire and in files that are written.
//!
//! A description uses plain JSON if it is unambiguous: texts, numbers that doubles represent, lists of either. Other values are
//! objects with the fields `type` and `value`: see [`Attribute`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{ElementType, Error, Result, Scalar};

/// Deepest nesting of lists and maps in an attribute.
pub const MAX_ATTRIBUTE_DEPTH: usize = 32;
/// Longest attribute of lists and maps as JSON text, bytes.
pub const MAX_ATTRIBUTE_BYTES: usize = 1 << 20;

/// Value of `type` in descriptions of unconverted JSON.
const JSON: &str = "json";
/// Value of `type` in descriptions for numbers without a type that JSON cannot express.
const NUMBER: &str = "number";

/// A value attached to an array or a data set.
///
/// In JSON: a text, a number or a list of either; `true`, `false`, `null`; else `{"type": ..., "value": ...}` where `type`
/// is the name of an element type (`float32`), `number` for numbers without a type that JSON cannot express, or `json` for
/// lists and maps as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Value", from = "Value")]
pub enum Attribute {
    /// A string.
    Text(String),
    /// One number and the type that the file stores it in; no type where the file is text.
    Number(Scalar, Option<ElementType>),
    /// Several, of one type.
    Numbers(Vec<Scalar>, Option<ElementType>),
    /// Several strings.
    Texts(Vec<String>),
    /// Any other JSON: booleans, null, maps, lists that are empty, nested or mixed.
    Json(Value),
}

/// Attributes by name.
pub type Attributes = BTreeMap<String, Attribute>;

impl Attribute {
    /// A number without a type.
    #[must_use]
    pub fn number_of(value: f64) -> Self {
        Self::Number(Scalar::Float(value), None)
    }

    /// Takes a JSON value in its simplest form: integers are signed where they can be.
    ///
    /// # Errors
    /// `TooLarge` beyond [`MAX_ATTRIBUTE_DEPTH`] and [`MAX_ATTRIBUTE_BYTES`].
    pub fn from_json(value: Value) -> Result<Self> {
        let mut left_bytes = MAX_ATTRIBUTE_BYTES;
        if !is_within(&value, MAX_ATTRIBUTE_DEPTH, &mut left_bytes) {
            return Err(Error::too_large(format!(
                "expected an attribute of at most {MAX_ATTRIBUTE_BYTES} bytes, nested at most {MAX_ATTRIBUTE_DEPTH} deep"
            )));
        }
        Ok(Self::simplest(value))
    }

    fn simplest(value: Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            Value::Number(number) => Self::Number(plain_scalar(&number), None),
            Value::Array(list) => Self::list(list),
            other => Self::Json(other),
        }
    }

    fn list(list: Vec<Value>) -> Self {
        let is_float = |value: &Value| value.as_number().is_some_and(serde_json::Number::is_f64);
        let one_type = list.iter().all(is_float) || !list.iter().any(is_float);
        let numbers = || list.iter().map(|v| v.as_number().map(plain_scalar)).collect::<Option<Vec<_>>>();
        if list.is_empty() {
            return Self::Json(Value::Array(list));
        }
        if let (true, Some(numbers)) = (one_type, numbers()) {
            return Self::Numbers(numbers, None);
        }
        match list.iter().map(|v| v.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>() {
            Some(texts) => Self::Texts(texts),
            None => Self::Json(Value::Array(list)),
        }
    }

    /// Converts to plain JSON without the types: integers in full, floats that JSON cannot express as `"NaN"`, `"Infinity"`,
    /// `"-Infinity"`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let one = |scalar: Scalar, element: &Option<ElementType>| match (scalar, element) {
            (Scalar::Unsigned(v), Some(ElementType::Bool)) => Value::Bool(v != 0),
            (Scalar::Unsigned(v), _) => v.into(),
            (Scalar::Signed(v), _) => v.into(),
            (Scalar::Float(v), _) if v.is_finite() => v.into(),
            (scalar, _) => json!(scalar),
        };
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Texts(texts) => texts.as_slice().into(),
            Self::Number(scalar, element) => one(*scalar, element),
            Self::Numbers(list, element) => list.iter().map(|scalar| one(*scalar, element)).collect(),
            Self::Json(value) => value.clone(),
        }
    }

    /// Returns the type that [`to_json`](Self::to_json) leaves out: the name of the element type, or `number` where numbers
    /// without a type are written as texts.
    #[must_use]
    pub fn type_name(&self) -> Option<&'static str> {
        let is_finite = |s: &Scalar| !matches!(s, Scalar::Float(v) if !v.is_finite());
        match self {
            Self::Number(_, Some(element)) | Self::Numbers(_, Some(element)) => Some(element.name()),
            Self::Number(scalar, None) => (!is_finite(scalar)).then_some(NUMBER),
            Self::Numbers(list, None) => (!list.iter().all(is_finite)).then_some(NUMBER),
            Self::Text(_) | Self::Texts(_) | Self::Json(_) => None,
        }
    }

    /// The text, where it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, where it is one.
    #[must_use]
    pub fn number(&self) -> Option<Scalar> {
        match self {
            Self::Number(scalar, _) => Some(*scalar),
            _ => None,
        }
    }

    /// The numbers, where it is one or several.
    #[must_use]
    pub fn numbers(&self) -> Option<&[Scalar]> {
        match self {
            Self::Number(scalar, _) => Some(std::slice::from_ref(scalar)),
            Self::Numbers(list, _) => Some(list),
            _ => None,
        }
    }
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Attribute> for Value {
    fn from(attribute: Attribute) -> Self {
        let typed = |name: &str, value: Self| json!({"type": name, "value": value});
        match attribute {
            Attribute::Text(text) => text.into(),
            Attribute::Number(scalar, Some(element)) => typed(element.name(), json!(scalar)),
            Attribute::Numbers(list, Some(element)) => typed(element.name(), json!(list)),
            Attribute::Number(scalar, None) => match json!(scalar) {
                Self::String(text) => typed(NUMBER, text.into()),
                number => number,
            },
            Attribute::Numbers(list, None) => match json!(list) {
                Self::Array(list) if !list.is_empty() && list.iter().all(Self::is_number) => list.into(),
                list => typed(NUMBER, list),
            },
            Attribute::Texts(texts) if texts.is_empty() => typed(JSON, json!([])),
            Attribute::Texts(texts) => texts.into(),
            Attribute::Json(value @ (Self::Null | Self::Bool(_))) => value,
            Attribute::Json(value) => typed(JSON, value),
        }
    }
}

impl From<Value> for Attribute {
    /// Reads a value of a description; a value not written by `From<Attribute>` is taken as plain JSON.
    fn from(value: Value) -> Self {
        match value {
            Value::Object(mut fields) => match typed(&mut fields) {
                Some(attribute) => attribute,
                None => Self::Json(Value::Object(fields)),
            },
            // Numbers of which some are written as texts, as in descriptions from before types were kept.
            Value::Array(list) if list.iter().any(Value::is_number) => {
                let scalars = list.iter().map(|v| Scalar::deserialize(v).map(signed));
                match scalars.collect::<std::result::Result<_, _>>() {
                    Ok(numbers) => Self::Numbers(numbers, None),
                    Err(_) => Self::list(list),
                }
            }
            other => Self::simplest(other),
        }
    }
}

/// Reads an object with the fields `type` and `value`; `None`, with the object unchanged, where it is no such object.
fn typed(fields: &mut Map<String, Value>) -> Option<Attribute> {
    if fields.len() != 2 {
        return None;
    }
    let name = fields.get("type")?.as_str()?;
    let element = ElementType::ALL.into_iter().find(|e| e.name() == name);
    if element.is_none() && name != NUMBER && name != JSON {
        return None;
    }
    let (is_json, value) = (name == JSON, fields.get_mut("value")?);
    if is_json {
        return Some(Attribute::Json(value.take()));
    }
    let one = |value: &Value| Scalar::deserialize(value).ok().map(|scalar| of_type(scalar, element));
    match value {
        Value::Array(list) => {
            list.iter().map(one).collect::<Option<_>>().map(|l| Attribute::Numbers(l, element))
        }
        value => one(value).map(|scalar| Attribute::Number(scalar, element)),
    }
}

/// Converts a scalar to the element type: JSON does not distinguish unsigned from signed, nor always integers from floats.
fn of_type(scalar: Scalar, element: Option<ElementType>) -> Scalar {
    let Some(element) = element else { return signed(scalar) };
    match (scalar, element.is_float()) {
        (scalar, true) => Scalar::Float(scalar.as_f64()),
        (scalar, false) if is_unsigned(element) => match scalar {
            Scalar::Signed(v) => u64::try_from(v).map_or(scalar, Scalar::Unsigned),
            other => other,
        },
        (scalar, false) => signed(scalar),
    }
}

fn is_unsigned(element: ElementType) -> bool {
    use ElementType::{Bool, U8, U16, U32, U64};
    matches!(element, Bool | U8 | U16 | U32 | U64)
}

fn signed(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::Unsigned(v) => i64::try_from(v).map_or(scalar, Scalar::Signed),
        other => other,
    }
}

fn plain_scalar(number: &serde_json::Number) -> Scalar {
    match (number.as_i64(), number.as_u64()) {
        (Some(v), _) => Scalar::Signed(v),
        (None, Some(v)) => Scalar::Unsigned(v),
        // Without serde_json's `arbitrary_precision` every other number is a double.
        (None, None) => Scalar::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// Whether a value is nested no deeper than `depth` and takes roughly no more than `left` bytes; subtracts them from `left`.
fn is_within(value: &Value, depth: usize, left: &mut usize) -> bool {
    let own = match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 3,
        Value::Array(_) | Value::Object(_) => 2,
    };
    let Some(rest) = left.checked_sub(own) else { return false };
    *left = rest;
    match value {
        Value::Array(list) => depth > 0 && list.iter().all(|v| is_within(v, depth - 1, left)),
        Value::Object(map) => {
            depth > 0
                && map.iter().all(|(name, v)| {
                    *left = left.saturating_sub(name.len() + 3);
                    is_within(v, depth - 1, left)
                })
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(attribute: &Attribute) -> Attribute {
        let text = serde_json::to_string(attribute).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn structure_and_types_come_through_a_description() {
        use ElementType::{Bool, F32, F64, I16, I64, U8, U64};
        let json = json!({"a": [1, 2.5, null, {"b": true}], "type": "x", "n": 9_007_199_254_740_993_i64});
        for attribute in [
            Attribute::Text("NaN".into()),
            Attribute::Texts(vec!["1".into(), "NaN".into()]),
            Attribute::Number(Scalar::Signed(5), None),
            Attribute::Number(Scalar::Float(5.0), None),
            Attribute::Number(Scalar::Float(f64::INFINITY), None),
            Attribute::Number(Scalar::Signed((1 << 53) + 1), None),
            Attribute::Number(Scalar::Unsigned(u64::MAX), None),
            Attribute::Number(Scalar::Unsigned(5), Some(U8)),
            Attribute::Number(Scalar::Signed(5), Some(I16)),
            Attribute::Number(Scalar::Float(2.0), Some(F32)),
            Attribute::Number(Scalar::Unsigned(1), Some(Bool)),
            Attribute::Numbers(vec![Scalar::Signed(i64::MIN), Scalar::Signed(3)], Some(I64)),
            Attribute::Numbers(vec![Scalar::Unsigned(u64::MAX), Scalar::Unsigned(3)], Some(U64)),
            Attribute::Numbers(vec![Scalar::Float(1.0), Scalar::Float(f64::NEG_INFINITY)], Some(F64)),
            Attribute::Numbers(vec![Scalar::Float(1.0), Scalar::Float(f64::INFINITY)], None),
            Attribute::Numbers(vec![Scalar::Signed(1), Scalar::Signed(2)], None),
            Attribute::Numbers(Vec::new(), Some(F32)),
            Attribute::Json(Value::Null),
            Attribute::Json(Value::Bool(true)),
            Attribute::Json(json!([])),
            Attribute::Json(json!([true, false])),
            Attribute::Json(json!({"type": "float32", "value": 1})),
            Attribute::Json(json),
        ] {
            assert_eq!(through(&attribute), attribute);
        }
        // An empty list has no type in JSON.
        assert_eq!(through(&Attribute::Texts(Vec::new())), Attribute::Json(json!([])));
    }

    #[test]
    fn json_is_taken_in_its_simplest_form_and_given_back_as_it_was() {
        for (value, type_name) in [
            (json!({"a": [1, {"b": null}]}), None),
            (json!([1, 2.5]), None),
            (json!([1.0, 2.5]), None),
            (json!([1, "a"]), None),
            (json!(["NaN"]), None),
            (json!(18_446_744_073_709_551_615_u64), None),
            (json!(-9_223_372_036_854_775_808_i64), None),
            (json!([true]), None),
            (json!([]), None),
            (json!(null), None),
        ] {
            let attribute = Attribute::from_json(value.clone()).unwrap();
            assert_eq!(attribute.to_json(), value);
            assert_eq!(through(&attribute).to_json(), value);
            assert_eq!(attribute.type_name(), type_name);
        }
        let nan = Attribute::number_of(f64::NAN);
        assert_eq!((nan.to_json(), nan.type_name()), (json!("NaN"), Some("number")));
        assert_eq!(Attribute::from_json(json!([1, 2])).unwrap().numbers().map(<[_]>::len), Some(2));
    }

    #[test]
    fn descriptions_without_types_stay_readable() {
        let read = |value: Value| Attribute::from(value);
        assert_eq!(read(json!("K")), Attribute::Text("K".into()));
        assert_eq!(read(json!(3)), Attribute::Number(Scalar::Signed(3), None));
        assert_eq!(read(json!([1.5, "Infinity"])).numbers().unwrap()[1], Scalar::Float(f64::INFINITY));
        assert_eq!(read(json!([1, "9007199254740993"])).numbers().unwrap()[1], Scalar::Signed((1 << 53) + 1));
        assert_eq!(read(json!(["a", "b"])), Attribute::Texts(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn what_is_too_deep_or_too_long_is_refused() {
        let nest = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        assert!(Attribute::from_json(nest(MAX_ATTRIBUTE_DEPTH)).is_ok());
        assert!(Attribute::from_json(nest(MAX_ATTRIBUTE_DEPTH + 1)).is_err());
        assert!(Attribute::from_json(json!("x".repeat(MAX_ATTRIBUTE_BYTES))).is_err());
        assert!(Attribute::from_json(json!(vec![1; MAX_ATTRIBUTE_BYTES / 4])).is_err());
    }
}
