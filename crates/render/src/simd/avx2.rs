//! Sixteen lanes in two registers of AVX2.

#![expect(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::*;

use super::inserts::{eight_pairs_of_bytes, four_words};
use super::lanes::{FAR, LANES, PairOffsets, Simd, SimdJob, SimdStep};
use super::probe::Gather;

/// Proof that the processor has AVX2 and FMA, with its faster method of gathering.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2 {
    gather: Gather,
}

impl Avx2 {
    /// `None` if the processor lacks them.
    pub(crate) fn new(gather: Gather) -> Option<Self> {
        let is_here = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi2");
        is_here.then_some(Self { gather })
    }

    /// Runs a job, compiled for these instructions.
    pub(super) fn run<J: SimdJob>(self, job: J) -> J::Output {
        #[target_feature(enable = "avx2,fma,bmi2")]
        fn inner<J: SimdJob>(simd: Avx2, job: J) -> J::Output {
            job.run(simd)
        }
        // SAFETY: `self` is the proof that they are here.
        unsafe { inner(self, job) }
    }
}

/// Lanes 0 to 7 and 8 to 15.
type Avx2Floats = [__m256; 2];
type Avx2Integers = [__m256i; 2];

/// Loads two 64-bit values at the offsets of `lane` and the next one, counted in `size` bytes.
///
/// # Safety
/// `data` can be read at every offset.
#[inline(always)]
unsafe fn two(data: *const u8, at: &PairOffsets, size: usize, lane: usize) -> __m128d {
    // SAFETY: as the caller says.
    unsafe {
        let first = _mm_load_sd(data.add(at[lane] as usize * size).cast());
        _mm_loadh_pd(first, data.add(at[lane + 1] as usize * size).cast())
    }
}

/// Loads eight pairs of 32 bits from `lane` on, at offsets counted in `size` bytes, as two vectors.
///
/// # Safety
/// The processor has AVX2; `data` can be read at every offset.
#[inline(always)]
unsafe fn split_half(data: *const u8, at: &PairOffsets, size: usize, lane: usize) -> [__m256; 2] {
    // SAFETY: as the caller says.
    unsafe {
        // The first two of every four lanes lie in one register, the others in the other, as `shuffle`
        // requires.
        let a = _mm256_set_m128d(two(data, at, size, lane + 4), two(data, at, size, lane));
        let b = _mm256_set_m128d(two(data, at, size, lane + 6), two(data, at, size, lane + 2));
        let (a, b) = (_mm256_castpd_ps(a), _mm256_castpd_ps(b));
        [_mm256_shuffle_ps::<0x88>(a, b), _mm256_shuffle_ps::<0xDD>(a, b)]
    }
}

/// Loads sixteen pairs of 32 bits as two vectors: the first of each, the second of each.
///
/// # Safety
/// The conditions of [`split_half`].
#[inline(always)]
unsafe fn split(data: *const u8, at: &PairOffsets, size: usize) -> [Avx2Floats; 2] {
    // SAFETY: as the caller says.
    let ([a, b], [c, d]) = unsafe { (split_half(data, at, size, 0), split_half(data, at, size, 8)) };
    [[a, c], [b, d]]
}

/// Loads eight pairs of 32 bits from `lane` on, one instruction for four, like [`split_half`].
///
/// # Safety
/// The processor has AVX2; `data` can be read at every offset, counted in `SCALE` bytes.
#[inline(always)]
unsafe fn gather_half<const SCALE: i32>(data: *const i64, at: &PairOffsets, lane: usize) -> [__m256; 2] {
    // SAFETY: as the caller says.
    unsafe {
        let low = _mm_loadu_si128(at.as_ptr().add(lane).cast());
        let high = _mm_loadu_si128(at.as_ptr().add(lane + 4).cast());
        let low = _mm256_castsi256_ps(_mm256_i32gather_epi64::<SCALE>(data, low));
        let high = _mm256_castsi256_ps(_mm256_i32gather_epi64::<SCALE>(data, high));
        // Exchange the middle halves: then `shuffle` finds every four lanes in order.
        let a = _mm256_permute2f128_ps::<0x20>(low, high);
        let b = _mm256_permute2f128_ps::<0x31>(low, high);
        [_mm256_shuffle_ps::<0x88>(a, b), _mm256_shuffle_ps::<0xDD>(a, b)]
    }
}

/// Loads sixteen pairs of 32 bits, like [`split`].
///
/// # Safety
/// The conditions of [`gather_half`].
#[inline(always)]
unsafe fn gather_split<const SCALE: i32>(data: *const i64, at: &PairOffsets) -> [Avx2Floats; 2] {
    // SAFETY: as the caller says.
    let ([a, b], [c, d]) = unsafe { (gather_half::<SCALE>(data, at, 0), gather_half::<SCALE>(data, at, 8)) };
    [[a, c], [b, d]]
}

/// Loads eight 32-bit values from `lane` on, each holding two of 16 bits.
///
/// # Safety
/// The processor has AVX2; `data` can be read at every offset.
#[inline(always)]
unsafe fn words(data: *const u16, at: &PairOffsets, lane: usize, gather: Gather) -> __m256i {
    // SAFETY: as the caller says.
    unsafe {
        if gather == Gather::Hardware {
            let offsets = _mm256_loadu_si256(at.as_ptr().add(lane).cast());
            return _mm256_i32gather_epi32::<2>(data.cast(), offsets);
        }
        _mm256_set_m128i(four_words(data, at, lane + 4), four_words(data, at, lane))
    }
}

/// Loads eight pairs of bytes from `lane` on, each in 32 bits.
///
/// # Safety
/// The processor has AVX2; `data` can be read at every offset for two bytes (four with hardware gathers).
#[inline(always)]
unsafe fn bytes(data: *const u8, at: &PairOffsets, lane: usize, gather: Gather) -> __m256i {
    // SAFETY: as the caller says.
    unsafe {
        if gather == Gather::Hardware {
            let offsets = _mm256_loadu_si256(at.as_ptr().add(lane).cast());
            return _mm256_i32gather_epi32::<1>(data.cast(), offsets);
        }
        _mm256_cvtepu16_epi32(eight_pairs_of_bytes(data, at, lane))
    }
}

/// Loads the pairs of `lane` and the next one as pairs of places.
///
/// # Safety
/// The processor has AVX2; `data` can be read at their offsets for two elements.
#[inline(always)]
unsafe fn places(data: *const f64, at: &PairOffsets, lane: usize, origin: f64, gain: f64) -> __m128 {
    // SAFETY: as the caller says.
    unsafe {
        let first = _mm_loadu_pd(data.add(at[lane] as usize));
        let pairs = _mm256_set_m128d(_mm_loadu_pd(data.add(at[lane + 1] as usize)), first);
        let moved = _mm256_mul_pd(_mm256_sub_pd(pairs, _mm256_set1_pd(origin)), _mm256_set1_pd(gain));
        let near = _mm256_min_pd(_mm256_max_pd(moved, _mm256_set1_pd(-FAR)), _mm256_set1_pd(FAR));
        _mm256_cvtpd_ps(near)
    }
}

/// Loads the places of eight lanes from `lane` on as two vectors.
///
/// # Safety
/// The conditions of [`places`].
#[inline(always)]
unsafe fn eight_places(
    data: *const f64,
    at: &PairOffsets,
    lane: usize,
    origin: f64,
    gain: f64,
) -> [__m256; 2] {
    // SAFETY: as the caller says.
    unsafe {
        let (first, third) = (places(data, at, lane, origin, gain), places(data, at, lane + 4, origin, gain));
        let (second, last) =
            (places(data, at, lane + 2, origin, gain), places(data, at, lane + 6, origin, gain));
        let (a, b) = (_mm256_set_m128(third, first), _mm256_set_m128(last, second));
        [_mm256_shuffle_ps::<0x88>(a, b), _mm256_shuffle_ps::<0xDD>(a, b)]
    }
}

/// Returns the lower and the upper 16 bits of eight values as numbers.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn halves(v: __m256i) -> [__m256; 2] {
    // SAFETY: as the caller says.
    unsafe {
        let lower = _mm256_and_si256(v, _mm256_set1_epi32(0xFFFF));
        [_mm256_cvtepi32_ps(lower), _mm256_cvtepi32_ps(_mm256_srli_epi32::<16>(v))]
    }
}

/// Returns the lower and the upper 16 bits of eight values as signed numbers.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn signed_halves(v: __m256i) -> [__m256; 2] {
    // SAFETY: as the caller says.
    unsafe {
        let lower = _mm256_srai_epi32::<16>(_mm256_slli_epi32::<16>(v));
        [_mm256_cvtepi32_ps(lower), _mm256_cvtepi32_ps(_mm256_srai_epi32::<16>(v))]
    }
}

/// Returns the lowest two bytes of eight values as numbers.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn lowest_bytes(v: __m256i) -> [__m256; 2] {
    // SAFETY: as the caller says.
    unsafe {
        let low = _mm256_set1_epi32(0xFF);
        let upper = _mm256_and_si256(_mm256_srli_epi32::<8>(v), low);
        [_mm256_cvtepi32_ps(_mm256_and_si256(v, low)), _mm256_cvtepi32_ps(upper)]
    }
}

/// Operations on both halves.
macro_rules! both {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty = $of:expr;)*) => {
        $(
            #[inline(always)]
            fn $name(self, $($arg: $type),*) -> $result {
                // SAFETY: `self` is the proof that the processor has these instructions.
                unsafe { [$of($($arg[0]),*), $of($($arg[1]),*)] }
            }
        )*
    };
}

impl Simd for Avx2 {
    type F = Avx2Floats;
    type U = Avx2Integers;
    type M = Avx2Floats;

    #[inline(always)]
    fn call<J: SimdStep<Self>>(self, step: J) -> J::Output {
        #[target_feature(enable = "avx2,fma,bmi2")]
        #[inline(never)]
        fn inner<J: SimdStep<Avx2>>(simd: Avx2, step: J) -> J::Output {
            step.run(simd)
        }
        // SAFETY: `self` is the proof that they are here.
        unsafe { inner(self, step) }
    }

    both! {
        add(a: Avx2Floats, b: Avx2Floats) -> Avx2Floats = _mm256_add_ps;
        sub(a: Avx2Floats, b: Avx2Floats) -> Avx2Floats = _mm256_sub_ps;
        mul(a: Avx2Floats, b: Avx2Floats) -> Avx2Floats = _mm256_mul_ps;
        mul_add(a: Avx2Floats, b: Avx2Floats, c: Avx2Floats) -> Avx2Floats = _mm256_fmadd_ps;
        min(a: Avx2Floats, b: Avx2Floats) -> Avx2Floats = _mm256_min_ps;
        max(a: Avx2Floats, b: Avx2Floats) -> Avx2Floats = _mm256_max_ps;
        div(a: Avx2Floats, b: Avx2Floats) -> Avx2Floats = _mm256_div_ps;
        sqrt(a: Avx2Floats) -> Avx2Floats = _mm256_sqrt_ps;
        truncate(a: Avx2Floats) -> Avx2Integers = _mm256_cvttps_epi32;
        to_float(a: Avx2Integers) -> Avx2Floats = _mm256_cvtepi32_ps;
        add_u(a: Avx2Integers, b: Avx2Integers) -> Avx2Integers = _mm256_add_epi32;
        mul_u(a: Avx2Integers, b: Avx2Integers) -> Avx2Integers = _mm256_mullo_epi32;
        lt(a: Avx2Floats, b: Avx2Floats) -> Avx2Floats = _mm256_cmp_ps::<_CMP_LT_OQ>;
        ge(a: Avx2Floats, b: Avx2Floats) -> Avx2Floats = _mm256_cmp_ps::<_CMP_GE_OQ>;
        eq(a: Avx2Floats, b: Avx2Floats) -> Avx2Floats = _mm256_cmp_ps::<_CMP_EQ_OQ>;
        and(a: Avx2Floats, b: Avx2Floats) -> Avx2Floats = _mm256_and_ps;
        or(a: Avx2Floats, b: Avx2Floats) -> Avx2Floats = _mm256_or_ps;
    }

    #[inline(always)]
    fn splat(self, v: f32) -> Avx2Floats {
        // SAFETY: `self` is the proof that the processor has this instruction.
        [unsafe { _mm256_set1_ps(v) }; 2]
    }

    #[inline(always)]
    fn splat_u(self, v: u32) -> Avx2Integers {
        // SAFETY: `self` is the proof that the processor has this instruction.
        [unsafe { _mm256_set1_epi32(v.cast_signed()) }; 2]
    }

    #[inline(always)]
    fn load(self, v: &[f32; LANES]) -> Avx2Floats {
        // SAFETY: both halves lie in the array; `self` is the proof of the instruction.
        unsafe { [_mm256_loadu_ps(v.as_ptr()), _mm256_loadu_ps(v.as_ptr().add(8))] }
    }

    #[inline(always)]
    fn store(self, v: Avx2Floats) -> [f32; LANES] {
        let mut to = [0.0; LANES];
        // SAFETY: both halves lie in the array; `self` is the proof of the instruction.
        unsafe {
            _mm256_storeu_ps(to.as_mut_ptr(), v[0]);
            _mm256_storeu_ps(to.as_mut_ptr().add(8), v[1]);
        }
        to
    }

    #[inline(always)]
    fn store_u(self, v: Avx2Integers) -> [u32; LANES] {
        let mut to = [0; LANES];
        // SAFETY: both halves lie in the array; `self` is the proof of the instruction.
        unsafe {
            _mm256_storeu_si256(to.as_mut_ptr().cast(), v[0]);
            _mm256_storeu_si256(to.as_mut_ptr().add(8).cast(), v[1]);
        }
        to
    }

    #[inline(always)]
    fn select(self, m: Avx2Floats, a: Avx2Floats, b: Avx2Floats) -> Avx2Floats {
        // SAFETY: `self` is the proof that the processor has this instruction.
        unsafe { [_mm256_blendv_ps(b[0], a[0], m[0]), _mm256_blendv_ps(b[1], a[1], m[1])] }
    }

    #[inline(always)]
    fn bits(self, m: Avx2Floats) -> u32 {
        // SAFETY: `self` is the proof that the processor has this instruction.
        let (low, high) = unsafe { (_mm256_movemask_ps(m[0]), _mm256_movemask_ps(m[1])) };
        low.cast_unsigned() | high.cast_unsigned() << 8
    }

    #[inline(always)]
    fn least(self, a: Avx2Floats) -> f32 {
        // SAFETY: `self` is the proof that the processor has these instructions.
        unsafe {
            let eight = _mm256_min_ps(a[0], a[1]);
            let four = _mm_min_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_min_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_min_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }

    #[inline(always)]
    unsafe fn entries(self, table: *const u64, at: &PairOffsets) -> [Avx2Floats; 4] {
        // SAFETY: as the caller says; `self` is the proof of the instructions.
        unsafe {
            let [low, high] = if self.gather == Gather::Hardware {
                gather_split::<8>(table.cast(), at)
            } else {
                split(table.cast(), at, 8)
            };
            let ([r0, g0], [r1, g1]) =
                (halves(_mm256_castps_si256(low[0])), halves(_mm256_castps_si256(low[1])));
            let ([b0, a0], [b1, a1]) =
                (halves(_mm256_castps_si256(high[0])), halves(_mm256_castps_si256(high[1])));
            [[r0, r1], [g0, g1], [b0, b1], [a0, a1]]
        }
    }

    #[inline(always)]
    unsafe fn numbers(self, table: *const f32, at: &PairOffsets) -> Avx2Floats {
        // SAFETY: as the caller says; `self` is the proof of the instructions.
        unsafe {
            let (low, high) = (at.as_ptr().cast(), at.as_ptr().add(8).cast());
            [
                _mm256_i32gather_ps::<4>(table, _mm256_loadu_si256(low)),
                _mm256_i32gather_ps::<4>(table, _mm256_loadu_si256(high)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn pairs_u8(self, data: *const u8, at: &PairOffsets) -> [Avx2Floats; 2] {
        // SAFETY: as the caller says; `self` is the proof of the instructions.
        let ([a, b], [c, d]) = unsafe {
            (lowest_bytes(bytes(data, at, 0, self.gather)), lowest_bytes(bytes(data, at, 8, self.gather)))
        };
        [[a, c], [b, d]]
    }

    #[inline(always)]
    unsafe fn pairs_u16(self, data: *const u16, at: &PairOffsets) -> [Avx2Floats; 2] {
        // SAFETY: as the caller says; `self` is the proof of the instructions.
        let ([a, b], [c, d]) =
            unsafe { (halves(words(data, at, 0, self.gather)), halves(words(data, at, 8, self.gather))) };
        [[a, c], [b, d]]
    }

    #[inline(always)]
    unsafe fn pairs_i16(self, data: *const i16, at: &PairOffsets) -> [Avx2Floats; 2] {
        let data = data.cast();
        // SAFETY: as the caller says; `self` is the proof of the instructions.
        let ([a, b], [c, d]) = unsafe {
            (signed_halves(words(data, at, 0, self.gather)), signed_halves(words(data, at, 8, self.gather)))
        };
        [[a, c], [b, d]]
    }

    #[inline(always)]
    unsafe fn pairs_f32(self, data: *const f32, at: &PairOffsets) -> [Avx2Floats; 2] {
        // SAFETY: as the caller says; `self` is the proof of the instructions.
        unsafe {
            if self.gather == Gather::Hardware {
                return gather_split::<4>(data.cast(), at);
            }
            split(data.cast(), at, 4)
        }
    }

    #[inline(always)]
    unsafe fn pairs_f64(self, data: *const f64, at: &PairOffsets, origin: f64, gain: f64) -> [Avx2Floats; 2] {
        // SAFETY: as the caller says; `self` is the proof of the instructions.
        let ([a, b], [c, d]) =
            unsafe { (eight_places(data, at, 0, origin, gain), eight_places(data, at, 8, origin, gain)) };
        [[a, c], [b, d]]
    }
}
