//! Gathering by scalar loads and inserts, 128 bits at a time, for both x86 instruction sets.

#![expect(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::*;

use super::lanes::PairOffsets;

/// Loads four 32-bit values, each holding two of 16 bits.
///
/// # Safety
/// The processor has SSE4.1; `data` can be read at the offsets from `lane` on.
#[inline(always)]
pub(super) unsafe fn four_words(data: *const u16, at: &PairOffsets, lane: usize) -> __m128i {
    // SAFETY: as the caller says.
    unsafe {
        let v = _mm_cvtsi32_si128(data.add(at[lane] as usize).cast::<i32>().read_unaligned());
        let v = _mm_insert_epi32::<1>(v, data.add(at[lane + 1] as usize).cast::<i32>().read_unaligned());
        let v = _mm_insert_epi32::<2>(v, data.add(at[lane + 2] as usize).cast::<i32>().read_unaligned());
        _mm_insert_epi32::<3>(v, data.add(at[lane + 3] as usize).cast::<i32>().read_unaligned())
    }
}

/// Loads two bytes.
///
/// # Safety
/// `data` can be read at the offset of `lane` for two bytes.
#[inline(always)]
unsafe fn pair_of_bytes(data: *const u8, at: &PairOffsets, lane: usize) -> i32 {
    // SAFETY: as the caller says.
    i32::from(unsafe { data.add(at[lane] as usize).cast::<i16>().read_unaligned() })
}

/// Loads eight pairs of bytes, from `lane` on.
///
/// # Safety
/// `data` can be read at their offsets for two bytes.
#[inline(always)]
pub(super) unsafe fn eight_pairs_of_bytes(data: *const u8, at: &PairOffsets, lane: usize) -> __m128i {
    // SAFETY: as the caller says.
    unsafe {
        let v = _mm_cvtsi32_si128(pair_of_bytes(data, at, lane));
        let v = _mm_insert_epi16::<1>(v, pair_of_bytes(data, at, lane + 1));
        let v = _mm_insert_epi16::<2>(v, pair_of_bytes(data, at, lane + 2));
        let v = _mm_insert_epi16::<3>(v, pair_of_bytes(data, at, lane + 3));
        let v = _mm_insert_epi16::<4>(v, pair_of_bytes(data, at, lane + 4));
        let v = _mm_insert_epi16::<5>(v, pair_of_bytes(data, at, lane + 5));
        let v = _mm_insert_epi16::<6>(v, pair_of_bytes(data, at, lane + 6));
        _mm_insert_epi16::<7>(v, pair_of_bytes(data, at, lane + 7))
    }
}
