//! Geometry in pictures: surfaces, lines, points and texts beside the volume, at their depths.
//!
//! [`fragments_of_geometry`] projects all layers and scans them into samples, four in each pixel, each with the depth of the
//! nearest thing there; the samples of a pixel become fragments, which the caster blends with its rays. So
//! geometry hides and is hidden like isosurfaces, without a second caster. Of a translucent layer the nearest surface in each
//! sample is drawn, not those behind it.
//!
//! In pictures of one plane ([`GeometryCut`]), surfaces are drawn where they cross the plane, and other things where
//! they lie near it.

mod cut;
mod layer;
mod project;
mod resolve;
mod samples;
mod scan;
mod shape;
#[cfg(test)]
mod tests;
mod texts;

use std::ops::Range;

use glam::DVec3;
use rayon::prelude::*;

use crate::cpu::fragments::Fragment;
use crate::geometry::project::{BandBins, ProjectedLayer};
use crate::geometry::samples::BandSamples;
use crate::geometry::texts::fragments_of_texts;
use crate::scene::camera::Lens;
use crate::{Bounds, ImageSize, LightShares, Scene};

pub use layer::{GeometryCut, GeometryFaces, GeometryLayer, MAX_GEOMETRY_LAYERS, SceneGeometry};
pub use shape::GeometryShape;

/// Rows of the image that are scanned together.
const BAND_ROWS: u32 = 16;
/// Share of the distance to the target; geometry nearer to the eye of a perspective camera than this is not drawn.
const NEAR_SHARE: f64 = 1e-3;

/// Geometry of a picture, with all that its fragments depend on.
pub(crate) struct GeometryPicture<'a> {
    pub(crate) geometry: &'a SceneGeometry,
    pub(crate) size: ImageSize,
    pub(crate) clip: Option<Bounds>,
    pub(crate) light: LightShares,
    /// Least depth that is drawn by a perspective camera, world units.
    pub(crate) near: f64,
}

/// Returns the fragments of the geometry of a scene in some rows of the picture, and a few of others; sorted by pixel and depth
/// except for texts.
pub(crate) fn fragments_of_geometry(scene: &Scene, lens: &Lens, rows: &Range<u32>) -> Vec<Fragment> {
    let picture = GeometryPicture {
        geometry: &scene.geometry,
        size: scene.size,
        clip: scene.clip,
        light: scene.light,
        near: NEAR_SHARE * DVec3::from(scene.camera.eye).distance(scene.camera.target.into()),
    };
    fragments_of(&picture, lens, rows)
}

fn fragments_of(picture: &GeometryPicture<'_>, lens: &Lens, rows: &Range<u32>) -> Vec<Fragment> {
    if picture.geometry.is_empty() {
        return Vec::new();
    }
    let shown = picture.geometry.layers.iter().filter(|layer| layer.opacity > 0.0);
    let layers: Vec<ProjectedLayer<'_>> =
        shown.map(|layer| ProjectedLayer::new(layer, picture, lens)).collect();
    let bins: Vec<BandBins> = layers.iter().map(|layer| layer.bins(picture.size)).collect();
    let bands: Vec<Vec<Fragment>> = (rows.start / BAND_ROWS
        ..rows.end.min(picture.size.height).div_ceil(BAND_ROWS))
        .into_par_iter()
        .map(|band| fragments_of_band(picture, lens, &layers, &bins, band))
        .collect();
    let mut fragments = bands.concat();
    for layer in &layers {
        fragments.append(&mut fragments_of_texts(layer, picture));
    }
    fragments
}

/// Returns the fragments of one band of rows.
fn fragments_of_band(
    picture: &GeometryPicture<'_>,
    lens: &Lens,
    layers: &[ProjectedLayer<'_>],
    bins: &[BandBins],
    band: u32,
) -> Vec<Fragment> {
    let top = band * BAND_ROWS;
    let rows = BAND_ROWS.min(picture.size.height - top);
    // Opaque layers hide one another; translucent ones have samples of their own.
    let mut opaque: Option<BandSamples> = None;
    let mut all = Vec::new();
    for (layer, bins) in layers.iter().zip(bins).filter(|(_, bins)| bins.are_any(band)) {
        let empty = || BandSamples::new(picture.size.width, top, rows);
        if layer.layer.opacity < 1.0 {
            let mut own = empty();
            scan::scan(layer, bins, band, picture, lens, &mut own);
            all.push((own, layer.layer.opacity));
        } else {
            scan::scan(layer, bins, band, picture, lens, opaque.get_or_insert_with(empty));
        }
    }
    all.extend(opaque.map(|opaque| (opaque, 1.0)));
    resolve::resolve(&all, lens, picture.size)
}
