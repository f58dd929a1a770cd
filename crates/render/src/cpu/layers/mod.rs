//! Arrays over that of a scene: their colors at positions in its volume space.
//!
//! Each layer keeps its own blocks and levels; positions are mapped into its volume by one affine map, and
//! its values are looked up there ([`lookup`]), so nothing is resampled. In the volume a layer's color at the
//! middle of each step is composited in front of what the step shows, the last layer first; blocks of the
//! scene's array that a layer may be seen in are sampled completely. On planes layers cover the color of the
//! plane.

pub(crate) mod add;
mod lookup;
mod plane;
pub(crate) mod prepare;

use std::cell::Cell;
use std::fmt;

use array::Error;
use glam::DVec3;
use view::MAX_LAYERS;

use crate::cpu::color_by::LocalMap;
use crate::cpu::packet::size::LaneValues;
use crate::simd::{LANES, Simd, each_axis};
use crate::{Slice, VolumeView};

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

/// Directions along a plane, perpendicular to each other: changes of the volume position over one world unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaneFrame {
    pub(crate) along: [DVec3; 2],
}

impl PlaneFrame {
    pub(crate) fn of(slice: &Slice, view: &VolumeView) -> Result<Self, Error> {
        let map = view.world_from_volume.matrix3;
        let (normal, _) = slice.plane();
        let no_plane = || Error::invalid("expected a plane with a direction");
        let across = (map.inverse().transpose() * normal).try_normalize().ok_or_else(no_plane)?;
        // The axis that lies most in the plane gives the first direction.
        let axes = [map.x_axis, map.y_axis, map.z_axis].map(DVec3::normalize_or_zero);
        let least = axes.into_iter().min_by(|a, b| a.dot(across).abs().total_cmp(&b.dot(across).abs()));
        let first = least.unwrap_or(DVec3::X);
        let first = (first - across * first.dot(across)).try_normalize().ok_or_else(no_plane)?;
        let volume_from_world = map.inverse();
        Ok(Self { along: [first, across.cross(first)].map(|direction| volume_from_world * direction) })
    }
}
