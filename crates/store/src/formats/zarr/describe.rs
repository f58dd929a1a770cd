//! Description of a store as arrays: every stored array by its path, CF conventions, and multiscale images.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use array::{
    ArrayInfo, Attribute, Attributes, Axis, AxisKind, Coordinates, DType, Dataset, DatasetId, Generation,
    Group, LeftOut, Level, LevelOrigin, Meaning, Result, Scalar, Selection, Storage, Target, choose_blocks,
};

use super::attributes::{
    AttributeReader, DIMENSIONS, cf_values, fill_attribute, fill_v2, insert_fill_attribute, with_fill,
};
use super::directory::Directory;
use super::filters::{ElementReading, NOT_A_TIME, TimeType};
use super::identity;
use super::nodes::{NodeKind, ZarrNode, ZarrNodes, join};
use super::ome::{self, Multiscale};
use super::stored::{MAX_TEXT_CHUNKS, ZarrArray};
use crate::cache::chunk_cache::ChunkStore;
use crate::{CancelFlag, Scratch, formats::common::cf, formats::common::describe, formats::common::text};

/// Most coordinate values that the description of a Zarr store holds.
const MAX_COORDINATE_SAMPLES: usize = 4 << 20;

/// Description of a store with the stored arrays behind it.
pub(super) struct DescribedStore {
    pub(super) dataset: Dataset,
    pub(super) stored: Vec<ZarrArray>,
    /// Per array and level: number of the stored array.
    pub(super) levels: Vec<Vec<usize>>,
}

/// Describes all nodes.
///
/// # Errors
/// `Stale` if chunks change meanwhile; arrays that cannot be served are left out.
pub(super) fn describe(
    directory: &Arc<Directory>,
    nodes: ZarrNodes,
    scratch: &Scratch,
) -> Result<DescribedStore> {
    let name = directory.root().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut attributes = AttributeReader::default();
    let said = group_attributes(&nodes, &mut attributes);
    let dataset = Dataset {
        // Given when the arrays are known.
        id: DatasetId(0),
        generation: Generation(0),
        name,
        format: format_name(&nodes),
        arrays: Vec::new(),
        attributes: said,
        left_out: Vec::new(),
        warnings: nodes.warnings.clone(),
        groups: groups(&nodes),
    };
    let described = DescribedStore { dataset, stored: Vec::new(), levels: Vec::new() };
    let mut builder = DatasetBuilder {
        nodes: &nodes,
        described,
        by_path: BTreeMap::new(),
        parts: Vec::new(),
        level_axes: BTreeMap::new(),
        pyramids: BTreeSet::new(),
        samples_left: MAX_COORDINATE_SAMPLES,
        attributes,
        scratch,
    };
    builder.open_arrays(directory);
    let chunks = identity::identity(directory, &builder.described.stored)?;
    // Its name, not where it lies: copies on several hosts are the same data set.
    let name = builder.described.dataset.name.clone().into_bytes();
    let parts = std::iter::once(name).chain(nodes.identity.iter().cloned()).chain([chunks]);
    builder.described.dataset.id = DatasetId::of(parts);
    builder.add_pyramids();
    builder.add_arrays();
    let mut described = builder.described;
    described.dataset.warnings.extend(builder.attributes.left_out);
    Ok(described)
}

/// Attributes of the data set: those of the root by their names, those of groups with the path of the group as a prefix.
fn group_attributes(nodes: &ZarrNodes, reader: &mut AttributeReader) -> Attributes {
    let groups = nodes.by_path.iter().filter(|(path, node)| node.kind == NodeKind::Group || path.is_empty());
    let of_group = |(path, node): (&String, &ZarrNode)| {
        let named = |(name, value): (String, Attribute)| (join(path, &name), value);
        reader.read(path, &node.attributes).into_iter().map(named).collect::<Vec<_>>()
    };
    groups.flat_map(of_group).collect()
}

/// Lists all groups, also empty ones.
fn groups(nodes: &ZarrNodes) -> Vec<Group> {
    let groups = nodes.by_path.iter().filter(|(_, node)| node.kind == NodeKind::Group);
    groups.map(|(path, _)| Group { path: path.clone(), ..Group::default() }).collect()
}

fn format_name(nodes: &ZarrNodes) -> String {
    let pyramid = nodes.by_path.values().any(|n| !ome::pyramids(&n.attributes).is_empty());
    if pyramid { "OME-Zarr".into() } else { "Zarr".into() }
}

/// Part of an array's elements that is one stored array: all of them, or a member.
struct ArrayMember<'a> {
    path: &'a str,
    /// Ending of the name, after the path of the array.
    ending: String,
    time: Option<TimeType>,
    number: usize,
}

struct DatasetBuilder<'a> {
    nodes: &'a ZarrNodes,
    described: DescribedStore,
    /// Numbers of stored arrays that are all of an array.
    by_path: BTreeMap<&'a str, usize>,
    /// Stored arrays.
    parts: Vec<ArrayMember<'a>>,
    /// Axes of stored arrays that are levels of pyramids.
    level_axes: BTreeMap<usize, Vec<Axis>>,
    /// Paths that belong to pyramids, of labels or not.
    pyramids: BTreeSet<(String, bool)>,
    samples_left: usize,
    attributes: AttributeReader,
    scratch: &'a Scratch,
}

impl<'a> DatasetBuilder<'a> {
    fn open_arrays(&mut self, directory: &Arc<Directory>) {
        let mut text_chunks = MAX_TEXT_CHUNKS;
        for (path, node) in self.nodes.by_path.iter().filter(|(_, n)| n.kind != NodeKind::Group) {
            match ZarrArray::open_all(directory, path, &node.kind, self.scratch, &mut text_chunks) {
                Ok(all) => {
                    for (reading, stored) in all {
                        let number = self.described.stored.len();
                        if reading.ending.is_empty() {
                            self.by_path.insert(path, number);
                        }
                        let ElementReading { ending, time, .. } = reading;
                        self.parts.push(ArrayMember { path, ending, time, number });
                        self.described.stored.push(stored);
                    }
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
        for (path, node) in self.nodes.by_path.iter().filter(|(_, n)| n.kind == NodeKind::Group) {
            for (number, pyramid) in ome::pyramids(&node.attributes).into_iter().enumerate() {
                self.add_pyramid(path, node, number, pyramid);
            }
        }
    }

    /// Levels that are missing, larger than the first, or of another type or number of axes or channels are left out with a warning.
    fn add_pyramid(&mut self, path: &str, node: &ZarrNode, number: usize, mut pyramid: Multiscale) {
        let labels = ome::is_label(&node.attributes);
        let mut stored = Vec::new();
        let mut levels = std::mem::take(&mut pyramid.levels);
        levels.retain(|level| {
            let at = join(path, &level.path);
            let found = self.by_path.get(at.as_str()).copied();
            let first = stored.first().copied().unwrap_or_else(|| found.unwrap_or(0));
            let fits = found.is_some_and(|n| self.is_level(n, first, &pyramid));
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
        for (level, number) in pyramid.levels.iter().zip(&stored) {
            let Some(array) = self.described.stored.get(*number) else { continue };
            let axes = pyramid.axes_of(Some(level), array.shape().len());
            self.level_axes.entry(*number).or_insert(axes);
        }
        let name = self.pyramid_name(path, number, &pyramid);
        let mut info = self.pyramid_info(name, &pyramid, &stored);
        if labels {
            info.meaning = Meaning::Labels;
        }
        // OME metadata of an image besides its levels: colors and windows of channels, of labels.
        for (name, value) in ome::besides(&node.attributes) {
            if let Ok(attribute) = Attribute::from_json(value.clone()) {
                info.attributes.insert(name.to_owned(), attribute);
            }
        }
        let channels = ome::channels(&node.attributes);
        if !channels.is_empty() {
            info.attributes.insert("channels".into(), Attribute::Texts(channels));
        }
        self.add(info, stored);
    }

    /// Adds an array with its levels; an array beyond a limit is left out alone.
    fn add(&mut self, info: ArrayInfo, levels: Vec<usize>) {
        match info.check() {
            Ok(()) => {
                self.described.dataset.arrays.push(info);
                self.described.levels.push(levels);
            }
            Err(e) => self.described.dataset.left_out.push(LeftOut {
                name: info.name,
                what: e.message().to_owned(),
                value: None,
            }),
        }
    }

    /// Whether an array can be a level of the pyramid whose first level is another one.
    fn is_level(&self, level: usize, first: usize, pyramid: &Multiscale) -> bool {
        let [Some(level), Some(first)] = [level, first].map(|n| self.described.stored.get(n)) else {
            return false;
        };
        let axes = pyramid.axes_of(None, first.shape().len());
        let is_fixed = |kind: AxisKind| !kind.is_spatial() && kind != AxisKind::Time;
        let fits = |(axis, (own, finest)): (&Axis, (&u64, &u64))| {
            own == finest || (own < finest && !is_fixed(axis.kind))
        };
        let counts = level.shape().iter().zip(first.shape());
        level.dtype == first.dtype
            && level.shape().len() == first.shape().len()
            && axes.iter().zip(counts).all(fits)
    }

    /// A group's path, at the root the pyramid's own name; never the path of a stored array.
    fn pyramid_name(&self, path: &str, number: usize, pyramid: &Multiscale) -> String {
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

    fn pyramid_info(&self, name: String, pyramid: &Multiscale, stored: &[usize]) -> ArrayInfo {
        let arrays: Vec<&ZarrArray> = stored.iter().filter_map(|&n| self.described.stored.get(n)).collect();
        let first = arrays[0];
        let axes = pyramid.axes(first.shape().len());
        let kinds: Vec<_> = axes.iter().map(|a| a.kind).collect();
        let mut info = describe::array(&name, first.dtype, axes, first.shape(), Some(first.chunk.clone()));
        info.levels = arrays
            .iter()
            .zip(&pyramid.levels)
            .map(|(array, level)| {
                let (factor, world_from_voxel) =
                    ome::level_geometry(level, &pyramid.levels[0], array.shape(), first.shape(), &info.axes);
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
        for ArrayMember { path, ending, time, number } in std::mem::take(&mut self.parts) {
            let Some(node) = self.nodes.by_path.get(path) else { continue };
            let mut info = self.array_info(path, node, number);
            info.name.push_str(&ending);
            if let Some(time) = time {
                insert_time_units(&mut info, &time);
            }
            self.add(info, vec![number]);
        }
    }

    fn array_info(&mut self, path: &str, node: &ZarrNode, number: usize) -> ArrayInfo {
        let stored = &self.described.stored[number];
        let (shape, chunk) = (stored.shape().to_vec(), stored.chunk.clone());
        if stored.is_text() {
            return self.text_info(path, node, number);
        }
        let axes = self.level_axes.get(&number).cloned();
        let axes = axes.unwrap_or_else(|| describe::guessed_axes_of(stored.dtype, &shape));
        let mut values = cf_values(&node.attributes);
        let dtype = stored.dtype;
        let mut info = describe::array(path, dtype, axes, &shape, Some(chunk));
        let storage = Storage { zarr: stored_as(node), ..Storage::default() };
        let names = dimension_names(node).filter(|names| names.len() == shape.len());
        let labels = self.pyramids.contains(&(path.to_owned(), true));
        let in_pyramid = labels || self.pyramids.contains(&(path.to_owned(), false));
        let said = self.attributes.read(path, &node.attributes);
        if let (Some(names), false) = (&names, in_pyramid) {
            let fill = fill_value(node, dtype);
            if let Some(fill) = fill {
                with_fill(&mut values, dtype, fill);
            }
            let dimension = |(axis, name): (usize, &Option<String>)| match name {
                Some(name) => self.dimension(path, name),
                None => cf::Dimension { name: format!("dim{axis}"), coordinate: None },
            };
            let dimensions: Vec<_> = names.iter().enumerate().map(dimension).collect();
            cf::complete(&mut info, &values, &dimensions, cf::DefaultFill::Ordinary);
            info.attributes = said;
            info.storage = storage;
            if let Some(fill) = fill {
                insert_fill_attribute(&mut info.attributes, dtype, fill);
            }
            return info;
        }
        info.storage = storage;
        info.attributes = said;
        info.units = cf::text(&values, "units").unwrap_or_default().to_owned();
        for (axis, name) in info.axes.iter_mut().zip(names.into_iter().flatten()) {
            if let Some(name) = name {
                axis.name = name;
            }
        }
        if labels {
            info.meaning = Meaning::Labels;
        }
        info
    }

    /// Texts: nothing is decoded or drawn, and no axis is space.
    fn text_info(&mut self, path: &str, node: &ZarrNode, number: usize) -> ArrayInfo {
        let stored = &self.described.stored[number];
        let (shape, chunk) = (stored.shape().to_vec(), stored.chunk.clone());
        let names = dimension_names(node).filter(|names| names.len() + 1 == shape.len()).unwrap_or_default();
        let named = |(axis, name): (usize, Option<String>)| name.unwrap_or_else(|| format!("dim{axis}"));
        let names: Vec<String> = names.into_iter().enumerate().map(named).collect();
        let mut info = text::array(path, &shape, &names, Some(chunk));
        info.storage = Storage { zarr: stored_as(node), ..Storage::default() };
        info.attributes = self.attributes.read(path, &node.attributes);
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

    fn coordinate(&mut self, number: usize, node: &ZarrNode) -> Option<cf::Coordinate> {
        let stored = self.described.stored.get(number)?;
        let &[count] = stored.shape() else { return None };
        let values = cf_values(&node.attributes);
        let few =
            usize::try_from(count).ok().filter(|&n| n <= Coordinates::MAX_EXPLICIT.min(self.samples_left));
        let Some(count) = few else { return Some(cf::Coordinate { values, samples: Vec::new() }) };
        self.samples_left -= count;
        // A coordinate that cannot be read leaves its axis without coordinates.
        let samples = samples(stored, &values, self.scratch).unwrap_or_default();
        Some(cf::Coordinate { values, samples })
    }
}

/// The decoded values of a coordinate.
fn samples(stored: &ZarrArray, values: &cf::CfAttributes, scratch: &Scratch) -> Result<Vec<f64>> {
    let (target, region) = Target::new(stored.shape(), stored.dtype.size_bytes())?;
    let whole = Selection::all(stored.shape());
    let chunks = ChunkStore::new(scratch.clone());
    stored.read(0, &whole, region, &chunks, &CancelFlag::default())?;
    Ok(cf::decoded(&target.into_vec()?, stored.dtype, values, cf::DefaultFill::Ordinary))
}

/// Longest JSON text of codecs that a description carries, bytes.
const MAX_CODECS_BYTES: usize = 8 << 10;

/// Returns the document's fields on chunks and codecs, if they are short.
fn stored_as(node: &ZarrNode) -> Option<serde_json::Value> {
    let (NodeKind::ArrayV2(document) | NodeKind::ArrayV3(document)) = &node.kind else { return None };
    let words = [
        "zarr_format",
        "data_type",
        "dtype",
        "chunk_grid",
        "codecs",
        "fill_value",
        "compressor",
        "filters",
        "order",
    ];
    let said = words.iter().filter_map(|word| Some(((*word).to_owned(), document.get(*word)?.clone())));
    let said = serde_json::Value::Object(said.collect());
    (said.to_string().len() <= MAX_CODECS_BYTES).then_some(said)
}

/// Names of dimensions: xarray's attribute in version 2, a field of the metadata in version 3. Values other than texts, such as `null`,
/// name no dimension. An array without dimensions needs no names: writers of version 3 leave the field out.
fn dimension_names(node: &ZarrNode) -> Option<Vec<Option<String>>> {
    let listed = match &node.kind {
        NodeKind::ArrayV3(document) => {
            if document.get("shape").and_then(|shape| shape.as_array()).is_some_and(Vec::is_empty) {
                return Some(Vec::new());
            }
            let names = document.get("dimension_names").filter(|names| names.is_array());
            names.or_else(|| node.attributes.get(DIMENSIONS))
        }
        _ => node.attributes.get(DIMENSIONS),
    };
    Some(listed?.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect())
}

/// Returns the fill value as xarray takes it: in version 2 that of the store, in version 3 an attribute, which is text for
/// floats.
fn fill_value(node: &ZarrNode, dtype: DType) -> Option<Scalar> {
    match &node.kind {
        NodeKind::ArrayV2(document) => fill_v2(document, dtype),
        NodeKind::ArrayV3(_) => fill_attribute(&node.attributes, dtype),
        NodeKind::Group => None,
    }
}

/// Dates and durations get the units of the CF conventions, if the file has none.
fn insert_time_units(info: &mut ArrayInfo, time: &TimeType) {
    let units = if time.is_date { format!("{} since 1970-01-01", time.units) } else { time.units.clone() };
    let own = info.attributes.entry("units".into()).or_insert_with(|| Attribute::Text(units));
    info.units = own.text().unwrap_or_default().to_owned();
    if time.is_date {
        info.attributes.entry("calendar".into()).or_insert_with(|| "proleptic_gregorian".into());
    }
    let none = Scalar::Signed(NOT_A_TIME);
    info.decoding.missing.push(none);
    insert_fill_attribute(&mut info.attributes, info.dtype, none);
}
