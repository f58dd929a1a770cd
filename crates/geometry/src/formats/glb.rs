//! glTF 2.0 in one file (`.glb`): triangles of float positions, moved and scaled by their nodes.

use array::{Error, Result};
use serde_json::Value;

use crate::bytes::{FileReader, NumberType, index};
use crate::model::{check_count, parse_json};
use crate::{Geometry, MAX_TRIANGLES, MAX_VERTICES};

const MAGIC: &[u8] = b"glTF";
/// Chunk types: JSON, and binary data.
const JSON: u32 = 0x4E4F_534A;
const BINARY: u32 = 0x004E_4942;
/// Deepest nesting of nodes.
const MAX_DEPTH: usize = 16;
/// Most meshes of all nodes.
const MAX_MESHES: usize = 4_096;
/// Most parts of the meshes of all nodes.
const MAX_PRIMITIVES: usize = 65_536;

/// Affine map, by row.
type AffineRows = [[f64; 4]; 3];

const IDENTITY: AffineRows = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]];

struct GlbDocument<'a> {
    json: Value,
    binary: &'a [u8],
    meshes: usize,
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
            JSON => json = parse_json(chunk, "a .glb file")?,
            BINARY if binary.is_empty() => binary = chunk,
            _ => {}
        }
    }
    let mut document = GlbDocument { json, binary, meshes: 0, primitives: 0, has_others: false };
    let mut geometry = Geometry::default();
    let scene = document.json["scene"].as_u64().unwrap_or(0);
    let roots = document.json.pointer(&format!("/scenes/{scene}/nodes")).cloned().unwrap_or_default();
    for root in roots.as_array().into_iter().flatten() {
        document.add_node(root.as_u64(), &IDENTITY, 0, &mut geometry)?;
    }
    if document.has_others {
        geometry.notes.push("Parts of it that are no triangles are left out.".to_owned());
    }
    geometry.finished("glTF")
}

impl GlbDocument<'_> {
    fn part(&self, list: &str, number: Option<u64>) -> Result<&Value> {
        let part = number.and_then(|number| self.json.pointer(&format!("/{list}/{number}")));
        part.ok_or_else(|| {
            Error::corrupt(format!("expected an entry of `{list}` in a .glb file, found none"))
        })
    }

    fn add_node(
        &mut self,
        number: Option<u64>,
        outer: &AffineRows,
        depth: usize,
        geometry: &mut Geometry,
    ) -> Result<()> {
        let node = self.part("nodes", number)?.clone();
        self.meshes += 1;
        if depth > MAX_DEPTH || self.meshes > MAX_MESHES {
            return Err(Error::too_large(format!(
                "expected at most {MAX_MESHES} nodes in {MAX_DEPTH} levels in a .glb file, found more"
            )));
        }
        let rows = product(outer, &rows_of(&node));
        if let Some(mesh) = node["mesh"].as_u64() {
            let primitives = self.part("meshes", Some(mesh))?["primitives"].clone();
            for primitive in primitives.as_array().into_iter().flatten() {
                self.add_primitive(primitive, &rows, geometry)?;
            }
        }
        for child in node["children"].as_array().into_iter().flatten() {
            self.add_node(child.as_u64(), &rows, depth + 1, geometry)?;
        }
        Ok(())
    }

    fn add_primitive(&mut self, primitive: &Value, rows: &AffineRows, geometry: &mut Geometry) -> Result<()> {
        self.primitives += 1;
        check_count(self.primitives, MAX_PRIMITIVES, "parts of meshes")?;
        if primitive["mode"].as_u64().unwrap_or(4) != 4 {
            self.has_others = true;
            return Ok(());
        }
        let mut own = Geometry {
            positions: self.numbers(&primitive["attributes"]["POSITION"])?.as_chunks().0.to_vec(),
            ..Geometry::default()
        };
        check_count(geometry.positions.len() + own.positions.len(), MAX_VERTICES, "vertices")?;
        own.transform(rows);
        let before = u32::try_from(geometry.positions.len()).unwrap_or(u32::MAX);
        let corners = match &primitive["indices"] {
            Value::Null => (0..own.positions.len()).map(|at| at as f64).collect(),
            indices => self.numbers(indices)?,
        };
        // Many parts may share the same bytes.
        check_count(geometry.triangles.len() + corners.len() / 3, MAX_TRIANGLES, "triangles")?;
        let corners = corners.into_iter().map(|corner| Ok(index(corner)?.saturating_add(before)));
        geometry.triangles.extend_from_slice(corners.collect::<Result<Vec<_>>>()?.as_chunks().0);
        geometry.positions.append(&mut own.positions);
        Ok(())
    }

    /// Returns the numbers of an accessor.
    fn numbers(&self, accessor: &Value) -> Result<Vec<f64>> {
        let accessor = self.part("accessors", accessor.as_u64())?;
        let view = self.part("bufferViews", accessor["bufferView"].as_u64())?;
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
        let components = if accessor["type"] == "VEC3" { 3 } else { 1 };
        let size = components * number_type.size_bytes();
        let stride = if view["byteStride"].is_u64() { count_of(&view["byteStride"]).max(size) } else { size };
        let start = count_of(&view["byteOffset"]).saturating_add(count_of(&accessor["byteOffset"]));
        let mut reader = FileReader::new(self.binary.get(start..).unwrap_or_default(), false);
        let count = count_of(&accessor["count"]);
        if stride == size {
            return reader.numbers(number_type, count.saturating_mul(components));
        }
        let mut numbers = Vec::new();
        for at in 0..count {
            numbers.append(&mut reader.numbers(number_type, components)?);
            if at + 1 < count {
                reader.take(stride - size)?;
            }
        }
        Ok(numbers)
    }
}

/// Returns the map of a node, from its matrix or its translation, rotation and scale.
fn rows_of(node: &Value) -> AffineRows {
    let numbers = |name: &str| -> Vec<f64> {
        node[name].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
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
        let mut document =
            GlbDocument { json, binary: &[0; 39], meshes: 0, primitives: 0, has_others: false };
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
