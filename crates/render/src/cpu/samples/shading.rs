//! Parameters of samples: those that all samples of a picture share ([`Shading`]), and the positions of sixteen rays in a block
//! ([`BlockRays`]).

use std::cell::Cell;

use crate::blocks::voxel::MissingValues;
use crate::cpu::color_by::{ColorBlock, ColorLookup, LocalMap, StepColors};
use crate::cpu::layers::StepLayers;
use crate::cpu::samples::dimming::Dimming;
use crate::cpu::table::TransferTable;
use crate::scene::light::Metric;
use crate::simd::{Simd, each_axis};

/// Parameters that all samples of a picture share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shading<'a, T> {
    pub(crate) table: &'a TransferTable,
    pub(crate) missing: &'a MissingValues<T>,
    /// Opacity at which a ray ends.
    pub(crate) opaque: f32,
    pub(crate) nearest: bool,
    /// Lighting by gradients; `None` if colors stay unchanged.
    pub(crate) metric: Option<Metric>,
    /// Dimming of lit samples by their place.
    pub(crate) dimming: Option<&'a Dimming>,
    /// Source of the colors, if another array gives them; `None` if the table does.
    pub(crate) color_by: Option<&'a dyn ColorLookup>,
    /// Layers over the samples.
    pub(crate) layers: StepLayers<'a>,
}

/// Sixteen rays in a block's voxels: sample `i` of each at `start + i * step`, its own from `first` to `end`.
#[derive(Clone, Copy)]
pub(crate) struct BlockRays<S: Simd> {
    pub(crate) start: [S::F; 3],
    pub(crate) step: [S::F; 3],
    /// The ray's sample that has number 0 here.
    pub(crate) base: f64,
    /// Steps from each sample to the next.
    pub(crate) stride: f64,
    pub(crate) first: S::F,
    pub(crate) end: S::F,
    /// The largest `end`.
    pub(crate) count: u32,
    /// Direction as in [`Metric::direction`], and voxels of the block per voxel of level 0; used only for lit
    /// samples.
    pub(crate) direction: [S::F; 3],
    pub(crate) scale: [f32; 3],
    /// Position in the block = the first * position in volume space + the second.
    pub(crate) map: LocalMap,
}

impl<S: Simd> BlockRays<S> {
    #[inline(always)]
    pub(crate) fn at(&self, simd: S, number: S::F) -> [S::F; 3] {
        each_axis!(a => simd.mul_add(self.step[a], number, self.start[a]))
    }

    /// Returns the steps that lead up to these samples, with their colors.
    #[inline(always)]
    pub(crate) fn step_colors<'a>(
        &self,
        simd: S,
        number: S::F,
        color_by: &'a dyn ColorLookup,
        near: &'a Cell<Option<ColorBlock>>,
    ) -> StepColors<'a, S> {
        let from = self.at(simd, simd.sub(number, simd.splat(1.0)));
        StepColors { color_by, near, map: self.map, from, step: self.step }
    }

    /// Returns the first sample at which all of these rays have begun, and the first at which one has ended.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole; a way has fewer than 2^24 samples"
    )]
    pub(crate) fn common(&self, simd: S, rays: S::M) -> [u32; 2] {
        let none = simd.splat(0.0);
        let latest = simd.least(simd.select(rays, simd.sub(none, self.first), none));
        let count = simd.splat(self.count as f32);
        let soonest = simd.least(simd.select(rays, self.end, count));
        [-latest as u32, soonest as u32]
    }

    /// Returns the rays that have this sample.
    #[inline(always)]
    pub(crate) fn has(&self, simd: S, number: S::F) -> S::M {
        simd.and(simd.ge(number, self.first), simd.lt(number, self.end))
    }
}
