//! Default camera: a flat volume fills the picture, seen straight from its broad side; any other is seen from
//! the front, a little right and above; a person from where the face is.
//!
//! Orientation of a flat volume: if the file places its axes in the world (coordinates, a map into world
//! space), north and up are at the top. Otherwise it is shown as images are: row 0 on top, column 0 left.

use glam::DVec3;
use view::Projection;

use crate::scene::volume::xyz;
use crate::{Bounds, Camera, ImageSize, VolumeView};

/// Factor by which the thinnest side of a volume of several layers must be shorter than the next one for the
/// volume to be flat.
const FLAT: f64 = 8.0;
/// Longest side that is shown whole, as a multiple of the second longest; only the middle of a longer one is
/// shown, as the whole would be very thin.
const LONGEST: f64 = 64.0;
/// Line of sight on a volume in anatomical space, whose y axis leads to the front of a person.
const TO_A_PERSON: [f64; 3] = [0.45, -0.8, -0.4];

/// Returns the default camera for a volume in a picture of this size.
#[must_use]
pub fn first_camera(view: &VolumeView, size: ImageSize) -> Camera {
    let edges = edges(view);
    match flat_axis(view) {
        Some(axis) => facing(view, edges, axis, size),
        None => {
            let direction = if view.is_anatomical { TO_A_PERSON } else { Camera::DEFAULT_DIRECTION };
            Camera::enclosing(&seen(view, edges), direction, size)
        }
    }
}

impl VolumeView {
    /// True for a volume that [`first_camera`] looks at from its broad side.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        flat_axis(self).is_some()
    }
}

/// Returns the sides of the volume along x, y, z, world space.
fn edges(view: &VolumeView) -> [DVec3; 3] {
    let (map, counts) = (view.world_from_volume.matrix3, xyz(view.levels[0].shape));
    [0, 1, 2].map(|axis| map.col(axis) * counts[axis])
}

/// Returns the axis that a flat volume is thin along: the axis with only one layer, or the thinnest by far.
fn flat_axis(view: &VolumeView) -> Option<usize> {
    let counts = xyz(view.levels[0].shape);
    let single = |axis: usize| counts[axis % 3] <= 1.0;
    let is_layer = |&axis: &usize| single(axis) && !single(axis + 1) && !single(axis + 2);
    if let Some(axis) = (0..3).find(is_layer) {
        return Some(axis);
    }
    let edges = edges(view);
    let length = |axis: usize| edges[axis % 3].length();
    // The thinnest, if there are several.
    let thinnest = (0..3).min_by(|&a, &b| length(a).total_cmp(&length(b)))?;
    (length(thinnest) * FLAT < length(thinnest + 1).min(length(thinnest + 2))).then_some(thinnest)
}

/// Returns the box that is framed: the whole volume, or the middle of a very long one.
fn seen(view: &VolumeView, edges: [DVec3; 3]) -> Bounds {
    let whole = view.bounds();
    let mut lengths = edges.map(|edge| edge.length());
    lengths.sort_by(f64::total_cmp);
    let [_, second, longest] = lengths;
    if longest <= LONGEST * second {
        return whole;
    }
    let share = LONGEST * second / longest;
    let middle = DVec3::from(whole.center());
    let part = |edge: DVec3| if edge.length() >= longest { edge * share } else { edge };
    let half = edges.map(part).into_iter().fold(DVec3::ZERO, |sum, edge| sum + edge.abs()) / 2.0;
    Bounds { min: (middle - half).into(), max: (middle + half).into() }
}

/// Returns a camera that looks straight at the broad side of a volume flat along an axis, so near that it
/// fills the picture.
fn facing(view: &VolumeView, edges: [DVec3; 3], flat: usize, size: ImageSize) -> Camera {
    let (forward, up) = stance(view, edges, flat);
    let right = forward.cross(up);
    let (mut half, depth) = (DVec3::ZERO, edges[flat].length() / 2.0);
    for (axis, edge) in edges.into_iter().enumerate().filter(|(axis, _)| *axis != flat) {
        let other = (0..3).find(|&other| other != flat && other != axis).map_or(1.0, |o| edges[o].length());
        let share = (LONGEST * other / edge.length()).min(1.0);
        half += DVec3::new(edge.dot(right).abs(), edge.dot(up).abs(), 0.0) * (share / 2.0);
    }
    let aspect = f64::from(size.width.max(1)) / f64::from(size.height.max(1));
    let tangent = (Camera::DEFAULT_FOV_Y_RAD / 2.0).tan();
    let distance = depth + Camera::MARGIN * (half.y / tangent).max(half.x / (tangent * aspect));
    let center = DVec3::from(view.bounds().center());
    Camera {
        eye: (center - forward * distance).into(),
        target: center.into(),
        up: up.into(),
        projection: Projection::Perspective { fov_y_rad: Camera::DEFAULT_FOV_Y_RAD },
        aside: 0.0,
    }
}

/// Returns the line of sight and upward direction for a volume that is flat along an axis: perpendicular unit
/// vectors.
fn stance(view: &VolumeView, edges: [DVec3; 3], flat: usize) -> (DVec3, DVec3) {
    // The first of the two axes in the file, `[z, y, x]`, is that of rows.
    let (columns, rows) = match flat {
        0 => (1, 2),
        1 => (0, 2),
        _ => (0, 1),
    };
    let (across, down) = (edges[columns].normalize_or(DVec3::X), edges[rows].normalize_or(DVec3::Y));
    let normal = across.cross(down).normalize_or(DVec3::Z);
    if view.has_image_rows {
        return (normal, (-down).reject_from_normalized(normal).normalize_or(DVec3::NEG_Y));
    }
    // From above, from the front, from the right.
    let steepest = normal.abs().to_array();
    let (toward, up) = if steepest[2] >= steepest[0].max(steepest[1]) {
        (DVec3::NEG_Z, DVec3::Y)
    } else if steepest[1] >= steepest[0] {
        (DVec3::Y, DVec3::Z)
    } else {
        (DVec3::NEG_X, DVec3::Z)
    };
    let forward = if normal.dot(toward) < 0.0 { -normal } else { normal };
    (forward, up.reject_from_normalized(forward).normalize_or(up))
}

#[cfg(test)]
mod tests {
    use array::{Affine, Coordinates, Level, LevelOrigin};

    use super::*;
    use crate::scene::camera::Lens;
    use crate::scene::volume::tests::{ZYX, dataset};

    const SIZE: ImageSize = ImageSize { width: 100, height: 60 };

    fn volume(shape: [u64; 3], map: Affine, is_placed: bool) -> VolumeView {
        let level = Level {
            shape: shape.to_vec(),
            block: shape.to_vec(),
            chunk: None,
            origin: LevelOrigin::Stored,
            factor: vec![1.0; 3],
            world_from_voxel: map,
        };
        let mut data = dataset(&ZYX, "|u1".parse().unwrap(), vec![level]);
        if is_placed {
            data.arrays[0].axes[1].coordinates = Coordinates::Regular { origin: 0.0, step: 1.0 };
        }
        VolumeView::new(&data, 0, &[]).unwrap()
    }

    /// Place of a voxel `(x, y, z)` in the picture: column and row, as shares of its size.
    fn place(view: &VolumeView, voxel: [f64; 3]) -> [f64; 2] {
        let lens = Lens::new(&first_camera(view, SIZE), SIZE).unwrap();
        let [column, row] = lens.pixel_of(view.world_from_volume.transform_point3(voxel.into())).unwrap();
        [column / 100.0, row / 60.0]
    }

    #[test]
    fn images_have_row_0_on_top_and_fill_the_picture() {
        for (shape, last) in [
            ([1, 40, 90], [89.0, 39.0, 0.0]),
            ([40, 1, 90], [89.0, 0.0, 39.0]),
            ([40, 90, 1], [0.0, 89.0, 39.0]),
        ] {
            let view = volume(shape, Affine::IDENTITY, false);
            let ([left, top], [right, bottom]) = (place(&view, [0.0; 3]), place(&view, last));
            assert!(left < 0.05 && right > 0.95, "{shape:?}: {left} to {right}");
            assert!(top < 0.2 && bottom > 0.8, "{shape:?}: {top} to {bottom}");
        }
        assert!(volume([1, 5, 9], Affine::from_spacing([1.0, 1.0, 40.0], [0.0; 3]), false).is_flat());
        let tall = volume([1, 200, 90], Affine::IDENTITY, false);
        assert!(place(&tall, [0.0; 3])[1] < 0.05 && place(&tall, [0.0, 199.0, 0.0])[1] > 0.95);
    }

    #[test]
    fn north_is_up_on_maps_whichever_way_they_are_stored() {
        for step in [1.0, -1.0] {
            let map = Affine::from_spacing([1.0, step, 1.0], [0.0; 3]);
            let view = volume([1, 40, 90], map, true);
            let [[left, first], [right, last]] = [place(&view, [0.0; 3]), place(&view, [89.0, 39.0, 0.0])];
            assert!(left < right && (last < first) == (step > 0.0), "{step}: {first}, {last}");
        }
        // Rows from north to south, and no word of it but the map's.
        let view = volume([1, 40, 90], Affine::from_spacing([1.0, -1.0, 1.0], [0.0; 3]), false);
        assert!(place(&view, [0.0; 3])[1] < place(&view, [0.0, 39.0, 0.0])[1]);
    }

    #[test]
    fn a_turned_slice_is_faced_and_a_volume_is_seen_from_the_front() {
        let (sin, cos) = 0.5f64.sin_cos();
        let map = Affine([[cos, 0.0, -sin, 0.0], [0.0, 1.0, 0.0, 0.0], [sin, 0.0, cos, 0.0]]);
        let view = volume([1, 40, 90], map, true);
        let [left, top] = place(&view, [0.0, 39.0, 0.0]);
        let [right, bottom] = place(&view, [89.0, 0.0, 0.0]);
        assert!(left < 0.05 && right > 0.95 && top < bottom, "{left} {right} {top} {bottom}");
        let cube = volume([40; 3], Affine::IDENTITY, false);
        assert_eq!(
            first_camera(&cube, SIZE),
            Camera::enclosing(&cube.bounds(), Camera::DEFAULT_DIRECTION, SIZE)
        );
    }

    #[test]
    fn a_person_is_seen_from_the_front() {
        let mut head = volume([40; 3], Affine::IDENTITY, false);
        head.is_anatomical = true;
        let [nose, back] = [[20.0, 40.0, 20.0], [20.0, 0.0, 20.0]].map(DVec3::from_array);
        let camera = first_camera(&head, SIZE);
        let eye = DVec3::from(camera.eye);
        assert!(eye.distance(nose) < eye.distance(back), "{camera:?}");
        assert!(place(&head, [20.0, 20.0, 40.0])[1] < place(&head, [20.0, 20.0, 0.0])[1], "upright");
    }

    #[test]
    fn of_what_is_very_long_the_middle_is_seen() {
        for shape in [[1_000_000, 4, 4], [1, 20, 1_000_000]] {
            let view = volume(shape, Affine::IDENTITY, false);
            let middle = xyz(shape) / 2.0;
            let one = place(&view, (middle - DVec3::splat(0.5)).into());
            let other = place(&view, (middle + DVec3::new(3.0, 3.0, 3.0).min(middle)).into());
            let apart = (one[0] - other[0]).hypot(one[1] - other[1]);
            assert!(apart > 0.002 && apart < 1.0, "{shape:?}: {apart}");
        }
    }
}
