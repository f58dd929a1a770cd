//! Check of JSON against the types of the table of fields, with messages for people who write views by hand.

use array::{Error, Result};
use serde_json::{Map, Value};

use crate::fields::FIELDS;
use crate::fields::field::{FieldMember, FieldRecord, FieldType, FieldUnion};

/// Version of the schema that this crate writes and reads.
pub const SCHEMA: u32 = 1;

/// Longest part of a wrong value that a message repeats, characters.
const MAX_FOUND: usize = 60;

/// Checks the types of the known fields of a view; ranges and lengths are checked by [`crate::View::check`].
///
/// # Errors
/// `Invalid`, naming the field or member and what it takes.
pub(crate) fn check_fields(fields: &Map<String, Value>) -> Result<()> {
    for field in FIELDS {
        if let Some(value) = fields.get(field.name) {
            check(field.name, &field.field_type, value)?;
        }
    }
    Ok(())
}

/// Parses the fields of a view from JSON text.
///
/// # Errors
/// `Invalid` for text that is not JSON, or not an object.
pub(crate) fn parse_fields(text: &str) -> Result<Map<String, Value>> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => Err(wrong("the whole", "an object of fields", &other)),
        Err(e) => Err(Error::invalid(format!("expected a view of version {SCHEMA} in JSON: {e}"))),
    }
}

/// Checks the members of a record that are present.
///
/// # Errors
/// As [`check_fields`].
pub(crate) fn check_members(path: &str, record: &'static FieldRecord, value: &Value) -> Result<()> {
    let Value::Object(members) = value else {
        return Err(wrong(path, &words(&FieldType::Record(record)), value));
    };
    for member in record.members {
        if let Some(found) = present(member, members) {
            check(&format!("{path}.{}", member.name), &member.field_type, found)?;
        }
    }
    Ok(())
}

fn present<'a>(member: &FieldMember, members: &'a Map<String, Value>) -> Option<&'a Value> {
    members.get(member.name).or_else(|| members.get(member.former?))
}

fn check(path: &str, field_type: &FieldType, value: &Value) -> Result<()> {
    let numbers = |value: &Value, count: usize| {
        value.as_array().is_some_and(|list| list.len() == count && list.iter().all(Value::is_number))
    };
    let is_right = match field_type {
        FieldType::Text => value.is_string(),
        FieldType::Flag => value.is_boolean(),
        FieldType::Index { last } => {
            value.as_u64().is_some_and(|index| last.is_none_or(|last| index <= last))
        }
        FieldType::Number(_) => value.is_number(),
        FieldType::Choice(choice) => {
            value.as_str().is_some_and(|name| choice.names.iter().any(|n| n.name == name))
        }
        FieldType::Color => value.as_array().is_some_and(|list| {
            list.len() == 3 && list.iter().all(|part| part.as_u64().is_some_and(|part| part <= 255))
        }),
        FieldType::Point => numbers(value, 3),
        FieldType::Range | FieldType::OpacityPoint => numbers(value, 2),
        FieldType::Box => value
            .as_array()
            .is_some_and(|list| list.len() == 2 && list.iter().all(|corner| numbers(corner, 3))),
        FieldType::Indices => value.as_object().is_some_and(|at| at.values().all(Value::is_u64)),
        FieldType::List { of, .. } => {
            let Some(list) = value.as_array() else { return Err(wrong(path, &words(field_type), value)) };
            return list
                .iter()
                .enumerate()
                .try_for_each(|(i, item)| check(&format!("{path}[{i}]"), of, item));
        }
        FieldType::Record(record) => {
            check_members(path, record, value)?;
            let members = value.as_object();
            let is_missing = |member: &&FieldMember| {
                !member.is_optional && members.is_some_and(|members| present(member, members).is_none())
            };
            return match record.members.iter().find(is_missing) {
                None => Ok(()),
                Some(member) => Err(Error::invalid(format!(
                    "expected a view of version {SCHEMA} in JSON: `{path}` lacks its member `{}`, {}",
                    member.name,
                    words(&member.field_type)
                ))),
            };
        }
        FieldType::OneOf(union) => return check_union(path, union, value),
        FieldType::Nullable(_) if value.is_null() => true,
        FieldType::Nullable(inner) => return check(path, inner, value),
    };
    if is_right { Ok(()) } else { Err(wrong(path, &words(field_type), value)) }
}

fn check_union(path: &str, union: &FieldUnion, value: &Value) -> Result<()> {
    let only =
        value.as_object().filter(|members| members.len() == 1).and_then(|members| members.iter().next());
    let variant = only.and_then(|(name, inner)| {
        union.variants.iter().find(|(variant, _)| variant == name).map(|(_, member)| (name, member, inner))
    });
    let Some((name, member, inner)) = variant else {
        let names: Vec<String> = union.variants.iter().map(|(name, _)| format!("`{name}`")).collect();
        return Err(wrong(path, &format!("an object with one member, {}", names.join(" or ")), value));
    };
    let path = format!("{path}.{name}");
    match inner.get(member.name) {
        Some(found) => check(&format!("{path}.{}", member.name), &member.field_type, found),
        None => Err(wrong(&path, &format!("an object with the member `{}`", member.name), inner)),
    }
}

/// Describes the values of a type.
fn words(field_type: &FieldType) -> String {
    match field_type {
        FieldType::Text => "a text".into(),
        FieldType::Flag => "`true` or `false`".into(),
        FieldType::Index { last: None } => "a whole number from 0".into(),
        FieldType::Index { last: Some(last) } => format!("a whole number from 0 to {last}"),
        FieldType::Number(range) => range.words(),
        FieldType::Choice(choice) => {
            let names: Vec<String> = choice.names.iter().map(|name| format!("`{}`", name.name)).collect();
            format!("one of {}", names.join(", "))
        }
        FieldType::Color => "a color `[r, g, b]` of whole numbers from 0 to 255".into(),
        FieldType::Point => "three numbers `[x, y, z]`".into(),
        FieldType::Range => "two numbers `[low, high]`".into(),
        FieldType::OpacityPoint => "two numbers `[value, opacity]`".into(),
        FieldType::Box => "two corners `[[x, y, z], [x, y, z]]`".into(),
        FieldType::Indices => "an object of whole numbers by name of the axis".into(),
        FieldType::List { of, .. } => format!("a list, each {}", words(of)),
        FieldType::Record(record) => {
            let names: Vec<String> =
                record.members.iter().map(|member| format!("`{}`", member.name)).collect();
            format!("an object with {}", names.join(", "))
        }
        FieldType::OneOf(_) => "an object with one member".into(),
        FieldType::Nullable(inner) => format!("{}, or null", words(inner)),
    }
}

fn wrong(path: &str, what: &str, value: &Value) -> Error {
    let text = value.to_string();
    let found: String = text.chars().take(MAX_FOUND).collect();
    let more = if found.len() < text.len() { "..." } else { "" };
    Error::invalid(format!(
        "expected a view of version {SCHEMA} in JSON, with {what} as `{path}`, found `{found}{more}`"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::View;

    #[test]
    fn messages_about_views_speak_of_json_and_not_of_rust() {
        let transfer = |members: serde_json::Value| json!({ "transfer": members });
        for (view, says) in [
            (json!({"time": "x"}), "a whole number from 0 as `time`, found `\"x\"`"),
            (json!({"time": -1}), "a whole number from 0 as `time`"),
            (json!({"level": 300}), "from 0 to 255 as `level`"),
            (json!({"mode": "sideways"}), "one of `composite`, `surfaces`"),
            (json!({"transfer": 3}), "an object"),
            (transfer(json!({"range": [0, 1], "map": "gray"})), "`transfer` lacks its member `opacity`"),
            (
                transfer(json!({"range": [0], "map": "gray", "opacity": [[0, 1]]})),
                "two numbers `[low, high]`",
            ),
            (transfer(json!({"range": [0, 1], "map": 4, "opacity": [[0, 1]]})), "a text as `transfer.map`"),
            (transfer(json!({"range": [0, 1], "map": "gray", "opacity": [[0]]})), "as `transfer.opacity[0]`"),
            (
                transfer(json!({"range": [0, 1], "map": "gray", "opacity": [[0, 1]], "scale": "ln"})),
                "one of `linear`, `log`, `symlog` as `transfer.scale`",
            ),
            (json!({"surfaces": [{"value": 1, "color": [0, 0, 256], "opacity": 1}]}), "`surfaces[0].color`"),
            (
                json!({"camera": {"eye": [0, 0, 1], "target": [0, 0, 0], "up": [0, 1, 0], "projection": {}}}),
                "`perspective`",
            ),
            (json!({"clip": [[0, 0, 0]]}), "two corners"),
            (json!({"at": {"c": 1.5}}), "whole numbers by name of the axis"),
            (json!({"background": "red"}), "a color `[r, g, b]`"),
        ] {
            let error = View::parse(&view.to_string()).unwrap_err().to_string();
            assert!(error.contains(says), "{view}: expected `{says}` in `{error}`");
            for rust in
                ["f64", "u64", "u8", "struct", "variant", "tuple", "map,", "sequence", "missing field"]
            {
                assert!(!error.contains(rust), "{view}: `{rust}` in `{error}`");
            }
        }
        let list = View::parse("[1]").unwrap_err().to_string();
        assert!(list.contains("an object of fields") && list.contains("found `[1]`"), "{list}");
        assert!(View::parse("{\"time\":").unwrap_err().to_string().contains("line 1"));
    }
}
