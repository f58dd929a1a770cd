//! Sub-volume: the box of a volume that one of several casters draws.
//!
//! Boxes are half-open, and the crossing of a ray from one to the next depends on the plane between them
//! alone. So each sample and each crossing of a surface belongs to exactly one sub-volume, and the
//! sub-volumes composited in depth order give the picture of a single caster. The surroundings of a sample
//! (the sample before, voxels around both) may lie in other sub-volumes: see [`SubVolume::needs`].

use glam::DVec3;

use crate::cpu::packet::size::PACKET_SIDE;
use crate::cpu::samples::dimming::occlusion::reach;
use crate::scene::camera::Lens;
use crate::scene::frustum::Frustum;
use crate::scene::mode::step_of;
use crate::{Demand, Rect, Scene, VolumeView};

/// Half-open box in volume space, `(x, y, z)`; infinite at the volume's ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubVolume {
    /// Smallest positions, inclusive.
    pub low: [f64; 3],
    /// Largest positions, exclusive.
    pub high: [f64; 3],
}

/// Distance along its fastest axis that a ray is followed beyond its sub-volume to find surfaces, voxels:
/// both neighbors search the cell that contains the border completely, so that they find the same.
const BEYOND: f64 = 2.0;
/// Margin for rounding, voxels.
const SLACK: f64 = 0.5;

impl SubVolume {
    /// Returns the whole volume.
    pub const WHOLE: Self = Self { low: [f64::NEG_INFINITY; 3], high: [f64::INFINITY; 3] };

    /// Best distance of a border behind the first voxel of a block, voxels. Everything that rays of the
    /// sub-volume above the border need in front of it is then in that block. The sub-volume below needs that
    /// block anyway, for the region after the last voxel of the block before.
    pub const BORDER_IN_BLOCK: f64 = BEYOND + SLACK + 1.0;

    /// Splits it at a plane across an axis (0 x, 1 y, 2 z); returns the part below the plane, and the rest.
    #[must_use]
    pub fn split(&self, axis: usize, at: f64) -> [Self; 2] {
        let (mut below, mut above) = (*self, *self);
        below.high[axis] = at;
        above.low[axis] = at;
        [below, above]
    }

    /// True for positions `(x, y, z)` in volume space that belong to it.
    #[must_use]
    pub fn holds(&self, at: [f64; 3]) -> bool {
        (0..3).all(|axis| at[axis] >= self.low[axis] && at[axis] < self.high[axis])
    }

    /// True if a picture of this sub-volume needs the block at `[z, y, x]` of a level: rays may read its
    /// voxels.
    #[must_use]
    pub fn needs(&self, scene: &Scene, level_index: usize, at: [u64; 3]) -> bool {
        let level = &scene.view.levels[level_index];
        let margin = Self::margin(scene, level_index);
        let (low, high) = level.block_box(at);
        // Its first voxels are also the last ones of the blocks before it.
        let low = low - level.voxel_size();
        low.cmple(DVec3::from(self.high) + margin).all() && high.cmpgt(DVec3::from(self.low) - margin).all()
    }

    /// Returns the distance beyond a sub-volume within which its rays may read blocks of a level, in volume
    /// space.
    pub(crate) fn margin(scene: &Scene, level_index: usize) -> DVec3 {
        let view = &scene.view;
        let voxel = view.levels[level_index].voxel_size();
        let step_world = view.step_world(level_index, scene.quality.step * step_of(scene.mode));
        let occluding =
            if scene.is_lit && scene.light.occlusion > 0.0 { reach(view, level_index) } else { DVec3::ZERO };
        (step_world / view.axis_spacing_world(0)).max(voxel * BEYOND).max(occluding) + voxel * SLACK
    }

    /// Restricts a camera's view to this sub-volume and up to `margin` beyond, in volume space.
    pub(crate) fn restrict(&self, frustum: Frustum, margin: DVec3) -> Frustum {
        frustum.within(DVec3::from(self.low) - margin, DVec3::from(self.high) + margin)
    }

    /// Returns the blocks that a picture of this sub-volume wants, out of all that the picture wants.
    #[must_use]
    pub fn demand(&self, scene: &Scene, whole: &Demand) -> Demand {
        let is_needed = |block: &&crate::Demanded| {
            scene.view.locate(&block.key).is_some_and(|(level_index, at)| self.needs(scene, level_index, at))
        };
        let blocks: Vec<_> = whole.blocks.iter().filter(is_needed).copied().collect();
        let pool_bytes = blocks.iter().map(|block| scene.view.pool_bytes(&block.key)).sum();
        Demand { wanted: whole.wanted, limit: whole.limit, blocks, pool_bytes }
    }

    /// Returns the blocks that this sub-volume wants of the array that gives the colors, out of all that the
    /// picture wants of that array. Empty if the scene takes its colors from its own array.
    #[must_use]
    pub fn demand_of_color_by(&self, scene: &Scene, whole: &Demand) -> Demand {
        let Some(color_by) = &scene.color_by else {
            return Demand { blocks: Vec::new(), pool_bytes: 0, ..whole.clone() };
        };
        // Rays sample at their own steps, which are those of the scene's own levels.
        let level_index = scene.view.level_index_of(scene.finest_level).unwrap_or(0);
        let margin = Self::margin(scene, level_index);
        let wider = Self {
            low: (DVec3::from(self.low) - margin).into(),
            high: (DVec3::from(self.high) + margin).into(),
        };
        wider.demand(&scene.color_scene(color_by), whole)
    }

    /// Returns the pixels whose rays may pass through it.
    ///
    /// # Errors
    /// `Invalid` for an invalid camera.
    pub fn footprint(&self, scene: &Scene) -> array::Result<Rect> {
        let lens = Lens::new(&scene.camera, scene.size)?;
        let frustum = Frustum::new(&scene.view, &lens, &scene.portion());
        let low = frustum.low.max(self.low.into());
        let high = frustum.high.min(self.high.into());
        let whole = Rect::whole(scene.size);
        if low.cmpgt(high).any() {
            return Ok(Rect::default());
        }
        let mut least = [f64::INFINITY; 2];
        let mut most = [f64::NEG_INFINITY; 2];
        for corner in 0..8u32 {
            let pick = |axis: usize| if corner >> axis & 1 == 0 { low[axis] } else { high[axis] };
            let world = scene.view.world_from_volume.transform_point3(DVec3::new(pick(0), pick(1), pick(2)));
            let Some(pixel) = lens.pixel_of(world) else { return Ok(whole) };
            for axis in 0..2 {
                least[axis] = least[axis].min(pixel[axis]);
                most[axis] = most[axis].max(pixel[axis]);
            }
        }
        Ok(around(least, most, &whole))
    }

    /// Returns the distance, in steps, that rays are followed beyond its borders to find surfaces.
    #[inline(always)]
    pub(crate) fn beyond(step: DVec3, voxels_per_volume: DVec3) -> f64 {
        (BEYOND / (step * voxels_per_volume).abs().max_element()).max(1.0)
    }
}

/// Returns the pixels that a box in pixels touches, and one more on each side; aligned to ray packets.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the image")]
fn around(least: [f64; 2], most: [f64; 2], whole: &Rect) -> Rect {
    const SIDE: f64 = PACKET_SIDE as f64;
    let first = |at: f64, size: u32| (((at - 1.0) / SIDE).floor() * SIDE).clamp(0.0, f64::from(size)) as u32;
    let end = |at: f64, size: u32| (((at + 2.0) / SIDE).ceil() * SIDE).clamp(0.0, f64::from(size)) as u32;
    let (left, right) = (first(least[0], whole.width), end(most[0], whole.width));
    let (top, bottom) = (first(least[1], whole.height), end(most[1], whole.height));
    let rect = Rect { left, top, width: right - left, height: bottom - top };
    if rect.is_empty() { Rect::default() } else { rect }
}

impl VolumeView {
    /// Returns the memory of a block in a pool, bytes; 0 for blocks of other views.
    #[must_use]
    pub fn pool_bytes(&self, key: &array::BlockKey) -> usize {
        let voxel_bytes = crate::blocks::voxel::voxel_bytes(self.dtype.element());
        self.locate(key).map_or(0, |(level_index, at)| {
            crate::blocks::resident::BlockLayout::new(&self.levels[level_index], at).size_bytes(voxel_bytes)
        })
    }
}

impl crate::ViewLevel {
    /// Returns the starts of the nearest blocks below and above a position along an axis (0 x, 1 y, 2 z),
    /// each moved on by `behind` voxels; all in volume space.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "voxel indices stay below 2^53")]
    pub fn block_starts_around(&self, axis: usize, at: f64, behind: f64) -> [f64; 2] {
        let block = self.block[2 - axis] as f64;
        let number = ((at * self.scale[axis] + self.shift[axis] - behind) / block).floor();
        [number, number + 1.0].map(|n| (n * block + behind - self.shift[axis]) / self.scale[axis])
    }
}
