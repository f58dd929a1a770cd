//! Scan conversion: triangles, lines and points into the samples of a band.

use glam::{DVec2, DVec3, Vec3};

use crate::Bounds;
use crate::geometry::GeometryPicture;
use crate::geometry::project::{BandBins, Primitive, ProjectedLayer, project};
use crate::geometry::resolve::pixel_world;
use crate::geometry::samples::{BandSamples, PLACES};
use crate::scene::camera::Lens;

/// Cosine of the largest angle between a face and the mean normal of its vertex at which the surface is drawn as if it were
/// curved there; beyond it, the vertex lies on an edge.
const CREASE: f32 = 0.7;
/// Most pixels that are tested for the primitives of a layer in a band, a thousand times those of a wide picture: geometry that
/// covers the whole picture more often is drawn in part, so that a picture takes a bounded time.
const MAX_TESTS: u64 = 1 << 26;
/// Depth of geometry in pictures of one plane: in front of all else.
const FRONT_DEPTH: f32 = -1e30;

/// TriangleCorner of a triangle that is in front of the eye.
#[derive(Clone, Copy)]
struct TriangleCorner {
    world: DVec3,
    at: DVec2,
    depth: f64,
    normal: Vec3,
    color: Vec3,
}

/// Scans the primitives of a layer in a band.
pub(crate) fn scan(
    layer: &ProjectedLayer<'_>,
    bins: &BandBins,
    band: u32,
    picture: &GeometryPicture<'_>,
    lens: &Lens,
    samples: &mut BandSamples,
) {
    let mut scanner = Scanner { layer, picture, lens, samples, tests: 0 };
    for primitive in bins.of(band) {
        if scanner.tests > MAX_TESTS {
            return;
        }
        match primitive {
            Primitive::Triangle(number) => scanner.triangle(number),
            Primitive::Line(ends) => scanner.line(ends),
            Primitive::Point(vertex) => scanner.point(vertex),
            Primitive::Crossing(number) => scanner.crossing(number),
        }
    }
}

struct Scanner<'a, 'b> {
    layer: &'a ProjectedLayer<'b>,
    picture: &'a GeometryPicture<'a>,
    lens: &'a Lens,
    samples: &'a mut BandSamples,
    /// Pixels tested so far.
    tests: u64,
}

impl Scanner<'_, '_> {
    fn triangle(&mut self, number: u32) {
        let shape = &self.layer.layer.shape;
        let vertices = shape.geometry().triangles[number as usize];
        let world = vertices.map(|vertex| shape.position(vertex));
        let Some(face) = (world[1] - world[0]).cross(world[2] - world[0]).try_normalize() else { return };
        let face = face.as_vec3();
        let corner = |place: usize| {
            let vertex = vertices[place];
            let own = shape.normal(vertex);
            let screen = self.layer.vertices[vertex as usize];
            TriangleCorner {
                world: world[place],
                at: screen.at.into(),
                depth: screen.depth,
                normal: if own.dot(face) > CREASE { own } else { face },
                color: Vec3::from(self.layer.color(vertex).map(f32::from)),
            }
        };
        let corners = [corner(0), corner(1), corner(2)];
        if corners.iter().all(|corner| corner.depth > self.layer.near) {
            self.fill(&corners);
            return;
        }
        let clipped = self.clip_near(&corners);
        for pair in clipped.get(1..).unwrap_or_default().windows(2) {
            self.fill(&[clipped[0], pair[0], pair[1]]);
        }
    }

    /// Returns the part of a triangle in front of the eye, a polygon of at most four corners.
    fn clip_near(&self, corners: &[TriangleCorner; 3]) -> Vec<TriangleCorner> {
        let mut clipped = Vec::with_capacity(4);
        for place in 0..3 {
            let (from, to) = (corners[place], corners[(place + 1) % 3]);
            let [in_front, next_is] = [from, to].map(|corner| corner.depth > self.layer.near);
            if in_front {
                clipped.push(from);
            }
            if in_front != next_is {
                let share = (self.layer.near - from.depth) / (to.depth - from.depth);
                clipped.push(self.between(&from, &to, share));
            }
        }
        clipped
    }

    #[expect(clippy::cast_possible_truncation, reason = "normals and colors are f32")]
    fn between(&self, from: &TriangleCorner, to: &TriangleCorner, share: f64) -> TriangleCorner {
        let world = from.world.lerp(to.world, share);
        let screen = project(self.lens, self.picture.size, world);
        TriangleCorner {
            world,
            at: screen.at.into(),
            depth: self.layer.near.max(screen.depth),
            normal: from.normal.lerp(to.normal, share as f32),
            color: from.color.lerp(to.color, share as f32),
        }
    }

    /// Returns columns or rows that a range of positions meets, within limits.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the limits")]
    fn range(low: f64, high: f64, [first, behind]: [u32; 2]) -> std::ops::Range<u32> {
        let clamped = |v: f64| v.clamp(first.into(), behind.into());
        clamped(low.floor()) as u32..clamped(high.ceil()) as u32
    }

    fn rows(&self) -> [u32; 2] {
        [self.samples.top, self.samples.top + self.samples.rows]
    }

    /// Fills a triangle in front of the eye.
    #[expect(clippy::cast_possible_truncation, reason = "depths and colors are f32")]
    fn fill(&mut self, corners: &[TriangleCorner; 3]) {
        let [a, b, c] = [0, 1, 2].map(|place| corners[place].at);
        let area = (b - a).perp_dot(c - a);
        if area == 0.0 || !area.is_finite() {
            return;
        }
        let low = a.min(b).min(c);
        let high = a.max(b).max(c);
        let rows = Self::range(low.y, high.y, self.rows());
        let columns = Self::range(low.x, high.x, [0, self.picture.size.width]);
        let is_perspective = self.lens.perspective;
        self.tests += rows.len() as u64 * columns.len() as u64;
        let inverse = corners.map(|corner| if is_perspective { 1.0 / corner.depth } else { 1.0 });
        for row in rows {
            for column in columns.clone() {
                for (sample, place) in PLACES.iter().enumerate() {
                    let p = DVec2::new(f64::from(column) + place[0], f64::from(row) + place[1]);
                    let shares = [(c - b).perp_dot(p - b), (a - c).perp_dot(p - c), (b - a).perp_dot(p - a)]
                        .map(|w| w / area);
                    if shares.iter().any(|&share| share < 0.0) {
                        continue;
                    }
                    let weights = [0, 1, 2].map(|place| shares[place] * inverse[place]);
                    let sum: f64 = weights.iter().sum();
                    let depth = if is_perspective {
                        1.0 / sum
                    } else {
                        shares.iter().zip(corners).map(|(share, corner)| share * corner.depth).sum()
                    };
                    let index = self.samples.index(column, row, sample);
                    if self.samples.is_hidden(index, depth as f32) {
                        continue;
                    }
                    let weights = weights.map(|weight| weight / sum);
                    let world = || (0..3).map(|place| corners[place].world * weights[place]).sum::<DVec3>();
                    if self.picture.clip.is_some_and(|clip| !holds(&clip, world())) {
                        continue;
                    }
                    let color = self.shaded(corners, weights.map(|weight| weight as f32), p);
                    self.samples.put(index, depth as f32, color);
                }
            }
        }
    }

    /// Returns the color of a place in a triangle under the light of the picture.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of colors")]
    fn shaded(&self, corners: &[TriangleCorner; 3], weights: [f32; 3], at: DVec2) -> [u8; 3] {
        let normal: Vec3 = (0..3).map(|place| corners[place].normal * weights[place]).sum();
        let color: Vec3 = (0..3).map(|place| corners[place].color * weights[place]).sum();
        let direction = self.direction(at).as_vec3();
        let cosine = (normal.dot(direction).abs() / (normal.length() * direction.length())).min(1.0);
        let cosine = if cosine.is_nan() { 1.0 } else { cosine };
        let lit = self.picture.light.lit((color / 255.0).extend(1.0), cosine);
        let byte = |v: f32| (v * 255.0).round().clamp(0.0, 255.0) as u8;
        [byte(lit.x), byte(lit.y), byte(lit.z)]
    }

    /// Returns the direction of the ray at a place in the image, of any length.
    fn direction(&self, at: DVec2) -> DVec3 {
        let lens = self.lens;
        if !lens.perspective {
            return lens.forward;
        }
        let [width, height] = [self.picture.size.width, self.picture.size.height].map(f64::from);
        let across = (2.0 * at.x / width - 1.0) * lens.half[0] + lens.middle;
        let upward = (1.0 - 2.0 * at.y / height) * lens.half[1];
        lens.forward + lens.right * across + lens.up * upward
    }

    fn line(&mut self, vertices: [u32; 2]) {
        let shape = &self.layer.layer.shape;
        let world = vertices.map(|vertex| shape.position(vertex));
        let part = match self.layer.cut {
            Some(cut) => cut.part_near(world[0], world[1]),
            None => Some([0.0, 1.0]),
        };
        let Some(part) = part else { return };
        let colors = vertices.map(|vertex| Vec3::from(self.layer.color(vertex).map(f32::from)));
        #[expect(clippy::cast_possible_truncation, reason = "colors are f32")]
        let ends =
            part.map(|share| (world[0].lerp(world[1], share), colors[0].lerp(colors[1], share as f32)));
        self.segment(ends);
    }

    fn crossing(&mut self, number: u32) {
        let ends = self.layer.crossings[number as usize].map(|end| {
            let colors = end.between.map(|vertex| Vec3::from(self.layer.color(vertex).map(f32::from)));
            #[expect(clippy::cast_possible_truncation, reason = "colors are f32")]
            let color = colors[0].lerp(colors[1], end.share as f32);
            (end.position, color)
        });
        self.segment(ends);
    }

    /// Draws a segment between positions with colors, as wide as the layer's lines, with round ends.
    #[expect(clippy::cast_possible_truncation, reason = "depths are f32")]
    fn segment(&mut self, mut ends: [(DVec3, Vec3); 2]) {
        let near = self.layer.near;
        let screen = |world: DVec3| project(self.lens, self.picture.size, world);
        let mut vertices = ends.map(|(world, _)| screen(world));
        if vertices.iter().all(|vertex| vertex.depth <= near) {
            return;
        }
        for end in 0..2 {
            if vertices[end].depth <= near {
                let other = 1 - end;
                let share = (vertices[other].depth - near) / (vertices[other].depth - vertices[end].depth);
                // A little before it, so that rounding does not put it behind.
                let share = share * (1.0 - 1e-9);
                ends[end] =
                    (ends[other].0.lerp(ends[end].0, share), ends[other].1.lerp(ends[end].1, share as f32));
                vertices[end] = screen(ends[end].0);
            }
        }
        let [a, b] = vertices.map(|vertex| DVec2::from(vertex.at));
        if !(a.is_finite() && b.is_finite()) {
            return;
        }
        let (along, radius) = (b - a, self.layer.radius);
        let length_squared = along.length_squared();
        let rows = Self::range(a.y.min(b.y) - radius, a.y.max(b.y) + radius, self.rows());
        for row in rows {
            let (low, high) = columns_of(a, b, radius, row.into());
            let columns = Self::range(low, high, [0, self.picture.size.width]);
            self.tests += columns.len() as u64;
            for column in columns {
                for (sample, place) in PLACES.iter().enumerate() {
                    let p = DVec2::new(f64::from(column) + place[0], f64::from(row) + place[1]);
                    let share = if length_squared > 0.0 {
                        ((p - a).dot(along) / length_squared).clamp(0.0, 1.0)
                    } else {
                        0.0
                    };
                    if p.distance_squared(a + along * share) > radius * radius {
                        continue;
                    }
                    // Along a projected line the inverse of the depth is linear.
                    let (share, depth) = if self.lens.perspective {
                        let [first, second] = [(1.0 - share) / vertices[0].depth, share / vertices[1].depth];
                        (second / (first + second), 1.0 / (first + second))
                    } else {
                        (share, vertices[0].depth + (vertices[1].depth - vertices[0].depth) * share)
                    };
                    let world = ends[0].0.lerp(ends[1].0, share);
                    self.mark([column, row], sample, depth, world, ends[0].1.lerp(ends[1].1, share as f32));
                }
            }
        }
    }

    fn point(&mut self, vertex: u32) {
        let world = self.layer.layer.shape.position(vertex);
        let screen = self.layer.vertices[vertex as usize];
        if screen.depth <= self.layer.near || self.layer.cut.is_some_and(|cut| !cut.is_near(world)) {
            return;
        }
        let (at, radius) = (DVec2::from(screen.at), self.layer.radius);
        let color = Vec3::from(self.layer.color(vertex).map(f32::from));
        for row in Self::range(at.y - radius, at.y + radius, self.rows()) {
            let columns = Self::range(at.x - radius, at.x + radius, [0, self.picture.size.width]);
            self.tests += columns.len() as u64;
            for column in columns {
                for (sample, place) in PLACES.iter().enumerate() {
                    let p = DVec2::new(f64::from(column) + place[0], f64::from(row) + place[1]);
                    if p.distance_squared(at) <= radius * radius {
                        self.mark([column, row], sample, screen.depth, world, color);
                    }
                }
            }
        }
    }

    /// Puts a sample of a line or point, a little nearer than it is, so that it is seen on a surface through it.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "depths are f32; bytes of colors"
    )]
    fn mark(&mut self, [column, row]: [u32; 2], sample: usize, depth: f64, world: DVec3, color: Vec3) {
        let depth = if self.layer.cut.is_some() {
            FRONT_DEPTH
        } else {
            (depth - pixel_world(self.lens, self.picture.size, depth)) as f32
        };
        let index = self.samples.index(column, row, sample);
        let is_clipped = self.picture.clip.is_some_and(|clip| !holds(&clip, world));
        if !is_clipped && !self.samples.is_hidden(index, depth) {
            self.samples.put(index, depth, color.to_array().map(|v| v.round().clamp(0.0, 255.0) as u8));
        }
    }
}

/// Returns the columns between which a thick segment may meet a row.
fn columns_of(a: DVec2, b: DVec2, radius: f64, row: f64) -> (f64, f64) {
    let along = b - a;
    let (mut enters, mut leaves) = (0.0f64, 1.0f64);
    if along.y != 0.0 {
        let [one, other] = [(row - radius - a.y) / along.y, (row + 1.0 + radius - a.y) / along.y];
        (enters, leaves) = (enters.max(one.min(other)), leaves.min(one.max(other)));
    }
    let [from, to] = [a.x + along.x * enters.min(1.0), a.x + along.x * leaves.max(0.0)];
    (from.min(to) - radius, from.max(to) + radius)
}

/// Returns whether a clipping box holds a position.
pub(crate) fn holds(clip: &Bounds, world: DVec3) -> bool {
    world.cmpge(DVec3::from(clip.min)).all() && world.cmple(DVec3::from(clip.max)).all()
}
