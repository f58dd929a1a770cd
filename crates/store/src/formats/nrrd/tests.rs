//! NRRD headers: attached and detached, orientations, encodings, broken ones.

use array::{Affine, AxisKind, ErrorKind, Selection, Target};
use proptest::prelude::*;

use super::*;
use crate::{Access, CancelFlag, Format};

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
    file.read(0, 0, &selection, region, &CancelFlag::default()).unwrap();
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
        (PLAIN.replace("uchar", "blob"), ErrorKind::Unsupported, "a type of numbers"),
        (PLAIN.replace("NRRD0004", "NRRD0006"), ErrorKind::Unsupported, "version 1 to 5"),
        (PLAIN.replace("uchar", "short"), ErrorKind::Corrupt, "endian"),
        (PLAIN.replace("raw", "rot13"), ErrorKind::Unsupported, "raw, gzip, bzip2, ascii or hex"),
        (format!("{PLAIN}data file: LIST\n"), ErrorKind::Corrupt, "as many data files"),
        (format!("{PLAIN}data file: LIST 9\na\nb\n"), ErrorKind::Corrupt, "as many data files"),
        (format!("{PLAIN}data file: LIST\n../a\n/b\n"), ErrorKind::Denied, "same directory"),
        (format!("{PLAIN}data file: I.%03d 1 9 1\n"), ErrorKind::Corrupt, "as many data files"),
        (format!("{PLAIN}data file: I.%s 1 2 1\n"), ErrorKind::Corrupt, "one conversion"),
        (format!("{PLAIN}data file: I.%d 1 2 0\n"), ErrorKind::Corrupt, "lead from the first"),
        (format!("{PLAIN}data file: I.%d 1 2 -1\n"), ErrorKind::Corrupt, "lead from the first"),
        (format!("{PLAIN}data file: I.%d 1 99999999999 1\n"), ErrorKind::Corrupt, "at most 65536"),
        (
            format!("{PLAIN}data file: I.%d 0 -9223372036854775808 -1\n"),
            ErrorKind::Corrupt,
            "lead from the first",
        ),
        // So long a header and 24 bytes hold 100 bytes, but not of data.
        (PLAIN.replace("4 3 2", "4 5 5") + "byte skip: -1\n", ErrorKind::Corrupt, "cut short"),
        (PLAIN.replace("raw", "bzip2").replace("4 3 2", "65536 65536 2"), ErrorKind::TooLarge, "as a whole"),
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

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut packer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    std::io::Write::write_all(&mut packer, bytes).unwrap();
    packer.finish().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packer, bytes).unwrap();
    packer.finish().unwrap()
}

#[test]
fn every_encoding_gives_the_same() {
    let data: Vec<u8> = (0..24).collect();
    let ascii = "0 1,2\t3\n".to_owned() + &(4..24).map(|i| format!("{i}\r\n")).collect::<String>();
    let hex: String = data.iter().map(|byte| format!("{byte:02X}\n")).collect();
    for (encoding, bytes) in [
        ("bzip2", bzip2(&data)),
        ("bz2", [bzip2(&data[..7]), bzip2(&data[7..])].concat()),
        ("gz", gzip(&data)),
        ("ascii", ascii.clone().into_bytes()),
        ("txt", ascii.clone().into_bytes()),
        ("HEX", hex.clone().into_bytes()),
    ] {
        let header = PLAIN.replace("raw", encoding);
        for (fields, before) in [("", ""), ("line skip: 2\n", "a\nb\n")] {
            let file = open_text(&format!("{header}{fields}\n{before}"), &bytes, None).unwrap();
            assert_eq!(read(&file, ""), data, "{encoding} {fields}");
            assert_eq!(read(&file, "1, ::2, 3"), [15, 23], "{encoding} {fields}");
        }
    }
    // Bytes are skipped in text, but within what is unpacked.
    for (encoding, bytes) in [
        ("bzip2", bzip2(&[&[9, 9], &data[..]].concat())),
        ("gzip", gzip(&[&[9, 9], &data[..]].concat())),
        ("ascii", format!("7 {ascii}").into_bytes()),
        ("hex", format!("zz{hex}").into_bytes()),
    ] {
        let header = PLAIN.replace("raw", encoding);
        let file = open_text(&format!("{header}byteskip: 2\n\n"), &bytes, None).unwrap();
        assert_eq!(read(&file, ""), data, "{encoding}");
    }
    for (encoding, bytes) in
        [("bzip2", bzip2(&[&[9; 99], &data[..]].concat())), ("gzip", gzip(&[&[9; 99], &data[..]].concat()))]
    {
        let header = PLAIN.replace("raw", encoding);
        let file = open_text(&format!("{header}byte skip: -1\n\n"), &bytes, None).unwrap();
        assert_eq!(read(&file, ""), data, "{encoding}");
        // The end of a stream that is cut short is not the end of the data.
        let cut = &bytes[..bytes.len() - 4];
        let file = open_text(&format!("{header}byte skip: -1\n\n"), cut, None).unwrap();
        let (target, region) = Target::new(&[2, 3, 4], 1).unwrap();
        let error = file.read(0, 0, &Selection::all(&[2, 3, 4]), region, &CancelFlag::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{encoding}: {error}");
        drop(target);
    }
}

#[test]
fn text_has_numbers_of_every_type() {
    let header = |kind: &str| PLAIN.replace("uchar", kind).replace("4 3 2", "2 2 1").replace("raw", "ascii");
    for (kind, text, expected) in [
        (
            "short",
            "-1 32767 1e2 3.0",
            [-1i16, 32767, 100, 3].iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<u8>>(),
        ),
        (
            "float",
            "nan inf 1.5 -2",
            [f32::NAN, f32::INFINITY, 1.5, -2.0].iter().flat_map(|v| v.to_ne_bytes()).collect(),
        ),
        (
            "unsigned long long",
            "18446744073709551615 0 1 9007199254740993",
            [u64::MAX, 0, 1, 9_007_199_254_740_993].iter().flat_map(|v| v.to_ne_bytes()).collect(),
        ),
    ] {
        let file = open_text(&format!("{}\n", header(kind)), text.as_bytes(), None).unwrap();
        assert_eq!(read(&file, ""), expected, "{kind}");
    }
    for (kind, text, words) in [
        ("uchar", "1 2 3", "expected 4 numbers, found 3"),
        ("uchar", "1 2 3 256", "`256`"),
        ("uchar", "1 2 3 4.5", "`4.5`"),
        ("float", "1 2 3 x", "`x`"),
    ] {
        let file = open_text(&format!("{}\n", header(kind)), text.as_bytes(), None).unwrap();
        let info = &file.dataset().arrays[0];
        let (_target, region) = Target::new(info.shape(), info.dtype.size_bytes()).unwrap();
        let all = Selection::all(info.shape());
        let error = file.read(0, 0, &all, region, &CancelFlag::default()).unwrap_err();
        assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains(words), "{error}");
    }
}

#[test]
fn data_may_lie_in_several_files() {
    let data: Vec<u8> = (0..24).collect();
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
    for (number, part) in data.chunks(12).enumerate() {
        write(&format!("s{number:02}.raw"), part);
        write(&format!("s{number}.gz"), &[b"a line\n", &gzip(part)[..]].concat());
    }
    data.chunks(4).enumerate().for_each(|(number, row)| write(&format!("row{}.raw", 10 - number), row));
    for (fields, name) in [
        ("data file: LIST\ns00.raw\ns01.raw\n", "raw"),
        ("data file: LIST 2\ns00.raw\r\ns01.raw", "raw"),
        ("data file: LIST 3\ns00.raw\ns01.raw\n", "raw"),
        ("data file: s%02d.raw 0 1 1\n\n", "raw"),
        ("datafile: ./s%d.gz 0 1 1 2\nline skip: 1\n", "gzip"),
        ("data file: row%d.raw 10 5 -1 1\n", "raw"),
    ] {
        write("a.nhdr", format!("{}{fields}", PLAIN.replace("raw", name)).as_bytes());
        let file =
            open(FileBytes::open(&dir.path().join("a.nhdr")).unwrap(), &OpenOptions::default()).unwrap();
        assert_eq!(read(&file, ""), data, "{fields}");
        assert_eq!(read(&file, "1, ::2, 3"), [15, 23], "{fields}");
    }
    // A file that is another one now is no part of it any more.
    let file = open(FileBytes::open(&dir.path().join("a.nhdr")).unwrap(), &OpenOptions::default()).unwrap();
    write("row9.raw", b"changed");
    let (_target, region) = Target::new(&[2, 3, 4], 1).unwrap();
    let error = file.read(0, 0, &Selection::all(&[2, 3, 4]), region, &CancelFlag::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stale);
    // One that is too short is noticed at once.
    let error = open(FileBytes::open(&dir.path().join("a.nhdr")).unwrap(), &OpenOptions::default()).map(drop);
    assert!(error.is_ok(), "longer files are as good as longer data");
    write("row9.raw", b"ab");
    let error = open(FileBytes::open(&dir.path().join("a.nhdr")).unwrap(), &OpenOptions::default())
        .map(drop)
        .unwrap_err();
    assert!(error.to_string().contains("cut short"), "{error}");
}

/// The map of a header with these fields, and the kinds of its axes, slowest first.
fn placed(sizes: &str, fields: &str) -> (Affine, Vec<AxisKind>, Vec<String>) {
    let count = sizes.split_whitespace().count();
    let elements: usize = sizes.split_whitespace().map(|n| n.parse::<usize>().unwrap()).product();
    let header =
        format!("NRRD0005\ntype: uchar\ndimension: {count}\nsizes: {sizes}\nencoding: raw\n{fields}\n\n");
    let dataset = open_text(&header, &vec![0; elements], None).unwrap().dataset();
    let info = &dataset.arrays[0];
    (info.levels[0].world_from_voxel, info.axes.iter().map(|a| a.kind).collect(), info.notes.clone())
}

#[test]
fn spaces_of_more_than_three_axes_and_axes_outside_them() {
    use AxisKind::{Channel, Other, Time, X, Y, Z};
    let expected = Affine([[-2.0, 0.0, 0.0, -1.0], [0.0, -3.0, 0.0, -2.0], [0.0, 0.0, 4.0, 3.0]]);
    let origin = "space origin: (1,2,3,10)";
    let fields = format!(
        "space: left-posterior-superior-time\nspace directions: (2,0,0,0) (0,3,0,0) (0,0,4,0) (0,0,0,2.5)\n{origin}"
    );
    assert_eq!(placed("2 3 4 5", &fields), (expected, vec![Time, Z, Y, X], vec![]));
    let fields = "space dimension: 4\nspace directions: (-2,0,0,0) (0,-3,0,0) (0,0,4,0) (0,0,0,2.5)\nspace origin: (-1,-2,3,0)".to_owned();
    assert_eq!(placed("2 3 4 5", &fields), (expected, vec![Other, Z, Y, X], vec![]));
    for (sizes, directions, kinds, expected_kinds) in [
        (
            "5 2 3 4",
            "(nan,nan,nan) (2,0,0) (0,3,0) (0,0,4)",
            "???  domain domain domain",
            vec![Z, Y, X, Other],
        ),
        ("5 2 3 4", "none (2,0,0) (0,3,0) (0,0,4)", "domain domain domain domain", vec![Z, Y, X, Other]),
        ("2 5 3 4", "(2,0,0) none (0,3,0) (0,0,4)", "space list space space", vec![Z, Y, Channel, X]),
        ("2 3 4 5", "(2,0,0) (0,3,0) (0,0,4) (NaN, NaN, NaN)", "space space space time", vec![Time, Z, Y, X]),
    ] {
        let fields =
            format!("space: LPS\nspace directions: {directions}\nkinds: {kinds}\nspace origin: (1,2,3)");
        assert_eq!(placed(sizes, &fields), (expected, expected_kinds, vec![]), "{directions}");
    }
}

#[test]
fn spaces_are_turned_to_ras_where_that_is_defined() {
    for (space, signs) in [
        ("right-anterior-superior", [1.0, 1.0]),
        ("RAS", [1.0, 1.0]),
        ("left-anterior-superior", [-1.0, 1.0]),
        ("las", [-1.0, 1.0]),
        ("Left-Posterior-Superior", [-1.0, -1.0]),
        ("scanner-xyz", [1.0, 1.0]),
        ("3D-left-handed", [1.0, 1.0]),
    ] {
        let fields =
            format!("space: {space}\nspace directions: (1,0,0) (0,1,0) (0,0,1)\nspace origin: (1,1,1)");
        let map = placed("2 3 4", &fields).0.0;
        assert_eq!([map[0][0], map[1][1], map[2][2]], [signs[0], signs[1], 1.0], "{space}");
        assert_eq!([map[0][3], map[1][3], map[2][3]], [signs[0], signs[1], 1.0], "{space}");
    }
}

#[test]
fn ends_of_axes_say_steps_and_origins() {
    for (fields, spacing, origin) in [
        (
            "axis mins: 0 10 20\naxis maxs: 1 12 26\ncenters: node node node",
            [1.0, 1.0, 2.0],
            [0.0, 10.0, 20.0],
        ),
        (
            "axismins: 0 10 20\naxismaxs: 1 13 28\ncenterings: cell cell cell",
            [0.5, 1.0, 2.0],
            [0.25, 10.5, 21.0],
        ),
        ("axis mins: 0 10 20\naxis maxs: 1 13 28", [0.5, 1.0, 2.0], [0.25, 10.5, 21.0]),
        ("axis mins: 0 10 20\nspacings: 1 2 3", [1.0, 2.0, 3.0], [0.0, 10.0, 20.0]),
        (
            "axis mins: 0 nan 20\naxis maxs: 1 NaN 20\ncenters: node ??? cell",
            [1.0, 1.0, 1.0],
            [0.0, 0.0, 20.5],
        ),
        ("spacings: 2 2000 3\nunits: \"mm\" \"um\" \"s\"", [2.0; 3], [0.0; 3]),
    ] {
        let (map, _, notes) = placed("2 3 4", fields);
        assert_eq!(
            (map, notes.len()),
            (Affine::from_spacing(spacing, origin), usize::from(fields.contains("\"s\""))),
            "{fields}"
        );
    }
}

#[test]
fn axes_of_space_in_other_units_are_not_on_one_scale() {
    let space = |directions: &str| {
        placed(
            "2 3 4",
            &format!(
                "space dimension: 3\nspace directions: {directions}\nspace units: \"mm\" \"um\" \"m/s\"\nspace origin: (1,1,1)"
            ),
        )
    };
    let (map, _, notes) = space("(2,0,0) (0,8000,0) (0,0,-300)");
    assert_eq!(map, Affine([[2.0, 0.0, 0.0, 1.0], [0.0, 8.0, 0.0, 0.001], [0.0, 0.0, -4.0, 0.0]]));
    assert!(notes[0].contains("m/s"), "{notes:?}");
    let (map, _, notes) = space("(2,0,1) (0,8,0) (1,0,-3)");
    assert_eq!((map, notes.len()), (Affine::IDENTITY, 1));
}

#[test]
fn blocks_are_left_out_and_windows_line_ends_taken() {
    let blocks = open_text(&format!("{}block size: 4\n\n", PLAIN.replace("uchar", "block")), &[0; 96], None)
        .unwrap()
        .dataset();
    assert!(blocks.arrays.is_empty() && blocks.left_out[0].what.contains("`block`"));
    let data: Vec<u8> = (0..24).collect();
    let header = format!("{PLAIN}endian: LITTLE\nkey:=value\n\n").replace('\n', "\r\n");
    let file = open_text(&header, &data, None).unwrap();
    assert_eq!(
        (read(&file, ""), &file.dataset().arrays[0].attributes["key"]),
        (data, &Attribute::Text("value".into()))
    );
}

#[test]
fn colors_and_complex_pairs_say_what_they_are() {
    for (size, kind, names) in [(3, "RGB-color", "red"), (4, "RGBA-color", "red"), (2, "complex", "real")] {
        let header = format!(
            "NRRD0005\ntype: uchar\ndimension: 3\nsizes: {size} 2 2\nkinds: {kind} domain domain\nencoding: raw\n\n"
        );
        let dataset = open_text(&header, &[0; 16], None).unwrap().dataset();
        let info = &dataset.arrays[0];
        assert_eq!(info.axes[2].kind, AxisKind::Channel);
        let Attribute::Texts(found) = &info.attributes["channels"] else { panic!("no names") };
        assert_eq!((found.len(), found[0].as_str()), (size, names));
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
        if let Ok(header) = NrrdHeader::parse(&text) {
            prop_assert!(header.axes.len() == header.sizes.len());
        }
    }
}
