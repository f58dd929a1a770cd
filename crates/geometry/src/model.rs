//! Model of a geometry.

use array::{Error, Result};

use crate::{MAX_TEXT_BYTES, MAX_TEXTS, MAX_TRIANGLES, MAX_VALUE_NAMES, MAX_VALUES, MAX_VERTICES};

/// Space of the positions of a geometry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GeometrySpace {
    /// World space of the arrays beside it; for medical data RAS.
    #[default]
    World,
    /// Longitude, latitude (degrees) and height.
    Geographic,
}

/// Text at a vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VertexText {
    /// Index of the vertex.
    pub vertex: u32,
    /// Text, at most [`MAX_TEXT_BYTES`].
    pub text: String,
}

/// Values by vertex.
#[derive(Clone, Debug, PartialEq)]
pub struct VertexValues {
    /// Name in the file.
    pub name: String,
    /// One value for each vertex; NaN where there is none.
    pub values: Vec<f32>,
}

/// Surfaces, lines, points and texts that share vertices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Geometry {
    /// Name of the format that it was read from.
    pub format: &'static str,
    /// Positions of the vertices, at most [`MAX_VERTICES`]; finite.
    pub positions: Vec<[f64; 3]>,
    /// Triangles, at most [`MAX_TRIANGLES`]; indices of vertices.
    pub triangles: Vec<[u32; 3]>,
    /// Segments of lines, at most [`MAX_TRIANGLES`]; indices of vertices.
    pub lines: Vec<[u32; 2]>,
    /// Vertices that are points of their own.
    pub points: Vec<u32>,
    /// Texts, at most [`MAX_TEXTS`].
    pub texts: Vec<VertexText>,
    /// sRGB colors by vertex; empty if the file has none.
    pub colors: Vec<[u8; 3]>,
    /// Values by vertex, at most [`MAX_VALUE_NAMES`].
    pub values: Vec<VertexValues>,
    /// Space of the positions.
    pub space: GeometrySpace,
    /// True if the file has no third coordinate: z is 0 in [`Geometry::positions`].
    pub is_flat: bool,
    /// Sentences for users about what was changed or left out.
    pub notes: Vec<String>,
}

impl Geometry {
    /// Returns the smallest box around all vertices; `None` without any.
    #[must_use]
    pub fn bounds(&self) -> Option<[[f64; 3]; 2]> {
        let first = *self.positions.first()?;
        Some(self.positions.iter().fold([first; 2], |[low, high], p| {
            let pick = |of: [f64; 3], better: fn(f64, f64) -> f64| [0, 1, 2].map(|a| better(of[a], p[a]));
            [pick(low, f64::min), pick(high, f64::max)]
        }))
    }

    /// Returns the values of a name.
    #[must_use]
    pub fn values_of(&self, name: &str) -> Option<&VertexValues> {
        self.values.iter().find(|values| values.name == name)
    }

    /// Returns the memory of its vectors, bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let values: usize =
            self.values.iter().map(|values| values.values.len() * 4 + values.name.len()).sum();
        let texts: usize = self.texts.iter().map(|text| text.text.len() + size_of::<VertexText>()).sum();
        self.positions.len() * 24
            + self.triangles.len() * 12
            + self.lines.len() * 8
            + self.points.len() * 4
            + self.colors.len() * 3
            + values
            + texts
    }

    /// Checks limits and indices after a file was read, and completes the geometry: without triangles, lines and points,
    /// every vertex is a point. Vertices that are not finite are an error.
    pub(crate) fn finished(mut self, format: &'static str) -> Result<Self> {
        self.format = format;
        let vertices = self.positions.len();
        if vertices == 0 {
            return Err(Error::invalid(format!("expected vertices in a {format} file, found none")));
        }
        check_count(vertices, MAX_VERTICES, "vertices")?;
        check_count(self.triangles.len(), MAX_TRIANGLES, "triangles")?;
        check_count(self.lines.len(), MAX_TRIANGLES, "segments of lines")?;
        check_count(self.points.len(), MAX_VERTICES, "points")?;
        if let Some(bad) = self.positions.iter().flatten().find(|v| !v.is_finite()) {
            return Err(Error::corrupt(format!("expected finite positions, found {bad}")));
        }
        let indices =
            self.triangles.as_flattened().iter().chain(self.lines.as_flattened()).chain(&self.points);
        let texts = self.texts.iter().map(|text| &text.vertex);
        if let Some(bad) = indices.chain(texts).find(|&&index| index as usize >= vertices) {
            return Err(Error::corrupt(format!("expected indices of {vertices} vertices, found {bad}")));
        }
        if self.colors.len() != vertices {
            self.colors = Vec::new();
        }
        self.values.retain(|values| values.values.len() == vertices);
        if self.values.len() > MAX_VALUE_NAMES {
            let more = self.values.len() - MAX_VALUE_NAMES;
            self.notes.push(omitted_values_note(more));
            self.values.truncate(MAX_VALUE_NAMES);
        }
        if self.texts.len() > MAX_TEXTS {
            let more = self.texts.len() - MAX_TEXTS;
            self.notes.push(omitted_texts_note(more));
            self.texts.truncate(MAX_TEXTS);
        }
        for text in &mut self.texts {
            let end = text.text.floor_char_boundary(MAX_TEXT_BYTES);
            text.text.truncate(end);
        }
        if self.triangles.is_empty() && self.lines.is_empty() && self.points.is_empty() {
            self.points = (0..u32::try_from(vertices).unwrap_or(u32::MAX)).collect();
        }
        Ok(self)
    }

    /// Adds the triangles of a convex polygon.
    pub(crate) fn add_polygon(&mut self, corners: &[u32]) -> Result<()> {
        check_count(self.triangles.len() + corners.len(), MAX_TRIANGLES, "triangles")?;
        if let [first, rest @ ..] = corners {
            self.triangles.extend(rest.windows(2).map(|pair| [*first, pair[0], pair[1]]));
        }
        Ok(())
    }

    /// Adds the segments of a line through these vertices.
    pub(crate) fn add_line(&mut self, vertices: impl ExactSizeIterator<Item = u32> + Clone) -> Result<()> {
        let more = vertices.len().saturating_sub(1);
        check_count(self.lines.len() + more, MAX_TRIANGLES, "segments of lines")?;
        let next = vertices.clone().skip(1);
        self.lines.extend(vertices.zip(next).map(|(from, to)| [from, to]));
        Ok(())
    }

    /// Returns whether values of this name are kept: it is known, or fewer than [`MAX_VALUE_NAMES`] are.
    pub(crate) fn has_room_for_values(&self, name: &str) -> bool {
        self.values.len() < MAX_VALUE_NAMES || self.values_of(name).is_some()
    }

    /// Returns the values of a name, for `vertices` vertices that the caller may add. Creates them if they are missing; `None` if
    /// there is no room for them.
    pub(crate) fn values_entry(&mut self, name: &str, vertices: usize) -> Result<Option<&mut Vec<f32>>> {
        if !self.has_room_for_values(name) {
            return Ok(None);
        }
        let known = self.values.iter().position(|values| values.name == name);
        let place = known.unwrap_or_else(|| {
            self.values.push(VertexValues { name: name.to_owned(), values: Vec::new() });
            self.values.len() - 1
        });
        check_values(self.values.len(), vertices)?;
        Ok(Some(&mut self.values[place].values))
    }

    /// Fills the values of all names with NaN, up to this number of vertices.
    pub(crate) fn fill_values(&mut self, vertices: usize) -> Result<()> {
        check_values(self.values.len(), vertices)?;
        for values in &mut self.values {
            values.values.resize(vertices, f32::NAN);
        }
        Ok(())
    }

    /// Adds a vertex; returns its index.
    pub(crate) fn add_vertex(&mut self, position: [f64; 3]) -> Result<u32> {
        check_count(self.positions.len() + 1, MAX_VERTICES, "vertices")?;
        self.positions.push(position);
        Ok(u32::try_from(self.positions.len() - 1).unwrap_or(u32::MAX))
    }

    /// Moves all vertices by an affine map, `rows` times (x, y, z, 1).
    pub(crate) fn transform(&mut self, rows: &[[f64; 4]; 3]) {
        for position in &mut self.positions {
            let [x, y, z] = *position;
            *position = rows.map(|[a, b, c, d]| a * x + b * y + c * z + d);
        }
    }

    /// Moves all vertices from LPS to RAS.
    pub(crate) fn flip_lps(&mut self) {
        self.transform(&[[-1.0, 0.0, 0.0, 0.0], [0.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]);
        self.notes.push("Its positions are in LPS; x and y are negated.".to_owned());
    }
}

/// Returns the note about texts that are left out.
pub(crate) fn omitted_texts_note(count: usize) -> String {
    format!("{count} of its texts are left out: at most {MAX_TEXTS} are kept.")
}

/// Returns the note about sets of values that are left out.
pub(crate) fn omitted_values_note(count: usize) -> String {
    format!("{count} of its sets of values are left out: at most {MAX_VALUE_NAMES} are kept.")
}

/// Longest part of a file in an error, letters.
const EXCERPT_LETTERS: usize = 60;

/// Returns the beginning of a text of a file, for an error.
pub(crate) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the beginning of bytes of a file as text, for an error.
pub(crate) fn excerpt_of_bytes(bytes: &[u8]) -> String {
    // A letter has at most four bytes.
    let most = 4 * (EXCERPT_LETTERS + 1);
    excerpt(&String::from_utf8_lossy(&bytes[..bytes.len().min(most)]))
}

/// Checks the values by vertex of all names together, before they take memory.
pub(crate) fn check_values(names: usize, vertices: usize) -> Result<()> {
    check_count(names.saturating_mul(vertices), MAX_VALUES, "values by vertex")
}

pub(crate) fn check_count(found: usize, most: usize, of: &str) -> Result<()> {
    if found > most {
        return Err(Error::too_large(format!(
            "expected at most {most} {of}, found {found}; reduce the geometry with the program that wrote it"
        )));
    }
    Ok(())
}
