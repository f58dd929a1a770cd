//! Colors of another array at places in volume space.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use array::{Error, Result};
use glam::DVec3;

use super::{Dye, LocalMap, Near};
use crate::blocks::Blocks;
use crate::blocks::snapshot::{Snapshot, each_blocks};
use crate::blocks::voxel::Voxel;
use crate::cpu::context::CastContext;
use crate::cpu::packet::rays::Region;
use crate::cpu::samples::corners::Grid;
use crate::cpu::samples::lookup::Finds;
use crate::cpu::samples::sample::Find;
use crate::cpu::samples::shading::Shading;
use crate::cpu::table::Table;
use crate::simd::{Instructions, Job, LANES, Simd, each_axis};
use crate::{Part, Scene};

impl Snapshot {
    /// Casts with what dyes the scene, where another array gives its colours; and says how many samples count as lacking because
    /// their colours are still to come: one stands for all.
    pub(crate) fn dyed<R>(
        &self,
        scene: &Scene,
        part: &Part,
        instructions: Instructions,
        cast: impl FnOnce(Option<&dyn Dye>) -> Result<R>,
    ) -> Result<(R, u64)> {
        let Some(tint) = &scene.tint else { return Ok((cast(None)?, 0)) };
        let blocks = self
            .tint
            .as_ref()
            .ok_or_else(|| Error::invalid("expected the blocks of the array that gives the colours"))?;
        let of_tint = scene.of_tint(tint);
        each_blocks!(blocks, blocks => {
            let dye = Dyer::new(&of_tint, part, blocks, instructions)?;
            let drawn = cast(Some(&dye))?;
            Ok((drawn, u64::from(dye.is_lacking())))
        })
    }
}

/// Lookup in the blocks of the array that gives the colors.
pub(crate) struct Dyer<'a, T> {
    context: CastContext<'a, T>,
    is_lacking: AtomicBool,
}

/// Color of a place whose value is still to come.
const UNKNOWN: [f32; 4] = [0.5, 0.5, 0.5, 1.0];

impl<'a, T: Voxel> Dyer<'a, T> {
    /// `scene` is [`Scene::of_tint`].
    pub(crate) fn new(
        scene: &'a Scene,
        part: &Part,
        blocks: &'a Blocks<T>,
        instructions: Instructions,
    ) -> Result<Self> {
        // How fine the drawn array is says nothing of this one.
        let part = Part { finest: None, ..*part };
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
            dye: None,
        }
    }

    /// Outside the volume its outermost voxels go on.
    fn clamped(&self, at: DVec3) -> DVec3 {
        let (low, high) = self.context.scene.view.volume_box();
        at.max(low).min(high)
    }
}

impl<T: Voxel> Dye for Dyer<'_, T> {
    fn colours(&self, at: &[DVec3; LANES], wanted: u32) -> [[f32; LANES]; 4] {
        self.context.instructions.run(Look { dyer: self, at, wanted })
    }

    fn near(&self, at: DVec3, (scale, origin): LocalMap) -> Option<Near> {
        let region = self.context.region(self.clamped(at));
        let slot = region.slot.filter(|&slot| !self.context.fades[slot as usize].any())?;
        let block = self.context.blocks.resident(slot);
        let (own_scale, own_origin) = self.context.scene.view.levels[block.rank].local_map(block.at);
        let scales = own_scale / scale;
        let local = |at: DVec3| (at * scale + origin).as_vec3().to_array();
        Some(Near {
            slot,
            map: [scales, own_origin - origin * scales].map(|part| part.as_vec3().to_array()),
            holds: [local(region.low), local(region.high)],
        })
    }

    fn colours_near(&self, near: &Near, at: &[[f32; LANES]; 3]) -> [[f32; LANES]; 4] {
        self.context.instructions.run(LookNear { dyer: self, near, at })
    }

    fn is_lacking(&self) -> bool {
        self.is_lacking.load(Ordering::Relaxed)
    }
}

impl<T> fmt::Debug for Dyer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dyer")
    }
}

/// One look at sixteen places.
struct Look<'a, 'b, T> {
    dyer: &'a Dyer<'b, T>,
    at: &'a [DVec3; LANES],
    wanted: u32,
}

impl<T: Voxel> Job for Look<'_, '_, T> {
    type Output = [[f32; LANES]; 4];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let Self { dyer, at, wanted } = self;
        let (context, shading) = (&dyer.context, dyer.shading());
        let mut places = *at;
        places.iter_mut().for_each(|at| *at = dyer.clamped(*at));
        let (mut finds, mut unknown) = (Finds::NONE, 0);
        let heard = |region: &Region, rays: u32| {
            if region.is_lacking {
                dyer.is_lacking.store(true, Ordering::Relaxed);
                unknown |= if region.slot.is_none() { rays } else { 0 };
            }
        };
        let mut found = if shading.nearest {
            context.find_labels(&places, wanted, &shading, &mut finds, heard);
            of_labels(&finds, &shading)
        } else {
            context.find_at(simd, &places, wanted, &shading, &mut finds, heard);
            of_places(simd, simd.load(&finds.places), shading.table)
        };
        for lane in (0..LANES).filter(|lane| unknown >> lane & 1 != 0) {
            (0..4).for_each(|part| found[part][lane] = UNKNOWN[part]);
        }
        found
    }
}

/// One look at sixteen places in one block.
struct LookNear<'a, 'b, T> {
    dyer: &'a Dyer<'b, T>,
    near: &'a Near,
    at: &'a [[f32; LANES]; 3],
}

impl<T: Voxel> Job for LookNear<'_, '_, T> {
    type Output = [[f32; LANES]; 4];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let Self { dyer, near: Near { slot, map: [scale, shift], .. }, at } = self;
        let (block, shading) = (dyer.context.blocks.resident(*slot), dyer.shading());
        let at = each_axis!(a => simd.mul_add(simd.load(&at[a]), simd.splat(scale[a]), simd.splat(shift[a])));
        let grid = Grid::new(block);
        if !shading.nearest {
            // Where no slopes are asked for, scales play no part.
            let find = Find { grid, at, scale: [1.0; 3], shading: &shading };
            return of_places(simd, simd.call(find).place, shading.table);
        }
        let mut finds = Finds::NONE;
        for (lane, label) in grid.nearest(simd, &at).into_iter().enumerate() {
            if !shading.missing.is_missing(label) {
                finds.places[lane] = shading.table.scale.place(label.to_f64());
                finds.labels[lane] = label.label();
            }
        }
        of_labels(&finds, &shading)
    }
}

/// The colours of places in the table; nothing where they are NaN.
#[inline(always)]
fn of_places<S: Simd>(simd: S, places: S::F, table: &Table) -> [[f32; LANES]; 4] {
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

/// The colours of labels; nothing where their places are NaN.
#[inline(never)]
fn of_labels<T>(finds: &Finds, shading: &Shading<'_, T>) -> [[f32; LANES]; 4] {
    let mut found = [[0.0; LANES]; 4];
    for lane in (0..LANES).filter(|&lane| !finds.places[lane].is_nan()) {
        let colour = shading.table.label_entry(finds.places[lane], finds.labels[lane]);
        (0..4).for_each(|part| found[part][lane] = colour[part]);
    }
    found
}
