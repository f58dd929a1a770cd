//! Encoders of pictures for transmission.
//!
//! Pictures of a moving view are encoded lossily and fast, those of a view at rest exactly. libjpeg-turbo is
//! fast only with its SIMD code, which needs `nasm` on x86 at build time; without `nasm` the build fails
//! rather than being silently slow.

pub(crate) mod slabs;
pub(crate) mod video;

use array::{Error, Result};
use bytes::Bytes;
use render::{Background, Image};
use session::PictureCodec;
use turbojpeg::{Compressor, PixelFormat, Subsamp};

/// JPEG quality of pictures of a moving view, 1 to 100: artifacts are invisible at arm's length.
pub const JPEG_QUALITY: i32 = 85;

/// Encoder of pictures. Each participant has its own, so that an encoder may keep state between pictures.
pub trait PictureEncoder: Send {
    /// Returns the codec of the pictures that it makes.
    fn codec(&self) -> PictureCodec;

    /// Encodes `image` over `background` (sRGB).
    ///
    /// # Errors
    /// `Internal` when the encoder fails.
    fn encode(&mut self, image: &Image, background: [u8; 3]) -> Result<Bytes>;
}

/// JPEG with colors at half resolution (4:2:0), by libjpeg-turbo.
pub struct Jpeg(Compressor);

impl Jpeg {
    /// Creates an encoder with quality [`JPEG_QUALITY`].
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

/// Lossless PNG; equal pictures give equal bytes.
pub struct Png;

impl PictureEncoder for Png {
    fn codec(&self) -> PictureCodec {
        PictureCodec::Png
    }

    fn encode(&mut self, image: &Image, background: [u8; 3]) -> Result<Bytes> {
        Ok(image.to_png(Background::Color(unit(background)))?.into())
    }
}

/// Converts 8-bit sRGB to values from 0 to 1.
pub(crate) fn unit(color: [u8; 3]) -> [f32; 3] {
    color.map(|c| f32::from(c) / 255.0)
}

fn failed(e: turbojpeg::Error) -> Error {
    Error::internal(format!("cannot encode a JPEG: {e}"))
}

#[cfg(test)]
mod tests {
    use render::ImageSize;

    use super::*;

    /// Makes a red ramp over half transparent green.
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
