//! JPEG form of slabs: one image of the premultiplied colors at full resolution (4:4:4) and one of the
//! opacity.

use std::io::Read;

use array::{Error, Result};
use render::{Rect, Slab};
use turbojpeg::{Compressor, Image, PixelFormat, Subsamp};

/// JPEG quality. Errors of different slabs add up when these are blended, so each must be invisible.
const QUALITY: i32 = 95;

/// Reusable compressors for colors and for opacity.
pub(super) struct SlabCompressors {
    color: Compressor,
    opacity: Compressor,
}

impl SlabCompressors {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { color: compressor(Subsamp::None)?, opacity: compressor(Subsamp::Gray)? })
    }

    pub(super) fn encoded(&mut self, slab: &Slab) -> Result<[Vec<u8>; 2]> {
        let color: Vec<u8> =
            slab.rgba.chunks_exact(4).flat_map(|texel| [texel[0], texel[1], texel[2]]).collect();
        let opacity: Vec<u8> = slab.rgba.chunks_exact(4).map(|texel| texel[3]).collect();
        Ok([
            compressed(&mut self.color, slab.rect, &color, PixelFormat::RGB)?,
            compressed(&mut self.opacity, slab.rect, &opacity, PixelFormat::GRAY)?,
        ])
    }
}

fn compressor(subsampling: Subsamp) -> Result<Compressor> {
    let mut compressor = Compressor::new().map_err(failed)?;
    compressor.set_quality(QUALITY).map_err(failed)?;
    compressor.set_subsamp(subsampling).map_err(failed)?;
    Ok(compressor)
}

fn compressed(
    compressor: &mut Compressor,
    rect: Rect,
    pixels: &[u8],
    format: PixelFormat,
) -> Result<Vec<u8>> {
    let (width, height) = (rect.width as usize, rect.height as usize);
    let image = Image { pixels, width, pitch: width * format.size(), height, format };
    compressor.compress_to_vec(image).map_err(failed)
}

/// Decodes the colors of a slab; its texels are opaque until [`opacity`] is called.
pub(super) fn colors(rect: Rect, jpeg: impl Read) -> Result<Slab> {
    Ok(Slab { rect, rgba: decompressed(rect, jpeg, Subsamp::None, PixelFormat::RGBA)? })
}

/// Sets the opacity of a slab. Decoded colors may exceed it slightly; clamping them would darken faint parts.
pub(super) fn opacity(slab: &mut Slab, jpeg: impl Read) -> Result<()> {
    let opacity = decompressed(slab.rect, jpeg, Subsamp::Gray, PixelFormat::GRAY)?;
    slab.rgba.chunks_exact_mut(4).zip(opacity).for_each(|(texel, opacity)| texel[3] = opacity);
    Ok(())
}

/// Decodes a JPEG; reads at most the bytes that an image of this size and subsampling can take.
fn decompressed(rect: Rect, jpeg: impl Read, subsampling: Subsamp, format: PixelFormat) -> Result<Vec<u8>> {
    let corrupt = |e: turbojpeg::Error| Error::corrupt(format!("invalid JPEG of a slab: {e}"));
    let (width, height) = (rect.width as usize, rect.height as usize);
    let most = turbojpeg::compressed_buf_len(width, height, subsampling).map_err(corrupt)?;
    let mut bytes = Vec::new();
    jpeg.take(most as u64).read_to_end(&mut bytes).map_err(|e| super::failed("the JPEG of a slab", e))?;
    let header = turbojpeg::read_header(&bytes).map_err(corrupt)?;
    if (header.width, header.height) != (width, height) {
        let found = (header.width, header.height);
        return Err(Error::corrupt(format!(
            "expected a JPEG of {width}x{height} for a slab, found {found:?}"
        )));
    }
    if !is_baseline(&bytes) {
        return Err(Error::corrupt(
            "the JPEG of a slab is not baseline and would need several times its memory",
        ));
    }
    let mut pixels = vec![0; rect.pixels() * format.size()];
    let into = Image { pixels: pixels.as_mut_slice(), width, pitch: width * format.size(), height, format };
    let mut decompressor = turbojpeg::Decompressor::new().map_err(corrupt)?;
    decompressor.decompress(&bytes, into).map_err(corrupt)?;
    Ok(pixels)
}

/// Returns true for baseline and extended sequential JPEG (ITU-T T.81, B.1.1.3: SOF0 or SOF1). Progressive
/// JPEG would need memory for all coefficients.
fn is_baseline(mut jpeg: &[u8]) -> bool {
    let start_of_image = [0xff, 0xd8];
    let Some(segments) = jpeg.strip_prefix(&start_of_image) else { return false };
    jpeg = segments;
    while let [0xff, marker, high, low, ..] = *jpeg {
        match marker {
            0xc0 | 0xc1 => return true,
            // Tables, application data and comments. Our files have no fill bytes before markers.
            0xc4 | 0xdb | 0xdd | 0xe0..=0xef | 0xfe => {
                let length = usize::from(u16::from_be_bytes([high, low]));
                let Some(rest) = jpeg.get(2 + length..).filter(|_| length >= 2) else { return false };
                jpeg = rest;
            }
            _ => return false,
        }
    }
    false
}

fn failed(e: turbojpeg::Error) -> Error {
    Error::internal(format!("cannot encode the JPEG of a slab: {e}"))
}
