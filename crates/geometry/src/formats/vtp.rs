//! VTK's PolyData in XML (`.vtp`): vertices, lines, strips and polygons, with values in text, base64 or raw bytes.

use std::collections::{HashMap, HashSet};

use array::{Error, Result};
use quick_xml::events::{BytesStart, Event};

use crate::bytes::{FileReader, NumberType, index};
use crate::formats::encoded::{DecodeBudget, XmlReader, attribute};
use crate::model::{check_count, omitted_values_note};
use crate::{Geometry, MAX_VERTICES};

/// Most arrays of a file.
const MAX_ARRAYS: usize = 4_096;
/// White space in appended base64 that is looked at beside as much as there are letters, bytes.
const MAX_SPACE_BYTES: usize = 4_096;
/// Most blocks of all compressed arrays of a file.
const MAX_BLOCKS: usize = 1 << 20;
/// Elements of cells in a piece.
const CELLS: [&str; 4] = ["Verts", "Lines", "Strips", "Polys"];

/// `DataArray` of a piece.
struct VtpArray {
    /// Number of the piece.
    piece: usize,
    /// Element that it stands in, such as `Points`; empty for those that are not read.
    section: &'static str,
    name: String,
    number_type: Option<NumberType>,
    components: usize,
    format: String,
    offset: usize,
    text: String,
}

/// Encoding of the arrays of a file.
#[derive(Default)]
struct VtpEncoding {
    is_big: bool,
    has_wide_header: bool,
    is_compressed: bool,
    is_raw: bool,
}

pub(crate) fn read(bytes: &[u8]) -> Result<Geometry> {
    // Raw bytes are no XML: they are cut off before it is parsed.
    let mark = b"<AppendedData";
    let appended_at = bytes.windows(mark.len()).position(|window| window == mark);
    let (head, appended) = bytes.split_at(appended_at.unwrap_or(bytes.len()));
    let head = std::str::from_utf8(head)
        .map_err(|_| Error::corrupt("expected a VTP file in UTF-8, found other bytes"))?;
    let mut encoding = VtpEncoding::default();
    let data = appended_data(appended, &mut encoding);
    let arrays = arrays(head, &mut encoding)?;
    let mut decoder = VtpDecoder { encoding, appended: data, budget: DecodeBudget::default(), blocks: 0 };
    let mut geometry = Geometry::default();
    let mut omitted_values = HashSet::new();
    // Arrays are in the order of their pieces, of which any number may be empty.
    for own in arrays.chunk_by(|array, next| array.piece == next.piece) {
        add_piece(own, &mut decoder, &mut geometry, &mut omitted_values)?;
    }
    if !omitted_values.is_empty() {
        geometry.notes.push(omitted_values_note(omitted_values.len()));
    }
    geometry.finished("VTK PolyData")
}

/// Returns the appended bytes, from behind their `_` on.
fn appended_data<'a>(appended: &'a [u8], encoding: &mut VtpEncoding) -> &'a [u8] {
    let Some(end) = appended.iter().position(|&byte| byte == b'>') else { return &[] };
    encoding.is_raw = String::from_utf8_lossy(&appended[..end]).contains("raw");
    let rest = &appended[end..];
    rest.iter().position(|&byte| byte == b'_').map_or(&[], |at| &rest[at + 1..])
}

fn arrays(head: &str, encoding: &mut VtpEncoding) -> Result<Vec<VtpArray>> {
    let mut reader = XmlReader::new(head);
    let mut arrays = Vec::new();
    let (mut sections, mut piece, mut is_in_array) = (Vec::<&str>::new(), 0usize, false);
    let mut is_poly_data = false;
    loop {
        match reader.next_event()? {
            Event::Start(start) => {
                let name = start.local_name();
                is_poly_data |= begin(name.as_ref(), &start, encoding)?;
                if name.as_ref() == "DataArray" {
                    arrays.push(VtpArray::of(&start, sections.last(), piece)?);
                    is_in_array = true;
                }
                sections.push(section(name.as_ref()));
            }
            Event::Empty(start) if start.local_name().as_ref() == "DataArray" => {
                arrays.push(VtpArray::of(&start, sections.last(), piece)?);
            }
            Event::End(end) => {
                piece += usize::from(end.local_name().as_ref() == "Piece");
                is_in_array = false;
                sections.pop();
            }
            Event::Text(part) if is_in_array => {
                if let Some(array) = arrays.last_mut() {
                    array.text.push_str(&part.xml10_content());
                }
            }
            Event::Eof => break,
            _ => {}
        }
        if arrays.len() > MAX_ARRAYS {
            return Err(Error::too_large(format!("expected at most {MAX_ARRAYS} arrays in a VTP file")));
        }
    }
    if !is_poly_data {
        return Err(Error::unsupported("expected `PolyData` in a VTP file, found another kind of VTK file"));
    }
    Ok(arrays)
}

/// Returns the name of an element of a piece whose arrays are read; empty for others.
fn section(name: &str) -> &'static str {
    CELLS.into_iter().chain(["Points", "PointData"]).find(|section| *section == name).unwrap_or_default()
}

/// Reads the attributes of the file; returns whether it is PolyData, if this element tells.
fn begin(name: &str, start: &BytesStart<'_>, encoding: &mut VtpEncoding) -> Result<bool> {
    if name != "VTKFile" {
        return Ok(name == "PolyData");
    }
    encoding.is_big = attribute(start, "byte_order")? == "BigEndian";
    encoding.has_wide_header = attribute(start, "header_type")? == "UInt64";
    let compressor = attribute(start, "compressor")?;
    encoding.is_compressed = compressor == "vtkZLibDataCompressor";
    if !encoding.is_compressed && !compressor.is_empty() {
        return Err(Error::unsupported(format!(
            "expected a VTP file that is not compressed, or by zlib, found `{compressor}`"
        )));
    }
    Ok(false)
}

impl VtpArray {
    fn of(start: &BytesStart<'_>, section: Option<&&'static str>, piece: usize) -> Result<Self> {
        let number_type = match &*attribute(start, "type")? {
            "Int8" => Some(NumberType::I8),
            "UInt8" => Some(NumberType::U8),
            "Int16" => Some(NumberType::I16),
            "UInt16" => Some(NumberType::U16),
            "Int32" => Some(NumberType::I32),
            "UInt32" => Some(NumberType::U32),
            "Int64" => Some(NumberType::I64),
            "UInt64" => Some(NumberType::U64),
            "Float32" => Some(NumberType::F32),
            "Float64" => Some(NumberType::F64),
            _ => None,
        };
        let number = |name: &str, other: usize| -> Result<usize> {
            Ok(attribute(start, name)?.trim().parse().unwrap_or(other))
        };
        Ok(Self {
            piece,
            section: section.copied().unwrap_or_default(),
            name: attribute(start, "Name")?,
            number_type,
            components: number("NumberOfComponents", 1)?,
            format: attribute(start, "format")?,
            offset: number("offset", 0)?,
            text: String::new(),
        })
    }
}

struct VtpDecoder<'a> {
    encoding: VtpEncoding,
    appended: &'a [u8],
    budget: DecodeBudget,
    /// Compressed blocks of all arrays until now.
    blocks: usize,
}

impl VtpDecoder<'_> {
    fn decode(&mut self, array: &VtpArray) -> Result<Vec<f64>> {
        let Some(number_type) = array.number_type else { return Ok(Vec::new()) };
        let bytes = match &*array.format {
            "appended" => {
                let from = self.appended.get(array.offset..).unwrap_or_default();
                if self.encoding.is_raw { self.unpack_raw(from)? } else { self.unpack_base64(from)? }
            }
            "binary" => self.unpack_base64(compact(&array.text).as_bytes())?,
            _ => return self.budget.numbers(&array.text),
        };
        self.budget.spend(bytes.len() / number_type.size_bytes() * size_of::<f64>())?;
        Ok(number_type.decode_all(&bytes, self.encoding.is_big))
    }

    fn header_number(&self, reader: &mut FileReader<'_>) -> Result<usize> {
        let number_type = if self.encoding.has_wide_header { NumberType::U64 } else { NumberType::U32 };
        index(reader.number(number_type)?).map(|count| count as usize)
    }

    fn unpack_raw(&mut self, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut reader = FileReader::new(bytes, self.encoding.is_big);
        let count = self.header_number(&mut reader)?;
        if !self.encoding.is_compressed {
            self.budget.spend(count)?;
            return Ok(reader.take(count)?.to_vec());
        }
        let sizes = self.block_sizes(&mut reader, count)?;
        self.inflate_blocks(&mut reader, &sizes)
    }

    /// Reads the sizes of compressed blocks, of which there are `count`.
    fn block_sizes(&mut self, reader: &mut FileReader<'_>, count: usize) -> Result<Vec<usize>> {
        self.blocks += count;
        check_count(self.blocks, MAX_BLOCKS, "compressed blocks")?;
        self.header_number(reader)?;
        self.header_number(reader)?;
        (0..count).map(|_| self.header_number(reader)).collect()
    }

    fn inflate_blocks(&mut self, reader: &mut FileReader<'_>, sizes: &[usize]) -> Result<Vec<u8>> {
        let mut inflated = Vec::new();
        for &size in sizes {
            inflated.append(&mut self.budget.inflate(reader.take(size)?)?);
        }
        Ok(inflated)
    }

    /// Decodes base64, of which `text` is the beginning or all; of compressed arrays, the header is encoded by itself. Looks only
    /// at the letters of the array: many arrays may begin in the same text.
    fn unpack_base64(&mut self, text: &[u8]) -> Result<Vec<u8>> {
        let word = if self.encoding.has_wide_header { 8 } else { 4 };
        // Letters of so many bytes, with padding.
        let letters = |bytes: usize| bytes.div_ceil(3).saturating_mul(4);
        let piece = |from: usize, bytes: usize| {
            let count = letters(bytes);
            let most = from.saturating_add(count).saturating_mul(2).saturating_add(MAX_SPACE_BYTES);
            let near = &text[..text.len().min(most)];
            let own = near.iter().copied().take_while(|letter| *letter != b'<');
            own.filter(|letter| !letter.is_ascii_whitespace()).skip(from).take(count).collect::<Vec<u8>>()
        };
        let first = self.budget.base64(&piece(0, word))?;
        let count = self.header_number(&mut FileReader::new(&first, self.encoding.is_big))?;
        if !self.encoding.is_compressed {
            let bytes = self.budget.base64(&piece(0, word.saturating_add(count)))?;
            let mut reader = FileReader::new(&bytes, self.encoding.is_big);
            reader.take(word)?;
            return Ok(reader.take(count)?.to_vec());
        }
        check_count(self.blocks + count, MAX_BLOCKS, "compressed blocks")?;
        let header_bytes = (3 + count) * word;
        let header = self.budget.base64(&piece(0, header_bytes))?;
        let mut reader = FileReader::new(&header, self.encoding.is_big);
        reader.take(word)?;
        let sizes = self.block_sizes(&mut reader, count)?;
        let data_bytes = sizes.iter().fold(0usize, |sum, &size| sum.saturating_add(size));
        let data = self.budget.base64(&piece(letters(header_bytes), data_bytes))?;
        self.inflate_blocks(&mut FileReader::new(&data, false), &sizes)
    }
}

/// Returns text without its white space.
fn compact(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_ascii_whitespace()).collect()
}

/// Adds the vertices, cells and values of a piece; `omitted_values` are the names of values that are left out.
fn add_piece<'a>(
    arrays: &'a [VtpArray],
    decoder: &mut VtpDecoder<'_>,
    geometry: &mut Geometry,
    omitted_values: &mut HashSet<&'a str>,
) -> Result<()> {
    let Some(points) = arrays.iter().find(|array| array.section == "Points") else { return Ok(()) };
    let positions = decoder.decode(points)?;
    let before = geometry.positions.len();
    check_count(before + positions.len() / 3, MAX_VERTICES, "vertices")?;
    geometry.positions.extend_from_slice(positions.as_chunks().0);
    let count = positions.len() / 3;
    drop(positions);
    add_cells(arrays, decoder, geometry, before)?;
    add_values(arrays, decoder, geometry, omitted_values, [before, count])
}

/// Adds the cells of a piece, whose first vertex is `before`.
fn add_cells(
    arrays: &[VtpArray],
    decoder: &mut VtpDecoder<'_>,
    geometry: &mut Geometry,
    before: usize,
) -> Result<()> {
    let mut cells = HashMap::<&str, [Vec<f64>; 2]>::new();
    for array in arrays {
        let place = match &*array.name {
            "connectivity" => 0,
            "offsets" => 1,
            _ => continue,
        };
        if CELLS.contains(&array.section) {
            cells.entry(array.section).or_default()[place] = decoder.decode(array)?;
        }
    }
    for section in CELLS {
        let Some([connectivity, offsets]) = cells.get(section) else { continue };
        let mut from = 0;
        for &end in offsets {
            let to = index(end)? as usize;
            let Some(own) = connectivity.get(from..to) else {
                return Err(Error::corrupt("expected increasing offsets of cells in a VTP file"));
            };
            from = to;
            let own = own.iter().map(|&vertex| Ok(index(vertex)?.saturating_add(as_index(before))));
            add_cell(section, &own.collect::<Result<Vec<_>>>()?, geometry)?;
        }
    }
    Ok(())
}

fn as_index(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn add_cell(section: &str, vertices: &[u32], geometry: &mut Geometry) -> Result<()> {
    match section {
        "Verts" => {
            check_count(geometry.points.len() + vertices.len(), MAX_VERTICES, "points")?;
            geometry.points.extend_from_slice(vertices);
        }
        "Lines" => geometry.add_line(vertices.iter().copied())?,
        "Polys" => geometry.add_polygon(vertices)?,
        _ => {
            for (number, triangle) in vertices.windows(3).enumerate() {
                let [a, b] = if number % 2 == 0 { [0, 1] } else { [1, 0] };
                geometry.add_polygon(&[triangle[a], triangle[b], triangle[2]])?;
            }
        }
    }
    Ok(())
}

/// Adds the values by vertex of a piece: vectors as their lengths, three bytes as colors. Values of further names than a geometry
/// keeps are not decoded, and their names added to `omitted`.
#[expect(clippy::cast_possible_truncation, reason = "values by vertex are f32")]
fn add_values<'a>(
    arrays: &'a [VtpArray],
    decoder: &mut VtpDecoder<'_>,
    geometry: &mut Geometry,
    omitted: &mut HashSet<&'a str>,
    [before, count]: [usize; 2],
) -> Result<()> {
    for array in arrays.iter().filter(|array| array.section == "PointData") {
        let components = array.components.clamp(1, 64);
        if array.number_type == Some(NumberType::U8) && (3..=4).contains(&components) {
            let numbers = decoder.decode(array)?;
            if numbers.len() == count * components {
                add_colors(numbers.chunks_exact(components), before, geometry);
            }
            continue;
        }
        if !geometry.has_room_for_values(&array.name) {
            omitted.insert(&array.name);
            continue;
        }
        let numbers = decoder.decode(array)?;
        if numbers.len() != count * components {
            continue;
        }
        let Some(into) = geometry.values_entry(&array.name, before + count)? else { continue };
        into.resize(before, f32::NAN);
        let length =
            |v: &[f64]| if let [one] = v { *one } else { v.iter().map(|v| v * v).sum::<f64>().sqrt() };
        into.extend(numbers.chunks_exact(components).map(|v| length(v) as f32));
    }
    if !geometry.colors.is_empty() {
        geometry.colors.resize(before + count, [255; 3]);
    }
    geometry.fill_values(before + count)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "colors are bytes")]
fn add_colors<'a>(colors: impl Iterator<Item = &'a [f64]>, before: usize, geometry: &mut Geometry) {
    geometry.colors.resize(before, [255; 3]);
    geometry.colors.extend(colors.map(|c| [c[0] as u8, c[1] as u8, c[2] as u8]));
}
