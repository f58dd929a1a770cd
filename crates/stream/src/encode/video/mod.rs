//! Video encoders for films: pictures become the samples of a video track.
//!
//! Colors are BT.601 in limited range, 4:2:0 ([`planes`]), and marked as such: all browsers and players
//! decode it. All pictures have the same quality at whatever size, and none is dropped.

mod av1;
mod h264;
mod planes;

use std::str::FromStr;

use array::{Error, Result};
use render::ImageSize;

pub use av1::Av1;
pub use h264::{H264, ParameterSets};

/// Interval of key frames, pictures: a few seconds.
const KEY_EVERY: u32 = 100;
/// Most pixels of a picture: those of H.264 level 5.2.
const MAX_PIXELS: u64 = 4096 * 2304;
/// Smallest side of a picture, pixels.
const MIN_SIDE: u32 = 16;

/// One encoded picture of a video track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoSample {
    /// Bytes as they are stored in files: for H.264 slices, each preceded by its length as four bytes,
    /// big-endian; for AV1 a temporal unit without its delimiter.
    pub bytes: Vec<u8>,
    /// Key frame: playback can start here.
    pub is_key: bool,
}

/// Quality of a film, 1 to 100; higher qualities take more bytes. Each codec maps it to a quantizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilmQuality(u8);

impl Default for FilmQuality {
    /// Returns 75: dark backgrounds keep their color, and edges stay clean.
    fn default() -> Self {
        Self(75)
    }
}

impl FromStr for FilmQuality {
    type Err = Error;

    /// Parses a whole number from 1 to 100.
    fn from_str(text: &str) -> Result<Self> {
        let number = text.trim().parse().ok().filter(|number| (1..=100).contains(number));
        number.map(Self).ok_or_else(|| {
            Error::invalid(format!(
                "expected a whole number from 1 (small) to 100 (best) as the quality of a film, found `{text}`"
            ))
        })
    }
}

impl FilmQuality {
    /// Interpolates between the `coarsest` quantizer, for 1, and the `finest`, for 100.
    fn quantizer(self, coarsest: u8, finest: u8) -> u8 {
        let share = f64::from(self.0 - 1) / 99.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two bytes")]
        let quantizer =
            (f64::from(coarsest) + (f64::from(finest) - f64::from(coarsest)) * share).round() as u8;
        quantizer
    }
}

/// Checks the requirements of all codecs on the size and the rate of a film.
///
/// # Errors
/// `Invalid` for odd, too small or too large sizes and for invalid rates.
pub fn check_film(size: ImageSize, pictures_per_sec: f64) -> Result<()> {
    let pixels = u64::from(size.width) * u64::from(size.height);
    let is_even = size.width.is_multiple_of(2) && size.height.is_multiple_of(2);
    if !is_even || pixels > MAX_PIXELS || size.width.min(size.height) < MIN_SIDE {
        return Err(Error::invalid(format!(
            "expected even sizes of at least {MIN_SIDE} and at most {MAX_PIXELS} pixels for a film, found {}x{}",
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
    fn invalid_sizes_and_rates_of_films_are_refused() {
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
