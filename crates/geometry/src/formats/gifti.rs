//! GIfTI: surfaces of neuroimaging in XML, their values by vertex, and the space of their positions.

use array::{Error, Result};
use quick_xml::events::{BytesStart, Event};

use crate::bytes::{NumberType, index};
use crate::formats::encoded::{DecodeBudget, XmlReader, attribute};
use crate::model::{check_count, check_values, omitted_values_note};
use crate::{Geometry, MAX_TRIANGLES, MAX_VALUE_NAMES, MAX_VERTICES, VertexValues};

/// Most arrays of a file.
const MAX_ARRAYS: usize = 4_096;
/// Space of which nothing is known.
const UNKNOWN: &str = "NIFTI_XFORM_UNKNOWN";
/// Intents of positions and triangles; other arrays are values.
const POSITIONS: &str = "NIFTI_INTENT_POINTSET";
const TRIANGLES: &str = "NIFTI_INTENT_TRIANGLE";
/// Metadata with the middle of the volume, as FreeSurfer writes it.
const MIDDLE: [&str; 3] = ["VolGeomC_R", "VolGeomC_A", "VolGeomC_S"];
/// Metadata with the name of values.
const NAME: &str = "Name";

/// `DataArray` while it is read.
#[derive(Default)]
struct GiftiArray {
    intent: String,
    data_type: String,
    encoding: String,
    is_big: bool,
    is_column_major: bool,
    shape: [usize; 2],
    /// Text of its elements, by the name of the element.
    data: String,
    data_space: String,
    transformed_space: String,
    matrix: String,
    /// Metadata that are used, each once.
    metadata: Vec<(String, String)>,
}

pub(crate) fn read(bytes: &[u8]) -> Result<Geometry> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Error::corrupt("expected a GIfTI file in UTF-8, found other bytes"))?;
    let arrays = arrays(text)?;
    let mut budget = DecodeBudget::default();
    let mut geometry = Geometry::default();
    add_surface(&arrays, &mut budget, &mut geometry)?;
    if geometry.positions.is_empty() {
        return Err(Error::unsupported(
            "expected a GIfTI surface, found values for the vertices of a surface in another file",
        ));
    }
    add_values(&arrays, &mut budget, &mut geometry)?;
    geometry.finished("GIfTI")
}

/// Adds the first positions and the first triangles.
fn add_surface(arrays: &[GiftiArray], budget: &mut DecodeBudget, geometry: &mut Geometry) -> Result<()> {
    for array in arrays {
        match &*array.intent {
            POSITIONS if geometry.positions.is_empty() => {
                let positions = array.decode(budget)?;
                check_count(positions.len() / 3, MAX_VERTICES, "vertices")?;
                geometry.positions = positions.as_chunks().0.to_vec();
                if let Some(rows) = array.world_from_data() {
                    geometry.transform(&rows);
                }
            }
            TRIANGLES if geometry.triangles.is_empty() => {
                let corners = array.decode(budget)?;
                check_count(corners.len() / 3, MAX_TRIANGLES, "triangles")?;
                let corners = corners.into_iter().map(index).collect::<Result<Vec<_>>>()?;
                geometry.triangles = corners.as_chunks().0.to_vec();
            }
            _ => {}
        }
    }
    Ok(())
}

/// Adds the values by vertex; further ones than a geometry keeps are not decoded.
fn add_values(arrays: &[GiftiArray], budget: &mut DecodeBudget, geometry: &mut Geometry) -> Result<()> {
    let vertices = geometry.positions.len();
    let is_values = |array: &&GiftiArray| ![POSITIONS, TRIANGLES].contains(&&*array.intent);
    let mut omitted = 0;
    for array in arrays.iter().filter(is_values).filter(|array| array.shape[1] <= 1) {
        if geometry.values.len() == MAX_VALUE_NAMES {
            omitted += 1;
            continue;
        }
        let numbers = array.decode(budget)?;
        if numbers.len() == vertices {
            check_values(geometry.values.len() + 1, vertices)?;
            let name = array.meta(NAME).unwrap_or(&array.intent).to_owned();
            let values = numbers.iter().map(|&v| narrow(v)).collect();
            geometry.values.push(VertexValues { name, values });
        }
    }
    geometry.notes.extend((omitted > 0).then(|| omitted_values_note(omitted)));
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "values by vertex are f32")]
fn narrow(value: f64) -> f32 {
    value as f32
}

fn arrays(text: &str) -> Result<Vec<GiftiArray>> {
    let mut reader = XmlReader::new(text);
    let mut arrays = Vec::new();
    let mut current: Option<GiftiArray> = None;
    let (mut element, mut name) = (String::new(), String::new());
    loop {
        match reader.next_event()? {
            Event::Start(start) => {
                element = String::from_utf8_lossy(start.local_name().as_ref().as_bytes()).into_owned();
                if element == "DataArray" {
                    current = Some(GiftiArray::of(&start)?);
                }
            }
            Event::End(end) => {
                if end.local_name().as_ref().as_bytes() == b"DataArray" {
                    arrays.extend(current.take());
                    if arrays.len() > MAX_ARRAYS {
                        return Err(Error::too_large(format!(
                            "expected at most {MAX_ARRAYS} arrays in a GIfTI file"
                        )));
                    }
                }
                element.clear();
            }
            Event::Text(part) => {
                if let Some(array) = &mut current {
                    array.add(&element, &mut name, &part.xml10_content());
                }
            }
            Event::CData(part) => {
                if let Some(array) = &mut current {
                    array.add(&element, &mut name, &part.xml10_content());
                }
            }
            Event::Eof => return Ok(arrays),
            _ => {}
        }
    }
}

impl GiftiArray {
    fn of(start: &BytesStart<'_>) -> Result<Self> {
        let number =
            |name: &str| -> Result<usize> { Ok(attribute(start, name)?.trim().parse().unwrap_or(1)) };
        Ok(Self {
            intent: attribute(start, "Intent")?,
            data_type: attribute(start, "DataType")?,
            encoding: attribute(start, "Encoding")?,
            is_big: attribute(start, "Endian")? == "BigEndian",
            is_column_major: attribute(start, "ArrayIndexingOrder")? == "ColumnMajorOrder",
            shape: [number("Dim0")?, number("Dim1")?],
            ..Self::default()
        })
    }

    /// Adds text of an element; `name` is the last name of its metadata.
    fn add(&mut self, element: &str, name: &mut String, text: &str) {
        match element {
            "Data" => self.data.push_str(text),
            "DataSpace" => self.data_space.push_str(text.trim()),
            "TransformedSpace" => self.transformed_space.push_str(text.trim()),
            "MatrixData" => self.matrix.push_str(text),
            "Name" => text.trim().clone_into(name),
            "Value" => {
                let name = std::mem::take(name);
                let is_used = name == NAME || MIDDLE.contains(&&*name);
                if is_used && self.meta(&name).is_none() {
                    self.metadata.push((name, text.trim().to_owned()));
                }
            }
            _ => {}
        }
    }

    fn meta(&self, name: &str) -> Option<&str> {
        self.metadata.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    fn decode(&self, budget: &mut DecodeBudget) -> Result<Vec<f64>> {
        let number_type = match &*self.data_type {
            "NIFTI_TYPE_UINT8" => NumberType::U8,
            "NIFTI_TYPE_INT32" => NumberType::I32,
            "NIFTI_TYPE_FLOAT32" => NumberType::F32,
            "NIFTI_TYPE_FLOAT64" => NumberType::F64,
            other => {
                return Err(Error::unsupported(format!("expected a number type of GIfTI, found `{other}`")));
            }
        };
        let bytes = match &*self.encoding {
            "ASCII" => return Ok(self.by_row(budget.numbers(&self.data)?)),
            "Base64Binary" => budget.base64(self.data.as_bytes())?,
            "GZipBase64Binary" => {
                let compressed = budget.base64(self.data.as_bytes())?;
                budget.inflate(&compressed)?
            }
            other => {
                return Err(Error::unsupported(format!(
                    "expected data inside a GIfTI file, found the encoding `{other}`; `mris_convert` or \
                     `wb_command -gifti-convert BASE64_BINARY` writes them into it"
                )));
            }
        };
        budget.spend(bytes.len() / number_type.size_bytes() * size_of::<f64>())?;
        Ok(self.by_row(number_type.decode_all(&bytes, self.is_big)))
    }

    /// Returns numbers by row.
    fn by_row(&self, numbers: Vec<f64>) -> Vec<f64> {
        let [rows, columns] = self.shape;
        if !self.is_column_major || columns <= 1 || rows.checked_mul(columns) != Some(numbers.len()) {
            return numbers;
        }
        (0..numbers.len()).map(|at| numbers[at % columns * rows + at / columns]).collect()
    }

    /// Returns the map from its positions to world space, if they need one.
    fn world_from_data(&self) -> Option<[[f64; 4]; 3]> {
        let words = self.matrix.split_whitespace().map_while(|word| word.parse().ok());
        // One row more than a matrix has, so that a longer one is none.
        let numbers: Vec<f64> = words.take(20).collect();
        let rows = numbers.as_chunks::<4>().0;
        let is_unknown = |space: &str| space.is_empty() || space == UNKNOWN;
        if let ([a, b, c, _], true, false) =
            (rows, is_unknown(&self.data_space), is_unknown(&self.transformed_space))
        {
            let is_finite = [a, b, c].iter().all(|row| row.iter().all(|v| v.is_finite()));
            return is_finite.then_some([*a, *b, *c]);
        }
        if !is_unknown(&self.data_space) {
            return None;
        }
        // As FreeSurfer writes it: positions are relative to the middle of the volume.
        let middle = MIDDLE.map(|name| self.meta(name)?.parse::<f64>().ok());
        let [Some(x), Some(y), Some(z)] = middle else { return None };
        let is_finite = [x, y, z].iter().all(|v| v.is_finite());
        is_finite.then_some([[1.0, 0.0, 0.0, x], [0.0, 1.0, 0.0, y], [0.0, 0.0, 1.0, z]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_kept_once_and_only_if_they_are_used() {
        let mut array = GiftiArray::default();
        for entry in 0..1_000 {
            let mut name = ["Name", "VolGeomC_R", "Date"][entry % 3].to_owned();
            array.add("Value", &mut name, &entry.to_string());
        }
        let known = ["Name", "VolGeomC_R"].map(|name| array.meta(name).unwrap());
        assert_eq!((array.metadata.len(), known), (2, ["0", "1"]));
    }
}
