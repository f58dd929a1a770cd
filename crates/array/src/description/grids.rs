//! Positions of the grids of an adaptive mesh. They are a table, stored as an ordinary array; an attribute of
//! each field names it.
//!
//! The table has one row for each grid, the coarsest first: its level (0 the finest, as in the fields), its
//! lower corner x, y, z and its upper corner x, y, z, in world units. Any client that can read arrays, local
//! or remote, can read it.

use crate::{ArrayInfo, Attribute, Dataset, Error, MAX_LEVELS, Result, elements};

/// The attribute of a field that names the table of its grids.
pub const GRIDS_ATTRIBUTE: &str = "grids";
/// Numbers in a row of the table.
pub const GRID_COLUMNS: usize = 7;

/// A grid of a mesh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridBox {
    /// Number of its level.
    pub level: u8,
    /// Lower corner x, y, z, world units.
    pub lower: [f64; 3],
    /// Upper corner x, y, z, world units.
    pub upper: [f64; 3],
}

impl GridBox {
    /// Reads rows of a table, as `bytes` of `table`'s type hold them.
    ///
    /// # Errors
    /// `Corrupt` for rows that are no boxes.
    pub fn from_rows(bytes: &[u8], table: &ArrayInfo) -> Result<Vec<Self>> {
        let values: Vec<f64> = crate::with_element!(table.dtype.element(), T => {
            elements::<T>(bytes, table.dtype.order()).map(crate::Element::to_f64).collect()
        });
        let row = |row: &[f64; GRID_COLUMNS]| {
            Self::from_row(row).ok_or_else(|| {
                Error::corrupt(format!(
                    "expected a grid's level below {MAX_LEVELS} and its lower and upper corner, found {row:?}"
                ))
            })
        };
        values.as_chunks().0.iter().map(row).collect()
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    fn from_row(&[level, x0, y0, z0, x1, y1, z1]: &[f64; GRID_COLUMNS]) -> Option<Self> {
        let (lower, upper) = ([x0, y0, z0], [x1, y1, z1]);
        let is_box = lower.iter().zip(upper).all(|(l, u)| l.is_finite() && u.is_finite() && *l <= u);
        let is_level = (0.0..MAX_LEVELS as f64).contains(&level) && level.fract() == 0.0;
        (is_box && is_level).then_some(Self { level: level as u8, lower, upper })
    }
}

impl Dataset {
    /// The table of the grids of a field, if it is one of a mesh. Where the data set is part of a larger one, whose arrays have longer
    /// names, it is the table that stands where the field does.
    #[must_use]
    pub fn grids_of(&self, field: &ArrayInfo) -> Option<(u32, &ArrayInfo)> {
        let Some(Attribute::Text(name)) = field.attributes.get(GRIDS_ATTRIBUTE) else { return None };
        let is_table =
            |info: &ArrayInfo| matches!(info.shape(), [_, columns] if *columns == GRID_COLUMNS as u64);
        let prefix = |info: &ArrayInfo| {
            let prefix = info.name.strip_suffix(name.as_str())?;
            let is_whole = prefix.is_empty() || prefix.ends_with('/');
            (is_whole && field.name.starts_with(prefix) && is_table(info)).then_some(prefix.len())
        };
        let tables =
            (0u32..).zip(&self.arrays).filter_map(|(number, info)| Some((prefix(info)?, number, info)));
        tables.max_by_key(|(length, ..)| *length).map(|(_, number, info)| (number, info))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::one_array;

    fn named(name: &str, shape: &[u64], grids: Option<&str>) -> ArrayInfo {
        let mut array = one_array("<f8".parse().unwrap(), shape, shape).arrays.remove(0);
        array.name = name.into();
        array.attributes.extend(grids.map(|of| (GRIDS_ATTRIBUTE.to_owned(), Attribute::Text(of.to_owned()))));
        array
    }

    #[test]
    fn the_table_of_a_field_stands_where_the_field_does() {
        let mut dataset = one_array("<f8".parse().unwrap(), &[4; 3], &[4; 3]);
        dataset.arrays = vec![
            named("a/amr/rho", &[4; 3], Some("amr/grids")),
            named("b/amr/rho", &[4; 3], Some("amr/grids")),
            named("amr/grids", &[2, 7], None),
            named("b/amr/grids", &[3, 7], None),
            named("c/amr/rho", &[4; 3], Some("amr/others")),
            named("xamr/others", &[3, 7], None),
            named("c/amr/others", &[3, 6], None),
            named("plain", &[4; 3], None),
        ];
        let found =
            [0, 1, 4, 7].map(|field| dataset.grids_of(&dataset.arrays[field]).map(|(number, _)| number));
        assert_eq!(found, [Some(2), Some(3), None, None]);
    }

    #[test]
    fn rows_are_boxes_or_refused() {
        let table = named("amr/grids", &[1, 7], None);
        let read = |row: [f64; 7]| GridBox::from_rows(&row.map(f64::to_le_bytes).concat(), &table);
        let grid = GridBox { level: 2, lower: [0.0, -1.0, 3.0], upper: [1.0, 0.5, 3.0] };
        assert_eq!(read([2.0, 0.0, -1.0, 3.0, 1.0, 0.5, 3.0]).unwrap(), [grid]);
        for bad in [
            [2.5, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
            [64.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
            [0.0, 2.0, 0.0, 0.0, 1.0, 1.0, 1.0],
            [0.0, f64::NAN, 0.0, 0.0, 1.0, 1.0, 1.0],
        ] {
            assert!(read(bad).unwrap_err().to_string().contains("lower and upper corner"));
        }
    }
}
