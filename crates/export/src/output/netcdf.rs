//! Header of a NetCDF-3 file with one large variable, in the 64-bit data format (CDF-5), which supports all integer
//! types and any size.
//!
//! Coordinates are variables too, whose elements follow the header directly. The elements of the large variable come
//! last, big-endian, in C order, padded to four bytes at the end.

use array::{Attribute, Attributes, ByteOrder, DType, ElementType, Error, Result, Scalar};

use super::ArrayHeader;
use super::coordinates::CoordinateArray;

const DIMENSIONS: u32 = 10;
const VARIABLES: u32 = 11;
const ATTRIBUTES: u32 = 12;
const CHAR: u32 = 2;
/// Attributes that have the variable's own type (CF), because they are stored values.
const STORED: &[&str] = &["_FillValue", "missing_value", "valid_min", "valid_max", "valid_range"];

/// A coordinate in the file.
pub(crate) struct CoordinateVariable<'a> {
    pub(crate) scale: &'a CoordinateArray,
    /// Numbers of its axes among the axes of the file; empty if its axis was dropped.
    pub(crate) axes: Vec<usize>,
}

/// Returns all bytes before the elements of the large variable.
///
/// # Errors
/// `Unsupported` for types that NetCDF-3 does not have, and for axes of length 0, which it treats as unlimited.
pub(crate) fn header(what: &ArrayHeader, variables: &[CoordinateVariable<'_>]) -> Result<Vec<u8>> {
    if what.shape.contains(&0) {
        let (name, shape) = (&what.name, &what.shape);
        return Err(Error::unsupported(format!(
            "expected axes of one element or more for NetCDF, found the shape {shape:?} of `{name}`; write .npy, .zarr or .h5"
        )));
    }
    let kind = type_number(what.dtype.element())?;
    let own = safe_name(&what.name);
    let is_empty = |v: &&CoordinateVariable<'_>| v.scale.own.as_ref().is_some_and(|(_, size)| *size == 0);
    let is_other = |v: &&CoordinateVariable<'_>| {
        safe_name(&v.scale.name) != own && type_number(v.scale.dtype.element()).is_ok() && !is_empty(v)
    };
    let variables: Vec<&CoordinateVariable<'_>> = variables.iter().filter(is_other).collect();
    let mut out = NetCdfHeader(b"CDF\x05".to_vec());
    out.number(0); // no records
    let added: Vec<&(String, u64)> = variables.iter().filter_map(|v| v.scale.own.as_ref()).collect();
    let added = out.dimensions(what, &added);
    out.list(ATTRIBUTES, 0);
    out.list(VARIABLES, 1 + variables.len() as u64);
    // The offset of each variable's elements is known when the header is complete.
    let mut places = Vec::with_capacity(variables.len());
    for variable in &variables {
        let CoordinateArray { name, own, dtype, attributes, bytes, .. } = variable.scale;
        out.name(&safe_name(name));
        let own = own
            .as_ref()
            .and_then(|own| added.iter().find(|(known, _)| known == own))
            .map(|(_, number)| *number);
        let axes: Vec<u64> = variable.axes.iter().map(|&axis| axis as u64).chain(own).collect();
        out.number(axes.len() as u64);
        axes.into_iter().for_each(|axis| out.number(axis));
        out.attributes(attributes, dtype.element())?;
        out.tag(type_number(dtype.element())?);
        out.number((bytes.len() as u64).next_multiple_of(4));
        places.push(out.0.len());
        out.number(0);
    }
    out.name(&own);
    out.number(what.shape.len() as u64);
    for dimension in 0..what.shape.len() {
        out.number(dimension as u64);
    }
    let mut attributes = what.attributes.clone();
    // The coordinate of a dropped axis is kept (CF: scalar coordinate variables).
    let scalars = variables
        .iter()
        .filter(|v| v.axes.is_empty() && v.scale.own.is_none())
        .map(|v| safe_name(&v.scale.name));
    let named = match attributes.get("coordinates") {
        Some(Attribute::Text(text)) => text.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    let all: Vec<String> =
        named.iter().cloned().chain(scalars.filter(|name| !named.contains(name))).collect();
    if !all.is_empty() {
        attributes.insert("coordinates".to_owned(), Attribute::Text(all.join(" ")));
    }
    out.attributes(&attributes, what.dtype.element())?;
    out.tag(kind);
    let size = what.shape.iter().fold(what.dtype.size_bytes() as u64, |n, &v| n.saturating_mul(v));
    out.number(size.next_multiple_of(4));
    places.push(out.0.len());
    out.number(0);
    for (variable, &place) in variables.iter().zip(&places) {
        out.begins_here(place);
        let mut bytes = variable.scale.bytes.clone();
        DType::new(variable.scale.dtype.element(), ByteOrder::Big).to_native(&mut bytes);
        out.0.extend(bytes);
        out.0.resize(out.0.len().next_multiple_of(4), 0);
    }
    if let Some(&place) = places.last() {
        out.begins_here(place);
    }
    Ok(out.0)
}

struct NetCdfHeader(Vec<u8>);

impl NetCdfHeader {
    fn number(&mut self, n: u64) {
        self.0.extend(n.to_be_bytes());
    }

    fn tag(&mut self, tag: u32) {
        self.0.extend(tag.to_be_bytes());
    }

    /// Writes the head of a list; an empty list has the tag zero.
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

    /// Writes the current end as an offset to a placeholder.
    fn begins_here(&mut self, place: usize) {
        let begin = (self.0.len() as u64).to_be_bytes();
        self.0[place..place + begin.len()].copy_from_slice(&begin);
    }

    /// Writes the attributes of a variable. A list of texts becomes one text with a line each, because the format has
    /// no lists of texts.
    fn attributes(&mut self, attributes: &Attributes, element: ElementType) -> Result<()> {
        self.list(ATTRIBUTES, attributes.len() as u64);
        for (name, value) in attributes {
            self.name(&safe_name(name));
            let stored = STORED.contains(&name.as_str()).then_some(element);
            match value {
                Attribute::Text(text) => self.characters(text),
                Attribute::Texts(texts) => self.characters(&texts.join("\n")),
                Attribute::Number(number, own) => self.numbers(&[*number], stored.or(*own))?,
                Attribute::Numbers(numbers, own) => self.numbers(numbers, stored.or(*own))?,
                // The format has no maps or booleans: they are written as text.
                Attribute::Json(value) => self.characters(&value.to_string()),
            }
        }
        Ok(())
    }

    fn characters(&mut self, text: &str) {
        self.tag(CHAR);
        self.text(text);
    }

    /// Writes numbers in the type `own`, if given (half precision as single, which can hold it); otherwise in the
    /// widest type.
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

    /// Writes a number as an element of this type; narrow integers are the last bytes of a 64-bit one.
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

    /// Writes the dimensions of the array, and further ones; returns the numbers of the latter.
    fn dimensions(&mut self, what: &ArrayHeader, more: &[&(String, u64)]) -> Vec<((String, u64), u64)> {
        let mut names: Vec<String> = Vec::new();
        for (axis, _) in what.shape.iter().enumerate() {
            let name = what.axes.get(axis).map(String::as_str).unwrap_or_default();
            let own = safe_name(name.rsplit('/').next().unwrap_or(name));
            let is_taken = name.is_empty() || names.contains(&own);
            names.push(if is_taken { format!("axis_{axis}") } else { own });
        }
        let mut added: Vec<((String, u64), u64)> = Vec::new();
        for &own in more {
            if added.iter().any(|(known, _)| known == own) {
                continue;
            }
            let mut name = safe_name(&own.0);
            while names.contains(&name) {
                name.push('_');
            }
            added.push((own.clone(), names.len() as u64));
            names.push(name);
        }
        self.list(DIMENSIONS, names.len() as u64);
        let sizes = what.shape.iter().copied().chain(added.iter().map(|((_, size), _)| *size));
        for (name, size) in names.iter().zip(sizes) {
            self.name(name);
            self.number(size);
        }
        added
    }
}

/// Returns a valid name: without slashes, beginning with a letter, digit or underscore.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_of_length_0_is_refused() {
        let mut what = ArrayHeader {
            name: "v".into(),
            axes: vec!["y".into(), "x".into()],
            shape: vec![4, 2],
            dtype: DType::new(ElementType::F32, ByteOrder::Big),
            attributes: Attributes::new(),
        };
        assert!(header(&what, &[]).is_ok());
        what.shape = vec![4, 0];
        let refused = header(&what, &[]).unwrap_err();
        assert!(refused.to_string().contains("found the shape [4, 0] of `v`; write .npy"), "{refused}");
    }
}
