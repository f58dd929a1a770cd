//! Context of one picture: data that all of its rays share, independent of the drawing mode.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use array::{Error, Result};
use glam::DAffine3;
use rayon::prelude::*;
use view::Mode;

use crate::blocks::BlockTable;
use crate::blocks::resident::Resident;
use crate::blocks::voxel::Voxel;
use crate::cpu::color_by::ColorLookup;
use crate::cpu::empty_space::visible_cells::SamplingPlan;
use crate::cpu::layers::{LayerLookup, StepLayers};
use crate::cpu::packet::spacing::SampleSpacing;
use crate::cpu::samples::dimming::Dimming;
use crate::cpu::samples::level_fade::Fade;
use crate::cpu::samples::shading::Shading;
use crate::cpu::table::{ENTRIES, Recipe, TransferTables};
use crate::scene::camera::Lens;
use crate::scene::frustum::Frustum;
use crate::scene::light::{Lamp, Metric};
use crate::scene::mode::step_of;
use crate::simd::Instructions;
use crate::{ImagePart, Portion, Scene, SubVolume};

/// Number of samples that are skipped in the time that one is drawn.
pub(crate) const LEAPT: u64 = 16;

/// Context that all rays of one picture share: blocks, steps, tables, and what of the blocks can be seen.
pub(crate) struct CastContext<'a, T> {
    pub(crate) scene: &'a Scene,
    pub(crate) part: ImagePart,
    /// Part to draw; content outside the part's sub-volume is drawn by others.
    pub(crate) is_shared: bool,
    pub(crate) blocks: &'a BlockTable<T>,
    pub(crate) lens: Lens,
    pub(crate) volume_from_world: DAffine3,
    /// Levels that are drawn and have blocks (or known gaps), finest first.
    pub(crate) level_indices: Vec<usize>,
    pub(crate) wanted_level_index: usize,
    /// Finest level of which any caster of the picture has a block.
    pub(crate) finest_level_index: usize,
    pub(crate) step_world: f64,
    /// True if each ray has samples of its own: see `spacing.rs`.
    pub(crate) is_thin: bool,
    /// Logarithm per level of the steps that one sample represents: coarser blocks need fewer samples.
    pub(crate) strides_log2: Vec<usize>,
    /// Tables for samples that represent 1, 2, 4, ... steps.
    pub(crate) tables: Arc<TransferTables>,
    /// Visible cells of each block, by slot; `None` for empty slots.
    pub(crate) plans: Vec<Option<Arc<SamplingPlan>>>,
    /// Axes along which each block begins beside a coarser one, by slot.
    pub(crate) fades: Vec<Fade>,
    /// True if the transfer function shows something.
    pub(crate) shows_volume: bool,
    pub(crate) lamp: Lamp,
    /// Lighting of samples; `None` if they are not lit.
    pub(crate) metric: Option<Metric>,
    /// Dimming of surfaces, and of lit samples.
    pub(crate) dimming: Option<Dimming>,
    /// Samples that rays passed in each block, plus [`LEAPT`] for each that they drew, by slot; empty if not
    /// requested.
    pub(crate) worked: Vec<AtomicU64>,
    /// Source of the colors, if another array gives them.
    pub(crate) color_by: Option<&'a dyn ColorLookup>,
    /// Layers over the array; see [`CastContext::add_layers`].
    pub(crate) layers: Vec<Box<dyn LayerLookup + 'a>>,
    /// Blocks in which a layer may be seen, by slot; empty without layers in the volume.
    pub(crate) layered: Vec<bool>,
    /// True if the volume shows nothing but layers, because values of the array have no depth.
    pub(crate) layers_are_alone: bool,
    pub(crate) instructions: Instructions,
}

impl<'a, T: Voxel> CastContext<'a, T> {
    /// # Errors
    /// `Invalid` for an invalid camera or blocks of another view.
    pub(crate) fn new(
        scene: &'a Scene,
        part: &ImagePart,
        blocks: &'a BlockTable<T>,
        color_by: Option<&'a dyn ColorLookup>,
        instructions: Instructions,
    ) -> Result<Self> {
        if *blocks.view != *scene.view {
            return Err(Error::invalid("expected blocks of the scene's own view"));
        }
        let view = &scene.view;
        let wanted_level_index = view.level_index_of(scene.finest_level)?;
        let is_drawn = |r: &usize| blocks.count_at(*r) > 0;
        let here = (wanted_level_index..view.levels.len()).find(is_drawn).unwrap_or(wanted_level_index);
        let finest = part.finest.map_or(Ok(here), |number| view.level_index_of(number))?;
        // Gaps in the wanted level do not count as missing, so it is included even if it has no block.
        let is_asked = |r: &usize| is_drawn(r) || *r == wanted_level_index && blocks.has_gaps(*r);
        let level_indices: Vec<usize> = (wanted_level_index..view.levels.len()).filter(is_asked).collect();
        let step = scene.quality.step * step_of(scene.mode);
        let SampleSpacing { step_world, is_thin } = SampleSpacing::of(scene, finest, step);
        let stride = |r: usize| if is_thin { 0 } else { stride_log2(view.step_world(r, step), step_world) };
        let strides_log2: Vec<usize> = (0..view.levels.len()).map(stride).collect();
        let coarsest = level_indices.iter().map(|&r| strides_log2[r]).max().unwrap_or(0);
        let recipe = Recipe {
            transfer: scene.transfer.clone(),
            thickness: step_world / view.spacing_world(0),
            coarsest_log2: coarsest,
            skip_empty: scene.quality.skip_empty,
        };
        let tables = blocks.tables.of(recipe, &view.decoding);
        let plan = |block: &Arc<Resident<T>>| {
            let make =
                || SamplingPlan::new(block.cell_stats(), &tables.by_stride[0], scene.quality.skip_empty);
            block.plans.of(&tables.number, make)
        };
        let is_composite = scene.mode == Mode::Composite;
        let plan = |slot: &Option<_>| slot.as_ref().filter(|_| is_composite).map(plan);
        let plans = blocks.all_slots().par_iter().map(plan).collect();
        let lens = Lens::new(&scene.camera, scene.size)?;
        let portion = scene.portion();
        let frusta = frusta(scene, part, &lens, &portion);
        let fade = |slot: &Option<_>| {
            slot.as_deref().map_or(Fade::FALSE, |b| blocks.fade_of(b, &frusta[b.level_index]))
        };
        let visibility = tables.by_stride[0].visibility_of([f32::MIN, f32::MAX]);
        let volume_from_world = view.world_from_volume.inverse();
        let is_shared = part.sub_volume != SubVolume::WHOLE;
        let metric = (scene.is_lit && is_composite && !scene.light.is_flat())
            .then(|| metric_of(scene, &volume_from_world, step_world, finest));
        let spacing = (step_world, is_thin);
        let dimming = Dimming::new(scene, &lens, blocks, &tables, &level_indices, spacing, metric.is_some());
        let counted = if is_shared { blocks.all_slots().len() } else { 0 };
        Ok(Self {
            shows_volume: is_composite && !visibility.is_hidden(),
            lamp: Lamp::new(&volume_from_world),
            metric,
            dimming,
            scene,
            part: *part,
            is_shared,
            finest_level_index: finest,
            worked: std::iter::repeat_with(AtomicU64::default).take(counted).collect(),
            blocks,
            lens,
            volume_from_world,
            level_indices,
            wanted_level_index,
            step_world,
            is_thin,
            strides_log2,
            tables,
            plans,
            fades: blocks.all_slots().par_iter().map(fade).collect(),
            color_by,
            layers: Vec::new(),
            layered: Vec::new(),
            layers_are_alone: false,
            instructions,
        })
    }

    pub(crate) fn shadings(&self) -> Vec<Shading<'_, T>> {
        let nearest = !self.scene.view.meaning.is_continuous();
        let opaque = 1.0 - self.scene.quality.termination;
        let missing = &self.blocks.missing;
        self.tables
            .by_stride
            .iter()
            .map(|table| Shading {
                table,
                missing,
                opaque,
                nearest,
                metric: self.metric,
                dimming: self.metric.and(self.dimming.as_ref()),
                color_by: self.color_by,
                layers: StepLayers::NONE,
            })
            .collect()
    }
}

/// Returns the metric of the light of a scene's volume, for steps of this length and this finest level.
pub(crate) fn metric_of(
    scene: &Scene,
    volume_from_world: &DAffine3,
    step_world: f64,
    finest_level_index: usize,
) -> Metric {
    let voxel_world = scene.view.spacing_world(finest_level_index);
    Metric::new(volume_from_world, [step_world, voxel_world], ENTRIES, scene.light)
}

/// Returns the part of the volume that may be visible, for each level.
fn frusta(scene: &Scene, part: &ImagePart, lens: &Lens, portion: &Portion) -> Vec<Frustum> {
    let frustum = Frustum::new(&scene.view, lens, portion);
    let of_level =
        |level_index| part.sub_volume.restrict(frustum.clone(), SubVolume::margin(scene, level_index));
    (0..scene.view.levels.len()).map(of_level).collect()
}

/// Returns the logarithm of the largest power of two of steps that is no longer than `coarse_world`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn stride_log2(coarse_world: f64, step_world: f64) -> usize {
    const MOST: f64 = 8.0;
    // A little less than exact, so that rounding does not halve a stride.
    (coarse_world / step_world * 1.001).log2().floor().clamp(0.0, MOST) as usize
}
