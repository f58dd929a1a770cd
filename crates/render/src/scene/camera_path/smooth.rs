//! Smooth path through key cameras.
//!
//! The target, its distance and the span of the image follow a centripetal Catmull-Rom spline (Yuksel,
//! Schaefer and Keyser 2011), the line of sight and up Bézier curves of rotations (Shoemake 1985) with the
//! same rule for the angular speed at a key camera. Each leg takes as long as the others; the progress over
//! time is a monotone cubic (Fritsch and Butland 1984), so that the camera never goes back, and stands still
//! between two equal key cameras.

use glam::{DQuat, DVec3};
use view::Projection;

use super::{length, turned};
use crate::scene::camera::Camera;

/// Values that are interpolated besides the rotation: the target, the logarithm of the distance, the [`span`]
/// of the projection, and the offset of the eye.
type CameraState = [f64; 6];

/// Key camera, and the derivatives with which the path passes it.
#[derive(Clone, Copy, Debug)]
struct PathStop {
    /// Position along the path.
    along: f64,
    state: CameraState,
    rotation: DQuat,
    /// Change of each value per unit of `along`; that of the rotation is an axis as long as the angle, in the
    /// image's axes.
    speed: CameraState,
    turning: DVec3,
}

/// Path through key cameras.
#[derive(Clone, Debug)]
pub(super) struct Smooth {
    /// Key cameras that differ from the one before them.
    stops: Vec<PathStop>,
    /// Position along the path of each key camera, and the speed at which it is passed, per time of a leg.
    along: Vec<f64>,
    pace: Vec<f64>,
    /// Kind of the projection.
    first: Camera,
}

impl Smooth {
    /// Creates a path through legal cameras of one projection; `None` for no camera.
    pub(super) fn new(places: &[Camera]) -> Option<Self> {
        let first = *places.first()?;
        let (mut stops, mut along): (Vec<PathStop>, Vec<f64>) = (Vec::new(), Vec::new());
        for place in places {
            let (state, rotation) = (state(place), turned(place)?);
            let here = PathStop { along: 0.0, state, rotation, speed: [0.0; 6], turning: DVec3::ZERO };
            let at = stops.last().map_or(0.0, |before| before.along + parting(before, &here).sqrt());
            if stops.last().is_none_or(|before| at > before.along) {
                stops.push(PathStop { along: at, ..here });
            }
            along.push(at);
        }
        let passing = |number: usize| {
            let before = number.checked_sub(1).map(|before| rates(&stops[before], &stops[number]));
            let after = stops.get(number + 1).map(|after| rates(&stops[number], after));
            match (before, after) {
                (Some(before), Some(after)) => blend(before, after),
                (Some(one), None) | (None, Some(one)) => (one.speed, one.turning),
                (None, None) => ([0.0; 6], DVec3::ZERO),
            }
        };
        let passed: Vec<_> = (0..stops.len()).map(passing).collect();
        for (stop, (speed, turning)) in stops.iter_mut().zip(passed) {
            (stop.speed, stop.turning) = (speed, turning);
        }
        let pace = paces(&along);
        Some(Self { stops, along, pace, first })
    }

    /// Returns the camera at a share of the path.
    pub(super) fn at(&self, share: f64) -> Camera {
        let legs = self.along.len() - 1;
        let time = share.clamp(0.0, 1.0) * legs as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to the number of legs"
        )]
        let leg = (time as usize).min(legs.saturating_sub(1));
        let next = (leg + 1).min(legs);
        let ends = [self.along[leg], self.along[next]];
        let along = hermite(ends, [self.pace[leg], self.pace[next]], time - leg as f64);
        let after = self.stops.partition_point(|stop| stop.along <= along).min(self.stops.len() - 1);
        let (a, b) = (&self.stops[after.saturating_sub(1)], &self.stops[after]);
        let far = b.along - a.along;
        if far <= 0.0 {
            return camera(&a.state, a.rotation, &self.first);
        }
        let share = (along - a.along) / far;
        let state = std::array::from_fn(|n| {
            hermite([a.state[n], b.state[n]], [a.speed[n] * far, b.speed[n] * far], share)
        });
        let handles = [
            a.rotation * DQuat::from_scaled_axis(a.turning * (far / 3.0)),
            b.rotation * DQuat::from_scaled_axis(b.turning * (-far / 3.0)),
        ];
        camera(&state, bezier([a.rotation, handles[0], handles[1], b.rotation], share), &self.first)
    }
}

/// Returns the average derivatives of a leg, and its length.
struct Rates {
    speed: CameraState,
    turning: DVec3,
    far: f64,
}

fn rates(a: &PathStop, b: &PathStop) -> Rates {
    let far = b.along - a.along;
    Rates {
        speed: std::array::from_fn(|n| (b.state[n] - a.state[n]) / far),
        turning: turn_between(a, b) / far,
        far,
    }
}

/// Returns the derivatives at a key camera between two legs: the shorter leg counts more, as in a Catmull-Rom
/// spline.
fn blend(before: Rates, after: Rates) -> (CameraState, DVec3) {
    let share = before.far / (before.far + after.far);
    let speed = std::array::from_fn(|n| before.speed[n] + (after.speed[n] - before.speed[n]) * share);
    (speed, before.turning.lerp(after.turning, share))
}

/// Shortest rotation from one orientation to another: an axis as long as the angle, in the axes of either.
fn turn_between(a: &PathStop, b: &PathStop) -> DVec3 {
    let between = a.rotation.inverse() * b.rotation;
    (if between.w < 0.0 { -between } else { between }).to_scaled_axis()
}

/// Returns how different the views of two key cameras are: by the motion of the target in the image, by
/// angle, and by zoom.
fn parting(a: &PathStop, b: &PathStop) -> f64 {
    let moved = DVec3::from_slice(&a.state[..3]).distance(DVec3::from_slice(&b.state[..3]));
    let nearer = (a.state[3] - b.state[3]).abs() + (a.state[4] - b.state[4]).abs();
    let wide = ((a.state[3] + b.state[3]) / 2.0).exp();
    moved / wide + turn_between(a, b).length() + nearer + (a.state[5] - b.state[5]).abs() / wide
}

/// Returns the speed at which each key camera is passed: between two legs the harmonic mean, and zero if one
/// of them stands still.
fn paces(along: &[f64]) -> Vec<f64> {
    let legs: Vec<f64> = along.windows(2).map(|ends| ends[1] - ends[0]).collect();
    (0..along.len())
        .map(|place| match (place.checked_sub(1).and_then(|before| legs.get(before)), legs.get(place)) {
            (Some(before), Some(after)) if before + after > 0.0 => 2.0 * before * after / (before + after),
            (Some(one), None) | (None, Some(one)) => *one,
            _ => 0.0,
        })
        .collect()
}

/// Evaluates a cubic between two values, with the slope at each for the whole interval.
fn hermite([a, b]: [f64; 2], [from, to]: [f64; 2], share: f64) -> f64 {
    let left = 1.0 - share;
    a * left * left * (1.0 + 2.0 * share)
        + b * share * share * (3.0 - 2.0 * share)
        + share * left * (from * left - to * share)
}

/// De Casteljau's construction, on the sphere of rotations.
fn bezier([a, b, c, d]: [DQuat; 4], share: f64) -> DQuat {
    let [ab, bc, cd] = [a.slerp(b, share), b.slerp(c, share), c.slerp(d, share)];
    ab.slerp(bc, share).slerp(bc.slerp(cd, share), share)
}

fn state(place: &Camera) -> CameraState {
    let [x, y, z] = place.target;
    [x, y, z, length(place).ln(), span(place), place.aside]
}

/// Returns the span of the projection: the angle of a perspective one, the logarithm of the height of an
/// orthographic one.
fn span(camera: &Camera) -> f64 {
    match camera.projection {
        Projection::Perspective { fov_y_rad } => fov_y_rad,
        Projection::Orthographic { height_world } => height_world.ln(),
    }
}

fn camera(state: &CameraState, rotation: DQuat, like: &Camera) -> Camera {
    let [x, y, z, distance, span, aside] = *state;
    let target = DVec3::new(x, y, z);
    let projection = match like.projection {
        // Between legal angles; a spline may overshoot them a little.
        Projection::Perspective { .. } => Projection::Perspective { fov_y_rad: span.clamp(1e-5, 3.1) },
        Projection::Orthographic { .. } => Projection::Orthographic { height_world: span.exp() },
    };
    Camera {
        eye: (target + rotation * DVec3::Z * distance.exp()).into(),
        target: target.into(),
        up: (rotation * DVec3::Y).into(),
        projection,
        aside,
    }
}
