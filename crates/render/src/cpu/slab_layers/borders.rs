//! Positions of slabs, and the slabs that the samples of rays lie in.
//!
//! The distance of a position along the slabs' normal is a linear function of the position, so along a ray it
//! is a linear function of the sample's number. Sixteen neighboring rays use the function of their mean. They
//! differ only in samples beside a border, which may belong to either slab.

use glam::{DAffine3, DVec3};

use crate::cpu::packet::rays::PacketRays;
use crate::simd::LANES;

/// Slabs in depth order.
#[derive(Clone, Debug)]
pub(crate) struct SlabBorders {
    /// Borders of the slabs: the start of each, and the end of the last; distance along the normal, world
    /// units. Ascending.
    pub(crate) borders: Vec<f64>,
    /// Slabs that are drawn behind the one in which a ray becomes opaque.
    pub(crate) behind: u32,
    /// Opacity at which a ray ends.
    pub(crate) opaque: f32,
    /// Distance of a volume position: `slope * position + offset`.
    slope: DVec3,
    offset: f64,
}

/// The slabs along sixteen rays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlabPath<'a> {
    /// Distance of sample 0, and the increase to the next one.
    pub(super) at: f64,
    pub(super) per_sample: f64,
    pub(super) borders: &'a [f64],
}

impl SlabBorders {
    /// `normal` has unit length.
    pub(crate) fn new(
        world_from_volume: &DAffine3,
        normal: DVec3,
        borders: Vec<f64>,
        behind: u32,
        opaque: f32,
    ) -> Self {
        let slope = world_from_volume.matrix3.transpose() * normal;
        let offset = normal.dot(world_from_volume.translation);
        Self { borders, behind, opaque, slope, offset }
    }

    /// Returns the number of slabs.
    pub(crate) fn count(&self) -> usize {
        self.borders.len() - 1
    }

    /// Returns the state before any ray.
    pub(crate) fn start(&self) -> SlabPath<'_> {
        SlabPath { at: 0.0, per_sample: 0.0, borders: &self.borders }
    }

    /// Returns the traversal of the slabs by sixteen rays, along the mean of the rays.
    #[inline(always)]
    pub(crate) fn path(&self, rays: &PacketRays) -> SlabPath<'_> {
        let (mut at, mut per_sample) = (0.0, 0.0);
        for axis in 0..3 {
            let (mut origins, mut steps) = (0.0, 0.0);
            for lane in 0..LANES {
                origins += rays.origin[axis][lane];
                steps += rays.step[axis][lane];
            }
            at += self.slope[axis] * origins;
            per_sample += self.slope[axis] * steps;
        }
        let count = LANES as f64;
        SlabPath { at: at / count + self.offset, per_sample: per_sample / count, borders: &self.borders }
    }
}

impl SlabPath<'_> {
    /// Returns the same traversal for a march whose sample `i` represents the `stride` steps from `base + i *
    /// stride` on. A step is the interval from the previous sample to its own.
    #[inline(always)]
    pub(crate) fn of_march(&self, base: f64, stride: f64) -> Self {
        let middle = base + stride / 2.0 - 1.0;
        Self { at: self.at + middle * self.per_sample, per_sample: self.per_sample * stride, ..*self }
    }

    /// True if the last slab is met first.
    pub(crate) fn is_reversed(&self) -> bool {
        self.per_sample < 0.0
    }

    /// Returns the slab of a sample; the first and the last one are unbounded.
    #[inline(always)]
    pub(crate) fn slab(&self, sample: f64) -> usize {
        let distance = self.at + sample * self.per_sample;
        let inner = &self.borders[1..self.borders.len() - 1];
        inner.partition_point(|&border| border <= distance)
    }

    /// Returns the first sample behind one of `slab` that may lie in another; infinite if there is none.
    #[inline(always)]
    pub(crate) fn next(&self, sample: f64, slab: usize) -> f64 {
        let cut = if self.per_sample > 0.0 && slab + 2 < self.borders.len() {
            ((self.borders[slab + 1] - self.at) / self.per_sample).ceil()
        } else if self.per_sample < 0.0 && slab > 0 {
            ((self.borders[slab] - self.at) / self.per_sample).floor() + 1.0
        } else {
            return f64::INFINITY;
        };
        if cut > sample { cut } else { sample + 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BORDERS: [f64; 7] = [0.0, 1.0, 1.5, 3.0, 3.1, 4.0, 5.0];

    #[test]
    fn each_sample_is_in_the_slab_that_borders_say() {
        // Where rounding does not decide: beside a border it may be one sample off.
        for (at, per_sample) in [(-3.2, 0.17), (9.71, -0.3), (0.5, 2.5), (4.0, 1.0), (2.5, 0.0), (5.0, -1.0)]
        {
            let path = SlabPath { at, per_sample, borders: &BORDERS };
            let (mut sample, mut next) = (0.0, path.next(0.0, path.slab(0.0)));
            while sample < 200.0 {
                let distance = at + sample * per_sample;
                let expected = BORDERS[1..6].iter().filter(|&&border| border <= distance).count();
                assert_eq!(path.slab(sample), expected, "{at} {per_sample} {sample}");
                let changes = path.slab(sample + 1.0) != expected;
                assert!(!changes || next <= sample + 1.0, "a cut was missed: {at} {per_sample} {sample}");
                sample += 1.0;
                if next <= sample {
                    next = path.next(sample, path.slab(sample));
                }
            }
        }
    }

    #[test]
    fn a_step_belongs_to_the_slab_that_its_middle_is_in() {
        let path = SlabPath { at: 0.0, per_sample: 0.25, borders: &[0.0, 1.0, 2.0] };
        // Sample 4 ends the way from 3 to 4, which lies in slab 0.
        let march = path.of_march(4.0, 1.0);
        assert_eq!((march.slab(0.0), march.slab(1.0)), (0, 1));
        // A sample for two steps, from 3 to 5, whose middle is 4.
        assert_eq!(path.of_march(4.0, 2.0).slab(0.0), 1);
    }
}
