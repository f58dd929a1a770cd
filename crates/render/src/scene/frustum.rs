//! Visible part of the volume in volume space: planes that boxes are tested against.

use glam::{DAffine3, DVec3, DVec4};

use crate::scene::camera::Lens;
use crate::{Bounds, Portion, Slice, ViewLevel, VolumeView};

/// Distance by which rounding may move the edge of a clipping box, voxels of level 0.
const CLIP_SLACK: f64 = 1e-6;

/// Part of a volume that may be seen in an image: inside the frustum of one of the cameras, inside the
/// clipping box, and on slices if only these are drawn.
#[derive(Clone, Debug)]
pub(crate) struct Frustum {
    frusta: Vec<FrustumPlanes>,
    /// Lowest corner of the box that may be drawn, in volume space; `high` is its highest corner.
    pub(crate) low: DVec3,
    pub(crate) high: DVec3,
    slices: Option<Vec<Slice>>,
}

impl Frustum {
    pub(crate) fn new(view: &VolumeView, lens: &Lens, portion: &Portion) -> Self {
        Self::of(view, std::slice::from_ref(lens), portion)
    }

    /// Returns the part that any of several cameras sees.
    pub(crate) fn of(view: &VolumeView, lenses: &[Lens], portion: &Portion) -> Self {
        let (mut low, mut high) = view.volume_box();
        if let Some(clip) = &portion.clip {
            let (clip_low, clip_high) = clip_in_volume(view, clip);
            // A sample on the very edge of the box may be rounded into the neighboring block.
            low = low.max(clip_low - CLIP_SLACK);
            high = high.min(clip_high + CLIP_SLACK);
        }
        if let Some([first, others @ ..]) = portion.slices.as_deref()
            && others.iter().chain([first]).all(|slice| slice.axis == first.axis && slice.oblique.is_none())
        {
            let axis = first.axis.index();
            let (least, most) =
                others.iter().fold((first.at, first.at), |(a, b), s| (a.min(s.at), b.max(s.at)));
            low[axis] = low[axis].max(least);
            high[axis] = high[axis].min(most);
        }
        let slices = portion.slices.clone();
        let frusta = lenses.iter().map(|lens| FrustumPlanes::new(lens, &view.world_from_volume)).collect();
        Self { frusta, low, high, slices }
    }

    /// Restricts it to a box in volume space.
    pub(crate) fn within(mut self, low: DVec3, high: DVec3) -> Self {
        self.low = self.low.max(low);
        self.high = self.high.min(high);
        self
    }

    /// Returns the part of a run of blocks `from..to` that affects the image, in volume space, if any does:
    /// the region drawn from them, and the region that the last cell of the previous block takes from them.
    pub(crate) fn part_seen(
        &self,
        level: &ViewLevel,
        from: [u64; 3],
        to: [u64; 3],
    ) -> Option<(DVec3, DVec3)> {
        let low = (level.block_box(from).0 - level.voxel_size()).max(self.low);
        let high = level.block_box(to.map(|n| n - 1)).1.min(self.high);
        let is_shown =
            self.slices.as_ref().is_none_or(|slices| slices.iter().any(|slice| slice.cuts(low, high)));
        let is_in_sight = || self.frusta.iter().any(|frustum| frustum.may_see(low, high));
        (is_shown && low.cmple(high).all() && is_in_sight()).then_some((low, high))
    }
}

/// Returns the smallest box in volume space around a box in world space.
fn clip_in_volume(view: &VolumeView, clip: &Bounds) -> (DVec3, DVec3) {
    let volume_from_world = view.world_from_volume.inverse();
    let (min, max) = (DVec3::from(clip.min), DVec3::from(clip.max));
    let corners = (0..8u32).map(|i| {
        let pick = |axis: usize| if i >> axis & 1 == 0 { min[axis] } else { max[axis] };
        volume_from_world.transform_point3(DVec3::new(pick(0), pick(1), pick(2)))
    });
    corners.fold((DVec3::INFINITY, DVec3::NEG_INFINITY), |(low, high), c| (low.min(c), high.max(c)))
}

/// The pyramid (or prism) of all rays of an image, in volume space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrustumPlanes {
    /// A point is inside where every `plane.xyz * point + plane.w >= 0`.
    planes: [DVec4; 5],
}

impl FrustumPlanes {
    pub(crate) fn new(lens: &Lens, world_from_volume: &DAffine3) -> Self {
        let [across, upward] = lens.half;
        let (left, right) = (across - lens.middle, across + lens.middle);
        let side = |axis: DVec3, half: f64| {
            let normal = if lens.perspective { lens.forward * half + axis } else { axis };
            let distance = if lens.perspective { 0.0 } else { half };
            plane(normal, distance - normal.dot(lens.eye), world_from_volume)
        };
        let front = if lens.perspective {
            plane(lens.forward, -lens.forward.dot(lens.eye), world_from_volume)
        } else {
            // Parallel rays have no origin.
            DVec4::W
        };
        Self {
            planes: [
                side(lens.right, left),
                side(-lens.right, right),
                side(lens.up, upward),
                side(-lens.up, upward),
                front,
            ],
        }
    }

    /// Returns false only if no point of the box is inside; a few boxes near edges are kept needlessly.
    pub(crate) fn may_see(&self, low: DVec3, high: DVec3) -> bool {
        self.planes.iter().all(|plane| {
            let normal = plane.truncate();
            let farthest = DVec3::select(normal.cmpge(DVec3::ZERO), high, low);
            normal.dot(farthest) + plane.w >= 0.0
        })
    }
}

/// Converts a world plane to volume space.
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
            projection: view::Projection::Perspective { fov_y_rad: 0.5 },
            aside: 0.0,
        };
        for camera in [camera, camera.orthographic(), Camera { aside: 2.0, ..camera }] {
            let size = ImageSize { width: 60, height: 40 };
            let lens = Lens::new(&camera, size).unwrap();
            let frustum = FrustumPlanes::new(&lens, &map);
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
