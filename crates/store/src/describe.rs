//! Small helpers with which formats write their descriptions.

use array::{
    Affine, ArrayInfo, Attributes, Axis, AxisKind, Coordinates, DType, Decoding, Level, LevelOrigin, Meaning,
    choose_blocks,
};

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
    let level = level_zero(dtype, &axes, shape, chunk, world);
    ArrayInfo {
        name: name.to_owned(),
        dtype,
        axes,
        units: String::new(),
        attributes: Attributes::new(),
        decoding: Decoding::identity(dtype),
        meaning: Meaning::Intensity,
        levels: vec![level],
        world_units: String::new(),
        notes: Vec::new(),
    }
}

/// Level 0 as it is stored.
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

/// The axis-aligned map that regular coordinates give; index space on the other axes.
#[must_use]
pub(crate) fn world_from_axes(axes: &[Axis]) -> Affine {
    let mut spacing = [1.0; 3];
    let mut origin = [0.0; 3];
    for axis in axes {
        let place = match axis.kind {
            AxisKind::X => 0,
            AxisKind::Y => 1,
            AxisKind::Z => 2,
            _ => continue,
        };
        if let Coordinates::Regular { origin: first, step } = axis.coordinates {
            spacing[place] = step;
            origin[place] = first;
        }
    }
    Affine::from_spacing(spacing, origin)
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
