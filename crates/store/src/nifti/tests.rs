//! NIfTI headers: both byte orders, orientations, scaling, broken ones.

use array::{ErrorKind, Selection, Target};
use proptest::prelude::*;

use super::*;
use crate::{Cancel, Format};

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
    file.read(0, 0, &selection, region, &Cancel::default()).unwrap();
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
    for (i, value) in [0f32, 3.0, 0.0, 7.0].into_iter().enumerate() {
        made.put(280 + 4 * i, value.to_le_bytes());
    }
    assert_eq!(map(&made)[0], [0.0, 3.0, 0.0, 7.0]);
}

#[test]
fn labels_and_odd_types() {
    let mut made = Made::new(&[2, 2, 2], 2, false);
    made.put(68, 1002i16.to_le_bytes());
    assert_eq!(made.open(&[0; 8]).unwrap().dataset().arrays[0].meaning, Meaning::Labels);
    let complex = Made::new(&[2, 2, 2], 32, false).open(&[0; 64]).unwrap().dataset();
    assert!(complex.arrays.is_empty());
    assert!(complex.left_out[0].what.contains("complex"));
}

#[test]
fn packed_files_and_pairs() {
    let data: Vec<u8> = (0..8).collect();
    let made = Made::new(&[2, 2, 2], 2, false);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packer, &[&made.bytes[..], &data].concat()).unwrap();
    let packed = packer.finish().unwrap();
    assert!(recognises(&packed));
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
        (|m| m.put(42, (-1i16).to_le_bytes()), "size of at least 0"),
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
    fn mutated_headers_never_panic(changes in prop::collection::vec((4usize..344, any::<u8>()), 0..40), size in 0usize..400) {
        let mut made = Made::new(&[4, 3, 2, 5], 4, false);
        for (at, byte) in changes {
            made.bytes[at] = byte;
        }
        if let Ok(header) = Header::parse(&made.bytes[..size.min(352)]) {
            prop_assert!(header.world_from_voxel().iter().flatten().all(|v| v.is_finite()));
        }
    }
}
