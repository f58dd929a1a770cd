//! Lookup of another array's colors at positions in volume space.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use array::{Error, Result};
use glam::DVec3;

use super::{ColorBlock, ColorLookup, LocalMap};
use crate::blocks::BlockTable;
use crate::blocks::snapshot::{Snapshot, each_blocks};
use crate::blocks::voxel::Voxel;
use crate::cpu::context::CastContext;
use crate::cpu::layers::StepLayers;
use crate::cpu::packet::rays::UniformRegion;
use crate::cpu::samples::corners::VoxelGrid;
use crate::cpu::samples::lookup::PlaceValues;
use crate::cpu::samples::sample::TakeSamples;
use crate::cpu::samples::shading::Shading;
use crate::cpu::table::TransferTable;
use crate::simd::{Instructions, LANES, Simd, SimdJob, each_axis};
use crate::{ImagePart, Scene};

impl Snapshot {
    /// Casts with the colors of another array, if the scene has them, and returns the number of samples that
    /// count as missing because their colors are not yet loaded: one represents all.
    pub(crate) fn with_colors<R>(
        &self,
        scene: &Scene,
        part: &ImagePart,
        instructions: Instructions,
        cast: impl FnOnce(Option<&dyn ColorLookup>) -> Result<R>,
    ) -> Result<(R, u64)> {
        let Some(color_by) = &scene.color_by else { return Ok((cast(None)?, 0)) };
        let blocks = self
            .color_by
            .as_ref()
            .ok_or_else(|| Error::invalid("expected the blocks of the array that gives the colors"))?;
        let color_scene = scene.color_scene(color_by);
        each_blocks!(blocks, blocks => {
            let colors = ArrayColors::new(&color_scene, part, blocks, instructions)?;
            let drawn = cast(Some(&colors))?;
            Ok((drawn, u64::from(colors.is_lacking())))
        })
    }
}

/// Lookup in the blocks of the array that gives the colors.
pub(crate) struct ArrayColors<'a, T> {
    context: CastContext<'a, T>,
    is_lacking: AtomicBool,
}

/// Color of a position whose value is not yet loaded.
const UNKNOWN: [f32; 4] = [0.5, 0.5, 0.5, 1.0];

impl<'a, T: Voxel> ArrayColors<'a, T> {
    /// `scene` is [`Scene::color_scene`].
    pub(crate) fn new(
        scene: &'a Scene,
        part: &ImagePart,
        blocks: &'a BlockTable<T>,
        instructions: Instructions,
    ) -> Result<Self> {
        // The resolution of the drawn array does not determine that of this one.
        let part = ImagePart { finest: None, ..*part };
        let context = CastContext::new(scene, &part, blocks, None, instructions)?;
        Ok(Self { context, is_lacking: AtomicBool::new(false) })
    }

    fn shading(&self) -> Shading<'_, T> {
        Shading {
            table: &self.context.tables.by_stride[0],
            missing: &self.context.blocks.missing,
            opaque: 1.0,
            nearest: !self.context.scene.view.meaning.is_continuous(),
            metric: None,
            dimming: None,
            color_by: None,
            layers: StepLayers::NONE,
        }
    }

    /// Outside the volume its outermost voxels are repeated.
    fn clamped(&self, at: DVec3) -> DVec3 {
        let (low, high) = self.context.scene.view.volume_box();
        at.max(low).min(high)
    }
}

impl<T: Voxel> ColorLookup for ArrayColors<'_, T> {
    fn colors_at(&self, at: &[DVec3; LANES], wanted: u32) -> [[f32; LANES]; 4] {
        self.context.instructions.run(ColorsAnywhere { source: self, at, wanted })
    }

    fn block_around(&self, at: DVec3, (scale, origin): LocalMap) -> Option<ColorBlock> {
        let region = self.context.region(self.clamped(at));
        let slot = region.slot.filter(|&slot| !self.context.fades[slot as usize].any())?;
        let block = self.context.blocks.resident(slot);
        let (own_scale, own_origin) = self.context.scene.view.levels[block.level_index].local_map(block.at);
        let scales = own_scale / scale;
        let local = |at: DVec3| (at * scale + origin).as_vec3().to_array();
        Some(ColorBlock {
            slot,
            map: [scales, own_origin - origin * scales].map(|part| part.as_vec3().to_array()),
            holds: [local(region.low), local(region.high)],
        })
    }

    fn colors_in_block(&self, near: &ColorBlock, at: &[[f32; LANES]; 3]) -> [[f32; LANES]; 4] {
        self.context.instructions.run(ColorsInBlock { source: self, near, at })
    }

    fn is_lacking(&self) -> bool {
        self.is_lacking.load(Ordering::Relaxed)
    }
}

impl<T> fmt::Debug for ArrayColors<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ArrayColors")
    }
}

/// Lookup of sixteen positions.
struct ColorsAnywhere<'a, 'b, T> {
    source: &'a ArrayColors<'b, T>,
    at: &'a [DVec3; LANES],
    wanted: u32,
}

impl<T: Voxel> SimdJob for ColorsAnywhere<'_, '_, T> {
    type Output = [[f32; LANES]; 4];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let Self { source, at, wanted } = self;
        let (context, shading) = (&source.context, source.shading());
        let mut places = *at;
        places.iter_mut().for_each(|at| *at = source.clamped(*at));
        let (mut values, mut unknown) = (PlaceValues::NONE, 0);
        let heard = |region: &UniformRegion, rays: u32| {
            if region.is_lacking {
                source.is_lacking.store(true, Ordering::Relaxed);
                unknown |= if region.slot.is_none() { rays } else { 0 };
            }
        };
        let mut found = if shading.nearest {
            context.find_labels(&places, wanted, &shading, &mut values, heard);
            of_labels(&values, &shading)
        } else {
            context.find_at(simd, &places, wanted, &shading, &mut values, heard);
            of_places(simd, simd.load(&values.places), shading.table)
        };
        for lane in (0..LANES).filter(|lane| unknown >> lane & 1 != 0) {
            (0..4).for_each(|part| found[part][lane] = UNKNOWN[part]);
        }
        found
    }
}

/// Lookup of sixteen positions in one block.
struct ColorsInBlock<'a, 'b, T> {
    source: &'a ArrayColors<'b, T>,
    near: &'a ColorBlock,
    at: &'a [[f32; LANES]; 3],
}

impl<T: Voxel> SimdJob for ColorsInBlock<'_, '_, T> {
    type Output = [[f32; LANES]; 4];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let Self { source, near: ColorBlock { slot, map: [scale, shift], .. }, at } = self;
        let (block, shading) = (source.context.blocks.resident(*slot), source.shading());
        let at = each_axis!(a => simd.mul_add(simd.load(&at[a]), simd.splat(scale[a]), simd.splat(shift[a])));
        let grid = VoxelGrid::new(block);
        if !shading.nearest {
            // Scales are not used without slopes.
            let find = TakeSamples { grid, at, scale: [1.0; 3], shading: &shading };
            return of_places(simd, simd.call(find).place, shading.table);
        }
        let mut values = PlaceValues::NONE;
        for (lane, label) in grid.nearest(simd, &at).into_iter().enumerate() {
            if !shading.missing.is_missing(label) {
                values.places[lane] = shading.table.scale.place(label.to_f64());
                values.labels[lane] = label.label();
            }
        }
        of_labels(&values, &shading)
    }
}

/// Returns the colors of places in the table; transparent where they are NaN.
#[inline(always)]
pub(crate) fn of_places<S: Simd>(simd: S, places: S::F, table: &TransferTable) -> [[f32; LANES]; 4] {
    let entries = &table.parts[0];
    let entry = entries.at(simd, places);
    // All are opaque.
    let unit = simd.select(simd.eq(places, places), simd.splat(entries.unit), simd.splat(0.0));
    [
        simd.store(simd.mul(entry[0], unit)),
        simd.store(simd.mul(entry[1], unit)),
        simd.store(simd.mul(entry[2], unit)),
        simd.store(simd.mul(entry[3], unit)),
    ]
}

/// Returns the colors of labels; transparent where their places are NaN.
#[inline(never)]
pub(crate) fn of_labels<T>(values: &PlaceValues, shading: &Shading<'_, T>) -> [[f32; LANES]; 4] {
    let mut found = [[0.0; LANES]; 4];
    for lane in (0..LANES).filter(|&lane| !values.places[lane].is_nan()) {
        let color = shading.table.label_entry(values.places[lane], values.labels[lane]);
        (0..4).for_each(|part| found[part][lane] = color[part]);
    }
    found
}
