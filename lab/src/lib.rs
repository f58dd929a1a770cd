//! Tools that measure and prove: rules of the repository, benchmarks, golden vectors, fuzz targets.
//!
//! Nothing here is needed to use Corridor. Read [`bench`] first: it drives real processes of this program; then
//! [`simulate`]: congestion controllers over a bottleneck, in virtual time; then [`emulate`]: links between namespaces,
//! over which real programs talk.

pub mod bench;
pub mod emulate;
mod rng;
pub mod simulate;
