//! `docs/view.md`: the fields of a view for people.

use std::fmt::Write;

use corridor_view::{FIELDS, FieldMember, FieldType, OptionForm, PRESETS, PresetRange, View, ViewField};
use serde_json::json;

use crate::names::{NamedType, named_types};

const HEAD: &str = "\
# Fields of a view

A view is the complete description of a picture: one JSON value, the same in a link, in a session, on the command line and in Python.
This page and [view.schema.json](view.schema.json) are made from `crates/view/src/fields.rs`. How views travel is in [wire.md](wire.md).

Fields and members that a version does not know are kept and ignored. In a change of a view a field that is null goes back to its default.

| field | type | default | option of `render` | keyword of Python | meaning |
|---|---|---|---|---|---|
";

pub(crate) fn text() -> String {
    let defaults = json!(View::default());
    let mut text = HEAD.to_owned();
    put(&mut text, &format!("| `v` | number | `{}` | | | Version of the schema. |", defaults["v"]));
    for field in FIELDS {
        let keyword = field.keyword.map_or_else(String::new, |keyword| format!(" `{}=`", keyword.name));
        put(
            &mut text,
            &format!(
                "| `{}` | {} | `{}` |{} |{keyword} | {} |",
                field.name,
                words(&field.field_type),
                defaults[field.name],
                option(field),
                field.help,
            ),
        );
    }
    for named in named_types() {
        put_type(&mut text, named);
    }
    put_presets(&mut text);
    text
}

fn put_presets(text: &mut String) {
    text.push_str("\n## Presets\n\n");
    put(
        text,
        "Transfer functions by kind of data, for `--tf`, `tf=` and the viewer. The first picture of an array uses one of them, by the meaning, units and values of the array.",
    );
    text.push_str("\n| preset | for | color map | range |\n|---|---|---|---|\n");
    for preset in PRESETS {
        let range = match preset.range {
            PresetRange::Values([low, high]) => format!("{low} to {high}"),
            PresetRange::Shares([low, high]) => {
                format!("percentiles {} to {}", low * 100.0, high * 100.0)
            }
            PresetRange::Symmetric(share) => format!("symmetric, {} % of the magnitudes", share * 100.0),
            PresetRange::AboveBackground(share) => {
                format!("background (Otsu's threshold) to percentile {}", share * 100.0)
            }
        };
        put(text, &format!("| `{}` | {} | `{}` | {range} |", preset.name, preset.help, preset.map));
    }
}

fn option(field: &ViewField) -> String {
    let Some(option) = field.option else { return String::new() };
    let value = match option.form {
        OptionForm::Switch => " on\\|off".to_owned(),
        OptionForm::Present => String::new(),
        OptionForm::Assigned(_) => format!("[={}]", option.value_name),
        OptionForm::Value | OptionForm::Repeated if option.value_name.is_empty() => " NAME".to_owned(),
        OptionForm::Value | OptionForm::Repeated => format!(" {}", option.value_name.replace('|', "\\|")),
    };
    format!(" `--{}{value}`", option.name)
}

fn words(field_type: &FieldType) -> String {
    match *field_type {
        FieldType::Text => "text".into(),
        FieldType::Flag => "true or false".into(),
        FieldType::Index { last: None } => "whole number from 0".into(),
        FieldType::Index { last: Some(last) } => format!("whole number from 0 to {last}"),
        FieldType::Number(range) => range.words().trim_start_matches("a ").to_owned(),
        FieldType::Choice(choice) => format!("[{}](#{})", choice.name, choice.name.to_lowercase()),
        FieldType::Color => "`[r, g, b]`, 0 to 255".into(),
        FieldType::Point => "`[x, y, z]`".into(),
        FieldType::Range => "`[low, high]`".into(),
        FieldType::Box => "`[[x, y, z], [x, y, z]]`, 0 to 1".into(),
        FieldType::OpacityPoint => "`[value, alpha]`".into(),
        FieldType::Indices => "`{name: index}`".into(),
        FieldType::List { of, most, .. } => format!("list of {}, at most {most}", words(of)),
        FieldType::Record(record) => format!("[{}](#{})", record.name, record.name.to_lowercase()),
        FieldType::OneOf(union) => format!("[{}](#{})", union.name, union.name.to_lowercase()),
        FieldType::Nullable(inner) => format!("{}, or null", words(inner)),
    }
}

fn put_type(text: &mut String, named: NamedType) {
    put(text, &format!("\n## {}\n", named.name()));
    match named {
        NamedType::Choice(choice) => {
            put(text, &format!("{}\n\n| name | meaning |\n|---|---|", choice.help));
            for name in choice.names {
                put(text, &format!("| `{}` | {} |", name.name, name.help));
            }
        }
        NamedType::Record(record) => {
            put(text, &format!("{}\n\n| member | type | meaning |\n|---|---|---|", record.help));
            record.members.iter().for_each(|member| put_member(text, "", member));
        }
        NamedType::Union(union) => {
            put(text, &format!("{}\n\n| member | type | meaning |\n|---|---|---|", union.help));
            for (variant, member) in union.variants {
                put_member(text, &format!("{variant}."), member);
            }
        }
    }
}

fn put_member(text: &mut String, before: &str, member: &FieldMember) {
    let words = words(&member.field_type);
    let optional = if member.is_optional { "; may be left out" } else { "" };
    put(text, &format!("| `{before}{}` | {words}{optional} | {} |", member.name, member.help));
}

fn put(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}
