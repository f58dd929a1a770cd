//! PLY: vertices with properties, faces, edges; in text or binary of either order.

use array::{Error, Result};

use crate::bytes::{FileReader, NumberType, index};
use crate::model::{check_count, check_values, excerpt_of_bytes, omitted_values_note};
use crate::{Geometry, MAX_TRIANGLES, MAX_VALUE_NAMES, MAX_VERTICES, VertexValues};

/// Longest line of the header, bytes.
const MAX_LINE_BYTES: usize = 4096;
/// Most lines of the header, and so most properties.
const MAX_HEADER_LINES: usize = 512;
/// Most corners of a face.
const MAX_CORNERS: usize = 65_536;

struct PlyProperty {
    name: String,
    /// Type of the count, for a list.
    count_type: Option<NumberType>,
    number_type: NumberType,
}

#[derive(Default)]
struct PlyHeader {
    format: String,
    elements: Vec<PlyElement>,
    is_lps: bool,
}

struct PlyElement {
    name: String,
    count: usize,
    properties: Vec<PlyProperty>,
}

/// Rest of a file after its header.
enum PlyBody<'a> {
    Text(&'a [u8]),
    Binary(FileReader<'a>),
}

impl PlyBody<'_> {
    fn number(&mut self, number_type: NumberType) -> Result<f64> {
        match self {
            Self::Binary(reader) => reader.number(number_type),
            Self::Text(text) => {
                let word = next_word(text);
                if word.is_empty() {
                    return Err(Error::corrupt("expected more numbers, found the end of the file"));
                }
                std::str::from_utf8(word).ok().and_then(|word| word.parse().ok()).ok_or_else(|| {
                    Error::corrupt(format!("expected a number, found `{}`", excerpt_of_bytes(word)))
                })
            }
        }
    }
}

/// Takes the next word of a text; empty at its end.
fn next_word<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let trimmed = text.trim_ascii_start();
    let end = trimmed.iter().position(u8::is_ascii_whitespace).unwrap_or(trimmed.len());
    let (word, rest) = trimmed.split_at(end);
    *text = rest;
    word
}

pub(crate) fn read(bytes: &[u8]) -> Result<Geometry> {
    let mut reader = FileReader::new(bytes, false);
    if reader.line(MAX_LINE_BYTES)?.trim_ascii() != b"ply" {
        return Err(Error::corrupt("expected `ply` in the first line of a PLY file"));
    }
    let header = PlyHeader::read(&mut reader)?;
    check_counts(&header.elements)?;
    let mut body = match &*header.format {
        "binary_little_endian" => PlyBody::Binary(reader),
        "binary_big_endian" => PlyBody::Binary(reader.with_order(true)),
        "ascii" => PlyBody::Text(reader.rest()),
        format => {
            return Err(Error::corrupt(format!(
                "expected a PLY file in text or binary, found the format `{format}`"
            )));
        }
    };
    let mut geometry = Geometry::default();
    for element in &header.elements {
        match &*element.name {
            "vertex" => read_vertices(&mut body, element, &mut geometry)?,
            name => read_others(&mut body, element, name, &mut geometry)?,
        }
    }
    if header.is_lps {
        geometry.flip_lps();
    }
    geometry.finished("PLY")
}

/// Checks the counts of a file, in which an element may stand more than once.
fn check_counts(elements: &[PlyElement]) -> Result<()> {
    for (name, most, of) in [
        ("vertex", MAX_VERTICES, "vertices"),
        ("face", MAX_TRIANGLES, "faces"),
        ("edge", MAX_TRIANGLES, "edges"),
    ] {
        let counts = elements.iter().filter(|element| element.name == name).map(|element| element.count);
        check_count(counts.fold(0, usize::saturating_add), most, of)?;
    }
    Ok(())
}

impl PlyHeader {
    fn read(reader: &mut FileReader<'_>) -> Result<Self> {
        let mut header = Self::default();
        for _ in 0..MAX_HEADER_LINES {
            let line = String::from_utf8_lossy(reader.line(MAX_LINE_BYTES)?).into_owned();
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["end_header"] => return Ok(header),
                ["format", name, ..] => name.clone_into(&mut header.format),
                ["comment", ..] => header.is_lps |= line.contains("SPACE=LPS"),
                ["element", name, count] => {
                    let count = count
                        .parse()
                        .map_err(|_| Error::corrupt(format!("expected a count, found `{line}`")))?;
                    let element = PlyElement { name: name.to_owned(), count, properties: Vec::new() };
                    header.elements.push(element);
                }
                ["property", "list", count, number, name] => header.add(name, Some(count), number)?,
                ["property", number, name] => header.add(name, None, number)?,
                _ => {}
            }
        }
        Err(Error::too_large(format!(
            "expected at most {MAX_HEADER_LINES} lines in the header of a PLY file, found more"
        )))
    }

    /// Adds a property of the last element, a list if its count has a type.
    fn add(&mut self, name: &str, count: Option<&str>, number: &str) -> Result<()> {
        let element = self
            .elements
            .last_mut()
            .ok_or_else(|| Error::corrupt("expected an element before the first property"))?;
        element.properties.push(PlyProperty {
            name: name.to_owned(),
            count_type: count.map(number_type).transpose()?,
            number_type: number_type(number)?,
        });
        Ok(())
    }
}

fn number_type(name: &str) -> Result<NumberType> {
    Ok(match name {
        "char" | "int8" => NumberType::I8,
        "uchar" | "uint8" => NumberType::U8,
        "short" | "int16" => NumberType::I16,
        "ushort" | "uint16" => NumberType::U16,
        "int" | "int32" => NumberType::I32,
        "uint" | "uint32" => NumberType::U32,
        "float" | "float32" => NumberType::F32,
        "double" | "float64" => NumberType::F64,
        _ => return Err(Error::corrupt(format!("expected a type of PLY, found `{name}`"))),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "colors are clamped; values are f32"
)]
fn read_vertices(body: &mut PlyBody<'_>, element: &PlyElement, geometry: &mut Geometry) -> Result<()> {
    let place = |names: [&str; 2]| element.properties.iter().position(|p| names.contains(&&*p.name));
    let [Some(x), Some(y), Some(z)] = [place(["x"; 2]), place(["y"; 2]), place(["z"; 2])] else {
        return Err(Error::corrupt("expected vertices with x, y and z in a PLY file"));
    };
    let colors = [place(["red", "r"]), place(["green", "g"]), place(["blue", "b"])];
    let color_of = |places: [usize; 3], row: &[f64]| {
        places.map(|place| {
            let share = if matches!(element.properties[place].number_type, NumberType::F32 | NumberType::F64)
            {
                255.0
            } else {
                1.0
            };
            (row[place] * share).round().clamp(0.0, 255.0) as u8
        })
    };
    let colors = if let [Some(r), Some(g), Some(b)] = colors { Some([r, g, b]) } else { None };
    let is_other = |place: usize| {
        let name = &*element.properties[place].name;
        let is_known = [x, y, z].contains(&place) || colors.is_some_and(|colors| colors.contains(&place));
        !is_known
            && element.properties[place].count_type.is_none()
            && !["nx", "ny", "nz", "alpha"].contains(&name)
    };
    let mut others: Vec<usize> = (0..element.properties.len()).filter(|&place| is_other(place)).collect();
    let omitted = others.len().saturating_sub(MAX_VALUE_NAMES - geometry.values.len());
    if omitted > 0 {
        others.truncate(others.len() - omitted);
        geometry.notes.push(omitted_values_note(omitted));
    }
    check_values(geometry.values.len() + others.len(), geometry.positions.len() + element.count)?;
    let mut values: Vec<VertexValues> = others
        .iter()
        .map(|&place| VertexValues { name: element.properties[place].name.clone(), values: Vec::new() })
        .collect();
    let mut row = vec![0.0; element.properties.len()];
    for _ in 0..element.count {
        for (value, property) in row.iter_mut().zip(&element.properties) {
            *value = match property.count_type {
                None => body.number(property.number_type)?,
                Some(count_type) => {
                    list(body, count_type, property.number_type)?.first().copied().unwrap_or(0.0)
                }
            };
        }
        geometry.positions.push([row[x], row[y], row[z]]);
        if let Some(places) = colors {
            geometry.colors.push(color_of(places, &row));
        }
        for (values, &place) in values.iter_mut().zip(&others) {
            values.values.push(row[place] as f32);
        }
    }
    geometry.values.append(&mut values);
    Ok(())
}

fn list(body: &mut PlyBody<'_>, count_type: NumberType, number_type: NumberType) -> Result<Vec<f64>> {
    let count = index(body.number(count_type)?)? as usize;
    if count > MAX_CORNERS {
        return Err(Error::corrupt(format!(
            "expected at most {MAX_CORNERS} entries of a list in a PLY file, found {count}"
        )));
    }
    (0..count).map(|_| body.number(number_type)).collect()
}

fn read_others(
    body: &mut PlyBody<'_>,
    element: &PlyElement,
    name: &str,
    geometry: &mut Geometry,
) -> Result<()> {
    check_count(element.count, MAX_TRIANGLES, "elements")?;
    if element.properties.is_empty() {
        return Ok(());
    }
    for _ in 0..element.count {
        let mut ends = [None; 2];
        for property in &element.properties {
            let Some(count_type) = property.count_type else {
                let value = body.number(property.number_type)?;
                match &*property.name {
                    "vertex1" => ends[0] = Some(value),
                    "vertex2" => ends[1] = Some(value),
                    _ => {}
                }
                continue;
            };
            let corners = list(body, count_type, property.number_type)?;
            if name == "face" && ["vertex_indices", "vertex_index"].contains(&&*property.name) {
                let corners = corners.into_iter().map(index).collect::<Result<Vec<_>>>()?;
                geometry.add_polygon(&corners)?;
            }
        }
        if let ("edge", [Some(from), Some(to)]) = (name, ends) {
            geometry.lines.push([index(from)?, index(to)?]);
        }
    }
    Ok(())
}
