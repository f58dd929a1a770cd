//! Position of an array in the world, as a matrix from voxels to world coordinates.

use array::{Affine, ArrayInfo, AxisKind, Coordinates, Dataset, Level};
use serde_json::{Value, json};

/// Formats whose files position a volume in the world by one affine map, which coordinates of its axes cannot express.
/// Attributes of other formats are those of the file.
const WITH_MAP: [&str; 4] = ["NIfTI", "Analyze", "MGH", "NRRD"];

/// Returns whether the attributes of the data set's arrays contain their maps.
#[must_use]
pub fn has_maps(dataset: &Dataset) -> bool {
    WITH_MAP.contains(&dataset.format.as_str())
}

/// Returns the attributes of an array of such a data set, at a level: `world_from_voxel`, four rows of four numbers
/// that convert an index along z, y, x, and 1, to x, y, z in the world, and 1; and `world_units`.
#[must_use]
pub fn attributes(array: &ArrayInfo, level: &Level) -> [(&'static str, Value); 2] {
    [("world_from_voxel", json!(matrix(&level.world_from_voxel))), ("world_units", json!(array.world_units))]
}

/// Returns the map of voxels `[z, y, x, 1]`: the order of axes in arrays.
fn matrix(map: &Affine) -> [[f64; 4]; 4] {
    let row = |row: [f64; 4]| [row[2], row[1], row[0], row[3]];
    [row(map.0[0]), row(map.0[1]), row(map.0[2]), [0.0, 0.0, 0.0, 1.0]]
}

/// Returns whether the map is parallel to the axes of the world, each in its own direction: it is then a scale and an
/// offset per axis.
#[must_use]
pub fn is_upright(map: &Affine) -> bool {
    let at = |row: usize, column: usize| map.0[row][column];
    (0..3).all(|row| {
        (0..3).all(|column| if row == column { at(row, column) > 0.0 } else { at(row, column) == 0.0 })
    })
}

/// Returns the map as text for display, if coordinates of the axes do not express it already.
#[must_use]
pub fn text(array: &ArrayInfo) -> Option<String> {
    let map = &array.levels.first()?.world_from_voxel;
    let is_said = |kind: AxisKind, place: usize| {
        let Some(axis) = array.axes.iter().find(|axis| axis.kind == kind) else { return true };
        let (origin, step) = match axis.coordinates {
            Coordinates::Regular { origin, step } => (origin, step),
            _ => (0.0, 1.0),
        };
        map.0[place][place].to_bits() == step.to_bits() && map.0[place][3].to_bits() == origin.to_bits()
    };
    let kinds = [AxisKind::X, AxisKind::Y, AxisKind::Z].into_iter().zip(0..);
    if array.spatial_axes() == [None; 3] || (is_upright(map) && kinds.into_iter().all(|(k, n)| is_said(k, n)))
    {
        return None;
    }
    let units =
        if array.world_units.is_empty() { String::new() } else { format!(" in {}", array.world_units) };
    let line = |(name, row): (&str, [f64; 4])| {
        let [x, y, z, origin] = row;
        let term = |factor: f64, axis: &str| {
            (factor != 0.0)
                .then(|| format!("{} {} {axis}", if factor < 0.0 { "-" } else { "+" }, factor.abs()))
        };
        let terms: Vec<String> = [term(z, "k"), term(y, "j"), term(x, "i")].into_iter().flatten().collect();
        format!("{name} = {origin} {}", terms.join(" ")).trim_end().to_owned()
    };
    let lines: Vec<String> = ["x", "y", "z"].into_iter().zip(map.0).map(line).collect();
    Some(format!("world of voxel z, y, x = k, j, i{units}: {}", lines.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_takes_indices_in_the_order_of_axes() {
        let map = Affine([[2.0, 0.0, 7.0, 10.0], [0.0, 3.0, 0.0, 20.0], [0.0, 0.0, 4.0, 30.0]]);
        assert_eq!(
            matrix(&map),
            [[7.0, 0.0, 2.0, 10.0], [0.0, 3.0, 0.0, 20.0], [4.0, 0.0, 0.0, 30.0], [0.0, 0.0, 0.0, 1.0]]
        );
        assert!(!is_upright(&map) && is_upright(&Affine::from_spacing([1.0, 2.0, 3.0], [-1.0; 3])));
        assert!(!is_upright(&Affine::from_spacing([-1.0, 2.0, 3.0], [0.0; 3])));
    }
}
