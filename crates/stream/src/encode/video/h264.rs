//! H.264 encoder for films, by OpenH264: pictures become the samples of a video track.
//!
//! Constrained baseline profile at a constant frame rate.

use array::{Error, Result};
use openh264::OpenH264API;
use openh264::encoder::{
    Encoder, EncoderConfig, FrameRate, IntraFramePeriod, QpRange, RateControlMode, UsageType, VuiConfig,
};
use render::{Image, ImageSize};

use super::planes::Planes;
use super::{FilmQuality, KEY_EVERY, VideoSample, check_film};

/// Quantizers of the lowest and the highest quality: the range that the library supports.
const COARSEST: u8 = 51;
const FINEST: u8 = 12;

/// H.264 encoder of one film.
pub struct H264 {
    encoder: Encoder,
    size: ImageSize,
    /// Parameter sets, taken from the first encoded picture.
    sets: Option<ParameterSets>,
}

/// Sequence and picture parameter sets, which decoders need first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterSets {
    /// Parameter set of the whole sequence.
    pub sequence: Vec<u8>,
    /// Parameter set of the pictures.
    pub picture: Vec<u8>,
}

impl H264 {
    /// Creates an encoder for pictures of this size.
    ///
    /// # Errors
    /// `Invalid` as in [`check_film`]; `Internal` when the library cannot be set up.
    pub fn new(size: ImageSize, pictures_per_sec: f64, quality: FilmQuality) -> Result<Self> {
        check_film(size, pictures_per_sec)?;
        let quantizer = quality.quantizer(COARSEST, FINEST);
        #[expect(clippy::cast_possible_truncation, reason = "a rate")]
        let config = EncoderConfig::new()
            .max_frame_rate(FrameRate::from_hz(pictures_per_sec as f32))
            // This is the mode that keeps the quantizer within its range, here a single value, for whole
            // pictures. Without rate control the library always uses 26; scene change detection would raise
            // it.
            .rate_control_mode(RateControlMode::Bufferbased)
            .scene_change_detect(false)
            .qp(QpRange::new(quantizer, quantizer))
            .usage_type(UsageType::CameraVideoRealTime)
            .intra_frame_period(IntraFramePeriod::from_num_frames(KEY_EVERY))
            .skip_frames(false)
            .vui(VuiConfig::bt601());
        let encoder = Encoder::with_api_config(OpenH264API::from_source(), config).map_err(failed)?;
        Ok(Self { encoder, size, sets: None })
    }

    /// Encodes the next picture over `background` (sRGB).
    ///
    /// # Errors
    /// `Invalid` for a picture of another size; `Internal` when the library fails.
    pub fn encode(&mut self, image: &Image, background: [u8; 3]) -> Result<VideoSample> {
        let planes = Planes::of(image, self.size, background)?;
        let encoded = self.encoder.encode(&planes).map_err(failed)?.to_vec();
        let (mut sequence, mut parameters) = (None, None);
        let mut sample = VideoSample { bytes: Vec::with_capacity(encoded.len()), is_key: false };
        for unit in openh264::nal_units(&encoded) {
            let unit = &unit[start_code_bytes(unit)..];
            match unit.first().map(|first| first & 0x1f) {
                Some(7) => sequence = Some(unit.to_vec()),
                Some(8) => parameters = Some(unit.to_vec()),
                Some(kind) => {
                    sample.is_key |= kind == 5;
                    let length = u32::try_from(unit.len()).map_err(|_| failed("a slice of 4 GiB"))?;
                    sample.bytes.extend(length.to_be_bytes());
                    sample.bytes.extend(unit);
                }
                None => {}
            }
        }
        if let (None, Some(sequence), Some(picture)) = (&self.sets, sequence, parameters) {
            self.sets = Some(ParameterSets { sequence, picture });
        }
        if sample.bytes.is_empty() {
            return Err(failed("a picture without a slice"));
        }
        Ok(sample)
    }

    /// Returns the parameter sets that decoders need; `None` before the first picture.
    #[must_use]
    pub fn sets(&self) -> Option<&ParameterSets> {
        self.sets.as_ref()
    }
}

/// Length of the start code before a unit of a byte stream (ITU-T H.264, annex B).
fn start_code_bytes(unit: &[u8]) -> usize {
    unit.iter().position(|&byte| byte == 1).map_or(0, |at| at + 1)
}

fn failed(why: impl std::fmt::Display) -> Error {
    Error::internal(format!("H.264 encoding failed: {why}"))
}

#[cfg(test)]
mod tests {
    use openh264::decoder::Decoder;
    use openh264::formats::YUVSource;

    use super::*;

    /// Draws a gray disc that moves to the right.
    fn picture(number: u32) -> Image {
        let size = ImageSize { width: 64, height: 48 };
        let is_inside =
            |x: u32, y: u32| (x as f32 - 12.0 - 4.0 * number as f32).hypot(y as f32 - 24.0) < 10.0;
        let rgba = (0..48 * 64)
            .map(|i| if is_inside(i % 64, i / 64) { [0.75, 0.75, 0.75, 1.0] } else { [0.0; 4] })
            .collect();
        Image { size, rgba }
    }

    /// Converts a sample to a byte stream, after the parameter sets if given.
    fn stream(sample: &VideoSample, sets: Option<&ParameterSets>) -> Vec<u8> {
        let mut units: Vec<&[u8]> =
            sets.map_or_else(Vec::new, |sets| vec![&sets.sequence[..], &sets.picture[..]]);
        let mut rest = sample.bytes.as_slice();
        while let [a, b, c, d, after @ ..] = rest {
            let (unit, next) = after.split_at(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
            units.push(unit);
            rest = next;
        }
        assert!(rest.is_empty());
        units.into_iter().flat_map(|unit| [&[0, 0, 0, 1], unit].concat()).collect()
    }

    /// A decoder may also begin at the second key frame, as after seeking in a player.
    #[test]
    fn a_decoder_shows_every_picture_from_any_key_frame_on() {
        // Position of the disc.
        let place = |number: u32| number % 10;
        let mut encoder = H264::new(picture(0).size, 25.0, FilmQuality::default()).unwrap();
        let count = KEY_EVERY + 4;
        let encode = |number| encoder.encode(&picture(place(number)), [0; 3]).unwrap();
        let samples: Vec<VideoSample> = (0..count).map(encode).collect();
        let sets = encoder.sets().unwrap();
        for first in [0, KEY_EVERY] {
            let mut decoder = Decoder::new().unwrap();
            for (number, sample) in (0..count).zip(&samples).skip(first as usize) {
                assert_eq!(sample.is_key, number % KEY_EVERY == 0, "{number}");
                let sets = (number == first).then_some(sets);
                let shown = decoder.decode(&stream(sample, sets)).unwrap().expect("a picture");
                assert_eq!(shown.dimensions(), (64, 48));
                let mut rgb = vec![0; 64 * 48 * 3];
                shown.write_rgb8(&mut rgb);
                let expected = picture(place(number)).to_rgb8([0.0; 3]);
                let error: f64 = rgb.iter().zip(&expected).map(|(a, b)| f64::from(a.abs_diff(*b))).sum();
                assert!(error / (rgb.len() as f64) < 4.0, "picture {number} from {first}: off by {error}");
            }
        }
    }

    #[test]
    fn pictures_of_another_size_are_told() {
        let size = ImageSize { width: 32, height: 32 };
        let mut encoder = H264::new(size, 25.0, FilmQuality::default()).unwrap();
        encoder.encode(&picture(0), [0; 3]).unwrap_err();
    }
}
