//! Estimate of the work of a picture and its distribution, from the resident blocks before it is drawn.
//!
//! The cost of a ray is the number of its visible samples. So the estimate consists of points spread evenly
//! over the blocks, each of which represents the samples that rays take around it, in full if something is
//! visible and with a small share if not. Visibility is taken from the finest resident level, which may be a
//! coarse one. Content behind something opaque is not known to cost less; [`DrawnPart::work`](crate::DrawnPart::work)
//! reports the real work afterwards.

use array::{BlockKey, Error, Result};
use glam::DVec3;
use rayon::prelude::*;
use view::Mode;

use crate::blocks::BlockTable;
use crate::blocks::snapshot::each_blocks;
use crate::blocks::voxel::Voxel;
use crate::cpu::context::LEAPT;
use crate::scene::camera::Lens;
use crate::scene::frustum::Frustum;
use crate::{Scene, Snapshot};

/// Point in the volume, with the work of rays around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkPoint {
    /// Position in volume space, `(x, y, z)`.
    pub at: [f64; 3],
    /// Index of the block in the list of requested blocks.
    pub block: u32,
    /// Work in samples drawn.
    pub work: f64,
}

/// Estimated cost of a sample where nothing is visible and rays need not pass ([depth
/// bounds](crate::cpu::empty_space::depth_bounds)), as a share of the cost of a sample that is drawn. It is
/// not zero, because the known values may be coarse.
const OUTSIDE_BOUNDS: f64 = 1.0 / 256.0;
/// Number of points: enough for a thousand processes. If there are more blocks, each has one point.
const POINTS: usize = 1 << 16;
/// Most points: as many as a picture may have blocks.
const MAX_POINTS: usize = 1 << 18;
/// Most points in a block.
const MAX_OF_BLOCK: u32 = 1 << 14;

/// Returns the estimated work of a picture in `blocks`, of the level that it wants.
///
/// # Errors
/// `Invalid` for an invalid scene or blocks of another view; `TooLarge` beyond 262,144 blocks.
pub fn work(scene: &Scene, available: &Snapshot, blocks: &[BlockKey]) -> Result<Vec<WorkPoint>> {
    scene.check()?;
    if blocks.len() > MAX_POINTS {
        return Err(Error::too_large(format!(
            "expected at most {MAX_POINTS} blocks, found {}",
            blocks.len()
        )));
    }
    let lens = Lens::new(&scene.camera, scene.size)?;
    let frustum = Frustum::new(&scene.view, &lens, &scene.portion());
    let count = u32::try_from(POINTS / blocks.len().max(1)).unwrap_or(MAX_OF_BLOCK).clamp(1, MAX_OF_BLOCK);
    let survey = WorkSurvey { scene, lens, frustum, count };
    let of_block = |(number, key): (usize, &BlockKey)| survey.points(number, key);
    let mut points: Vec<WorkPoint> = blocks
        .par_iter()
        .enumerate()
        .map(of_block)
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .flatten()
        .collect();
    let has_depth_bounds =
        scene.mode == Mode::Composite && scene.surfaces.is_empty() && scene.slices.is_empty();
    let unseen = if has_depth_bounds { OUTSIDE_BOUNDS } else { 1.0 / LEAPT as f64 };
    let places: Vec<DVec3> = points.iter().map(|point| point.at.into()).collect();
    let seen = each_blocks!(&available.blocks, blocks => blocks.seen_at(scene, &places));
    for (point, is_seen) in points.iter_mut().zip(seen) {
        point.work *= if is_seen { 1.0 } else { unseen };
    }
    Ok(points)
}

struct WorkSurvey<'a> {
    scene: &'a Scene,
    lens: Lens,
    frustum: Frustum,
    /// Returns the number of points in a block.
    count: u32,
}

impl WorkSurvey<'_> {
    /// Returns the points in a block; those out of sight are left out.
    fn points(&self, number: usize, key: &BlockKey) -> Result<Vec<WorkPoint>> {
        let view = &self.scene.view;
        let Some((level_index, place)) = view.locate(key) else {
            return Err(Error::invalid("expected blocks of the scene's own view"));
        };
        let (low, high) = view.levels[level_index].block_box(place);
        let (bottom, top) = view.volume_box();
        let (low, high) = (low.max(bottom), high.min(top));
        let axes = view.world_from_volume.matrix3;
        let share_world = (axes.determinant() * (high - low).element_product()).abs() / f64::from(self.count);
        let step_world = view.step_world(level_index, self.scene.quality.step);
        let block = u32::try_from(number).unwrap_or(u32::MAX);
        let mut points = Vec::new();
        for index in 0..self.count {
            let at = low + (high - low) * spread(u64::from(block) * u64::from(self.count) + u64::from(index));
            let is_in = self.frustum.low.cmple(at).all() && at.cmple(self.frustum.high).all();
            let world = view.world_from_volume.transform_point3(at);
            let pixel = self.lens.pixel_of(world).filter(|pixel| is_in && self.is_in_image(*pixel));
            let Some(depth) = self.lens.depth_of(world).filter(|_| pixel.is_some()) else { continue };
            // The rays past a point's region are no nearer to one another than there.
            let pixel_world = self.lens.pixel_world(depth.max(share_world.cbrt() / 2.0));
            points.push(WorkPoint {
                at: at.into(),
                block,
                work: share_world / (pixel_world.powi(2) * step_world),
            });
        }
        Ok(points)
    }

    fn is_in_image(&self, [column, row]: [f64; 2]) -> bool {
        let size = self.scene.size;
        (0.0..=f64::from(size.width)).contains(&column) && (0.0..=f64::from(size.height)).contains(&row)
    }
}

/// Returns points that fill a cube evenly for any count, no two of them on one plane across an axis: Roberts'
/// sequence, the multiples of powers of the root of x^4 = x + 1.
#[expect(clippy::cast_precision_loss, reason = "numbers of points stay below 2^53")]
fn spread(number: u64) -> DVec3 {
    const STEPS: DVec3 = DVec3::new(0.819_172_513_396_164_4, 0.671_043_606_703_789_2, 0.549_700_477_901_97);
    (STEPS * number as f64 + 0.5).fract()
}

impl<T: Voxel> BlockTable<T> {
    /// Returns whether something is visible at positions, by the finest resident blocks; true where none is.
    pub(crate) fn seen_at(&self, scene: &Scene, places: &[DVec3]) -> Vec<bool> {
        let nearest = !self.view.meaning.is_continuous();
        let decoding = &self.view.decoding;
        let is_seen = |&at: &DVec3| {
            let Some((_, block, local)) = self.finest_from(0, at) else { return true };
            let stored = block.interpolate(local, nearest, &self.missing);
            if self.missing.is_missing(stored) {
                return false;
            }
            let decoded = |v: f64| v * decoding.scale + decoding.offset;
            match scene.mode {
                Mode::Maximum | Mode::Minimum => return true,
                Mode::Composite if scene.transfer.opacity_at(decoded(stored.to_f64())) > 0.0 => return true,
                Mode::Composite | Mode::Surfaces => {}
            }
            let corners = block.corners(local.floor().to_array().map(to_index)).map(|v| decoded(v.to_f64()));
            let (low, high) = corners.iter().fold((f64::MAX, f64::MIN), |(a, b), &v| (a.min(v), b.max(v)));
            scene.surfaces.iter().any(|surface| low <= surface.value && surface.value <= high)
        };
        places.par_iter().map(is_seen).collect()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "saturates; clamped to the block")]
fn to_index(at: f64) -> isize {
    at as isize
}
