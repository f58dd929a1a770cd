//! Pictures encoded by several ranks: each encodes its rows, and rank 0 concatenates the results.
//!
//! Both formats allow this without support by decoders. The scan of a JPEG may restart after any row of its
//! 16 x 16 blocks (T.81, restart intervals): such a row can be encoded as a picture of its own without its
//! header. The data of a PNG are one Deflate stream (RFC 1950, 1951), which may be split at byte boundaries
//! if no part refers to an earlier one.

use array::{Error, Result};
use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress};
use render::{Image, ImageSize};
use session::PictureCodec;

use crate::encode::{Jpeg, PictureEncoder, unit};

/// Strips begin at multiples of this number of rows.
pub(crate) const STRIP_UNIT: u32 = 16;
/// PNG filter of all rows of a strip but the first. It is fixed, since rows mostly resemble those above them.
const UP: u8 = 2;
/// PNG filter of a strip's first row: this rank does not have the row above it.
const SUB: u8 = 1;
/// Largest prime below 65,536, the modulus of Adler-32.
const ADLER_PRIME: u64 = 65_521;
/// Bytes of the header of a strip in a message.
const HEAD_BYTES: usize = 3 * size_of::<u32>() + size_of::<f64>();

/// Encoded rows of a picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Strip {
    /// First row.
    top: u32,
    /// Number of rows; 0 for a picture that failed.
    rows: u32,
    /// Adler-32 checksum of the filtered rows before compression, for PNG.
    checksum: u32,
    /// Samples that the rank drew for the whole picture.
    pub(crate) work: f64,
    bytes: Vec<u8>,
}

impl Strip {
    /// Encodes rows from `top` on of a picture over `background`.
    ///
    /// # Errors
    /// `Internal` when an encoder fails.
    pub(crate) fn encoded(codec: PictureCodec, rows: &Image, top: u32, background: [u8; 3]) -> Result<Self> {
        let mut strip = Self { top, rows: rows.size.height, ..Self::nothing() };
        if rows.size.width == 0 || rows.size.height == 0 {
            return Ok(strip);
        }
        match codec {
            PictureCodec::Jpeg => strip.bytes = scans(rows, top, background)?,
            PictureCodec::Png => {
                let filtered = filtered(&rows.to_rgb8(unit(background)), rows.size.width as usize * 3);
                strip.bytes = packed(&filtered)?;
                strip.checksum = adler32(&filtered);
            }
        }
        Ok(strip)
    }

    /// Returns the strip of a rank that could not draw.
    pub(crate) fn nothing() -> Self {
        Self { top: 0, rows: 0, checksum: 1, work: 0.0, bytes: Vec::new() }
    }

    /// Returns the message to rank 0, little-endian.
    pub(crate) fn to_message(&self) -> Vec<u8> {
        let mut message = Vec::with_capacity(HEAD_BYTES + self.bytes.len());
        for word in [self.top, self.rows, self.checksum] {
            message.extend(word.to_le_bytes());
        }
        message.extend(self.work.to_le_bytes());
        message.extend(&self.bytes);
        message
    }

    /// # Errors
    /// `Corrupt` for a message that [`Strip::to_message`] did not write.
    pub(crate) fn from_message(message: &[u8]) -> Result<Self> {
        let (head, bytes) = message
            .split_first_chunk::<HEAD_BYTES>()
            .ok_or_else(|| Error::corrupt(format!("invalid rows of a picture in {} bytes", message.len())))?;
        let word = |i: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| head[4 * i + byte]));
        let work = f64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| head[12 + byte]));
        let [top, rows, checksum] = [0, 1, 2].map(word);
        Ok(Self { top, rows, checksum, work, bytes: bytes.to_vec() })
    }
}

/// Joins strips, in any order, to an encoded picture.
///
/// # Errors
/// `Corrupt` if the strips do not cover all rows once; `Internal` when an encoder fails.
pub(crate) fn joined(codec: PictureCodec, size: ImageSize, mut strips: Vec<Strip>) -> Result<Bytes> {
    strips.retain(|strip| strip.rows > 0);
    strips.sort_by_key(|strip| strip.top);
    let end =
        strips.iter().try_fold(0_u32, |row, strip| row.checked_add(strip.rows).filter(|_| strip.top == row));
    if end != Some(size.height) {
        return Err(Error::corrupt(format!("the strips do not cover all rows of {size:?}")));
    }
    match codec {
        PictureCodec::Jpeg => jpeg_of(size, &strips),
        PictureCodec::Png => Ok(png_of(size, &strips)),
    }
}

/// Returns the scans of a JPEG's rows of blocks, each preceded by a restart marker except the first of the
/// picture.
fn scans(rows: &Image, top: u32, background: [u8; 3]) -> Result<Vec<u8>> {
    let mut jpeg = Jpeg::new()?;
    let width = rows.size.width as usize;
    let mut scans = Vec::new();
    let high = STRIP_UNIT as usize * width;
    for (number, rgba) in (top / STRIP_UNIT..).zip(rows.rgba.chunks(high)) {
        if number > 0 {
            // Restart markers count modulo eight, so that decoders notice a missing one.
            scans.extend([0xff, 0xd0 + ((number - 1) % 8) as u8]);
        }
        let height = u32::try_from(rgba.len() / width).map_err(|_| too_large())?;
        let row = Image { size: ImageSize { height, ..rows.size }, rgba: rgba.to_vec() };
        let encoded = jpeg.encode(&row, background)?;
        scans.extend(split(&encoded)?.1);
    }
    Ok(scans)
}

/// Splits a JPEG into the part before its scan, and the data of the scan.
fn split(jpeg: &[u8]) -> Result<(&[u8], &[u8])> {
    let scan = segments(jpeg)?.into_iter().find(|&(marker, _)| marker == SCAN).map(|(_, at)| at);
    let at = scan.ok_or_else(|| Error::internal("a JPEG has no scan"))?;
    let length = u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]);
    let end = jpeg.len().saturating_sub(END.len()).max(at + 2 + usize::from(length));
    Ok((&jpeg[..at], &jpeg[at + 2 + usize::from(length)..end]))
}

const SCAN: u8 = 0xda;
const FRAME: u8 = 0xc0;
const END: [u8; 2] = [0xff, 0xd9];

/// Returns the markers of a JPEG's segments up to its scan, and their offsets.
fn segments(jpeg: &[u8]) -> Result<Vec<(u8, usize)>> {
    let (mut found, mut at) = (Vec::new(), 2);
    loop {
        let Some(&[0xff, marker, high, low]) = jpeg.get(at..at + 4) else {
            return Err(Error::internal("a JPEG ends before its scan"));
        };
        found.push((marker, at));
        if marker == SCAN {
            return Ok(found);
        }
        at += 2 + usize::from(u16::from_be_bytes([high, low]));
    }
}

/// Returns a JPEG: the header of any picture with our settings, changed to this size and restart interval,
/// and the scans.
fn jpeg_of(size: ImageSize, strips: &[Strip]) -> Result<Bytes> {
    let side = |n: u32| u16::try_from(n).map(u16::to_be_bytes).map_err(|_| too_large());
    let small = ImageSize { width: STRIP_UNIT, height: STRIP_UNIT };
    let any = Image { size: small, rgba: vec![[0.0; 4]; (STRIP_UNIT * STRIP_UNIT) as usize] };
    let any = Jpeg::new()?.encode(&any, [0; 3])?;
    let (head, scan) = split(&any)?;
    let at = segments(&any)?.into_iter().find(|&(marker, _)| marker == FRAME).map(|(_, at)| at);
    let at = at.ok_or_else(|| Error::internal("a JPEG is not baseline"))?;
    let mut jpeg = head.to_vec();
    jpeg[at + 5..at + 7].copy_from_slice(&side(size.height)?);
    jpeg[at + 7..at + 9].copy_from_slice(&side(size.width)?);
    jpeg.extend([0xff, 0xdd, 0, 4]);
    jpeg.extend(side(size.width.div_ceil(STRIP_UNIT))?);
    jpeg.extend(&any[head.len()..any.len() - END.len() - scan.len()]);
    strips.iter().for_each(|strip| jpeg.extend(&strip.bytes));
    jpeg.extend(END);
    Ok(jpeg.into())
}

/// Returns a PNG of 8-bit RGB.
fn png_of(size: ImageSize, strips: &[Strip]) -> Bytes {
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut head = Vec::new();
    head.extend(size.width.to_be_bytes());
    head.extend(size.height.to_be_bytes());
    head.extend([8, 2, 0, 0, 0]);
    chunk(&mut png, *b"IHDR", &head);
    chunk(&mut png, *b"sRGB", &[0]);
    // Header of the stream: Deflate, a window of 32 KiB.
    chunk(&mut png, *b"IDAT", &[0x78, 0x01]);
    let row_bytes = 1 + 3 * u64::from(size.width);
    let mut checksum = 1;
    for strip in strips {
        chunk(&mut png, *b"IDAT", &strip.bytes);
        checksum = adler32_of_both(checksum, strip.checksum, u64::from(strip.rows) * row_bytes);
    }
    // An empty block ends the stream.
    let mut end = vec![0x03, 0x00];
    end.extend(checksum.to_be_bytes());
    chunk(&mut png, *b"IDAT", &end);
    chunk(&mut png, *b"IEND", &[]);
    png.into()
}

/// Returns Deflate blocks that end at a byte boundary, none of them marked as the last one.
fn packed(bytes: &[u8]) -> Result<Vec<u8>> {
    /// Bytes by which the output grows; compression adds far less to incompressible data.
    const MORE: usize = 4096;
    let mut compress = Compress::new(Compression::fast(), false);
    let mut out = Vec::with_capacity(bytes.len() / 2 + MORE);
    let mut taken = 0;
    loop {
        let before = compress.total_in();
        let packing = compress.compress_vec(&bytes[taken..], &mut out, FlushCompress::Sync);
        packing.map_err(|e| Error::internal(format!("cannot compress a PNG: {e}")))?;
        taken += usize::try_from(compress.total_in() - before).unwrap_or(0);
        // All output was written only if there was room for more.
        if taken == bytes.len() && out.len() < out.capacity() {
            return Ok(out);
        }
        out.reserve(out.len() / 2 + MORE);
    }
}

fn chunk(png: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    // A picture has less than 4 GiB.
    png.extend(u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
    png.extend(kind);
    png.extend(data);
    let mut crc = Crc::new();
    crc.update(&kind);
    crc.update(data);
    png.extend(crc.sum().to_be_bytes());
}

/// Returns filtered rows, each preceded by the number of its filter. A pixel has three bytes.
fn filtered(rgb: &[u8], row_bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(rgb.len() + rgb.len() / row_bytes);
    let mut above: Option<&[u8]> = None;
    for row in rgb.chunks_exact(row_bytes) {
        match above {
            Some(above) => {
                out.push(UP);
                out.extend(row.iter().zip(above).map(|(a, b)| a.wrapping_sub(*b)));
            }
            None => {
                out.push(SUB);
                out.extend(&row[..3]);
                out.extend(row[3..].iter().zip(row).map(|(a, b)| a.wrapping_sub(*b)));
            }
        }
        above = Some(row);
    }
    out
}

/// Returns the Adler-32 checksum (RFC 1950).
fn adler32(bytes: &[u8]) -> u32 {
    /// Number of bytes that cannot overflow the sums.
    const AT_ONCE: usize = 5_552;
    let (mut low, mut high) = (1u64, 0u64);
    for part in bytes.chunks(AT_ONCE) {
        for byte in part {
            low += u64::from(*byte);
            high += low;
        }
        (low, high) = (low % ADLER_PRIME, high % ADLER_PRIME);
    }
    together(low, high)
}

/// Returns the checksum of bytes followed by `length` others, from the checksums of both.
fn adler32_of_both(first: u32, second: u32, length: u64) -> u32 {
    let [low, high] = [first & 0xffff, first >> 16].map(u64::from);
    let [low_after, high_after] = [second & 0xffff, second >> 16].map(u64::from);
    // The second sums began at 1; in the whole they would have begun at `low`.
    let more = low + ADLER_PRIME - 1;
    together(
        (more + low_after) % ADLER_PRIME,
        (high + high_after + length % ADLER_PRIME * more) % ADLER_PRIME,
    )
}

#[expect(clippy::cast_possible_truncation, reason = "both are less than 65,536")]
fn together(low: u64, high: u64) -> u32 {
    ((high << 16) | low) as u32
}

fn too_large() -> Error {
    Error::too_large("pictures have at most 65,535 pixels a side")
}

#[cfg(test)]
pub(crate) mod tests {
    use turbojpeg::PixelFormat;

    use super::*;

    const BACKGROUND: [u8; 3] = [20, 30, 90];

    /// Makes an image in which all rows differ.
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn image(size: ImageSize) -> Image {
        let pixel = |i: u32| {
            let (x, y) = ((i % size.width) as f32, (i / size.width) as f32);
            let shade = |n: f32| (0.5 + 0.5 * (n * x + 0.07 * y).sin()) * 0.8;
            [shade(0.1), shade(0.03), shade(0.2), 0.8]
        };
        Image { size, rgba: (0..size.width * size.height).map(pixel).collect() }
    }

    /// Encodes an image in strips that end at these rows, and joins them in reverse order.
    fn in_strips(codec: PictureCodec, image: &Image, ends: &[u32]) -> Result<Bytes> {
        let width = image.size.width;
        let mut top = 0;
        let mut strips = Vec::new();
        for &end in ends {
            let rgba = image.rgba[(top * width) as usize..(end * width) as usize].to_vec();
            let rows = Image { size: ImageSize { width, height: end - top }, rgba };
            let strip = Strip::encoded(codec, &rows, top, BACKGROUND)?;
            strips.push(Strip::from_message(&strip.to_message())?);
            top = end;
        }
        strips.reverse();
        joined(codec, image.size, strips)
    }

    #[test]
    fn a_picture_in_strips_is_the_picture() {
        for (width, height) in [(90, 70), (64, 48), (17, 33), (1, 1), (400, 1200)] {
            let image = image(ImageSize { width, height });
            let cuts = [vec![height], vec![16, 16, height], vec![16, 32, height]];
            for ends in cuts.iter().filter(|ends| ends.is_sorted()) {
                let png = in_strips(PictureCodec::Png, &image, ends).unwrap();
                let jpeg = in_strips(PictureCodec::Jpeg, &image, ends).unwrap();
                let exact = image.to_rgb8(unit(BACKGROUND));
                assert!(decoded_png(&png) == exact, "{width}x{height}, {ends:?}");
                let whole = Jpeg::new().unwrap().encode(&image, BACKGROUND).unwrap();
                let [whole, joined] =
                    [&whole, &jpeg].map(|jpeg| turbojpeg::decompress(jpeg, PixelFormat::RGB).unwrap());
                assert_eq!((joined.width, joined.height), (width as usize, height as usize));
                assert!(joined.pixels == whole.pixels, "{width}x{height}, {ends:?}");
            }
        }
        let wide = image(ImageSize { width: 8, height: 64 });
        assert!(in_strips(PictureCodec::Png, &wide, &[16, 32]).is_err(), "rows are missing");
    }

    /// Decodes the rows of a PNG of 8-bit RGB.
    pub(crate) fn decoded_png(png: &[u8]) -> Vec<u8> {
        use std::io::Read;
        let word = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()) as usize;
        let (width, mut at, mut packed) = (word(16), 8, Vec::new());
        while at < png.len() {
            let (length, kind) = (word(at), &png[at + 4..at + 8]);
            let mut crc = Crc::new();
            crc.update(&png[at + 4..at + 8 + length]);
            assert_eq!(crc.sum() as usize, word(at + 8 + length));
            if kind == b"IDAT" {
                packed.extend(&png[at + 8..at + 8 + length]);
            }
            at += 12 + length;
        }
        let mut filtered = Vec::new();
        // Checks the checksum at the end.
        flate2::read::ZlibDecoder::new(&*packed).read_to_end(&mut filtered).unwrap();
        let mut rgb: Vec<u8> = Vec::new();
        for row in filtered.chunks_exact(1 + width * 3) {
            let above = rgb.len().checked_sub(width * 3);
            for (i, &byte) in row[1..].iter().enumerate() {
                let left = if i < 3 { 0 } else { rgb[rgb.len() - 3] };
                let before = if row[0] == UP { above.map_or(0, |above| rgb[above + i]) } else { left };
                rgb.push(byte.wrapping_add(before));
            }
        }
        rgb
    }
}
