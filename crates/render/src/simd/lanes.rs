//! Interface of sixteen lanes: the operations that the caster needs of a set of vector instructions.

/// Lanes of a vector, independent of the size of the processor's registers.
pub(crate) const LANES: usize = 16;

/// Work that is compiled once per set of instructions.
pub(crate) trait SimdJob {
    type Output;
    /// Must be `#[inline(always)]`, as must all functions that it calls with vectors.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Part of a [`SimdJob`] that is a function of its own: rarely called code, or code that would make the
/// compilation of a job's one function take minutes. Compiled for the same instructions as the job around it;
/// see [`Simd::call`].
pub(crate) trait SimdStep<S: Simd> {
    type Output;
    /// Must be `#[inline(always)]`, as must all functions that it calls with vectors.
    fn run(self, simd: S) -> Self::Output;
}

/// Offsets of pairs of voxels: elements before the lower one of each pair, per lane.
pub(crate) type PairOffsets = [u32; LANES];

/// Sixteen lanes of `f32` (`F`), of 32-bit integers (`U`) and of booleans (`M`).
pub(crate) trait Simd: Copy {
    type F: Copy;
    type U: Copy;
    type M: Copy;

    /// Runs a step as a function compiled for these instructions, not inlined here.
    fn call<J: SimdStep<Self>>(self, step: J) -> J::Output;

    fn splat(self, v: f32) -> Self::F;
    fn load(self, v: &[f32; LANES]) -> Self::F;
    fn store(self, v: Self::F) -> [f32; LANES];
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    /// Returns `a * b + c`, rounded once if the processor can.
    fn mul_add(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// Returns the smaller one; `b` if either is NaN.
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// Returns the larger one; `b` if either is NaN.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    fn sqrt(self, a: Self::F) -> Self::F;
    /// Truncates to integers; only floats from 0 to 2^31.
    fn truncate(self, a: Self::F) -> Self::U;
    fn to_float(self, a: Self::U) -> Self::F;
    fn splat_u(self, v: u32) -> Self::U;
    fn add_u(self, a: Self::U, b: Self::U) -> Self::U;
    /// Returns the low 32 bits of the product.
    fn mul_u(self, a: Self::U, b: Self::U) -> Self::U;
    fn store_u(self, a: Self::U) -> [u32; LANES];

    /// `a < b`; false for NaN.
    fn lt(self, a: Self::F, b: Self::F) -> Self::M;
    /// `a >= b`; false for NaN.
    fn ge(self, a: Self::F, b: Self::F) -> Self::M;
    /// `a == b`; false for NaN.
    fn eq(self, a: Self::F, b: Self::F) -> Self::M;
    fn and(self, a: Self::M, b: Self::M) -> Self::M;
    fn or(self, a: Self::M, b: Self::M) -> Self::M;
    /// Returns `a` where the mask is true, else `b`.
    fn select(self, m: Self::M, a: Self::F, b: Self::F) -> Self::F;
    /// Returns one bit per lane, lane 0 lowest.
    fn bits(self, m: Self::M) -> u32;
    /// Returns the smallest lane; none is NaN.
    fn least(self, a: Self::F) -> f32;

    /// Loads sixteen 64-bit entries as four vectors of their 16-bit parts, the lowest first.
    ///
    /// # Safety
    /// `table` can be read at every offset.
    unsafe fn entries(self, table: *const u64, at: &PairOffsets) -> [Self::F; 4];
    /// Loads sixteen numbers.
    ///
    /// # Safety
    /// `table` can be read at every offset.
    unsafe fn numbers(self, table: *const f32, at: &PairOffsets) -> Self::F;
    /// Loads the elements at every offset, and those after them.
    ///
    /// # Safety
    /// `data` can be read from every offset on for [`READ_AHEAD`] elements.
    unsafe fn pairs_u8(self, data: *const u8, at: &PairOffsets) -> [Self::F; 2];
    /// # Safety
    /// The conditions of [`Simd::pairs_u8`].
    unsafe fn pairs_u16(self, data: *const u16, at: &PairOffsets) -> [Self::F; 2];
    /// # Safety
    /// The conditions of [`Simd::pairs_u8`].
    unsafe fn pairs_i16(self, data: *const i16, at: &PairOffsets) -> [Self::F; 2];
    /// # Safety
    /// The conditions of [`Simd::pairs_u8`].
    unsafe fn pairs_f32(self, data: *const f32, at: &PairOffsets) -> [Self::F; 2];
    /// Returns `(value - origin) * gain`, at most [`FAR`] from 0 and rounded to `f32` only then; any number
    /// for NaN, which does not occur in blocks that are read by this.
    ///
    /// # Safety
    /// The conditions of [`Simd::pairs_u8`].
    unsafe fn pairs_f64(self, data: *const f64, at: &PairOffsets, origin: f64, gain: f64) -> [Self::F; 2];
}

/// Limit to which places are clamped, far from the table on both sides and far from the limits of `f32`.
pub(crate) const FAR: f64 = 1e30;

/// Number of elements behind a lower voxel that a load of a pair may touch: a gather of bytes reads four.
pub(crate) const READ_AHEAD: usize = 4;
