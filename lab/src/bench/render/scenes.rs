//! Scenes of the benchmark: transfer functions, directions, sizes, for our caster and for peers.

use std::sync::Arc;

use array::{Error, Result};
use render::{
    Bounds, Camera, ImageSize, LightShares, OpacityPoint, Quality, Scene, TransferFunction, VolumeView,
    color_map_table,
};
use serde_json::{Value, json};
use view::{Mode, Projection};

/// A transfer function of values from 0 to 255.
#[derive(Clone, Copy)]
pub(super) struct Function {
    pub(super) name: &'static str,
    opacity: &'static [(f64, f64)],
    pub(super) kind: SceneKind,
}

/// Amount of work for a renderer that skips what is transparent or hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SceneKind {
    /// Nearly everything is transparent.
    Sparse,
    /// Most rays pass through much of the volume.
    Usual,
    /// Rays end near the first visible surface.
    Saturating,
}

/// From nearly nothing to everything, faint and opaque.
pub(super) const FUNCTIONS: [Function; 5] = [
    Function { name: "sparse", opacity: &[(236.0, 0.0), (244.0, 0.5)], kind: SceneKind::Sparse },
    Function { name: "typical", opacity: &[(90.0, 0.0), (255.0, 0.06)], kind: SceneKind::Usual },
    Function { name: "dense", opacity: &[(140.0, 0.0), (200.0, 0.5)], kind: SceneKind::Usual },
    Function { name: "fog", opacity: &[(0.0, 0.01), (255.0, 0.03)], kind: SceneKind::Usual },
    Function { name: "saturating", opacity: &[(120.0, 0.0), (135.0, 1.0)], kind: SceneKind::Saturating },
];

/// Lines of sight: oblique, and nearly along the fastest and the slowest axis.
pub(super) const DIRECTIONS: [(&str, [f64; 3]); 3] =
    [("oblique", Camera::DEFAULT_DIRECTION), ("along x", [1.0, 0.02, 0.03]), ("along z", [0.05, 0.1, -1.0])];

/// Factor by which the camera is nearer than where the whole volume is surely seen.
const ZOOM: f64 = 1.25;

pub(super) const SIZES: [ImageSize; 2] =
    [ImageSize { width: 1024, height: 800 }, ImageSize { width: 1920, height: 1080 }];

/// One sample per voxel. Rays end where VTK's fixed-point mapper ends them.
pub(super) const QUALITY: Quality = Quality { termination: 1.0 / 128.0, step: 1.0, skip_empty: true };

impl Function {
    pub(super) fn transfer(&self) -> TransferFunction {
        let opacity = self.opacity.iter().map(|&(value, opacity)| OpacityPoint { value, opacity }).collect();
        TransferFunction { opacity, ..TransferFunction::ramp(0.0, 255.0, 1.0) }
    }
}

/// Scene of a view. Only the box between the outermost voxel centers is drawn, as VTK does.
pub(super) fn scene(
    view: &Arc<VolumeView>,
    function: &Function,
    direction: [f64; 3],
    size: ImageSize,
) -> Scene {
    let Bounds { min, max } = view.bounds();
    let clip = Bounds { min: min.map(|v| v + 0.5), max: max.map(|v| v - 0.5) };
    Scene {
        camera: Camera::framing(&view.bounds(), direction).zoom(ZOOM),
        transfer: function.transfer(),
        surfaces: Vec::new(),
        slices: Vec::new(),
        wires: Default::default(),
        geometry: Default::default(),
        mode: Mode::Composite,
        color_by: None,
        layers: Vec::new(),
        is_lit: false,
        light: LightShares::default(),
        size,
        clip: Some(clip),
        quality: QUALITY,
        finest_level: 0,
        view: Arc::clone(view),
    }
}

/// Description of the same picture for peers.
///
/// # Errors
/// `Internal` for parallel rays.
pub(super) fn description(scene: &Scene) -> Result<Value> {
    let Projection::Perspective { fov_y_rad } = scene.camera.projection else {
        return Err(Error::internal("peers draw in perspective"));
    };
    let opacity: Vec<[f64; 2]> = scene.transfer.opacity.iter().map(|p| [p.value, p.opacity]).collect();
    Ok(json!({
        "size": [scene.size.width, scene.size.height],
        "eye": scene.camera.eye,
        "target": scene.camera.target,
        "up": scene.camera.up,
        "fov_y_degrees": fov_y_rad.to_degrees(),
        "range": scene.transfer.range,
        "colors": color_map_table(&scene.transfer.color_map).map(|table| table.to_vec()),
        "opacity": opacity,
    }))
}
