//! `corridor bench`: reproducible measurements, each one JSON object ([`report::Report`]).
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
mod read;
mod relay;
mod render;
pub mod report;
mod servers;
pub mod transport;

use std::fmt::Write;
use std::path::Path;

use array::{Error, Result};

use options::Options;
use report::{Case, Report};

/// Name and what is measured, of every benchmark.
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
    ("first-picture", "seconds from joining a view of a 64 GB array to the first labelled picture"),
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
pub async fn run(name: &str, program: &Path, options: &Options) -> Result<Report> {
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

/// A report as a table for people.
#[must_use]
pub fn table(report: &Report) -> String {
    let mut out = format!(
        "{}, commit {}, {} cores, {}, Linux {}\n",
        report.bench, report.commit, report.machine.cores, report.machine.cpu, report.machine.kernel
    );
    for case in &report.cases {
        writeln!(out, "  {}", line(case)).unwrap_or_default();
    }
    out
}

/// A case for people.
fn line(case: &Case) -> String {
    let figure = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), figure);
    let mut out = format!(
        "{:<44} {:>12} {} (median of {}, {} to {})",
        case.name,
        figure(case.ours),
        case.unit,
        case.runs,
        figure(case.min),
        figure(case.max)
    );
    // On loopback a round trip limits nothing.
    if let Some(limit) = case.limit.filter(|&limit| limit > 0.0) {
        write!(out, "; limit {}: {}", self::figure(limit), case.limit_why).unwrap_or_default();
    }
    for (peer, value) in &case.peers {
        write!(out, "; {peer} {}", figure(*value)).unwrap_or_default();
    }
    match (case.goal, case.meets_goal) {
        (Some(goal), Some(true)) => write!(out, "; goal {} met", self::figure(goal)).unwrap_or_default(),
        (Some(goal), Some(false)) => write!(out, "; goal {} MISSED", self::figure(goal)).unwrap_or_default(),
        _ => {}
    }
    if !case.why.is_empty() {
        write!(out, "; {}", case.why).unwrap_or_default();
    }
    out
}

/// Four digits that count: more are not known.
fn figure(value: f64) -> String {
    let digits = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 9")]
    let decimals = (3.0 - digits).clamp(0.0, 9.0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn figures_have_four_digits_that_count() {
        let shown = [0.0, 0.000_123_456, 1.0, 12.345_6, 123_456.7, -5.0].map(super::figure);
        assert_eq!(shown, ["0.000", "0.0001235", "1.000", "12.35", "123457", "-5.000"]);
    }
}
