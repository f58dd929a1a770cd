//! Pictures as numpy arrays.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::render::{Image, ImageSize};
use array::{Error, ErrorKind, Result, Source};
use export::picture::{self, PictureRequest, parse_range};
use export::row_pictures::draw_rows;
use node::layers::with_layers;
use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde_json::{Map, Value};
use session::{FidelityBadge, FidelityLimit};
use stream::{ColorRange, DrawDevice, DrawResources, FilmSlabs, Still};
use view::{FIELDS, View, find_keyword, similar};

use crate::connection::Connection;
use crate::errors::raise;
use crate::runtime::wait;
use crate::slabs::Slabs;

/// Keywords that are not fields of a view; the last three are handled in Python.
const OTHER_KEYWORDS: [&str; 5] = ["view", "range", "size", "pixels", "device"];

/// Parses the keywords of a picture, a JSON object.
fn request(py: Python<'_>, array: Option<String>, keywords: &str) -> PyResult<PictureRequest> {
    let to_exception = |e: Error| raise(py, &e);
    let keywords: Map<String, Value> = serde_json::from_str(keywords).map_err(|e| {
        to_exception(Error::invalid(format!("expected keywords in JSON, found `{keywords}`: {e}")))
    })?;
    let mut request = PictureRequest::default();
    request.fields.set("array", &array.into()).map_err(to_exception)?;
    for (name, value) in &keywords {
        match (name.as_str(), find_keyword(name)) {
            ("view", _) => request.view = text(value),
            ("range", _) => request.range = range(value).map_err(to_exception)?,
            (_, Some(field)) => request.fields.set(field.name, value).map_err(to_exception)?,
            (_, None) => return Err(PyTypeError::new_err(unknown(name))),
        }
    }
    Ok(request)
}

/// Returns the message for an unknown keyword.
fn unknown(name: &str) -> String {
    let keywords = FIELDS.iter().filter_map(|field| field.keyword).map(|keyword| keyword.name);
    let near = similar(name, keywords.chain(OTHER_KEYWORDS));
    if near.is_empty() {
        return format!("unexpected keyword `{name}`; see help(corridor.render)");
    }
    format!("unexpected keyword `{name}`; did you mean {}?", near.join(" or "))
}

/// Returns a string, or other JSON as text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Parses the range of colors: a text, or both ends.
fn range(value: &Value) -> Result<ColorRange> {
    match value {
        Value::Null => Ok(ColorRange::default()),
        Value::String(text) => parse_range(text),
        Value::Array(ends) => {
            let ends: Vec<String> = ends.iter().map(Value::to_string).collect();
            parse_range(&ends.join(","))
        }
        other => parse_range(&other.to_string()),
    }
}

/// Format of pixels.
pub(crate) enum PixelFormat {
    /// Three bytes, over the view's background.
    Rgb,
    /// Four bytes, not premultiplied, without a background.
    Rgba,
    /// Four floats, premultiplied, without a background.
    Float,
}

impl PixelFormat {
    /// Returns the format with this name, which Python has checked.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "rgb" => Self::Rgb,
            "rgba" => Self::Rgba,
            _ => Self::Float,
        }
    }

    pub(crate) fn of(&self, image: &Image, background: [u8; 3]) -> Vec<u8> {
        match self {
            Self::Rgb => image.to_rgb8(background.map(|c| f32::from(c) / 255.0)),
            Self::Rgba => image.to_rgba8(),
            Self::Float => image.rgba.iter().flatten().flat_map(|v| v.to_ne_bytes()).collect(),
        }
    }
}

/// Whether slabs are across an axis instead of parallel to the image, their number, and the side of a texel in pixels.
type SlabArguments = (bool, u32, Option<u32>);
/// A picture's bytes row by row, its warning, and the slabs beside it.
type PictureResult<'py> = (Bound<'py, PyArray1<u8>>, Option<String>, Option<Slabs>);

/// Size, pixels and device of a picture.
type PictureForm = ((u32, u32), String, String);

/// Draws one finished picture, with slabs beside it if requested; raises `TimedOut` if that takes longer than
/// `timeout_secs`.
#[pyfunction]
#[pyo3(signature = (connection, array, keywords, form, slabs, timeout_secs=None))]
pub(crate) fn render<'py>(
    py: Python<'py>,
    connection: &Connection,
    array: Option<String>,
    keywords: &str,
    form: PictureForm,
    slabs: Option<SlabArguments>,
    timeout_secs: Option<f64>,
) -> PyResult<PictureResult<'py>> {
    let ((width, height), pixels, device) = form;
    let mut request = request(py, array, keywords)?;
    let size = ImageSize { width, height };
    size.check_sides().map_err(|e| raise(py, &e))?;
    let device = device_named(&device).map_err(|e| raise(py, &e))?;
    let pixels = PixelFormat::named(&pixels);
    let (stack, memory_bytes) = connection.to_draw();
    let (_, context) = connection.opened();
    let has_view = request.view.is_some();
    let slabs =
        slabs.map(|(is_across_axis, count, reduction)| FilmSlabs { is_across_axis, count, reduction });
    let (bytes, warning, slabs) = wait(py, async move {
        let stack = with_layers(stack, &mut request.fields, has_view, &context).await?;
        let resources = DrawResources::open(device, memory_bytes).await?;
        let resources = resources.with_geometry(node::geometry::for_user(&stack));
        let limit = timeout_secs.and_then(|secs| Duration::try_from_secs_f64(secs).ok());
        if slabs.is_none() && size.pixels() > ImageSize::MAX_PIXELS {
            let large = large(&stack.source, &request, size, resources, pixels);
            let (bytes, warning) = within(limit, large).await?;
            return Ok((bytes, warning, None));
        }
        let still = picture::still(&stack.source, &request, size, resources, slabs, |_, _| ());
        let still = within(limit, still).await?;
        let (bytes, warning) = pixels_and_warning(&still, &pixels);
        Ok((bytes, warning, still.slabs))
    })?;
    Ok((PyArray1::from_vec(py, bytes), warning, slabs.map(Slabs)))
}

/// Waits for a picture, at most for a time.
async fn within<T>(limit: Option<Duration>, drawing: impl Future<Output = Result<T>>) -> Result<T> {
    let Some(limit) = limit else { return drawing.await };
    tokio::time::timeout(limit, drawing).await.map_err(|_| {
        Error::new(ErrorKind::TimedOut, format!("the picture was not finished within {limit:?}"))
    })?
}

/// Draws a picture that is too large to be held in full precision: its pixels row by row, and its warning.
async fn large(
    source: &Arc<dyn Source>,
    request: &PictureRequest,
    size: ImageSize,
    resources: DrawResources,
    pixels: PixelFormat,
) -> Result<(Vec<u8>, Option<String>)> {
    let all = Arc::new(Mutex::new(Vec::new()));
    let rows = Arc::clone(&all);
    let take = move |image: &Image, view: &View| {
        let bytes = pixels.of(image, view.background);
        rows.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&bytes);
        Ok(())
    };
    let drawn = draw_rows(source, request, size, resources, take).await?;
    let warning = drawn.fidelity.first().filter(|fidelity| !is_complete(fidelity));
    let bytes = std::mem::take(&mut *all.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((bytes, warning.map(|fidelity| fidelity.text.clone())))
}

/// Returns whether memory does not limit a picture, and it is exact.
fn is_complete(fidelity: &FidelityBadge) -> bool {
    fidelity.exact && fidelity.limit != FidelityLimit::Memory
}

/// Returns the view (JSON) that keywords describe, with everything that depends on the data set.
#[pyfunction]
pub(crate) fn resolve_view(
    py: Python<'_>,
    connection: &Connection,
    array: Option<String>,
    keywords: &str,
    size: (u32, u32),
) -> PyResult<String> {
    let mut request = request(py, array, keywords)?;
    let size = ImageSize { width: size.0, height: size.1 };
    size.check().map_err(|e| raise(py, &e))?;
    let (stack, memory_bytes) = connection.to_draw();
    let (_, context) = connection.opened();
    let has_view = request.view.is_some();
    let view = wait(py, async move {
        let stack = with_layers(stack, &mut request.fields, has_view, &context).await?;
        let geometry = node::geometry::for_user(&stack);
        let resources = async move {
            Ok(DrawResources::open(DrawDevice::Cpu, memory_bytes).await?.with_geometry(geometry))
        };
        picture::view(&stack.source, &request, size, resources).await
    })?;
    serde_json::to_string(&view).map_err(|e| raise(py, &Error::internal(format!("a view in JSON: {e}"))))
}

/// Returns the bytes of the pixels, and a warning if memory limits the picture or it is not exact.
fn pixels_and_warning(still: &Still, pixels: &PixelFormat) -> (Vec<u8>, Option<String>) {
    let bytes = pixels.of(&still.image, still.view.background);
    (bytes, (!is_complete(&still.fidelity)).then(|| still.fidelity.text.clone()))
}

pub(crate) fn device_named(name: &str) -> Result<DrawDevice> {
    match name {
        "auto" => Ok(DrawDevice::Auto),
        "cpu" => Ok(DrawDevice::Cpu),
        "gpu" => Ok(DrawDevice::Gpu),
        _ => Err(Error::invalid(format!("expected the device auto, cpu or gpu, found `{name}`"))),
    }
}
