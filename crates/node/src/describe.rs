//! `info`: the description of a data set as JSON and as text.

use std::fmt::Write;

use array::{
    ArrayInfo, Attribute, Attributes, Dataset, Decoding, ElementType, Error, Level, LevelOrigin, Meaning,
    Result, Scalar,
};
use client::servers::ServerState;
use client::text::{plain, size};
use client::url::without_tokens;
use serde_json::{Value, json};
use server::zarr::world;

/// Maximum number of attributes displayed per array.
const MAX_ATTRIBUTES: usize = 20;
/// Maximum length of a displayed attribute, in characters.
const MAX_TEXT: usize = 80;

/// Returns the description as JSON: the encoded [`Dataset`], with `shape` and `size_bytes` added to each array.
/// Attributes have their JSON form, and `attribute_types` has the element types of numeric attributes, by name;
/// `number` where JSON needs a string for a number (`"NaN"`).
///
/// # Errors
/// `Internal` if it cannot be represented in JSON.
pub fn json(dataset: &Dataset) -> Result<Value> {
    let text = |e: serde_json::Error| Error::internal(format!("a description in JSON: {e}"));
    let mut value = serde_json::to_value(dataset).map_err(text)?;
    if let Some(arrays) = value.get_mut("arrays").and_then(Value::as_array_mut) {
        for (entry, array) in arrays.iter_mut().zip(&dataset.arrays) {
            entry["shape"] = array.shape().into();
            entry["size_bytes"] = array.size_bytes().into();
            add_attributes(entry, &array.attributes);
        }
    }
    add_attributes(&mut value, &dataset.attributes);
    Ok(value)
}

fn add_attributes(entry: &mut Value, attributes: &Attributes) {
    let said = attributes.iter().map(|(name, value)| (name.clone(), value.to_json()));
    entry["attributes"] = Value::Object(said.collect());
    let types = attributes.iter().filter_map(|(name, value)| Some((name.clone(), value.type_name()?.into())));
    entry["attribute_types"] = Value::Object(types.collect());
}

/// Converts the states of several servers, from [`Stack::servers`](server::stack::Stack::servers), to JSON.
#[must_use]
pub fn servers(states: &[(Option<String>, ServerState)]) -> Value {
    let one = |(dataset, state): &(Option<String>, ServerState)| {
        json!({
            "server": state.name,
            "dataset": dataset,
            "is_used": state.away.is_none(),
            "why_not": state.away.as_ref().map(|why| without_tokens(&why.to_string()).into_owned()),
            "delivered_bytes": state.delivered_bytes,
            "rate_bytes_per_sec": state.rate_bytes_per_sec,
        })
    };
    states.iter().map(one).collect()
}

/// Returns the description as text.
#[must_use]
pub fn text(dataset: &Dataset) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    write_all(&printable(dataset), &mut out).unwrap_or_default();
    out
}

/// Returns a copy of the description with all names and sentences made safe for a terminal: files are not trusted to
/// contain only printable text.
fn printable(dataset: &Dataset) -> Dataset {
    let mut out = dataset.clone();
    let clean_all = |texts: &mut Vec<String>| texts.iter_mut().for_each(|t| *t = plain(t));
    out.name = plain(&out.name);
    clean_all(&mut out.warnings);
    for left in &mut out.left_out {
        left.name = plain(&left.name);
        left.what = plain(&left.what);
    }
    for array in &mut out.arrays {
        array.name = plain(&array.name);
        array.units = plain(&array.units);
        clean_all(&mut array.notes);
        for axis in &mut array.axes {
            axis.name = plain(&axis.name);
            axis.units = plain(&axis.units);
        }
        array.attributes =
            std::mem::take(&mut array.attributes).into_iter().map(|(n, v)| (plain(&n), v)).collect();
    }
    out
}

fn write_all(dataset: &Dataset, out: &mut String) -> std::fmt::Result {
    let count = dataset.arrays.len();
    let arrays = if count == 1 { "array" } else { "arrays" };
    writeln!(out, "{} ({}), {count} {arrays}", dataset.name, dataset.format)?;
    for warning in &dataset.warnings {
        writeln!(out, "  warning: {warning}")?;
    }
    for array in &dataset.arrays {
        write_array(array, world::has_maps(dataset), out)?;
    }
    for left in &dataset.left_out {
        let value = left.value.as_ref().map_or_else(String::new, |v| format!(" = {}", short(v)));
        writeln!(out, "  {} is left out: {}{value}", left.name, left.what)?;
    }
    Ok(())
}

fn write_array(array: &ArrayInfo, has_map: bool, out: &mut String) -> std::fmt::Result {
    let axes: Vec<String> = array
        .axes
        .iter()
        .zip(array.shape())
        .map(|(a, n)| format!("{} {n}{}", a.name, in_parentheses(&a.units)))
        .collect();
    let units = in_parentheses(&array.units);
    writeln!(
        out,
        "\n  {}{units}: {} [{}], {}",
        array.name,
        array.dtype,
        axes.join(", "),
        size(array.size_bytes())
    )?;
    write_decoding(&array.decoding, out)?;
    if let Some(chunk) = array.levels.first().and_then(|l| l.chunk.as_ref()) {
        writeln!(out, "    chunks of {chunk:?}")?;
    }
    for (number, level) in array.levels.iter().enumerate().skip(1) {
        writeln!(out, "    level {number}: {:?}, {}", level.shape, origin(level))?;
    }
    if let Some(map) = world::text(array).filter(|_| has_map) {
        writeln!(out, "    {map}")?;
    }
    if array.meaning == Meaning::Labels {
        writeln!(out, "    labels: values are categories, coarser levels their modes")?;
    }
    for note in &array.notes {
        writeln!(out, "    note: {note}")?;
    }
    for (name, value) in array.attributes.iter().take(MAX_ATTRIBUTES) {
        writeln!(out, "    {name}: {}", short(&attribute(value)))?;
    }
    if array.attributes.len() > MAX_ATTRIBUTES {
        writeln!(
            out,
            "    ... and {} more attributes (--json shows all)",
            array.attributes.len() - MAX_ATTRIBUTES
        )?;
    }
    Ok(())
}

/// Describes how stored values are decoded; nothing if decoding does not change them.
#[expect(clippy::float_cmp, reason = "exactly 1 and 0 mean absent")]
fn write_decoding(decoding: &Decoding, out: &mut String) -> std::fmt::Result {
    if decoding.scale != 1.0 || decoding.offset != 0.0 {
        let Decoding { scale, offset, output, .. } = decoding;
        writeln!(out, "    decoded (--decoded): stored * {scale} + {offset}, as {output}")?;
    }
    if !decoding.missing.is_empty() {
        let missing: Vec<String> = decoding.missing.iter().map(|v| scalar(*v)).collect();
        writeln!(out, "    no value where {} is stored", missing.join(" or "))?;
    }
    if let Some(obstacle) = &decoding.obstacle {
        writeln!(out, "    cannot be decoded: {obstacle}")?;
    }
    Ok(())
}

fn in_parentheses(units: &str) -> String {
    if units.is_empty() { String::new() } else { format!(" ({units})") }
}

fn origin(level: &Level) -> &'static str {
    match level.origin {
        LevelOrigin::Stored => "stored in the file",
        LevelOrigin::Mean => "means, made when asked for",
        LevelOrigin::Mode => "most frequent labels, made when asked for",
        LevelOrigin::Sampled => "samples",
        LevelOrigin::Corners => "corners of blocks",
    }
}

fn attribute(value: &Attribute) -> String {
    match value {
        Attribute::Text(text) => text.clone(),
        Attribute::Number(number, element) => typed(*number, *element),
        Attribute::Numbers(list, element) => {
            list.iter().map(|n| typed(*n, *element)).collect::<Vec<_>>().join(", ")
        }
        Attribute::Texts(texts) => texts.join(", "),
        Attribute::Json(value) => value.to_string(),
    }
}

/// Formats a number of single precision with as few digits as distinguish it from its neighbors.
#[expect(clippy::cast_possible_truncation, reason = "a number of single precision is one")]
fn typed(value: Scalar, element: Option<ElementType>) -> String {
    match (value, element) {
        (Scalar::Float(v), Some(ElementType::F32)) if v.abs() < 1e15 => (v as f32).to_string(),
        (value, Some(ElementType::Bool)) => (value.as_f64() != 0.0).to_string(),
        (value, _) => scalar(value),
    }
}

fn scalar(value: Scalar) -> String {
    match value {
        Scalar::Unsigned(v) => v.to_string(),
        Scalar::Signed(v) => v.to_string(),
        Scalar::Float(v) if v.abs() >= 1e15 => format!("{v:e}"),
        Scalar::Float(v) => v.to_string(),
    }
}

/// Shortens a text to one line of limited length.
fn short(text: &str) -> String {
    let clean: String = plain(&text.replace(['\n', '\t'], " ")).chars().take(MAX_TEXT).collect();
    if text.chars().nth(MAX_TEXT).is_some() { format!("{clean}...") } else { clean }
}
