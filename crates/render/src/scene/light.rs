//! Lighting: a headlight at the eye, so that surfaces facing the viewer are bright on both sides.
//!
//! Blinn's model for a headlight: light, line of sight and the half-way vector coincide, so that everything
//! depends on one cosine: that between the line of sight and the gradient of the decoded values in world
//! space. Ambient occlusion and a depth cue dim the light by place: see `cpu/samples/dimming`. Components are those of the sRGB-encoded, premultiplied colors that
//! everything here is composited in.

use glam::{DAffine3, DMat3, DVec3, Vec4};

use crate::simd::{LANES, Simd};

/// Ambient light.
const AMBIENT: f32 = 0.3;
/// Diffuse light of the headlight. With [`AMBIENT`] it leaves a color that faces the eye unchanged.
const DIFFUSE: f32 = 1.0 - AMBIENT;
/// Specular light of the headlight: white.
const SPECULAR: f32 = 0.25;
/// Slope from which on the light of a volume follows its gradients, as a share of the transfer function's values over one
/// voxel of the finest level drawn. Weaker gradients are mostly noise; their directions would make even regions speckled.
pub(crate) const SOFT_SLOPE: f64 = 1.0 / 24.0;
/// Squared cosine with which parts of a volume without a gradient are lit: nearly as bright as what faces the eye, without
/// its highlight.
pub(crate) const SOFT_SQUARED: f32 = 0.8;
/// Number of times the squared cosine is squared again for the specular part: an exponent of 32.
pub(crate) const SQUARINGS: u32 = 4;

/// Components of the light of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LightShares {
    /// Ambient light.
    pub ambient: f32,
    /// Diffuse light of the headlight.
    pub diffuse: f32,
    /// Specular light of the headlight: white.
    pub specular: f32,
    /// Share of the light of the volume that its surroundings keep off where they are opaque on all sides.
    pub occlusion: f32,
    /// Share of the light that is taken away at the farthest point of what is drawn; none at the nearest.
    pub depth_cue: f32,
}

impl LightShares {
    /// Creates light of a strength from 0, which leaves colors unchanged, to 1, the default.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "colors are f32")]
    pub fn of_strength(strength: f64) -> Self {
        let strength = strength.clamp(0.0, 1.0) as f32;
        Self {
            ambient: AMBIENT + (1.0 - strength) * DIFFUSE,
            diffuse: strength * DIFFUSE,
            specular: strength * SPECULAR,
            occlusion: 0.0,
            depth_cue: 0.0,
        }
    }

    /// Creates light of a strength, with occlusion and a depth cue of that strength, all from 0 to 1.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "colors are f32")]
    pub fn new(strength: f64, occlusion: f64, depth_cue: f64) -> Self {
        let part = |share: f64| (strength * share).clamp(0.0, 1.0) as f32;
        Self { occlusion: part(occlusion), depth_cue: part(depth_cue), ..Self::of_strength(strength) }
    }

    /// True for light that leaves all colors unchanged.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        *self == Self { ambient: 1.0, diffuse: 0.0, specular: 0.0, occlusion: 0.0, depth_cue: 0.0 }
    }

    /// Returns this light times a factor.
    pub(crate) fn dimmed(&self, factor: f32) -> Self {
        let Self { ambient, diffuse, specular, .. } = *self;
        Self { ambient: factor * ambient, diffuse: factor * diffuse, specular: factor * specular, ..*self }
    }

    /// Returns a premultiplied color under light at a cosine.
    pub(crate) fn lit(&self, color: Vec4, cosine: f32) -> Vec4 {
        let mirrored = (0..=SQUARINGS).fold(cosine, |power, _| power * power) * self.specular * color.w;
        let scattered = self.ambient + self.diffuse * cosine;
        (color * scattered + mirrored).min(Vec4::splat(color.w)).with_w(color.w)
    }

    /// Returns the light of sixteen rays at these cosines.
    #[inline(always)]
    pub(crate) fn at<S: Simd>(&self, simd: S, cosines: &[f32; LANES]) -> Light<S> {
        let cosine = simd.load(cosines);
        let mut mirrored = cosine;
        let mut squarings = 0;
        while squarings <= SQUARINGS {
            mirrored = simd.mul(mirrored, mirrored);
            squarings += 1;
        }
        Light {
            scattered: simd.mul_add(cosine, simd.splat(self.diffuse), simd.splat(self.ambient)),
            mirrored: simd.mul(mirrored, simd.splat(self.specular)),
        }
    }
}

impl Default for LightShares {
    fn default() -> Self {
        Self::of_strength(1.0)
    }
}

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

    /// Returns the cosine between a gradient in volume space and a ray's direction in world space (of unit
    /// length), without its sign; 1 without a gradient.
    #[inline(always)]
    pub(crate) fn cosine(&self, gradient_in_volume: DVec3, direction: DVec3) -> f64 {
        // Scaled first to avoid overflow: only the direction matters.
        let scaled = gradient_in_volume / gradient_in_volume.abs().max_element();
        let normal = self.gradient_in_world * scaled;
        let cosine = normal.dot(direction).abs() / normal.dot(normal).sqrt();
        // NaN without a gradient.
        if cosine <= 1.0 { cosine } else { 1.0 }
    }
}

/// A [`Lamp`] for samples of sixteen rays, and the factors of their slopes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    /// The square of a volume gradient's length in world space, up to a factor: of xx, yy, zz, xy, xz, yz.
    pub(crate) squares: [f32; 6],
    /// Length of a step of the rays, in units that make that factor 1.
    pub(crate) step_length: f64,
    /// Addition to the squared length of a gradient, and to the squared part along the ray.
    pub(crate) soft: [f32; 2],
    /// The factor that these squares are without: gradients in world space are this much longer.
    unit: f64,
    pub(crate) shares: LightShares,
}

/// Returns the light of sixteen ray segments: the factor of the colors, and the addition for each part of
/// opacity.
#[derive(Clone, Copy)]
pub(crate) struct Light<S: Simd> {
    pub(crate) scattered: S::F,
    pub(crate) mirrored: S::F,
}

impl<S: Simd> Light<S> {
    /// Returns this light times a factor, if there is one.
    #[inline(always)]
    pub(crate) fn dimmed(self, simd: S, factor: Option<S::F>) -> Self {
        match factor {
            Some(factor) => Self {
                scattered: simd.mul(self.scattered, factor),
                mirrored: simd.mul(self.mirrored, factor),
            },
            None => self,
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "colors are f32")]
impl Metric {
    /// Creates the metric for rays with steps of `step_world`, through voxels of `voxel_world` of the finest level drawn;
    /// `range` is the number of places in the table.
    pub(crate) fn new(
        volume_from_world: &DAffine3,
        [step_world, voxel_world]: [f64; 2],
        range: usize,
        shares: LightShares,
    ) -> Self {
        let all = volume_from_world.matrix3;
        // Independent of the unit of length, squares stay far from the limits of `f32`.
        let largest = all.to_cols_array().into_iter().fold(0.0, |a: f64, b| a.max(b.abs()));
        let map = all * largest.recip();
        let squares = map * map.transpose();
        let [x, y, z] = [squares.x_axis, squares.y_axis, squares.z_axis];
        let squares = [x.x, y.y, z.z, 2.0 * x.y, 2.0 * x.z, 2.0 * y.z].map(|v| v as f32);
        // Gradients are sums of those at both ends of an interval.
        let slope = 2.0 * SOFT_SLOPE * range as f64 / (voxel_world * largest);
        let soft = (slope * slope) as f32;
        Self {
            squares,
            step_length: step_world * largest,
            soft: [soft, soft * SOFT_SQUARED],
            unit: largest,
            shares,
        }
    }

    /// Cosine that [`Metric::light`] lights one gradient in volume space with, seen along a direction in world space (of unit
    /// length).
    pub(crate) fn cosine(&self, lamp: &Lamp, gradient_in_volume: DVec3, direction: DVec3) -> f64 {
        let normal = lamp.gradient_in_world * gradient_in_volume / self.unit;
        let along = normal.dot(direction);
        let [soft, soft_along] = self.soft.map(f64::from);
        let squared = (along * along + soft_along) / (normal.length_squared() + soft);
        // With an infinite gradient, as if it faced the eye.
        if squared <= 1.0 { squared.sqrt() } else { 1.0 }
    }

    /// Directions in volume space of rays with these steps, such that [`Metric::light`] understands them.
    pub(crate) fn direction(&self, step: f64) -> f32 {
        (step / self.step_length) as f32
    }

    /// Light on gradients in volume space, seen along `direction`: softer where gradients are weak.
    #[inline(always)]
    pub(crate) fn light<S: Simd>(&self, simd: S, gradient: &[S::F; 3], direction: &[S::F; 3]) -> Light<S> {
        let [x, y, z] = *gradient;
        let along = simd.mul_add(x, direction[0], simd.mul_add(y, direction[1], simd.mul(z, direction[2])));
        let part = |a: S::F, b: S::F, number: usize| (simd.mul(a, b), simd.splat(self.squares[number]));
        let mut square = simd.splat(self.soft[0]);
        let parts =
            [part(x, x, 0), part(y, y, 1), part(z, z, 2), part(x, y, 3), part(x, z, 4), part(y, z, 5)];
        let mut number = 0;
        while number < parts.len() {
            square = simd.mul_add(parts[number].0, parts[number].1, square);
            number += 1;
        }
        let one = simd.splat(1.0);
        let squared = simd.div(simd.mul_add(along, along, simd.splat(self.soft[1])), square);
        // With an infinite gradient, as if it faced the eye.
        let squared = simd.select(simd.eq(squared, squared), simd.min(squared, one), one);
        let cosine = simd.sqrt(squared);
        let mut mirrored = squared;
        let mut squarings = 0;
        while squarings < SQUARINGS {
            mirrored = simd.mul(mirrored, mirrored);
            squarings += 1;
        }
        let LightShares { ambient, diffuse, specular, .. } = self.shares;
        Light {
            scattered: simd.mul_add(cosine, simd.splat(diffuse), simd.splat(ambient)),
            mirrored: simd.mul(mirrored, simd.splat(specular)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_faces_the_eye_keeps_its_color_and_what_does_not_is_darker() {
        let color = Vec4::new(0.1, 0.2, 0.4, 0.5);
        let lit = |color, cosine| LightShares::default().lit(color, cosine);
        assert!(lit(color, 1.0).cmpge(color).all() && lit(color, 1.0).max_element() <= 0.5);
        assert_eq!(lit(color, 0.0), (color * AMBIENT).with_w(0.5));
        let steps: Vec<f32> = (0..=20u8).map(|i| lit(color, f32::from(i) / 20.0).x).collect();
        assert!(steps.is_sorted());
    }

    #[test]
    fn the_strength_of_light_leads_from_flat_colors_to_the_default() {
        let color = Vec4::new(0.1, 0.2, 0.4, 0.5);
        assert_eq!(LightShares::of_strength(1.0), LightShares::default());
        assert!(LightShares::of_strength(0.0).is_flat() && !LightShares::of_strength(0.01).is_flat());
        for cosine in [0.0, 0.3, 0.9, 1.0] {
            let [flat, half, full] = [0.0, 0.5, 1.0].map(|s| LightShares::of_strength(s).lit(color, cosine));
            assert_eq!(flat, color);
            let (low, high) = (flat.min(full), flat.max(full));
            assert!(half.cmpge(low).all() && half.cmple(high).all(), "{half} between {low} and {high}");
        }
        assert_eq!(LightShares::of_strength(7.0), LightShares::default());
    }

    #[test]
    fn cosines_are_those_of_world_space() {
        // Voxels three times as deep as wide: a gradient along the diagonal of index space leans toward x.
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
