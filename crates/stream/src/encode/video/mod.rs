//! Films: pictures become the samples of a video track, by an encoder of one codec each.
//!
//! Colors are BT.601 in limited range, 4:2:0 ([`planes`]), and said to be: what browsers and players take. Each picture has the
//! same quality, whatever it takes, and none is left out.

mod av1;
mod h264;
mod planes;

use std::str::FromStr;

use array::{Error, Result};
use render::ImageSize;

pub use av1::Av1;
pub use h264::{H264, ParameterSets};

/// Pictures between two with which playing can begin: some seconds.
const KEY_EVERY: u32 = 100;
/// Largest picture, pixels: that of level 5.2 of H.264.
const MAX_PIXELS: u64 = 4096 * 2304;
/// Smallest side, pixels.
const MIN_SIDE: u32 = 16;

/// One picture as a video track has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoSample {
    /// As the codec's mapping to files has it: of H.264 slices, each behind its length as four bytes, big-endian; of AV1 a
    /// temporal unit without its delimiter.
    pub bytes: Vec<u8>,
    /// Playing can begin here.
    pub is_key: bool,
}

/// How true a film is, 1 to 100; larger ones take more bytes. Each codec has a quantizer for it, from the coarsest to one that
/// hardly shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilmQuality(u8);

impl Default for FilmQuality {
    /// 75: dark backgrounds keep their tint, and edges stay clean.
    fn default() -> Self {
        Self(75)
    }
}

impl FromStr for FilmQuality {
    type Err = Error;

    /// A whole number from 1 to 100.
    fn from_str(text: &str) -> Result<Self> {
        let number = text.trim().parse().ok().filter(|number| (1..=100).contains(number));
        number.map(Self).ok_or_else(|| {
            Error::invalid(format!(
                "expected the quality of a film as a whole number from 1 (small) to 100 (true), found `{text}`"
            ))
        })
    }
}

impl FilmQuality {
    /// A quantizer between the `coarsest`, for 1, and the `finest`, for 100.
    fn quantizer(self, coarsest: u8, finest: u8) -> u8 {
        let share = f64::from(self.0 - 1) / 99.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two bytes")]
        let quantizer =
            (f64::from(coarsest) + (f64::from(finest) - f64::from(coarsest)) * share).round() as u8;
        quantizer
    }
}

/// Checks what films of all codecs need.
///
/// # Errors
/// `Invalid` for odd, small or too large sizes and rates that are none.
pub fn check_film(size: ImageSize, pictures_per_sec: f64) -> Result<()> {
    let pixels = u64::from(size.width) * u64::from(size.height);
    let is_even = size.width.is_multiple_of(2) && size.height.is_multiple_of(2);
    if !is_even || pixels > MAX_PIXELS || size.width.min(size.height) < MIN_SIDE {
        return Err(Error::invalid(format!(
            "expected even sizes of {MIN_SIDE} and more and at most {MAX_PIXELS} pixels for a film, found {}x{}",
            size.width, size.height
        )));
    }
    if !(0.1..=240.0).contains(&pictures_per_sec) {
        return Err(Error::invalid(format!(
            "expected 0.1 to 240 pictures a second, found {pictures_per_sec}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_rates_that_no_film_has_are_told() {
        for (width, height, rate) in [
            (63, 48, 25.0),
            (64, 47, 25.0),
            (8, 8, 25.0),
            (8192, 8192, 25.0),
            (64, 48, 0.0),
            (64, 48, f64::NAN),
        ] {
            check_film(ImageSize { width, height }, rate).unwrap_err();
        }
        check_film(ImageSize { width: 64, height: 48 }, 25.0).unwrap();
    }

    #[test]
    fn qualities_are_1_to_100_and_go_from_coarse_to_fine() {
        let quantizer = |text: &str| text.parse::<FilmQuality>().unwrap().quantizer(51, 12);
        assert_eq!([quantizer("1"), quantizer(" 100 ")], [51, 12]);
        assert!(quantizer("40") > quantizer("60"));
        for bad in ["0", "101", "-1", "1.5", "high", ""] {
            let error = bad.parse::<FilmQuality>().unwrap_err().to_string();
            assert!(error.contains("1 (small) to 100"), "{error}");
        }
    }
}
