//! Functions shared by the generators: named types in the order in which fields use them, and lines of text.

use std::collections::BTreeMap;

use corridor_view::{FIELDS, FieldChoice, FieldRecord, FieldType, FieldUnion};
use serde_json::Value;

/// Type with a name.
#[derive(Clone, Copy)]
pub(crate) enum NamedType {
    Choice(&'static FieldChoice),
    Record(&'static FieldRecord),
    Union(&'static FieldUnion),
}

impl NamedType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Choice(choice) => choice.name,
            Self::Record(record) => record.name,
            Self::Union(union) => union.name,
        }
    }
}

/// All types with a name, each after those that it uses.
pub(crate) fn named_types() -> Vec<NamedType> {
    let mut types = Vec::new();
    FIELDS.iter().for_each(|field| collect(&field.field_type, &mut types));
    types
}

fn collect(field_type: &FieldType, types: &mut Vec<NamedType>) {
    let named = match *field_type {
        FieldType::Choice(choice) => NamedType::Choice(choice),
        FieldType::Record(record) => {
            record.members.iter().for_each(|member| collect(&member.field_type, types));
            NamedType::Record(record)
        }
        FieldType::OneOf(union) => NamedType::Union(union),
        FieldType::List { of, .. } | FieldType::Nullable(of) => return collect(of, types),
        _ => return,
    };
    if types.iter().all(|other| other.name() != named.name()) {
        types.push(named);
    }
}

/// A value whose objects have their members in the order of the alphabet.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(members) => {
            let members: BTreeMap<_, _> = members.iter().map(|(name, value)| (name, sorted(value))).collect();
            members.into_iter().map(|(name, value)| (name.clone(), value)).collect()
        }
        other => other.clone(),
    }
}

/// Lines of at most `width` letters, broken at spaces.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
