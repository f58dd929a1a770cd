//! Vertices in the image, and the primitives of a layer by band of rows.

use glam::DVec3;
use rayon::prelude::*;

use crate::ImageSize;
use crate::geometry::BAND_ROWS;
use crate::geometry::GeometryPicture;
use crate::geometry::cut::{CutEnd, crossings};
use crate::geometry::layer::{GeometryCut, GeometryFaces, GeometryLayer};
use crate::scene::camera::Lens;

/// Primitives that one task sorts into bands.
const TOGETHER: usize = 1 << 14;
/// Most bands that have a primitive of their own; one that meets more of them is kept once for all.
const MAX_OWN_BANDS: u32 = 8;

/// Vertex in the image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScreenVertex {
    /// Column and row, from the upper left corner of the image.
    pub(crate) at: [f64; 2],
    /// Depth along the line of sight, world units.
    pub(crate) depth: f64,
}

/// Primitive of a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Primitive {
    /// Number of a triangle.
    Triangle(u32),
    /// Segment between vertices.
    Line([u32; 2]),
    /// Vertex.
    Point(u32),
    /// Number of a crossing with the plane.
    Crossing(u32),
}

/// Layer with its vertices in the image.
pub(crate) struct ProjectedLayer<'a> {
    pub(crate) layer: &'a GeometryLayer,
    pub(crate) vertices: Vec<ScreenVertex>,
    pub(crate) cut: Option<GeometryCut>,
    pub(crate) crossings: Vec<[CutEnd; 2]>,
    /// Least depth that is drawn; negative infinity for parallel rays.
    pub(crate) near: f64,
    /// Half of the width of lines and points, pixels.
    pub(crate) radius: f64,
}

/// Primitives of a layer by band, in an order that does not depend on the threads.
pub(crate) struct BandBins {
    of_tasks: Vec<TaskBins>,
}

/// Primitives that one task sorted.
struct TaskBins {
    /// Primitives that meet few bands, by band.
    bands: Vec<Vec<Primitive>>,
    /// Primitives that meet many bands.
    large: Vec<LargePrimitive>,
}

/// Primitive with the first and the last band that it meets.
struct LargePrimitive {
    primitive: Primitive,
    first: u16,
    last: u16,
}

impl LargePrimitive {
    fn meets(&self, band: u32) -> bool {
        (u32::from(self.first)..=u32::from(self.last)).contains(&band)
    }
}

impl TaskBins {
    fn of(&self, band: u32) -> impl Iterator<Item = Primitive> + '_ {
        let large = self.large.iter().filter(move |large| large.meets(band));
        self.bands[band as usize].iter().copied().chain(large.map(|large| large.primitive))
    }
}

impl BandBins {
    pub(crate) fn are_any(&self, band: u32) -> bool {
        self.of_tasks.iter().any(|task| task.of(band).next().is_some())
    }

    pub(crate) fn of(&self, band: u32) -> impl Iterator<Item = Primitive> + '_ {
        self.of_tasks.iter().flat_map(move |task| task.of(band))
    }

    /// Returns the number of primitives that are kept; those of several bands count several times.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        let kept = |task: &TaskBins| task.large.len() + task.bands.iter().map(Vec::len).sum::<usize>();
        self.of_tasks.iter().map(kept).sum()
    }
}

/// Returns a position in the image; the depth may be behind the eye.
pub(crate) fn project(lens: &Lens, size: ImageSize, world: DVec3) -> ScreenVertex {
    let to = world - lens.eye;
    let depth = to.dot(lens.forward);
    let spread = if lens.perspective { depth } else { 1.0 };
    let (across, upward) = (to.dot(lens.right) / spread, to.dot(lens.up) / spread);
    let column = ((across - lens.middle) / lens.half[0] + 1.0) / 2.0 * f64::from(size.width);
    let row = (1.0 - upward / lens.half[1]) / 2.0 * f64::from(size.height);
    ScreenVertex { at: [column, row], depth }
}

impl<'a> ProjectedLayer<'a> {
    pub(crate) fn new(layer: &'a GeometryLayer, picture: &GeometryPicture<'_>, lens: &Lens) -> Self {
        let positions = &layer.shape.geometry().positions;
        let vertices =
            positions.par_iter().with_min_len(TOGETHER).map(|&p| project(lens, picture.size, p.into()));
        let cut = picture.geometry.cut;
        Self {
            vertices: vertices.collect(),
            crossings: cut.map_or_else(Vec::new, |cut| crossings(layer, &cut)),
            cut,
            near: if lens.perspective { picture.near } else { f64::NEG_INFINITY },
            radius: f64::from(layer.size_pixels).max(1.0) / 2.0,
            layer,
        }
    }

    /// Sorts the primitives into bands of rows.
    pub(crate) fn bins(&self, size: ImageSize) -> BandBins {
        let shape = &self.layer.shape;
        let geometry = shape.geometry();
        let index = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let mut of_tasks = Vec::new();
        let mut add = |count: usize, primitive: &(dyn Fn(usize) -> Primitive + Sync)| {
            let tasks: Vec<usize> = (0..count).step_by(TOGETHER).collect();
            let of_task = |&from: &usize| self.sort((from..count.min(from + TOGETHER)).map(primitive), size);
            of_tasks.extend(tasks.par_iter().map(of_task).collect::<Vec<_>>());
        };
        let triangles = geometry.triangles.len();
        match (self.layer.faces, self.cut) {
            (GeometryFaces::Solid | GeometryFaces::Wireframe, Some(_)) => {
                add(self.crossings.len(), &|number| Primitive::Crossing(index(number)));
            }
            (GeometryFaces::Solid, None) => add(triangles, &|number| Primitive::Triangle(index(number))),
            (GeometryFaces::Wireframe, None) => {
                let edges = shape.edges();
                add(edges.len(), &|number| Primitive::Line(edges[number]));
            }
            (GeometryFaces::Points, _) => {
                add(3 * triangles, &|number| Primitive::Point(geometry.triangles.as_flattened()[number]));
            }
        }
        add(geometry.lines.len(), &|number| Primitive::Line(geometry.lines[number]));
        add(geometry.points.len(), &|number| Primitive::Point(geometry.points[number]));
        BandBins { of_tasks }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rows of the image")]
    fn sort(&self, primitives: impl Iterator<Item = Primitive>, size: ImageSize) -> TaskBins {
        let bands = size.height.div_ceil(BAND_ROWS);
        let mut sorted = TaskBins { bands: vec![Vec::new(); bands as usize], large: Vec::new() };
        for primitive in primitives {
            let Some([low, high]) = self.extent(primitive, size) else { continue };
            let band = |row: f64| (row.max(0.0) as u32).min(size.height - 1) / BAND_ROWS;
            let (first, last) = (band(low), band(high));
            if last - first >= MAX_OWN_BANDS {
                let [first, last] = [first, last].map(|band| u16::try_from(band).unwrap_or(u16::MAX));
                sorted.large.push(LargePrimitive { primitive, first, last });
                continue;
            }
            for band in first..=last {
                sorted.bands[band as usize].push(primitive);
            }
        }
        sorted
    }

    /// Returns the rows between which a primitive may be drawn; `None` if it is not in the image.
    fn extent(&self, primitive: Primitive, size: ImageSize) -> Option<[f64; 2]> {
        let geometry = self.layer.shape.geometry();
        let of = |vertices: &[u32], margin: f64| {
            let own = vertices.iter().map(|&vertex| self.vertices[vertex as usize]);
            let in_front = own.clone().filter(|vertex| vertex.depth > self.near).count();
            if in_front == 0 {
                return None;
            }
            if in_front < vertices.len() {
                // Clipped when it is scanned; it may lie anywhere.
                return Some([0.0, f64::from(size.height)]);
            }
            let range = |axis: usize| {
                own.clone().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], vertex| {
                    [low.min(vertex.at[axis] - margin), high.max(vertex.at[axis] + margin)]
                })
            };
            let (columns, rows) = (range(0), range(1));
            let is_met = |[low, high]: [f64; 2], most: u32| low < f64::from(most) && high > 0.0;
            (is_met(columns, size.width) && is_met(rows, size.height)).then_some(rows)
        };
        match primitive {
            Primitive::Triangle(number) => of(&geometry.triangles[number as usize], 0.0),
            Primitive::Line(ends) => of(&ends, self.radius),
            Primitive::Point(vertex) => of(&[vertex], self.radius),
            Primitive::Crossing(number) => {
                let ends = &self.crossings[number as usize];
                of(ends.map(|end| end.between).as_flattened(), self.radius)
            }
        }
    }

    /// Returns the color of a vertex.
    pub(crate) fn color(&self, vertex: u32) -> [u8; 3] {
        let own = self.layer.vertex_colors.as_ref().filter(|colors| colors.len() == self.vertices.len());
        own.map_or(self.layer.color, |colors| colors[vertex as usize])
    }
}
