//! Groups and arrays as Zarr v3 documents, with the names and attributes that xarray expects.

use std::collections::BTreeMap;

use array::{ArrayInfo, Attribute, Attributes, Dataset, Error, Result, Scalar};
use serde_json::{Map, Value, json};

use super::tree::path_of;
use crate::base64;
use crate::output::zarr::{array_document, number};
use crate::output::{meant_attributes, scale_and_offset};
use crate::world;

/// Arrays described in the root's document; more are found by their own documents.
const MAX_CONSOLIDATED: usize = 4096;

/// The whole data set: a group with the documents of everything below.
pub(super) fn root(dataset: &Dataset) -> Value {
    let mut root = group(&dataset.attributes);
    let mut all = Map::new();
    for (info, names) in dataset.arrays.iter().zip(dimension_names(dataset)).take(MAX_CONSOLIDATED) {
        let Ok(described) = document(dataset, info, 0, &names) else { continue };
        let path = path_of(info);
        for (end, _) in path.match_indices('/') {
            all.insert(path[..end].to_owned(), group(&Attributes::new()));
        }
        all.insert(path.to_owned(), described);
    }
    if dataset.arrays.len() <= MAX_CONSOLIDATED {
        root["consolidated_metadata"] = json!({"kind": "inline", "must_understand": false, "metadata": all});
    }
    root
}

/// A group.
pub(super) fn group(attributes: &Attributes) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": said(attributes)})
}

/// An array at a level.
///
/// # Errors
/// `NotFound`, `Invalid` when there is no such array or level.
pub(super) fn array(dataset: &Dataset, number: u32, level: u8) -> Result<Value> {
    let info = dataset.array(number)?;
    let names = dimension_names(dataset).into_iter().nth(number as usize);
    document(
        dataset,
        info,
        level,
        &names.ok_or_else(|| Error::internal("expected names of every array's axes"))?,
    )
}

fn document(dataset: &Dataset, info: &ArrayInfo, level: u8, names: &[String]) -> Result<Value> {
    let shown = info.level(level)?;
    let fill = info.decoding.missing.first().copied();
    let mut document = array_document(info.dtype, &shown.shape, &shown.block, names, fill);
    document["attributes"] = attributes(info);
    if world::has_maps(dataset) {
        for (name, value) in world::attributes(info, shown) {
            document["attributes"][name] = value;
        }
    }
    Ok(document)
}

/// Names of the axes of every array. In some formats anonymous axes of several sizes share a name; Zarr's readers
/// expect one size per name, so all but the first get their size added.
fn dimension_names(dataset: &Dataset) -> Vec<Vec<String>> {
    let mut sizes = BTreeMap::<&str, u64>::new();
    let mut all = Vec::with_capacity(dataset.arrays.len());
    for array in &dataset.arrays {
        let mut names = Vec::with_capacity(array.axes.len());
        for (axis, &size) in array.axes.iter().zip(array.shape()) {
            let is_first = *sizes.entry(&axis.name).or_insert(size) == size;
            names.push(if is_first { axis.name.clone() } else { format!("{}_{size}", axis.name) });
        }
        all.push(names);
    }
    all
}

/// What the file says, and how stored values become the meant ones in CF's words, where the file says it otherwise.
fn attributes(array: &ArrayInfo) -> Value {
    let mut all = meant_attributes(array);
    let decoding = &array.decoding;
    if !["scale_factor", "add_offset"].iter().any(|n| all.contains_key(*n)) {
        all.extend(scale_and_offset(decoding));
    }
    if !array.units.is_empty() {
        all.entry("units".into()).or_insert_with(|| Attribute::Text(array.units.clone()));
    }
    let fill = match all.remove("_FillValue") {
        Some(Attribute::Number(value, _)) => Some(value),
        // A fill value that only the format's library knows is said of floats: of integers readers would make doubles.
        _ => decoding
            .missing
            .first()
            .copied()
            .filter(|_| array.dtype.element().is_float() && !all.contains_key("missing_value")),
    };
    if let Some(fill) = fill {
        all.insert("_FillValue".into(), Attribute::Number(fill, Some(array.dtype.element())));
    }
    written(&all)
}

/// Attributes as a document has them, in xarray's words.
pub(crate) fn written(attributes: &Attributes) -> Value {
    let mut value = said(attributes);
    if let Some(Attribute::Number(fill, _)) = attributes.get("_FillValue") {
        value["_FillValue"] = fill_value(*fill);
    }
    value
}

/// As xarray writes it for Zarr v3: floats as base64 of their eight bytes.
fn fill_value(value: Scalar) -> Value {
    match value {
        Scalar::Unsigned(_) | Scalar::Signed(_) => number(value),
        Scalar::Float(v) => base64::encode(&v.to_le_bytes(), base64::STANDARD).into(),
    }
}

fn said(attributes: &Attributes) -> Value {
    attributes.iter().map(|(name, attribute)| (name.clone(), attribute.to_json())).collect()
}
