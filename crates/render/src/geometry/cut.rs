//! Crossings of surfaces with the plane of a picture.

use glam::DVec3;
use view::Projection;

use crate::geometry::layer::{GeometryCut, GeometryLayer};
use crate::{Camera, Slice, VolumeView};

/// Least cosine between the line of sight and the direction across a plane that is seen straight.
const STRAIGHT: f64 = 0.999;

/// End of a segment: position, and the two vertices that it lies between with the share of the second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CutEnd {
    pub(crate) position: DVec3,
    pub(crate) between: [u32; 2],
    pub(crate) share: f64,
}

impl GeometryCut {
    /// Returns the distance of a position from the plane, with its sign.
    pub(crate) fn distance(&self, position: DVec3) -> f64 {
        self.normal.dot(position) - self.offset
    }

    /// Returns whether something without an area is drawn.
    pub(crate) fn is_near(&self, position: DVec3) -> bool {
        self.distance(position).abs() <= self.reach
    }

    /// Returns the part of a segment within the reach of the plane, as shares of it.
    pub(crate) fn part_near(&self, from: DVec3, to: DVec3) -> Option<[f64; 2]> {
        let [a, b] = [self.distance(from), self.distance(to)];
        if a.abs() <= self.reach && b.abs() <= self.reach {
            return Some([0.0, 1.0]);
        }
        let along = b - a;
        if along == 0.0 {
            return None;
        }
        let [one, other] = [(-self.reach - a) / along, (self.reach - a) / along];
        let (enters, leaves) = (one.min(other).max(0.0), one.max(other).min(1.0));
        (enters < leaves).then_some([enters, leaves])
    }
}

/// Returns the segments in which the triangles of a layer cross a plane.
pub(crate) fn crossings(layer: &GeometryLayer, cut: &GeometryCut) -> Vec<[CutEnd; 2]> {
    let shape = &layer.shape;
    let crossing = |triangle: &[u32; 3]| {
        let corners = triangle.map(|vertex| {
            let position = shape.position(vertex);
            (vertex, position, cut.distance(position))
        });
        // The plane itself counts as above, so that a vertex in the plane belongs to one side only.
        let is_above = corners.map(|(.., distance)| distance >= 0.0);
        let mut ends = [0, 1, 2].into_iter().filter(|&a| is_above[a] != is_above[(a + 1) % 3]).map(|a| {
            let (from, to) = (corners[a], corners[(a + 1) % 3]);
            let share = from.2 / (from.2 - to.2);
            CutEnd { position: from.1.lerp(to.1, share), between: [from.0, to.0], share }
        });
        Some([ends.next()?, ends.next()?])
    };
    shape.geometry().triangles.iter().filter_map(crossing).collect()
}

impl GeometryCut {
    /// Returns the plane that a picture shows, if it is one of a single plane across the line of sight: a slice alone, or a
    /// volume one voxel thick, seen by parallel rays. `slices` are those of [`Portion::slices`](crate::Portion::slices).
    #[must_use]
    pub fn of_picture(view: &VolumeView, slices: &[Slice], camera: &Camera) -> Option<Self> {
        if !matches!(camera.projection, Projection::Orthographic { .. }) {
            return None;
        }
        let forward = (DVec3::from(camera.target) - DVec3::from(camera.eye)).try_normalize()?;
        let is_across = |plane: &Self| plane.normal.dot(forward).abs() > STRAIGHT;
        if !slices.is_empty() {
            let planes = slices.iter().map(|slice| slice.plane());
            return planes
                .filter_map(|(normal, offset)| Self::in_world(view, normal, offset))
                .find(is_across);
        }
        let [low, high] = [view.volume_box().0, view.volume_box().1];
        (0..3)
            .filter(|&axis| high[axis] - low[axis] <= 1.0)
            .filter_map(|axis| Self::in_world(view, DVec3::AXES[axis], 0.0))
            .find(is_across)
    }

    /// Returns a plane of volume space in world space, with a reach of half a voxel.
    fn in_world(view: &VolumeView, normal: DVec3, offset: f64) -> Option<Self> {
        let across = view.world_from_volume.matrix3.inverse().transpose() * normal;
        let length = across.length();
        let (unit, point) = (across.try_normalize()?, normal * (offset / normal.length_squared()));
        let world = view.world_from_volume.transform_point3(point);
        let cut = Self { normal: unit, offset: unit.dot(world), reach: 0.5 * normal.length() / length };
        (cut.offset.is_finite() && cut.reach.is_finite()).then_some(cut)
    }
}
