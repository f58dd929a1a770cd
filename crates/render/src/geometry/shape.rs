//! Geometry prepared for drawing: normals and edges, computed once.

use std::sync::{Arc, OnceLock};

use geometry::Geometry;
use glam::{DVec3, Vec3};

use crate::Bounds;

/// Geometry in world space, prepared for drawing.
#[derive(Debug)]
pub struct GeometryShape {
    geometry: Arc<Geometry>,
    /// Mean normals of vertices, weighted by area; zero where there is no face.
    normals: Vec<Vec3>,
    /// Edges of faces, each once.
    edges: OnceLock<Vec<[u32; 2]>>,
}

impl GeometryShape {
    /// Prepares a geometry whose positions are in world space.
    #[must_use]
    pub fn new(geometry: Arc<Geometry>) -> Self {
        let mut normals =
            vec![DVec3::ZERO; if geometry.triangles.is_empty() { 0 } else { geometry.positions.len() }];
        let bounds = geometry.bounds().unwrap_or_default();
        // Independent of the unit of length, areas stay far from the limits of `f32`.
        let scale = (DVec3::from(bounds[1]) - DVec3::from(bounds[0])).max_element().max(f64::MIN_POSITIVE);
        for triangle in &geometry.triangles {
            let [a, b, c] = triangle.map(|corner| DVec3::from(geometry.positions[corner as usize]) / scale);
            let normal = (b - a).cross(c - a);
            triangle.iter().for_each(|&corner| normals[corner as usize] += normal);
        }
        let normals = normals.into_iter().map(|normal| normal.normalize_or_zero().as_vec3()).collect();
        Self { geometry, normals, edges: OnceLock::new() }
    }

    /// Returns the geometry.
    #[must_use]
    pub fn geometry(&self) -> &Arc<Geometry> {
        &self.geometry
    }

    /// Returns the box around it.
    #[must_use]
    pub fn bounds(&self) -> Option<Bounds> {
        self.geometry.bounds().map(|[min, max]| Bounds { min, max })
    }

    /// Returns the memory that it takes, bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        // Edges are at most three for each triangle.
        self.geometry.size_bytes()
            + self.normals.len() * size_of::<Vec3>()
            + self.geometry.triangles.len() * 24
    }

    pub(crate) fn position(&self, vertex: u32) -> DVec3 {
        DVec3::from(self.geometry.positions[vertex as usize])
    }

    pub(crate) fn normal(&self, vertex: u32) -> Vec3 {
        self.normals[vertex as usize]
    }

    pub(crate) fn edges(&self) -> &[[u32; 2]] {
        self.edges.get_or_init(|| {
            let mut edges: Vec<[u32; 2]> = self
                .geometry
                .triangles
                .iter()
                .flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]])
                .map(|[from, to]| [from.min(to), from.max(to)])
                .collect();
            edges.sort_unstable();
            edges.dedup();
            edges
        })
    }
}
