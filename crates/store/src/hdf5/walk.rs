//! Walks a file: every group and data set once, with its attributes; bounded in depth and number.
//!
//! Nothing is interpreted here. Links are followed only where they name an object of this file directly, so
//! a file cannot lead anywhere else.

use std::collections::{BTreeMap, HashSet};

use array::{LeftOut, Result};
use serde::{Deserialize, Serialize};

use super::filters::{self, Pipeline};
use super::library::{Element, Facts, File, Layout, Link, LinkTarget, Object, ObjectKind, Token, Value};
use crate::scratch::MAX_CHUNK_BYTES;

/// Most objects of a file that are looked at.
pub(super) const MAX_OBJECTS: usize = 65_536;
/// Deepest nesting of groups.
pub(super) const MAX_DEPTH: usize = 64;
/// Most attributes of one object that are read.
const MAX_ATTRIBUTES: usize = 512;
/// What the attributes of a whole file may take, bytes; the rest is left out with a warning.
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
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Variable {
    pub(super) path: String,
    /// Number of its group in [`Tree::groups`].
    pub(super) group: usize,
    pub(super) token: Token,
    pub(super) facts: Facts,
    pub(super) attributes: Values,
}

/// All that was found.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Tree {
    pub(super) groups: Vec<Group>,
    /// In the file's order, a group's own before those of groups in it.
    pub(super) variables: Vec<Variable>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) warnings: Vec<String>,
    /// Something could not be read, which may go better the next time.
    #[serde(skip)]
    pub(super) has_failed: bool,
}

impl Tree {
    /// Groups and data sets.
    pub(super) fn objects(&self) -> usize {
        self.groups.len() + self.variables.len()
    }
}

/// Walks the whole file.
///
/// # Errors
/// Only when the root group cannot be read; anything odd further down is left out.
pub(super) fn walk(file: &File) -> Result<Tree> {
    let mut walk =
        Walk { file, tree: Tree::default(), seen: HashSet::new(), attribute_bytes: 0, truncated: false };
    let root = file.root()?;
    walk.seen.insert(root.token()?);
    walk.group(&root, String::new(), 0)?;
    if walk.truncated {
        walk.tree.warnings.push(format!("only the first {MAX_OBJECTS} objects were looked at"));
    }
    if walk.attribute_bytes > MAX_ATTRIBUTE_BYTES {
        walk.tree.warnings.push(format!("attributes beyond {MAX_ATTRIBUTE_BYTES} bytes were left out"));
    }
    Ok(walk.tree)
}

struct Walk<'a> {
    file: &'a File,
    tree: Tree,
    /// Objects met: hard links may form cycles.
    seen: HashSet<Token>,
    attribute_bytes: usize,
    truncated: bool,
}

impl Walk<'_> {
    fn group(&mut self, group: &Object, path: String, depth: usize) -> Result<()> {
        let room = MAX_OBJECTS.saturating_sub(self.seen.len());
        let (links, more) = group.links(room)?;
        self.truncated |= more;
        let attributes = self.attributes(group);
        let number = self.tree.groups.len();
        self.tree.groups.push(Group { path: path.clone(), attributes });
        let mut groups = Vec::new();
        for Link { name, target } in links {
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            match target {
                LinkTarget::Object(token) => self.object(path, token, number, &mut groups),
                LinkTarget::Soft(to) => self.leave_out(path, format!("soft link to `{to}`"), None),
                LinkTarget::Outside => {
                    self.leave_out(path, "link to another file, which is not followed".into(), None)
                }
            }
        }
        for (path, group) in groups {
            if depth >= MAX_DEPTH {
                self.leave_out(path, format!("group more than {MAX_DEPTH} deep"), None);
            } else if let Err(e) = self.group(&group, path.clone(), depth + 1) {
                self.tree.has_failed = true;
                self.leave_out(path, format!("group that cannot be read ({})", e.message()), None);
            }
        }
        Ok(())
    }

    fn object(&mut self, path: String, token: Token, group: usize, groups: &mut Vec<(String, Object)>) {
        if !self.seen.insert(token) {
            return;
        }
        let object = match self.file.object(token) {
            Ok(object) => object,
            Err(e) => {
                self.tree.has_failed = true;
                return self.leave_out(path, format!("object that cannot be read ({})", e.message()), None);
            }
        };
        match object.kind() {
            ObjectKind::Group => groups.push((path, object)),
            ObjectKind::Dataset => self.dataset(path, token, group, &object),
            ObjectKind::Other => {}
        }
    }

    fn dataset(&mut self, path: String, token: Token, group: usize, object: &Object) {
        let facts = match object.facts() {
            Ok(facts) => facts,
            Err(e) => {
                self.tree.has_failed = true;
                return self.leave_out(path, format!("data set that cannot be read ({})", e.message()), None);
            }
        };
        match obstacle(&facts) {
            Some(what) => {
                let text = matches!(facts.element, Element::FixedText { .. } | Element::VariableText);
                let value = if text { shown(object) } else { None };
                self.leave_out(path, what, value);
            }
            None => {
                let attributes = self.attributes(object);
                self.tree.variables.push(Variable { path, group, token, facts, attributes });
            }
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
fn obstacle(facts: &Facts) -> Option<String> {
    let what = match (&facts.element, &facts.layout) {
        (_, Layout::Virtual) => "virtual data set, whose sources are not followed".into(),
        (_, Layout::External) => "data in other files, which are not followed".into(),
        (Element::FixedText { .. } | Element::VariableText, _) => "string".into(),
        (Element::Reference, _) => "reference".into(),
        (Element::ReferenceList, _) => "list of references".into(),
        (Element::Other(what), _) => what.clone(),
        (Element::Number(dtype), _) => {
            let Some(shape) = &facts.shape else { return Some("empty data set".into()) };
            if shape.len() > array::MAX_AXES {
                return Some(format!("array of {} axes, more than {}", shape.len(), array::MAX_AXES));
            }
            return odd_chunks(facts, dtype.size_bytes(), shape.len());
        }
    };
    Some(what)
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
    let foreign = facts.filters.iter().find(|f| !f.available).filter(|_| !ours)?;
    Some(format!("array packed by the filter `{}`, which is not supported", filters::name(foreign.id)))
}

fn shown(object: &Object) -> Option<String> {
    let texts = object.texts(MAX_SHOWN_TEXTS).ok()?;
    let mut value = texts.join(", ");
    if value.len() > MAX_SHOWN_BYTES {
        value.truncate(value.floor_char_boundary(MAX_SHOWN_BYTES));
    }
    Some(value)
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
