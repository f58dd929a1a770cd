//! Ranks that are processes of an MPI program: a [`Communicator`] over MPI, which starts no process and downloads
//! nothing.
//!
//! Requires the feature `mpi`; without it [`join()`] returns an error if a launcher (`mpirun`, `srun`) has started
//! several processes. The calls are in a small file of C (`calls.c`), because MPI's types differ between
//! implementations, and `process.rs` is the only file with `unsafe`. A binding made by bindgen (the `mpi` crate) would
//! need libclang and some thirty packages at build time, for a dozen calls.
//!
//! [`Communicator`]: compose::Communicator

#[cfg(feature = "mpi")]
mod process;
#[cfg(not(feature = "mpi"))]
mod without_mpi;

#[cfg(feature = "mpi")]
pub use process::{MAX_UNDER_WAY, Process, ProcessLane, join};
#[cfg(not(feature = "mpi"))]
pub use without_mpi::{Process, join};

/// Variables that launchers set for each process, with the number of processes.
const SIZES: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS"];

/// Variable that, set to any value, makes this process independent of the others of its launcher, as in a task farm in
/// which each draws its own picture.
pub const ALONE: &str = "CORRIDOR_ALONE";

/// Returns the number of processes that a launcher has started together with this one; `None` without a launcher, or if
/// [`ALONE`] is set.
#[must_use]
pub fn launched() -> Option<usize> {
    if std::env::var_os(ALONE).is_some_and(|set| !set.is_empty()) {
        return None;
    }
    SIZES.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}
