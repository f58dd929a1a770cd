//! The header of a NetCDF-3 file with one variable, in the 64-bit data form (CDF-5): every integer type, any size.
//!
//! The variable's elements follow the header, big-endian, in C order; they are padded to four bytes at the end.

use array::{ElementType, Error, Result};

use super::Written;

const DIMENSIONS: u32 = 10;
const VARIABLES: u32 = 11;
const ATTRIBUTES: u32 = 12;
const CHAR: u32 = 2;

/// Everything before the elements.
///
/// # Errors
/// `Unsupported` for types that NetCDF-3 does not have.
pub(crate) fn header(what: &Written) -> Result<Vec<u8>> {
    let kind = type_number(what.dtype.element())?;
    let mut out = Header(b"CDF\x05".to_vec());
    out.number(0); // no records
    out.dimensions(what);
    out.list(ATTRIBUTES, 0);
    out.list(VARIABLES, 1);
    out.name(&safe_name(&what.name));
    out.number(what.shape.len() as u64);
    for dimension in 0..what.shape.len() {
        out.number(dimension as u64);
    }
    if what.units.is_empty() {
        out.list(ATTRIBUTES, 0);
    } else {
        out.list(ATTRIBUTES, 1);
        out.name("units");
        out.tag(CHAR);
        out.text(&what.units);
    }
    out.tag(kind);
    let size = what.shape.iter().fold(what.dtype.size_bytes() as u64, |n, &v| n.saturating_mul(v));
    out.number(size.next_multiple_of(4));
    let begin = out.0.len() as u64 + 8;
    out.number(begin);
    Ok(out.0)
}

struct Header(Vec<u8>);

impl Header {
    fn number(&mut self, n: u64) {
        self.0.extend(n.to_be_bytes());
    }

    fn tag(&mut self, tag: u32) {
        self.0.extend(tag.to_be_bytes());
    }

    /// An empty list has the tag zero.
    fn list(&mut self, tag: u32, count: u64) {
        self.tag(if count == 0 { 0 } else { tag });
        self.number(count);
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend(text.bytes());
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    fn name(&mut self, name: &str) {
        self.text(name);
    }

    fn dimensions(&mut self, what: &Written) {
        self.list(DIMENSIONS, what.shape.len() as u64);
        for (axis, &size) in what.shape.iter().enumerate() {
            let name = what.axes.get(axis).map(String::as_str).unwrap_or_default();
            let is_taken = name.is_empty() || what.axes[..axis].iter().any(|n| n == name);
            self.name(&if is_taken { format!("axis_{axis}") } else { safe_name(name) });
            self.number(size);
        }
    }
}

/// Names may not hold a slash, nor begin with anything but a letter, digit or underscore.
fn safe_name(name: &str) -> String {
    let name: String = name.trim_matches('/').chars().map(|c| if c == '/' { '.' } else { c }).collect();
    if name.starts_with(|c: char| c.is_alphanumeric() || c == '_') { name } else { format!("data{name}") }
}

fn type_number(element: ElementType) -> Result<u32> {
    use ElementType::{Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    Ok(match element {
        I8 => 1,
        I16 => 3,
        I32 => 4,
        F32 => 5,
        F64 => 6,
        U8 | Bool => 7,
        U16 => 8,
        U32 => 9,
        I64 => 10,
        U64 => 11,
        F16 => return Err(Error::unsupported("NetCDF has no float16; write .npy or .zarr")),
    })
}
