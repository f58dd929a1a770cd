//! Picture as plain numbers: the input for a caster on another device that draws the same picture.
//!
//! [`prepare`] takes every decision that the caster of this crate takes before its first ray: the levels that
//! are drawn and their steps, the tables of the transfer function, and for each block its visible cells, its
//! sides of the isovalues, its heights and its transitions to coarser blocks. Only the march itself remains;
//! its constants are here, so that both marches use the same. This module draws nothing and depends on no
//! device.

mod prepared;
mod sides;

use std::any::Any;
use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use array::{Error, Result};
use glam::{BVec3, DAffine3, DVec3};
use rayon::prelude::*;
use view::{Mode, ValueScale};

use crate::blocks::BlockTable;
use crate::blocks::resident::Resident;
use crate::blocks::snapshot::{Snapshot, each_blocks};
use crate::blocks::voxel::{MissingValues, PlaceScale, Voxel, above, below};
use crate::cpu::context::{CastContext, metric_of};
use crate::cpu::extreme::{BlockPeaks, Extreme};
use crate::cpu::palette::Palette;
use crate::cpu::table::TransferTable;
use crate::isosurface::hits::{StoredSurface, Surfaces};
use crate::scene::fidelity::ShownSamples;
use crate::{Bounds, Fidelity, ImagePart, ImageSize, Instructions, LightShares, Scene, Slice, VolumeView};

pub use crate::cpu::empty_space::visible_cells::VisibleCells;
pub use crate::cpu::extreme::height::{ALIKE, NOTHING, PEAK_STEP, TOP};
pub use crate::cpu::samples::dimming::DepthCue;
pub use crate::cpu::samples::dimming::occlusion::OcclusionGrid;
pub use crate::scene::color_map::COLORS;
pub use prepared::{ABSENT, Peaks, PreparedPalette, PreparedSurface, Relative, VoxelFormat};
pub use sides::{NO_SIDE, SEVERAL_SIDES, Sides};

/// Voxels along a side of a cell of [`VisibleCells::Cells`].
pub const CELL: usize = crate::blocks::resident::CELL;
/// Set in cells of [`VisibleCells::Cells`] where opacity bends; the other bits are the distance to the nearest visible cell.
pub const BENT: u8 = crate::cpu::empty_space::visible_cells::BENT;
/// Samples between two tests for empty-space skipping.
pub const RUN: u32 = crate::cpu::empty_space::skip_ahead::RUN;
/// Entries of a table.
pub const ENTRIES: usize = crate::cpu::table::ENTRIES;
/// Numbers of parts into which the interval between two samples may be cut.
pub const PARTS: [u32; 3] = crate::cpu::table::PARTS;
/// Largest error of a sample's opacity that is accepted instead of more parts.
pub const TOLERANCE: f32 = crate::cpu::table::TOLERANCE;
/// See `table.rs`.
pub const ERROR_PER_BEND: f32 = crate::cpu::table::ERROR_PER_BEND;
/// Extent of the transition to a coarser block, voxels.
#[expect(clippy::cast_possible_truncation, reason = "a small whole number")]
pub const FADE_REACH: f32 = crate::cpu::samples::level_fade::REACH as f32;
/// Words of one table in [`Prepared::table_words`].
pub const TABLE_WORDS: usize = (2 * PARTS.len() + 1) * ENTRIES + 4;
/// Number of times that the squared cosine is squared for specular light.
pub const SQUARINGS: u32 = crate::scene::light::SQUARINGS;

/// Position, axes and field of view of the eye, world space.
#[derive(Clone, Copy, Debug)]
pub struct PreparedLens {
    /// Position of the eye.
    pub eye: DVec3,
    /// Right in the picture; of unit length, as are `up` and `forward`.
    pub right: DVec3,
    /// Up in the picture.
    pub up: DVec3,
    /// Direction into the picture.
    pub forward: DVec3,
    /// Half of what the image spans, right and up: tangents for a perspective camera, else world units.
    pub half: [f64; 2],
    /// Offset of the image's middle to the right of `forward`, a tangent; 0 except for an eye of a stereo
    /// pair.
    pub middle: f64,
    /// True if rays begin at the eye; otherwise they are parallel and have no origin.
    pub is_perspective: bool,
}

/// Level that is drawn. Vectors are `(x, y, z)`.
#[derive(Clone, Debug)]
pub struct PreparedLevel {
    /// Its index in [`VolumeView::levels`].
    pub level_index: usize,
    /// Voxel position = `scale * volume position + shift`.
    pub scale: DVec3,
    /// See `scale`.
    pub shift: DVec3,
    /// Voxels.
    pub shape: [u64; 3],
    /// Voxels of a block.
    pub block: [u64; 3],
    /// Each sample in its blocks represents 2^`stride_log2` steps.
    pub stride_log2: usize,
}

/// Block that can be drawn. Vectors are `(x, y, z)`, shapes `[z, y, x]`.
#[derive(Clone, Debug)]
pub struct PreparedBlock {
    /// Index of its level in [`VolumeView::levels`].
    pub level_index: usize,
    /// Its position `[z, y, x]` in the level's grid.
    pub at: [u64; 3],
    /// Voxels without the ghost voxels.
    pub shape: [usize; 3],
    /// Voxels with the ghost voxels, in the order of [`Prepared::voxels`] except for the pitch.
    pub extent: [usize; 3],
    /// Voxels from one row to the next.
    pub pitch: usize,
    /// True if some voxel is missing.
    pub has_missing: bool,
    /// Visible cells of the block; `None` if the picture shows nothing by the transfer function.
    pub field: Option<Arc<VisibleCells>>,
    /// Sides of the surfaces on which the block's values lie, by which cells without a surface are skipped;
    /// `None` if the picture has no surfaces.
    pub sides: Option<Sides>,
    /// Heights of the block; `None` except for pictures of extreme values.
    pub peaks: Option<Peaks>,
    /// Axes along which it begins beside a coarser block.
    pub fade: BVec3,
    /// Id of its present content.
    pub stamp: BlockStamp,
    /// Range of [`VoxelFormat::Relative`]: stored value = `low + span * voxel`.
    pub relative: Option<Relative>,
    slot: u32,
}

/// Id of the content of a block, unique among all contents, including those that were dropped; does not keep
/// the block in memory.
#[derive(Clone, Debug)]
pub struct BlockStamp(Weak<dyn Any + Send + Sync>);

impl BlockStamp {
    /// True if the content is in no pool and no picture any more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// Id of the per-block data (visible cells, sides, heights) of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellsId {
    table_number: u64,
    mode: Mode,
    /// Bits of the ids.
    isovalues: Arc<[u64]>,
}

impl PartialEq for BlockStamp {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self.0.as_ptr(), other.0.as_ptr())
    }
}

impl Eq for BlockStamp {}

impl Hash for BlockStamp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The address is unique as long as the value is alive.
        self.0.as_ptr().cast::<()>().hash(state);
    }
}

/// Picture as plain numbers, for a caster on another device; made by [`prepare`].
#[derive(Debug)]
pub struct Prepared {
    /// Volume to draw.
    pub view: Arc<VolumeView>,
    /// Pixels.
    pub size: ImageSize,
    /// Camera.
    pub lens: PreparedLens,
    /// Map from world positions to volume positions.
    pub volume_from_world: DAffine3,
    /// Box that is drawn, volume space.
    pub volume_box: (DVec3, DVec3),
    /// Clipping box in world space; `None` if there is none.
    pub clip: Option<Bounds>,
    /// Distance of samples, world units.
    pub step_world: f64,
    /// True if each ray has samples of its own: see `spacing.rs`.
    pub is_thin: bool,
    /// Opacity at which a ray ends.
    pub opaque: f32,
    /// Levels that have blocks or known gaps, finest first.
    pub levels: Vec<PreparedLevel>,
    /// Index of the wanted level in [`VolumeView::levels`].
    pub wanted_level_index: usize,
    /// Blocks of those levels.
    pub blocks: Vec<PreparedBlock>,
    /// Positions `[z, y, x]` of the wanted level for which the source has no block.
    pub gaps: Vec<[u64; 3]>,
    /// Format of voxels in memory.
    pub format: VoxelFormat,
    /// Stored values that stand for missing data (not in [`VoxelFormat::Relative`]), besides those that are
    /// not finite.
    pub missing: Vec<f32>,
    /// Range of valid stored values; values outside are missing too.
    pub valid: Option<[f32; 2]>,
    /// Place in the table = `(stored - origin) * gain`.
    pub origin: f64,
    /// See `origin`.
    pub gain: f64,
    /// True if voxels are not interpolated.
    pub is_labels: bool,
    /// Drawing mode of everything besides surfaces and slices.
    pub mode: Mode,
    /// True if samples are lit; surfaces always are.
    pub is_lit: bool,
    /// Parameters of the lighting.
    pub light: PreparedLight,
    /// Dimming of the light.
    pub dimming: PreparedDimming,
    /// Surfaces by increasing stored value.
    pub surfaces: Vec<PreparedSurface>,
    /// Slices.
    pub slices: Vec<Slice>,
    /// True if nothing but the slices is drawn.
    pub slices_are_alone: bool,
    /// Colors of slices and of extreme values.
    pub palette: PreparedPalette,
    /// Scale of the transfer function.
    pub scale: ValueScale,
    /// Entry of a place on that scale, if it is not linear: `entry_map[0] + entry_map[1] * log2(place)`, not below 1
    /// for positive places and 0 for others on a logarithmic scale; with `log2(1 + |place|)` and the sign of the
    /// place on a symmetric one.
    pub entry_map: [f32; 2],
    /// Scale of pictures of extreme values: height = the first * place + the second.
    pub height_scale: [f32; 2],
    /// Id of the visible cells, sides and heights of its blocks.
    pub cells_id: CellsId,
    table_words: Vec<u32>,
    resident_blocks: Snapshot,
}

/// Lighting of samples: see `light.rs`.
#[derive(Clone, Copy, Debug)]
pub struct PreparedLight {
    /// Squared length of a volume gradient: coefficients of xx, yy, zz, xy, xz, yz.
    pub squares: [f32; 6],
    /// Factors from a ray's step in volume space to its direction.
    pub step_length: f64,
    /// Additions to the squared length of a gradient, and to its squared part along the ray.
    pub soft: [f32; 2],
    /// Components of the light.
    pub shares: LightShares,
}

/// Dimming of lit samples by their place: see `cpu/samples/dimming`.
#[derive(Clone, Debug, Default)]
pub struct PreparedDimming {
    /// Ambient occlusion of the volume's samples.
    pub occlusion: Option<Arc<OcclusionGrid>>,
    /// Share of the light that full occlusion takes away.
    pub strength: f32,
    /// Steps between two lookups of the occlusion, a power of two; it is linear in between.
    pub lookup_steps: f64,
    /// Depth cue of surfaces and of the volume's samples, along rays from the eye of [`Prepared::lens`].
    pub cue: Option<DepthCue>,
}

/// Prepares a scene that is to be drawn from `blocks`.
///
/// # Errors
/// The errors of [`crate::cast`]; `Unsupported` for a scene with boxes as lines, in the colors of
/// another array, or with slices that are oblique or not interpolated.
pub fn prepare(scene: &Scene, blocks: &Snapshot) -> Result<Prepared> {
    scene.check()?;
    scene.size.check()?;
    if !scene.wires.is_empty() || !scene.geometry.is_empty() {
        return Err(Error::unsupported("expected a scene without geometry or boxes as lines"));
    }
    if scene.slices.iter().any(|slice| slice.oblique.is_some() || slice.nearest) {
        return Err(Error::unsupported(
            "expected slices across axes with interpolated values for a graphics processor, found others",
        ));
    }
    if scene.color_by.is_some() {
        return Err(Error::unsupported(
            "expected colors by the array that is drawn for a graphics processor, found another array's",
        ));
    }
    if !scene.layers.is_empty() {
        return Err(Error::unsupported("expected a scene without layers for a graphics processor"));
    }
    let part = ImagePart::whole(scene);
    each_blocks!(&blocks.blocks, of_type => {
        Ok(CastContext::new(scene, &part, of_type, None, Instructions::best())?.prepared(blocks))
    })
}

impl Prepared {
    /// Returns the voxels of a block with its ghost voxels: rows of `pitch` voxels, of which `extent` are
    /// valid.
    ///
    /// # Panics
    /// For a block of another picture.
    #[must_use]
    pub fn voxels(&self, block: &PreparedBlock) -> VoxelBytes<'_> {
        each_blocks!(&self.resident_blocks.blocks, blocks => voxels_of(blocks, block))
    }

    /// Returns the tables for samples that represent 1, 2, 4, ... steps, each of [`TABLE_WORDS`]: for whole
    /// samples and for each of [`PARTS`] the entries, two words each (16 bits of red, green, blue, opacity,
    /// the first lowest), then the accumulated bend of the opacity up to each entry (`f32`), then the value
    /// of one unit of the 16 bits for each of [`PARTS`], and one word. At the end the colors of 256 labels
    /// (`f32`, red, green, blue, 1) if the map is one of labels.
    #[must_use]
    pub fn table_words(&self) -> &[u32] {
        &self.table_words
    }

    /// Returns the number of tables.
    #[must_use]
    pub fn table_count(&self) -> usize {
        self.table_words.len() / TABLE_WORDS
    }

    /// True if labels have colors of their own.
    #[must_use]
    pub fn has_label_colors(&self) -> bool {
        self.table_words.len() > self.table_count() * TABLE_WORDS
    }

    /// Returns the fidelity of a picture from numbers of samples: by level, without a block, and with a block
    /// of the wanted level that is not yet loaded.
    #[must_use]
    pub fn fidelity(&self, by_level: &[u64], uncovered: u64, lacking: u64) -> Fidelity {
        let mut shown = ShownSamples::default();
        by_level
            .iter()
            .enumerate()
            .for_each(|(level_index, &samples)| shown.count(Some(level_index), false, samples));
        shown.count(None, false, uncovered);
        shown.lack(lacking);
        shown.fidelity(&self.view, self.wanted_level_index)
    }
}

/// Returns the bytes of a block's voxels, borrowed from the pool if they need no conversion.
pub type VoxelBytes<'a> = Cow<'a, [u8]>;

impl<T: Voxel> CastContext<'_, T> {
    /// Creates the result of [`prepare`].
    fn prepared(&self, resident_blocks: &Snapshot) -> Prepared {
        let view = &self.scene.view;
        let levels = self.level_indices.iter().map(|&level_index| {
            let level = &view.levels[level_index];
            let stride_log2 = self.strides_log2[level_index];
            let (scale, shift) = (level.scale, level.shift);
            PreparedLevel { level_index, scale, shift, shape: level.shape, block: level.block, stride_log2 }
        });
        let tables = &self.tables.by_stride;
        let missing = &self.blocks.missing;
        let metric = metric_of(self.scene, &self.volume_from_world, self.step_world, self.finest_level_index);
        let surfaces = prepared_surfaces(&Surfaces::new(&self.scene.surfaces, view), &tables[0].scale);
        let extreme = Extreme::new(self.scene, self.blocks, &tables[0]);
        Prepared {
            size: self.scene.size,
            lens: PreparedLens {
                eye: self.lens.eye,
                right: self.lens.right,
                up: self.lens.up,
                forward: self.lens.forward,
                half: self.lens.half,
                middle: self.lens.middle,
                is_perspective: self.lens.perspective,
            },
            volume_from_world: self.volume_from_world,
            volume_box: view.volume_box(),
            clip: self.scene.clip,
            step_world: self.step_world,
            is_thin: self.is_thin,
            opaque: 1.0 - self.scene.quality.termination,
            levels: levels.collect(),
            wanted_level_index: self.wanted_level_index,
            blocks: self.prepared_blocks(&surfaces, extreme.as_ref()),
            gaps: self.blocks.gaps_at(self.wanted_level_index),
            format: T::FORMAT,
            missing: missing.values.iter().map(|value| value.to_f32()).collect(),
            valid: missing.valid.map(|(low, high)| [above(low), below(high)]),
            origin: tables[0].scale.origin,
            gain: tables[0].scale.gain,
            is_labels: !view.meaning.is_continuous(),
            mode: self.scene.mode,
            is_lit: self.metric.is_some(),
            light: PreparedLight {
                squares: metric.squares,
                step_length: metric.step_length,
                soft: metric.soft,
                shares: metric.shares,
            },
            dimming: self.dimming.as_ref().map_or_else(PreparedDimming::default, |dimming| PreparedDimming {
                occlusion: dimming.occlusion.clone(),
                strength: dimming.strength,
                lookup_steps: dimming.lookup_steps,
                cue: dimming.cue,
            }),
            slices: self.scene.slices.clone(),
            slices_are_alone: self.scene.portion().slices.is_some(),
            palette: Palette::new(&self.scene.transfer).prepared(),
            scale: tables[0].entry_scale.scale,
            entry_map: [tables[0].entry_scale.shift, tables[0].entry_scale.per_octave],
            height_scale: extreme.as_ref().map_or([0.0; 2], Extreme::height_scale),
            cells_id: self.cells_id(&surfaces),
            surfaces,
            table_words: tables
                .iter()
                .flat_map(TransferTable::words)
                .chain(tables[0].label_words())
                .collect(),
            resident_blocks: resident_blocks.clone(),
            view: Arc::clone(view),
        }
    }

    fn cells_id(&self, surfaces: &[PreparedSurface]) -> CellsId {
        CellsId {
            table_number: self.tables.number,
            mode: self.scene.mode,
            isovalues: surfaces.iter().map(|surface| surface.stored.to_bits()).collect(),
        }
    }

    fn prepared_blocks(&self, surfaces: &[PreparedSurface], extreme: Option<&Extreme>) -> Vec<PreparedBlock> {
        let prepared = |(slot, block): (u32, &Arc<_>)| {
            let block: &Arc<Resident<T>> = block;
            let any: Arc<dyn Any + Send + Sync> = Arc::<Resident<T>>::clone(block);
            PreparedBlock {
                level_index: block.level_index,
                at: block.at,
                shape: block.layout.shape,
                extent: block.layout.extent,
                pitch: block.layout.pitch(),
                has_missing: block.has_missing,
                field: self.plans[slot as usize].as_ref().map(|plan| Arc::clone(&plan.field)),
                sides: (!surfaces.is_empty()).then(|| Sides::new(&block.cells, surfaces)),
                peaks: extreme.and_then(|extreme| extreme.peaks(slot)).map(prepared_peaks),
                fade: self.fades[slot as usize],
                stamp: BlockStamp(Arc::downgrade(&any)),
                relative: T::WIDE.then(|| relative_to(&block.cells)),
                slot,
            }
        };
        let blocks: Vec<_> = self
            .blocks
            .occupied()
            .filter(|(_, block)| self.level_indices.contains(&block.level_index))
            .collect();
        blocks.into_par_iter().map(prepared).collect()
    }
}

/// Converts the voxels of a block for [`Prepared::voxels`].
fn voxels_of<'a, T: Voxel>(blocks: &'a BlockTable<T>, block: &PreparedBlock) -> VoxelBytes<'a> {
    let data = &blocks.resident(block.slot).data;
    match block.relative {
        Some(relative) => VoxelBytes::Owned(relative_bytes(data, relative, &blocks.missing)),
        None => VoxelBytes::Borrowed(bytemuck::cast_slice(data)),
    }
}

/// Converts the heights of a block for another device.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255, else saturates")]
fn prepared_peaks(BlockPeaks { cells, highest }: &BlockPeaks) -> Peaks {
    let rounded_up = |&peak: &f32| {
        if peak < 0.0 { 0 } else { ((peak / PEAK_STEP).ceil() + 1.0) as u8 }
    };
    Peaks { highest: *highest, cells: cells.iter().map(rounded_up).collect() }
}

/// Converts surfaces for another device.
fn prepared_surfaces(surfaces: &Surfaces, scale: &PlaceScale) -> Vec<PreparedSurface> {
    let one = |&StoredSurface { stored, color }: &StoredSurface| PreparedSurface {
        stored,
        least: above(stored),
        place: scale.place(stored),
        color: color.to_array(),
    };
    surfaces.sorted.iter().map(one).collect()
}

/// Returns the range that the ranges of all cells span together; 0 to 1 if no value is present.
fn relative_to(cells: &[[f32; 2]]) -> Relative {
    let low = cells.iter().map(|c| c[0]).fold(f32::INFINITY, f32::min);
    let high = cells.iter().map(|c| c[1]).fold(f32::NEG_INFINITY, f32::max);
    if low > high {
        return Relative { low: 0.0, span: 1.0 };
    }
    // Ranges are rounded outward, possibly to infinity.
    let [low, high] = [low, high].map(|bound| f64::from(bound).clamp(-WIDEST, WIDEST));
    // Values that begin near zero are relative to zero: each keeps its own precision, as logarithmic colors need.
    let [low, high] =
        if low.abs().min(high.abs()) <= high - low { [0.0, high.abs().max(low.abs())] } else { [low, high] };
    Relative { low, span: if high > low { high - low } else { 1.0 } }
}

/// Values beyond this are clamped.
const WIDEST: f64 = f32::MAX as f64;

/// Converts values of 64 bits to [`VoxelFormat::Relative`].
fn relative_bytes<T: Voxel>(data: &[T], to: Relative, missing: &MissingValues<T>) -> Vec<u8> {
    let one = |&value: &T| {
        let share = to.of(value.to_f64()).clamp(-1.0, 1.0);
        if missing.is_missing(value) { ABSENT } else { share }
    };
    data.iter().flat_map(|value| one(value).to_ne_bytes()).collect()
}
