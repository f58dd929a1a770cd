//! Which way of gathering is faster on this processor: one instruction for all lanes, or loads and inserts lane by
//! lane. Found by trying, once: on some processors the instruction wins, on others it is far behind.

#![expect(unsafe_code, reason = "vector instructions read by offsets")]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::avx2::Avx2;
use super::avx512::Avx512;
use super::{Job, LANES, Offsets, Simd};

/// A way to gather.
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

/// A few hundred microseconds of what a sample of bytes reads.
#[derive(Clone, Copy)]
struct Trial<'a> {
    voxels: &'a [u8; SIZE],
    table: &'a [u64; SIZE],
}

/// Elements, fitting the nearest cache.
const SIZE: usize = 2048;
/// Rounds of sixteen pairs of each kind.
const ROUNDS: u32 = 4000;
/// Tries of each way; the best counts, so that a pause of one does not.
const TRIES: usize = 3;

impl Job for Trial<'_> {
    type Output = f32;

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "small numbers")]
    fn run<S: Simd>(self, simd: S) -> f32 {
        const PRIME: u32 = 97;
        const LAST: u32 = (SIZE - super::READ_AHEAD) as u32;
        let mut sum = simd.splat(0.0);
        for round in 0..ROUNDS {
            let at: Offsets = std::array::from_fn(|lane| (round * 13 + lane as u32 * PRIME) % LAST);
            for row in 0..4 {
                let at = at.map(|i| i ^ row);
                // SAFETY: offsets are at most `LAST`, so that `READ_AHEAD` elements follow each.
                let [a, b] = unsafe { simd.pairs_u8(self.voxels.as_ptr(), &at.map(|i| i.min(LAST))) };
                sum = simd.add(sum, simd.add(a, b));
            }
            // SAFETY: offsets stay below the size of the table.
            let [r, g, b, a] = unsafe { simd.entries(self.table.as_ptr(), &at) };
            sum = simd.add(simd.add(sum, simd.add(r, g)), simd.add(b, a));
        }
        simd.store(sum).iter().take(LANES).sum()
    }
}

#[expect(clippy::disallowed_methods, reason = "what is measured is time")]
fn faster(run: impl Fn(Gather, Trial<'_>) -> f32) -> Gather {
    let (voxels, table) = ([1; SIZE], [1; SIZE]);
    let trial = Trial { voxels: &voxels, table: &table };
    let took = |gather: Gather| -> Duration {
        let once = || {
            let start = Instant::now();
            std::hint::black_box(run(gather, std::hint::black_box(trial)));
            start.elapsed()
        };
        (0..TRIES).map(|_| once()).min().unwrap_or(Duration::MAX)
    };
    if took(Gather::Hardware) < took(Gather::Inserts) { Gather::Hardware } else { Gather::Inserts }
}
