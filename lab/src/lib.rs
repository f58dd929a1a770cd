//! Tools for development: benchmarks, simulated and emulated links, and the rules of the repository.
//!
//! Nothing here is needed to use Corridor. Read [`bench`] first: it drives real processes of this program; then
//! [`simulate`]: congestion controllers over a bottleneck, in virtual time; then [`emulate`]: links between namespaces,
//! over which real programs communicate.

pub mod bench;
pub mod emulate;
mod rng;
pub mod simulate;
