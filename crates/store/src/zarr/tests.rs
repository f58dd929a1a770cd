//! Zarr stores written here and read back: versions, shards, pyramids, links, broken ones.

use std::path::Path;
use std::sync::Arc;

use array::{AxisKind, ErrorKind, Meaning, Selection, Target};
use serde_json::json;
use zarrs::array::{ArrayBuilder, data_type};
use zarrs::filesystem::FilesystemStore;

use super::*;

fn read(store: &Zarr, name: &str, level: u8, selection: &Selection) -> Result<Vec<u8>> {
    let (number, info) = store.dataset.find(name)?;
    let (target, region) = Target::new(&selection.shape(), info.dtype.size_bytes())?;
    store.read(number, level, selection, region, &Cancel::default())?;
    target.into_vec()
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
    let store = open(dir.path()).unwrap();
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
    let store = open(dir.path()).unwrap();
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
    let store = open(dir.path()).unwrap();
    assert_eq!(store.dataset.find("sharded").unwrap().1.chunk.as_deref(), Some(&[5, 4][..]));
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
    let mut labelled = attributes.clone();
    labelled["image-label"] = json!({});
    write(&labels.join("cells/.zattrs"), &labelled);
    counting_v2(&labels.join("cells/0"), [8, 10], [4, 5], &json!({}));
    let store = open(dir.path()).unwrap();
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
    let store = open(dir.path()).unwrap();
    let info = &store.dataset.arrays[0];
    assert_eq!(info.axes.iter().map(|a| a.kind).collect::<Vec<_>>(), [AxisKind::Y, AxisKind::X]);
    assert!(info.decoding.decode(array::Scalar::Signed(-1)).is_nan());
    assert_eq!(info.decoding.decode(array::Scalar::Signed(3)).to_bits(), 1.5f64.to_bits());
    assert!(!info.attributes.contains_key("_ARRAY_DIMENSIONS"));
    assert_eq!(store.dataset.arrays.len(), 1, "a directory without metadata is no group");
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
    let store = open(dir.path()).unwrap();
    assert_eq!(store.dataset.arrays.len(), 1);
    let error = read(&store, "a", 0, &Selection::all(&[3, 4])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
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
    let store = open(dir.path()).unwrap();
    assert_eq!(store.dataset.left_out.len(), 1, "{:?}", store.dataset);
    let zstd = json!({"id": "zstd", "level": 1});
    write(&dir.path().join(".zarray"), &metadata(json!([3, 4]), zstd));
    // A frame that says it holds 2^60 bytes.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
    frame.extend((1u64 << 60).to_le_bytes());
    frame.extend([1, 0, 0]);
    std::fs::write(dir.path().join("0.0"), frame).unwrap();
    let store = open(dir.path()).unwrap();
    let error = read(&store, "", 0, &Selection::all(&[3, 4])).unwrap_err();
    assert!(error.to_string().contains("promise of 1152921504606846976"), "{error}");
}
