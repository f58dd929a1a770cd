//! Layers of a picture, prepared from the blocks of their arrays; and where they may be seen.

use std::sync::Arc;

use array::{Error, Result};
use glam::{DVec3, Vec4};

use super::lookup::ArrayLayerColors;
use super::{LayerLookup, StepLayers};
use crate::blocks::snapshot::{AnyBlockTable, each_blocks};
use crate::blocks::voxel::Voxel;
use crate::cpu::context::CastContext;
use crate::cpu::empty_space::sampling_rate::{BENT, SamplingRates};
use crate::cpu::empty_space::visible_cells::{SamplingPlan, VisibleCells};
use crate::simd::{Instructions, LANES};
use crate::{ImagePart, Scene};

/// Scenes and blocks of the layers of a picture; see [`Scene::layer_scenes`].
#[derive(Clone, Copy, Default)]
pub(crate) struct LayerInput<'a> {
    pub(crate) scenes: &'a [Scene],
    pub(crate) blocks: &'a [AnyBlockTable],
}

impl<'a> LayerInput<'a> {
    /// Prepares the layers of a scene for steps of this length, up to `1 << coarsest_log2` of them at once.
    ///
    /// # Errors
    /// `Invalid` for blocks of other views.
    fn prepared(
        &self,
        scene: &Scene,
        part: &ImagePart,
        (step_world, coarsest_log2): (f64, usize),
        instructions: Instructions,
    ) -> Result<Vec<Box<dyn LayerLookup + 'a>>> {
        if self.blocks.len() != self.scenes.len() || self.scenes.len() != scene.layers.len() {
            return Err(Error::invalid("expected the blocks of each layer"));
        }
        let each = scene.layers.iter().zip(self.scenes).zip(self.blocks);
        each.map(|((layer, own_scene), blocks)| {
            let steps = (step_world, coarsest_log2);
            Ok(each_blocks!(blocks, blocks => {
                Box::new(ArrayLayerColors::new((layer, scene), own_scene, part, blocks, steps, instructions)?)
                    as Box<dyn LayerLookup + 'a>
            }))
        })
        .collect()
    }

    /// Prepares the layers of a scene for single positions, over steps of this length.
    ///
    /// # Errors
    /// `Invalid` for blocks of other views.
    pub(crate) fn lookups(&self, scene: &Scene, step_world: f64) -> Result<Vec<Box<dyn LayerLookup + 'a>>> {
        self.prepared(scene, &ImagePart::whole(scene), (step_world, 0), Instructions::Scalar)
    }
}

impl<'a, T: Voxel> CastContext<'a, T> {
    /// Adds the layers of the scene, and plans to sample all blocks in which one may be seen.
    ///
    /// # Errors
    /// `Invalid` for blocks of other views.
    pub(crate) fn add_layers(&mut self, input: LayerInput<'a>, part: &ImagePart) -> Result<()> {
        if input.scenes.is_empty() {
            return Ok(());
        }
        let coarsest = self.tables.by_stride.len() - 1;
        self.layers = input.prepared(self.scene, part, (self.step_world, coarsest), self.instructions)?;
        self.layers_are_alone = self.scene.mode.is_extreme();
        let is_drawn = self.layers_are_alone || self.scene.mode == view::Mode::Composite;
        if is_drawn && self.flat_axis().is_none() {
            self.plan_layers();
        }
        Ok(())
    }

    fn plan_layers(&mut self) {
        let all = Arc::new(SamplingPlan {
            field: Arc::new(VisibleCells::Full { bent: true }),
            rates: SamplingRates::Even(BENT),
        });
        let (first, last) = self.scene.view.volume_box();
        self.layered = vec![false; self.plans.len()];
        let blocks = self.blocks;
        for (slot, block) in blocks.occupied() {
            let (low, high) = self.scene.view.levels[block.level_index].block_box(block.at);
            let (low, high) = (low.max(first), high.min(last));
            if self.layers.iter().any(|layer| layer.is_seen_in(low, high)) {
                self.layered[slot as usize] = true;
                self.plans[slot as usize] = Some(Arc::clone(&all));
                self.shows_volume = true;
            }
        }
    }

    /// Returns the layers for samples of a block that represent `1 << log2` steps; none if no layer is seen
    /// in it.
    #[inline(always)]
    pub(crate) fn layers_in(&self, slot: u32, log2: usize) -> StepLayers<'_> {
        match self.layered.get(slot as usize) {
            Some(true) => StepLayers { list: &self.layers, log2, are_alone: self.layers_are_alone },
            _ => StepLayers::NONE,
        }
    }

    /// Returns the color of one step of the picture around a position: all layers, one over the other.
    #[inline(never)]
    pub(crate) fn layers_at(&self, layers: &StepLayers<'_>, at: DVec3) -> Vec4 {
        let mut color = Vec4::ZERO;
        for layer in layers.list.iter().rev() {
            let own = layer.step_colors(&[at; LANES], 1, layers.log2).map(|part| part[0]);
            color += Vec4::from_array(own) * (1.0 - color.w);
        }
        color
    }
}
