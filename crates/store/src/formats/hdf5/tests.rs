//! HDF5 and NetCDF-4 files written here and read back: layouts, filters, names, and broken ones.

use std::path::{Path, PathBuf};

use array::{AxisRange, Meaning, Target};
use hdf5_metno as h5;
use hdf5_metno::plist::file_access::LibraryVersion;
use ndarray::Array3;

use super::*;
use crate::{ByteStore, Scratch};

/// Deterministic numbers for selections and mutations.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below.max(1)
    }

    fn selection(&mut self, shape: &[u64]) -> Selection {
        let range = |n: u64, dice: &mut Self| {
            let (start, step) = (dice.roll(n), 1 + dice.roll(4));
            AxisRange { start, count: dice.roll((n - start).div_ceil(step) + 1), step }
        };
        Selection::new(shape.iter().map(|&n| range(n, self))).unwrap()
    }
}

fn place(name: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    (dir, path)
}

fn open_path(path: &Path) -> Result<Hdf5> {
    open(FileBytes::open(path)?, &OpenOptions::default())
}

fn open_within(path: &Path, scratch: &Scratch) -> Hdf5 {
    let options = OpenOptions { scratch: scratch.clone(), ..OpenOptions::default() };
    open(FileBytes::open(path).unwrap(), &options).unwrap()
}

fn read(file: &Hdf5, name: &str, selection: &Selection) -> Result<Vec<u8>> {
    let (number, info) = file.dataset.find(name)?;
    let (target, region) = Target::new(&selection.shape(), info.dtype.size_bytes())?;
    file.read(number, 0, selection, region, &CancelFlag::default())?;
    target.into_vec()
}

/// Returns the expected bytes of a selection of C-order elements.
fn naive(data: &[u8], item: usize, shape: &[u64], selection: &Selection) -> Vec<u8> {
    let mut offsets = vec![0u64];
    for (range, &n) in selection.ranges().iter().zip(shape) {
        offsets =
            offsets.iter().flat_map(|&o| (0..range.count).map(move |i| o * n + range.index(i))).collect();
    }
    let element = |&o: &u64| {
        let start = usize::try_from(o).unwrap() * item;
        data[start..start + item].to_vec()
    };
    offsets.iter().flat_map(element).collect()
}

/// Reads whole and by random selections; compares with `expected`, the stored bytes of all elements.
fn check(file: &Hdf5, name: &str, expected: &[u8]) {
    let (_, info) = file.dataset.find(name).unwrap();
    let (shape, item) = (info.shape().to_vec(), info.dtype.size_bytes());
    assert_eq!(read(file, name, &Selection::all(&shape)).unwrap(), expected, "{name}");
    let mut dice = Dice(7);
    for _ in 0..50 {
        let selection = dice.selection(&shape);
        let found = read(file, name, &selection).unwrap();
        assert_eq!(found, naive(expected, item, &shape, &selection), "{name} [{selection}]");
    }
}

const SHAPE: [usize; 3] = [13, 21, 34];

fn numbers() -> Array3<i32> {
    Array3::from_shape_fn(SHAPE, |(z, y, x)| i32::try_from(z * 10_000 + y * 100 + x).unwrap() - 60_000)
}

fn little(data: &Array3<i32>) -> Vec<u8> {
    data.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn every_layout_and_filter_reads_the_same() {
    let (_dir, path) = place("layouts.h5");
    let data = numbers();
    let file = h5::File::create(&path).unwrap();
    let new = || file.new_dataset_builder().with_data(&data);
    new().create("contiguous").unwrap();
    new().chunk((4, 8, 10)).create("chunked").unwrap();
    new().chunk((4, 8, 10)).deflate(6).create("deflate").unwrap();
    new().chunk((4, 8, 10)).shuffle().deflate(1).create("shuffle").unwrap();
    new().chunk((5, 21, 34)).shuffle().deflate(9).fletcher32().create("group/deep/fletcher").unwrap();
    new().chunk((4, 8, 10)).fletcher32().deflate(3).create("checked first").unwrap();
    new().chunk((13, 21, 34)).deflate(3).create("one chunk").unwrap();
    new().chunk((4, 8, 10)).nbit().create("by library").unwrap();
    new()
        .chunk((4, 8, 10))
        .scale_offset(h5::filters::ScaleOffset::Integer(0))
        .create("scale offset")
        .unwrap();
    let partial = h5::dataset::ChunkOpts::DONT_FILTER_PARTIAL_CHUNKS;
    new().chunk((4, 8, 10)).chunk_opts(partial).deflate(3).create("partial unfiltered").unwrap();
    file.close().unwrap();
    let opened = open_path(&path).unwrap();
    assert_eq!(opened.dataset.format, "HDF5");
    assert_eq!(opened.dataset.left_out, []);
    assert_eq!(opened.dataset.arrays.len(), 10);
    for array in &opened.dataset.arrays {
        assert_eq!(array.dtype.to_string(), "<i4");
        check(&opened, &array.name, &little(&data));
    }
}

#[test]
fn a_user_block_moves_everything() {
    let (_dir, path) = place("user.h5");
    let data = numbers();
    let file = h5::FileBuilder::new().with_fcpl(|p| p.userblock(1024)).create(&path).unwrap();
    file.new_dataset_builder().with_data(&data).create("flat").unwrap();
    file.new_dataset_builder().with_data(&data).chunk((4, 8, 10)).deflate(2).create("chunked").unwrap();
    file.close().unwrap();
    let opened = open_path(&path).unwrap();
    check(&opened, "flat", &little(&data));
    check(&opened, "chunked", &little(&data));
}

#[test]
fn what_was_never_written_is_the_fill_value() {
    let (_dir, path) = place("fill.h5");
    let file = h5::File::create(&path).unwrap();
    let shape = (10, 10);
    let chunked = file
        .new_dataset::<f32>()
        .chunk((4, 4))
        .deflate(1)
        .fill_value(2.5f32)
        .shape(shape)
        .create("some")
        .unwrap();
    chunked.write_slice(&ndarray::arr2(&[[1f32, 2.0], [3.0, 4.0]]), (4..6, 4..6)).unwrap();
    file.new_dataset::<u8>().fill_value(7u8).shape(shape).create("none").unwrap();
    file.new_dataset::<u16>().shape(shape).chunk((3, 3)).create("no fill").unwrap();
    drop(chunked);
    file.close().unwrap();
    let opened = open_path(&path).unwrap();
    let mut some = vec![2.5f32; 100];
    (some[44], some[45], some[54], some[55]) = (1.0, 2.0, 3.0, 4.0);
    check(&opened, "some", &some.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>());
    check(&opened, "none", &[7; 100]);
    check(&opened, "no fill", &[0; 200]);
}

#[test]
fn what_was_never_written_behind_a_user_block_is_the_fill_value() {
    let (_dir, path) = place("unwritten.h5");
    let file = h5::FileBuilder::new().with_fcpl(|p| p.userblock(1024)).create(&path).unwrap();
    file.new_dataset::<i32>().fill_value(7i32).shape(50).create("flat").unwrap();
    file.new_dataset::<i32>().fill_value(8i32).chunk(8).shape(50).create("chunked").unwrap();
    file.close().unwrap();
    let opened = open_path(&path).unwrap();
    check(&opened, "flat", &7i32.to_le_bytes().repeat(50));
    check(&opened, "chunked", &8i32.to_le_bytes().repeat(50));
}

/// Longest text that HDF5 can describe, bytes.
const LONG_TEXT: usize = (1 << 31) - 1;

#[test]
fn what_is_too_large_is_left_out_by_itself() {
    let (_dir, path) = place("large.h5");
    let file = h5::File::create(&path).unwrap();
    file.new_dataset::<f64>().chunk((1, 1024)).shape((1 << 31, 1 << 30)).create("endless").unwrap();
    file.new_dataset::<u8>().chunk(1 << 31).deflate(1).shape(1usize << 31).create("packed").unwrap();
    file.new_dataset::<u8>().chunk(1 << 31).shape(1usize << 31).create("plain").unwrap();
    file.new_dataset::<h5::types::FixedAscii<LONG_TEXT>>().shape(1).create("long text").unwrap();
    file.new_dataset_builder().with_data(&[3i64, -4]).create("small").unwrap();
    file.close().unwrap();
    let opened = open_path(&path).unwrap();
    let why = |name: &str| &opened.dataset.left_out.iter().find(|l| l.name == name).unwrap().what;
    assert!(why("endless").contains("2^63 bytes"), "{}", why("endless"));
    assert!(why("packed").contains("chunks of [2147483648]"), "{}", why("packed"));
    check(&opened, "small", &[3i64.to_le_bytes(), (-4i64).to_le_bytes()].concat());
    let few = Selection::parse("2147483640:", &[1 << 31]).unwrap();
    assert_eq!(read(&opened, "plain", &few).unwrap(), [0; 8], "plain chunks may be of any size");
    let end = Selection::parse("0, 2147483640:", &[1, LONG_TEXT as u64]).unwrap();
    assert_eq!(read(&opened, "long text", &end).unwrap(), [0; 7], "a long text takes no memory");
}

/// One axis that is not the first may grow: an extensible array, in the latest format.
#[test]
fn chunks_lie_where_the_library_finds_them_whichever_axis_grows() {
    let (_dir, path) = place("grows.h5");
    let mut options = h5::File::with_options();
    options.with_fapl(|access| access.libver_latest());
    let file = options.create(&path).unwrap();
    let data = Array3::from_shape_fn([5, 7, 4], |(a, b, c)| i32::try_from(a * 100 + b * 10 + c).unwrap());
    let shapes: [[h5::Extent; 3]; 4] = [
        [h5::Extent::resizable(5), h5::Extent::fixed(7), h5::Extent::fixed(4)],
        [h5::Extent::fixed(5), h5::Extent::resizable(7), h5::Extent::new(4, Some(9))],
        [h5::Extent::new(5, Some(8)), h5::Extent::fixed(7), h5::Extent::resizable(4)],
        [h5::Extent::resizable(5), h5::Extent::resizable(7), h5::Extent::fixed(4)],
    ];
    for (number, shape) in shapes.into_iter().enumerate() {
        for packed in [false, true] {
            let builder = file.new_dataset::<i32>().chunk((2, 3, 2));
            let builder = if packed { builder.deflate(1) } else { builder };
            let name = format!("{number}{packed}");
            builder.shape(shape.to_vec()).create(name.as_str()).unwrap().write(&data).unwrap();
        }
    }
    file.close().unwrap();
    let opened = open_path(&path).unwrap();
    assert_eq!(opened.arrays.len(), 8);
    for (stored, info) in opened.arrays.iter().zip(&opened.dataset.arrays) {
        check(&opened, &info.name, &data.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>());
        let object = || opened.files.object(stored.id).unwrap();
        let chunk = [2, 3, 2];
        let places =
            chunk_index::ChunkIndex::find(object(), &stored.shape, &chunk, &CancelFlag::default()).unwrap();
        assert!(places.is_listed(), "{}", info.name);
        for position in (0..3 * 3 * 2).map(|n| [n / 6, n / 2 % 3, n % 2]) {
            let found = object().chunk_place(&position, &chunk).unwrap();
            assert!(found.is_some() && places.get(&position).unwrap() == found, "{} {position:?}", info.name);
        }
    }
}

#[test]
fn default_fill_values_are_missing_only_where_netcdf_filled() {
    use array::Scalar::{Signed, Unsigned};
    let class = h5::types::FixedAscii::<16>::from_ascii("DIMENSION_SCALE").unwrap();
    // As netCDF4-python masks them, but for the wider types of other programs.
    let (byte, short) = (Unsigned(255), Signed(-32_767));
    for (is_netcdf, expected) in [(false, [None, None, None]), (true, [None, Some(byte), Some(short)])] {
        let (_dir, path) = place("filled.h5");
        let file = h5::File::create(&path).unwrap();
        if is_netcdf {
            file.new_attr::<i32>().create("_nc3_strict").unwrap().write_scalar(&1i32).unwrap();
        }
        let bytes = [0u8, 255];
        let made = [
            file.new_dataset_builder().with_data(&bytes).create("mask").unwrap(),
            file.new_dataset_builder().fill_value(7u8).with_data(&bytes).create("filled").unwrap(),
            file.new_dataset_builder().with_data(&[0i16, -32_767]).create("short").unwrap(),
        ];
        for scale in &made {
            let attribute = scale.new_attr::<h5::types::FixedAscii<16>>().create("CLASS").unwrap();
            attribute.write_scalar(&class).unwrap();
        }
        file.new_dataset_builder().with_data(&Array3::<u8>::zeros((4, 5, 3))).create("rgb").unwrap();
        drop(made);
        file.close().unwrap();
        let opened = open_path(&path).unwrap();
        assert_eq!(opened.dataset.format, if is_netcdf { "NetCDF-4" } else { "HDF5" });
        for (name, expected) in ["mask", "filled", "short"].into_iter().zip(expected) {
            let info = opened.dataset.find(name).unwrap().1;
            assert_eq!((info.decoding.unset.first(), &*info.axes[0].name), (expected.as_ref(), name));
        }
        let is_image = opened.dataset.find("rgb").unwrap().1.axes[2].kind == array::AxisKind::Channel;
        assert_eq!(is_image, !is_netcdf);
    }
}

#[test]
fn coordinates_of_several_axes_are_not_taken_for_one_another() {
    let (_dir, path) = place("coordinates.nc");
    let file = h5::File::create(&path).unwrap();
    for (name, first) in [("x", 0.0), ("y", 1e6)] {
        // The second chunk reaches beyond the array, and is worth keeping.
        let values: Vec<f64> = (0..5000).map(|n| first + f64::from(n * n)).collect();
        let scale =
            file.new_dataset_builder().with_data(&values).chunk(4500).deflate(1).create(name).unwrap();
        let class = h5::types::FixedAscii::<16>::from_ascii("DIMENSION_SCALE").unwrap();
        scale.new_attr::<h5::types::FixedAscii<16>>().create("CLASS").unwrap().write_scalar(&class).unwrap();
    }
    file.close().unwrap();
    let opened = open_path(&path).unwrap();
    for (name, first) in [("x", 0.0), ("y", 1e6)] {
        let (_, info) = opened.dataset.find(name).unwrap();
        assert_eq!(info.axes[0].coordinates.at(4600), first + 4600.0 * 4600.0, "{name}");
    }
}

#[test]
fn scalars_small_arrays_and_odd_variables() {
    let (_dir, path) = place("odd.h5");
    let file = h5::File::create(&path).unwrap();
    file.new_dataset::<f64>().create("scalar").unwrap().write_scalar(&1.5f64).unwrap();
    file.new_dataset_builder().with_data(&[true, false, true]).create("flags").unwrap();
    let name: h5::types::VarLenUnicode = "gr\u{fc}n".parse().unwrap();
    file.new_dataset::<h5::types::VarLenUnicode>().create("name").unwrap().write_scalar(&name).unwrap();
    let compact = h5::dataset::Layout::Compact;
    file.new_dataset_builder().with_data(&[3i64, -4]).layout(compact).create("compact").unwrap();
    file.new_dataset::<u8>().shape((0, 4)).create("nothing yet").unwrap();
    file.link_soft("/scalar", "alias").unwrap();
    file.link_external("/etc/passwd", "/", "outside").unwrap();
    let group = file.create_group("loop").unwrap();
    group.link_hard("/", "again").unwrap();
    drop(group);
    file.close().unwrap();
    let opened = open_path(&path).unwrap();
    assert_eq!(read(&opened, "scalar", &Selection::all(&[])).unwrap(), 1.5f64.to_le_bytes());
    check(&opened, "nothing yet", &[]);
    check(&opened, "flags", &[1, 0, 1]);
    assert_eq!(opened.dataset.find("flags").unwrap().1.dtype.to_string(), "|b1");
    check(&opened, "compact", &[3i64.to_le_bytes(), (-4i64).to_le_bytes()].concat());
    let left = |name: &str| opened.dataset.left_out.iter().find(|l| l.name == name).unwrap();
    check(&opened, "name", "gr\u{fc}n".as_bytes());
    assert_eq!(opened.dataset.find("name").unwrap().1.text_shape(), Some(&[][..]));
    assert_eq!(read(&opened, "alias", &Selection::all(&[])).unwrap(), 1.5f64.to_le_bytes());
    let why = &left("outside").what;
    assert!(why.ends_with("`/etc/passwd` lies outside of the exported folder"), "{why}");
}

#[test]
fn texts_are_rows_of_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("texts.h5");
    let file = h5::File::create(&path).unwrap();
    let texts: Vec<h5::types::VarLenUnicode> =
        ["one", "", "three"].iter().map(|text| text.parse().unwrap()).collect();
    file.new_dataset_builder().with_data(&texts).create("any").unwrap();
    let fixed = ["ab", "c"].map(|text| h5::types::FixedAscii::<4>::from_ascii(text).unwrap());
    file.new_dataset_builder().with_data(&fixed).chunk(1).shuffle().deflate(1).create("fixed").unwrap();
    file.new_dataset::<h5::types::VarLenUnicode>().shape(0).create("none").unwrap();
    file.close().unwrap();
    let opened = open_path(&path).unwrap();
    check(&opened, "any", b"one\0\0\0\0\0\0\0three");
    check(&opened, "fixed", b"ab\0\0c\0\0\0");
    check(&opened, "none", b"");
    let info = |name: &str| opened.dataset.find(name).unwrap().1;
    assert_eq!((info("any").meaning, info("any").shape()), (Meaning::Text, &[3, 5][..]));
    assert_eq!(
        (info("any").storage.text.as_deref(), info("fixed").storage.text.as_deref()),
        (None, Some("fixed"))
    );
    let part = Selection::parse("2, ::2", &[3, 5]).unwrap();
    assert_eq!(read(&opened, "any", &part).unwrap(), b"tre");
}

#[test]
fn characters_along_a_dimension_of_other_variables_are_texts_of_one_byte() {
    let (_dir, path) = place("characters.nc");
    let file = h5::File::create(&path).unwrap();
    let letter = |text: &str| h5::types::FixedAscii::<1>::from_ascii(text).unwrap();
    let class = h5::types::FixedAscii::<16>::from_ascii("DIMENSION_SCALE").unwrap();
    let x = file.new_dataset_builder().with_data(&["a", "b", "c"].map(letter)).create("x").unwrap();
    let length = file.new_dataset_builder().with_data(&[0f32; 2]).create("length").unwrap();
    for (scale, number) in [(&x, 0i32), (&length, 1)] {
        scale.new_attr::<h5::types::FixedAscii<16>>().create("CLASS").unwrap().write_scalar(&class).unwrap();
        scale.new_attr::<i32>().create("_Netcdf4Dimid").unwrap().write_scalar(&number).unwrap();
    }
    let bare: h5::types::VarLenUnicode =
        "This is a netCDF dimension but not a netCDF variable.".parse().unwrap();
    length.new_attr::<h5::types::VarLenUnicode>().create("NAME").unwrap().write_scalar(&bare).unwrap();
    let letters = ndarray::Array2::from_shape_fn((3, 2), |(row, _)| letter(["A", "B", "C"][row]));
    let name = file.new_dataset_builder().with_data(&letters).create("name").unwrap();
    let numbers = name.new_attr::<i32>().shape(2).create("_Netcdf4Coordinates").unwrap();
    numbers.write(&[0i32, 1]).unwrap();
    drop((x, length, name, numbers));
    file.close().unwrap();
    let opened = open_path(&path).unwrap();
    check(&opened, "x", b"abc");
    check(&opened, "name", b"AABBCC");
    for (name, shape, text) in [("x", [3, 1], "fixed"), ("name", [3, 2], "characters")] {
        let info = opened.dataset.find(name).unwrap().1;
        assert_eq!((info.shape(), info.storage.text.as_deref()), (&shape[..], Some(text)), "{name}");
    }
}

/// A file with something of everything, for damage.
fn sample(path: &Path) {
    let data = numbers();
    let file = h5::File::create(path).unwrap();
    file.new_dataset_builder().with_data(&data).create("flat").unwrap();
    let packed =
        file.new_dataset_builder().with_data(&data).chunk((4, 8, 10)).shuffle().deflate(3).fletcher32();
    let packed = packed.create("group/packed").unwrap();
    let text: h5::types::VarLenUnicode = "a text of some length".parse().unwrap();
    packed.new_attr::<h5::types::VarLenUnicode>().create("note").unwrap().write_scalar(&text).unwrap();
    drop(packed);
    file.close().unwrap();
}

/// Opens a damaged file and reads all of it; whatever comes of that, it must come.
fn survive(path: &Path) -> bool {
    let Ok(file) = open_path(path) else { return false };
    for array in &file.dataset.arrays {
        let small = array.size_bytes() < 1 << 24;
        // An error is an answer too.
        let read = small.then(|| read(&file, &array.name, &Selection::all(array.shape())));
        if let Some(Ok(bytes)) = read {
            assert_eq!(bytes.len() as u64, array.size_bytes());
        }
    }
    true
}

#[test]
fn damaged_files_give_errors_not_panics() {
    let (_dir, path) = place("damaged.h5");
    sample(&path);
    let whole = std::fs::read(&path).unwrap();
    let mut dice = Dice(11);
    let mut opened = 0;
    for round in 0..400 {
        let mut bytes = whole.clone();
        if round % 4 == 0 {
            bytes.truncate(usize::try_from(dice.roll(whole.len() as u64)).unwrap());
        }
        for _ in 0..dice.roll(12) {
            let at = usize::try_from(dice.roll(bytes.len() as u64)).unwrap();
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << dice.roll(8);
            }
        }
        std::fs::write(&path, bytes).unwrap();
        opened += u32::from(survive(&path));
    }
    assert!(opened > 20, "{opened} of 400 damaged files still opened");
}

#[test]
fn an_endless_heap_is_refused() {
    let (_dir, path) = place("heap.h5");
    sample(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    let heap = bytes.windows(4).position(|w| w == b"GCOL").unwrap();
    // The first object becomes a free one without size.
    bytes[heap + 16..heap + 32].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let file = open_path(&path).unwrap();
    let (_, info) = file.dataset.find("group/packed").unwrap();
    assert!(!info.attributes.contains_key("note"));
    check(&file, "group/packed", &little(&numbers()));
}

#[test]
fn a_header_that_claims_to_go_on_without_end_is_refused() {
    let (_dir, path) = place("endless.h5");
    let mut options = h5::File::with_options();
    options.with_fapl(|access| access.libver_bounds(LibraryVersion::Earliest, LibraryVersion::latest()));
    let file = options.create(&path).unwrap();
    let flat = file.new_dataset_builder().with_data(&numbers()).create("flat").unwrap();
    for name in (0..20).map(|n| format!("attribute {n}")) {
        flat.new_attr::<i32>().create(name.as_str()).unwrap().write_scalar(&1).unwrap();
    }
    drop(flat);
    file.close().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    // A message of kind 16 in an old header: where it goes on, and for how many bytes.
    let continues = [0x10, 0, 0x10, 0, 0, 0, 0, 0];
    let found: Vec<usize> = (0..bytes.len() - 24).filter(|&at| bytes[at..].starts_with(&continues)).collect();
    assert!(!found.is_empty(), "the file has a header in several parts");
    for at in found {
        for length in [u64::MAX, 1 << 40, 1 << 62] {
            let mut damaged = bytes.clone();
            damaged[at + 16..at + 24].copy_from_slice(&length.to_le_bytes());
            std::fs::write(&path, damaged).unwrap();
            survive(&path);
        }
    }
}

#[test]
fn a_file_cut_short_says_so() {
    let (_dir, path) = place("short.h5");
    sample(&path);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = open_path(&path).unwrap_err();
    assert!(error.to_string().contains("truncated file"), "{error}");
    std::fs::write(&path, b"no such format at all").unwrap();
    assert_eq!(open_path(&path).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn what_may_go_better_the_next_time_is_tried_again() {
    let (_dir, path) = place("touched.h5");
    sample(&path);
    let file = open_path(&path).unwrap();
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    let touch = |time| std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    touch(modified + std::time::Duration::from_secs(60));
    let whole = Selection::all(&SHAPE.map(|n| n as u64));
    for name in ["group/packed", "flat"] {
        let error = read(&file, name, &whole).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Stale, "{error}");
    }
    touch(modified);
    check(&file, "group/packed", &little(&numbers()));
    check(&file, "flat", &little(&numbers()));
}

#[test]
fn chunks_are_decoded_within_the_budget_or_refused() {
    const CHUNK_BYTES: u64 = 64 * 64 * 64 * 4;
    let (_dir, path) = place("chunks.h5");
    let data = Array3::from_shape_fn([64, 64, 256], |(z, y, x)| i32::try_from((z * y) ^ x).unwrap());
    let file = h5::File::create(&path).unwrap();
    for (name, shuffle) in [("packed", false), ("shuffled", true)] {
        let builder = file.new_dataset_builder().chunk([64, 64, 64]);
        let builder = if shuffle { builder.shuffle() } else { builder }.deflate(1);
        builder.with_data(&data).create(name).unwrap();
    }
    file.close().unwrap();
    let rows = Selection::parse("3, :, :", &[64, 64, 256]).unwrap();
    for name in ["packed", "shuffled"] {
        let scratch = Scratch::new(4 << 20);
        let file = open_within(&path, &scratch);
        for _ in 0..3 {
            assert_eq!(read(&file, name, &rows).unwrap().len(), 64 * 256 * 4);
        }
        let peak = scratch.peak_decoding_bytes();
        assert!((2 * CHUNK_BYTES..=scratch.decoding_bytes()).contains(&peak), "{peak} bytes for `{name}`");

        let scratch = Scratch::new(CHUNK_BYTES);
        let error = read(&open_within(&path, &scratch), name, &rows).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        let text = error.to_string();
        for part in [CHUNK_BYTES, scratch.decoding_bytes()].map(|n| n.to_string()) {
            assert!(text.contains(&part) && text.contains("`--memory`"), "{text}");
        }
        assert_eq!(scratch.peak_decoding_bytes(), 0, "nothing is taken for it");
    }
}

#[test]
fn chunks_that_others_can_undo_are_given_as_they_rest() {
    let (_dir, path) = place("passed.h5");
    let data = Array3::from_shape_fn([32, 32, 64], |(z, y, x)| i32::try_from((z * y) ^ x).unwrap());
    let written = h5::File::create(&path).unwrap();
    for (name, filters) in [("packed", (false, false)), ("shuffled", (true, false)), ("summed", (true, true))]
    {
        let (shuffle, sums) = filters;
        let builder = written.new_dataset_builder().chunk([32, 32, 32]);
        let builder = if shuffle { builder.shuffle() } else { builder }.deflate(1);
        let builder = if sums { builder.fletcher32() } else { builder };
        builder.with_data(&data).create(name).unwrap();
    }
    let place_of = |name| {
        let second = written.dataset(name).unwrap().chunk_info(1).unwrap();
        assert_eq!(second.offset, [0, 0, 32]);
        usize::try_from(second.addr).unwrap()..usize::try_from(second.addr + second.size).unwrap()
    };
    let places = ["packed", "shuffled"].map(place_of);
    written.close().unwrap();
    let (stored, file) = (std::fs::read(&path).unwrap(), open_path(&path).unwrap());
    let second = Selection::of_box(&[0, 0, 32], &[32, 32, 32]);
    let packed = |name: &str, selection: &Selection| {
        let (number, _) = file.dataset.find(name).unwrap();
        file.packed(number, 0, selection, &CancelFlag::default()).unwrap()
    };
    for ((name, width), place) in [("packed", 1), ("shuffled", 4)].into_iter().zip(places) {
        let found = packed(name, &second).expect("a whole chunk");
        assert!(found.bytes == stored[place], "{name}: the bytes of the file");
        assert_eq!((found.packing, found.width), (array::Packing::Zlib, width), "{name}");
        let within = Selection::of_box(&[0, 0, 33], &[32, 32, 31]);
        assert!(packed(name, &within).is_none(), "{name}: not a whole chunk");
    }
    assert!(packed("summed", &second).is_none(), "a checksum is checked here");
}

#[test]
fn what_is_in_a_file_of_many_objects_is_kept_until_it_changes() {
    let (dir, path) = place("many.h5");
    let write = |count: usize| {
        let file = h5::File::create(&path).unwrap();
        for number in 0..count {
            let group = file.create_group(&format!("g{number:04}")).unwrap();
            group.new_dataset_builder().with_data(&numbers()).create("u").unwrap();
        }
        let attributed = file.dataset("g0000/u").unwrap();
        attributed.new_attr::<f64>().create("delta").unwrap().write_scalar(&-0.1).unwrap();
    };
    write(300);
    let side = dir.path().join("side");
    let options = OpenOptions { side_dir: Some(side.clone()), ..OpenOptions::default() };
    let opened = || open(FileBytes::open(&path).unwrap(), &options).unwrap();
    let kept = |file: &Hdf5| side.join(file.dataset().id.to_string()).join(index::NAME);
    let first = opened();
    assert!(kept(&first).exists());
    let store = FileBytes::open(&path).unwrap();
    let again = open(Arc::clone(&store), &options).unwrap();
    assert_eq!(again.dataset(), first.dataset());
    let all_bytes = store.size_bytes();
    assert!(store.counts().bytes * 20 < all_bytes, "{:?} of {all_bytes}: no walk", store.counts());
    check(&again, "g0299/u", &little(&numbers()));
    // A damaged entry is as good as none, and a file that changed has another.
    std::fs::write(kept(&first), b"{}").unwrap();
    assert_eq!(opened().dataset(), first.dataset());
    write(280);
    assert_eq!(opened().dataset().arrays.len(), 280);
    write(20);
    assert!(!kept(&opened()).exists(), "few objects are found sooner than they are looked up");
}
