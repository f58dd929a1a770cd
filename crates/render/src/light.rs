//! Light: one lamp at the eye, so that what faces the viewer is bright whichever side of a surface it is.
//!
//! Blinn's model for a headlight: light, line of sight and the half-way vector are one, so that all depends on one
//! cosine: that between the line of sight and the gradient of the decoded values in world space. Nothing casts a
//! shadow. Components are those of the sRGB-encoded, premultiplied colours that everything here is composited in.

use glam::{DAffine3, DMat3, DVec3, Vec4};

/// Light that comes from everywhere.
pub(crate) const AMBIENT: f32 = 0.3;
/// Light of the lamp, scattered evenly. With [`AMBIENT`] it leaves a colour that faces the eye as it is.
pub(crate) const DIFFUSE: f32 = 1.0 - AMBIENT;
/// Light of the lamp, mirrored: white.
pub(crate) const SPECULAR: f32 = 0.25;
/// How often the squared cosine is squared again for the mirrored part: an exponent of 32.
pub(crate) const SQUARINGS: u32 = 4;

/// Turns gradients in volume space into cosines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lamp {
    /// World gradient = this times the volume gradient.
    gradient_in_world: DMat3,
}

impl Lamp {
    pub(crate) fn new(volume_from_world: &DAffine3) -> Self {
        Self { gradient_in_world: volume_from_world.matrix3.transpose() }
    }

    /// The cosine between a gradient in volume space and a ray's direction in world space (of unit length), without
    /// its sign; 1 where there is no gradient.
    pub(crate) fn cosine(&self, gradient_in_volume: DVec3, direction: DVec3) -> f64 {
        // Of any size without overflow: only the direction matters.
        let scaled = gradient_in_volume / gradient_in_volume.abs().max_element();
        let normal = (self.gradient_in_world * scaled).try_normalize();
        normal.map_or(1.0, |normal| normal.dot(direction).abs().min(1.0))
    }
}

/// A premultiplied colour as it looks under light at a cosine.
pub(crate) fn lit(colour: Vec4, cosine: f32) -> Vec4 {
    let mirrored = (0..=SQUARINGS).fold(cosine, |power, _| power * power) * SPECULAR * colour.w;
    let scattered = AMBIENT + DIFFUSE * cosine;
    (colour * scattered + mirrored).min(Vec4::splat(colour.w)).with_w(colour.w)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_faces_the_eye_keeps_its_colour_and_what_does_not_is_darker() {
        let colour = Vec4::new(0.1, 0.2, 0.4, 0.5);
        assert!(lit(colour, 1.0).cmpge(colour).all() && lit(colour, 1.0).max_element() <= 0.5);
        assert_eq!(lit(colour, 0.0), (colour * AMBIENT).with_w(0.5));
        let steps: Vec<f32> = (0..=20u8).map(|i| lit(colour, f32::from(i) / 20.0).x).collect();
        assert!(steps.is_sorted());
    }

    #[test]
    fn cosines_are_those_of_world_space() {
        // Voxels three times as deep as wide: a gradient along the diagonal of index space leans towards x.
        let world_from_volume = DAffine3::from_scale(DVec3::new(1.0, 1.0, 3.0));
        let lamp = Lamp::new(&world_from_volume.inverse());
        let expected = DVec3::new(1.0, 0.0, 1.0 / 3.0).normalize();
        for size in [1.0, 1e-300, -1e300] {
            let found = lamp.cosine(DVec3::new(1.0, 0.0, 1.0) * size, DVec3::Z);
            assert!((found - expected.z).abs() < 1e-12, "{found}");
        }
        assert!((lamp.cosine(DVec3::ZERO, DVec3::Z) - 1.0).abs() < 1e-12);
    }
}
