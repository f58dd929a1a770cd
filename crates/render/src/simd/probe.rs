//! Selection of the faster method of gathering on this processor: one instruction for all lanes, or loads and
//! inserts lane by lane. Measured once: on some processors the instruction is faster, on others it is far
//! slower.

#![expect(unsafe_code, reason = "vector instructions read by offsets")]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::avx2::Avx2;
use super::avx512::Avx512;
use super::lanes::{LANES, Simd, SimdJob};

/// Method of gathering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gather {
    /// Scalar loads and inserts.
    Inserts,
    /// The gather instruction.
    Hardware,
}

pub(super) fn avx512() -> Gather {
    static FOUND: OnceLock<Gather> = OnceLock::new();
    *FOUND.get_or_init(|| faster(|gather, job| Avx512::new(gather).map_or(0.0, |simd| simd.run(job))))
}

pub(super) fn avx2() -> Gather {
    static FOUND: OnceLock<Gather> = OnceLock::new();
    *FOUND.get_or_init(|| faster(|gather, job| Avx2::new(gather).map_or(0.0, |simd| simd.run(job))))
}

/// Timed work, similar to samples of bytes: positions in registers become offsets, four rows of pairs are
/// interpolated, and the result is looked up in the table.
#[derive(Clone, Copy)]
struct ProbeTrial<'a> {
    voxels: &'a [u8; SIZE],
    table: &'a [u64; SIZE],
}

/// Number of elements, fitting the nearest cache.
const SIZE: usize = 2048;
/// Samples of sixteen rays in one measurement: some tens of microseconds.
const ROUNDS: u16 = 1000;
/// Measurements of each method, alternating; the best counts, so that pauses do not.
const TRIES: usize = 16;

impl SimdJob for ProbeTrial<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        const ROW: usize = 33;
        // Steps after which a ray starts again, so that it stays among the voxels.
        const LENGTH: u16 = 256;
        // Neighboring rays, about half a voxel apart, that lean against the rows.
        let mut start = [0.0; LANES];
        for (lane, start) in start.iter_mut().enumerate() {
            *start = (lane % 4) as f32 * 0.5 + (lane / 4 / 2 * ROW) as f32;
        }
        let (start, step) = (simd.load(&start), simd.splat(6.2));
        let last = simd.splat((SIZE - 1) as f32);
        let mut sum = simd.splat(0.0);
        for round in 0..ROUNDS {
            let at = simd.mul_add(step, simd.splat(f32::from(round % LENGTH)), start);
            let cell = simd.truncate(at);
            let share = simd.sub(at, simd.to_float(cell));
            let at = simd.store_u(cell);
            let mut value = simd.splat(0.0);
            for row in 0..4 {
                // SAFETY: at most 256 steps of 6.2, and 35 and three rows on: 1,722, far from the end.
                let [a, b] = unsafe { simd.pairs_u8(self.voxels.as_ptr().add(row * ROW), &at) };
                value = simd.add(value, simd.mul_add(simd.sub(b, a), share, a));
            }
            let place = simd.min(simd.max(value, simd.splat(0.0)), last);
            // SAFETY: clamped to the table.
            let [r, g, b, a] =
                unsafe { simd.entries(self.table.as_ptr(), &simd.store_u(simd.truncate(place))) };
            sum = simd.mul_add(simd.add(simd.add(r, g), simd.add(b, a)), share, sum);
        }
        simd.store(sum).iter().take(LANES).sum()
    }
}

#[expect(clippy::disallowed_methods, reason = "what is measured is time")]
fn faster(run: impl Fn(Gather, ProbeTrial<'_>) -> f32) -> Gather {
    let (mut voxels, table) = ([0; SIZE], [1; SIZE]);
    for (voxel, i) in voxels.iter_mut().zip(0u32..) {
        *voxel = (i.wrapping_mul(97) >> 3).to_le_bytes()[0];
    }
    let trial = ProbeTrial { voxels: &voxels, table: &table };
    let took = |gather: Gather| -> Duration {
        let start = Instant::now();
        std::hint::black_box(run(gather, std::hint::black_box(trial)));
        start.elapsed()
    };
    let mut best = [Duration::MAX; 2];
    for _ in 0..TRIES {
        for (best, gather) in best.iter_mut().zip([Gather::Hardware, Gather::Inserts]) {
            *best = took(gather).min(*best);
        }
    }
    if best[0] < best[1] { Gather::Hardware } else { Gather::Inserts }
}
