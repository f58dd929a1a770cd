//! Colours by another array: what is seen is one array's, in which colours another one's values say.
//!
//! The other array has blocks, levels and transitions between levels of its own. Its values are looked up by a second caster, which
//! draws nothing: sixteen places at once, wherever they lie. Voxels of both lie at the same places, so positions in volume space
//! are the same. Between two samples a part of the way takes the colour in its middle.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use array::{Error, Result};
use glam::{DVec3, Vec4};

use crate::blocks::Blocks;
use crate::blocks::voxel::Voxel;
use crate::cpu::caster::Caster;
use crate::cpu::cut::Finds;
use crate::cpu::rays::Region;
use crate::cpu::samples::corners::Grid;
use crate::cpu::samples::sample::Find;
use crate::cpu::samples::shading::Shading;
use crate::cpu::table::Table;
use crate::simd::{Instructions, Job, LANES, Simd, each_axis};
use crate::{Mode, OpacityPoint, Part, Quality, Scene, TransferFunction, VolumeView, WireBoxes};

/// Which array gives the colours of a picture, and which colours. Where it has no value nothing is seen.
#[derive(Clone, Debug)]
pub struct Tint {
    /// The array, seen as a volume whose voxels lie where those of the scene's view do.
    pub view: Arc<VolumeView>,
    /// Name of the colour map; see [`colour_map_names`](crate::colour_map_names).
    pub colour_map: String,
    /// Decoded values at the ends of the colour map, the low one first.
    pub range: [f64; 2],
    /// Number of the finest level to take, as [`Demand::wanted`](crate::Demand::wanted) says.
    pub finest_level: u8,
}

impl Tint {
    /// The colours as a transfer function, of which opacity plays no part.
    pub(crate) fn transfer(&self) -> TransferFunction {
        TransferFunction {
            colour_map: self.colour_map.clone(),
            reversed: false,
            range: self.range,
            opacity: vec![OpacityPoint { value: self.range[0], opacity: 1.0 }],
        }
    }

    /// Checks that it can colour a scene of a view.
    ///
    /// # Errors
    /// `Invalid`, naming what is wrong.
    pub fn check_of(&self, view: &VolumeView, mode: Mode) -> Result<()> {
        self.transfer().check()?;
        self.view.rank_of(self.finest_level)?;
        if mode.is_extreme() {
            return Err(Error::invalid(
                "expected no other array's colours for extreme values, which show their own",
            ));
        }
        let place = |view: &VolumeView| (view.levels[0].shape, view.world_from_volume);
        if place(view) != place(&self.view) {
            return Err(Error::invalid(format!(
                "expected colours by an array whose voxels lie where the scene's do, found {:?} and {:?} voxels, or other places",
                self.view.levels[0].shape, view.levels[0].shape
            )));
        }
        Ok(())
    }
}

/// Source of colors at places in volume space: red, green, blue, and 1 where there is a value, else 0.
pub(crate) trait Dye: fmt::Debug + Send + Sync {
    /// Returns the colors of the `wanted` places, in whichever blocks they lie; 0 for the others.
    fn colours(&self, at: &[DVec3; LANES], wanted: u32) -> [[f32; LANES]; 4];

    /// The block around a place, for those who stay there; `None` where there is none, or its values lead over to others.
    fn near(&self, at: DVec3, map: LocalMap) -> Option<Near>;

    /// Returns the colors of places in such a block.
    fn colours_near(&self, near: &Near, at: &[[f32; LANES]; 3]) -> [[f32; LANES]; 4];

    /// Returns the color of one place, in whichever block it lies; transparent where there is no value.
    fn colour(&self, at: DVec3) -> Vec4 {
        let [r, g, b, is_there] = self.colours(&[at; LANES], 1);
        Vec4::new(r[0], g[0], b[0], 1.0) * is_there[0]
    }

    /// Some value that was asked for is still to come from the level that is wanted.
    fn is_lacking(&self) -> bool;
}

/// A premultiplied colour of one array as another one dyes it at a place.
pub(crate) fn dyed(dye: Option<&dyn Dye>, colour: Vec4, at: DVec3) -> Vec4 {
    match dye {
        Some(dye) if colour.w > 0.0 => dye.colour(at) * colour.w,
        _ => colour,
    }
}

/// Local positions = the first * positions in volume space + the second.
pub(crate) type LocalMap = (DVec3, DVec3);

/// A block of the array that gives the colours: where local positions of somebody else lie in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near {
    slot: u32,
    /// Positions in its voxels = the first * local positions + the second.
    map: [[f32; 3]; 2],
    /// Local positions that it holds: the smallest, and the first that it does not.
    holds: [[f32; 3]; 2],
}

/// Positions of the steps of sixteen rays, and the source of their colors.
#[derive(Clone, Copy)]
pub(crate) struct Dyed<'a, S: Simd> {
    pub(crate) dye: &'a dyn Dye,
    /// The block that the last ones lay in.
    pub(crate) near: &'a Cell<Option<Near>>,
    pub(crate) map: LocalMap,
    /// Local positions where they begin, and their ways.
    pub(crate) from: [S::F; 3],
    pub(crate) way: [S::F; 3],
}

impl<S: Simd> Dyed<'_, S> {
    /// Premultiplied colours of `seen` rays in the colours of the places that lie such a share of the way behind its beginning.
    #[inline(always)]
    pub(crate) fn colours(&self, simd: S, entry: &[S::F; 4], seen: S::M, share: f32) -> [S::F; 4] {
        let zero = simd.splat(0.0);
        let seen = simd.and(seen, simd.lt(zero, entry[3]));
        let wanted = simd.bits(seen);
        if wanted == 0 {
            return [zero; 4];
        }
        let share = simd.splat(share);
        let at = each_axis!(a => simd.mul_add(self.way[a], share, self.from[a]));
        let stored = [simd.store(at[0]), simd.store(at[1]), simd.store(at[2])];
        let [r, g, b, is_there] = match self.near.get() {
            Some(near) if wanted & !inside(simd, &near, &at) == 0 => self.dye.colours_near(&near, &stored),
            _ => self.look(&stored, wanted),
        };
        let opacity = simd.select(seen, simd.mul(entry[3], simd.load(&is_there)), zero);
        [
            simd.mul(simd.load(&r), opacity),
            simd.mul(simd.load(&g), opacity),
            simd.mul(simd.load(&b), opacity),
            opacity,
        ]
    }

    /// Wherever they are, and remembers where that is.
    #[inline(never)]
    fn look(&self, at: &[[f32; LANES]; 3], wanted: u32) -> [[f32; LANES]; 4] {
        let (scale, origin) = self.map;
        let mut places = [DVec3::ZERO; LANES];
        for (lane, place) in places.iter_mut().enumerate() {
            *place =
                (DVec3::new(at[0][lane].into(), at[1][lane].into(), at[2][lane].into()) - origin) / scale;
        }
        self.near.set(self.dye.near(places[wanted.trailing_zeros() as usize], self.map));
        self.dye.colours(&places, wanted)
    }
}

/// One bit for each ray whose local position a block holds.
#[inline(always)]
fn inside<S: Simd>(simd: S, near: &Near, at: &[S::F; 3]) -> u32 {
    let [low, high] = &near.holds;
    let is_in = each_axis!(a => {
        simd.and(simd.ge(at[a], simd.splat(low[a])), simd.lt(at[a], simd.splat(high[a])))
    });
    simd.bits(simd.and(simd.and(is_in[0], is_in[1]), is_in[2]))
}

/// A caster that looks values up; see the module.
pub(crate) struct Dyer<'a, T> {
    caster: Caster<'a, T>,
    is_lacking: AtomicBool,
}

/// Color of a place whose value is still to come.
const UNKNOWN: [f32; 4] = [0.5, 0.5, 0.5, 1.0];

impl<'a, T: Voxel> Dyer<'a, T> {
    /// `scene` is [`Tint::scene`].
    pub(crate) fn new(
        scene: &'a Scene,
        part: &Part,
        blocks: &'a Blocks<T>,
        instructions: Instructions,
    ) -> Result<Self> {
        // How fine the drawn array is says nothing of this one.
        let part = Part { finest: None, ..*part };
        let caster = Caster::new(scene, &part, blocks, None, instructions)?;
        Ok(Self { caster, is_lacking: AtomicBool::new(false) })
    }

    fn shading(&self) -> Shading<'_, T> {
        Shading {
            table: &self.caster.tables.by_stride[0],
            missing: &self.caster.blocks.missing,
            opaque: 1.0,
            nearest: !self.caster.scene.view.meaning.is_continuous(),
            metric: None,
            dye: None,
        }
    }

    /// Outside the volume its outermost voxels go on.
    fn clamped(&self, at: DVec3) -> DVec3 {
        let (low, high) = self.caster.scene.view.volume_box();
        at.max(low).min(high)
    }
}

impl<T: Voxel> Dye for Dyer<'_, T> {
    fn colours(&self, at: &[DVec3; LANES], wanted: u32) -> [[f32; LANES]; 4] {
        self.caster.instructions.run(Look { dyer: self, at, wanted })
    }

    fn near(&self, at: DVec3, (scale, origin): LocalMap) -> Option<Near> {
        let region = self.caster.region(self.clamped(at));
        let slot = region.slot.filter(|&slot| !self.caster.fades[slot as usize].any())?;
        let block = self.caster.blocks.resident(slot);
        let (own_scale, own_origin) = self.caster.scene.view.levels[block.rank].local_map(block.at);
        let scales = own_scale / scale;
        let local = |at: DVec3| (at * scale + origin).as_vec3().to_array();
        Some(Near {
            slot,
            map: [scales, own_origin - origin * scales].map(|part| part.as_vec3().to_array()),
            holds: [local(region.low), local(region.high)],
        })
    }

    fn colours_near(&self, near: &Near, at: &[[f32; LANES]; 3]) -> [[f32; LANES]; 4] {
        self.caster.instructions.run(LookNear { dyer: self, near, at })
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
        let (caster, shading) = (&dyer.caster, dyer.shading());
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
            caster.find_labels(&places, wanted, &shading, &mut finds, heard);
            of_labels(&finds, &shading)
        } else {
            caster.find_at(simd, &places, wanted, &shading, &mut finds, heard);
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
        let (block, shading) = (dyer.caster.blocks.resident(*slot), dyer.shading());
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
