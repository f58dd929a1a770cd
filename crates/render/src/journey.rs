//! Journeys of a camera: the places from which the pictures of a film are taken.

use array::{Error, Result};
use glam::{DMat3, DQuat, DVec3};

use crate::camera::{Camera, Projection};

/// Once about the target, or a part of it: `pictures` cameras from `camera` on, turning by `degrees` in all about its up
/// axis (positive moves the eye to the right). Of a whole turn the last picture is one step before the first, so that the
/// film can be shown in a loop.
#[must_use]
pub fn turn(camera: &Camera, degrees: f64, pictures: u32) -> Vec<Camera> {
    let step_rad = degrees.to_radians() / f64::from(pictures.max(1));
    (0..pictures).map(|number| camera.orbit(f64::from(number) * step_rad, 0.0)).collect()
}

/// From the first of several places through all others to the last one: `pictures` cameras at even shares of the way,
/// each leg of which is as long as the others. What is looked at moves straight; the line of sight and up turn evenly about
/// one axis (slerp, Shoemake 1985); distance and span change by the same factor from picture to picture, so that zooming
/// looks even.
///
/// # Errors
/// `Invalid` for no place, one that is no camera ([`Camera::check`]), or places with different projections.
pub fn through(places: &[Camera], pictures: u32) -> Result<Vec<Camera>> {
    let first = places.first().ok_or_else(|| Error::invalid("expected a camera or several, found none"))?;
    places.iter().try_for_each(Camera::check)?;
    let kind = std::mem::discriminant(&first.projection);
    if places.iter().any(|place| std::mem::discriminant(&place.projection) != kind) {
        return Err(Error::invalid(
            "expected cameras that are all in perspective, or all orthographic; found both",
        ));
    }
    let legs = places.len() - 1;
    Ok((0..pictures)
        .map(|number| {
            let share = f64::from(number) / f64::from(pictures.max(2) - 1);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "0 to the number of legs"
            )]
            let leg = ((share * legs as f64) as usize).min(legs.saturating_sub(1));
            between(&places[leg], &places[(leg + 1).min(legs)], share * legs as f64 - leg as f64)
        })
        .collect())
}

/// Where a camera that has come from `before` to `now` will be when as much time again, times `ahead`, has passed: it goes on
/// as on a [journey](through), by 30 degrees and to twice or half the distance at most. Where the two are not of one
/// projection, or one is no camera, it stays.
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
        // The field of view does not go on changing: it might leave what is legal.
        (Projection::Perspective { .. }, kept) => kept,
        (moved, _) => moved,
    };
    Camera { projection, ..moved }
}

/// Farthest that a prediction turns.
const MOST_AHEAD_RAD: f64 = std::f64::consts::FRAC_PI_6;

/// At a share of the way from one legal camera to another of the same projection.
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

/// How the image lies in space: x to the right, y up, z towards the eye.
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
    use crate::camera::Bounds;

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

    #[test]
    fn a_way_begins_and_ends_at_its_places_and_passes_the_others() {
        let places = [camera([0.0, 1.0, 0.0]), camera([1.0, 0.0, 0.0]).zoom(4.0), camera([0.0, 0.0, -1.0])];
        let cameras = through(&places, 5).unwrap();
        for (found, place) in [(0, 0), (2, 1), (4, 2)] {
            assert!(is_near(cameras[found].eye, places[place].eye), "{found}");
            assert!(is_near(cameras[found].target, places[place].target), "{found}");
        }
        // Halfway between front and left, and twice as near as at first.
        let ratio = length(&cameras[1]) / length(&places[0]);
        assert!((ratio - 0.5).abs() < 1e-9, "{ratio}");
        cameras.iter().try_for_each(Camera::check).unwrap();
        assert_eq!(through(&places[..1], 3).unwrap().len(), 3, "one place: a picture that stands");
        assert_eq!(through(&places, 1).unwrap().len(), 1);
    }

    #[test]
    fn a_way_needs_places_of_one_kind() {
        let place = camera([0.0, 1.0, 0.0]);
        through(&[], 3).unwrap_err();
        through(&[place, place.orthographic()], 3).unwrap_err();
        through(&[place, Camera { eye: place.target, ..place }], 3).unwrap_err();
        let near = through(&[place.orthographic(), place.orthographic().zoom(4.0)], 3).unwrap();
        assert!((near[1].height_at_target() * 2.0 - place.height_at_target()).abs() < 1e-9);
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
