//! Ranks that are processes of an MPI program: a [`Communicator`] over MPI, which starts nothing and fetches nothing.
//!
//! Needs the feature `mpi`; without it [`join()`] says so where a launcher (`mpirun`, `srun`) has started several processes.
//! The calls lie in a small file of C (`calls.c`), because MPI's types differ between implementations, and the one file
//! with `unsafe` is `process.rs`. A binding made by bindgen (the `mpi` crate) would need libclang and some thirty packages
//! wherever it is built, for a dozen calls.
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

/// Variables that launchers set for each process, with how many they started.
const SIZES: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS"];

/// Set to anything, it says that this process works by itself, whatever started it: of a task farm each has a picture of its own.
pub const ALONE: &str = "CORRIDOR_ALONE";

/// How many processes a launcher has started with this one to work together, as far as it says; `None` where there is none, or
/// [`ALONE`] is set.
#[must_use]
pub fn launched() -> Option<usize> {
    if std::env::var_os(ALONE).is_some_and(|set| !set.is_empty()) {
        return None;
    }
    SIZES.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}
