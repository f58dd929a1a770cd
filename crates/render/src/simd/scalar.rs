//! Sixteen lanes in an array, for processors without supported vector instructions, and as a reference for
//! tests.
//!
//! Operations are functions of their own: if inlined, loops over lanes would dominate the compiled code.

#![expect(unsafe_code, reason = "offsets were checked by whoever made them")]

use super::lanes::{FAR, LANES, PairOffsets, Simd, SimdStep};

/// Scalar instructions on sixteen lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScalarSimd;

type F = [f32; LANES];
type U = [u32; LANES];
type M = [bool; LANES];

/// An operation lane by lane.
macro_rules! lanes {
    ($zero:expr, $lane:ident => $body:expr) => {{
        let mut result = [$zero; LANES];
        for $lane in 0..LANES {
            result[$lane] = $body;
        }
        result
    }};
}

/// Loads pairs at every offset, each element converted to a float.
///
/// # Safety
/// `data` can be read from every offset on for two elements.
#[inline(always)]
unsafe fn pairs<T: Copy>(data: *const T, at: &PairOffsets, float: impl Fn(T) -> f32) -> [F; 2] {
    // SAFETY: as the caller says.
    let read = |i: usize| float(unsafe { data.add(i).read() });
    [lanes!(0.0, l => read(at[l] as usize)), lanes!(0.0, l => read(at[l] as usize + 1))]
}

#[expect(clippy::cast_possible_truncation, reason = "places are f32")]
#[expect(clippy::cast_sign_loss, reason = "as the trait says")]
#[expect(clippy::cast_precision_loss, reason = "whole numbers stay below 2^24")]
impl Simd for ScalarSimd {
    type F = F;
    type U = U;
    type M = M;

    #[inline(never)]
    fn call<J: SimdStep<Self>>(self, step: J) -> J::Output {
        step.run(self)
    }

    #[inline(always)]
    fn splat(self, v: f32) -> F {
        [v; LANES]
    }

    #[inline(always)]
    fn load(self, v: &F) -> F {
        *v
    }

    #[inline(always)]
    fn store(self, v: F) -> F {
        v
    }

    #[inline(never)]
    fn add(self, a: F, b: F) -> F {
        lanes!(0.0, l => a[l] + b[l])
    }

    #[inline(never)]
    fn sub(self, a: F, b: F) -> F {
        lanes!(0.0, l => a[l] - b[l])
    }

    #[inline(never)]
    fn mul(self, a: F, b: F) -> F {
        lanes!(0.0, l => a[l] * b[l])
    }

    #[inline(always)]
    fn mul_add(self, a: F, b: F, c: F) -> F {
        self.add(self.mul(a, b), c)
    }

    #[inline(never)]
    fn min(self, a: F, b: F) -> F {
        lanes!(0.0, l => if a[l] < b[l] { a[l] } else { b[l] })
    }

    #[inline(never)]
    fn max(self, a: F, b: F) -> F {
        lanes!(0.0, l => if a[l] > b[l] { a[l] } else { b[l] })
    }

    #[inline(never)]
    fn div(self, a: F, b: F) -> F {
        lanes!(0.0, l => a[l] / b[l])
    }

    #[inline(never)]
    fn sqrt(self, a: F) -> F {
        lanes!(0.0, l => a[l].sqrt())
    }

    #[inline(never)]
    fn truncate(self, a: F) -> U {
        // By way of i32, which the baseline processors support.
        lanes!(0, l => a[l] as i32 as u32)
    }

    #[inline(never)]
    fn to_float(self, a: U) -> F {
        lanes!(0.0, l => a[l].cast_signed() as f32)
    }

    #[inline(always)]
    fn splat_u(self, v: u32) -> U {
        [v; LANES]
    }

    #[inline(never)]
    fn add_u(self, a: U, b: U) -> U {
        lanes!(0, l => a[l].wrapping_add(b[l]))
    }

    #[inline(never)]
    fn mul_u(self, a: U, b: U) -> U {
        lanes!(0, l => a[l].wrapping_mul(b[l]))
    }

    #[inline(always)]
    fn store_u(self, a: U) -> [u32; LANES] {
        a
    }

    #[inline(never)]
    fn lt(self, a: F, b: F) -> M {
        lanes!(false, l => a[l] < b[l])
    }

    #[inline(never)]
    fn ge(self, a: F, b: F) -> M {
        lanes!(false, l => a[l] >= b[l])
    }

    #[inline(never)]
    fn eq(self, a: F, b: F) -> M {
        lanes!(false, l => a[l] == b[l])
    }

    #[inline(never)]
    fn and(self, a: M, b: M) -> M {
        lanes!(false, l => a[l] & b[l])
    }

    #[inline(never)]
    fn or(self, a: M, b: M) -> M {
        lanes!(false, l => a[l] | b[l])
    }

    #[inline(never)]
    fn select(self, m: M, a: F, b: F) -> F {
        lanes!(0.0, l => if m[l] { a[l] } else { b[l] })
    }

    #[inline(never)]
    fn bits(self, m: M) -> u32 {
        m.iter().rev().fold(0, |bits, &m| bits << 1 | u32::from(m))
    }

    #[inline(never)]
    fn least(self, a: F) -> f32 {
        a.into_iter().fold(f32::INFINITY, f32::min)
    }

    #[inline(never)]
    unsafe fn entries(self, table: *const u64, at: &PairOffsets) -> [F; 4] {
        // SAFETY: as the caller says.
        let entries = lanes!(0, l => unsafe { table.add(at[l] as usize).read() });
        [0, 16, 32, 48].map(|shift| lanes!(0.0, l => f32::from((entries[l] >> shift) as u16)))
    }

    #[inline(never)]
    unsafe fn numbers(self, table: *const f32, at: &PairOffsets) -> F {
        // SAFETY: as the caller says.
        lanes!(0.0, l => unsafe { table.add(at[l] as usize).read() })
    }

    #[inline(never)]
    unsafe fn pairs_u8(self, data: *const u8, at: &PairOffsets) -> [F; 2] {
        // SAFETY: as the caller says.
        unsafe { pairs(data, at, f32::from) }
    }

    #[inline(never)]
    unsafe fn pairs_u16(self, data: *const u16, at: &PairOffsets) -> [F; 2] {
        // SAFETY: as the caller says.
        unsafe { pairs(data, at, f32::from) }
    }

    #[inline(never)]
    unsafe fn pairs_i16(self, data: *const i16, at: &PairOffsets) -> [F; 2] {
        // SAFETY: as the caller says.
        unsafe { pairs(data, at, f32::from) }
    }

    #[inline(never)]
    unsafe fn pairs_f32(self, data: *const f32, at: &PairOffsets) -> [F; 2] {
        // SAFETY: as the caller says.
        unsafe { pairs(data, at, |v| v) }
    }

    #[inline(never)]
    #[expect(clippy::manual_clamp, reason = "NaN becomes a number, as with vectors")]
    unsafe fn pairs_f64(self, data: *const f64, at: &PairOffsets, origin: f64, gain: f64) -> [F; 2] {
        // SAFETY: as the caller says.
        unsafe { pairs(data, at, |v| ((v - origin) * gain).max(-FAR).min(FAR) as f32) }
    }
}
