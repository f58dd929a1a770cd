//! Active cells of a block: cells of eight voxels that lie on several sides of the isovalues, one bit for
//! each, so that rays read the voxels of no other cells.

#![expect(unsafe_code, reason = "bits are read at places that were clamped before")]

use crate::blocks::resident::{BlockLayout, Resident};
use crate::blocks::voxel::{MissingValues, Voxel, above};
use crate::simd::{READ_AHEAD, Simd, SimdJob, each_axis};

/// Bit set over the cells of eight voxels of a block: set if a surface or a missing voxel may be in the cell.
#[derive(Debug)]
pub(crate) struct ActiveCells {
    /// Rows along x of whole bytes, the lowest bit first; C order. [`READ_AHEAD`] bytes follow.
    bits: Vec<u8>,
    /// Distances of neighboring cells along z and y, bytes.
    strides: [u32; 2],
    /// The last cell along x, y, z.
    last: [f32; 3],
}

/// Cells of a byte.
const BITS: usize = 8;

/// Number that replaces the side of a missing voxel.
const ABSENT: u8 = u8::MAX;
const _: () = assert!(crate::Isosurface::MAX_COUNT < ABSENT as usize, "a side in a byte");

impl ActiveCells {
    /// Returns the memory for a block of this shape, bytes.
    pub(crate) fn size_bytes([nz, ny, nx]: [usize; 3]) -> usize {
        nz * ny * nx.div_ceil(BITS) + READ_AHEAD
    }

    #[expect(clippy::cast_possible_truncation, reason = "a block has fewer than 2^31 voxels")]
    fn none([nz, ny, nx]: [usize; 3]) -> Self {
        let row = nx.div_ceil(BITS);
        Self {
            bits: vec![0; Self::size_bytes([nz, ny, nx])],
            strides: [(ny * row) as u32, row as u32],
            last: [nx, ny, nz].map(|n| (n - 1) as f32),
        }
    }

    /// Returns the mask of the cells `(x, y, z)`, integers, in which a surface or a missing voxel may be.
    /// Beyond the block its outermost cells are repeated.
    #[inline(always)]
    pub(crate) fn at<S: Simd>(&self, simd: S, cell: &[S::F; 3]) -> S::M {
        let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
        let cell = each_axis!(a => simd.min(simd.max(cell[a], zero), simd.splat(self.last[a])));
        let byte = simd.truncate(simd.mul(cell[0], simd.splat(1.0 / BITS as f32)));
        let plane = simd.mul_u(simd.truncate(cell[2]), simd.splat_u(self.strides[0]));
        let row = simd.mul_u(simd.truncate(cell[1]), simd.splat_u(self.strides[1]));
        let at = simd.store_u(simd.add_u(simd.add_u(plane, row), byte));
        // SAFETY: cells are clamped to the block, of which each has its bit, and READ_AHEAD bytes follow.
        let [mut bits, _] = unsafe { simd.pairs_u8(self.bits.as_ptr(), &at) };
        // Move the cell's bit to the lowest place: shift by four, two and one, for each bit of the cell's
        // number.
        let mut number = simd.sub(cell[0], simd.mul(simd.to_float(byte), simd.splat(BITS as f32)));
        let mut part = 0;
        while part < HALVINGS.len() {
            let [times, share] = HALVINGS[part];
            let has_it = simd.ge(number, simd.splat(times));
            number = simd.sub(number, simd.select(has_it, simd.splat(times), zero));
            bits = simd.select(has_it, simd.mul(bits, simd.splat(share)), bits);
            part += 1;
        }
        let ones = simd.to_float(simd.truncate(bits));
        let pairs = simd.to_float(simd.truncate(simd.mul(ones, simd.splat(0.5))));
        simd.ge(simd.sub(ones, simd.add(pairs, pairs)), one)
    }
}

/// Number of halvings, and the factor that they make.
const HALVINGS: [[f32; 2]; 3] = [[4.0, 1.0 / 16.0], [2.0, 0.25], [1.0, 0.5]];

/// Finds the active cells of a block.
pub(crate) struct FindActiveCells<'a, T> {
    pub(crate) block: &'a Resident<T>,
    pub(crate) missing: &'a MissingValues<T>,
    /// Isovalues as stored values.
    pub(crate) isovalues: &'a [f64],
}

impl<T: Voxel> SimdJob for FindActiveCells<'_, T> {
    type Output = ActiveCells;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> ActiveCells {
        let Self { block, missing, isovalues } = self;
        let missing = block.has_missing.then_some(missing);
        let BlockLayout { shape, extent, .. } = block.layout;
        let ([nz, ny, nx], width) = (shape, extent[2]);
        let mut active = ActiveCells::none(shape);
        // One plane of voxels and the previous one.
        let mut sides = [vec![0; extent[1] * width], vec![0; extent[1] * width]];
        let mut flags = vec![0; nx.div_ceil(BITS) * BITS];
        let mut rows = active.bits.chunks_exact_mut(nx.div_ceil(BITS));
        for z in 0..=nz {
            sides.swap(0, 1);
            let [before, here] = &mut sides;
            for (y, sides) in here.chunks_exact_mut(width).enumerate() {
                // A level that is one voxel thick has no ghost voxels: its only plane is its own neighbor.
                let row = block.layout.index(z.min(extent[0] - 1), y, 0);
                tell_sides(&block.data[row..row + width], isovalues, missing, sides);
            }
            if z == 0 {
                continue;
            }
            for y in 0..ny {
                let [y, next] = [y, (y + 1).min(extent[1] - 1)].map(|y| y * width);
                let [a, b] = [y, next].map(|from| &before[from..from + width]);
                let [c, d] = [y, next].map(|from| &here[from..from + width]);
                cross([a, b, c, d], &mut flags[..nx]);
                pack(&flags, rows.next().expect("a row of bits for each of cells"));
            }
        }
        active
    }
}

/// Finds the sides on which the voxels of a row lie.
#[inline(always)]
fn tell_sides<T: Voxel>(
    voxels: &[T],
    isovalues: &[f64],
    missing: Option<&MissingValues<T>>,
    sides: &mut [u8],
) {
    sides.fill(0);
    for &isovalue in isovalues {
        let least = above(isovalue);
        for (side, &voxel) in sides.iter_mut().zip(voxels) {
            let is_above = if T::WIDE { voxel.to_f64() >= isovalue } else { voxel.to_f32() >= least };
            *side += u8::from(is_above);
        }
    }
    if let Some(missing) = missing {
        for (side, &voxel) in sides.iter_mut().zip(voxels) {
            *side = if missing.is_missing(voxel) { ABSENT } else { *side };
        }
    }
}

/// Writes 1 for each cell between four rows of voxels that lies on several sides, or has a missing voxel,
/// else 0.
#[inline(always)]
fn cross(rows: [&[u8]; 4], flags: &mut [u8]) {
    let count = flags.len();
    let [a, b, c, d] = rows.map(|row| &row[..count]);
    let [e, f, g, h] = rows.map(|row| &row[1..=count]);
    for x in 0..count {
        let low = a[x].min(b[x]).min(c[x].min(d[x])).min(e[x].min(f[x]).min(g[x].min(h[x])));
        let high = a[x].max(b[x]).max(c[x].max(d[x])).max(e[x].max(f[x]).max(g[x].max(h[x])));
        flags[x] = u8::from(low != high) | u8::from(high == ABSENT);
    }
}

/// Packs eight flags into a byte, the first lowest.
#[inline(always)]
fn pack(flags: &[u8], bits: &mut [u8]) {
    // The multiplication moves each flag to its place in the highest byte, and no two to the same place.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    for (byte, flags) in bits.iter_mut().zip(flags.as_chunks().0) {
        *byte = u64::from_le_bytes(*flags).wrapping_mul(GATHER).to_be_bytes()[0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Instructions;

    /// Asks for each cell of a row, and one beyond it at both ends.
    struct Ask<'a>(&'a ActiveCells);

    impl SimdJob for Ask<'_> {
        type Output = Vec<u32>;

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Vec<u32> {
            let zero = simd.splat(0.0);
            let at = |x: i16| simd.bits(self.0.at(simd, &[simd.splat(f32::from(x)), simd.splat(1.0), zero]));
            (-1..46).map(at).collect()
        }
    }

    #[test]
    fn flags_become_bits_that_are_found_again() {
        let mut flags: Vec<u8> = (0..48).map(|i| u8::from(i * i % 7 < 3)).collect();
        flags[45..].fill(0);
        let mut active = ActiveCells::none([1, 2, 45]);
        pack(&flags, &mut active.bits[6..12]);
        let expected = [&flags[..1], &flags[..45], &flags[44..45]].concat();
        for &set in Instructions::available() {
            let found = set.run(Ask(&active));
            assert_eq!(found, expected.iter().map(|&flag| u32::from(flag) * 0xFFFF).collect::<Vec<_>>());
        }
    }

    #[test]
    fn cells_with_voxels_on_several_sides_or_missing_ones_are_told() {
        let rows = [[0, 0, 1, 1, 1, 2], [0, 0, 1, 1, 1, 2], [0, 0, 1, 1, 1, 2], [0, 0, 1, 1, 1, 2]];
        let mut flags = [0; 5];
        cross(rows.each_ref().map(|row| &row[..]), &mut flags);
        assert_eq!(flags, [0, 1, 0, 0, 1]);
        let absent = [ABSENT; 6];
        cross([&absent, &absent, &absent, &absent], &mut flags);
        assert_eq!(flags, [1; 5]);
    }
}
