//! Groups and arrays as Zarr v3 documents, with the names and attributes that xarray expects.

use std::collections::{BTreeMap, BTreeSet};

use array::{ArrayInfo, Attribute, Attributes, Axis, Dataset, Error, Result};
use export::output::zarr::{array_document, attributes_json, xarray_attributes};
use export::output::{normalized_attributes, scale_and_offset};
use serde_json::{Map, Value, json};

use super::tree::path_of;
use super::{files, world};

/// Maximum size of all documents in the root's consolidated metadata, in bytes; beyond that, they are reached by their
/// own keys.
const MAX_CONSOLIDATED_BYTES: usize = 64 << 20;

/// Returns the document of the whole data set: a group with the documents of everything below.
pub(super) fn root(dataset: &Dataset) -> Value {
    let groups = groups(dataset);
    let own = |path: &str| group(&of_group(&dataset.attributes, path, &groups));
    let mut root = own("");
    let below = groups.iter().filter(|path| !path.is_empty());
    let mut all: Vec<(String, Value)> = below.map(|path| ((*path).to_owned(), own(path))).collect();
    let mut left_bytes = MAX_CONSOLIDATED_BYTES;
    for (info, names) in dataset.arrays.iter().zip(dimension_names(dataset, &dataset.arrays)) {
        // An image whose levels lie in the group of its name is represented by that group.
        if !path_of(info).is_empty() && groups.contains(path_of(info)) {
            continue;
        }
        let Ok(described) = document(dataset, info, 0, &names) else { continue };
        let Some(left) = left_bytes.checked_sub(described.to_string().len()) else { return root };
        left_bytes = left;
        all.push((path_of(info).to_owned(), described));
    }
    // zarr-python finds only members of a group that are adjacent; otherwise they keep the order of the file.
    all.sort_by(|(one, _), (other, _)| parent(one).cmp(parent(other)));
    let all: Map<String, Value> = all.into_iter().collect();
    root["consolidated_metadata"] = json!({"kind": "inline", "must_understand": false, "metadata": all});
    root
}

/// Returns the text of the root group's document.
pub(crate) fn root_document(dataset: &Dataset) -> String {
    root(dataset).to_string()
}

/// Returns the document of the group at a path.
pub(super) fn group_at(dataset: &Dataset, path: &str) -> Value {
    group(&of_group(&dataset.attributes, path, &groups(dataset)))
}

/// Returns the paths of all groups, the root's empty: those of the file and those above arrays.
fn groups(dataset: &Dataset) -> BTreeSet<&str> {
    let mut all: BTreeSet<&str> = dataset.groups.iter().map(|group| group.path.trim_matches('/')).collect();
    all.insert("");
    for path in dataset.arrays.iter().map(path_of) {
        // Most arrays lie in the group of another array.
        for (end, _) in path.rmatch_indices('/') {
            if !all.insert(&path[..end]) {
                break;
            }
        }
    }
    all
}

/// Returns the attributes of one group: in the attributes of the data set, those of groups below the root are prefixed
/// with their path.
fn of_group(attributes: &Attributes, path: &str, groups: &BTreeSet<&str>) -> Attributes {
    let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
    let is_own = |rest: &str| {
        let mut above = rest.rmatch_indices('/').map(|(end, _)| format!("{prefix}{}", &rest[..end]));
        !above.any(|group| groups.contains(group.as_str()))
    };
    let inside = attributes.range(prefix.clone()..).take_while(|(name, _)| name.starts_with(&prefix));
    let own = inside.filter_map(|(name, value)| Some((name.strip_prefix(&prefix)?, value)));
    own.filter(|(name, _)| is_own(name)).map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

fn group(attributes: &Attributes) -> Value {
    let mut document = attributes_json(attributes);
    if let Some(ome) = ome_of_older(&document) {
        document["ome"] = ome;
    }
    json!({"zarr_format": 3, "node_type": "group", "attributes": document})
}

/// Returns attributes of OME-Zarr before version 0.5 under the one name `ome`, as version 0.5, the first for Zarr v3,
/// defines them.
fn ome_of_older(attributes: &Value) -> Option<Value> {
    const OWN: [&str; 7] =
        ["multiscales", "omero", "labels", "image-label", "plate", "well", "bioformats2raw.layout"];
    let is_list = attributes.get("multiscales").is_some_and(Value::is_array);
    let is_ome =
        is_list || ["plate", "well", "bioformats2raw.layout"].iter().any(|n| attributes.get(n).is_some());
    let is_labels = attributes.get("labels").is_some_and(Value::is_array);
    if attributes.get("ome").is_some() || !(is_ome || is_labels) {
        return None;
    }
    let mut ome = json!({"version": "0.5"});
    for name in OWN {
        let Some(mut value) = attributes.get(name).cloned() else { continue };
        for part in value.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            part.remove("version");
        }
        if let Some(map) = value.as_object_mut() {
            map.remove("version");
        }
        ome[name] = value;
    }
    Some(ome)
}

/// Returns the document of an array at a level.
///
/// # Errors
/// `NotFound`, `Invalid` if there is no such array or level.
pub(super) fn array(dataset: &Dataset, number: u32, level: u8) -> Result<Value> {
    let info = dataset.array(number)?;
    let number = number as usize;
    // Names depend on the preceding arrays of the same group.
    let group = group_of(info);
    let before = dataset.arrays[..number].iter().filter(|other| group_of(other) == group);
    let names = dimension_names(dataset, before.chain([info])).pop();
    let names = names.ok_or_else(|| Error::internal("expected names of every array's axes"))?;
    document(dataset, info, level, &names)
}

/// Returns whether a group declares its arrays as levels of an image.
fn is_image(dataset: &Dataset, group: &str) -> bool {
    let attribute = |name: &str| match group {
        "" => dataset.attributes.get(name),
        group => dataset.attributes.get(&format!("{group}/{name}")),
    };
    let in_ome = attribute("ome").map(Attribute::to_json).is_some_and(|ome| ome.get("multiscales").is_some());
    in_ome || attribute("multiscales").is_some()
}

fn group_of(array: &ArrayInfo) -> &str {
    parent(path_of(array))
}

/// Returns the path of the group that contains the group or array at a path; empty for the root.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(group, _)| group)
}

fn document(dataset: &Dataset, info: &ArrayInfo, level: u8, names: &[String]) -> Result<Value> {
    let shown = info.level(level)?;
    let (shape, chunk) = (files::shape(info, shown), files::chunk_shape(info, shown));
    let fill = info.decoding.fill_value(info.dtype);
    let mut document = array_document(info.dtype, shape, chunk, &names[..shape.len()], fill);
    if let Some(bytes) = files::text_bytes(info, shown) {
        // As many characters as bytes, because every character takes at least one byte.
        let length_bytes = bytes.saturating_mul(files::CHARACTER_BYTES);
        document["data_type"] =
            json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": length_bytes}});
        document["fill_value"] = json!("");
        document["codecs"] = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    }
    document["attributes"] = attributes(info);
    if world::has_maps(dataset) {
        for (name, value) in world::attributes(info, shown) {
            document["attributes"][name] = value;
        }
    }
    Ok(document)
}

/// Returns the names of the axes of every array. In some formats anonymous axes of several sizes share a name; readers
/// of Zarr expect one size per name and group, so all but the first get their size added. Levels of an image, whose
/// axes are the image's, keep their names.
fn dimension_names<'a>(
    dataset: &Dataset,
    arrays: impl IntoIterator<Item = &'a ArrayInfo>,
) -> Vec<Vec<String>> {
    let mut sizes = BTreeMap::<(&str, &str), u64>::new();
    let mut images = BTreeMap::<&str, bool>::new();
    let mut all = Vec::new();
    for array in arrays {
        let group = group_of(array);
        let is_level = *images.entry(group).or_insert_with(|| is_image(dataset, group));
        let name = |(axis, &size): (&'a Axis, &u64)| {
            let is_first = is_level || *sizes.entry((group, &axis.name)).or_insert(size) == size;
            if is_first { axis.name.clone() } else { format!("{}_{size}", axis.name) }
        };
        all.push(array.axes.iter().zip(array.shape()).map(name).collect());
    }
    all
}

/// Returns the attributes of the file, and CF attributes for decoding stored values if the file describes the decoding
/// in another way.
fn attributes(array: &ArrayInfo) -> Value {
    let mut all = normalized_attributes(array);
    let decoding = &array.decoding;
    if !["scale_factor", "add_offset"].iter().any(|n| all.contains_key(*n)) {
        all.extend(scale_and_offset(decoding));
    }
    if !array.units.is_empty() {
        all.entry("units".into()).or_insert_with(|| Attribute::Text(array.units.clone()));
    }
    let fill = match all.remove("_FillValue") {
        Some(Attribute::Number(value, _)) => Some(value),
        // A fill value that only the format's library knows is declared for floats only: readers would convert integers
        // to doubles.
        _ => decoding
            .fill_value(array.dtype)
            .filter(|_| array.dtype.element().is_float() && !all.contains_key("missing_value")),
    };
    if let Some(fill) = fill {
        all.insert("_FillValue".into(), Attribute::Number(fill, Some(array.dtype.element())));
    }
    xarray_attributes(&all)
}

#[cfg(test)]
mod tests {
    use array::conformance::one_array;

    use super::*;

    fn dataset(arrays: &[(&str, &[(&str, u64)])]) -> Dataset {
        let mut all = one_array("<f4".parse().unwrap(), &[1], &[1]);
        all.arrays = arrays
            .iter()
            .map(|(name, axes)| {
                let shape: Vec<u64> = axes.iter().map(|(_, n)| *n).collect();
                let mut array = one_array("<f4".parse().unwrap(), &shape, &shape).arrays.remove(0);
                array.name = (*name).into();
                array.axes.iter_mut().zip(*axes).for_each(|(axis, (name, _))| axis.name = (*name).into());
                array
            })
            .collect();
        all
    }

    #[test]
    fn groups_keep_the_names_of_their_dimensions_and_their_attributes() {
        let mut data = dataset(&[
            ("x", &[("x", 3)]),
            ("/PRODUCT/no2", &[("layer", 4), ("x", 5)]),
            ("PRODUCT/x", &[("x", 5)]),
            ("PRODUCT/odd", &[("x", 6)]),
            ("PRODUCT/SUPPORT/amf", &[("x", 7)]),
        ]);
        data.attributes = [
            ("title", "root"),
            ("PRODUCT/note", "inner"),
            ("PRODUCT/SUPPORT/note", "innermost"),
            ("m/s", "v"),
        ]
        .map(|(name, value)| (name.to_owned(), Attribute::from(value)))
        .into();
        let root = root(&data);
        let all = &root["consolidated_metadata"]["metadata"];
        assert_eq!(all["PRODUCT/no2"]["dimension_names"], json!(["layer", "x"]));
        assert_eq!(all["PRODUCT/odd"]["dimension_names"], json!(["x_6"]));
        assert_eq!(all["PRODUCT/SUPPORT/amf"]["dimension_names"], json!(["x"]));
        assert_eq!(root["attributes"], json!({"title": "root", "m/s": "v"}));
        assert_eq!(all["PRODUCT"]["attributes"], json!({"note": "inner"}));
        assert_eq!(group_at(&data, "PRODUCT/SUPPORT")["attributes"], json!({"note": "innermost"}));
        for (number, info) in (0..).zip(&data.arrays) {
            assert_eq!(array(&data, number, 0).unwrap(), all[path_of(info)]);
        }
    }

    #[test]
    fn members_of_a_group_are_adjacent() {
        let x: &[(&str, u64)] = &[("x", 3)];
        let data = dataset(&[("A/v", x), ("B/v", x), ("A/C/v", x), ("B/D/v", x), ("A/u", x)]);
        let root = root(&data);
        let all = root["consolidated_metadata"]["metadata"].as_object().unwrap();
        assert_eq!(all.len(), 9);
        for depth in 1..3 {
            let mut parents: Vec<&str> =
                all.keys().filter(|key| key.matches('/').count() == depth).map(|key| parent(key)).collect();
            parents.dedup();
            assert_eq!(parents, if depth == 1 { ["A", "B"] } else { ["A/C", "B/D"] });
        }
    }

    #[test]
    fn texts_have_no_attribute_for_the_encoding_of_their_bytes() {
        let mut data = dataset(&[("names", &[("station", 3), ("string5", 5)])]);
        let text = &mut data.arrays[0];
        text.dtype = "|u1".parse().unwrap();
        text.meaning = array::Meaning::Text;
        text.attributes.insert("_Encoding".into(), Attribute::from("utf-8"));
        text.attributes.insert("long_name".into(), Attribute::from("name"));
        let document = array(&data, 0, 0).unwrap();
        assert_eq!(document["data_type"]["name"], "fixed_length_utf32");
        assert_eq!(document["attributes"], json!({"long_name": "name"}));
    }

    #[test]
    fn ten_thousand_arrays_are_all_in_the_root() {
        let names: Vec<String> = (0..10_000).map(|i| format!("v{i:05}")).collect();
        let arrays: Vec<(&str, &[(&str, u64)])> =
            names.iter().map(|n| (n.as_str(), &[("x", 2)][..])).collect();
        let root = root(&dataset(&arrays));
        let all = root["consolidated_metadata"]["metadata"].as_object().unwrap();
        assert_eq!(all.len(), 10_000);
    }

    #[test]
    fn older_ome_zarr_is_converted_to_version_0_5() {
        let mut data = dataset(&[("0", &[("x", 3)])]);
        let old = json!([{"version": "0.4", "axes": [{"name": "x", "type": "space"}], "datasets": [{"path": "0"}]}]);
        data.attributes.insert("multiscales".into(), Attribute::from_json(old).unwrap());
        let root = root(&data);
        let ome = &root["attributes"]["ome"];
        assert_eq!((&ome["version"], &ome["multiscales"][0]["version"]), (&json!("0.5"), &Value::Null));
        assert_eq!(ome["multiscales"][0]["datasets"], json!([{"path": "0"}]));
    }
}
