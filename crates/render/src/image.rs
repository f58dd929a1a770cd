//! Images: what the caster makes, and how it becomes 8-bit pixels and PNG files.
//!
//! Lossy encoders live in `stream`.

use array::{Error, Result};
use glam::Vec4;
use serde::{Deserialize, Serialize};

use crate::ImageSize;

/// What lies behind the volume.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// One sRGB colour, components 0 to 1.
    Colour([f32; 3]),
    /// Nothing: the image keeps its alpha.
    Transparent,
}

impl Background {
    /// Black.
    pub const BLACK: Self = Self::Colour([0.0; 3]);
}

/// A picture in full precision: premultiplied, sRGB-encoded RGBA, row 0 at the top.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// Pixels.
    pub size: ImageSize,
    /// `width * height` pixels, row by row.
    pub rgba: Vec<[f32; 4]>,
}

impl Image {
    /// 8-bit RGB over a colour, three bytes per pixel.
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

    /// 8-bit RGBA, four bytes per pixel, not premultiplied (as PNG and canvases want it).
    #[must_use]
    pub fn to_rgba8(&self) -> Vec<u8> {
        let straight = |&pixel: &[f32; 4]| {
            let pixel = Vec4::from(pixel);
            let colour = if pixel.w > 0.0 { pixel / pixel.w } else { Vec4::ZERO };
            to_bytes(Vec4::new(colour.x, colour.y, colour.z, pixel.w))
        };
        self.rgba.iter().flat_map(straight).collect()
    }

    /// An exact PNG: RGB over a colour, or RGBA without background. The same image gives the same bytes.
    ///
    /// # Errors
    /// `Internal` when encoding fails.
    pub fn to_png(&self, background: Background) -> Result<Vec<u8>> {
        match background {
            Background::Colour(colour) => png_of(self.size, &self.to_rgb8(colour), png::ColorType::Rgb),
            Background::Transparent => png_of(self.size, &self.to_rgba8(), png::ColorType::Rgba),
        }
    }
}

/// An exact PNG of 8-bit RGB, three bytes per pixel: that of [`Image::to_png`] over a colour.
///
/// # Errors
/// `Invalid` for more or fewer bytes than the size says; `Internal` when encoding fails.
pub fn png_of_rgb8(size: ImageSize, rgb: &[u8]) -> Result<Vec<u8>> {
    if rgb.len() as u64 != u64::from(size.width) * u64::from(size.height) * 3 {
        return Err(Error::invalid(format!("expected RGB of {size:?}, found {} bytes", rgb.len())));
    }
    png_of(size, rgb, png::ColorType::Rgb)
}

fn png_of(size: ImageSize, bytes: &[u8], kind: png::ColorType) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, size.width, size.height);
    encoder.set_color(kind);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
    encoder
        .write_header()
        .and_then(|mut writer| {
            writer.write_image_data(bytes)?;
            writer.finish()
        })
        .map_err(|e| Error::internal(format!("expected to encode a PNG: {e}")))?;
    Ok(file)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a byte")]
fn to_bytes(colour: Vec4) -> [u8; 4] {
    (colour.clamp(Vec4::ZERO, Vec4::ONE) * 255.0 + 0.5).to_array().map(|v| v as u8)
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
    fn a_png_holds_exactly_the_pixels() {
        for background in [Background::BLACK, Background::Transparent] {
            let file = image().to_png(background).unwrap();
            let mut reader = png::Decoder::new(std::io::Cursor::new(&file)).read_info().unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            reader.next_frame(&mut pixels).unwrap();
            let expected = match background {
                Background::Colour(c) => image().to_rgb8(c),
                Background::Transparent => image().to_rgba8(),
            };
            assert_eq!(pixels, expected);
            assert_eq!(file, image().to_png(background).unwrap());
        }
    }
}
