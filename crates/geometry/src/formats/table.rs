//! Tables of points (CSV, TSV): positions, texts, lines and values by column.
//!
//! Columns `x`, `y` and `z`, or `longitude` and `latitude` with `height`, are positions, as are the last three of `axis-0`, `axis-1`
//! and so on, the last of which is x; a column `label`, `name` or `text` is text at
//! the point; rows with the same entry in a column `line` are joined by a line; other columns of numbers are values. Without a header, the first two or three
//! columns are positions.

use std::io::{self, Read};

use array::{Error, Result};
use csv::{ByteRecord, ErrorKind};

use crate::model::{check_values, excerpt, omitted_texts_note};
use crate::{Geometry, GeometrySpace, MAX_TEXTS, MAX_VALUE_NAMES, VertexText, VertexValues};

const X: [&str; 5] = ["x", "lon", "longitude", "long", "pos_x"];
const Y: [&str; 4] = ["y", "lat", "latitude", "pos_y"];
const Z: [&str; 5] = ["z", "height", "altitude", "depth", "pos_z"];
/// Beginning of the names of axes that are numbered from 0, as napari writes them: the last three are z, y and x.
const NUMBERED: &str = "axis-";
const GEOGRAPHIC: [&str; 4] = ["lon", "longitude", "long", "lat"];
const TEXTS: [&str; 3] = ["label", "name", "text"];
const LINES: [&str; 3] = ["line", "track", "track_id"];

/// Longest row, bytes: the parser keeps a number of eight bytes for each of its fields.
const MAX_ROW_BYTES: usize = 4 << 20;

/// Bytes of a table, of which each row takes a bounded number.
struct RowBytes<'a> {
    rest: &'a [u8],
    /// Bytes that the row may still take.
    left_in_row: usize,
}

impl Read for RowBytes<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left_in_row == 0 && !self.rest.is_empty() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let most = into.len().min(self.left_in_row);
        let count = self.rest.read(&mut into[..most])?;
        self.left_in_row -= count;
        Ok(count)
    }
}

/// Columns by meaning.
#[derive(Default)]
struct Columns {
    position: [Option<usize>; 3],
    text: Option<usize>,
    line: Option<usize>,
    /// Number and name of other columns.
    values: Vec<(usize, String)>,
    is_geographic: bool,
}

pub(crate) fn read(bytes: &[u8], delimiter: u8) -> Result<Geometry> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(RowBytes { rest: bytes, left_in_row: MAX_ROW_BYTES });
    let mut record = ByteRecord::new();
    let mut columns = None;
    let mut geometry = Geometry::default();
    let (mut line, mut last, mut omitted_texts) = (String::new(), None, 0);
    for number in 1usize.. {
        if !reader.read_byte_record(&mut record).map_err(|error| mistake(&error, number))? {
            break;
        }
        reader.get_mut().left_in_row = MAX_ROW_BYTES;
        let field =
            |column: usize| String::from_utf8_lossy(record.get(column).unwrap_or_default()).trim().to_owned();
        let Some(columns) = &columns else {
            let first: Vec<String> = (0..record.len().min(1_024)).map(field).collect();
            let found = Columns::of(&first)?;
            geometry.is_flat = found.position[2].is_none();
            geometry.space =
                if found.is_geographic { GeometrySpace::Geographic } else { GeometrySpace::World };
            geometry.values = found
                .values
                .iter()
                .map(|(_, name)| VertexValues { name: name.clone(), values: Vec::new() })
                .collect();
            let has_header = first.first().is_some_and(|word| word.parse::<f64>().is_err());
            if !has_header {
                add(&found, &field, number, &mut geometry, &mut omitted_texts)?;
            }
            columns = Some(found);
            continue;
        };
        let vertex = add(columns, &field, number, &mut geometry, &mut omitted_texts)?;
        if let Some(column) = columns.line {
            let own = field(column);
            if let Some(before) = last.filter(|_| own == line && !own.is_empty()) {
                geometry.add_line([before, vertex].into_iter())?;
            }
            (line, last) = (own, Some(vertex));
        }
    }
    if columns.as_ref().is_none_or(|columns: &Columns| columns.line.is_none()) {
        geometry.points = (0..u32::try_from(geometry.positions.len()).unwrap_or(u32::MAX)).collect();
    }
    geometry.notes.extend((omitted_texts > 0).then(|| omitted_texts_note(omitted_texts)));
    // Columns of words are no values.
    geometry.values.retain(|values| values.values.iter().any(|value| value.is_finite()));
    geometry.finished("table")
}

fn mistake(error: &csv::Error, row: usize) -> Error {
    match error.kind() {
        // Of bytes in memory, only the length of a row is an error.
        ErrorKind::Io(_) => Error::too_large(format!(
            "expected rows of at most {MAX_ROW_BYTES} bytes in a table, found more in row {row}"
        )),
        _ => Error::corrupt(format!("expected a table of points, found a mistake in it: {error}")),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "values by vertex are f32")]
fn add(
    columns: &Columns,
    field: &dyn Fn(usize) -> String,
    number: usize,
    geometry: &mut Geometry,
    omitted_texts: &mut usize,
) -> Result<u32> {
    let mut position = [0.0; 3];
    for (place, column) in position.iter_mut().zip(columns.position) {
        let Some(column) = column else { continue };
        let word = field(column);
        *place = word.parse().map_err(|_| {
            Error::corrupt(format!(
                "expected a number in column {} of row {number}, found `{}`",
                column + 1,
                excerpt(&word)
            ))
        })?;
    }
    let vertex = geometry.add_vertex(position)?;
    check_values(geometry.values.len(), geometry.positions.len())?;
    if let Some(text) = columns.text.map(field).filter(|text| !text.is_empty()) {
        if geometry.texts.len() < MAX_TEXTS {
            geometry.texts.push(VertexText { vertex, text });
        } else {
            *omitted_texts += 1;
        }
    }
    for ((column, _), values) in columns.values.iter().zip(&mut geometry.values) {
        values.values.push(field(*column).parse::<f64>().map_or(f32::NAN, |value| value as f32));
    }
    Ok(vertex)
}

impl Columns {
    fn of(first: &[String]) -> Result<Self> {
        if first.first().is_some_and(|word| word.parse::<f64>().is_ok()) {
            let is_number = |at: usize| first.get(at).is_some_and(|word| word.parse::<f64>().is_ok());
            let position = [Some(0), is_number(1).then_some(1), is_number(2).then_some(2)];
            if position[1].is_none() {
                return Err(missing());
            }
            return Ok(Self { position, ..Self::default() });
        }
        let names: Vec<String> = first.iter().map(|name| name.to_ascii_lowercase()).collect();
        let find =
            |known: &[&str]| known.iter().find_map(|name| names.iter().position(|found| found == name));
        let named = [find(&X), find(&Y), find(&Z)];
        let numbered = |number: usize| names.iter().position(|name| *name == format!("{NUMBERED}{number}"));
        let axes = (0..names.len()).take_while(|&number| numbered(number).is_some()).count();
        let position = match named {
            [None, None, _] => [1, 2, 3].map(|from_end| axes.checked_sub(from_end).and_then(numbered)),
            _ => named,
        };
        if position[0].is_none() || position[1].is_none() {
            return Err(missing());
        }
        let (text, line) = (find(&TEXTS), find(&LINES));
        let is_used = |at: usize| position.contains(&Some(at)) || text == Some(at) || line == Some(at);
        let values = (0..first.len()).filter(|&at| !is_used(at)).take(MAX_VALUE_NAMES);
        let is_geographic = position[0].is_some_and(|at| GEOGRAPHIC.contains(&&*names[at]));
        Ok(Self {
            values: values.map(|at| (at, first[at].clone())).collect(),
            position,
            text,
            line,
            is_geographic,
        })
    }
}

fn missing() -> Error {
    Error::unsupported(
        "expected columns `x` and `y`, or `longitude` and `latitude`, in the first row of a table, found others",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_VALUES;

    #[test]
    fn values_of_rows_without_entries_are_counted() {
        let names: Vec<String> = ["x", "y"].into_iter().chain(["v"; 30]).map(str::to_owned).collect();
        let columns = Columns::of(&names).unwrap();
        let values = |_| VertexValues { name: "v".to_owned(), values: Vec::new() };
        let mut geometry = Geometry {
            positions: vec![[0.0; 3]; MAX_VALUES / 30],
            values: columns.values.iter().map(values).collect(),
            ..Geometry::default()
        };
        let field = |column: usize| if column < 2 { "0".to_owned() } else { String::new() };
        let error = add(&columns, &field, 1, &mut geometry, &mut 0).unwrap_err().to_string();
        assert!(error.contains("values by vertex"), "{error}");
    }
}
