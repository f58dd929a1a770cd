//! Encoders: a drawn picture becomes the bytes that travel.
//!
//! Lossy and quick while a view moves, exact when it rests. libjpeg-turbo is only quick with its SIMD code,
//! which needs `nasm` on x86 when it is built; without it the build fails instead of being slow silently.

pub(crate) mod slabs;
pub(crate) mod video;

use array::{Error, Result};
use bytes::Bytes;
use render::{Background, Image};
use session::PictureCodec;
use turbojpeg::{Compressor, PixelFormat, Subsamp};

/// Quality of moving pictures, 1 to 100: artifacts stay invisible at arm's length.
pub const JPEG_QUALITY: i32 = 85;

/// Turns pictures into bytes. One per participant: an encoder may keep what helps it with the next picture.
pub trait PictureEncoder: Send {
    /// Returns the codec of the pictures that it makes.
    fn codec(&self) -> PictureCodec;

    /// `image` over `background` (sRGB), encoded.
    ///
    /// # Errors
    /// `Internal` when the encoder fails.
    fn encode(&mut self, image: &Image, background: [u8; 3]) -> Result<Bytes>;
}

/// JPEG with colors at half resolution (4:2:0), by libjpeg-turbo.
pub struct Jpeg(Compressor);

impl Jpeg {
    /// At [`JPEG_QUALITY`].
    ///
    /// # Errors
    /// `Internal` when the library cannot be set up.
    pub fn new() -> Result<Self> {
        let mut compressor = Compressor::new().map_err(failed)?;
        compressor.set_quality(JPEG_QUALITY).map_err(failed)?;
        compressor.set_subsamp(Subsamp::Sub2x2).map_err(failed)?;
        Ok(Self(compressor))
    }
}

impl PictureEncoder for Jpeg {
    fn codec(&self) -> PictureCodec {
        PictureCodec::Jpeg
    }

    fn encode(&mut self, image: &Image, background: [u8; 3]) -> Result<Bytes> {
        let pixels = image.to_rgb8(unit(background));
        let (width, height) = (image.size.width as usize, image.size.height as usize);
        let image = turbojpeg::Image {
            pixels: pixels.as_slice(),
            width,
            pitch: width * 3,
            height,
            format: PixelFormat::RGB,
        };
        Ok(self.0.compress_to_vec(image).map_err(failed)?.into())
    }
}

/// PNG: the same picture gives the same bytes, and they hold every bit of it.
pub struct Png;

impl PictureEncoder for Png {
    fn codec(&self) -> PictureCodec {
        PictureCodec::Png
    }

    fn encode(&mut self, image: &Image, background: [u8; 3]) -> Result<Bytes> {
        Ok(image.to_png(Background::Color(unit(background)))?.into())
    }
}

/// sRGB from 0 to 1.
pub(crate) fn unit(color: [u8; 3]) -> [f32; 3] {
    color.map(|c| f32::from(c) / 255.0)
}

fn failed(e: turbojpeg::Error) -> Error {
    Error::internal(format!("expected to encode a JPEG: {e}"))
}

#[cfg(test)]
mod tests {
    use render::ImageSize;

    use super::*;

    /// A red ramp over half transparent green.
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn image() -> Image {
        let size = ImageSize { width: 64, height: 48 };
        let pixel = |i: u32| [(i % 64) as f32 / 64.0 * 0.5, 0.25, 0.0, 0.5];
        Image { size, rgba: (0..size.width * size.height).map(pixel).collect() }
    }

    #[test]
    fn jpeg_is_near_and_has_half_the_color_resolution() {
        let mut jpeg = Jpeg::new().unwrap();
        let bytes = jpeg.encode(&image(), [200, 100, 0]).unwrap();
        let header = turbojpeg::read_header(&bytes).unwrap();
        assert_eq!((header.width, header.height, header.subsamp), (64, 48, Subsamp::Sub2x2));
        let decoded = turbojpeg::decompress(&bytes, PixelFormat::RGB).unwrap();
        let expected = image().to_rgb8(unit([200, 100, 0]));
        let worst = decoded.pixels.iter().zip(&expected).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
        assert!(worst <= 8, "{worst}");
        // The compressor can be used again.
        assert_eq!(jpeg.encode(&image(), [200, 100, 0]).unwrap(), bytes);
    }

    #[test]
    fn png_is_exact_and_always_the_same() {
        let bytes = Png.encode(&image(), [0, 0, 0]).unwrap();
        assert_eq!(bytes, image().to_png(Background::BLACK).unwrap());
        assert!(bytes.starts_with(b"\x89PNG"));
    }
}
