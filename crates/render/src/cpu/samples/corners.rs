//! The eight voxels around each of sixteen samples, and interpolation between them.
//!
//! The only place where voxels are read without a bounds check each: positions are clamped to the block
//! first, and the range that a clamped position can reach was checked once for the block.

#![expect(unsafe_code, reason = "voxels are read at offsets that were clamped before")]

use crate::blocks::resident::Resident;
use crate::blocks::voxel::{MissingValues, PlaceScale, Voxel};
use crate::simd::{LANES, PairOffsets, READ_AHEAD, Simd, each_axis};

/// Voxels of a block, prepared for reading by sixteen lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VoxelGrid<'a, T> {
    data: &'a [T],
    /// Distance of neighbors in memory along z and y.
    strides: [u32; 2],
    /// Largest position `(x, y, z)` whose upper neighbors are still in the ghost voxels.
    last: [f32; 3],
    /// True if some voxels are missing.
    pub(crate) has_missing: bool,
}

/// Voxels around sixteen positions in the grid that created it.
pub(crate) struct VoxelCorners<S: Simd> {
    /// Lowest voxel of each position.
    lowest: PairOffsets,
    /// Weights of the upper neighbors along x, y, z.
    share: [S::F; 3],
}

impl<'a, T: Voxel> VoxelGrid<'a, T> {
    #[inline]
    pub(crate) fn new(block: &'a Resident<T>) -> Self {
        let [z, y, x] = block.layout.shape.map(|n| n - 1);
        let [sz, sy] = block.layout.strides_zy();
        // Every offset below: clamped positions are at most the last voxel's, and sums of both strides follow.
        let highest = (z + 1) * sz as usize + (y + 1) * sy as usize + x;
        assert!(
            highest + READ_AHEAD <= block.data.len() && i32::try_from(block.data.len()).is_ok(),
            "a block with its ghost voxels"
        );
        let [nz, ny, nx] = block.layout.shape.map(|n| (n as f32).next_down());
        let has_missing = block.has_missing;
        Self { data: &block.data, strides: [sz, sy], last: [nx, ny, nz], has_missing }
    }

    /// Returns the voxels around positions `(x, y, z)`, which are clamped to the block.
    #[inline(always)]
    pub(crate) fn around<S: Simd>(&self, simd: S, at: &[S::F; 3]) -> VoxelCorners<S> {
        // NaN becomes 0.
        let at = each_axis!(a => {
            simd.min(simd.max(at[a], simd.splat(0.0)), simd.splat(self.last[a]))
        });
        let cell = each_axis!(a => simd.truncate(at[a]));
        let lowest = self.offsets(simd, &cell);
        let share = each_axis!(a => simd.sub(at[a], simd.to_float(cell[a])));
        VoxelCorners { lowest, share }
    }

    /// Returns the offsets of voxels `(x, y, z)`.
    #[inline(always)]
    fn offsets<S: Simd>(&self, simd: S, voxel: &[S::U; 3]) -> PairOffsets {
        let [sz, sy] = self.strides;
        let plane = simd.mul_u(voxel[2], simd.splat_u(sz));
        let row = simd.mul_u(voxel[1], simd.splat_u(sy));
        simd.store_u(simd.add_u(simd.add_u(plane, row), voxel[0]))
    }

    /// Returns the starts of the four rows of the eight voxels: the lowest, the next along y, the next along
    /// z, the next along both.
    #[inline(always)]
    fn rows(&self) -> [*const T; 4] {
        let (sz, sy) = (self.strides[0] as usize, self.strides[1] as usize);
        let lowest = self.data.as_ptr();
        // `wrapping_add` only because it has no unsafe precondition: the read range was checked in `new`.
        [lowest, lowest.wrapping_add(sy), lowest.wrapping_add(sz), lowest.wrapping_add(sz + sy)]
    }

    /// Returns the places of the values interpolated between the eight.
    #[inline(always)]
    pub(crate) fn linear<S: Simd>(&self, simd: S, corners: &VoxelCorners<S>, scale: &PlaceScale) -> S::F {
        let [_, y, z] = corners.share;
        let [r0, r1, r2, r3] = self.rows();
        let near = mix(simd, along_x(simd, r0, corners, scale), along_x(simd, r1, corners, scale), y);
        let far = mix(simd, along_x(simd, r2, corners, scale), along_x(simd, r3, corners, scale), y);
        scale.places::<T, S>(simd, mix(simd, near, far, z))
    }

    /// Returns the values, and their slopes along x, y and z, per voxel.
    #[inline(always)]
    fn sloped<S: Simd>(simd: S, rows: &[[S::F; 2]; 4], share: &[S::F; 3]) -> (S::F, [S::F; 3]) {
        let [x, y, z] = *share;
        let rises = [
            simd.sub(rows[0][1], rows[0][0]),
            simd.sub(rows[1][1], rows[1][0]),
            simd.sub(rows[2][1], rows[2][0]),
            simd.sub(rows[3][1], rows[3][0]),
        ];
        let along = [
            simd.mul_add(rises[0], x, rows[0][0]),
            simd.mul_add(rises[1], x, rows[1][0]),
            simd.mul_add(rises[2], x, rows[2][0]),
            simd.mul_add(rises[3], x, rows[3][0]),
        ];
        let (near, far) = (mix(simd, along[0], along[1], y), mix(simd, along[2], along[3], y));
        let along_x = mix(simd, mix(simd, rises[0], rises[1], y), mix(simd, rises[2], rises[3], y), z);
        let along_y = mix(simd, simd.sub(along[1], along[0]), simd.sub(along[3], along[2]), z);
        (mix(simd, near, far, z), [along_x, along_y, simd.sub(far, near)])
    }

    /// Returns [`VoxelGrid::linear`], and the slopes of the loaded numbers.
    #[inline(always)]
    pub(crate) fn linear_sloped<S: Simd>(
        &self,
        simd: S,
        corners: &VoxelCorners<S>,
        scale: &PlaceScale,
    ) -> (S::F, [S::F; 3]) {
        let rows = self.rows();
        // SAFETY: as in `along_x`.
        let pairs = unsafe {
            [
                T::pairs(simd, rows[0], &corners.lowest, scale),
                T::pairs(simd, rows[1], &corners.lowest, scale),
                T::pairs(simd, rows[2], &corners.lowest, scale),
                T::pairs(simd, rows[3], &corners.lowest, scale),
            ]
        };
        let (value, slopes) = Self::sloped(simd, &pairs, &corners.share);
        (scale.places::<T, S>(simd, value), slopes)
    }

    /// Returns the slopes among the present ones of the eight; `place` replaces the others.
    #[inline(always)]
    pub(crate) fn slopes_present<S: Simd>(
        &self,
        simd: S,
        corners: &VoxelCorners<S>,
        scale: &PlaceScale,
        missing: &MissingValues<T>,
        place: S::F,
    ) -> [S::F; 3] {
        let rows = self.rows();
        // SAFETY: as in `along_x`.
        let loaded = unsafe {
            [
                missing.pairs(simd, rows[0], &corners.lowest, scale),
                missing.pairs(simd, rows[1], &corners.lowest, scale),
                missing.pairs(simd, rows[2], &corners.lowest, scale),
                missing.pairs(simd, rows[3], &corners.lowest, scale),
            ]
        };
        let (mut low, mut high) = (simd.splat(f32::INFINITY), simd.splat(f32::NEG_INFINITY));
        for (value, present) in loaded.as_flattened() {
            low = simd.min(simd.select(*present, *value, low), low);
            high = simd.max(simd.select(*present, *value, high), high);
        }
        // Rounding must not produce a slope among equal values.
        let middle = simd.max(simd.min(scale.loaded::<T, S>(simd, place), high), low);
        let mut pairs = [[middle; 2]; 4];
        for (pair, loaded) in pairs.as_flattened_mut().iter_mut().zip(loaded.as_flattened()) {
            *pair = simd.select(loaded.1, loaded.0, middle);
        }
        Self::sloped(simd, &pairs, &corners.share).1
    }

    /// Returns the places interpolated among the present ones of the eight, their weights scaled up to one;
    /// and a mask of positions with at least half of the weight present.
    #[inline(always)]
    pub(crate) fn linear_present<S: Simd>(
        &self,
        simd: S,
        corners: &VoxelCorners<S>,
        scale: &PlaceScale,
        missing: &MissingValues<T>,
    ) -> (S::F, S::M) {
        let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
        let (mut sum, mut weights) = (zero, zero);
        let [x, y, z] = each_axis!(a => [simd.sub(one, corners.share[a]), corners.share[a]]);
        let rows = self.rows();
        let mut number = 0;
        while number < rows.len() {
            // SAFETY: as in `along_x`.
            let pair = unsafe { missing.pairs(simd, rows[number], &corners.lowest, scale) };
            let across = simd.mul(y[number & 1], z[number >> 1]);
            let mut upper = 0;
            while upper < pair.len() {
                let (value, present) = pair[upper];
                let weight = simd.select(present, simd.mul(across, x[upper]), zero);
                sum = simd.mul_add(simd.select(present, value, zero), weight, sum);
                weights = simd.add(weights, weight);
                upper += 1;
            }
            number += 1;
        }
        (scale.places::<T, S>(simd, simd.div(sum, weights)), simd.ge(weights, simd.splat(0.5)))
    }

    /// Returns the smallest and the largest of the eight, as loaded; NaN if some are missing.
    #[inline(always)]
    pub(crate) fn range<S: Simd>(
        &self,
        simd: S,
        corners: &VoxelCorners<S>,
        scale: &PlaceScale,
        missing: &MissingValues<T>,
    ) -> [S::F; 2] {
        let (mut low, mut high) = (simd.splat(f32::INFINITY), simd.splat(f32::NEG_INFINITY));
        let mut is_whole = simd.ge(high, high);
        let rows = self.rows();
        let mut number = 0;
        while number < rows.len() {
            let pair = if self.has_missing {
                // SAFETY: as in `along_x`.
                let [a, b] = unsafe { missing.pairs(simd, rows[number], &corners.lowest, scale) };
                is_whole = simd.and(is_whole, simd.and(a.1, b.1));
                [a.0, b.0]
            } else {
                // SAFETY: as in `along_x`.
                unsafe { T::pairs(simd, rows[number], &corners.lowest, scale) }
            };
            low = simd.min(low, simd.min(pair[0], pair[1]));
            high = simd.max(high, simd.max(pair[0], pair[1]));
            number += 1;
        }
        if self.has_missing {
            low = simd.select(is_whole, low, simd.splat(f32::NAN));
            high = simd.select(is_whole, high, simd.splat(f32::NAN));
        }
        [low, high]
    }

    /// Returns the voxel nearest to each position.
    #[inline(always)]
    pub(crate) fn nearest<S: Simd>(&self, simd: S, at: &[S::F; 3]) -> [T; LANES] {
        let half = simd.splat(0.5);
        // Rounding is truncation half a voxel farther on; the upper half of the last voxel belongs to a ghost
        // voxel.
        let cell = each_axis!(a => {
            let farther = simd.add(simd.max(at[a], simd.splat(0.0)), half);
            simd.truncate(simd.min(farther, simd.splat((self.last[a] + 1.0).next_down())))
        });
        let offsets = self.offsets(simd, &cell);
        offsets.map(|offset| self.data[offset as usize])
    }
}

#[inline(always)]
fn mix<S: Simd>(simd: S, a: S::F, b: S::F, share: S::F) -> S::F {
    simd.mul_add(simd.sub(b, a), share, a)
}

/// Interpolates along x in one row.
#[inline(always)]
fn along_x<S: Simd, T: Voxel>(simd: S, row: *const T, corners: &VoxelCorners<S>, scale: &PlaceScale) -> S::F {
    // SAFETY: offsets in `VoxelCorners` are clamped; with the row's they stay below `highest` of `VoxelGrid::new`.
    let [a, b] = unsafe { T::pairs(simd, row, &corners.lowest, scale) };
    mix(simd, a, b, corners.share[0])
}
