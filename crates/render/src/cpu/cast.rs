//! Caster: draws one picture from a scene and the resident blocks.
//!
//! The image is cut into tiles, drawn by the threads of the surrounding rayon pool, and those into packets of
//! 4 x 4 rays (`packet/mod.rs`). A ray goes front to back, block by block; each segment is drawn from the
//! finest resident block that holds it. Samples lie at multiples of one step from the eye, independent of
//! skipping and of threads, so the same request over the same blocks gives the same bits on the same
//! instruction set.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use array::{BlockKey, Error, Result};
use glam::Vec4;
use rayon::prelude::*;

use crate::blocks::snapshot::{Snapshot, each_blocks};
use crate::blocks::voxel::Voxel;
use crate::cpu::caster::{Caster, TILE};
use crate::cpu::color_by::ColorLookup;
use crate::cpu::context::LEAPT;
use crate::cpu::extreme::ProjectExtremes;
use crate::cpu::extreme::height::NOTHING;
use crate::cpu::layers::prepare::LayerInput;
use crate::cpu::packet::SolidsAlone;
use crate::cpu::packet::size::{PACKET_PIXELS, PACKET_SIDE};
use crate::cpu::slab_layers::{DepositLayers, SlabLayers, SlabTile};
use crate::cpu::slices::{IntersectSlices, colors_of};
use crate::scene::fidelity::{Fidelity, ShownSamples};
use crate::simd::{Instructions, LANES, Simd, SimdJob};
use crate::{Cancel, DrawnPart, Image, ImagePart, ImageSize, PartialImage, Rect, SampleTally, Scene};

/// Picture and its fidelity.
#[derive(Clone, Debug)]
pub struct RenderedImage {
    /// Pixels.
    pub image: Image,
    /// Levels that the pixels show, and their completeness.
    pub fidelity: Fidelity,
}

/// Draws a scene from `blocks`, which belong to the scene's view. Takes no lock: the pool that they come from
/// may change meanwhile.
///
/// # Errors
/// `Invalid` for an invalid scene or blocks of another view; `Cancelled` if the flag was set.
pub fn cast(scene: &Scene, blocks: &Snapshot, cancel: &Cancel) -> Result<RenderedImage> {
    cast_with(scene, blocks, cancel, Instructions::best())
}

/// Draws as [`cast`] does, with the given instructions, to compare them: pictures differ by rounding only, at
/// most 2 of 255 in a component. Instructions that the machine lacks are replaced by scalar ones.
///
/// # Errors
/// The errors of [`cast`].
pub fn cast_with(
    scene: &Scene,
    blocks: &Snapshot,
    cancel: &Cancel,
    instructions: Instructions,
) -> Result<RenderedImage> {
    scene.check()?;
    scene.size.check()?;
    let drawn = blocks.cast(scene, &ImagePart::whole(scene), cancel, instructions)?;
    let fidelity = drawn.tally.fidelity(scene)?;
    Ok(RenderedImage { image: Image { size: scene.size, rgba: drawn.image.finished(scene).rgba }, fidelity })
}

/// Draws a part of a scene from `blocks`, which belong to the scene's view and are those that the sub-volume
/// [needs](crate::SubVolume::needs).
///
/// # Errors
/// The errors of [`cast`].
pub fn cast_part(scene: &Scene, part: &ImagePart, blocks: &Snapshot, cancel: &Cancel) -> Result<DrawnPart> {
    scene.check()?;
    scene.size.check()?;
    if !scene.wires.is_empty() || !scene.geometry.is_empty() {
        return Err(Error::unsupported(
            "expected a scene without geometry or boxes as lines for one of several casters",
        ));
    }
    if !scene.layers.is_empty() {
        return Err(Error::unsupported(
            "several ranks cannot draw layers: hide them, or draw with one process, without `--ranks` or `mpirun`",
        ));
    }
    let rect = part.rect.intersection(&Rect::whole(scene.size));
    blocks.cast(scene, &ImagePart { rect, ..*part }, cancel, Instructions::best())
}

/// Rows of a picture, with the counts for its fidelity.
#[derive(Clone, Debug)]
pub struct DrawnRows {
    /// Pixels of all columns of these rows.
    pub image: Image,
    /// Counts, which are added to those of the other rows.
    pub tally: SampleTally,
}

/// Number of rows by which [`cast_rows`] must begin for pictures that do not depend on the division into rows.
pub const ROW_UNIT: u32 = TILE;

/// Draws `rows` of a scene as [`cast`] draws all of them, for pictures that are too large to be held as a whole. The
/// pixels are the same, bit for bit, if each part begins at a multiple of [`ROW_UNIT`].
///
/// # Errors
/// The errors of [`cast`]; `Invalid` for rows that are not in the picture, or too many of them.
pub fn cast_rows(scene: &Scene, rows: Range<u32>, blocks: &Snapshot, cancel: &Cancel) -> Result<DrawnRows> {
    scene.check()?;
    let size = ImageSize { width: scene.size.width, height: rows.end.saturating_sub(rows.start) };
    size.check()?;
    if rows.end > scene.size.height {
        return Err(Error::invalid(format!(
            "expected rows of a picture with {} rows, found {rows:?}",
            scene.size.height
        )));
    }
    let rect = Rect { left: 0, top: rows.start, width: size.width, height: size.height };
    let part = ImagePart { rect, ..ImagePart::whole(scene) };
    let drawn = blocks.cast(scene, &part, cancel, Instructions::best())?;
    let image = Image { size, rgba: drawn.image.finished(scene).rgba };
    Ok(DrawnRows { image, tally: drawn.tally })
}

impl Snapshot {
    /// Draws a part of a scene; samples without a value yet are counted as missing.
    fn cast(
        &self,
        scene: &Scene,
        part: &ImagePart,
        cancel: &Cancel,
        instructions: Instructions,
    ) -> Result<DrawnPart> {
        let layer_scenes = scene.layer_scenes();
        let layers = LayerInput { scenes: &layer_scenes, blocks: &self.layers };
        let cast = |color_by: Option<&dyn ColorLookup>| {
            each_blocks!(&self.blocks, blocks => {
                Caster::new(scene, part, blocks, color_by, layers, instructions)?.draw(cancel)
            })
        };
        let (mut drawn, lacking) = self.with_colors(scene, part, instructions, cast)?;
        drawn.tally.0.lack(lacking);
        Ok(drawn)
    }
}

impl<T: Voxel> Caster<'_, T> {
    fn draw(&self, cancel: &Cancel) -> Result<DrawnPart> {
        let image = Mutex::new(PartialImage::transparent(self.context.part.rect, self.extreme.is_some()));
        let draw = |tile: &Rect| {
            if cancel.is_cancelled() {
                return Err(Error::cancelled());
            }
            let drawn = self.draw_tile(tile);
            let mut image = image.lock().unwrap_or_else(PoisonError::into_inner);
            let width = tile.width as usize;
            for (number, row) in (tile.top..tile.top + tile.height).enumerate() {
                let (start, own) = (image.rect.index(tile.left, row), number * width..(number + 1) * width);
                for (to, pixel) in image.rgba[start..].iter_mut().zip(&drawn.pixels[own.clone()]) {
                    *to = pixel.to_array();
                }
                if self.extreme.is_some() {
                    image.heights[start..start + width].copy_from_slice(&drawn.heights[own]);
                }
            }
            Ok(drawn.shown)
        };
        let both = |mut shown: ShownSamples, other: ShownSamples| {
            shown.add(&other);
            Ok(shown)
        };
        let shown = self.tiles().par_iter().map(draw).try_reduce(ShownSamples::default, both)?;
        let mut shown = self.reported(shown);
        shown.lack(self.lacking_in_layers());
        let image = image.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(DrawnPart { image, tally: SampleTally(shown), work: self.work() })
    }

    /// Returns the work of each block, in samples drawn.
    #[expect(clippy::cast_precision_loss, reason = "counts of samples stay below 2^53")]
    fn work(&self) -> Vec<(BlockKey, f64)> {
        let one = |(slot, worked): (usize, &AtomicU64)| {
            let block = self.context.blocks.all_slots()[slot].as_ref()?;
            let worked = worked.load(Ordering::Relaxed);
            let key = || self.context.scene.view.key(block.level_index, block.at);
            (worked > 0).then(|| (key(), worked as f64 / LEAPT as f64))
        };
        self.context.worked.iter().enumerate().filter_map(one).collect()
    }

    pub(crate) fn draw_tile(&self, tile: &Rect) -> DrawnTile {
        self.context.instructions.run(TileJob { caster: self, tile })
    }
}

/// Job that draws one tile, for any instructions.
struct TileJob<'a, 'b, T> {
    caster: &'a Caster<'b, T>,
    tile: &'a Rect,
}

/// Result of drawing one tile.
pub(crate) struct DrawnTile {
    pixels: Vec<Vec4>,
    /// Best height per pixel; empty except in pictures of extreme values.
    heights: Vec<f32>,
    /// Images of the slabs; `None` unless slabs are cast.
    pub(crate) slab_tile: Option<SlabTile>,
    pub(crate) shown: ShownSamples,
}

impl<T: Voxel> SimdJob for TileJob<'_, '_, T> {
    type Output = DrawnTile;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let Self { caster, tile } = self;
        let context = &caster.context;
        let shadings = context.shadings();
        let mut shown = ShownSamples::default();
        let mut pixels = vec![Vec4::ZERO; tile.pixels()];
        let mut heights = vec![NOTHING; if caster.extreme.is_some() { tile.pixels() } else { 0 }];
        let mut slab_tile = caster.slab_borders.as_ref().map(|borders| SlabTile::new(*tile, borders.count()));
        let mut layers = caster.slab_borders.as_ref().map(SlabLayers::new);
        for top in (0..tile.height).step_by(PACKET_SIDE as usize) {
            for left in (0..tile.width).step_by(PACKET_SIDE as usize) {
                let [width, height] =
                    [PACKET_SIDE.min(tile.width - left), PACKET_SIDE.min(tile.height - top)];
                let corner = [tile.left + left, tile.top + top];
                let fragments = caster.fragments.as_ref().filter(|fragments| fragments.touch(corner));
                let depth_bounds = caster.depth_bounds.as_ref().filter(|_| fragments.is_none());
                let depths = depth_bounds.map(|depth_bounds| depth_bounds.depths(corner));
                if depths == Some(None) {
                    continue;
                }
                let mut rays = context.rays(corner, [width, height]);
                if let Some(depths) = depths.flatten() {
                    shown.count(Some(context.wanted_level_index), false, rays.trim(depths));
                }
                let lines = fragments.map(|fragments| fragments.of_packet(corner, &rays));
                if let Some(layers) = &mut layers {
                    layers.begin(&rays);
                }
                let mut best = [NOTHING; LANES];
                let colors = match (&caster.extreme, &caster.slices) {
                    (None, Some(slices)) if slices.are_alone => {
                        let (rays, shading, shown) = (&rays, &shadings[0], &mut shown);
                        let slice_hits = simd.call(IntersectSlices { context, slices, rays, shading, shown });
                        lines.map_or_else(|| colors_of(&slice_hits), |lines| lines.around(&slice_hits))
                    }
                    (None, _) => {
                        let mut colors =
                            caster.trace(simd, &mut rays, &shadings, &mut shown, layers.as_mut(), lines);
                        context.cover_image(&rays, &mut colors);
                        colors
                    }
                    (Some(extreme), _) => {
                        let (shading, shown) = (&shadings[0], &mut shown);
                        let mut colors = [Vec4::ZERO; LANES];
                        if context.shows_volume {
                            // Layers have a depth, so they are in front of what has none.
                            let mut front = context.rays(corner, [width, height]);
                            let passed = &mut ShownSamples::default();
                            colors = caster.trace(simd, &mut front, &shadings, passed, None, lines);
                            rays.end_where(&colors.map(|color| color.w), shading.opaque);
                        } else if caster.has_solids() || lines.is_some() {
                            let shown = &mut *shown;
                            colors = simd.call(SolidsAlone { caster, rays: &rays, shading, shown, lines });
                            rays.end_where(&colors.map(|color| color.w), shading.opaque);
                        }
                        context.cover_image(&rays, &mut colors);
                        best = simd.call(ProjectExtremes { context, extreme, rays, shading, shown });
                        colors
                    }
                };
                if let (Some(layers), Some(tile)) = (&mut layers, &mut slab_tile) {
                    let (corner, size) = ([left, top], [width, height]);
                    simd.call(DepositLayers { layers, tile, corner, size });
                    continue;
                }
                for ([column, row], (color, height_met)) in
                    PACKET_PIXELS.into_iter().zip(colors.into_iter().zip(best))
                {
                    if column >= width || row >= height {
                        continue;
                    }
                    let pixel = ((top + row) * tile.width + left + column) as usize;
                    pixels[pixel] = color;
                    if caster.extreme.is_some() {
                        heights[pixel] = height_met;
                    }
                }
            }
        }
        DrawnTile { pixels, heights, slab_tile, shown }
    }
}
