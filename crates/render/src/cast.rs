//! The caster: one picture from a scene and the blocks that are resident.
//!
//! The image is cut into tiles, drawn by as many threads as the surrounding rayon pool has. A ray goes front
//! to back, block by block; each stretch is drawn from the finest resident block that holds it. Samples lie
//! at multiples of one step from the eye, whatever is skipped and whichever thread draws, so the same request
//! over the same blocks gives the same bits on the same instruction set.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use array::{Error, Meaning, Result};
use glam::{DAffine3, DVec3, Vec4};
use rayon::prelude::*;

use crate::blocks::Blocks;
use crate::camera::{Lens, Ray};
use crate::fade::{self, Fade};
use crate::frustum::Sight;
use crate::kernel::{Segment, Shading, march};
use crate::pool::Snapshot;
use crate::skip::Field;
use crate::table::Table;
use crate::voxel::Voxel;
use crate::{Bounds, Image, ImageSize, Scene, VolumeView};

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

/// What a picture really shows; shares are of the length of rays up to where they end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    /// Number of the level that was wanted.
    pub wanted_level: u8,
    /// Number of the finest level that was drawn; `None` when nothing was.
    pub finest_shown: Option<u8>,
    /// Number of the coarsest level that was drawn.
    pub coarsest_shown: Option<u8>,
    /// Share at the wanted level.
    pub share_at_wanted: f64,
    /// Share where no level had a block.
    pub share_uncovered: f64,
    /// Share where a block of the wanted level is still to come, whatever stood in for it. Where the source has
    /// nothing at that level, nothing is lacking.
    pub share_lacking: f64,
}

impl Truth {
    /// True when all of the picture shows the wanted level, or the best there is where the source has nothing
    /// at that level.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.share_lacking <= 0.0
    }
}

/// A picture and what it really shows.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Pixels.
    pub image: Image,
    /// What they show.
    pub truth: Truth,
}

/// Draws a scene from `blocks`, which belong to the scene's view. Takes no lock: meanwhile the pool they come
/// from may change.
///
/// # Errors
/// `Invalid` for an impossible scene or blocks of another view; `Cancelled` when the flag was set.
pub fn cast(scene: &Scene, blocks: &Snapshot, cancel: &Cancel) -> Result<Frame> {
    scene.check()?;
    blocks.0.cast(scene, cancel)
}

/// Blocks of any type, as a picture sees them.
pub(crate) trait Castable: Send + Sync {
    fn cast(&self, scene: &Scene, cancel: &Cancel) -> Result<Frame>;
}

impl<T: Voxel> Castable for Blocks<T> {
    fn cast(&self, scene: &Scene, cancel: &Cancel) -> Result<Frame> {
        if *self.view != *scene.view {
            return Err(Error::invalid("expected blocks of the scene's own view"));
        }
        Caster::new(scene, self)?.draw(cancel)
    }
}

/// Everything that the rays of one picture share.
struct Caster<'a, T> {
    scene: &'a Scene,
    blocks: &'a Blocks<T>,
    lens: Lens,
    volume_from_world: DAffine3,
    /// Ranks that are drawn and have blocks (or known gaps), finest first.
    ranks: Vec<usize>,
    wanted_rank: usize,
    step_world: f64,
    /// Per rank the logarithm of how many steps one sample stands for: coarser blocks need fewer samples.
    strides_log2: Vec<usize>,
    /// Tables for samples that stand for 1, 2, 4, ... steps.
    tables: Vec<Table>,
    /// What of each block can be seen, by slot.
    fields: Vec<Field>,
    /// Where each block begins beside a coarser one, by slot.
    fades: Vec<Fade>,
}

impl<'a, T: Voxel> Caster<'a, T> {
    fn new(scene: &'a Scene, blocks: &'a Blocks<T>) -> Result<Self> {
        let view = &scene.view;
        let wanted_rank = view.rank_of(scene.finest_level)?;
        let is_drawn = |r: &usize| blocks.count_at(*r) > 0;
        let finest = (wanted_rank..view.levels.len()).find(is_drawn).unwrap_or(wanted_rank);
        // Gaps in the wanted level are no lack, so it is looked at even where it has no block.
        let is_asked = |r: &usize| is_drawn(r) || *r == wanted_rank && blocks.has_gaps(*r);
        let ranks: Vec<usize> = (wanted_rank..view.levels.len()).filter(is_asked).collect();
        let step_world = view.step_world(finest, scene.quality.step);
        let strides_log2: Vec<usize> = (0..view.levels.len())
            .map(|r| stride_log2(view.step_world(r, scene.quality.step), step_world))
            .collect();
        let coarsest = ranks.iter().map(|&r| strides_log2[r]).max().unwrap_or(0);
        let thickness = |log2: usize| f64::from(1u32 << log2) * step_world / view.spacing_world(0);
        let tables: Vec<Table> =
            (0..=coarsest).map(|log2| Table::new(&scene.transfer, &view.decoding, thickness(log2))).collect();
        let fields = blocks
            .all_slots()
            .par_iter()
            .map(|slot| match slot {
                Some(block) if scene.quality.skip_empty => Field::new(block, &tables[0]),
                _ => Field::Full,
            })
            .collect();
        let lens = Lens::new(&scene.camera, scene.size)?;
        let sight = Sight::new(view, &lens, scene.clip.as_ref());
        let fade = |slot: &Option<_>| slot.as_deref().map_or(Fade::FALSE, |b| blocks.fade_of(b, &sight));
        Ok(Self {
            scene,
            blocks,
            lens,
            volume_from_world: view.world_from_volume.inverse(),
            ranks,
            wanted_rank,
            step_world,
            strides_log2,
            tables,
            fields,
            fades: blocks.all_slots().par_iter().map(fade).collect(),
        })
    }

    fn draw(&self, cancel: &Cancel) -> Result<Frame> {
        let tiles = self.tiles();
        let drawn: Vec<(Vec<Vec4>, Shown)> = tiles
            .par_iter()
            .map(
                |tile| if cancel.is_cancelled() { Err(Error::cancelled()) } else { Ok(self.draw_tile(tile)) },
            )
            .collect::<Result<_>>()?;
        let mut image = Image::transparent(self.scene.size);
        let mut shown = Shown::default();
        for (tile, (pixels, part)) in tiles.iter().zip(&drawn) {
            shown.add(part);
            for (row, pixels) in (tile.top..).zip(pixels.chunks_exact(tile.width as usize)) {
                let start = row as usize * self.scene.size.width as usize + tile.left as usize;
                for (to, pixel) in image.rgba[start..].iter_mut().zip(pixels) {
                    *to = pixel.to_array();
                }
            }
        }
        Ok(Frame { image, truth: shown.truth(&self.scene.view, self.wanted_rank) })
    }

    fn tiles(&self) -> Vec<Tile> {
        let ImageSize { width, height } = self.scene.size;
        let starts = |n: u32| (0..n).step_by(TILE as usize);
        let tile =
            |top, left| Tile { left, top, width: TILE.min(width - left), height: TILE.min(height - top) };
        starts(height).flat_map(|top| starts(width).map(move |left| tile(top, left))).collect()
    }

    fn draw_tile(&self, tile: &Tile) -> (Vec<Vec4>, Shown) {
        let nearest = self.scene.view.meaning == Meaning::Labels;
        let termination = self.scene.quality.termination;
        let shadings: Vec<_> =
            self.tables.iter().map(|t| Shading::new(t, &self.blocks.missing, termination, nearest)).collect();
        let mut shown = Shown::default();
        let mut pixels = Vec::with_capacity((tile.width * tile.height) as usize);
        for row in tile.top..tile.top + tile.height {
            for column in tile.left..tile.left + tile.width {
                pixels.push(self.trace(&self.lens.ray(column, row), &shadings, &mut shown));
            }
        }
        (pixels, shown)
    }

    /// One ray, front to back.
    fn trace(&self, ray: &Ray, shadings: &[Shading<'_, T>], shown: &mut Shown) -> Vec4 {
        let mut colour = Vec4::ZERO;
        let line = Line::new(ray, &self.volume_from_world, self.step_world);
        let Some((mut sample, end)) = self.samples(ray, &line) else { return colour };
        while sample < end && colour.w < shadings[0].opaque {
            let here = self.stretch(&line, sample);
            let next = here.end.clamp(sample + 1, end);
            shown.count(&here, next - sample);
            if let Some(slot) = here.slot {
                let part = Part { from: sample, end: next, slot, local: here.local };
                self.draw_block(&line, &part, shadings, &mut colour);
            }
            sample = next;
        }
        colour
    }

    /// Draws samples from one block, with what leads over to coarser ones.
    #[inline]
    fn draw_block(&self, line: &Line, part: &Part, shadings: &[Shading<'_, T>], colour: &mut Vec4) {
        let fade = self.fades[part.slot as usize];
        if !fade.any() {
            return self.draw_part(line, part, shadings, colour);
        }
        let step = line.step * self.scene.view.levels[self.blocks.resident(part.slot).rank].scale;
        let outside = fade::outside(fade, part.local, step, part.end - part.from);
        let (first, end) = (part.from + outside.start, part.from + outside.end);
        self.draw_faded(line, &Part { end: first, ..*part }, fade, &shadings[0], colour);
        let local = part.local + step * outside.start as f64;
        self.draw_part(line, &Part { from: first, end, local, ..*part }, shadings, colour);
        let local = part.local + step * outside.end as f64;
        self.draw_faded(line, &Part { from: end, local, ..*part }, fade, &shadings[0], colour);
    }

    /// Draws samples one by one, each between its block's value and that of a coarser one.
    fn draw_faded(&self, line: &Line, part: &Part, fade: Fade, shading: &Shading<'_, T>, colour: &mut Vec4) {
        let block = self.blocks.resident(part.slot);
        let step = line.step * self.scene.view.levels[block.rank].scale;
        for i in part.from..part.end {
            if colour.w >= shading.opaque {
                return;
            }
            let local = part.local + step * (i - part.from) as f64;
            let volume = line.origin + line.step * i as f64;
            *colour += self.blocks.faded(block, fade, local, volume, shading.table) * (1.0 - colour.w);
        }
    }

    /// Draws samples from one block alone. Where one sample stands for several steps it lies in their middle, and
    /// single steps lead up to whole multiples at both ends, so that no step is left out or counted twice.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "sample numbers stay small")]
    fn draw_part(&self, line: &Line, part: &Part, shadings: &[Shading<'_, T>], colour: &mut Vec4) {
        let Part { from, end, slot, local } = *part;
        if from >= end {
            return;
        }
        let block = self.blocks.resident(slot);
        let step = line.step * self.scene.view.levels[block.rank].scale;
        let mut run = |first: i64, count: i64, log2: usize| {
            let stride = f64::from(1u32 << log2);
            let segment = Segment {
                start: (local + step * ((first - from) as f64 + (stride - 1.0) / 2.0)).as_vec3a(),
                step: (step * stride).as_vec3a(),
                count: u32::try_from(count).unwrap_or(u32::MAX),
            };
            march(block, &self.fields[slot as usize], &segment, &shadings[log2], colour);
        };
        let log2 = self.strides_log2[block.rank];
        let (body, tail) = (-((-from) >> log2) << log2, (end >> log2) << log2);
        if log2 == 0 || body >= tail {
            return run(from, end - from, 0);
        }
        run(from, body - from, 0);
        run(body, (tail - body) >> log2, log2);
        run(tail, end - tail, 0);
    }

    /// First and end of the samples of a ray that lie in the volume and in the clipping box.
    #[expect(clippy::cast_possible_truncation, reason = "saturates, which is meant")]
    fn samples(&self, ray: &Ray, line: &Line) -> Option<(i64, i64)> {
        let (low, high) = self.scene.view.volume_box();
        let mut span = slab(line.origin, line.step, low, high)?;
        if let Some(Bounds { min, max }) = self.scene.clip {
            let clip = slab(ray.origin, ray.direction * self.step_world, min.into(), max.into())?;
            span = (span.0.max(clip.0), span.1.min(clip.1));
        }
        let first = if self.lens.perspective { span.0.max(0.0) } else { span.0 };
        // From farther away than this, numbers of samples would not be whole any more.
        const FARTHEST: i64 = 1 << 52;
        let first = (first.ceil() as i64).max(-FARTHEST);
        let end = (span.1.ceil() as i64).min(FARTHEST);
        (first < end).then_some((first, end))
    }

    /// The finest resident block that holds a sample, and the first sample for which that may differ.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "sample numbers stay small"
    )]
    fn stretch(&self, line: &Line, sample: i64) -> Stretch {
        let at = line.origin + line.step * sample as f64;
        let mut exit = f64::INFINITY;
        let mut is_lacking = !self.ranks.contains(&self.wanted_rank);
        for &rank in &self.ranks {
            let level = &self.scene.view.levels[rank];
            let (place, local) = level.place_of(at);
            exit = exit.min(line.exit(level.block_box(place)));
            if let Some(slot) = self.blocks.slot_of(rank, place) {
                return Stretch {
                    slot: Some(slot),
                    rank: Some(rank),
                    local,
                    end: exit.ceil() as i64,
                    is_lacking,
                };
            }
            let is_gap = || self.blocks.is_not_covered(self.blocks.id(rank, place));
            is_lacking |= rank == self.wanted_rank && !is_gap();
        }
        Stretch { slot: None, rank: None, local: at, end: exit.ceil() as i64, is_lacking }
    }
}

/// Logarithm of the largest power of two of steps that is no longer than `coarse_world`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn stride_log2(coarse_world: f64, step_world: f64) -> usize {
    const MOST: f64 = 8.0;
    // A little less than exact, so that rounding does not halve a stride.
    (coarse_world / step_world * 1.001).log2().floor().clamp(0.0, MOST) as usize
}

/// A part of the image, pixels.
struct Tile {
    left: u32,
    top: u32,
    width: u32,
    height: u32,
}

/// Samples `from` to `end` of a ray, drawn from one block, in whose voxels the first lies at `local`.
#[derive(Clone, Copy)]
struct Part {
    from: i64,
    end: i64,
    slot: u32,
    local: DVec3,
}

/// A run of samples held by one block, or by none.
struct Stretch {
    slot: Option<u32>,
    rank: Option<usize>,
    /// The first sample in the block's voxels.
    local: DVec3,
    /// Number of the first sample behind it.
    end: i64,
    /// The block of the wanted level is still to come.
    is_lacking: bool,
}

/// A ray in volume space: sample `i` at `origin + i * step`.
struct Line {
    origin: DVec3,
    step: DVec3,
    inverse: DVec3,
}

impl Line {
    fn new(ray: &Ray, volume_from_world: &DAffine3, step_world: f64) -> Self {
        let step = volume_from_world.transform_vector3(ray.direction * step_world);
        Self { origin: volume_from_world.transform_point3(ray.origin), step, inverse: step.recip() }
    }

    /// Where, in samples, the line leaves a box that it is in.
    #[inline]
    fn exit(&self, (low, high): (DVec3, DVec3)) -> f64 {
        let wall = DVec3::select(self.step.cmpge(DVec3::ZERO), high, low);
        let samples =
            DVec3::select(self.step.cmpeq(DVec3::ZERO), DVec3::INFINITY, (wall - self.origin) * self.inverse);
        samples.min_element()
    }
}

/// Where a line is inside a box, in steps.
fn slab(origin: DVec3, step: DVec3, low: DVec3, high: DVec3) -> Option<(f64, f64)> {
    let mut span = (f64::NEG_INFINITY, f64::INFINITY);
    for axis in 0..3 {
        if step[axis] == 0.0 {
            if origin[axis] < low[axis] || origin[axis] >= high[axis] {
                return None;
            }
            continue;
        }
        let (a, b) = ((low[axis] - origin[axis]) / step[axis], (high[axis] - origin[axis]) / step[axis]);
        span = (span.0.max(a.min(b)), span.1.min(a.max(b)));
    }
    (span.0 < span.1).then_some(span)
}

/// How many samples came from which rank, and how many should have come from a better one.
#[derive(Clone, Debug)]
struct Shown {
    by_rank: [u64; array::MAX_LEVELS],
    uncovered: u64,
    lacking: u64,
}

impl Default for Shown {
    fn default() -> Self {
        Self { by_rank: [0; array::MAX_LEVELS], uncovered: 0, lacking: 0 }
    }
}

impl Shown {
    fn count(&mut self, stretch: &Stretch, samples: i64) {
        let counter = stretch.rank.map_or(&mut self.uncovered, |rank| &mut self.by_rank[rank]);
        *counter += samples.unsigned_abs();
        self.lacking += if stretch.is_lacking { samples.unsigned_abs() } else { 0 };
    }

    fn add(&mut self, other: &Self) {
        for (sum, count) in self.by_rank.iter_mut().zip(&other.by_rank) {
            *sum += count;
        }
        self.uncovered += other.uncovered;
        self.lacking += other.lacking;
    }

    #[expect(clippy::cast_precision_loss, reason = "shares")]
    fn truth(&self, view: &VolumeView, wanted_rank: usize) -> Truth {
        let total = self.by_rank.iter().sum::<u64>() + self.uncovered;
        // A picture without the volume in it is complete.
        let share =
            |count: u64, of_nothing: f64| if total == 0 { of_nothing } else { count as f64 / total as f64 };
        let number = |rank: usize| view.levels[rank].number;
        Truth {
            wanted_level: number(wanted_rank),
            finest_shown: self.by_rank.iter().position(|&n| n > 0).map(number),
            coarsest_shown: self.by_rank.iter().rposition(|&n| n > 0).map(number),
            share_at_wanted: share(self.by_rank[wanted_rank], 1.0),
            share_uncovered: share(self.uncovered, 0.0),
            share_lacking: share(self.lacking, 0.0),
        }
    }
}
