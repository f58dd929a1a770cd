//! Coloring by another array: opacity comes from the values of one array, color from those of another.
//!
//! The other array has blocks, levels and transitions between levels of its own; [`lookup`] finds its values
//! at sixteen positions at once. Voxels of both arrays lie at the same positions, so positions in volume
//! space are the same. A part of the interval between two samples has the color of its middle.

pub(crate) mod lookup;

use std::cell::Cell;
use std::fmt;

use glam::{DVec3, Vec4};

use crate::simd::{LANES, Simd, each_axis};

/// Source of colors at positions in volume space: red, green, blue, and 1 where there is a value, else 0.
pub(crate) trait ColorLookup: fmt::Debug + Send + Sync {
    /// Returns the colors of the `wanted` positions, in any blocks; 0 for the others.
    fn colors_at(&self, at: &[DVec3; LANES], wanted: u32) -> [[f32; LANES]; 4];

    /// Returns the block around a position, for repeated lookups; `None` if there is none, or if its values
    /// are blended with others.
    fn block_around(&self, at: DVec3, map: LocalMap) -> Option<ColorBlock>;

    /// Returns the colors of positions in such a block.
    fn colors_in_block(&self, near: &ColorBlock, at: &[[f32; LANES]; 3]) -> [[f32; LANES]; 4];

    /// Returns the color of one position, in any block; transparent where there is no value.
    fn color_at(&self, at: DVec3) -> Vec4 {
        let [r, g, b, is_there] = self.colors_at(&[at; LANES], 1);
        Vec4::new(r[0], g[0], b[0], 1.0) * is_there[0]
    }

    /// True if some value that was looked up is not yet loaded from the wanted level.
    fn is_lacking(&self) -> bool;
}

/// Returns a premultiplied color of one array in the color of another one at a position.
pub(crate) fn recolored(color_by: Option<&dyn ColorLookup>, color: Vec4, at: DVec3) -> Vec4 {
    match color_by {
        Some(color_by) if color.w > 0.0 => color_by.color_at(at) * color.w,
        _ => color,
    }
}

/// Local positions = the first * positions in volume space + the second.
pub(crate) type LocalMap = (DVec3, DVec3);

/// Block of the array that gives the colors, and the map from local positions of another block into it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColorBlock {
    slot: u32,
    /// Positions in its voxels = the first * local positions + the second.
    map: [[f32; 3]; 2],
    /// Local positions that it holds: the smallest, inclusive, and the end, exclusive.
    holds: [[f32; 3]; 2],
}

/// Positions of the steps of sixteen rays, and the source of their colors.
#[derive(Clone, Copy)]
pub(crate) struct StepColors<'a, S: Simd> {
    pub(crate) color_by: &'a dyn ColorLookup,
    /// Block of the last lookup.
    pub(crate) near: &'a Cell<Option<ColorBlock>>,
    pub(crate) map: LocalMap,
    /// Local positions of their beginnings, and their vectors.
    pub(crate) from: [S::F; 3],
    pub(crate) step: [S::F; 3],
}

impl<S: Simd> StepColors<'_, S> {
    /// Recolors premultiplied colors of `seen` rays by the positions at a share of the interval.
    #[inline(always)]
    pub(crate) fn colors(&self, simd: S, entry: &[S::F; 4], seen: S::M, share: f32) -> [S::F; 4] {
        let zero = simd.splat(0.0);
        let seen = simd.and(seen, simd.lt(zero, entry[3]));
        let wanted = simd.bits(seen);
        if wanted == 0 {
            return [zero; 4];
        }
        let share = simd.splat(share);
        let at = each_axis!(a => simd.mul_add(self.step[a], share, self.from[a]));
        let stored = [simd.store(at[0]), simd.store(at[1]), simd.store(at[2])];
        let [r, g, b, is_there] = match self.near.get() {
            Some(near) if wanted & !inside(simd, &near, &at) == 0 => {
                self.color_by.colors_in_block(&near, &stored)
            }
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

    /// Looks up positions in any block, and remembers that block.
    #[inline(never)]
    fn look(&self, at: &[[f32; LANES]; 3], wanted: u32) -> [[f32; LANES]; 4] {
        let (scale, origin) = self.map;
        let mut places = [DVec3::ZERO; LANES];
        for (lane, place) in places.iter_mut().enumerate() {
            *place =
                (DVec3::new(at[0][lane].into(), at[1][lane].into(), at[2][lane].into()) - origin) / scale;
        }
        self.near.set(self.color_by.block_around(places[wanted.trailing_zeros() as usize], self.map));
        self.color_by.colors_at(&places, wanted)
    }
}

/// Returns one bit for each ray whose local position a block holds.
#[inline(always)]
fn inside<S: Simd>(simd: S, near: &ColorBlock, at: &[S::F; 3]) -> u32 {
    let [low, high] = &near.holds;
    let is_in = each_axis!(a => {
        simd.and(simd.ge(at[a], simd.splat(low[a])), simd.lt(at[a], simd.splat(high[a])))
    });
    simd.bits(simd.and(simd.and(is_in[0], is_in[1]), is_in[2]))
}
