//! Pictures as numpy arrays.

use ::render::{Image, ImageSize};
use array::{Error, Result};
use export::picture::{self, PictureRequest, parse_mode, parse_range, parse_slice, parse_surface};
use numpy::PyArray1;
use pyo3::prelude::*;
use session::Limit;
use stream::{Device, Means, SlabWish, Still};

use crate::connection::Connection;
use crate::errors::raise;
use crate::runtime::wait;
use crate::slabs::Slabs;

/// Request for a picture, in the words of `corridor render`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wish {
    view: Option<String>,
    array: Option<String>,
    camera: Option<String>,
    transfer: Option<String>,
    colour_by: Option<String>,
    surfaces: Vec<String>,
    slices: Vec<String>,
    mode: Option<String>,
    shading: Option<bool>,
    grids: Option<bool>,
    stereo: Option<f64>,
    time: Option<u64>,
    level: Option<u8>,
    range: Option<String>,
}

impl Wish {
    fn request(self) -> Result<PictureRequest> {
        let Self {
            view,
            array,
            camera,
            transfer,
            colour_by,
            surfaces,
            slices,
            mode,
            shading,
            grids,
            stereo,
            time,
            level,
            range,
        } = self;
        Ok(PictureRequest {
            view,
            array,
            camera,
            transfer,
            colour_by,
            surfaces: surfaces.iter().map(|text| parse_surface(text)).collect::<Result<_>>()?,
            slices: slices.iter().map(|text| parse_slice(text)).collect::<Result<_>>()?,
            mode: mode.map(|name| parse_mode(&name)).transpose()?,
            shading,
            grids,
            stereo,
            time,
            level,
            range: range.map(|text| parse_range(&text)).transpose()?.unwrap_or_default(),
        })
    }
}

/// How pixels are given.
pub(crate) enum Pixels {
    /// Three bytes, over the view's background.
    Rgb,
    /// Four bytes, not premultiplied, nothing behind.
    Rgba,
    /// Four floats, premultiplied, nothing behind.
    Float,
}

impl Pixels {
    /// Python has checked the name.
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

/// Slabs across an axis or parallel to the image, how many, and pixels along a side of each texel.
type WishOfSlabs = (bool, u32, Option<u32>);
/// A picture's bytes row by row, what it lacks, in words, and the slabs beside it.
type Drawn<'py> = (Bound<'py, PyArray1<u8>>, Option<String>, Option<Slabs>);

/// Draws one finished picture, with slabs beside it where they are wanted.
#[pyfunction]
pub(crate) fn render<'py>(
    py: Python<'py>,
    connection: &Connection,
    wish: Wish,
    size: (u32, u32),
    pixels: &str,
    device: &str,
    slabs: Option<WishOfSlabs>,
) -> PyResult<Drawn<'py>> {
    let pixels = Pixels::named(pixels);
    let (request, size, device) = prepared(wish, size, device).map_err(|e| raise(py, &e))?;
    let (stack, memory_bytes) = connection.to_draw();
    let slabs = slabs.map(|(is_across_axis, count, reduction)| SlabWish { is_across_axis, count, reduction });
    let (bytes, lacks, slabs) = wait(py, async move {
        let means = Means::open(device, memory_bytes).await?;
        let still = picture::still(&stack.source, &request, size, means, slabs, |_, _| ()).await?;
        let (bytes, lacks) = drawn(&still, &pixels);
        Ok((bytes, lacks, still.slabs))
    })?;
    Ok((PyArray1::from_vec(py, bytes), lacks, slabs.map(Slabs)))
}

fn prepared(wish: Wish, size: (u32, u32), device: &str) -> Result<(PictureRequest, ImageSize, Device)> {
    let size = ImageSize { width: size.0, height: size.1 };
    size.check()?;
    Ok((wish.request()?, size, device_named(device)?))
}

fn drawn(still: &Still, pixels: &Pixels) -> (Vec<u8>, Option<String>) {
    let is_as_wanted = still.truth.exact && still.truth.limit != Limit::Memory;
    let bytes = pixels.of(&still.image, still.view.background);
    (bytes, (!is_as_wanted).then(|| still.truth.text.clone()))
}

fn device_named(name: &str) -> Result<Device> {
    match name {
        "auto" => Ok(Device::Auto),
        "cpu" => Ok(Device::Cpu),
        "gpu" => Ok(Device::Gpu),
        _ => Err(Error::invalid(format!("expected the device auto, cpu or gpu, found `{name}`"))),
    }
}
