//! `corridor bench`: reproducible measurements, each one JSON object ([`report::BenchReport`]).
//!
//! A benchmark starts real processes of this program and measures what a user would see; `controllers` alone simulates,
//! and says so. It asserts nothing: a figure that misses its goal is printed as such.

pub mod access;
mod architectures;
mod controllers;
mod crowd;
mod finished;
mod first_picture;
pub mod options;
mod process;
mod raw_file;
mod read;
mod relay;
mod render;
pub mod report;
mod servers;
mod table;
pub mod transport;
mod wall_clock;

use std::path::Path;

use array::{Error, Result};

use options::Options;
use report::{BenchReport, Case};

pub use table::table;

/// Name and subject of every benchmark.
pub const ALL: &[(&str, &str)] = &[
    (
        "access",
        "remote reads as few or many operations, beside XRootD, TensorStore, zarr-python, h5py and the least that TCP can do",
    ),
    (
        "access-architectures",
        "operations per second of six ways of asking: synchronous, bulk, threaded, pool, pipeline, bulk inside pipeline",
    ),
    (
        "controllers",
        "simulated: goodput, queue, start and fairness of the congestion controllers over a grid of paths",
    ),
    ("crowd", "bytes of a server's memory for an idle client of 1000, and the shares of 100 busy ones"),
    ("first-picture", "seconds from joining a view of a 64 GB array to the first labeled picture"),
    ("read", "bytes per second of a large read, and seconds of a small one, over a real connection"),
    (
        "servers",
        "bytes per second from 1, 2 and 4 servers with limited links, and reads during which a server is killed",
    ),
    (
        "render",
        "processor time per frame of the CPU ray caster beside VTK and ParaView, quality, scaling, and what a viewer waits for",
    ),
    (
        "transport",
        "messages over a given link by QUIC with each controller and by TCP, beside iperf3, UDT, SRT and QUIC's stack as it comes",
    ),
];

/// Runs the benchmark called `name` with `program`, the `corridor` binary.
///
/// # Errors
/// `NotFound` for an unknown name; those of the processes it starts.
pub async fn run(name: &str, program: &Path, options: &Options) -> Result<BenchReport> {
    let mut report = match name {
        "access" => access::run(program, options).await,
        "access-architectures" => architectures::run(program, options).await,
        "controllers" => controllers::run(),
        "crowd" => crowd::run(program, options).await,
        "first-picture" => first_picture::run(program).await,
        "read" => read::run(program).await,
        "servers" => servers::run(program, options).await,
        "render" => render::run(program, options).await,
        "transport" => transport::run(program, options).await,
        _ => {
            let names: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
            Err(Error::not_found(format!("expected one of the benchmarks {names:?}, found `{name}`")))
        }
    }?;
    if options.is_quick {
        report.cases.iter_mut().for_each(Case::leave_open);
    }
    Ok(report)
}
