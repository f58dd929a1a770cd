//! Geometry of a scene, as callers state it.

use std::sync::Arc;

use array::{Error, Result};
use glam::DVec3;

use crate::GeometryShape;

/// Most layers of geometry in a picture: each translucent one has samples of its own.
pub const MAX_GEOMETRY_LAYERS: usize = 16;

/// Drawing of the faces of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GeometryFaces {
    /// Lit faces.
    #[default]
    Solid,
    /// Edges of faces.
    Wireframe,
    /// Corners of faces.
    Points,
}

/// Layer of geometry.
#[derive(Clone, Debug)]
pub struct GeometryLayer {
    /// Geometry in world space.
    pub shape: Arc<GeometryShape>,
    /// Drawing of faces.
    pub faces: GeometryFaces,
    /// Opacity, 0 to 1.
    pub opacity: f32,
    /// Color where there are none by vertex, sRGB.
    pub color: [u8; 3],
    /// Colors by vertex, sRGB; used if there is one for each vertex.
    pub vertex_colors: Option<Arc<[[u8; 3]]>>,
    /// Width of lines and points, pixels.
    pub size_pixels: f32,
}

/// Plane of a picture that shows nothing but one plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeometryCut {
    /// Direction across the plane, world space, of length 1.
    pub normal: DVec3,
    /// Product of the normal with any point of the plane.
    pub offset: f64,
    /// Distance from the plane up to which lines, points and texts are drawn, world units.
    pub reach: f64,
}

/// Geometry of a scene.
#[derive(Clone, Debug, Default)]
pub struct SceneGeometry {
    /// Layers, at most [`MAX_GEOMETRY_LAYERS`].
    pub layers: Arc<[GeometryLayer]>,
    /// Plane that the picture shows; `None` for pictures with depth.
    pub cut: Option<GeometryCut>,
}

impl SceneGeometry {
    /// True without any layer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// # Errors
    /// `TooLarge` for too many layers, `Invalid` for opacities and sizes out of their range.
    pub(crate) fn check(&self) -> Result<()> {
        let found = self.layers.len();
        if found > MAX_GEOMETRY_LAYERS {
            return Err(Error::too_large(format!(
                "expected at most {MAX_GEOMETRY_LAYERS} layers of geometry, found {found}"
            )));
        }
        let is_legal = |layer: &GeometryLayer| {
            (0.0..=1.0).contains(&layer.opacity) && (0.0..=256.0).contains(&layer.size_pixels)
        };
        if !self.layers.iter().all(is_legal) {
            return Err(Error::invalid(
                "expected geometry with opacity from 0 to 1 and sizes from 0 to 256 pixels",
            ));
        }
        if self
            .cut
            .is_some_and(|cut| !(cut.normal.is_normalized() && cut.offset.is_finite() && cut.reach >= 0.0))
        {
            return Err(Error::invalid("expected a plane with a normal of length 1 to cut geometry"));
        }
        Ok(())
    }
}
