//! `web/src/view/fields.ts`: types, limits, defaults and controls of the viewer.

use std::fmt::Write;

use corridor_view::{
    FIELDS, FieldControl, FieldMember, FieldType, FieldUnion, MAX_GRID_SIDE, MAX_LAYERS, MAX_OPACITY_POINTS,
    MAX_PARALLAX, MAX_SLICES, MAX_SURFACES, NumberRange, SCHEMA, View, ViewField,
};
use serde_json::{Value, json};

use crate::names::{NamedType, named_types, wrapped};

const HEAD: &str = "\
//! Fields of a view: types, limits, defaults and controls. Made from crates/view/src/fields.rs by
//! `CORRIDOR_BLESS=1 cargo test -p corridor-view --test generated`; change that file, not this one.

export type Vec3 = readonly [number, number, number];

/** A value and its opacity, 0 to 1. */
export type OpacityPoint = readonly [value: number, alpha: number];

";

/// Types of what follows the types of a view.
const MIDDLE: &str = "\
/** Values of a field of a simple type; null is also allowed if `isNullable`. */
export type SimpleField = { readonly isNullable: boolean } & (
  | { readonly kind: \"text\" | \"flag\" | \"color\" }
  | { readonly kind: \"index\"; readonly last: number | null }
  | { readonly kind: \"choice\"; readonly names: readonly string[] }
  | {
      readonly kind: \"number\";
      readonly low: number | null;
      readonly high: number | null;
      readonly isAboveLow: boolean;
      readonly isBelowHigh: boolean;
    }
);

/** Names of the fields that have values of a type. */
type FieldsOf<T> = { [Name in keyof ViewFields]: ViewFields[Name] extends T ? Name : never }[keyof ViewFields];

/** Control of a field: a box to tick, or a slider. */
export type FieldControl =
  | {
      readonly kind: \"switch\";
      readonly field: FieldsOf<boolean>;
      readonly label: string;
      readonly title: string;
    }
  | {
      readonly kind: \"slider\";
      readonly field: FieldsOf<number>;
      readonly label: string;
      readonly title: string;
      readonly low: number;
      readonly high: number;
      readonly step: number;
    };

";

/// Types whose missing members are filled in by `parse.ts`.
const FILLED_IN: [&str; 1] = ["ColorBy"];

pub(crate) fn text() -> String {
    let mut text = HEAD.to_owned();
    for named in named_types() {
        put_type(&mut text, named);
    }
    put_comment(&mut text, "", "Fields of a view; see docs/view.md.");
    text.push_str("export interface ViewFields {\n");
    for field in FIELDS {
        put_member(&mut text, field.name, &field.field_type, field.help);
    }
    text.push_str("}\n\n");
    text.push_str(MIDDLE);
    put_constants(&mut text);
    put_tables(&mut text);
    text
}

fn put_type(text: &mut String, named: NamedType) {
    match named {
        NamedType::Choice(choice) => {
            let names: Vec<&str> = choice.names.iter().map(|name| name.name).collect();
            let lines = choice.names.iter().map(|name| format!("`{}`: {}", name.name, name.help));
            put_comment(text, "", &format!("{} {}", choice.help, lines.collect::<Vec<_>>().join(" ")));
            put(text, &format!("export const {} = {} as const;", choice.list, json!(names)));
            put(text, &format!("export type {} = (typeof {})[number];\n", choice.name, choice.list));
        }
        NamedType::Record(record) => {
            put_comment(text, "", &format!("{} May carry members of a newer schema.", record.help));
            put(text, &format!("export interface {} {{", record.name));
            for FieldMember { name, field_type, help, is_optional, .. } in record.members {
                let is_filled_in = FILLED_IN.contains(&record.name)
                    && !matches!(field_type, FieldType::Flag | FieldType::Choice(_));
                let mark = if *is_optional && !is_filled_in { "?" } else { "" };
                put_member(text, &format!("{name}{mark}"), field_type, help);
            }
            text.push_str("}\n\n");
        }
        NamedType::Union(FieldUnion { name, help, variants }) => {
            put_comment(text, "", help);
            put(text, &format!("export type {name} ="));
            for (number, (variant, member)) in (1..).zip(*variants) {
                let end = if number == variants.len() { ";\n" } else { "" };
                let inner = format!("readonly {}: {}", member.name, type_of(&member.field_type));
                put(text, &format!("  | {{ readonly {variant}: {{ {inner} }} }}{end}"));
            }
        }
    }
}

fn put_member(text: &mut String, name: &str, field_type: &FieldType, help: &str) {
    put_comment(text, "  ", help);
    put(text, &format!("  readonly {name}: {};", type_of(field_type)));
}

fn type_of(field_type: &FieldType) -> String {
    match *field_type {
        FieldType::Text => "string".into(),
        FieldType::Flag => "boolean".into(),
        FieldType::Index { .. } | FieldType::Number(_) => "number".into(),
        FieldType::Choice(choice) => choice.name.into(),
        FieldType::Color | FieldType::Point => "Vec3".into(),
        FieldType::Range => "readonly [low: number, high: number]".into(),
        FieldType::Box => "readonly [low: Vec3, high: Vec3]".into(),
        FieldType::OpacityPoint => "OpacityPoint".into(),
        FieldType::Indices => "Readonly<Record<string, number>>".into(),
        FieldType::List { of, .. } => format!("readonly {}[]", type_of(of)),
        FieldType::Record(record) => record.name.into(),
        FieldType::OneOf(union) => union.name.into(),
        FieldType::Nullable(inner) => format!("{} | null", type_of(inner)),
    }
}

fn put_constants(text: &mut String) {
    for (help, name, value) in [
        ("Version of the schema.", "SCHEMA_VERSION", json!(SCHEMA)),
        (
            "Maximum number of control points of an opacity curve.",
            "MAX_OPACITY_POINTS",
            json!(MAX_OPACITY_POINTS),
        ),
        ("Maximum number of isosurfaces.", "MAX_SURFACES", json!(MAX_SURFACES)),
        ("Maximum number of slices.", "MAX_SLICES", json!(MAX_SLICES)),
        ("Maximum number of layers.", "MAX_LAYERS", json!(MAX_LAYERS)),
        ("Maximum number of rows and of columns of a grid.", "MAX_GRID_SIDE", json!(MAX_GRID_SIDE)),
        (
            "Maximum distance of the eyes, as a fraction of their distance to the camera's target.",
            "MAX_PARALLAX",
            json!(MAX_PARALLAX),
        ),
        ("Maximum number of named positions in `at`.", "MAX_POSITIONS", json!(array::MAX_AXES)),
    ] {
        put_comment(text, "", help);
        put(text, &format!("export const {name} = {value};"));
    }
    text.push('\n');
}

fn put_tables(text: &mut String) {
    let defaults = json!(View::default());
    put_comment(text, "", "Default values of the fields.");
    text.push_str("export const DEFAULTS: ViewFields = {\n");
    for field in FIELDS {
        put(text, &format!("  {}: {},", field.name, defaults[field.name]));
    }
    text.push_str("};\n\n");
    put_comment(text, "", "Former names of fields, which are still read.");
    text.push_str("export const FORMER_NAMES: ReadonlyMap<string, keyof ViewFields> = new Map([\n");
    for (former, name) in FIELDS.iter().filter_map(|field| Some((field.former?, field.name))) {
        put(text, &format!("  [\"{former}\", \"{name}\"],"));
    }
    text.push_str("]);\n\n");
    put_comment(text, "", "Fields of simple types.");
    text.push_str("export const SIMPLE_FIELDS = {\n");
    for (name, simple) in FIELDS.iter().filter_map(|field| Some((field.name, simple(field)?))) {
        put(text, &format!("  {name}: {simple},"));
    }
    text.push_str("} satisfies Readonly<Record<string, SimpleField>>;\n\n");
    put_comment(text, "", "Controls that are made from this list.");
    text.push_str("export const CONTROLS: readonly FieldControl[] = [\n");
    for control in FIELDS.iter().filter_map(control) {
        put(text, &format!("  {control},"));
    }
    text.push_str("];\n");
}

/// Description of a field of a simple type.
fn simple(field: &ViewField) -> Option<String> {
    let finite = |bound: f64| if bound.is_finite() { json!(bound) } else { Value::Null };
    let kind = match *field.plain_type() {
        FieldType::Text => "kind: \"text\"".to_owned(),
        FieldType::Flag => "kind: \"flag\"".to_owned(),
        FieldType::Color => "kind: \"color\"".to_owned(),
        FieldType::Index { last } => format!("kind: \"index\", last: {}", json!(last)),
        FieldType::Choice(choice) => format!("kind: \"choice\", names: {}", choice.list),
        FieldType::Number(NumberRange { low, high, is_above_low, is_below_high }) => format!(
            "kind: \"number\", low: {}, high: {}, isAboveLow: {is_above_low}, isBelowHigh: {is_below_high}",
            finite(low),
            finite(high),
        ),
        _ => return None,
    };
    let is_nullable = matches!(field.field_type, FieldType::Nullable(_));
    Some(format!("{{ {kind}, isNullable: {is_nullable} }}"))
}

fn control(field: &ViewField) -> Option<String> {
    let (kind, label, more) = match (field.control, *field.plain_type()) {
        (FieldControl::None, _) => return None,
        (FieldControl::Switch { label }, _) => ("switch", label, String::new()),
        (FieldControl::Slider { label, step }, FieldType::Number(range)) => {
            let more =
                format!(", low: {}, high: {}, step: {}", json!(range.low), json!(range.high), json!(step));
            ("slider", label, more)
        }
        (FieldControl::Slider { .. }, _) => panic!("`{}` has a slider, so it is a number", field.name),
    };
    let (name, label, title) = (json!(field.name), json!(label), json!(field.help));
    Some(format!("{{ kind: \"{kind}\", field: {name}, label: {label}, title: {title}{more} }}"))
}

fn put_comment(text: &mut String, indent: &str, comment: &str) {
    const WIDTH: usize = 109;
    let lines = wrapped(comment, WIDTH - indent.len() - "/**  */".len());
    if let [line] = lines.as_slice() {
        return put(text, &format!("{indent}/** {line} */"));
    }
    put(text, &format!("{indent}/**"));
    lines.iter().for_each(|line| put(text, &format!("{indent} * {line}")));
    put(text, &format!("{indent} */"));
}

fn put(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}
