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
}
