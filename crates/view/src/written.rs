//! Values of fields as users write them on the command line and in Python: as in a view, or in short forms.

use array::{Error, Result};
use serde_json::{Map, Value, json};

use crate::ViewLayer;
use crate::color::{BACKGROUNDS, color, hex_color};
use crate::fields::field::{FieldType, OptionForm, ViewField};
use crate::fields::find_field;

/// Names of the sides from which a camera can look, and the viewing directions in world space: x to the
/// right, y away, z up.
const SIDES: [(&str, [f64; 3]); 6] = [
    ("front", [0.0, 1.0, 0.0]),
    ("back", [0.0, -1.0, 0.0]),
    ("left", [1.0, 0.0, 0.0]),
    ("right", [-1.0, 0.0, 0.0]),
    ("top", [0.0, 0.0, -1.0]),
    ("bottom", [0.0, 0.0, 1.0]),
];
/// Colors of isosurfaces without one, distinct for most color-blind viewers too.
const SURFACE_COLORS: [[u8; 3]; 6] =
    [[230, 200, 160], [86, 180, 233], [213, 94, 0], [0, 158, 115], [204, 121, 167], [240, 228, 66]];

/// Returns the viewing direction of a camera on a side of the volume, by the name of the side.
#[must_use]
pub fn side(name: &str) -> Option<[f64; 3]> {
    SIDES.iter().find(|(side, _)| *side == name).map(|&(_, direction)| direction)
}

/// Returns the viewing direction of a camera on a side of a person, by the name of the side, in anatomical space: x to the right, y to
/// the front, z up. From the front one sees the face; `left` is the person's left.
#[must_use]
pub fn side_of_person(name: &str) -> Option<[f64; 3]> {
    let [x, y, z] = side(name)?;
    Some([x, -y, z])
}

/// Fields of a view as users request them. Most are as in a view; some short forms need the data to become
/// fields of a view: a camera that is the name of a [`side`], a transfer function that is the name of a color
/// map, colors by an array without its name, slices whose axis is named as in the array, or whose
/// position is a share such as `50%`, and isosurfaces at a share of the range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewRequest {
    fields: Map<String, Value>,
}

impl ViewRequest {
    /// Requests a value for a field, as written by a user: a text of the command line, or a value of Python.
    /// Null, and false for a field that is enabled by a number, request nothing.
    ///
    /// # Errors
    /// `NotFound` for an unknown field, `Invalid` for a value that does not fit, telling what was expected.
    pub fn set(&mut self, name: &str, written: &Value) -> Result<()> {
        let field = find_field(name)
            .ok_or_else(|| Error::not_found(format!("expected a field of a view, found `{name}`")))?;
        let is_off = bare_text(field).is_some() && *written == Value::Bool(false);
        if !written.is_null() && !is_off {
            self.fields.insert(field.name.to_owned(), read(field, written)?);
        }
        Ok(())
    }

    /// Returns the requested value of a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    /// Returns the requested text of a field.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// Returns the request with another value of a field, in the form of a view; without any for `None`.
    #[must_use]
    pub fn with(&self, name: &str, value: Option<Value>) -> Self {
        let mut fields = self.fields.clone();
        match value {
            Some(value) => fields.insert(name.to_owned(), value),
            None => fields.remove(name),
        };
        Self { fields }
    }

    /// Returns all requested values, by field.
    #[must_use]
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }
}

/// Converts the value of a field to the form that a request stores.
fn read(field: &ViewField, written: &Value) -> Result<Value> {
    let bad = || {
        let (what, found) = (expectation(field.plain_type()), plain(written));
        Error::invalid(format!("expected {what} for `{}`, found `{found}`", field.name))
    };
    match (*field.plain_type(), written) {
        (FieldType::List { .. }, _) => list(field, written),
        (FieldType::Record(_), Value::String(text)) => short(field, text, 0),
        (FieldType::Flag, _) => flag(written).map(Value::from).ok_or_else(bad),
        (FieldType::Index { last }, _) => {
            let index = index(written).filter(|&index| last.is_none_or(|last| index <= last));
            index.map(Value::from).ok_or_else(bad)
        }
        (FieldType::Number(range), _) => {
            let number = number(field, written).filter(|&number| range.contains(number));
            number.map(Value::from).ok_or_else(bad)
        }
        (FieldType::Choice(choice), _) => {
            let is_meant = |text: &str| choice.names.iter().find(|n| n.name == text || n.alias == Some(text));
            written.as_str().and_then(is_meant).map(|name| name.name.into()).ok_or_else(bad)
        }
        (FieldType::Color, Value::String(text)) => color(text).map(|color| json!(color)).ok_or_else(bad),
        // As in a view, which is checked as a whole.
        _ => Ok(written.clone()),
    }
}

/// Describes the values of a type, for messages.
fn expectation(field_type: &FieldType) -> String {
    match field_type {
        FieldType::Flag => "`on` or `off`".into(),
        FieldType::Index { last: None } => "a whole number from 0".into(),
        FieldType::Index { last: Some(last) } => format!("a whole number from 0 to {last}"),
        FieldType::Color => {
            let names = BACKGROUNDS.map(|(name, _)| format!("`{name}`")).join(", ");
            format!("{names} or a color such as `#f0f0f0`")
        }
        FieldType::Number(range) => range.words(),
        FieldType::Choice(choice) => {
            let names: Vec<&str> = choice.names.iter().map(|name| name.name).collect();
            format!("one of {}", names.join(", "))
        }
        _ => "a value as in a view".into(),
    }
}

/// Formats a value as a user writes it: texts without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn flag(written: &Value) -> Option<bool> {
    match written.as_str() {
        Some("on") => Some(true),
        Some("off") => Some(false),
        _ => written.as_bool(),
    }
}

fn index(written: &Value) -> Option<u64> {
    written.as_u64().or_else(|| written.as_str()?.trim().parse().ok())
}

/// Parses a number, or a text such as `0.04` or `1/25`; true if an option without a value stands for a
/// number.
fn number(field: &ViewField, written: &Value) -> Option<f64> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let text: &str = match written {
        Value::Number(number) => return number.as_f64(),
        Value::String(text) => text,
        Value::Bool(true) => bare_text(field)?,
        _ => return None,
    };
    match text.split_once('/') {
        Some((one, many)) => Some(number(one)? / number(many)?),
        None => number(text),
    }
}

/// Returns the text for which an option without a value stands.
fn bare_text(field: &ViewField) -> Option<&'static str> {
    match field.option?.form {
        OptionForm::Assigned(text) => Some(text),
        _ => None,
    }
}

/// Parses one or several values; slices also as a mapping from axes to positions.
fn list(field: &ViewField, written: &Value) -> Result<Value> {
    let items: Vec<Value> = match written {
        Value::Array(items) => items.clone(),
        Value::Object(places) if field.name == "slices" && !places.contains_key("at") => {
            places.iter().map(|(axis, at)| format!("{axis}={}", plain(at)).into()).collect()
        }
        one => vec![one.clone()],
    };
    let item = |(number, item): (usize, &Value)| match item {
        Value::Object(members) => Ok(Value::Object(members.clone())),
        short_form => short(field, &plain(short_form), number),
    };
    items.iter().enumerate().map(item).collect::<Result<Vec<Value>>>().map(Value::Array)
}

/// Parses a text; `number` counts the values of a field that has several.
fn short(field: &ViewField, text: &str, number: usize) -> Result<Value> {
    match field.name {
        "surfaces" => surface(text, number),
        "slices" if !text.trim_start().starts_with('{') => slice(text),
        _ if text.trim_start().starts_with('{') => serde_json::from_str(text).map_err(|e| {
            Error::invalid(format!("expected `{}` in JSON as in a view, found `{text}`: {e}", field.name))
        }),
        "camera" if side(text).is_none() => {
            let names = SIDES.map(|(name, _)| name).join(" ");
            let what = format!("expected one of the cameras `{names}`, or JSON as in a view, found `{text}`");
            Err(Error::invalid(what))
        }
        "color_by" => Ok(json!({"array": text})),
        "layers" => ViewLayer::written(text),
        _ => Ok(text.into()),
    }
}

/// Parses `VALUE[:COLOR[:OPACITY]]`, such as `0.5`, `50%`, `-3:#c03020` or `1e-3:#c03020:0.4`; a share stays a text.
fn surface(text: &str, number: usize) -> Result<Value> {
    let bad = || {
        let what = "expected an isosurface such as `0.5`, `50%`, `0.5:#c03020` or `0.5:#c03020:0.4`";
        Error::invalid(format!("{what}, found `{text}`"))
    };
    let mut parts = text.split(':').map(str::trim);
    let first = parts.next().unwrap_or_default();
    let value = match first.strip_suffix('%') {
        Some(_) => share(first).map(|_| Value::from(first)),
        None => first.parse().ok().filter(|value: &f64| value.is_finite()).map(Value::from),
    };
    let value = value.ok_or_else(bad)?;
    let color = parts.next().map_or(Ok(SURFACE_COLORS[number % SURFACE_COLORS.len()]), |color| {
        hex_color(color).ok_or_else(bad)
    })?;
    let opacity: f64 = parts.next().map_or(Ok(1.0), |opacity| opacity.parse().map_err(|_| bad()))?;
    if !(0.0..=1.0).contains(&opacity) || parts.next().is_some() {
        return Err(bad());
    }
    Ok(json!({"value": value, "color": color, "opacity": opacity}))
}

/// Returns the share that a text such as `50%` means; `None` for other texts, and beyond 0 to 100 %.
#[must_use]
pub fn share(text: &str) -> Option<f64> {
    let percent: f64 = text.trim().strip_suffix('%')?.trim().parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

/// Parses `AXIS=INDEX` or `AXIS=SHARE%`, such as `z=40`, `y=12.5` or `lat=50%`; the share stays a text.
fn slice(text: &str) -> Result<Value> {
    let bad =
        || Error::invalid(format!("expected a slice such as `z=40`, `y=12.5` or `lat=50%`, found `{text}`"));
    let (axis, place) = text.split_once('=').ok_or_else(bad)?;
    let number = |text: &str| text.trim().parse().ok().filter(|v: &f64| v.is_finite());
    let at = match place.trim().strip_suffix('%') {
        Some(share) => number(share).map(|share| Value::from(format!("{share}%"))),
        None => number(place).map(Value::from),
    };
    Ok(json!({"axis": axis.trim(), "at": at.ok_or_else(bad)?}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &str, written: Value) -> Result<Option<Value>> {
        let mut request = ViewRequest::default();
        request.set(name, &written)?;
        Ok(request.get(name).cloned())
    }

    #[test]
    fn the_front_of_a_person_is_seen_looking_backward() {
        // In anatomical space y leads to the front: from the front one looks toward -y.
        assert_eq!((side("front"), side_of_person("front")), (Some([0.0, 1.0, 0.0]), Some([0.0, -1.0, 0.0])));
        assert_eq!(side_of_person("back"), Some([0.0, 1.0, 0.0]));
        // The person's left is at -x in either space: from there one looks toward +x.
        for same in ["left", "right", "top", "bottom"] {
            assert_eq!(side(same), side_of_person(same), "{same}");
        }
        assert_eq!(side_of_person("behind"), None);
    }

    #[test]
    fn slices_are_read_as_people_write_them() {
        for (written, read) in [
            (json!("z=40"), json!([{"axis": "z", "at": 40.0}])),
            (
                json!(r#"{"axis":"z","at":4,"normal":[0,1,2],"point":[3,4,5]}"#),
                json!([{"axis": "z", "at": 4, "normal": [0, 1, 2], "point": [3, 4, 5]}]),
            ),
            (json!("lat = 12.5"), json!([{"axis": "lat", "at": 12.5}])),
            (json!(["y=50%"]), json!([{"axis": "y", "at": "50%"}])),
            (json!({"lat": "50%"}), json!([{"axis": "lat", "at": "50%"}])),
            (json!({"z": 40}), json!([{"axis": "z", "at": 40.0}])),
            (json!([{"axis": "z", "at": 4}]), json!([{"axis": "z", "at": 4}])),
        ] {
            assert_eq!(asked("slices", written).unwrap(), Some(read));
        }
        for bad in ["z", "z=", "=", "z=a", "z=nan", "z=1e999", "z=%", "z=4%%"] {
            assert!(asked("slices", bad.into()).is_err(), "{bad}");
        }
    }

    #[test]
    fn distances_of_eyes_are_read_as_people_write_them() {
        for (written, read) in
            [(json!("0.04"), 0.04), (json!("1 / 25"), 0.04), (json!(true), 1.0 / 30.0), (json!(0.5), 0.5)]
        {
            assert_eq!(asked("stereo", written).unwrap(), Some(read.into()));
        }
        assert_eq!(asked("stereo", json!(false)).unwrap(), None);
        for bad in ["", "0", "-0.1", "1/0", "0/0", "0.6", "wide", "1/30/2"] {
            let error = asked("stereo", bad.into()).unwrap_err().to_string();
            assert!(error.contains(&format!("up to 0.5 for `stereo`, found `{bad}`")), "{error}");
        }
    }

    #[test]
    fn isosurfaces_are_read_as_people_write_them() {
        let read = |written: Value| asked("surfaces", written).unwrap().unwrap();
        let own = |value: f64, color: [u8; 3]| json!({"value": value, "color": color, "opacity": 1.0});
        assert_eq!(read(json!("0.5")), json!([own(0.5, SURFACE_COLORS[0])]));
        assert_eq!(read(json!([7, "8"])), json!([own(7.0, SURFACE_COLORS[0]), own(8.0, SURFACE_COLORS[1])]));
        assert_eq!(read(json!("50%"))[0]["value"], json!("50%"));
        assert_eq!(read(json!("12.5 %:#c03020"))[0]["value"], json!("12.5 %"));
        assert_eq!(["12.5 %", "101%", "-1%", "5", "x%"].map(share), [Some(0.125), None, None, None, None]);
        let both = json!([{"value": -1e-3, "color": [192, 48, 32], "opacity": 0.4}]);
        assert_eq!(read(json!("-1e-3:#C03020:0.4")), both);
        for wrong in [
            "",
            "x",
            "nan",
            "%",
            "101%",
            "nan%",
            "1:red",
            "1:#12345",
            "1:#1234567",
            "1:#00000g",
            "1:#000000:2",
            "1:#000000:1:1",
        ] {
            let error = asked("surfaces", wrong.into()).unwrap_err().to_string();
            assert!(error.contains(&format!("found `{wrong}`")), "{error}");
        }
    }

    #[test]
    fn simple_fields_are_texts_or_values() {
        for (name, written, read) in [
            ("mode", json!("mip"), json!("maximum")),
            ("mode", json!("surfaces"), json!("surfaces")),
            ("shading", json!("off"), json!(false)),
            ("grids", json!(true), json!(true)),
            ("level", json!("2"), json!(2)),
            ("level", json!(2), json!(2)),
            ("array", json!("rho"), json!("rho")),
            ("camera", json!("top"), json!("top")),
            ("transfer", json!("gray"), json!("gray")),
            ("transfer", json!(" {\"map\": \"gray\"}"), json!({"map": "gray"})),
            ("color_by", json!("t"), json!({"array": "t"})),
        ] {
            assert_eq!(asked(name, written).unwrap(), Some(read), "{name}");
        }
        assert_eq!(asked("mode", Value::Null).unwrap(), None);
        for (name, written, says) in [
            ("mode", json!("sideways"), "one of composite, surfaces, maximum, minimum for `mode`"),
            ("level", json!("256"), "a whole number from 0 to 255 for `level`, found `256`"),
            ("time", json!(-1), "a whole number from 0 for `time`, found `-1`"),
            ("shading", json!("bright"), "`on` or `off`"),
            ("camera", json!("aside"), "front back left right top bottom"),
            ("camera", json!("{"), "`camera` in JSON"),
        ] {
            let error = asked(name, written).unwrap_err().to_string();
            assert!(error.contains(says), "{name}: expected `{says}` in `{error}`");
        }
    }
}
