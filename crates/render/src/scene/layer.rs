//! Array drawn over that of a scene, with its own voxels, colors and opacity.

use std::sync::Arc;

use array::{Error, Result};
use glam::{DAffine3, DVec3};
use view::MAX_LAYERS;

use crate::{ObliquePlane, OpacityPoint, Quality, Scene, Slice, TransferFunction, VolumeView, WireBoxes};

/// Array over that of a scene. Its voxels lie at their own positions in the same world space, so it may have
/// any resolution and orientation; it is drawn inside the volume of the scene's own array.
///
/// In the volume it is composited along the rays with what the scene's transfer function shows, unlit. Where
/// the scene's array is a surface (on slices, and as an image of one layer), it covers that with the opacity
/// of its transfer function relative to the highest one.
#[derive(Clone, Debug)]
pub struct ArrayLayer {
    /// The array, seen as a volume.
    pub view: Arc<VolumeView>,
    /// Mapping of its values to color and opacity.
    pub transfer: TransferFunction,
    /// Factor of its opacity, 0 to 1.
    pub opacity: f64,
    /// True if on surfaces only the outermost voxels of each label are drawn.
    pub is_outlined: bool,
    /// Number of the finest level to use, as in [`Demand::wanted`](crate::Demand::wanted).
    pub finest_level: u8,
}

impl ArrayLayer {
    /// Checks the layers of a scene.
    ///
    /// # Errors
    /// `Invalid`, with a message that names the cause.
    pub(crate) fn check_all(layers: &[Self]) -> Result<()> {
        if layers.len() > MAX_LAYERS {
            let found = layers.len();
            return Err(Error::invalid(format!(
                "expected at most {MAX_LAYERS} arrays as layers, found {found}"
            )));
        }
        layers.iter().try_for_each(|layer| {
            layer.transfer.check()?;
            layer.view.level_index_of(layer.finest_level)?;
            if (0.0..=1.0).contains(&layer.opacity) {
                return Ok(());
            }
            Err(Error::invalid(format!("expected a layer's opacity from 0 to 1, found {}", layer.opacity)))
        })
    }

    /// Returns the transfer function with its opacities multiplied by a factor.
    fn scaled(&self, factor: f64) -> TransferFunction {
        let scaled = |point: &OpacityPoint| OpacityPoint {
            opacity: (point.opacity * factor).clamp(0.0, 1.0),
            ..*point
        };
        TransferFunction {
            opacity: self.transfer.opacity.iter().map(scaled).collect(),
            ..self.transfer.clone()
        }
    }

    /// Returns the transfer function in the volume.
    pub(crate) fn in_volume(&self) -> TransferFunction {
        self.scaled(self.opacity)
    }

    /// Returns the transfer function on surfaces, whose highest opacity is that of the layer.
    pub(crate) fn on_surfaces(&self) -> TransferFunction {
        let highest = self.transfer.opacity.iter().map(|point| point.opacity).fold(0.0, f64::max);
        self.scaled(if highest > 0.0 { self.opacity / highest } else { 0.0 })
    }

    /// Returns the map from volume positions of another view to those of the layer.
    pub(crate) fn own_from(&self, view: &VolumeView) -> DAffine3 {
        self.view.world_from_volume.inverse() * view.world_from_volume
    }
}

impl Scene {
    /// Returns the scenes of casters that look up the values of the layers.
    pub(crate) fn layer_scenes(&self) -> Vec<Self> {
        self.layers.iter().map(|layer| self.layer_scene(layer)).collect()
    }

    fn layer_scene(&self, layer: &ArrayLayer) -> Self {
        // Blocks out of sight are not fetched and do not count as missing, so they do not count here either.
        let slices = self.portion().slices.unwrap_or_default();
        Self {
            view: Arc::clone(&layer.view),
            transfer: layer.in_volume(),
            color_by: None,
            layers: Vec::new(),
            surfaces: Vec::new(),
            slices: slices.iter().filter_map(|slice| slice.in_view(&self.view, &layer.view)).collect(),
            wires: WireBoxes::default(),
            geometry: crate::SceneGeometry::default(),
            mode: view::Mode::Surfaces,
            is_lit: false,
            light: self.light,
            finest_level: layer.finest_level,
            camera: self.camera,
            size: self.size,
            clip: self.clip,
            quality: Quality::STILL,
        }
    }
}

impl Slice {
    /// Returns the same plane in the volume of another view; `None` if it has no direction there.
    #[must_use]
    pub fn in_view(&self, own: &VolumeView, other: &VolumeView) -> Option<Self> {
        let (normal, offset) = self.plane();
        // Normals are mapped by the transpose of the inverse.
        let across = own.world_from_volume.matrix3.inverse().transpose() * normal;
        let point: DVec3 = own.world_from_volume.transform_point3(normal * offset);
        let oblique = ObliquePlane::in_volume(other, across.into(), point.into())?;
        Some(Self { oblique: Some(oblique), ..*self })
    }
}
