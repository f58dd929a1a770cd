//! Sixteen lanes in four registers of NEON, which every 64-bit ARM processor has. It has no gather; lanes are
//! loaded one by one.

#![expect(unsafe_code, reason = "vector instructions")]

use std::arch::aarch64::*;

use super::lanes::{FAR, LANES, PairOffsets, Simd, SimdJob, SimdStep};

/// NEON instructions on sixteen lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neon;

impl Neon {
    /// Runs a job; NEON needs no detection.
    pub(super) fn run<J: SimdJob>(self, job: J) -> J::Output {
        job.run(self)
    }
}

/// Lanes 0 to 3, 4 to 7, 8 to 11, 12 to 15.
type NeonFloats = [float32x4_t; 4];
type NeonIntegers = [uint32x4_t; 4];

/// Loads four pairs of 32 bits from `lane` on, at offsets counted in `size` bytes, as two vectors.
///
/// # Safety
/// `data` can be read at every offset.
#[inline(always)]
unsafe fn split_quarter(data: *const u8, at: &PairOffsets, size: usize, lane: usize) -> [float32x4_t; 2] {
    // SAFETY: as the caller says.
    unsafe {
        let a = vld1_f32(data.add(at[lane] as usize * size).cast());
        let b = vld1_f32(data.add(at[lane + 1] as usize * size).cast());
        let c = vld1_f32(data.add(at[lane + 2] as usize * size).cast());
        let d = vld1_f32(data.add(at[lane + 3] as usize * size).cast());
        let (low, high) = (vcombine_f32(a, b), vcombine_f32(c, d));
        [vuzp1q_f32(low, high), vuzp2q_f32(low, high)]
    }
}

/// Loads sixteen pairs of 32 bits as two vectors: the first of each, the second of each.
///
/// # Safety
/// The conditions of [`split_quarter`].
#[inline(always)]
unsafe fn split(data: *const u8, at: &PairOffsets, size: usize) -> [NeonFloats; 2] {
    // SAFETY: as the caller says.
    let ([a, b], [c, d], [e, f], [g, h]) = unsafe {
        (
            split_quarter(data, at, size, 0),
            split_quarter(data, at, size, 4),
            split_quarter(data, at, size, 8),
            split_quarter(data, at, size, 12),
        )
    };
    [[a, c, e, g], [b, d, f, h]]
}

/// Loads sixteen numbers from memory.
#[inline(always)]
fn load_u(v: &[u32; LANES]) -> NeonIntegers {
    // SAFETY: NEON is always here, and all quarters lie in the array.
    unsafe {
        let p = v.as_ptr();
        [vld1q_u32(p), vld1q_u32(p.add(4)), vld1q_u32(p.add(8)), vld1q_u32(p.add(12))]
    }
}

/// Loads sixteen 32-bit values, each holding two of 16 bits.
///
/// # Safety
/// `data` can be read at every offset for two elements.
#[inline(always)]
unsafe fn words(data: *const u16, at: &PairOffsets) -> NeonIntegers {
    let mut words = [0; LANES];
    for (word, &offset) in words.iter_mut().zip(at) {
        // SAFETY: as the caller says.
        *word = unsafe { data.add(offset as usize).cast::<u32>().read_unaligned() };
    }
    load_u(&words)
}

/// # Safety
/// None: NEON is always available on this architecture.
#[inline(always)]
unsafe fn mul_add(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
    // SAFETY: NEON is always here.
    unsafe { vfmaq_f32(c, a, b) }
}

/// # Safety
/// See [`mul_add`].
#[inline(always)]
unsafe fn smaller(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    // SAFETY: NEON is always here.
    unsafe { vbslq_f32(vcltq_f32(a, b), a, b) }
}

/// # Safety
/// See [`mul_add`].
#[inline(always)]
unsafe fn larger(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    // SAFETY: NEON is always here.
    unsafe { vbslq_f32(vcgtq_f32(a, b), a, b) }
}

/// # Safety
/// See [`mul_add`].
#[inline(always)]
unsafe fn lower_half(v: uint32x4_t) -> float32x4_t {
    // SAFETY: NEON is always here.
    unsafe { vcvtq_f32_u32(vandq_u32(v, vdupq_n_u32(0xFFFF))) }
}

/// # Safety
/// See [`mul_add`].
#[inline(always)]
unsafe fn upper_half(v: uint32x4_t) -> float32x4_t {
    // SAFETY: NEON is always here.
    unsafe { vcvtq_f32_u32(vshrq_n_u32::<16>(v)) }
}

/// # Safety
/// See [`mul_add`].
#[inline(always)]
unsafe fn signed_lower_half(v: uint32x4_t) -> float32x4_t {
    // SAFETY: NEON is always here.
    unsafe { vcvtq_f32_s32(vshrq_n_s32::<16>(vshlq_n_s32::<16>(vreinterpretq_s32_u32(v)))) }
}

/// # Safety
/// See [`mul_add`].
#[inline(always)]
unsafe fn signed_upper_half(v: uint32x4_t) -> float32x4_t {
    // SAFETY: NEON is always here.
    unsafe { vcvtq_f32_s32(vshrq_n_s32::<16>(vreinterpretq_s32_u32(v))) }
}

/// Applies an operation to all quarters.
macro_rules! quarters {
    ($of:ident($v:expr)) => {
        [$of($v[0]), $of($v[1]), $of($v[2]), $of($v[3])]
    };
}

/// Defines operations on all quarters.
macro_rules! all {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty = $of:expr;)*) => {
        $(
            #[inline(always)]
            fn $name(self, $($arg: $type),*) -> $result {
                // SAFETY: NEON is always here.
                unsafe { [$of($($arg[0]),*), $of($($arg[1]),*), $of($($arg[2]),*), $of($($arg[3]),*)] }
            }
        )*
    };
}

impl Simd for Neon {
    type F = NeonFloats;
    type U = NeonIntegers;
    type M = NeonIntegers;

    #[inline(never)]
    fn call<J: SimdStep<Self>>(self, step: J) -> J::Output {
        step.run(self)
    }

    all! {
        add(a: NeonFloats, b: NeonFloats) -> NeonFloats = vaddq_f32;
        sub(a: NeonFloats, b: NeonFloats) -> NeonFloats = vsubq_f32;
        mul(a: NeonFloats, b: NeonFloats) -> NeonFloats = vmulq_f32;
        mul_add(a: NeonFloats, b: NeonFloats, c: NeonFloats) -> NeonFloats = mul_add;
        min(a: NeonFloats, b: NeonFloats) -> NeonFloats = smaller;
        max(a: NeonFloats, b: NeonFloats) -> NeonFloats = larger;
        div(a: NeonFloats, b: NeonFloats) -> NeonFloats = vdivq_f32;
        sqrt(a: NeonFloats) -> NeonFloats = vsqrtq_f32;
        truncate(a: NeonFloats) -> NeonIntegers = vcvtq_u32_f32;
        to_float(a: NeonIntegers) -> NeonFloats = vcvtq_f32_u32;
        add_u(a: NeonIntegers, b: NeonIntegers) -> NeonIntegers = vaddq_u32;
        mul_u(a: NeonIntegers, b: NeonIntegers) -> NeonIntegers = vmulq_u32;
        lt(a: NeonFloats, b: NeonFloats) -> NeonIntegers = vcltq_f32;
        ge(a: NeonFloats, b: NeonFloats) -> NeonIntegers = vcgeq_f32;
        eq(a: NeonFloats, b: NeonFloats) -> NeonIntegers = vceqq_f32;
        and(a: NeonIntegers, b: NeonIntegers) -> NeonIntegers = vandq_u32;
        or(a: NeonIntegers, b: NeonIntegers) -> NeonIntegers = vorrq_u32;
        select(m: NeonIntegers, a: NeonFloats, b: NeonFloats) -> NeonFloats = vbslq_f32;
    }

    #[inline(always)]
    fn splat(self, v: f32) -> NeonFloats {
        // SAFETY: NEON is always here.
        [unsafe { vdupq_n_f32(v) }; 4]
    }

    #[inline(always)]
    fn splat_u(self, v: u32) -> NeonIntegers {
        // SAFETY: NEON is always here.
        [unsafe { vdupq_n_u32(v) }; 4]
    }

    #[inline(always)]
    fn load(self, v: &[f32; LANES]) -> NeonFloats {
        let p = v.as_ptr();
        // SAFETY: all quarters lie in the array.
        unsafe { [vld1q_f32(p), vld1q_f32(p.add(4)), vld1q_f32(p.add(8)), vld1q_f32(p.add(12))] }
    }

    #[inline(always)]
    fn store(self, v: NeonFloats) -> [f32; LANES] {
        let mut to = [0.0; LANES];
        for (quarter, v) in to.chunks_exact_mut(4).zip(v) {
            // SAFETY: a quarter holds four.
            unsafe { vst1q_f32(quarter.as_mut_ptr(), v) };
        }
        to
    }

    #[inline(always)]
    fn store_u(self, v: NeonIntegers) -> [u32; LANES] {
        let mut to = [0; LANES];
        for (quarter, v) in to.chunks_exact_mut(4).zip(v) {
            // SAFETY: a quarter holds four.
            unsafe { vst1q_u32(quarter.as_mut_ptr(), v) };
        }
        to
    }

    #[inline(always)]
    fn bits(self, m: NeonIntegers) -> u32 {
        const WEIGHTS: [u32; 4] = [1, 2, 4, 8];
        let mut bits = 0;
        for (quarter, m) in m.into_iter().enumerate() {
            // SAFETY: NEON is always here, and the array holds four numbers.
            bits |= unsafe { vaddvq_u32(vandq_u32(m, vld1q_u32(WEIGHTS.as_ptr()))) } << (4 * quarter);
        }
        bits
    }

    #[inline(always)]
    fn least(self, a: NeonFloats) -> f32 {
        // SAFETY: NEON is always here.
        unsafe { vminvq_f32(vminq_f32(vminq_f32(a[0], a[1]), vminq_f32(a[2], a[3]))) }
    }

    #[inline(always)]
    unsafe fn entries(self, table: *const u64, at: &PairOffsets) -> [NeonFloats; 4] {
        // SAFETY: as the caller says.
        unsafe {
            let [l, h] = split(table.cast(), at, 8);
            let low = quarters!(vreinterpretq_u32_f32(l));
            let high = quarters!(vreinterpretq_u32_f32(h));
            [
                quarters!(lower_half(low)),
                quarters!(upper_half(low)),
                quarters!(lower_half(high)),
                quarters!(upper_half(high)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn numbers(self, table: *const f32, at: &PairOffsets) -> NeonFloats {
        let mut numbers = [0.0; LANES];
        for (number, &offset) in numbers.iter_mut().zip(at) {
            // SAFETY: as the caller says.
            *number = unsafe { table.add(offset as usize).read() };
        }
        self.load(&numbers)
    }

    #[inline(always)]
    unsafe fn pairs_u8(self, data: *const u8, at: &PairOffsets) -> [NeonFloats; 2] {
        let (mut lower, mut upper) = ([0; LANES], [0; LANES]);
        for lane in 0..LANES {
            // SAFETY: as the caller says.
            let pair = unsafe { data.add(at[lane] as usize).cast::<u16>().read_unaligned() };
            (lower[lane], upper[lane]) = (u32::from(pair & 0xFF), u32::from(pair >> 8));
        }
        [self.to_float(load_u(&lower)), self.to_float(load_u(&upper))]
    }

    #[inline(always)]
    unsafe fn pairs_u16(self, data: *const u16, at: &PairOffsets) -> [NeonFloats; 2] {
        // SAFETY: as the caller says.
        unsafe {
            let both = words(data, at);
            [quarters!(lower_half(both)), quarters!(upper_half(both))]
        }
    }

    #[inline(always)]
    unsafe fn pairs_i16(self, data: *const i16, at: &PairOffsets) -> [NeonFloats; 2] {
        // SAFETY: as the caller says.
        unsafe {
            let both = words(data.cast(), at);
            [quarters!(signed_lower_half(both)), quarters!(signed_upper_half(both))]
        }
    }

    #[inline(always)]
    unsafe fn pairs_f32(self, data: *const f32, at: &PairOffsets) -> [NeonFloats; 2] {
        // SAFETY: as the caller says.
        unsafe { split(data.cast(), at, 4) }
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "places are f32")]
    #[expect(clippy::manual_clamp, reason = "NaN becomes a number, as with vectors")]
    unsafe fn pairs_f64(self, data: *const f64, at: &PairOffsets, origin: f64, gain: f64) -> [NeonFloats; 2] {
        let mut pairs = [[0.0; LANES]; 2];
        for lane in 0..LANES {
            for (upper, values) in pairs.iter_mut().enumerate() {
                // SAFETY: as the caller says.
                let value = unsafe { data.add(at[lane] as usize + upper).read() };
                values[lane] = ((value - origin) * gain).max(-FAR).min(FAR) as f32;
            }
        }
        [self.load(&pairs[0]), self.load(&pairs[1])]
    }
}
