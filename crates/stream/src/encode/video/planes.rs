//! Conversion of a picture to 4:2:0 YCbCr: luma for each pixel and two chroma values for each 2 x 2 pixels,
//! ITU-R BT.601 in limited range.
//!
//! All values are rounded to the nearest level; truncated chroma would change the blue of a dark background
//! by two.

use array::{Error, Result};
use openh264::formats::YUVSource;
use render::{Image, ImageSize};

use crate::encode::unit;

/// Three planes of bytes without gaps between rows: luma has the picture's size, chroma half of it in each
/// direction.
pub(super) struct Planes {
    pub(super) luma: Vec<u8>,
    pub(super) blue: Vec<u8>,
    pub(super) red: Vec<u8>,
    size: ImageSize,
}

/// Weights of red, green and blue in each plane, in units of 1/65,536.
const LUMA: [i32; 3] = [16_829, 33_039, 6_416];
const BLUE: [i32; 3] = [-9_714, -19_070, 28_784];
const RED: [i32; 3] = [28_784, -24_103, -4_681];

impl Planes {
    /// Converts a picture over `background` (sRGB), whose sides are even, to planes.
    ///
    /// # Errors
    /// `Invalid` for a picture of another size than the film's.
    pub(super) fn of(image: &Image, size: ImageSize, background: [u8; 3]) -> Result<Self> {
        if image.size != size {
            return Err(Error::invalid("all pictures of a film must have the same size"));
        }
        let pixels = image.to_rgb8(unit(background));
        let columns = size.width as usize;
        let luma = pixels.chunks_exact(3).map(|pixel| level(LUMA, wide(pixel), 16, 16)).collect();
        let rows = pixels.chunks_exact(columns * 6).map(|two| two.split_at(columns * 3));
        let fours = rows.flat_map(|(above, below)| above.chunks_exact(6).zip(below.chunks_exact(6)));
        let chromas = fours.map(|(above, below)| {
            let four = [&above[..3], &above[3..], &below[..3], &below[3..]].map(wide);
            let sum = std::array::from_fn(|c| four.iter().map(|pixel| pixel[c]).sum());
            (level(BLUE, sum, 128, 18), level(RED, sum, 128, 18))
        });
        let (blue, red) = chromas.unzip();
        Ok(Self { luma, blue, red, size })
    }
}

fn wide(pixel: &[u8]) -> [i32; 3] {
    std::array::from_fn(|c| pixel[c].into())
}

/// Returns the nearest level, offset by `zero`, for a color, or for the sum of 2^(`bits` - 16) colors.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "16 to 240")]
fn level(shares: [i32; 3], color: [i32; 3], zero: i32, bits: u32) -> u8 {
    let sum: i32 = shares.iter().zip(color).map(|(share, c)| share * c).sum();
    (((sum + (1 << (bits - 1))) >> bits) + zero) as u8
}

impl YUVSource for Planes {
    fn dimensions(&self) -> (usize, usize) {
        (self.size.width as usize, self.size.height as usize)
    }

    fn strides(&self) -> (usize, usize, usize) {
        let columns = self.size.width as usize;
        (columns, columns / 2, columns / 2)
    }

    fn y(&self) -> &[u8] {
        &self.luma
    }

    fn u(&self) -> &[u8] {
        &self.blue
    }

    fn v(&self) -> &[u8] {
        &self.red
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the color that a player shows for the planes of a picture of one color.
    fn shown(color: [u8; 3]) -> [f64; 3] {
        let size = ImageSize { width: 4, height: 2 };
        let image = Image { size, rgba: vec![[0.0; 4]; 8] };
        let planes = Planes::of(&image, size, color).unwrap();
        assert_eq!([planes.luma.len(), planes.blue.len(), planes.red.len()], [8, 2, 2]);
        let luma = (f64::from(planes.luma[5]) - 16.0) * 255.0 / 219.0;
        let [blue, red] = [planes.blue[1], planes.red[1]].map(|c| (f64::from(c) - 128.0) * 255.0 / 224.0);
        [luma + 1.402 * red, luma - 0.344_136 * blue - 0.714_136 * red, luma + 1.772 * blue]
    }

    #[test]
    fn colors_are_restored_within_the_rounding_of_the_planes() {
        for color in [[0; 3], [255; 3], [255, 0, 0], [0, 255, 0], [0, 0, 255], [13, 14, 18], [9, 20, 40]] {
            let back = shown(color);
            let off = back.iter().zip(color).map(|(b, c)| (b - f64::from(c)).abs()).fold(0.0, f64::max);
            assert!(off <= 1.7, "{color:?} became {back:?}");
        }
    }

    #[test]
    fn a_chroma_is_the_mean_of_its_four_pixels() {
        let size = ImageSize { width: 2, height: 2 };
        let rgba =
            vec![[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]];
        let planes = Planes::of(&Image { size, rgba }, size, [0; 3]).unwrap();
        assert_eq!(planes.luma, [41, 16, 41, 16]);
        assert_eq!((planes.blue, planes.red), (vec![184], vec![119]));
    }
}
