//! Small files that would take much memory: what they announce, share, nest or repeat is counted first.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use array::ErrorKind;
use base64::Engine as _;
use corridor_geometry::{Geometry, MAX_TRIANGLES, MAX_VALUE_NAMES, MAX_VALUES, MAX_VERTICES, read};

/// Reads a file that is beyond a limit; checks that the error names it.
fn assert_too_large(name: &str, bytes: &[u8], says: &str) {
    let error = read(name, bytes).map(|geometry| geometry.positions.len()).unwrap_err();
    assert!(error.kind() == ErrorKind::TooLarge && error.to_string().contains(says), "{name}: {error}");
}

/// Returns a VTP file of pieces.
fn vtp_of(pieces: &str) -> String {
    format!(
        r#"<VTKFile type="PolyData" byte_order="LittleEndian" compressor="vtkZLibDataCompressor"><PolyData>{pieces}</PolyData></VTKFile>"#
    )
}

/// Returns a VTP array of text.
fn vtp_array(attributes: &str, text: &str) -> String {
    format!(r#"<DataArray type="Float32" {attributes} format="ascii">{text}</DataArray>"#)
}

const POINT: &str =
    r#"<Points><DataArray type="Float32" NumberOfComponents="3" format="ascii">1 2 3</DataArray></Points>"#;

/// Returns a base64 array of compressed zeros, in one block.
fn zeros(count: usize) -> String {
    let encode = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut zlib, &vec![0; count]).unwrap();
    let block = zlib.finish().unwrap();
    let sizes = [1, count, 0, block.len()].map(|size| u32::try_from(size).unwrap().to_le_bytes());
    encode(sizes.as_flattened()) + &encode(&block)
}

#[test]
fn names_of_values_in_an_empty_piece_of_vtp_take_no_memory_in_later_pieces() {
    let array = |number: usize, text: &str| vtp_array(&format!(r#"Name="v{number}""#), text);
    let arrays: String = (0..MAX_VALUE_NAMES).map(|number| array(number, "")).collect();
    let empty =
        format!("<Piece><Points>{}</Points><PointData>{arrays}</PointData></Piece>", vtp_array("", ""));
    // All names at once are more values than a geometry has.
    let vertices = MAX_VALUES / MAX_VALUE_NAMES + 1;
    let large = format!(
        r#"<Piece><Points><DataArray type="UInt8" NumberOfComponents="3" format="binary">{}</DataArray></Points></Piece>"#,
        zeros(3 * vertices)
    );
    assert_too_large("a.vtp", vtp_of(&(empty.clone() + &large)).as_bytes(), "values by vertex");
    // Further names are left out, and not decoded.
    let more = array(MAX_VALUE_NAMES, "no number");
    let values = array(0, "5");
    let small = format!("<Piece>{POINT}<PointData>{values}{more}{more}</PointData></Piece>");
    let geometry = read("a.vtp", vtp_of(&(empty + &small)).as_bytes()).unwrap();
    assert_eq!((geometry.values.len(), geometry.values[0].values[0]), (MAX_VALUE_NAMES, 5.0));
    assert!(geometry.notes.iter().any(|note| note.starts_with("1 of its sets")), "{:?}", geometry.notes);
}

#[test]
fn arrays_of_vtp_do_not_copy_the_name_of_their_section() {
    let section = "a".repeat(32 << 20);
    let arrays = vtp_array("", "").repeat(4_000);
    let file = vtp_of(&format!("<Piece>{POINT}<{section}>{arrays}</{section}></Piece>"));
    assert_eq!(read("a.vtp", file.as_bytes()).unwrap().positions, [[1.0, 2.0, 3.0]]);
}

#[test]
fn compressed_blocks_of_vtp_are_counted_for_all_arrays() {
    let array =
        |offset: usize| format!(r#"<DataArray type="UInt8" Name="v" format="appended" offset="{offset}"/>"#);
    // An array of one empty block, and one that announces as many as a file has.
    let empty = [0x78, 0x01, 1, 0, 0, 0xFF, 0xFF, 0, 0, 0, 1];
    let header = [1, 0, 0, 11u32].map(u32::to_le_bytes);
    let first = [header.as_flattened(), &empty].concat();
    let arrays = array(0) + &array(first.len());
    let mut file = vtp_of(&format!("<Piece>{POINT}<PointData>{arrays}</PointData></Piece>")).into_bytes();
    file.extend(b"<AppendedData encoding=\"raw\">_");
    file.extend(first);
    file.extend([1u32 << 20, 0, 0].iter().flat_map(|word| word.to_le_bytes()));
    assert_too_large("a.vtp", &file, "compressed blocks");
}

#[test]
fn xml_has_a_limit_of_depth() {
    let nested = |inner: &str, levels: usize| "<a>".repeat(levels) + inner + &"</a>".repeat(levels);
    let vtp = |levels: usize| nested(&vtp_of(&format!("<Piece>{POINT}</Piece>")), levels);
    let gifti = |levels: usize| nested(&gifti_of(1, ""), levels);
    for (name, of) in [("a.vtp", &vtp as &dyn Fn(usize) -> String), ("a.gii", &gifti)] {
        assert_eq!(read(name, of(50).as_bytes()).unwrap().positions, [[1.0, 2.0, 3.0]], "{name}");
        assert_too_large(name, of(200).as_bytes(), "levels of elements");
    }
}

/// Returns a GIfTI file of a vertex and of many arrays of values, which stand before it.
fn gifti_of(values: usize, last: &str) -> String {
    let array = |intent: &str, text: &str| {
        format!(
            r#"<DataArray Intent="NIFTI_INTENT_{intent}" DataType="NIFTI_TYPE_FLOAT32" Encoding="ASCII"><Data>{text}</Data></DataArray>"#
        )
    };
    let others = array("SHAPE", "7 8").repeat(40) + &array("SHAPE", "5").repeat(values);
    format!("<GIFTI>{others}{}{}</GIFTI>", array("SHAPE", last), array("POINTSET", "1 2 3"))
}

#[test]
fn values_of_gifti_beyond_those_that_are_kept_are_not_decoded() {
    let geometry = read("a.gii", gifti_of(MAX_VALUE_NAMES, "no number").as_bytes()).unwrap();
    assert!(geometry.values.iter().all(|values| values.values == [5.0]));
    assert_eq!(geometry.values.len(), MAX_VALUE_NAMES);
    assert!(geometry.notes.iter().any(|note| note.starts_with("1 of its sets")), "{:?}", geometry.notes);
}

#[test]
fn trees_of_json_are_measured_before_they_take_memory() {
    for (what, of) in
        [("objects", r#"{"":0},"#), ("lists", "[0],"), ("lists of five", "[0,0,0,0,0],"), ("numbers", "0,")]
    {
        let file =
            |count: usize| format!(r#"{{"type":"Point","coordinates":[1,2],"x":[{}0]}}"#, of.repeat(count));
        let text = file((20 << 20) / of.len());
        assert!(text.len() < 21 << 20, "{what}");
        assert_eq!(read("a.geojson", file(1_000).as_bytes()).unwrap().positions, [[1.0, 2.0, 0.0]], "{what}");
        assert_too_large("a.geojson", text.as_bytes(), "of memory");
        assert_too_large("a.glb", &glb_of(&text, &[]), "of memory");
    }
    // Texts take little more than their letters, whatever these are.
    let texts = r#""[{,\"[","#.repeat(1_000_000);
    let file = format!(r#"{{"type":"Point","coordinates":[1,2],"x":[{texts}0]}}"#);
    assert_eq!(read("a.geojson", file.as_bytes()).unwrap().positions.len(), 1);
    let line = "[-122.4194155,37.7749295],".repeat(300_000);
    let map = format!(r#"{{"type":"LineString","coordinates":[{line}[0,0]]}}"#);
    assert_eq!(read("a.geojson", map.as_bytes()).unwrap().positions.len(), 300_001);
}

#[test]
fn errors_of_geojson_do_not_write_all_of_a_list() {
    let file = format!(r#"{{"type":"Point","coordinates":[[{}0]]}}"#, "1e20,".repeat(1_000_000));
    let error = read("a.geojson", file.as_bytes()).unwrap_err().to_string();
    assert!(error.len() < 400 && error.contains('…'), "{} bytes", error.len());
}

/// Returns a chunk of a `.glb` file.
fn glb_chunk(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    [&u32::try_from(content.len()).unwrap().to_le_bytes()[..], kind, content].concat()
}

/// Returns a `.glb` file of JSON and bytes.
fn glb_of(json: &str, data: &[u8]) -> Vec<u8> {
    let chunks = [glb_chunk(b"JSON", json.as_bytes()), glb_chunk(b"BIN\0", data)].concat();
    [&b"glTF"[..], &2u32.to_le_bytes(), &u32::try_from(12 + chunks.len()).unwrap().to_le_bytes(), &chunks]
        .concat()
}

/// Returns a `.glb` file of nodes, roots among them, and a mesh of one triangle whose accessors have these counts.
fn glb_of_nodes(roots: &str, nodes: &str, [vertices, corners]: [usize; 2]) -> Vec<u8> {
    let json = format!(
        r#"{{"scenes":[{{"nodes":[{roots}]}}],"nodes":[{nodes}],"meshes":[{{"primitives":[{{"attributes":{{"POSITION":0}},"indices":1}}]}}],"bufferViews":[{{}},{{"byteOffset":36}}],"accessors":[{{"bufferView":0,"componentType":5126,"count":{vertices},"type":"VEC3"}},{{"bufferView":1,"componentType":5121,"count":{corners},"type":"SCALAR"}}]}}"#
    );
    glb_of(&json, &[0; 39])
}

#[test]
fn nodes_of_glb_are_not_copied_for_each_reference() {
    let extras = "0,".repeat(1_000_000);
    let node = format!(r#"{{"mesh":0,"matrix":[{extras}0],"extras":[{extras}0]}}"#);
    let geometry = read("a.glb", &glb_of_nodes(&["0"; 4_000].join(","), &node, [3, 3])).unwrap();
    assert_eq!((geometry.positions.len(), geometry.triangles.len()), (12_000, 4_000));
    assert_too_large("a.glb", &glb_of_nodes(&["0"; 5_000].join(","), &node, [3, 3]), "nodes");
}

#[test]
fn nodes_of_glb_have_a_limit_of_levels_and_no_cycles() {
    for (nodes, says) in [
        (r#"{"children":[0]}"#, "found node 0 within itself"),
        (r#"{"children":[1]},{"children":[2]},{"children":[0]}"#, "found node 0 within itself"),
    ] {
        let error = read("a.glb", &glb_of_nodes("0", nodes, [3, 3])).unwrap_err();
        assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains(says), "{error}");
    }
    let chain = |levels: usize| {
        let nodes: String = (1..levels).map(|child| format!(r#"{{"children":[{child}]}},"#)).collect();
        glb_of_nodes("0", &(nodes + r#"{"mesh":0}"#), [3, 3])
    };
    assert_eq!(read("a.glb", &chain(17)).unwrap().triangles.len(), 1);
    assert_too_large("a.glb", &chain(18), "levels");
}

#[test]
fn accessors_of_glb_are_counted_before_they_take_memory() {
    let file = |counts| glb_of_nodes("0", r#"{"mesh":0}"#, counts);
    assert_too_large("a.glb", &file([MAX_VERTICES + 1, 3]), "vertices");
    assert_too_large("a.glb", &file([3, 3 * MAX_TRIANGLES + 3]), "triangles");
}

#[test]
fn a_second_json_of_glb_is_not_read() {
    let file = [glb_of_nodes("0", r#"{"mesh":0}"#, [3, 3]), glb_chunk(b"JSON", b"{}")].concat();
    assert_eq!(read("a.glb", &file).unwrap().triangles.len(), 1);
}

/// Returns a binary PLY file without any number behind its header.
fn ply_of(elements: &str) -> Vec<u8> {
    format!("ply\nformat binary_little_endian 1.0\n{elements}end_header\n").into_bytes()
}

#[test]
fn counts_of_ply_are_added_up_before_they_take_memory() {
    let vertices = |count: usize| {
        format!("element vertex {count}\nproperty uchar x\nproperty uchar y\nproperty uchar z\n")
    };
    assert_too_large("a.ply", &ply_of(&vertices(MAX_VERTICES / 2 + 1).repeat(2)), "vertices");
    let faces = format!("element face {}\nproperty list uchar uchar vertex_indices\n", MAX_TRIANGLES / 2 + 1);
    assert_too_large("a.ply", &ply_of(&(vertices(0) + &faces.repeat(2))), "faces");
    let edges =
        format!("element edge {}\nproperty uchar vertex1\nproperty uchar vertex2\n", MAX_TRIANGLES / 2 + 1);
    assert_too_large("a.ply", &ply_of(&(vertices(0) + &edges.repeat(2))), "edges");
    let huge = format!("element vertex {}\nelement vertex {}\n", usize::MAX, usize::MAX);
    assert_too_large("a.ply", &ply_of(&huge), "vertices");
    let names: String = (0..MAX_VALUE_NAMES).map(|name| format!("property uchar v{name}\n")).collect();
    let values = vertices(MAX_VALUES / MAX_VALUE_NAMES + 1) + &names;
    assert_too_large("a.ply", &ply_of(&values), "values by vertex");
}

#[test]
fn further_values_of_ply_are_left_out_with_a_note() {
    let names: String = (0..40).map(|name| format!("property uchar v{name}\n")).collect();
    let head = format!("element vertex 1\nproperty uchar x\nproperty uchar y\nproperty uchar z\n{names}");
    let geometry = read("a.ply", &[ply_of(&head), vec![9; 43]].concat()).unwrap();
    assert_eq!((geometry.values.len(), &geometry.values[0].values[..]), (MAX_VALUE_NAMES, &[9.0][..]));
    assert!(geometry.notes.iter().any(|note| note.starts_with("8 of its sets")), "{:?}", geometry.notes);
}

#[test]
fn text_that_is_no_utf_8_is_read_without_a_copy_of_it() {
    let comment = [0xFF].repeat(1 << 20);
    let ply = b"ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\nend_header\n1 2 3\n";
    let geometry = read("a.ply", &[&ply[..], &comment].concat()).unwrap();
    assert_eq!(geometry.positions, [[1.0, 2.0, 3.0]]);
    let error = read("a.ply", &[&ply[..ply.len() - 2], &comment].concat()).unwrap_err().to_string();
    assert!(error.len() < 400, "{} bytes", error.len());
    let facet = b"\nfacet\nvertex 9 9 9\nvertex 1 0 0\nvertex 0 1 0\nvertex 0 0 1\nendfacet\n";
    let geometry: Geometry = read("a.stl", &[b"solid ", &comment[..], facet].concat()).unwrap();
    assert_eq!(geometry.positions, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
}

#[test]
fn footers_of_freesurfer_are_looked_at_in_part() {
    let mut file = [&[0xFF, 0xFF, 0xFE][..], b"by hand\n\n"].concat();
    file.extend([1u32, 0, 0, 0, 0].iter().flat_map(|word| word.to_be_bytes()));
    let cras = b"\nvalid = 1\ncras = 1 2 3\n";
    let near = read("lh.pial", &[&file, &vec![0xFF; 1 << 10][..], cras].concat()).unwrap();
    assert_eq!((near.positions[0], near.notes.len()), ([1.0, 2.0, 3.0], 0));
    let far = read("lh.pial", &[&file, &vec![0xFF; 1 << 20][..], cras].concat()).unwrap();
    assert_eq!((far.positions[0], far.notes.len()), ([0.0; 3], 1));
}

#[test]
fn rows_of_a_table_have_a_limit_of_length() {
    let table = |row: &str, count: usize| format!("x,y\n1,2{}\n3,4\n", row.repeat(count));
    for row in [",", ",\"\n\"", ",\"\"\"\""] {
        assert_eq!(read("a.csv", table(row, 2_000).as_bytes()).unwrap().positions.len(), 2);
        assert_too_large("a.csv", table(row, (5 << 20) / row.len()).as_bytes(), "row 2");
    }
    // All rows together may be longer.
    let rows = "1,2\n".repeat(5 << 18);
    assert_eq!(read("a.csv", format!("x,y\n{rows}").as_bytes()).unwrap().positions.len(), 5 << 18);
}

#[test]
fn counts_of_shapes_are_compared_with_the_limits_before_they_take_memory() {
    let mut file = 9994u32.to_be_bytes().to_vec();
    file.resize(100, 0);
    let count = u32::try_from(MAX_VERTICES + 1).unwrap();
    let mut content = 8u32.to_le_bytes().to_vec();
    content.resize(36, 0);
    content.extend(count.to_le_bytes());
    file.extend([1, u32::try_from(content.len() / 2).unwrap()].iter().flat_map(|word| word.to_be_bytes()));
    assert_too_large("a.shp", &[file, content].concat(), "vertices");
}
