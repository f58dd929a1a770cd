//! What the camera sees, in volume space: four planes that boxes are tested against.

use glam::{DAffine3, DVec3, DVec4};

use crate::camera::Lens;

/// The pyramid (or prism) of all rays of an image, in volume space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frustum {
    /// A point is inside where every `plane.xyz * point + plane.w >= 0`.
    planes: [DVec4; 5],
}

impl Frustum {
    pub(crate) fn new(lens: &Lens, world_from_volume: &DAffine3) -> Self {
        let [across, upward] = lens.half;
        let side = |axis: DVec3, half: f64| {
            let normal = if lens.perspective { lens.forward * half + axis } else { axis };
            let distance = if lens.perspective { 0.0 } else { half };
            plane(normal, distance - normal.dot(lens.eye), world_from_volume)
        };
        let front = if lens.perspective {
            plane(lens.forward, -lens.forward.dot(lens.eye), world_from_volume)
        } else {
            // Parallel rays have no beginning.
            DVec4::W
        };
        Self {
            planes: [
                side(lens.right, across),
                side(-lens.right, across),
                side(lens.up, upward),
                side(-lens.up, upward),
                front,
            ],
        }
    }

    /// False only when no point of the box is inside; a few boxes near edges are kept needlessly.
    pub(crate) fn may_see(&self, low: DVec3, high: DVec3) -> bool {
        self.planes.iter().all(|plane| {
            let normal = plane.truncate();
            let farthest = DVec3::select(normal.cmpge(DVec3::ZERO), high, low);
            normal.dot(farthest) + plane.w >= 0.0
        })
    }
}

/// A world plane in volume space.
fn plane(normal: DVec3, offset: f64, world_from_volume: &DAffine3) -> DVec4 {
    let in_volume = world_from_volume.matrix3.transpose() * normal;
    in_volume.extend(offset + normal.dot(world_from_volume.translation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Camera, ImageSize};

    #[test]
    fn points_on_rays_are_seen_and_points_beside_are_not() {
        let map = DAffine3::from_mat3_translation(
            glam::DMat3::from_cols(
                DVec3::new(0.0, 2.0, 0.1),
                DVec3::new(-1.0, 0.0, 0.0),
                DVec3::new(0.0, 0.3, 3.0),
            ),
            DVec3::new(1.0, -4.0, 2.0),
        );
        let camera = Camera {
            eye: [5.0, -9.0, 4.0],
            target: [1.0, 2.0, 3.0],
            up: [0.0, 0.0, 1.0],
            projection: crate::Projection::Perspective { fov_y_rad: 0.5 },
        };
        for camera in [camera, camera.orthographic()] {
            let size = ImageSize { width: 60, height: 40 };
            let lens = Lens::new(&camera, size).unwrap();
            let frustum = Frustum::new(&lens, &map);
            let sees = |p: DVec3| frustum.may_see(p, p);
            for (column, row) in [(0, 0), (59, 0), (30, 20), (0, 39), (59, 39)] {
                let ray = lens.ray(column, row);
                let inside = map.inverse().transform_point3(ray.origin + ray.direction * 7.0);
                assert!(sees(inside), "{column} {row}");
            }
            let beside = [lens.right * 9.0, lens.right * -9.0, lens.up * 9.0, lens.up * -9.0];
            for offset in beside {
                let outside = lens.eye + lens.forward * 7.0 + offset;
                assert!(!sees(map.inverse().transform_point3(outside)), "{offset}");
            }
        }
    }
}
