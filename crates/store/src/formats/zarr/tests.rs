//! Zarr stores written here and read back: versions, shards, pyramids, links, broken ones.

use std::path::Path;
use std::sync::Arc;

use array::{AxisKind, ErrorKind, Meaning, Selection, Target};
use serde_json::json;
use zarrs::array::{ArrayBuilder, data_type};
use zarrs::filesystem::FilesystemStore;

use super::*;
use crate::Scratch;

fn read(store: &Zarr, name: &str, level: u8, selection: &Selection) -> Result<Vec<u8>> {
    let (number, info) = store.dataset.find(name)?;
    let (target, region) = Target::new(&selection.shape(), info.dtype.size_bytes())?;
    store.read(number, level, selection, region, &CancelFlag::default())?;
    target.into_vec()
}

fn open_at(path: &Path) -> Result<Zarr> {
    open(path, &OpenOptions::default())
}

fn write(path: &Path, text: &serde_json::Value) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text.to_string()).unwrap();
}

/// A version 2 array of two-byte big-endian integers 0, 1, 2, ... in unpacked chunks.
fn counting_v2(root: &Path, shape: [usize; 2], chunk: [usize; 2], attributes: &serde_json::Value) {
    let metadata = json!({"zarr_format": 2, "shape": shape, "chunks": chunk, "dtype": ">i2", "compressor": null,
        "fill_value": -1, "order": "C", "filters": null, "dimension_separator": "."});
    write(&root.join(".zarray"), &metadata);
    write(&root.join(".zattrs"), attributes);
    for row in 0..shape[0].div_ceil(chunk[0]) {
        for column in 0..shape[1].div_ceil(chunk[1]) {
            let value = |y: usize, x: usize| {
                let (y, x) = (row * chunk[0] + y, column * chunk[1] + x);
                let inside = y < shape[0] && x < shape[1];
                if inside { i16::try_from(y * shape[1] + x).unwrap() } else { 99 }
            };
            let elements = (0..chunk[0]).flat_map(|y| (0..chunk[1]).map(move |x| (y, x)));
            let bytes: Vec<u8> = elements.flat_map(|(y, x)| value(y, x).to_be_bytes()).collect();
            std::fs::write(root.join(format!("{row}.{column}")), bytes).unwrap();
        }
    }
}

fn counting(shape: [u64; 2], selection: &Selection) -> Vec<u8> {
    let [rows, columns] = [selection.ranges()[0], selection.ranges()[1]];
    (0..rows.count)
        .flat_map(|y| (0..columns.count).map(move |x| rows.index(y) * shape[1] + columns.index(x)))
        .flat_map(|v| i16::try_from(v).unwrap().to_be_bytes())
        .collect()
}

#[test]
fn big_endian_values_are_given_as_stored() {
    let dir = tempfile::tempdir().unwrap();
    counting_v2(dir.path(), [7, 11], [3, 4], &json!({"units": "m"}));
    let store = open_at(dir.path()).unwrap();
    let info = &store.dataset.arrays[0];
    assert_eq!((info.dtype.to_string().as_str(), info.units.as_str()), (">i2", "m"));
    for text in ["", "1:6:2, ::3", "6, 10", "2:5, 3:9", "0:0"] {
        let selection = Selection::parse(text, &[7, 11]).unwrap();
        assert_eq!(read(&store, "", 0, &selection).unwrap(), counting([7, 11], &selection), "[{text}]");
    }
}

#[test]
fn missing_chunks_are_the_fill_value_and_short_ones_an_error() {
    let dir = tempfile::tempdir().unwrap();
    counting_v2(dir.path(), [6, 8], [3, 4], &json!({}));
    std::fs::remove_file(dir.path().join("1.0")).unwrap();
    std::fs::write(dir.path().join("1.1"), [0; 5]).unwrap();
    let store = open_at(dir.path()).unwrap();
    let selection = Selection::parse("4, 1:3", &[6, 8]).unwrap();
    assert_eq!(read(&store, "", 0, &selection).unwrap(), [0xff; 4]);
    let selection = Selection::parse("4, 5", &[6, 8]).unwrap();
    let error = read(&store, "", 0, &selection).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("expected"), "{error}");
}

#[test]
fn shards_codecs_and_order_read_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let files = Arc::new(FilesystemStore::new(dir.path()).unwrap());
    zarrs::group::GroupBuilder::new().build(Arc::clone(&files), "/").unwrap().store_metadata().unwrap();
    let values: Vec<i32> = (0..20 * 30).collect();
    let mut builder = ArrayBuilder::new(vec![20, 30], vec![10, 12], data_type::int32(), 7i32);
    let plain = builder.build(Arc::clone(&files), "/plain").unwrap();
    let sharded = builder.subchunk_shape(vec![5, 4]).build(Arc::clone(&files), "/sharded").unwrap();
    for array in [&plain, &sharded] {
        array.store_metadata().unwrap();
        let part = zarrs::array::ArraySubset::new_with_ranges(&[0..20, 0..30]);
        array.store_array_subset(&part, &values).unwrap();
    }
    // A shard of which some chunks were never written.
    let holes = builder.build(Arc::clone(&files), "/holes").unwrap();
    holes.store_metadata().unwrap();
    let part = zarrs::array::ArraySubset::new_with_ranges(&[0..5, 0..4]);
    holes.store_array_subset(&part, &values[..20]).unwrap();
    let store = open_at(dir.path()).unwrap();
    assert_eq!(store.dataset.find("sharded").unwrap().1.levels[0].chunk.as_deref(), Some(&[5, 4][..]));
    for (name, text) in
        [("plain", "::3, 5:29"), ("sharded", ""), ("sharded", "3:19:2, 1::5"), ("plain", "19, 29")]
    {
        let selection = Selection::parse(text, &[20, 30]).unwrap();
        let [rows, columns] = [selection.ranges()[0], selection.ranges()[1]];
        let numbers = (0..rows.count)
            .flat_map(|y| (0..columns.count).map(move |x| rows.index(y) * 30 + columns.index(x)));
        let expected: Vec<u8> = numbers.flat_map(|v| i32::try_from(v).unwrap().to_le_bytes()).collect();
        assert_eq!(read(&store, name, 0, &selection).unwrap(), expected, "{name} [{text}]");
    }
    let selection = Selection::parse("4:6, 3", &[20, 30]).unwrap();
    let found = read(&store, "holes", 0, &selection).unwrap();
    assert_eq!(found, [19i32.to_le_bytes(), 7i32.to_le_bytes()].concat());
}

#[test]
fn pyramids_have_their_stored_levels_and_labels_are_labels() {
    let dir = tempfile::tempdir().unwrap();
    let scale = |s: f64| json!([{"type": "scale", "scale": [s, s]}]);
    let axes = json!([{"name": "y", "type": "space", "unit": "micrometer"}, {"name": "x", "type": "space", "unit": "micrometer"}]);
    let levels = json!([{"path": "0", "coordinateTransformations": scale(0.5)}, {"path": "1", "coordinateTransformations": scale(1.0)},
        {"path": "gone", "coordinateTransformations": scale(2.0)}]);
    let attributes = json!({"multiscales": [{"version": "0.4", "axes": axes, "datasets": levels}]});
    let group = json!({"zarr_format": 2});
    write(&dir.path().join(".zgroup"), &group);
    write(&dir.path().join(".zattrs"), &attributes);
    counting_v2(&dir.path().join("0"), [8, 10], [4, 5], &json!({}));
    counting_v2(&dir.path().join("1"), [4, 5], [4, 5], &json!({}));
    let labels = dir.path().join("labels");
    write(&labels.join(".zgroup"), &group);
    write(&labels.join("cells/.zgroup"), &group);
    let mut labeled = attributes.clone();
    labeled["image-label"] = json!({});
    write(&labels.join("cells/.zattrs"), &labeled);
    counting_v2(&labels.join("cells/0"), [8, 10], [4, 5], &json!({}));
    let store = open_at(dir.path()).unwrap();
    assert_eq!(store.dataset.format, "OME-Zarr");
    let (_, image) = store.dataset.find("image").unwrap();
    assert_eq!(image.levels.iter().map(|l| l.shape.clone()).collect::<Vec<_>>(), [[8, 10], [4, 5]]);
    assert_eq!(image.levels[1].factor, [2.0, 2.0]);
    assert_eq!(image.levels[1].world_from_voxel.spacing()[..2], [1.0, 1.0]);
    assert_eq!((image.axes[0].kind, image.world_units.as_str()), (AxisKind::Y, "micrometer"));
    assert_eq!(image.meaning, Meaning::Intensity);
    let selection = Selection::parse("1:3, ::2", &[4, 5]).unwrap();
    assert_eq!(read(&store, "image", 1, &selection).unwrap(), counting([4, 5], &selection));
    assert_eq!(read(&store, "1", 0, &selection).unwrap(), counting([4, 5], &selection));
    for name in ["labels/cells", "labels/cells/0"] {
        assert_eq!(store.dataset.find(name).unwrap().1.meaning, Meaning::Labels, "{name}");
    }
    assert!(store.dataset.warnings.iter().any(|w| w.contains("`gone`")), "{:?}", store.dataset.warnings);
}

#[test]
fn climate_stores_have_named_axes_and_missing_values() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join(".zgroup"), &json!({"zarr_format": 2}));
    let attributes = json!({"_ARRAY_DIMENSIONS": ["lat", "lon"], "units": "K", "scale_factor": 0.5});
    counting_v2(&dir.path().join("t"), [3, 4], [3, 4], &attributes);
    counting_v2(&dir.path().join("extra/t"), [3, 4], [3, 4], &json!({}));
    let store = open_at(dir.path()).unwrap();
    let info = &store.dataset.arrays[0];
    assert_eq!(info.axes.iter().map(|a| a.kind).collect::<Vec<_>>(), [AxisKind::Y, AxisKind::X]);
    assert!(info.decoding.decode(array::Scalar::Signed(-1)).is_nan());
    assert_eq!(info.decoding.decode(array::Scalar::Signed(3)).to_bits(), 1.5f64.to_bits());
    assert!(!info.attributes.contains_key("_ARRAY_DIMENSIONS"));
    assert_eq!(store.dataset.arrays.len(), 1, "a directory without metadata is no group");
}

#[test]
fn packed_coordinates_are_decoded_and_unsigned_values_are_unsigned() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join(".zgroup"), &json!({"zarr_format": 2}));
    let axis = |name: &str| json!({"_ARRAY_DIMENSIONS": [name], "scale_factor": 0.25, "add_offset": -90.0});
    one_axis_v2(&dir.path().join("lat"), &[0, 10, 30], &axis("lat"));
    one_axis_v2(&dir.path().join("lon"), &[4, 8, 12, 16], &axis("lon"));
    let attributes = json!({"_ARRAY_DIMENSIONS": ["lat", "lon"], "_Unsigned": "true"});
    counting_v2(&dir.path().join("t"), [3, 4], [3, 4], &attributes);
    let store = open_at(dir.path()).unwrap();
    let (_, info) = store.dataset.find("t").unwrap();
    assert_eq!(info.axes[0].coordinates, array::Coordinates::Explicit(vec![-90.0, -87.5, -82.5]));
    assert_eq!(info.axes[1].coordinates, array::Coordinates::Regular { origin: -89.0, step: 1.0 });
    assert_eq!(info.dtype.to_string(), ">i2", "as it is stored");
    assert_eq!(info.decoding.meant(info.dtype).to_string(), ">u2");
}

/// A version 2 array of one axis of two-byte little-endian integers.
fn one_axis_v2(root: &Path, values: &[i16], attributes: &serde_json::Value) {
    let metadata = json!({"zarr_format": 2, "shape": [values.len()], "chunks": [values.len()], "dtype": "<i2",
        "compressor": null, "fill_value": null, "order": "C", "filters": null});
    write(&root.join(".zarray"), &metadata);
    write(&root.join(".zattrs"), attributes);
    std::fs::write(root.join("0"), values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
}

#[test]
fn links_out_of_the_store_are_refused() {
    let outside = tempfile::tempdir().unwrap();
    let dir = tempfile::tempdir().unwrap();
    counting_v2(&outside.path().join("secret"), [3, 4], [3, 4], &json!({}));
    write(&dir.path().join(".zgroup"), &json!({"zarr_format": 2}));
    counting_v2(&dir.path().join("a"), [3, 4], [3, 4], &json!({}));
    std::os::unix::fs::symlink(outside.path().join("secret"), dir.path().join("b")).unwrap();
    let chunk = dir.path().join("a/0.0");
    std::fs::remove_file(&chunk).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret/0.0"), &chunk).unwrap();
    let store = open_at(dir.path()).unwrap();
    assert_eq!(store.dataset.arrays.len(), 1);
    let error = read(&store, "a", 0, &Selection::all(&[3, 4])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
}

#[test]
fn numbers_that_only_python_writes_are_read_where_they_are_no_part_of_a_text() {
    let dir = tempfile::tempdir().unwrap();
    counting_v2(dir.path(), [3, 4], [3, 4], &json!({}));
    let text = r#"{"missing_value": NaN, "range": [-Infinity, Infinity], "what": "a \"NaN\" and NaN"}"#;
    std::fs::write(dir.path().join(".zattrs"), text).unwrap();
    let store = open_at(dir.path()).unwrap();
    let found = &store.dataset.arrays[0].attributes;
    assert_eq!(found["what"], array::Attribute::Text("a \"NaN\" and NaN".into()));
    let is_nan = |number: array::Scalar| number.as_f64().is_nan();
    assert!(found["missing_value"].number().is_some_and(is_nan), "{found:?}");
    let infinite = [f64::NEG_INFINITY, f64::INFINITY].map(array::Scalar::Float);
    assert_eq!(found["range"].numbers(), Some(&infinite[..]));
}

#[test]
fn attributes_keep_their_structure_and_fill_values_of_version_3_are_numbers() {
    let dir = tempfile::tempdir().unwrap();
    write(
        &dir.path().join("zarr.json"),
        &json!({"zarr_format": 3, "node_type": "group", "attributes": {"made": {"by": ["a", 1, null, true]}}}),
    );
    write(
        &dir.path().join("g/zarr.json"),
        &json!({"zarr_format": 3, "node_type": "group", "attributes": {"note": "inner"}}),
    );
    // -9999 as xarray writes it, one dimension without a name.
    let attributes =
        json!({"_FillValue": "AAAAAICHw8A=", "id": 9_007_199_254_740_993_i64, "flag": true, "none": null});
    write(
        &dir.path().join("g/t/zarr.json"),
        &json!({"zarr_format": 3, "node_type": "array", "shape": [2, 2], "data_type": "float32",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
            "chunk_key_encoding": {"name": "default"}, "fill_value": "0x7fc00000", "codecs": [bytes_codec()],
            "dimension_names": [null, "x"], "attributes": attributes}),
    );
    // Without dimensions, as xarray writes it: no names.
    write(
        &dir.path().join("g/s/zarr.json"),
        &json!({"zarr_format": 3, "node_type": "array", "shape": [], "data_type": "int16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": []}},
            "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": [bytes_codec()],
            "attributes": {"scale_factor": 2.5, "add_offset": 10.0, "_FillValue": -9}}),
    );
    let dataset = open_at(dir.path()).unwrap().dataset;
    assert_eq!(dataset.attributes["made"].to_json(), json!({"by": ["a", 1, null, true]}));
    assert_eq!(dataset.attributes["g/note"].to_json(), json!("inner"));
    let (_, info) = dataset.find("g/t").unwrap();
    assert_eq!(info.axes.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(), ["dim0", "x"]);
    assert_eq!(info.decoding.missing, [array::Scalar::Float(-9999.0)]);
    let (_, single) = dataset.find("g/s").unwrap();
    assert_eq!((single.decoding.scale, single.decoding.offset), (2.5, 10.0));
    assert_eq!(single.decoding.missing, [array::Scalar::Signed(-9)]);
    for (name, value) in
        [("flag", json!(true)), ("none", json!(null)), ("id", json!(9_007_199_254_740_993_i64))]
    {
        assert_eq!(info.attributes[name].to_json(), value);
    }
    assert_eq!(info.attributes["_FillValue"].type_name(), Some("float32"));
}

#[test]
fn an_array_of_which_something_unknown_must_be_understood_is_left_out() {
    for (extra, left_out) in
        [(json!({"must_understand": true}), 1), (json!("x"), 1), (json!({"must_understand": false}), 0)]
    {
        let dir = tempfile::tempdir().unwrap();
        one_chunk_v3(dir.path(), &json!([bytes_codec()]), &[0; 24]);
        let path = dir.path().join("zarr.json");
        let mut document: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        document["weird"] = extra;
        write(&path, &document);
        assert_eq!(open_at(dir.path()).unwrap().dataset.left_out.len(), left_out, "{document}");
    }
}

#[test]
fn structures_of_impossible_sizes_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    // Together four bytes, if the sum wraps around.
    let dtype = json!([["a", "|S18446744073709551612"], ["b", "<f8"]]);
    let metadata = json!({"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": dtype, "compressor": null,
        "fill_value": "AAAAAA==", "order": "C", "filters": null});
    write(&dir.path().join("a/.zarray"), &metadata);
    write(&dir.path().join(".zgroup"), &json!({"zarr_format": 2}));
    let store = open_at(dir.path()).unwrap();
    assert_eq!(store.dataset.left_out[0].name, "a");
    assert!(store.dataset.arrays.is_empty());
}

#[test]
fn what_is_too_large_is_left_out_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    counting_v2(&dir.path().join("small"), [3, 4], [3, 4], &json!({}));
    write(&dir.path().join(".zgroup"), &json!({"zarr_format": 2}));
    for (name, shape) in [("elements", [10u64.pow(18); 2]), ("bytes", [1 << 31, 1 << 31])] {
        let metadata = json!({"zarr_format": 2, "shape": shape, "chunks": [1, 1], "dtype": "<f4",
            "compressor": null, "fill_value": 0, "order": "C", "filters": null});
        write(&dir.path().join(name).join(".zarray"), &metadata);
    }
    let store = open_at(dir.path()).unwrap();
    let why = |name: &str| &store.dataset.left_out.iter().find(|l| l.name == name).unwrap().what;
    assert!(why("elements").contains("2^63 elements"), "{}", why("elements"));
    assert!(why("bytes").contains("2^63 bytes"), "{}", why("bytes"));
    let all = Selection::all(&[3, 4]);
    assert_eq!(read(&store, "small", 0, &all).unwrap(), counting([3, 4], &all));
}

#[test]
fn texts_of_any_length_are_looked_for_in_a_bounded_number_of_chunks() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join(".zgroup"), &json!({"zarr_format": 2}));
    for (name, shape) in [("a", 1000), ("b", 65_000), ("c", 1000)] {
        let metadata = json!({"zarr_format": 2, "shape": [shape], "chunks": [1], "dtype": "|O",
            "compressor": null, "fill_value": "", "order": "C", "filters": [{"id": "vlen-utf8"}]});
        write(&dir.path().join(name).join(".zarray"), &metadata);
    }
    let store = open_at(dir.path()).unwrap();
    let left_out: Vec<&str> = store.dataset.left_out.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(left_out, ["b"]);
    assert!(store.dataset.left_out[0].what.contains("found 65000"), "{:?}", store.dataset.left_out);
    assert_eq!(store.dataset.find("c").unwrap().1.meaning, Meaning::Text);
}

#[test]
fn crafted_sizes_take_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    counting_v2(dir.path(), [3, 4], [3, 4], &json!({}));
    let metadata = |chunks: serde_json::Value, compressor: serde_json::Value| {
        json!({"zarr_format": 2, "shape": [3, 4], "chunks": chunks, "dtype": ">i2", "compressor": compressor,
            "fill_value": 0, "order": "C", "filters": null})
    };
    write(&dir.path().join(".zarray"), &metadata(json!([1u64 << 40, 1u64 << 40]), json!(null)));
    let store = open_at(dir.path()).unwrap();
    assert_eq!(store.dataset.left_out.len(), 1, "{:?}", store.dataset);
    let zstd = json!({"id": "zstd", "level": 1});
    write(&dir.path().join(".zarray"), &metadata(json!([3, 4]), zstd));
    // A frame that says it holds 2^60 bytes.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
    frame.extend((1u64 << 60).to_le_bytes());
    frame.extend([1, 0, 0]);
    std::fs::write(dir.path().join("0.0"), frame).unwrap();
    let store = open_at(dir.path()).unwrap();
    let error = read(&store, "", 0, &Selection::all(&[3, 4])).unwrap_err();
    assert!(error.to_string().contains("at most 24 bytes packed by zstd"), "{error}");
}

/// An array of version 3 with one chunk of 12 two-byte integers.
fn one_chunk_v3(root: &Path, codecs: &serde_json::Value, chunk: &[u8]) {
    let grid = json!({"name": "regular", "configuration": {"chunk_shape": [3, 4]}});
    let document = json!({"zarr_format": 3, "node_type": "array", "shape": [3, 4], "data_type": "int16",
        "chunk_grid": grid, "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": codecs});
    write(&root.join("zarr.json"), &document);
    std::fs::create_dir_all(root.join("c/0")).unwrap();
    std::fs::write(root.join("c/0/0"), chunk).unwrap();
}

fn with_checksum(bytes: &[u8]) -> Vec<u8> {
    [bytes, &crc32c::crc32c(bytes).to_le_bytes()].concat()
}

fn bytes_codec() -> serde_json::Value {
    json!({"name": "bytes", "configuration": {"endian": "little"}})
}

#[test]
fn chunks_packed_by_zstd_with_a_checksum_hold_no_more_than_a_chunk() {
    let dir = tempfile::tempdir().unwrap();
    let zstd = json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}});
    let codecs = json!([bytes_codec(), zstd, {"name": "crc32c"}]);
    let chunk: Vec<u8> = (0..24).collect();
    let read_with = |stored: &[u8]| {
        one_chunk_v3(dir.path(), &codecs, stored);
        read(&open_at(dir.path()).unwrap(), "", 0, &Selection::all(&[3, 4]))
    };
    let packed = |bytes: &[u8]| zstd::bulk::compress(bytes, 1).unwrap();
    assert_eq!(read_with(&with_checksum(&packed(&chunk))).unwrap(), chunk);
    let error = read_with(&with_checksum(&packed(&[0; 25]))).unwrap_err();
    assert!(error.to_string().contains("at most 24 bytes packed by zstd"), "{error}");
    let error = read_with(&with_checksum(&packed(&chunk[..23]))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "too few: {error}");
    let mut damaged = with_checksum(&packed(&chunk));
    damaged[9] ^= 1;
    let error = read_with(&damaged).unwrap_err();
    assert!(error.to_string().contains("expected the checksum"), "{error}");
}

#[test]
fn a_chunk_may_be_gzip_of_several_members() {
    use std::io::Write;
    let member = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    let codecs = json!([bytes_codec(), {"name": "gzip", "configuration": {"level": 1}}]);
    let chunk: Vec<u8> = (0..24).collect();
    let read_with = |stored: &[u8]| {
        one_chunk_v3(dir.path(), &codecs, stored);
        read(&open_at(dir.path()).unwrap(), "", 0, &Selection::all(&[3, 4]))
    };
    let members = [member(&chunk[..5]), member(&[]), member(&chunk[5..])].concat();
    assert_eq!(read_with(&members).unwrap(), chunk);
    let error = read_with(&[&members[..], &member(&[1])].concat()).unwrap_err();
    assert!(error.to_string().contains("at most 24 bytes packed by gzip"), "{error}");
}

#[test]
fn bombs_are_refused_by_every_compressor() {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    let zeros = vec![0; 64 << 20];
    for encoder in [&mut gzip as &mut dyn Write, &mut zlib, &mut bz2] {
        encoder.write_all(&zeros).unwrap();
    }
    let blosc =
        [&[2, 1, 1, 1][..], &(64u32 << 20).to_le_bytes(), &(1u32 << 20).to_le_bytes(), &[0; 16]].concat();
    let blosc_codec =
        json!({"cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "typesize": 1, "blocksize": 0});
    let bombs = [
        ("gzip", json!({"level": 1}), gzip.finish().unwrap()),
        ("numcodecs.zlib", json!({"level": 1}), zlib.finish().unwrap()),
        ("numcodecs.bz2", json!({"level": 1}), bz2.finish().unwrap()),
        ("zstd", json!({"level": 1, "checksum": false}), zstd::bulk::compress(&zeros, 1).unwrap()),
        ("blosc", blosc_codec, blosc),
    ];
    for (name, configuration, bomb) in bombs {
        let dir = tempfile::tempdir().unwrap();
        let codec = json!({"name": name, "configuration": configuration});
        one_chunk_v3(dir.path(), &json!([bytes_codec(), codec]), &bomb);
        let store = open_at(dir.path()).unwrap();
        let error = read(&store, "", 0, &Selection::all(&[3, 4])).unwrap_err();
        assert!(error.to_string().contains("at most 24 bytes packed by"), "{name}: {error}");
    }
}

#[test]
fn compressors_at_unusual_places_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
    one_chunk_v3(dir.path(), &json!([gzip, bytes_codec()]), &[]);
    let store = open_at(dir.path()).unwrap();
    assert!(store.dataset.left_out[0].what.contains("`gzip`"), "{:?}", store.dataset.left_out);
}

#[test]
fn shards_within_a_chunk_are_put_together() {
    let big = json!({"name": "bytes", "configuration": {"endian": "big"}});
    let sharding = |shape: [u64; 2], codecs: serde_json::Value| {
        json!({"name": "sharding_indexed", "configuration":
            {"chunk_shape": shape, "codecs": codecs, "index_codecs": [bytes_codec()]}})
    };
    let transpose = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    let shard = |chunks: &[&[u8]]| {
        let (mut shard, mut index) = (Vec::new(), Vec::new());
        for chunk in chunks {
            let is_there = !chunk.is_empty();
            let [offset, size] =
                [shard.len(), chunk.len()].map(|n| if is_there { n as u64 } else { u64::MAX });
            index.extend([offset.to_le_bytes(), size.to_le_bytes()].concat());
            shard.extend_from_slice(chunk);
        }
        [shard, index].concat()
    };
    let element = |x: i16, y: i16| (4 * y + x).to_be_bytes();
    let columns = |from: i16| -> Vec<u8> {
        (from..from + 2).flat_map(|x| (0..3).flat_map(move |y| element(x, y))).collect()
    };
    let packed = zstd::bulk::compress(&columns(0), 1).unwrap();
    let zstd = json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}});
    let inner = json!([sharding([2, 3], json!([big, zstd]))]);
    let cases = [
        // The last two columns were never written.
        (json!([transpose, sharding([2, 3], json!([big]))]), shard(&[&columns(0), &[]]), 2),
        (json!([transpose, sharding([4, 3], inner)]), shard(&[&shard(&[&packed, &[]])]), 2),
        (
            json!([transpose, sharding([2, 3], json!([big])), {"name": "crc32c"}]),
            with_checksum(&shard(&[&columns(0), &columns(2)])),
            4,
        ),
    ];
    for (codecs, chunk, written) in cases {
        let dir = tempfile::tempdir().unwrap();
        one_chunk_v3(dir.path(), &codecs, &chunk);
        let store = open_at(dir.path()).unwrap();
        assert!(store.dataset.left_out.is_empty(), "{:?}", store.dataset.left_out);
        let value = |y: i16, x: i16| if x < written { 4 * y + x } else { 0 };
        let expected: Vec<u8> =
            (0..3).flat_map(|y| (0..4).flat_map(move |x| value(y, x).to_ne_bytes())).collect();
        assert_eq!(read(&store, "", 0, &Selection::all(&[3, 4])).unwrap(), expected, "{codecs}");
    }
}

#[test]
fn an_index_of_shards_may_be_big_endian_but_not_packed() {
    let gzip = || json!({"name": "gzip", "configuration": {"level": 1}});
    let big = || json!({"name": "bytes", "configuration": {"endian": "big"}});
    for (index, is_read) in [(json!([big()]), true), (json!([big(), gzip()]), false)] {
        let dir = tempfile::tempdir().unwrap();
        let configuration =
            json!({"chunk_shape": [3, 4], "codecs": [bytes_codec(), gzip()], "index_codecs": index});
        let shards = json!({"name": "sharding_indexed", "configuration": configuration});
        one_chunk_v3(dir.path(), &json!([shards]), &[0xff; 16]);
        let store = open_at(dir.path()).unwrap();
        assert_eq!(store.dataset.left_out.is_empty(), is_read, "{:?}", store.dataset.left_out);
    }
}

#[test]
fn differences_along_other_axes_than_those_of_the_file_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let delta = json!({"name": "numcodecs.delta", "configuration": {"dtype": "<i2"}});
    let transpose = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    one_chunk_v3(dir.path(), &json!([delta, transpose, bytes_codec()]), &[0; 24]);
    let store = open_at(dir.path()).unwrap();
    assert!(store.dataset.left_out[0].what.contains("filter `delta`"), "{:?}", store.dataset.left_out);
    one_chunk_v3(dir.path(), &json!([transpose, delta, bytes_codec()]), &[0; 24]);
    assert!(open_at(dir.path()).unwrap().dataset.left_out.is_empty());
}

#[test]
fn chunks_are_decoded_within_the_budget_or_refused() {
    const CHUNK_BYTES: u64 = 64 * 64 * 64 * 4;
    let dir = tempfile::tempdir().unwrap();
    let files = Arc::new(FilesystemStore::new(dir.path()).unwrap());
    let mut builder = ArrayBuilder::new(vec![64, 64, 256], vec![64, 64, 64], data_type::int32(), 7i32);
    builder.bytes_to_bytes_codecs(vec![Arc::new(zarrs::array::codec::GzipCodec::new(1).unwrap())]);
    let array = builder.build(files, "/").unwrap();
    array.store_metadata().unwrap();
    let values: Vec<i32> = (0..64 * 64 * 256).collect();
    array.store_array_subset(&array.subset_all(), &values).unwrap();
    let open_within = |scratch: &Scratch| {
        open(dir.path(), &OpenOptions { scratch: scratch.clone(), ..OpenOptions::default() }).unwrap()
    };
    let rows = Selection::parse("3, :, :", &[64, 64, 256]).unwrap();
    let scratch = Scratch::new(4 << 20);
    let store = open_within(&scratch);
    for _ in 0..3 {
        assert_eq!(read(&store, "", 0, &rows).unwrap().len(), 64 * 256 * 4);
    }
    let peak = scratch.peak_decoding_bytes();
    assert!((2 * CHUNK_BYTES..=scratch.decoding_bytes()).contains(&peak), "{peak} bytes");

    let scratch = Scratch::new(CHUNK_BYTES);
    let error = read(&open_within(&scratch), "", 0, &rows).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    for part in [CHUNK_BYTES, scratch.decoding_bytes()].map(|n| n.to_string()) {
        assert!(error.to_string().contains(&part) && error.to_string().contains("`--memory`"), "{error}");
    }
}

/// Sets a file's time of modification to another one, whatever the clock's grain.
fn age(path: &Path, seconds: u64) {
    let file = std::fs::File::options().read(true).open(path).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 + seconds)).unwrap();
}

#[test]
fn rewritten_chunks_are_noticed_while_open_and_when_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    counting_v2(dir.path(), [6, 8], [3, 4], &json!({}));
    std::fs::remove_file(dir.path().join("1.1")).unwrap();
    let chunk = dir.path().join("0.0");
    age(&chunk, 0);
    let store = open_at(dir.path()).unwrap();
    assert_eq!(store.dataset.id, open_at(dir.path()).unwrap().dataset.id, "nothing changed");
    let (first, other) =
        (Selection::parse("0, 0", &[6, 8]).unwrap(), Selection::parse("0, 7", &[6, 8]).unwrap());
    read(&store, "", 0, &first).unwrap();
    std::fs::write(&chunk, [7; 24]).unwrap();
    age(&chunk, 1);
    for selection in [&first, &other] {
        assert_eq!(read(&store, "", 0, selection).unwrap_err().kind(), ErrorKind::Stale);
    }
    let again = open_at(dir.path()).unwrap();
    assert_ne!(again.dataset.id, store.dataset.id, "kept levels of before are not found");
    assert_eq!(read(&again, "", 0, &first).unwrap(), [7; 2]);
    std::fs::write(dir.path().join("1.1"), [7; 24]).unwrap();
    let late = Selection::parse("5, 7", &[6, 8]).unwrap();
    assert_eq!(read(&again, "", 0, &late).unwrap_err().kind(), ErrorKind::Stale, "it was not there before");
}

#[test]
fn large_stores_notice_replaced_chunks_by_their_folders() {
    for (separator, folder) in [(".", ""), ("/", "1")] {
        let dir = tempfile::tempdir().unwrap();
        let metadata = json!({"zarr_format": 2, "shape": [40, 4000], "chunks": [1, 1], "dtype": "|u1",
            "compressor": null, "fill_value": 0, "order": "C", "filters": null, "dimension_separator": separator});
        write(&dir.path().join(".zarray"), &metadata);
        let folder = dir.path().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        age(&folder, 0);
        let before = open_at(dir.path()).unwrap().dataset.id;
        assert_eq!(open_at(dir.path()).unwrap().dataset.id, before);
        age(&folder, 1);
        assert_ne!(open_at(dir.path()).unwrap().dataset.id, before, "separator `{separator}`");
    }
}

#[test]
fn webs_of_links_are_not_followed() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join(".zgroup"), &json!({"zarr_format": 2}));
    counting_v2(&dir.path().join("a"), [3, 4], [3, 4], &json!({}));
    for name in ["x", "y", "z"] {
        symlink(dir.path(), dir.path().join(name)).unwrap();
    }
    let store = open_at(dir.path()).unwrap();
    assert_eq!(store.dataset.arrays.len(), 1, "each array once");
    assert!(
        store.dataset.warnings.iter().any(|w| w.contains("not followed")),
        "{:?}",
        store.dataset.warnings
    );
}

#[test]
fn a_chunk_that_is_no_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    counting_v2(dir.path(), [3, 8], [3, 4], &json!({}));
    for (name, kind) in [("0.0", "a directory"), ("0.1", "a pipe")] {
        let path = dir.path().join(name);
        std::fs::remove_file(&path).unwrap();
        if kind == "a directory" {
            std::fs::create_dir(&path).unwrap();
        } else {
            assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        }
    }
    let store = open_at(dir.path()).unwrap();
    for (text, kind) in [("0, 0", "found a directory"), ("0, 7", "found a pipe")] {
        let error = read(&store, "", 0, &Selection::parse(text, &[3, 8]).unwrap()).unwrap_err();
        assert!(error.to_string().contains(kind), "{error}");
    }
}
