//! Helpers with which formats write their descriptions.

use array::{
    Affine, ArrayInfo, Attribute, Attributes, Axis, AxisKind, Coordinates, DType, Decoding, ElementType,
    Level, LevelOrigin, Meaning, choose_blocks,
};

use crate::formats::common::units;

/// Least volume of a voxel that is not degenerate, as a share of the volume of a box with sides of the same length.
const MIN_VOLUME: f64 = 1e-9;

/// An array with one stored level: block grid chosen, values as stored, and everything unknown left empty.
/// World space follows from the axes, see [`world_from_axes`].
#[must_use]
pub(crate) fn array(
    name: &str,
    dtype: DType,
    axes: Vec<Axis>,
    shape: &[u64],
    chunk: Option<Vec<u64>>,
) -> ArrayInfo {
    let world = world_from_axes(&axes);
    let level = level_zero(dtype, &axes, shape, chunk, world.world_from_voxel);
    ArrayInfo {
        name: name.to_owned(),
        dtype,
        axes,
        units: String::new(),
        attributes: Attributes::new(),
        decoding: Decoding::identity(dtype),
        meaning: Meaning::Intensity,
        levels: vec![level],
        world_units: world.units,
        notes: world.notes,
        storage: array::Storage::default(),
    }
}

/// Describes level 0 as it is stored.
#[must_use]
pub(crate) fn level_zero(
    dtype: DType,
    axes: &[Axis],
    shape: &[u64],
    chunk: Option<Vec<u64>>,
    world_from_voxel: Affine,
) -> Level {
    let kinds: Vec<AxisKind> = axes.iter().map(|a| a.kind).collect();
    Level {
        shape: shape.to_vec(),
        block: choose_blocks(shape, &kinds, dtype, chunk.as_deref()),
        chunk,
        origin: LevelOrigin::Stored,
        factor: vec![1.0; shape.len()],
        world_from_voxel,
    }
}

/// World space as axes give it.
pub(crate) struct WorldSpace {
    pub(crate) world_from_voxel: Affine,
    /// Units of the axes that are to scale.
    pub(crate) units: String,
    /// Notes for people.
    pub(crate) notes: Vec<String>,
}

/// Returns the axis-aligned map of regular coordinates; index space on the other axes.
///
/// Axes share a scale only if their units do. The units are those of x, else of y, else of z: an axis in another length is
/// converted, an axis without units is assumed to have them, and one in no such length (degrees beside meters, time or speed
/// beside space) is drawn from 0 with steps of one cell of the others, which a note states.
#[must_use]
pub(crate) fn world_from_axes(axes: &[Axis]) -> WorldSpace {
    let of = |kind| axes.iter().find(|axis| axis.kind == kind);
    world_of([AxisKind::X, AxisKind::Y, AxisKind::Z].map(|kind| {
        of(kind).map(|axis| match axis.coordinates {
            Coordinates::Regular { origin, step } => (axis, origin, step),
            _ => (axis, 0.0, 1.0),
        })
    }))
}

/// Returns the map of [`world_from_axes`] for axes x, y, z, given the position of their first sample and the step between samples.
#[must_use]
pub(crate) fn world_of(axes: [Option<(&Axis, f64, f64)>; 3]) -> WorldSpace {
    let known = axes.iter().flatten().map(|(axis, ..)| axis.units.as_str());
    let units = known.into_iter().find(|units| !units.is_empty()).unwrap_or_default().to_owned();
    let to_scale = axes.map(|axis| axis.map_or(Some(1.0), |(axis, ..)| units::factor(&axis.units, &units)));
    let steps = axes.iter().zip(to_scale);
    let steps: Vec<f64> = steps.filter_map(|(axis, scale)| Some(((*axis)?.2 * scale?).abs())).collect();
    #[expect(clippy::cast_precision_loss, reason = "at most three")]
    let cell = steps.iter().product::<f64>().powf(1.0 / steps.len().max(1) as f64);
    let (mut spacing, mut origin) = ([1.0; 3], [0.0; 3]);
    let mut notes = Vec::new();
    for (place, axis) in axes.into_iter().enumerate() {
        let Some((axis, first, step)) = axis else { continue };
        if let Some(scale) = to_scale[place] {
            (spacing[place], origin[place]) = (step * scale, first * scale);
            continue;
        }
        spacing[place] = cell.copysign(step);
        notes.push(format!(
            "axis `{}` is in `{}`, the others in `{units}`: it is drawn with steps of one cell, not to scale",
            axis.name, axis.units
        ));
    }
    WorldSpace { world_from_voxel: Affine::from_spacing(spacing, origin), units, notes }
}

/// Whether a map keeps voxels apart in the world, so that pictures can be made of it. Along x, y, z with one voxel, the map need not
/// define the distance to the next one.
pub(crate) fn is_drawable(map: &[[f64; 4]; 3], sizes: [u64; 3]) -> bool {
    let cross = |a: [f64; 3], b: [f64; 3]| {
        [0, 1, 2].map(|i: usize| a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3])
    };
    let dot = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut columns = [0, 1, 2].map(|column: usize| [map[0][column], map[1][column], map[2][column]]);
    for axis in (0..3).filter(|&axis| sizes[axis] <= 1) {
        if columns[axis].iter().all(|&v| v == 0.0) {
            columns[axis] = cross(columns[(axis + 1) % 3], columns[(axis + 2) % 3]);
        }
    }
    let [x, y, z] = columns;
    let scale: f64 = columns.iter().map(|&column| dot(column, column).sqrt()).product();
    map.iter().flatten().all(|v| v.is_finite()) && dot(cross(x, y), z).abs() > MIN_VOLUME * scale
}

/// Names of the colors of an axis for the attribute `channels`: red, green, blue, and with four also opacity.
#[must_use]
pub(crate) fn color_names(parts: u64) -> Attribute {
    let names = ["red", "green", "blue", "alpha"].map(str::to_owned);
    Attribute::Texts(names.into_iter().take(usize::try_from(parts).unwrap_or(usize::MAX)).collect())
}

/// Names and kinds for an array of which nothing else is known: the last three axes are space, one before
/// them is time.
#[must_use]
pub(crate) fn guessed_axes(count: usize) -> Vec<Axis> {
    use AxisKind::{Other, Time, X, Y, Z};
    const KINDS: [AxisKind; 4] = [X, Y, Z, Time];
    (0..count)
        .map(|axis| {
            let from_last = count - 1 - axis;
            let kind = KINDS.get(from_last).copied().unwrap_or(Other);
            Axis::new(format!("dim{axis}"), kind)
        })
        .collect()
}

/// Names and kinds as [`guessed_axes`] gives them, but with the colors of images last: bytes in three or four channels.
#[must_use]
pub(crate) fn guessed_axes_of(dtype: DType, shape: &[u64]) -> Vec<Axis> {
    let has_colors =
        dtype.element() == ElementType::U8 && shape.len() > 2 && matches!(shape.last(), Some(3 | 4));
    if !has_colors {
        return guessed_axes(shape.len());
    }
    let mut axes = guessed_axes(shape.len() - 1);
    axes.push(Axis::new(format!("dim{}", shape.len() - 1), AxisKind::Channel));
    axes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_three_or_four_last_are_colors() {
        use AxisKind::{Channel, Time, X, Y, Z};
        let kinds = |element, shape: &[u64]| {
            guessed_axes_of(DType::native(element), shape).iter().map(|axis| axis.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(ElementType::U8, &[480, 640, 3]), [Y, X, Channel]);
        assert_eq!(kinds(ElementType::U8, &[9, 8, 480, 640, 4]), [Time, Z, Y, X, Channel]);
        assert_eq!(kinds(ElementType::U8, &[640, 3]), [Y, X]);
        assert_eq!(kinds(ElementType::U8, &[5, 640, 2]), [Z, Y, X]);
        assert_eq!(kinds(ElementType::F32, &[5, 640, 3]), [Z, Y, X]);
    }

    fn world(axes: [(AxisKind, &str, f64); 3]) -> WorldSpace {
        let axis = |(kind, units, step): (AxisKind, &str, f64)| Axis {
            units: units.into(),
            coordinates: Coordinates::Regular { origin: 10.0 * step, step },
            ..Axis::new(format!("{kind:?}"), kind)
        };
        world_from_axes(&axes.map(axis))
    }

    #[test]
    fn maps_that_lay_voxels_over_each_other_cannot_be_drawn() {
        let (x, y, z) = ([2.0, 0.0, 0.0, 9.0], [0.0, 3.0, 0.0, 9.0], [0.0, 0.0, 4.0, 9.0]);
        assert!(is_drawable(&[x, y, z], [2; 3]) && is_drawable(&[y, x, z], [2; 3]));
        let none = [0.0, 0.0, 0.0, 9.0];
        assert!(!is_drawable(&[none; 3], [2; 3]) && !is_drawable(&[x, y, none], [2; 3]));
        assert!(!is_drawable(&[x, x, z], [2; 3]) && !is_drawable(&[x, y, [0.0, 0.0, f64::NAN, 0.0]], [2; 3]));
        assert!(is_drawable(&[x, y, none], [2, 2, 1]), "one layer");
        assert!(is_drawable(&[none, y, z], [1, 2, 2]), "one column");
        assert!(!is_drawable(&[none; 3], [1; 3]));
    }

    #[test]
    fn axes_of_other_units_are_never_put_on_the_scale_of_space() {
        use AxisKind::{X, Y, Z};
        for other in ["m/s", "degrees", "s", "hours since 2001-01-01"] {
            let world = world([(Z, other, -7.0), (Y, "m", 2.0), (X, "m", 8.0)]);
            assert_eq!(world.world_from_voxel, Affine::from_spacing([8.0, 2.0, -4.0], [80.0, 20.0, 0.0]));
            assert_eq!(world.units, "m");
            assert!(world.notes[0].contains(other), "{:?}", world.notes);
        }
        // The picture's plane decides, whatever the axis in front of it is.
        let over_degrees = world([(Z, "m", 100.0), (Y, "degrees_north", 0.5), (X, "degrees_east", 0.5)]);
        assert_eq!(over_degrees.world_from_voxel.spacing(), [0.5; 3]);
    }

    #[test]
    fn lengths_are_converted_and_unknown_units_taken_for_the_same() {
        use AxisKind::{X, Y, Z};
        let world = world([(Z, "um", 500.0), (Y, "", 2.0), (X, "mm", 0.25)]);
        assert_eq!(world.world_from_voxel, Affine::from_spacing([0.25, 2.0, 0.5], [2.5, 20.0, 5.0]));
        assert!(world.notes.is_empty());
    }
}
