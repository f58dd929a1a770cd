//! NetCDF-4's conventions over HDF5: which data sets are variables, their names, and their dimensions.
//!
//! A dimension is a data set ("scale") that variables point at; it may hold coordinates or be there for its
//! length only. The scheme is HDF5's dimension scales, so files of other programs that use them profit too.

use std::collections::HashMap;

use super::library::Value;
use super::walk::{Tree, Values, Variable};

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
/// The `NAME` of a scale that is no variable begins so.
const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable";
/// Put before the name of a variable that shares its name with a dimension it does not describe.
const NOT_COORDINATE: &str = "_nc4_non_coord_";

/// A dimension of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dimension {
    /// Its short name.
    pub(super) name: String,
    /// Number of the variable that holds its coordinates, in [`Tree::variables`].
    pub(super) coordinate: Option<usize>,
}

/// Whether the file follows the conventions.
pub(super) fn is_netcdf(tree: &Tree) -> bool {
    let root = tree.groups.first().map(|g| &g.attributes);
    root.is_some_and(|a| a.contains_key("_NCProperties") || a.contains_key("_nc3_strict"))
        || tree.variables.iter().any(|v| v.attributes.contains_key("_Netcdf4Dimid") || is_scale(v))
}

/// Whether an attribute is shown.
pub(super) fn is_shown(name: &str) -> bool {
    !HIDDEN.contains(&name)
}

/// Whether a data set is only there to give a dimension its length.
pub(super) fn is_bare_dimension(variable: &Variable) -> bool {
    is_scale(variable) && text(&variable.attributes, "NAME").is_some_and(|n| n.starts_with(NO_VARIABLE))
}

/// The path of a variable as netCDF shows it.
pub(super) fn shown_path(path: &str) -> String {
    let (group, name) = path.rsplit_once('/').map_or(("", path), |(group, name)| (group, name));
    let name = name.strip_prefix(NOT_COORDINATE).unwrap_or(name);
    if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") }
}

/// Finds dimensions of variables.
pub(super) struct Dimensions<'a> {
    tree: &'a Tree,
    /// By file and address; of several names the first.
    by_address: HashMap<(usize, u64), usize>,
    by_number: HashMap<i64, usize>,
}

impl<'a> Dimensions<'a> {
    pub(super) fn new(tree: &'a Tree) -> Self {
        let variables = || tree.variables.iter().enumerate();
        Self {
            tree,
            by_address: variables()
                .rev()
                .map(|(number, v)| (address(v, v.id.token.address()), number))
                .collect(),
            by_number: variables()
                .filter_map(|(number, v)| {
                    integers(&v.attributes, "_Netcdf4Dimid").first().map(|id| (*id, number))
                })
                .collect(),
        }
    }

    /// The dimension of every axis of variable `number`, where the file names one.
    pub(super) fn of(&self, number: usize, axes: usize) -> Vec<Option<Dimension>> {
        let Some(variable) = self.tree.variables.get(number) else { return vec![None; axes] };
        if let Some(Value::ReferenceLists(lists)) = variable.attributes.get("DIMENSION_LIST") {
            let scale = |list: &Vec<u64>| {
                list.first().and_then(|&to| self.by_address.get(&address(variable, to))).copied()
            };
            let mut found: Vec<_> = lists.iter().map(|list| scale(list).map(|n| self.dimension(n))).collect();
            found.resize(axes, None);
            return found;
        }
        let numbers = integers(&variable.attributes, "_Netcdf4Coordinates");
        if numbers.len() == axes && axes > 1 {
            let scale = |id: &i64| self.by_number.get(id).map(|&n| self.dimension(n));
            return numbers.iter().map(scale).collect();
        }
        let mut found = vec![None; axes];
        if let (true, Some(first)) = (is_scale(variable), found.first_mut()) {
            *first = Some(self.dimension(number));
        }
        found
    }

    fn dimension(&self, scale: usize) -> Dimension {
        let name = self.tree.variables.get(scale).map_or(String::new(), |v| {
            let path = shown_path(&v.path);
            path.rsplit('/').next().unwrap_or_default().to_owned()
        });
        let described = self.tree.variables.get(scale).is_some_and(|v| {
            !is_bare_dimension(v) && v.facts.shape.as_ref().is_some_and(|shape| shape.len() == 1)
        });
        Dimension { name, coordinate: described.then_some(scale) }
    }
}

/// Addresses are those of one file.
fn address(variable: &Variable, address: u64) -> (usize, u64) {
    (variable.id.file, address)
}

/// The name of the dimension that a data set is, if it is one.
pub(super) fn scale_name(variable: &Variable) -> Option<String> {
    let path = is_scale(variable).then(|| shown_path(&variable.path))?;
    Some(path.rsplit('/').next().unwrap_or_default().to_owned())
}

fn is_scale(variable: &Variable) -> bool {
    text(&variable.attributes, "CLASS") == Some("DIMENSION_SCALE")
}

/// A text attribute.
pub(super) fn text<'a>(values: &'a Values, name: &str) -> Option<&'a str> {
    match values.get(name)? {
        Value::Texts(texts) => texts.first().map(String::as_str),
        _ => None,
    }
}

fn integers(values: &Values, name: &str) -> Vec<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "numbers of dimensions are small integers")]
    numbers(values, name).into_iter().map(|v| v as i64).collect()
}

/// A numeric attribute; empty when there is none.
pub(super) fn numbers(values: &Values, name: &str) -> Vec<f64> {
    match values.get(name) {
        Some(Value::Numbers { dtype, bytes }) => {
            let count = bytes.len() / dtype.size_bytes();
            (0..count).filter_map(|i| dtype.scalar_at(bytes, i)).map(array::Scalar::as_f64).collect()
        }
        _ => Vec::new(),
    }
}
