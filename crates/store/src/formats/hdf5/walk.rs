//! Walk through a file: every group and data set under each of its names, with its attributes; bounded in depth and number.
//!
//! Nothing is interpreted here. Objects under their first name come first, then further names (hard links), and the targets of soft
//! and external links (see `links`); no group is walked within itself.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use array::{LeftOut, MAX_TEXT_BYTES, MAX_TEXT_ELEMENTS, Result};
use serde::{Deserialize, Serialize};

use super::files::{LinkedFiles, ObjectId};
use super::filters::{self, FilterPipeline};
use super::library::{
    AttributeValue, CompoundMember, DatasetInfo, DatasetLayout, Datatype, GroupLink, LinkTarget, Object,
    ObjectKind, TextEnd, TextForm, trim_text,
};
use super::links::resolve;
use super::vds::{SourceDataset, SourceFinder, VirtualPart};
use crate::schedule::scratch::MAX_CHUNK_BYTES;

/// Most names in an HDF5 file that are visited; each name of an object counts.
pub(super) const MAX_OBJECTS: usize = 65_536;
/// Deepest nesting of groups in an HDF5 file.
pub(super) const MAX_GROUP_DEPTH: usize = 64;
/// Most attributes of one HDF5 object that are read.
const MAX_ATTRIBUTES: usize = 512;
/// Most bytes of the attributes of a whole HDF5 file; further ones are left out with a warning.
const MAX_FILE_ATTRIBUTE_BYTES: usize = 64 << 20;
/// Most objects of an HDF5 file that are listed as left out.
const MAX_LEFT_OUT: usize = 4096;
/// Most strings of an HDF5 data set that are shown as its value.
const MAX_SHOWN_TEXTS: usize = 16;
/// Longest value of an HDF5 data set that is shown, bytes.
const MAX_SHOWN_BYTES: usize = 1024;

/// Attributes of an object by name.
pub(super) type AttributeValues = BTreeMap<String, AttributeValue>;

/// Group with its path.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct GroupNode {
    /// Path without slashes at its ends; empty for the root.
    pub(super) path: String,
    pub(super) attributes: AttributeValues,
}

/// Data set of numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Hdf5Variable {
    pub(super) path: String,
    /// Number of its group in [`FileTree::groups`].
    pub(super) group: usize,
    pub(super) id: ObjectId,
    pub(super) facts: DatasetInfo,
    pub(super) attributes: AttributeValues,
    /// Parts, where it is a virtual data set.
    #[serde(skip)]
    pub(super) parts: Option<Arc<Vec<VirtualPart>>>,
}

impl Hdf5Variable {
    /// Elements per axis of the file: without the axis of the bytes of texts, which the file does not have.
    pub(super) fn extent(&self) -> Option<&[u64]> {
        let shape = self.facts.shape.as_deref()?;
        match self.facts.text {
            Some(TextForm::Fixed(_)) => shape.split_last().map(|(_, outer)| outer),
            _ => Some(shape),
        }
    }
}

/// Groups and data sets of a file.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct FileTree {
    pub(super) groups: Vec<GroupNode>,
    /// Variables in the order of the file; those of a group before those of its subgroups.
    pub(super) variables: Vec<Hdf5Variable>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) warnings: Vec<String>,
    /// Sources of virtual data sets.
    #[serde(skip)]
    pub(super) sources: Vec<SourceDataset>,
    /// Whether something could not be read or lies in other files, so that the next walk may give another result.
    #[serde(skip)]
    pub(super) has_failed: bool,
}

impl FileTree {
    /// Groups and data sets.
    pub(super) fn objects(&self) -> usize {
        self.groups.len() + self.variables.len()
    }
}

/// Walks the whole file: first all objects under their first name, then further names, and the targets of links.
///
/// # Errors
/// Errors of reading the root group; objects below it that cannot be read are left out.
pub(super) fn walk(files: &mut LinkedFiles) -> Result<FileTree> {
    let root = files.get(0)?.library.root()?;
    let id = ObjectId { file: 0, token: root.token()? };
    let mut walk = FileWalk {
        files,
        tree: FileTree::default(),
        known: HashMap::new(),
        later: VecDeque::new(),
        names: 0,
        attribute_bytes: 0,
        truncated: false,
    };
    walk.group(&GroupPath { id, path: String::new(), number: 0, above: Vec::new() }, &root)?;
    while let Some(link) = walk.later.pop_front() {
        walk.link(link);
    }
    // Only now are all variables known.
    for number in super::netcdf::single_characters(&walk.tree) {
        if let Some(variable) = walk.tree.variables.get_mut(number) {
            texts_of_one_byte(&mut variable.facts);
        }
    }
    if walk.truncated {
        walk.tree.warnings.push(format!("only the first {MAX_OBJECTS} names were read"));
    }
    if walk.attribute_bytes > MAX_FILE_ATTRIBUTE_BYTES {
        walk.tree.warnings.push(format!("attributes beyond {MAX_FILE_ATTRIBUTE_BYTES} bytes were left out"));
    }
    Ok(walk.tree)
}

/// Group with the path by which it was reached.
#[derive(Clone, Debug)]
struct GroupPath {
    id: ObjectId,
    /// Path without slashes at its ends; empty for the root.
    path: String,
    /// Index in [`FileTree::groups`].
    number: usize,
    /// Groups above it, from the root on: links may form cycles.
    above: Vec<ObjectId>,
}

/// Link that is resolved after all objects with a name of their own: its target may have another name.
#[derive(Debug)]
struct DeferredLink {
    within: GroupPath,
    path: String,
    target: LinkTarget,
}

/// Result of the visit of an object under its first name.
#[derive(Clone, Copy, Debug)]
enum KnownObject {
    Group,
    /// Range of the variables (first, end), and length in bytes of the path of the data set, with which their paths begin.
    Variables(usize, usize, usize),
    LeftOut(usize),
    Nothing,
}

struct FileWalk<'a> {
    files: &'a mut LinkedFiles,
    tree: FileTree,
    known: HashMap<ObjectId, KnownObject>,
    /// Bounded as names are.
    later: VecDeque<DeferredLink>,
    /// Names visited so far, including deferred ones.
    names: usize,
    attribute_bytes: usize,
    truncated: bool,
}

impl FileWalk<'_> {
    fn group(&mut self, within: &GroupPath, group: &Object) -> Result<()> {
        self.known.insert(within.id, KnownObject::Group);
        let (links, more) = group.links(MAX_OBJECTS.saturating_sub(self.names))?;
        self.truncated |= more;
        self.names += links.len();
        let attributes = self.attributes(group);
        let within = GroupPath { number: self.tree.groups.len(), ..within.clone() };
        self.tree.groups.push(GroupNode { path: within.path.clone(), attributes });
        let mut groups = Vec::new();
        for GroupLink { name, target } in links {
            let path = if within.path.is_empty() { name } else { format!("{}/{name}", within.path) };
            match target {
                LinkTarget::Object(token) => {
                    let id = ObjectId { file: within.id.file, token };
                    if self.known.contains_key(&id) {
                        self.later.push_back(DeferredLink { within: within.clone(), path, target });
                        continue;
                    }
                    if let Some(group) = self.object(&within, path, id) {
                        // Known from now on: further names of it come later.
                        self.known.insert(group.0.id, KnownObject::Group);
                        groups.push(group);
                    }
                }
                LinkTarget::Other => self.leave_out(path, "link of a kind that is not known".into(), None),
                _ => self.later.push_back(DeferredLink { within: within.clone(), path, target }),
            }
        }
        for (within, group) in groups {
            self.group_within(within, &group);
        }
        Ok(())
    }

    fn group_within(&mut self, within: GroupPath, group: &Object) {
        if within.above.len() > MAX_GROUP_DEPTH {
            self.leave_out(within.path, format!("group more than {MAX_GROUP_DEPTH} deep"), None);
        } else if let Err(e) = self.group(&within, group) {
            self.tree.has_failed = true;
            self.leave_out(within.path, format!("group that cannot be read ({})", e.message()), None);
        }
    }

    /// Visits an object under its first name; returns a group to be walked.
    fn object(&mut self, within: &GroupPath, path: String, id: ObjectId) -> Option<(GroupPath, Object)> {
        let object = match self.files.object(id) {
            Ok(object) => object,
            Err(e) => {
                self.tree.has_failed = true;
                self.leave_out(path, format!("object that cannot be read ({})", e.message()), None);
                return None;
            }
        };
        match object.kind() {
            ObjectKind::Group => {
                let above = within.above.iter().copied().chain([within.id]).collect();
                return Some((GroupPath { id, path, number: 0, above }, object));
            }
            ObjectKind::Dataset => {
                let known = self.dataset(path, id, within.number, &object);
                self.known.insert(id, known);
            }
            ObjectKind::Other => drop(self.known.insert(id, KnownObject::Nothing)),
        }
        None
    }

    /// Visits a further name of an object, or a link to it.
    fn link(&mut self, link: DeferredLink) {
        let DeferredLink { within, path, target } = link;
        let what = match &target {
            LinkTarget::Soft(to) => format!("soft link to `{to}`"),
            LinkTarget::External { file, path } => {
                // The other file may change without this one.
                self.tree.has_failed = true;
                format!("link to `{path}` in the file `{file}`")
            }
            LinkTarget::Object(_) | LinkTarget::Other => "link".into(),
        };
        let id = match resolve(self.files, within.id, &target) {
            Ok(id) => id,
            Err(no) => return self.leave_out(path, format!("{what}: {}", no.reason()), None),
        };
        match self.known.get(&id).copied() {
            Some(KnownObject::Group) | None => {
                // A group that holds itself is there already.
                if id == within.id || within.above.contains(&id) {
                    return;
                }
                if let Some((within, group)) = self.object(&within, path, id) {
                    self.group_within(within, &group);
                }
            }
            Some(KnownObject::Variables(first, end, name_bytes)) => {
                for number in first..end {
                    let Some(variable) = self.tree.variables.get(number).cloned() else { continue };
                    // Members keep their names.
                    let member = variable.path.get(name_bytes..).unwrap_or_default();
                    let path = format!("{path}{member}");
                    self.attribute_bytes += size_of_values(&variable.attributes);
                    if self.attribute_bytes <= MAX_FILE_ATTRIBUTE_BYTES {
                        self.tree.variables.push(Hdf5Variable { path, group: within.number, ..variable });
                    }
                }
            }
            Some(KnownObject::LeftOut(number)) => {
                if let Some(LeftOut { what, value, .. }) = self.tree.left_out.get(number).cloned() {
                    self.leave_out(path, what, value);
                }
            }
            Some(KnownObject::Nothing) => {}
        }
    }

    fn dataset(&mut self, path: String, id: ObjectId, group: usize, object: &Object) -> KnownObject {
        let mut facts = match object.facts() {
            Ok(facts) => facts,
            Err(e) => {
                self.tree.has_failed = true;
                self.leave_out(path, format!("data set that cannot be read ({})", e.message()), None);
                return KnownObject::LeftOut(self.tree.left_out.len().saturating_sub(1));
            }
        };
        let mut obstacle = obstacle(&facts);
        let mut parts = None;
        if facts.layout == DatasetLayout::Virtual && obstacle.is_none() {
            // The source files may change without this one.
            self.tree.has_failed = true;
            match SourceFinder::new(self.files, &mut self.tree.sources).parts(id, &facts.element) {
                Ok((shape, found)) => {
                    facts.shape = Some(shape);
                    parts = Some(Arc::new(found));
                }
                Err(why) => obstacle = Some(format!("virtual data set: {why}")),
            }
        }
        match obstacle {
            Some(what) => {
                let value = if facts.text.is_some() { shown(object) } else { None };
                self.leave_out(path.clone(), what, value);
                let known = KnownObject::LeftOut(self.tree.left_out.len().saturating_sub(1));
                // It may still be the scale of a dimension.
                let attributes = self.attributes(object);
                let element = match facts.element {
                    Datatype::Number(_) | Datatype::VariableText => {
                        Datatype::Other("elements that are left out".into())
                    }
                    other => other,
                };
                let variable = Hdf5Variable {
                    path,
                    group,
                    id,
                    facts: DatasetInfo { element, ..facts },
                    attributes,
                    parts,
                };
                if super::netcdf::is_scale(&variable) {
                    self.tree.variables.push(variable);
                }
                known
            }
            None => {
                let attributes = self.attributes(object);
                if super::netcdf::is_of_characters(&facts, &attributes) {
                    characters(&mut facts);
                }
                let (first, name_bytes) = (self.tree.variables.len(), path.len());
                self.variables(Hdf5Variable { path, group, id, facts, attributes, parts });
                KnownObject::Variables(first, self.tree.variables.len(), name_bytes)
            }
        }
    }

    /// A variable as arrays of numbers: several where its elements are compounds.
    fn variables(&mut self, mut variable: Hdf5Variable) {
        let element = variable.facts.element.clone();
        match element {
            Datatype::Enumeration { dtype, names, values } => {
                variable.facts.element = Datatype::Number(dtype);
                let meanings: Vec<String> = names.iter().map(|name| name.replace(' ', "_")).collect();
                let numbers = AttributeValue::Numbers { dtype, bytes: values };
                variable.attributes.entry("flag_values".into()).or_insert(numbers);
                let meanings = AttributeValue::Texts(vec![meanings.join(" ")]);
                variable.attributes.entry("flag_meanings".into()).or_insert(meanings);
                self.tree.variables.push(variable);
            }
            Datatype::Compound { size_bytes, ref members, ref others } => {
                for CompoundMember { name, offset, dtype } in members {
                    let path = format!("{}.{name}", variable.path);
                    let element = Datatype::Number(*dtype);
                    let facts = DatasetInfo {
                        element,
                        within: Some((size_bytes, *offset)),
                        ..variable.facts.clone()
                    };
                    self.attribute_bytes += size_of_values(&variable.attributes);
                    if self.attribute_bytes > MAX_FILE_ATTRIBUTE_BYTES {
                        return;
                    }
                    self.tree.variables.push(Hdf5Variable { path, facts, ..variable.clone() });
                }
                let names: Vec<String> =
                    members.iter().map(|m| format!("`{}.{}`", variable.path, m.name)).collect();
                let what = format!("{element}, of which each part is an array: {}", names.join(", "));
                self.leave_out(variable.path.clone(), what, None);
                for (name, what) in others {
                    self.leave_out(format!("{}.{name}", variable.path), what.clone(), None);
                }
            }
            _ => self.tree.variables.push(variable),
        }
    }

    /// Reads the attributes of an object. Unreadable ones are left out without a message: the array stays readable.
    fn attributes(&mut self, object: &Object) -> AttributeValues {
        let mut values = AttributeValues::new();
        let names = object.attribute_names(MAX_ATTRIBUTES);
        self.tree.has_failed |= names.is_err();
        for name in names.unwrap_or_default() {
            if self.attribute_bytes > MAX_FILE_ATTRIBUTE_BYTES {
                break;
            }
            let value = object.attribute(&name);
            self.tree.has_failed |= value.is_err();
            let Ok(Some(value)) = value else { continue };
            self.attribute_bytes += size_of_value(&value) + name.as_bytes().len();
            values.insert(name.to_string_lossy().into_owned(), value);
        }
        values
    }

    fn leave_out(&mut self, name: String, what: String, value: Option<String>) {
        if self.tree.left_out.len() < MAX_LEFT_OUT {
            self.tree.left_out.push(LeftOut { name, what, value });
        }
    }
}

/// Returns the reason why a data set cannot be served as an array.
pub(super) fn obstacle(facts: &DatasetInfo) -> Option<String> {
    let what = match (&facts.element, &facts.layout) {
        (_, DatasetLayout::External) => "data in other files, which are not followed".into(),
        (Datatype::Compound { members, .. }, _) if members.is_empty() => facts.element.to_string(),
        (Datatype::Compound { .. }, DatasetLayout::Virtual) => {
            format!("virtual data set of {}", facts.element)
        }
        (_, DatasetLayout::Virtual) if facts.text.is_some() => "virtual data set of texts".into(),
        (_, DatasetLayout::Virtual) if facts.inner_axes > 0 => {
            "virtual data set of arrays as elements".into()
        }
        (_, DatasetLayout::Virtual) if facts.padded.is_some() => {
            "virtual data set of integers of fewer bits".into()
        }
        (element, _) => {
            let item_bytes = match element {
                Datatype::Number(dtype) | Datatype::Enumeration { dtype, .. } => dtype.size_bytes(),
                Datatype::Compound { size_bytes, .. } => *size_bytes,
                Datatype::VariableText => 1,
                other => return Some(other.to_string()),
            };
            let Some(shape) = &facts.shape else { return Some("empty data set".into()) };
            if shape.len() > array::MAX_AXES {
                return Some(format!("array of {} axes, more than {}", shape.len(), array::MAX_AXES));
            }
            // Those whose rest is cleared are read as a whole.
            let is_cleared = matches!(facts.text, Some(TextForm::Fixed(end)) if end != TextEnd::Last);
            if is_cleared && shape.last().is_some_and(|&size_bytes| size_bytes > MAX_TEXT_BYTES) {
                return Some(format!("texts of more than {MAX_TEXT_BYTES} bytes each"));
            }
            if facts.text == Some(TextForm::Variable) {
                let count = shape.iter().try_fold(1u64, |n, &size| n.checked_mul(size));
                let is_few = count.is_some_and(|n| n <= MAX_TEXT_ELEMENTS) && shape.len() < array::MAX_AXES;
                return (!is_few).then(|| format!("more than {MAX_TEXT_ELEMENTS} texts of any length"));
            }
            return odd_chunks(facts, item_bytes, shape.len());
        }
    };
    Some(what)
}

/// Makes the last axis of the data set that of the bytes of its texts.
fn characters(facts: &mut DatasetInfo) {
    if let Some(shape) = &mut facts.shape {
        shape.pop();
    }
    if let DatasetLayout::Chunked(chunk) = &mut facts.layout {
        chunk.pop();
    }
    facts.inner_axes = 0;
    facts.text = Some(TextForm::Characters);
}

/// Reverts [`characters`].
fn texts_of_one_byte(facts: &mut DatasetInfo) {
    if let Some(shape) = &mut facts.shape {
        shape.push(1);
    }
    if let DatasetLayout::Chunked(chunk) = &mut facts.layout {
        chunk.push(1);
    }
    facts.inner_axes = 1;
    facts.text = Some(TextForm::Fixed(TextEnd::Last));
}

fn odd_chunks(facts: &DatasetInfo, item_bytes: usize, axes: usize) -> Option<String> {
    let DatasetLayout::Chunked(chunk) = &facts.layout else { return None };
    if chunk.len() != axes || chunk.contains(&0) {
        return Some(format!("array of {axes} axes in chunks of {chunk:?}"));
    }
    let chunk_bytes = chunk.iter().try_fold(item_bytes as u64, |n, &size| n.checked_mul(size));
    if !facts.filters.is_empty() && chunk_bytes.is_none_or(|n| n > MAX_CHUNK_BYTES) {
        return Some(format!("array in packed chunks of {chunk:?}, more than {MAX_CHUNK_BYTES} bytes each"));
    }
    // Decoders here support filters that the library lacks, and the library others; a mixture is supported by neither.
    let ours = FilterPipeline::of(&facts.filters, 1).is_some();
    if !ours && facts.inner_axes > 0 {
        return Some("arrays as elements, packed by a filter that only the library undoes".into());
    }
    let foreign = facts.filters.iter().find(|f| !f.available).filter(|_| !ours)?;
    Some(format!("array packed by the filter `{}`, which is not supported", filters::name(foreign.id)))
}

fn shown(object: &Object) -> Option<String> {
    let texts = object.texts(MAX_SHOWN_TEXTS).ok()?;
    let texts: Vec<String> = texts.iter().map(|text| trim_text(text, true)).collect();
    let mut value = texts.join(", ");
    if value.len() > MAX_SHOWN_BYTES {
        value.truncate(value.floor_char_boundary(MAX_SHOWN_BYTES));
    }
    Some(value)
}

fn size_of_values(values: &AttributeValues) -> usize {
    values.iter().map(|(name, value)| name.len() + size_of_value(value)).sum()
}

fn size_of_value(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::Numbers { bytes, .. } => bytes.len(),
        AttributeValue::Texts(texts) => texts.iter().map(String::len).sum(),
        AttributeValue::References(list) => list.len() * 8,
        AttributeValue::ReferenceLists(lists) => lists.iter().map(|l| l.len() * 8).sum(),
        AttributeValue::Other(what) => what.len(),
    }
}
