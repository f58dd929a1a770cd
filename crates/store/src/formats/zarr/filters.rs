//! Elements of chunks: numbers, strings, complex numbers, dates and structures; the filters of numcodecs, and the order of axes.
//!
//! `packing` undoes the last compressor first. The remaining steps are filters over elements, each with its output type, and the
//! order of the elements. The result has the form of this crate: numbers of one type, or strings as rows of bytes (UTF-8, padded by
//! zeros).

use array::{DType, ElementType, Error, Result, Scalar};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::nested::{NestedShards, element_count};
use super::packing::{name, unshuffled};
use super::transpose::{in_c_order, permuted};

/// Longest fixed text of an element, and largest structure, bytes.
const MAX_ITEM_BYTES: usize = 64 << 10;
/// Most fields of a structured element type of Zarr.
const MAX_STRUCT_FIELDS: usize = 256;
/// Most characters of an element type in an error.
const MAX_SHOWN_CHARS: usize = 80;
/// Bytes of a character of fixed Unicode text in a file; at most as many are needed in UTF-8.
const CHARACTER_BYTES: usize = 4;

/// Form of one element in a file, with its conversion.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ElementForm {
    /// A number.
    Number(DType),
    /// Number within an element of `item_bytes` bytes.
    Member { dtype: DType, offset: usize, item_bytes: usize },
    /// Bytes of text, padded by zeros.
    Bytes(usize),
    /// Characters of four bytes in this order, padded by zeros.
    Unicode { item_bytes: usize, is_big_endian: bool },
    /// Variable-length string, as rows of this number of bytes; zero until it is known.
    Variable(usize),
}

impl ElementForm {
    /// Bytes of an element in the file, if the form fixes them.
    fn item_bytes(&self) -> Option<usize> {
        match self {
            Self::Number(dtype) => Some(dtype.size_bytes()),
            Self::Member { item_bytes, .. } | Self::Bytes(item_bytes) | Self::Unicode { item_bytes, .. } => {
                Some(*item_bytes)
            }
            Self::Variable(_) => None,
        }
    }

    /// Element type of the result.
    pub(super) fn dtype(&self) -> DType {
        match self {
            Self::Number(dtype) | Self::Member { dtype, .. } => *dtype,
            _ => DType::native(ElementType::U8),
        }
    }

    /// Bytes of one text, which are an axis of their own.
    pub(super) fn text_bytes(&self) -> Option<usize> {
        match self {
            Self::Bytes(n) | Self::Unicode { item_bytes: n, .. } | Self::Variable(n) => Some((*n).max(1)),
            _ => None,
        }
    }

    /// Bytes of one element of the result.
    fn output_bytes(&self) -> usize {
        self.text_bytes().unwrap_or_else(|| self.dtype().size_bytes())
    }
}

/// View of an element as one array: its form, the ending of its name, and the units that its type defines.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ElementReading {
    pub(super) form: ElementForm,
    pub(super) ending: String,
    /// Units of time, the calendar's start, and a factor, of dates and durations.
    pub(super) time: Option<TimeType>,
}

/// Meaning of the integers of numpy's types of dates and durations.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TimeType {
    /// `nanoseconds`.
    pub(super) units: String,
    /// Since 1970, rather than a duration.
    pub(super) is_date: bool,
}

/// Integer for a missing time (numpy's `NaT`).
pub(super) const NOT_A_TIME: i64 = i64::MIN;

/// Lists the arrays that an element type gives: numbers and texts.
///
/// # Errors
/// `Unsupported`, naming the type.
pub(super) fn readings(document: &Value, is_v2: bool) -> Result<Vec<ElementReading>> {
    let dtype = document.get(if is_v2 { "dtype" } else { "data_type" }).unwrap_or(&Value::Null);
    let all = if is_v2 { of_v2(dtype, has_text_filter(document)) } else { of_v3(dtype) };
    let all = all.ok_or_else(|| Error::unsupported(format!("element type `{}`", short(dtype))))?;
    let fits = |r: &ElementReading| r.form.item_bytes().is_none_or(|n| (1..=MAX_ITEM_BYTES).contains(&n));
    if all.len() > MAX_STRUCT_FIELDS {
        return Err(Error::unsupported(format!(
            "element type with {} numbers and texts; at most {MAX_STRUCT_FIELDS} are read",
            all.len()
        )));
    }
    if !all.iter().all(fits) {
        return Err(Error::unsupported(format!("element type of no or more than {MAX_ITEM_BYTES} bytes")));
    }
    Ok(all)
}

fn short(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.chars().take(MAX_SHOWN_CHARS).collect()
}

fn one(form: ElementForm) -> ElementReading {
    ElementReading { form, ending: String::new(), time: None }
}

fn has_text_filter(document: &Value) -> bool {
    let filters = document.get("filters").and_then(Value::as_array);
    filters.into_iter().flatten().any(|filter| name(filter) == "vlen-utf8")
}

/// numpy's names: `<f4`, `<U5`, `|S3`, `<M8[ns]`, `<c8`, and lists of them with names.
fn of_v2(dtype: &Value, has_text_filter: bool) -> Option<Vec<ElementReading>> {
    if let Some(fields) = dtype.as_array() {
        return structure(fields.iter().map(|field| {
            let field = field.as_array()?;
            let [name, dtype] = &field[..] else { return None };
            Some((name.as_str()?.to_owned(), of_v2(dtype, false)?))
        }));
    }
    let text = dtype.as_str()?;
    if let Ok(dtype) = text.parse() {
        return Some(vec![one(ElementForm::Number(dtype))]);
    }
    if text == "|O" {
        return has_text_filter.then(|| vec![one(ElementForm::Variable(0))]);
    }
    let (order, kind, rest) = (text.get(..1)?, text.get(1..2)?, text.get(2..)?);
    let is_big_endian = order == ">";
    let swapped = |code: &str| format!("{}{code}", if is_big_endian { ">" } else { "<" }).parse().ok();
    match kind {
        "S" => Some(vec![one(ElementForm::Bytes(rest.parse().ok()?))]),
        "U" => {
            let item_bytes = rest.parse::<usize>().ok()?.checked_mul(CHARACTER_BYTES)?;
            Some(vec![one(ElementForm::Unicode { item_bytes, is_big_endian })])
        }
        "c" if rest == "8" => complex(swapped("f4")?),
        "c" if rest == "16" => complex(swapped("f8")?),
        "M" | "m" => {
            let inside = rest.strip_prefix('8')?;
            let inside = inside.strip_prefix('[').and_then(|r| r.strip_suffix(']')).unwrap_or("generic");
            let unit = inside.trim_start_matches(|c: char| c.is_ascii_digit());
            let count = &inside[..inside.len() - unit.len()];
            time(swapped("i8")?, unit, if count.is_empty() { 1 } else { count.parse().ok()? }, kind == "M")
        }
        _ => None,
    }
}

fn of_v3(dtype: &Value) -> Option<Vec<ElementReading>> {
    let kind = dtype.as_str().or_else(|| dtype.get("name")?.as_str())?;
    let number = |field: &str| dtype.pointer("/configuration").and_then(|c| c.get(field)?.as_u64());
    let bytes = || number("length_bytes").and_then(|n| usize::try_from(n).ok());
    let native = |element: ElementType| DType::native(element);
    match kind {
        "string" => Some(vec![one(ElementForm::Variable(0))]),
        "null_terminated_bytes" => Some(vec![one(ElementForm::Bytes(bytes()?))]),
        "fixed_length_utf32" => {
            let (item_bytes, is_big_endian) = (bytes()?, cfg!(target_endian = "big"));
            Some(vec![one(ElementForm::Unicode { item_bytes, is_big_endian })])
        }
        "complex64" | "complex_float32" => complex(native(ElementType::F32)),
        "complex128" | "complex_float64" => complex(native(ElementType::F64)),
        "numpy.datetime64" | "numpy.timedelta64" => {
            let unit = dtype.pointer("/configuration/unit").and_then(Value::as_str).unwrap_or("generic");
            let count = number("scale_factor").unwrap_or(1);
            time(native(ElementType::I64), unit, count, kind == "numpy.datetime64")
        }
        "structured" | "struct" => {
            let fields = dtype.pointer("/configuration/fields").and_then(Value::as_array)?;
            structure(fields.iter().map(|field| match field.as_array().map(Vec::as_slice) {
                Some([name, dtype]) => Some((name.as_str()?.to_owned(), of_v3(dtype)?)),
                _ => Some((field.get("name")?.as_str()?.to_owned(), of_v3(field.get("data_type")?)?)),
            }))
        }
        kind => {
            let element = ElementType::ALL.into_iter().find(|e| e.name() == kind)?;
            Some(vec![one(ElementForm::Number(native(element)))])
        }
    }
}

fn complex(part: DType) -> Option<Vec<ElementReading>> {
    let size = part.size_bytes();
    let member = |(offset, ending): (usize, &str)| ElementReading {
        form: ElementForm::Member { dtype: part, offset, item_bytes: 2 * size },
        ending: ending.into(),
        time: None,
    };
    Some([(0, ".r"), (size, ".i")].map(member).to_vec())
}

fn time(dtype: DType, unit: &str, count: u64, is_date: bool) -> Option<Vec<ElementReading>> {
    let units = match unit {
        "ns" => "nanoseconds",
        "us" | "\u{3bc}s" => "microseconds",
        "ms" => "milliseconds",
        "s" => "seconds",
        "m" => "minutes",
        "h" => "hours",
        "D" => "days",
        // Of no fixed length, or shorter than any reader takes: integers with the type's own word.
        _ => "",
    };
    // Readers take no multiples of a unit.
    let units = if units.is_empty() || count != 1 { format!("{count} {unit}") } else { units.to_owned() };
    let time = Some(TimeType { units, is_date });
    Some(vec![ElementReading { form: ElementForm::Number(dtype), ending: String::new(), time }])
}

/// Members one behind another, without gaps. A member that is itself several things, or text, is not read.
fn structure(
    fields: impl Iterator<Item = Option<(String, Vec<ElementReading>)>>,
) -> Option<Vec<ElementReading>> {
    let fields = fields.take(MAX_STRUCT_FIELDS + 1).collect::<Option<Vec<_>>>()?;
    if fields.len() > MAX_STRUCT_FIELDS {
        return None;
    }
    // Sizes are bounded before they are added: the document may contain any number.
    let size = |readings: &[ElementReading]| {
        readings.first().and_then(|r| r.form.item_bytes()).filter(|&size_bytes| size_bytes <= MAX_ITEM_BYTES)
    };
    let item_bytes = fields.iter().map(|(_, readings)| size(readings)).sum::<Option<usize>>()?;
    let (mut at, mut all) = (0, Vec::new());
    for (name, readings) in fields {
        for reading in &readings {
            let (dtype, within) = match &reading.form {
                ElementForm::Number(dtype) => (*dtype, 0),
                ElementForm::Member { dtype, offset, .. } => (*dtype, *offset),
                _ => continue,
            };
            let form = ElementForm::Member { dtype, offset: at + within, item_bytes };
            all.push(ElementReading {
                form,
                ending: format!(".{name}{}", reading.ending),
                time: reading.time.clone(),
            });
        }
        at += size(&readings)?;
    }
    (!all.is_empty()).then_some(all)
}

/// Filter of the elements of a chunk (an array-to-array codec).
#[derive(Clone, Debug, PartialEq)]
enum ElementFilter {
    /// Differences of neighbors.
    Delta { from: DType, to: DType },
    /// `stored / scale + offset`.
    Scaled { from: DType, to: DType, scale: f64, offset: f64 },
    /// Another type of numbers.
    Cast { from: DType, to: DType },
    /// Eight booleans in a byte, after a byte with the number of unused bits of the last one.
    Bits,
    /// Byte shuffle of elements.
    Shuffled(usize),
}

/// Element type, order and array-to-array filters of a chunk whose bytes are decompressed.
#[derive(Debug)]
pub(super) struct FilterChain {
    /// Element type as stored.
    form: ElementForm,
    /// Element type of the result; in version 3 in the byte order of the host.
    dtype: DType,
    /// Filters in the order in which they are undone.
    filters: Vec<ElementFilter>,
    /// Order of the axes of the chunk in the file; `None` for C order.
    order: Option<Vec<usize>>,
    /// Fill value as an element of the result.
    fill: Vec<u8>,
    /// Shards within the chunk, if there are any.
    nested: Option<Box<NestedShards>>,
}

impl FilterChain {
    /// Makes the chain of an array of version 2.
    ///
    /// # Errors
    /// `Unsupported`, naming a filter.
    pub(super) fn of_v2(document: &Value, form: ElementForm, axes: usize) -> Result<Self> {
        let listed = document.get("filters").and_then(Value::as_array);
        let filters = filters(listed.into_iter().flatten(), &form)?;
        let is_fortran = axes > 1 && document.get("order").and_then(Value::as_str) == Some("F");
        let order = is_fortran.then(|| (0..axes).rev().collect());
        let fill = fill(document.get("fill_value"), &form, true)?;
        Ok(Self { dtype: form.dtype(), form, filters, order, fill, nested: None })
    }

    /// Makes the chain of the remaining codecs of a chunk of version 3 of `shape` elements, which lies in `depth` nested shards.
    ///
    /// # Errors
    /// `Unsupported`, naming a codec.
    pub(super) fn of_v3(
        codecs: &[Value],
        fill_value: Option<&Value>,
        form: ElementForm,
        shape: &[u64],
        depth: usize,
    ) -> Result<Self> {
        let Some((last, before)) = codecs.split_last() else {
            return Err(Error::corrupt("expected codecs of an array, found none"));
        };
        let is_transpose = |codec: &&Value| name(codec) == "transpose";
        // Filters are undone before axes are put in order, which gives other sums of differences.
        let first_delta = before.iter().position(|codec| name(codec) == "delta");
        if first_delta < before.iter().rposition(|codec| is_transpose(&codec)) && first_delta.is_some() {
            return Err(Error::unsupported("filter `delta` before a transposition"));
        }
        let mut order: Option<Vec<usize>> = None;
        for codec in before.iter().filter(is_transpose) {
            let axes = permutation(codec, shape.len())?;
            order = Some(match order {
                Some(first) => axes.iter().map(|&axis| first[axis]).collect(),
                None => axes,
            });
        }
        let (dtype, fill) = (form.dtype(), fill(fill_value, &form, false)?);
        let is_variable = matches!(form, ElementForm::Variable(_));
        let (form, nested) = match name(last) {
            "bytes" if !is_variable => (ordered(form, last), None),
            "vlen-utf8" if is_variable => (form, None),
            "sharding_indexed" if !is_variable => {
                let shape = permuted(shape, order.as_deref());
                let nested = NestedShards::of(last, fill_value, form.clone(), &shape, depth)?;
                (form, Some(Box::new(nested)))
            }
            other => return Err(Error::unsupported(format!("codec `{other}` of this element type"))),
        };
        let filters = filters(before.iter().filter(|codec| !is_transpose(codec)), &form)?;
        if nested.is_some() && !filters.is_empty() {
            return Err(Error::unsupported("filters before shards"));
        }
        Ok(Self { form, dtype, filters, order, fill, nested })
    }

    /// Element type of the result.
    pub(super) fn dtype(&self) -> DType {
        self.dtype
    }

    /// Whether the file has the elements in the form and order of the result.
    pub(super) fn is_plain(&self) -> bool {
        self.form == ElementForm::Number(self.dtype)
            && self.filters.is_empty()
            && self.order.is_none()
            && self.nested.is_none()
    }

    /// Depth of the nested shards in a chunk.
    pub(super) fn depth(&self) -> u64 {
        self.nested.as_ref().map_or(0, |nested| 1 + nested.chain().depth())
    }

    /// Fill value as an element of the result.
    pub(super) fn fill(&self) -> &[u8] {
        &self.fill
    }

    pub(super) fn form(&self) -> &ElementForm {
        &self.form
    }

    /// Sets the length of the longest string.
    pub(super) fn set_text_bytes(&mut self, longest: usize) {
        if let ElementForm::Variable(width) = &mut self.form {
            *width = longest.max(1);
            self.fill.resize(*width, 0);
        }
    }

    /// Most bytes of a chunk of `elements` elements in the file, before compression; `None` for variable-length strings.
    pub(super) fn stored_bytes(&self, elements: usize) -> Option<usize> {
        let own = self.form.item_bytes()?.checked_mul(elements)?;
        if let Some(nested) = &self.nested {
            return own.checked_add(nested.index_bytes());
        }
        // The types of filters are of eight bytes at most, and so may be those of the elements.
        Some(if self.filters.is_empty() {
            own
        } else {
            own.max(elements.saturating_mul(8)).saturating_add(1)
        })
    }

    /// Splits a chunk of variable-length strings.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(super) fn texts<'a>(&self, bytes: &'a [u8], elements: usize) -> Result<Vec<&'a [u8]>> {
        let corrupt = || Error::corrupt("expected texts with their lengths, found a chunk that is cut short");
        let (count, mut rest) = bytes.split_first_chunk::<4>().ok_or_else(corrupt)?;
        let count = u32::from_le_bytes(*count) as usize;
        if count != elements {
            return Err(Error::corrupt(format!("expected {elements} texts in a chunk, found {count}")));
        }
        let mut texts = Vec::with_capacity(elements.min(bytes.len()));
        for _ in 0..count {
            let (length, after) = rest.split_first_chunk::<4>().ok_or_else(corrupt)?;
            let length = u32::from_le_bytes(*length) as usize;
            texts.push(after.get(..length).ok_or_else(corrupt)?);
            rest = &after[length..];
        }
        Ok(texts)
    }

    /// Decodes a chunk of `shape` elements to C order.
    ///
    /// # Errors
    /// `Corrupt` if the number of elements is wrong.
    pub(super) fn undo(&self, stored: Vec<u8>, shape: &[u64]) -> Result<Vec<u8>> {
        let elements =
            element_count(shape).ok_or_else(|| Error::too_large("a chunk larger than the memory"))?;
        let mut bytes = stored;
        if let Some(nested) = &self.nested {
            bytes = nested.undo(&bytes, &permuted(shape, self.order.as_deref()))?;
        } else if let ElementForm::Variable(width) = self.form {
            bytes = rows(&self.texts(&bytes, elements)?, width)?;
        } else {
            for filter in &self.filters {
                bytes = filter.undo(bytes, elements)?;
            }
            let expected = self.form.item_bytes().unwrap_or(1) * elements;
            if bytes.len() != expected {
                let found = bytes.len();
                return Err(Error::corrupt(format!("expected a chunk of {expected} bytes, found {found}")));
            }
            bytes = self.converted(bytes);
            if self.form.dtype().order() != self.dtype.order() {
                self.form.dtype().to_native(&mut bytes);
            }
        }
        match &self.order {
            Some(order) => Ok(in_c_order(&bytes, shape, order, self.form.output_bytes())),
            None => Ok(bytes),
        }
    }

    fn converted(&self, bytes: Vec<u8>) -> Vec<u8> {
        match self.form {
            ElementForm::Number(_) | ElementForm::Bytes(_) | ElementForm::Variable(_) => bytes,
            ElementForm::Member { dtype, offset, item_bytes } => {
                let member = |item: &[u8]| item[offset..offset + dtype.size_bytes()].to_vec();
                bytes.chunks_exact(item_bytes).flat_map(member).collect()
            }
            ElementForm::Unicode { item_bytes, is_big_endian } => {
                let mut out = Vec::with_capacity(bytes.len());
                for (number, item) in bytes.chunks_exact(item_bytes).enumerate() {
                    out.extend(utf8(item, is_big_endian).bytes());
                    out.resize((number + 1) * item_bytes, 0);
                }
                out
            }
        }
    }
}

/// Characters of four bytes as text; zeros at the end are none.
fn utf8(item: &[u8], is_big_endian: bool) -> String {
    let number =
        |raw: &[u8; 4]| if is_big_endian { u32::from_be_bytes(*raw) } else { u32::from_le_bytes(*raw) };
    let text: String = item
        .as_chunks::<CHARACTER_BYTES>()
        .0
        .iter()
        .map(|raw| char::from_u32(number(raw)).unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    text.trim_end_matches('\0').to_owned()
}

/// Texts as rows of one length.
fn rows(texts: &[&[u8]], width: usize) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(texts.len().saturating_mul(width));
    for (number, text) in texts.iter().enumerate() {
        if text.len() > width {
            let found = text.len();
            return Err(Error::corrupt(format!(
                "expected texts of at most {width} bytes as when the store was opened, found {found}"
            )));
        }
        out.extend_from_slice(text);
        out.resize((number + 1) * width, 0);
    }
    Ok(out)
}

/// The `bytes` codec states the byte order in version 3.
fn ordered(form: ElementForm, codec: &Value) -> ElementForm {
    let endian = codec.pointer("/configuration/endian").and_then(Value::as_str);
    let Some(endian) = endian else { return form };
    let order = if endian == "big" { array::ByteOrder::Big } else { array::ByteOrder::Little };
    match form {
        ElementForm::Number(dtype) => ElementForm::Number(DType::new(dtype.element(), order)),
        ElementForm::Member { dtype, offset, item_bytes } => {
            ElementForm::Member { dtype: DType::new(dtype.element(), order), offset, item_bytes }
        }
        ElementForm::Unicode { item_bytes, .. } => {
            ElementForm::Unicode { item_bytes, is_big_endian: endian == "big" }
        }
        other => other,
    }
}

fn permutation(codec: &Value, axes: usize) -> Result<Vec<usize>> {
    let wrong = || Error::corrupt("expected a transposition that names every axis once");
    let listed = codec.pointer("/configuration/order").and_then(Value::as_array).ok_or_else(wrong)?;
    let number = |v: &Value| v.as_u64().and_then(|n| usize::try_from(n).ok());
    let order: Vec<usize> = listed.iter().map(number).collect::<Option<_>>().ok_or_else(wrong)?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted.iter().copied().eq(0..axes) { Ok(order) } else { Err(wrong()) }
}

/// Filters in the order in which they are undone.
fn filters<'a>(listed: impl Iterator<Item = &'a Value>, form: &ElementForm) -> Result<Vec<ElementFilter>> {
    let mut found = Vec::new();
    for codec in listed {
        found.extend(filter(codec, form)?);
    }
    found.reverse();
    Ok(found)
}

fn filter(codec: &Value, form: &ElementForm) -> Result<Option<ElementFilter>> {
    let field = |name: &str| codec.pointer("/configuration").unwrap_or(codec).get(name);
    let number = |name: &str| field(name).and_then(Value::as_f64);
    let unknown = || Error::unsupported(format!("filter `{}` as it is set here", short(codec)));
    // Types without a byte order are those of the elements, whose order they have.
    let dtype = |name: &str| field(name).and_then(Value::as_str).and_then(|text| text.parse::<DType>().ok());
    let own = match form {
        ElementForm::Number(dtype) => Some(*dtype),
        _ => None,
    };
    let to = dtype("dtype").or(own);
    Ok(Some(match name(codec) {
        "delta" => {
            let to = to.ok_or_else(unknown)?;
            ElementFilter::Delta { from: dtype("astype").unwrap_or(to), to }
        }
        "fixedscaleoffset" => {
            let to = to.ok_or_else(unknown)?;
            let from = dtype("astype").unwrap_or(to);
            let (scale, offset) =
                (number("scale").ok_or_else(unknown)?, number("offset").ok_or_else(unknown)?);
            ElementFilter::Scaled { from, to, scale, offset }
        }
        "quantize" => {
            let to = to.ok_or_else(unknown)?;
            ElementFilter::Cast { from: dtype("astype").unwrap_or(to), to }
        }
        "astype" => ElementFilter::Cast {
            from: dtype("encode_dtype").ok_or_else(unknown)?,
            to: dtype("decode_dtype").ok_or_else(unknown)?,
        },
        "packbits" => ElementFilter::Bits,
        "shuffle" => {
            let size = field("elementsize").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
            ElementFilter::Shuffled(size.filter(|n| (1..=MAX_ITEM_BYTES).contains(n)).ok_or_else(unknown)?)
        }
        // Filters that only change values when they are written, or that make strings.
        "bitround" | "vlen-utf8" => return Ok(None),
        other => return Err(Error::unsupported(format!("filter `{other}`"))),
    }))
}

impl ElementFilter {
    fn undo(&self, bytes: Vec<u8>, elements: usize) -> Result<Vec<u8>> {
        match self {
            Self::Delta { from, to } => Ok(summed(&bytes, *from, *to)),
            Self::Scaled { from, to, scale, offset } => {
                Ok(mapped(&bytes, *from, *to, |v| Scalar::Float(v.as_f64() / scale + offset)))
            }
            Self::Cast { from, to } => Ok(mapped(&bytes, *from, *to, |v| v)),
            Self::Bits => bits(&bytes, elements),
            Self::Shuffled(size) => Ok(unshuffled(&bytes, *size)),
        }
    }
}

/// Sums of all elements so far, in the type that is given, as numpy adds: integers without a carry.
fn summed(bytes: &[u8], from: DType, to: DType) -> Vec<u8> {
    let (mut float, mut integer) = (0.0, 0u64);
    mapped(bytes, from, to, |value| {
        let step = match value {
            Scalar::Unsigned(v) => v,
            Scalar::Signed(v) => v.cast_unsigned(),
            #[expect(clippy::cast_possible_truncation, reason = "as numpy turns floats into integers")]
            Scalar::Float(v) => (v as i64).cast_unsigned(),
        };
        integer = integer.wrapping_add(step);
        if to.element().is_float() {
            float = rounded(float + value.as_f64(), to);
            return Scalar::Float(float);
        }
        Scalar::Unsigned(integer)
    })
}

/// A float as an element of this type has it.
#[expect(clippy::cast_possible_truncation, reason = "rounded to the type's precision")]
fn rounded(value: f64, dtype: DType) -> f64 {
    match dtype.element() {
        ElementType::F32 => f64::from(value as f32),
        ElementType::F16 => half::f16::from_f64(value).to_f64(),
        _ => value,
    }
}

fn mapped(bytes: &[u8], from: DType, to: DType, mut map: impl FnMut(Scalar) -> Scalar) -> Vec<u8> {
    let count = bytes.len() / from.size_bytes();
    let mut out = Vec::with_capacity(count * to.size_bytes());
    for number in 0..count {
        let Some(value) = from.scalar_at(bytes, number) else { break };
        put(&mut out, map(value), to);
    }
    out
}

/// Appends a number as one of this type: integers keep their low bits, floats lose their fractions, as numpy casts.
#[expect(clippy::cast_possible_truncation, reason = "as numpy casts")]
pub(super) fn put(out: &mut Vec<u8>, value: Scalar, dtype: DType) {
    let size = dtype.size_bytes();
    let mut raw = match (dtype.element(), value) {
        (ElementType::F32, _) => u64::from((value.as_f64() as f32).to_bits()),
        (ElementType::F16, _) => u64::from(half::f16::from_f64(value.as_f64()).to_bits()),
        (ElementType::F64, _) => value.as_f64().to_bits(),
        (_, Scalar::Unsigned(v)) => v,
        (_, Scalar::Signed(v)) => v.cast_unsigned(),
        (ElementType::U64, Scalar::Float(v)) if v >= 0.0 => {
            #[expect(clippy::cast_sign_loss, reason = "checked")]
            let integer = v as u64;
            integer
        }
        (_, Scalar::Float(v)) => (v as i64).cast_unsigned(),
    }
    .to_le_bytes();
    if dtype.order() == array::ByteOrder::Big {
        raw[..size].reverse();
    }
    out.extend_from_slice(&raw[..size]);
}

/// Undoes numcodecs' PackBits: a byte with the number of unused bits at the end, then eight booleans in a byte, first bit first.
fn bits(bytes: &[u8], elements: usize) -> Result<Vec<u8>> {
    let packed = bytes.get(1..).filter(|packed| packed.len() == elements.div_ceil(8));
    let packed = packed.ok_or_else(|| {
        Error::corrupt(format!("expected {elements} truth values in bits, found {} bytes", bytes.len()))
    })?;
    Ok((0..elements).map(|i| packed[i / 8] >> (7 - i % 8) & 1).collect())
}

/// Fill value of a document for missing chunks, as an element of the result.
fn fill(value: Option<&Value>, form: &ElementForm, is_v2: bool) -> Result<Vec<u8>> {
    let wrong = |value: &Value| Error::unsupported(format!("fill value `{}`", short(value)));
    let mut out = match (value, form) {
        (None | Some(Value::Null), _) => Vec::new(),
        (Some(value), ElementForm::Number(dtype)) => number(value, *dtype).ok_or_else(|| wrong(value))?,
        (Some(Value::String(text)), ElementForm::Variable(_)) => text.clone().into_bytes(),
        // numpy's text of no value, which zarr-python writes for objects.
        (Some(Value::Number(n)), ElementForm::Variable(_)) if n.as_u64() == Some(0) => Vec::new(),
        (Some(Value::String(text)), ElementForm::Bytes(_)) => {
            STANDARD.decode(text).map_err(|_| wrong(&text[..].into()))?
        }
        (Some(Value::String(text)), ElementForm::Unicode { .. }) => {
            text.trim_end_matches('\0').as_bytes().to_vec()
        }
        (Some(value), ElementForm::Member { dtype, offset, item_bytes }) => {
            member_fill(value, *dtype, *offset, *item_bytes, is_v2).ok_or_else(|| wrong(value))?
        }
        (Some(Value::Number(n)), ElementForm::Bytes(_) | ElementForm::Unicode { .. })
            if n.as_u64() == Some(0) =>
        {
            Vec::new()
        }
        (Some(value), _) => return Err(wrong(value)),
    };
    match form {
        ElementForm::Variable(0) => {}
        _ => out.resize(
            form.output_bytes().max(if matches!(form, ElementForm::Variable(_)) { out.len() } else { 0 }),
            0,
        ),
    }
    Ok(out)
}

/// Fill value of a member: of a complex number, two numbers; of a structure, the base64 text of its bytes.
fn member_fill(
    value: &Value,
    dtype: DType,
    offset: usize,
    item_bytes: usize,
    is_v2: bool,
) -> Option<Vec<u8>> {
    match value {
        Value::Array(parts) if item_bytes == 2 * dtype.size_bytes() && parts.len() == 2 => {
            number(&parts[usize::from(offset > 0)], dtype)
        }
        Value::String(text) => {
            let raw = STANDARD.decode(text).ok().filter(|raw| raw.len() == item_bytes)?;
            Some(raw[offset..offset + dtype.size_bytes()].to_vec())
        }
        // The same number for every member, or its real part alone.
        Value::Number(_) if offset == 0 || !is_v2 => number(value, dtype),
        Value::Number(n) => (n.as_f64() == Some(0.0)).then(Vec::new),
        _ => None,
    }
}

/// A number of a document as one element; words and bits in hexadecimal digits for floats that JSON has not.
fn number(value: &Value, dtype: DType) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let scalar = match value {
        Value::Bool(truth) => Scalar::Unsigned(u64::from(*truth)),
        Value::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(v), _) => Scalar::Signed(v),
            (None, Some(v)) => Scalar::Unsigned(v),
            (None, None) => Scalar::Float(n.as_f64()?),
        },
        Value::String(text) => match (array::float_of_text(text), text.strip_prefix("0x")) {
            (Some(float), _) => Scalar::Float(float),
            (None, Some(digits)) if digits.len() == 2 * dtype.size_bytes() => {
                let raw = u64::from_str_radix(digits, 16).ok()?.to_be_bytes();
                out.extend_from_slice(&raw[8 - dtype.size_bytes()..]);
                if dtype.order() == array::ByteOrder::Little {
                    out.reverse();
                }
                return Some(out);
            }
            _ if text == "NaT" => Scalar::Signed(NOT_A_TIME),
            _ => return None,
        },
        _ => return None,
    };
    put(&mut out, scalar, dtype);
    Some(out)
}
