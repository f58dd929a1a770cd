//! Vectors of sixteen lanes: the operations of the caster's inner loop, and the selection of the processor's
//! instructions.
//!
//! [`Simd`] is one small trait; each set of instructions implements it in a file of its own. A value of a set
//! is the proof that the machine has it: the only way to get one is [`Instructions::run`], which detects it.
//! A [`SimdJob`] is compiled once per set and dispatched once, so everything below it must be inlined: an
//! outlined function or closure would be compiled for the baseline processor. Hence loops and macros where
//! `map` would be shorter.

#![expect(unsafe_code, reason = "reads at offsets that the caller answers for")]

use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod inserts;
mod lanes;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod probe;
mod scalar;

/// Set of vector instructions that the caster supports. All draw the same picture; see [`crate::cast_with`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Instructions {
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// AVX2 and FMA.
    Avx2,
    /// NEON.
    Neon,
    /// Baseline instructions of the architecture.
    Scalar,
}

impl Instructions {
    /// Returns those that this machine has, the fastest first.
    #[must_use]
    pub fn available() -> &'static [Self] {
        static AVAILABLE: OnceLock<Vec<Instructions>> = OnceLock::new();
        AVAILABLE.get_or_init(|| {
            let all = [Self::Avx512, Self::Avx2, Self::Neon, Self::Scalar];
            all.into_iter().filter(|set| set.is_here()).collect()
        })
    }

    /// Returns the fastest that this machine has.
    #[must_use]
    pub fn best() -> Self {
        Self::available().first().copied().unwrap_or(Self::Scalar)
    }

    fn is_here(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::Avx512::new(probe::Gather::Inserts).is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::Avx2::new(probe::Gather::Inserts).is_some(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => true,
            Self::Scalar => true,
            #[expect(clippy::allow_attributes, reason = "which sets cannot be here differs")]
            #[allow(unreachable_patterns)]
            _ => false,
        }
    }

    /// Runs a job with these instructions, or with scalar ones if the machine lacks them.
    pub(crate) fn run<J: SimdJob>(self, job: J) -> J::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                if let Some(simd) = avx512::Avx512::new(probe::avx512()) {
                    return simd.run(job);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                if let Some(simd) = avx2::Avx2::new(probe::avx2()) {
                    return simd.run(job);
                }
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => return neon::Neon.run(job),
            _ => {}
        }
        job.run(scalar::ScalarSimd)
    }
}

/// Evaluates an expression for each axis x, y, z, into an array. A macro, because a closure around vectors
/// would be compiled for the baseline processor if it were not inlined.
macro_rules! each_axis {
    ($axis:ident => $body:expr) => {
        [
            {
                let $axis = 0;
                $body
            },
            {
                let $axis = 1;
                $body
            },
            {
                let $axis = 2;
                $body
            },
        ]
    };
}
pub(crate) use each_axis;
pub(crate) use lanes::{FAR, LANES, PairOffsets, READ_AHEAD, Simd, SimdJob, SimdStep};

#[cfg(test)]
mod tests;
