//! Camera: the viewpoint of a picture in world space, and its interactive motions.
//!
//! Pure values and mathematics; no mouse state, no animation.

use array::{Error, Result};
use glam::{BVec3, DVec3};
use serde::{Deserialize, Serialize};
use view::Projection;

use crate::ImageSize;

/// Camera: position, direction and projection of a picture; all in world space.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Camera {
    /// Position of the eye.
    pub eye: [f64; 3],
    /// Point that the camera looks at: center of the image, and center of orbiting.
    pub target: [f64; 3],
    /// Roughly up in the image; need not be perpendicular to the line of sight.
    pub up: [f64; 3],
    /// Perspective or orthographic.
    pub projection: Projection,
    /// Offset of the rays' origin to the right of `eye`, world units, while the image's window at the target
    /// stays in place: used for one of two eyes ([`crate::stereo`]). 0 for every other camera.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub aside: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// An axis-aligned box in world space.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Smallest x, y, z.
    pub min: [f64; 3],
    /// Largest x, y, z.
    pub max: [f64; 3],
}

impl Bounds {
    /// Returns the center.
    #[must_use]
    pub fn center(&self) -> [f64; 3] {
        ((DVec3::from(self.min) + DVec3::from(self.max)) / 2.0).into()
    }

    /// Returns half the diagonal: the radius of the sphere around it.
    #[must_use]
    pub fn radius(&self) -> f64 {
        (DVec3::from(self.max) - DVec3::from(self.min)).length() / 2.0
    }
}

impl Camera {
    /// Default line of sight for a volume that is not flat: from the front, a little right and above.
    pub const DEFAULT_DIRECTION: [f64; 3] = [-0.45, 0.8, -0.4];
    /// Field of view of [`Camera::framing`], radians (30 degrees).
    pub const DEFAULT_FOV_Y_RAD: f64 = std::f64::consts::FRAC_PI_6;
    /// Margin around what is framed, as a factor.
    pub(crate) const MARGIN: f64 = 1.02;
    /// Margin around a box in [`Camera::enclosing`], with room for annotations.
    const WIDE_MARGIN: f64 = 1.1;
    /// Smallest angle between the line of sight and `up` when orbiting, radians.
    const POLE_RAD: f64 = 0.01;

    /// Returns a perspective camera that looks along `direction` (need not have unit length) and sees all of
    /// `bounds` in a square image or wider; see also [`Camera::enclosing`]. Up is world z, or y when looking
    /// along z.
    #[must_use]
    pub fn framing(bounds: &Bounds, direction: [f64; 3]) -> Self {
        let forward = DVec3::from(direction).try_normalize().unwrap_or(DVec3::Y);
        let radius = if bounds.radius() > 0.0 { bounds.radius() } else { 1.0 };
        let distance = Self::MARGIN * radius / (Self::DEFAULT_FOV_Y_RAD / 2.0).sin();
        let center = DVec3::from(bounds.center());
        let up = if forward.cross(DVec3::Z).length() < 1e-3 { DVec3::Y } else { DVec3::Z };
        Self {
            eye: (center - forward * distance).into(),
            target: center.into(),
            up: up.into(),
            projection: Projection::Perspective { fov_y_rad: Self::DEFAULT_FOV_Y_RAD },
            aside: 0.0,
        }
    }

    /// Returns the camera of [`Camera::framing`], as near to `bounds` as an image of `size` that shows all eight corners
    /// allows.
    #[must_use]
    pub fn enclosing(bounds: &Bounds, direction: [f64; 3], size: ImageSize) -> Self {
        let far = Self::framing(bounds, direction);
        let center = DVec3::from(bounds.center());
        let forward = (center - DVec3::from(far.eye)).normalize();
        let right = forward.cross(far.up.into()).normalize();
        let up = right.cross(forward);
        let aspect = f64::from(size.width.max(1)) / f64::from(size.height.max(1));
        let tangent = (Self::DEFAULT_FOV_Y_RAD / 2.0).tan();
        let (low, high) = (DVec3::from(bounds.min) - center, DVec3::from(bounds.max) - center);
        let distance = (0..8u32).map(|corner| {
            let is_high = BVec3::new(corner & 1 != 0, corner & 2 != 0, corner & 4 != 0);
            let corner = DVec3::select(is_high, high, low);
            let aside = (corner.dot(up).abs() / tangent).max(corner.dot(right).abs() / (tangent * aspect));
            Self::WIDE_MARGIN * aside - corner.dot(forward)
        });
        let nearest = distance.fold(0.0, f64::max);
        // A single point has no size.
        if nearest > 0.0 { Self { eye: (center - forward * nearest).into(), ..far } } else { far }
    }

    /// Returns a camera with parallel rays that shows the same picture at the target.
    #[must_use]
    pub fn orthographic(mut self) -> Self {
        self.projection = Projection::Orthographic { height_world: self.height_at_target() };
        self
    }

    /// Orbits around the target: `yaw_rad` about `up` (positive moves the eye to the right, the picture to
    /// the left), `pitch_rad` raises the eye. Stops just before looking along `up`.
    #[must_use]
    pub fn orbit(mut self, yaw_rad: f64, pitch_rad: f64) -> Self {
        let (Some(up), Some(axes)) = (DVec3::from(self.up).try_normalize(), self.axes()) else { return self };
        let offset = DVec3::from(self.eye) - DVec3::from(self.target);
        let height_rad = std::f64::consts::FRAC_PI_2 - offset.angle_between(up);
        let limit = std::f64::consts::FRAC_PI_2 - Self::POLE_RAD;
        let pitch = (height_rad + pitch_rad).clamp(-limit, limit) - height_rad;
        let lifted = glam::DQuat::from_axis_angle(axes.right, -pitch) * offset;
        let turned = glam::DQuat::from_axis_angle(up, yaw_rad) * lifted;
        self.eye = (DVec3::from(self.target) + turned).into();
        self
    }

    /// Pans the picture by fractions of the image's height: `right` and `up` positive move the content to the
    /// right and up.
    #[must_use]
    pub fn pan(mut self, right: f64, up: f64) -> Self {
        let Some(axes) = self.axes() else { return self };
        let shift = (axes.right * right + axes.up * up) * self.height_at_target();
        self.eye = (DVec3::from(self.eye) - shift).into();
        self.target = (DVec3::from(self.target) - shift).into();
        self
    }

    /// Zooms: the height that the image spans at the target is divided by `factor` (above 1 is nearer).
    #[must_use]
    pub fn zoom(mut self, factor: f64) -> Self {
        if !(factor.is_finite() && factor > 0.0) {
            return self;
        }
        match &mut self.projection {
            Projection::Perspective { .. } => {
                let target = DVec3::from(self.target);
                self.eye = (target + (DVec3::from(self.eye) - target) / factor).into();
            }
            Projection::Orthographic { height_world } => *height_world /= factor,
        }
        self
    }

    /// Widens the field of view: the image shows `factor` times as much from side to side.
    #[must_use]
    pub fn with_wider_field(self, factor: f64) -> Self {
        let projection = match self.projection {
            Projection::Perspective { fov_y_rad } => {
                Projection::Perspective { fov_y_rad: 2.0 * ((fov_y_rad / 2.0).tan() * factor).atan() }
            }
            Projection::Orthographic { height_world } => {
                Projection::Orthographic { height_world: height_world * factor }
            }
        };
        Self { projection, ..self }
    }

    /// Returns the height that the image spans at the target's distance, world units.
    #[must_use]
    pub fn height_at_target(&self) -> f64 {
        match self.projection {
            Projection::Perspective { fov_y_rad } => {
                2.0 * (fov_y_rad / 2.0).tan() * DVec3::from(self.eye).distance(DVec3::from(self.target))
            }
            Projection::Orthographic { height_world } => height_world,
        }
    }

    /// Checks a camera from an untrusted source.
    ///
    /// # Errors
    /// `Invalid` if a number is not finite, eye and target coincide, or the projection is
    /// degenerate.
    pub fn check(&self) -> Result<()> {
        let numbers = self.eye.iter().chain(&self.target).chain(&self.up);
        if !numbers.into_iter().all(|v| v.is_finite()) || self.axes().is_none() {
            return Err(Error::invalid(format!(
                "expected a finite camera that looks somewhere, found {self:?}"
            )));
        }
        let spans = match self.projection {
            Projection::Perspective { fov_y_rad } => {
                fov_y_rad > 1e-6 && fov_y_rad < std::f64::consts::PI - 1e-3
            }
            Projection::Orthographic { height_world } => height_world > 0.0 && height_world.is_finite(),
        };
        if !spans {
            return Err(Error::invalid(format!(
                "expected a projection that spans an area, found {:?}",
                self.projection
            )));
        }
        let may_stand_aside = matches!(self.projection, Projection::Perspective { .. });
        if self.aside != 0.0 && !(may_stand_aside && self.aside.is_finite()) {
            return Err(Error::invalid(format!(
                "expected an eye aside of a perspective camera, by a finite length, found {self:?}"
            )));
        }
        Ok(())
    }

    /// Returns the point from which the rays of a perspective camera start, world space.
    #[must_use]
    pub fn origin(&self) -> [f64; 3] {
        let aside = self.axes().map_or(DVec3::ZERO, |axes| axes.right * self.aside);
        (DVec3::from(self.eye) + aside).into()
    }

    /// Unit vectors of the image; `None` if eye and target coincide.
    pub(crate) fn axes(&self) -> Option<ImageAxes> {
        let forward = (DVec3::from(self.target) - DVec3::from(self.eye)).try_normalize()?;
        let wanted = DVec3::from(self.up);
        let right = [wanted, DVec3::Z, DVec3::Y]
            .into_iter()
            .find_map(|up| forward.cross(up.try_normalize()?).try_normalize().filter(|r| r.is_finite()))?;
        Some(ImageAxes { right, up: right.cross(forward), forward })
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ImageAxes {
    pub(crate) right: DVec3,
    pub(crate) up: DVec3,
    pub(crate) forward: DVec3,
}

/// A line in world space; `direction` has unit length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ray {
    pub(crate) origin: DVec3,
    pub(crate) direction: DVec3,
}

/// Camera prepared for an image of a size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lens {
    pub(crate) eye: DVec3,
    pub(crate) right: DVec3,
    pub(crate) up: DVec3,
    pub(crate) forward: DVec3,
    /// Half of what the image spans, right and up: world units (orthographic) or tangents (perspective).
    pub(crate) half: [f64; 2],
    /// Offset of the image's middle to the right of `forward`, a tangent; 0 except for an eye of a stereo
    /// pair.
    pub(crate) middle: f64,
    pub(crate) perspective: bool,
    size: ImageSize,
}

impl Lens {
    /// # Errors
    /// `Invalid` as in [`Camera::check`].
    pub(crate) fn new(camera: &Camera, size: ImageSize) -> Result<Self> {
        camera.check()?;
        let axes = camera.axes().ok_or_else(|| Error::invalid("expected a camera that looks somewhere"))?;
        let (half_up, perspective) = match camera.projection {
            Projection::Perspective { fov_y_rad } => ((fov_y_rad / 2.0).tan(), true),
            Projection::Orthographic { height_world } => (height_world / 2.0, false),
        };
        let half_right = half_up * f64::from(size.width) / f64::from(size.height);
        let distance = DVec3::from(camera.eye).distance(camera.target.into());
        Ok(Self {
            eye: DVec3::from(camera.eye) + axes.right * camera.aside,
            right: axes.right,
            up: axes.up,
            forward: axes.forward,
            half: [half_right, half_up],
            middle: -camera.aside / distance,
            perspective,
            size,
        })
    }

    /// Returns the ray through the middle of a pixel; column 0 is left, row 0 is the top. `rays.rs` does this
    /// for sixteen.
    pub(crate) fn ray(&self, column: u32, row: u32) -> Ray {
        let [across, upward] = self.aside([column, row]);
        let aside = self.right * across + self.up * upward;
        if self.perspective {
            Ray { origin: self.eye, direction: (self.forward + aside).normalize() }
        } else {
            Ray { origin: self.eye + aside, direction: self.forward }
        }
    }

    /// Returns the position of a world point in the image: column and row, counted from its upper left
    /// corner. `None` if the camera is a perspective one and the point is not in front of the eye.
    pub(crate) fn pixel_of(&self, world: DVec3) -> Option<[f64; 2]> {
        let spread = if self.perspective { self.depth_of(world)? } else { 1.0 };
        let to = world - self.eye;
        let (across, upward) = (to.dot(self.right) / spread, to.dot(self.up) / spread);
        let column = ((across - self.middle) / self.half[0] + 1.0) / 2.0 * f64::from(self.size.width);
        let row = (1.0 - upward / self.half[1]) / 2.0 * f64::from(self.size.height);
        Some([column, row])
    }

    /// Returns the depth of a world point in front of the eye, along the line of sight; `None` if it is not
    /// in front.
    pub(crate) fn depth_of(&self, world: DVec3) -> Option<f64> {
        // Below this share of the position, rounding decides on which side of the eye the point lies.
        const NEAREST: f64 = 1e-9;
        let to = world - self.eye;
        let depth = to.dot(self.forward);
        (!self.perspective || depth > NEAREST * to.length().max(f64::MIN_POSITIVE)).then_some(depth)
    }

    /// Returns the offsets to the right of the line of sight, and above it, of the middle of a pixel
    /// `[column, row]`, in the units of [`Lens::half`].
    #[inline(always)]
    pub(crate) fn aside(&self, [column, row]: [u32; 2]) -> [f64; 2] {
        let across =
            (2.0 * (f64::from(column) + 0.5) / f64::from(self.size.width) - 1.0) * self.half[0] + self.middle;
        let upward = (1.0 - 2.0 * (f64::from(row) + 0.5) / f64::from(self.size.height)) * self.half[1];
        [across, upward]
    }

    /// Returns the height of one pixel at `distance_world` from the eye, world units.
    pub(crate) fn pixel_world(&self, distance_world: f64) -> f64 {
        let span = 2.0 * self.half[1] / f64::from(self.size.height);
        if self.perspective { span * distance_world } else { span }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit_bounds() -> Bounds {
        Bounds { min: [0.0; 3], max: [1.0, 1.0, 1.0] }
    }

    /// Returns the position of a world point in a square image: column and row as fractions of its side.
    fn project(camera: &Camera, point: [f64; 3]) -> (f64, f64) {
        project_into(ImageSize { width: 100, height: 100 }, camera, point)
    }

    fn project_into(size: ImageSize, camera: &Camera, point: [f64; 3]) -> (f64, f64) {
        let lens = Lens::new(camera, size).unwrap();
        let to = DVec3::from(point) - lens.eye;
        let depth = if lens.perspective { to.dot(lens.forward) } else { 1.0 };
        let x = (to.dot(lens.right) / depth - lens.middle) / lens.half[0];
        let y = to.dot(lens.up) / depth / lens.half[1];
        ((x + 1.0) / 2.0, (1.0 - y) / 2.0)
    }

    #[test]
    fn world_z_is_up_and_nothing_is_mirrored() {
        // Looking along +y (north) with z up, x (east) is to the right.
        let camera = Camera::framing(&unit_bounds(), [0.0, 1.0, 0.0]);
        let (column, row) = project(&camera, [1.0, 0.5, 1.0]);
        assert!(column > 0.5 && row < 0.5, "{column} {row}");
    }

    #[test]
    fn framing_sees_every_corner() {
        for direction in [Camera::DEFAULT_DIRECTION, [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]] {
            for camera in
                [Camera::framing(&unit_bounds(), direction)].into_iter().flat_map(|c| [c, c.orthographic()])
            {
                for corner in 0..8u32 {
                    let p = [0, 1, 2].map(|a| f64::from(corner >> a & 1));
                    let (x, y) = project(&camera, p);
                    assert!((0.0..=1.0).contains(&x) && (0.0..=1.0).contains(&y), "{camera:?} {p:?}");
                }
            }
        }
    }

    #[test]
    fn an_enclosing_camera_sees_every_corner_and_one_at_the_border() {
        for size in [[60, 100], [100, 100], [200, 100]].map(|[width, height]| ImageSize { width, height }) {
            for direction in [Camera::DEFAULT_DIRECTION, [1.0, 1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]] {
                let bounds = Bounds { min: [-1.0, 2.0, 3.0], max: [3.0, 3.0, 5.0] };
                let camera = Camera::enclosing(&bounds, direction, size);
                let reach = (0..8u32).map(|corner| {
                    let p = [0, 1, 2].map(|a| [bounds.min[a], bounds.max[a]][(corner >> a & 1) as usize]);
                    let (x, y) = project_into(size, &camera, p);
                    (x - 0.5).abs().max((y - 0.5).abs())
                });
                let reach = reach.fold(0.0, f64::max);
                assert!((0.45..0.46).contains(&reach), "{size:?} {direction:?}: {reach}");
            }
        }
    }

    #[test]
    fn rays_agree_with_projection() {
        let camera = Camera::framing(&unit_bounds(), Camera::DEFAULT_DIRECTION);
        for camera in [camera, camera.orthographic()] {
            let lens = Lens::new(&camera, ImageSize { width: 100, height: 100 }).unwrap();
            let ray = lens.ray(20, 70);
            let (x, y) = project(&camera, (ray.origin + ray.direction * 3.0).into());
            assert!((x - 0.205).abs() < 1e-9 && (y - 0.705).abs() < 1e-9, "{x} {y}");
        }
    }

    #[test]
    fn orbit_keeps_distance_and_stops_at_the_pole() {
        let camera = Camera::framing(&unit_bounds(), Camera::DEFAULT_DIRECTION);
        let distance = |c: &Camera| DVec3::from(c.eye).distance(DVec3::from(c.target));
        let turned = camera.orbit(0.3, 0.2);
        assert!((distance(&turned) - distance(&camera)).abs() < 1e-9);
        assert!(turned.eye[2] > camera.eye[2], "pitch lifts the eye");
        let pole = camera.orbit(0.0, 10.0);
        pole.check().unwrap();
        assert!(pole.eye[0].hypot(pole.eye[1]) > 0.0);
    }

    #[test]
    fn pan_moves_the_picture_with_the_hand() {
        let camera = Camera::framing(&unit_bounds(), Camera::DEFAULT_DIRECTION);
        for camera in [camera, camera.orthographic()] {
            let (x, y) = project(&camera.pan(0.1, 0.2), camera.target);
            assert!((x - 0.6).abs() < 1e-6 && (y - 0.3).abs() < 1e-6, "{x} {y}");
        }
    }

    #[test]
    fn zoom_divides_what_the_image_spans() {
        let camera = Camera::framing(&unit_bounds(), Camera::DEFAULT_DIRECTION);
        for camera in [camera, camera.orthographic()] {
            let ratio = camera.height_at_target() / camera.zoom(2.0).height_at_target();
            assert!((ratio - 2.0).abs() < 1e-9);
        }
    }

    #[test]
    fn bad_cameras_are_refused() {
        let good = Camera::framing(&unit_bounds(), Camera::DEFAULT_DIRECTION);
        let bad = [
            Camera { eye: good.target, ..good },
            Camera { eye: [f64::NAN, 0.0, 0.0], ..good },
            Camera { projection: Projection::Perspective { fov_y_rad: 4.0 }, ..good },
            Camera { projection: Projection::Orthographic { height_world: 0.0 }, ..good },
            Camera { aside: f64::NAN, ..good },
            Camera { aside: 0.1, ..good.orthographic() },
        ];
        for camera in bad {
            assert!(camera.check().is_err(), "{camera:?}");
        }
        Camera { up: [0.0; 3], ..good }.check().unwrap();
    }
}
