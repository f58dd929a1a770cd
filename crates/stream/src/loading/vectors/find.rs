//! Recognition of vectors: arrays that are the components of one vector field, by names, standard names or an axis.

use std::collections::{BTreeMap, BTreeSet};

use array::{ArrayInfo, AxisKind, ByteOrder, DType, Dataset, Decoding, ElementType, Meaning, Storage};

/// Most vector fields of a data set that get an array of their lengths.
const MAX_FIELDS: usize = 64;
/// Most components of one vector.
const MAX_COMPONENTS: usize = 3;

/// Components of one vector field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VectorField {
    /// Numbers of the component arrays, or of the one array that has them along an axis.
    pub(super) arrays: Vec<u32>,
    /// Axis of the components, and how many there are.
    pub(super) axis: Option<(usize, u64)>,
}

/// Returns the vector fields of a data set, each with the description of the array of its lengths.
pub(super) fn fields_of(dataset: &Dataset) -> Vec<(VectorField, ArrayInfo)> {
    let names: BTreeSet<&str> = dataset.arrays.iter().map(|array| array.name.as_str()).collect();
    let mut found = Vec::new();
    for field in along_axes(dataset).into_iter().chain(by_names(dataset)) {
        let Some(info) = described(dataset, &field) else { continue };
        if found.len() < MAX_FIELDS && !names.contains(info.name.as_str()) && info.check().is_ok() {
            found.push((field, info));
        }
    }
    found
}

/// Returns the arrays of floats with an axis of two or three components.
fn along_axes(dataset: &Dataset) -> Vec<VectorField> {
    let field = |(number, array): (u32, &ArrayInfo)| {
        let axis = array.axes.iter().position(|axis| axis.kind == AxisKind::Channel)?;
        let count = array.shape()[axis];
        let is_vector = (2..=MAX_COMPONENTS as u64).contains(&count)
            && array.dtype.element().is_float()
            && is_usable(array)
            // Channels of a microscope have names or colors.
            && !["omero", "channels"].iter().any(|name| array.attributes.contains_key(*name));
        is_vector.then_some(VectorField { arrays: vec![number], axis: Some((axis, count)) })
    };
    (0..).zip(&dataset.arrays).filter_map(field).collect()
}

/// Returns the groups of arrays whose names or standard names differ in the component only.
fn by_names(dataset: &Dataset) -> Vec<VectorField> {
    let mut groups: BTreeMap<String, [Option<u32>; MAX_COMPONENTS]> = BTreeMap::new();
    for (number, array) in (0..).zip(&dataset.arrays).filter(|(_, array)| is_usable(array)) {
        for (key, component) in component_keys(array) {
            groups.entry(key).or_default()[component].get_or_insert(number);
        }
    }
    let mut fields: Vec<VectorField> = Vec::new();
    for [first, second, third] in groups.into_values() {
        let (Some(first), Some(second)) = (first, second) else { continue };
        let alike = |a: u32, b: u32| {
            let of = |number: u32| &dataset.arrays[number as usize];
            a != b && is_alike(of(a), of(b))
        };
        if !alike(first, second) {
            continue;
        }
        let third = third.filter(|&third| alike(first, third) && third != second);
        let arrays: Vec<u32> = [Some(first), Some(second), third].into_iter().flatten().collect();
        // The same vector may be found by its names and by its standard names; more components are better.
        if let Some(known) = fields.iter_mut().find(|known| known.arrays[..2] == arrays[..2]) {
            if known.arrays.len() < arrays.len() {
                known.arrays = arrays;
            }
            continue;
        }
        fields.push(VectorField { arrays, axis: None });
    }
    fields.sort_by(|a, b| a.arrays.cmp(&b.arrays));
    fields
}

/// Whether lengths can be computed of values of an array.
fn is_usable(array: &ArrayInfo) -> bool {
    array.meaning == Meaning::Intensity
        && array.decoding.obstacle.is_none()
        && !array.shape().contains(&0)
        && array.axes.iter().filter(|axis| axis.kind.is_spatial()).count() >= 2
}

/// Whether two arrays have the same units and lie on the same grid, in the same blocks.
fn is_alike(a: &ArrayInfo, b: &ArrayInfo) -> bool {
    a.units == b.units
        && a.axes == b.axes
        && a.levels.len() == b.levels.len()
        && a.levels.iter().zip(&b.levels).all(|(a, b)| {
            (&a.shape, &a.block, a.origin) == (&b.shape, &b.block, b.origin)
                && a.world_from_voxel == b.world_from_voxel
        })
}

/// Returns the keys under which the components of a vector meet, and which component this array is for each.
fn component_keys(array: &ArrayInfo) -> Vec<(String, usize)> {
    let (group, name) = array.name.rsplit_once('/').unwrap_or(("", &array.name));
    let mut keys = Vec::new();
    if let Some(standard) = array.attributes.get("standard_name").and_then(|name| name.text()) {
        for (component, word) in ["eastward", "northward", "upward"].into_iter().enumerate() {
            if standard.contains(word) {
                keys.push((format!("{group}/standard {}", standard.replace(word, "*")), component));
            }
        }
        keys.extend(
            with_word(standard, &["x", "y", "z"]).map(|(key, n)| (format!("{group}/standard {key}"), n)),
        );
    }
    // Arrays called `x`, `y` and `z` are positions.
    let words: &[&[&str]] =
        if name.len() > 1 { &[&["x", "y", "z"], &["u", "v", "w"]] } else { &[&["u", "v", "w"]] };
    for letters in words {
        keys.extend(with_word(name, letters).map(|(key, n)| (format!("{group}/{} {key}", letters[0]), n)));
    }
    let letter = |c: char, letters: &str| letters.find(c.to_ascii_lowercase());
    let mut chars = name.chars();
    if name.len() > 1
        && let Some(last) = chars.next_back()
        && let Some(component) = letter(last, "xyz")
    {
        keys.push((format!("{group}/last {}", chars.as_str()), component));
    }
    let mut chars = name.chars();
    if name.len() > 1
        && let Some(first) = chars.next()
        && let Some(component) = letter(first, "uvw")
    {
        keys.push((format!("{group}/first {}", chars.as_str()), component));
    }
    keys
}

/// Returns a name with `*` in place of the word that is one of these letters, and which one.
fn with_word(name: &str, letters: &[&str]) -> Option<(String, usize)> {
    let is_between = |c: char| !c.is_alphanumeric();
    let words: Vec<&str> = name.split_inclusive(is_between).collect();
    let found = words.iter().enumerate().find_map(|(at, word)| {
        let bare = word.trim_end_matches(is_between);
        let component = letters.iter().position(|letter| bare.eq_ignore_ascii_case(letter))?;
        Some((at, bare.len(), component))
    });
    let (at, length, component) = found?;
    let before: String = words[..at].concat();
    let after: String = words[at + 1..].concat();
    Some((format!("{before}*{}{after}", &words[at][length..]), component))
}

/// Returns the description of the array of lengths.
fn described(dataset: &Dataset, field: &VectorField) -> Option<ArrayInfo> {
    let names: Vec<&str> = field
        .arrays
        .iter()
        .map(|&number| Some(dataset.arrays.get(number as usize)?.name.as_str()))
        .collect::<Option<_>>()?;
    let first = dataset.arrays.get(*field.arrays.first()? as usize)?;
    let dtype = DType::new(ElementType::F32, ByteOrder::Little);
    let mut info = ArrayInfo {
        name: format!("|{}|", names.join(",")),
        dtype,
        decoding: Decoding::identity(dtype),
        meaning: Meaning::Intensity,
        storage: Storage::default(),
        attributes: array::Attributes::new(),
        ..first.clone()
    };
    info.notes.retain(|note| note.starts_with("axis "));
    let of = match field.axis {
        Some((axis, count)) => format!("the {count} components along `{}`", first.axes[axis].name),
        None => format!("`{}`", names.join("`, `")),
    };
    info.notes.push(format!(
        "length of the vector of {of}, computed by the viewer; coarser levels show the length of the mean vector"
    ));
    if let Some((axis, _)) = field.axis {
        info.axes.remove(axis);
        for level in &mut info.levels {
            level.shape.remove(axis);
            level.block.remove(axis);
            level.factor.remove(axis);
        }
    }
    for level in &mut info.levels {
        level.chunk = None;
    }
    Some(info)
}

#[cfg(test)]
mod tests {
    use array::Attribute;
    use array::conformance::one_array;

    use super::*;

    fn dataset(names: &[&str]) -> Dataset {
        let mut dataset = one_array("<f4".parse().unwrap(), &[4, 5, 6], &[2, 3, 6]);
        let kinds = [AxisKind::Z, AxisKind::Y, AxisKind::X];
        dataset.arrays[0].axes.iter_mut().zip(kinds).for_each(|(axis, kind)| axis.kind = kind);
        let first = dataset.arrays.remove(0);
        dataset.arrays = names.iter().map(|&name| ArrayInfo { name: name.into(), ..first.clone() }).collect();
        dataset
    }

    fn found(dataset: &Dataset) -> Vec<String> {
        fields_of(dataset).into_iter().map(|(_, info)| info.name).collect()
    }

    #[test]
    fn components_are_found_by_the_usual_names() {
        for names in [
            &["u", "v", "w"][..],
            &["U", "V", "W"],
            &["vx", "vy", "vz"],
            &["Bx", "By", "Bz"],
            &["velocity_x", "velocity_y", "velocity_z"],
            &["x-velocity", "y-velocity", "z-velocity"],
            &["momx", "momy", "momz"],
            &["u10", "v10"],
            &["uas", "vas"],
            &["flow/u", "flow/v"],
        ] {
            assert_eq!(found(&dataset(names)), [format!("|{}|", names.join(","))]);
            let mut mixed = names.to_vec();
            mixed.reverse();
            mixed.insert(1, "density");
            assert_eq!(found(&dataset(&mixed)), [format!("|{}|", names.join(","))], "in any order");
        }
    }

    #[test]
    fn arrays_that_are_no_components_are_left_alone() {
        for names in [&["x", "y", "z"][..], &["u", "t"], &["max", "min"], &["a/u", "b/v"], &["velocity_x"]] {
            assert!(found(&dataset(names)).is_empty(), "{names:?}");
        }
        let mut other = dataset(&["u", "v"]);
        other.arrays[1].units = "K".into();
        assert!(found(&other).is_empty(), "other units");
        let mut other = dataset(&["u", "v"]);
        other.arrays[1].levels[0].block = vec![1, 3, 6];
        assert!(found(&other).is_empty(), "other blocks");
        let mut other = dataset(&["u", "v", "w"]);
        other.arrays[2].units = "Pa s-1".into();
        assert_eq!(found(&other), ["|u,v|"], "a vertical motion in other units");
    }

    #[test]
    fn standard_names_of_winds_are_known() {
        let mut winds = dataset(&["wind_e", "wind_n"]);
        for (array, word) in winds.arrays.iter_mut().zip(["eastward", "northward"]) {
            array.attributes.insert("standard_name".into(), Attribute::Text(format!("{word}_wind")));
        }
        assert_eq!(found(&winds), ["|wind_e,wind_n|"]);
    }

    #[test]
    fn an_axis_of_components_is_one_vector() {
        let mut field = one_array("<f4".parse().unwrap(), &[4, 5, 3], &[4, 5, 1]);
        let kinds = [AxisKind::Y, AxisKind::X, AxisKind::Channel];
        field.arrays[0].axes.iter_mut().zip(kinds).for_each(|(axis, kind)| axis.kind = kind);
        field.arrays[0].name = "b".into();
        let (vector, info) = fields_of(&field).remove(0);
        assert_eq!((vector.axis, info.name.as_str(), info.shape()), (Some((2, 3)), "|b|", &[4, 5][..]));
        field.arrays[0].attributes.insert("channels".into(), Attribute::Text("DAPI".into()));
        assert!(fields_of(&field).is_empty());
    }
}
