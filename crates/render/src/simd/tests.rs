//! Every set of instructions that the machine has does what the scalar one does.

use proptest::prelude::*;

use super::*;

/// Job that returns the results of all operations in one list, as bits or numbers.
struct Everything<'a> {
    a: &'a [f32; LANES],
    b: &'a [f32; LANES],
    at: &'a PairOffsets,
    bytes: &'a [u8],
}

impl SimdJob for Everything<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    #[expect(unsafe_code, reason = "offsets were made to fit")]
    fn run<S: Simd>(self, simd: S) -> Vec<f32> {
        let (a, b) = (simd.load(self.a), simd.load(self.b));
        let whole = simd.truncate(simd.max(a, simd.splat(0.0)));
        let sum = simd.add_u(simd.mul_u(whole, simd.splat_u(3)), simd.splat_u(7));
        let mask = simd.or(simd.and(simd.lt(a, b), simd.ge(b, simd.splat(0.0))), simd.eq(a, b));
        let mut vectors = vec![
            simd.add(a, b),
            simd.sub(a, b),
            simd.mul(a, b),
            simd.div(a, simd.add(b, simd.splat(2000.0))),
            simd.sqrt(simd.max(a, simd.splat(0.0))),
            simd.min(a, b),
            simd.max(a, b),
            simd.to_float(sum),
            simd.select(mask, a, b),
        ];
        let data = self.bytes.as_ptr();
        // SAFETY: offsets are below 64, and sixteen times as many bytes are there.
        unsafe {
            vectors.extend(simd.entries(data.cast(), self.at));
            vectors.push(simd.numbers(data.cast(), self.at));
            vectors.extend(simd.pairs_u8(data, self.at));
            vectors.extend(simd.pairs_u16(data.cast(), self.at));
            vectors.extend(simd.pairs_i16(data.cast(), self.at));
            vectors.extend(simd.pairs_f32(data.cast(), self.at));
            vectors.extend(simd.pairs_f64(data.cast(), self.at, 3.0, 0.5));
        }
        let mut all: Vec<f32> = vectors.into_iter().flat_map(|v| simd.store(v)).collect();
        all.extend(simd.store_u(sum).map(|v| v as f32));
        all.push(simd.bits(mask) as f32);
        all.push(simd.least(a));
        all
    }
}

/// Bytes, aligned for every type.
#[repr(align(64))]
struct Aligned([u8; 1024]);

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_set_does_what_the_scalar_one_does(
        a in prop::array::uniform16(-1000.0..1000.0f32),
        b in prop::array::uniform16(-1000.0..1000.0f32),
        at in prop::array::uniform16(0..64u32),
        bytes in prop::collection::vec(any::<u8>(), 1024),
    ) {
        let mut aligned = Aligned([0; 1024]);
        aligned.0.copy_from_slice(&bytes);
        let job = || Everything { a: &a, b: &b, at: &at, bytes: &aligned.0 };
        let expected: Vec<u32> = job().run(scalar::ScalarSimd).into_iter().map(canonical).collect();
        for &set in Instructions::available() {
            let found: Vec<u32> = set.run(job()).into_iter().map(canonical).collect();
            prop_assert_eq!(&found, &expected, "{:?}", set);
        }
        #[cfg(target_arch = "x86_64")]
        for gather in [probe::Gather::Inserts, probe::Gather::Hardware] {
            if let Some(simd) = avx512::Avx512::new(gather) {
                let found: Vec<u32> = simd.run(job()).into_iter().map(canonical).collect();
                prop_assert_eq!(&found, &expected, "AVX-512, {:?}", gather);
            }
            if let Some(simd) = avx2::Avx2::new(gather) {
                let found: Vec<u32> = simd.run(job()).into_iter().map(canonical).collect();
                prop_assert_eq!(&found, &expected, "AVX2, {:?}", gather);
            }
        }
    }
}

/// The bits, all kinds of NaN made one.
fn canonical(v: f32) -> u32 {
    if v.is_nan() { f32::NAN.to_bits() } else { v.to_bits() }
}
