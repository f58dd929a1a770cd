//! The header of a NetCDF-3 file with one variable, in the 64-bit data form (CDF-5): every integer type, any size.
//!
//! The variable's elements follow the header, big-endian, in C order; they are padded to four bytes at the end.

use array::{Attribute, ElementType, Error, Result, Scalar};

use super::Written;

const DIMENSIONS: u32 = 10;
const VARIABLES: u32 = 11;
const ATTRIBUTES: u32 = 12;
const CHAR: u32 = 2;
/// Attributes that are of the variable's own type (CF), because they are stored values.
const STORED: &[&str] = &["_FillValue", "missing_value", "valid_min", "valid_max", "valid_range"];

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
    out.attributes(what)?;
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

    /// What is known of the variable. Several texts become lines of one: the format has no others.
    fn attributes(&mut self, what: &Written) -> Result<()> {
        self.list(ATTRIBUTES, what.attributes.len() as u64);
        for (name, value) in &what.attributes {
            self.name(&safe_name(name));
            let stored = STORED.contains(&name.as_str()).then(|| what.dtype.element());
            match value {
                Attribute::Text(text) => self.characters(text),
                Attribute::Texts(texts) => self.characters(&texts.join("\n")),
                Attribute::Number(number, own) => self.numbers(&[*number], stored.or(*own))?,
                Attribute::Numbers(numbers, own) => self.numbers(numbers, stored.or(*own))?,
                // The format has no maps nor truth values: they are written as their text.
                Attribute::Json(value) => self.characters(&value.to_string()),
            }
        }
        Ok(())
    }

    fn characters(&mut self, text: &str) {
        self.tag(CHAR);
        self.text(text);
    }

    /// As numbers of the type `own`, where they are such (half precision in single, which holds it); else as wide as there are.
    fn numbers(&mut self, numbers: &[Scalar], own: Option<ElementType>) -> Result<()> {
        let is_float = numbers.iter().any(|number| matches!(number, Scalar::Float(_)));
        let is_beyond = |number: &Scalar| matches!(number, Scalar::Unsigned(v) if i64::try_from(*v).is_err());
        let is_unsigned = numbers.iter().any(is_beyond);
        let widest = match (is_float, is_unsigned) {
            (true, _) => ElementType::F64,
            (_, true) => ElementType::U64,
            _ => ElementType::I64,
        };
        let own = own.map(|own| if own == ElementType::F16 { ElementType::F32 } else { own });
        let element = own.filter(|own| own.is_float() || !is_float).unwrap_or(widest);
        self.tag(type_number(element)?);
        self.number(numbers.len() as u64);
        numbers.iter().for_each(|number| self.scalar(*number, element));
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        Ok(())
    }

    /// Integers that are narrower than 64 bits are the last bytes of those.
    #[expect(clippy::cast_possible_truncation, reason = "a stored value of single precision is one")]
    fn scalar(&mut self, number: Scalar, element: ElementType) {
        let size = element.size_bytes();
        match (element, number) {
            (ElementType::F32, _) => self.0.extend((number.as_f64() as f32).to_be_bytes()),
            (ElementType::F64, _) | (_, Scalar::Float(_)) => self.0.extend(number.as_f64().to_be_bytes()),
            (_, Scalar::Unsigned(v)) => self.0.extend(&v.to_be_bytes()[8 - size..]),
            (_, Scalar::Signed(v)) => self.0.extend(&v.to_be_bytes()[8 - size..]),
        }
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
