//! Slabs: pictures that can be drawn from other cameras, without the data.

use std::path::PathBuf;

use array::{Error, Result};
use export::film::read_slabs;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use render::{Camera, ImageSize, Slabs as Set};
use stream::{decode_slabs, encode_slabs};

use crate::errors::raise;
use crate::picture::PixelFormat;

/// A set of slabs.
#[pyclass(frozen)]
pub(crate) struct Slabs(pub(crate) Set);

#[pymethods]
impl Slabs {
    /// Reads a file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| read_slabs(&path)).map(Self).map_err(|e| raise(py, &e))
    }

    /// Decodes the bytes that [`encoded`](Self::encoded) returned.
    #[staticmethod]
    fn decoded(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        decode_slabs(bytes).map(Self).map_err(|e| raise(py, &e))
    }

    /// Encodes the set as in a file.
    fn encoded<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let encoded = py.detach(|| encode_slabs(&self.0)).map_err(|e| raise(py, &e))?;
        Ok(PyBytes::new(py, &encoded.1))
    }

    /// Returns as JSON everything except the texels: camera, size, guard, the picture's camera, normal, borders, and
    /// the rectangle of each slab.
    fn facts(&self, py: Python<'_>) -> PyResult<String> {
        let Set { camera, size, guard, normal, borders, slabs, .. } = &self.0;
        let rects: Vec<_> =
            slabs.iter().map(|s| [s.rect.left, s.rect.top, s.rect.width, s.rect.height]).collect();
        let facts = serde_json::json!({"camera": camera, "size": [size.width, size.height],
            "guard": guard, "picture": self.0.of_picture(), "normal": normal,
            "borders": borders, "rects": rects});
        serde_json::to_string(&facts).map_err(|e| raise(py, &Error::internal(format!("facts of slabs: {e}"))))
    }

    /// Returns the texels of one slab, as [`render::Slab::rgba`].
    fn texels<'py>(&self, py: Python<'py>, slab: usize) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let texels = self.0.slabs.get(slab).map(|slab| slab.rgba.as_slice());
        let texels = texels.ok_or_else(|| {
            let count = self.0.slabs.len();
            raise(py, &Error::invalid(format!("expected one of {count} slabs, found {slab}")))
        })?;
        Ok(PyArray1::from_slice(py, texels))
    }

    /// Draws the slabs with a camera (JSON; by default that of the picture beside them): returns the bytes of the
    /// pixels.
    fn draw<'py>(
        &self,
        py: Python<'py>,
        camera: Option<&str>,
        size: (u32, u32),
        pixels: &str,
        background: [u8; 3],
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let pixels = PixelFormat::named(pixels);
        let size = ImageSize { width: size.0, height: size.1 };
        let bytes = py.detach(|| {
            let camera = camera.map_or_else(|| Ok(self.0.of_picture()), camera_of)?;
            self.0.draw(&camera, size).map(|image| pixels.of(&image, background))
        });
        Ok(PyArray1::from_vec(py, bytes.map_err(|e| raise(py, &e))?))
    }
}

fn camera_of(text: &str) -> Result<Camera> {
    serde_json::from_str(text)
        .map_err(|e| Error::invalid(format!("expected a camera as in a view, found `{text}`: {e}")))
}
