//! Arrangement of the pictures of a viewer, as part of a view. Renderers ignore it.

use std::collections::BTreeMap;

use array::{Error, MAX_AXES, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum number of rows and of columns of a grid of pictures: each picture is drawn by the viewing node.
pub const MAX_GRID_SIDE: u8 = 3;
/// Longest name of an array or axis in a cell, bytes.
const MAX_CELL_NAME_BYTES: usize = 4096;

/// Arrangement of the pictures in a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ViewLayout {
    /// One three-dimensional picture.
    Space,
    /// One plane, seen head on with parallel rays.
    Image,
    /// Three orthogonal planes and a three-dimensional picture.
    Planes,
}

/// Grid of pictures of one data set. The first cell shows the view itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewGrid {
    /// Number of rows, 1 to [`MAX_GRID_SIDE`].
    pub rows: u8,
    /// Number of columns, 1 to [`MAX_GRID_SIDE`].
    pub columns: u8,
    /// True if all cells have the camera of the view.
    #[serde(default = "yes")]
    pub tied: bool,
    /// Differences of the other cells, row by row; cells beyond the list show the view itself.
    #[serde(default)]
    pub cells: Vec<ViewCell>,
    /// Fields of a later version: preserved but ignored.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Differences of one cell of a grid from the view.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ViewCell {
    /// Name of the array; as in the view if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<String>,
    /// Index on the time axis; as in the view if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<u64>,
    /// Index on axes that are neither space nor time, by name; as in the view where not named.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at: BTreeMap<String, u64>,
    /// Fields of a later version: preserved but ignored.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

fn yes() -> bool {
    true
}

impl ViewGrid {
    /// Checks the number of rows, columns and cells, and the size of names.
    ///
    /// # Errors
    /// `Invalid`, telling what is wrong.
    pub fn check(&self) -> Result<()> {
        let sides = 1..=MAX_GRID_SIDE;
        if !sides.contains(&self.rows) || !sides.contains(&self.columns) {
            let (rows, columns) = (self.rows, self.columns);
            return Err(Error::invalid(format!(
                "expected a grid of 1 to {MAX_GRID_SIDE} rows and columns, found {rows} by {columns}"
            )));
        }
        let most = usize::from(MAX_GRID_SIDE).pow(2) - 1;
        if self.cells.len() > most {
            let found = self.cells.len();
            return Err(Error::invalid(format!(
                "expected at most {most} cells besides the first, found {found}"
            )));
        }
        let is_long = |name: &String| name.len() > MAX_CELL_NAME_BYTES;
        for cell in &self.cells {
            if cell.at.len() > MAX_AXES || cell.array.iter().chain(cell.at.keys()).any(is_long) {
                return Err(Error::invalid(format!(
                    "expected a cell with at most {MAX_AXES} axes in `at` and names up to {MAX_CELL_NAME_BYTES} bytes"
                )));
            }
        }
        Ok(())
    }
}
