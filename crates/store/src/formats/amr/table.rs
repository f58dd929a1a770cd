//! Table of the grids of a mesh: an array of its own beside the fields, so that any client that reads arrays,
//! local or remote, can read it.
//!
//! Its rows are those of [`array::GridBox`], which a field names by [`array::GRIDS_ATTRIBUTE`].

use std::sync::Arc;

use array::{
    ArrayInfo, Attribute, Axis, AxisKind, DType, ElementType, Error, GRID_COLUMNS, GRIDS_ATTRIBUTE, Region,
    Result, Selection,
};

use super::grids::MeshGrids;
use super::{MeshField, MeshStep};
use crate::formats::common::describe;

/// Table of the grids of a mesh: its name, and one row per grid, the coarsest level first.
pub(super) struct GridTable {
    name: String,
    /// Row by row.
    values: Vec<f64>,
}

impl GridTable {
    fn of(grids: &MeshGrids, name: String) -> Self {
        let tiers = (0..grids.tiers.len()).rev();
        let row = |(tier, low, high): (usize, [u64; 3], [u64; 3])| {
            let [lower, upper] = grids.corners(tier, low, high);
            #[expect(clippy::cast_precision_loss, reason = "at most 24 levels")]
            std::iter::once(tier as f64).chain(lower).chain(upper)
        };
        let boxes = tiers.flat_map(|tier| grids.tiers[tier].grids.iter().map(move |g| (tier, g.low, g.high)));
        Self { name, values: boxes.flat_map(row).collect() }
    }

    /// Makes the tables of fields and sets the attribute that names them; fields on the same grids share one.
    pub(super) fn of_fields(fields: &mut [MeshField]) -> Vec<Self> {
        let mut tables: Vec<Self> = Vec::new();
        // Most fields of a file share their grids; those of several files may have equal ones.
        let mut known: Vec<(Arc<MeshGrids>, String)> = Vec::new();
        for field in fields {
            // A table is of one time: of grids that move there is none.
            let Some(MeshStep { grids, .. }) = field
                .steps
                .first()
                .filter(|first| field.steps.iter().all(|step| step.grids.lie_as(&first.grids)))
            else {
                continue;
            };
            let name = match known.iter().find(|(known, _)| Arc::ptr_eq(known, grids)) {
                Some((_, name)) => name.clone(),
                None => {
                    let name = Self::among(&mut tables, grids);
                    known.push((Arc::clone(grids), name.clone()));
                    name
                }
            };
            field.attributes.insert(GRIDS_ATTRIBUTE.into(), Attribute::Text(name));
        }
        tables
    }

    /// The name of the table of grids, which is made where there is no equal one.
    fn among(tables: &mut Vec<Self>, grids: &MeshGrids) -> String {
        let name = match tables.len() {
            0 => "amr/grids".to_owned(),
            more => format!("amr/grids{}", more + 1),
        };
        let table = Self::of(grids, name.clone());
        match tables.iter().find(|known| known.values == table.values) {
            Some(known) => known.name.clone(),
            None => {
                tables.push(table);
                name
            }
        }
    }

    fn shape(&self) -> [u64; 2] {
        [(self.values.len() / GRID_COLUMNS) as u64, GRID_COLUMNS as u64]
    }

    pub(super) fn describe(&self) -> ArrayInfo {
        let axes = ["grid", "column"].map(|name| Axis::new(name, AxisKind::Other)).to_vec();
        let mut info =
            describe::array(&self.name, DType::native(ElementType::F64), axes, &self.shape(), None);
        info.notes.push(
            "each grid's level, 0 the finest, lower corner x, y, z and upper corner x, y, z; the coarsest first".into(),
        );
        info
    }

    /// # Errors
    /// `Invalid` for elements that it has not got.
    pub(super) fn read(&self, selection: &Selection, mut into: Region) -> Result<()> {
        selection.check(&self.shape())?;
        let &[rows, columns] = selection.ranges() else {
            return Err(Error::internal("expected a selection of two axes"));
        };
        let value = |row: u64, column: u64| {
            let at = rows.index(row) * GRID_COLUMNS as u64 + columns.index(column);
            usize::try_from(at).ok().and_then(|at| self.values.get(at)).copied().unwrap_or(f64::NAN)
        };
        let all = (0..rows.count).flat_map(|row| (0..columns.count).map(move |column| value(row, column)));
        into.write_all(&all.flat_map(f64::to_ne_bytes).collect::<Vec<u8>>())
    }
}
