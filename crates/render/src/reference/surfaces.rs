//! Isosurfaces of the slow caster: crossings by brute force, normals by small differences, light in world space.

use glam::{DVec3, DVec4};

use super::{ReferenceCaster, ReferenceRay, ReferenceVoxels};
use crate::{Isosurface, LightShares};

/// Crossing of a surface: position along the ray, value, and surface.
pub(super) struct ReferenceHit {
    pub(super) at: (f64, f64),
    surface: Isosurface,
}

/// Parts of a step in which a value is crossed at most once.
const PARTS: u32 = 64;

/// Distance of surfaces below their isovalue, as a share of it.
const HAIR: f64 = 1e-10;

/// Returns all crossings from `start` on, before `end`, in order.
pub(super) fn hits<V: ReferenceVoxels>(
    ray: &ReferenceRay<'_, '_, V>,
    start: f64,
    end: f64,
) -> Vec<ReferenceHit> {
    let wanted = &ray.caster.scene.surfaces;
    let part = |i: u32| start + (end - start) * f64::from(i) / f64::from(PARTS);
    let values: Vec<f64> =
        if wanted.is_empty() { Vec::new() } else { (0..=PARTS).map(|i| ray.value_at(part(i))).collect() };
    let mut hits = Vec::new();
    for surface in wanted {
        // Shifted slightly below the isovalue: rounding must not decide on which side voxels with the
        // isovalue itself lie.
        let least = surface.value - HAIR * surface.value.abs();
        let side = |v: f64| v >= least;
        for (i, pair) in (0..).zip(values.windows(2)) {
            if side(pair[0]) == side(pair[1]) {
                continue;
            }
            let (mut low, mut high) = (part(i), part(i + 1));
            for _ in 0..50 {
                let middle = f64::midpoint(low, high);
                *(if side(ray.value_at(middle)) == side(pair[0]) { &mut low } else { &mut high }) = middle;
            }
            hits.push(ReferenceHit { at: (low, surface.value), surface: *surface });
        }
    }
    hits.sort_by(|a, b| a.at.0.total_cmp(&b.at.0));
    hits
}

impl ReferenceHit {
    /// Returns the color of its surface, premultiplied.
    pub(super) fn color(&self) -> DVec4 {
        let [r, g, b] = self.surface.color.map(f64::from);
        DVec4::new(r, g, b, 1.0) * f64::from(self.surface.opacity)
    }
}

/// Returns a premultiplied color under light at a position in voxels of level 0, seen along `step` (world); `soft` is
/// added to the squared length of the gradient and to its squared part along the ray, and the light is `dimmed` by a factor.
pub(super) fn lit<V: ReferenceVoxels>(
    caster: &ReferenceCaster<'_, V>,
    color: DVec4,
    p: DVec3,
    step: DVec3,
    [soft, soft_along]: [f64; 2],
    dimmed: f64,
) -> DVec4 {
    const NEAR: f64 = 1e-6;
    let cell = p.floor();
    let inside = p.clamp(cell + 2.0 * NEAR, cell + 1.0 - 2.0 * NEAR);
    let slope = |axis: DVec3| {
        (caster.trilinear(inside + axis * NEAR) - caster.trilinear(inside - axis * NEAR)) / (2.0 * NEAR)
    };
    let gradient = DVec3::new(slope(DVec3::X), slope(DVec3::Y), slope(DVec3::Z));
    let normal = caster.scene.view.world_from_volume.matrix3.inverse().transpose() * gradient;
    let along = normal.dot(step.normalize());
    let squared = (along * along + soft_along) / (normal.length_squared() + soft);
    let cosine = if squared.is_finite() { squared.sqrt() } else { 1.0 };
    let LightShares { ambient, diffuse, specular, .. } = caster.scene.light;
    let [ambient, diffuse, specular] = [ambient, diffuse, specular].map(f64::from);
    let scattered = color.truncate() * (ambient + diffuse * cosine) + specular * cosine.powi(32) * color.w;
    (scattered * dimmed).min(DVec3::splat(color.w)).extend(color.w)
}
