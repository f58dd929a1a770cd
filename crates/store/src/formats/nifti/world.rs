//! Maps from voxels to the world as nibabel computes them from the numbers of a header.

/// Origin of a map that follows from sizes of voxels alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum WorldOrigin {
    /// The middle of the volume.
    Middle,
    /// This voxel, counted from 1, as SPM wrote it into Analyze headers; the middle where it is zero or far outside.
    Voxel([f64; 3]),
}

/// Tolerance of the square of a quaternion's first component: rounding of single precision.
const ROUNDING: f64 = 3.0 * 1.192_092_895_507_812_5e-7;

/// Sizes of voxels that can be used: positive; 1 where there is none or no number.
pub(super) fn repaired(steps: [f64; 3]) -> [f64; 3] {
    steps.map(|step| if step == 0.0 || !step.is_finite() { 1.0 } else { step.abs() })
}

/// The map of a rotation, given as the last three parts of a quaternion; `None` where they are none of a rotation.
pub(super) fn by_quaternion(
    [x, y, z]: [f64; 3],
    origin: [f64; 3],
    steps: [f64; 3],
    handedness: f64,
) -> Option<[[f64; 4]; 3]> {
    let square = 1.0 - (x * x + y * y + z * z);
    let w = match square {
        s if s.abs() < ROUNDING => 0.0,
        s if s > 0.0 => s.sqrt(),
        _ => return None,
    };
    if !origin.iter().all(|v| v.is_finite()) {
        return None;
    }
    // Not quite a unit quaternion where `w` was rounded away.
    let s = 2.0 / (w * w + x * x + y * y + z * z);
    let rotation = [
        [1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)],
        [s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x)],
        [s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y)],
    ];
    Some([0, 1, 2].map(|i| {
        let [a, b, c] = rotation[i];
        [a * steps[0], b * steps[1], c * steps[2] * handedness, origin[i]]
    }))
}

/// The map without a rotation. The first axis points to the left of the world, as Analyze files were written.
#[expect(clippy::cast_precision_loss, reason = "sizes below 2^53")]
pub(super) fn by_steps(steps: [f64; 3], sizes: [u64; 3], origin: WorldOrigin) -> [[f64; 4]; 3] {
    let sizes = sizes.map(|n| n as f64);
    let middle = sizes.map(|n| (n - 1.0) / 2.0);
    let at = match origin {
        WorldOrigin::Voxel(voxel) if is_near(voxel, sizes) => voxel.map(|v| v - 1.0),
        _ => middle,
    };
    let mut map = [[0.0; 4]; 3];
    for axis in 0..3 {
        let step = if axis == 0 { -steps[0] } else { steps[axis] };
        map[axis][axis] = step;
        map[axis][3] = -at[axis] * step;
    }
    map
}

fn is_near(voxel: [f64; 3], sizes: [f64; 3]) -> bool {
    let is_set = voxel.iter().any(|&v| v != 0.0);
    is_set && voxel.iter().zip(sizes).all(|(&v, n)| v > -n && v < 2.0 * n)
}
