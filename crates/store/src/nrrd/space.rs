//! From a header's directions, spacings and space to one map into RAS space.

use array::{Affine, AxisKind};

use super::header::Header;

/// The map of level 0. Axes without a direction keep their spacing along the axis of the same place.
pub(super) fn world_from_voxel(header: &Header, kinds: &[AxisKind]) -> Affine {
    let signs = signs_to_ras(&header.space);
    let mut map = Affine::IDENTITY;
    for (described, kind) in header.axes.iter().zip(kinds) {
        let column = match kind {
            AxisKind::X => 0,
            AxisKind::Y => 1,
            AxisKind::Z => 2,
            _ => continue,
        };
        let steps = described.spacing.filter(|s| *s != 0.0).unwrap_or(1.0);
        let mut along = [0.0; 3];
        along[column] = steps;
        if let Some(direction) = &described.direction {
            along = padded(direction);
        } else {
            map.0[column][3] = described.min.unwrap_or(0.0);
        }
        for (row, (step, sign)) in map.0.iter_mut().zip(along.iter().zip(signs)) {
            row[column] = step * sign;
        }
    }
    if let Some(origin) = &header.space_origin {
        for (row, (at, sign)) in map.0.iter_mut().zip(padded(origin).iter().zip(signs)) {
            row[3] = at * sign;
        }
    }
    map
}

/// Length of a step.
pub(super) fn length(direction: &[f64]) -> f64 {
    direction.iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn padded(vector: &[f64]) -> [f64; 3] {
    let mut padded = [0.0; 3];
    padded.iter_mut().zip(vector).for_each(|(to, from)| *to = *from);
    padded
}

/// NRRD names a space by where its axes point: `left-posterior-superior` or `LPS`, perhaps with `-time`.
fn signs_to_ras(space: &str) -> [f64; 3] {
    match space.trim_end_matches("-time").trim_end_matches('t') {
        "left-posterior-superior" | "lps" => [-1.0, -1.0, 1.0],
        "left-anterior-superior" | "las" => [-1.0, 1.0, 1.0],
        _ => [1.0; 3],
    }
}
