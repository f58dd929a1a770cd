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
use glam::{DAffine3, DVec3, Vec4};
use rayon::prelude::*;

use crate::anchor::Spacing;
use crate::blocks::Blocks;
use crate::camera::Lens;
use crate::cut::{Cut, Slices, colours_of};
use crate::device::{Prepared, Relative, Voxels, relative_bytes};
use crate::extreme::{Extreme, NOTHING, Project};
use crate::fade::Fade;
use crate::frustum::Sight;
use crate::hunt::Surfaces;
use crate::light::{Lamp, Metric};
use crate::palette::Palette;
use crate::pool::Snapshot;
use crate::rays::{PLACES, SIDE};
use crate::resident::Resident;
use crate::shading::Shading;
use crate::sides::Sides;
use crate::sieve::Sieve;
use crate::simd::{Instructions, Job, LANES, Simd};
use crate::skip::Plan;
use crate::slabs::{Cuts, Deposit, Layers, Sheets, SlabRequest, Slabs};
use crate::table::{Recipe, Tables};
use crate::tint::{Dye, Dyer};
use crate::truth::{Shown, Truth};
use crate::voxel::Voxel;
use crate::wires::Wires;
use crate::work::LEAPT;
use crate::{Drawn, Image, Mode, Part, Piece, Portion, Rect, Scene, Share, Tally};

/// Pixels along a side of a tile.
const TILE: u32 = 32;

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

/// Everything that the rays of one picture share.
pub(crate) struct Caster<'a, T> {
    pub(crate) scene: &'a Scene,
    pub(crate) part: Part,
    /// Others draw what lies outside the part's share.
    pub(crate) is_shared: bool,
    pub(crate) blocks: &'a Blocks<T>,
    pub(crate) lens: Lens,
    pub(crate) volume_from_world: DAffine3,
    /// Ranks that are drawn and have blocks (or known gaps), finest first.
    pub(crate) ranks: Vec<usize>,
    pub(crate) wanted_rank: usize,
    /// The finest that any caster of the picture has a block of.
    pub(crate) finest_rank: usize,
    pub(crate) step_world: f64,
    /// Each ray has samples of its own: see `anchor.rs`.
    pub(crate) is_thin: bool,
    /// Per rank the logarithm of how many steps one sample stands for: coarser blocks need fewer samples.
    pub(crate) strides_log2: Vec<usize>,
    /// Tables for samples that stand for 1, 2, 4, ... steps.
    pub(crate) tables: Arc<Tables>,
    /// Visible cells of each block, by slot; `None` for empty slots.
    pub(crate) plans: Vec<Option<Arc<Plan>>>,
    /// Axes along which each block begins beside a coarser one, by slot.
    pub(crate) fades: Vec<Fade>,
    pub(crate) surfaces: Surfaces,
    /// On which side of the isovalues each block lies, by slot, `None` for empty ones; empty without isovalues, and where
    /// another device draws.
    pub(crate) sides: Vec<Option<Arc<Sides>>>,
    /// The transfer function shows something.
    pub(crate) shows_volume: bool,
    pub(crate) slices: Option<Slices>,
    /// Boxes as lines, where any are in the picture.
    pub(crate) wires: Option<Wires>,
    /// Data for a picture of extreme values; `None` for other pictures.
    pub(crate) extreme: Option<Extreme>,
    /// How samples are lit, if they are.
    pub(crate) metric: Option<Metric>,
    /// Samples that rays passed in each block, and [`LEAPT`] more for each that they drew, by slot; empty where nobody asks.
    pub(crate) worked: Vec<AtomicU64>,
    /// Depths between which rays can see something; `None` where they are not known.
    sieve: Option<Sieve>,
    /// Slab borders, at which rays hand over the color that they gathered; `None` unless slabs are cast.
    pub(crate) cuts: Option<Cuts>,
    /// Source of the colors, if another array gives them.
    pub(crate) dye: Option<&'a dyn Dye>,
    pub(crate) instructions: Instructions,
}

impl<'a, T: Voxel> Caster<'a, T> {
    /// A caster that draws: with what only its own rays ask for.
    fn ready(
        scene: &'a Scene,
        part: &Part,
        blocks: &'a Blocks<T>,
        dye: Option<&'a dyn Dye>,
        instructions: Instructions,
    ) -> Result<Self> {
        let mut caster = Self::new(scene, part, blocks, dye, instructions)?;
        caster.sieve = Sieve::new(&caster);
        let surfaces = &caster.surfaces;
        if !surfaces.is_empty() {
            let isovalues = surfaces.isovalues();
            let sides = |block: &Arc<Resident<T>>| block.sides.of(&isovalues, || Sides::new(block, surfaces));
            let sides = |slot: &Option<_>| slot.as_ref().map(sides);
            caster.sides = blocks.all_slots().par_iter().map(sides).collect();
        }
        Ok(caster)
    }

    pub(crate) fn new(
        scene: &'a Scene,
        part: &Part,
        blocks: &'a Blocks<T>,
        dye: Option<&'a dyn Dye>,
        instructions: Instructions,
    ) -> Result<Self> {
        if *blocks.view != *scene.view {
            return Err(Error::invalid("expected blocks of the scene's own view"));
        }
        let view = &scene.view;
        let wanted_rank = view.rank_of(scene.finest_level)?;
        let is_drawn = |r: &usize| blocks.count_at(*r) > 0;
        let here = (wanted_rank..view.levels.len()).find(is_drawn).unwrap_or(wanted_rank);
        let finest = part.finest.map_or(Ok(here), |number| view.rank_of(number))?;
        // Gaps in the wanted level are no lack, so it is looked at even where it has no block.
        let is_asked = |r: &usize| is_drawn(r) || *r == wanted_rank && blocks.has_gaps(*r);
        let ranks: Vec<usize> = (wanted_rank..view.levels.len()).filter(is_asked).collect();
        let step = scene.quality.step * scene.mode.step();
        let Spacing { step_world, is_thin } = Spacing::of(scene, finest, step);
        let stride = |r: usize| if is_thin { 0 } else { stride_log2(view.step_world(r, step), step_world) };
        let strides_log2: Vec<usize> = (0..view.levels.len()).map(stride).collect();
        let coarsest = ranks.iter().map(|&r| strides_log2[r]).max().unwrap_or(0);
        let recipe = Recipe {
            transfer: scene.transfer.clone(),
            thickness: step_world / view.spacing_world(0),
            coarsest_log2: coarsest,
            skip_empty: scene.quality.skip_empty,
        };
        let tables = blocks.tables.of(recipe, &view.decoding);
        let plan = |block: &Arc<Resident<T>>| {
            let make = || Plan::new(block, &tables.by_stride[0], scene.quality.skip_empty);
            block.plans.of(&tables.number, make)
        };
        let is_composite = scene.mode == Mode::Composite;
        let plan = |slot: &Option<_>| slot.as_ref().filter(|_| is_composite).map(plan);
        let plans = blocks.all_slots().par_iter().map(plan).collect();
        let lens = Lens::new(&scene.camera, scene.size)?;
        let portion = scene.portion();
        let sights = sights(scene, part, &lens, &portion);
        let has_slices = !scene.slices.is_empty();
        let slices = || Slices::new(&scene.slices, Palette::new(&scene.transfer), portion.slices.is_some());
        let fade =
            |slot: &Option<_>| slot.as_deref().map_or(Fade::FALSE, |b| blocks.fade_of(b, &sights[b.rank]));
        let sight = tables.by_stride[0].sight_of([f32::MIN, f32::MAX]);
        let volume_from_world = view.world_from_volume.inverse();
        let lamp = Lamp::new(&volume_from_world);
        let is_shared = part.share != Share::WHOLE;
        let counted = if is_shared { blocks.all_slots().len() } else { 0 };
        let surfaces = Surfaces::new(&scene.surfaces, view, lamp);
        Ok(Self {
            sides: Vec::new(),
            shows_volume: is_composite && !sight.is_hidden(),
            slices: has_slices.then(slices),
            wires: Wires::new(scene, &lens),
            extreme: Extreme::new(scene, blocks, &tables.by_stride[0]),
            metric: (scene.is_lit && is_composite).then(|| Metric::new(&volume_from_world, step_world)),
            surfaces,
            scene,
            part: *part,
            is_shared,
            finest_rank: finest,
            worked: std::iter::repeat_with(AtomicU64::default).take(counted).collect(),
            blocks,
            lens,
            volume_from_world,
            ranks,
            wanted_rank,
            step_world,
            is_thin,
            strides_log2,
            tables,
            plans,
            fades: blocks.all_slots().par_iter().map(fade).collect(),
            sieve: None,
            cuts: None,
            dye,
            instructions,
        })
    }

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

    /// Returns the counts to report for a picture. If there is a sieve and it lets no ray pass, but rays meet
    /// the volume, it counts one sample of the wanted level, so that the shown level is reported.
    pub(crate) fn said(&self, mut shown: Shown) -> Shown {
        if self.sieve.is_some() && shown.is_nothing() && self.tiles().iter().any(|tile| self.is_met(tile)) {
            shown.count(Some(self.wanted_rank), false, 1);
        }
        shown
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

    fn shadings(&self) -> Vec<Shading<'_, T>> {
        let nearest = !self.scene.view.meaning.is_continuous();
        let opaque = 1.0 - self.scene.quality.termination;
        let missing = &self.blocks.missing;
        self.tables
            .by_stride
            .iter()
            .map(|table| Shading { table, missing, opaque, nearest, metric: self.metric, dye: self.dye })
            .collect()
    }

    pub(crate) fn tiles(&self) -> Vec<Rect> {
        let Rect { left, top, width, height } = self.part.rect;
        let (right, bottom) = (left + width, top + height);
        let starts = |from: u32, to: u32| (from..to).step_by(TILE as usize);
        let tile =
            |top, left| Rect { left, top, width: TILE.min(right - left), height: TILE.min(bottom - top) };
        starts(top, bottom).flat_map(|top| starts(left, right).map(move |left| tile(top, left))).collect()
    }

    /// True where a ray of a tile has samples.
    fn is_met(&self, tile: &Rect) -> bool {
        let mut corners = (0..tile.height)
            .step_by(SIDE as usize)
            .flat_map(|top| (0..tile.width).step_by(SIDE as usize).map(move |left| [left, top]));
        corners.any(|[left, top]| {
            let size = [SIDE.min(tile.width - left), SIDE.min(tile.height - top)];
            let rays = self.rays([tile.left + left, tile.top + top], size);
            rays.next.iter().zip(&rays.end).any(|(next, end)| next < end)
        })
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
        for top in (0..tile.height).step_by(SIDE as usize) {
            for left in (0..tile.width).step_by(SIDE as usize) {
                let [width, height] = [SIDE.min(tile.width - left), SIDE.min(tile.height - top)];
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
                    PLACES.into_iter().zip(colours.into_iter().zip(best))
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

/// Returns the part of the volume that may be seen, for each level by rank.
fn sights(scene: &Scene, part: &Part, lens: &Lens, portion: &Portion) -> Vec<Sight> {
    let sight = Sight::new(&scene.view, lens, portion);
    let of_rank = |rank| sight.clone().within(&part.share, Share::margin(scene, rank));
    (0..scene.view.levels.len()).map(of_rank).collect()
}

/// Logarithm of the largest power of two of steps that is no longer than `coarse_world`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn stride_log2(coarse_world: f64, step_world: f64) -> usize {
    const MOST: f64 = 8.0;
    // A little less than exact, so that rounding does not halve a stride.
    (coarse_world / step_world * 1.001).log2().floor().clamp(0.0, MOST) as usize
}
