//! Files of triangles: binary PLY, glTF 2.0 in one file (`.glb`), VTK's PolyData (`.vtp`, raw appended data).
//!
//! PLY and VTP store positions as doubles in world coordinates. glTF has single precision only: positions are stored
//! relative to their center, which a node's translation adds again.

use std::io::Write;
use std::path::Path;

use array::{Error, Result};
use render::Mesh;
use serde_json::json;

/// Kind of file to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MeshKind {
    Ply,
    Glb,
    Vtp,
}

/// Maximum size of a GLB file, in bytes: its lengths have 32 bits.
const MAX_GLB_BYTES: usize = u32::MAX as usize;

impl MeshKind {
    /// Determines the kind by the file's extension.
    ///
    /// # Errors
    /// `Invalid`, listing the supported extensions.
    pub(super) fn of(path: &Path) -> Result<Self> {
        match path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase().as_str() {
            "ply" => Ok(Self::Ply),
            "glb" => Ok(Self::Glb),
            "vtp" => Ok(Self::Vtp),
            _ => Err(Error::invalid(format!(
                "expected an output that ends in .ply, .glb or .vtp, found `{}`",
                path.display()
            ))),
        }
    }

    pub(super) fn write(self, mesh: &Mesh, to: &mut impl Write) -> Result<()> {
        match self {
            Self::Ply => write_ply(mesh, to),
            Self::Glb => write_glb(mesh, to),
            Self::Vtp => write_vtp(mesh, to),
        }
    }
}

fn write_ply(mesh: &Mesh, to: &mut impl Write) -> Result<()> {
    write!(
        to,
        "ply\nformat binary_little_endian 1.0\nelement vertex {}\nproperty double x\nproperty double y\n\
         property double z\nelement face {}\nproperty list uchar uint vertex_indices\nend_header\n",
        mesh.positions.len(),
        mesh.triangles.len()
    )?;
    for value in mesh.positions.as_flattened() {
        to.write_all(&value.to_le_bytes())?;
    }
    for triangle in &mesh.triangles {
        to.write_all(&[3])?;
        for index in triangle {
            to.write_all(&index.to_le_bytes())?;
        }
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "glTF has single precision, and lengths were checked")]
fn write_glb(mesh: &Mesh, to: &mut impl Write) -> Result<()> {
    let (positions, indices) = (mesh.positions.len() * 12, mesh.triangles.len() * 12);
    let Some(bounds) = mesh.bounds() else {
        return Err(Error::invalid("expected a surface to write as glTF, found none at this value"));
    };
    let middle = bounds.center();
    let near = |p: &[f64; 3]| [0, 1, 2].map(|a| (p[a] - middle[a]) as f32);
    let document = json!({
        "asset": {"version": "2.0", "generator": "Corridor"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0, "translation": middle}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "buffers": [{"byteLength": positions + indices}],
        "bufferViews": [
            {"buffer": 0, "byteOffset": 0, "byteLength": positions, "target": 34962},
            {"buffer": 0, "byteOffset": positions, "byteLength": indices, "target": 34963},
        ],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": mesh.positions.len(), "type": "VEC3",
             "min": near(&bounds.min), "max": near(&bounds.max)},
            {"bufferView": 1, "componentType": 5125, "count": mesh.triangles.len() * 3, "type": "SCALAR"},
        ],
    });
    let mut text = document.to_string().into_bytes();
    // Chunks are multiples of four bytes; JSON is padded with blanks.
    text.resize(text.len().next_multiple_of(4), b' ');
    let total = 12 + 8 + text.len() + 8 + positions + indices;
    if total > MAX_GLB_BYTES {
        return Err(Error::too_large(format!(
            "expected a .glb of less than 4 GiB, found {total} bytes: try .ply"
        )));
    }
    let word = |n: usize| (n as u32).to_le_bytes();
    to.write_all(b"glTF")?;
    to.write_all(&[word(2), word(total), word(text.len())].concat())?;
    to.write_all(b"JSON")?;
    to.write_all(&text)?;
    to.write_all(&word(positions + indices))?;
    to.write_all(b"BIN\0")?;
    for value in mesh.positions.iter().flat_map(near) {
        to.write_all(&value.to_le_bytes())?;
    }
    for index in mesh.triangles.as_flattened() {
        to.write_all(&index.to_le_bytes())?;
    }
    Ok(())
}

fn write_vtp(mesh: &Mesh, to: &mut impl Write) -> Result<()> {
    let (points, corners) = (mesh.positions.len() * 24, mesh.triangles.len() * 24);
    // Each piece of appended data begins with its length in 8 bytes.
    let offsets = [0, 8 + points, 16 + points + corners];
    write!(
        to,
        r#"<?xml version="1.0"?>
<VTKFile type="PolyData" version="1.0" byte_order="LittleEndian" header_type="UInt64">
<PolyData><Piece NumberOfPoints="{}" NumberOfPolys="{}">
<Points><DataArray type="Float64" NumberOfComponents="3" format="appended" offset="{}"/></Points>
<Polys>
<DataArray type="Int64" Name="connectivity" format="appended" offset="{}"/>
<DataArray type="Int64" Name="offsets" format="appended" offset="{}"/>
</Polys></Piece></PolyData>
<AppendedData encoding="raw">
_"#,
        mesh.positions.len(),
        mesh.triangles.len(),
        offsets[0],
        offsets[1],
        offsets[2]
    )?;
    let length = |bytes: usize| (bytes as u64).to_le_bytes();
    to.write_all(&length(points))?;
    for value in mesh.positions.as_flattened() {
        to.write_all(&value.to_le_bytes())?;
    }
    to.write_all(&length(corners))?;
    for index in mesh.triangles.as_flattened() {
        to.write_all(&i64::from(*index).to_le_bytes())?;
    }
    to.write_all(&length(mesh.triangles.len() * 8))?;
    for end in 1..=mesh.triangles.len() as u64 {
        to.write_all(&(3 * end).to_le_bytes())?;
    }
    write!(to, "\n</AppendedData>\n</VTKFile>\n")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn mesh() -> Mesh {
        let positions = vec![[1e6, 0.0, 0.0], [1e6 + 1.0, 0.0, 0.0], [1e6, 1.0, 0.0], [1e6, 0.0, 1.0]];
        Mesh { positions, triangles: vec![[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]] }
    }

    fn written(kind: MeshKind) -> Vec<u8> {
        let mut file = Vec::new();
        kind.write(&mesh(), &mut file).unwrap();
        file
    }

    fn word(file: &[u8], at: usize) -> usize {
        u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize
    }

    #[test]
    fn the_elements_of_ply_match_the_header() {
        let file = written(MeshKind::Ply);
        let end = file.windows(11).position(|w| w == b"end_header\n").unwrap() + 11;
        let header = std::str::from_utf8(&file[..end]).unwrap();
        assert!(header.contains("element vertex 4\n") && header.contains("element face 4\n"));
        assert_eq!(file.len(), end + 4 * 24 + 4 * 13);
        assert_eq!(file[end + 24..end + 32], (1e6f64 + 1.0).to_le_bytes());
        assert_eq!((file[end + 96], word(&file, end + 101)), (3, 2));
    }

    #[test]
    fn glb_has_two_chunks_and_keeps_precision_far_from_the_origin() {
        let file = written(MeshKind::Glb);
        assert_eq!((&file[..4], word(&file, 4), word(&file, 8)), (&b"glTF"[..], 2, file.len()));
        let text = word(&file, 12);
        let document: Value = serde_json::from_slice(&file[20..20 + text]).unwrap();
        assert_eq!(document["nodes"][0]["translation"], json!([1e6 + 0.5, 0.5, 0.5]));
        assert_eq!(document["accessors"][0]["max"], json!([0.5, 0.5, 0.5]));
        let data = 20 + text + 8;
        assert_eq!(word(&file, data - 8), file.len() - data);
        assert_eq!(document["buffers"][0]["byteLength"], json!(file.len() - data));
        assert_eq!(f32::from_le_bytes(file[data + 12..data + 16].try_into().unwrap()), 0.5);
        assert_eq!(word(&file, data + 48 + 4), 2);
    }

    #[test]
    fn the_arrays_of_vtp_lie_at_their_offsets() {
        let file = written(MeshKind::Vtp);
        let begin = file.windows(2).position(|w| w == b"\n_").unwrap() + 2;
        let text = String::from_utf8_lossy(&file[..begin]).into_owned();
        let lengths = [96, 96, 32];
        for (name, (offset, length)) in
            ["Points", "connectivity", "offsets"].iter().zip([0, 104, 208].iter().zip(lengths))
        {
            assert!(text.contains(&format!("offset=\"{offset}\"")), "{name}");
            assert_eq!(word(&file, begin + offset), length, "{name}");
        }
        assert!(file.ends_with(b"\n</AppendedData>\n</VTKFile>\n"));
    }

    #[test]
    fn an_empty_surface_is_written_unless_the_format_is_gltf() {
        let empty = Mesh::default();
        assert!(MeshKind::Ply.write(&empty, &mut Vec::new()).is_ok());
        assert!(MeshKind::Vtp.write(&empty, &mut Vec::new()).is_ok());
        assert!(MeshKind::Glb.write(&empty, &mut Vec::new()).is_err());
    }
}
