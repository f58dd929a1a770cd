//! Sixteen lanes in one register of AVX-512.

#![expect(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::*;

use super::inserts::{eight_pairs_of_bytes, four_words};
use super::lanes::{FAR, LANES, PairOffsets, Simd, SimdJob, SimdStep};
use super::probe::Gather;

/// Proof that the processor has AVX-512 F, BW, DQ and VL, with its faster method of gathering.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512 {
    gather: Gather,
}

impl Avx512 {
    /// `None` if the processor lacks them.
    pub(crate) fn new(gather: Gather) -> Option<Self> {
        let is_here = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi2");
        is_here.then_some(Self { gather })
    }

    /// Runs a job, compiled for these instructions.
    pub(super) fn run<J: SimdJob>(self, job: J) -> J::Output {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")]
        fn inner<J: SimdJob>(simd: Avx512, job: J) -> J::Output {
            job.run(simd)
        }
        // SAFETY: `self` is the proof that they are here.
        unsafe { inner(self, job) }
    }
}

/// Loads two 64-bit values at the offsets of `lane` and the next one, counted in `size` bytes.
///
/// # Safety
/// `data` can be read at every offset.
#[inline(always)]
unsafe fn two(data: *const u8, at: &PairOffsets, size: usize, lane: usize) -> __m256d {
    // SAFETY: as the caller says.
    unsafe {
        let first = _mm_load_sd(data.add(at[lane] as usize * size).cast());
        _mm256_castpd128_pd256(_mm_loadh_pd(first, data.add(at[lane + 1] as usize * size).cast()))
    }
}

/// Loads the 64-bit values of two lanes out of every four, from `lane` on.
///
/// # Safety
/// The processor has AVX-512; `data` can be read at every offset.
#[inline(always)]
unsafe fn eight(data: *const u8, at: &PairOffsets, size: usize, lane: usize) -> __m512 {
    // SAFETY: as the caller says.
    unsafe {
        let low = _mm256_permute2f128_pd::<0x20>(two(data, at, size, lane), two(data, at, size, lane + 4));
        let (third, last) = (two(data, at, size, lane + 8), two(data, at, size, lane + 12));
        let high = _mm256_permute2f128_pd::<0x20>(third, last);
        _mm512_castpd_ps(_mm512_insertf64x4::<1>(_mm512_castpd256_pd512(low), high))
    }
}

/// Loads sixteen pairs of 32 bits, at offsets counted in `size` bytes, as two vectors: the first of each, the
/// second of each.
///
/// # Safety
/// The processor has AVX-512; `data` can be read at every offset.
#[inline(always)]
unsafe fn split(data: *const u8, at: &PairOffsets, size: usize) -> [__m512; 2] {
    // SAFETY: as the caller says.
    unsafe {
        // The first two of every four lanes lie in one register, the others in the other, as `shuffle`
        // requires.
        let (a, b) = (eight(data, at, size, 0), eight(data, at, size, 2));
        [_mm512_shuffle_ps::<0x88>(a, b), _mm512_shuffle_ps::<0xDD>(a, b)]
    }
}

/// Sixteen 64-bit values in order, split like [`split`].
///
/// # Safety
/// The processor has AVX-512.
#[inline(always)]
unsafe fn split_gathered(low: __m512i, high: __m512i) -> [__m512; 2] {
    // SAFETY: as the caller says.
    unsafe {
        let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
        let (low, high) = (_mm512_castsi512_ps(low), _mm512_castsi512_ps(high));
        [_mm512_permutex2var_ps(low, even, high), _mm512_permutex2var_ps(low, odd, high)]
    }
}

/// Loads sixteen 64-bit values at offsets, one instruction for eight, split like [`split`].
///
/// # Safety
/// The processor has AVX-512; `data` can be read at every offset, counted in 64 bits by `SCALE` bytes.
#[inline(always)]
unsafe fn gather_split<const SCALE: i32>(data: *const i64, at: &PairOffsets) -> [__m512; 2] {
    // SAFETY: as the caller says.
    unsafe {
        let low = _mm256_loadu_si256(at.as_ptr().cast());
        let high = _mm256_loadu_si256(at.as_ptr().add(LANES / 2).cast());
        split_gathered(
            _mm512_i32gather_epi64::<SCALE>(low, data),
            _mm512_i32gather_epi64::<SCALE>(high, data),
        )
    }
}

/// Loads sixteen 32-bit values, each holding two of 16 bits.
///
/// # Safety
/// The processor has AVX-512; `data` can be read at every offset.
#[inline(always)]
unsafe fn words(data: *const u16, at: &PairOffsets, gather: Gather) -> __m512i {
    // SAFETY: as the caller says.
    unsafe {
        if gather == Gather::Hardware {
            return _mm512_i32gather_epi32::<2>(_mm512_loadu_si512(at.as_ptr().cast()), data.cast());
        }
        let low = _mm256_set_m128i(four_words(data, at, 4), four_words(data, at, 0));
        let high = _mm256_set_m128i(four_words(data, at, 12), four_words(data, at, 8));
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    }
}

/// # Safety
/// The processor has AVX-512; `data` can be read at every offset for two bytes (four with hardware gathers).
#[inline(always)]
unsafe fn bytes(data: *const u8, at: &PairOffsets, gather: Gather) -> __m512i {
    // SAFETY: as the caller says.
    unsafe {
        if gather == Gather::Hardware {
            return _mm512_i32gather_epi32::<1>(_mm512_loadu_si512(at.as_ptr().cast()), data.cast());
        }
        let (low, high) = (eight_pairs_of_bytes(data, at, 0), eight_pairs_of_bytes(data, at, 8));
        _mm512_cvtepu16_epi32(_mm256_set_m128i(high, low))
    }
}

/// Loads the pairs of `lane`, `lane + 1`, `lane + 4` and `lane + 5` as pairs of places.
///
/// # Safety
/// The processor has AVX-512; `data` can be read at their offsets for two elements.
#[inline(always)]
unsafe fn places(data: *const f64, at: &PairOffsets, lane: usize, origin: f64, gain: f64) -> __m256 {
    // SAFETY: as the caller says.
    unsafe {
        let first = _mm_loadu_pd(data.add(at[lane] as usize));
        let low = _mm256_set_m128d(_mm_loadu_pd(data.add(at[lane + 1] as usize)), first);
        let third = _mm_loadu_pd(data.add(at[lane + 4] as usize));
        let high = _mm256_set_m128d(_mm_loadu_pd(data.add(at[lane + 5] as usize)), third);
        let all = _mm512_insertf64x4::<1>(_mm512_castpd256_pd512(low), high);
        let moved = _mm512_mul_pd(_mm512_sub_pd(all, _mm512_set1_pd(origin)), _mm512_set1_pd(gain));
        let near = _mm512_min_pd(_mm512_max_pd(moved, _mm512_set1_pd(-FAR)), _mm512_set1_pd(FAR));
        _mm512_cvtpd_ps(near)
    }
}

/// Loads the places of eight lanes, two of every four, from `lane` on.
///
/// # Safety
/// The processor has AVX-512; `data` can be read at every offset for two elements.
#[inline(always)]
unsafe fn eight_places(data: *const f64, at: &PairOffsets, lane: usize, origin: f64, gain: f64) -> __m512 {
    // SAFETY: as the caller says.
    unsafe {
        let low = _mm512_castps256_ps512(places(data, at, lane, origin, gain));
        _mm512_insertf32x8::<1>(low, places(data, at, lane + 8, origin, gain))
    }
}

macro_rules! simple {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty = $body:expr;)*) => {
        $(
            #[inline(always)]
            fn $name(self, $($arg: $type),*) -> $result {
                // SAFETY: `self` is the proof that the processor has these instructions.
                unsafe { $body }
            }
        )*
    };
}

impl Simd for Avx512 {
    type F = __m512;
    type U = __m512i;
    type M = __mmask16;

    #[inline(always)]
    fn call<J: SimdStep<Self>>(self, step: J) -> J::Output {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")]
        #[inline(never)]
        fn inner<J: SimdStep<Avx512>>(simd: Avx512, step: J) -> J::Output {
            step.run(simd)
        }
        // SAFETY: `self` is the proof that they are here.
        unsafe { inner(self, step) }
    }

    simple! {
        splat(v: f32) -> __m512 = _mm512_set1_ps(v);
        load(v: &[f32; LANES]) -> __m512 = _mm512_loadu_ps(v.as_ptr());
        add(a: __m512, b: __m512) -> __m512 = _mm512_add_ps(a, b);
        sub(a: __m512, b: __m512) -> __m512 = _mm512_sub_ps(a, b);
        mul(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps(a, b);
        mul_add(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
        min(a: __m512, b: __m512) -> __m512 = _mm512_min_ps(a, b);
        max(a: __m512, b: __m512) -> __m512 = _mm512_max_ps(a, b);
        div(a: __m512, b: __m512) -> __m512 = _mm512_div_ps(a, b);
        sqrt(a: __m512) -> __m512 = _mm512_sqrt_ps(a);
        truncate(a: __m512) -> __m512i = _mm512_cvttps_epi32(a);
        to_float(a: __m512i) -> __m512 = _mm512_cvtepi32_ps(a);
        splat_u(v: u32) -> __m512i = _mm512_set1_epi32(v.cast_signed());
        add_u(a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi32(a, b);
        mul_u(a: __m512i, b: __m512i) -> __m512i = _mm512_mullo_epi32(a, b);
        lt(a: __m512, b: __m512) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b);
        ge(a: __m512, b: __m512) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(a, b);
        eq(a: __m512, b: __m512) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b);
        select(m: __mmask16, a: __m512, b: __m512) -> __m512 = _mm512_mask_blend_ps(m, b, a);
        least(a: __m512) -> f32 = _mm512_reduce_min_ps(a);
    }

    #[inline(always)]
    fn store(self, v: __m512) -> [f32; LANES] {
        let mut to = [0.0; LANES];
        // SAFETY: sixteen floats are written to sixteen floats; `self` is the proof of the instructions.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), v) };
        to
    }

    #[inline(always)]
    fn store_u(self, v: __m512i) -> [u32; LANES] {
        let mut to = [0; LANES];
        // SAFETY: sixteen numbers are written to sixteen numbers; `self` is the proof of the instructions.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), v) };
        to
    }

    #[inline(always)]
    fn and(self, a: __mmask16, b: __mmask16) -> __mmask16 {
        a & b
    }

    #[inline(always)]
    fn or(self, a: __mmask16, b: __mmask16) -> __mmask16 {
        a | b
    }

    #[inline(always)]
    fn bits(self, m: __mmask16) -> u32 {
        u32::from(m)
    }

    #[inline(always)]
    unsafe fn entries(self, table: *const u64, at: &PairOffsets) -> [__m512; 4] {
        // SAFETY: as the caller says; `self` is the proof of the instructions.
        unsafe {
            let halves = if self.gather == Gather::Hardware {
                gather_split::<8>(table.cast(), at)
            } else {
                split(table.cast(), at, 8)
            };
            let (low, high) = (_mm512_castps_si512(halves[0]), _mm512_castps_si512(halves[1]));
            let mask = _mm512_set1_epi32(0xFFFF);
            [
                _mm512_cvtepi32_ps(_mm512_and_si512(low, mask)),
                _mm512_cvtepi32_ps(_mm512_srli_epi32::<16>(low)),
                _mm512_cvtepi32_ps(_mm512_and_si512(high, mask)),
                _mm512_cvtepi32_ps(_mm512_srli_epi32::<16>(high)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn numbers(self, table: *const f32, at: &PairOffsets) -> __m512 {
        // SAFETY: as the caller says; `self` is the proof of the instructions.
        unsafe { _mm512_i32gather_ps::<4>(_mm512_loadu_si512(at.as_ptr().cast()), table) }
    }

    #[inline(always)]
    unsafe fn pairs_u8(self, data: *const u8, at: &PairOffsets) -> [__m512; 2] {
        // SAFETY: as the caller says; `self` is the proof of the instructions.
        unsafe {
            let both = bytes(data, at, self.gather);
            let low = _mm512_set1_epi32(0xFF);
            let upper = _mm512_and_si512(_mm512_srli_epi32::<8>(both), low);
            [_mm512_cvtepi32_ps(_mm512_and_si512(both, low)), _mm512_cvtepi32_ps(upper)]
        }
    }

    #[inline(always)]
    unsafe fn pairs_u16(self, data: *const u16, at: &PairOffsets) -> [__m512; 2] {
        // SAFETY: as the caller says; `self` is the proof of the instructions.
        unsafe {
            let both = words(data, at, self.gather);
            let lower = _mm512_and_si512(both, _mm512_set1_epi32(0xFFFF));
            [_mm512_cvtepi32_ps(lower), _mm512_cvtepi32_ps(_mm512_srli_epi32::<16>(both))]
        }
    }

    #[inline(always)]
    unsafe fn pairs_i16(self, data: *const i16, at: &PairOffsets) -> [__m512; 2] {
        // SAFETY: as the caller says; `self` is the proof of the instructions.
        unsafe {
            let both = words(data.cast(), at, self.gather);
            let lower = _mm512_srai_epi32::<16>(_mm512_slli_epi32::<16>(both));
            [_mm512_cvtepi32_ps(lower), _mm512_cvtepi32_ps(_mm512_srai_epi32::<16>(both))]
        }
    }

    #[inline(always)]
    unsafe fn pairs_f32(self, data: *const f32, at: &PairOffsets) -> [__m512; 2] {
        // SAFETY: as the caller says; `self` is the proof of the instructions.
        unsafe {
            if self.gather == Gather::Hardware {
                return gather_split::<4>(data.cast(), at);
            }
            split(data.cast(), at, 4)
        }
    }

    #[inline(always)]
    unsafe fn pairs_f64(self, data: *const f64, at: &PairOffsets, origin: f64, gain: f64) -> [__m512; 2] {
        // SAFETY: as the caller says; `self` is the proof of the instructions.
        unsafe {
            let (a, b) = (eight_places(data, at, 0, origin, gain), eight_places(data, at, 2, origin, gain));
            [_mm512_shuffle_ps::<0x88>(a, b), _mm512_shuffle_ps::<0xDD>(a, b)]
        }
    }
}
