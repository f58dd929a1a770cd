//! glTF 2.0 in one file (`.glb`): triangles of float positions, moved and scaled by their nodes.

use array::{Error, Result};
use serde_json::Value;

use crate::bytes::{FileReader, NumberType, index};
use crate::json::parse_json;
use crate::model::check_count;
use crate::{Geometry, MAX_TRIANGLES, MAX_VERTICES};

const MAGIC: &[u8] = b"glTF";
/// Chunk types: JSON, and binary data.
const JSON: u32 = 0x4E4F_534A;
const BINARY: u32 = 0x004E_4942;
/// Deepest nesting of nodes.
const MAX_DEPTH: usize = 16;
/// Most nodes of a scene; those that several nodes share count for each.
const MAX_NODES: usize = 4_096;
/// Most parts of the meshes of all nodes.
const MAX_PRIMITIVES: usize = 65_536;

/// Affine map, by row.
type AffineRows = [[f64; 4]; 3];

const IDENTITY: AffineRows = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]];

struct GlbDocument<'a> {
    json: &'a Value,
    binary: &'a [u8],
    /// Nodes from the root to the one that is read.
    path: Vec<u64>,
    /// Nodes and primitives until now.
    nodes: usize,
    primitives: usize,
    /// True if there are primitives other than triangles.
    has_others: bool,
}

pub(crate) fn read(bytes: &[u8]) -> Result<Geometry> {
    let mut reader = FileReader::new(bytes, false);
    if reader.take(4)? != MAGIC || reader.u32()? != 2 {
        return Err(Error::corrupt("expected glTF 2.0 in a .glb file"));
    }
    reader.u32()?;
    let (mut json, mut binary) = (Value::Null, &[][..]);
    while reader.left() >= 8 {
        let (length, kind) = (reader.u32()? as usize, reader.u32()?);
        let chunk = reader.take(length)?;
        match kind {
            // There is one; a second tree would take memory beside the first.
            JSON if json.is_null() => json = parse_json(chunk, "a .glb file")?,
            BINARY if binary.is_empty() => binary = chunk,
            _ => {}
        }
    }
    let mut document = GlbDocument::new(&json, binary);
    let mut geometry = Geometry::default();
    let scene = json["scene"].as_u64().unwrap_or(0);
    let roots = json.pointer(&format!("/scenes/{scene}/nodes")).and_then(Value::as_array);
    for root in roots.into_iter().flatten() {
        document.add_node(root, &IDENTITY, &mut geometry)?;
    }
    if document.has_others {
        geometry.notes.push("Parts of it that are no triangles are left out.".to_owned());
    }
    geometry.finished("glTF")
}

impl<'a> GlbDocument<'a> {
    fn new(json: &'a Value, binary: &'a [u8]) -> Self {
        Self { json, binary, path: Vec::new(), nodes: 0, primitives: 0, has_others: false }
    }

    fn part(&self, list: &str, number: &Value) -> Result<&'a Value> {
        let part = number.as_u64().and_then(|number| self.json.pointer(&format!("/{list}/{number}")));
        part.ok_or_else(|| {
            Error::corrupt(format!("expected an entry of `{list}` in a .glb file, found none"))
        })
    }

    /// Adds the mesh of a node and its children.
    fn add_node(&mut self, number: &Value, outer: &AffineRows, geometry: &mut Geometry) -> Result<()> {
        let node = self.part("nodes", number)?;
        self.enter(number.as_u64().unwrap_or_default())?;
        let rows = product(outer, &rows_of(node));
        if node["mesh"].is_u64() {
            let primitives = self.part("meshes", &node["mesh"])?["primitives"].as_array();
            for primitive in primitives.into_iter().flatten() {
                self.add_primitive(primitive, &rows, geometry)?;
            }
        }
        for child in node["children"].as_array().into_iter().flatten() {
            self.add_node(child, &rows, geometry)?;
        }
        self.path.pop();
        Ok(())
    }

    /// Adds a node to the path; refuses cycles, and too many nodes or levels.
    fn enter(&mut self, number: u64) -> Result<()> {
        if self.path.contains(&number) {
            return Err(Error::corrupt(format!(
                "expected nodes without cycles in a .glb file, found node {number} within itself"
            )));
        }
        self.path.push(number);
        self.nodes += 1;
        check_count(self.path.len(), MAX_DEPTH + 1, "levels of nodes")?;
        check_count(self.nodes, MAX_NODES, "nodes")
    }

    fn add_primitive(&mut self, primitive: &Value, rows: &AffineRows, geometry: &mut Geometry) -> Result<()> {
        self.primitives += 1;
        check_count(self.primitives, MAX_PRIMITIVES, "parts of meshes")?;
        if primitive["mode"].as_u64().unwrap_or(4) != 4 {
            self.has_others = true;
            return Ok(());
        }
        // Many parts may share the same bytes: numbers are counted before they take memory.
        let positions = self.accessor(&primitive["attributes"]["POSITION"])?;
        let before = geometry.positions.len();
        check_count(before.saturating_add(positions.numbers / 3), MAX_VERTICES, "vertices")?;
        let mut own = Geometry { positions: positions.read()?.as_chunks().0.to_vec(), ..Geometry::default() };
        own.transform(rows);
        let triangles = geometry.triangles.len();
        let corners = if primitive["indices"].is_null() {
            check_count(triangles + own.positions.len() / 3, MAX_TRIANGLES, "triangles")?;
            (0..own.positions.len()).map(|at| at as f64).collect()
        } else {
            let indices = self.accessor(&primitive["indices"])?;
            check_count(triangles.saturating_add(indices.numbers / 3), MAX_TRIANGLES, "triangles")?;
            indices.read()?
        };
        let first = u32::try_from(before).unwrap_or(u32::MAX);
        let corners = corners.into_iter().map(|corner| Ok(index(corner)?.saturating_add(first)));
        geometry.triangles.extend_from_slice(corners.collect::<Result<Vec<_>>>()?.as_chunks().0);
        geometry.positions.append(&mut own.positions);
        Ok(())
    }

    fn accessor(&self, number: &Value) -> Result<GlbAccessor<'a>> {
        let accessor = self.part("accessors", number)?;
        let view = self.part("bufferViews", &accessor["bufferView"])?;
        let count_of =
            |value: &Value| value.as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
        let number_type = match accessor["componentType"].as_u64() {
            Some(5121) => NumberType::U8,
            Some(5123) => NumberType::U16,
            Some(5125) => NumberType::U32,
            Some(5126) => NumberType::F32,
            other => {
                return Err(Error::unsupported(format!(
                    "expected a component type of glTF, found {other:?}"
                )));
            }
        };
        let start = count_of(&view["byteOffset"]).saturating_add(count_of(&accessor["byteOffset"]));
        let components = if accessor["type"] == "VEC3" { 3 } else { 1 };
        Ok(GlbAccessor {
            bytes: self.binary.get(start..).unwrap_or_default(),
            number_type,
            components,
            numbers: count_of(&accessor["count"]).saturating_mul(components),
            stride: count_of(&view["byteStride"]),
        })
    }
}

/// Numbers in the binary data.
struct GlbAccessor<'a> {
    bytes: &'a [u8],
    number_type: NumberType,
    /// Numbers that stand together.
    components: usize,
    /// Numbers in all.
    numbers: usize,
    /// Bytes from one group of components to the next, if they are more than its own.
    stride: usize,
}

impl GlbAccessor<'_> {
    fn read(&self) -> Result<Vec<f64>> {
        let mut reader = FileReader::new(self.bytes, false);
        let gap = self.stride.saturating_sub(self.components * self.number_type.size_bytes());
        if gap == 0 {
            return reader.numbers(self.number_type, self.numbers);
        }
        let mut numbers = Vec::new();
        while numbers.len() < self.numbers {
            if !numbers.is_empty() {
                reader.take(gap)?;
            }
            numbers.append(&mut reader.numbers(self.number_type, self.components)?);
        }
        Ok(numbers)
    }
}

/// Returns the map of a node, from its matrix or its translation, rotation and scale.
fn rows_of(node: &Value) -> AffineRows {
    let numbers = |name: &str| -> Vec<f64> {
        // One more than the longest has, so that longer lists fit none.
        node[name].as_array().into_iter().flatten().take(17).filter_map(Value::as_f64).collect()
    };
    if let Ok(m) = <[f64; 16]>::try_from(numbers("matrix")) {
        // By column in the file.
        return [0, 1, 2].map(|row| [m[row], m[4 + row], m[8 + row], m[12 + row]]);
    }
    let [tx, ty, tz] = numbers("translation").try_into().unwrap_or([0.0; 3]);
    let [sx, sy, sz] = numbers("scale").try_into().unwrap_or([1.0; 3]);
    let [x, y, z, w] = numbers("rotation").try_into().unwrap_or([0.0, 0.0, 0.0, 1.0]);
    [
        [(1.0 - 2.0 * (y * y + z * z)) * sx, 2.0 * (x * y - z * w) * sy, 2.0 * (x * z + y * w) * sz, tx],
        [2.0 * (x * y + z * w) * sx, (1.0 - 2.0 * (x * x + z * z)) * sy, 2.0 * (y * z - x * w) * sz, ty],
        [2.0 * (x * z - y * w) * sx, 2.0 * (y * z + x * w) * sy, (1.0 - 2.0 * (x * x + y * y)) * sz, tz],
    ]
}

fn product(outer: &AffineRows, inner: &AffineRows) -> AffineRows {
    outer.map(|row| {
        let column =
            |c: usize| (0..3).map(|k| row[k] * inner[k][c]).sum::<f64>() + if c == 3 { row[3] } else { 0.0 };
        [column(0), column(1), column(2), column(3)]
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_that_share_bytes_are_counted_before_they_take_memory() {
        let json = json!({
            "bufferViews": [{"byteLength": 36}, {"byteOffset": 36, "byteLength": 3}],
            "accessors": [
                {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"},
                {"bufferView": 1, "componentType": 5121, "count": 3, "type": "SCALAR"},
            ],
        });
        let part = json!({"attributes": {"POSITION": 0}, "indices": 1});
        let mut document = GlbDocument::new(&json, &[0; 39]);
        let mut geometry = Geometry { triangles: vec![[0; 3]; MAX_TRIANGLES - 1], ..Geometry::default() };
        document.add_primitive(&part, &IDENTITY, &mut geometry).unwrap();
        let error = document.add_primitive(&part, &IDENTITY, &mut geometry).unwrap_err().to_string();
        assert!(error.contains("triangles"), "{error}");
        assert_eq!(geometry.triangles.len(), MAX_TRIANGLES);
        let mut geometry = Geometry { positions: vec![[0.0; 3]; MAX_VERTICES - 2], ..Geometry::default() };
        let error = document.add_primitive(&part, &IDENTITY, &mut geometry).unwrap_err().to_string();
        assert!(error.contains("vertices"), "{error}");
    }
}
