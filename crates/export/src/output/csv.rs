//! A small selection as a table, for reading and for spreadsheets: one line for each element, its coordinates first.

use array::{DType, Error, Result};

/// Maximum number of elements in a table; the limit of common spreadsheets.
pub(crate) const MAX_ELEMENTS: u64 = 1 << 20;
/// Maximum size of the values in a table, in bytes; it limits texts, which are in memory as a whole.
pub(crate) const MAX_BYTES: u64 = 256 << 20;

/// An empty field in quotes, so that its line is not empty.
const EMPTY: &str = "\"\"";

/// One column of coordinates.
#[derive(Clone, Debug)]
pub(crate) struct CsvColumn {
    pub(crate) name: String,
    /// One text for each index along the axis.
    pub(crate) values: Vec<String>,
}

/// Formats the table. `columns` are the axes that are kept; `value_at` returns the text of an element by its number in
/// C order. Without columns an empty text is written in quotes, because readers skip empty lines.
///
/// # Errors
/// The errors of `value_at`.
pub(crate) fn table(
    name: &str,
    columns: &[CsvColumn],
    value_at: impl Fn(usize) -> Result<String>,
) -> Result<String> {
    let head = columns.iter().map(|column| field(&column.name)).chain([field(name)]).collect::<Vec<_>>();
    let is_empty_line = |value: &str| columns.is_empty() && value.is_empty();
    let mut text = if is_empty_line(name) { EMPTY.to_owned() } else { head.join(",") };
    text.push('\n');
    let count = columns.iter().map(|column| column.values.len()).product::<usize>();
    for number in 0..count {
        let mut rest = number;
        let mut fields = vec![""; columns.len()];
        for (place, column) in columns.iter().enumerate().rev() {
            let size = column.values.len();
            fields[place] = &column.values[rest % size];
            rest /= size;
        }
        for value in fields {
            text.push_str(&field(value));
            text.push(',');
        }
        let value = value_at(number)?;
        text.push_str(&if is_empty_line(&value) { EMPTY.to_owned() } else { field(&value) });
        text.push('\n');
    }
    Ok(text)
}

/// Formats one of the numbers in `bytes`, which are in this machine's byte order; empty for NaN.
///
/// # Errors
/// `Internal` if `bytes` contains fewer numbers.
#[expect(clippy::cast_possible_truncation, reason = "a value of single precision is one")]
pub(crate) fn number(dtype: DType, bytes: &[u8], number: usize) -> Result<String> {
    let dtype = DType::native(dtype.element());
    let value = dtype.scalar_at(bytes, number).ok_or_else(|| Error::internal("an element is missing"))?;
    Ok(match value {
        array::Scalar::Unsigned(value) => value.to_string(),
        array::Scalar::Signed(value) => value.to_string(),
        array::Scalar::Float(value) if value.is_nan() => String::new(),
        // The shortest digits that are parsed as the same value.
        array::Scalar::Float(value) if dtype.size_bytes() <= 4 => (value as f32).to_string(),
        array::Scalar::Float(value) => value.to_string(),
    })
}

/// Returns one of the texts of `length` bytes in `bytes`, without the zeros at its end.
///
/// # Errors
/// `Internal` if `bytes` contains fewer texts.
pub(crate) fn text(bytes: &[u8], length: usize, number: usize) -> Result<String> {
    let padded = bytes.get(number * length..(number + 1) * length);
    let padded = padded.ok_or_else(|| Error::internal("a text is missing"))?;
    let end = padded.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    Ok(String::from_utf8_lossy(&padded[..end]).into_owned())
}

/// Quotes a field as in RFC 4180.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_element_has_a_line_with_its_coordinates() {
        let column = |name: &str, values: &[&str]| CsvColumn {
            name: name.into(),
            values: values.iter().map(|&value| value.to_owned()).collect(),
        };
        let bytes: Vec<u8> = [1.5f32, f32::NAN, 0.1, 4.0].iter().flat_map(|v| v.to_ne_bytes()).collect();
        let columns = [column("t", &["2001-01-01", "2001-01-02"]), column("a,b", &["x", "y\"z"])];
        let text = table("v", &columns, |at| number("<f4".parse().unwrap(), &bytes, at)).unwrap();
        assert_eq!(
            text,
            "t,\"a,b\",v\n2001-01-01,x,1.5\n2001-01-01,\"y\"\"z\",\n2001-01-02,x,0.1\n2001-01-02,\"y\"\"z\",4\n"
        );
        let seven = |at| number("<i2".parse().unwrap(), &7i16.to_ne_bytes(), at);
        assert_eq!(table("s", &[], seven).unwrap(), "s\n7\n");
    }

    #[test]
    fn texts_have_one_field_each() {
        let column = CsvColumn { name: "station".into(), values: vec!["0".into(), "1".into(), "2".into()] };
        let found = table("name", &[column], |at| text("a,b\0\0\0\0\0\u{fc}\0\0".as_bytes(), 4, at)).unwrap();
        assert_eq!(found, "station,name\n0,\"a,b\"\n1,\n2,\u{fc}\n");
        let alone = table("name", &[], |at| text(b"\0\0\0", 3, at)).unwrap();
        assert_eq!(alone, "name\n\"\"\n");
    }
}
