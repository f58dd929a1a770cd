//! Lookup of a layer's colors in its own blocks.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use array::Result;
use glam::{DAffine3, DVec3};

use super::{LayerBlock, LayerLookup, PlaneFrame, StepLayers};
use crate::blocks::BlockTable;
use crate::blocks::voxel::Voxel;
use crate::cpu::color_by::LocalMap;
use crate::cpu::color_by::lookup::{of_labels, of_places};
use crate::cpu::context::CastContext;
use crate::cpu::empty_space::visible_cells::{SamplingPlan, VisibleCells};
use crate::cpu::packet::rays::UniformRegion;
use crate::cpu::packet::size::LaneValues;
use crate::cpu::samples::corners::VoxelGrid;
use crate::cpu::samples::lookup::PlaceValues;
use crate::cpu::samples::sample::TakeSamples;
use crate::cpu::samples::shading::Shading;
use crate::cpu::table::{Recipe, TransferTable};
use crate::scene::layer::ArrayLayer;
use crate::simd::{Instructions, LANES, Simd, SimdJob, each_axis};
use crate::{ImagePart, Scene};

/// Lookup in the blocks of one layer.
pub(crate) struct ArrayLayerColors<'a, T> {
    /// Context of the layer's own scene; its tables are those of steps of the picture.
    context: CastContext<'a, T>,
    /// Volume position of the layer = this * that of the scene's array.
    own_from_base: DAffine3,
    /// Colors on planes, which have no thickness.
    on_planes: TransferTable,
    is_outlined: bool,
    /// Boxes around blocks in which something may be visible, in volume space of the scene's array.
    visible_boxes: Vec<(DVec3, DVec3)>,
    is_lacking: AtomicBool,
}

impl<'a, T: Voxel> ArrayLayerColors<'a, T> {
    /// `own_scene` is that of the layer's own array, see [`Scene::layer_scenes`]; steps have this length, and
    /// up to `1 << coarsest_log2` of them are drawn at once.
    ///
    /// # Errors
    /// `Invalid` for blocks of another view.
    pub(crate) fn new(
        (layer, scene): (&ArrayLayer, &Scene),
        own_scene: &'a Scene,
        part: &ImagePart,
        blocks: &'a BlockTable<T>,
        (step_world, coarsest_log2): (f64, usize),
        instructions: Instructions,
    ) -> Result<Self> {
        // The resolution of the drawn array does not determine that of this one.
        let part = ImagePart { finest: None, ..*part };
        let mut context = CastContext::new(own_scene, &part, blocks, None, instructions)?;
        let decoding = &layer.view.decoding;
        let recipe = Recipe {
            transfer: own_scene.transfer.clone(),
            thickness: step_world / layer.view.spacing_world(0),
            coarsest_log2,
            skip_empty: scene.quality.skip_empty,
        };
        context.tables = blocks.tables.of(recipe, decoding);
        let own_from_base = layer.own_from(&scene.view);
        let mut lookup = Self {
            own_from_base,
            on_planes: TransferTable::new(&layer.on_surfaces(), decoding, 1.0),
            is_outlined: layer.is_outlined,
            visible_boxes: Vec::new(),
            is_lacking: AtomicBool::new(false),
            context,
        };
        lookup.visible_boxes = lookup.boxes_seen(scene.quality.skip_empty);
        Ok(lookup)
    }

    /// Returns the boxes around blocks that may show something, of the wanted level if it is complete.
    fn boxes_seen(&self, skip_empty: bool) -> Vec<(DVec3, DVec3)> {
        let (context, view) = (&self.context, &self.context.scene.view);
        let wanted = context.wanted_level_index;
        let total = view.levels[wanted].grid.iter().product::<u64>();
        let is_complete = context.blocks.count_at(wanted) as u64 == total;
        let base_from_own = self.own_from_base.inverse();
        let (first, last) = view.volume_box();
        let mut boxes = Vec::new();
        for (_, block) in context.blocks.occupied() {
            let is_used = block.level_index == wanted
                || !is_complete && context.level_indices.contains(&block.level_index);
            if !is_used {
                continue;
            }
            let tables = &context.tables;
            let make = || SamplingPlan::new(block.cell_stats(), &tables.by_stride[0], skip_empty);
            if matches!(*block.plans.of(&tables.number, make).field, VisibleCells::Hidden { .. }) {
                continue;
            }
            let level = &view.levels[block.level_index];
            let (low, high) = level.block_box(block.at);
            // Values are interpolated up to a voxel beyond.
            let voxel = level.voxel_size();
            let (low, high) = (low.max(first) - voxel, high.min(last) + voxel);
            boxes.push(mapped_box(&base_from_own, low, high));
        }
        boxes
    }

    fn shading<'s>(&'s self, table: &'s TransferTable) -> Shading<'s, T> {
        Shading {
            table,
            missing: &self.context.blocks.missing,
            opaque: 1.0,
            nearest: !self.context.scene.view.meaning.is_continuous(),
            metric: None,
            dimming: None,
            color_by: None,
            layers: StepLayers::NONE,
        }
    }

    /// Maps positions into the layer's volume; returns them, and one bit for each that lies inside.
    fn own(&self, at: &[DVec3; LANES], wanted: u32) -> ([DVec3; LANES], u32) {
        let (low, high) = self.context.scene.view.volume_box();
        let (mut own, mut inside) = (*at, 0);
        for (lane, own) in own.iter_mut().enumerate() {
            *own = self.own_from_base.transform_point3(*own);
            inside |= u32::from(own.cmpge(low).all() && own.cmplt(high).all()) << lane;
        }
        (own, inside & wanted)
    }

    fn note(&self, region: &UniformRegion) {
        if region.is_lacking {
            self.is_lacking.store(true, Ordering::Relaxed);
        }
    }
}

impl<T: Voxel> LayerLookup for ArrayLayerColors<'_, T> {
    fn is_seen_in(&self, low: DVec3, high: DVec3) -> bool {
        let meets = |(from, to): &(DVec3, DVec3)| from.cmple(high).all() && to.cmpge(low).all();
        self.visible_boxes.iter().any(meets)
    }

    fn step_colors(&self, at: &[DVec3; LANES], wanted: u32, log2: usize) -> [[f32; LANES]; 4] {
        let (at, wanted) = self.own(at, wanted);
        let table = &self.context.tables.by_stride[log2];
        self.context.instructions.run(LayerColorsAnywhere { source: self, table, at: &at, wanted })
    }

    fn block_around(&self, at: DVec3, (scale, origin): LocalMap) -> Option<LayerBlock> {
        let own = self.own_from_base.transform_point3(at);
        let (first, last) = self.context.scene.view.volume_box();
        if !(own.cmpge(first).all() && own.cmplt(last).all()) {
            return None;
        }
        let region = self.context.region(own);
        let is_whole = |&slot: &u32| !self.context.fades[slot as usize].any();
        let slot = region.slot.filter(|_| !region.is_lacking).filter(is_whole)?;
        let block = self.context.blocks.resident(slot);
        let (own_scale, own_origin) = self.context.scene.view.levels[block.level_index].local_map(block.at);
        // Voxels of the block = own_scale * (own_from_base * (local - origin) / scale) + own_origin.
        let map = self.own_from_base.matrix3;
        let columns = [map.x_axis / scale.x, map.y_axis / scale.y, map.z_axis / scale.z];
        let columns = columns.map(|column| column * own_scale);
        let moved = self.own_from_base.transform_point3(-origin / scale) * own_scale + own_origin;
        let [x, y, z] = columns.map(|column| column.as_vec3().to_array());
        let local = |at: DVec3| (at * own_scale + own_origin).as_vec3().to_array();
        Some(LayerBlock {
            slot,
            map: [x, y, z, moved.as_vec3().to_array()],
            holds: [local(region.low.max(first)), local(region.high.min(last))],
        })
    }

    fn step_colors_in_block(
        &self,
        near: &LayerBlock,
        at: &[[f32; LANES]; 3],
        log2: usize,
    ) -> [[f32; LANES]; 4] {
        let table = &self.context.tables.by_stride[log2];
        self.context.instructions.run(LayerColorsInBlock { source: self, table, near, at })
    }

    fn plane_colors(
        &self,
        at: &[DVec3; LANES],
        wanted: u32,
        frame: &PlaneFrame,
        pixel_world: &LaneValues,
    ) -> [[f32; LANES]; 4] {
        let (own, inside) = self.own(at, wanted);
        let table = &self.on_planes;
        let shading = self.shading(table);
        if !(self.is_outlined && shading.nearest) {
            return self.context.instructions.run(LayerColorsAnywhere {
                source: self,
                table,
                at: &own,
                wanted: inside,
            });
        }
        let labels = |at: &[DVec3; LANES], wanted: u32| {
            let mut values = PlaceValues::NONE;
            self.context.find_labels(at, wanted, &shading, &mut values, |region, _| self.note(region));
            values
        };
        let here = labels(&own, inside);
        let mut edges = 0;
        for direction in frame.along {
            let step = self.own_from_base.matrix3 * direction;
            // The distance over which the position changes by one voxel.
            let voxel_world = 1.0 / step.abs().max_element().max(f64::MIN_POSITIVE);
            for sign in [-1.0, 1.0] {
                let mut beside = *at;
                for (lane, beside) in beside.iter_mut().enumerate() {
                    *beside += direction * (sign * voxel_world.max(pixel_world[lane]));
                }
                let (beside, wanted) = self.own(&beside, inside);
                let there = labels(&beside, wanted);
                for lane in (0..LANES).filter(|lane| inside >> lane & 1 != 0) {
                    // Outside of the layer and where it has no value there is another label than any.
                    let is_alike = wanted >> lane & 1 != 0
                        && !there.places[lane].is_nan()
                        && there.labels[lane] == here.labels[lane];
                    edges |= u32::from(!is_alike) << lane;
                }
            }
        }
        let mut colors = of_labels(&here, &shading);
        for lane in (0..LANES).filter(|lane| edges >> lane & 1 == 0) {
            (0..4).for_each(|part| colors[part][lane] = 0.0);
        }
        colors
    }

    fn is_lacking(&self) -> bool {
        self.is_lacking.load(Ordering::Relaxed)
    }
}

impl<T> fmt::Debug for ArrayLayerColors<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ArrayLayerColors")
    }
}

/// Returns the box around a mapped box.
fn mapped_box(map: &DAffine3, low: DVec3, high: DVec3) -> (DVec3, DVec3) {
    let corner = |corner: u32| {
        let pick = |axis: usize| if corner >> axis & 1 == 0 { low[axis] } else { high[axis] };
        map.transform_point3(DVec3::new(pick(0), pick(1), pick(2)))
    };
    (0..8)
        .map(corner)
        .fold((DVec3::INFINITY, DVec3::NEG_INFINITY), |(low, high), at| (low.min(at), high.max(at)))
}

/// Lookup of sixteen positions in the layer's volume.
struct LayerColorsAnywhere<'a, 'b, T> {
    source: &'a ArrayLayerColors<'b, T>,
    table: &'a TransferTable,
    at: &'a [DVec3; LANES],
    wanted: u32,
}

impl<T: Voxel> SimdJob for LayerColorsAnywhere<'_, '_, T> {
    type Output = [[f32; LANES]; 4];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let Self { source, table, at, wanted } = self;
        let (context, shading) = (&source.context, source.shading(table));
        let mut values = PlaceValues::NONE;
        let heard = |region: &UniformRegion, _: u32| source.note(region);
        if shading.nearest {
            context.find_labels(at, wanted, &shading, &mut values, heard);
            of_labels(&values, &shading)
        } else {
            context.find_at(simd, at, wanted, &shading, &mut values, heard);
            of_places(simd, simd.load(&values.places), table)
        }
    }
}

/// Lookup of sixteen positions in one block.
struct LayerColorsInBlock<'a, 'b, T> {
    source: &'a ArrayLayerColors<'b, T>,
    table: &'a TransferTable,
    near: &'a LayerBlock,
    at: &'a [[f32; LANES]; 3],
}

impl<T: Voxel> SimdJob for LayerColorsInBlock<'_, '_, T> {
    type Output = [[f32; LANES]; 4];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let Self { source, table, near, at } = self;
        let (block, shading) = (source.context.blocks.resident(near.slot), source.shading(table));
        let at = near.local(simd, &each_axis!(a => simd.load(&at[a])));
        let grid = VoxelGrid::new(block);
        if !shading.nearest {
            // Scales are not used without slopes.
            let find = TakeSamples { grid, at, scale: [1.0; 3], shading: &shading };
            return of_places(simd, simd.call(find).place, table);
        }
        let mut values = PlaceValues::NONE;
        for (lane, label) in grid.nearest(simd, &at).into_iter().enumerate() {
            if !shading.missing.is_missing(label) {
                values.places[lane] = table.scale.place(label.to_f64());
                values.labels[lane] = label.label();
            }
        }
        of_labels(&values, &shading)
    }
}
