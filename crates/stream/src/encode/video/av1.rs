//! AV1 encoder for films, by rav1e: pictures become the temporal units of a video track.
//!
//! Main profile, 8 bits, without reordered frames. The number of tiles depends on the picture size only, so
//! that equal pictures give equal bytes on any number of cores.

use array::{Error, Result};
use rav1e::prelude::{
    ColorDescription, ColorPrimaries, Config, Context, EncoderConfig, EncoderStatus, FrameType,
    MatrixCoefficients, PixelRange, Rational, SceneDetectionSpeed, TransferCharacteristics,
};
use render::{Image, ImageSize};

use super::planes::Planes;
use super::{FilmQuality, KEY_EVERY, VideoSample, check_film};

/// Fastest preset of rav1e: encoding time matters more than size.
const SPEED: u8 = 10;
/// Quantizers for the lowest and the highest quality.
const COARSEST: u8 = 255;
const FINEST: u8 = 16;
/// Pixels per tile; each tile can be encoded on its own core.
const PIXELS_PER_TILE: usize = 1 << 18;
/// Largest number of tiles of a picture.
const MAX_TILES: usize = 16;
/// Temporal delimiter, the first two bytes of a unit, which files omit.
const DELIMITER: [u8; 2] = [0x12, 0];

/// AV1 encoder of one film.
pub struct Av1 {
    context: Context<u8>,
    size: ImageSize,
}

impl Av1 {
    /// Creates an encoder for pictures of this size.
    ///
    /// # Errors
    /// `Invalid` as in [`check_film`]; `Internal` when the library rejects the configuration.
    pub fn new(size: ImageSize, pictures_per_sec: f64, quality: FilmQuality) -> Result<Self> {
        check_film(size, pictures_per_sec)?;
        let (width, height) = (size.width as usize, size.height as usize);
        let mut config = EncoderConfig::with_speed_preset(SPEED);
        config.width = width;
        config.height = height;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "100 to 240,000")]
        let per_1000_sec = (pictures_per_sec * 1000.0).round() as u64;
        config.time_base = Rational::new(1000, per_1000_sec);
        config.pixel_range = PixelRange::Limited;
        config.color_description = Some(ColorDescription {
            color_primaries: ColorPrimaries::BT601,
            transfer_characteristics: TransferCharacteristics::BT601,
            matrix_coefficients: MatrixCoefficients::BT601,
        });
        config.quantizer = quality.quantizer(COARSEST, FINEST).into();
        config.low_latency = true;
        config.min_key_frame_interval = KEY_EVERY.into();
        config.max_key_frame_interval = KEY_EVERY.into();
        config.speed_settings.scene_detection_mode = SceneDetectionSpeed::None;
        config.speed_settings.rdo_lookahead_frames = 1;
        config.tiles = (width * height / PIXELS_PER_TILE).clamp(1, MAX_TILES);
        let context = Config::new().with_encoder_config(config).new_context().map_err(failed)?;
        Ok(Self { context, size })
    }

    /// Encodes the next picture over `background` (sRGB); returns the finished samples, which may be of
    /// earlier pictures.
    ///
    /// # Errors
    /// `Invalid` for a picture of another size; `Internal` when the library fails.
    pub fn encode(&mut self, image: &Image, background: [u8; 3]) -> Result<Vec<VideoSample>> {
        let planes = Planes::of(image, self.size, background)?;
        let columns = self.size.width as usize;
        let mut frame = self.context.new_frame();
        let all = [(&planes.luma, columns), (&planes.blue, columns / 2), (&planes.red, columns / 2)];
        for (plane, (bytes, stride)) in frame.planes.iter_mut().zip(all) {
            plane.copy_from_raw_u8(bytes, stride, 1);
        }
        self.context.send_frame(frame).map_err(failed)?;
        self.ready()
    }

    /// Ends the film; returns the samples that are left after the last picture.
    ///
    /// # Errors
    /// `Internal` when the library fails.
    pub fn finish(&mut self) -> Result<Vec<VideoSample>> {
        self.context.send_frame(None).map_err(failed)?;
        self.ready()
    }

    fn ready(&mut self) -> Result<Vec<VideoSample>> {
        let mut samples = Vec::new();
        loop {
            match self.context.receive_packet() {
                Ok(packet) => samples.push(VideoSample {
                    bytes: packet.data.strip_prefix(&DELIMITER).unwrap_or(&packet.data).to_vec(),
                    is_key: packet.frame_type == FrameType::KEY,
                }),
                Err(EncoderStatus::Encoded) => {}
                Err(EncoderStatus::NeedMoreData | EncoderStatus::LimitReached) => return Ok(samples),
                Err(why) => return Err(failed(why)),
            }
        }
    }

    /// Returns the configuration that decoders need first (`av1C`, AV1 in ISO base media files 2.3).
    #[must_use]
    pub fn configuration(&self) -> Vec<u8> {
        self.context.container_sequence_header()
    }
}

fn failed(why: impl std::fmt::Display) -> Error {
    Error::internal(format!("AV1 encoding failed: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(level: f32) -> Image {
        let size = ImageSize { width: 64, height: 48 };
        Image { size, rgba: vec![[level, level, level, 1.0]; 64 * 48] }
    }

    fn film(quality: &str, pictures: u32) -> Vec<VideoSample> {
        let mut encoder = Av1::new(picture(0.0).size, 25.0, quality.parse().unwrap()).unwrap();
        assert_eq!(encoder.configuration().len(), 4);
        let mut samples = Vec::new();
        for number in 0..pictures {
            let mut image = picture(0.1 * (number % 5) as f32);
            // Noise, which takes bytes.
            image.rgba.iter_mut().enumerate().for_each(|(at, pixel)| pixel[0] = (at * at % 97) as f32 / 97.0);
            samples.extend(encoder.encode(&image, [0; 3]).unwrap());
        }
        samples.extend(encoder.finish().unwrap());
        samples
    }

    #[test]
    fn every_picture_becomes_a_unit_and_key_frames_come_at_intervals() {
        let samples = film("75", KEY_EVERY + 3);
        assert_eq!(samples.len(), KEY_EVERY as usize + 3);
        for (number, sample) in (0..).zip(&samples) {
            assert_eq!(sample.is_key, number % KEY_EVERY == 0, "{number}");
            // A sequence header comes first, without a delimiter in front of it.
            assert_eq!(sample.bytes[0] >> 3 & 0xf == 1, sample.is_key, "{number}");
            assert!(!sample.bytes.starts_with(&DELIMITER));
        }
        assert_eq!(samples[..5], film("75", 5), "the same pictures give the same bytes");
    }

    #[test]
    fn higher_qualities_take_more_bytes() {
        let bytes = |quality| film(quality, 5).iter().map(|sample| sample.bytes.len()).sum::<usize>();
        let (low, usual, high) = (bytes("10"), bytes("75"), bytes("100"));
        assert!(2 * low < usual && usual < high, "{low} {usual} {high}");
    }

    #[test]
    fn pictures_of_another_size_are_told() {
        let mut encoder =
            Av1::new(ImageSize { width: 32, height: 32 }, 25.0, FilmQuality::default()).unwrap();
        encoder.encode(&picture(0.0), [0; 3]).unwrap_err();
        assert!(Av1::new(ImageSize { width: 31, height: 32 }, 25.0, FilmQuality::default()).is_err());
    }
}
