//! Partial images: the output of one of several casters, and their composition.
//!
//! [`cast_part`](crate::cast_part) is [`cast`](crate::cast) for a [`SubVolume`] and a rectangle of the image.
//! Composited in the order in which rays meet the sub-volumes, the partial images are the picture: no
//! lighting, cut or position depends on data of one caster only. A partial image does not depend on what lies
//! in front of it, so its rays end later.

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
    /// ([`Snapshot::finest_level`](crate::Snapshot::finest_level)); it determines the positions of samples.
    /// `None`: determined by the blocks of this caster.
    pub finest: Option<u8>,
}

impl ImagePart {
    /// Returns the whole picture.
    pub(crate) fn whole(scene: &Scene) -> Self {
        Self { sub_volume: SubVolume::WHOLE, rect: Rect::whole(scene.size), finest: None }
    }
}

/// Intermediate pixels of a rectangle of an image: other partial images may lie in front of and behind them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartialImage {
    /// Rectangle of the image that the pixels cover.
    pub rect: Rect,
    /// Premultiplied, sRGB-encoded RGBA, row by row.
    pub rgba: Vec<[f32; 4]>,
    /// Best height along each ray of pictures of extreme values, -1 where no value was met: it is shown
    /// behind everything else, so that the largest of all casters counts. Empty in other pictures.
    pub heights: Vec<f32>,
}

impl PartialImage {
    /// Returns an empty partial image.
    #[must_use]
    pub fn transparent(rect: Rect, has_heights: bool) -> Self {
        let heights = if has_heights { vec![height::NOTHING; rect.pixels()] } else { Vec::new() };
        Self { rect, rgba: vec![[0.0; 4]; rect.pixels()], heights }
    }

    /// Composites extreme values behind everything else, after all partial images are composited.
    #[must_use]
    pub fn finished(mut self, scene: &Scene) -> Self {
        height::show(scene, &mut self.rgba, &self.heights);
        self.heights = Vec::new();
        self
    }
}

/// Counts of a caster, from which the fidelity of the picture is computed.
#[derive(Clone, Debug, Default)]
pub struct SampleTally(pub(crate) ShownSamples);

impl SampleTally {
    /// Size of [`SampleTally::to_bytes`].
    pub const BYTES: usize = ShownSamples::WORDS * size_of::<u64>();

    /// Adds the counts of another caster.
    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0);
    }

    /// Returns the bytes for other processes; little-endian.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.words().flat_map(u64::to_le_bytes).collect()
    }

    /// Reads the bytes that [`SampleTally::to_bytes`] wrote.
    ///
    /// # Errors
    /// `Corrupt` if the size does not match.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let shown = ShownSamples::from_words(&words).filter(|_| bytes.len() == Self::BYTES);
        shown.map(Self).ok_or_else(|| {
            Error::corrupt(format!("expected a tally of {} bytes, found {}", Self::BYTES, bytes.len()))
        })
    }

    /// Returns the fidelity of a picture from the sum of the tallies of all partial images of a scene.
    ///
    /// # Errors
    /// `Invalid` if the scene wants a level that its view does not have.
    pub fn fidelity(&self, scene: &Scene) -> Result<Fidelity> {
        Ok(self.0.fidelity(&scene.view, scene.view.level_index_of(scene.finest_level)?))
    }
}

/// Partial image of a picture, with its counts and its work.
#[derive(Clone, Debug)]
pub struct DrawnPart {
    /// Pixels.
    pub image: PartialImage,
    /// Counts for the fidelity of the picture.
    pub tally: SampleTally,
    /// Work of the blocks, in samples drawn.
    pub work: Vec<(BlockKey, f64)>,
}
