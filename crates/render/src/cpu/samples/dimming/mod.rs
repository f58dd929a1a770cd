//! Dimming of lit samples by their place: ambient occlusion, and the depth cue.
//!
//! Along a ray the occlusion is looked up at every few samples and linear in between: it varies slowly. These samples lie at
//! multiples of a power of two, so that the result does not depend on where the drawing of a ray begins.

pub(crate) mod occlusion;

use std::cell::Cell;
use std::sync::Arc;

use glam::{DVec3, Vec3};

use crate::blocks::BlockTable;
use crate::blocks::voxel::Voxel;
use crate::cpu::samples::dimming::occlusion::{OcclusionGrid, cells_from_local};
use crate::cpu::samples::shading::BlockRays;
use crate::cpu::table::TransferTables;
use crate::scene::camera::Lens;
use crate::scene::light::LightShares;
use crate::simd::{Simd, SimdStep, each_axis};
use crate::{Bounds, Scene};

/// Longest distance between two lookups, cells of the longest edge.
const LOOKUP_CELLS: f64 = 1.0;
/// Distance of the middle of a step from the sample at its end, to which the step belongs.
pub(crate) const MIDDLE: f32 = 0.5;
/// Most steps between two lookups; also a divisor of the distance that parallel rays may be moved by on other devices.
const MOST_STEPS: f64 = 64.0;

/// Dimming of all samples of a picture.
#[derive(Clone, Debug)]
pub(crate) struct Dimming {
    pub(crate) occlusion: Option<Arc<OcclusionGrid>>,
    /// Share of the scattered light that full occlusion takes away.
    pub(crate) strength: f32,
    pub(crate) cue: Option<DepthCue>,
    /// Steps between two lookups of the occlusion, a power of two.
    pub(crate) lookup_steps: f64,
}

/// Depth cue: dimming that grows with the distance from the eye.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DepthCue {
    /// Share of the light that is taken away at the far end.
    pub strength: f32,
    /// Share of the way from the near end to the far end at sample 0.
    pub start: f64,
    /// Growth of that share per step.
    pub per_step: f64,
}

impl DepthCue {
    /// Returns the cue for rays from an eye, with steps of `step_world`: it begins at the nearest and ends at the farthest point of
    /// a sphere around what is drawn. `None` if nothing is.
    pub(crate) fn new(
        strength: f32,
        drawn: &Bounds,
        (eye, forward, is_perspective): (DVec3, DVec3, bool),
        step_world: f64,
    ) -> Option<Self> {
        let (center, radius) = (DVec3::from(drawn.center()), drawn.radius());
        let middle = if is_perspective { center.distance(eye) } else { (center - eye).dot(forward) };
        let near = if is_perspective { (middle - radius).max(0.0) } else { middle - radius };
        let length = middle + radius - near;
        let is_some = strength > 0.0 && length > 0.0 && length.is_finite() && near.is_finite();
        is_some.then(|| Self { strength, start: -near / length, per_step: step_world / length })
    }

    /// Returns the factor of the light at a position along a ray, in steps.
    #[expect(clippy::cast_possible_truncation, reason = "colors are f32")]
    pub(crate) fn at(&self, steps: f64) -> f32 {
        let share = steps.mul_add(self.per_step, self.start).clamp(0.0, 1.0);
        1.0 - self.strength * share as f32
    }
}

impl Dimming {
    /// Returns the dimming of a scene's samples; `None` if there is none. Thin volumes have no depth cue.
    pub(crate) fn new<T: Voxel>(
        scene: &Scene,
        lens: &Lens,
        blocks: &BlockTable<T>,
        tables: &TransferTables,
        level_indices: &[usize],
        (step_world, is_thin): (f64, bool),
        is_lit: bool,
    ) -> Option<Self> {
        let LightShares { occlusion: strength, depth_cue, .. } = scene.light;
        let drawn = drawn_bounds(scene);
        let ray = (lens.eye, lens.forward, lens.perspective);
        let cue = if is_thin { None } else { DepthCue::new(depth_cue, &drawn, ray, step_world) };
        let occlusion = (is_lit && strength > 0.0)
            .then(|| OcclusionGrid::of(blocks, tables, level_indices, step_world))
            .flatten();
        let cell_steps = occlusion.as_ref().map_or(1.0, |grid| LOOKUP_CELLS * grid.cell_world / step_world);
        let lookup_steps = cell_steps.log2().floor().exp2().clamp(1.0, MOST_STEPS);
        (occlusion.is_some() || cue.is_some()).then_some(Self { occlusion, strength, cue, lookup_steps })
    }

    /// Returns the factor of the depth cue at a position along a ray, in steps.
    pub(crate) fn cue_at(&self, steps: f64) -> f32 {
        self.cue.as_ref().map_or(1.0, |cue| cue.at(steps))
    }

    /// Returns the factor of the light at a position along a ray, in steps; `position` gives those in volume space.
    #[expect(clippy::cast_possible_truncation, reason = "colors are f32")]
    pub(crate) fn at(&self, sample: f64, position: impl Fn(f64) -> DVec3) -> f32 {
        let occluded = self.occlusion.as_ref().map_or(0.0, |grid| {
            let before = (sample / self.lookup_steps).floor() * self.lookup_steps;
            let share = ((sample - before) / self.lookup_steps) as f32;
            let [from, to] = [before, before + self.lookup_steps].map(|at| grid.at(position(at)));
            (to - from).mul_add(share, from)
        });
        self.strength.mul_add(-occluded, 1.0) * self.cue_at(sample)
    }
}

/// Returns the box of what a scene draws, world space.
fn drawn_bounds(scene: &Scene) -> Bounds {
    let bounds = scene.view.bounds();
    let Some(clip) = scene.clip else { return bounds };
    let axes = |f: fn(f64, f64) -> f64, a: [f64; 3], b: [f64; 3]| [0, 1, 2].map(|axis| f(a[axis], b[axis]));
    let (min, max) = (axes(f64::max, bounds.min, clip.min), axes(f64::min, bounds.max, clip.max));
    if (0..3).all(|axis| min[axis] < max[axis]) { Bounds { min, max } } else { bounds }
}

/// Occlusion at two lookups along sixteen rays, the first one's number, and the difference of the second.
#[derive(Clone, Copy)]
pub(crate) struct Lookups<S: Simd> {
    first: f32,
    from: S::F,
    rise: S::F,
}

/// Dimming of the samples of one block.
#[derive(Clone, Copy)]
pub(crate) struct BlockDimming<'a, S: Simd> {
    dimming: &'a Dimming,
    /// Position between the centers of cells of the occlusion = factor * position in the block + shift.
    cells: [Vec3; 2],
    /// Samples between two lookups, and from a lookup to sample 0.
    every: f32,
    offset: f32,
    /// Share of the depth cue at sample 0, and its growth per sample.
    cue: [f32; 2],
    near: &'a Cell<Option<Lookups<S>>>,
}

impl<'a, S: Simd> BlockDimming<'a, S> {
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "numbers of samples in a block are small")]
    pub(crate) fn new(
        dimming: &'a Dimming,
        block_rays: &BlockRays<S>,
        near: &'a Cell<Option<Lookups<S>>>,
    ) -> Self {
        let BlockRays { base, stride, map, .. } = *block_rays;
        let every = (dimming.lookup_steps / stride).max(1.0);
        let (start, per_step) = match &dimming.cue {
            Some(cue) => (cue.start, cue.per_step),
            None => (0.0, 0.0),
        };
        let middle = base + (stride - 1.0) / 2.0;
        Self {
            dimming,
            cells: match &dimming.occlusion {
                Some(grid) => cells_from_local(grid, map),
                None => [Vec3::ZERO; 2],
            },
            every: every as f32,
            offset: (base / stride).rem_euclid(every) as f32,
            cue: [(middle * per_step + start) as f32, (stride * per_step) as f32],
            near,
        }
    }

    /// Returns the factor of the light on the way to the sample of this number, the same for all rays.
    #[inline(always)]
    pub(crate) fn at(&self, simd: S, number: u32, block_rays: &BlockRays<S>) -> S::F {
        let number = number as f32 - MIDDLE;
        let first = ((number + self.offset) / self.every).floor() * self.every - self.offset;
        let lookups = match self.near.get() {
            Some(lookups) if lookups.first == first => lookups,
            _ => {
                let (from, rise) = simd.call(LookUp { dimming: *self, first: simd.splat(first), block_rays });
                let lookups = Lookups { first, from, rise };
                self.near.set(Some(lookups));
                lookups
            }
        };
        let share = simd.splat((number - first) / self.every);
        let occluded = simd.mul_add(lookups.rise, share, lookups.from);
        self.factor(simd, occluded, simd.splat(number))
    }

    /// Returns the factor of the light on the way to samples of each ray's own number.
    #[inline(always)]
    pub(crate) fn at_own(&self, simd: S, numbers: S::F, block_rays: &BlockRays<S>) -> S::F {
        let numbers = simd.sub(numbers, simd.splat(MIDDLE));
        let places = simd.mul(simd.add(numbers, simd.splat(self.offset)), simd.splat(1.0 / self.every));
        let whole = simd.to_float(simd.truncate(simd.max(places, simd.splat(0.0))));
        let first = simd.sub(simd.mul(whole, simd.splat(self.every)), simd.splat(self.offset));
        let (from, rise) = simd.call(LookUp { dimming: *self, first, block_rays });
        let occluded = simd.mul_add(rise, simd.sub(places, whole), from);
        self.factor(simd, occluded, numbers)
    }

    #[inline(always)]
    fn factor(&self, simd: S, occluded: S::F, numbers: S::F) -> S::F {
        let one = simd.splat(1.0);
        let occlusion = simd.mul_add(occluded, simd.splat(-self.dimming.strength), one);
        let Some(cue) = &self.dimming.cue else { return occlusion };
        let share = simd.mul_add(numbers, simd.splat(self.cue[1]), simd.splat(self.cue[0]));
        let share = simd.min(simd.max(share, simd.splat(0.0)), one);
        simd.mul(occlusion, simd.mul_add(share, simd.splat(-cue.strength), one))
    }
}

/// Looks up the occlusion at samples of these numbers, and its rise to the next lookups.
struct LookUp<'a, 'b, S: Simd> {
    dimming: BlockDimming<'a, S>,
    first: S::F,
    block_rays: &'b BlockRays<S>,
}

impl<S: Simd> SimdStep<S> for LookUp<'_, '_, S> {
    type Output = (S::F, S::F);

    #[inline(always)]
    fn run(self, simd: S) -> (S::F, S::F) {
        let Self { dimming: BlockDimming { dimming, cells: [factor, shift], every, .. }, first, block_rays } =
            self;
        let Some(grid) = &dimming.occlusion else { return (simd.splat(0.0), simd.splat(0.0)) };
        let at = block_rays.at(simd, first);
        let next = block_rays.at(simd, simd.add(first, simd.splat(every)));
        let from = grid
            .around(simd, &each_axis!(a => simd.mul_add(at[a], simd.splat(factor[a]), simd.splat(shift[a]))));
        let to = grid.around(
            simd,
            &each_axis!(a => simd.mul_add(next[a], simd.splat(factor[a]), simd.splat(shift[a]))),
        );
        (from, simd.sub(to, from))
    }
}
