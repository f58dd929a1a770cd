//! Slabs: an image-based representation of a picture that can be drawn from nearby cameras.
//!
//! The volume is cut into slabs, parallel to the image or across one of its axes, thin ones where much is
//! visible. The color and opacity that the rays of one camera accumulate in each slab become an image on the
//! plane in its middle; blending these images, far ones behind near ones, shows the planes as a camera nearby
//! sees them. So the camera need not wait for the next picture. From the camera that they were cast from,
//! they give the ordinary picture except for rounding.
//!
//! Slabs across an axis are the method of image-based rendering assisted volume rendering (Mueller, Shareef,
//! Huang, Crawfis 1999) as Visapult used it; slabs parallel to the image are nearer to the exact picture for
//! the same number.
//!
//! Read [`SlabRequest`] first, then [`cast_slabs`](crate::cast_slabs); [`Slabs::draw`] is the reference
//! compositor. Encoding is in `stream`.

pub(crate) mod axis;
mod borders;
mod draw;
pub(crate) mod gather;
mod range;

use array::{Error, Result};
use view::{Mode, SpaceAxis};

use crate::{Camera, ImageSize, Rect, Scene};

/// Orientation of the planes that cut a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cutting {
    /// Parallel to the image.
    Planes,
    /// Across an axis of the volume: see [`best_axis`](crate::best_axis).
    Axis(SpaceAxis),
}

/// Request for slabs beside a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlabRequest {
    /// Planes along which the volume is cut.
    pub cutting: Cutting,
    /// Number of slabs, 1 to [`Slabs::MAX_COUNT`].
    pub count: u32,
    /// Expected camera at the time at which they are displayed ([`predicted`](crate::predicted)).
    pub camera: Camera,
    /// Pixels of the picture along a side of each texel: 1 for full, 2 for half resolution; at most 8.
    pub reduction: u32,
    /// Guard band: extent beyond the picture on each side, as a share of its width and height; 0 to 1.
    pub guard: f64,
    /// Number of slabs that are still drawn behind the one in which a ray becomes opaque, for content that
    /// becomes visible at edges when the camera turns.
    pub behind: u32,
}

impl SlabRequest {
    /// Guard band for panning and turning of the camera, share of the image.
    pub const GUARD: f64 = 0.05;
    /// Slabs of a set for each slab that is drawn behind opaque content.
    const BEHIND: u32 = 5;
    const MAX_REDUCTION: u32 = 8;

    /// Planes at half resolution, the best quality for their size in bytes.
    #[must_use]
    pub fn planes(camera: Camera, count: u32) -> Self {
        let (guard, behind) = (Self::GUARD, count / Self::BEHIND);
        Self { cutting: Cutting::Planes, count, camera, reduction: 2, guard, behind }
    }

    /// Slabs across an axis, at full resolution.
    #[must_use]
    pub fn axis(camera: Camera, axis: SpaceAxis, count: u32) -> Self {
        Self { cutting: Cutting::Axis(axis), reduction: 1, ..Self::planes(camera, count) }
    }

    /// Checks a request from an untrusted source, for pictures of `size`.
    ///
    /// # Errors
    /// `Invalid`, with a message that names the cause.
    pub fn check(&self, size: ImageSize) -> Result<()> {
        size.check()?;
        check_camera(&self.camera)?;
        let is_legal = (1..=Slabs::MAX_COUNT).contains(&self.count)
            && (1..=Self::MAX_REDUCTION).contains(&self.reduction)
            && (0.0..=1.0).contains(&self.guard);
        if !is_legal {
            return Err(Error::invalid(format!(
                "expected 1 to {} slabs, a texel of 1 to {} pixels and a guard from 0 to 1, found {}, {} and {}",
                Slabs::MAX_COUNT,
                Self::MAX_REDUCTION,
                self.count,
                self.reduction,
                self.guard
            )));
        }
        let (_, size) = self.seen_from(size);
        size.check()?;
        let texels = u64::from(size.width) * u64::from(size.height) * u64::from(self.count);
        if texels > Slabs::MAX_TEXELS {
            return Err(Error::invalid(format!(
                "expected slabs of at most {} texels together, found {texels}: ask for fewer or coarser ones",
                Slabs::MAX_TEXELS
            )));
        }
        Ok(())
    }

    /// Returns the camera and the image size whose blocks must be present for slabs beside pictures of
    /// `size`: all that the camera sees in a picture of this size, with the guard band.
    #[must_use]
    pub fn reach(&self, size: ImageSize) -> (Camera, ImageSize) {
        self.seen_by_pixels_of(1, size)
    }

    /// Returns the camera of the slabs, which sees the guard band too, and their size, for pictures of
    /// `size`.
    fn seen_from(&self, size: ImageSize) -> (Camera, ImageSize) {
        self.seen_by_pixels_of(self.reduction, size)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most thrice a legal side"
    )]
    fn seen_by_pixels_of(&self, reduction: u32, size: ImageSize) -> (Camera, ImageSize) {
        let wider = 1.0 + 2.0 * self.guard;
        let side = |pixels: u32| (f64::from(pixels) * wider / f64::from(reduction)).ceil() as u32;
        (
            self.camera.with_wider_field(wider),
            ImageSize { width: side(size.width), height: side(size.height) },
        )
    }
}

/// Images of slabs, and the positions of their planes.
#[derive(Clone, Debug, PartialEq)]
pub struct Slabs {
    /// Orientation of the planes.
    pub cutting: Cutting,
    /// Camera that they were cast from: a texel lies on its plane where this camera sees it.
    pub camera: Camera,
    /// Size of the camera's whole image, texels.
    pub size: ImageSize,
    /// Guard band: extent of that image beyond the picture on each side, as in [`SlabRequest`].
    pub guard: f64,
    /// Normal of the slabs, away from the camera: unit length, world space.
    pub normal: [f64; 3],
    /// Borders of the slabs: the start of each, and the end of the last; dot product of `normal` and any
    /// point of the border, world units. Ascending.
    pub borders: Vec<f64>,
    /// Images of the slabs, the nearest first.
    pub slabs: Vec<Slab>,
}

/// Image of a slab, cropped to its visible content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slab {
    /// Part of the whole image that it covers; empty if nothing is visible.
    pub rect: Rect,
    /// Square root of each component of premultiplied, sRGB-encoded RGBA, in 8 bits, row by row: faint colors
    /// need the finer steps, because many slabs are blended.
    pub rgba: Vec<u8>,
}

impl Slabs {
    /// Most slabs of a set.
    pub const MAX_COUNT: u32 = 64;
    /// Most texels of a set of slabs before they are cropped: 512 MiB.
    pub const MAX_TEXELS: u64 = 128 << 20;

    /// Returns the camera of the picture that they accompany.
    #[must_use]
    pub fn of_picture(&self) -> Camera {
        self.camera.with_wider_field(1.0 / (1.0 + 2.0 * self.guard))
    }

    /// Returns the number of texels after cropping.
    #[must_use]
    pub fn texels(&self) -> usize {
        self.slabs.iter().map(|slab| slab.rect.pixels()).sum()
    }

    /// Returns the position of the plane in the middle of a slab: dot product of `normal` and any of its
    /// points, world units.
    ///
    /// # Panics
    /// If there is no such slab.
    #[must_use]
    pub fn middle(&self, slab: usize) -> f64 {
        f64::midpoint(self.borders[slab], self.borders[slab + 1])
    }
}

/// Checks that slabs can be cast from a camera: `Invalid` if the camera is not legal, or if its rays start
/// beside its eye, which a set of slabs does not record.
fn check_camera(camera: &Camera) -> Result<()> {
    camera.check()?;
    if camera.aside == 0.0 {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "expected slabs from a camera that stands at its eye, found one {} aside",
        camera.aside
    )))
}

/// Fails with `Unsupported` if a scene has content that cannot be cut into slabs.
fn check_scene(scene: &Scene) -> Result<()> {
    match beyond(scene) {
        Some(what) => Err(Error::unsupported(format!("expected a scene without {what} to cut into slabs"))),
        None => Ok(()),
    }
}

/// Returns the name of something in a scene that cannot be cut into slabs, if there is any.
fn beyond(scene: &Scene) -> Option<&'static str> {
    if !scene.wires.is_empty() {
        return Some("boxes as lines");
    }
    if !scene.geometry.is_empty() {
        return Some("geometry");
    }
    match scene.mode {
        Mode::Maximum | Mode::Minimum => Some("extreme values"),
        Mode::Surfaces => Some("isosurfaces or slices alone"),
        Mode::Composite if !scene.surfaces.is_empty() => Some("isosurfaces"),
        Mode::Composite => (!scene.slices.is_empty()).then_some("slices"),
    }
}
