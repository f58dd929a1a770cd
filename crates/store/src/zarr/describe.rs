//! Describes a store as arrays: every stored array by its path, climate conventions, and pyramids.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use array::{
    ArrayInfo, Attribute, Attributes, Coordinates, Dataset, DatasetId, ElementType, Generation, LeftOut,
    Level, LevelOrigin, Meaning, Result, Scalar, Selection, Target, choose_blocks,
};
use serde_json::{Map, Value};

use super::directory::Directory;
use super::nodes::{Kind, Node, Nodes, join};
use super::ome::{self, Pyramid};
use super::states;
use super::stored::Stored;
use crate::kept::ChunkStore;
use crate::{Cancel, Scratch, cf, describe};

/// Longest text of a nested attribute that is shown, bytes.
const MAX_NESTED_BYTES: usize = 4096;
/// Most elements of a list attribute that are shown.
const MAX_LIST: usize = 4096;
/// Most coordinate samples of a whole description.
const MAX_SAMPLES: usize = 4 << 20;

/// A description and what is behind it.
pub(super) struct Described {
    pub(super) dataset: Dataset,
    pub(super) stored: Vec<Stored>,
    /// Per array and level: number of the stored array.
    pub(super) levels: Vec<Vec<usize>>,
}

/// Describes all nodes.
///
/// # Errors
/// `Stale` when chunks change meanwhile; what cannot be served is left out.
pub(super) fn describe(directory: &Arc<Directory>, nodes: Nodes, scratch: &Scratch) -> Result<Described> {
    let name = directory.root().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let root = nodes.by_path.get("").map(|n| attributes(&n.attributes)).unwrap_or_default();
    let dataset = Dataset {
        // Given when the arrays are known.
        id: DatasetId(0),
        generation: Generation(0),
        name,
        format: format_name(&nodes),
        arrays: Vec::new(),
        attributes: root,
        left_out: Vec::new(),
        warnings: nodes.warnings.clone(),
    };
    let described = Described { dataset, stored: Vec::new(), levels: Vec::new() };
    let mut builder = Builder {
        nodes: &nodes,
        described,
        by_path: BTreeMap::new(),
        pyramids: BTreeSet::new(),
        samples_left: MAX_SAMPLES,
        scratch,
    };
    builder.open_arrays(directory);
    let chunks = states::identity(directory, &builder.described.stored)?;
    // Its name, not where it lies: copies on several hosts are the same data set.
    let name = builder.described.dataset.name.clone().into_bytes();
    let parts = std::iter::once(name).chain(nodes.identity.iter().cloned()).chain([chunks]);
    builder.described.dataset.id = DatasetId::of(parts);
    builder.add_pyramids();
    builder.add_arrays();
    Ok(builder.described)
}

fn format_name(nodes: &Nodes) -> String {
    let pyramid = nodes.by_path.values().any(|n| !ome::pyramids(&n.attributes).is_empty());
    if pyramid { "OME-Zarr".into() } else { "Zarr".into() }
}

struct Builder<'a> {
    nodes: &'a Nodes,
    described: Described,
    /// Numbers of stored arrays.
    by_path: BTreeMap<&'a str, usize>,
    /// Paths that belong to pyramids, of labels or not.
    pyramids: BTreeSet<(String, bool)>,
    samples_left: usize,
    scratch: &'a Scratch,
}

impl<'a> Builder<'a> {
    fn open_arrays(&mut self, directory: &Arc<Directory>) {
        for (path, node) in self.nodes.by_path.iter().filter(|(_, n)| n.kind != Kind::Group) {
            match Stored::open(directory, path, &node.kind) {
                Ok(stored) => {
                    self.by_path.insert(path, self.described.stored.len());
                    self.described.stored.push(stored);
                }
                Err(e) => self.described.dataset.left_out.push(LeftOut {
                    name: path.clone(),
                    what: e.to_string(),
                    value: None,
                }),
            }
        }
    }

    fn add_pyramids(&mut self) {
        for (path, node) in self.nodes.by_path.iter().filter(|(_, n)| n.kind == Kind::Group) {
            for (number, pyramid) in ome::pyramids(&node.attributes).into_iter().enumerate() {
                self.add_pyramid(path, node, number, pyramid);
            }
        }
    }

    /// Levels that are missing, or differ in type or axes from the first, are left out with a warning.
    fn add_pyramid(&mut self, path: &str, node: &Node, number: usize, mut pyramid: Pyramid) {
        let labels = ome::is_label(&node.attributes);
        let mut stored = Vec::new();
        let mut levels = std::mem::take(&mut pyramid.levels);
        levels.retain(|level| {
            let at = join(path, &level.path);
            let found = self.by_path.get(at.as_str()).copied();
            let first = stored.first().copied().unwrap_or_else(|| found.unwrap_or(0));
            let fits = found.is_some_and(|n| self.alike(n, first));
            match (found, fits) {
                (Some(n), true) => stored.push(n),
                _ => self
                    .described
                    .dataset
                    .warnings
                    .push(format!("level `{at}` is missing or unlike the first")),
            }
            self.pyramids.insert((at, labels));
            fits
        });
        pyramid.levels = levels;
        if stored.is_empty() {
            return;
        }
        let name = self.pyramid_name(path, number, &pyramid);
        let mut info = self.pyramid_info(name, &pyramid, &stored);
        if labels {
            info.meaning = Meaning::Labels;
        }
        let channels = ome::channels(&node.attributes);
        if !channels.is_empty() {
            info.attributes.insert("channels".into(), Attribute::Texts(channels));
        }
        self.described.dataset.arrays.push(info);
        self.described.levels.push(stored);
    }

    fn alike(&self, one: usize, other: usize) -> bool {
        let of = |n: usize| self.described.stored.get(n).map(|s| (s.dtype, s.shape().len()));
        of(one).is_some() && of(one) == of(other)
    }

    /// A group's path, at the root the pyramid's own name; never the path of a stored array.
    fn pyramid_name(&self, path: &str, number: usize, pyramid: &Pyramid) -> String {
        let mut name = match (path, number) {
            ("", 0) => pyramid.name.clone().unwrap_or_else(|| "image".into()),
            ("", _) => pyramid.name.clone().unwrap_or_else(|| format!("image{number}")),
            (path, 0) => path.to_owned(),
            (path, _) => format!("{path}#{number}"),
        };
        while self.by_path.contains_key(name.as_str())
            || self.described.dataset.arrays.iter().any(|a| a.name == name)
        {
            name.push_str(" pyramid");
        }
        name
    }

    fn pyramid_info(&self, name: String, pyramid: &Pyramid, stored: &[usize]) -> ArrayInfo {
        let arrays: Vec<&Stored> = stored.iter().filter_map(|&n| self.described.stored.get(n)).collect();
        let first = arrays[0];
        let axes = pyramid.axes(first.shape().len());
        let kinds: Vec<_> = axes.iter().map(|a| a.kind).collect();
        let mut info = describe::array(&name, first.dtype, axes, first.shape(), Some(first.chunk.clone()));
        info.world_units = pyramid.world_units();
        info.levels = arrays
            .iter()
            .zip(&pyramid.levels)
            .map(|(array, level)| {
                let (factor, world_from_voxel) =
                    ome::placed(level, &pyramid.levels[0], array.shape(), first.shape(), &info.axes);
                Level {
                    shape: array.shape().to_vec(),
                    block: choose_blocks(array.shape(), &kinds, array.dtype, Some(&array.chunk)),
                    chunk: Some(array.chunk.clone()),
                    origin: LevelOrigin::Stored,
                    factor,
                    world_from_voxel,
                }
            })
            .collect();
        info
    }

    fn add_arrays(&mut self) {
        let paths: Vec<(&'a str, usize)> = self.by_path.iter().map(|(path, n)| (*path, *n)).collect();
        for (path, number) in paths {
            let Some(node) = self.nodes.by_path.get(path) else { continue };
            let info = self.array_info(path, node, number);
            self.described.dataset.arrays.push(info);
            self.described.levels.push(vec![number]);
        }
    }

    fn array_info(&mut self, path: &str, node: &Node, number: usize) -> ArrayInfo {
        let stored = &self.described.stored[number];
        let (shape, chunk) = (stored.shape().to_vec(), stored.chunk.clone());
        let axes = describe::guessed_axes(shape.len());
        let mut values = cf_values(&node.attributes);
        let dtype = cf::stored_dtype(stored.dtype, &values);
        let mut info = describe::array(path, dtype, axes, &shape, Some(chunk));
        let names = dimension_names(node).filter(|names| names.len() == shape.len());
        let labels = self.pyramids.contains(&(path.to_owned(), true));
        let in_pyramid = labels || self.pyramids.contains(&(path.to_owned(), false));
        if let (Some(names), false) = (&names, in_pyramid) {
            with_fill_value(&mut values, node);
            let dimensions: Vec<_> = names.iter().map(|name| self.dimension(path, name)).collect();
            cf::complete(&mut info, &values, &dimensions, cf::DefaultFill::Ordinary);
            return info;
        }
        info.attributes = cf::attributes(&values);
        info.units = cf::text(&values, "units").unwrap_or_default().to_owned();
        for (axis, name) in info.axes.iter_mut().zip(names.into_iter().flatten()) {
            axis.name = name;
        }
        if labels {
            info.meaning = Meaning::Labels;
        }
        info
    }

    /// A dimension with the array of the same name in the same group, where that is its coordinate.
    fn dimension(&mut self, path: &str, name: &str) -> cf::Dimension {
        let group = path.rsplit_once('/').map_or("", |(group, _)| group);
        let at = join(group, name);
        let coordinate = match (self.by_path.get(at.as_str()), self.nodes.by_path.get(&at)) {
            (Some(&number), Some(node)) => self.coordinate(number, node),
            _ => None,
        };
        cf::Dimension { name: name.to_owned(), coordinate }
    }

    fn coordinate(&mut self, number: usize, node: &Node) -> Option<cf::Coordinate> {
        let stored = self.described.stored.get(number)?;
        let &[count] = stored.shape() else { return None };
        let values = cf_values(&node.attributes);
        let few =
            usize::try_from(count).ok().filter(|&n| n <= Coordinates::MAX_EXPLICIT.min(self.samples_left));
        let Some(count) = few else { return Some(cf::Coordinate { values, samples: Vec::new() }) };
        self.samples_left -= count;
        // What cannot be read leaves the axis without coordinates.
        let samples = samples(stored, &values, self.scratch).unwrap_or_default();
        Some(cf::Coordinate { values, samples })
    }
}

/// The decoded values of a coordinate.
fn samples(stored: &Stored, values: &cf::Values, scratch: &Scratch) -> Result<Vec<f64>> {
    let (target, region) = Target::new(stored.shape(), stored.dtype.size_bytes())?;
    let whole = Selection::all(stored.shape());
    let chunks = ChunkStore::new(scratch.clone());
    stored.read(0, &whole, region, &chunks, &Cancel::default())?;
    Ok(cf::decoded(&target.into_vec()?, stored.dtype, values, cf::DefaultFill::Ordinary))
}

/// Names of dimensions: xarray's attribute in version 2, a field of the metadata in version 3.
fn dimension_names(node: &Node) -> Option<Vec<String>> {
    let listed = match &node.kind {
        Kind::ArrayV3(document) => {
            document.get("dimension_names").or_else(|| node.attributes.get(DIMENSIONS))
        }
        _ => node.attributes.get(DIMENSIONS),
    };
    listed?.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect()
}

/// xarray's attribute for the names of dimensions.
const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

/// In version 2 the fill value of the store is what xarray takes for missing.
fn with_fill_value(values: &mut cf::Values, node: &Node) {
    let Kind::ArrayV2(document) = &node.kind else { return };
    if let Some(fill) = document.get("fill_value").and_then(number) {
        values.entry("_FillValue".into()).or_insert_with(|| cf::Value::Numbers(fill.0, vec![fill.1]));
    }
}

fn number(value: &Value) -> Option<(ElementType, Scalar)> {
    match value {
        Value::Number(n) => Some(match (n.as_i64(), n.as_u64()) {
            (Some(v), _) => (ElementType::I64, Scalar::Signed(v)),
            (None, Some(v)) => (ElementType::U64, Scalar::Unsigned(v)),
            _ => (ElementType::F64, Scalar::Float(n.as_f64()?)),
        }),
        Value::String(text) => match text.as_str() {
            "NaN" => Some((ElementType::F64, Scalar::Float(f64::NAN))),
            "Infinity" => Some((ElementType::F64, Scalar::Float(f64::INFINITY))),
            "-Infinity" => Some((ElementType::F64, Scalar::Float(f64::NEG_INFINITY))),
            _ => None,
        },
        _ => None,
    }
}

fn attributes(map: &Map<String, Value>) -> Attributes {
    cf::attributes(&cf_values(map))
}

fn cf_values(map: &Map<String, Value>) -> cf::Values {
    let shown = map.iter().filter(|(name, _)| *name != DIMENSIONS);
    shown.filter_map(|(name, value)| cf_value(value).map(|v| (name.clone(), v))).collect()
}

/// Nested values are shown as their JSON, where it is short.
fn cf_value(value: &Value) -> Option<cf::Value> {
    match value {
        Value::Null => None,
        Value::Bool(flag) => {
            Some(cf::Value::Numbers(ElementType::Bool, vec![Scalar::Unsigned(u64::from(*flag))]))
        }
        Value::Number(_) => number(value).map(|(element, n)| cf::Value::Numbers(element, vec![n])),
        Value::String(text) => Some(cf::Value::Text(text.clone())),
        Value::Array(list) if !list.is_empty() && list.len() <= MAX_LIST => {
            if let Some(texts) = list.iter().map(|v| v.as_str().map(str::to_owned)).collect() {
                return Some(cf::Value::Texts(texts));
            }
            numbers(list).or_else(|| nested(value))
        }
        Value::Array(_) | Value::Object(_) => nested(value),
    }
}

/// A list of numbers of one type: floats as soon as one is.
fn numbers(list: &[Value]) -> Option<cf::Value> {
    let found: Vec<(ElementType, Scalar)> =
        list.iter().map(|v| v.as_number().and_then(|_| number(v))).collect::<Option<_>>()?;
    let float = found.iter().any(|(element, _)| element.is_float());
    let as_float = |n: Scalar| if float { Scalar::Float(n.as_f64()) } else { n };
    let element = if float { ElementType::F64 } else { found.first()?.0 };
    Some(cf::Value::Numbers(element, found.into_iter().map(|(_, n)| as_float(n)).collect()))
}

fn nested(value: &Value) -> Option<cf::Value> {
    Some(value.to_string()).filter(|text| text.len() <= MAX_NESTED_BYTES).map(cf::Value::Text)
}
