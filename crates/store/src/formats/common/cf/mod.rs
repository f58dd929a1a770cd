//! NetCDF and CF conventions for NetCDF-3 and NetCDF-4: meaning of the attributes of values and axes.
//!
//! Values follow xarray's defaults (masking and scaling), and netCDF4-python where both agree; axes follow CF. This module reads
//! no bytes: formats pass attributes and the values of coordinate variables.

mod axes;
mod decoding;

use std::collections::BTreeMap;

use array::{ArrayInfo, Attribute, Attributes, Axis, DType, ElementType, Meaning, Scalar};

pub(crate) use axes::{Coordinate, Dimension};
pub(crate) use decoding::{DefaultFill, decoded, decoding, default_fill};

/// Value of an attribute, with its stored type: the types decide the type of decoded values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CfValue {
    /// Numbers, at least one.
    Numbers(ElementType, Vec<Scalar>),
    /// Text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
}

/// Attributes by name.
pub(crate) type CfAttributes = BTreeMap<String, CfValue>;

/// The text of an attribute.
pub(crate) fn text<'a>(values: &'a CfAttributes, name: &str) -> Option<&'a str> {
    match values.get(name) {
        Some(CfValue::Text(text)) => Some(text.trim_end_matches('\0').trim()),
        _ => None,
    }
}

/// The numbers of an attribute and their type.
fn numbers<'a>(values: &'a CfAttributes, name: &str) -> Option<(ElementType, &'a [Scalar])> {
    match values.get(name) {
        Some(CfValue::Numbers(element, numbers)) => Some((*element, numbers)),
        _ => None,
    }
}

/// Attributes as descriptions show them, with their types.
pub(crate) fn attributes(values: &CfAttributes) -> Attributes {
    let shown = |value: &CfValue| match value {
        CfValue::Numbers(element, numbers) => match numbers[..] {
            [one] => Attribute::Number(one, Some(*element)),
            _ => Attribute::Numbers(numbers.clone(), Some(*element)),
        },
        CfValue::Text(text) => Attribute::Text(text.clone()),
        CfValue::Texts(texts) => Attribute::Texts(texts.clone()),
    };
    values.iter().map(|(name, value)| (name.clone(), shown(value))).collect()
}

/// Axes of an array of which only the names are known.
pub(crate) fn named_axes(names: &[String], dtype: DType, shape: &[u64]) -> Vec<Axis> {
    let dimension = |name: &String| Dimension { name: name.clone(), coordinate: None };
    axes::axes(&names.iter().map(dimension).collect::<Vec<_>>(), dtype, shape)
}

/// Completes the description of a variable: axes and world space, units, attributes, decoding, meaning.
///
/// `dimensions` are those of the variable, in its order.
pub(crate) fn complete(
    info: &mut ArrayInfo,
    values: &CfAttributes,
    dimensions: &[Dimension],
    fill: DefaultFill,
) {
    let of_length = |(dimension, &count): (&Dimension, &u64)| dimension.of_length(count, &mut info.notes);
    let dimensions: Vec<Dimension> = dimensions.iter().zip(&info.levels[0].shape).map(of_length).collect();
    let dimensions = &dimensions[..];
    info.axes = axes::axes(dimensions, info.dtype, &info.levels[0].shape);
    info.units = text(values, "units").unwrap_or_default().to_owned();
    info.attributes = attributes(values);
    info.decoding = decoding(info.dtype, values, fill);
    if values.contains_key("flag_values") || values.contains_key("flag_masks") {
        info.meaning = Meaning::Labels;
    }
    let world = axes::world(dimensions, &info.axes);
    for level in &mut info.levels {
        level.world_from_voxel = world.world_from_voxel;
        // Which axes are space is only known now.
        let kinds: Vec<_> = info.axes.iter().map(|a| a.kind).collect();
        level.block = array::choose_blocks(&level.shape, &kinds, info.dtype, level.chunk.as_deref());
    }
    info.world_units = world.units;
    info.notes.extend(world.notes);
    if let Some(is_unsigned) = info.decoding.unsigned {
        let (stored, meant) = if is_unsigned { ("signed", "unsigned") } else { ("unsigned", "signed") };
        info.notes.push(format!("stored as {stored} integers, read as {meant} (`_Unsigned`)"));
    }
    if let Some(obstacle) = &info.decoding.obstacle {
        info.notes.push(format!("values are shown as they are stored: {obstacle}"));
    }
    for name in ["_FillValue", "missing_value", "valid_range", "valid_min", "valid_max"] {
        if matches!(values.get(name), Some(CfValue::Text(_) | CfValue::Texts(_))) {
            info.notes.push(format!("`{name}` is a text instead of a number and is ignored"));
        }
    }
}

#[cfg(test)]
mod tests;
