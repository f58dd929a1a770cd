//! Placement of geometry in the world of an array.
//!
//! World positions stay as they are. Positions in degrees over an array in degrees are repeated every 360 degrees of longitude where
//! the array reaches, and cut at its edges. Geometry without heights lies in the plane of a picture of one plane, on the
//! side of a thin volume that the eye sees, and at the bottom of other volumes.

use std::sync::Arc;

use array::ArrayInfo;
use geometry::{Geometry, GeometrySpace, MAX_VERTICES, VertexText, VertexValues};
use render::{Bounds, GeometryCut, Scene};

/// World that geometry is placed in.
pub(crate) struct Placement {
    bounds: Bounds,
    /// True if the array's world is in degrees.
    is_in_degrees: bool,
    /// Height of geometry without heights.
    height: f64,
}

/// Facts about a placement that change the geometry.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PlaceKey {
    /// Range of longitudes and of latitudes to which a map is cut.
    map: Option<[[f64; 2]; 2]>,
    height: Option<f64>,
}

impl Placement {
    /// Returns the placement in the picture of a scene.
    pub(crate) fn of(scene: &Scene, array: &ArrayInfo, cut: Option<GeometryCut>) -> Self {
        let bounds = scene.view.bounds();
        let [low, high] = [bounds.min[2], bounds.max[2]];
        let is_thin = scene.view.levels.first().is_some_and(|level| level.shape[0] == 1);
        let height = match cut {
            Some(cut) if cut.normal.z.abs() > 0.99 => cut.offset / cut.normal.z,
            // Just outside, so that the volume does not dim it.
            _ if is_thin && scene.camera.eye[2] > scene.camera.target[2] => high + (high - low) * OUTSIDE,
            _ => low - (high - low) * OUTSIDE,
        };
        Self { bounds, is_in_degrees: array.world_units == "degrees", height }
    }

    /// Returns what matters for a geometry.
    pub(crate) fn key_of(&self, geometry: &Geometry) -> PlaceKey {
        let is_map = self.is_in_degrees && geometry.space == GeometrySpace::Geographic;
        let Bounds { min, max } = self.bounds;
        PlaceKey {
            map: is_map.then_some([[min[0], max[0]], [min[1], max[1]]]),
            height: geometry.is_flat.then_some(self.height),
        }
    }
}

/// Share of the thickness by which flat geometry lies outside of a volume.
const OUTSIDE: f64 = 1e-3;

impl PlaceKey {
    /// Returns the geometry at its place.
    pub(crate) fn place(&self, geometry: &Arc<Geometry>) -> Arc<Geometry> {
        if *self == Self::default() {
            return Arc::clone(geometry);
        }
        let mut placed = match self.map {
            None => Geometry::clone(geometry),
            Some(ranges) => on_map(geometry, ranges),
        };
        if let Some(height) = self.height {
            placed.positions.iter_mut().for_each(|position| position[2] = height);
        }
        Arc::new(placed)
    }
}

/// Returns the parts of a geometry in degrees that lie in ranges of longitude and latitude, with vertices of their own.
/// Surfaces are moved as a whole and not cut.
fn on_map(geometry: &Geometry, ranges: [[f64; 2]; 2]) -> Geometry {
    let mut builder = MapBuilder { of: geometry, ranges, map: empty_like(geometry) };
    let longitudes = geometry.positions.iter().map(|position| position[0]);
    let [low, high] =
        longitudes.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], v| [low.min(v), high.max(v)]);
    let first = ((ranges[0][0] - high) / 360.0).ceil().max(-MAX_TURNS);
    let last = ((ranges[0][1] - low) / 360.0).floor().min(MAX_TURNS);
    let mut turn = first;
    while turn <= last && builder.map.positions.len() < MAX_VERTICES {
        builder.add(turn * 360.0);
        turn += 1.0;
    }
    builder.map
}

/// Most turns around the globe in either direction.
const MAX_TURNS: f64 = 3.0;

fn empty_like(geometry: &Geometry) -> Geometry {
    let values = |values: &VertexValues| VertexValues { name: values.name.clone(), values: Vec::new() };
    Geometry {
        format: geometry.format,
        values: geometry.values.iter().map(values).collect(),
        space: geometry.space,
        is_flat: geometry.is_flat,
        ..Geometry::default()
    }
}

struct MapBuilder<'a> {
    of: &'a Geometry,
    ranges: [[f64; 2]; 2],
    map: Geometry,
}

impl MapBuilder<'_> {
    /// Adds everything, moved by so many degrees of longitude.
    fn add(&mut self, offset: f64) {
        for segment in &self.of.lines {
            let [a, b] = segment.map(|vertex| self.moved(vertex, offset));
            let Some([enters, leaves]) = self.part_inside(a, b) else { continue };
            let ends = [enters, leaves].map(|share| {
                let nearest = segment[usize::from(share > 0.5)];
                self.add_vertex([0, 1, 2].map(|axis| a[axis] + (b[axis] - a[axis]) * share), nearest)
            });
            self.map.lines.push(ends);
        }
        for &point in &self.of.points {
            let position = self.moved(point, offset);
            if self.holds(position) {
                let vertex = self.add_vertex(position, point);
                self.map.points.push(vertex);
            }
        }
        for text in &self.of.texts {
            let position = self.moved(text.vertex, offset);
            if self.holds(position) {
                let vertex = self.add_vertex(position, text.vertex);
                self.map.texts.push(VertexText { vertex, text: text.text.clone() });
            }
        }
        for triangle in &self.of.triangles {
            let corners = triangle.map(|vertex| self.moved(vertex, offset));
            if corners.iter().any(|&corner| self.holds(corner)) {
                let vertices = [0, 1, 2].map(|place| self.add_vertex(corners[place], triangle[place]));
                self.map.triangles.push(vertices);
            }
        }
    }

    fn moved(&self, vertex: u32, offset: f64) -> [f64; 3] {
        let [x, y, z] = self.of.positions[vertex as usize];
        [x + offset, y, z]
    }

    fn holds(&self, position: [f64; 3]) -> bool {
        (0..2).all(|axis| (self.ranges[axis][0]..=self.ranges[axis][1]).contains(&position[axis]))
    }

    /// Returns the part of a segment inside the ranges, as shares of it (Liang and Barsky 1984).
    fn part_inside(&self, a: [f64; 3], b: [f64; 3]) -> Option<[f64; 2]> {
        let (mut enters, mut leaves) = (0.0f64, 1.0f64);
        for axis in 0..2 {
            let ([low, high], along) = (self.ranges[axis], b[axis] - a[axis]);
            if along == 0.0 {
                if !(low..=high).contains(&a[axis]) {
                    return None;
                }
                continue;
            }
            let [one, other] = [(low - a[axis]) / along, (high - a[axis]) / along];
            (enters, leaves) = (enters.max(one.min(other)), leaves.min(one.max(other)));
        }
        (enters < leaves).then_some([enters, leaves])
    }

    /// Adds a vertex with color and values of another one.
    fn add_vertex(&mut self, position: [f64; 3], like: u32) -> u32 {
        let like = like as usize;
        self.map.positions.push(position);
        self.map.colors.extend(self.of.colors.get(like));
        for (to, from) in self.map.values.iter_mut().zip(&self.of.values) {
            to.values.extend(from.values.get(like));
        }
        u32::try_from(self.map.positions.len() - 1).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coasts_are_repeated_and_cut_where_a_map_from_0_to_360_degrees_ends() {
        let coast = Geometry {
            positions: vec![
                [-170.0, 10.0, 0.0],
                [-190.0, 10.0, 0.0],
                [-1.0, 0.0, 0.0],
                [1.0, 0.0, 0.0],
                [5.0, 89.0, 0.0],
            ],
            lines: vec![[0, 1], [2, 3]],
            points: vec![4],
            values: vec![VertexValues { name: "n".into(), values: vec![0.0, 1.0, 2.0, 3.0, 4.0] }],
            space: GeometrySpace::Geographic,
            is_flat: true,
            ..Geometry::default()
        };
        let key = PlaceKey { map: Some([[0.0, 360.0], [-60.0, 60.0]]), height: Some(2.0) };
        let placed = key.place(&Arc::new(coast));
        let mut segments: Vec<[f64; 2]> =
            placed.lines.iter().map(|ends| ends.map(|end| placed.positions[end as usize][0])).collect();
        segments.sort_by(|a, b| a[0].total_cmp(&b[0]));
        assert_eq!(segments, [[0.0, 1.0], [190.0, 170.0], [359.0, 360.0]]);
        assert!(placed.points.is_empty(), "north of the map");
        assert!(placed.positions.iter().all(|position| position[2].total_cmp(&2.0).is_eq()));
        assert_eq!(placed.values[0].values.len(), placed.positions.len());
    }
}
