//! Lookup of values at positions of the volume, in any blocks.

use glam::DVec3;

use crate::blocks::voxel::Voxel;
use crate::cpu::context::CastContext;
use crate::cpu::packet::rays::{PacketRays, UniformRegion};
use crate::cpu::packet::size::LaneValues;
use crate::cpu::samples::accumulated::Accumulated;
use crate::cpu::samples::corners::VoxelGrid;
use crate::cpu::samples::level_fade;
use crate::cpu::samples::sample::TakeSamples;
use crate::cpu::samples::shading::Shading;
use crate::cpu::table::TransferTable;
use crate::simd::{LANES, Simd, each_axis};

/// Values found at sixteen positions in the volume.
pub(crate) struct PlaceValues {
    /// Place in the table; NaN if the value is missing.
    pub(crate) places: [f32; LANES],
    /// Slope of the value, per axis x, y, z; see [`crate::cpu::samples::sample::PacketSamples`].
    pub(crate) slopes: [[f32; LANES]; 3],
    /// Label nearest to the position, per lane.
    pub(crate) labels: [u32; LANES],
}

impl PlaceValues {
    pub(crate) const NONE: Self =
        Self { places: [f32::NAN; LANES], slopes: [[0.0; LANES]; 3], labels: [0; LANES] };
}

impl<T: Voxel> CastContext<'_, T> {
    /// Finds the places one step before samples of the `wanted` rays, in any block: the interval from there
    /// leads into the volume, or out of a skipped region.
    #[inline(always)]
    pub(crate) fn find_before<S: Simd>(
        &self,
        simd: S,
        rays: &PacketRays,
        samples: &LaneValues,
        wanted: u32,
        shading: &Shading<'_, T>,
        accumulated: &mut Accumulated<S>,
    ) {
        if wanted == 0 || shading.nearest {
            return;
        }
        let (low, high) = self.scene.view.volume_box();
        let mut at = [DVec3::ZERO; LANES];
        for (lane, at) in at.iter_mut().enumerate() {
            // Outside the volume its outermost voxels are repeated.
            *at = rays.at(lane, samples[lane] - 1.0).max(low).min(high);
        }
        let mut values = PlaceValues {
            places: simd.store(accumulated.before),
            slopes: each_axis!(a => simd.store(accumulated.slope[a])),
            ..PlaceValues::NONE
        };
        self.find_at(simd, &at, wanted, shading, &mut values, |_, _| {});
        accumulated.before = simd.load(&values.places);
        accumulated.slope = each_axis!(a => simd.load(&values.slopes[a]));
    }

    /// Finds the places in the table at volume positions of the `wanted` rays, in any block; calls `found`
    /// with each region and its rays.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "positions are f32")]
    pub(crate) fn find_at<S: Simd>(
        &self,
        simd: S,
        at: &[DVec3; LANES],
        mut wanted: u32,
        shading: &Shading<'_, T>,
        values: &mut PlaceValues,
        mut found_in: impl FnMut(&UniformRegion, u32),
    ) {
        while wanted != 0 {
            let leader = wanted.trailing_zeros() as usize;
            let region = self.region(at[leader]);
            let (mut found, mut slopes) = ([f32::NAN; LANES], [[0.0; LANES]; 3]);
            if let Some(slot) = region.slot {
                let block = self.blocks.resident(slot);
                let (scale, origin) = self.scene.view.levels[block.level_index].local_map(block.at);
                let mut local = [[0.0; LANES]; 3];
                for axis in 0..3 {
                    for lane in 0..LANES {
                        local[axis][lane] = (at[lane][axis] * scale[axis] + origin[axis]) as f32;
                    }
                }
                let at = each_axis!(a => simd.load(&local[a]));
                let scale = scale.as_vec3().to_array();
                let sample = simd.call(TakeSamples { grid: VoxelGrid::new(block), at, scale, shading });
                found = simd.store(sample.place);
                if shading.metric.is_some() {
                    slopes = each_axis!(a => simd.store(sample.slope[a]));
                }
            }
            let before = wanted;
            for lane in 0..LANES {
                let is_inside = at[lane].cmpge(region.low).all() && at[lane].cmplt(region.high).all();
                if wanted >> lane & 1 == 0 || !is_inside && lane != leader {
                    continue;
                }
                wanted &= !(1 << lane);
                values.places[lane] = match region.slot {
                    Some(slot) if self.is_fading(slot, at[lane]) => self.faded(at[lane], slot, shading.table),
                    _ => found[lane],
                };
                (0..3).for_each(|axis| values.slopes[axis][lane] = slopes[axis][lane]);
            }
            found_in(&region, before & !wanted);
        }
    }

    /// Finds the labels nearest to positions, for the `wanted` rays; calls `found` with each region and its
    /// rays.
    #[inline(never)]
    pub(crate) fn find_labels(
        &self,
        at: &[DVec3; LANES],
        wanted: u32,
        shading: &Shading<'_, T>,
        values: &mut PlaceValues,
        mut found: impl FnMut(&UniformRegion, u32),
    ) {
        for (lane, &at) in at.iter().enumerate().filter(|(lane, _)| wanted >> lane & 1 != 0) {
            let region = self.region(at);
            found(&region, 1 << lane);
            let Some(slot) = region.slot else { continue };
            let block = self.blocks.resident(slot);
            let local = self.scene.view.levels[block.level_index].local(block.at, at);
            let label = block.interpolate(local, true, shading.missing);
            if !shading.missing.is_missing(label) {
                values.places[lane] = shading.table.scale.place(label.to_f64());
                values.labels[lane] = label.label();
            }
        }
    }

    /// True if a block's values are blended with those of a coarser one.
    #[inline(always)]
    pub(crate) fn is_fading(&self, slot: u32, volume: DVec3) -> bool {
        let fade = self.fades[slot as usize];
        fade.any() && {
            let block = self.blocks.resident(slot);
            level_fade::holds(fade, self.scene.view.levels[block.level_index].local(block.at, volume))
        }
    }

    /// Returns the place in the table at a volume position in the transition of a block; NaN if something is
    /// missing.
    #[inline(never)]
    pub(crate) fn faded(&self, volume: DVec3, slot: u32, table: &TransferTable) -> f32 {
        let block = self.blocks.resident(slot);
        let local = self.scene.view.levels[block.level_index].local(block.at, volume);
        let value = self.blocks.faded(block, self.fades[slot as usize], local, volume);
        value.map_or(f32::NAN, |value| table.scale.place(value))
    }
}
