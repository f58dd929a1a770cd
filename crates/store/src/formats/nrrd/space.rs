//! Affine map into RAS space, made from the directions, the spacings and the space of a header.

use array::{Affine, Axis, AxisKind};

use super::header::{AxisFields, NrrdCentering, NrrdHeader};
use crate::{formats::common::describe, formats::common::units};

/// Returns the map of level 0 with its units, and notes for the user.
pub(super) fn world(header: &NrrdHeader, kinds: &[AxisKind], axes: &[Axis]) -> describe::WorldSpace {
    if !header.axes.iter().any(|axis| axis.direction.is_some()) {
        return by_axes(header, axes);
    }
    let signs = signs_to_ras(&header.space);
    let mut map = Affine::IDENTITY;
    let mut notes = Vec::new();
    for (described, kind) in header.axes.iter().zip(kinds) {
        let Some(column) = column(*kind) else { continue };
        let mut along = [0.0; 3];
        along[column] = described.spacing.filter(|s| *s != 0.0).map_or(1.0, f64::abs);
        if let Some(direction) = &described.direction {
            along = padded(direction);
            if direction.iter().skip(3).any(|&v| v != 0.0) {
                notes.push("components of directions beyond the third axis of space are ignored".to_owned());
            }
        }
        for (row, (step, sign)) in map.0.iter_mut().zip(along.iter().zip(signs)) {
            row[column] = step * sign + 0.0; // no -0, which is another number than 0 to whoever compares maps
        }
    }
    if let Some(origin) = &header.space_origin {
        for (row, (at, sign)) in map.0.iter_mut().zip(padded(origin).iter().zip(signs)) {
            row[3] = at * sign + 0.0;
        }
    }
    let units = to_one_scale(&mut map, &header.space_units, &mut notes);
    describe::WorldSpace { world_from_voxel: map, units, notes }
}

/// Axes of space in units of their own on the scale of the first: other lengths are converted, and one that is no length is
/// drawn with steps of one cell of the others. Where a turned volume mixes such units, nothing is to scale: voxels are drawn
/// as cubes.
fn to_one_scale(map: &mut Affine, space_units: &[String], notes: &mut Vec<String>) -> String {
    let units = space_units.iter().take(3).find(|units| !units.is_empty()).cloned().unwrap_or_default();
    for (number, own) in space_units.iter().enumerate().take(3) {
        if let Some(factor) = units::factor(own, &units) {
            map.0[number].iter_mut().for_each(|v| *v *= factor);
            continue;
        }
        let Some(column) = only_column(map, number) else {
            *map = Affine::IDENTITY;
            notes.push(format!("axes of space in `{own}` and in `{units}` are mixed by a turn: voxels are drawn as cubes, not to scale"));
            return String::new();
        };
        let others = map.spacing();
        let cell = (others[(column + 1) % 3] * others[(column + 2) % 3]).sqrt();
        map.0[number][column] = cell.copysign(map.0[number][column]);
        map.0[number][3] = 0.0;
        notes.push(format!(
            "an axis of space is in `{own}`, the others in `{units}`: it is drawn with steps of one cell, not to scale"
        ));
    }
    units
}

/// The only axis of voxels that leads along a row's axis of space, if it leads nowhere else.
fn only_column(map: &Affine, row: usize) -> Option<usize> {
    let mut along = (0..3).filter(|&column| map.0[row][column] != 0.0);
    let column = along.next().filter(|_| along.next().is_none())?;
    (0..3).all(|other| other == row || map.0[other][column] == 0.0).then_some(column)
}

/// Axes without directions, by their spacings or by where they begin and end.
fn by_axes(header: &NrrdHeader, axes: &[Axis]) -> describe::WorldSpace {
    let mut world = describe::world_of([AxisKind::X, AxisKind::Y, AxisKind::Z].map(|kind| {
        let place = axes.iter().position(|axis| axis.kind == kind)?;
        // Axes are given slowest first, fields fastest first.
        let number = header.sizes.len() - 1 - place;
        let described = &header.axes[number];
        Some((&axes[place], first(described, header.sizes[number]), step(described, header.sizes[number])))
    }));
    if let Some(origin) = &header.space_origin {
        for (row, at) in world.world_from_voxel.0.iter_mut().zip(padded(origin)) {
            row[3] = at;
        }
    }
    let signs = signs_to_ras(&header.space);
    for (row, sign) in world.world_from_voxel.0.iter_mut().zip(signs) {
        row.iter_mut().filter(|v| **v != 0.0).for_each(|v| *v *= sign);
    }
    world
}

/// Distance from one sample of an axis to the next: its spacing, else the distance by its ends, else 1.
pub(super) fn step(axis: &AxisFields, size: u64) -> f64 {
    known_step(axis, size).unwrap_or(1.0)
}

/// Distance of samples as in [`step`]; `None` if the header does not state it.
#[expect(clippy::cast_precision_loss, reason = "sizes far below 2^53")]
pub(super) fn known_step(axis: &AxisFields, size: u64) -> Option<f64> {
    let by_ends = || {
        let steps = if axis.center == NrrdCentering::Node { size.saturating_sub(1) } else { size };
        Some((axis.max? - axis.min?) / steps as f64)
    };
    let spacing = axis.spacing.or_else(by_ends);
    spacing.filter(|step| step.is_finite() && *step != 0.0)
}

/// Position of the first sample along an axis: the axis's beginning, or half a step behind it where that is a border.
pub(super) fn first(axis: &AxisFields, size: u64) -> f64 {
    let Some(min) = axis.min else { return 0.0 };
    // Without a centering, both ends are borders of cells, as in the format's own library.
    let is_border = match axis.center {
        NrrdCentering::Cell => true,
        NrrdCentering::Node => false,
        NrrdCentering::Unknown => axis.max.is_some(),
    };
    if is_border { min + step(axis, size) / 2.0 } else { min }
}

/// Length of a step.
pub(super) fn length(direction: &[f64]) -> f64 {
    direction.iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn column(kind: AxisKind) -> Option<usize> {
    match kind {
        AxisKind::X => Some(0),
        AxisKind::Y => Some(1),
        AxisKind::Z => Some(2),
        _ => None,
    }
}

fn padded(vector: &[f64]) -> [f64; 3] {
    let mut padded = [0.0; 3];
    padded.iter_mut().zip(vector).for_each(|(to, from)| *to = *from);
    padded
}

/// Whether the last axis of the header's space is time.
pub(super) fn has_time(space: &str) -> bool {
    space.ends_with("-time") || matches!(space, "rast" | "last" | "lpst")
}

/// Whether a header's space is that of a person, whose directions [`signs_to_ras`] makes those of RAS.
pub(super) fn is_anatomical(space: &str) -> bool {
    let is_ras = matches!(space.trim_end_matches("-time"), "right-anterior-superior" | "ras" | "rast");
    is_ras || signs_to_ras(space) != [1.0; 3]
}

/// NRRD names a space by the directions of its axes: `left-posterior-superior` or `LPS`, with an optional `-time`. The orientation of
/// the other spaces (scanner, right- or left-handed ones) in RAS space is undefined: they are returned unchanged.
fn signs_to_ras(space: &str) -> [f64; 3] {
    match space.trim_end_matches("-time") {
        "left-posterior-superior" | "lps" | "lpst" => [-1.0, -1.0, 1.0],
        "left-anterior-superior" | "las" | "last" => [-1.0, 1.0, 1.0],
        _ => [1.0; 3],
    }
}
