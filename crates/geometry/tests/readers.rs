//! Readers: a small file of each format, the same file cut off at each byte, and with bytes changed.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use base64::Engine as _;
use corridor_geometry::{Geometry, GeometrySpace, MAX_JSON_BYTES, MAX_TEXTS, read};
use proptest::prelude::*;

const TETRAHEDRON: [[f32; 3]; 4] = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]];
const FACES: [[u32; 3]; 4] = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]];

fn ply_text() -> Vec<u8> {
    b"ply\nformat ascii 1.0\ncomment made by hand\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n\
      property uchar red\nproperty uchar green\nproperty uchar blue\nproperty float heat\nelement face 2\n\
      property list uchar int vertex_indices\nelement edge 1\nproperty int vertex1\nproperty int vertex2\nend_header\n\
      0 0 0 255 0 0 1.5\n1 0 0 0 255 0 2.5\n1 1 0 0 0 255 3.5\n0 1 0 9 9 9 4.5\n4 0 1 2 3\n3 0 1 2\n1 3\n"
        .to_vec()
}

fn ply_binary(is_big: bool) -> Vec<u8> {
    let order = if is_big { "big" } else { "little" };
    let mut file = format!(
        "ply\nformat binary_{order}_endian 1.0\nelement vertex 4\nproperty double x\nproperty double y\nproperty double z\n\
         element face 4\nproperty list uchar uint vertex_indices\nend_header\n"
    )
    .into_bytes();
    for value in TETRAHEDRON.as_flattened().iter().map(|&v| f64::from(v)) {
        file.extend(if is_big { value.to_be_bytes() } else { value.to_le_bytes() });
    }
    for face in FACES {
        file.push(3);
        face.iter()
            .for_each(|corner| file.extend(if is_big { corner.to_be_bytes() } else { corner.to_le_bytes() }));
    }
    file
}

fn stl_binary() -> Vec<u8> {
    let mut file = vec![b' '; 80];
    file.extend(4u32.to_le_bytes());
    for face in FACES {
        file.extend([0; 12]);
        for corner in face {
            TETRAHEDRON[corner as usize].iter().for_each(|v| file.extend(v.to_le_bytes()));
        }
        file.extend([0; 2]);
    }
    file
}

fn stl_text() -> Vec<u8> {
    let mut text = "solid SPACE=LPS\n".to_owned();
    for face in FACES {
        text += "facet normal 0 0 0\nouter loop\n";
        for corner in face {
            let [x, y, z] = TETRAHEDRON[corner as usize];
            text += &format!("vertex {x} {y} {z:e}\n");
        }
        text += "endloop\nendfacet\n";
    }
    (text + "endsolid\n").into_bytes()
}

fn freesurfer(real_ras: u32) -> Vec<u8> {
    let mut file = vec![0xFF, 0xFF, 0xFE];
    file.extend(b"created by hand\n\n");
    file.extend([4u32, 4].iter().flat_map(|n| n.to_be_bytes()));
    TETRAHEDRON.as_flattened().iter().for_each(|v| file.extend(v.to_be_bytes()));
    FACES.as_flattened().iter().for_each(|v| file.extend(v.to_be_bytes()));
    file.extend([2, real_ras, 20].iter().flat_map(|n| n.to_be_bytes()));
    file.extend(
        b"valid = 1  # volume info valid\nfilename = orig.mgz\nvolume = 256 256 256\ncras = 5.0 -6.5 7.25\n",
    );
    file
}

fn gifti() -> Vec<u8> {
    let points: Vec<u8> = TETRAHEDRON.as_flattened().iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut zlib, &points).unwrap();
    let encode = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let corners: String = FACES.as_flattened().iter().map(|v| format!("{v} ")).collect();
    let values: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|v| v.to_be_bytes()).collect();
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<GIFTI Version="1.0" NumberOfDataArrays="3">
<DataArray Intent="NIFTI_INTENT_POINTSET" DataType="NIFTI_TYPE_FLOAT32" ArrayIndexingOrder="RowMajorOrder" Dimensionality="2"
 Dim0="4" Dim1="3" Encoding="GZipBase64Binary" Endian="LittleEndian">
<MetaData><MD><Name><![CDATA[VolGeomC_R]]></Name><Value><![CDATA[10]]></Value></MD>
<MD><Name>VolGeomC_A</Name><Value>20</Value></MD><MD><Name>VolGeomC_S</Name><Value>30</Value></MD></MetaData>
<CoordinateSystemTransformMatrix><DataSpace><![CDATA[NIFTI_XFORM_UNKNOWN]]></DataSpace>
<TransformedSpace><![CDATA[NIFTI_XFORM_UNKNOWN]]></TransformedSpace>
<MatrixData>1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1</MatrixData></CoordinateSystemTransformMatrix>
<Data>{}</Data></DataArray>
<DataArray Intent="NIFTI_INTENT_TRIANGLE" DataType="NIFTI_TYPE_INT32" Dim0="4" Dim1="3" Encoding="ASCII"><Data>{corners}</Data></DataArray>
<DataArray Intent="NIFTI_INTENT_SHAPE" DataType="NIFTI_TYPE_FLOAT32" Dim0="4" Encoding="Base64Binary" Endian="BigEndian">
<MetaData><MD><Name>thickness</Name><Value/></MD><MD><Name>Name</Name><Value>thickness</Value></MD></MetaData><Data>{}</Data></DataArray>
</GIFTI>"#,
        encode(&zlib.finish().unwrap()),
        encode(&values),
    )
    .into_bytes()
}

fn vtp(encoding: &str) -> Vec<u8> {
    let encode = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let points: Vec<u8> = TETRAHEDRON.as_flattened().iter().flat_map(|v| v.to_le_bytes()).collect();
    let corners: Vec<u8> = FACES.as_flattened().iter().flat_map(|v| i64::from(*v).to_le_bytes()).collect();
    let ends: Vec<u8> = [3i64, 6, 9, 12].iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut appended = Vec::new();
    let mut array = |bytes: &[u8], text: &str, attributes: &str| match encoding {
        "ascii" => format!("<DataArray {attributes} format=\"ascii\">{text}</DataArray>"),
        "binary" => {
            let mut all = u32::try_from(bytes.len()).unwrap().to_le_bytes().to_vec();
            all.extend(bytes);
            format!("<DataArray {attributes} format=\"binary\">\n {} \n</DataArray>", encode(&all))
        }
        "zlib" => {
            // Two blocks.
            let (first, second) = bytes.split_at(16);
            let blocks = [first, second].map(|block| {
                let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
                std::io::Write::write_all(&mut zlib, block).unwrap();
                zlib.finish().unwrap()
            });
            let sizes = [2, 16, second.len(), blocks[0].len(), blocks[1].len()];
            let header: Vec<u8> =
                sizes.iter().flat_map(|&n| u32::try_from(n).unwrap().to_le_bytes()).collect();
            format!(
                "<DataArray {attributes} format=\"binary\">{}{}</DataArray>",
                encode(&header),
                encode(&blocks.concat())
            )
        }
        _ => {
            let offset = appended.len();
            appended.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
            appended.extend(bytes);
            format!("<DataArray {attributes} format=\"appended\" offset=\"{offset}\"/>")
        }
    };
    let text = |numbers: &[f64]| numbers.iter().map(|v| format!("{v} ")).collect::<String>();
    let positions = TETRAHEDRON.as_flattened().iter().map(|&v| v.into()).collect::<Vec<f64>>();
    let indices = FACES.as_flattened().iter().map(|&v| v.into()).collect::<Vec<f64>>();
    let arrays = [
        array(&points, &text(&positions), r#"type="Float32" NumberOfComponents="3" Name="Points""#),
        array(&corners, &text(&indices), r#"type="Int64" Name="connectivity""#),
        array(&ends, &text(&[3.0, 6.0, 9.0, 12.0]), r#"type="Int64" Name="offsets""#),
        array(&points[..16], "0 0 0 1", r#"type="Float32" Name="heat""#),
    ];
    let compressor = if encoding == "zlib" { r#" compressor="vtkZLibDataCompressor""# } else { "" };
    let mut file = format!(
        r#"<?xml version="1.0"?><VTKFile type="PolyData" version="0.1" byte_order="LittleEndian"{compressor}><PolyData>
<Piece NumberOfPoints="4" NumberOfPolys="4"><Points>{}</Points><Polys>{}{}</Polys><PointData Scalars="heat">{}</PointData></Piece></PolyData>"#,
        arrays[0], arrays[1], arrays[2], arrays[3]
    )
    .into_bytes();
    if !appended.is_empty() {
        file.extend(b"<AppendedData encoding=\"raw\">\n_");
        file.extend(appended);
        file.extend(b"</AppendedData>");
    }
    file.extend(b"</VTKFile>");
    file
}

fn shapefile() -> Vec<u8> {
    let mut content = 3u32.to_le_bytes().to_vec();
    content.extend([0; 32]);
    content.extend([2u32, 5, 0, 2].iter().flat_map(|n| n.to_le_bytes()));
    let places = [[0.0f64, 1.0], [10.0, 1.0], [20.0, 30.0], [21.0, 31.0], [22.0, -45.5]];
    places.as_flattened().iter().for_each(|v| content.extend(v.to_le_bytes()));
    let mut point = 1u32.to_le_bytes().to_vec();
    [7.0f64, 8.0].iter().for_each(|v| point.extend(v.to_le_bytes()));
    let mut file = 9994u32.to_be_bytes().to_vec();
    file.extend([0; 96]);
    for (number, record) in [content, point].iter().enumerate() {
        let words = u32::try_from(record.len() / 2).unwrap();
        file.extend([u32::try_from(number).unwrap() + 1, words].iter().flat_map(|n| n.to_be_bytes()));
        file.extend(record);
    }
    file
}

const GEOJSON: &str = r#"{"type": "FeatureCollection", "features": [
  {"type": "Feature", "properties": {"name": "Oslo", "people": 700000}, "geometry": {"type": "Point", "coordinates": [10.75, 59.9]}},
  {"type": "Feature", "properties": null, "geometry": {"type": "MultiPolygon",
   "coordinates": [[[[0, 0], [4, 0], [4, 4], [0, 0]]], [[[9, 9], [8, 9], [9, 8], [9, 9]]]]}},
  {"type": "Feature", "properties": {"depth": 3}, "geometry": null}]}"#;

const TABLE: &str = "label,longitude,latitude,value\nA,1.5,2.5,10\n\"B, far\",-3,4e1,\n";

fn glb() -> Vec<u8> {
    let json = r#"{"asset":{"version":"2.0"},"scene":0,"scenes":[{"nodes":[0]}],"nodes":[{"mesh":0,"translation":[100,0,0]}],"meshes":[{"primitives":[{"attributes":{"POSITION":0},"indices":1}]}],"buffers":[{"byteLength":96}],"bufferViews":[{"buffer":0,"byteLength":48},{"buffer":0,"byteOffset":48,"byteLength":48}],"accessors":[{"bufferView":0,"componentType":5126,"count":4,"type":"VEC3"},{"bufferView":1,"componentType":5125,"count":12,"type":"SCALAR"}]}"#;
    let mut text = json.as_bytes().to_vec();
    text.resize(text.len().next_multiple_of(4), b' ');
    let mut data: Vec<u8> = TETRAHEDRON.as_flattened().iter().flat_map(|v| v.to_le_bytes()).collect();
    FACES.as_flattened().iter().for_each(|v| data.extend(v.to_le_bytes()));
    let word = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
    [
        &b"glTF"[..],
        &word(2),
        &word(28 + text.len() + data.len()),
        &word(text.len()),
        b"JSON",
        &text,
        &word(data.len()),
        b"BIN\0",
        &data,
    ]
    .concat()
}

fn samples() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("text.ply", ply_text()),
        ("little.ply", ply_binary(false)),
        ("big.ply", ply_binary(true)),
        ("binary.stl", stl_binary()),
        ("text.stl", stl_text()),
        ("lh.pial", freesurfer(0)),
        ("a.surf.gii", gifti()),
        ("ascii.vtp", vtp("ascii")),
        ("binary.vtp", vtp("binary")),
        ("zlib.vtp", vtp("zlib")),
        ("raw.vtp", vtp("raw")),
        ("a.shp", shapefile()),
        ("a.geojson", GEOJSON.as_bytes().to_vec()),
        ("a.csv", TABLE.as_bytes().to_vec()),
        ("a.glb", glb()),
    ]
}

fn positions(offset: [f64; 3]) -> Vec<[f64; 3]> {
    TETRAHEDRON.map(|p| [0, 1, 2].map(|axis| f64::from(p[axis]) + offset[axis])).to_vec()
}

#[test]
fn surfaces_of_all_formats_are_the_same() {
    for (name, bytes) in samples() {
        let offset = match name {
            "lh.pial" => [5.0, -6.5, 7.25],
            "a.surf.gii" => [10.0, 20.0, 30.0],
            "a.glb" => [100.0, 0.0, 0.0],
            "text.ply" | "text.stl" | "binary.stl" | "a.shp" | "a.geojson" | "a.csv" => continue,
            _ => [0.0; 3],
        };
        let geometry = read(name, &bytes).unwrap();
        assert_eq!((geometry.positions, geometry.triangles), (positions(offset), FACES.to_vec()), "{name}");
    }
    let values =
        |name: &str, bytes: &[u8], of: &str| read(name, bytes).unwrap().values_of(of).unwrap().values.clone();
    assert_eq!(values("a.gii", &gifti(), "thickness"), [1.0, 2.0, 3.0, 4.0]);
    for encoding in ["ascii", "binary", "zlib", "raw"] {
        assert_eq!(values("a.vtp", &vtp(encoding), "heat"), [0.0, 0.0, 0.0, 1.0], "{encoding}");
    }
}

#[test]
fn equal_corners_of_stl_become_one_vertex_and_lps_is_turned() {
    let geometry = read("a.stl", &stl_binary()).unwrap();
    assert_eq!((geometry.positions.len(), geometry.triangles.len()), (4, 4));
    let corner =
        |geometry: &Geometry, t: usize, c: usize| geometry.positions[geometry.triangles[t][c] as usize];
    assert_eq!(corner(&geometry, 3, 1), [0.0, 2.0, 0.0]);
    let turned = read("a.stl", &stl_text()).unwrap();
    assert_eq!(corner(&turned, 3, 1), [0.0, -2.0, 0.0]);
    assert_eq!(turned.notes.len(), 1);
}

#[test]
fn ply_has_colors_values_polygons_and_edges() {
    let geometry = read("a.ply", &ply_text()).unwrap();
    assert_eq!(geometry.triangles, [[0, 1, 2], [0, 2, 3], [0, 1, 2]]);
    assert_eq!(geometry.lines, [[1, 3]]);
    assert_eq!(geometry.colors[2], [0, 0, 255]);
    assert_eq!(geometry.values_of("heat").unwrap().values, [1.5, 2.5, 3.5, 4.5]);
    assert!(geometry.points.is_empty());
}

#[test]
fn scanner_positions_of_freesurfer_stay() {
    assert_eq!(read("lh.white", &freesurfer(1)).unwrap().positions, positions([0.0; 3]));
}

#[test]
fn maps_and_tables_have_lines_points_texts_and_values() {
    let shapes = read("a.shp", &shapefile()).unwrap();
    assert_eq!(
        (shapes.lines, shapes.points, shapes.space),
        (vec![[0, 1], [2, 3], [3, 4]], vec![5], GeometrySpace::Geographic)
    );
    let features = read("a.geojson", GEOJSON.as_bytes()).unwrap();
    assert_eq!((features.points, features.lines.len(), features.is_flat), (vec![0], 6, true));
    assert_eq!((features.texts[0].vertex, &*features.texts[0].text), (0, "Oslo"));
    assert_eq!(features.values[0].values[0], 700_000.0);
    assert!(features.values[0].values[1..].iter().all(|value| value.is_nan()));
    let table = read("a.csv", TABLE.as_bytes()).unwrap();
    assert_eq!(
        (&table.positions[..], &*table.texts[1].text),
        (&[[1.5, 2.5, 0.0], [-3.0, 40.0, 0.0]][..], "B, far")
    );
    assert!(table.values[0].values[0] == 10.0 && table.values[0].values[1].is_nan());
    let tracks = read("t.tsv", b"x\ty\tz\ttrack\n0\t0\t0\ta\n1\t0\t0\ta\n5\t5\t5\tb\n6\t5\t5\tb\n").unwrap();
    assert_eq!((tracks.lines, tracks.points.len(), tracks.is_flat), (vec![[0, 1], [2, 3]], 0, false));
    assert_eq!(read("p.csv", b"1,2,3\n4,5,6\n").unwrap().points, [0, 1]);
}

#[test]
fn other_files_are_refused_with_a_sentence() {
    for (name, bytes, says) in [
        ("a.obj", &b"v 0 0 0"[..], "ends in .ply"),
        ("a.ply", b"ply\nformat ascii 1.0\nelement vertex 99999999999\nproperty float x\nend_header\n", "expected"),
        ("a.csv", b"a,b\n1,2\n", "columns `x` and `y`"),
        ("a.csv", b"x,y\n1,two\n", "row 2"),
        ("a.geojson", b"{}", "GeoJSON type"),
        ("a.gii", b"<GIFTI></GIFTI>", "in another file"),
        ("a.vtp", b"<VTKFile type=\"ImageData\"><ImageData/></VTKFile>", "PolyData"),
        ("a.ply", b"ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\nend_header\nnan 0 0\n", "finite"),
        ("a.csv", b"x,y\n", "vertices"),
    ] {
        let error = read(name, bytes).unwrap_err().to_string();
        assert!(error.contains(says), "{name}: {error}");
    }
}

#[test]
fn files_cut_off_anywhere_are_errors_or_shorter() {
    for (name, bytes) in samples() {
        let whole = read(name, &bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        for end in 0..bytes.len() {
            if let Ok(geometry) = read(name, &bytes[..end]) {
                assert!(geometry.positions.len() <= whole.positions.len(), "{name} {end}");
            }
        }
    }
}

/// Returns a `.glb` file of JSON and bytes.
fn glb_of(json: &str, data: &[u8]) -> Vec<u8> {
    let word = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
    let (text, data_size) = (json.as_bytes(), word(data.len()));
    let all = word(28 + text.len() + data.len());
    [&b"glTF"[..], &word(2), &all, &word(text.len()), b"JSON", text, &data_size, b"BIN\0", data].concat()
}

/// Returns a `.glb` file of primitives, each a JSON object.
fn glb_of_primitives(primitives: &[&str], corners: usize) -> Vec<u8> {
    let json = format!(
        r#"{{"scenes":[{{"nodes":[0]}}],"nodes":[{{"mesh":0}}],"meshes":[{{"primitives":[{}]}}],"bufferViews":[{{"byteLength":12}},{{"byteOffset":12}}],"accessors":[{{"bufferView":0,"componentType":5126,"count":1,"type":"VEC3"}},{{"bufferView":1,"componentType":5121,"count":{corners},"type":"SCALAR"}}]}}"#,
        primitives.join(",")
    );
    glb_of(&json, &vec![0; 12 + corners])
}

#[test]
fn parts_of_glb_are_counted_and_others_than_triangles_noted_once() {
    let part = r#"{"attributes":{"POSITION":0},"indices":1}"#;
    let error = read("a.glb", &glb_of_primitives(&vec![part; 70_000], 0)).unwrap_err().to_string();
    assert!(error.contains("parts of meshes"), "{error}");
    let lines = r#"{"mode":1,"attributes":{"POSITION":0}}"#;
    let geometry = read("a.glb", &glb_of_primitives(&[part, lines, lines, lines], 3)).unwrap();
    assert_eq!((geometry.triangles.len(), geometry.notes.len()), (1, 1), "{:?}", geometry.notes);
}

#[test]
fn arrays_of_vtp_that_begin_in_the_same_text_are_read_without_copies_of_it() {
    let encode = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let points: Vec<u8> = TETRAHEDRON.as_flattened().iter().flat_map(|v| v.to_le_bytes()).collect();
    let array =
        |bytes: &[u8]| encode(&[&u32::try_from(bytes.len()).unwrap().to_le_bytes()[..], bytes].concat());
    let (first, second) = (array(&points), array(&points[..16]));
    // 4,000 empty arrays in front of 64 MB of text, among a million pieces without any array.
    let empty = array(&[]);
    let offsets = [empty.len(), empty.len() + first.len()];
    let mut file = format!(
        r#"<VTKFile type="PolyData" byte_order="LittleEndian"><PolyData>{}<Piece><Points><DataArray type="Float32" Name="Points" format="appended" offset="{}"/></Points><PointData>{}<DataArray type="Float32" Name="heat" format="appended" offset="{}"/></PointData></Piece></PolyData><AppendedData encoding="base64">
 _{empty}{first}{second}"#,
        "<Piece></Piece>".repeat(1_000_000),
        offsets[0],
        r#"<DataArray type="Float32" Name="none" format="appended" offset="0"/>"#.repeat(4_000),
        offsets[1],
    )
    .into_bytes();
    file.resize(file.len() + (64 << 20), b'A');
    file.extend(b"</AppendedData></VTKFile>");
    let geometry = read("a.vtp", &file).unwrap();
    assert_eq!(geometry.positions, positions([0.0; 3]));
    assert_eq!(geometry.values_of("heat").unwrap().values, [0.0, 0.0, 0.0, 1.0]);
}

#[test]
fn json_has_a_limit_of_its_own_and_errors_quote_little_of_it() {
    let error = read("a.geojson", &vec![b' '; MAX_JSON_BYTES + 1]).unwrap_err().to_string();
    assert!(error.contains(&MAX_JSON_BYTES.to_string()) && error.contains("JSON"), "{error}");
    let long = format!(r#"{{"type": "Point", "coordinates": ["{}"]}}"#, "ä".repeat(1 << 20));
    for file in [long.as_str(), &format!(r#"{{"type": "{}"}}"#, "x".repeat(1 << 20))] {
        let error = read("a.geojson", file.as_bytes()).unwrap_err().to_string();
        assert!(error.len() < 400 && error.contains('…'), "{} bytes", error.len());
    }
    for (name, file) in [
        ("a.csv", "x,y\n1,"),
        (
            "a.ply",
            "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\nend_header\n",
        ),
    ] {
        let error = read(name, [file, &"x".repeat(1 << 20)].concat().as_bytes()).unwrap_err().to_string();
        assert!(error.len() < 400, "{name}: {} bytes", error.len());
    }
}

#[test]
fn the_last_three_numbered_axes_of_a_table_are_z_y_and_x() {
    for (table, position) in [
        ("index,axis-0,axis-1\n0,2,3\n", [3.0, 2.0, 0.0]),
        ("index,axis-0,axis-1,axis-2\n0,1,2,3\n", [3.0, 2.0, 1.0]),
        ("index,axis-0,axis-1,axis-2,axis-3\n0,9,1,2,3\n", [3.0, 2.0, 1.0]),
    ] {
        let read = read("points.csv", table.as_bytes()).unwrap();
        assert_eq!((&read.positions[..], read.is_flat), (&[position][..], position[2] == 0.0), "{table}");
        assert_eq!(read.values_of("axis-0").is_some(), table.contains("axis-3"), "time is a value");
    }
}

#[test]
fn texts_of_a_table_that_are_left_out_are_counted() {
    let rows: String = (0..MAX_TEXTS + 70).map(|n| format!("{n},0,t{n}\n")).collect();
    let table = read("a.csv", format!("x,y,name\n{rows}").as_bytes()).unwrap();
    assert_eq!(table.texts.len(), MAX_TEXTS);
    assert!(table.notes.iter().any(|note| note.starts_with("70 of its texts")), "{:?}", table.notes);
}

proptest! {
    #[test]
    fn damaged_files_never_panic(
        which in 0usize..15,
        changes in proptest::collection::vec((0usize..10_000, any::<u8>()), 1..6),
    ) {
        let (name, mut bytes) = samples().swap_remove(which);
        for (at, value) in changes {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        if let Ok(geometry) = read(name, &bytes) {
            let vertices = geometry.positions.len();
            prop_assert!(geometry.triangles.as_flattened().iter().all(|&corner| (corner as usize) < vertices));
        }
    }
}
