//! One geometry: its placement in the world of an array, and its colors by value.

use std::sync::{Arc, Mutex, PoisonError};

use array::{Error, Result};
use geometry::{Geometry, GeometrySpace};
use render::{GeometryFaces, GeometryLayer, GeometryShape};
use view::{LayerFaces, Transfer, ViewLayer};

use crate::geometry::place::{PlaceKey, Placement};
use crate::viewer::scene::transfer_of;

/// Colors of layers that state none, by number: distinct for most color-blind viewers too.
const COLORS: [[u8; 3]; 6] =
    [[230, 195, 150], [86, 180, 233], [0, 158, 115], [204, 121, 167], [240, 228, 66], [213, 94, 0]];
/// Color of map outlines that state none.
const OUTLINE_COLOR: [u8; 3] = [255, 255, 255];
/// Color of vertices without a value.
const NO_VALUE_COLOR: [u8; 3] = [128, 128, 128];
/// Width of lines, and of points where there are no lines, pixels.
const LINE_PIXELS: f64 = 1.5;
const POINT_PIXELS: f64 = 6.0;
/// Color map of values by vertex, if none is stated.
const COLOR_MAP: &str = "viridis";

/// Key of colors by value: name of the values and transfer function.
type ColorKey = (String, Option<Transfer>);

/// Colors of the vertices, sRGB.
type VertexColors = Arc<[[u8; 3]]>;

/// Geometry of a file, with what was computed from it last.
pub(crate) struct LoadedGeometry {
    geometry: Arc<Geometry>,
    placed: Mutex<Option<(PlaceKey, Arc<GeometryShape>)>>,
    colors: Mutex<Option<(ColorKey, VertexColors)>>,
}

impl LoadedGeometry {
    pub(crate) fn new(geometry: Geometry) -> Self {
        Self { geometry: Arc::new(geometry), placed: Mutex::default(), colors: Mutex::default() }
    }

    /// Returns the memory that it takes when it is drawn, bytes.
    pub(crate) fn size_bytes(&self) -> u64 {
        let Geometry { positions, triangles, .. } = &*self.geometry;
        (2 * self.geometry.size_bytes() + positions.len() * 15 + triangles.len() * 24) as u64
    }

    /// Returns it as layer `number` of a picture.
    ///
    /// # Errors
    /// `NotFound` for values that it does not have; those of the transfer function.
    #[expect(clippy::cast_possible_truncation, reason = "opacities and sizes are drawn in f32")]
    pub(crate) fn layer(
        &self,
        layer: &ViewLayer,
        number: usize,
        placement: &Placement,
    ) -> Result<GeometryLayer> {
        let geometry = &self.geometry;
        let shape = self.placed(placement);
        // Placement leaves vertices as they are, except of maps, where it adds and drops some.
        let vertex_colors = match &layer.by {
            Some(name) => Some(self.colors_by(shape.geometry(), name, layer.transfer.as_ref())?),
            None if layer.color.is_none() && !shape.geometry().colors.is_empty() => {
                Some(shape.geometry().colors.clone().into())
            }
            None => None,
        };
        let is_outline = geometry.space == GeometrySpace::Geographic && !geometry.lines.is_empty();
        let own = if is_outline { OUTLINE_COLOR } else { COLORS[number % COLORS.len()] };
        let size = if geometry.points.is_empty() { LINE_PIXELS } else { POINT_PIXELS };
        Ok(GeometryLayer {
            shape,
            faces: match layer.drawn.unwrap_or_default() {
                LayerFaces::Solid => GeometryFaces::Solid,
                LayerFaces::Wireframe => GeometryFaces::Wireframe,
                LayerFaces::Points => GeometryFaces::Points,
            },
            opacity: layer.opacity as f32,
            color: layer.color.unwrap_or(own),
            vertex_colors,
            size_pixels: layer.size.unwrap_or(size) as f32,
        })
    }

    fn placed(&self, placement: &Placement) -> Arc<GeometryShape> {
        let key = placement.key_of(&self.geometry);
        let mut placed = self.placed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, shape)) = placed.as_ref().filter(|(known, _)| *known == key) {
            return Arc::clone(shape);
        }
        let shape = Arc::new(GeometryShape::new(key.place(&self.geometry)));
        *placed = Some((key, Arc::clone(&shape)));
        // Colors are those of its vertices.
        *self.colors.lock().unwrap_or_else(PoisonError::into_inner) = None;
        shape
    }

    fn colors_by(&self, placed: &Geometry, name: &str, transfer: Option<&Transfer>) -> Result<VertexColors> {
        let key = (name.to_owned(), transfer.cloned());
        let mut colors = self.colors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = colors.as_ref().filter(|(known, _)| *known == key) {
            return Ok(Arc::clone(known));
        }
        let Some(values) = placed.values_of(name) else {
            let names: Vec<&str> = self.geometry.values.iter().map(|values| &*values.name).collect();
            return Err(Error::not_found(format!(
                "expected one of the values by vertex {names:?}, found `{name}`"
            )));
        };
        let of_file = self.geometry.values_of(name).unwrap_or(values);
        let function = transfer_of(&transfer.cloned().unwrap_or_else(|| usual_transfer(&of_file.values)))?;
        let own = function.colors_of(values.values.iter().map(|&value| f64::from(value)), NO_VALUE_COLOR);
        let own: VertexColors = own.into();
        *colors = Some((key, Arc::clone(&own)));
        Ok(own)
    }
}

/// Returns a transfer function over all finite values.
fn usual_transfer(values: &[f32]) -> Transfer {
    let finite = values.iter().filter(|value| value.is_finite()).map(|&value| f64::from(value));
    let [low, high] =
        finite.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], v| [low.min(v), high.max(v)]);
    let range = if low < high {
        [low, high]
    } else if low.is_finite() {
        [low - 0.5, low + 0.5]
    } else {
        [0.0, 1.0]
    };
    Transfer::new(range, COLOR_MAP, vec![[range[0], 1.0], [range[1], 1.0]])
}
