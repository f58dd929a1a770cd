//! Description of the objects of a file as arrays: names, axes, attributes, decoding.

use std::collections::HashMap;

use array::{
    ArrayInfo, Attributes, Axis, DType, Dataset, DatasetId, Error, Filter, Generation, Group, LeftOut,
    MAX_TEXT_BYTES, MAX_TEXT_ELEMENTS, Result, Scalar,
};

use super::coordinates::CoordinateReader;
use super::files::{LinkedFiles, ObjectId};
use super::library::{AttributeValue, DatasetLayout, Datatype, TextForm};
use super::netcdf::{self, DimensionScales};
use super::walk::{AttributeValues, FileTree, Hdf5Variable};
use super::{Hdf5, Hdf5Array, filters, openpmd};
use crate::{FileBytes, formats::common::cf, formats::common::describe, formats::common::text};

/// Version of the interpretation of values; part of the identity, so that data cached by earlier versions are not found.
const VALUES_VERSION: &[u8] = b"hdf5-5";

/// Returns the identity of the contents of these files.
pub(super) fn identity(files: &LinkedFiles) -> DatasetId {
    let parts = files.bytes().flat_map(FileBytes::identity);
    DatasetId::of(parts.chain([VALUES_VERSION.to_vec()]))
}

/// Returns a description without arrays.
pub(super) fn empty(files: &LinkedFiles) -> Dataset {
    let name = files.first().path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    Dataset {
        id: identity(files),
        generation: Generation(0),
        name,
        format: "HDF5".into(),
        arrays: Vec::new(),
        attributes: Attributes::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
        groups: Vec::new(),
    }
}

/// Describes a whole file; returns the stored array for every array of the description.
pub(super) fn describe(hdf5: &Hdf5, tree: FileTree) -> (Dataset, Vec<Hdf5Array>) {
    let mut dataset = empty(&hdf5.files);
    dataset.attributes = file_attributes(&tree);
    dataset.groups = groups(&tree);
    let mut texts = VariableTexts { left_bytes: MAX_KEPT_TEXT_BYTES, left_out: Vec::new() };
    let is_netcdf = netcdf::is_netcdf(&tree);
    if is_netcdf {
        dataset.format = "NetCDF-4".into();
    }
    let arrays = if is_netcdf || netcdf::has_scales(&tree) {
        arrays_with_dimensions(hdf5, &tree, is_netcdf, &mut texts)
    } else {
        let mut array = |v| plain_array(&tree, v).or_else(|| text_array(hdf5, v, None, &mut texts));
        tree.variables.iter().filter_map(&mut array).collect()
    };
    let mut stored: Vec<Hdf5Array> = Vec::with_capacity(arrays.len());
    // Names of one data set share its decoded chunks.
    let mut numbers: HashMap<ObjectId, usize> = HashMap::new();
    for DescribedVariable { variable, mut info, texts } in arrays {
        // An array beyond a limit is left out alone.
        if let Err(e) = info.check() {
            dataset.left_out.push(LeftOut { name: info.name, what: e.message().to_owned(), value: None });
            continue;
        }
        info.storage.filters = packed_by(variable);
        info.storage.unlimited.clone_from(&variable.facts.unlimited);
        let same = numbers.entry(variable.id).or_insert(stored.len());
        let (same, shape) = (u32::try_from(*same).unwrap_or(u32::MAX), info.shape().to_vec());
        let mut array = Hdf5Array::of(variable, same, shape, info.dtype.size_bytes());
        if let Some(rows) = texts {
            array.store_texts(rows);
        }
        stored.push(array);
        dataset.arrays.push(info);
    }
    dataset.left_out.extend(texts.left_out);
    dataset.left_out.extend(tree.left_out);
    dataset.warnings = tree.warnings;
    (dataset, stored)
}

/// Lists all groups, also empty ones.
fn groups(tree: &FileTree) -> Vec<Group> {
    let mut groups: Vec<Group> =
        tree.groups.iter().map(|group| Group { path: group.path.clone(), ..Group::default() }).collect();
    for variable in &tree.variables {
        let (Some(name), [0]) = (netcdf::scale_name(variable), &variable.facts.unlimited[..]) else {
            continue;
        };
        if let Some(group) = groups.get_mut(variable.group) {
            group.unlimited.push(name);
        }
    }
    groups
}

/// Lists the filters of the chunks of a variable.
fn packed_by(variable: &Hdf5Variable) -> Vec<Filter> {
    let filter = |f: &super::library::PipelineFilter| Filter {
        name: filters::name(f.id),
        parameters: f.parameters.clone(),
    };
    variable.facts.filters.iter().map(filter).collect()
}

/// Returns the attributes of all groups; names of those below the root begin with the path of the group.
fn file_attributes(tree: &FileTree) -> Attributes {
    let of_group = |group: &super::walk::GroupNode| {
        let path = group.path.clone();
        let named = move |name: String| if path.is_empty() { name } else { format!("{path}/{name}") };
        cf::attributes(&cf_values(&group.attributes))
            .into_iter()
            .map(move |(name, value)| (named(name), value))
    };
    tree.groups.iter().flat_map(of_group).collect()
}

/// Returns type and shape of an array of numbers.
pub(super) fn number_array(variable: &Hdf5Variable) -> Option<(DType, &[u64])> {
    match (&variable.facts.element, &variable.facts.shape, variable.facts.text) {
        (Datatype::Number(dtype), Some(shape), None) => Some((*dtype, shape)),
        _ => None,
    }
}

/// Variable with the description of its array.
struct DescribedVariable<'a> {
    variable: &'a Hdf5Variable,
    info: ArrayInfo,
    /// Variable-length strings, each padded to the longest.
    texts: Option<Vec<u8>>,
}

/// Most bytes of variable-length strings that are kept in memory for one HDF5 file.
const MAX_KEPT_TEXT_BYTES: u64 = 8 * MAX_TEXT_BYTES;
/// Bytes that are charged for variable-length strings that cannot be kept, because reading them took time.
const UNREADABLE_TEXT_BYTES: u64 = MAX_TEXT_BYTES / 16;

/// Budget for the variable-length strings of a file, which are read while it is described.
struct VariableTexts {
    left_bytes: u64,
    left_out: Vec<LeftOut>,
}

impl VariableTexts {
    /// Reads strings as [`rows`] does, within the bytes that are left for the file.
    fn rows(&mut self, hdf5: &Hdf5, variable: &Hdf5Variable) -> Result<(u64, Vec<u8>)> {
        if self.left_bytes == 0 {
            return Err(Error::too_large(format!(
                "expected at most {MAX_KEPT_TEXT_BYTES} bytes of texts of any length in one file"
            )));
        }
        let read = rows(hdf5, variable);
        let taken_bytes = read.as_ref().map_or(UNREADABLE_TEXT_BYTES, |(_, rows)| rows.len() as u64);
        self.left_bytes = self.left_bytes.saturating_sub(taken_bytes);
        read
    }
}

/// A variable of texts. `dimensions`: of a file with netCDF's conventions.
fn text_array<'a>(
    hdf5: &Hdf5,
    variable: &'a Hdf5Variable,
    dimensions: Option<(&DimensionScales<'_>, usize)>,
    all: &mut VariableTexts,
) -> Option<DescribedVariable<'a>> {
    // Variables that are left out are listed if they name a dimension.
    if let Datatype::Other(_) = variable.facts.element {
        return None;
    }
    let (form, extent) = (variable.facts.text?, variable.extent()?);
    let (mut name, mut shape, mut names) = (variable.path.clone(), extent.to_vec(), Vec::new());
    if let Some((dimensions, number)) = dimensions {
        name = netcdf::shown_path(&variable.path);
        shape = dimensions.shape(number, extent);
        let found = dimensions.of(number, extent.len()).into_iter().enumerate();
        names = found.map(|(axis, d)| d.map_or_else(|| format!("dim{axis}"), |d| d.name)).collect();
    }
    let mut texts = None;
    match form {
        TextForm::Characters => {}
        TextForm::Fixed(_) => shape.extend(variable.facts.shape.as_ref()?.last()),
        TextForm::Variable => match all.rows(hdf5, variable) {
            Ok((size_bytes, rows)) => {
                shape.push(size_bytes);
                texts = Some(rows);
            }
            Err(e) => {
                let what = format!("texts that cannot be read ({})", e.message());
                all.left_out.push(LeftOut { name, what, value: None });
                return None;
            }
        },
    }
    let chunk = chunk(variable).filter(|_| form != TextForm::Variable);
    let mut info = text::array(&name, &shape, &names, chunk);
    info.attributes = cf::attributes(&cf_values(&variable.attributes));
    info.storage.text = match form {
        TextForm::Fixed(_) => Some("fixed".into()),
        TextForm::Characters => Some("characters".into()),
        TextForm::Variable => None,
    };
    Some(DescribedVariable { variable, info, texts })
}

/// Texts of any length: the bytes of the longest, at least one, and all of them one after another, padded by zeros.
fn rows(hdf5: &Hdf5, variable: &Hdf5Variable) -> Result<(u64, Vec<u8>)> {
    let limit = usize::try_from(MAX_TEXT_ELEMENTS).unwrap_or(usize::MAX);
    let texts = hdf5.files.object(variable.id)?.texts(limit)?;
    let longest = texts.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let size_bytes = texts.len().checked_mul(longest).filter(|&n| n as u64 <= MAX_TEXT_BYTES);
    let size_bytes = size_bytes.ok_or_else(|| {
        Error::too_large(format!(
            "expected at most {MAX_TEXT_BYTES} bytes with each text as long as the longest, found {} of up to {longest} bytes",
            texts.len()
        ))
    })?;
    let mut rows = vec![0; size_bytes];
    for (row, text) in rows.chunks_exact_mut(longest).zip(&texts) {
        row[..text.len()].copy_from_slice(text);
    }
    Ok((longest as u64, rows))
}

/// Describes the arrays of a file with dimension scales. In files of other programs, data sets without scales are described as in any HDF5 file.
fn arrays_with_dimensions<'a>(
    hdf5: &Hdf5,
    tree: &'a FileTree,
    is_netcdf: bool,
    texts: &mut VariableTexts,
) -> Vec<DescribedVariable<'a>> {
    let dimensions = DimensionScales::new(tree, is_netcdf);
    let mut coordinates = CoordinateReader::new(hdf5, tree, is_netcdf);
    let mut arrays = Vec::new();
    for (number, variable) in tree.variables.iter().enumerate() {
        if netcdf::is_bare_dimension(variable) {
            continue;
        }
        let Some((dtype, shape)) = number_array(variable) else {
            arrays.extend(text_array(hdf5, variable, Some((&dimensions, number)), texts));
            continue;
        };
        let found = dimensions.of(number, shape.len());
        if !is_netcdf && found.iter().all(Option::is_none) {
            arrays.extend(plain_array(tree, variable));
            continue;
        }
        let found = coordinates.dimensions(found);
        let shape = dimensions.shape(number, shape);
        let info = array(variable, dtype, &shape, &found, default_fill(variable, is_netcdf));
        arrays.push(DescribedVariable { variable, info, texts: None });
    }
    arrays
}

/// Meaning of the default fill value of netCDF's library in a variable without a fill value.
///
/// As in netCDF4-python, the default fill value is missing, in bytes only if the variable has a fill value: the library gives one to each
/// variable that is filled, and 255 or -127 of another is a value. netCDF4-python masks it in HDF5 files of other programs too, which did
/// not write it as a fill value (-32767 in `i2`); it is a value here. Before 2016 the library left no mark, but its fill value shows it.
pub(super) fn default_fill(variable: &Hdf5Variable, is_netcdf: bool) -> cf::DefaultFill {
    let facts = &variable.facts;
    let dtype = number_array(variable).map(|(dtype, _)| dtype);
    let is_missing = if dtype.is_some_and(|dtype| dtype.size_bytes() == 1) {
        is_netcdf && facts.has_fill
    } else {
        let is_own = || facts.has_fill && dtype.and_then(cf::default_fill).as_ref() == Some(&facts.fill);
        is_netcdf || is_own()
    };
    if is_missing { cf::DefaultFill::Missing } else { cf::DefaultFill::Ordinary }
}

/// Returns the stored element with which netCDF extends a variable that is shorter than its dimension: its fill value, else the
/// library's default.
pub(super) fn fill_beyond_extent(variable: &Hdf5Variable) -> Vec<u8> {
    let Some((dtype, _)) = number_array(variable) else { return variable.facts.fill.clone() };
    let named = match variable.attributes.get("_FillValue") {
        Some(AttributeValue::Numbers { dtype: own, bytes }) if *own == dtype => Some(bytes.clone()),
        _ => None,
    };
    let is_set =
        variable.facts.fill.iter().any(|&byte| byte != 0) && variable.facts.fill.len() == dtype.size_bytes();
    let stored = || is_set.then(|| variable.facts.fill.clone());
    let own = || cf::default_fill(dtype).unwrap_or_else(|| vec![0; dtype.size_bytes()]);
    named.filter(|bytes| bytes.len() == dtype.size_bytes()).or_else(stored).unwrap_or_else(own)
}

/// A variable by the conventions of netCDF and CF.
pub(super) fn array(
    variable: &Hdf5Variable,
    dtype: DType,
    shape: &[u64],
    dimensions: &[cf::Dimension],
    fill: cf::DefaultFill,
) -> ArrayInfo {
    let values = cf_values(&variable.attributes);
    let axes = describe::guessed_axes(shape.len());
    let name = netcdf::shown_path(&variable.path);
    let mut info = describe::array(&name, dtype, axes, shape, chunk(variable));
    cf::complete(&mut info, &values, dimensions, fill);
    info
}

/// A data set of a file without conventions, or with those of openPMD. Values are the stored ones.
fn plain_array<'a>(tree: &FileTree, variable: &'a Hdf5Variable) -> Option<DescribedVariable<'a>> {
    let (dtype, shape) = number_array(variable)?;
    let mesh = mesh_axes(tree, variable, shape.len());
    let is_mesh = mesh.is_some();
    let axes = mesh.or_else(|| labeled_axes(variable, dtype, shape));
    let axes = axes.unwrap_or_else(|| describe::guessed_axes_of(dtype, shape));
    let mut info = describe::array(&variable.path, dtype, axes, shape, chunk(variable));
    let values = cf_values(&variable.attributes);
    info.units = cf::text(&values, "units").unwrap_or_default().to_owned();
    // Attributes of these names mean the same everywhere, and copies that we write have them.
    info.decoding = cf::decoding(dtype, &values, cf::DefaultFill::Ordinary);
    info.attributes = cf::attributes(&values);
    if is_mesh {
        info.world_units = openpmd::UNITS.into();
    }
    Some(DescribedVariable { variable, info, texts: None })
}

/// Axes that HDF5's own attribute names (dimension scales, H5DS).
fn labeled_axes(variable: &Hdf5Variable, dtype: DType, shape: &[u64]) -> Option<Vec<Axis>> {
    let AttributeValue::Texts(labels) = variable.attributes.get("DIMENSION_LABELS")? else { return None };
    let are_names = labels.len() == shape.len() && labels.iter().all(|label| !label.is_empty());
    are_names.then(|| cf::named_axes(labels, dtype, shape))
}

/// Components of a vector are data sets in the mesh's group; a scalar mesh is itself a data set.
fn mesh_axes(tree: &FileTree, variable: &Hdf5Variable, count: usize) -> Option<Vec<Axis>> {
    let component = &variable.attributes;
    let group = tree.groups.get(variable.group).map(|g| &g.attributes);
    let of_group = group.and_then(|mesh| openpmd::axes(mesh, component, count));
    of_group.or_else(|| openpmd::axes(component, component, count))
}

fn chunk(variable: &Hdf5Variable) -> Option<Vec<u64>> {
    match &variable.facts.layout {
        DatasetLayout::Chunked(chunk) => Some(chunk.clone()),
        _ => None,
    }
}

/// Attributes that people see, with their types; references and the conventions' own are left out.
pub(super) fn cf_values(values: &AttributeValues) -> cf::CfAttributes {
    let shown = values.iter().filter(|(name, _)| netcdf::is_shown(name));
    shown.filter_map(|(name, value)| cf_value(value).map(|v| (name.clone(), v))).collect()
}

fn cf_value(value: &AttributeValue) -> Option<cf::CfValue> {
    match value {
        AttributeValue::Numbers { dtype, bytes } => {
            let count = bytes.len() / dtype.size_bytes();
            let numbers: Vec<Scalar> = (0..count).filter_map(|i| dtype.scalar_at(bytes, i)).collect();
            (!numbers.is_empty()).then(|| cf::CfValue::Numbers(dtype.element(), numbers))
        }
        AttributeValue::Texts(texts) => match &texts[..] {
            [] => None,
            [one] => Some(cf::CfValue::Text(one.clone())),
            _ => Some(cf::CfValue::Texts(texts.clone())),
        },
        _ => None,
    }
}
