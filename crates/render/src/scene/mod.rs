//! Scene: the complete description of one picture, except the blocks.

pub(crate) mod camera;
pub(crate) mod camera_path;
pub(crate) mod color_by;
pub(crate) mod color_map;
pub(crate) mod demand;
pub(crate) mod fidelity;
pub(crate) mod first_camera;
pub(crate) mod frustum;
pub(crate) mod layer;
pub(crate) mod light;
pub(crate) mod mode;
pub(crate) mod quality;
pub(crate) mod slice;
pub(crate) mod sub_volume;
pub(crate) mod surface;
pub(crate) mod transfer;
pub(crate) mod volume;
pub(crate) mod wires;

use std::sync::Arc;

use array::{Error, Result};
use view::Mode;

use crate::{
    ArrayLayer, Bounds, Camera, ColorByArray, ImageSize, Isosurface, LightShares, MAX_BOXES, Portion,
    Quality, SceneGeometry, Slice, TransferFunction, VolumeView, WireBoxes,
};

/// Complete description of one picture, except the blocks.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Volume to draw.
    pub view: Arc<VolumeView>,
    /// Camera.
    pub camera: Camera,
    /// Mapping of values to color and opacity.
    pub transfer: TransferFunction,
    /// Another array that gives the colors of everything except lines; opacity is still that of `transfer`.
    pub color_by: Option<ColorByArray>,
    /// Arrays over that of the scene, in the order in which they are drawn.
    pub layers: Vec<ArrayLayer>,
    /// Surfaces in the volume, at most [`Isosurface::MAX_COUNT`]; labels have none.
    pub surfaces: Vec<Isosurface>,
    /// Planes in the volume, at most [`Slice::MAX_COUNT`].
    pub slices: Vec<Slice>,
    /// Boxes drawn as lines in the volume, at most [`MAX_BOXES`], dimmed by what is in front of them.
    /// Pictures of extreme values have no depth; lines are in front of them.
    pub wires: WireBoxes,
    /// Surfaces, lines, points and texts beside the volume. Pictures of extreme values have no depth; geometry is in
    /// front of them.
    pub geometry: SceneGeometry,
    /// Drawing mode of everything besides surfaces and slices.
    pub mode: Mode,
    /// Whether to light what the transfer function shows, by the gradient of the values; surfaces are always
    /// lit, labels and extreme values never.
    pub is_lit: bool,
    /// Components of the light.
    pub light: LightShares,
    /// Pixels.
    pub size: ImageSize,
    /// Clipping box: only its inside is drawn (world space).
    pub clip: Option<Bounds>,
    /// Trade-off between speed and exactness.
    pub quality: Quality,
    /// Number of the finest level to draw, as in [`crate::Demand::wanted`]; finer blocks that are still
    /// resident are ignored, so that a picture does not depend on earlier pictures.
    pub finest_level: u8,
}

impl Scene {
    /// # Errors
    /// `Invalid`, with a message that names the cause.
    pub fn check(&self) -> Result<()> {
        self.size.check_sides()?;
        self.camera.check()?;
        self.transfer.check()?;
        Isosurface::check_of(&self.surfaces, &self.view)?;
        Slice::check_of(&self.slices, &self.view)?;
        mode::check_mode(self.mode, &self.view)?;
        if let Some(color_by) = &self.color_by {
            color_by.check_of(&self.view, self.mode)?;
        }
        ArrayLayer::check_all(&self.layers)?;
        self.geometry.check()?;
        if self.wires.len() > MAX_BOXES {
            let found = self.wires.len();
            return Err(Error::too_large(format!(
                "expected at most {MAX_BOXES} boxes as lines, found {found}"
            )));
        }
        if !(self.quality.step >= Self::MIN_STEP && self.quality.step <= Self::MAX_STEP) {
            return Err(Error::invalid(format!(
                "expected a step between {} and {} voxels, found {}",
                Self::MIN_STEP,
                Self::MAX_STEP,
                self.quality.step
            )));
        }
        if let Some(clip) = &self.clip
            && !clip.min.iter().chain(&clip.max).all(|v| v.is_finite())
        {
            return Err(Error::invalid(format!("expected a finite clipping box, found {clip:?}")));
        }
        self.view.level_index_of(self.finest_level).map(|_| ())
    }

    /// Returns the part of the volume that the picture shows.
    #[must_use]
    pub fn portion(&self) -> Portion {
        Portion::of(self.clip, self.mode, &self.surfaces, self.slices.clone())
    }

    /// Returns the scene of a caster that looks up the values of the array that gives this scene its colors.
    pub(crate) fn color_scene(&self, color_by: &ColorByArray) -> Self {
        Self {
            view: Arc::clone(&color_by.view),
            transfer: color_by.transfer(),
            color_by: None,
            layers: Vec::new(),
            surfaces: Vec::new(),
            // Blocks out of sight are not fetched and do not count as missing, so they do not count here
            // either.
            slices: self.portion().slices.unwrap_or_default(),
            wires: WireBoxes::default(),
            geometry: SceneGeometry::default(),
            mode: Mode::Surfaces,
            is_lit: false,
            light: self.light,
            finest_level: color_by.finest_level,
            camera: self.camera,
            size: self.size,
            clip: self.clip,
            quality: Quality::STILL,
        }
    }

    const MIN_STEP: f64 = 1.0 / 16.0;
    const MAX_STEP: f64 = 16.0;
}
