//! The caster: one picture from a scene and the blocks that are resident.
//!
//! The image is cut into tiles, drawn by as many threads as the surrounding rayon pool has, and those into packets
//! of 4 x 4 rays (`packet.rs`). A ray goes front to back, block by block; each stretch is drawn from the finest
//! resident block that holds it. Samples lie at multiples of one step from the eye, whatever is skipped and
//! whichever thread draws, so the same request over the same blocks gives the same bits on the same instruction
//! set.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use array::{BlockKey, Error, Result};
use glam::{DVec3, Vec4};
use rayon::prelude::*;

use crate::blocks::Blocks;
use crate::blocks::pool::Snapshot;
use crate::blocks::voxel::Voxel;
use crate::cpu::caster::Caster;
use crate::cpu::cut::{Cut, colours_of};
use crate::cpu::extreme::{NOTHING, Project};
use crate::cpu::packet_size::{PACKET_PIXELS, PACKET_SIDE};
use crate::cpu::work::LEAPT;
use crate::device::{Prepared, Relative, Voxels, relative_bytes};
use crate::scene::tint::{Dye, Dyer};
use crate::scene::truth::{Shown, Truth};
use crate::simd::{Instructions, Job, LANES, Simd};
use crate::slabs::{Deposit, Layers, Sheets, SlabRequest, Slabs};
use crate::{Drawn, Image, Part, Piece, Rect, Scene, Tally};

/// Stops a picture that nobody waits for any more; looked at once per tile. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets it, for good.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True once set.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A picture and what it really shows.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Pixels.
    pub image: Image,
    /// Levels that the pixels show, and how complete they are.
    pub truth: Truth,
}

/// Draws a scene from `blocks`, which belong to the scene's view. Takes no lock: meanwhile the pool they come
/// from may change.
///
/// # Errors
/// `Invalid` for an impossible scene or blocks of another view; `Cancelled` when the flag was set.
pub fn cast(scene: &Scene, blocks: &Snapshot, cancel: &Cancel) -> Result<Frame> {
    cast_with(scene, blocks, cancel, Instructions::best())
}

/// [`cast`] with certain instructions, to compare them: pictures differ by rounding only, at most 2 of 255 in a
/// component. Those that the machine has not got are replaced by scalar ones.
///
/// # Errors
/// As [`cast`].
pub fn cast_with(
    scene: &Scene,
    blocks: &Snapshot,
    cancel: &Cancel,
    instructions: Instructions,
) -> Result<Frame> {
    scene.check()?;
    let drawn = blocks.cast(scene, &Part::whole(scene), cancel, instructions)?;
    let truth = drawn.tally.truth(scene)?;
    Ok(Frame { image: Image { size: scene.size, rgba: drawn.piece.finished(scene).rgba }, truth })
}

/// Draws a part of a scene from `blocks`, which belong to the scene's view and are those that the share
/// [needs](crate::Share::needs).
///
/// # Errors
/// As [`cast`].
pub fn cast_part(scene: &Scene, part: &Part, blocks: &Snapshot, cancel: &Cancel) -> Result<Drawn> {
    scene.check()?;
    if !scene.wires.is_empty() {
        return Err(Error::unsupported("expected a scene without boxes as lines for one of several casters"));
    }
    let rect = part.rect.intersection(&Rect::whole(scene.size));
    blocks.cast(scene, &Part { rect, ..*part }, cancel, Instructions::best())
}

/// Blocks of any type, as a picture sees them.
pub(crate) trait Castable: Send + Sync {
    fn cast(
        &self,
        scene: &Scene,
        part: &Part,
        dye: Option<&dyn Dye>,
        cancel: &Cancel,
        instructions: Instructions,
    ) -> Result<Drawn>;
    /// See [`crate::cast_slabs`]; the scene's camera is that of the slabs.
    fn cast_slabs(
        &self,
        scene: &Scene,
        request: (&SlabRequest, Option<Vec<f64>>),
        dye: Option<&dyn Dye>,
        cancel: &Cancel,
        instructions: Instructions,
    ) -> Result<(Slabs, Tally)>;
    /// Creates the [`Dye`] that looks up colors in these blocks, for a part of a picture; the scene is
    /// [`Tint::scene`](crate::Tint::scene).
    fn dye<'a>(
        &'a self,
        scene: &'a Scene,
        part: &Part,
        instructions: Instructions,
    ) -> Result<Box<dyn Dye + 'a>>;
    /// Whether something is to be seen at places in volume space, as far as is known here.
    fn seen_at(&self, scene: &Scene, places: &[DVec3]) -> Vec<bool>;
    fn has_blocks_at(&self, rank: usize) -> bool;
    /// See [`crate::device::prepare`]; `at_hand` is this.
    fn prepare(&self, scene: &Scene, at_hand: &Snapshot) -> Result<Prepared>;
    /// See [`Prepared::voxels`].
    fn voxels(&self, slot: u32, relative: Option<Relative>) -> Voxels<'_>;
}

impl<T: Voxel> Castable for Blocks<T> {
    fn cast(
        &self,
        scene: &Scene,
        part: &Part,
        dye: Option<&dyn Dye>,
        cancel: &Cancel,
        instructions: Instructions,
    ) -> Result<Drawn> {
        Caster::ready(scene, part, self, dye, instructions)?.draw(cancel)
    }

    fn cast_slabs(
        &self,
        scene: &Scene,
        (request, borders): (&SlabRequest, Option<Vec<f64>>),
        dye: Option<&dyn Dye>,
        cancel: &Cancel,
        instructions: Instructions,
    ) -> Result<(Slabs, Tally)> {
        let caster = Caster::ready(scene, &Part::whole(scene), self, dye, instructions)?;
        caster.draw_slabs(request, borders, cancel)
    }

    fn dye<'a>(
        &'a self,
        scene: &'a Scene,
        part: &Part,
        instructions: Instructions,
    ) -> Result<Box<dyn Dye + 'a>> {
        Ok(Box::new(Dyer::new(scene, part, self, instructions)?))
    }

    fn seen_at(&self, scene: &Scene, places: &[DVec3]) -> Vec<bool> {
        Self::seen_at(self, scene, places)
    }

    fn has_blocks_at(&self, rank: usize) -> bool {
        self.count_at(rank) > 0
    }

    fn prepare(&self, scene: &Scene, at_hand: &Snapshot) -> Result<Prepared> {
        Ok(Caster::new(scene, &Part::whole(scene), self, None, Instructions::best())?.prepared(at_hand))
    }

    fn voxels(&self, slot: u32, relative: Option<Relative>) -> Voxels<'_> {
        let data = &self.resident(slot).data;
        match relative {
            Some(relative) => Voxels::Owned(relative_bytes(data, relative, &self.missing)),
            None => Voxels::Borrowed(bytemuck::cast_slice(data)),
        }
    }
}

impl<T: Voxel> Caster<'_, T> {
    fn draw(&self, cancel: &Cancel) -> Result<Drawn> {
        let piece = Mutex::new(Piece::transparent(self.part.rect, self.extreme.is_some()));
        let draw = |tile: &Rect| {
            if cancel.is_cancelled() {
                return Err(Error::cancelled());
            }
            let drawn = self.draw_tile(tile);
            let mut piece = piece.lock().unwrap_or_else(PoisonError::into_inner);
            let width = tile.width as usize;
            for (number, row) in (tile.top..tile.top + tile.height).enumerate() {
                let (start, own) = (piece.rect.index(tile.left, row), number * width..(number + 1) * width);
                for (to, pixel) in piece.rgba[start..].iter_mut().zip(&drawn.pixels[own.clone()]) {
                    *to = pixel.to_array();
                }
                if self.extreme.is_some() {
                    piece.heights[start..start + width].copy_from_slice(&drawn.heights[own]);
                }
            }
            Ok(drawn.shown)
        };
        let both = |mut shown: Shown, other: Shown| {
            shown.add(&other);
            Ok(shown)
        };
        let shown = self.tiles().par_iter().map(draw).try_reduce(Shown::default, both)?;
        let shown = self.said(shown);
        let piece = piece.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Drawn { piece, tally: Tally(shown), work: self.work() })
    }

    /// The work that each block made, in samples drawn.
    #[expect(clippy::cast_precision_loss, reason = "counts of samples stay below 2^53")]
    fn work(&self) -> Vec<(BlockKey, f64)> {
        let one = |(slot, worked): (usize, &AtomicU64)| {
            let block = self.blocks.all_slots()[slot].as_ref()?;
            let worked = worked.load(Ordering::Relaxed);
            let key = || self.scene.view.key(block.rank, block.at);
            (worked > 0).then(|| (key(), worked as f64 / LEAPT as f64))
        };
        self.worked.iter().enumerate().filter_map(one).collect()
    }

    pub(crate) fn draw_tile(&self, tile: &Rect) -> DrawnTile {
        self.instructions.run(TileJob { caster: self, tile })
    }
}

/// One tile, to be drawn with whatever instructions.
struct TileJob<'a, 'b, T> {
    caster: &'a Caster<'b, T>,
    tile: &'a Rect,
}

/// Result of drawing one tile.
pub(crate) struct DrawnTile {
    pixels: Vec<Vec4>,
    /// Best height per pixel; empty except in pictures of extreme values.
    heights: Vec<f32>,
    /// Pictures of the slabs; `None` unless slabs are cast.
    pub(crate) sheets: Option<Sheets>,
    pub(crate) shown: Shown,
}

impl<T: Voxel> Job for TileJob<'_, '_, T> {
    type Output = DrawnTile;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let Self { caster, tile } = self;
        let shadings = caster.shadings();
        let mut shown = Shown::default();
        let mut pixels = vec![Vec4::ZERO; tile.pixels()];
        let mut heights = vec![NOTHING; if caster.extreme.is_some() { tile.pixels() } else { 0 }];
        let mut sheets = caster.cuts.as_ref().map(|cuts| Sheets::new(*tile, cuts.count()));
        let mut layers = caster.cuts.as_ref().map(Layers::new);
        for top in (0..tile.height).step_by(PACKET_SIDE as usize) {
            for left in (0..tile.width).step_by(PACKET_SIDE as usize) {
                let [width, height] =
                    [PACKET_SIDE.min(tile.width - left), PACKET_SIDE.min(tile.height - top)];
                let corner = [tile.left + left, tile.top + top];
                let sieve = caster.sieve.as_ref().filter(|_| !caster.is_crossed(corner));
                let depths = sieve.map(|sieve| sieve.depths(corner));
                if depths == Some(None) {
                    continue;
                }
                let mut rays = caster.rays(corner, [width, height]);
                if let Some(depths) = depths.flatten() {
                    shown.count(Some(caster.wanted_rank), false, rays.trim(depths));
                }
                let strands = caster.strands(corner, &rays);
                if let Some(layers) = &mut layers {
                    layers.begin(&rays);
                }
                let mut best = [NOTHING; LANES];
                let colours = match (&caster.extreme, &caster.slices) {
                    (None, Some(slices)) if slices.are_alone => {
                        let (rays, shading, shown) = (&rays, &shadings[0], &mut shown);
                        let sheets = simd.call(Cut { caster, slices, rays, shading, shown });
                        strands.map_or_else(|| colours_of(&sheets), |strands| strands.around(&sheets))
                    }
                    (None, _) => {
                        caster.trace(simd, &mut rays, &shadings, &mut shown, layers.as_mut(), strands)
                    }
                    (Some(extreme), _) => {
                        let (shading, shown) = (&shadings[0], &mut shown);
                        let project = Project { caster, extreme, rays, shading, shown, strands };
                        let (colours, found) = simd.call(project);
                        best = found;
                        colours
                    }
                };
                if let (Some(layers), Some(sheets)) = (&mut layers, &mut sheets) {
                    let (corner, size) = ([left, top], [width, height]);
                    simd.call(Deposit { layers, sheets, corner, size });
                    continue;
                }
                for ([column, row], (colour, height_met)) in
                    PACKET_PIXELS.into_iter().zip(colours.into_iter().zip(best))
                {
                    if column >= width || row >= height {
                        continue;
                    }
                    let pixel = ((top + row) * tile.width + left + column) as usize;
                    pixels[pixel] = colour;
                    if caster.extreme.is_some() {
                        heights[pixel] = height_met;
                    }
                }
            }
        }
        DrawnTile { pixels, heights, sheets, shown }
    }
}
