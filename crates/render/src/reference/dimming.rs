//! Dimming of the slow caster: ambient occlusion from all voxels by brute force, and the depth cue.

use glam::DVec3;

use super::ReferenceVoxels;
use crate::Scene;

/// Cells along the longest edge of the volume.
const CELLS: f64 = 64.0;
/// Half widths of the neighborhoods, cells of the longest edge.
const WIDTHS: [f64; 2] = [1.0, 4.0];

/// Occlusion by cell, and the ends of the depth cue.
pub(super) struct ReferenceDimming {
    cells: [usize; 3],
    /// Edges of a cell in voxels.
    cell: DVec3,
    occlusion: Vec<f64>,
    strength: f64,
    cue: f64,
    /// Distances along rays, world units.
    ends: [f64; 2],
}

impl ReferenceDimming {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 64 cells")]
    pub(super) fn new(scene: &Scene, voxels: &impl ReferenceVoxels, depth_of: impl Fn(DVec3) -> f64) -> Self {
        let [nz, ny, nx] = voxels.shape().map(|n| n as f64);
        let shape = DVec3::new(nx, ny, nz);
        let map = scene.view.world_from_volume.matrix3;
        let voxel = DVec3::new(map.x_axis.length(), map.y_axis.length(), map.z_axis.length());
        let edge = (shape * voxel).max_element() / CELLS;
        let cells = (shape * voxel / edge).min(shape).floor().max(DVec3::ONE);
        let widths = WIDTHS.map(|width| (cells * width * edge / (shape * voxel)).round());
        let grid = CellBoxes { counts: cells.to_array().map(|n| n as usize) };
        let opacities = grid.each(|at| {
            let (low, high) = ((at * shape / cells).ceil(), ((at + 1.0) * shape / cells).ceil());
            let (mut sum, mut count) = (0.0, 0.0);
            for z in low.z as u64..high.z as u64 {
                for y in low.y as u64..high.y as u64 {
                    for x in low.x as u64..high.x as u64 {
                        let opacity = scene.transfer.opacity_at(voxels.value([x, y, z]));
                        sum -= (1.0 - opacity.min(1.0 - 1e-6)).ln() / scene.view.spacing_world(0);
                        count += 1.0;
                    }
                }
            }
            1.0 - (-sum / count * edge).exp()
        });
        let [near, wide] = widths.map(|width| grid.averaged(&grid.averaged(&opacities, width), width));
        let passes = |mean: f64| 1.0 - (2.0 * mean - 1.0).clamp(0.0, 1.0);
        let occlusion = near.iter().zip(&wide).map(|(&a, &b)| 1.0 - passes(a) * passes(b)).collect();
        let mut drawn = scene.view.bounds();
        if let Some(clip) = scene.clip {
            drawn.min = DVec3::from(drawn.min).max(clip.min.into()).into();
            drawn.max = DVec3::from(drawn.max).min(clip.max.into()).into();
        }
        let middle = depth_of(drawn.center().into());
        Self {
            cells: grid.counts,
            cell: shape / cells,
            occlusion,
            strength: scene.light.occlusion.into(),
            cue: scene.light.depth_cue.into(),
            ends: [middle - drawn.radius(), middle + drawn.radius()],
        }
    }

    /// Returns the factor of the depth cue at a distance along a ray, world units.
    pub(super) fn cue_at(&self, distance: f64) -> f64 {
        let [near, far] = self.ends;
        1.0 - self.cue * ((distance - near) / (far - near)).clamp(0.0, 1.0)
    }

    /// Returns the factor of the light of the volume at a position in voxels, at a distance along a ray.
    pub(super) fn at(&self, position: DVec3, distance: f64) -> f64 {
        let cells = Cells { grid: CellBoxes { counts: self.cells }, values: &self.occlusion };
        let occlusion = super::trilinear(&cells, (position + 0.5) / self.cell - 0.5);
        (1.0 - self.strength * occlusion) * self.cue_at(distance)
    }
}

/// Counts of cells along x, y, z.
#[derive(Clone, Copy)]
struct CellBoxes {
    counts: [usize; 3],
}

impl CellBoxes {
    fn each(self, value: impl Fn(DVec3) -> f64) -> Vec<f64> {
        let [nx, ny, nz] = self.counts;
        let rows = (0..nz).flat_map(|z| (0..ny).map(move |y| (y, z)));
        let cells = rows.flat_map(|(y, z)| (0..nx).map(move |x| DVec3::new(x as f64, y as f64, z as f64)));
        cells.map(value).collect()
    }

    /// Averages over boxes of this half width; what lies outside counts as nothing.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the grid")]
    fn averaged(self, values: &[f64], half: DVec3) -> Vec<f64> {
        let last = DVec3::from_array(self.counts.map(|n| n as f64 - 1.0));
        let full = (half * 2.0 + 1.0).element_product();
        self.each(|at| {
            let (low, high) = ((at - half).max(DVec3::ZERO), (at + half).min(last));
            let mut sum = 0.0;
            for z in low.z as usize..=high.z as usize {
                for y in low.y as usize..=high.y as usize {
                    let row = (z * self.counts[1] + y) * self.counts[0];
                    sum += values[row + low.x as usize..=row + high.x as usize].iter().sum::<f64>();
                }
            }
            sum / full
        })
    }
}

/// Cells as voxels.
struct Cells<'a> {
    grid: CellBoxes,
    values: &'a [f64],
}

impl ReferenceVoxels for Cells<'_> {
    fn shape(&self) -> [u64; 3] {
        let [nx, ny, nz] = self.grid.counts.map(|n| n as u64);
        [nz, ny, nx]
    }

    #[expect(clippy::cast_possible_truncation, reason = "within the grid")]
    fn value(&self, [x, y, z]: [u64; 3]) -> f64 {
        let [nx, ny, _] = self.grid.counts;
        self.values[(z as usize * ny + y as usize) * nx + x as usize]
    }
}
