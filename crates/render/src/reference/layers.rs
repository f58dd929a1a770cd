//! Layers of the slow caster.

use glam::{DVec3, DVec4};

use super::{ReferenceCaster, ReferenceVoxels, trilinear};
use crate::{ArrayLayer, TransferFunction, signed_label_color};

impl<V: ReferenceVoxels> ReferenceCaster<'_, V> {
    /// Returns the color of all layers over a length of a ray around a volume position.
    pub(super) fn layers_in_volume(&self, place: DVec3, length_world: f64) -> DVec4 {
        let mut color = DVec4::ZERO;
        for (layer, &voxels) in self.scene.layers.iter().zip(self.layers).rev() {
            let thickness = length_world / layer.view.spacing_world(0);
            let own = self.layer_color((layer, voxels), &layer.in_volume(), place, thickness);
            color += own * (1.0 - color.w);
        }
        color
    }

    /// Returns the color of a plane at a volume position under all layers.
    pub(super) fn under_layers(&self, mut color: DVec4, place: DVec3) -> DVec4 {
        for (layer, &voxels) in self.scene.layers.iter().zip(self.layers) {
            let own = self.layer_color((layer, voxels), &layer.on_surfaces(), place, 1.0);
            color = own + color * (1.0 - own.w);
        }
        color
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "inside of the volume; labels"
    )]
    fn layer_color(
        &self,
        (layer, voxels): (&ArrayLayer, &dyn ReferenceVoxels),
        transfer: &TransferFunction,
        place: DVec3,
        thickness: f64,
    ) -> DVec4 {
        let own = layer.own_from(&self.scene.view).transform_point3(place);
        let [z, y, x] = voxels.shape().map(|n| n as f64);
        let sides = DVec3::new(x, y, z);
        if own.cmplt(DVec3::splat(-0.5)).any() || own.cmpge(sides - 0.5).any() {
            return DVec4::ZERO;
        }
        let (value, [r, g, b]) = if layer.view.meaning.is_continuous() {
            let value = trilinear(voxels, own);
            (value, transfer.color_at(value))
        } else {
            let nearest = (own + 0.5).floor().clamp(DVec3::ZERO, sides - 1.0);
            let value = voxels.value(nearest.to_array().map(|v| v as u64));
            (value, signed_label_color(value as i64).map(|part| f32::from(part) / 255.0))
        };
        let opacity = 1.0 - (1.0 - transfer.opacity_at(value)).powf(thickness);
        DVec4::new(r.into(), g.into(), b.into(), 1.0) * opacity
    }
}
