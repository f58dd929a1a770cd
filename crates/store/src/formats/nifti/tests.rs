//! NIfTI headers: both byte orders, orientations, scaling, broken ones.

use array::{ErrorKind, Selection, Target};
use proptest::prelude::*;

use super::*;
use crate::{CancelFlag, Format};

/// A NIfTI-1 header in the given byte order.
struct Made {
    bytes: Vec<u8>,
    big: bool,
}

impl Made {
    fn new(sizes: &[i16], datatype: i16, big: bool) -> Self {
        let mut made = Self { bytes: vec![0; 352], big };
        made.put(0, 348i32.to_le_bytes());
        made.put(40, i16::try_from(sizes.len()).unwrap().to_le_bytes());
        for (i, size) in sizes.iter().enumerate() {
            made.put(42 + 2 * i, size.to_le_bytes());
            made.put(80 + 4 * i, 2f32.to_le_bytes());
        }
        made.put(70, datatype.to_le_bytes());
        made.put(76, 1f32.to_le_bytes());
        made.put(108, 352f32.to_le_bytes());
        made.bytes[123] = 2 | 8;
        made.bytes[344..348].copy_from_slice(b"n+1\0");
        made
    }

    fn put<const N: usize>(&mut self, at: usize, mut little: [u8; N]) {
        if self.big {
            little.reverse();
        }
        self.bytes[at..at + N].copy_from_slice(&little);
    }

    fn open(&self, data: &[u8]) -> Result<FlatFile> {
        open_bytes(&[&self.bytes, data].concat(), "a.nii")
    }
}

fn open_bytes(bytes: &[u8], name: &str) -> Result<FlatFile> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    open(FileBytes::open(&path).unwrap(), &OpenOptions::default())
}

fn read(file: &FlatFile, text: &str) -> Vec<u8> {
    let dataset = file.dataset();
    let info = &dataset.arrays[0];
    let selection = Selection::parse(text, info.shape()).unwrap();
    let (target, region) = Target::new(&selection.shape(), info.dtype.size_bytes()).unwrap();
    file.read(0, 0, &selection, region, &CancelFlag::default()).unwrap();
    target.into_vec().unwrap()
}

#[test]
fn both_byte_orders_with_time_and_scaling() {
    let data: Vec<u8> = (0..2 * 5 * 2 * 3 * 4).map(|i: u16| i.to_le_bytes()[0]).collect();
    for big in [false, true] {
        let mut made = Made::new(&[4, 3, 2, 5], 4, big);
        made.put(112, 0.5f32.to_le_bytes());
        made.put(116, 3f32.to_le_bytes());
        let file = made.open(&data).unwrap();
        let dataset = file.dataset();
        let info = &dataset.arrays[0];
        assert_eq!(info.shape(), [5, 2, 3, 4]);
        assert_eq!(info.dtype.to_string(), if big { ">i2" } else { "<i2" });
        assert_eq!((info.decoding.scale, info.decoding.offset), (0.5, 3.0));
        assert_eq!(info.decoding.output.element(), ElementType::F64);
        assert_eq!((info.axes[0].kind, info.axes[0].units.as_str()), (AxisKind::Time, "s"));
        assert_eq!(info.world_units, "mm");
        assert_eq!(info.levels[0].world_from_voxel.spacing(), [2.0; 3]);
        assert_eq!(read(&file, "4, 1, 2, 1::2"), [&data[234..236], &data[238..240]].concat());
    }
}

#[test]
fn only_a_form_of_the_header_makes_the_world_anatomical() {
    let mut made = Made::new(&[2, 2, 2], 2, false);
    let is_anatomical = |made: &Made| made.open(&[0; 8]).unwrap().dataset().arrays[0].is_anatomical();
    assert!(!is_anatomical(&made), "sizes of voxels alone");
    made.put(252, 1i16.to_le_bytes());
    assert!(is_anatomical(&made));
    made.put(254, 2i16.to_le_bytes());
    assert!(is_anatomical(&made), "the sform lays voxels over each other, the qform does not");
}

#[test]
fn sform_wins_over_qform() {
    let mut made = Made::new(&[2, 2, 2], 2, false);
    made.put(252, 1i16.to_le_bytes());
    // Half a turn about z.
    made.put(264, 1f32.to_le_bytes());
    made.put(268, 5f32.to_le_bytes());
    made.put(76, (-1f32).to_le_bytes());
    let map = |made: &Made| made.open(&[0; 8]).unwrap().dataset().arrays[0].levels[0].world_from_voxel.0;
    assert_eq!(map(&made), [[-2.0, 0.0, 0.0, 5.0], [0.0, -2.0, 0.0, 0.0], [0.0, 0.0, -2.0, 0.0]]);
    made.put(254, 2i16.to_le_bytes());
    let sform = [0f32, 3.0, 0.0, 7.0, 4.0, 0.0, 0.0, 8.0, 0.0, 0.0, 5.0, 9.0];
    for (i, value) in sform.into_iter().enumerate() {
        made.put(280 + 4 * i, value.to_le_bytes());
    }
    assert_eq!(map(&made), [[0.0, 3.0, 0.0, 7.0], [4.0, 0.0, 0.0, 8.0], [0.0, 0.0, 5.0, 9.0]]);
}

#[test]
fn a_sform_that_nothing_can_be_drawn_by_is_passed_over() {
    let mut made = Made::new(&[2, 2, 2], 2, false);
    made.put(254, 2i16.to_le_bytes());
    let opened = |made: &Made| {
        let dataset = made.open(&[0; 8]).unwrap().dataset();
        assert!(dataset.warnings[0].contains("sform"), "{:?}", dataset.warnings);
        dataset.arrays[0].levels[0].world_from_voxel.0
    };
    assert_eq!(opened(&made), [[-2.0, 0.0, 0.0, 1.0], [0.0, 2.0, 0.0, -1.0], [0.0, 0.0, 2.0, -1.0]]);
    made.put(252, 1i16.to_le_bytes());
    made.put(268, 5f32.to_le_bytes());
    let by_quaternion = [[2.0, 0.0, 0.0, 5.0], [0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0]];
    assert_eq!(opened(&made), by_quaternion);
    made.put(280, f32::NAN.to_le_bytes());
    assert_eq!(opened(&made), by_quaternion);
}

#[test]
fn without_forms_the_middle_is_the_origin_and_x_points_left() {
    let mut made = Made::new(&[3, 5, 7], 2, false);
    for (at, step) in [(80, 3f32), (84, 0.0), (88, -1.0)] {
        made.put(at, step.to_le_bytes());
    }
    let map = made.open(&[0; 105]).unwrap().dataset().arrays[0].levels[0].world_from_voxel.0;
    assert_eq!(map, [[-3.0, 0.0, 0.0, 3.0], [0.0, 1.0, 0.0, -2.0], [0.0, 0.0, 1.0, -3.0]]);
    // A code that nobody defined is none.
    made.put(254, 6i16.to_le_bytes());
    assert_eq!(made.open(&[0; 105]).unwrap().dataset().arrays[0].levels[0].world_from_voxel.0, map);
    // A quaternion that is none of a rotation.
    made.put(252, 1i16.to_le_bytes());
    made.put(256, 2f32.to_le_bytes());
    let dataset = made.open(&[0; 105]).unwrap().dataset();
    assert_eq!(dataset.arrays[0].levels[0].world_from_voxel.0, map);
    assert!(dataset.warnings[0].contains("quaternion"), "{:?}", dataset.warnings);
}

#[test]
fn labels_and_odd_types() {
    let mut made = Made::new(&[2, 2, 2], 2, false);
    made.put(68, 1002i16.to_le_bytes());
    made.bytes[39] = 0b11_01_10;
    let labels = made.open(&[0; 8]).unwrap().dataset().arrays[0].clone();
    assert_eq!(labels.meaning, Meaning::Labels);
    let file = Made::new(&[2, 2, 2], 1536, false).open(&[0; 128]).unwrap().dataset();
    assert!(file.arrays.is_empty());
    assert!(file.left_out[0].what.contains("128 bits"));
    let attributes = made.open(&[0; 8]).unwrap().dataset().attributes.clone();
    assert_eq!(attributes["frequency_axis"], Attribute::Text("y".into()));
    assert_eq!(attributes["slice_axis"], Attribute::Text("z".into()));
}

#[test]
fn colors_have_an_axis_and_complex_numbers_two_arrays() {
    let data: Vec<u8> = (0..64).collect();
    for (code, parts) in [(128, 3), (2304, 4)] {
        let file = Made::new(&[2, 2, 2], code, true).open(&data[..8 * parts]).unwrap();
        let info = &file.dataset().arrays[0];
        assert_eq!(info.shape(), [2, 2, 2, parts as u64]);
        assert_eq!((info.axes[3].kind, info.axes[3].name.as_str()), (AxisKind::Channel, "colour"));
        assert!(matches!(&info.attributes["channels"], Attribute::Texts(names) if names.len() == parts));
        assert_eq!(read(&file, ""), data[..8 * parts]);
    }
    let file = Made::new(&[2, 2, 2], 32, false).open(&data).unwrap();
    let dataset = file.dataset();
    let names: Vec<&str> = dataset.arrays.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["image.r", "image.i"]);
    for (number, first) in [(0, 0), (1, 4)] {
        let info = &dataset.arrays[number as usize];
        assert_eq!((info.shape(), info.dtype.to_string().as_str()), (&[2, 2, 2][..], "<f4"));
        let (target, region) = Target::new(info.shape(), 4).unwrap();
        file.read(number, 0, &Selection::all(info.shape()), region, &CancelFlag::default()).unwrap();
        let expected: Vec<u8> = data.chunks(8).flat_map(|pair| &pair[first..first + 4]).copied().collect();
        assert_eq!(target.into_vec().unwrap(), expected);
    }
}

#[test]
fn no_place_of_voxels_means_behind_the_header_and_is_said() {
    let mut made = Made::new(&[2, 2, 2], 2, false);
    made.put(108, 0f32.to_le_bytes());
    let file = made.open(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    assert_eq!(read(&file, ""), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(file.dataset().warnings[0].contains("from byte 352"), "{:?}", file.dataset().warnings);
}

#[test]
fn an_intercept_that_is_no_number_is_not_guessed() {
    let mut made = Made::new(&[2, 2, 2], 2, false);
    made.put(112, 2f32.to_le_bytes());
    made.put(116, f32::NAN.to_le_bytes());
    let dataset = made.open(&[0; 8]).unwrap().dataset();
    assert!(dataset.left_out[0].what.contains("intercept"));
    made.put(112, 0f32.to_le_bytes());
    assert!(made.open(&[0; 8]).unwrap().dataset().arrays[0].decoding.is_identity());
}

#[test]
fn rows_of_surfaces_are_longer_than_sixteen_bits() {
    let mut made = Made::new(&[-1, 1, 1, 2], 2, false);
    made.put(144, 40_000i32.to_le_bytes());
    assert_eq!(made.open(&[0; 80_000]).unwrap().dataset().arrays[0].shape(), [2, 1, 1, 40_000]);
    assert_eq!(
        Made::new(&[27_307, 1, 6], 2, false).open(&vec![0; 163_842]).unwrap().dataset().arrays[0].shape(),
        [1, 1, 163_842]
    );
}

/// A NIfTI-2 header of these sizes, in the given byte order.
fn second(sizes: &[i64], datatype: i16, intent: i32, extensions: &[u8], big: bool) -> Vec<u8> {
    let mut bytes = vec![0; 540];
    let mut put = |at: usize, little: &[u8]| {
        let mut value = little.to_vec();
        if big {
            value.reverse();
        }
        bytes[at..at + value.len()].copy_from_slice(&value);
    };
    put(0, &540i32.to_le_bytes());
    put(12, &datatype.to_le_bytes());
    put(14, &8i16.to_le_bytes());
    put(16, &i64::try_from(sizes.len()).unwrap().to_le_bytes());
    for (i, size) in sizes.iter().enumerate() {
        put(24 + 8 * i, &size.to_le_bytes());
        put(112 + 8 * i, &2f64.to_le_bytes());
    }
    put(168, &(544 + i64::try_from(extensions.len()).unwrap()).to_le_bytes());
    put(348, &1i32.to_le_bytes());
    for (at, value) in [(400, 3f64), (440, 4.0), (480, 5.0), (456, -9.0)] {
        put(at, &value.to_le_bytes());
    }
    put(500, &10i32.to_le_bytes());
    put(504, &intent.to_le_bytes());
    bytes[4..12].copy_from_slice(b"n+2\0\r\n\x1a\n");
    bytes.extend([u8::from(!extensions.is_empty()), 0, 0, 0]);
    bytes.extend(extensions);
    bytes
}

#[test]
fn the_second_version_is_read_too() {
    let data: Vec<u8> = (0..48).collect();
    for big in [false, true] {
        let file = open_bytes(&[second(&[2, 3, 4], 4, 0, &[], big), data.clone()].concat(), "a.nii").unwrap();
        let info = &file.dataset().arrays[0];
        assert_eq!(
            (info.shape(), info.dtype.to_string().as_str()),
            (&[4, 3, 2][..], if big { ">i2" } else { "<i2" })
        );
        let map = info.levels[0].world_from_voxel.0;
        assert_eq!(map, [[3.0, 0.0, 0.0, 0.0], [0.0, 4.0, 0.0, -9.0], [0.0, 0.0, 5.0, 0.0]]);
        assert_eq!((info.world_units.as_str(), read(&file, "")), ("mm", data.clone()));
    }
}

#[test]
fn matrices_of_cifti_have_the_axes_of_their_xml() {
    let xml = b"<CIFTI><MatrixIndicesMap AppliesToMatrixDimension=\"0\" IndicesMapToDataType=\"CIFTI_INDEX_TYPE_LABELS\"/>";
    let mut extensions = vec![0; 8 + xml.len().next_multiple_of(8)];
    let length = u32::try_from(extensions.len()).unwrap();
    extensions[..4].copy_from_slice(&length.to_le_bytes());
    extensions[4] = 32;
    extensions[8..8 + xml.len()].copy_from_slice(xml);
    let data: Vec<u8> = (0..24).collect();
    let file = open_bytes(
        &[second(&[1, 1, 1, 1, 2, 3], 16, 3007, &extensions, false), data.clone()].concat(),
        "a.dlabel.nii",
    )
    .unwrap();
    let info = &file.dataset().arrays[0];
    assert_eq!((info.shape(), info.meaning), (&[3, 2][..], Meaning::Labels));
    assert_eq!((info.axes[0].name.as_str(), info.axes[1].name.as_str()), ("dim0", "labels"));
    assert_eq!(read(&file, ""), data);
}

/// By the header's name and by the image's.
#[test]
fn analyze_files_have_the_world_and_the_scale_of_spm() {
    let mut made = Made::new(&[3, 5, 7], 4, true);
    made.bytes.truncate(348);
    made.bytes[344..348].fill(0);
    made.put(108, 0f32.to_le_bytes());
    made.put(112, 0.5f32.to_le_bytes());
    let data: Vec<u8> = (0..210).map(|i: u16| i.to_le_bytes()[0]).collect();
    let dir = tempfile::tempdir().unwrap();
    let open_named = |header: &[u8], name: &str| {
        std::fs::write(dir.path().join("a.hdr"), header).unwrap();
        std::fs::write(dir.path().join("a.img"), &data).unwrap();
        open(FileBytes::open(&dir.path().join(name)).unwrap(), &OpenOptions::default()).unwrap()
    };
    let map = |file: &FlatFile| file.dataset().arrays[0].levels[0].world_from_voxel.0;
    let middle = [[-2.0, 0.0, 0.0, 2.0], [0.0, 2.0, 0.0, -4.0], [0.0, 0.0, 2.0, -6.0]];
    for name in ["a.hdr", "a.img"] {
        let file = open_named(&made.bytes, name);
        let dataset = file.dataset();
        assert_eq!((dataset.format.as_str(), dataset.name.as_str()), ("Analyze", name));
        assert_eq!(
            (dataset.arrays[0].shape(), dataset.arrays[0].dtype.to_string()),
            (&[7, 5, 3][..], ">i2".to_owned())
        );
        assert_eq!(dataset.arrays[0].decoding.scale, 0.5);
        assert_eq!((map(&file), read(&file, "")), (middle, data.clone()));
    }
    for (i, voxel) in [3i16, 4, 5].into_iter().enumerate() {
        made.put(253 + 2 * i, voxel.to_le_bytes());
    }
    let origin = map(&open_named(&made.bytes, "a.img")).map(|row| row[3]);
    assert_eq!(origin, [4.0, -6.0, -8.0]);
    // Far outside it is none.
    made.put(253, 300i16.to_le_bytes());
    assert_eq!(map(&open_named(&made.bytes, "a.img")), middle);
}

#[test]
fn half_a_pair_says_what_it_lacks() {
    let dir = tempfile::tempdir().unwrap();
    for (name, words) in [("a.img", "`a.hdr` beside `a.img`"), ("b.hdr", "`b.img` beside `b.hdr`")] {
        let mut pair = Made::new(&[2, 2, 2], 2, false);
        pair.bytes[344..348].copy_from_slice(b"ni1\0");
        std::fs::write(dir.path().join(name), &pair.bytes).unwrap();
        let error = open(FileBytes::open(&dir.path().join(name)).unwrap(), &OpenOptions::default())
            .map(drop)
            .unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// Even where the header itself lies in two.
#[test]
fn gzip_files_of_several_members_are_one() {
    let data: Vec<u8> = (0..8).collect();
    let whole = [&Made::new(&[2, 2, 2], 2, false).bytes[..], &data].concat();
    let packed = |part: &[u8]| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut packer, part).unwrap();
        packer.finish().unwrap()
    };
    let members = [packed(&whole[..200]), packed(&whole[200..]), packed(&[]), vec![0; 512]].concat();
    assert!(recognizes(&members));
    assert_eq!(read(&open_bytes(&members, "a.nii.gz").unwrap(), ""), data);
}

#[test]
fn packed_files_and_pairs() {
    let data: Vec<u8> = (0..8).collect();
    let made = Made::new(&[2, 2, 2], 2, false);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packer, &[&made.bytes[..], &data].concat()).unwrap();
    let packed = packer.finish().unwrap();
    assert!(recognizes(&packed));
    assert_eq!(read(&open_bytes(&packed, "a.nii.gz").unwrap(), ""), data);

    let mut pair = Made::new(&[2, 2, 2], 2, false);
    pair.bytes[344..348].copy_from_slice(b"ni1\0");
    pair.put(108, 0f32.to_le_bytes());
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.hdr"), &pair.bytes).unwrap();
    std::fs::write(dir.path().join("a.img"), &data).unwrap();
    let file = open(FileBytes::open(&dir.path().join("a.hdr")).unwrap(), &OpenOptions::default()).unwrap();
    assert_eq!(read(&file, ""), data);
}

#[test]
fn what_is_wrong_is_said() {
    let open = |change: fn(&mut Made)| {
        let mut made = Made::new(&[2, 2, 2], 2, false);
        change(&mut made);
        made.open(&[0; 8]).map(drop).unwrap_err()
    };
    type Change = fn(&mut Made);
    let cases: [(Change, &str); 7] = [
        (|m| m.put(40, 9i16.to_le_bytes()), "1 to 7 dimensions"),
        (|m| m.put(44, (-1i16).to_le_bytes()), "size of at least 0"),
        (|m| m.put(42, 3000i16.to_le_bytes()), "cut short"),
        (|m| m.put(70, 3i16.to_le_bytes()), "datatype"),
        (|m| m.put(108, f32::NAN.to_le_bytes()), "whole data offset"),
        (|m| m.put(108, 10f32.to_le_bytes()), "data offset from 352 on"),
        (|m| m.bytes[344] = b'x', "magic"),
    ];
    for (change, words) in cases {
        let error = open(change);
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
}

proptest! {
    #[test]
    fn mutated_headers_never_panic(changes in prop::collection::vec((4usize..344, any::<u8>()), 0..40), size in 0usize..400, analyze in any::<bool>()) {
        let mut made = Made::new(&[4, 3, 2, 5], 4, false);
        for (at, byte) in changes {
            made.bytes[at] = byte;
        }
        if let Ok(header) = NiftiHeader::parse(&made.bytes[..size.min(352)], analyze) {
            prop_assert!(header.world_from_voxel.iter().flatten().all(|v| v.is_finite()));
        }
    }
}
