//! A part of a picture: what one of several casters draws, and what becomes of it.
//!
//! [`cast_part`](crate::cast_part) is [`cast`](crate::cast) for a [`SubVolume`] and a rectangle of the image. Put behind one another
//! in the order in which rays meet the sub-volumes, the partial images are the picture: nothing of it is lit, cut or placed by
//! what only one of the casters knows. A partial image knows nothing of what lies before it, so its rays end later.

use array::{BlockKey, Error, Result};

use crate::cpu::extreme::height;
use crate::scene::fidelity::ShownSamples;
use crate::{Fidelity, Rect, Scene, SubVolume};

/// Part of a picture that one of several casters draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImagePart {
    /// Part of the volume.
    pub sub_volume: SubVolume,
    /// Part of the image.
    pub rect: Rect,
    /// Number of the finest level, not finer than the scene's, of which any of the casters has a block
    /// ([`Snapshot::finest_level`](crate::Snapshot::finest_level)): it says where samples lie. `None`: what is here says so.
    pub finest: Option<u8>,
}

impl ImagePart {
    /// All of a picture.
    pub(crate) fn whole(scene: &Scene) -> Self {
        Self { sub_volume: SubVolume::WHOLE, rect: Rect::whole(scene.size), finest: None }
    }
}

/// Pixels of a rectangle of an image, not finished yet: others may lie before and behind them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartialImage {
    /// Rectangle of the image that the pixels cover.
    pub rect: Rect,
    /// Premultiplied, sRGB-encoded RGBA, row by row.
    pub rgba: Vec<[f32; 4]>,
    /// Best height along each ray of pictures of extreme values, -1 where no value was met: it is shown behind
    /// everything else, so that the largest of all casters counts. Empty in other pictures.
    pub heights: Vec<f32>,
}

impl PartialImage {
    /// One in which nothing is seen.
    #[must_use]
    pub fn transparent(rect: Rect, has_heights: bool) -> Self {
        let heights = if has_heights { vec![height::NOTHING; rect.pixels()] } else { Vec::new() };
        Self { rect, rgba: vec![[0.0; 4]; rect.pixels()], heights }
    }

    /// Puts extreme values behind what else was drawn, once all partial images lie over one another.
    #[must_use]
    pub fn finished(mut self, scene: &Scene) -> Self {
        height::show(scene, &mut self.rgba, &self.heights);
        self.heights = Vec::new();
        self
    }
}

/// Counts of a caster: they tell what its partial images show.
#[derive(Clone, Debug, Default)]
pub struct SampleTally(pub(crate) ShownSamples);

impl SampleTally {
    /// Size of [`SampleTally::to_bytes`].
    pub const BYTES: usize = ShownSamples::WORDS * size_of::<u64>();

    /// Adds what another caster counted.
    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0);
    }

    /// Bytes for other processes; little-endian.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.words().flat_map(u64::to_le_bytes).collect()
    }

    /// Reads the bytes that [`SampleTally::to_bytes`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is not of that size.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let shown = ShownSamples::from_words(&words).filter(|_| bytes.len() == Self::BYTES);
        shown.map(Self).ok_or_else(|| {
            Error::corrupt(format!("expected a tally of {} bytes, found {}", Self::BYTES, bytes.len()))
        })
    }

    /// Returns what all partial images of a scene show whose tallies were added up.
    ///
    /// # Errors
    /// `Invalid` where the scene wants a level that its view has not.
    pub fn fidelity(&self, scene: &Scene) -> Result<Fidelity> {
        Ok(self.0.fidelity(&scene.view, scene.view.level_index_of(scene.finest_level)?))
    }
}

/// A partial image of a picture, and what it took.
#[derive(Clone, Debug)]
pub struct DrawnPart {
    /// Pixels.
    pub image: PartialImage,
    /// Counts that tell what the pixels show.
    pub tally: SampleTally,
    /// Work that blocks made, in samples drawn.
    pub work: Vec<(BlockKey, f64)>,
}
