//! The text of a NRRD header: `field: value` lines, `key:=value` lines, comments.

use std::collections::BTreeMap;

use array::{ByteOrder, DType, ElementType, Error, MAX_AXES, Result};

/// Most keys of one header.
const MAX_KEYS: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Raw,
    Gzip,
}

/// What lies between header and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Skip {
    pub(super) lines: u64,
    /// `None`: the data ends with the file.
    pub(super) bytes: Option<u64>,
}

/// What the header says of one axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AxisFields {
    pub(super) spacing: Option<f64>,
    pub(super) min: Option<f64>,
    /// Step in space, in the header's own space.
    pub(super) direction: Option<Vec<f64>>,
    pub(super) kind: String,
    pub(super) label: String,
    pub(super) units: String,
}

/// A header that was understood. Axes in the file's order, fastest first.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Header {
    pub(super) dtype: DType,
    pub(super) sizes: Vec<u64>,
    pub(super) axes: Vec<AxisFields>,
    pub(super) encoding: Encoding,
    pub(super) skip: Skip,
    pub(super) data_file: Option<String>,
    pub(super) space: String,
    pub(super) space_origin: Option<Vec<f64>>,
    pub(super) space_units: Vec<String>,
    pub(super) sample_units: String,
    /// Keys with their values, and fields that only people read.
    pub(super) attributes: BTreeMap<String, String>,
    /// The byte after the header.
    pub(super) end: usize,
}

impl Header {
    /// Reads the header at the start of `head`.
    pub(super) fn parse(head: &[u8]) -> Result<Self> {
        let lines = Lines::read(head)?;
        let sizes = sizes(&lines)?;
        let encoding = encoding(lines.need("encoding")?)?;
        let element = element(lines.need("type")?)?;
        let order = byte_order(&lines, element)?;
        let axes = axes(&lines, sizes.len())?;
        Ok(Self {
            dtype: DType::new(element, order),
            axes,
            encoding,
            skip: skip(&lines)?,
            data_file: data_file(&lines)?,
            space: lines.get("space").unwrap_or_default().to_ascii_lowercase(),
            space_origin: lines.get("spaceorigin").map(vector).transpose()?.flatten(),
            space_units: lines.get("spaceunits").map(quoted).unwrap_or_default(),
            sample_units: lines.get("sampleunits").map(unquoted).unwrap_or_default(),
            attributes: lines.attributes(),
            sizes,
            end: lines.end,
        })
    }

    /// Bytes of the whole array.
    pub(super) fn size_bytes(&self) -> Result<u64> {
        let size = self.sizes.iter().try_fold(self.dtype.size_bytes() as u64, |n, &s| n.checked_mul(s));
        size.ok_or_else(|| Error::corrupt(format!("expected sizes below 2^64 bytes, found {:?}", self.sizes)))
    }
}

/// Fields and keys as text. Field names are lower case without blanks: `data file` is `datafile`.
struct Lines {
    fields: BTreeMap<String, String>,
    keys: BTreeMap<String, String>,
    end: usize,
}

impl Lines {
    fn read(head: &[u8]) -> Result<Self> {
        let mut lines = Self { fields: BTreeMap::new(), keys: BTreeMap::new(), end: head.len() };
        let mut at = 0;
        for (number, line) in head.split_inclusive(|&b| b == b'\n').enumerate() {
            at += line.len();
            let text = String::from_utf8_lossy(line);
            let text = text.trim_end_matches(['\n', '\r']);
            match number {
                0 if text.starts_with("NRRD0") => {}
                0 => return Err(Error::corrupt("expected a file that begins with `NRRD0`")),
                _ if text.is_empty() => {
                    lines.end = at;
                    return Ok(lines);
                }
                _ => lines.take(text)?,
            }
        }
        Ok(lines)
    }

    fn take(&mut self, line: &str) -> Result<()> {
        if line.starts_with('#') {
            return Ok(());
        }
        if self.keys.len() + self.fields.len() >= MAX_KEYS {
            return Err(Error::corrupt(format!("expected at most {MAX_KEYS} lines in a header, found more")));
        }
        if let Some((key, value)) = line.split_once(":=") {
            self.keys.insert(key.trim().to_owned(), value.trim().to_owned());
        } else if let Some((field, value)) = line.split_once(':') {
            let field: String = field.chars().filter(|c| !c.is_whitespace()).collect();
            self.fields.insert(field.to_ascii_lowercase(), value.trim().to_owned());
        } else {
            return Err(Error::corrupt(format!("expected `field: value` or `key:=value`, found `{line}`")));
        }
        Ok(())
    }

    fn get(&self, field: &str) -> Option<&str> {
        self.fields.get(field).map(String::as_str)
    }

    fn need(&self, field: &str) -> Result<&str> {
        self.get(field)
            .ok_or_else(|| Error::corrupt(format!("expected the field `{field}` in the header, found none")))
    }

    fn attributes(&self) -> BTreeMap<String, String> {
        let shown = ["content", "space", "measurementframe", "kinds", "centerings", "thicknesses"];
        let fields = shown.iter().filter_map(|&f| self.get(f).map(|v| (f.to_owned(), v.to_owned())));
        fields.chain(self.keys.clone()).collect()
    }
}

fn sizes(lines: &Lines) -> Result<Vec<u64>> {
    let dimension: usize = whole(lines.need("dimension")?)?;
    let sizes = lines.need("sizes")?.split_whitespace().map(whole).collect::<Result<Vec<u64>>>()?;
    if dimension == 0 || dimension > MAX_AXES || sizes.len() != dimension {
        return Err(Error::corrupt(format!(
            "expected as many sizes as dimensions (1 to {MAX_AXES}), found {} and {dimension}",
            sizes.len()
        )));
    }
    Ok(sizes)
}

fn encoding(text: &str) -> Result<Encoding> {
    match text.to_ascii_lowercase().as_str() {
        "raw" => Ok(Encoding::Raw),
        "gzip" | "gz" => Ok(Encoding::Gzip),
        other => Err(Error::unsupported(format!("expected the encoding raw or gzip, found `{other}`"))),
    }
}

fn element(text: &str) -> Result<ElementType> {
    use ElementType::{F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    match text {
        "signed char" | "int8" | "int8_t" => Ok(I8),
        "uchar" | "unsigned char" | "uint8" | "uint8_t" => Ok(U8),
        "short" | "short int" | "signed short" | "signed short int" | "int16" | "int16_t" => Ok(I16),
        "ushort" | "unsigned short" | "unsigned short int" | "uint16" | "uint16_t" => Ok(U16),
        "int" | "signed int" | "int32" | "int32_t" => Ok(I32),
        "uint" | "unsigned int" | "uint32" | "uint32_t" => Ok(U32),
        "longlong"
        | "long long"
        | "long long int"
        | "signed long long"
        | "signed long long int"
        | "int64"
        | "int64_t" => Ok(I64),
        "ulonglong" | "unsigned long long" | "unsigned long long int" | "uint64" | "uint64_t" => Ok(U64),
        "float" => Ok(F32),
        "double" => Ok(F64),
        other => Err(Error::unsupported(format!(
            "expected a type of numbers such as `uchar` or `float`, found `{other}`"
        ))),
    }
}

fn byte_order(lines: &Lines, element: ElementType) -> Result<ByteOrder> {
    match lines.get("endian") {
        Some("little") => Ok(ByteOrder::Little),
        Some("big") => Ok(ByteOrder::Big),
        None if element.size_bytes() == 1 => Ok(ByteOrder::Little),
        other => Err(Error::corrupt(format!(
            "expected `endian: little` or `endian: big`, found `{}`",
            other.unwrap_or("none")
        ))),
    }
}

fn skip(lines: &Lines) -> Result<Skip> {
    let count = lines.get("lineskip").map_or(Ok(0), whole)?;
    let bytes = match lines.get("byteskip") {
        Some("-1") => None,
        Some(text) => Some(whole(text)?),
        None => Some(0),
    };
    Ok(Skip { lines: count, bytes })
}

fn data_file(lines: &Lines) -> Result<Option<String>> {
    let Some(name) = lines.get("datafile") else { return Ok(None) };
    let words = name.split_whitespace().count();
    if name.starts_with("LIST") || (words > 1 && name.contains('%')) {
        return Err(Error::unsupported(format!("expected one data file, found several: `{name}`")));
    }
    Ok(Some(name.to_owned()))
}

fn axes(lines: &Lines, count: usize) -> Result<Vec<AxisFields>> {
    let texts = |field: &str, split: fn(&str) -> Vec<String>| -> Result<Vec<String>> {
        let Some(text) = lines.get(field) else { return Ok(vec![String::new(); count]) };
        let items = split(text);
        if items.len() == count {
            return Ok(items);
        }
        Err(Error::corrupt(format!("expected {count} entries in the field `{field}`, found {}", items.len())))
    };
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    let (spacings, mins) = (texts("spacings", words)?, texts("axismins", words)?);
    let (kinds, directions) = (texts("kinds", words)?, texts("spacedirections", vectors)?);
    let (labels, units) = (texts("labels", quoted)?, texts("units", quoted)?);
    (0..count)
        .map(|a| {
            Ok(AxisFields {
                spacing: number(&spacings[a])?,
                min: number(&mins[a])?,
                direction: if directions[a].is_empty() { None } else { vector(&directions[a])? },
                kind: kinds[a].to_ascii_lowercase(),
                label: labels[a].clone(),
                units: units[a].clone(),
            })
        })
        .collect()
}

fn whole<T: std::str::FromStr>(text: &str) -> Result<T> {
    text.trim()
        .parse()
        .map_err(|_| Error::corrupt(format!("expected a whole number in the header, found `{text}`")))
}

fn number(text: &str) -> Result<Option<f64>> {
    let value = match text {
        "" => return Ok(None),
        "nan" | "NaN" | "???" | "none" => f64::NAN,
        _ => text
            .parse()
            .map_err(|_| Error::corrupt(format!("expected a number in the header, found `{text}`")))?,
    };
    Ok(Some(value).filter(|v| v.is_finite()))
}

/// `none` or `(1,0,0)`, one per axis; blanks may stand within the parentheses.
fn vectors(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = if rest.starts_with('(') {
            rest.find(')').map_or(rest.len(), |i| i + 1)
        } else {
            rest.find(char::is_whitespace).unwrap_or(rest.len())
        };
        found.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    found
}

/// `(1,0,0)`, or `none`.
fn vector(text: &str) -> Result<Option<Vec<f64>>> {
    if text == "none" {
        return Ok(None);
    }
    let inside = text.trim().strip_prefix('(').and_then(|t| t.strip_suffix(')'));
    let numbers: Option<Vec<f64>> = inside
        .and_then(|t| t.split(',').map(|v| v.trim().parse().ok().filter(|v: &f64| v.is_finite())).collect());
    match numbers {
        Some(numbers) if (1..=3).contains(&numbers.len()) => Ok(Some(numbers)),
        _ => Err(Error::corrupt(format!("expected a vector `(x,y,z)` of finite numbers, found `{text}`"))),
    }
}

/// `"mm" "mm"`, with `\"` inside quotes; words without quotes are taken too.
fn quoted(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        let (item, after) = if first == '"' {
            let inside = &rest[1..];
            let end = inside.match_indices('"').map(|(i, _)| i).find(|&i| !inside[..i].ends_with('\\'));
            end.map_or((inside, ""), |i| (&inside[..i], &inside[i + 1..]))
        } else {
            rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()))
        };
        found.push(item.replace("\\\"", "\""));
        rest = after.trim_start();
    }
    found
}

fn unquoted(text: &str) -> String {
    text.trim_matches('"').to_owned()
}
