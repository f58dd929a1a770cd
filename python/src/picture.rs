//! Pictures as numpy arrays.

use node::array::{Error, Result};
use node::picture::{self, Limit, PictureRequest, parse_mode, parse_slice, parse_surface};
use node::render::ImageSize;
use node::stream::{Device, Means};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::connection::Connection;
use crate::errors::raise;
use crate::runtime::wait;

/// What is to be drawn, in the words of `corridor render`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wish {
    view: Option<String>,
    array: Option<String>,
    camera: Option<String>,
    transfer: Option<String>,
    surfaces: Vec<String>,
    slices: Vec<String>,
    mode: Option<String>,
    shading: Option<bool>,
    grids: Option<bool>,
    stereo: Option<f64>,
    time: Option<u64>,
    level: Option<u8>,
}

impl Wish {
    fn request(self) -> Result<PictureRequest> {
        let Self {
            view,
            array,
            camera,
            transfer,
            surfaces,
            slices,
            mode,
            shading,
            grids,
            stereo,
            time,
            level,
        } = self;
        Ok(PictureRequest {
            view,
            array,
            camera,
            transfer,
            surfaces: surfaces.iter().map(|text| parse_surface(text)).collect::<Result<_>>()?,
            slices: slices.iter().map(|text| parse_slice(text)).collect::<Result<_>>()?,
            mode: mode.map(|name| parse_mode(&name)).transpose()?,
            shading,
            grids,
            stereo,
            time,
            level,
        })
    }
}

/// How pixels are given.
enum Pixels {
    /// Three bytes, over the view's background.
    Rgb,
    /// Four bytes, not premultiplied, nothing behind.
    Rgba,
    /// Four floats, premultiplied, nothing behind.
    Float,
}

/// Draws one finished picture: the bytes of its pixels row by row, and what it lacks, in words.
#[pyfunction]
pub(crate) fn render<'py>(
    py: Python<'py>,
    connection: &Connection,
    wish: Wish,
    size: (u32, u32),
    pixels: &str,
    device: &str,
) -> PyResult<(Bound<'py, PyArray1<u8>>, Option<String>)> {
    let pixels = match pixels {
        "rgb" => Pixels::Rgb,
        "rgba" => Pixels::Rgba,
        _ => Pixels::Float,
    };
    let size = ImageSize { width: size.0, height: size.1 };
    let prepare = || {
        size.check()?;
        Ok((wish.request()?, device_named(device)?))
    };
    let (request, device) = prepare().map_err(|e| raise(py, &e))?;
    let (stack, memory_bytes) = connection.to_draw();
    let (bytes, lacks) = wait(py, async move {
        let means = Means::open(device, memory_bytes).await?;
        let still = picture::still(&stack, &request, size, means, |_, _| ()).await?;
        let bytes = match pixels {
            Pixels::Rgb => still.image.to_rgb8(still.view.background.map(|c| f32::from(c) / 255.0)),
            Pixels::Rgba => still.image.to_rgba8(),
            Pixels::Float => still.image.rgba.iter().flatten().flat_map(|v| v.to_ne_bytes()).collect(),
        };
        let is_as_wanted = still.truth.exact && still.truth.limit != Limit::Memory;
        Ok((bytes, (!is_as_wanted).then_some(still.truth.text)))
    })?;
    Ok((PyArray1::from_vec(py, bytes), lacks))
}

fn device_named(name: &str) -> Result<Device> {
    match name {
        "auto" => Ok(Device::Auto),
        "cpu" => Ok(Device::Cpu),
        "gpu" => Ok(Device::Gpu),
        _ => Err(Error::invalid(format!("expected the device auto, cpu or gpu, found `{name}`"))),
    }
}
