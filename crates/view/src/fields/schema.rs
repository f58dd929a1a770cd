//! JSON schema of a view, from the table of fields.

use array::MAX_AXES;
use serde_json::{Map, Value, json};

use crate::fields::FIELDS;
use crate::fields::field::{FieldMember, FieldRecord, FieldType, NumberRange};
use crate::fields::validate::SCHEMA;
use crate::view::View;

/// Returns the JSON schema (draft 2020-12) of a view as it is written. Fields and members of later versions
/// are preserved, so additional properties are allowed.
#[must_use]
pub fn json_schema() -> Value {
    let defaults = json!(View::default());
    let mut properties = Map::new();
    properties.insert("v".into(), json!({"const": SCHEMA, "description": "Version of the schema."}));
    for field in FIELDS {
        let mut schema = of_type(&field.field_type);
        schema.insert("description".into(), field.help.into());
        schema.insert("default".into(), defaults[field.name].clone());
        properties.insert(field.name.into(), Value::Object(schema));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "View",
        "description": "Complete description of a picture: the same in a link, in a session, on the command line and in Python.",
        "type": "object",
        "properties": properties,
    })
}

/// Returns the schema of the values of a type.
fn of_type(field_type: &FieldType) -> Map<String, Value> {
    let schema = match field_type {
        FieldType::Text => json!({"type": "string"}),
        FieldType::Flag => json!({"type": "boolean"}),
        FieldType::Index { last: None } => json!({"type": "integer", "minimum": 0}),
        FieldType::Index { last: Some(last) } => json!({"type": "integer", "minimum": 0, "maximum": last}),
        FieldType::Number(range) => of_numbers(*range),
        FieldType::Choice(choice) => {
            let names: Vec<&str> = choice.names.iter().map(|name| name.name).collect();
            json!({"enum": names})
        }
        FieldType::Color => several(3, 3, json!({"type": "integer", "minimum": 0, "maximum": 255})),
        FieldType::Point => several(3, 3, json!({"type": "number"})),
        FieldType::Range => several(2, 2, json!({"type": "number"})),
        FieldType::Box => several(2, 2, several(3, 3, of_numbers(NumberRange::between(0.0, 1.0)))),
        FieldType::OpacityPoint => json!({
            "type": "array",
            "prefixItems": [{"type": "number"}, of_numbers(NumberRange::between(0.0, 1.0))],
            "minItems": 2,
            "maxItems": 2,
        }),
        FieldType::Indices => json!({
            "type": "object",
            "additionalProperties": {"type": "integer", "minimum": 0},
            "maxProperties": MAX_AXES,
        }),
        FieldType::List { of, least, most } => several(*least, *most, of_type(of).into()),
        FieldType::Record(record) => of_record(record),
        FieldType::OneOf(union) => {
            let variant = |(name, member): &(&str, FieldMember)| {
                let inner = of_members(std::slice::from_ref(member));
                json!({"type": "object", "properties": {*name: inner}, "required": [name]})
            };
            let variants: Vec<Value> = union.variants.iter().map(variant).collect();
            json!({"oneOf": variants})
        }
        FieldType::Nullable(inner) => json!({"anyOf": [of_type(inner), {"type": "null"}]}),
    };
    let Value::Object(schema) = schema else { unreachable!("each schema above is an object") };
    schema
}

fn of_numbers(range: NumberRange) -> Value {
    let mut schema = Map::new();
    schema.insert("type".into(), "number".into());
    if range.low.is_finite() {
        let name = if range.is_above_low { "exclusiveMinimum" } else { "minimum" };
        schema.insert(name.into(), range.low.into());
    }
    if range.high.is_finite() {
        let name = if range.is_below_high { "exclusiveMaximum" } else { "maximum" };
        schema.insert(name.into(), range.high.into());
    }
    schema.into()
}

fn several(least: usize, most: usize, items: Value) -> Value {
    json!({"type": "array", "items": items, "minItems": least, "maxItems": most})
}

fn of_record(record: &FieldRecord) -> Value {
    let mut schema = of_members(record.members);
    schema["description"] = record.help.into();
    schema
}

fn of_members(members: &[FieldMember]) -> Value {
    let property = |member: &FieldMember| {
        let mut schema = of_type(&member.field_type);
        schema.insert("description".into(), member.help.into());
        (member.name.to_owned(), Value::Object(schema))
    };
    let properties: Map<String, Value> = members.iter().map(property).collect();
    let required: Vec<&str> = members.iter().filter(|m| !m.is_optional).map(|m| m.name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_fields_of_a_view() {
        let view = json!(View::default());
        let mut names: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
        names.push("v");
        names.sort_unstable();
        let mut written: Vec<&str> = view.as_object().unwrap().keys().map(String::as_str).collect();
        written.sort_unstable();
        assert_eq!(names, written);
    }

    #[test]
    fn names_of_options_and_keywords_are_used_once() {
        let mut names: Vec<&str> = FIELDS.iter().filter_map(|f| f.option).map(|o| o.name).collect();
        let options = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), options);
        let mut names: Vec<&str> = FIELDS.iter().filter_map(|f| f.keyword).map(|k| k.name).collect();
        let keywords = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), keywords);
    }

    #[test]
    fn a_schema_says_type_range_and_default() {
        let schema = json_schema();
        let field = |path: &str| schema.pointer(path).cloned().unwrap_or_default();
        assert_eq!(field("/properties/time/default"), json!(0));
        assert_eq!(field("/properties/background/default"), json!([13, 14, 18]));
        assert_eq!(field("/properties/stereo/anyOf/0/exclusiveMinimum"), json!(0.0));
        assert_eq!(field("/properties/stereo/anyOf/0/maximum"), json!(0.5));
        assert_eq!(field("/properties/surfaces/items/required"), json!(["value", "color", "opacity"]));
        let mode = json!(["composite", "surfaces", "maximum", "minimum"]);
        assert_eq!(field("/properties/mode/enum"), mode);
    }
}
