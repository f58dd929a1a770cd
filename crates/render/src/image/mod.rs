//! Images of the caster, and their conversion to 8-bit pixels and PNG files.
//!
//! Lossy encoders live in `stream`.

pub(crate) mod annotate;
pub(crate) mod image_size;
pub(crate) mod over;
pub(crate) mod png_rows;
pub(crate) mod raster;
pub(crate) mod rect;

use array::{Error, Result};
use exr::prelude::{Vec2, WritableImage};
use glam::Vec4;
use serde::{Deserialize, Serialize};

use self::png_rows::PngText;
use crate::ImageSize;

/// Background behind the volume.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// One sRGB color, components 0 to 1.
    #[serde(rename = "colour")]
    Color([f32; 3]),
    /// No background: the image keeps its alpha.
    Transparent,
}

impl Background {
    /// Black.
    pub const BLACK: Self = Self::Color([0.0; 3]);
}

/// Image in full precision: premultiplied, sRGB-encoded RGBA, row 0 at the top.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// Pixels.
    pub size: ImageSize,
    /// `width * height` pixels, row by row.
    pub rgba: Vec<[f32; 4]>,
}

impl Image {
    /// Returns 8-bit RGB over a background color, three bytes per pixel.
    #[must_use]
    pub fn to_rgb8(&self, background: [f32; 3]) -> Vec<u8> {
        let behind = Vec4::new(background[0], background[1], background[2], 0.0);
        self.rgba
            .iter()
            .flat_map(|&pixel| {
                let pixel = Vec4::from(pixel);
                let [r, g, b, _] = to_bytes(pixel + behind * (1.0 - pixel.w));
                [r, g, b]
            })
            .collect()
    }

    /// Returns 8-bit RGBA, four bytes per pixel, not premultiplied (as PNG and canvases expect it).
    #[must_use]
    pub fn to_rgba8(&self) -> Vec<u8> {
        let straight = |&pixel: &[f32; 4]| {
            let pixel = Vec4::from(pixel);
            let color = if pixel.w > 0.0 { pixel / pixel.w } else { Vec4::ZERO };
            to_bytes(Vec4::new(color.x, color.y, color.z, pixel.w))
        };
        self.rgba.iter().flat_map(straight).collect()
    }

    /// Returns the 8-bit pixels of a file: RGB over a background color, or RGBA without background.
    #[must_use]
    pub fn to_bytes(&self, background: Background) -> Vec<u8> {
        match background {
            Background::Color(color) => self.to_rgb8(color),
            Background::Transparent => self.to_rgba8(),
        }
    }

    /// Encodes a lossless PNG: RGB over a background color, or RGBA without background. The same image gives
    /// the same bytes.
    ///
    /// # Errors
    /// `Internal` if encoding fails.
    pub fn to_png(&self, background: Background) -> Result<Vec<u8>> {
        self.to_png_with(background, &[])
    }

    /// Encodes a PNG as [`Image::to_png`] does, with texts.
    ///
    /// # Errors
    /// `Internal` if encoding fails.
    pub fn to_png_with(&self, background: Background, texts: &[PngText]) -> Result<Vec<u8>> {
        let mut file = Vec::new();
        let mut encoder = png_rows::encoder(&mut file, self.size, background);
        for PngText { keyword, text } in texts {
            encoder.add_itxt_chunk((*keyword).to_owned(), text.clone()).map_err(png_rows::failed)?;
        }
        let mut writer = encoder.write_header().map_err(png_rows::failed)?;
        writer.write_image_data(&self.to_bytes(background)).map_err(png_rows::failed)?;
        writer.finish().map_err(png_rows::failed)?;
        Ok(file)
    }

    /// Encodes an OpenEXR picture in single precision: RGBA without background, premultiplied, in linear
    /// light as the format requires. A partly transparent color is converted to linear light before it is
    /// premultiplied again.
    ///
    /// # Errors
    /// `Internal` if encoding fails.
    pub fn to_exr(&self) -> Result<Vec<u8>> {
        let width = self.size.width as usize;
        let pixel = |Vec2(x, y): Vec2<usize>| {
            let [r, g, b, alpha] = self.rgba[y * width + x];
            let linear = |c: f32| if alpha > 0.0 { alpha * linear_from_srgb(c / alpha) } else { 0.0 };
            (linear(r), linear(g), linear(b), alpha)
        };
        let channels = exr::prelude::SpecificChannels::rgba(pixel);
        let mut file = std::io::Cursor::new(Vec::new());
        exr::prelude::Image::from_channels((width, self.size.height as usize), channels)
            .write()
            .to_buffered(&mut file)
            .map_err(|e| Error::internal(format!("expected to encode an EXR picture: {e}")))?;
        Ok(file.into_inner())
    }
}

/// Decodes an sRGB component to linear light, as IEC 61966-2-1 defines.
fn linear_from_srgb(encoded: f32) -> f32 {
    if encoded <= 0.040_45 { encoded / 12.92 } else { ((encoded + 0.055) / 1.055).powf(2.4) }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a byte")]
fn to_bytes(color: Vec4) -> [u8; 4] {
    (color.clamp(Vec4::ZERO, Vec4::ONE) * 255.0 + 0.5).to_array().map(|v| v as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Image {
        Image { size: ImageSize { width: 2, height: 1 }, rgba: vec![[0.25, 0.5, 0.0, 0.5], [0.0; 4]] }
    }

    #[test]
    fn pixels_lie_over_the_background() {
        assert_eq!(image().to_rgb8([1.0, 0.0, 1.0]), [191, 128, 128, 255, 0, 255]);
        assert_eq!(image().to_rgba8(), [128, 255, 0, 128, 0, 0, 0, 0]);
    }

    #[test]
    fn an_exr_holds_every_pixel_in_linear_light() {
        use exr::prelude::{ReadChannels, ReadLayers, read};
        let file = image().to_exr().unwrap();
        let read = read()
            .no_deep_data()
            .largest_resolution_level()
            .rgba_channels(
                |size, _| vec![[0.0f32; 4]; size.area()],
                |pixels, at, (r, g, b, a): (f32, f32, f32, f32)| {
                    pixels[at.y() * 2 + at.x()] = [r, g, b, a];
                },
            )
            .first_valid_layer()
            .all_attributes()
            .from_buffered(std::io::Cursor::new(file))
            .unwrap();
        let pixels = read.layer_data.channel_data.pixels;
        // Half covered by sRGB (0.5, 1, 0): linear (0.214, 1, 0), premultiplied.
        let expected = [[0.107_02, 0.5, 0.0, 0.5], [0.0; 4]];
        for (found, expected) in pixels.iter().flatten().zip(expected.iter().flatten()) {
            assert!((found - expected).abs() < 1e-4, "{pixels:?}");
        }
    }

    #[test]
    fn a_png_holds_exactly_the_pixels() {
        for background in [Background::BLACK, Background::Transparent] {
            let file = image().to_png(background).unwrap();
            let mut reader = png::Decoder::new(std::io::Cursor::new(&file)).read_info().unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            reader.next_frame(&mut pixels).unwrap();
            let expected = match background {
                Background::Color(c) => image().to_rgb8(c),
                Background::Transparent => image().to_rgba8(),
            };
            assert_eq!(pixels, expected);
            assert_eq!(file, image().to_png(background).unwrap());
        }
    }
}
