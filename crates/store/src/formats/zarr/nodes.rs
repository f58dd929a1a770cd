//! Groups and arrays of a store with their metadata documents, of versions 2 and 3.
//!
//! Consolidated metadata are used if they exist, as other readers do; else directories are listed. Chunks are never listed.

use std::collections::BTreeMap;

use array::{Error, Result};
use serde_json::{Map, Value};

use super::attributes::with_plain_words;
use super::directory::Directory;

/// The documents of which a store has at least one at its top.
pub(super) const DOCUMENTS: [&str; 4] = ["zarr.json", ".zgroup", ".zarray", ".zmetadata"];
/// Most groups and arrays of a Zarr store that are read.
const MAX_NODES: usize = 65_536;
/// Deepest nesting of groups in a Zarr store.
const MAX_NODE_DEPTH: usize = 64;

/// Kind of a node, with the metadata document of an array.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NodeKind {
    Group,
    /// `.zarray`.
    ArrayV2(Value),
    /// `zarr.json`.
    ArrayV3(Value),
}

/// Values of a list; none where there is no list.
pub(super) fn listed(value: Option<&Value>) -> Vec<Value> {
    value.and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Parses the sizes along all axes.
///
/// # Errors
/// `Corrupt` unless it is a list of whole numbers.
pub(super) fn sizes(value: Option<&Value>) -> Result<Vec<u64>> {
    let found = value.and_then(Value::as_array).map(|sizes| sizes.iter().map(Value::as_u64).collect());
    found
        .flatten()
        .ok_or_else(|| Error::corrupt("expected metadata of an array with a shape and chunks, found none"))
}

/// Sizes of chunks along `axes` axes.
///
/// # Errors
/// `Corrupt` for sizes of zero, and of another number of axes.
pub(super) fn chunk_sizes(value: Option<&Value>, axes: usize) -> Result<Vec<u64>> {
    let found = sizes(value)?;
    if found.len() == axes && !found.contains(&0) {
        return Ok(found);
    }
    Err(Error::corrupt(format!("expected chunks of at least one element along {axes} axes, found {found:?}")))
}

/// A group or an array.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ZarrNode {
    pub(super) kind: NodeKind,
    pub(super) attributes: Map<String, Value>,
}

/// Groups and arrays of a store.
#[derive(Debug, Default)]
pub(super) struct ZarrNodes {
    /// Nodes by path without slashes at its ends; the root has the empty path. A group sorts before its members.
    pub(super) by_path: BTreeMap<String, ZarrNode>,
    /// Parts of the data set's identity.
    pub(super) identity: Vec<Vec<u8>>,
    pub(super) warnings: Vec<String>,
}

/// Reads the metadata of a whole store.
///
/// # Errors
/// `Corrupt` when the root's metadata are wrong, `NotFound` when there are none.
pub(super) fn read(directory: &Directory) -> Result<ZarrNodes> {
    let mut nodes = ZarrNodes::default();
    if let Some((document, file)) = directory.document(".zmetadata")? {
        nodes.identity.extend(file.identity());
        nodes.consolidated_v2(&document)?;
        return Ok(nodes);
    }
    nodes.visit(directory, String::new(), 0)?;
    if nodes.by_path.is_empty() {
        return Err(Error::not_found("expected `zarr.json`, `.zgroup` or `.zarray` in the directory"));
    }
    Ok(nodes)
}

impl ZarrNodes {
    fn visit(&mut self, directory: &Directory, path: String, depth: usize) -> Result<()> {
        let Some((node, consolidated)) = self.node(directory, &path)? else { return Ok(()) };
        let is_group = node.kind == NodeKind::Group;
        self.by_path.insert(path.clone(), node);
        if let Some(consolidated) = consolidated {
            return self.consolidated_v3(&path, &consolidated);
        }
        if !is_group || depth >= MAX_NODE_DEPTH {
            return Ok(());
        }
        let listing = directory.directories(&path, MAX_NODES.saturating_sub(self.by_path.len()))?;
        if listing.has_more {
            self.warnings.push(format!("only the first {MAX_NODES} groups and arrays were read"));
        }
        if listing.has_links {
            self.warnings.push(format!("links to directories are not followed, found some in `/{path}`"));
        }
        for name in listing.names {
            if self.by_path.len() >= MAX_NODES {
                break;
            }
            let below = join(&path, &name);
            if let Err(e) = self.visit(directory, below.clone(), depth + 1) {
                self.warnings.push(format!("left out `{below}`: {e}"));
            }
        }
        Ok(())
    }

    /// The node at a path, and its consolidated metadata where it has them.
    fn node(&mut self, directory: &Directory, path: &str) -> Result<Option<(ZarrNode, Option<Value>)>> {
        let mut document = |name: &str| -> Result<Option<Value>> {
            let Some((value, file)) = directory.document(&join(path, name))? else { return Ok(None) };
            self.identity.extend(file.identity());
            Ok(Some(value))
        };
        if let Some(mut value) = document("zarr.json")? {
            let consolidated = value.get_mut("consolidated_metadata").map(Value::take);
            return Ok(node_v3(value).map(|node| (node, consolidated.filter(Value::is_object))));
        }
        let kind = match document(".zarray")? {
            Some(value) => NodeKind::ArrayV2(plain(value)),
            None if document(".zgroup")?.is_some() => NodeKind::Group,
            None => return Ok(None),
        };
        let attributes = document(".zattrs")?.map(object).unwrap_or_default();
        Ok(Some((ZarrNode { kind, attributes }, None)))
    }

    fn consolidated_v2(&mut self, document: &Value) -> Result<()> {
        let entries = document
            .get("metadata")
            .and_then(Value::as_object)
            .ok_or_else(|| Error::corrupt("expected `metadata` in `.zmetadata`"))?;
        for (key, value) in entries.iter().take(3 * MAX_NODES) {
            let (path, name) = key.rsplit_once('/').unwrap_or(("", key));
            let kind = match name {
                ".zarray" => NodeKind::ArrayV2(plain(value.clone())),
                ".zgroup" => NodeKind::Group,
                _ => continue,
            };
            let attributes = entries.get(&join(path, ".zattrs")).cloned().map(object).unwrap_or_default();
            self.by_path.insert(path.to_owned(), ZarrNode { kind, attributes });
        }
        Ok(())
    }

    fn consolidated_v3(&mut self, group: &str, document: &Value) -> Result<()> {
        let entries = document
            .get("metadata")
            .and_then(Value::as_object)
            .ok_or_else(|| Error::corrupt("expected `metadata` in `consolidated_metadata`"))?;
        for (path, value) in entries.iter().take(MAX_NODES) {
            if let Some(node) = node_v3(value.clone()) {
                self.by_path.insert(join(group, path.trim_matches('/')), node);
            }
        }
        Ok(())
    }
}

fn node_v3(mut document: Value) -> Option<ZarrNode> {
    let attributes = document.get_mut("attributes").map(|a| object(a.take())).unwrap_or_default();
    let kind = match document.get("node_type").and_then(Value::as_str) {
        Some("array") => {
            // Attributes are kept beside.
            document.as_object_mut()?.remove("attributes");
            NodeKind::ArrayV3(plain(document))
        }
        Some("group") => NodeKind::Group,
        _ => return None,
    };
    Some(ZarrNode { kind, attributes })
}

/// The document of an array, whose numbers that JSON has not are texts.
fn plain(mut document: Value) -> Value {
    with_plain_words(&mut document);
    document
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// A path below another.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}
