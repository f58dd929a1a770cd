//! PNG files whose rows are encoded as they come, so that a large picture is never held as a whole, and texts in PNG
//! files.

use std::io::Write;

use array::{Error, ErrorKind, Result};

use crate::{Background, Image, ImageSize};

/// Text in a PNG file: a keyword of Latin letters, and any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PngText {
    /// Keyword, at most 79 letters.
    pub keyword: &'static str,
    /// Text.
    pub text: String,
}

/// Receiver of rows of a picture, from the top down.
pub type TakeRows<'a> = dyn FnMut(&Image) -> Result<()> + 'a;

/// Writes a PNG file of `size` to `out`: RGB over a background color, or RGBA without background. `draw` passes the rows,
/// from the top down, to the function that it is given, and returns the texts of the file.
///
/// # Errors
/// Those of `draw`; `Internal` for rows that do not add up to the size; those of `out`, as `Io`.
pub fn png_in_rows<W: Write>(
    out: W,
    size: ImageSize,
    background: Background,
    draw: impl FnOnce(&mut TakeRows<'_>) -> Result<Vec<PngText>>,
) -> Result<()> {
    size.check_sides()?;
    let mut writer = encoder(out, size, background).write_header().map_err(failed)?;
    let mut stream = writer.stream_writer_with_size(STREAM_BYTES).map_err(failed)?;
    let mut rows_left = size.height;
    let texts = draw(&mut |rows| {
        if rows.size.width != size.width || rows.size.height > rows_left {
            return Err(Error::internal(format!(
                "expected rows of a picture of {size:?}, found {:?}",
                rows.size
            )));
        }
        rows_left -= rows.size.height;
        stream.write_all(&rows.to_bytes(background)).map_err(not_written)
    })?;
    if rows_left > 0 {
        return Err(Error::internal(format!("expected all rows of a picture, found {rows_left} less")));
    }
    stream.finish().map_err(failed)?;
    for PngText { keyword, text } in texts {
        let chunk = png::text_metadata::ITXtChunk::new(keyword, text);
        writer.write_text_chunk(&chunk).map_err(failed)?;
    }
    writer.finish().map_err(failed)
}

/// Bytes that are compressed before they are written.
const STREAM_BYTES: usize = 256 << 10;

/// Returns the encoder of all PNG files.
pub(super) fn encoder<W: Write>(out: W, size: ImageSize, background: Background) -> png::Encoder<'static, W> {
    let mut encoder = png::Encoder::new(out, size.width, size.height);
    encoder.set_color(match background {
        Background::Color(_) => png::ColorType::Rgb,
        Background::Transparent => png::ColorType::Rgba,
    });
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
    encoder
}

/// Converts an error of the encoder, which contains that of the output.
pub(super) fn failed(error: png::EncodingError) -> Error {
    match error {
        png::EncodingError::IoError(error) => not_written(error),
        other => Error::internal(format!("expected to encode a PNG: {other}")),
    }
}

/// Converts an error of the output; one that Corridor passed through it stays as it is.
#[expect(clippy::needless_pass_by_value, reason = "an argument of `map_err`")]
fn not_written(error: std::io::Error) -> Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(own) => own.clone(),
        None => Error::new(ErrorKind::Io, format!("a picture cannot be written: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(size: ImageSize) -> Image {
        let part = |n: u32| f32::from(u8::try_from(n % 251).unwrap()) / 250.0;
        let pixel = |n: u32| [part(n) * 0.5, part(n * 7) * 0.5, part(n * 3) * 0.5, 0.5];
        Image { size, rgba: (0..size.width * size.height).map(pixel).collect() }
    }

    fn rows(image: &Image, from: u32, to: u32) -> Image {
        let width = image.size.width as usize;
        let size = ImageSize { width: image.size.width, height: to - from };
        Image { size, rgba: image.rgba[from as usize * width..to as usize * width].to_vec() }
    }

    /// Decodes a file: its pixels, and its texts.
    fn decoded(file: &[u8]) -> (Vec<u8>, Vec<(String, String)>) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        reader.finish().unwrap();
        let texts = reader.info().utf8_text.iter();
        (pixels, texts.map(|text| (text.keyword.clone(), text.get_text().unwrap())).collect())
    }

    #[test]
    fn rows_are_those_of_the_whole_picture() {
        let image = image(ImageSize { width: 37, height: 101 });
        for background in [Background::BLACK, Background::Transparent] {
            let mut file = Vec::new();
            png_in_rows(&mut file, image.size, background, |take| {
                for (from, to) in [(0, 32), (32, 33), (33, 100), (100, 101)] {
                    take(&rows(&image, from, to))?;
                }
                Ok(vec![PngText { keyword: "Comment", text: "level 1 of 3, µm".into() }])
            })
            .unwrap();
            let (pixels, texts) = decoded(&file);
            assert_eq!(pixels, decoded(&image.to_png(background).unwrap()).0);
            assert_eq!(texts, [("Comment".to_owned(), "level 1 of 3, µm".to_owned())]);
        }
    }

    #[test]
    fn missing_rows_and_failing_outputs_are_errors() {
        let image = image(ImageSize { width: 8, height: 8 });
        let write = |out: &mut dyn Write, to: u32| {
            png_in_rows(out, image.size, Background::BLACK, |take| {
                take(&rows(&image, 0, to))?;
                Ok(Vec::new())
            })
        };
        write(&mut Vec::new(), 8).unwrap();
        assert_eq!(write(&mut Vec::new(), 7).unwrap_err().kind(), ErrorKind::Internal);
        struct Withdrawn;
        impl Write for Withdrawn {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other(Error::cancelled()))
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        assert_eq!(write(&mut Withdrawn, 8).unwrap_err().kind(), ErrorKind::Cancelled);
    }
}
