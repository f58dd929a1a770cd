//! Arrays over that of a scene: their colors at positions in its volume space.
//!
//! Each layer keeps its own blocks and levels; positions are mapped into its volume by one affine map, and
//! its values are looked up there ([`lookup`]), so nothing is resampled. In the volume a layer's color at the
//! middle of each step is composited in front of what the step shows, the last layer first; blocks of the
//! scene's array that a layer may be seen in are sampled completely. On planes layers cover the color of the
//! plane.

pub(crate) mod lookup;
pub(crate) mod plane;

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use array::{Error, Result};
use glam::{DVec3, Vec4};
use view::MAX_LAYERS;

use crate::blocks::snapshot::{AnyBlockTable, each_blocks};
use crate::blocks::voxel::Voxel;
use crate::cpu::color_by::LocalMap;
use crate::cpu::context::CastContext;
use crate::cpu::empty_space::sampling_rate::{BENT, SamplingRates};
use crate::cpu::empty_space::visible_cells::{SamplingPlan, VisibleCells};
use crate::cpu::layers::lookup::ArrayLayerColors;
use crate::cpu::layers::plane::PlaneFrame;
use crate::cpu::packet::size::LaneValues;
use crate::cpu::samples::accumulated::Accumulated;
use crate::simd::{Instructions, LANES, Simd, SimdStep, each_axis};
use crate::{ImagePart, Scene};

/// Colors of one layer at positions in the volume space of the scene's array, premultiplied: red, green, blue
/// and opacity.
pub(crate) trait LayerLookup: fmt::Debug + Send + Sync {
    /// Returns true if something of the layer may be visible in a box.
    fn is_seen_in(&self, low: DVec3, high: DVec3) -> bool;

    /// Returns the colors of steps around the `wanted` positions, in any blocks; 0 for the others. Steps are
    /// `1 << log2` of the picture's long.
    fn step_colors(&self, at: &[DVec3; LANES], wanted: u32, log2: usize) -> [[f32; LANES]; 4];

    /// Returns the layer's block around a position, for repeated lookups; `None` if there is none, or if its
    /// values are blended with others.
    fn block_around(&self, at: DVec3, map: LocalMap) -> Option<LayerBlock>;

    /// Returns the colors of steps around positions in such a block.
    fn step_colors_in_block(
        &self,
        near: &LayerBlock,
        at: &[[f32; LANES]; 3],
        log2: usize,
    ) -> [[f32; LANES]; 4];

    /// Returns the colors of the `wanted` positions on a plane; outlines are at least as wide as a pixel.
    fn plane_colors(
        &self,
        at: &[DVec3; LANES],
        wanted: u32,
        frame: &PlaneFrame,
        pixel_world: &LaneValues,
    ) -> [[f32; LANES]; 4];

    /// True if some value that was looked up is not yet loaded from the wanted level.
    fn is_lacking(&self) -> bool;
}

/// Block of a layer, and the map from local positions of another block into its voxels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerBlock {
    slot: u32,
    /// Columns of the matrix, then the shift.
    map: [[f32; 3]; 4],
    /// Positions in its voxels that it holds: the smallest, inclusive, and the end, exclusive.
    holds: [[f32; 3]; 2],
}

impl LayerBlock {
    /// Maps local positions of the other block into voxels of this one.
    #[inline(always)]
    fn local<S: Simd>(&self, simd: S, at: &[S::F; 3]) -> [S::F; 3] {
        let [x, y, z, shift] = &self.map;
        each_axis!(a => {
            let sum = simd.mul_add(at[0], simd.splat(x[a]), simd.splat(shift[a]));
            let sum = simd.mul_add(at[1], simd.splat(y[a]), sum);
            simd.mul_add(at[2], simd.splat(z[a]), sum)
        })
    }

    /// Returns one bit for each position that the block holds.
    #[inline(always)]
    fn inside<S: Simd>(&self, simd: S, at: &[S::F; 3]) -> u32 {
        let [low, high] = &self.holds;
        let local = self.local(simd, at);
        let is_in = each_axis!(a => {
            simd.and(simd.ge(local[a], simd.splat(low[a])), simd.lt(local[a], simd.splat(high[a])))
        });
        simd.bits(simd.and(simd.and(is_in[0], is_in[1]), is_in[2]))
    }
}

/// Blocks of the last lookups, by layer.
#[derive(Debug, Default)]
pub(crate) struct NearBlocks([Cell<Option<LayerBlock>>; MAX_LAYERS]);

/// Layers that samples are covered with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepLayers<'a> {
    pub(crate) list: &'a [Box<dyn LayerLookup + 'a>],
    /// Logarithm of the steps that each sample represents.
    pub(crate) log2: usize,
    /// True if nothing but the layers is drawn.
    pub(crate) are_alone: bool,
}

impl StepLayers<'_> {
    pub(crate) const NONE: Self = Self { list: &[], log2: 0, are_alone: false };

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// Composites the layers behind accumulated colors, at positions in a block of the scene's array.
pub(crate) struct AddLayers<'a, S: Simd> {
    pub(crate) layers: StepLayers<'a>,
    pub(crate) near: &'a NearBlocks,
    /// Local positions, and the map to them from volume space.
    pub(crate) at: [S::F; 3],
    pub(crate) map: LocalMap,
    pub(crate) seen: S::M,
    pub(crate) accumulated: Accumulated<S>,
}

impl<S: Simd> SimdStep<S> for AddLayers<'_, S> {
    type Output = Accumulated<S>;

    #[inline(always)]
    fn run(self, simd: S) -> Accumulated<S> {
        let Self { layers, near, at, map, seen, mut accumulated } = self;
        let wanted = simd.bits(seen);
        if wanted == 0 {
            return accumulated;
        }
        let stored = [simd.store(at[0]), simd.store(at[1]), simd.store(at[2])];
        for (layer, near) in layers.list.iter().zip(&near.0).rev() {
            let [r, g, b, a] = match near.get() {
                Some(block) if wanted & !block.inside(simd, &at) == 0 => {
                    layer.step_colors_in_block(&block, &stored, layers.log2)
                }
                _ => look(&**layer, near, map, &stored, wanted, layers.log2),
            };
            let colors = [simd.load(&r), simd.load(&g), simd.load(&b), simd.load(&a)];
            let through = simd.sub(simd.splat(1.0), accumulated.rgba[3]);
            accumulated.blend(simd, &colors, simd.select(seen, through, simd.splat(0.0)));
        }
        accumulated
    }
}

/// Looks up positions in any block, and remembers that of the first.
#[inline(never)]
fn look(
    layer: &dyn LayerLookup,
    near: &Cell<Option<LayerBlock>>,
    (scale, origin): LocalMap,
    at: &[[f32; LANES]; 3],
    wanted: u32,
    log2: usize,
) -> [[f32; LANES]; 4] {
    let mut places = [DVec3::ZERO; LANES];
    for (lane, place) in places.iter_mut().enumerate() {
        *place = (DVec3::new(at[0][lane].into(), at[1][lane].into(), at[2][lane].into()) - origin) / scale;
    }
    near.set(layer.block_around(places[wanted.trailing_zeros() as usize], (scale, origin)));
    layer.step_colors(&places, wanted, log2)
}

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
