//! Camera paths: the cameras from which the pictures of a film are taken.

mod smooth;

use array::{Error, Result};
use glam::{DMat3, DQuat, DVec3};
use view::Projection;

use self::smooth::Smooth;
use crate::scene::camera::Camera;

/// Interpolation between the cameras of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CameraPath {
    /// Smooth curve without a bend at any camera; the speed never jumps.
    #[default]
    Smooth,
    /// Straight legs, with a bend at each camera: the target moves evenly along a line, the line of sight and
    /// up turn evenly about one axis (slerp, Shoemake 1985), and distance and span change by the same factor
    /// from picture to picture.
    Straight,
}

/// Returns an orbit around the target, or a part of it: `pictures` cameras from `camera` on, turning by
/// `degrees` in all about its up axis (positive moves the eye to the right). The last picture of a full orbit
/// is one step before the first, so that the film can be shown in a loop.
#[must_use]
pub fn turn(camera: &Camera, degrees: f64, pictures: u32) -> Vec<Camera> {
    let step_rad = degrees.to_radians() / f64::from(pictures.max(1));
    (0..pictures).map(|number| camera.orbit(f64::from(number) * step_rad, 0.0)).collect()
}

/// Returns `pictures` cameras from the first of several key cameras through all others to the last one, at
/// even shares of the time; each leg takes as long as the others. Every key camera is passed exactly, by a
/// picture if pictures and legs come out even.
///
/// # Errors
/// `Invalid` for no key camera, an invalid one ([`Camera::check`]), or key cameras with different
/// projections.
pub fn through(key_cameras: &[Camera], pictures: u32, path: CameraPath) -> Result<Vec<Camera>> {
    let none = || Error::invalid("expected a camera or several, found none");
    let first = key_cameras.first().ok_or_else(none)?;
    key_cameras.iter().try_for_each(Camera::check)?;
    let kind = std::mem::discriminant(&first.projection);
    if key_cameras.iter().any(|camera| std::mem::discriminant(&camera.projection) != kind) {
        return Err(Error::invalid(
            "expected cameras that are all in perspective, or all orthographic; found both",
        ));
    }
    let shares = (0..pictures).map(|number| f64::from(number) / f64::from(pictures.max(2) - 1));
    Ok(match path {
        CameraPath::Straight => shares.map(|share| straight(key_cameras, share)).collect(),
        CameraPath::Smooth => {
            let smooth = Smooth::new(key_cameras).ok_or_else(none)?;
            shares.map(|share| smooth.at(share)).collect()
        }
    })
}

/// Returns the camera at a share of the path; the path has at least one camera.
fn straight(places: &[Camera], share: f64) -> Camera {
    let legs = places.len() - 1;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to the number of legs")]
    let leg = ((share * legs as f64) as usize).min(legs.saturating_sub(1));
    between(&places[leg], &places[(leg + 1).min(legs)], share * legs as f64 - leg as f64)
}

/// Predicts the camera that moved from `before` to `now` after `ahead` times the time of that move. It
/// continues as on a [straight](CameraPath::Straight) path, by at most 30 degrees and to at most twice or
/// half the distance. If the two cameras have different projections, or one of them is not legal, it stays at
/// `now`.
#[must_use]
pub fn predicted(before: &Camera, now: &Camera, ahead: f64) -> Camera {
    let is_one_kind = std::mem::discriminant(&before.projection) == std::mem::discriminant(&now.projection);
    let (Some(from), Some(to)) = (turned(before), turned(now)) else { return *now };
    if !is_one_kind || ahead.is_nan() || ahead <= 0.0 || before.check().is_err() || now.check().is_err() {
        return *now;
    }
    let within = |most: f64, each: f64| if each > 0.0 { most / each } else { f64::INFINITY };
    let nearer = |a: f64, b: f64| (b / a).ln().abs();
    let span = [before, now].map(Camera::height_at_target);
    let most =
        within(MOST_AHEAD_RAD, from.angle_between(to)).min(within(2f64.ln(), nearer(span[0], span[1])));
    let ahead = ahead.min(most);
    let moved = between(before, now, 1.0 + ahead);
    let projection = match (moved.projection, now.projection) {
        // The field of view is not extrapolated: it might leave the legal range.
        (Projection::Perspective { .. }, kept) => kept,
        (moved, _) => moved,
    };
    Camera { projection, ..moved }
}

/// Largest angle that a prediction turns.
const MOST_AHEAD_RAD: f64 = std::f64::consts::FRAC_PI_6;

/// Returns the camera at a share of the path from one legal camera to another of the same projection.
fn between(a: &Camera, b: &Camera, share: f64) -> Camera {
    let (Some(from), Some(to)) = (turned(a), turned(b)) else { return *a };
    let rotation = from.slerp(to, share);
    let target = DVec3::from(a.target).lerp(b.target.into(), share);
    let distance = geometric(length(a), length(b), share);
    let projection = match (a.projection, b.projection) {
        (Projection::Perspective { fov_y_rad: a }, Projection::Perspective { fov_y_rad: b }) => {
            Projection::Perspective { fov_y_rad: a + (b - a) * share }
        }
        (Projection::Orthographic { height_world: a }, Projection::Orthographic { height_world: b }) => {
            Projection::Orthographic { height_world: geometric(a, b, share) }
        }
        (projection, _) => projection,
    };
    Camera {
        eye: (target + rotation * DVec3::Z * distance).into(),
        target: target.into(),
        up: (rotation * DVec3::Y).into(),
        projection,
        aside: a.aside + (b.aside - a.aside) * share,
    }
}

/// Orientation of the image in space: x to the right, y up, z toward the eye.
fn turned(camera: &Camera) -> Option<DQuat> {
    let axes = camera.axes()?;
    Some(DQuat::from_mat3(&DMat3::from_cols(axes.right, axes.up, -axes.forward)))
}

fn length(camera: &Camera) -> f64 {
    DVec3::from(camera.eye).distance(camera.target.into())
}

fn geometric(a: f64, b: f64, share: f64) -> f64 {
    a * (b / a).powf(share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::camera::Bounds;

    fn camera(direction: [f64; 3]) -> Camera {
        Camera::framing(&Bounds { min: [0.0; 3], max: [2.0, 1.0, 1.0] }, direction)
    }

    fn is_near(a: [f64; 3], b: [f64; 3]) -> bool {
        DVec3::from(a).distance(b.into()) < 1e-9
    }

    #[test]
    fn a_whole_turn_is_a_loop() {
        let start = camera([0.0, 1.0, 0.0]);
        let cameras = turn(&start, 360.0, 4);
        assert_eq!(cameras.len(), 4);
        assert!(is_near(cameras[0].eye, start.eye));
        let target = DVec3::from(start.target);
        let opposite = target * 2.0 - DVec3::from(start.eye);
        assert!(is_near(cameras[2].eye, opposite.into()), "{:?}", cameras[2]);
        assert!(cameras.iter().all(|c| (length(c) - length(&start)).abs() < 1e-9));
    }

    /// Places of which none lies in line with its neighbors, with legs of different lengths.
    fn places() -> [Camera; 5] {
        [
            camera([0.0, 1.0, 0.0]),
            camera([1.0, 0.0, 0.0]).zoom(4.0),
            camera([1.0, 0.2, -0.1]).zoom(4.5),
            camera([0.0, -1.0, 0.3]).pan(0.4, -0.2),
            camera([0.0, 0.0, -1.0]).zoom(0.5),
        ]
    }

    #[test]
    fn a_way_begins_and_ends_at_its_places_and_passes_the_others() {
        for way in [CameraPath::Smooth, CameraPath::Straight] {
            for places in [places(), places().map(|place| place.orthographic())] {
                let cameras = through(&places, 41, way).unwrap();
                cameras.iter().try_for_each(Camera::check).unwrap();
                for (place, found) in places.iter().zip(cameras.iter().step_by(10)) {
                    let is_there = is_near(found.eye, place.eye) && is_near(found.target, place.target);
                    assert!(is_there && axes_part(found, place) < 1e-6, "{way:?}: {found:?} {place:?}");
                    let spans = [found, place].map(Camera::height_at_target);
                    assert!((spans[0] / spans[1] - 1.0).abs() < 1e-9, "{spans:?}");
                }
            }
            assert_eq!(through(&places()[..1], 3, way).unwrap().len(), 3, "one place: a picture that stands");
            assert_eq!(through(&places(), 1, way).unwrap().len(), 1);
        }
    }

    /// Distance between the axes of two images.
    fn axes_part(a: &Camera, b: &Camera) -> f64 {
        let [a, b] = [a, b].map(|camera| camera.axes().unwrap());
        (a.right - b.right).length() + (a.up - b.up).length()
    }

    /// Largest relative change of speed at a key camera: of the eye, the target, up and the zoom.
    fn largest_jump(places: &[Camera], way: CameraPath) -> f64 {
        const STEPS: u32 = 1000;
        let legs = u32::try_from(places.len() - 1).unwrap();
        let cameras = through(places, legs * STEPS + 1, way).unwrap();
        let numbers = |camera: &Camera| {
            let all = [camera.eye, camera.target, camera.axes().unwrap().up.into()].concat();
            [all, vec![camera.height_at_target().ln()]].concat()
        };
        let speed = |from: &Camera, to: &Camera| -> Vec<f64> {
            let each = numbers(from).into_iter().zip(numbers(to));
            each.map(|(a, b)| (b - a) * f64::from(STEPS)).collect()
        };
        let fastest =
            cameras.windows(2).flat_map(|two| speed(&two[0], &two[1])).fold(0.0, |a: f64, b| a.max(b.abs()));
        let jump = |place: usize| {
            let at = place * STEPS as usize;
            let (before, after) =
                (speed(&cameras[at - 1], &cameras[at]), speed(&cameras[at], &cameras[at + 1]));
            before.iter().zip(&after).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        (1..places.len() - 1).map(jump).fold(0.0, f64::max) / fastest
    }

    #[test]
    fn a_smooth_way_has_no_bend_and_no_jump_of_speed_at_a_place() {
        for places in [places(), places().map(|place| place.orthographic())] {
            let (smooth, straight) =
                (largest_jump(&places, CameraPath::Smooth), largest_jump(&places, CameraPath::Straight));
            assert!(smooth < 0.005 && straight > 0.1, "{smooth} {straight}");
        }
    }

    #[test]
    fn a_smooth_way_stands_where_a_place_follows_itself_and_never_goes_back() {
        let [a, b, ..] = places();
        let cameras = through(&[a, b, b, a.zoom(3.0)], 31, CameraPath::Smooth).unwrap();
        assert!(cameras[10..=20].iter().all(|camera| is_near(camera.eye, b.eye)));
        let same = through(&[a; 3], 5, CameraPath::Smooth).unwrap();
        assert!(same.iter().all(|camera| is_near(camera.eye, a.eye) && axes_part(camera, &a) < 1e-9));
        // Along one line of sight, in legs of very different lengths.
        let places = [1.0, 1.1, 30.0, 33.0].map(|factor| a.zoom(factor));
        let distances: Vec<f64> =
            through(&places, 100, CameraPath::Smooth).unwrap().iter().map(length).collect();
        assert!(distances.is_sorted_by(|nearer, far| nearer >= far), "{distances:?}");
    }

    #[test]
    fn two_places_are_a_straight_way() {
        let [a, b, ..] = places();
        let ways = [CameraPath::Smooth, CameraPath::Straight].map(|way| through(&[a, b], 9, way).unwrap());
        for (smooth, straight) in ways[0].iter().zip(&ways[1]) {
            assert!(is_near(smooth.eye, straight.eye) && axes_part(smooth, straight) < 1e-6, "{smooth:?}");
        }
        // Halfway between front and left, and twice as near as at first.
        let ratio = length(&ways[1][4]) / length(&a);
        assert!((ratio - 0.5).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn a_way_needs_places_of_one_kind() {
        let place = camera([0.0, 1.0, 0.0]);
        for way in [CameraPath::Smooth, CameraPath::Straight] {
            through(&[], 3, way).unwrap_err();
            through(&[place, place.orthographic()], 3, way).unwrap_err();
            through(&[place, Camera { eye: place.target, ..place }], 3, way).unwrap_err();
            let near = through(&[place.orthographic(), place.orthographic().zoom(4.0)], 3, way).unwrap();
            assert!((near[1].height_at_target() * 2.0 - place.height_at_target()).abs() < 1e-9);
        }
    }

    #[test]
    fn a_prediction_goes_on_as_the_camera_moved_but_not_too_far() {
        let start = camera([0.3, 1.0, -0.2]);
        let moved = start.orbit(0.1, 0.0).zoom(1.1);
        let ahead = predicted(&start, &moved, 0.5);
        let expected = start.orbit(0.15, 0.0).zoom(1.1f64.powf(1.5));
        assert!(DVec3::from(ahead.eye).distance(expected.eye.into()) < 0.01, "{ahead:?}");
        assert!(is_near(ahead.target, start.target));
        let turn = |a: &Camera, b: &Camera| turned(a).unwrap().angle_between(turned(b).unwrap()).to_degrees();
        let far = predicted(&start, &moved, 1e9);
        assert!(far.check().is_ok() && (turn(&moved, &far) - 30.0).abs() < 1.0, "{far:?}");
        assert_eq!(predicted(&start, &start, 3.0).projection, start.projection);
        assert_eq!(predicted(&start, &moved, f64::NAN), moved);
        assert_eq!(predicted(&start.orthographic(), &moved, 1.0), moved);
        let still = Camera { eye: start.target, ..start };
        assert_eq!(predicted(&still, &moved, 1.0), moved);
    }
}
