//! Demand: the blocks that a picture wants, their level and their order.
//!
//! Pure: the same view, camera and limits give the same result. Nothing is fetched here.
//!
//! One level is *wanted* for the whole picture: the coarsest whose voxels are no larger than a pixel, or the
//! finest of the array; a coarser one if its visible blocks would not fit the bytes allowed. Coarser levels
//! are listed first, so that a complete picture is available soon and every later one is sharper.

use std::cell::Cell;

use array::{BlockKey, Error, LevelOrigin, Priority, Result};
use glam::DVec3;

use crate::blocks::resident::BlockLayout;
use crate::blocks::voxel::voxel_bytes;
use crate::scene::camera::Lens;
use crate::scene::frustum::Frustum;
use crate::{Camera, ImageSize, Portion, VolumeView};

/// Reason why the wanted level is not finer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelLimit {
    /// A finer level would not be visible: its voxels are smaller than pixels.
    Screen,
    /// A finer level would not fit the bytes allowed.
    Memory,
    /// There is no finer level.
    Finest,
}

/// Block that a picture wants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demanded {
    /// Key of the block.
    pub key: BlockKey,
    /// Priority: coarse before fine, then blocks near the image's center and near the eye.
    pub priority: Priority,
}

/// Blocks that a picture wants, and the level to be shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Number of the level to be shown in the end.
    pub wanted: u8,
    /// Reason why no finer level was chosen.
    pub limit: LevelLimit,
    /// Blocks, most important first.
    pub blocks: Vec<Demanded>,
    /// Cost of these blocks in a [`BlockPool`](crate::BlockPool), bytes; at most what was allowed, unless not even the coarsest
    /// level fits.
    pub pool_bytes: usize,
}

/// Most blocks of one picture, all levels together: as many as a coarsest level may have, which is wanted in
/// any case.
const MAX_BLOCKS: usize = 1 << 18;
/// Number of runs of blocks that are examined to choose a level; beyond it the coarsest is taken. Ordinary
/// descriptions need less than a tenth, malicious ones with many levels of tiny blocks any amount.
const MAX_LOOKED_AT: usize = 1 << 23;
/// Largest error of a level on the screen that is accepted, pixels.
const SCREEN_ERROR_PX: f64 = 1.0;

/// Returns the blocks that a picture of `size` from `camera` wants, within `max_bytes` of a
/// [`BlockPool`](crate::BlockPool). Blocks entirely outside of `portion` or of the image are left out. A
/// level that is `forced`, by its number, replaces the one chosen by resolution; memory still limits it.
///
/// # Errors
/// `Invalid` for an invalid camera or size, or a forced level that does not exist.
pub fn demand(
    view: &VolumeView,
    camera: &Camera,
    size: ImageSize,
    portion: &Portion,
    forced: Option<u8>,
    max_bytes: usize,
) -> Result<Demand> {
    demand_of(view, std::slice::from_ref(camera), size, portion, forced, max_bytes)
}

/// Returns the blocks that pictures of several cameras want together, such as those of two eyes: all blocks
/// that any of the cameras sees, at one level. The first camera decides the resolution and the priorities.
///
/// # Errors
/// The errors of [`demand`]; `Invalid` for no camera.
pub fn demand_of(
    view: &VolumeView,
    cameras: &[Camera],
    size: ImageSize,
    portion: &Portion,
    forced: Option<u8>,
    max_bytes: usize,
) -> Result<Demand> {
    size.check_sides()?;
    let finder = BlockFinder::new(view, cameras, size, portion)?;
    let first =
        forced.map_or_else(|| Ok(finder.sufficient_level_index()), |number| view.level_index_of(number))?;
    let coarser = (first + 1..view.levels.len()).filter(|&r| is_candidate(view, r));
    let coarsest = view.levels.len() - 1;
    let (level_index, (blocks, pool_bytes)) = std::iter::once(first)
        .chain(coarser)
        .find_map(|level_index| finder.ladder(level_index, max_bytes).map(|found| (level_index, found)))
        .unwrap_or_else(|| (coarsest, finder.afresh().climb(&[coarsest], usize::MAX).unwrap_or_default()));
    let limit = match level_index {
        r if r > first => LevelLimit::Memory,
        0 => LevelLimit::Finest,
        _ => LevelLimit::Screen,
    };
    Ok(Demand { wanted: view.levels[level_index].number, limit, blocks, pool_bytes })
}

/// Returns whether a level can be wanted in the end: a sampled level only if there is no other of its
/// resolution, corners of blocks never.
fn is_candidate(view: &VolumeView, level_index: usize) -> bool {
    let level = &view.levels[level_index];
    let twin = |l: &crate::ViewLevel| !l.origin.is_quick_look() && l.factor.abs_diff_eq(level.factor, 1e-6);
    match level.origin {
        LevelOrigin::Corners => false,
        LevelOrigin::Sampled => !view.levels.iter().any(twin),
        LevelOrigin::Stored | LevelOrigin::Mean | LevelOrigin::Mode => true,
    }
}

/// Volume as the cameras see it, searched for visible blocks level by level.
struct BlockFinder<'a> {
    view: &'a VolumeView,
    lens: Lens,
    frustum: Frustum,
    /// Runs of blocks that may still be examined.
    looks_left: Cell<usize>,
}

/// Visible block, with its priority.
struct VisibleBlock {
    at: [u64; 3],
    /// 1 at the image's center and near the eye, down to 0.
    prominence: f32,
}

impl<'a> BlockFinder<'a> {
    fn new(view: &'a VolumeView, cameras: &[Camera], size: ImageSize, portion: &Portion) -> Result<Self> {
        let lenses = cameras.iter().map(|camera| Lens::new(camera, size)).collect::<Result<Vec<_>>>()?;
        let lens = *lenses.first().ok_or_else(|| Error::invalid("expected a camera, found none"))?;
        let looks_left = Cell::new(MAX_LOOKED_AT);
        Ok(Self { view, lens, frustum: Frustum::of(view, &lenses, portion), looks_left })
    }

    fn afresh(&self) -> &Self {
        self.looks_left.set(MAX_LOOKED_AT);
        self
    }

    /// Returns the coarsest level that looks as sharp as the finest.
    fn sufficient_level_index(&self) -> usize {
        let pixel_world = self.lens.pixel_world(self.nearest_world());
        let finest = self.view.levels[0].factor;
        let thick = self.view.thick_axes();
        let error_px = |level_index: usize| {
            let spacing = self.view.axis_spacing_world(level_index);
            let factor = self.view.levels[level_index].factor;
            // An axis that is no coarser than at level 0 loses nothing.
            (0..3)
                .filter(|&a| thick[a] && factor[a] > finest[a] * 1.001)
                .map(|a| spacing[a] / pixel_world)
                .fold(0.0, f64::max)
        };
        (0..self.view.levels.len())
            .rev()
            .find(|&level_index| {
                is_candidate(self.view, level_index) && error_px(level_index) <= SCREEN_ERROR_PX
            })
            .unwrap_or(0)
    }

    /// Returns the distance from the eye to the nearest point of the volume, world units; a little more than
    /// 0.
    fn nearest_world(&self) -> f64 {
        let map = &self.view.world_from_volume;
        let eye = map.inverse().transform_point3(self.lens.eye);
        // The nearest point in volume space is the nearest in world space if the map is a rotation and
        // scaling; with shear it is near enough for the choice of a level.
        let nearest = map.transform_point3(eye.max(self.frustum.low).min(self.frustum.high));
        nearest.distance(self.lens.eye).max(self.view.spacing_world(0))
    }

    /// Returns the visible blocks of a level and of the coarser ones that come first; `None` if they exceed
    /// `max_bytes`. A preview costs memory too: it is as sharp as the remaining memory allows.
    fn ladder(&self, level_index: usize, max_bytes: usize) -> Option<(Vec<Demanded>, usize)> {
        let looks = self.quick_looks(level_index);
        looks.into_iter().find_map(|look| self.climb(&self.steps(level_index, look), max_bytes))
    }

    /// Returns levels of samples or corners that may stand in for a level until it is loaded, the sharpest
    /// first; `None` stands for no preview except the cheapest. Means and modes cost reading all voxels that
    /// they are computed from, samples a small part of them; a level stored in the source is loaded as fast
    /// as a sample of it.
    fn quick_looks(&self, level_index: usize) -> Vec<Option<usize>> {
        let levels = &self.view.levels;
        let is_made = matches!(levels[level_index].origin, LevelOrigin::Mean | LevelOrigin::Mode);
        let sampled = (level_index + 1..levels.len()).filter(|&r| levels[r].origin.is_quick_look());
        sampled.filter(|_| is_made).map(Some).chain([None]).collect()
    }

    /// Returns the levels in the order in which they are fetched, ending with `level_index`, preceded by
    /// `quick_look`. If samples or corners are available, the first picture comes from the cheapest of them,
    /// and means, which cost reading the whole array, are computed only for `level_index` itself.
    fn steps(&self, level_index: usize, quick_look: Option<usize>) -> Vec<usize> {
        let levels = &self.view.levels;
        let sampled = (level_index + 1..levels.len()).filter(|&r| levels[r].origin.is_quick_look()).max();
        let coarser = (level_index + 1..levels.len()).rev().filter(|&r| match (sampled, levels[r].origin) {
            (_, LevelOrigin::Sampled | LevelOrigin::Corners) => [sampled, quick_look].contains(&Some(r)),
            (Some(_), origin) => origin == LevelOrigin::Stored,
            (None, _) => true,
        });
        let mut steps: Vec<usize> = coarser.collect();
        if let Some(first) = sampled.and_then(|s| steps.iter().position(|&r| r == s)) {
            steps[..=first].rotate_right(1);
        }
        steps.push(level_index);
        steps
    }

    /// Returns the visible blocks of levels in the order of `steps`, and their cost; `None` beyond
    /// `max_bytes`.
    fn climb(&self, steps: &[usize], max_bytes: usize) -> Option<(Vec<Demanded>, usize)> {
        let mut blocks = Vec::new();
        let mut bytes = 0;
        for (position, &step) in steps.iter().enumerate() {
            let most = MAX_BLOCKS - blocks.len();
            let mut seen = self.visible(step, max_bytes.checked_sub(bytes)?, most, &mut bytes)?;
            seen.sort_by(|a, b| b.prominence.total_cmp(&a.prominence).then(a.at.cmp(&b.at)));
            // Earlier steps weigh more than anything later, because the first picture determines the waiting
            // time.
            let base = if position == 0 { Priority::INTERACTIVE } else { Priority::NORMAL };
            let steps_left = u16::try_from(array::MAX_LEVELS.saturating_sub(position)).unwrap_or(0);
            blocks.extend(seen.into_iter().map(|s| Demanded {
                key: self.view.key(step, s.at),
                priority: base.weighted(f32::from(steps_left) + s.prominence),
            }));
        }
        Some((blocks, bytes))
    }

    /// Returns the blocks of a level that may be visible; `None` as soon as they cost more than `max_bytes`
    /// or are more than `most`. Adds their cost to `bytes`. Halves the grid recursively, so that the work
    /// depends on the visible part, not on the size of the level.
    fn visible(
        &self,
        level_index: usize,
        max_bytes: usize,
        most: usize,
        bytes: &mut usize,
    ) -> Option<Vec<VisibleBlock>> {
        let level = &self.view.levels[level_index];
        let mut seen = Vec::new();
        let mut cost = 0usize;
        let mut stack = vec![([0; 3], level.grid)];
        while let Some((from, to)) = stack.pop() {
            self.looks_left.set(self.looks_left.get().checked_sub(1)?);
            let Some((low, high)) = self.frustum.part_seen(level, from, to) else { continue };
            let longest = (0..3).max_by_key(|&a| to[a] - from[a]).unwrap_or(0);
            let length = to[longest] - from[longest];
            if length > 1 {
                let middle = from[longest] + length / 2;
                let (mut left_to, mut right_from) = (to, from);
                left_to[longest] = middle;
                right_from[longest] = middle;
                stack.push((right_from, to));
                stack.push((from, left_to));
                continue;
            }
            cost = cost.saturating_add(
                BlockLayout::new(level, from).size_bytes(voxel_bytes(self.view.dtype.element())),
            );
            if cost > max_bytes || seen.len() == most {
                return None;
            }
            seen.push(VisibleBlock { at: from, prominence: self.prominence((low + high) / 2.0) });
        }
        *bytes += cost;
        Some(seen)
    }

    /// 1 at the image's center and near the eye, down to 0.
    #[expect(clippy::cast_possible_truncation, reason = "a share")]
    fn prominence(&self, volume: DVec3) -> f32 {
        let world = self.view.world_from_volume.transform_point3(volume);
        let to = world - self.lens.eye;
        let depth = to.dot(self.lens.forward);
        let spread = if self.lens.perspective { depth.max(1e-9) } else { 1.0 };
        let (across, upward) = (to.dot(self.lens.right) / spread, to.dot(self.lens.up) / spread);
        let off_center =
            ((across - self.lens.middle) / self.lens.half[0]).hypot(upward / self.lens.half[1]).min(2.0)
                / 2.0;
        let (low, high) = self.view.volume_box();
        let size_world = self.view.world_from_volume.transform_vector3(high - low).length();
        let middle_world = self.view.world_from_volume.transform_point3((low + high) / 2.0);
        let behind_front = depth - (middle_world - self.lens.eye).dot(self.lens.forward) + size_world / 2.0;
        let depth_share = (behind_front / size_world).clamp(0.0, 1.0);
        (0.999 - 0.65 * off_center - 0.3 * depth_share) as f32
    }
}
