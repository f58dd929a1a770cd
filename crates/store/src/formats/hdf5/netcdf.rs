//! Conventions of NetCDF-4 over HDF5: the data sets that are variables, their names, and their dimensions.
//!
//! A dimension is a data set ("scale") that variables refer to; it holds coordinates or only gives the dimension its length. The
//! scheme is HDF5's dimension scales, so it applies to files of other programs that use them.

use std::collections::{HashMap, HashSet};

use super::library::{AttributeValue, DatasetInfo, TextForm};
use super::walk::{AttributeValues, FileTree, Hdf5Variable};

/// Attributes that netCDF-4 and HDF5's dimension scales keep for themselves.
const HIDDEN: &[&str] = &[
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "DIMENSION_LABELS",
    "REFERENCE_LIST",
    "_NCProperties",
    "_Netcdf4Coordinates",
    "_Netcdf4Dimid",
    "_NCCompression",
    "_nc3_strict",
];
/// Prefix of the attribute `NAME` of a scale that is not a variable.
const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable";
/// Prefix of a variable that has the name of a dimension that it does not describe.
const NOT_COORDINATE: &str = "_nc4_non_coord_";

/// Dimension of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NetcdfDimension {
    /// Name without the path.
    pub(super) name: String,
    /// Number of the variable that holds its coordinates, in [`FileTree::variables`].
    pub(super) coordinate: Option<usize>,
}

/// Whether netCDF's library or h5netcdf wrote the file. Dimension scales alone do not prove it: any program can write them.
pub(super) fn is_netcdf(tree: &FileTree) -> bool {
    let is_marked =
        |root: &AttributeValues| root.contains_key("_NCProperties") || root.contains_key("_nc3_strict");
    tree.groups.first().is_some_and(|root| is_marked(&root.attributes))
        || tree.variables.iter().any(|v| v.attributes.contains_key("_Netcdf4Dimid") || is_bare_dimension(v))
}

/// Whether a data set of the file names an axis.
pub(super) fn has_scales(tree: &FileTree) -> bool {
    tree.variables.iter().any(is_scale)
}

/// Whether an attribute is shown.
pub(super) fn is_shown(name: &str) -> bool {
    !HIDDEN.contains(&name)
}

/// Whether a data set is only there to give a dimension its length.
pub(super) fn is_bare_dimension(variable: &Hdf5Variable) -> bool {
    is_scale(variable) && text(&variable.attributes, "NAME").is_some_and(|n| n.starts_with(NO_VARIABLE))
}

/// Whether texts of one byte are characters of a netCDF variable, which lie along its last dimension.
pub(super) fn is_of_characters(facts: &DatasetInfo, attributes: &AttributeValues) -> bool {
    let has_dimensions = ["DIMENSION_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates"]
        .iter()
        .any(|name| attributes.contains_key(*name))
        || text(attributes, "CLASS") == Some("DIMENSION_SCALE");
    let is_one_byte = facts.shape.as_ref().is_some_and(|shape| shape.len() > 1 && shape.ends_with(&[1]));
    matches!(facts.text, Some(TextForm::Fixed(_))) && has_dimensions && is_one_byte
}

/// Numbers of variables whose characters are texts of one byte each, as xarray has it: a variable of their group has the name of
/// their last dimension, or has that dimension and is no text along it.
pub(super) fn single_characters(tree: &FileTree) -> Vec<usize> {
    let are_characters = |v: &Hdf5Variable| v.facts.text == Some(TextForm::Characters);
    if !tree.variables.iter().any(are_characters) {
        return Vec::new();
    }
    let dimensions = DimensionScales::new(tree, is_netcdf(tree));
    // By group and name: variables, and dimensions that are not of texts alone.
    let mut taken = HashSet::new();
    let mut last_dimensions = Vec::new();
    for (number, variable) in tree.variables.iter().enumerate().filter(|(_, v)| !is_bare_dimension(v)) {
        taken.insert((variable.group, short_name(&variable.path)));
        let Some(extent) = variable.extent() else { continue };
        let found = dimensions.of(number, extent.len()).into_iter();
        let mut names: Vec<Option<String>> = found.map(|d| d.map(|d| d.name)).collect();
        let is_text = matches!(variable.facts.text, Some(TextForm::Fixed(_) | TextForm::Characters));
        let last = if is_text { names.pop().flatten() } else { None };
        let others = names.into_iter().flatten().filter(|name| Some(name) != last.as_ref());
        taken.extend(others.map(|name| (variable.group, name)));
        if let (Some(last), true) = (last, are_characters(variable)) {
            last_dimensions.push((number, (variable.group, last)));
        }
    }
    let single = last_dimensions.into_iter().filter(|(_, dimension)| taken.contains(dimension));
    single.map(|(number, _)| number).collect()
}

/// The path of a variable as netCDF shows it.
pub(super) fn shown_path(path: &str) -> String {
    let (group, name) = path.rsplit_once('/').map_or(("", path), |(group, name)| (group, name));
    let name = name.strip_prefix(NOT_COORDINATE).unwrap_or(name);
    if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") }
}

/// The last part of [`shown_path`].
fn short_name(path: &str) -> String {
    let path = shown_path(path);
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Finds dimensions of variables.
pub(super) struct DimensionScales<'a> {
    tree: &'a FileTree,
    /// Whether netCDF's library wrote the file: other programs attach scales to data sets of other lengths.
    is_netcdf: bool,
    /// Lengths of scales, by the number of their variable.
    lengths: HashMap<usize, u64>,
    anonymous: HashMap<(usize, usize), String>,
    /// Variables by file and address; the first of several names.
    by_address: HashMap<(usize, u64), usize>,
    by_number: HashMap<i64, usize>,
}

impl<'a> DimensionScales<'a> {
    /// Finds the scales of all variables; `is_netcdf` is the result of [`is_netcdf`].
    pub(super) fn new(tree: &'a FileTree, is_netcdf: bool) -> Self {
        let variables = || tree.variables.iter().enumerate();
        let mut dimensions = Self {
            tree,
            is_netcdf,
            lengths: HashMap::new(),
            anonymous: HashMap::new(),
            by_address: variables()
                .rev()
                .map(|(number, v)| (address(v, v.id.token.address()), number))
                .collect(),
            // Variables of several axes carry the number of their first dimension too.
            by_number: variables()
                .filter(|(_, v)| is_scale(v))
                .filter_map(|(number, v)| {
                    integers(&v.attributes, "_Netcdf4Dimid").first().map(|id| (*id, number))
                })
                .collect(),
        };
        dimensions.lengths = dimensions.longest();
        if dimensions.is_netcdf {
            dimensions.anonymous = dimensions.anonymous();
        }
        dimensions
    }

    /// The dimension of every axis of variable `number`, where the file names one.
    pub(super) fn of(&self, number: usize, axes: usize) -> Vec<Option<NetcdfDimension>> {
        let dimension = |(axis, scale): (usize, Option<usize>)| match scale {
            Some(scale) => Some(self.dimension(scale)),
            None => {
                let name = self.anonymous.get(&(number, axis))?.clone();
                Some(NetcdfDimension { name, coordinate: None })
            }
        };
        self.scales(number, axes).into_iter().enumerate().map(dimension).collect()
    }

    /// The names that netCDF gives to axes without a dimension, by variable and axis: one for each length in a group, and
    /// another one where a variable has it twice.
    fn anonymous(&self) -> HashMap<(usize, usize), String> {
        let mut next = self.tree.variables.iter().filter(|v| is_scale(v)).count();
        let mut known: HashMap<(usize, u64), Vec<String>> = HashMap::new();
        let mut names = HashMap::new();
        for (number, variable) in self.tree.variables.iter().enumerate() {
            let Some(shape) = variable.extent().filter(|_| !is_scale(variable)) else { continue };
            let mut used: HashMap<u64, usize> = HashMap::new();
            let scales = self.scales(number, shape.len());
            for (axis, (_, &length)) in scales.iter().zip(shape).enumerate().filter(|(_, (s, _))| s.is_none())
            {
                let of_length = known.entry((variable.group, length)).or_default();
                let place = used.entry(length).or_default();
                if *place == of_length.len() {
                    of_length.push(format!("phony_dim_{next}"));
                    next += 1;
                }
                names.insert((number, axis), of_length[*place].clone());
                *place += 1;
            }
        }
        names
    }

    /// Elements per axis of variable `number`, whose data set has `shape`: that of a dimension that may grow is the longest
    /// of all variables that have it, and shorter ones are as if they were filled.
    pub(super) fn shape(&self, number: usize, shape: &[u64]) -> Vec<u64> {
        let Some(variable) = self.tree.variables.get(number) else { return shape.to_vec() };
        let length = |(axis, (scale, own)): (usize, (Option<usize>, &u64))| {
            let can_grow = self.is_netcdf && variable.facts.unlimited.contains(&axis);
            let longest = scale.filter(|_| can_grow).and_then(|scale| self.lengths.get(&scale));
            longest.map_or(*own, |&longest| longest.max(*own))
        };
        self.scales(number, shape.len()).into_iter().zip(shape).enumerate().map(length).collect()
    }

    /// The longest extent along each scale.
    fn longest(&self) -> HashMap<usize, u64> {
        let mut lengths = HashMap::new();
        for (number, variable) in self.tree.variables.iter().enumerate() {
            let Some(shape) = variable.extent() else { continue };
            for (scale, &own) in self.scales(number, shape.len()).into_iter().zip(shape) {
                let Some(scale) = scale else { continue };
                let longest = lengths.entry(scale).or_insert(own);
                *longest = own.max(*longest);
            }
        }
        lengths
    }

    /// The scale of every axis of variable `number`, as numbers of variables.
    fn scales(&self, number: usize, axes: usize) -> Vec<Option<usize>> {
        let Some(variable) = self.tree.variables.get(number) else { return vec![None; axes] };
        if let Some(AttributeValue::ReferenceLists(lists)) = variable.attributes.get("DIMENSION_LIST") {
            let scale = |list: &Vec<u64>| {
                list.first().and_then(|&to| self.by_address.get(&address(variable, to))).copied()
            };
            let mut found: Vec<_> = lists.iter().map(scale).collect();
            found.resize(axes, None);
            return found;
        }
        let numbers = integers(&variable.attributes, "_Netcdf4Coordinates");
        if numbers.len() == axes && (axes > 1 || !is_scale(variable)) {
            return numbers.iter().map(|id| self.by_number.get(id).copied()).collect();
        }
        let mut found = vec![None; axes];
        if let (true, Some(first)) = (is_scale(variable), found.first_mut()) {
            *first = Some(number);
        }
        found
    }

    fn dimension(&self, scale: usize) -> NetcdfDimension {
        let name = self.tree.variables.get(scale).map_or(String::new(), |v| short_name(&v.path));
        let described = self.tree.variables.get(scale).is_some_and(|v| {
            !is_bare_dimension(v)
                && v.facts.text.is_none()
                && v.facts.shape.as_ref().is_some_and(|shape| shape.len() == 1)
        });
        NetcdfDimension { name, coordinate: described.then_some(scale) }
    }
}

/// Addresses are those of one file.
fn address(variable: &Hdf5Variable, address: u64) -> (usize, u64) {
    (variable.id.file, address)
}

/// The name of the dimension that a data set is, if it is one.
pub(super) fn scale_name(variable: &Hdf5Variable) -> Option<String> {
    is_scale(variable).then(|| short_name(&variable.path))
}

pub(super) fn is_scale(variable: &Hdf5Variable) -> bool {
    text(&variable.attributes, "CLASS") == Some("DIMENSION_SCALE")
}

/// A text attribute.
pub(super) fn text<'a>(values: &'a AttributeValues, name: &str) -> Option<&'a str> {
    match values.get(name)? {
        AttributeValue::Texts(texts) => texts.first().map(String::as_str),
        _ => None,
    }
}

fn integers(values: &AttributeValues, name: &str) -> Vec<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "numbers of dimensions are small integers")]
    numbers(values, name).into_iter().map(|v| v as i64).collect()
}

/// A numeric attribute; empty when there is none.
pub(super) fn numbers(values: &AttributeValues, name: &str) -> Vec<f64> {
    match values.get(name) {
        Some(AttributeValue::Numbers { dtype, bytes }) => {
            let count = bytes.len() / dtype.size_bytes();
            (0..count).filter_map(|i| dtype.scalar_at(bytes, i)).map(array::Scalar::as_f64).collect()
        }
        _ => Vec::new(),
    }
}
