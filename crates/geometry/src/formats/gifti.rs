//! GIfTI: surfaces of neuroimaging in XML, their values by vertex, and the space of their positions.

use array::{Error, Result};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::bytes::{NumberType, index};
use crate::formats::encoded::{DecodeBudget, attribute, xml_error};
use crate::{Geometry, VertexValues};

/// Most arrays of a file.
const MAX_ARRAYS: usize = 4_096;
/// Space of which nothing is known.
const UNKNOWN: &str = "NIFTI_XFORM_UNKNOWN";

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
    metadata: Vec<(String, String)>,
}

pub(crate) fn read(bytes: &[u8]) -> Result<Geometry> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Error::corrupt("expected a GIfTI file in UTF-8, found other bytes"))?;
    let arrays = arrays(text)?;
    let mut budget = DecodeBudget::default();
    let mut geometry = Geometry::default();
    let mut values = Vec::new();
    for array in &arrays {
        match &*array.intent {
            "NIFTI_INTENT_POINTSET" if geometry.positions.is_empty() => {
                geometry.positions = array.decode(&mut budget)?.as_chunks().0.to_vec();
                if let Some(rows) = array.world_from_data() {
                    geometry.transform(&rows);
                }
            }
            "NIFTI_INTENT_TRIANGLE" if geometry.triangles.is_empty() => {
                let corners =
                    array.decode(&mut budget)?.into_iter().map(index).collect::<Result<Vec<_>>>()?;
                geometry.triangles = corners.as_chunks().0.to_vec();
            }
            _ if array.shape[1] <= 1 => {
                let name = array.meta("Name").unwrap_or(&array.intent).to_owned();
                values.push(VertexValues {
                    name,
                    values: array.decode(&mut budget)?.iter().map(|&v| narrow(v)).collect(),
                });
            }
            _ => {}
        }
    }
    if geometry.positions.is_empty() {
        return Err(Error::unsupported(
            "expected a GIfTI surface, found values for the vertices of a surface in another file",
        ));
    }
    geometry.values = values;
    geometry.finished("GIfTI")
}

#[expect(clippy::cast_possible_truncation, reason = "values by vertex are f32")]
fn narrow(value: f64) -> f32 {
    value as f32
}

fn arrays(text: &str) -> Result<Vec<GiftiArray>> {
    let mut reader = Reader::from_str(text);
    let mut arrays = Vec::new();
    let mut current: Option<GiftiArray> = None;
    let (mut element, mut name) = (String::new(), String::new());
    loop {
        match reader.read_event().map_err(|e| xml_error(&e))? {
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
            "Value" => self.metadata.push((std::mem::take(name), text.trim().to_owned())),
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
        let numbers: Vec<f64> = self.matrix.split_whitespace().map_while(|word| word.parse().ok()).collect();
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
        let middle =
            ["VolGeomC_R", "VolGeomC_A", "VolGeomC_S"].map(|name| self.meta(name)?.parse::<f64>().ok());
        let [Some(x), Some(y), Some(z)] = middle else { return None };
        let is_finite = [x, y, z].iter().all(|v| v.is_finite());
        is_finite.then_some([[1.0, 0.0, 0.0, x], [0.0, 1.0, 0.0, y], [0.0, 0.0, 1.0, z]])
    }
}
