//! Levels of resolution and the grid of blocks on each.

use serde::{Deserialize, Serialize};

use crate::values::float::{json_list, json_matrix, same_floats};
use crate::{AxisKind, DType, Error, Result, Selection};

/// Origin of the values of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LevelOrigin {
    /// Stored in the file.
    Stored,
    /// Mean of the voxels that exist, of the next finer level.
    Mean,
    /// Most frequent label of the next finer level.
    Mode,
    /// Every n-th voxel of level 0: quick to get, not a mean.
    Sampled,
    /// The values at the corners of a mesh's blocks: quick to get, not means.
    Corners,
}

impl LevelOrigin {
    /// Whether values are single values of a finer level: they are cheap, and are drawn until better ones arrive.
    #[must_use]
    pub fn is_quick_look(self) -> bool {
        matches!(self, Self::Sampled | Self::Corners)
    }
}

/// An affine map, row-major: `world = m[..][0..3] * [x, y, z] + m[..][3]`.
///
/// Input are voxel indices in the order x, y, z (fastest first); voxel `i`'s center is at index `i`.
/// Output is world space: right-handed, RAS-oriented where the format knows. Floats compare by
/// [`same_float`](crate::same_float).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Affine(#[serde(with = "json_matrix")] pub [[f64; 4]; 3]);

impl PartialEq for Affine {
    fn eq(&self, other: &Self) -> bool {
        same_floats(self.0.as_flattened(), other.0.as_flattened())
    }
}

impl Eq for Affine {}

impl Affine {
    /// Voxel indices are world coordinates.
    pub const IDENTITY: Self = Self([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]);

    /// Axis-aligned: spacing and origin in the order x, y, z.
    #[must_use]
    pub fn from_spacing(spacing: [f64; 3], origin: [f64; 3]) -> Self {
        let mut m = Self::IDENTITY;
        for i in 0..3 {
            m.0[i][i] = spacing[i];
            m.0[i][3] = origin[i];
        }
        m
    }

    /// The world position of voxel position `[x, y, z]`.
    #[must_use]
    pub fn apply(&self, p: [f64; 3]) -> [f64; 3] {
        self.0.map(|row| row[0] * p[0] + row[1] * p[1] + row[2] * p[2] + row[3])
    }

    /// The map of a level whose voxel `i` lies at finer voxel `scale * i + shift` (x, y, z).
    #[must_use]
    pub fn coarsened(&self, scale: [f64; 3], shift: [f64; 3]) -> Self {
        let origin = self.apply(shift);
        let mut m = *self;
        for (row, &o) in m.0.iter_mut().zip(&origin) {
            for axis in 0..3 {
                row[axis] *= scale[axis];
            }
            row[3] = o;
        }
        m
    }

    /// Length of one voxel along x, y, z in world units.
    #[must_use]
    pub fn spacing(&self) -> [f64; 3] {
        [0, 1, 2].map(|c| self.0.iter().map(|row| row[c] * row[c]).sum::<f64>().sqrt())
    }
}

/// One resolution of an array.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Level {
    /// Elements per axis, in the array's axis order.
    pub shape: Vec<u64>,
    /// Block size per axis; the last block of an axis may be smaller.
    pub block: Vec<u64>,
    /// Shape of the stored chunks, which are read and decoded whole; `None` if every element is found by its offset.
    #[serde(default)]
    pub chunk: Option<Vec<u64>>,
    /// Origin of the values.
    pub origin: LevelOrigin,
    /// Number of level-0 voxels in one voxel of this level, per axis.
    #[serde(with = "json_list")]
    pub factor: Vec<f64>,
    /// Affine map from voxel indices to world positions; input order x, y, z of the array's spatial axes.
    pub world_from_voxel: Affine,
}

impl PartialEq for Level {
    fn eq(&self, other: &Self) -> bool {
        let Self { shape, block, chunk, origin, factor, world_from_voxel } = self;
        (shape, block, chunk, origin) == (&other.shape, &other.block, &other.chunk, &other.origin)
            && same_floats(factor, &other.factor)
            && *world_from_voxel == other.world_from_voxel
    }
}

impl Eq for Level {}

impl Level {
    /// The box per axis that costs as much to get as any element of it: the stored chunk, or the block of a level that
    /// is made. `None` where any element is found by its place. Large reads are cut along its grid.
    #[must_use]
    pub fn grain(&self) -> Option<&[u64]> {
        match self.origin {
            LevelOrigin::Stored | LevelOrigin::Sampled | LevelOrigin::Corners => self.chunk.as_deref(),
            LevelOrigin::Mean | LevelOrigin::Mode => Some(&self.block),
        }
    }

    /// Blocks per axis.
    #[must_use]
    pub fn grid(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.block).map(|(&n, &b)| n.div_ceil(b.max(1))).collect()
    }

    /// Number of blocks; saturates at 2^64 - 1.
    #[must_use]
    pub fn block_count(&self) -> u64 {
        self.grid().iter().fold(1, |n, &g| n.saturating_mul(g))
    }

    /// Place in the grid of the block with this linear index (C order over the grid).
    ///
    /// # Errors
    /// `Invalid` if there are fewer blocks.
    pub fn grid_position(&self, index: u64) -> Result<Vec<u64>> {
        let grid = self.grid();
        if index >= self.block_count() {
            return Err(Error::invalid(format!(
                "expected a block index below {}, found {index}",
                self.block_count()
            )));
        }
        let mut rest = index;
        let mut at = vec![0; grid.len()];
        for axis in (0..grid.len()).rev() {
            at[axis] = rest % grid[axis];
            rest /= grid[axis];
        }
        Ok(at)
    }

    /// Linear index of the block at a place in the grid; `u64::MAX`, which no grid has, for a place outside.
    #[must_use]
    pub fn block_index(&self, at: &[u64]) -> u64 {
        let grid = self.grid();
        if grid.iter().zip(at).any(|(g, p)| p >= g) {
            return u64::MAX;
        }
        grid.iter().zip(at).fold(0, |n, (&g, &p)| n * g + p)
    }

    /// Returns the elements that block `index` covers, clipped to the shape of the level.
    ///
    /// # Errors
    /// `Invalid` if there are fewer blocks.
    pub fn block_selection(&self, index: u64) -> Result<Selection> {
        let at = self.grid_position(index)?;
        let start: Vec<u64> = at.iter().zip(&self.block).map(|(p, b)| p * b).collect();
        let count: Vec<u64> =
            start.iter().zip(&self.block).zip(&self.shape).map(|((&s, &b), &n)| b.min(n - s)).collect();
        Ok(Selection::of_box(&start, &count))
    }
}

/// Smallest block worth a request, bytes.
pub const MIN_BLOCK_BYTES: u64 = 256 << 10;
/// Largest block, bytes, unless a stored chunk is larger still.
pub const MAX_BLOCK_BYTES: u64 = 1 << 20;
/// Largest block of any array, bytes, also if a stored chunk is larger: bounds the memory of one block.
pub const MAX_CHUNK_BLOCK_BYTES: u64 = 64 << 20;

/// Chooses the block grid of a level: spatial axes grow evenly from 1 (or from the stored chunk)
/// to between [`MIN_BLOCK_BYTES`] and [`MAX_BLOCK_BYTES`]; other axes stay at 1.
///
/// `chunk`: the stored chunk, if there is one; blocks are whole multiples of it on spatial axes, and a
/// chunk larger than the limit is cut evenly. All in the array's axis order.
#[must_use]
pub fn choose_blocks(shape: &[u64], kinds: &[AxisKind], dtype: DType, chunk: Option<&[u64]>) -> Vec<u64> {
    let item = dtype.size_bytes() as u64;
    let spatial: Vec<usize> =
        (0..shape.len()).filter(|&a| kinds.get(a).is_some_and(|k| k.is_spatial())).collect();
    // Without spatial axes every axis may grow: a plain table or series.
    let growing: Vec<usize> = if spatial.is_empty() { (0..shape.len()).collect() } else { spatial };
    let mut block = vec![1u64; shape.len()];
    for &a in &growing {
        block[a] = chunk.and_then(|c| c.get(a)).map_or(1, |&c| c.clamp(1, shape[a].max(1)));
    }
    let bytes = |b: &[u64]| b.iter().fold(item, |n, &v| n.saturating_mul(v));
    while bytes(&block) > MAX_BLOCK_BYTES {
        let Some(&longest) = growing.iter().max_by_key(|&&a| block[a]) else { break };
        if block[longest] <= 1 {
            break;
        }
        block[longest] = block[longest].div_ceil(2);
    }
    loop {
        // The shortest axis that can still double, faster axes first.
        let next = growing.iter().rev().filter(|&&a| block[a] < shape[a]).min_by_key(|&&a| block[a]).copied();
        let Some(axis) = next else { return block };
        if bytes(&block) >= MIN_BLOCK_BYTES || bytes(&block) * 2 > MAX_BLOCK_BYTES {
            return block;
        }
        block[axis] = (block[axis] * 2).min(shape[axis]);
    }
}
