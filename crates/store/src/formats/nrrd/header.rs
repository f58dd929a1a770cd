//! Text header of NRRD: `field: value` lines, `key:=value` lines, comments.

use std::collections::BTreeMap;

use array::{ByteOrder, DType, ElementType, Error, MAX_AXES, Result};

/// Most key/value pairs of one NRRD header.
const MAX_KEYS: usize = 4096;
/// Most data files of one NRRD header.
pub(super) const MAX_DATA_FILES: usize = 65_536;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NrrdEncoding {
    Raw,
    Gzip,
    Bzip2,
    /// Numbers as text.
    Ascii,
    /// Two digits a byte.
    Hex,
}

/// Type of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NrrdType {
    Numbers(DType),
    /// Opaque elements of a given number of bytes.
    Blocks,
}

/// Location of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DataLocation {
    /// In the same file, after the header.
    Attached,
    /// In one file beside the header.
    Apart(String),
    /// In several files, one after another.
    Several(Vec<String>),
}

/// Position of samples relative to the ends of their axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NrrdCentering {
    #[default]
    Unknown,
    /// The ends of the axis are the middles of the first and the last sample.
    Node,
    /// The ends of the axis are the borders of the first and the last sample.
    Cell,
}

/// Lines and bytes to skip between header and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataSkip {
    pub(super) lines: u64,
    /// `None`: the data ends with the file.
    pub(super) bytes: Option<u64>,
}

/// Header fields of one axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AxisFields {
    pub(super) spacing: Option<f64>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) center: NrrdCentering,
    /// Step in space, in the header's own space.
    pub(super) direction: Option<Vec<f64>>,
    pub(super) kind: String,
    pub(super) label: String,
    pub(super) units: String,
}

/// A header that was understood. Axes in the file's order, fastest first.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NrrdHeader {
    pub(super) stored: NrrdType,
    pub(super) sizes: Vec<u64>,
    pub(super) axes: Vec<AxisFields>,
    pub(super) encoding: NrrdEncoding,
    pub(super) skip: DataSkip,
    pub(super) data: DataLocation,
    pub(super) space: String,
    pub(super) space_origin: Option<Vec<f64>>,
    pub(super) space_units: Vec<String>,
    pub(super) sample_units: String,
    /// Keys with their values, and fields that only people read.
    pub(super) attributes: BTreeMap<String, String>,
    /// The byte after the header.
    pub(super) end: usize,
}

impl NrrdHeader {
    /// Reads the header at the start of `head`.
    pub(super) fn parse(head: &[u8]) -> Result<Self> {
        let lines = HeaderLines::read(head)?;
        let sizes = sizes(&lines)?;
        let encoding = encoding(lines.need("encoding")?)?;
        Ok(Self {
            stored: stored(&lines, encoding)?,
            axes: axes(&lines, sizes.len())?,
            encoding,
            skip: skip(&lines)?,
            data: data(&lines, &sizes)?,
            space: lines.get("space").unwrap_or_default().to_ascii_lowercase(),
            space_origin: lines.get("spaceorigin").map(vector).transpose()?.flatten(),
            space_units: lines.get("spaceunits").map(quoted).unwrap_or_default(),
            sample_units: lines.get("sampleunits").map(unquoted).unwrap_or_default(),
            attributes: lines.attributes(),
            sizes,
            end: lines.end,
        })
    }
}

/// Fields and keys as text. Field names are lower case without blanks: `data file` is `datafile`.
struct HeaderLines {
    fields: BTreeMap<String, String>,
    keys: BTreeMap<String, String>,
    /// Names of files after `data file: LIST`, to the end of the header.
    list: Vec<String>,
    end: usize,
}

impl HeaderLines {
    fn read(head: &[u8]) -> Result<Self> {
        let mut lines =
            Self { fields: BTreeMap::new(), keys: BTreeMap::new(), list: Vec::new(), end: head.len() };
        let mut at = 0;
        for (number, line) in head.split_inclusive(|&b| b == b'\n').enumerate() {
            at += line.len();
            let text = String::from_utf8_lossy(line);
            let text = text.trim_end_matches(['\n', '\r']);
            match number {
                0 if matches!(
                    text.trim_end(),
                    "NRRD00.01" | "NRRD0001" | "NRRD0002" | "NRRD0003" | "NRRD0004" | "NRRD0005"
                ) => {}
                0 if text.starts_with("NRRD0") => {
                    return Err(Error::unsupported(format!(
                        "expected version 1 to 5 of NRRD, found `{text}`"
                    )));
                }
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
        if self.get("datafile").is_some_and(|file| file.starts_with("LIST")) {
            if self.list.len() >= MAX_DATA_FILES {
                return Err(too_many_files());
            }
            self.list.push(line.trim().to_owned());
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
        let shown = [
            "content",
            "space",
            "spacedimension",
            "measurementframe",
            "kinds",
            "centerings",
            "centers",
            "thicknesses",
            "number",
            "min",
            "max",
            "oldmin",
            "oldmax",
        ];
        let fields = shown.iter().filter_map(|&f| self.get(f).map(|v| (f.to_owned(), v.to_owned())));
        fields.chain(self.keys.clone()).collect()
    }
}

fn sizes(lines: &HeaderLines) -> Result<Vec<u64>> {
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

fn encoding(text: &str) -> Result<NrrdEncoding> {
    match text.to_ascii_lowercase().as_str() {
        "raw" => Ok(NrrdEncoding::Raw),
        "gzip" | "gz" => Ok(NrrdEncoding::Gzip),
        "bzip2" | "bz2" => Ok(NrrdEncoding::Bzip2),
        "ascii" | "text" | "txt" => Ok(NrrdEncoding::Ascii),
        "hex" => Ok(NrrdEncoding::Hex),
        other => Err(Error::unsupported(format!(
            "expected the encoding raw, gzip, bzip2, ascii or hex, found `{other}`"
        ))),
    }
}

fn stored(lines: &HeaderLines, encoding: NrrdEncoding) -> Result<NrrdType> {
    let text = lines.need("type")?.to_ascii_lowercase();
    if text == "block" {
        return Ok(NrrdType::Blocks);
    }
    let element = element(&text)?;
    // Text has no order of bytes: it is read into this host's.
    let order = if encoding == NrrdEncoding::Ascii { ByteOrder::NATIVE } else { byte_order(lines, element)? };
    Ok(NrrdType::Numbers(DType::new(element, order)))
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

fn byte_order(lines: &HeaderLines, element: ElementType) -> Result<ByteOrder> {
    match lines.get("endian").map(str::to_ascii_lowercase).as_deref() {
        Some("little") => Ok(ByteOrder::Little),
        Some("big") => Ok(ByteOrder::Big),
        None if element.size_bytes() == 1 => Ok(ByteOrder::Little),
        other => Err(Error::corrupt(format!(
            "expected `endian: little` or `endian: big`, found `{}`",
            other.unwrap_or("none")
        ))),
    }
}

fn skip(lines: &HeaderLines) -> Result<DataSkip> {
    let count = lines.get("lineskip").map_or(Ok(0), whole)?;
    let bytes = match lines.get("byteskip") {
        Some("-1") => None,
        Some(text) => Some(whole(text)?),
        None => Some(0),
    };
    Ok(DataSkip { lines: count, bytes })
}

fn data(lines: &HeaderLines, sizes: &[u64]) -> Result<DataLocation> {
    let Some(name) = lines.get("datafile") else { return Ok(DataLocation::Attached) };
    let words: Vec<&str> = name.split_whitespace().collect();
    let (names, dimensions) = match words[..] {
        ["LIST"] => (lines.list.clone(), sizes.len() - 1),
        ["LIST", dimensions] => (lines.list.clone(), whole(dimensions)?),
        [pattern, first, last, step] if pattern.contains('%') => {
            (numbered(pattern, [first, last, step])?, sizes.len() - 1)
        }
        [pattern, first, last, step, dimensions] if pattern.contains('%') => {
            (numbered(pattern, [first, last, step])?, whole(dimensions)?)
        }
        _ => return Ok(DataLocation::Apart(name.to_owned())),
    };
    let count = names.len() as u64;
    // Each file holds this number of the fastest axes completely, or, with all of them, a part of the slowest one.
    let expected = match sizes.get(dimensions.max(1)..) {
        Some([]) => sizes.last().copied().filter(|&n| count > 0 && n % count == 0).map(|_| count),
        Some(slower) => slower.iter().try_fold(1u64, |n, &size| n.checked_mul(size)),
        None => None,
    };
    if expected == Some(count) && count > 0 {
        return Ok(DataLocation::Several(names));
    }
    Err(Error::corrupt(format!(
        "expected as many data files as parts of {dimensions} dimensions make up the sizes {sizes:?}, found {count}"
    )))
}

/// Names that a pattern of C's `printf` gives for numbers from the first to the last.
fn numbered(pattern: &str, range: [&str; 3]) -> Result<Vec<String>> {
    let [first, last, step]: [i64; 3] = [whole(range[0])?, whole(range[1])?, whole(range[2])?];
    let number = PrintfConversion::parse(pattern).ok_or_else(|| {
        Error::corrupt(format!(
            "expected one conversion such as `%d` or `%03d` in the name of data files, found `{pattern}`"
        ))
    })?;
    // No division by zero, and none of the smallest number by -1.
    let steps = last.checked_sub(first).and_then(|length| length.checked_div(step)).unwrap_or(-1);
    let Ok(steps) = u64::try_from(steps) else {
        return Err(Error::corrupt(format!(
            "expected numbers of data files that lead from the first to the last, found {first} to {last} in steps of {step}"
        )));
    };
    if steps >= MAX_DATA_FILES as u64 {
        return Err(too_many_files());
    }
    Ok((0..=steps).map(|i| number.write(first + step * i64::try_from(i).unwrap_or(0))).collect())
}

fn too_many_files() -> Error {
    Error::corrupt(format!("expected at most {MAX_DATA_FILES} data files, found more"))
}

/// A text with one whole number in it, as `printf` writes it.
struct PrintfConversion<'a> {
    before: &'a str,
    width: usize,
    has_zeros: bool,
    after: &'a str,
}

impl<'a> PrintfConversion<'a> {
    /// Longest number in a name pattern of NRRD data files, characters.
    const MAX_NUMBER_WIDTH: usize = 64;

    fn parse(pattern: &'a str) -> Option<Self> {
        let (before, rest) = pattern.split_once('%')?;
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (digits, rest) = rest.split_at(end);
        let after = rest.strip_prefix(['d', 'i', 'u'])?;
        let width = if digits.is_empty() {
            0
        } else {
            digits.parse().ok().filter(|&n| n <= Self::MAX_NUMBER_WIDTH)?
        };
        (!after.contains('%')).then_some(Self { before, width, has_zeros: digits.starts_with('0'), after })
    }

    fn write(&self, number: i64) -> String {
        let Self { before, width, has_zeros, after } = *self;
        if has_zeros {
            format!("{before}{number:0width$}{after}")
        } else {
            format!("{before}{number:width$}{after}")
        }
    }
}

fn axes(lines: &HeaderLines, count: usize) -> Result<Vec<AxisFields>> {
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
    let (maxs, centers) = (texts("axismaxs", words)?, texts("centers", words)?);
    let centerings = texts("centerings", words)?;
    let (kinds, directions) = (texts("kinds", words)?, texts("spacedirections", vectors)?);
    let (labels, units) = (texts("labels", quoted)?, texts("units", quoted)?);
    (0..count)
        .map(|a| {
            Ok(AxisFields {
                spacing: number(&spacings[a])?,
                min: number(&mins[a])?,
                max: number(&maxs[a])?,
                center: [&centers[a], &centerings[a]].map(|text| center(text))
                    [usize::from(centers[a].is_empty())],
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

fn center(text: &str) -> NrrdCentering {
    match text.to_ascii_lowercase().as_str() {
        "node" => NrrdCentering::Node,
        "cell" => NrrdCentering::Cell,
        _ => NrrdCentering::Unknown,
    }
}

fn number(text: &str) -> Result<Option<f64>> {
    let value = match text.to_ascii_lowercase().as_str() {
        "" => return Ok(None),
        "nan" | "???" | "none" => f64::NAN,
        _ => text
            .parse()
            .map_err(|_| Error::corrupt(format!("expected a number in the header, found `{text}`")))?,
    };
    Ok(Some(value).filter(|v| v.is_finite()))
}

/// Parses `none` or `(1,0,0)`, one per axis; blanks are allowed within the parentheses.
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

/// `(1,0,0)`; nothing for `none`, or where no entry is a number.
fn vector(text: &str) -> Result<Option<Vec<f64>>> {
    if text.eq_ignore_ascii_case("none") || text == "???" {
        return Ok(None);
    }
    let inside = text.trim().strip_prefix('(').and_then(|t| t.strip_suffix(')'));
    let numbers: Option<Vec<f64>> =
        inside.and_then(|t| t.split(',').map(|v| v.trim().parse().ok()).collect());
    match numbers {
        Some(numbers) if !(1..=MAX_AXES).contains(&numbers.len()) => {}
        Some(numbers) if numbers.iter().all(|v| v.is_finite()) => return Ok(Some(numbers)),
        Some(numbers) if numbers.iter().all(|v| v.is_nan()) => return Ok(None),
        _ => {}
    }
    Err(Error::corrupt(format!(
        "expected a vector `(x,y,z)` of finite numbers, or of none at all, found `{text}`"
    )))
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
