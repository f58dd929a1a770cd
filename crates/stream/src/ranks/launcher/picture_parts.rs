//! Assembly of finished pictures from the parts of all ranks: each rank finishes a rectangle of the picture,
//! or one for each eye of a stereo pair, and rank 0 joins them.

use array::{BlockKey, Error, Result};
use compose::{Communicator, Composed, KdTree, Schedule};
use render::{Cancel, Image, ImageSize, Rect, RenderedImage, Scene, stereo};
use serde::{Deserialize, Serialize};
use view::View;

use crate::encode::unit;
use crate::loading::drawable::Drawable;

/// Bytes before the parts of a message: the work of the rank.
const WORK_BYTES: usize = size_of::<f64>();

/// Pixel format of finished pictures on the way to rank 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PixelPrecision {
    /// 8-bit RGB over the view's background, three bytes a pixel: enough for `.png` and films. The image is
    /// opaque.
    #[default]
    Rgb8,
    /// Single precision with opacity, sixteen bytes a pixel: for annotation behind the picture and for
    /// `.exr`.
    Full,
}

impl PixelPrecision {
    fn pixel_bytes(self) -> usize {
        match self {
            Self::Rgb8 => 3,
            Self::Full => size_of::<[f32; 4]>(),
        }
    }

    fn encoded(self, image: &Image, background: [u8; 3]) -> Vec<u8> {
        match self {
            Self::Rgb8 => image.to_rgb8(unit(background)),
            Self::Full => image.rgba.as_flattened().iter().flat_map(|value| value.to_le_bytes()).collect(),
        }
    }

    /// Decodes one pixel from its [bytes](Self::pixel_bytes).
    fn decoded(self, bytes: &[u8]) -> [f32; 4] {
        match self {
            Self::Rgb8 => opaque([0, 1, 2].map(|i| bytes[i])),
            Self::Full => [0, 4, 8, 12].map(|i| f32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[i + byte]))),
        }
    }

    /// Returns the pixel for places where no rank has drawn anything.
    fn nothing(self, background: [u8; 3]) -> [f32; 4] {
        match self {
            Self::Rgb8 => opaque(background),
            Self::Full => [0.0; 4],
        }
    }
}

fn opaque(color: [u8; 3]) -> [f32; 4] {
    let [r, g, b] = unit(color);
    [r, g, b, 1.0]
}

/// Returns the scenes of both eyes of a stereo pair, or the one scene of any other view.
///
/// # Errors
/// Those of [`stereo::scenes`].
fn eyes(scene: &Scene, view: &View) -> Result<Vec<Scene>> {
    view.stereo
        .map_or_else(|| Ok(vec![scene.clone()]), |parallax| stereo::scenes(scene, parallax).map(Vec::from))
}

/// Parts of a finished picture from this rank.
pub(crate) struct PictureParts {
    eyes: Vec<Composed>,
    /// Work of this rank for each block, in samples drawn.
    pub(crate) block_work: Vec<(BlockKey, f64)>,
}

impl PictureParts {
    /// Draws a picture together with the other ranks, which make the same call. Blocks the thread.
    ///
    /// # Errors
    /// Those of [`compose::draw_by`] and [`stereo::scenes`].
    pub(crate) fn drawn(
        ranks: &dyn Communicator,
        drawable: &Drawable,
        (scene, view): (&Scene, &View),
        tree: &KdTree,
        schedule: &Schedule,
        cancel: &Cancel,
    ) -> Result<Self> {
        let draw = |eye: &Scene| drawable.draw_together(ranks, eye, tree, schedule, cancel);
        // The second eye is drawn even if the first one failed: the other ranks continue too.
        let drawn: Vec<Result<Composed>> = eyes(scene, view)?.iter().map(draw).collect();
        let mut eyes = drawn.into_iter().collect::<Result<Vec<_>>>()?;
        let block_work = eyes.iter_mut().flat_map(|eye| std::mem::take(&mut eye.work)).collect();
        Ok(Self { eyes, block_work })
    }

    /// Returns the message to rank 0, little-endian. A rank that could not draw sends an empty message
    /// instead.
    pub(crate) fn to_message(&self, pixels: PixelPrecision, background: [u8; 3]) -> Vec<u8> {
        let work: f64 = self.block_work.iter().map(|(_, work)| work).sum();
        let mut message = work.to_le_bytes().to_vec();
        for eye in &self.eyes {
            message.extend(eye.region.to_bytes());
            message.extend(pixels.encoded(&eye.image(), background));
        }
        message
    }
}

/// Finished picture that is being assembled at rank 0.
pub(super) struct PictureAssembly {
    size: ImageSize,
    pixels: PixelPrecision,
    eyes: Vec<(Scene, Image)>,
}

impl PictureAssembly {
    /// Creates an empty picture.
    ///
    /// # Errors
    /// Those of [`stereo::scenes`].
    pub(super) fn new(scene: &Scene, view: &View, pixels: PixelPrecision) -> Result<Self> {
        let blank = |eye: Scene| {
            let rgba = vec![pixels.nothing(view.background); Rect::whole(eye.size).pixels()];
            let image = Image { size: eye.size, rgba };
            (eye, image)
        };
        let eyes = eyes(scene, view)?.into_iter().map(blank).collect();
        Ok(Self { size: scene.size, pixels, eyes })
    }

    /// Inserts a rank's parts; returns the work of the rank.
    ///
    /// # Errors
    /// `Corrupt` for a message that [`PictureParts::to_message`] did not write.
    pub(super) fn insert(&mut self, message: &[u8]) -> Result<f64> {
        let Some((work, mut rest)) = message.split_first_chunk::<WORK_BYTES>() else { return Ok(0.0) };
        for (_, image) in &mut self.eyes {
            rest = insert(image, self.pixels, rest)?;
        }
        if rest.is_empty() { Ok(f64::from_le_bytes(*work)) } else { Err(foreign(rest.len())) }
    }

    /// Returns the picture, of which rank 0 drew `own`.
    ///
    /// # Errors
    /// Those of [`SampleTally::fidelity`](render::SampleTally::fidelity).
    pub(super) fn finished(self, own: &PictureParts) -> Result<RenderedImage> {
        let frame = |((scene, image), part): ((Scene, Image), &Composed)| {
            Ok(RenderedImage { image, fidelity: part.tally.fidelity(&scene)? })
        };
        let frames = self.eyes.into_iter().zip(&own.eyes).map(frame).collect::<Result<Vec<_>>>()?;
        match <[RenderedImage; 2]>::try_from(frames) {
            Ok(pair) => stereo::beside(pair, self.size),
            Err(one) => one.into_iter().next().ok_or_else(|| Error::internal("the picture has no parts")),
        }
    }
}

/// Inserts the first part of a message into an image; returns the rest.
fn insert<'a>(image: &mut Image, pixels: PixelPrecision, message: &'a [u8]) -> Result<&'a [u8]> {
    let (rect, rest) = message.split_first_chunk().ok_or_else(|| foreign(message.len()))?;
    let rect = Rect::from_bytes(rect);
    // A rectangle within the image bounds the number of pixels.
    let bytes = if rect.is_within(image.size) { rect.pixels() * pixels.pixel_bytes() } else { usize::MAX };
    let (own, rest) = rest.split_at_checked(bytes).ok_or_else(|| foreign(rest.len()))?;
    let (whole, width) = (Rect::whole(image.size), rect.width as usize);
    let rows = own.chunks_exact((width * pixels.pixel_bytes()).max(1));
    for (row, bytes) in (rect.top..).zip(rows) {
        let start = whole.index(rect.left, row);
        let places = &mut image.rgba[start..start + width];
        for (place, bytes) in places.iter_mut().zip(bytes.chunks_exact(pixels.pixel_bytes())) {
            *place = pixels.decoded(bytes);
        }
    }
    Ok(rest)
}

fn foreign(bytes: usize) -> Error {
    Error::corrupt(format!("invalid parts of a picture in {bytes} bytes; do all ranks run the same program?"))
}
