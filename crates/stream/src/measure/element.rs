//! A stored element: its value as stored and decoded, whether it is missing, its name if it is a label, and its
//! position on the axes.

use array::{
    ArrayInfo, Attribute, Axis, AxisKind, Coordinates, Dataset, Decoding, Element, Error, Result, Scalar,
    decode, elements, with_element,
};
use serde::Serialize;
use serde_json::Value;

/// Value of one stored element.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ElementValue {
    /// Index per axis of level 0 of the stored array.
    pub index: Vec<u64>,
    /// Value as it is stored, read with the sign that the file asks for.
    pub stored: Scalar,
    /// Value with scale and offset, NaN if the file names it as missing: that of `decoded` in Python. `None` if it cannot
    /// be decoded.
    pub decoded: Option<Scalar>,
    /// Decoded value, or the stored one, in the fewest digits that tell it from other values of its type.
    pub text: String,
    /// Reason why pictures leave it out.
    pub missing: Option<&'static str>,
    /// Name of the label.
    pub label: Option<String>,
}

/// Position of an element along one axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AxisPosition {
    /// Name of the axis.
    pub name: String,
    /// Role of the axis.
    pub kind: AxisKind,
    /// Index of level 0.
    pub index: u64,
    /// Number of elements along the axis.
    pub size: u64,
    /// Coordinate; `None` if the file has none.
    pub coordinate: Option<Scalar>,
    /// Units of the coordinate.
    pub units: String,
    /// Date or name of the channel, where the axis has such.
    pub text: Option<String>,
}

/// Values of several stored elements, as numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ElementNumbers {
    pub(crate) stored: Vec<Scalar>,
    /// As of [`ElementValue::decoded`]; the stored ones if they cannot be decoded.
    pub(crate) decoded: Vec<f64>,
    pub(crate) is_missing: Vec<bool>,
}

/// Reason why a stored value is left out of pictures; `None` for a value.
fn why_missing(decoding: &Decoding, stored: Scalar) -> Option<&'static str> {
    let named = Decoding { unset: Vec::new(), valid: None, ..decoding.clone() };
    let unset = Decoding { missing: Vec::new(), valid: None, ..decoding.clone() };
    let value = stored.as_f64();
    if named.is_missing(stored) {
        Some("fill value")
    } else if value.is_nan() {
        Some("not a number")
    } else if unset.is_missing(stored) {
        Some("never written")
    } else if decoding.is_missing(stored) {
        Some("outside the valid range")
    } else {
        value.is_infinite().then_some("infinite")
    }
}

/// Decodes elements as stored; `None` if the file's attributes do not allow it.
fn decoded_elements(info: &ArrayInfo, stored: &[u8]) -> Option<Vec<Scalar>> {
    let decoded = decode(stored, info.dtype, &info.decoding).ok()?;
    let output = info.decoding.output;
    Some(with_element!(output.element(), T =>
        elements::<T>(&decoded, output.order()).map(Element::to_scalar).collect()))
}

impl ElementValue {
    /// Interprets one element as stored.
    ///
    /// # Errors
    /// `Corrupt` for bytes that are no element.
    pub(crate) fn of(info: &ArrayInfo, index: Vec<u64>, bytes: &[u8]) -> Result<Self> {
        let stored = info.decoding.meant(info.dtype).scalar_at(bytes, 0);
        let stored = stored.ok_or_else(|| Error::corrupt("a read ended within an element"))?;
        let decoded = decoded_elements(info, bytes).and_then(|all| all.first().copied());
        let is_narrow = match decoded {
            Some(_) => info.decoding.output.size_bytes() < 8,
            None => info.dtype.size_bytes() < 8,
        };
        Ok(Self {
            index,
            stored,
            decoded,
            text: text_of(decoded.unwrap_or(stored), is_narrow),
            missing: why_missing(&info.decoding, stored),
            label: label_name(info, stored),
        })
    }
}

impl ElementNumbers {
    /// Adds elements as stored.
    ///
    /// # Errors
    /// `Corrupt` for bytes that are no whole elements.
    pub(crate) fn add(&mut self, info: &ArrayInfo, bytes: &[u8]) -> Result<()> {
        let meant = info.decoding.meant(info.dtype);
        let count = bytes.len() / meant.size_bytes();
        let decoded = decoded_elements(info, bytes);
        for at in 0..count {
            let stored = meant.scalar_at(bytes, at);
            let stored = stored.ok_or_else(|| Error::corrupt("a read ended within an element"))?;
            let value = decoded.as_ref().and_then(|all| all.get(at)).copied().unwrap_or(stored);
            self.stored.push(stored);
            self.decoded.push(value.as_f64());
            self.is_missing.push(info.decoding.is_missing(stored) || !value.as_f64().is_finite());
        }
        Ok(())
    }
}

/// Formats a value in the fewest digits that tell it from others; `is_narrow` for floats of single precision or less.
#[expect(clippy::cast_possible_truncation, reason = "a value of single precision")]
fn text_of(value: Scalar, is_narrow: bool) -> String {
    match value {
        Scalar::Unsigned(v) => v.to_string(),
        Scalar::Signed(v) => v.to_string(),
        Scalar::Float(v) if v.is_finite() && v != 0.0 && !(1e-5..1e16).contains(&v.abs()) => {
            if is_narrow {
                format!("{:e}", v as f32)
            } else {
                format!("{v:e}")
            }
        }
        Scalar::Float(v) if is_narrow => (v as f32).to_string(),
        Scalar::Float(v) => v.to_string(),
    }
}

/// Returns the name that the file gives to a label: by `flag_values` or `flag_masks` of CF, or by the properties of
/// OME-Zarr's `image-label`.
pub(crate) fn label_name(info: &ArrayInfo, stored: Scalar) -> Option<String> {
    let number = stored.integer()?;
    flag_name(info, number).or_else(|| property_name(info, number))
}

fn flag_name(info: &ArrayInfo, number: i128) -> Option<String> {
    let list = |name: &str| -> Option<Vec<i128>> {
        let numbers = info.attributes.get(name)?.numbers()?;
        numbers.iter().map(|scalar| scalar.integer()).collect()
    };
    let meanings: Vec<&str> = match info.attributes.get("flag_meanings")? {
        Attribute::Text(text) => text.split_whitespace().collect(),
        Attribute::Texts(texts) => texts.iter().map(String::as_str).collect(),
        _ => return None,
    };
    let (values, masks) = (list("flag_values"), list("flag_masks"));
    let applies = |at: usize| match (&values, &masks) {
        (Some(values), Some(masks)) => {
            values.get(at).zip(masks.get(at)).is_some_and(|(value, mask)| number & mask == *value)
        }
        (Some(values), None) => values.get(at) == Some(&number),
        (None, Some(masks)) => masks.get(at).is_some_and(|mask| number & mask != 0),
        (None, None) => false,
    };
    let names: Vec<&str> = (0..meanings.len()).filter(|&at| applies(at)).map(|at| meanings[at]).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn property_name(info: &ArrayInfo, number: i128) -> Option<String> {
    let Attribute::Json(about) = info.attributes.get("image-label")? else { return None };
    let label = |entry: &Value| {
        let label = entry.get("label-value")?;
        label.as_i64().map(i128::from).or_else(|| label.as_u64().map(i128::from))
    };
    let listed = about.get("properties")?.as_array()?;
    let entry = listed.iter().find(|entry| label(entry) == Some(number))?;
    ["name", "label", "class"].iter().find_map(|key| entry.get(key)?.as_str()).map(str::to_owned)
}

/// Returns the position of an element along all axes of its array.
pub(crate) fn positions(dataset: &Dataset, info: &ArrayInfo, index: &[u64]) -> Vec<AxisPosition> {
    let of = |(number, axis): (usize, &Axis)| {
        let at = index.get(number).copied().unwrap_or_default();
        AxisPosition {
            name: axis.name.clone(),
            kind: axis.kind,
            index: at,
            size: info.shape().get(number).copied().unwrap_or_default(),
            coordinate: coordinate(axis, at),
            units: axis.units.clone(),
            text: axis_text(dataset, info, axis, at),
        }
    };
    info.axes.iter().enumerate().map(of).collect()
}

/// Returns the coordinate of an index; `None` if the file has none.
pub(crate) fn coordinate(axis: &Axis, index: u64) -> Option<Scalar> {
    (axis.coordinates != Coordinates::Index).then(|| Scalar::Float(axis.coordinates.at(index)))
}

/// Returns the date of an index on a time axis, or the name of a channel.
pub(crate) fn axis_text(dataset: &Dataset, info: &ArrayInfo, axis: &Axis, index: u64) -> Option<String> {
    if axis.kind == AxisKind::Channel {
        return channel_name(info, index);
    }
    if axis.coordinates == Coordinates::Index {
        return None;
    }
    let own = info.name.trim_matches('/').rsplit_once('/').map_or("", |(group, _)| group);
    let is_variable = |other: &&ArrayInfo| {
        let (group, name) = {
            let path = other.name.trim_matches('/');
            path.rsplit_once('/').unwrap_or(("", path))
        };
        name == axis.name && own.starts_with(group)
    };
    let variable = dataset.arrays.iter().filter(is_variable).max_by_key(|other| other.name.len());
    let calendar =
        |array: &ArrayInfo| array.attributes.get("calendar").and_then(|c| c.text()).map(str::to_owned);
    let calendar = variable.and_then(calendar).or_else(|| calendar(info)).unwrap_or_default();
    array::time::date(axis.coordinates.at(index), least_step(axis), &axis.units, &calendar)
}

/// Returns the least distance of neighboring samples; 0 if it is not known.
fn least_step(axis: &Axis) -> f64 {
    match &axis.coordinates {
        Coordinates::Index => 0.0,
        Coordinates::Regular { step, .. } => step.abs(),
        Coordinates::Explicit(values) => {
            let steps = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).filter(|step| *step > 0.0);
            Some(steps.fold(f64::INFINITY, f64::min)).filter(|step| step.is_finite()).unwrap_or(0.0)
        }
    }
}

/// Returns the name of a channel.
pub(crate) fn channel_name(info: &ArrayInfo, index: u64) -> Option<String> {
    let index = usize::try_from(index).ok()?;
    match info.attributes.get("channels") {
        Some(Attribute::Texts(names)) => return names.get(index).cloned(),
        Some(Attribute::Text(name)) if index == 0 => return Some(name.clone()),
        _ => {}
    }
    let Some(Attribute::Json(omero)) = info.attributes.get("omero") else { return None };
    let label = omero.get("channels")?.get(index)?.get("label")?.as_str()?;
    (!label.is_empty()).then(|| label.to_owned())
}

#[cfg(test)]
mod tests {
    use array::conformance::one_array;
    use serde_json::json;

    use super::*;

    fn packed() -> ArrayInfo {
        let mut info = one_array("<i2".parse().unwrap(), &[4], &[4]).arrays.remove(0);
        info.decoding = Decoding {
            scale: 0.1,
            offset: 5.0,
            missing: vec![Scalar::Signed(-999)],
            unset: vec![Scalar::Signed(-32767)],
            valid: Some((Scalar::Signed(-100), Scalar::Signed(100))),
            output: "<f4".parse().unwrap(),
            ..Decoding::identity(info.dtype)
        };
        info
    }

    #[test]
    fn packed_values_are_decoded_and_missing_ones_say_why() {
        let info = packed();
        for (stored, text, missing) in [
            (3i16, "5.3", None),
            (-999, "NaN", Some("fill value")),
            (-32767, "-3271.7", Some("never written")),
            (101, "15.1", Some("outside the valid range")),
        ] {
            let value = ElementValue::of(&info, vec![1], &stored.to_le_bytes()).unwrap();
            assert_eq!(value.stored, Scalar::Signed(stored.into()));
            assert_eq!((value.text.as_str(), value.missing), (text, missing));
        }
        assert!(ElementValue::of(&info, vec![1], &[0]).is_err());
    }

    #[test]
    fn labels_have_the_names_that_the_file_gives() {
        let mut info = one_array("|u1".parse().unwrap(), &[4], &[4]).arrays.remove(0);
        let numbers =
            |list: &[u64]| Attribute::Numbers(list.iter().map(|v| Scalar::Unsigned(*v)).collect(), None);
        let name = |info: &ArrayInfo, value| label_name(info, Scalar::Unsigned(value));
        info.attributes.insert("flag_values".into(), numbers(&[0, 2, 7]));
        info.attributes.insert("flag_meanings".into(), Attribute::Text("sea land  ice".into()));
        assert_eq!(
            [name(&info, 2), name(&info, 7), name(&info, 3)],
            [Some("land".into()), Some("ice".into()), None]
        );
        info.attributes.remove("flag_values");
        info.attributes.insert("flag_masks".into(), numbers(&[1, 2, 4]));
        assert_eq!(name(&info, 5).as_deref(), Some("sea, ice"));
        info.attributes.clear();
        let about = json!({"properties": [{"label-value": 3, "class": "nucleus"}]});
        info.attributes.insert("image-label".into(), Attribute::Json(about));
        assert_eq!(name(&info, 3).as_deref(), Some("nucleus"));
    }

    #[test]
    fn values_have_the_fewest_digits_that_tell_them_apart() {
        assert_eq!(text_of(Scalar::Float(f64::from(0.1f32)), true), "0.1");
        assert_eq!(text_of(Scalar::Float(0.1 + 0.2), false), "0.30000000000000004");
        assert_eq!(text_of(Scalar::Float(1.5e-30), false), "1.5e-30");
        assert_eq!(text_of(Scalar::Unsigned(u64::MAX), false), "18446744073709551615");
    }
}
