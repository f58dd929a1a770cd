//! Isosurfaces as triangles: marching tetrahedra, box by box.
//!
//! Each cube of eight voxels is cut into six tetrahedra around its diagonal from the lowest to the highest
//! voxel (Kuhn's subdivision: neighbors cut their common face alike), and values are linear along their
//! edges. So there are no ambiguous cases, and if no voxel is missing, a surface is closed except at the ends
//! of the volume. Vertices lie on edges and are shared by all triangles around them, also across boxes. The
//! mesh is not the surface of the ray caster, which follows the trilinear interpolant; both pass through the
//! same points on the edges of cubes.

use std::collections::HashMap;

use array::{Affine, Error, Result};

use crate::blocks::IdHash;

/// Triangle mesh of an isosurface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mesh {
    /// World positions `[x, y, z]`.
    pub positions: Vec<[f64; 3]>,
    /// Triangles as indices of positions; counter-clockwise seen from the side of lower values.
    pub triangles: Vec<[u32; 3]>,
}

/// Builds the [`Mesh`] of one isovalue from boxes of voxels that overlap by one voxel.
#[derive(Debug)]
pub struct Mesher {
    value: f64,
    shape: [u64; 3],
    world_from_voxel: Affine,
    is_mirrored: bool,
    mesh: Mesh,
    /// Vertices on faces of boxes, by edge, which other boxes may share.
    shared: HashMap<u64, u32, IdHash>,
    max_bytes: usize,
}

/// Box of voxels that is processed.
struct MeshPart<'a> {
    /// `[z, y, x]`, as is the shape.
    start: [u64; 3],
    shape: [usize; 3],
    values: &'a [f64],
    /// Vertices inside the box, by edge.
    own: HashMap<u64, u32, IdHash>,
}

/// Corners (bits 1 x, 2 y, 4 z) of the six tetrahedra, all of the same handedness.
const TETRAHEDRA: [[usize; 4]; 6] =
    [[0, 1, 3, 7], [0, 2, 6, 7], [0, 4, 5, 7], [0, 3, 2, 7], [0, 5, 1, 7], [0, 6, 4, 7]];

/// Edges of a tetrahedron that the surface crosses, in order around it, by the bits of the vertices that are
/// not below the value.
const POLYGONS: [&[[usize; 2]]; 16] = [
    &[],
    &[[0, 1], [0, 2], [0, 3]],
    &[[1, 0], [1, 3], [1, 2]],
    &[[0, 2], [0, 3], [1, 3], [1, 2]],
    &[[2, 3], [2, 0], [2, 1]],
    &[[0, 3], [0, 1], [2, 1], [2, 3]],
    &[[3, 1], [3, 2], [0, 2], [0, 1]],
    &[[3, 0], [3, 1], [3, 2]],
    &[[3, 2], [3, 1], [3, 0]],
    &[[0, 1], [0, 2], [3, 2], [3, 1]],
    &[[2, 3], [2, 1], [0, 1], [0, 3]],
    &[[2, 1], [2, 0], [2, 3]],
    &[[1, 2], [1, 3], [0, 3], [0, 2]],
    &[[1, 2], [1, 3], [1, 0]],
    &[[0, 3], [0, 2], [0, 1]],
    &[],
];

/// Memory of a vertex on a face of a box in the table, bytes.
const SHARED_BYTES: usize = 32;

impl Mesher {
    /// Creates a mesher of a volume of this shape `[z, y, x]`, whose voxel positions `(x, y, z)` the map
    /// takes into world space. The mesh and the tables for it take `max_bytes` at most.
    ///
    /// # Errors
    /// `Invalid` for a value that is not finite; `Unsupported` beyond 2^60 voxels.
    pub fn new(value: f64, shape: [u64; 3], world_from_voxel: Affine, max_bytes: usize) -> Result<Self> {
        if !value.is_finite() {
            return Err(Error::invalid(format!("expected a finite isovalue, found {value}")));
        }
        let voxels = shape.iter().try_fold(1u64, |n, &s| n.checked_mul(s));
        if voxels.is_none_or(|n| n > 1 << 60) {
            return Err(Error::unsupported(format!("expected at most 2^60 voxels, found {shape:?}")));
        }
        let is_mirrored = crate::scene::volume::to_glam(&world_from_voxel).matrix3.determinant() < 0.0;
        let mesh = Mesh::default();
        Ok(Self { value, shape, world_from_voxel, is_mirrored, mesh, shared: HashMap::default(), max_bytes })
    }

    /// Adds the triangles of a box, `values` decoded in C order, NaN for missing values. Boxes must overlap
    /// by one voxel where they meet; their order is arbitrary.
    ///
    /// # Errors
    /// `Invalid` if the box does not lie in the volume or the number of values does not match;
    /// `TooLarge` beyond the bytes allowed.
    pub fn add(&mut self, start: [u64; 3], shape: [usize; 3], values: &[f64]) -> Result<()> {
        let fits =
            (0..3).all(|a| start[a].checked_add(shape[a] as u64).is_some_and(|end| end <= self.shape[a]));
        let count = shape.iter().try_fold(1usize, |n, &s| n.checked_mul(s));
        if !fits || count != Some(values.len()) {
            return Err(Error::invalid(format!(
                "expected a box in {:?}, found {} values at {start:?} of shape {shape:?}",
                self.shape,
                values.len()
            )));
        }
        let mut part = MeshPart { start, shape, values, own: HashMap::default() };
        let cubes = shape.map(|n| n.saturating_sub(1));
        for z in 0..cubes[0] {
            for y in 0..cubes[1] {
                for x in 0..cubes[2] {
                    self.march(&mut part, [z, y, x]);
                }
            }
            self.check_size()?;
        }
        Ok(())
    }

    /// Returns the mesh of all boxes.
    #[must_use]
    pub fn finish(self) -> Mesh {
        self.mesh
    }

    fn march(&mut self, part: &mut MeshPart<'_>, cube: [usize; 3]) {
        let corner = |i: usize| [cube[0] + (i >> 2), cube[1] + (i >> 1 & 1), cube[2] + (i & 1)];
        let values: [f64; 8] = std::array::from_fn(|i| part.value(corner(i)));
        let is_above = values.map(|v| v >= self.value);
        if is_above == [is_above[0]; 8] {
            return;
        }
        for tetrahedron in TETRAHEDRA {
            if tetrahedron.iter().any(|&i| values[i].is_nan()) {
                continue;
            }
            let bits = tetrahedron.iter().rev().fold(0, |bits, &i| bits << 1 | usize::from(is_above[i]));
            let mut polygon = [0; 4];
            for (vertex, edge) in polygon.iter_mut().zip(POLYGONS[bits]) {
                // All axes go upward along an edge: the lower corner's bits are a subset of the other's.
                let [a, b] = edge.map(|end| tetrahedron[end]);
                let (low, high) = (a & b, a | b);
                *vertex = self.vertex(part, corner(low), high ^ low, [values[low], values[high]]);
            }
            for i in 2..POLYGONS[bits].len() {
                let [a, b] = if self.is_mirrored { [i, i - 1] } else { [i - 1, i] };
                self.mesh.triangles.push([polygon[0], polygon[a], polygon[b]]);
            }
        }
    }

    /// Returns the vertex on the edge from a voxel of a box in a direction (bits as those of corners).
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked after each plane: 2^32 vertices take more than any limit"
    )]
    fn vertex(
        &mut self,
        part: &mut MeshPart<'_>,
        from: [usize; 3],
        direction: usize,
        values: [f64; 2],
    ) -> u32 {
        let at: [u64; 3] = std::array::from_fn(|a| part.start[a] + from[a] as u64);
        let index = (at[0] * self.shape[1] + at[1]) * self.shape[2] + at[2];
        let known = if part.is_on_face(from, direction) { &mut self.shared } else { &mut part.own };
        let positions = &mut self.mesh.positions;
        *known.entry(index << 3 | direction as u64).or_insert_with(|| {
            let share = (self.value - values[0]) / (values[1] - values[0]);
            // Differences of the largest doubles overflow.
            let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.5 };
            let along = |a: usize| at[2 - a] as f64 + if direction >> a & 1 == 1 { share } else { 0.0 };
            positions.push(self.world_from_voxel.apply([along(0), along(1), along(2)]));
            positions.len() as u32 - 1
        })
    }

    fn check_size(&self) -> Result<()> {
        let bytes = self.mesh.size_bytes() + self.shared.len() * SHARED_BYTES;
        if bytes > self.max_bytes || self.mesh.positions.len() > u32::MAX as usize / 2 {
            return Err(Error::too_large(format!(
                "expected a mesh of at most {} bytes in memory, found more: try a coarser level or a part of the volume",
                self.max_bytes
            )));
        }
        Ok(())
    }
}

impl MeshPart<'_> {
    fn value(&self, [z, y, x]: [usize; 3]) -> f64 {
        self.values[(z * self.shape[1] + y) * self.shape[2] + x]
    }

    /// True for edges that lie in a face of the box.
    fn is_on_face(&self, from: [usize; 3], direction: usize) -> bool {
        (0..3).any(|a| {
            let is_along = direction >> (2 - a) & 1 == 1;
            !is_along && (from[a] == 0 || from[a] + 1 == self.shape[a])
        })
    }
}

impl Mesh {
    /// Returns the memory of its positions and triangles, bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.positions.len() * size_of::<[f64; 3]>() + self.triangles.len() * size_of::<[u32; 3]>()
    }

    /// Returns the bounding box in world space; `None` without vertices.
    #[must_use]
    pub fn bounds(&self) -> Option<crate::Bounds> {
        let first = *self.positions.first()?;
        let (mut min, mut max) = (first, first);
        for p in &self.positions {
            for a in 0..3 {
                (min[a], max[a]) = (min[a].min(p[a]), max[a].max(p[a]));
            }
        }
        Some(crate::Bounds { min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mesh of a field over 24^3 voxels, cut into boxes of `side` cubes.
    fn mesh(field: impl Fn([f64; 3]) -> f64, side: usize, map: Affine) -> Mesh {
        const N: usize = 24;
        let mut mesher = Mesher::new(0.0, [N as u64; 3], map, 1 << 30).unwrap();
        let starts = || (0..N - 1).step_by(side);
        // Not in order: boxes come as they are read.
        for z in starts().rev() {
            for y in starts() {
                for x in starts() {
                    let shape = [z, y, x].map(|s| (side + 1).min(N - s));
                    let mut values = Vec::new();
                    for k in z..z + shape[0] {
                        for j in y..y + shape[1] {
                            values.extend((x..x + shape[2]).map(|i| field([i, j, k].map(|v| v as f64))));
                        }
                    }
                    mesher.add([z, y, x].map(|s| s as u64), shape, &values).unwrap();
                }
            }
        }
        mesher.finish()
    }

    fn ball([x, y, z]: [f64; 3]) -> f64 {
        9.0 - ((x - 11.3).powi(2) + (y - 11.7).powi(2) + (z - 11.1).powi(2)).sqrt()
    }

    fn ring([x, y, z]: [f64; 3]) -> f64 {
        let radius = (x - 11.6).hypot(y - 11.4);
        3.1 - (radius - 7.0).hypot(z - 11.2)
    }

    /// Vertices - edges + triangles of a mesh in which each edge is gone along once in each direction.
    fn euler(mesh: &Mesh) -> i64 {
        let mut edges = std::collections::HashSet::new();
        for &[a, b, c] in &mesh.triangles {
            for edge in [(a, b), (b, c), (c, a)] {
                assert!(edges.insert(edge), "{edge:?} twice in one direction");
            }
        }
        assert!(
            edges.iter().all(|&(a, b)| edges.contains(&(b, a))),
            "an edge with a triangle on one side only"
        );
        let used: std::collections::HashSet<u32> = mesh.triangles.iter().flatten().copied().collect();
        assert_eq!(used.len(), mesh.positions.len());
        mesh.positions.len() as i64 - edges.len() as i64 / 2 + mesh.triangles.len() as i64
    }

    /// Positive where triangles are seen counter-clockwise from outside.
    fn volume(mesh: &Mesh) -> f64 {
        let p = |i: u32| glam::DVec3::from(mesh.positions[i as usize]);
        mesh.triangles.iter().map(|&[a, b, c]| p(a).dot(p(b).cross(p(c))) / 6.0).sum()
    }

    #[test]
    fn surfaces_are_closed_and_seen_from_outside_whatever_the_boxes() {
        let mirrored = Affine::from_spacing([-1.0, 0.5, 2.0], [3.0, -1.0, 0.5]);
        for side in [23, 8, 5, 1] {
            for (map, factor) in [(Affine::IDENTITY, 1.0), (mirrored, 1.0)] {
                let sphere = mesh(ball, side, map);
                assert_eq!(euler(&sphere), 2, "boxes of {side}");
                let expected = factor * 4.0 / 3.0 * std::f64::consts::PI * 9.0f64.powi(3);
                assert!(
                    (volume(&sphere) / expected - 1.0).abs() < 0.01,
                    "{} not {expected}",
                    volume(&sphere)
                );
                assert_eq!(euler(&mesh(ring, side, map)), 0, "a ring has a hole");
                assert_eq!(sphere.triangles.len(), mesh(ball, 23, map).triangles.len());
            }
        }
    }

    #[test]
    fn vertices_lie_on_the_surface() {
        for [x, y, z] in mesh(|[x, y, z]| 2.0 * x - y + 0.5 * z - 9.25, 7, Affine::IDENTITY).positions {
            assert!((2.0 * x - y + 0.5 * z - 9.25).abs() < 1e-12);
        }
        // Values right at the isovalue: some triangles are flat, none is missing.
        assert_eq!(euler(&mesh(|p| ball(p).round(), 6, Affine::IDENTITY)), 2);
    }

    #[test]
    fn missing_values_leave_a_hole_and_limits_are_kept() {
        let holed = mesh(|p| if p[0] > 18.0 { f64::NAN } else { ball(p) }, 8, Affine::IDENTITY);
        assert!(!holed.triangles.is_empty() && holed.positions.iter().all(|p| p[0] <= 18.0));
        let mut small = Mesher::new(0.5, [2, 2, 2], Affine::IDENTITY, 10).unwrap();
        assert!(small.add([0; 3], [2; 3], &[0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]).is_err());
        assert!(small.add([1, 0, 0], [2; 3], &[0.0; 8]).is_err());
        assert!(Mesher::new(f64::NAN, [2; 3], Affine::IDENTITY, 10).is_err());
        assert!(Mesher::new(0.0, [1 << 40; 3], Affine::IDENTITY, 10).is_err());
    }
}
