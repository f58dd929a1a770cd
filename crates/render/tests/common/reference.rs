//! The slow caster in double precision, of synthetic volumes.

use corridor_render::reference::{self, ReferenceVoxels};
use corridor_render::{Image, Scene};
use glam::DVec3;

use super::Synthetic;

impl ReferenceVoxels for Synthetic {
    fn shape(&self) -> [u64; 3] {
        self.shape
    }

    fn value(&self, voxel: [u64; 3]) -> f64 {
        self.kept(0, DVec3::from_array(voxel.map(|v| v as f64)))
    }
}

#[allow(clippy::allow_attributes, dead_code, reason = "each test binary uses its part")]
pub(crate) fn cast(synthetic: &Synthetic, scene: &Scene) -> Image {
    reference::cast(scene, synthetic)
}

/// In the colors of another one.
#[allow(clippy::allow_attributes, dead_code, reason = "each test binary uses its part")]
pub(crate) fn cast_colored_by(synthetic: &Synthetic, colors: &Synthetic, scene: &Scene) -> Image {
    reference::cast_colored_by(scene, synthetic, Some(colors))
}

/// Under layers.
#[allow(clippy::allow_attributes, dead_code, reason = "each test binary uses its part")]
pub(crate) fn cast_layered(synthetic: &Synthetic, layers: &[&Synthetic], scene: &Scene) -> Image {
    let layers: Vec<&dyn ReferenceVoxels> = layers.iter().map(|&layer| layer as _).collect();
    reference::cast_layered(scene, synthetic, &layers)
}
