//! Recognition of formats, and conformance checks of the sources of all kinds of locations.

use std::io::Write;
use std::sync::Arc;

use array::ErrorKind;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use hdf5_metno as h5;
use ndarray::Array3;
use serde_json::json;
use zarrs::array::{ArrayBuilder, ArraySubset, data_type};
use zarrs::filesystem::FilesystemStore;

use super::*;

fn failure(name: &str, bytes: &[u8]) -> Error {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    open(&path.to_string_lossy(), &OpenOptions::default()).map(drop).unwrap_err()
}

#[test]
fn unknown_files_are_told_what_is_known() {
    let error = failure("notes.txt", b"hello");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("HDF5, NetCDF-3, NRRD, NIfTI, Analyze, MGH, NumPy, Enzo, the folder of a Zarr store or of a mesh, or for numbers without a header a description"), "{error}");
    assert_eq!(failure("nothing", b"").kind(), ErrorKind::Unsupported);
    assert_eq!(
        open("/no/such/file", &OpenOptions::default()).map(drop).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(
        open("synthetic:fog", &OpenOptions::default()).map(drop).unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn a_folder_of_data_sets_is_told_how_they_are_seen() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_str().unwrap();
    let error = open(folder, &OpenOptions::default()).map(drop).unwrap_err();
    assert!(error.to_string().contains(&format!("`corridor serve {folder}`")), "{error}");
}

#[test]
fn names_decide_only_when_bytes_do_not() {
    assert!(failure("a.nrrd", b"CDF\x01").to_string().contains("NetCDF-3"), "the bytes are NetCDF's");
    assert!(failure("a.nc", b"rubbish").to_string().contains("expected `CDF`"));
    assert!(failure("a.nii.gz", b"\x1f\x8b rubbish").to_string().contains("NIfTI header"));
}

/// The shape of the samples `[z, y, x]`.
const SHAPE: [usize; 3] = [20, 40, 60];

/// Elements of two bytes.
fn elements() -> Vec<u8> {
    (0..=255).cycle().take(SHAPE.iter().product::<usize>() * 2).collect()
}

fn values() -> Vec<i32> {
    (0..).take(SHAPE.iter().product()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

async fn keeps_its_promises(location: &str) {
    let options = OpenOptions::default();
    let source = open(location, &options).unwrap_or_else(|e| panic!("{location}: {e}"));
    assert!(!source.describe().await.unwrap().arrays.is_empty(), "{location}");
    array::conformance::check_source(source).await;
}

async fn file_keeps_its_promises(name: &str, parts: &[&[u8]]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, parts.concat()).unwrap();
    keeps_its_promises(&path.to_string_lossy()).await;
}

#[tokio::test]
async fn a_synthetic_field_keeps_the_promises_of_a_source() {
    keeps_its_promises("synthetic:waves?shape=70,80,90&dtype=f32&steps=2").await;
}

#[tokio::test]
async fn raw_files_keep_the_promises_of_a_source() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.bin"), elements()).unwrap();
    let description = dir.path().join("a.toml");
    std::fs::write(&description, "file = 'a.bin'\nshape = [20, 40, 60]\ndtype = '>i2'\n").unwrap();
    keeps_its_promises(&description.to_string_lossy()).await;
}

#[tokio::test]
async fn nrrd_files_keep_the_promises_of_a_source() {
    let header = "NRRD0004\ntype: int16\ndimension: 3\nsizes: 60 40 20\nendian: big\n";
    let data = elements();
    file_keeps_its_promises("a.nrrd", &[header.as_bytes(), b"encoding: raw\n\n", &data]).await;
    file_keeps_its_promises("b.nrrd", &[header.as_bytes(), b"encoding: gzip\n\n", &gzip(&data)]).await;
}

#[tokio::test]
async fn nifti_files_keep_the_promises_of_a_source() {
    let mut header = vec![0; 352];
    header[..4].copy_from_slice(&348i32.to_le_bytes());
    for (place, value) in [3i16, 60, 40, 20].into_iter().enumerate() {
        header[40 + 2 * place..][..2].copy_from_slice(&value.to_le_bytes());
    }
    header[70..72].copy_from_slice(&4i16.to_le_bytes());
    header[108..112].copy_from_slice(&352f32.to_le_bytes());
    header[344..348].copy_from_slice(b"n+1\0");
    let whole = [header, elements()].concat();
    file_keeps_its_promises("a.nii", &[&whole]).await;
    file_keeps_its_promises("a.nii.gz", &[&gzip(&whole)]).await;
}

#[tokio::test]
async fn netcdf3_files_keep_the_promises_of_a_source() {
    let mut file = b"CDF\x01".to_vec();
    let put = |file: &mut Vec<u8>, words: &[u32]| words.iter().for_each(|w| file.extend(w.to_be_bytes()));
    put(&mut file, &[0, 10, 3]);
    for (name, size) in [(b"z\0\0\0", 20), (b"y\0\0\0", 40), (b"x\0\0\0", 60)] {
        put(&mut file, &[1]);
        file.extend(name);
        put(&mut file, &[size]);
    }
    // No attributes; one variable `v[z, y, x]` of shorts, right behind the header.
    put(&mut file, &[0, 0, 11, 1, 1]);
    file.extend(b"v\0\0\0");
    put(&mut file, &[3, 0, 1, 2, 0, 0, 3, 96_000]);
    let begin = u32::try_from(file.len()).unwrap() + 4;
    put(&mut file, &[begin]);
    file_keeps_its_promises("a.nc", &[&file, &elements()]).await;
}

#[tokio::test]
async fn hdf5_files_keep_the_promises_of_a_source() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.h5");
    let data = Array3::from_shape_vec(SHAPE, values()).unwrap();
    let file = h5::File::create(&path).unwrap();
    let new = || file.new_dataset_builder().with_data(&data);
    new().create("contiguous").unwrap();
    new().chunk((7, 16, 25)).shuffle().deflate(1).create("packed").unwrap();
    new().chunk((7, 16, 25)).nbit().create("by library").unwrap();
    file.close().unwrap();
    keeps_its_promises(&path.to_string_lossy()).await;
}

#[tokio::test]
async fn zarr_version_2_keeps_the_promises_of_a_source() {
    let dir = tempfile::tempdir().unwrap();
    let metadata = json!({"zarr_format": 2, "shape": SHAPE, "chunks": [8, 16, 30], "dtype": ">i2",
        "compressor": {"id": "zlib", "level": 1}, "fill_value": 5, "order": "C", "filters": null});
    std::fs::write(dir.path().join(".zarray"), metadata.to_string()).unwrap();
    for (number, place) in (0u8..).zip((0..3).flat_map(|z| (0..3).flat_map(move |y| [[z, y, 0], [z, y, 1]])))
    {
        // One was never written.
        if number == 7 {
            continue;
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        let chunk: Vec<u8> = elements().iter().take(8 * 16 * 30 * 2).map(|b| b ^ number).collect();
        encoder.write_all(&chunk).unwrap();
        let [z, y, x] = place;
        std::fs::write(dir.path().join(format!("{z}.{y}.{x}")), encoder.finish().unwrap()).unwrap();
    }
    keeps_its_promises(&dir.path().to_string_lossy()).await;
}

#[tokio::test]
async fn zarr_version_3_keeps_the_promises_of_a_source() {
    let dir = tempfile::tempdir().unwrap();
    let files = Arc::new(FilesystemStore::new(dir.path()).unwrap());
    zarrs::group::GroupBuilder::new().build(Arc::clone(&files), "/").unwrap().store_metadata().unwrap();
    let mut builder = ArrayBuilder::new(vec![20, 40, 60], vec![8, 16, 32], data_type::int32(), 7i32);
    let plain = builder.build(Arc::clone(&files), "/plain").unwrap();
    let sharded = builder.subchunk_shape(vec![4, 8, 16]).build(Arc::clone(&files), "/sharded").unwrap();
    let whole = ArraySubset::new_with_ranges(&[0..20, 0..40, 0..60]);
    for array in [&plain, &sharded] {
        array.store_metadata().unwrap();
        array.store_array_subset(&whole, values()).unwrap();
    }
    keeps_its_promises(&dir.path().to_string_lossy()).await;
}

/// Whoever reads from both takes them for one.
#[test]
fn copies_in_other_places_are_the_same_data_set() {
    let head = b"NRRD0004\ntype: uint8\ndimension: 1\nsizes: 4\nencoding: raw\n\n";
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let id = |folder: &tempfile::TempDir, name: &str, second: u64| {
        let path = folder.path().join(name);
        std::fs::write(&path, [&head[..], &[1, 2, 3, 4]].concat()).unwrap();
        let modified = std::time::UNIX_EPOCH + std::time::Duration::from_secs(second);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        open_format(&path.to_string_lossy(), &OpenOptions::default()).unwrap().dataset().id
    };
    assert_eq!(id(&folders[0], "run.nrrd", 7), id(&folders[1], "run.nrrd", 7));
    assert_ne!(id(&folders[0], "run.nrrd", 7), id(&folders[1], "run.nrrd", 8));
    assert_ne!(id(&folders[0], "run.nrrd", 7), id(&folders[1], "ran.nrrd", 7));
}
