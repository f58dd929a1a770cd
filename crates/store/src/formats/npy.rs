//! NumPy's `.npy` files (NumPy Enhancement Proposal 1): a short header that is a Python dictionary, then the elements.
//!
//! Arrays in Fortran order are read as numpy reads them, their axes in the order of their shape. Complex numbers are two arrays,
//! `NAME.r` and `NAME.i`. Bytes whose last axis has three or four elements are the colors of an image. Not supported: structured
//! types, Python objects, strings and dates.

use std::sync::Arc;

use array::{AxisKind, DType, Error, MAX_AXES, Result};

use crate::formats::common::flat::FlatArray;
use crate::formats::common::flat_file::{self, FileCompression, FlatFile, FlatFileArray, HeaderInfo};
use crate::{FileBytes, OpenOptions, formats::common::describe};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Longest header of an `.npy` file, bytes; numpy itself refuses longer ones.
const MAX_NPY_HEADER_BYTES: usize = 64 << 10;
/// Most bytes of magic number, version and length before the header.
const MAX_PREFIX_BYTES: usize = 12;

/// Whether these are the first bytes of such a file.
pub(crate) fn recognizes(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Opens a file.
///
/// # Errors
/// `Corrupt`, `Unsupported`, with the expected and the found part of the header.
pub(crate) fn open(file: Arc<FileBytes>, options: &OpenOptions) -> Result<FlatFile> {
    let head = file.head(MAX_PREFIX_BYTES + MAX_NPY_HEADER_BYTES)?;
    let (text, begins_at) = header_text(&head)?;
    let header = NpyHeader::parse(text)?;
    let NpyHeader { dtype, parts, is_fortran, shape } = header;
    let order = if is_fortran { FlatArray::fortran_order } else { FlatArray::c_order };
    let whole = order(begins_at as u64, parts * dtype.size_bytes(), &shape)?;
    let (store, access) = flat_file::store(&file, FileCompression::Plain, &whole, options)?;
    let name = file.name();
    let name = name.strip_suffix(".npy").unwrap_or(&name);
    let names =
        if parts == 1 { vec![name.to_owned()] } else { vec![format!("{name}.r"), format!("{name}.i")] };
    let placed = names.iter().zip(whole.members(parts)).map(|(name, layout)| {
        let axes = describe::guessed_axes_of(dtype, &shape);
        let colors = axes.last().filter(|axis| axis.kind == AxisKind::Channel).and(shape.last().copied());
        let mut info = describe::array(name, dtype, axes, &shape, None);
        if let Some(parts) = colors {
            info.attributes.insert("channels".into(), describe::color_names(parts));
        }
        FlatFileArray { info, layout, store: Arc::clone(&store), access }
    });
    FlatFile::new(&[&file], HeaderInfo { format: "NumPy", ..HeaderInfo::default() }, placed.collect())
}

/// The dictionary, and the byte at which the elements begin.
fn header_text(head: &[u8]) -> Result<(&str, usize)> {
    let cut_short = || Error::corrupt("expected a whole header, found a file that is cut short within it");
    let after_magic = head.get(MAGIC.len()..).ok_or_else(cut_short)?;
    let (length, begins_at) = match *after_magic {
        [1, _, a, b, ..] => (u32::from(u16::from_le_bytes([a, b])), MAGIC.len() + 4),
        [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([a, b, c, d]), MAGIC.len() + 6),
        [version, _, ..] if version == 0 || version > 3 => {
            return Err(Error::unsupported(format!(
                "expected version 1 to 3 of the format, found {version}"
            )));
        }
        _ => return Err(cut_short()),
    };
    let length =
        usize::try_from(length).ok().filter(|&length| length <= MAX_NPY_HEADER_BYTES).ok_or_else(|| {
            Error::unsupported(format!(
                "expected a header of at most {MAX_NPY_HEADER_BYTES} bytes, found {length}"
            ))
        })?;
    let end = begins_at + length;
    let text = head.get(begins_at..end).ok_or_else(cut_short)?;
    let text = std::str::from_utf8(text)
        .map_err(|_| Error::corrupt("expected a header of text, found other bytes"))?;
    Ok((text, end))
}

#[derive(Debug, PartialEq)]
struct NpyHeader {
    dtype: DType,
    /// Numbers of an element: two of a complex one.
    parts: usize,
    is_fortran: bool,
    shape: Vec<u64>,
}

impl NpyHeader {
    /// Parses a dictionary as numpy writes it: `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
    fn parse(text: &str) -> Result<Self> {
        let mut rest = HeaderParser(text);
        rest.expect("{")?;
        let (mut dtype, mut is_fortran, mut shape) = (None, None, None);
        while !rest.takes("}") {
            let key = rest.quoted()?;
            rest.expect(":")?;
            match key {
                "descr" => dtype = Some(rest.dtype()?),
                "fortran_order" => is_fortran = Some(rest.boolean()?),
                "shape" => shape = Some(rest.numbers()?),
                _ => {
                    return Err(Error::corrupt(format!(
                        "expected descr, fortran_order or shape, found `{key}`"
                    )));
                }
            }
            if !rest.takes(",") {
                rest.expect("}")?;
                break;
            }
        }
        if !rest.0.trim().is_empty() {
            return Err(rest.unlike("the end"));
        }
        let lacks = |what| Error::corrupt(format!("expected `{what}` in the header, found none"));
        let shape = shape.ok_or_else(|| lacks("shape"))?;
        if shape.len() > MAX_AXES {
            return Err(Error::unsupported(format!(
                "expected at most {MAX_AXES} axes, found {}",
                shape.len()
            )));
        }
        let (dtype, parts) = dtype.ok_or_else(|| lacks("descr"))?;
        Ok(Self { dtype, parts, is_fortran: is_fortran.ok_or_else(|| lacks("fortran_order"))?, shape })
    }
}

/// Parser of a header: holds the part that is not parsed yet.
struct HeaderParser<'a>(&'a str);

impl<'a> HeaderParser<'a> {
    /// Steps over a token, if it comes next.
    fn takes(&mut self, token: &str) -> bool {
        self.0 = self.0.trim_start();
        let after = self.0.strip_prefix(token);
        self.0 = after.unwrap_or(self.0);
        after.is_some()
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.takes(token) { Ok(()) } else { Err(self.unlike(token)) }
    }

    fn unlike(&self, expected: &str) -> Error {
        let found: String = self.0.chars().take(40).collect();
        Error::corrupt(format!("expected `{expected}` in the header, found `{}`", found.trim_end()))
    }

    fn quoted(&mut self) -> Result<&'a str> {
        let quote = if self.takes("'") { '\'' } else { '"' };
        if quote == '"' {
            self.expect("\"")?;
        }
        let (inside, after) = self.0.split_once(quote).ok_or_else(|| self.unlike("the end of a text"))?;
        self.0 = after;
        Ok(inside)
    }

    /// The type of an element's numbers, and how many it has.
    fn dtype(&mut self) -> Result<(DType, usize)> {
        if self.takes("[") {
            return Err(Error::unsupported("expected one number for each element, found a structured type"));
        }
        let text = self.quoted()?;
        let part = match text.strip_prefix(['<', '>', '=', '|']).unwrap_or(text) {
            "c8" => "f4",
            "c16" => "f8",
            _ => return Ok((text.parse()?, 1)),
        };
        let order = if text.starts_with('>') { '>' } else { '<' };
        Ok((format!("{order}{part}").parse()?, 2))
    }

    fn boolean(&mut self) -> Result<bool> {
        if self.takes("False") {
            return Ok(false);
        }
        self.expect("True").map(|()| true)
    }

    /// A tuple; Python 2 wrote an `L` behind large numbers.
    fn numbers(&mut self) -> Result<Vec<u64>> {
        self.expect("(")?;
        let mut numbers = Vec::new();
        while !self.takes(")") {
            self.0 = self.0.trim_start();
            let digits = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
            let (number, after) = self.0.split_at(digits);
            numbers.push(number.parse().map_err(|_| self.unlike("a number of elements"))?);
            self.0 = after;
            self.takes("L");
            if !self.takes(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use array::{ErrorKind, Selection, Target};
    use proptest::prelude::*;

    use super::*;
    use crate::{CancelFlag, Format};

    fn written(version: u8, header: &str, elements: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        let length = u32::try_from(header.len()).expect("a short header").to_le_bytes();
        bytes.extend(&length[..if version == 1 { 2 } else { 4 }]);
        bytes.extend(header.bytes());
        bytes.extend(elements);
        bytes
    }

    fn open_bytes(bytes: &[u8]) -> Result<FlatFile> {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("rho.npy");
        std::fs::write(&path, bytes).expect("a file");
        open(FileBytes::open(&path)?, &OpenOptions::default())
    }

    fn all(file: &FlatFile) -> Vec<u8> {
        let info = &file.dataset().arrays[0];
        let (target, region) = Target::new(info.shape(), info.dtype.size_bytes()).expect("memory");
        file.read(0, 0, &Selection::all(info.shape()), region, &CancelFlag::default()).expect("elements");
        target.into_vec().expect("elements")
    }

    #[test]
    fn says_what_numpy_says_in_every_version() {
        for version in [1, 2, 3] {
            let header = "{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3), }      \n";
            let file = open_bytes(&written(version, header, &(0..12).collect::<Vec<u8>>())).unwrap();
            let info = &file.dataset().arrays[0];
            assert_eq!((info.name.as_str(), info.dtype.to_string().as_str()), ("rho", ">i2"));
            assert_eq!(info.shape(), [2, 3]);
            assert_eq!(all(&file), (0..12).collect::<Vec<u8>>());
        }
    }

    #[test]
    fn one_number_without_axes_is_an_array_as_any_other() {
        let file = open_bytes(&written(1, "{'descr': '<u2', 'fortran_order': False, 'shape': ()}", &[7, 1]))
            .unwrap();
        assert_eq!((file.dataset().arrays[0].shape(), all(&file)), (&[][..], vec![7, 1]));
    }

    #[test]
    fn fortran_order_is_read_as_numpy_reads_it() {
        let header = "{\"descr\": \"<u2\", \"fortran_order\": True, \"shape\": (2L, 3L, 2L)}";
        let data: Vec<u8> = (0..24).collect();
        let file = open_bytes(&written(1, header, &data)).unwrap();
        assert_eq!(file.dataset().arrays[0].shape(), [2, 3, 2]);
        // Element [i, j, k] is number i + 2 j + 6 k of the file.
        let expected = [0u8, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11].iter().flat_map(|n| [2 * n, 2 * n + 1]);
        assert_eq!(all(&file), expected.collect::<Vec<u8>>());
        let selection = Selection::parse("1, ::2, 1", &[2, 3, 2]).unwrap();
        let (target, region) = Target::new(&selection.shape(), 2).unwrap();
        file.read(0, 0, &selection, region, &CancelFlag::default()).unwrap();
        assert_eq!(target.into_vec().unwrap(), [14, 15, 22, 23]);
    }

    /// Larger than what is turned at a time.
    #[test]
    fn large_arrays_in_fortran_order_are_turned_in_portions() {
        let shape = [70usize, 90, 110];
        let header = "{'descr': '<u4', 'fortran_order': True, 'shape': (70, 90, 110)}";
        let data: Vec<u8> = (0u32..693_000).flat_map(u32::to_le_bytes).collect();
        let file = open_bytes(&written(1, header, &data)).unwrap();
        let found = all(&file);
        let at = |i: usize, j: usize, k: usize| {
            let offset = 4 * ((i * shape[1] + j) * shape[2] + k);
            u32::from_le_bytes(found[offset..offset + 4].try_into().unwrap()) as usize
        };
        for (i, j, k) in [(0, 0, 0), (69, 89, 109), (1, 2, 3), (68, 0, 55), (33, 77, 54), (0, 89, 56)] {
            assert_eq!(at(i, j, k), i + 70 * (j + 90 * k));
        }
    }

    #[test]
    fn complex_numbers_are_two_arrays() {
        let data: Vec<u8> = (0..32).collect();
        let file = open_bytes(&written(1, "{'descr': '>c8', 'fortran_order': False, 'shape': (4,)}", &data))
            .unwrap();
        let names: Vec<String> =
            file.dataset().arrays.iter().map(|a| format!("{} {}", a.name, a.dtype)).collect();
        assert_eq!(names, ["rho.r >f4", "rho.i >f4"]);
        let (target, region) = Target::new(&[4], 4).unwrap();
        file.read(1, 0, &Selection::all(&[4]), region, &CancelFlag::default()).unwrap();
        assert_eq!(target.into_vec().unwrap(), [4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31]);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let said = |header: &str| open_bytes(&written(1, header, &[0; 24])).map(|_| ()).unwrap_err();
        for (header, kind, words) in [
            (
                "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
                ErrorKind::Unsupported,
                "structured",
            ),
            ("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", ErrorKind::Unsupported, "`|O`"),
            ("{'descr': '<c32', 'fortran_order': False, 'shape': (2,)}", ErrorKind::Unsupported, "`<c32`"),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,6)}",
                ErrorKind::Unsupported,
                "at most 16 axes",
            ),
            ("{'descr': '<f4', 'fortran_order': False}", ErrorKind::Corrupt, "`shape`"),
            ("{'descr': '<f4', 'fortran_order': No, 'shape': (2,)}", ErrorKind::Corrupt, "`True`"),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
                ErrorKind::Corrupt,
                "number of elements",
            ),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (7,)}", ErrorKind::Corrupt, "cut short"),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
                ErrorKind::Corrupt,
                "2^63",
            ),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} !", ErrorKind::Corrupt, "`the end`"),
            ("", ErrorKind::Corrupt, "`{`"),
        ] {
            let error = said(header);
            assert_eq!(error.kind(), kind, "{header}: {error}");
            assert!(error.to_string().contains(words), "{header}: {error}");
        }
        let whole = written(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", &[0; 8]);
        for end in 0..whole.len() {
            open_bytes(&whole[..end]).map(|_| ()).unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn any_header_is_answered(header in "[{}()\\[\\]':, <f48desrbntoahpFTLu0-9]{0,80}", version in 0u8..5) {
            drop(open_bytes(&written(version, &header, &[0; 8])));
        }
    }
}
