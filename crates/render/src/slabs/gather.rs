//! Casting of slabs: all rays of their camera, tile by tile; the color and opacity of each slab are assembled
//! and cropped.

use array::{Error, Result};
use glam::DVec3;
use rayon::prelude::*;

use super::axis::normal_of;
use super::borders::{SMALLER, THIN, seen_in, spread};
use super::{Cutting, Slab, SlabRequest, Slabs, check_scene};
use crate::blocks::snapshot::each_blocks;
use crate::blocks::voxel::Voxel;
use crate::cpu::caster::Caster;
use crate::cpu::color_by::ColorLookup;
use crate::cpu::context::CastContext;
use crate::cpu::layers::prepare::LayerInput;
use crate::cpu::slab_layers::{SlabBorders, SlabTile};
use crate::scene::fidelity::ShownSamples;
use crate::{
    Cancel, Fidelity, ImagePart, ImageSize, Instructions, Quality, Rect, SampleTally, Scene, Snapshot,
};

/// Factor by which samples are farther apart if texels are larger than pixels.
const COARSER: f64 = 1.25;
/// Thickness of the thinnest slabs, steps of a ray, for content without depth.
const THINNEST: f64 = 1.0 / 64.0;

/// Casts slabs of a scene from `blocks`, which belong to the scene's view, with a report of what they show.
/// The scene's camera is ignored; the request's is used.
///
/// # Errors
/// The errors of [`cast`](crate::cast); `Invalid` for an invalid request; `Unsupported` for a scene with
/// isosurfaces, slices or extreme values, which cannot be cut into slabs.
pub fn cast_slabs(
    scene: &Scene,
    request: &SlabRequest,
    blocks: &Snapshot,
    cancel: &Cancel,
) -> Result<(Slabs, Fidelity)> {
    cast_with_instructions(scene, request, blocks, cancel, Instructions::best())
}

fn cast_with_instructions(
    scene: &Scene,
    request: &SlabRequest,
    blocks: &Snapshot,
    cancel: &Cancel,
    instructions: Instructions,
) -> Result<(Slabs, Fidelity)> {
    check_scene(scene)?;
    request.check(scene.size)?;
    let (camera, size) = request.seen_from(scene.size);
    let step = scene.quality.step * if request.reduction > 1 { COARSER } else { 1.0 };
    let scene = Scene { camera, size, quality: Quality { step, ..scene.quality }, ..scene.clone() };
    scene.check()?;
    scene.size.check()?;
    let smaller = |side: u32| side.div_ceil(SMALLER);
    let size = ImageSize { width: smaller(size.width), height: smaller(size.height) };
    let (small, thin) = (Scene { size, ..scene.clone() }, SlabRequest { count: THIN, behind: 0, ..*request });
    let (thin, _) = blocks.cast_slabs(&small, &thin, None, cancel, instructions)?;
    let borders = spread(&thin.borders, &seen_in(&thin), request.count);
    let (slabs, tally) = blocks.cast_slabs(&scene, request, Some(borders), cancel, instructions)?;
    Ok((slabs, tally.fidelity(&scene)?))
}

impl Snapshot {
    /// Casts slabs; the scene's camera is that of the slabs.
    fn cast_slabs(
        &self,
        scene: &Scene,
        request: &SlabRequest,
        borders: Option<Vec<f64>>,
        cancel: &Cancel,
        instructions: Instructions,
    ) -> Result<(Slabs, SampleTally)> {
        let part = ImagePart::whole(scene);
        let layer_scenes = scene.layer_scenes();
        let layers = LayerInput { scenes: &layer_scenes, blocks: &self.layers };
        let cast = |color_by: Option<&dyn ColorLookup>| {
            each_blocks!(&self.blocks, blocks => {
                Caster::new(scene, &part, blocks, color_by, layers, instructions)?.draw_slabs(request, borders, cancel)
            })
        };
        let ((slabs, mut tally), lacking) = self.with_colors(scene, &part, instructions, cast)?;
        tally.0.lack(lacking);
        Ok((slabs, tally))
    }
}

impl<T: Voxel> Caster<'_, T> {
    /// Draws all tiles, slab by slab, between the given borders or even ones. The scene's camera is that of
    /// the slabs.
    fn draw_slabs(
        mut self,
        request: &SlabRequest,
        borders: Option<Vec<f64>>,
        cancel: &Cancel,
    ) -> Result<(Slabs, SampleTally)> {
        let (context, cutting) = (&self.context, request.cutting);
        let normal = context.normal(cutting);
        let even = || context.even_borders(context.extent(normal, cutting), request.count);
        let borders = borders.unwrap_or_else(even);
        let opaque = 1.0 - context.scene.quality.termination;
        let world_from_volume = &context.scene.view.world_from_volume;
        self.cut_at(SlabBorders::new(world_from_volume, normal, borders.clone(), request.behind, opaque));
        let draw = |tile: &Rect| {
            if cancel.is_cancelled() {
                return Err(Error::cancelled());
            }
            let drawn = self.draw_tile(tile);
            Ok((drawn.slab_tile, drawn.shown))
        };
        let drawn: Vec<_> = self.tiles().par_iter().map(draw).collect::<Result<_>>()?;
        let mut shown = ShownSamples::default();
        drawn.iter().for_each(|(_, of_tile)| shown.add(of_tile));
        let tiles: Vec<SlabTile> = drawn.into_iter().filter_map(|(tile, _)| tile).collect();
        let slabs = (0..request.count as usize).into_par_iter().map(|slab| assembled(&tiles, slab)).collect();
        let slabs = Slabs {
            cutting,
            camera: self.context.scene.camera,
            size: self.context.scene.size,
            guard: request.guard,
            normal: normal.to_array(),
            borders,
            slabs,
        };
        Ok((slabs, SampleTally(self.reported(shown))))
    }
}

impl<T: Voxel> CastContext<'_, T> {
    /// Normal of the slabs, away from the camera.
    fn normal(&self, cutting: Cutting) -> DVec3 {
        match cutting {
            Cutting::Planes => self.lens.forward,
            Cutting::Axis(axis) => {
                let normal = normal_of(&self.scene.view, axis);
                if normal.dot(self.lens.forward) < 0.0 { -normal } else { normal }
            }
        }
    }

    /// Returns the borders of slabs of equal thickness.
    fn even_borders(&self, [nearest, farthest]: [f64; 2], count: u32) -> Vec<f64> {
        let thickness = ((farthest - nearest) / f64::from(count)).max(self.step_world * THINNEST);
        (0..=count).map(|border| nearest + f64::from(border) * thickness).collect()
    }

    /// Returns the range along `normal`, in world positions, in which something is visible. For planes
    /// parallel to the image, nothing lies behind the eye.
    fn extent(&self, normal: DVec3, cutting: Cutting) -> [f64; 2] {
        let view = &self.scene.view;
        let slope = view.world_from_volume.matrix3.transpose() * normal;
        let whole = || {
            let (low, high) = view.volume_box();
            let (middle, reach) = (slope.dot((low + high) / 2.0), slope.abs().dot((high - low) / 2.0));
            [middle - reach, middle + reach]
        };
        let shift = normal.dot(view.world_from_volume.translation);
        let [near, far] = self.range_seen(slope).unwrap_or_else(whole).map(|at| at + shift);
        if cutting == Cutting::Planes && self.lens.perspective {
            let eye = normal.dot(self.lens.eye);
            return [near.max(eye), far.max(eye)];
        }
        [near, far]
    }
}

/// Assembles one slab's picture from all tiles.
fn assembled(tiles: &[SlabTile], slab: usize) -> Slab {
    let shown = tiles.iter().map(|tile| shown_in(&tile.rect, &tile.rgba[slab]));
    let rect = shown.fold(Rect::default(), |all, tile| all.union(&tile));
    let mut rgba = vec![0; rect.pixels() * 4];
    for tile in tiles.iter().filter(|tile| !tile.rgba[slab].is_empty()) {
        let common = rect.intersection(&tile.rect);
        let bytes = common.width as usize * 4;
        for row in common.top..common.top + common.height {
            let (from, to) = (4 * tile.rect.index(common.left, row), 4 * rect.index(common.left, row));
            rgba[to..to + bytes].copy_from_slice(&tile.rgba[slab][from..from + bytes]);
        }
    }
    Slab { rect, rgba }
}

/// Returns the smallest rectangle outside of which a picture has only zeros.
#[expect(clippy::cast_possible_truncation, reason = "sides of a tile")]
fn shown_in(rect: &Rect, rgba: &[u8]) -> Rect {
    let mut shown = Rect::default();
    for (row, pixels) in rgba.chunks_exact(rect.width.max(1) as usize * 4).enumerate() {
        let Some(first) = pixels.iter().position(|&byte| byte != 0) else { continue };
        let last = pixels.iter().rposition(|&byte| byte != 0).unwrap_or(first);
        let (first, last) = (first as u32 / 4, last as u32 / 4);
        let (left, top) = (rect.left + first, rect.top + row as u32);
        shown = shown.union(&Rect { left, top, width: last - first + 1, height: 1 });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slab_is_cropped_to_what_its_tiles_show() {
        let tile = |left: u32, dots: &[(u32, u32)]| {
            let rect = Rect { left, top: 4, width: 4, height: 3 };
            let mut rgba = vec![0; if dots.is_empty() { 0 } else { 48 }];
            dots.iter().for_each(|&(column, row)| rgba[((row * 4 + column) * 4) as usize + 3] = 9);
            SlabTile { rect, rgba: vec![Vec::new(), rgba] }
        };
        let tiles = [tile(0, &[(3, 1)]), tile(4, &[(1, 0), (0, 1)]), tile(8, &[])];
        assert_eq!(assembled(&tiles, 0), Slab::default());
        let slab = assembled(&tiles, 1);
        assert_eq!(slab.rect, Rect { left: 3, top: 4, width: 3, height: 2 });
        let alphas: Vec<u8> = slab.rgba.chunks(4).map(|texel| texel[3]).collect();
        assert_eq!(alphas, [0, 0, 9, 9, 9, 0]);
    }
}
