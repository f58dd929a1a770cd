//! Walks a file: every group and data set under each of its names, with its attributes; bounded in depth and number.
//!
//! Nothing is interpreted here. What has a name of its own comes first, then further names (hard links), and what soft and
//! external links lead to (see `links`); nothing is walked within itself.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use array::{LeftOut, MAX_TEXT_BYTES, MAX_TEXT_ELEMENTS, Result};
use serde::{Deserialize, Serialize};

use super::files::{Files, ObjectId};
use super::filters::{self, Pipeline};
use super::library::{
    Element, Facts, Layout, Link, LinkTarget, Member, Object, ObjectKind, TextEnd, TextForm, Value, trim_text,
};
use super::links::resolve;
use super::vds::{SourceData, Sources, VirtualPart};
use crate::schedule::scratch::MAX_CHUNK_BYTES;

/// Most names in a file that are looked at, each name of an object counted.
pub(super) const MAX_OBJECTS: usize = 65_536;
/// Deepest nesting of groups.
pub(super) const MAX_DEPTH: usize = 64;
/// Most attributes of one object that are read.
const MAX_ATTRIBUTES: usize = 512;
/// Most bytes that the attributes of a whole file may take; the rest is left out with a warning.
const MAX_ATTRIBUTE_BYTES: usize = 64 << 20;
/// Most things left out that are listed.
const MAX_LEFT_OUT: usize = 4096;
/// Most strings of a data set that are shown as its value.
const MAX_SHOWN_TEXTS: usize = 16;
/// Longest value shown, bytes.
const MAX_SHOWN_BYTES: usize = 1024;

/// Attributes as the library gives them.
pub(super) type Values = BTreeMap<String, Value>;

/// A group with its place in the hierarchy.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Group {
    /// Path without slashes at its ends; empty for the root.
    pub(super) path: String,
    pub(super) attributes: Values,
}

/// A data set of numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Variable {
    pub(super) path: String,
    /// Number of its group in [`Tree::groups`].
    pub(super) group: usize,
    pub(super) id: ObjectId,
    pub(super) facts: Facts,
    pub(super) attributes: Values,
    /// Parts, where it is a virtual data set.
    #[serde(skip)]
    pub(super) parts: Option<Arc<Vec<VirtualPart>>>,
}

impl Variable {
    /// Elements per axis of the file: without the axis of the bytes of texts, which the file does not have.
    pub(super) fn extent(&self) -> Option<&[u64]> {
        let shape = self.facts.shape.as_deref()?;
        match self.facts.text {
            Some(TextForm::Fixed(_)) => shape.split_last().map(|(_, outer)| outer),
            _ => Some(shape),
        }
    }
}

/// All that was found.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Tree {
    pub(super) groups: Vec<Group>,
    /// In the file's order, a group's own before those of groups in it.
    pub(super) variables: Vec<Variable>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) warnings: Vec<String>,
    /// Sources of virtual data sets.
    #[serde(skip)]
    pub(super) sources: Vec<SourceData>,
    /// Something could not be read, or lies in other files, which may be otherwise the next time.
    #[serde(skip)]
    pub(super) has_failed: bool,
}

impl Tree {
    /// Groups and data sets.
    pub(super) fn objects(&self) -> usize {
        self.groups.len() + self.variables.len()
    }
}

/// Walks the whole file: all that has a name of its own first, then further names, links and what they lead to.
///
/// # Errors
/// Only when the root group cannot be read; anything odd further down is left out.
pub(super) fn walk(files: &mut Files) -> Result<Tree> {
    let root = files.get(0)?.library.root()?;
    let id = ObjectId { file: 0, token: root.token()? };
    let mut walk = Walk {
        files,
        tree: Tree::default(),
        known: HashMap::new(),
        later: VecDeque::new(),
        names: 0,
        attribute_bytes: 0,
        truncated: false,
    };
    walk.group(&Within { id, path: String::new(), number: 0, above: Vec::new() }, &root)?;
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
        walk.tree.warnings.push(format!("only the first {MAX_OBJECTS} names were looked at"));
    }
    if walk.attribute_bytes > MAX_ATTRIBUTE_BYTES {
        walk.tree.warnings.push(format!("attributes beyond {MAX_ATTRIBUTE_BYTES} bytes were left out"));
    }
    Ok(walk.tree)
}

/// A group and how it was reached.
#[derive(Clone, Debug)]
struct Within {
    id: ObjectId,
    /// Without slashes at its ends; empty for the root.
    path: String,
    /// In [`Tree::groups`].
    number: usize,
    /// The groups that it is in: links may form cycles.
    above: Vec<ObjectId>,
}

/// A name that stands for what has another name too, perhaps.
#[derive(Debug)]
struct LaterLink {
    within: Within,
    path: String,
    target: LinkTarget,
}

/// Outcome for an object, under its first name.
#[derive(Clone, Copy, Debug)]
enum Known {
    Group,
    /// From the first on, up to the second. Their paths begin with that of the data set, so many bytes.
    Variables(usize, usize, usize),
    LeftOut(usize),
    Nothing,
}

struct Walk<'a> {
    files: &'a mut Files,
    tree: Tree,
    known: HashMap<ObjectId, Known>,
    /// Bounded as names are.
    later: VecDeque<LaterLink>,
    /// Names met so far, those that wait included.
    names: usize,
    attribute_bytes: usize,
    truncated: bool,
}

impl Walk<'_> {
    fn group(&mut self, within: &Within, group: &Object) -> Result<()> {
        self.known.insert(within.id, Known::Group);
        let (links, more) = group.links(MAX_OBJECTS.saturating_sub(self.names))?;
        self.truncated |= more;
        self.names += links.len();
        let attributes = self.attributes(group);
        let within = Within { number: self.tree.groups.len(), ..within.clone() };
        self.tree.groups.push(Group { path: within.path.clone(), attributes });
        let mut groups = Vec::new();
        for Link { name, target } in links {
            let path = if within.path.is_empty() { name } else { format!("{}/{name}", within.path) };
            match target {
                LinkTarget::Object(token) => {
                    let id = ObjectId { file: within.id.file, token };
                    if self.known.contains_key(&id) {
                        self.later.push_back(LaterLink { within: within.clone(), path, target });
                        continue;
                    }
                    if let Some(group) = self.object(&within, path, id) {
                        // Known from now on: further names of it come later.
                        self.known.insert(group.0.id, Known::Group);
                        groups.push(group);
                    }
                }
                LinkTarget::Other => self.leave_out(path, "link of a kind that is not known".into(), None),
                _ => self.later.push_back(LaterLink { within: within.clone(), path, target }),
            }
        }
        for (within, group) in groups {
            self.group_within(within, &group);
        }
        Ok(())
    }

    fn group_within(&mut self, within: Within, group: &Object) {
        if within.above.len() > MAX_DEPTH {
            self.leave_out(within.path, format!("group more than {MAX_DEPTH} deep"), None);
        } else if let Err(e) = self.group(&within, group) {
            self.tree.has_failed = true;
            self.leave_out(within.path, format!("group that cannot be read ({})", e.message()), None);
        }
    }

    /// An object under its first name; a group is given back.
    fn object(&mut self, within: &Within, path: String, id: ObjectId) -> Option<(Within, Object)> {
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
                return Some((Within { id, path, number: 0, above }, object));
            }
            ObjectKind::Dataset => {
                let known = self.dataset(path, id, within.number, &object);
                self.known.insert(id, known);
            }
            ObjectKind::Other => drop(self.known.insert(id, Known::Nothing)),
        }
        None
    }

    /// A further name of something, or a link to it.
    fn link(&mut self, link: LaterLink) {
        let LaterLink { within, path, target } = link;
        let what = match &target {
            LinkTarget::Soft(to) => format!("soft link to `{to}`"),
            LinkTarget::External { file, path } => {
                // It may be otherwise the next time.
                self.tree.has_failed = true;
                format!("link to `{path}` in the file `{file}`")
            }
            LinkTarget::Object(_) | LinkTarget::Other => "link".into(),
        };
        let id = match resolve(self.files, within.id, &target) {
            Ok(id) => id,
            Err(no) => return self.leave_out(path, format!("{what}: {}", no.why()), None),
        };
        match self.known.get(&id).copied() {
            Some(Known::Group) | None => {
                // A group that holds itself is there already.
                if id == within.id || within.above.contains(&id) {
                    return;
                }
                if let Some((within, group)) = self.object(&within, path, id) {
                    self.group_within(within, &group);
                }
            }
            Some(Known::Variables(first, end, name_bytes)) => {
                for number in first..end {
                    let Some(variable) = self.tree.variables.get(number).cloned() else { continue };
                    // Members keep their names.
                    let member = variable.path.get(name_bytes..).unwrap_or_default();
                    let path = format!("{path}{member}");
                    self.attribute_bytes += size_of_values(&variable.attributes);
                    if self.attribute_bytes <= MAX_ATTRIBUTE_BYTES {
                        self.tree.variables.push(Variable { path, group: within.number, ..variable });
                    }
                }
            }
            Some(Known::LeftOut(number)) => {
                if let Some(LeftOut { what, value, .. }) = self.tree.left_out.get(number).cloned() {
                    self.leave_out(path, what, value);
                }
            }
            Some(Known::Nothing) => {}
        }
    }

    fn dataset(&mut self, path: String, id: ObjectId, group: usize, object: &Object) -> Known {
        let mut facts = match object.facts() {
            Ok(facts) => facts,
            Err(e) => {
                self.tree.has_failed = true;
                self.leave_out(path, format!("data set that cannot be read ({})", e.message()), None);
                return Known::LeftOut(self.tree.left_out.len().saturating_sub(1));
            }
        };
        let mut obstacle = obstacle(&facts);
        let mut parts = None;
        if facts.layout == Layout::Virtual && obstacle.is_none() {
            // What it names may change without it.
            self.tree.has_failed = true;
            match Sources::new(self.files, &mut self.tree.sources).parts(id, &facts.element) {
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
                let known = Known::LeftOut(self.tree.left_out.len().saturating_sub(1));
                // It may still be what gives a dimension its name and its length.
                let attributes = self.attributes(object);
                let element = match facts.element {
                    Element::Number(_) | Element::VariableText => {
                        Element::Other("elements that are left out".into())
                    }
                    other => other,
                };
                let variable =
                    Variable { path, group, id, facts: Facts { element, ..facts }, attributes, parts };
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
                self.variables(Variable { path, group, id, facts, attributes, parts });
                Known::Variables(first, self.tree.variables.len(), name_bytes)
            }
        }
    }

    /// A variable as arrays of numbers: several where its elements are compounds.
    fn variables(&mut self, mut variable: Variable) {
        let element = variable.facts.element.clone();
        match element {
            Element::Enumeration { dtype, names, values } => {
                variable.facts.element = Element::Number(dtype);
                let meanings: Vec<String> = names.iter().map(|name| name.replace(' ', "_")).collect();
                let numbers = Value::Numbers { dtype, bytes: values };
                variable.attributes.entry("flag_values".into()).or_insert(numbers);
                let meanings = Value::Texts(vec![meanings.join(" ")]);
                variable.attributes.entry("flag_meanings".into()).or_insert(meanings);
                self.tree.variables.push(variable);
            }
            Element::Compound { size_bytes, ref members, ref others } => {
                for Member { name, offset, dtype } in members {
                    let path = format!("{}.{name}", variable.path);
                    let element = Element::Number(*dtype);
                    let facts =
                        Facts { element, within: Some((size_bytes, *offset)), ..variable.facts.clone() };
                    self.attribute_bytes += size_of_values(&variable.attributes);
                    if self.attribute_bytes > MAX_ATTRIBUTE_BYTES {
                        return;
                    }
                    self.tree.variables.push(Variable { path, facts, ..variable.clone() });
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

    /// Attributes that cannot be read are left out without a word: they never spoil an array.
    fn attributes(&mut self, object: &Object) -> Values {
        let mut values = Values::new();
        let names = object.attribute_names(MAX_ATTRIBUTES);
        self.tree.has_failed |= names.is_err();
        for name in names.unwrap_or_default() {
            if self.attribute_bytes > MAX_ATTRIBUTE_BYTES {
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

/// Why a data set cannot be served as an array.
pub(super) fn obstacle(facts: &Facts) -> Option<String> {
    let what = match (&facts.element, &facts.layout) {
        (_, Layout::External) => "data in other files, which are not followed".into(),
        (Element::Compound { members, .. }, _) if members.is_empty() => facts.element.to_string(),
        (Element::Compound { .. }, Layout::Virtual) => format!("virtual data set of {}", facts.element),
        (_, Layout::Virtual) if facts.text.is_some() => "virtual data set of texts".into(),
        (_, Layout::Virtual) if facts.inner_axes > 0 => "virtual data set of arrays as elements".into(),
        (_, Layout::Virtual) if facts.padded.is_some() => "virtual data set of integers of fewer bits".into(),
        (element, _) => {
            let item_bytes = match element {
                Element::Number(dtype) | Element::Enumeration { dtype, .. } => dtype.size_bytes(),
                Element::Compound { size_bytes, .. } => *size_bytes,
                Element::VariableText => 1,
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
fn characters(facts: &mut Facts) {
    if let Some(shape) = &mut facts.shape {
        shape.pop();
    }
    if let Layout::Chunked(chunk) = &mut facts.layout {
        chunk.pop();
    }
    facts.inner_axes = 0;
    facts.text = Some(TextForm::Characters);
}

/// Takes back [`characters`].
fn texts_of_one_byte(facts: &mut Facts) {
    if let Some(shape) = &mut facts.shape {
        shape.push(1);
    }
    if let Layout::Chunked(chunk) = &mut facts.layout {
        chunk.push(1);
    }
    facts.inner_axes = 1;
    facts.text = Some(TextForm::Fixed(TextEnd::Last));
}

fn odd_chunks(facts: &Facts, item_bytes: usize, axes: usize) -> Option<String> {
    let Layout::Chunked(chunk) = &facts.layout else { return None };
    if chunk.len() != axes || chunk.contains(&0) {
        return Some(format!("array of {axes} axes in chunks of {chunk:?}"));
    }
    let chunk_bytes = chunk.iter().try_fold(item_bytes as u64, |n, &size| n.checked_mul(size));
    if !facts.filters.is_empty() && chunk_bytes.is_none_or(|n| n > MAX_CHUNK_BYTES) {
        return Some(format!("array in packed chunks of {chunk:?}, more than {MAX_CHUNK_BYTES} bytes each"));
    }
    // Ours undo filters that the library lacks, and the other way round; a mixture is nobody's.
    let ours = Pipeline::of(&facts.filters, 1).is_some();
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

fn size_of_values(values: &Values) -> usize {
    values.iter().map(|(name, value)| name.len() + size_of_value(value)).sum()
}

fn size_of_value(value: &Value) -> usize {
    match value {
        Value::Numbers { bytes, .. } => bytes.len(),
        Value::Texts(texts) => texts.iter().map(String::len).sum(),
        Value::References(list) => list.len() * 8,
        Value::ReferenceLists(lists) => lists.iter().map(|l| l.len() * 8).sum(),
        Value::Other(what) => what.len(),
    }
}
