//! NRRD headers: attached and detached, orientations, encodings, broken ones.

use array::{Affine, AxisKind, ErrorKind, Selection, Target};
use proptest::prelude::*;

use super::*;
use crate::{Access, Cancel, Format};

fn open_text(header: &str, data: &[u8], detached: Option<&[u8]>) -> Result<FlatFile> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.nrrd");
    std::fs::write(&path, [header.as_bytes(), data].concat()).unwrap();
    if let Some(bytes) = detached {
        std::fs::write(dir.path().join("a.raw"), bytes).unwrap();
    }
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

const PLAIN: &str = "NRRD0004\n# made by hand\ntype: uchar\ndimension: 3\nsizes: 4 3 2\nencoding: raw\n";

#[test]
fn axes_are_reversed() {
    let data: Vec<u8> = (0..24).collect();
    let file = open_text(
        &format!("{PLAIN}spacings: 1 2 nan\nunits: \"mm\" \"mm\" \"mm\"\nkey:=a value\n\n"),
        &data,
        None,
    )
    .unwrap();
    let dataset = file.dataset();
    let info = &dataset.arrays[0];
    assert_eq!(info.shape(), [2, 3, 4]);
    assert_eq!(info.axes.iter().map(|a| a.kind).collect::<Vec<_>>(), [AxisKind::Z, AxisKind::Y, AxisKind::X]);
    assert_eq!(info.levels[0].world_from_voxel, Affine::from_spacing([1.0, 2.0, 1.0], [0.0; 3]));
    assert_eq!((info.world_units.as_str(), info.axes[1].units.as_str()), ("mm", "mm"));
    assert_eq!(info.attributes["key"], Attribute::Text("a value".into()));
    assert_eq!(read(&file, "1, ::2, 3"), [15, 23]);
    assert_eq!(file.access(0), Access::Flat);
}

#[test]
fn lps_becomes_ras() {
    let header = format!(
        "{PLAIN}space: left-posterior-superior\nspace directions: (0,2,0) (3, 0,0) (0,0,4)\nspace origin: (10,20,30)\nspace units: \"mm\" \"mm\" \"mm\"\n\n"
    );
    let file = open_text(&header, &[0; 24], None).unwrap();
    let map = file.dataset().arrays[0].levels[0].world_from_voxel;
    assert_eq!(map.0, [[0.0, -3.0, 0.0, -10.0], [-2.0, 0.0, 0.0, -20.0], [0.0, 0.0, 4.0, 30.0]]);
    assert_eq!(file.dataset().arrays[0].world_units, "mm");
}

#[test]
fn vectors_have_a_channel_axis() {
    let header = "NRRD0005\ntype: float\ndimension: 4\nsizes: 3 2 2 2\nkinds: vector domain domain domain\nendian: big\nencoding: raw\nspace directions: none (1,0,0) (0,1,0) (0,0,1)\n\n";
    let file = open_text(header, &[0; 96], None).unwrap();
    let dataset = file.dataset();
    let kinds: Vec<AxisKind> = dataset.arrays[0].axes.iter().map(|a| a.kind).collect();
    assert_eq!(kinds, [AxisKind::Z, AxisKind::Y, AxisKind::X, AxisKind::Channel]);
    assert_eq!(dataset.arrays[0].dtype.to_string(), ">f4");
}

#[test]
fn data_may_lie_apart_packed_and_behind_other_bytes() {
    let data: Vec<u8> = (0..24).collect();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, &[&[9, 9][..], &data].concat()).unwrap();
    let gzip = PLAIN.replace("raw", "gzip") + "byte skip: 2\ndata file: a.raw\n";
    let cases = [
        (format!("{PLAIN}data file: ./a.raw\nbyte skip: 3\n"), [&[1, 2, 3][..], &data].concat()),
        (format!("{PLAIN}datafile: a.raw\nline skip: 2\n"), [&b"one\ntwo\n"[..], &data].concat()),
        (format!("{PLAIN}data file: a.raw\nbyte skip: -1\n"), [&[7; 50][..], &data].concat()),
        (gzip, packed.finish().unwrap()),
    ];
    for (header, bytes) in cases {
        let file = open_text(&header, b"", Some(&bytes)).unwrap();
        assert_eq!(read(&file, ""), data, "{header}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let cases = [
        (PLAIN.replace("sizes: 4 3 2", "sizes: 4 3"), ErrorKind::Corrupt, "as many sizes as dimensions"),
        (PLAIN.replace("4 3 2", "4 3 99"), ErrorKind::Corrupt, "cut short"),
        (PLAIN.replace("uchar", "block"), ErrorKind::Unsupported, "a type of numbers"),
        (PLAIN.replace("uchar", "short"), ErrorKind::Corrupt, "endian"),
        (PLAIN.replace("raw", "bzip2"), ErrorKind::Unsupported, "raw or gzip"),
        (PLAIN.replace("raw", "hex"), ErrorKind::Unsupported, "raw or gzip"),
        (format!("{PLAIN}data file: LIST\n"), ErrorKind::Unsupported, "one data file"),
        (format!("{PLAIN}data file: I.%03d 1 9 1\n"), ErrorKind::Unsupported, "one data file"),
        (format!("{PLAIN}data file: ../a.raw\n"), ErrorKind::Denied, "same directory"),
        (format!("{PLAIN}kinds: space\n"), ErrorKind::Corrupt, "3 entries"),
        (format!("{PLAIN}space directions: (1,0) (0,nan) none\n"), ErrorKind::Corrupt, "a vector"),
        (format!("{PLAIN}rubbish\n"), ErrorKind::Corrupt, "field: value"),
        (PLAIN.replace("4 3 2", "4294967296 4294967296 9"), ErrorKind::Corrupt, "2^63"),
    ];
    for (header, kind, words) in cases {
        let Err(error) = open_text(&format!("{header}\n"), &[0; 24], None) else {
            panic!("opened: {header}")
        };
        assert_eq!(error.kind(), kind, "{header}: {error}");
        assert!(error.to_string().contains(words), "{header}: {error}");
    }
}

proptest! {
    #[test]
    fn mutated_headers_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut text = format!(
            "{PLAIN}spacings: 1 2 3\nspace: LPS\nspace directions: (1,0,0) (0,1,0) (0,0,1)\nspace origin: (1,2,3)\nkinds: domain domain domain\nunits: \"a\" \"b\\\"\" \"c\"\nbyte skip: 1\n\n"
        ).into_bytes();
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        text.truncate(cut.index(text.len() * 4).min(text.len()));
        if let Ok(header) = Header::parse(&text) {
            prop_assert!(header.axes.len() == header.sizes.len());
        }
    }
}
