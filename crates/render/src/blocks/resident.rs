//! One block in the pool: its voxels with ghost voxels, and the value ranges of its cells.
//!
//! Ghost voxels are one more layer at the upper end of each axis, so that the eight neighbors of every sample
//! between this block's first voxel and the next block's first voxel are in this block. `ghost.rs` fills
//! them.

use array::{Error, Result};
use glam::DVec3;

use crate::blocks::cell_stats::{CellStats, ValueVariation};
use crate::blocks::charge::Charge;
use crate::blocks::memo::MEMO_SIZE;
use crate::blocks::survey::Survey;
use crate::blocks::voxel::{MissingValues, Voxel, read_labels, read_run};
use crate::cpu::empty_space::visible_cells::SamplingPlans;
use crate::isosurface::active_cells::ActiveCells;
use crate::isosurface::cell_sides::LastSides;
use crate::scene::volume::{ViewLevel, VolumeView};
use crate::simd::{Instructions, READ_AHEAD};

/// Voxels along a side of a cell, the unit of empty-space skipping.
pub(crate) const CELL: usize = 8;

/// Layout of the voxels of a resident block in memory; all `[z, y, x]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockLayout {
    /// Voxels of the block itself.
    pub(crate) shape: [usize; 3],
    /// Voxels with the ghost voxels; axes z and y of a level one voxel thick have none.
    pub(crate) extent: [usize; 3],
    /// Distance of neighbors in memory, in elements; 0 along an axis without ghost voxels.
    pub(crate) strides: [usize; 3],
    /// Cells.
    pub(crate) cells: [usize; 3],
}

impl BlockLayout {
    pub(crate) fn new(level: &ViewLevel, at: [u64; 3]) -> Self {
        let shape = level.block_shape(at);
        let flat = [level.shape[0] == 1, level.shape[1] == 1, false];
        let extent = [0, 1, 2].map(|a| if flat[a] { 1 } else { shape[a] + 1 });
        // An odd pitch: powers of two would compete for the same lines of the processor's cache.
        let pitch = extent[2] | 1;
        let plane = pitch * extent[1];
        let strides = [if flat[0] { 0 } else { plane }, if flat[1] { 0 } else { pitch }, 1];
        Self { shape, extent, strides, cells: shape.map(|n| n.div_ceil(CELL)) }
    }

    pub(crate) fn pitch(&self) -> usize {
        self.extent[2] | 1
    }

    /// Number of elements, including those after the last that a load of the last pair may touch.
    pub(crate) fn len(&self) -> usize {
        self.pitch() * self.extent[1] * self.extent[0] + READ_AHEAD
    }

    pub(crate) fn index(&self, z: usize, y: usize, x: usize) -> usize {
        (z * self.extent[1] + y) * self.pitch() + x
    }

    /// Strides along z and y; a block's voxels, ghost voxels included, are fewer than 2^31.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "see above")]
    pub(crate) fn strides_zy(&self) -> [u32; 2] {
        [self.strides[0] as u32, self.strides[1] as u32]
    }

    pub(crate) fn cell_count(&self) -> usize {
        self.cells.iter().product()
    }

    /// Returns the memory of a block of this layout in the pool, bytes.
    pub(crate) fn size_bytes(&self, voxel_bytes: usize) -> usize {
        // A plan has two bytes for each cell, and a side one.
        let cell_bytes = size_of::<[f32; 2]>() + size_of::<ValueVariation>() + 2 * MEMO_SIZE + 1;
        let voxels = self.len() * voxel_bytes + ActiveCells::size_bytes(self.shape);
        voxels + self.cell_count() * cell_bytes + OVERHEAD_BYTES
    }
}

/// Bookkeeping memory per block: entries of the table and of a picture's copy of it, vectors, this struct.
/// Bytes, rounded up.
const OVERHEAD_BYTES: usize = 512;

/// Origin of a part of the ghost voxels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GhostFill {
    /// Voxels of the same level, which are final.
    Exact,
    /// Interpolated from this level.
    Coarser(usize),
    /// The block's own outermost voxels, because no other block is resident.
    Own,
}

impl GhostFill {
    /// True if a block of a coarser level would provide better values.
    pub(crate) fn is_better_from(self, level_index: usize) -> bool {
        match self {
            Self::Exact => false,
            Self::Coarser(from) => from > level_index,
            Self::Own => true,
        }
    }
}

/// Resident block.
#[derive(Clone, Debug)]
pub(crate) struct Resident<T> {
    pub(crate) level_index: usize,
    pub(crate) at: [u64; 3],
    pub(crate) layout: BlockLayout,
    pub(crate) data: Vec<T>,
    /// Smallest and largest stored value a sample in the cell can meet, rounded outward; low > high where
    /// nothing is present. C order over `layout.cells`.
    pub(crate) cells: Vec<[f32; 2]>,
    /// Variation of the values, in the order of `cells`.
    pub(crate) variations: Vec<ValueVariation>,
    /// True if some voxel, ghost voxels included, is missing.
    pub(crate) has_missing: bool,
    /// Visible cells for the last few transfer functions.
    pub(crate) plans: SamplingPlans,
    /// Sides of the isovalues on which the block lies.
    pub(crate) sides: LastSides,
    /// Origins of the ghost voxels, by the bits of the part (1 x, 2 y, 4 z); entry 0 is unused.
    pub(crate) fills: [GhostFill; 8],
    _charge: Charge,
}

/// Layout of a view's voxels in a block of an n-D array: byte offset and byte strides `[z, y, x]`.
#[derive(Clone, Copy, Debug)]
struct VoxelStrides {
    start: usize,
    strides: [usize; 3],
    total: usize,
}

impl VoxelStrides {
    fn new(view: &VolumeView, level: &ViewLevel, at: [u64; 3]) -> Result<Self> {
        let shape = level.array_block_shape(&view.axes, at);
        let strides = array::c_strides(&shape, view.dtype.size_bytes());
        let start = level.offset_in_block.iter().zip(&strides).map(|(o, s)| o * s).sum();
        let total = shape.iter().try_fold(view.dtype.size_bytes(), |n, &s| n.checked_mul(s));
        Ok(Self {
            start,
            strides: view.axes.map(|a| a.map_or(0, |a| strides[a])),
            total: total.ok_or_else(|| Error::corrupt("expected a block that fits memory"))?,
        })
    }
}

impl<T: Voxel> Resident<T> {
    /// Loads a block's elements, swapping bytes once; its ghost voxels repeat the outermost voxels. Its
    /// memory is charged as long as the block is alive.
    ///
    /// # Errors
    /// `Corrupt` if `bytes` does not have the size of the block.
    pub(crate) fn load(
        view: &VolumeView,
        level_index: usize,
        at: [u64; 3],
        bytes: &[u8],
        missing: &MissingValues<T>,
        charge: Charge,
    ) -> Result<Self> {
        let level = &view.levels[level_index];
        let layout = BlockLayout::new(level, at);
        let source = VoxelStrides::new(view, level, at)?;
        if bytes.len() != source.total {
            return Err(Error::corrupt(format!(
                "expected a block of {} bytes at level {}, found {}",
                source.total,
                level.number,
                bytes.len()
            )));
        }
        let mut data = vec![T::from_f64(0.0); layout.len()];
        let read = if view.meaning == array::Meaning::Labels { read_labels } else { read_run };
        for z in 0..layout.shape[0] {
            for y in 0..layout.shape[1] {
                let from = &bytes[source.start + z * source.strides[0] + y * source.strides[1]..];
                let to = layout.index(z, y, 0);
                read(view.dtype, from, source.strides[2], &mut data[to..to + layout.shape[2]]);
            }
        }
        let mut fills = [GhostFill::Own; 8];
        for (part, fill) in fills.iter_mut().enumerate() {
            let flat = part & 4 != 0 && layout.strides[0] == 0 || part & 2 != 0 && layout.strides[1] == 0;
            if part == 0 || flat {
                *fill = GhostFill::Exact;
            }
        }
        let cells = vec![[f32::INFINITY, f32::NEG_INFINITY]; layout.cell_count()];
        let variations = vec![ValueVariation::default(); layout.cell_count()];
        let has_missing = missing.any(&data);
        Ok(Self {
            level_index,
            at,
            layout,
            data,
            cells,
            variations,
            has_missing,
            plans: SamplingPlans::default(),
            sides: LastSides::default(),
            fills,
            _charge: charge,
        })
    }

    /// Fills a part of the ghost voxels; `values` in C order of [`BlockLayout::part`].
    pub(crate) fn patch(&mut self, part: usize, fill: GhostFill, values: &[T], missing: &MissingValues<T>) {
        let [z, y, x] = self.layout.part(part);
        let mut from = 0;
        for z in z {
            for y in y.clone() {
                let to = self.layout.index(z, y, x.start);
                self.data[to..to + x.len()].copy_from_slice(&values[from..from + x.len()]);
                from += x.len();
            }
        }
        self.fills[part] = fill;
        self.has_missing |= missing.any(values);
    }

    /// Updates value ranges and variations of the cells that a part of the ghost voxels touches, and drops
    /// what was derived from them; part 0 is the whole block.
    pub(crate) fn update_cells(&mut self, part: usize, missing: &MissingValues<T>) {
        self.plans.forget();
        self.sides.forget();
        Instructions::best().run(Survey { block: self, part, missing });
    }

    pub(crate) fn cell_stats(&self) -> CellStats<'_> {
        CellStats { shape: self.layout.cells, ranges: &self.cells, variations: &self.variations }
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.layout.size_bytes(T::BYTES)
    }

    /// Returns the value at a position in this block's voxels, interpolated in stored values; the value of
    /// the nearest voxel if `nearest` is true or one of the eight is missing.
    pub(crate) fn interpolate(&self, local: DVec3, nearest: bool, missing: &MissingValues<T>) -> T {
        let (corners, share) = self.around(local);
        if nearest || self.has_missing && missing.any(&corners) {
            let upper = |share: f64, bit: usize| if share >= 0.5 { bit } else { 0 };
            return corners[upper(share.z, 4) | upper(share.y, 2) | upper(share.x, 1)];
        }
        T::from_f64(trilinear(&corners, share))
    }

    /// Returns the value at a position in this block's voxels, not rounded to their type; `None` if one of
    /// the eight is missing.
    pub(crate) fn value_at(&self, local: DVec3, missing: &MissingValues<T>) -> Option<f64> {
        let (corners, share) = self.around(local);
        let is_whole = !(self.has_missing && missing.any(&corners));
        is_whole.then(|| trilinear(&corners, share))
    }

    /// Returns the eight voxels around a cell `(x, y, z)`, numbered by bits: 1 x, 2 y, 4 z. Beyond the
    /// first voxel and the ghost voxels, the outermost ones are repeated.
    #[inline(always)]
    pub(crate) fn corners(&self, [x, y, z]: [isize; 3]) -> [T; 8] {
        let BlockLayout { shape: [nz, ny, nx], strides: [sz, sy, sx], .. } = self.layout;
        let (z, y, x) = (pair(z, nz, sz), pair(y, ny, sy), pair(x, nx, sx));
        let [a, b, c, d] = [z[0] + y[0], z[0] + y[1], z[1] + y[0], z[1] + y[1]];
        let data = &self.data[..];
        [
            data[a + x[0]],
            data[a + x[1]],
            data[b + x[0]],
            data[b + x[1]],
            data[c + x[0]],
            data[c + x[1]],
            data[d + x[0]],
            data[d + x[1]],
        ]
    }

    /// Returns the eight voxels around a position (numbered by bits: 1 x, 2 y, 4 z), and the weights of the
    /// upper ones.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the block")]
    fn around(&self, local: DVec3) -> ([T; 8], DVec3) {
        let [nz, ny, nx] = self.layout.shape;
        let cell = local.floor().clamp(DVec3::ZERO, DVec3::new(nx as f64, ny as f64, nz as f64) - 1.0);
        let base = self.layout.index(cell.z as usize, cell.y as usize, cell.x as usize);
        let [sz, sy, sx] = self.layout.strides;
        let corners =
            std::array::from_fn(|i| self.data[base + (i >> 2) * sz + (i >> 1 & 1) * sy + (i & 1) * sx]);
        (corners, (local - cell).clamp(DVec3::ZERO, DVec3::ONE))
    }
}

/// Returns the offsets in memory of two neighbors along an axis, of which `last` is a ghost voxel; positions
/// beyond are clamped.
#[inline(always)]
fn pair(lower: isize, last: usize, stride: usize) -> [usize; 2] {
    let last = last.cast_signed();
    [lower.clamp(0, last).cast_unsigned() * stride, (lower + 1).clamp(0, last).cast_unsigned() * stride]
}

fn trilinear<T: Voxel>(corners: &[T; 8], share: DVec3) -> f64 {
    let mix = |a: f64, b: f64, t: f64| a + (b - a) * t;
    let along_x = |i: usize| mix(corners[i].to_f64(), corners[i + 1].to_f64(), share.x);
    let along_y = |i: usize| mix(along_x(i), along_x(i + 2), share.y);
    mix(along_y(0), along_y(4), share.z)
}

impl BlockLayout {
    /// Returns the voxels of a part of the ghost layer (bits 1 x, 2 y, 4 z): one layer along its axes, all
    /// along the others.
    pub(crate) fn part(&self, part: usize) -> [std::ops::Range<usize>; 3] {
        [(0, 4), (1, 2), (2, 1)].map(|(axis, bit)| {
            let n = self.shape[axis];
            if part & bit == 0 { 0..n } else { n..n + 1 }
        })
    }
}
