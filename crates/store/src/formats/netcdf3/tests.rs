//! NetCDF-3 headers and data: fixed and record variables, all three versions, broken ones.

use array::{AxisKind, Coordinates, ErrorKind};
use proptest::prelude::*;

use super::*;
use crate::Format;

/// Writes headers as the library does.
#[derive(Default)]
struct Made(Vec<u8>);

impl Made {
    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    fn text(mut self, text: &str) -> Self {
        self.0.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
        self.0.extend(text.bytes());
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn text_attribute(self, name: &str, value: &str) -> Self {
        self.text(name).u32(2).text(value)
    }

    fn double_attribute(mut self, name: &str, value: f64) -> Self {
        self = self.text(name).u32(6).u32(1);
        self.0.extend(value.to_be_bytes());
        self
    }
}

/// Three records of `t[time]` (double) and `v[time, y, x]` (short, 3 values padded to 8 bytes), and `y[y]` (int).
fn sample(version: u8, records: u32) -> Vec<u8> {
    let begin = |made: Made, at: u32| if version == 1 { made.u32(at) } else { made.u32(0).u32(at) };
    let header = |base: u32| {
        let mut made = Made(vec![b'C', b'D', b'F', version]).u32(records);
        made = made.u32(10).u32(3).text("time").u32(0).text("y").u32(1).text("x").u32(3);
        made = made.u32(12).u32(1).text_attribute("title", "made by hand");
        made = made.u32(11).u32(4);
        made = made.text("y").u32(1).u32(1).u32(0).u32(0).u32(4).u32(4);
        made = begin(made, base);
        made = made.text("note").u32(1).u32(2).u32(0).u32(0).u32(2).u32(4);
        made = begin(made, base + 4);
        made = made.text("time").u32(1).u32(0);
        made = made.u32(12).u32(1).text_attribute("units", "hours since 1900-01-01").u32(6).u32(8);
        made = begin(made, base + 8);
        made = made.text("v").u32(3).u32(0).u32(1).u32(2).u32(12).u32(2);
        made = made.double_attribute("scale_factor", 0.5).text_attribute("units", "K").u32(3).u32(8);
        begin(made, base + 16).0
    };
    let base = u32::try_from(header(0).len()).unwrap();
    let mut bytes = header(base);
    bytes.extend(7i32.to_be_bytes());
    bytes.extend(b"abc\0");
    for record in 0..3i16 {
        bytes.extend((f64::from(record) * 6.0).to_be_bytes());
        (0..3).for_each(|x| bytes.extend((record * 10 + x).to_be_bytes()));
        bytes.extend([0, 0]);
    }
    bytes
}

fn open_bytes(bytes: &[u8]) -> Result<FlatFile> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.nc");
    std::fs::write(&path, bytes).unwrap();
    open(FileBytes::open(&path).unwrap(), &OpenOptions::default())
}

fn read(file: &FlatFile, name: &str, text: &str) -> Vec<f64> {
    let dataset = file.dataset();
    let (number, info) = dataset.find(name).unwrap();
    let selection = Selection::parse(text, info.shape()).unwrap();
    let (target, region) = Target::new(&selection.shape(), info.dtype.size_bytes()).unwrap();
    file.read(number, 0, &selection, region, &CancelFlag::default()).unwrap();
    let bytes = target.into_vec().unwrap();
    (0..bytes.len() / info.dtype.size_bytes())
        .map(|i| info.dtype.scalar_at(&bytes, i).unwrap().as_f64())
        .collect()
}

#[test]
fn records_are_interleaved() {
    for (version, records) in [(1, 3), (2, 3), (1, u32::MAX)] {
        let file = open_bytes(&sample(version, records)).unwrap();
        let dataset = file.dataset();
        assert_eq!(dataset.format, "NetCDF-3");
        let (_, v) = dataset.find("v").unwrap();
        assert_eq!((v.shape(), v.dtype.to_string().as_str(), v.units.as_str()), (&[3, 1, 3][..], ">i2", "K"));
        assert_eq!(read(&file, "v", ""), [0.0, 1.0, 2.0, 10.0, 11.0, 12.0, 20.0, 21.0, 22.0]);
        assert_eq!(read(&file, "v", "::2, 0, 1:"), [1.0, 2.0, 21.0, 22.0]);
        assert_eq!(read(&file, "y", ""), [7.0]);
        assert_eq!(v.axes[0].kind, AxisKind::Time);
        assert_eq!(v.axes[0].units, "hours since 1900-01-01");
        assert_eq!(v.axes[0].coordinates, Coordinates::Regular { origin: 0.0, step: 6.0 });
        assert_eq!(v.decoding.scale.to_bits(), 0.5f64.to_bits());
        assert_eq!(read(&file, "note", ""), b"abc".map(f64::from));
        assert_eq!(dataset.find("note").unwrap().1.text_shape(), Some(&[3][..]), "`v` has its dimension");
        assert!(dataset.attributes.contains_key("title"));
    }
}

#[test]
fn characters_along_a_dimension_of_other_variables_are_texts_of_one_byte() {
    let header = |base: u32| {
        let mut made = Made(vec![b'C', b'D', b'F', 1]).u32(0);
        made = made.u32(10).u32(2).text("x").u32(3).text("length").u32(2).u32(0).u32(0).u32(11).u32(3);
        made = made.text("x").u32(1).u32(0).u32(0).u32(0).u32(2).u32(4).u32(base);
        made = made.text("name").u32(2).u32(0).u32(1).u32(0).u32(0).u32(2).u32(8).u32(base + 4);
        made.text("letter").u32(0).u32(0).u32(0).u32(2).u32(4).u32(base + 12).0
    };
    let mut bytes = header(0);
    bytes = header(u32::try_from(bytes.len()).unwrap());
    bytes.extend(b"abc\0AABBCC\0\0z\0\0\0");
    let file = open_bytes(&bytes).unwrap();
    let dataset = file.dataset();
    for (name, shape, text) in
        [("x", &[3, 1][..], "fixed"), ("name", &[3, 2][..], "characters"), ("letter", &[1][..], "fixed")]
    {
        let info = dataset.find(name).unwrap().1;
        assert_eq!((info.shape(), info.storage.text.as_deref()), (shape, Some(text)), "{name}");
    }
    assert_eq!(read(&file, "x", ""), b"abc".map(f64::from));
    assert_eq!(read(&file, "name", "1"), b"BB".map(f64::from));
    assert_eq!(read(&file, "letter", ""), [f64::from(b'z')]);
}

#[test]
fn a_cut_variable_does_not_spoil_the_others() {
    let bytes = sample(1, 3);
    let file = open_bytes(&bytes[..bytes.len() - 6]).unwrap();
    let dataset = file.dataset();
    assert!(dataset.find("v").is_err());
    assert!(
        dataset.left_out.iter().any(|l| l.name == "v" && l.what.contains("cut short")),
        "{:?}",
        dataset.left_out
    );
    assert_eq!(read(&file, "time", ""), [0.0, 6.0, 12.0]);
}

#[test]
fn a_file_without_records_has_arrays_of_none() {
    let bytes = sample(1, 0);
    // Libraries end the file before the place where records would begin.
    for cut in [3 * 16, 3 * 16 - 8] {
        let file = open_bytes(&bytes[..bytes.len() - cut]).unwrap();
        let dataset = file.dataset();
        assert_eq!(dataset.find("v").unwrap().1.shape(), [0, 1, 3], "{:?}", dataset.left_out);
        assert_eq!(dataset.find("time").unwrap().1.shape(), [0]);
        assert!(read(&file, "v", "").is_empty());
    }
}

#[test]
fn names_end_where_c_ends_them() {
    let mut bytes = sample(1, 3);
    let at = bytes.windows(4).position(|w| w == b"note").unwrap();
    bytes[at + 3] = 0;
    assert!(open_bytes(&bytes).unwrap().dataset().find("not").is_ok());
}

#[test]
fn what_is_wrong_is_said() {
    let good = sample(1, 3);
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        open_bytes(&bytes).map(drop).unwrap_err()
    };
    assert_eq!(with(3, 9).kind(), ErrorKind::Corrupt);
    assert!(with(11, 99).to_string().contains("tag 10"));
    assert!(open_bytes(&good[..100]).map(drop).unwrap_err().to_string().contains("more bytes of header"));
}

proptest! {
    #[test]
    fn mutated_headers_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        version in prop::sample::select(vec![1u8, 2, 5]), cut in 0usize..2000,
    ) {
        let mut bytes = sample(version.min(2), 3);
        bytes[3] = version;
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut);
        if header::parse(&bytes).is_ok() {
            drop(open_bytes(&bytes));
        }
    }
}
